// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <random>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/oracle/certify.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/slow_reference.hpp"
#include "oracle/small_problem.hpp"

namespace deltaproof {
namespace {

using testing::slow_outputs;
using testing::slow_real;
using testing::slow_solve;
using testing::small;

/// Largest |exact - reference| / radius; fails where it exceeds 1 or an exact value has a radius of 0 and an error.
double worst_ratio(const reference_tensor& got, const std::vector<slow_real>& want) {
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    slow_real error = want[i] - got.value[i];
    for (const auto& low : got.low) error -= low[i];
    error = abs(error);
    if (error == 0) continue;
    if (!(got.radius[i] > 0) || error > slow_real(got.radius[i])) {
      ADD_FAILURE() << "element " << i << ": error " << error << " outside radius " << got.radius[i];
      return std::numeric_limits<double>::infinity();
    }
    worst = std::max(worst, static_cast<double>(slow_real(error / got.radius[i])));
  }
  return worst;
}

double worst_ratio(const problem& p, const question& q) {
  const reference ref = solve(p, q);
  const slow_outputs want = slow_solve(p);
  return std::max(worst_ratio(ref.o, want.o), worst_ratio(ref.final_state, want.final_state));
}

TEST(radius, contains_the_truth_in_every_regime_and_tier) {
  double attained = 0;
  for (const regime_info& regime : regimes()) {
    SCOPED_TRACE(regime.name);
    const problem p = small(std::string(regime.name), 24, 5);
    question ask;
    const double fp64 = worst_ratio(p, ask);
    ask.min_bits = 128;
    const double mpfr = worst_ratio(p, ask);
    std::cout << regime.name << ": error / radius, fp64 " << fp64 << ", mpfr-128 " << mpfr << '\n';
    attained = std::max({attained, fp64, mpfr});
  }
  EXPECT_GT(attained, 0.01);
}

TEST(radius, contains_the_truth_for_every_rule_and_activation) {
  for (const auto& [rule, rule_name] : rule_names) {
    for (const auto& [activation, activation_name] : activation_names) {
      for (const bool l2norm : {false, true}) {
        SCOPED_TRACE(std::string(rule_name) + " " + std::string(activation_name) + (l2norm ? " l2norm" : ""));
        problem p = small("typical", 20, 7);
        p.rule = rule;
        p.beta_activation = activation;
        p.qk_l2norm = l2norm;
        worst_ratio(p, {});
        question fine;
        fine.min_bits = 256;
        worst_ratio(p, fine);
      }
    }
  }
}

/// Gates from nothing to -800, of which e^g is below fp64's range, per channel.
TEST(radius, contains_the_truth_where_decays_underflow) {
  problem p = small("k-ne-v", 6, 3);
  p.op = op_kind::kda;
  std::vector<double> g(p.tokens() * p.value_heads() * p.key_dim());
  const double gates[] = {0, -1e-9, -5.5, -20, -800, -std::numeric_limits<double>::infinity(), 0.25};
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = gates[i % 7];
  p.g = tensor::from_doubles(fp64, {1, p.tokens(), p.value_heads(), p.key_dim()}, g, "g");
  validate(p, "test");
  worst_ratio(p, {});
  question fine;
  fine.min_bits = 128;
  worst_ratio(p, fine);
}

TEST(radius, contains_the_truth_from_tiny_to_huge_magnitudes) {
  for (const double size : {1e-300, 1e-160, 1e-20, 1e20, 1e140}) {
    SCOPED_TRACE(size);
    generation g;
    g.regime = "typical";
    g.tokens = 12;
    g.key_dim = g.value_dim = 4;
    g.dtype = fp64;
    problem p = generate(g);
    auto v = p.v.to_doubles();
    for (double& x : v) x *= size;
    p.v = tensor::from_doubles(fp64, p.v.shape(), v, "v");
    worst_ratio(p, {});
  }
}

/// One step of one element: the bound is near its terms, so that a constant cut in half would fail here.
TEST(radius, is_attained_within_a_factor_of_four_by_one_step) {
  double attained = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    generation g;
    g.regime = "typical";
    g.seed = seed;
    g.tokens = 1;
    g.key_dim = g.value_dim = 1;
    g.dtype = fp64;
    g.initial_state = "zeros";
    problem p = generate(g);
    attained = std::max(attained, worst_ratio(solve(p).final_state, slow_solve(p).final_state));
  }
  std::cout << "largest error / radius over 400 one-step problems: " << attained << '\n';
  EXPECT_GT(attained, 0.25);
}

