// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <variant>

#include "deltaproof/number/errors.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/study/study.hpp"
#include "studies/discretisation/forced.hpp"
#include "studies/discretisation/limits.hpp"
#include "studies/discretisation/orders.hpp"
#include "studies/discretisation/sections.hpp"
#include "studies/discretisation/series.hpp"
#include "studies/shared/findings.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::discretisation;
using detail::shared::value_of;

settings small() { return {30, 12, 8, 60, 300}; }

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

TEST(discretisation_series, of_rational_rules_are_known) {
  using series = power_series<6>;
  const series x = series::variable();
  const series geometric = implicit_euler::stability(x);  // 1/(1 + x)
  for (std::size_t m = 0; m < 6; ++m) EXPECT_EQ(geometric[m], m % 2 == 0 ? 1 : -1);
  EXPECT_EQ(series(1) / (series(1) + x) * (series(1) + x), series(1));
  EXPECT_THROW((void)(series(1) / x), domain_error);
  const first_difference<6> bilinear(crank_nicolson::stability(x), series::decay());
  EXPECT_EQ(bilinear.power, 3U);
  EXPECT_EQ(bilinear.coefficient, rational(-1, 12));
  EXPECT_EQ((first_difference<6>(x, x).power), 6U);
  // phi is (1 - R)/x, as series.
  EXPECT_EQ(x * rk4::gain(x), series(1) - rk4::stability(x));
}

TEST(discretisation_orders, are_measured_where_theory_puts_them) {
  for_each_rule([&](auto rule) {
    if (rule.order == exact_order) return;
    const double order = rule.order;
    EXPECT_NEAR(measured_order(rule.name, sense::eigenvalue, 256), order + 1, 0.02) << rule.name;
    EXPECT_NEAR(measured_order(rule.name, sense::gain, 256), order, 0.02) << rule.name;
    EXPECT_NEAR(measured_order(rule.name, sense::horizon, 256), order, 0.02) << rule.name;
    EXPECT_NEAR(measured_order(rule.name, sense::horizon_relative, 256), order, 0.02) << rule.name;
    EXPECT_NEAR(measured_order(rule.name, sense::tokens, 1 << 14), order + 1, 0.02) << rule.name;
  });
  EXPECT_TRUE(std::isnan(measured_order("exact", sense::horizon, 16)));
  EXPECT_NEAR(measured_order("exact", sense::turning, 64), 1, 0.02);
  EXPECT_NEAR(measured_order("exact", sense::turning_middle, 64), 2, 0.02);
  EXPECT_NEAR(measured_order("euler", sense::turning_middle, 64), 1, 0.05);
}

TEST(discretisation_orders, compare_in_closed_form) {
  const comparison c = compare("euler", 1);
  EXPECT_EQ(c.stability, 0);
  EXPECT_NEAR(c.absolute, std::exp(-1), 1e-16);
  EXPECT_EQ(c.relative, 1);
  EXPECT_NEAR(c.gain, 1 / (1 - std::exp(-1)) - 1, 1e-15);
  EXPECT_EQ(compare("exact", 1).absolute, 0);
}

TEST(discretisation_forced, bound_is_met_by_the_adversary_and_by_no_random_run) {
  for (const double r : {0.6, 0.0, -0.5, -0.9}) {
    const auto squares = adversary(r, 20000);
    double before = 0;
    for (const double s : squares) {
      EXPECT_LE(s - before, energy_gain(r) * (1 + 1e-9));
      before = s;
    }
    EXPECT_GT(squares.back() / (20000 * energy_gain(r)), 0.99) << r;
    EXPECT_LE(largest_share_of_bound(r, 5, 200, 20, 3), 1 + 1e-9) << r;
  }
}

TEST(discretisation_forced, state_at_two_grows_by_two_a_token) {
  EXPECT_EQ(worst_values(-1, 1000).back(), 2000);
  EXPECT_NEAR(std::sqrt(adversary(-1, 1000).back()), 2000, 1e-6);
  EXPECT_NEAR(worst_values(-0.984375, 4000).back(), 127, 1e-6);
  EXPECT_EQ(repeated_gain(1 - 1.984375), 127);
  EXPECT_EQ(repeated_gain(0.3), 1);
}

TEST(discretisation_forced, mean_of_fresh_keys_is_the_closed_form) {
  for (const double r : {0.5, -0.75, -1.0}) {
    const mean_square m = fresh_keys(r, 6, 300, 400, 9);
    EXPECT_GT(m.standard_error, 0);
    EXPECT_NEAR(m.mean, fresh_keys_expected(r, 6, 300), 4 * m.standard_error) << r;
  }
  EXPECT_NEAR(fresh_keys_expected(-0.5, 6, 100000), 6 * energy_gain(-0.5), 1e-9);
  EXPECT_EQ(fresh_keys_expected(-1, 6, 100), 400);
  EXPECT_EQ(fresh_keys(0.5, 4, 20, 3, 7).mean, fresh_keys(0.5, 4, 20, 3, 7).mean);
  EXPECT_NE(fresh_keys(0.5, 4, 20, 3, 7).mean, fresh_keys(0.5, 4, 20, 3, 8).mean);
}

report run_small(const run_options& options) {
  report r = reports::empty("discretisation");
  add_limits(options, small(), r);
  add_orders(options, small(), r);
  add_trial(options, small(), r);
  add_forced(options, small(), r);
  return r;
}

TEST(discretisation_study, sections_make_a_valid_report_that_threads_do_not_change) {
  const report a = reports::alike_on_two_threads(run_small);
  EXPECT_TRUE(a.unfinished.empty());
  reports::expect_value(a, "stability-limits", "rk3", "2.512745326618328624023734526178");
  reports::expect_value(a, "stability-limits", "constants_agree", true);
  reports::expect_value(a, "order-buys-little", "never_less", true);
  reports::expect_value(a, "orders-exact", "agree", true);
  reports::expect_value(a, "orders-exact", "crank_nicolson", "-1/12");
  reports::expect_value(a, "which-order-is-which", "agree", true);
  reports::expect_value(a, "order-or-stability", "stability_decides", true);
  reports::expect_value(a, "forced-random", "agrees", true);
  EXPECT_NEAR(value_of(a, "exact-for-frozen-keys", "order_frozen_at_end"), 1, 0.01);
  EXPECT_EQ(value_of(a, "forced-repeated-key", "gain_at_safe_beta"), 127);
}

TEST(discretisation_study, answer_is_chosen_by_the_findings) {
  const report r = run_small({});
  const std::string before = answer(r);
  EXPECT_TRUE(before.starts_with("Stability: "));
  EXPECT_TRUE(
      answer(reports::with(r, "order-or-stability", "stability_decides", false)).starts_with("The methods compared do not"));
  EXPECT_NE(answer(reports::with(r, "order-buys-little", "gain_per_order", 2.0)), before);
  EXPECT_NE(answer(reports::with(r, "forced-repeated-key", "gain_at_safe_beta", 3.0)), before);
  EXPECT_EQ(answer(reports::with(r, "exact-for-frozen-keys", "order_frozen_at_end", 2.0)).find("once keys move"),
            std::string::npos);
}

TEST(discretisation_study, interrupted_says_what_is_missing) {
  const report r = reports::interrupted("discretisation");
  EXPECT_GE(r.unfinished.size(), 4U);
  EXPECT_FALSE(r.answer.empty());
}

}  // namespace
}  // namespace deltaproof
