// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Correct backward passes that add in another order than a kernel of fla does, formed here from the stages that a run stores, and
// gradients that are more accurate than any kernel's. Updates are small beside the states, so that little else is rounded.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/files/golden.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof {
namespace {

constexpr std::size_t chunk = 64;

problem small_updates(op_kind op, std::size_t tokens, const format& dtype, std::uint64_t seed, const char* beta = "0.00005") {
  generation g;
  g.op = op;
  g.tokens = tokens;
  g.key_dim = 64;
  g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  g.dtype = dtype;
  g.beta = beta;
  if (op != op_kind::delta_rule) g.gate = "-0.00000001";
  g.initial_state = "normal";
  g.cotangents = true;
  g.seed = seed;
  return generate(g);
}

result run(const problem& p, const std::string& by) {
  emulation_options options;
  options.stages = true;
  result r = emulate_gradients(p, gradient_variants(plan_named(by), p, path_kind::chunk, chunk).front(), options);
  r.o = tensor();
  r.final_state.reset();
  return r;
}

void replace(result& r, const std::string& name, const std::vector<float>& values) {
  tensor& t = r.gradients.at(name);
  t = tensor::from_doubles(t.element_format(), t.shape(), std::vector<double>(values.begin(), values.end()), name);
}

/// Without stages, which say in which order a sum was formed.
void expect_no_refusal(const problem& p, result r, const std::string& by) {
  r.stages.clear();
  r.backward_stages.clear();
  check_options options;
  options.plans = {plan_named(by)};
  options.judge.power = false;
  const check_report report = check(p, r, options);
  EXPECT_NE(report.judged, verdict::refuted) << by << ": " << report.reason;
}

// What a token adds to dg is far below its ulp: a kernel that adds from token to token has one dg for a chunk, and the exact dg,
// rounded, steps once or twice.
TEST(gradient_orders, of_exact_dg_are_no_fault_where_kernels_have_one_for_a_chunk) {
  for (const std::uint64_t seed : {1U, 2U, 35U, 54U}) {
    problem p = small_updates(op_kind::gated_delta_rule, 150, bf16, seed, "0.0000001");
    p.d_o.reset();
    golden_request asked;
    asked.round = fp32;
    result exact = run(p, "fla-chunk-gdn");
    for (auto& [name, known] : make_golden_gradients(p, asked).tensors) exact.gradients.at(name) = std::move(known.parts.front());
    for (const char* by : {"fla-chunk-gdn", "fp32"}) expect_no_refusal(p, exact, by);
  }
}

TEST(gradient_orders, of_dg_by_a_parallel_scan_are_no_fault) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    problem p = small_updates(op_kind::gated_delta_rule, 192, fp16, seed);
    p.d_o.reset();
    result r = run(p, "fp32");
    const std::vector<double> local = r.backward_stages.at("dg_local").to_doubles();
    std::vector<float> dg(local.begin(), local.end());
    for (std::size_t first = 0; first < dg.size(); first += chunk) {
      for (std::size_t step = 1; step < chunk; step *= 2) {
        for (std::size_t t = first; t + step < first + chunk; ++t) dg[t] += dg[t + step];
      }
    }
    replace(r, "dg", dg);
    expect_no_refusal(p, r, "fp32");
  }
}

// As fragments of an accumulator do: dS + scale q^T do - w^T dv2, term by term.
TEST(gradient_orders, of_a_state_that_is_added_to_in_place_are_no_fault) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const problem p = small_updates(op_kind::delta_rule, chunk, fp32, seed);
    result r = run(p, "fp32");
    const auto floats = [](const tensor& t) {
      const std::vector<double> x = t.to_doubles();
      return std::vector<float>(x.begin(), x.end());
    };
    const std::size_t K = p.key_dim(), V = p.value_dim();
    const std::vector<float> q = floats(p.q), d_o = floats(*p.d_o), w = floats(r.stages.at("w")),
                             dv2 = floats(r.backward_stages.at("dv2"));
    std::vector<float> dS = floats(*p.d_final_state);
    const auto scale = static_cast<float>(p.scale);
    for (std::size_t m = 0; m < K * V; ++m) {
      const std::size_t i = m / V, j = m % V;
      for (std::size_t t = 0; t < chunk; ++t) dS[m] += scale * q[t * K + i] * d_o[t * V + j];
      for (std::size_t t = 0; t < chunk; ++t) dS[m] -= w[t * K + i] * dv2[t * V + j];
    }
    replace(r, "dinitial_state", dS);
    expect_no_refusal(p, r, "fp32");
  }
}

}  // namespace
}  // namespace deltaproof
