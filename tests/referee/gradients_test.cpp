// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The referee on gradients: emulated backward passes hold, planted faults of them are refuted in the gradient that is wrong.
#include "referee/gradients.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "deltaproof/emulate/faults.hpp"
#include "referee/gradient_cases.hpp"
#include "support/multiplier.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

using referee_detail::bucket;
using referee_detail::buckets_from_the_end;
using ::testing::HasSubstr;

TEST(gradients_by_plan, buckets_are_counted_from_the_last_chunk) {
  const auto text = [](std::size_t from, std::size_t until, std::size_t unit) {
    std::string out;
    for (const bucket& b : buckets_from_the_end(from, until, unit))
      out += (out.empty() ? "" : " ") + std::to_string(b.first) + "-" + std::to_string(b.last);
    return out;
  };
  EXPECT_EQ(text(0, 64, 64), "0-64");
  EXPECT_EQ(text(0, 150, 64), "128-150 64-128 0-64");
  EXPECT_EQ(text(0, 512, 64), "448-512 384-448 256-384 0-256");
  EXPECT_EQ(text(100, 150, 64), "128-150 100-128");
  EXPECT_EQ(text(0, 5, 64), "0-5");
  EXPECT_EQ(text(3, 3, 64), "");
  for (std::size_t from = 0; from < 9; ++from) {
    for (std::size_t until = from; until < 70; ++until) {
      std::size_t next = until;
      for (const bucket& b : buckets_from_the_end(from, until, 4)) {
        EXPECT_EQ(b.last, next);
        EXPECT_LT(b.first, b.last);
        EXPECT_TRUE(b.first % 4 == 0 || b.first == from);
        next = b.first;
      }
      EXPECT_EQ(next, from);
    }
  }
}

problem made(op_kind op, std::size_t tokens = 100, std::size_t value_heads = 1) {
  generation g;
  g.op = op;
  g.tokens = tokens;
  g.key_dim = 32;
  g.value_dim = 32;
  g.key_heads = 1;
  g.value_heads = value_heads;
  g.seed = 11;
  g.cotangents = true;
  return generate(g);
}

std::string preset_of(op_kind op) {
  return op == op_kind::delta_rule ? "fla-chunk-delta" : op == op_kind::kda ? "fla-chunk-kda" : "fla-chunk-gdn";
}

check_report judged(const problem& p, const result& r, const std::string& plan, bool power = false,
                    const std::shared_ptr<referee_memory>& memory = {}) {
  check_options options;
  options.memory = memory;
  options.plans = {plan_named(plan)};
  options.judge.power = power;
  return check(p, r, options);
}

std::set<std::string> refuted_tensors(const check_report& report) {
  std::set<std::string> out;
  for (const judged_statistic& s : report.conformance->statistics) {
    if (s.judged == verdict::refuted) out.insert(s.tensor);
  }
  return out;
}

// A limit of first order, its part of second order undone, in units of 1 + reach: what one run's mean may be low by is beyond 1.
TEST(gradients_by_plan, of_a_head_that_runs_once_have_room_for_a_run_that_erred_little) {
  generation g;
  g.op = op_kind::delta_rule;
  g.tokens = 20;
  g.key_dim = g.value_dim = 4;  // few roundings: large spreads
  g.key_heads = g.value_heads = 2;
  g.seed = 11;
  g.cotangents = true;
  const problem p = generate(g);
  check_options options;
  options.plans = {plan_named("fla-chunk-delta")};
  options.judge.power = false;
  options.judge.seconds = 1e-4;
  const result r = emulate_gradients(p, gradient_variants(options.plans.front(), p, path_kind::chunk, 64).front());
  const check_report report = check(p, r, options);
  ASSERT_THAT(report.conformance->gradients.slice, HasSubstr("key head 0; the other key head was run once"));
  std::array<double, 2> most{0, 0};
  for (const judged_statistic& s : report.conformance->statistics) {
    if (s.tensor != "dv" || s.norm != norm_kind::max || s.limit.provenance.find("of first order") == std::string::npos) continue;
    const double first = s.limit.value * s.truth / (s.limit.value + s.truth);
    const double linear = 1 + s.limit.quantile * s.limit.spread * std::sqrt(2.0);
    most[s.head] = std::max(most[s.head], first / s.limit.typical / linear);
  }
  EXPECT_LE(most[0], 1 + 1e-9);
  EXPECT_GT(most[1], 1.02);
}

