// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/rounded.hpp"
#include "studies/logistic/constants.hpp"
#include "studies/logistic/orbits.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::logistic;
using wide = real<256>;

bool starts_with(const std::string& text, const std::string& start) { return text.compare(0, start.size(), start) == 0; }

TEST(logistic_constants, are_the_known_ones_to_the_digits_stated) {
  const universal u = universal_constants(40, 22, false);
  EXPECT_GE(u.delta.digits, 40);
  EXPECT_GE(u.alpha.digits, 40);
  EXPECT_GE(u.r_infinity.digits, 40);
  EXPECT_TRUE(starts_with(u.delta.text, "4.669201609102990671853203820466201617258"));
  EXPECT_TRUE(starts_with(u.alpha.text, "2.502907875095892822283902873218215786381"));
  EXPECT_TRUE(starts_with(u.r_infinity.text, "3.569945671870944901842005151386498936763"));
  // Text and count belong together: the digits and the point.
  EXPECT_EQ(u.delta.text.size(), static_cast<std::size_t>(u.delta.digits) + 1);
}

TEST(logistic_constants, state_no_digit_that_a_finer_truncation_changes) {
  const universal coarse = universal_constants(20, 10, false);
  const universal fine = universal_constants(34, 20, false);
  EXPECT_TRUE(starts_with(fine.delta.text, coarse.delta.text));
  EXPECT_TRUE(starts_with(fine.alpha.text, coarse.alpha.text));
  EXPECT_TRUE(starts_with(fine.r_infinity.text, coarse.r_infinity.text));
  EXPECT_GT(fine.delta.digits, coarse.delta.digits);
}

TEST(logistic_constants, superstable_orbits_tend_to_the_same_point) {
  const cascade c = superstable_cascade(12);
  EXPECT_EQ(c.superstable[0], 2);
  EXPECT_LT(abs(wide(c.superstable[1] - 1 - sqrt(wide(5)))), 1e-70);
  // R_2: 1/2 has period 4. Known to twelve digits.
  EXPECT_NEAR(round_to<double>(c.superstable[2]), 3.498561699327, 1e-12);
  EXPECT_GE(c.r_infinity.digits, 15);
  EXPECT_TRUE(starts_with("3.569945671870944901842005151386498936763", c.r_infinity.text));
  EXPECT_TRUE(starts_with("4.669201609102990671853", c.delta.text));
}

TEST(logistic_constants, orbits_double_and_open_where_algebra_says) {
  const wide half = wide(1) / 2;
  const cascade c = superstable_cascade(4);
  EXPECT_LT(abs(wide(orbit_of_multiplier(1, -1, half, c.superstable[0]).r - 3)), 1e-60);
  EXPECT_LT(abs(wide(orbit_of_multiplier(2, -1, half, c.superstable[1]).r - 1 - sqrt(wide(6)))), 1e-60);
  EXPECT_NEAR(round_to<double>(orbit_of_multiplier(4, -1, half, c.superstable[2]).r), 3.5440903595519229, 1e-15);
  const auto three = superstable_parameters(3);
  ASSERT_EQ(three.size(), 1U);
  EXPECT_NEAR(round_to<double>(three[0]), 3.8318740552833156, 1e-15);
  const orbit_point opens = orbit_of_multiplier(3, 1, half, three[0]);
  EXPECT_TRUE(opens.converged);
  EXPECT_LT(abs(wide(opens.r - 1 - sqrt(wide(8)))), 1e-60);
  // (2^(p-1) - 1)/p of prime period; of period 4 one from doubling and one of its own.
  EXPECT_EQ(superstable_parameters(5).size(), 3U);
  EXPECT_EQ(superstable_parameters(7).size(), 9U);
  EXPECT_EQ(superstable_parameters(4).size(), 2U);
}

TEST(logistic_constants, agreement_counts_what_two_numbers_share) {
  EXPECT_EQ(agreement(wide("1.23456789"), wide("1.23456999")).text, "1.2345");
  EXPECT_EQ(agreement(wide("1.23456789"), wide("1.23456999")).digits, 5);
  EXPECT_EQ(agreement(wide(-3), wide(-4)).digits, 0);
  EXPECT_EQ(agreement(wide("3.1"), wide("3.2")).text, "3");
}

TEST(logistic_orbits, exponent_of_a_stable_cycle_is_that_of_its_multiplier) {
  // The fixed point 1 - 1/r has multiplier 2 - r.
  EXPECT_NEAR(lyapunov(2.5, 500, 3, 1).mean, std::log(0.5), 1e-12);
}

TEST(logistic_orbits, race_is_of_its_seed_and_of_numbers_of_bf16) {
  const frame races = decorrelation(4, 40, 400, 5);
  ASSERT_EQ(races.size(), 6U);
  for (std::size_t i = 0; i < races.size(); ++i) EXPECT_EQ(races[i].number("starts") + races[i].number("never"), 40);
  EXPECT_EQ(races.rows(), decorrelation(4, 40, 400, 5).rows());
  EXPECT_NE(races.rows(), decorrelation(4, 40, 400, 6).rows());
  EXPECT_THROW((void)decorrelation(3.9, 1, 1, 1), domain_error);
  EXPECT_EQ(slope_of({1, 2, 3}, {5, 7, 9}), 2);
}

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
  EXPECT_EQ(census("bf16", 3.25).largest_basin_cycle, 2U);
  EXPECT_EQ(census("fp16", 3.5).largest_basin_cycle, 4U);
  EXPECT_THROW((void)census("fp32", 3.5), format_error);
  EXPECT_THROW((void)census("bf16", 3.3), domain_error);
  EXPECT_EQ(bf16_parameters().size(), 257U);
}

TEST(logistic_flow, safe_form_is_accurate_and_the_other_leaves_the_range_where_it_must) {
  const frame all = survey_flow({});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string name = all.at(i, "format").text();
    EXPECT_GT(all[i].number("second_worst"), 1) << name;
    EXPECT_LT(all[i].number("second_worst"), 4) << name;
    // e^h leaves the range at (emax + 1) ln 2, its product with 8 earlier by ln 8.
    const double edge = (format_named(name).emax + 1) * std::log(2), off = 4 * unit_roundoff(format_named(name)) * edge;
    EXPECT_NEAR(all[i].number("from_one"), edge, off) << name;
    EXPECT_NEAR(all[i].number("from"), edge - std::log(8), off) << name;
  }
}

}  // namespace
}  // namespace deltaproof
