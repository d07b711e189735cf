// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Recorded backward passes are within their bounds, stage by stage; with a planted fault the stage that it changes is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/stages/backward_stages.hpp"
#include "emulate/gradient_runs.hpp"
#include "support/recordings.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;

struct recorded {
  std::string name;
  problem p;
  result r;
  const plan* declared = nullptr;
};

std::vector<recorded> recorded_passes() {
  std::vector<recorded> all;
  for (const auto& entry : fs::directory_iterator(testing::carried_recordings() / "backward")) {
    const std::string name = entry.path().filename().string();
    if (name.find(".chunk.") == std::string::npos) continue;
    notes_list notes;
    recorded one;
    one.name = name.substr(0, name.find('.'));
    one.p = read_problem(entry.path().parent_path() / (one.name + ".problem.safetensors"), notes);
    const safetensors_file raw = read_safetensors(entry);
    one.r = parse_result(raw, one.p, std::string(raw.metadata("problem_sha256").value_or("")), notes);
    one.declared = plans_for_kernel(one.r.kernel, one.p, path_kind::chunk).front();
    all.push_back(std::move(one));
  }
  return all;
}

TEST(backward_stages, of_recorded_kernels_are_within_their_bounds) {
  std::size_t judged = 0;
  for (const recorded& one : recorded_passes()) {
    const backward_stage_report report = measure_backward_stages(*one.declared, one.p, one.r, 1);
    for (const stage_measurement& m : report.stages) {
      std::printf("%-24s %-15s %6zu judged, %zu bad, worst %.3f of its bound, rms %.3f\n", one.name.c_str(), m.name.c_str(),
                  m.judged, m.bad, m.worst ? m.worst->ratio : 0.0, m.rms_ratio);
      EXPECT_EQ(m.bad, 0U) << one.name << " " << describe(m);
      EXPECT_EQ(m.unbounded, 0U) << one.name << " " << m.name;
      judged += m.judged;
    }
    EXPECT_EQ(report.first_bad(), nullptr);
    EXPECT_GE(report.stages.size(), 5U) << one.name;
  }
  EXPECT_GT(judged, 100000U);
}

TEST(backward_stages, that_a_plan_computes_in_another_way_are_not_judged_and_it_is_said_why) {
  std::size_t looked_at = 0;
  for (const recorded& one : recorded_passes()) {
    if (measure_backward_stages(*one.declared, one.p, one.r, 1).find("dbeta") == nullptr) continue;
    plan divides = *one.declared;
    divides.backward.dbeta_form = {step_gradient::divide};
    const backward_stage_report report = measure_backward_stages(divides, one.p, one.r, 1);
    EXPECT_EQ(report.find("dbeta"), nullptr) << one.name;
    const auto why = std::find_if(report.unjudged.begin(), report.unjudged.end(),
                                  [](const unjudged_stage& stage) { return stage.name == "dbeta"; });
    ASSERT_NE(why, report.unjudged.end()) << one.name;
    EXPECT_EQ(why->reason, "the plan's [backward] dbeta_form is \"divide\", and dbeta is not recomputed for that form");
    ++looked_at;
  }
  EXPECT_GT(looked_at, 0U);
}

TEST(backward_stages, a_wrong_element_is_named_by_its_chunk_and_its_row_in_it) {
  std::size_t places = 0;
  for (const recorded& one : recorded_passes()) {
    if (one.p.sequence_count() != 1 || one.p.num_householder != 1) continue;
    const backward_stage_report right = measure_backward_stages(*one.declared, one.p, one.r, 1);
    for (const auto& [name, given] : one.r.gradients) {
      if (right.find(name) == nullptr || name == "dinitial_state") continue;
      result wrong = one.r;
      std::vector<double> values = given.to_doubles();
      values.back() = values.back() > 0 ? -1024 : 1024;  // of the last token
      wrong.gradients.at(name) = tensor::from_doubles(given.element_format(), given.shape(), values, name);
      const backward_stage_report report = measure_backward_stages(*one.declared, one.p, wrong, 1);
      ASSERT_TRUE(report.find(name)->first_bad) << name << " of " << one.name;
      EXPECT_EQ(report.find(name)->first_bad->chunk, (one.p.tokens() - 1) / *one.r.chunk_size) << name << " of " << one.name;
      EXPECT_EQ(report.find(name)->first_bad->row, (one.p.tokens() - 1) % *one.r.chunk_size) << name << " of " << one.name;
      ++places;
    }
  }
  EXPECT_GT(places, 20U);
}

