// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Uses what the diffs of examples/adding added: the op and the rule in problems that are written, read and solved; the format in
// conversions, in the emulator's loops and in a plan; the inverse in a plan that is emulated and judged. What is wrong is thrown.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>

#include "deltaproof/deltaproof.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "emulate/lane_rounding.hpp"
#include "oracle/slow_reference.hpp"

namespace deltaproof {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("not so: " + what);
}

problem small(const std::string& rule = "euler") {
  generation g;
  g.op = op_kind::delta_rule;
  g.rule = rule_named(rule);
  g.batch = g.key_heads = g.value_heads = 1;
  g.tokens = 96;
  g.key_dim = g.value_dim = 16;
  g.cotangents = true;
  return generate(g);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  require(at != std::string::npos, "the preset states " + from);
  return text.replace(at, from.size(), to);
}

void within_radius(const reference_tensor& got, const std::vector<testing::slow_real>& want, const std::string& name) {
  double largest = 0, radius = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    testing::slow_real off = want[i] - got.value[i];
    for (const auto& low : got.low) off -= low[i];
    require(abs(off) <= got.radius[i], name + "[" + std::to_string(i) + "] is within its radius");
    largest = std::max(largest, std::fabs(got.value[i]));
    radius = std::max(radius, got.radius[i]);
  }
  require(radius > 0 && radius < 1e-9 * largest, "the radius of " + name + " says something");
}

void use_op(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "op.safetensors";
  generation g;
  g.op = op_named("kda_product");
  g.batch = g.key_heads = g.value_heads = 1;
  g.tokens = 20;
  g.key_dim = g.value_dim = 8;
  write_problem(file, generate(g));
  notes_list notes;
  const problem p = read_problem(file, notes);
  require(name_of(p.op) == "kda_product", "a file names the op");
  require(p.num_householder == 2 && p.gate_per_channel(), "its row says what a token and a gate are");
  const auto truth = testing::slow_solve<>(p);
  const reference got = solve(p);
  within_radius(got.o, truth.o, "o");
  within_radius(got.final_state, truth.final_state, "final_state");
}

void use_rule(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "problem.safetensors";
  write_problem(file, small("theta34"));
  notes_list notes;
  const problem p = read_problem(file, notes);
  require(name_of(p.rule) == "theta34", "a file names the rule");
  const auto truth = testing::slow_solve<>(p);
  for (const int bits : {53, 256}) {
    question q;
    q.min_bits = bits;
    const reference got = solve(p, q);
    within_radius(got.o, truth.o, "o");
    within_radius(got.final_state, truth.final_state, "final_state");
  }
  const result run = emulate(p, variants(plan_named("fp64"), p, path_kind::recurrent, 64).front());
  for (std::size_t i = 0; i < run.final_state->size(); ++i) {
    const double want = static_cast<double>(truth.final_state[i]);
    require(std::fabs(run.final_state->at(i) - want) <= 1e-11 * (1 + std::fabs(want)), "an emulated kernel follows the rule");
  }
  // Another rule gives something else.
  problem other = p;
  other.rule = rule_kind::implicit;
  const reference apart = solve(other);
  double most = 0;
  for (std::size_t i = 0; i < apart.o.value.size(); ++i)
    most = std::max(most, std::fabs(apart.o.value[i] - static_cast<double>(truth.o[i])));
  require(most > 1e-4, "the rule matters on these inputs");
}

void use_format() {
  const format pxr24 = format_named("pxr24");
  std::mt19937_64 random(1);
  mpfr_t nearest;
  mpfr_init2(nearest, pxr24.precision);
  for (int i = 0; i < 100000; ++i) {
    const double x = std::ldexp(static_cast<double>(random()) * 0x1p-64 - 0.5, static_cast<int>(random() % 200) - 100);
    mpfr_set_d(nearest, x, MPFR_RNDN);
    const double want = mpfr_get_d(nearest, MPFR_RNDN);
    require(round_nearest(x, pxr24) == want, "round_nearest");
    require(round_nearest(exact(x), pxr24) == want, "round_nearest of a rational");
    require(emulation::rounding<double>(pxr24)(x, false) == want, "the emulator's rounding of doubles");
    mpfr_set_d(nearest, static_cast<float>(x), MPFR_RNDN);
    require(emulation::rounding<float>(pxr24)(static_cast<float>(x), false) == mpfr_get_d(nearest, MPFR_RNDN),
            "the emulator's rounding of floats");
  }
  mpfr_clear(nearest);
  const problem p = small();
  const auto o_of = [&](const std::string& operand) {
    const std::string text =
        replaced(std::string(plan_text("fp32")), "[o]\noperand = \"fp32\"", "[o]\noperand = \"" + operand + "\"");
    return emulate(p, variants(parse_plan(text, operand), p, path_kind::chunk, 64).front()).o.to_doubles();
  };
  const auto fine = o_of("fp32"), coarse = o_of("bf16"), added = o_of("pxr24");
  double from_fine = 0, from_coarse = 0;
  for (std::size_t i = 0; i < fine.size(); ++i) {
    from_fine += std::fabs(added[i] - fine[i]);
    from_coarse += std::fabs(coarse[i] - fine[i]);
  }
  require(from_fine > 0 && from_fine < from_coarse / 16, "operands of 16 bits lie between those of fp32 and bf16");
}

void use_inverse(const std::filesystem::path& folder) {
  const std::string name = "forward32+block2";
  const std::filesystem::path file = folder / "mine.toml";
  std::ofstream(file) << replaced(
      replaced(std::string(plan_text("fp32")), "method = [\"forward\", \"forward16+block\", \"forward32+block\"]",
               "method = \"" + name + "\""),
      "name = \"fp32\"", "name = \"mine\"");
  const problem p = small();
  const plan_variant one = variants(plan_named(file.string()), p, path_kind::chunk, 64).front();
  require(name_of(one.inverse.method) == name, "the plan has the inverse");
  emulation_options options;
  options.stages = true;
  result r = emulate(p, one, options);
  check_request asked;
  asked.plan = file.string();
  require(answer(p, r, asked, {}).report.judged == verdict::holds, "what keeps the plan holds");
  auto o = r.o.to_doubles();
  for (double& x : o) x = static_cast<float>(x * 1.0625);
  r.o = tensor::from_doubles(fp32, r.o.shape(), o, "o");
  require(answer(p, r, asked, {}).report.judged == verdict::refuted, "what does not is refuted");
}

}  // namespace
}  // namespace deltaproof

int main(int, char** argv) try {
  deltaproof::use_op(argv[1]);
  deltaproof::use_rule(argv[1]);
  deltaproof::use_format();
  deltaproof::use_inverse(argv[1]);
  return 0;
} catch (const std::exception& wrong) {
  std::cerr << wrong.what() << '\n';
  return 1;
}
