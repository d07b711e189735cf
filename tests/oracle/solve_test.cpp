// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "oracle/slow_reference.hpp"

namespace deltaproof {
namespace {

using testing::slow_real;
using testing::slow_solve;

tensor constant(const std::vector<std::size_t>& shape, const format& of, const char* name, double x) {
  return tensor::from_doubles(of, shape, std::vector<double>(element_count(shape), x), name);
}

/// T tokens that write nothing and read (1, 0, ...)^T S: o is the first row of the initial state.
problem reader(std::size_t T, std::size_t K, std::size_t V, const std::vector<double>& start) {
  problem p;
  std::vector<double> q(T * K, 0.0);
  for (std::size_t t = 0; t < T; ++t) q[t * K] = 1;
  p.q = tensor::from_doubles(fp64, {1, T, 1, K}, q, "q");
  p.k = constant({1, T, 1, K}, fp64, "k", 0);
  p.v = constant({1, T, 1, V}, fp64, "v", 1);
  p.beta = constant({1, T, 1}, fp64, "beta", 0.5);
  p.scale = 1;
  p.initial_state = tensor::from_doubles(fp64, {1, 1, K, V}, start, "initial_state");
  return p;
}

std::size_t total(const std::map<std::string, std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0},
                         [](std::size_t sum, const auto& c) { return sum + c.second; });
}

question rounded_to(const format& to) {
  question ask;
  ask.round_output = ask.round_state = to;
  return ask;
}

TEST(solve, decides_ties_by_exact_numbers) {
  const problem p = reader(3, 1, 4, {1 + 0x1p-8, 1 + 0x3p-8, 0.1, 1});
  const reference got = solve(p, rounded_to(bf16));
  EXPECT_EQ(got.unanswered, 0U);
  EXPECT_EQ(decided_rounding(got.o, 0, bf16), 1.0);
  EXPECT_EQ(decided_rounding(got.o, 1, bf16), 1 + 0x1p-6);
  EXPECT_EQ(got.o.radius[0], 0);
  EXPECT_EQ(got.o_decided.at("exact"), 6U);
  EXPECT_EQ(got.o_decided.at("fp64"), 6U);
  EXPECT_EQ(total(got.state_decided), 4U);
  EXPECT_EQ(got.tiers.at("exact"), 1U);
}

/// A state that a step takes to exactly 0: no radius but 0 says so in fp64, where the smallest number is 2^-1074.
TEST(solve, decides_zeros_by_exact_numbers) {
  problem p = reader(2, 1, 2, {0.3, 0.7});
  p.k = constant({1, 2, 1, 1}, fp64, "k", 1);
  p.v = constant({1, 2, 1, 2}, fp64, "v", 0);
  p.beta = constant({1, 2, 1}, fp64, "beta", 1);
  const reference got = solve(p, rounded_to(fp64));
  EXPECT_EQ(got.unanswered, 0U);
  for (const double x : got.final_state.value) EXPECT_EQ(x, 0);
  for (const double r : got.o.radius) EXPECT_EQ(r, 0);
}

/// A tie under a gate that is not dyadic cannot be decided: it is counted, and nothing is guessed. Before the gate acts
/// nothing is lost in fixed point, which says so by a radius of 0; the exact tier alone decides as much.
TEST(solve, leaves_ties_that_are_not_dyadic_undecided) {
  problem p = reader(4, 2, 2, {1 + 0x1p-8, 0.5, 0.25, 0.125});
  p.op = op_kind::kda;
  std::vector<double> g(8, 0.0);
  g[2 * 2 + 1] = -0.5;  // the channel that is not read, from token 2 on
  p.g = tensor::from_doubles(fp64, {1, 4, 1, 2}, g, "g");
  validate(p, "test");
  const reference got = solve(p, rounded_to(bf16));
  EXPECT_EQ(got.unanswered, 1U);
  EXPECT_EQ(total(got.o_decided), 6U);
  EXPECT_EQ(got.o_decided.at("fixed-128"), 2U);
  EXPECT_EQ(decided_rounding(got.o, 0, bf16), 1.0);
  EXPECT_EQ(decided_rounding(got.o, 2, bf16), 1.0);
  EXPECT_EQ(decided_rounding(got.o, 4, bf16), std::nullopt);
  EXPECT_EQ(decided_rounding(got.o, 5, bf16), 0.5);
  question coarse = rounded_to(bf16);
  coarse.max_bits = 53;
  EXPECT_EQ(solve(p, coarse).o_decided.count("exact"), 0U);
  coarse.always_exact = true;
  EXPECT_EQ(solve(p, coarse).o_decided.at("exact"), 2U);
}

/// 2^-1200 beside a tie: no radius in fp64 tells it from nothing, the exact tier does.
TEST(solve, rounds_what_lies_beside_a_tie_beyond_the_range_of_doubles) {
  problem p = reader(1, 2, 1, {1 + 0x1p-8, 0x1p-600});
  p.q = tensor::from_doubles(fp64, {1, 1, 1, 2}, std::vector<double>{1, 0x1p-600}, "q");
  double rounded = 0;
  const reference got = solve_by_head(p, rounded_to(bf16), [&](const solved_head& head) { rounded = head.rounded_o[0]; });
  EXPECT_EQ(got.unanswered, 0U);
  EXPECT_EQ(rounded, 1 + 0x1p-7);
}

