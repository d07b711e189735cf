// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/rule/rules.hpp"
#include "studies/discretisation/forced.hpp"
#include "studies/discretisation/limits.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::discretisation;

TEST(discretisation_limits, are_the_roots_in_closed_form_to_a_hundred_digits) {
  using wide = real<512>;
  const wide c = cbrt(wide(4 + sqrt(wide(17))));
  const wide third = 1 + c - 1 / c;
  const wide root = 36 * sqrt(wide(29));
  const wide fourth = (4 + cbrt(wide(172 + root)) - cbrt(wide(root - 172))) / 3;
  const wide unit = pow(wide(10), -100);
  for (const auto& [rule, expected] : {std::pair{"rk3", third}, std::pair{"rk4", fourth}}) {
    const auto limit = limit_of(rule, 100);
    ASSERT_TRUE(limit.has_value());
    const wide lower = round_to<wide>(limit->lower);
    EXPECT_LE(lower, expected) << rule;
    EXPECT_GT(lower + unit, expected) << rule;
  }
}

TEST(discretisation_limits, have_the_known_digits) {
  EXPECT_EQ(limit_of("rk3", 40)->text(), "2.5127453266183286240237345261781885152136");
  EXPECT_EQ(limit_of("rk4", 40)->text(), "2.7852935634052816235297591897686825014075");
  EXPECT_EQ(limit_of("euler", 10)->text(), "2.0000000000");
  EXPECT_EQ(limit_of("rk2", 10)->lower, 2);
  EXPECT_TRUE(limit_of("rk3", 3)->leaves_below);
  EXPECT_FALSE(limit_of("rk4", 3)->leaves_below);
  EXPECT_FALSE(limit_of("implicit", 5).has_value());
  EXPECT_FALSE(limit_of("crank_nicolson", 5).has_value());
  EXPECT_THROW((void)limit_of("exact", 5), domain_error);
  EXPECT_THROW((void)limit_of("rk5", 5), format_error);
  EXPECT_EQ(taylor_limit(3, 30).text(), limit_of("rk3", 30)->text());
  EXPECT_GT(taylor_limit(6, 10).lower, taylor_limit(5, 10).lower);
}

TEST(discretisation_forced, bound_is_met_by_the_adversary) {
  for (const double r : {0.6, 0.0, -0.5, -0.9}) {
    const auto squares = adversary(r, 20000);
    double before = 0;
    for (const double s : squares) {
      EXPECT_LE(s - before, energy_gain(r) * (1 + 1e-9));
      before = s;
    }
    EXPECT_GT(squares.back() / (20000 * energy_gain(r)), 0.99) << r;
  }
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