TEST(backward_stages, of_emulated_kernels_are_within_their_bounds) {
  std::size_t runs = 0, judged = 0;
  for (const format& x : {bf16, fp16, fp32}) {
    for (const auto& [name, p] : testing::problems_with_gradients(x)) {
      for (const plan* declared : candidate_plans(p, path_kind::chunk)) {
        for (const std::size_t chunk : {std::size_t{16}, std::size_t{64}}) {
          if (std::find(declared->chunk.begin(), declared->chunk.end(), chunk) == declared->chunk.end()) continue;
          for (const plan_variant& v : gradient_variants(*declared, p, path_kind::chunk, chunk)) {
            emulation_options options;
            options.stages = true;
            options.noise_ulps = 1;
            options.seed = ++runs;
            options.natural_exponents = runs % 2 == 0;
            const backward_stage_report report = measure_backward_stages(*declared, p, emulate_gradients(p, v, options, 1), 1);
            for (const stage_measurement& m : report.stages) {
              EXPECT_EQ(m.bad, 0U) << name << " in " << name_of(x) << ", " << v.name << ", chunk " << chunk << ": "
                                   << describe(m);
              judged += m.judged;
            }
          }
        }
      }
    }
  }
  std::printf("%zu runs, %zu elements\n", runs, judged);
  EXPECT_GT(runs, 500U);
}

/// The preset with two formats where [backward] states one for `key`; nothing where it states none.
std::optional<plan> with_a_choice(const std::string& preset, const std::string& key) {
  std::ifstream file(fs::path(DELTAPROOF_SOURCE_DIR) / "src/plan/presets" / (preset + ".toml"));
  std::stringstream text;
  bool backward = false, changed = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("[")) backward = line == "[backward]";
    for (const auto& [one, other] : {std::pair{"\"X\"", "\"fp32\""}, std::pair{"\"fp32\"", "\"X\""}}) {
      if (!backward || line != key + " = " + one) continue;
      line = key + " = [" + one + ", " + other + "]";
      changed = true;
      break;
    }
    text << line << "\n";
  }
  return changed ? std::optional(parse_plan(text.str(), preset)) : std::nullopt;
}

// A kernel may make any choice that its plan leaves.
TEST(backward_stages, of_each_choice_of_a_plan_are_within_their_bounds) {
  std::size_t chosen = 0;
  for (const auto& [preset, op] :
       {std::pair{"fla-chunk-delta", op_kind::delta_rule}, std::pair{"fla-chunk-gdn", op_kind::gated_delta_rule},
        std::pair{"fla-chunk-kda-shifted-gate", op_kind::kda}}) {
    generation g;
    g.op = op;
    g.tokens = 70;
    g.key_dim = 16;
    g.value_dim = 12;
    g.key_heads = g.value_heads = 1;
    g.cotangents = true;
    problem p = generate(g);
    p.qk_l2norm = true;
    p.scale = -0.7;
    for (const char* key : {"accumulate", "operand", "read_operand", "intra_operand", "dh", "dv_local", "dv2", "dw", "ds",
                            "dA_between", "dA", "state_sum", "dg", "dq", "dk", "dbeta", "group_sum", "group_store", "none"}) {
      const std::optional<plan> declared = std::string(key) == "none" ? plan_named(preset) : with_a_choice(preset, key);
      if (!declared) continue;
      for (const plan_variant& v : gradient_variants(*declared, p, path_kind::chunk, 32)) {
        emulation_options options;
        options.stages = true;
        options.natural_exponents = ++chosen % 2 == 0;
        result r = emulate_gradients(p, v, options, 1);
        r.stages.erase("Aqk");  // what is not stored is recomputed
        const backward_stage_report report = measure_backward_stages(*declared, p, r, 1);
        for (const stage_measurement& m : report.stages) EXPECT_EQ(m.bad, 0U) << key << ", " << v.name << ": " << describe(m);
      }
    }
  }
  EXPECT_GT(chosen, 100U);
}

