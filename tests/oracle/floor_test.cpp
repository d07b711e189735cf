// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A radius is never 0 unless the answer is exact: problems whose carried error, norm or radius once fell below what a double
// holds. Every tier answers each, and the judge of the hostile problems looks at all of it.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/oracle/measure.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "oracle/hostile_checks.hpp"
#include "oracle/one_head.hpp"

namespace deltaproof {
namespace {

using testing::head;
using testing::numbers;

/// Every tier, every escalation, every rounding, on every instruction set.
void expect_sound(const problem& p, const std::string& name) {
  for (std::uint64_t i = 0; i < 6; ++i) {
    const std::string wrong = testing::hostile_failure(p, 3, i);
    EXPECT_EQ(wrong, "") << name;
    if (!wrong.empty()) return;
  }
}

reference in_fp64(const problem& p) {
  question q;
  q.threads = 1;
  q.min_bits = q.max_bits = 53;
  return solve(p, q);
}

TEST(radius_floor, a_decay_that_is_nearly_nothing_leaves_an_error_behind) {
  const problem p = head(1, {1, 1}, {1, 1}, {1, 0}, {1, 0.5}, {0, -650});
  expect_sound(p, "e^-650, then v = 0");
  const reference got = in_fp64(p);
  EXPECT_GT(got.o.radius[1], 1.27e-283);  // e^-650 / 2
  EXPECT_GT(got.final_state.radius[0], 1.27e-283);
  expect_sound(
      head(1, {1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 0, 0, 0, 0, 0}, {1, 0.5, 0, 0, 0, 0}, {0, -650, 200, 200, 200, 200}),
      "and what grows again");
  expect_sound(head(1, {1, 1, 1}, {1, 1, 1}, {1, 0, 0}, {1, 0.5, 0.5}, {0, -650, -650}), "and again");
  expect_sound(head(2, {1, 1, 1, 1, 1, 1}, {1, 0, 0, 1, 1, 1}, {1, 2, 0, 0, 0, 0}, {1, 1, 0.5}, {0, 0, -700, -650, -1e30, 300}),
               "by channel");
}

/// A check of the true result against 1 % in the Frobenius norm: it is not refuted, and zeros do not hold.
TEST(radius_floor, a_state_that_grows_back_judges_results_rightly) {
  constexpr double e = 2.718281828459045;
  const numbers start{1, 2, 3, 4}, g{-650, 200, 200, 200, 49, 0};
  const problem p = head(2, numbers(12, 1), numbers(12, 1), numbers(12, 0), numbers(6, 0), g, start);
  expect_sound(p, "growing back");
  question q;
  q.threads = 1;
  const reference want = solve(p, q);
  numbers truth(12), zeros(12, 0.0);
  double sum = 0;
  for (std::size_t t = 0; t < 6; ++t) {
    sum += g[t];
    for (std::size_t j = 0; j < 2; ++j) truth[2 * t + j] = std::pow(e, sum) * (start[j] + start[2 + j]);
  }
  const std::array bounds{metric_bound{metric::rel_fro, bound(0.01, because("test"))}};
  EXPECT_NE(judge(measure(truth, want.o, fp32), bounds), verdict::refuted);
  EXPECT_NE(judge(measure(zeros, want.o, fp32), bounds), verdict::holds);
}

TEST(radius_floor, a_small_decay_is_not_squared) {
  expect_sound(head(1, {1}, {1}, {0}, {0}, {-375}, {1.1e134}), "e^-375 of 1e134");
  expect_sound(head(2, {1, 1}, {1, 1}, {0, 0}, {0}, {-375, -590}, {1.1e134, 2, 1e130, 3}), "by channel");
  expect_sound(head(1, {1, 1}, {1, 1}, {0.1, 0.1}, {0.3, 0.7}, {-373, -400}, {3e134}), "twice");
}

TEST(radius_floor, a_read_out_below_the_smallest_number_is_not_exact) {
  for (const double scale : {1e-300, -1e-300, 0x1p-1074, 0x1p-1000}) {
    for (const double size : {1.0, 1e-80, 1e-250}) {
      problem p = head(2, {size, size / 3, size, -size}, {0.6, 0.8, 0.8, 0.6}, {1.1, 0.3, 0.7, 0.9}, {0.7, 0.9});
      p.scale = scale;
      expect_sound(p, "without a gate");
      p = head(2, {size, size / 3, size, -size}, {0.6, 0.8, 0.8, 0.6}, {1.1, 0.3, 0.7, 0.9}, {0.7, 0.9}, {-0.1, -0.3},
               {1, 2, 3, 4});
      p.scale = scale;
      expect_sound(p, "with a gate");
    }
  }
}

/// The scale has one bit; the query is small and the state large.
TEST(radius_floor, a_scale_below_the_normal_numbers_keeps_the_digits_of_a_radius) {
  const numbers start{1, 2, 3e100, 4, 5, 6, 7, 1e90};
  problem p = head(4, {0, -1.7881393432617188e-07, 0, 0}, {0, 3e18, -2.9e18, -2.9e18}, {-1.6e-27, 9.1e35}, {7}, {-599}, start);
  p.rule = rule_kind::rk2;
  p.scale = 0x1p-1074;
  expect_sound(p, "rk2, expansive");
}

/// Bounds whose factors leave the range of doubles though the product does not.
TEST(radius_floor, products_of_bounds_keep_their_exponents_in_fixed_point) {
  problem p = head(1, {0x1p-500}, {1}, {0.1}, {0.7}, {-0.3}, {3e270});
  p.scale = 0x1p-997;
  expect_sound(p, "scale times query");
  p = head(2, {0x1p-520, 0x1p-522}, {0.6, 0.8}, {0.1}, {0.7}, {-0.3}, {1e300, 3e300});
  p.scale = 0x1p-600;
  expect_sound(p, "scale times query, below 2^-1074");
  p = head(1, {1e150, 1e150}, {1, 1}, {0, 0}, {0, 0}, {-600, -600}, {1e300});
  p.scale = 1e300;
  expect_sound(p, "an error that decays and is read");
  p = head(2, {1, 1}, {0x1p-950, 0x1p-949}, {0x1p-30}, {0x1p950}, {}, {0x1p900, 0x1p901});
  p.qk_l2norm = true;
  expect_sound(p, "a tiny key that is normalised");
}

/// Where a decay has more limbs than fixed point keeps.
TEST(radius_floor, decays_up_to_e_to_the_300_multiply_in_fixed_point) {
  for (const double g : {130.0, 134.0, 150.0, 200.0, 250.0, 300.0}) {
    expect_sound(head(1, {1, 1, 1}, {1, 1, 1}, {1, 0.3, 0}, {0.5, 0.7, 0.9}, {0, g, -g}), "e^" + std::to_string(g));
    expect_sound(head(2, {1, 1, 1, 1}, {0.6, 0.8, 0.8, 0.6}, {1, 0.3}, {0.5, 0.7}, {g, -g, -g, g}, {1, 2}),
                 "by channel, e^" + std::to_string(g));
  }
}

/// The gain of implicit and crank_nicolson moves faster the nearer the pole is, and beyond first order.
TEST(radius_floor, gains_beside_their_poles_are_enclosed) {
  for (const auto& [rule, pole] : {std::pair{rule_kind::implicit, -1.0}, std::pair{rule_kind::crank_nicolson, -2.0}}) {
    for (const int bits : {20, 40, 50, 80, 84, 85, 86, 100, 150, 170}) {
      // x = pole (1 + 2^-bits (...)): the second channel is what keeps it from the pole.
      const double small = std::ldexp(1.0, -bits / 2);
      problem p = head(2, {1, 1}, {1, small}, {1}, {pole}, {}, {0.3, 0.1});
      p.rule = rule;
      expect_sound(p, "2^-" + std::to_string(bits) + " from a pole");
      p = head(2, {1, 1, 1, 0}, {0.6, 0.8, 1, small}, {1, 1}, {0.5, pole}, {-0.1, -0.2}, {0.3, 0.1});
      p.rule = rule;
      expect_sound(p, "the second step 2^-" + std::to_string(bits) + " from a pole");
    }
    problem at = head(2, {1, 1}, {1, 0}, {1}, {pole}, {}, {0.3, 0.1});
    at.rule = rule;
    for (const int bits : {53, 106, 128, 1024}) {
      question q;
      q.min_bits = q.max_bits = bits;
      EXPECT_THROW(static_cast<void>(solve(at, q)), domain_error) << bits;
    }
  }
}

/// What the key reads cancels but for channels that fixed point does not keep, and the gain is beyond all bounds there.
TEST(radius_floor, a_gain_beside_its_pole_multiplies_what_a_rounded_key_leaves_out) {
  const double k = -0x1p300, beta = -0x1p-600;
  problem p = head(4, {1, 1, 1, 1}, {1e-106, k, -1e-147, -2.6e-315}, {0.0625 * k}, {beta}, {}, {-0.5, 0.0625, -0.25, 0.125});
  for (const auto rule : {rule_kind::implicit, rule_kind::crank_nicolson}) {
    p.rule = rule;
    expect_sound(p, "one step");
    p.beta = tensor::from_doubles(fp64, {1, 1, 1}, numbers{2 * beta}, "beta");
  }
}

/// A gain that rounds to 0 where the true one is not.
TEST(radius_floor, a_gain_of_nearly_0_still_writes) {
  for (const int bits : {50, 100, 120, 180, 260, 500}) {
    problem p = head(2, {1, 1}, {1, std::ldexp(1.0, -bits)}, {1}, {2});
    p.rule = rule_kind::rk2;
    expect_sound(p, "rk2 beside x = 2");
  }
}

/// Sigmoids below every double, and below MPFR's exponents; shifts by as many bits are not made.
TEST(radius_floor, sigmoids_of_anything_are_positive) {
  for (const double logit : {-599.0, -601.0, -745.0, -1e4, -1e10, -1e30, 1e30, 1e300, -1e300}) {
    for (const auto rule : {rule_kind::euler, rule_kind::implicit, rule_kind::rk4}) {
      problem p = head(1, {1, 1}, {1, 1}, {1, 0}, {logit, 0.5}, {}, {});
      p.beta_activation = activation_kind::sigmoid;
      p.rule = rule;
      expect_sound(p, "from nothing");
      p = head(1, {1, 1}, {1, 1}, {1, 1}, {logit, logit}, {0, -0.5}, {0.75});
      p.beta_activation = activation_kind::two_sigmoid;
      p.rule = rule;
      expect_sound(p, "from a state");
    }
  }
}

TEST(radius_floor, exact_answers_keep_a_radius_of_0) {
  const reference got = in_fp64(head(1, {1, 1}, {1, 0}, {0, 0}, {1, 1}));
  for (const double r : got.o.radius) EXPECT_EQ(r, 0);
  for (const double r : got.final_state.radius) EXPECT_EQ(r, 0);
}

}  // namespace
}  // namespace deltaproof