TEST(radius, meets_the_question_by_raising_precision) {
  const problem p = small("typical", 24, 9);
  for (const double wanted : {1e-6, 1e-18, 1e-60, 1e-200}) {
    question ask;
    ask.relative_radius = wanted;
    const reference ref = solve(p, ask);
    EXPECT_EQ(ref.unanswered, 0U);
    double largest = 0, radius = 0;
    for (std::size_t i = 0; i < ref.final_state.value.size(); ++i) {
      largest = std::max(largest, std::fabs(ref.final_state.value[i]));
      radius = std::max(radius, ref.final_state.radius[i]);
    }
    EXPECT_LE(radius, wanted * largest * static_cast<double>(p.value_heads())) << wanted;
  }
}

TEST(radius, is_zero_where_everything_is_exactly_zero) {
  problem p = small("typical", 10, 1);
  p.v = tensor::from_doubles(bf16, p.v.shape(), std::vector<double>(p.v.size(), 0.0), "v");
  p.initial_state.reset();
  const reference ref = solve(p);
  for (std::size_t i = 0; i < ref.o.value.size(); ++i) {
    ASSERT_EQ(ref.o.value[i], 0);
    ASSERT_EQ(ref.o.radius[i], 0);
  }
}

TEST(radius, a_reset_gives_exact_zeros_and_no_nan) {
  generation g;
  g.regime = "typical";
  g.op = op_kind::gated_delta_rule;
  g.tokens = 3;
  g.key_dim = g.value_dim = 4;
  problem p = generate(g);
  const double minus_infinity = -std::numeric_limits<double>::infinity();
  p.g = tensor::from_doubles(fp32, p.g->shape(), std::vector<double>(p.g->size(), minus_infinity), "g");
  auto beta = p.beta.to_doubles();
  std::fill(beta.begin(), beta.end(), 0.0);
  p.beta = tensor::from_doubles(p.beta.element_format(), p.beta.shape(), beta, "beta");
  const reference ref = solve(p);
  for (std::size_t i = 0; i < ref.final_state.value.size(); ++i) {
    ASSERT_EQ(ref.final_state.value[i], 0);
    ASSERT_EQ(ref.final_state.radius[i], 0);
  }
}

/// The exact family: keys (+-1/2)^4, beta 1/2, small integers: rationals decide, and fp64 makes no error at all.
TEST(radius, agrees_with_rationals_on_the_exact_family) {
  const problem p = small("exact", 6, 2);
  const auto in = lower_exact(p, 0, 0);
  const auto want = recurrent(in.scan);
  const reference ref = solve(p);
  const std::size_t heads = p.value_heads(), V = p.value_dim();
  for (std::size_t t = 0; t < p.tokens(); ++t) {
    for (std::size_t v = 0; v < V; ++v) {
      const std::size_t i = t * heads * V + v;
      const rational error = exact(ref.o.value[i]) - exact(in.scale) * want.o(t, v);
      EXPECT_LE(abs(error), exact(ref.o.radius[i]));
    }
  }
}

TEST(radius, does_not_depend_on_the_number_of_threads) {
  const problem p = small("gva", 30, 4);
  question one, three;
  one.threads = 1;
  three.threads = 3;
  const reference a = solve(p, one), b = solve(p, three);
  EXPECT_EQ(a.o.value, b.o.value);
  EXPECT_EQ(a.o.radius, b.o.radius);
  EXPECT_EQ(a.final_state.radius, b.final_state.radius);
}

TEST(radius, an_empty_problem_keeps_its_initial_state) {
  problem p = small("typical", 4, 6);
  const auto empty = [](const tensor& t, std::size_t) {
    auto shape = t.shape();
    shape[1] = 0;
    return tensor::from_doubles(t.element_format(), shape, {}, t.name());
  };
  p.q = empty(p.q, 0);
  p.k = empty(p.k, 0);
  p.v = empty(p.v, 0);
  p.beta = empty(p.beta, 0);
  p.g.reset();
  const std::size_t entries = p.value_heads() * p.key_dim() * p.value_dim();
  std::vector<double> start(entries);
  for (std::size_t i = 0; i < entries; ++i) start[i] = static_cast<double>(i) / 8;
  p.initial_state = tensor::from_doubles(fp32, {1, p.value_heads(), p.key_dim(), p.value_dim()}, start, "initial_state");
  validate(p, "test");
  const reference ref = solve(p);
  EXPECT_EQ(ref.final_state.value, start);
  EXPECT_EQ(ref.final_state.radius, std::vector<double>(entries, 0.0));
}