// One product and one scale leave no slack: a scale below 0 must not narrow the bound.
TEST(backward_stages, at_a_scale_below_0_are_within_their_bounds) {
  const plan declared = plan_named("fp32");
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    generation g;
    g.op = op_kind::kda;
    g.tokens = 130;
    g.key_dim = g.value_dim = 1;
    g.key_heads = g.value_heads = 1;
    g.cotangents = true;
    g.seed = seed;
    problem p = generate(g);
    p.scale = -0.7;
    emulation_options options;
    options.stages = true;
    const result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front(), options, 1);
    const backward_stage_report report = measure_backward_stages(declared, p, r, 1);
    for (const stage_measurement& m : report.stages) EXPECT_EQ(m.bad, 0U) << "seed " << seed << ": " << describe(m);
  }
}

// In fp16 the products of ⟨h, dh⟩ lose what lies below its smallest number.
TEST(backward_stages, whose_sums_underflow_in_fp16_are_within_their_bounds) {
  generation g;
  g.regime = "state-cotangent";
  g.op = op_kind::kda;
  g.dtype = fp16;
  g.tokens = 63;
  g.key_dim = g.value_dim = 1;
  g.key_heads = g.value_heads = 4;
  g.cotangents = true;
  problem p = generate(g);
  const auto scaled = [](const tensor& t) {
    std::vector<double> values = t.to_doubles();
    for (double& x : values) x *= 0x1p-13;
    return tensor::from_doubles(t.element_format(), t.shape(), values, t.name());
  };
  p.initial_state = scaled(*p.initial_state);
  p.d_final_state = scaled(*p.d_final_state);
  const plan declared = plan_named("fla-chunk-kda-safe-gate");
  emulation_options options;
  options.stages = true;
  const result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 16).front(), options, 1);
  const backward_stage_report report = measure_backward_stages(declared, p, r, 1);
  for (const stage_measurement& m : report.stages) EXPECT_EQ(m.bad, 0U) << describe(m);
}

TEST(backward_stages, a_planted_fault_shows_first_in_the_stage_it_names) {
  std::size_t named = 0, possible = 0;
  for (const recorded& one : recorded_passes()) {
    const plan_variant v = gradient_variants(*one.declared, one.p, path_kind::chunk, *one.r.chunk_size).front();
    emulation_options without;
    without.stages = true;
    const result right = emulate_gradients(one.p, v, without, 1);
    for (const fault& f : faults(pass_kind::backward)) {
      const bool judged =
          std::find(judged_backward_stages.begin(), judged_backward_stages.end(), f.stage) != judged_backward_stages.end();
      if (!judged || !applies(f, one.p, path_kind::chunk)) continue;
      emulation_options options;
      options.planted = &f;
      options.stages = true;
      const result wrong = emulate_gradients(one.p, v, options, 1);
      if (wrong.backward_stages.count(std::string(f.stage)) + wrong.gradients.count(std::string(f.stage)) == 0) continue;
      const auto bits = [&](const result& r) {
        const auto stage = r.backward_stages.find(std::string(f.stage));
        return (stage == r.backward_stages.end() ? r.gradients.at(std::string(f.stage)) : stage->second).to_doubles();
      };
      if (bits(wrong) == bits(right)) continue;  // these inputs do not show it
      ++possible;
      const backward_stage_report report = measure_backward_stages(*one.declared, one.p, wrong, 1);
      const bool found = report.first_bad() != nullptr && report.first_bad()->name == f.stage;
      named += found ? 1 : 0;
      if (!found) {
        std::printf("%s on %s: in %s, not named (%s)\n", std::string(f.name).c_str(), one.name.c_str(),
                    std::string(f.stage).c_str(), report.first_bad() == nullptr ? "nothing" : report.first_bad()->name.c_str());
      }
    }
  }
  std::printf("%zu of %zu faults are named by their stage\n", named, possible);
  EXPECT_GT(possible, 60U);
  EXPECT_GE(static_cast<double>(named), 0.9 * static_cast<double>(possible));
}

}  // namespace
}  // namespace deltaproof