TEST(gradients_by_plan, of_emulated_kernels_hold_with_outputs_or_alone) {
  for (const op_kind op : {op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda}) {
    const problem p = made(op, 100, 2);
    const plan declared = plan_named(preset_of(op));
    result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front());
    for (const bool alone : {false, true}) {
      if (alone) {
        r.o = tensor();
        r.final_state.reset();
      }
      const check_report report = judged(p, r, declared.name);
      EXPECT_EQ(report.judged, verdict::holds) << declared.name << ": " << report.reason;
      ASSERT_TRUE(report.conformance->gradients.judged);
      std::set<std::string> tensors;
      for (const judged_statistic& s : report.conformance->statistics) tensors.insert(s.tensor);
      EXPECT_EQ(tensors.size(), (alone ? 0U : 2U) + r.gradients.size()) << declared.name;
      EXPECT_EQ(report.conformance->tests,
                report.conformance->statistics.size());  // without power: every limit is one of a statistic
    }
  }
}

// What is wrong before any gradient is looked at stays as it is: limits of a result without gradients depend on nothing new.
TEST(gradients_by_plan, share_the_probability_and_leave_a_result_without_them_alone) {
  const problem p = made(op_kind::gated_delta_rule);
  const plan declared = plan_named("fla-chunk-gdn");
  const result with = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front());
  result without = with;
  without.gradients.clear();
  const check_report a = judged(p, with, declared.name), b = judged(p, without, declared.name);
  EXPECT_FALSE(b.conformance->gradients.judged);
  EXPECT_EQ(b.conformance->tests, b.conformance->statistics.size());
  EXPECT_EQ(a.conformance->tests, a.conformance->gradients.tests + b.conformance->tests);
  // Runs of one law take four orders of sums in turn, and a kernel has one of them.
  for (const judged_statistic& s : a.conformance->statistics)
    EXPECT_DOUBLE_EQ(s.limit.alpha * static_cast<double>(4 * a.conformance->tests), a.conformance->false_alarm);
  const auto json = nlohmann::json::parse(to_json(b, {}));
  EXPECT_FALSE(json.at("false_alarm").contains("gradients"));
  EXPECT_TRUE(nlohmann::json::parse(to_json(a, {})).at("false_alarm").contains("gradients"));
  EXPECT_THAT(to_text(a, {}), HasSubstr("; dg rms "));
}

// A run of the backward pass has the forward pass of the run that a check of the outputs makes: it is made once. fp64 is measured
// in double-doubles; a key head of two value heads shares nothing.
TEST(gradients_by_plan, a_forward_pass_made_for_its_gradients_is_the_one_a_check_of_outputs_makes) {
  for (const auto& [plan, value_heads] : {std::pair("fla-chunk-gdn", 1), std::pair("fp64", 1), std::pair("fp32", 2)}) {
    const problem p = made(op_kind::gated_delta_rule, 100, static_cast<std::size_t>(value_heads));
    const plan_variant v = gradient_variants(plan_named(plan), p, path_kind::chunk, 64).front();
    const result both = emulate_gradients(p, v);
    result outputs = both;
    outputs.gradients.clear();
    outputs.backward_stages.clear();
    const check_report with = judged(p, both, plan);
    // The same probability for each test, which decides what variant a limit comes from.
    check_options options;
    options.plans = {plan_named(plan)};
    options.judge.power = false;
    const std::size_t own = judged(p, outputs, plan).conformance->tests;
    options.judge.false_alarm *= static_cast<double>(own) / static_cast<double>(with.conformance->tests);
    const check_report without = check(p, outputs, options);
    ASSERT_FALSE(without.conformance->statistics.empty());
    for (std::size_t i = 0; i < without.conformance->statistics.size(); ++i) {
      const judged_statistic &x = with.conformance->statistics[i], &y = without.conformance->statistics[i];
      EXPECT_EQ(x.tensor, y.tensor);
      // The fp64 truth of both passes adds its sums in another order than that of outputs, which is in fp32 where errors dwarf
      // it; another run would differ by percents.
      const double apart = std::string(plan) == "fla-chunk-gdn" ? 1e-4 : 1e-6;
      EXPECT_NEAR(x.limit.value, y.limit.value, apart * y.limit.value) << plan << " " << x.tensor;
      EXPECT_NEAR(x.limit.typical, y.limit.typical, apart * y.limit.typical) << plan << " " << x.tensor;
    }
  }
}