/// One key of norm 8 with beta = 1: 1 - x = -63, S = v (1 - (-63)^t) / 8 along it. |S| passes the largest fp32, 2^128,
/// in the step where 63^t / 8 first does.
TEST(radius, finds_the_token_of_divergence) {
  const std::size_t T = 40;
  problem p;
  p.q = tensor::from_doubles(bf16, {1, T, 1, 1}, std::vector<double>(T, 1.0), "q");
  p.k = tensor::from_doubles(bf16, {1, T, 1, 1}, std::vector<double>(T, 8.0), "k");
  p.v = tensor::from_doubles(bf16, {1, T, 1, 1}, std::vector<double>(T, 1.0), "v");
  p.beta = tensor::from_doubles(bf16, {1, T, 1}, std::vector<double>(T, 1.0), "beta");
  validate(p, "test");
  rational state = 0;
  std::size_t want = 0;
  for (std::size_t t = 0; t < T; ++t) {
    state += 8 * (1 - 8 * state);
    if (abs(state) > exact(largest(fp32))) {
      want = t;
      break;
    }
  }
  question ask;
  ask.range = {largest(fp32), largest(fp32)};
  const reference ref = solve(p, ask);
  ASSERT_EQ(ref.divergences.size(), 1U);
  EXPECT_EQ(ref.divergences[0], (divergence{0, 0, want}));
  EXPECT_TRUE(std::isfinite(ref.o.value[want - 1]));
  EXPECT_EQ(ref.o.radius[want], std::numeric_limits<double>::infinity());
}

std::optional<double> decide(double value, double low, double radius, const format& to) {
  reference_tensor t;
  t.shape = {1};
  t.value = {value};
  if (low != 0) t.low = {{low}};
  t.radius = {radius};
  return decided_rounding(t, 0, to);
}

TEST(decided_rounding, decides_unless_a_midpoint_is_inside) {
  EXPECT_EQ(decide(1.0, 0, 1e-9, bf16), 1.0);
  EXPECT_EQ(decide(1 + 0x1p-8, 0, 0, bf16), 1.0);  // a tie, exactly known: to even
  EXPECT_EQ(decide(1 + 0x1p-8, 0, 1e-30, bf16), std::nullopt);
  EXPECT_EQ(decide(1 + 0x1p-8, 1e-25, 1e-26, bf16), 1 + 0x1p-7);
  EXPECT_EQ(decide(1 + 0x1p-8, -1e-25, 1e-26, bf16), 1.0);
  EXPECT_EQ(decide(1, 0x1p-53, 0, fp64), 1.0);
  EXPECT_EQ(decide(1, 0x1p-53, 0x1p-80, fp64), std::nullopt);
  EXPECT_EQ(decide(0, 0, 0, fp32), 0.0);
  EXPECT_EQ(decide(0, 0, 1e-60, fp32), 0.0);
  EXPECT_EQ(decide(1e300, 0, 1, fp32), std::numeric_limits<double>::infinity());
  EXPECT_EQ(decide(std::nan(""), 0, 0, fp32), std::nullopt);
  EXPECT_EQ(decide(1, 0, std::numeric_limits<double>::infinity(), fp32), std::nullopt);
}

/// Far below the second component: what decides may lie hundreds of bits down.
TEST(decided_rounding, reads_every_component) {
  reference_tensor t;
  t.shape = {1};
  t.value = {1};
  t.low = {{0x1p-53}, {0x1p-400}};
  t.radius = {0x1p-420};
  EXPECT_EQ(decided_rounding(t, 0, fp64), 1 + 0x1p-52);
  t.low[1][0] = -0x1p-400;
  EXPECT_EQ(decided_rounding(t, 0, fp64), 1.0);
  t.radius = {0x1p-390};
  EXPECT_EQ(decided_rounding(t, 0, fp64), std::nullopt);
}

/// Against the plain rule: a part is certain where both ends of what is left round to it. Components of any kind: in normal
/// form, ties, powers of two, sums that overlap, zeros, numbers below the normal range.
TEST(decided_parts, are_those_that_both_ends_round_to) {
  std::mt19937_64 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::size_t whole = 0, some = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    reference_tensor t;
    int e = below(8) == 0 ? -1074 + below(120) : -20 + below(40);
    const auto component = [&](int at) {
      const double m = below(5) == 0 ? 1 : 1 + static_cast<double>(random() >> 12) * 0x1p-52;
      return below(9) == 0 ? 0.0 : std::ldexp(below(2) == 0 ? m : -m, at);
    };
    t.value = {component(e)};
    for (int c = below(5); c > 0; --c) t.low.push_back({component(e -= 50 + below(8))});
    t.radius = {below(4) == 0 ? 0.0 : std::ldexp(1.0, e - below(70))};
    std::vector<double> parts(1 + static_cast<std::size_t>(below(4)));
    const double left = decided_parts(t, 0, parts);
    slow_real low = t.value[0];
    for (const auto& x : t.low) low += x[0];
    slow_real high = low + t.radius[0];
    low -= t.radius[0];
    bool open = false;
    for (const double part : parts) {
      const auto want = static_cast<double>(low);
      open = open || want != static_cast<double>(high);
      ASSERT_EQ(std::isnan(part), open) << trial;
      if (open) continue;
      ASSERT_EQ(part, want) << trial;
      low -= want;
      high -= want;
    }
    ASSERT_EQ(std::isinf(left), open);
    (open ? some : whole) += 1;
    if (open) continue;
    const slow_real most = abs(low) > abs(high) ? abs(low) : abs(high);
    ASSERT_GE(slow_real(left), most) << trial;
    ASSERT_LE(slow_real(left), most * 2 + slow_real(0x1p-1074)) << trial;
  }
  EXPECT_GT(whole, 2000U);
  EXPECT_GT(some, 2000U);
}

