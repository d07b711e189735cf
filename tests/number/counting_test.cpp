// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/counting.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"

namespace deltaproof {
namespace {

using counted = counting<double>;

TEST(counting, counts_each_operation_once_and_by_kind) {
  const counted a(3);
  const counted b(5);
  counted result;
  const operation_counts counts = count_operations([&] { result = (a + b) * (a - b) / b + a * b; });
  EXPECT_EQ(counts, (operation_counts{2, 1, 2, 1, 0}));
  EXPECT_EQ(counts.total(), 6U);
  EXPECT_EQ(result.value(), (3.0 + 5) * (3.0 - 5) / 5 + 15);
}

TEST(counting, leaves_signs_copies_comparisons_and_constants_out) {
  const operation_counts counts = count_operations([] {
    counted x = one<counted>();
    x = -x;
    const counted y = x;
    EXPECT_TRUE(x == y);
    EXPECT_TRUE(x < zero<counted>());
  });
  EXPECT_EQ(counts, operation_counts{});
}

TEST(counting, sees_a_fused_operation_as_one_that_totals_two) {
  counted result;
  const operation_counts counts =
      count_operations([&] { result = fma(counted(0x1p-30 + 1), counted(0x1p-30 + 1), counted(-1)); });
  EXPECT_EQ(counts, (operation_counts{0, 0, 0, 0, 1}));
  EXPECT_EQ(counts.total(), 2U);
  EXPECT_EQ(result.value(), 0x1p-29 + 0x1p-60) << "rounded twice";
}

TEST(counting, nests_and_restores_what_was_counted_outside) {
  const counted a(2);
  operation_counts inner;
  const operation_counts outer = count_operations([&] {
    static_cast<void>(a + a);
    inner = count_operations([&] { static_cast<void>(a * a); });
    static_cast<void>(a + a);
  });
  EXPECT_EQ(inner, (operation_counts{0, 0, 1, 0, 0}));
  EXPECT_EQ(outer, (operation_counts{2, 0, 1, 0, 0}));
  EXPECT_EQ(count_operations([] {}), operation_counts{});
}

TEST(counting, survives_an_exception) {
  const counted a(2);
  const operation_counts outer = count_operations([&] {
    try {
      static_cast<void>(count_operations([&] {
        static_cast<void>(a - a);
        throw std::runtime_error("");
      }));
    } catch (const std::runtime_error&) {
    }
    static_cast<void>(a + a);
  });
  EXPECT_EQ(outer, (operation_counts{1, 1, 0, 0, 0}));
}

TEST(counting, keeps_a_tally_for_each_thread) {
  const counted a(2);
  const operation_counts counts = count_operations([&] {
    std::thread other([&] { static_cast<void>(a * a); });
    other.join();
    static_cast<void>(a + a);
  });
  EXPECT_EQ(counts, (operation_counts{1, 0, 0, 0, 0}));
}

TEST(counting, rounds_and_divides_as_its_scalar_does) {
  EXPECT_EQ((counting<rational>(rational(1)) / counting<rational>(rational(3))).value(), rational(1, 3));
  EXPECT_EQ((counting<rounded<bf16>>(rounded<bf16>(256)) + counting<rounded<bf16>>(rounded<bf16>(1))).value(),
            rounded<bf16>(256));
  EXPECT_TRUE(is_exact_scalar_v<counting<rational>>);
  EXPECT_FALSE(is_exact_scalar_v<counted>);
  EXPECT_EQ(scalar_name<counted>(), "counting<double>");
  EXPECT_THROW((void)from_int<counting<rounded<bf16>>>(257), domain_error);
}

TEST(counting, adds_and_multiplies_counts) {
  constexpr operation_counts a{1, 2, 3, 4, 5};
  EXPECT_EQ(a + a, 2 * a);
  EXPECT_EQ((3 * a).total(), 3 * a.total());
  EXPECT_EQ(a.total(), 1U + 2 + 3 + 4 + 10);
}

}  // namespace
}  // namespace deltaproof