TEST(gradients_by_plan, planted_faults_are_refuted_in_a_gradient) {
  std::size_t planted = 0, refuted = 0, forward_refuted = 0;
  std::string missed;
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    const problem p = made(op, 150, 2);
    const plan declared = plan_named(preset_of(op));
    const plan_variant variant = gradient_variants(declared, p, path_kind::chunk, 64).front();
    const auto memory = make_referee_memory();
    for (const fault& f : faults(pass_kind::backward)) {
      if (!applies(f, p, path_kind::chunk)) continue;
      emulation_options options;
      options.planted = &f;
      const check_report report = judged(p, emulate_gradients(p, variant, options), declared.name, false, memory);
      ++planted;
      const auto tensors = refuted_tensors(report);
      forward_refuted += tensors.count("o") + tensors.count("final_state");
      if (!tensors.empty()) {
        ++refuted;
      } else {
        missed += " " + std::string(name_of(op)) + ":" + std::string(f.name);
      }
    }
  }
  EXPECT_EQ(forward_refuted, 0U);
  // Some change less than rounding does on these inputs.
  EXPECT_GE(refuted * 10, planted * 8) << refuted << " of " << planted << "; missed:" << missed;
}

// The only planted fault whose gradients overflow where those of the plan do not.
TEST(gradients_by_plan, power_counts_a_fault_whose_gradients_are_not_finite) {
  generation g;
  g.op = op_kind::kda;
  g.gate = "-40";
  g.tokens = 16;
  g.key_dim = g.value_dim = 32;
  g.key_heads = g.value_heads = 1;
  g.cotangents = true;
  const problem p = generate(g);
  const plan declared = plan_named("fla-chunk-kda");
  const plan_variant variant = gradient_variants(declared, p, path_kind::chunk, 64).front();
  emulation_options options;
  options.planted = &fault_named("dg-diagonal-in-blocks");
  EXPECT_EQ(judged(p, emulate_gradients(p, variant, options), declared.name).judged, verdict::refuted);
  const check_report clean = judged(p, emulate_gradients(p, variant), declared.name, true);
  EXPECT_NE(clean.judged, verdict::refuted) << clean.reason;
  const std::vector<const fault*>& visible = clean.conformance->power.visible;
  EXPECT_NE(std::find(visible.begin(), visible.end(), options.planted), visible.end());
}

TEST(gradients_by_plan, a_fault_is_named_and_its_power_is_stated) {
  const problem p = made(op_kind::gated_delta_rule, 128, 1);
  const plan declared = plan_named("fla-chunk-gdn");
  const plan_variant variant = gradient_variants(declared, p, path_kind::chunk, 64).front();
  const auto memory = make_referee_memory();
  const check_report clean = judged(p, emulate_gradients(p, variant), declared.name, true, memory);
  EXPECT_EQ(clean.judged, verdict::holds) << clean.reason;
  ASSERT_TRUE(clean.conformance->power.ran);
  std::vector<const fault*> visible;
  for (const fault* f : clean.conformance->power.visible) {
    if (f->pass == pass_kind::backward) visible.push_back(f);
  }
  EXPECT_GE(visible.size(), 15U);
  EXPECT_THAT(clean.conformance->power.slice, HasSubstr("gradients of sequence 0 key head 0"));
  std::size_t named = 0, tried = 0;
  for (std::size_t i = 0; i < visible.size(); i += 4, ++tried) {
    emulation_options options;
    options.planted = visible[i];
    options.noise_ulps = 1;
    options.seed = 5;
    const check_report report = judged(p, emulate_gradients(p, variant, options), declared.name, true, memory);
    EXPECT_EQ(report.judged, verdict::refuted) << visible[i]->name;
    EXPECT_FALSE(report.conformance->first_bad_stage.empty());
    const auto& suspects = report.conformance->suspects;
    named +=
        std::any_of(suspects.begin(), suspects.end(), [&](const suspect& s) { return s.planted == visible[i] && s.is_alike(); })
            ? 1
            : 0;
  }
  EXPECT_GE(10 * named, 7 * tried) << named << " of " << tried;
}

