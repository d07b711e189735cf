// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/algebra/multiply.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/random.hpp"

namespace deltaproof {
namespace {

using half = rounded<bf16>;
using single = rounded<fp32>;

template <class S>
matrix<S> random_matrix(std::size_t rows, std::size_t cols, std::uint64_t stream) {
  philox generator(99, stream);
  matrix<S> m(rows, cols);
  for (S& x : m.entries()) x = round_to<S>(generator.normal());
  return m;
}

template <class S>
std::uint64_t bits(const S& x) {
  return std::bit_cast<std::uint64_t>(lift<double>(x));
}

template <class A>
void expect_entries_are_dots() {
  using S = typename A::storage_type;
  for (const std::size_t inner : {1U, 5U, 16U, 37U}) {
    const auto a = random_matrix<S>(6, inner, 1);
    const auto b = random_matrix<S>(inner, 4, 2);
    const auto start = random_matrix<typename A::sum_type>(6, 4, 3);
    const auto columns = transpose(b);
    const auto product = matmul<A>(a, b);
    const auto onto = matmul<A>(a, b, start);
    const auto applied = matvec<A>(a, columns.row(2));
    for (std::size_t i = 0; i < 6; ++i) {
      for (std::size_t j = 0; j < 4; ++j) {
        EXPECT_EQ(bits(product(i, j)), bits(dot<A>(a.row(i), columns.row(j))));
        EXPECT_EQ(bits(onto(i, j)), bits(dot<A>(a.row(i), columns.row(j), start(i, j))));
      }
      EXPECT_EQ(bits(applied[i]), bits(product(i, 2)));
    }
  }
}

TEST(multiply, every_entry_is_the_dot_of_its_row_and_column) {
  expect_entries_are_dots<plain<double>>();
  expect_entries_are_dots<plain<float>>();
  expect_entries_are_dots<plain<half>>();
  expect_entries_are_dots<arithmetic<float, exact_product, float, sequential>>();
  expect_entries_are_dots<arithmetic<half, exact_product, single, sequential>>();
  expect_entries_are_dots<arithmetic<half, half, single, pairwise>>();
  expect_entries_are_dots<arithmetic<half, exact_product, single, blocked<4>>>();
  expect_entries_are_dots<arithmetic<half, exact_product, single, tensor_core<hopper>>>();
  expect_entries_are_dots<arithmetic<rounded<fp16>, exact_product, single, tensor_core<volta>>>();
  expect_entries_are_dots<arithmetic<rounded<e4m3>, exact_product, float, tensor_core<ada>>>();
}

TEST(multiply, by_the_identity_changes_nothing) {
  const auto a = random_matrix<half>(5, 5, 4);
  EXPECT_TRUE(matmul<plain<half>>(a, identity<half>(5)) == a);
  EXPECT_TRUE(matmul<plain<half>>(identity<half>(5), a) == a);
}

TEST(multiply, is_associative_and_transposes_over_a_field) {
  philox generator(5, 0);
  const auto draw = [&](std::size_t rows, std::size_t cols) {
    matrix<modular> m(rows, cols);
    for (modular& x : m.entries()) x = modular(static_cast<std::int64_t>(generator() >> 2));
    return m;
  };
  using A = plain<modular>;
  using B = arithmetic<modular, exact_product, modular, pairwise>;
  const auto a = draw(3, 4);
  const auto b = draw(4, 5);
  const auto c = draw(5, 2);
  EXPECT_TRUE(matmul<A>(matmul<A>(a, b), c) == matmul<B>(a, matmul<B>(b, c)));
  EXPECT_TRUE(transpose(matmul<A>(a, b)) == matmul<A>(transpose(b), transpose(a)));
}

TEST(multiply, takes_the_order_from_the_inner_index) {
  // 256 + 1 + 1 in bf16: the ones are lost one by one, kept as a pair.
  const matrix<half> row(1, 3, {half(256), half(1), half(1)});
  const matrix<half> reversed(1, 3, {half(1), half(1), half(256)});
  const matrix<half> ones(3, 1, half(1));
  EXPECT_EQ(lift<double>(matmul<plain<half>>(row, ones)(0, 0)), 256.0);
  EXPECT_EQ(lift<double>(matmul<plain<half>>(reversed, ones)(0, 0)), 258.0);
}

TEST(multiply, shows_a_nan_in_its_row_and_column_only) {
  auto a = random_matrix<double>(4, 3, 6);
  auto b = random_matrix<double>(3, 5, 7);
  a(2, 1) = std::numeric_limits<double>::quiet_NaN();
  b(0, 3) = std::numeric_limits<double>::quiet_NaN();
  const auto c = matmul<plain<double>>(a, b);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 5; ++j) EXPECT_EQ(std::isnan(c(i, j)), i == 2 || j == 3);
  }
}

TEST(multiply, of_empty_shapes_is_zero_or_empty) {
  const matrix<double> thin(3, 0);
  const matrix<double> flat(0, 2);
  const auto product = matmul<plain<double>>(thin, flat);
  EXPECT_TRUE(product == (matrix<double>(3, 2, 0.0)));
  EXPECT_TRUE(matmul<plain<double>>(flat, matrix<double>(2, 4)).empty());
  EXPECT_EQ(matvec<plain<double>>(thin, std::vector<double>{}), (std::vector<double>{0, 0, 0}));
}

TEST(multiply, refuses_shapes_that_do_not_fit_and_names_them) {
  const matrix<double> a(2, 3);
  const matrix<double> b(4, 2);
  try {
    static_cast<void>(matmul<plain<double>>(a, b));
    FAIL() << "no exception";
  } catch (const shape_error& e) {
    EXPECT_NE(std::string(e.what()).find("2 x 3"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("4 x 2"), std::string::npos) << e.what();
  }
  EXPECT_THROW(static_cast<void>(matmul<plain<double>>(a, matrix<double>(3, 2), matrix<double>(2, 3))), shape_error);
  EXPECT_THROW(static_cast<void>(matvec<plain<double>>(a, std::vector<double>(2))), shape_error);
}

}  // namespace
}  // namespace deltaproof
