// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/magnitude.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/rounded.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The directed mode that makes every result as large as rounding can.
struct away_from_zero {
  static constexpr overflow on_overflow = overflow::infinity;
  static constexpr bool rounds_away(bool, std::uint64_t fraction, bool rest) { return fraction != 0 || rest; }
};

struct tally {
  std::uint64_t cases = 0;
  std::uint64_t infinite = 0;  // bounds that say nothing
};

// The result of an operation on values against the bound from their magnitudes.
template <format F>
void expect_bounded(double result, magnitude<F> bound, tally& seen, const char* what, double x, double y) {
  ++seen.cases;
  seen.infinite += std::isinf(bound.value()) ? 1 : 0;
  const double size = std::isfinite(result) ? std::fabs(result) : infinity;
  ASSERT_LE(size, bound.value()) << name_of(F) << ": " << what << " of " << x << " and " << y;
}

template <format F, class Mode>
void check_operations(const std::vector<double>& values, const std::vector<double>& addends, tally& seen) {
  using number = rounded<F>;
  Mode mode;
  for (const double a : values) {
    for (const double b : values) {
      const auto x = number::from_exact(a), y = number::from_exact(b);
      const magnitude<F> p(std::fabs(a)), q(std::fabs(b));
      ASSERT_NO_FATAL_FAILURE(expect_bounded(add(x, y, mode).value(), p + q, seen, "sum", a, b));
      ASSERT_NO_FATAL_FAILURE(expect_bounded(sub(x, y, mode).value(), p - q, seen, "difference", a, b));
      ASSERT_NO_FATAL_FAILURE(expect_bounded(mul(x, y, mode).value(), p * q, seen, "product", a, b));
      ASSERT_NO_FATAL_FAILURE(expect_bounded(div(x, y, mode).value(), p / q, seen, "quotient", a, b));
      for (const double c : addends) {
        const auto z = number::from_exact(c);
        const magnitude<F> r(std::fabs(c));
        ASSERT_NO_FATAL_FAILURE(expect_bounded(fma(x, y, z, mode).value(), fma(p, q, r), seen, "fma", a, b));
      }
    }
  }
}

template <format F>
std::vector<double> all_values() {
  std::vector<double> values;
  for (unsigned code = 0; code < 256; ++code) {
    const double x = rounded<F>::from_bits(static_cast<typename rounded<F>::bits_type>(code)).value();
    if (std::isfinite(x)) values.push_back(x);
  }
  return values;
}

// Ends of the range, subnormals, and neighbours of 1 and of powers of two.
template <format F>
std::vector<double> hard_values() {
  const double u = unit_roundoff(F);
  std::vector<double> values{0,
                             smallest_subnormal(F),
                             2 * smallest_subnormal(F),
                             smallest_normal(F) - smallest_subnormal(F),
                             smallest_normal(F),
                             smallest_normal(F) * (1 + 2 * u),
                             std::sqrt(smallest_normal(F)),
                             1 - u,
                             1,
                             1 + 2 * u,
                             1.5,
                             2 - 2 * u,
                             3,
                             1 / u,
                             std::sqrt(largest(F)),
                             largest(F) / 2,
                             largest(F) * (1 - u),
                             largest(F)};
  philox random(7);
  for (int i = 0; i < 12; ++i) values.push_back(std::ldexp(1 + random.uniform(), static_cast<int>(random.below(40)) - 20));
  std::vector<double> both;
  for (const double x : values) {
    const double value = round_to<F>(x).value();
    both.push_back(value);
    both.push_back(-value);
  }
  return both;
}

template <format F>
void check_all_pairs() {
  tally seen;
  check_operations<F, nearest_even>(all_values<F>(), {0, 1, -largest(F), smallest_subnormal(F)}, seen);
  check_operations<F, away_from_zero>(all_values<F>(), {0, 1, -largest(F), smallest_subnormal(F)}, seen);
  EXPECT_GT(seen.cases, 900000U);
  EXPECT_LT(seen.infinite, 2 * seen.cases / 3) << "most bounds say nothing";
}

TEST(magnitude, bounds_every_operation_on_all_pairs_of_e4m3) { check_all_pairs<e4m3>(); }
TEST(magnitude, bounds_every_operation_on_all_pairs_of_e5m2) { check_all_pairs<e5m2>(); }

TEST(magnitude, bounds_every_operation_on_hard_values_of_every_format) {
  tally seen;
  const auto each = [&]<format F>() {
    check_operations<F, nearest_even>(hard_values<F>(), hard_values<F>(), seen);
    check_operations<F, away_from_zero>(hard_values<F>(), hard_values<F>(), seen);
  };
  each.operator()<bf16>();
  each.operator()<fp16>();
  each.operator()<tf32>();
  each.operator()<fp32>();
  each.operator()<fp64>();
  EXPECT_GT(seen.cases, 1000000U);
  EXPECT_LT(seen.infinite, seen.cases / 2);
}

TEST(magnitude, is_no_larger_than_the_rounding_asks_for) {
  for (const double a : all_values<e4m3>()) {
    for (const double b : all_values<e4m3>()) {
      const magnitude<e4m3> bound = magnitude<e4m3>(std::fabs(a)) * magnitude<e4m3>(std::fabs(b));
      const double exact = std::fabs(a * b);
      if (exact == 0) {
        EXPECT_EQ(bound.value(), 0);
      } else if (!std::isinf(bound.value())) {
        EXPECT_LE(bound.value(), exact * 1.1251 + smallest_subnormal(e4m3));
      }
    }
  }
}

TEST(magnitude, is_infinite_where_the_value_may_be) {
  const magnitude<fp16> large(65504);
  EXPECT_EQ(large.value(), 65504);
  EXPECT_EQ((large + magnitude<fp16>(16)).value(), infinity);  // 65520 rounds to infinity
  EXPECT_EQ((large * large).value(), infinity);
  EXPECT_EQ(magnitude<fp16>(65505).value(), infinity);
  EXPECT_EQ((magnitude<fp16>(infinity) * magnitude<fp16>()).value(), infinity);  // NaN in a kernel
  EXPECT_EQ((magnitude<fp16>(1) / magnitude<fp16>(1)).value(), infinity);
  EXPECT_EQ(magnitude<e4m3>::rounded_result(449).value(), infinity);
}

TEST(magnitude, of_nothing_is_exact) {
  const magnitude<bf16> nothing;
  EXPECT_EQ((nothing + nothing).value(), 0);
  EXPECT_EQ((nothing * magnitude<bf16>(3)).value(), 0);
  EXPECT_EQ(fma(nothing, magnitude<bf16>(3), nothing).value(), 0);
}

TEST(magnitude, passes_through_both_doors) {
  EXPECT_EQ((lift<magnitude<fp32>>(magnitude<bf16>(3)).value()), 3);
  const double rounded_bound = (round_to<magnitude<bf16>>(magnitude<fp32>(1.003))).value();
  EXPECT_GE(rounded_bound, round_to<bf16>(1.003).value());
  EXPECT_GE(rounded_bound, 1.0078125);  // directed rounding up
  EXPECT_LT(rounded_bound, 1.02);
  EXPECT_EQ((round_to<magnitude<fp16>>(magnitude<fp32>(1e6)).value()), infinity);
}

TEST(magnitude, refuses_what_bounds_nothing) {
  EXPECT_THROW(magnitude<fp32>(-1), domain_error);
  EXPECT_THROW(magnitude<fp32>(std::nan("")), domain_error);
}

}  // namespace
}  // namespace deltaproof