TEST(gradients_by_plan, not_finite_ones_are_refuted_and_named) {
  const problem p = made(op_kind::kda);
  const plan declared = plan_named("fla-chunk-kda");
  result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front());
  std::vector<double> values = r.gradients.at("dk").to_doubles();
  values[7] = std::nan("");
  r.gradients.at("dk") = tensor::from_doubles(r.gradients.at("dk").element_format(), r.gradients.at("dk").shape(), values, "dk");
  const check_report report = judged(p, r, declared.name);
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_THAT(report.reason, HasSubstr("dk is nan at sequence 0, key head 0, token 0"));
  EXPECT_EQ(refuted_tensors(report), std::set<std::string>{"dk"});
}

// What is stored and not looked at is said: a reader would take it for judged.
TEST(gradients_by_plan, stages_that_cannot_be_recomputed_are_named_with_the_reason) {
  problem p = made(op_kind::gated_delta_rule);
  p.rule = rule_kind::exact;
  const plan declared = plan_named("fla-chunk-gdn");
  emulation_options stages;
  stages.stages = true;
  result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front(), stages);
  r.stages.erase("h");
  const check_report report = judged(p, r, declared.name);
  EXPECT_NE(report.judged, verdict::refuted) << report.reason;
  std::map<std::string, std::string> said;
  const auto json = nlohmann::json::parse(to_json(report, {}));
  for (const auto& one : json.at("stages_without_bounds")) said[one["name"]] = one["reason"];
  EXPECT_EQ(said["dw"], "h is not stored");
  EXPECT_EQ(said.count("dk"), 0U) << "compared with the exact gradient";
  EXPECT_THAT(to_text(report, {}), HasSubstr("\nno bounds "));
  EXPECT_THAT(to_text(report, {}), HasSubstr("dw"));
  EXPECT_EQ(said.count("dh"), 0U);
}

TEST(gradients_by_plan, a_plan_without_a_backward_section_measures_them) {
  const problem p = made(op_kind::gated_delta_rule);
  const plan declared = plan_named("fla-chunk-gdn");
  result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front());
  plan silent = declared;
  silent.backward = {};
  check_options options;
  options.plans = {silent};
  options.judge.power = false;
  const check_report report = check(p, r, options);
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  EXPECT_FALSE(report.conformance->gradients.judged);
  EXPECT_THAT(to_text(report, {}), HasSubstr("the plan has no [backward] section"));
  r.o = tensor();
  r.final_state.reset();
  EXPECT_THAT(testing::thrown([&] { (void)check(p, r, options); }), HasSubstr("has no [backward] section"));
}

// Nothing was stopped: no more time would help.
TEST(gradients_by_plan, of_no_tokens_are_vacuous) {
  const problem p = made(op_kind::delta_rule, 0);
  const plan declared = plan_named("fla-chunk-delta");
  result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front());
  r.o = tensor();
  r.final_state.reset();
  r.gradients.erase("dinitial_state");
  check_options options;
  options.plans = {declared};
  const check_report report = check(p, r, options);
  EXPECT_EQ(report.judged, verdict::vacuous) << report.reason;
  EXPECT_THAT(report.remedy, HasSubstr("at least one token"));
  EXPECT_THAT(to_text(report, {}), HasSubstr("the plan limits no element of them"));
  EXPECT_THAT(to_text(report, {}), ::testing::Not(HasSubstr("--no-power")));
}

