// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/algebra/growth.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/number/rational.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class S>
matrix<S> filled(std::size_t n, const S& value) {
  matrix<S> lower(n, n, zero<S>());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) lower(i, j) = value;
  }
  return lower;
}

rational binomial(std::size_t n, std::size_t k) {
  if (k > n) return 0;
  rational result = 1;
  for (std::size_t i = 1; i <= k; ++i) result = result * rational(static_cast<long>(n + 1 - i)) / rational(static_cast<long>(i));
  return result;
}

TEST(powers, of_equal_entries_are_binomials) {
  for (const rational& c : {rational(1), rational(9) / 10, rational(-2), rational(1) / 3}) {
    std::vector<matrix<rational>> powers;
    const auto keep = [&]<class S>(std::string_view stage, const matrix<S>& m) {
      if (stage == "power") powers.push_back(m);
    };
    (void)run_inverse<plain<rational>>(inverse_named("neumann"), filled(40, c), keep);
    ASSERT_EQ(powers.size(), 6U);  // 1, 2, 4, ..., 32
    rational factor = -c;          // (-c)^m
    for (std::size_t k = 0; k < powers.size(); ++k, factor = factor * factor) {
      const std::size_t m = std::size_t{1} << k;
      for (std::size_t i = 0; i < 40; ++i) {
        for (std::size_t j = 0; j < 40; ++j) {
          const rational expected = i > j ? factor * binomial(i - j - 1, m - 1) : rational(0);
          ASSERT_EQ(powers[k](i, j), expected) << "L^" << m << " at " << i << ", " << j;
        }
      }
    }
  }
}

TEST(growth_bound, is_attained_where_all_terms_have_one_sign) {
  // L = -1 below the diagonal: (I + L)^-1 = 2^(i-j-1), every term of every method is positive.
  for (const named_inverse& row : inverse_methods) {
    largest_intermediate seen;
    const auto x = run_inverse<plain<rounded<fp32>>>(row.method, filled(64, rounded<fp32>(-1)), seen);
    seen("result", x);
    const growth bound = growth_bound<plain<rounded<fp32>>>(row.method, filled(64, 1.0));
    EXPECT_GE(bound.largest, seen.found().largest) << row.name;
    EXPECT_LT(bound.largest, 1.0001 * seen.found().largest) << row.name;
    EXPECT_GE(seen.found().largest, std::ldexp(1, 61)) << row.name;
  }
}

TEST(growth_bound, of_identical_keys_is_near_in_fp16_too) {
  using A = arithmetic<rounded<fp16>, exact_product, rounded<fp16>, sequential>;
  largest_intermediate seen;
  (void)run_inverse<A>(inverse_named("neumann"), filled(12, rounded<fp16>(-1)), seen);
  const growth bound = growth_bound<A>(inverse_named("neumann"), filled(12, 1.0));
  EXPECT_GE(bound.largest, seen.found().largest);
  EXPECT_LT(bound.largest, 1.1 * seen.found().largest);
}

TEST(growth_bound, is_infinite_where_a_value_leaves_its_format) {
  using half = arithmetic<rounded<fp16>, exact_product, rounded<fp16>, sequential>;
  using wide = arithmetic<rounded<fp16>, exact_product, rounded<fp32>, sequential>;
  const auto ones = filled(64, 1.0);
  EXPECT_EQ(growth_bound<half>(inverse_named("neumann"), ones).largest, infinity);
  EXPECT_EQ(growth_bound<wide>(inverse_named("neumann"), ones).largest, infinity);  // the operand is fp16
  EXPECT_LT(growth_bound<plain<rounded<fp32>>>(inverse_named("neumann"), ones).largest, 0x1p64);
}

TEST(growth_bound, of_no_entries_is_the_identity) {
  for (const named_inverse& row : inverse_methods) {
    for (const std::size_t n : {1U, 9U}) {
      const double bound = growth_bound<plain<float>>(row.method, filled(n, 0.0)).largest;
      EXPECT_GE(bound, 1) << row.name;
      EXPECT_LT(bound, 1.00001) << row.name;  // 1 + 0, rounded some way some times
    }
  }
}

