// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/rule/rules.hpp"
#include "studies/discretisation/forced.hpp"
#include "studies/discretisation/limits.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::discretisation;

TEST(discretisation_limits, are_the_roots_in_closed_form) {
  using wide = real<512>;
  const wide c = cbrt(wide(4 + sqrt(wide(17))));
  const wide root = 36 * sqrt(wide(29));
  const wide third = 1 + c - 1 / c, fourth = (4 + cbrt(wide(172 + root)) - cbrt(wide(root - 172))) / 3;
  for (const auto& [limit, expected] : {std::pair{rk3::limit, third}, std::pair{rk4::limit, fourth}}) {
    EXPECT_LE(lift<wide>(limit), expected);
    EXPECT_GT(lift<wide>(std::nextafter(limit, 4.0)), expected);
  }
  // The Taylor polynomials of degree 3 and 4 are rk3 and rk4.
  EXPECT_EQ(taylor_limit(3), rational("251274532661832862402") / rational("100000000000000000000"));
  EXPECT_EQ(taylor_limit(4), rational("278529356340528162352") / rational("100000000000000000000"));
  EXPECT_EQ(taylor_limit(1), 2);
  EXPECT_EQ(taylor_limit(2), 2);
  EXPECT_GT(taylor_limit(6), taylor_limit(5));
}

TEST(discretisation_forced, state_at_two_grows_by_two_a_token) {
  EXPECT_EQ(worst_values(-1, 1000).back(), 2000);
  EXPECT_NEAR(std::sqrt(adversary(-1, 1000).back()), 2000, 1e-6);
  EXPECT_NEAR(worst_values(-0.984375, 4000).back(), 127, 1e-6);
  EXPECT_EQ(repeated_gain(1 - 1.984375), 127);
  EXPECT_EQ(repeated_gain(0.3), 1);
}

}  // namespace
}  // namespace deltaproof
