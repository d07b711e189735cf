// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Products whose sums may overflow in some order of their terms: NaN there, and the bits of the plain product elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "emulate/machine.hpp"

namespace deltaproof::emulation_detail {
namespace {

/// One row by two columns: c + sum of a b with `inner` terms of a alternating sign, so that each total is c or nearly so.
template <class Real>
std::vector<Real> guarded(std::size_t inner, Real a, Real b, Real c) {
  std::vector<Real> left(inner), right(2 * inner, b), sums(2, c);
  for (std::size_t k = 0; k < inner; ++k) left[k] = k % 2 == 0 ? a : -a;
  if (inner > 0) right[1] = 0;  // the second column differs
  const product<Real> p{left.data(), inner, right.data(), 2, sums.data(), 2, 1, inner, 2};
  sum_rule rule;
  rule.accumulate = sizeof(Real) == 4 ? fp32 : fp64;
  std::vector<Real> plain = sums;
  product<Real> without = p;
  without.c = plain.data();
  multiply(without, rule);
  multiply_in_any_order(p, rule);
  for (std::size_t j = 0; j < 2; ++j)
    EXPECT_TRUE(std::isnan(sums[j]) || sums[j] == plain[j]) << sums[j] << " is neither NaN nor " << plain[j];
  return sums;
}

TEST(sums_in_any_order, are_guarded_where_their_terms_of_one_sign_leave_the_range) {
  // 32 terms of one sign are 3.2e38, of a range of 3.4e38; an eighth is left to their errors.
  EXPECT_TRUE(std::isnan(guarded<float>(64, 1, 1e37F, 0)[0]));
  EXPECT_TRUE(std::isnan(guarded<float>(64, 1e19F, 1e18F, 0)[0]));
  EXPECT_FALSE(std::isnan(guarded<float>(64, 1, 9e36F, 0)[0]));
  EXPECT_FALSE(std::isnan(guarded<float>(64, 1, 1e36F, 0)[0]));
  EXPECT_TRUE(std::isnan(guarded<double>(64, 1e150, 1e157, 0)[0]));
  EXPECT_FALSE(std::isnan(guarded<double>(64, 1e150, 1e155, 0)[0]));
}

TEST(sums_in_any_order, begin_with_what_is_there) {
  EXPECT_TRUE(std::isnan(guarded<float>(4, 1, 1, 3.2e38F)[0]));
  EXPECT_TRUE(std::isnan(guarded<float>(4, 1, 1.4e38F, 1.4e38F)[0]));
  EXPECT_FALSE(std::isnan(guarded<float>(4, 1, 1, 1.4e38F)[0]));
  EXPECT_FALSE(std::isnan(guarded<float>(0, 1, 1, 1)[0]));
}

TEST(sums_in_any_order, of_what_is_not_finite_are_not_finite) {
  constexpr float infinite = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const float x : {infinite, none}) {
    EXPECT_TRUE(std::isnan(guarded<float>(4, x, 1, 0)[0])) << x;
    EXPECT_TRUE(std::isnan(guarded<float>(4, 1, x, 0)[0])) << x;
    EXPECT_TRUE(std::isnan(guarded<float>(4, 1, 1, x)[0])) << x;
    EXPECT_TRUE(std::isnan(guarded<float>(4, x, 0, 0)[1])) << x;
  }
}

}  // namespace
}  // namespace deltaproof::emulation_detail