TEST(growth_bound, refuses_what_is_no_magnitude) {
  EXPECT_THROW((void)growth_bound<plain<float>>(inverse_named("forward"), filled(3, -1.0)), domain_error);
  EXPECT_THROW((void)growth_bound<plain<float>>(inverse_named("forward"), filled(3, std::nan(""))), domain_error);
  try {
    (void)growth_bound<plain<float>>(inverse_named("forward"), matrix<double>(2, 3));
    FAIL() << "a matrix that is not square was accepted";
  } catch (const shape_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("2 x 3"));
  }
}

TEST(largest_intermediate, keeps_where_the_largest_was_first_seen) {
  largest_intermediate seen;
  EXPECT_EQ(seen.found().largest, 0);
  seen("a", matrix<double>(1, 2, {1, -3}));
  seen("b", matrix<double>(1, 2, {3, 2}));
  EXPECT_EQ(seen.found().largest, 3);
  EXPECT_EQ(seen.found().stage, "a");
  seen("c", matrix<double>(1, 2, {0, std::nan("")}));
  seen("d", matrix<double>(1, 1, {infinity}));
  EXPECT_EQ(seen.found().largest, infinity);
  EXPECT_EQ(seen.found().stage, "c");
}

TEST(estimate_growth, of_equal_entries_is_the_largest_binomial) {
  for (const auto& [chunk, power] : {std::pair{64U, 32U}, std::pair{16U, 8U}, std::pair{128U, 64U}}) {
    const growth g = estimate_growth(inverse_named("neumann"), chunk, {1, 0, 0});
    double expected = 1;
    for (unsigned i = 1; i < power; ++i) expected *= static_cast<double>(chunk - 1 - i) / static_cast<double>(i);
    EXPECT_NEAR(g.largest, expected, 1e-10 * expected);
    EXPECT_EQ(g.stage, "power");
  }
}

TEST(estimate_growth, of_a_mixed_method_is_that_of_its_block) {
  const double whole = estimate_growth(inverse_named("neumann"), 16, {0.9, 0.01, 0}).largest;
  EXPECT_EQ(estimate_growth(inverse_named("neumann16+block"), 64, {0.9, 0.01, 0}).largest, whole);
  EXPECT_EQ(estimate_growth(inverse_named("neumann16+block"), 16, {0.9, 0.01, 0}).largest, whole);
  EXPECT_LT(estimate_growth(inverse_named("neumann8+block"), 64, {0.9, 0.01, 0}).largest, whole / 30);
  EXPECT_LE(estimate_growth(inverse_named("forward"), 64, {0.9, 0.01, 0}).largest, 1);
}

TEST(estimate_growth, needs_no_rows) {
  for (const named_inverse& row : inverse_methods) {
    EXPECT_EQ(estimate_growth(row.method, 0, {1, 1, 1}).largest, 0) << row.name;
    EXPECT_EQ(estimate_growth(row.method, 1, {1, 1, 1}).largest, 1) << row.name;
  }
}

TEST(entries_of_keys, has_the_mean_and_the_mean_square_of_the_product) {
  // beta uniform in (0, 1), cosine c + (1 - c) z: mean c/2, mean square (1/3)(c^2 + (1-c)^2/d).
  const entry_statistics e = entries_of_keys(0.6, 25, 0.5, 1.0 / 3);
  EXPECT_NEAR(e.mean, 0.3, 1e-15);
  EXPECT_NEAR(e.mean * e.mean + e.spread * e.spread, (0.36 + 0.16 / 25) / 3, 1e-15);
  EXPECT_EQ(entries_of_keys(1, 25, 1, 1).spread, 0);
  EXPECT_NEAR(entries_of_keys(0, 64, 1, 1).spread, 0.125, 1e-15);
  EXPECT_NEAR(entries_of_keys(0, 64, 1, 1).overlap, 1.0 / 64, 1e-15);
  EXPECT_EQ(entries_of_keys(0, 64, 0, 0).spread, 0);
}

}  // namespace
}  // namespace deltaproof
