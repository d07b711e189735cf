// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What runs on perturbed inputs are measured against.
#include "referee/lanes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/random.hpp"
#include "referee/fault_projections.hpp"

namespace deltaproof::referee_detail {
namespace {

struct drawn_norms {
  lane_norms by_draw, by_fp64;
};

drawn_norms norms_of(const head_input& in, const plan_variant& v, std::uint64_t seed, std::size_t unit = 64) {
  const head_input moved = perturbed(in, seed, narrowest_operand(v));
  emulation_options options;
  options.noise_ulps = 1;
  options.seed = seed;
  const auto where = buckets(in.tokens(), unit);
  return {norms(errors_of_draw(in, v, seed), where, in.tokens()),
          norms(run_less_truth(emulate_head(moved, v, options), reference_run(moved)), where, in.tokens())};
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double relative) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], relative * want[i]) << i;
}

TEST(draws, err_from_a_truth_in_fp32_as_from_one_in_fp64_where_roundings_are_larger) {
  struct kernel {
    const char* plan;
    op_kind op;
    path_kind path;
  };
  for (const kernel& k : {kernel{"fla-chunk-gdn", op_kind::gated_delta_rule, path_kind::chunk},
                          kernel{"fla-chunk-kda", op_kind::kda, path_kind::chunk},
                          kernel{"fla-recurrent-gdn", op_kind::gated_delta_rule, path_kind::recurrent}}) {
    for (const char* regime : {"typical", "collinear", "slow-decay"}) {
      generation g;
      g.regime = regime;
      g.op = k.op;
      g.tokens = 200;
      g.key_dim = g.value_dim = 32;
      g.key_heads = g.value_heads = 1;
      g.initial_state = "normal";
      const problem p = generate(g);
      for (const plan_variant& v : variants(plan_named(k.plan), p, k.path, 64)) {
        const auto [by_draw, by_fp64] = norms_of(take_head(p, 0, 0), v, 5);
        expect_near(by_draw.rms, by_fp64.rms, 1e-4);
        expect_near(by_draw.max, by_fp64.max, 1e-2);
      }
    }
  }
}

// What a slow gate rounds alike at each of many tokens adds up.
TEST(draws, err_from_a_truth_in_fp32_as_from_one_in_fp64_however_long_the_memory_is) {
  for (const char* gate : {"-0.0001", "-0.003"}) {
    for (const format dtype : {bf16, fp16}) {
      generation g;
      g.op = op_kind::gated_delta_rule;
      g.dtype = dtype;
      g.tokens = 2000;
      g.key_dim = g.value_dim = 16;
      g.key_heads = g.value_heads = 1;
      g.gate = gate;
      g.initial_state = "normal";
      const problem p = generate(g);
      const auto [by_draw, by_fp64] =
          norms_of(take_head(p, 0, 0), variants(plan_named("fla-chunk-gdn"), p, path_kind::chunk, 64).front(), 5);
      expect_near(by_draw.rms, by_fp64.rms, 1e-2);
    }
  }
}

// Numbers below the normal range of fp32: a recurrence in fp32 would round as the run does.
TEST(draws, err_from_a_truth_in_fp64_where_fp32_has_no_full_precision) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = 100;
  g.key_dim = g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  problem p = generate(g);
  std::vector<double> v = p.v.to_doubles();
  for (double& x : v) x *= 0x1p-128;
  for (double& x : v) x = round_to<bf16>(x).value();
  p.v = tensor::from_doubles(bf16, p.v.shape(), v);
  p.initial_state.reset();
  const auto [by_draw, by_fp64] =
      norms_of(take_head(p, 0, 0), variants(plan_named("fla-chunk-gdn"), p, path_kind::chunk, 64).front(), 5);
  EXPECT_EQ(by_draw.rms, by_fp64.rms);
}

// Nothing is written, so the state errs by its decays alone, which fp32 rounds as the reference in fp32 would.
TEST(draws, err_from_a_truth_in_fp64_where_sums_alone_round) {
  const plan declared = plan_named("fla-chunk-gdn");
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = 200;
  g.key_dim = g.value_dim = 32;
  g.key_heads = g.value_heads = 1;
  g.beta = "0";
  g.initial_state = "normal";
  const problem p = generate(g);
  for (const plan_variant& v : variants(declared, p, path_kind::chunk, 64)) {
    const auto [by_draw, by_fp64] = norms_of(take_head(p, 0, 0), v, 5);
    EXPECT_EQ(by_draw.rms, by_fp64.rms);
    EXPECT_EQ(by_draw.max, by_fp64.max);
  }
}

// The first chunk writes nothing and reads a state of 16 bits, so that only sums round there; the tokens after it err by far
// more.
TEST(draws, err_from_a_truth_in_fp64_where_sums_alone_round_in_the_first_chunk) {
  generation g;
  g.tokens = 100;
  g.key_dim = g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  g.initial_state = "normal";
  problem p = generate(g);
  std::vector<double> beta = p.beta.to_doubles(), state = p.initial_state->to_doubles();
  std::fill_n(beta.begin(), 16, 0.0);
  for (double& x : state) x = round_to<bf16>(x).value();
  p.beta = tensor::from_doubles(p.beta.element_format(), p.beta.shape(), beta);
  p.initial_state = tensor::from_doubles(bf16, p.initial_state->shape(), state);
  plan_variant v = variants(plan_named("fla-chunk-delta"), p, path_kind::chunk, 16).front();
  v.o.store = fp32;
  for (std::uint64_t seed = 1; seed < 5; ++seed) {
    const auto [by_draw, by_fp64] = norms_of(take_head(p, 0, 0), v, seed, 16);
    EXPECT_EQ(by_draw.rms, by_fp64.rms);
    EXPECT_GT(by_fp64.rms.front(), 0);
  }
}

// Blocks that stay in a cache change no sum: each is made entry by entry.
TEST(columns_beside, sum_each_product_in_the_order_of_its_entries) {
  philox draw(3, 7);
  for (const std::size_t length : {1U, 255U, 256U, 257U, 1000U}) {
    std::vector<referee_detail::flat> x(40, referee_detail::flat(length)), y(9, referee_detail::flat(length));
    for (auto* list : {&x, &y}) {
      for (referee_detail::flat& one : *list) {
        for (float& entry : one) entry = static_cast<float>(draw.normal());
      }
    }
    std::vector<std::vector<double>> want(y.size(), std::vector<double>(x.size(), 0.0));
    for (std::size_t f = 0; f < y.size(); ++f) {
      for (std::size_t c = 0; c < x.size(); ++c) {
        for (std::size_t i = 0; i < length; ++i) want[f][c] += static_cast<double>(x[c][i]) * static_cast<double>(y[f][i]);
      }
    }
    std::vector<referee_detail::flat*> taken;
    for (referee_detail::flat& one : x) taken.push_back(&one);
    std::vector<const referee_detail::flat*> others;
    for (const referee_detail::flat& one : y) others.push_back(&one);
    referee_detail::columns_beside columns;
    columns.take(taken);
    EXPECT_EQ(columns.inner(others), want) << length;
  }
}

}  // namespace
}  // namespace deltaproof::referee_detail