/// The certificate of the MPFR tier itself, at a precision where its error shows.
TEST(radius, of_the_mpfr_rows_contains_the_truth) {
  double attained = 0;
  for (const int bits : {24, 60}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const problem p = small("typical", 12, seed);
      const auto in = lower_mpfr(p, 0, 0, bits);
      certifier<mpfr_field> engine(mpfr_field{bits}, std::ldexp(1.0, -bits), in);
      const auto got = engine.run({});
      const slow_outputs want = slow_solve(p);
      for (std::size_t i = 0; i < got.final_state.size(); ++i) {
        slow_real error;
        mpfr_sub(error.backend().data(), want.final_state[i].backend().data(), got.final_state[i].get(), MPFR_RNDN);
        const double ratio = static_cast<double>(slow_real(abs(error) / got.state_radius[i % p.value_dim()]));
        ASSERT_LE(ratio, 1);
        attained = std::max(attained, ratio);
      }
    }
  }
  std::cout << "largest error / radius of MPFR rows: " << attained << '\n';
  EXPECT_GT(attained, 0.01);
}

/// sigmoid(-744.4) is subnormal in fp64: no relative bound holds there, so fp64 must not answer.
TEST(radius, is_not_trusted_to_fp64_where_a_derived_step_is_subnormal) {
  problem p;
  const auto scalar = [](double x, const char* name) {
    return tensor::from_doubles(fp64, {1, 1, 1, 1}, std::vector<double>{x}, name);
  };
  p.q = scalar(1, "q");
  p.k = scalar(1, "k");
  p.v = scalar(1e300, "v");
  p.beta = tensor::from_doubles(fp64, {1, 1, 1}, std::vector<double>{-744.4}, "beta");
  p.beta_activation = activation_kind::sigmoid;
  EXPECT_LE(worst_ratio(p, {}), 1);
  EXPECT_EQ(solve(p).tiers.count("fp64"), 0U);
  question coarse;
  coarse.max_bits = 53;
  EXPECT_EQ(solve(p, coarse).o.radius[0], std::numeric_limits<double>::infinity());
}

/// One decay of e^360 takes the state from 1 to 1e156, whose square is beyond fp64.
TEST(radius, says_that_a_state_whose_square_overflows_diverges) {
  problem p;
  p.op = op_kind::gated_delta_rule;
  p.q = tensor::from_doubles(bf16, {1, 1, 1, 1}, std::vector<double>{1}, "q");
  p.k = p.q.named("k");
  p.v = p.q.named("v");
  p.beta = tensor::from_doubles(bf16, {1, 1, 1}, std::vector<double>{0}, "beta");
  p.g = tensor::from_doubles(fp32, {1, 1, 1}, std::vector<double>{360}, "g");
  p.initial_state = tensor::from_doubles(fp32, {1, 1, 1, 1}, std::vector<double>{1}, "initial_state");
  question ask;
  ask.range = {largest(bf16), largest(fp32)};
  const reference ref = solve(p, ask);
  ASSERT_EQ(ref.divergences.size(), 1U);
  EXPECT_EQ(ref.divergences[0].token, 0U);
}

TEST(lower, refuses_a_pole_of_the_rule) {
  problem p;
  p.q = tensor::from_doubles(bf16, {1, 1, 1, 1}, std::vector<double>{1.0}, "q");
  p.k = p.q.named("k");
  p.v = p.q.named("v");
  p.beta = tensor::from_doubles(bf16, {1, 1, 1}, std::vector<double>{-1.0}, "beta");
  p.rule = rule_kind::implicit;
  EXPECT_THROW(static_cast<void>(lower(p, 0, 0)), domain_error);
  p.rule = rule_kind::euler;
  EXPECT_EQ(lower(p, 0, 0).scan.step[0], -1.0);
}

TEST(lower, says_what_is_not_rational) {
  problem p = small("typical", 2, 1);
  p.qk_l2norm = true;
  EXPECT_THROW(static_cast<void>(lower_exact(p, 0, 0)), domain_error);
}

}  // namespace
}  // namespace deltaproof
