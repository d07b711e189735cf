// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults as small as rounding are refuted by the roundings that they draw anew; so is a part of a gross fault that is smaller
// than rounding, by its direction.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "referee/signature_cases.hpp"

namespace deltaproof {
namespace {

TEST(signatures, of_faults_as_small_as_rounding_refute_them_by_the_outputs_alone) {
  testing::refuted_counts counts;
  testing::count_refuted({"fla-chunk-gdn", op_kind::gated_delta_rule, "typical", 512}, 2, 11, counts);
  testing::count_refuted({"fla-chunk-kda", op_kind::kda, "typical", 512}, 2, 11, counts);
  testing::expect_half(counts);
}

check_options options_of(const plan& declared, bool power) {
  check_options options;
  options.plans = {declared};
  options.threads = 1;
  options.judge.power = power;
  options.memory = make_referee_memory();
  return options;
}

problem with_model_gates(op_kind op) {
  generation g;
  g.regime = "model-gates";
  g.op = op;
  g.tokens = 512;
  g.key_dim = g.value_dim = 64;
  g.key_heads = g.value_heads = 2;
  g.seed = 3;
  return generate(g);
}

// A scale or a gate that is off by a thousandth moves every element by a third of what rounding does, or less.
TEST(signatures, of_gross_faults_refute_a_part_that_no_norm_shows) {
  for (const auto& [name, op] : {std::pair{"fla-chunk-gdn", op_kind::gated_delta_rule}, {"fla-chunk-kda", op_kind::kda}}) {
    const plan declared = plan_named(name);
    const problem p = with_model_gates(op);
    const plan_variant v = variants(declared, p, path_kind::chunk, 64).front();
    emulation_options how;
    how.noise_ulps = 1;
    how.seed = 9;
    const check_options norms = options_of(declared, false), faults = options_of(declared, true);
    EXPECT_EQ(check(p, emulate(p, v, how, 1), faults).judged, verdict::holds) << name;
    problem scaled = p, gated = p;
    scaled.scale *= 1.001;
    std::vector<double> g = p.g->to_doubles();
    for (double& x : g) x = static_cast<float>(1.001 * x);
    gated.g = tensor::from_doubles(p.g->element_format(), p.g->shape(), g, "g");
    for (const problem& other : {scaled, gated}) {
      const result wrong = emulate(other, v, how, 1);
      EXPECT_EQ(check(p, wrong, norms).judged, verdict::holds) << name;
      const check_report report = check(p, wrong, faults);
      EXPECT_EQ(report.judged, verdict::refuted) << name;
      EXPECT_NE(report.reason.find("planted fault"), std::string::npos) << report.reason;
    }
  }
}

// A kernel repeats most roundings of a run on the same inputs: beside that run a five-hundredth of a fault shows, and no other
// limit is reached by it.
TEST(signatures, of_gross_faults_refute_a_part_beside_a_run_on_the_same_inputs) {
  const plan declared = plan_named("fla-chunk-gdn");
  const problem p = with_model_gates(op_kind::gated_delta_rule);
  const plan_variant v = variants(declared, p, path_kind::chunk, 64).front();
  emulation_options how;
  how.noise_ulps = 1;
  how.seed = 12;
  result r = emulate(p, v, how, 1);
  how.planted = &fault_named("gate-missing-in-A");
  const std::vector<double> faulty = emulate(p, v, how, 1).final_state->to_doubles();
  std::vector<double> state = r.final_state->to_doubles();
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = static_cast<float>(state[i] + 0.002 * (faulty[i] - state[i]));
  r.final_state = tensor::from_doubles(r.final_state->element_format(), r.final_state->shape(), state, "final_state");
  const check_report report = check(p, r, options_of(declared, true));
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_NE(report.reason.find("minus that of an emulated run on the same inputs"), std::string::npos) << report.reason;
}

// An error beside an emulated run is no fault by its size: this one is a fifth of rounding and points nowhere.
TEST(signatures, of_gross_faults_do_not_refute_roundings_that_fall_otherwise) {
  const plan declared = plan_named("fla-chunk-gdn");
  const problem p = with_model_gates(op_kind::gated_delta_rule);
  const reference exact = solve(p);
  const check_options options = options_of(declared, true);
  for (const plan_variant& v : variants(declared, p, path_kind::chunk, 64)) {
    emulation_options how;
    how.noise_ulps = 1;
    how.seed = 10;
    result r = emulate(p, v, how, 1);
    std::vector<double> state = r.final_state->to_doubles();
    double squares = 0;
    for (std::size_t i = 0; i < state.size(); ++i) squares += std::pow(state[i] - exact.final_state.value[i], 2);
    philox draw(11);
    const double rms = std::sqrt(squares / static_cast<double>(state.size()));
    for (double& x : state) x = static_cast<float>(x + 0.2 * rms * draw.normal());
    r.final_state = tensor::from_doubles(r.final_state->element_format(), r.final_state->shape(), state, "final_state");
    const check_report report = check(p, r, options);
    EXPECT_EQ(report.judged, verdict::holds) << v.name << ": " << report.reason;
  }
}

}  // namespace
}  // namespace deltaproof