problem one_head(std::size_t T, std::size_t K, std::size_t V, const char* regime) {
  generation g;
  g.regime = regime;
  g.tokens = T;
  g.key_dim = K;
  g.value_dim = V;
  g.key_heads = 1;
  return generate(g);
}

/// One head, its rows shared by threads: the same bits.
TEST(solve, does_not_depend_on_how_rows_are_shared_by_threads) {
  for (const char* regime : {"no-decay", "model-gates"}) {
    problem p = one_head(150, 7, 41, regime);
    ASSERT_EQ(p.value_heads(), 1U);
    question ask = rounded_to(fp64);
    ask.threads = 1;
    const reference one = solve(p, ask);
    for (const unsigned threads : {2U, 3U, 8U}) {
      ask.threads = threads;
      const reference more = solve(p, ask);
      EXPECT_EQ(one.o.value, more.o.value);
      EXPECT_EQ(one.o.low, more.o.low);
      EXPECT_EQ(one.o.radius, more.o.radius);
      EXPECT_EQ(one.final_state.value, more.final_state.value);
      EXPECT_EQ(one.final_state.radius, more.final_state.radius);
      EXPECT_EQ(one.o_decided, more.o_decided);
      EXPECT_EQ(one.fallbacks, more.fallbacks);
    }
    ask.min_bits = 128;
    ask.threads = 1;
    const reference fixed = solve(p, ask);
    ask.threads = 3;
    EXPECT_EQ(fixed.o.low, solve(p, ask).o.low);
    EXPECT_EQ(fixed.o_decided.count("fp64"), 0U);
  }
}

/// Heads left over after each thread had one share the threads.
TEST(solve, hands_over_every_head_once) {
  problem p = [] {
    generation g;
    g.regime = "varlen";
    return generate(g);
  }();
  question ask = rounded_to(fp32);
  ask.threads = 2;
  std::map<std::pair<std::size_t, std::size_t>, int> seen;
  const reference all = solve(p, ask);
  const auto sequences = p.sequences();
  const std::size_t HV = p.value_heads(), V = p.value_dim();
  const reference got = solve_by_head(p, ask, [&](const solved_head& head) {
    ++seen[{head.sequence, head.value_head}];
    const std::size_t first = sequences[head.sequence].first_token;
    for (std::size_t t = 0; t < sequences[head.sequence].tokens; ++t) {
      for (std::size_t v = 0; v < V; ++v) {
        const std::size_t at = ((first + t) * HV + head.value_head) * V + v;
        ASSERT_EQ(head.o.value[t * V + v], all.o.value[at]);
        ASSERT_EQ(head.rounded_o[t * V + v], decided_rounding(all.o, at, fp32).value());
      }
    }
  });
  EXPECT_EQ(seen.size(), sequences.size() * HV);
  EXPECT_TRUE(got.o.value.empty());
  EXPECT_EQ(got.tiers, all.tiers);
}

/// beta |k|^2 = 3 doubles the state at each step: windows and grids must move, and say so.
TEST(solve, counts_its_fallbacks) {
  problem p = reader(200, 1, 2, {0.1, 0.2});
  p.k = constant({1, 200, 1, 1}, fp64, "k", 1);
  p.beta = constant({1, 200, 1}, fp64, "beta", 3);
  question ask = rounded_to(fp64);
  const reference got = solve(p, ask);
  EXPECT_GT(got.fallbacks.at("blocks run again in double-double because their numbers outgrew the expected size"), 0U);
  const auto gate = [](problem& of, std::size_t T) {  // so that nothing is dyadic
    of.op = op_kind::gated_delta_rule;
    of.g = constant({1, T, 1}, fp64, "g", -0.01);
  };
  ask.min_bits = 128;
  ask.max_bits = 128;
  gate(p, 200);
  EXPECT_GT(solve(p, ask).fallbacks.at("low bits dropped in fixed point to make room for larger numbers"), 0U);
  p.k = tensor::from_doubles(fp64, {1, 200, 1, 1}, std::vector<double>(200, 0.1), "k");
  EXPECT_EQ(solve(p).fallbacks.size(), 0U);
  problem wide = reader(2, 2, 1, {0, 0});
  wide.k = tensor::from_doubles(fp64, {1, 2, 1, 2}, std::vector<double>{1, 0x1p-70, 1, 0x1p-400}, "k");
  gate(wide, 2);
  const reference limbs = solve(wide, ask);
  EXPECT_EQ(limbs.fallbacks.at("keys and queries of more than 64 bits in fixed point"), 2U);
  EXPECT_EQ(limbs.fallbacks.at("keys and queries rounded in fixed point"), 1U);
}

/// A rounding question whose lowest tier is fixed point: every element against 1000-bit reals.
TEST(solve, rounds_correctly_by_fixed_point_alone) {
  problem p = one_head(40, 5, 6, "model-gates");
  p.qk_l2norm = true;
  p.beta_activation = activation_kind::sigmoid;
  const auto want = slow_solve(p);
  question ask = rounded_to(fp64);
  ask.min_bits = 128;
  const reference got = solve(p, ask);
  EXPECT_EQ(got.unanswered, 0U);
  EXPECT_EQ(got.o_decided.at("fixed-128"), want.o.size());
  for (std::size_t i = 0; i < want.o.size(); ++i)
    ASSERT_EQ(decided_rounding(got.o, i, fp64), static_cast<double>(want.o[i])) << i;
}

}  // namespace
}  // namespace deltaproof