// With no state before it one token's gate changes nothing: dg is exactly 0, and sums that cancel leave their roundings there.
TEST(gradients_by_plan, of_one_token_from_no_state_are_no_reason_to_call_a_plan_inadequate) {
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    problem p = made(op, 1, 2);
    p.initial_state.reset();
    const plan declared = plan_named(preset_of(op));
    const result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front(), {}, 1);
    const std::vector<double> dg = r.gradients.at("dg").to_doubles();
    const bool cancels = std::any_of(dg.begin(), dg.end(), [](double x) { return x != 0; });
    EXPECT_TRUE(cancels || op == op_kind::kda);
    const check_report report = judged(p, r, declared.name);
    EXPECT_TRUE(report.conformance->adequacy.adequate) << report.conformance->adequacy.reason;
    EXPECT_NE(report.judged, verdict::refuted) << report.reason;
  }
  // A dg in fp32 of terms whose factors are bf16 and products of pairs of bf16: off by 2^-17 of them.
  problem p_of_pairs = made(op_kind::kda, 1, 2);
  p_of_pairs.initial_state.reset();
  const plan pairs = plan_named("fla-chunk-kda-shifted-gate");
  const result of_pairs =
      emulate_gradients(p_of_pairs, gradient_variants(pairs, p_of_pairs, path_kind::chunk, 64).front(), {}, 1);
  const check_report by_pairs = judged(p_of_pairs, of_pairs, pairs.name);
  EXPECT_TRUE(by_pairs.conformance->adequacy.adequate) << by_pairs.conformance->adequacy.reason;
  // Of fp32 inputs what cancels is off by 2^-11 of it in tf32, which is no rounding of dg.
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = 1;
  g.key_dim = g.value_dim = 32;
  g.dtype = fp32;
  g.initial_state = "none";
  g.cotangents = true;
  const problem p = generate(g);
  const plan declared = plan_named("fla-chunk-gdn");
  const result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front(), {}, 1);
  EXPECT_FALSE(judged(p, r, declared.name).conformance->adequacy.adequate);
}

// Only the final state has a cotangent, and strong gates leave of it less than fp64 holds: the gradient of the initial state is 0
// in every format that a kernel stores it in.
TEST(gradients_by_plan, of_a_state_that_is_forgotten_are_known_to_half_the_smallest_number) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = 65;
  g.key_dim = g.value_dim = 8;
  g.gate = "-12";
  g.initial_state = "normal";
  g.cotangents = true;
  problem p = generate(g);
  p.d_o.reset();
  const plan declared = plan_named("fla-chunk-gdn");
  const result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 16).front(), {}, 1);
  const check_report report = judged(p, r, declared.name);
  EXPECT_NE(report.judged, verdict::undecided) << report.reason;
  EXPECT_NE(report.judged, verdict::refuted) << report.reason;
  const auto& all = report.conformance->statistics;
  const auto state = std::find_if(all.begin(), all.end(), [](const judged_statistic& s) { return s.tensor == "dinitial_state"; });
  ASSERT_NE(state, all.end());
  EXPECT_GE(state->limit.value, smallest_subnormal(fp32) / 2);
}

// Nothing is written, and the state decays below every format: what the reference does not know of it, no format can show.
TEST(gradients_by_plan, of_outputs_that_are_forgotten_are_known_as_well) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = 65;
  g.key_dim = g.value_dim = 8;
  g.gate = "-12";
  g.beta = "0";
  g.initial_state = "normal";
  const problem p = generate(g);
  const plan declared = plan_named("fla-chunk-gdn");
  const check_report report = judged(p, emulate(p, variants(declared, p, path_kind::chunk, 16).front()), declared.name);
  EXPECT_NE(report.judged, verdict::undecided) << report.reason;
  EXPECT_NE(report.judged, verdict::refuted) << report.reason;
}

// Results of one memory with and without outputs, or without one gradient: each has the limits that it has alone.
TEST(gradients_by_plan, memory_changes_no_limit) {
  const problem p = made(op_kind::gated_delta_rule);
  const plan declared = plan_named("fla-chunk-gdn");
  const result both = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front(), {}, 1);
  result alone = both, less = both;
  alone.o = tensor();
  alone.final_state.reset();
  less.gradients.erase("dg");
  const auto memory = make_referee_memory();
  for (const result* r : std::initializer_list<const result*>{&alone, &less, &both, &alone}) {
    const check_report fresh = judged(p, *r, declared.name), remembered = judged(p, *r, declared.name, false, memory);
    ASSERT_EQ(fresh.conformance->statistics.size(), remembered.conformance->statistics.size());
    for (std::size_t i = 0; i < fresh.conformance->statistics.size(); ++i)
      EXPECT_EQ(fresh.conformance->statistics[i].limit.value, remembered.conformance->statistics[i].limit.value) << i;
  }
}

TEST(gradients_by_plan, of_a_few_drawn_kernels_raise_no_alarm) {
  for (const std::string& name : testing::backward_preset_names()) {
    const testing::gradient_alarm_count found = testing::gradient_alarms(plan_named(name), 0, scaled(2));
    EXPECT_EQ(found.alarms, 0U) << name;
    EXPECT_EQ(found.inadequate, 0U) << name;
  }
}

}  // namespace
}  // namespace deltaproof
