// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/rounded.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/logistic/maps.hpp"
#include "studies/logistic/orbits.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::logistic;

TEST(logistic_cycles, census_is_what_following_each_start_finds) {
  const auto map = [](double r, double x) {
    const auto value = rounded<bf16>::from_exact(x);
    return (rounded<bf16>::from_exact(r) * (value * (rounded<bf16>(1) - value))).value();
  };
  for (const double r : {2.0, 3.25, 3.640625, 4.0}) {
    const cycle_census c = census("bf16", r);
    EXPECT_EQ(c.starts, 16257U);
    const std::set<double> on(c.on_cycles.begin(), c.on_cycles.end());
    EXPECT_EQ(on.size(), c.on_cycles.size());
    std::size_t longest = 0;
    for (const double x : on) {
      double y = map(r, x);
      std::size_t length = 1;
      while (y != x && length <= on.size()) {
        ASSERT_TRUE(on.contains(y));
        y = map(r, y);
        ++length;
      }
      longest = std::max(longest, length);
    }
    EXPECT_EQ(longest, c.longest_cycle);
    // A sample of starts reaches a cycle within the longest transient.
    std::size_t worst = 0;
    for (int i = 1; i < 400; ++i) {
      double x = round_to<bf16>(i / 400.0).value();
      std::size_t steps = 0;
      while (!on.contains(x)) {
        x = map(r, x);
        ++steps;
        ASSERT_LE(steps, c.longest_transient);
      }
      worst = std::max(worst, steps);
    }
    EXPECT_GT(worst, 0U);
  }
  EXPECT_THROW((void)census("fp32", 3.5), format_error);
  EXPECT_THROW((void)census("bf16", 3.3), domain_error);
  EXPECT_EQ(bf16_parameters().size(), 257U);
}

TEST(logistic_maps, have_the_multipliers_of_the_rules_at_their_fixed_point) {
  for (const double x : {0.3, 1.0, 1.7, 2.0, 2.9}) {
    const double decay = decay_of(x), h = 1e-6;
    EXPECT_NEAR(decay, std::exp(-x), 1e-15);
    const auto multiplier = [&](one_step map) {
      return (advance(map, x, decay, 1 + h) - advance(map, x, decay, 1 - h)) / (2 * h);
    };
    EXPECT_NEAR(multiplier(one_step::logistic_euler), euler::stability(x), 1e-8);
    EXPECT_NEAR(multiplier(one_step::logistic_exact), exact_flow::stability(x), 1e-8);
  }
}

TEST(logistic_maps, double_their_period_where_algebra_says) {
  EXPECT_EQ(attractor_period(1.9), 1U);
  EXPECT_EQ(attractor_period(2.2), 2U);
  EXPECT_EQ(attractor_period(2.5), 4U);
  EXPECT_EQ(attractor_period(2.55), 8U);
  EXPECT_EQ(attractor_period(2.84), 3U);
  EXPECT_EQ(attractor_period(3.0), 0U);
}

}  // namespace
}  // namespace deltaproof
