// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The decay of one token where a plan has it in few bits.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rounded.hpp"

namespace deltaproof {
namespace {

constexpr std::size_t channels = 64;

double in_bf16(double x) { return lift<double>(round_to<bf16>(x)); }

tensor all(const char* name, std::vector<std::size_t> shape, double value) {
  std::size_t size = 1;
  for (const std::size_t n : shape) size *= n;
  return tensor::from_doubles(fp32, shape, std::vector<double>(size, value), name);
}

/// One token that writes nothing: what it leaves of a state of ones is its decays, from near 1 to e^-7.
problem of_decays() {
  generation g;
  g.op = op_kind::kda;
  g.tokens = 1;
  g.key_dim = channels;
  g.value_dim = 2;
  g.key_heads = g.value_heads = 1;
  problem p = generate(g);
  std::vector<double> gates(channels);
  for (std::size_t i = 0; i < channels; ++i) gates[i] = -451.0 / 4096 * static_cast<double>(i + 1);
  p.g = tensor::from_doubles(fp32, {1, 1, 1, channels}, gates, "g");
  p.beta = all("beta", {1, 1, 1}, 0);
  p.initial_state = all("initial_state", {1, 1, channels, 2}, 1);
  return p;
}

plan with_gates_in_bf16() {
  plan p = plan_named("fp32");
  p.gate.cumsum = {{format_choice::kind::fixed, bf16}};
  return p;
}

// g is rounded, and e^g; nothing between, whichever way a unit takes to it.
TEST(decays, of_a_token_are_rounded_twice_also_in_runs_with_noise) {
  const problem p = of_decays();
  const std::vector<double> g = p.g->to_doubles();
  const plan_variant v = variants(with_gates_in_bf16(), p, path_kind::recurrent, 0).front();
  for (const double noise : {0.0, 1.0, 2.0}) {
    emulation_options options;
    options.noise_ulps = noise;
    const std::vector<double> state = emulate(p, v, options, 1).final_state->to_doubles();
    for (std::size_t i = 0; i < channels; ++i)
      EXPECT_EQ(in_bf16(state[2 * i]), in_bf16(std::exp(in_bf16(g[i])))) << "noise " << noise << ", channel " << i;
  }
}

// The cotangent of the state goes back through the decay that the state went through.
TEST(decays, of_a_token_are_the_same_numbers_in_its_backward_pass) {
  problem p = of_decays();
  p.d_final_state = all("dfinal_state", {1, 1, channels, 2}, 1);
  const plan_variant v = gradient_variants(with_gates_in_bf16(), p, path_kind::recurrent, 0).front();
  const result r = emulate_gradients(p, v, {}, 1);
  EXPECT_EQ(r.gradients.at("dinitial_state").to_doubles(), r.final_state->to_doubles());
}

// docs/plan-keys.md, exp2_ulps: of gates of 0 a unit makes no error, however large its errors are.
TEST(decays, of_gates_of_zero_are_exactly_one) {
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    generation g;
    g.op = op;
    g.tokens = 70;
    g.key_dim = g.value_dim = 16;
    g.key_heads = g.value_heads = 1;
    g.gate = "0";
    g.cotangents = true;
    const problem p = generate(g);
    for (const path_kind path : {path_kind::chunk, path_kind::recurrent}) {
      plan_variant v = gradient_variants(plan_named("fp32"), p, path, path == path_kind::chunk ? 16 : 0).front();
      emulation_options options;
      options.noise_ulps = 1;
      v.exp2_ulps = 1;
      const result one = emulate_gradients(p, v, options, 1);
      v.exp2_ulps = 1e4;
      const result other = emulate_gradients(p, v, options, 1);
      EXPECT_EQ(one.o.to_doubles(), other.o.to_doubles());
      EXPECT_EQ(one.final_state->to_doubles(), other.final_state->to_doubles());
      for (const auto& [name, d] : one.gradients) EXPECT_EQ(d.to_doubles(), other.gradients.at(name).to_doubles()) << name;
    }
  }
}

}  // namespace
}  // namespace deltaproof
