// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A run whose state is cached equals runs of its parts with the state carried by hand through the cache, on both paths; random
// numbers belong to the head. The caches themselves: tests/number/block_format_test.cpp.
#include <gtest/gtest.h>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof {
namespace {

problem drawn(std::size_t tokens, std::size_t heads = 1) {
  generation g;
  g.regime = "model-gates";
  g.op = op_kind::gated_delta_rule;
  g.tokens = tokens;
  g.key_dim = 16;
  g.value_dim = 12;
  g.key_heads = g.value_heads = heads;
  g.initial_state = "normal";
  g.seed = 4;
  return generate(g);
}

plan_variant variant_of(const problem& p, path_kind path) {
  return variants(plan_named(path == path_kind::chunk ? "fla-chunk-gdn" : "fla-recurrent-gdn"), p, path, 16).front();
}

head_input tokens_from(const head_input& in, std::size_t first, std::size_t count, const matrix<double>& state) {
  head_input out = first_tokens(in, first + count);
  const auto rest = [&](const matrix<double>& m) {
    matrix<double> part(count, m.cols());
    std::copy_n(m.data() + first * m.cols(), part.size(), part.data());
    return part;
  };
  out.q = rest(out.q);
  out.k = rest(out.k);
  out.v = rest(out.v);
  out.g = rest(out.g);
  out.beta.erase(out.beta.begin(), out.beta.begin() + static_cast<std::ptrdiff_t>(first));
  out.state = state;
  return out;
}

void through(block_store<float>& store, matrix<double>& state, std::uint64_t n) {
  std::vector<float> values(state.data(), state.data() + state.size());
  store(values, state.rows(), state.cols(), n);
  std::copy(values.begin(), values.end(), state.data());
}

const std::vector<state_cache>& caches() {
  static const std::vector<state_cache> all{
      {scaled("int8", "row", scale_format::fp32), block_rounding::nearest, element_formats[0], 0, 1},
      {scaled("int8", "tile:4x4", scale_format::fp16), block_rounding::error_feedback, element_named("bf16"), 0, 2},
      {block_format_named("nvfp4"), block_rounding::stochastic, element_formats[0], 9, 1},
      {unscaled("fp16"), block_rounding::error_feedback, element_named("fp32"), 0, 3},
  };
  return all;
}

TEST(cached_states, are_carried_by_hand_bit_for_bit) {
  const problem p = drawn(96);
  const head_input in = take_head(p, 0, 0);
  for (const path_kind path : {path_kind::recurrent, path_kind::chunk}) {
    const plan_variant plain = variant_of(p, path);
    for (const state_cache& cache : caches()) {
      plan_variant cached = plain;
      cached.state.cache = cache;
      const head_output whole = emulate_head(in, cached);
      block_store<float> store(cache.format, cache.rounding, cache.residual, cache.seed, 0);
      matrix<double> state = in.state;
      const std::size_t part = cache.every * (path == path_kind::chunk ? 16 : 1);
      for (std::size_t first = 0; first < in.tokens(); first += part) {
        const head_output run = emulate_head(tokens_from(in, first, part, state), plain);
        for (std::size_t i = 0; i < run.o.size(); ++i) ASSERT_EQ(run.o.data()[i], whole.o.data()[first * run.o.cols() + i]);
        state = run.final_state;
        through(store, state, first / part);
      }
      EXPECT_EQ(state, whole.final_state) << text_of(cache);
      EXPECT_NE(state, emulate_head(in, plain).final_state) << text_of(cache);
    }
  }
}

TEST(states_between_calls, are_stored_at_the_end_of_each_call_and_of_the_last) {
  const problem p = drawn(80);
  const head_input in = take_head(p, 0, 0);
  for (const path_kind path : {path_kind::recurrent, path_kind::chunk}) {
    const plan_variant plain = variant_of(p, path);
    for (const std::size_t call : {0U, 32U, 80U}) {
      plan_variant served = plain;
      served.state.between_calls = caches()[1];
      served.state.between_calls->every = call;
      block_store<float> store(caches()[1].format, caches()[1].rounding, caches()[1].residual, 0, 0);
      matrix<double> state = in.state;
      const std::size_t part = call == 0 ? 80 : call;
      for (std::size_t first = 0, n = 0; first < 80; first += part, ++n) {
        state = emulate_head(tokens_from(in, first, std::min<std::size_t>(part, 80 - first), state), plain).final_state;
        through(store, state, n);
      }
      EXPECT_EQ(state, emulate_head(in, served).final_state) << call;
    }
  }
}

TEST(stochastic_caches, draw_for_each_head_and_for_each_other_build_their_own_numbers) {
  problem p = drawn(20, 2);
  plan_variant v = variant_of(p, path_kind::recurrent);
  v.state.cache = caches()[2];
  const auto state = [&](std::uint64_t stream, double noise, std::uint64_t seed) {
    emulation_options options;
    options.cache_stream = stream;
    options.noise_ulps = noise;
    options.seed = seed;
    return emulate_head(take_head(p, 0, 1), v, options).final_state;
  };
  EXPECT_EQ(state(1, 0, 1), state(1, 0, 2));
  EXPECT_EQ(state(1, 0, 1), emulate_head(p, 0, 1, v).final_state) << "the head's number is its stream";
  EXPECT_NE(state(1, 0, 1), state(0, 0, 1));
  EXPECT_NE(state(1, 1, 1), state(1, 1, 2));
}

}  // namespace
}  // namespace deltaproof
