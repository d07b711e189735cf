// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/testing/problem_case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "deltaproof/support/errors.hpp"
#include "support/multiplier.hpp"
#include "support/thrown.hpp"

namespace deltaproof::testing {
namespace {

using ::testing::HasSubstr;

template <class Value>
bool is_among(const std::vector<Value>& list, const Value& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

case_limits narrow() {
  case_limits out;
  out.regimes = {"typical", "repeated", "varlen", "exact"};
  out.ops = {op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda};
  out.dtypes = {bf16, fp16};
  out.least_tokens = 3;
  out.most_tokens = 70;
  out.most_batch = 2;
  out.most_key_heads = 3;
  out.most_steps_per_token = 2;
  out.key_dims = {4, 16, 20};
  out.value_dims = {5, 8};
  out.chunk_sizes = {16, 32};
  out.beta_range = {0.25, 1.5};
  out.gates = {"zero", "-0.125", "typical"};
  out.initial_states = {"none", "normal"};
  return out;
}

void expect_within(const case_recipe& recipe, const case_limits& limits) {
  const generation g = complete(recipe.wanted);
  SCOPED_TRACE(gen_command(g));
  EXPECT_TRUE(is_among(limits.regimes, g.regime));
  EXPECT_TRUE(is_among(limits.ops, *g.op));
  EXPECT_TRUE(is_among(limits.dtypes, *g.dtype));
  EXPECT_TRUE(limits.least_tokens <= *g.tokens && *g.tokens <= limits.most_tokens);
  EXPECT_TRUE(1 <= *g.batch && *g.batch <= limits.most_batch);
  EXPECT_TRUE(1 <= *g.key_heads && *g.key_heads <= limits.most_key_heads);
  EXPECT_TRUE(*g.value_heads % *g.key_heads == 0 && *g.value_heads / *g.key_heads <= limits.most_group);
  EXPECT_LE(*g.num_householder, limits.most_steps_per_token);
  EXPECT_TRUE(is_among(limits.key_dims, *g.key_dim) && is_among(limits.value_dims, *g.value_dim));
  EXPECT_TRUE(is_among(limits.chunk_sizes, recipe.chunk_size));
  EXPECT_TRUE(limits.beta_range->first <= std::stod(*g.beta) && std::stod(*g.beta) <= limits.beta_range->second);
  EXPECT_TRUE(*g.op == op_kind::delta_rule ? *g.gate == "none" : is_among(limits.gates, *g.gate));
  EXPECT_TRUE(is_among(limits.initial_states, *g.initial_state));
}

TEST(draw_case, stays_within_its_limits_and_reaches_all_of_them) {
  const case_limits limits = narrow();
  philox random(7);
  std::set<std::string> regimes_seen, gates_seen, betas_seen;
  std::set<std::size_t> tokens_seen;
  std::size_t at_an_edge = 0;
  const std::size_t draws = scaled(400);
  for (std::size_t i = 0; i < draws; ++i) {
    const case_recipe recipe = draw_case(random, limits);
    expect_within(recipe, limits);
    const generation g = complete(recipe.wanted);
    regimes_seen.insert(g.regime);
    gates_seen.insert(*g.gate);
    betas_seen.insert(*g.beta);
    tokens_seen.insert(*g.tokens);
    at_an_edge += (*g.tokens + 1) % recipe.chunk_size <= 2 ? 1 : 0;
  }
  EXPECT_EQ(regimes_seen.size(), limits.regimes.size());
  EXPECT_EQ(gates_seen.size(), limits.gates.size() + 1);  // and none
  EXPECT_GT(betas_seen.size(), 30U);
  EXPECT_TRUE(tokens_seen.contains(3) && tokens_seen.contains(70));
  EXPECT_GT(at_an_edge, draws / 2);
}

TEST(draw_case, is_the_same_for_the_same_seed_and_makes_every_regime_by_default) {
  philox one(11), other(11);
  std::set<std::string> seen;
  for (int i = 0; i < 300; ++i) {
    const case_recipe recipe = draw_case(one, {});
    EXPECT_EQ(recipe, draw_case(other, {}));
    seen.insert(recipe.wanted.regime);
  }
  EXPECT_EQ(seen.size(), regimes().size());
}

TEST(draw_case, says_why_nothing_fits) {
  philox random(1);
  const auto refusal = [&random](const case_limits& limits) {
    return thrown([&] { static_cast<void>(draw_case(random, limits)); });
  };
  EXPECT_THAT(refusal({.regimes = {"exact"}, .key_dims = {5}}),
              HasSubstr("no problem within these limits was found in 1000 draws; widen the limits. The last draw was refused: "
                        "regime exact needs K = 4, 16"));
  EXPECT_THAT(refusal({.least_tokens = 9, .most_tokens = 8}),
              HasSubstr("most_tokens is 8; it must be at least 9, the value of least_tokens"));
  EXPECT_THAT(refusal({.key_dims = {}}), HasSubstr("key_dims is empty"));
  EXPECT_THAT(refusal({.beta_range = {{1, 0.5}}}), HasSubstr("give the smaller number first"));
  EXPECT_THAT(refusal({.regimes = {"typcial"}}), HasSubstr("typcial"));
}

TEST(simpler, stays_within_the_limits_and_ends) {
  const case_limits limits = narrow();
  philox random(5);
  for (std::size_t i = 0; i < scaled(20); ++i) {
    case_recipe at = draw_case(random, limits);
    int steps = 0;
    for (std::vector<case_recipe> next = simpler(at, limits); !next.empty(); next = simpler(at, limits)) {
      for (const case_recipe& one : next) {
        EXPECT_FALSE(one == at);
        expect_within(one, limits);
      }
      at = next[static_cast<std::size_t>(random.below(next.size()))];  // whichever way it goes
      ASSERT_LT(++steps, 500);
    }
    // There is one simplest case.
    const generation g = complete(at.wanted);
    EXPECT_EQ(options_text(g),
              "--regime typical --op delta_rule --rule euler --B 1 --T 3 --K 4 --V 5 --H 1 --HV 1 --num-householder 1 --dtype "
              "bf16 --beta 1 --gate none "
              "--initial-state none --seed 0");
    EXPECT_EQ(at.chunk_size, 16U);
  }
}

TEST(make_case, is_what_its_command_says) {
  philox random(3);
  const case_recipe recipe = draw_case(random, narrow());
  const problem_case made = make_case(recipe);
  EXPECT_EQ(made.chunk_size, recipe.chunk_size);
  EXPECT_EQ(made.given.tokens(), *made.made.tokens);
  EXPECT_EQ(made.given.note, "regime " + made.made.regime + ", seed " + std::to_string(made.made.seed));
  EXPECT_EQ(gen_command(made.made), "deltaproof gen " + options_text(made.made) + " -o case.problem.safetensors");
}

}  // namespace
}  // namespace deltaproof::testing
