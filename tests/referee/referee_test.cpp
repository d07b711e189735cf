// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/referee/referee.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emulate/products.hpp"
#include "referee/parts.hpp"
#include "referee/referee_cases.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const plan& preset(std::string_view name) {
  return *std::find_if(plans().begin(), plans().end(), [&](const plan& x) { return x.name == name; });
}

problem small(op_kind op, const std::string& regime = "typical", std::size_t tokens = 100) {
  generation g;
  g.regime = regime;
  g.op = op;
  g.tokens = tokens;
  g.key_dim = 32;
  g.value_dim = 24;
  g.key_heads = 1;
  g.value_heads = 2;
  return generate(g);
}

/// One problem and plan, and whatever kernels leave on it.
struct bench {
  problem p;
  const plan& declared;
  path_kind path;
  std::size_t chunk;
  check_options options{};
  reference truth{};

  bench(problem what, std::string_view plan_name, std::size_t rows = 32)
      : p{std::move(what)}, declared{preset(plan_name)}, path{declared.path.front()} {
    chunk = path == path_kind::chunk ? rows : 0;
    options.plans = {declared};
    options.threads = 1;
    options.memory = make_referee_memory();
  }
  [[nodiscard]] result run(const fault* planted = nullptr, bool stages = true) const {
    emulation_options how;
    how.planted = planted;
    how.stages = stages;
    return emulate(p, variants(declared, p, path, chunk).front(), how, 1);
  }
  [[nodiscard]] check_report judge(const result& r) const { return check(p, r, options); }
};

const stage_measurement& stage_of(const plan_report& report, std::string_view name) {
  return *report.measured_stages->find(name);
}

TEST(referee, holds_for_a_kernel_that_keeps_its_plan) {
  for (const auto& [op, name] : {std::pair{op_kind::gated_delta_rule, "fla-chunk-gdn"},
                                 {op_kind::kda, "fla-chunk-kda"},
                                 {op_kind::delta_rule, "fla-recurrent-delta"},
                                 {op_kind::gated_delta_product, "fla-chunk-gdp"},
                                 {op_kind::kda, "fp32"}}) {
    const bench b(small(op, "typical", 70), name);
    const check_report report = b.judge(b.run());
    ASSERT_TRUE(report.conformance) << name;
    const plan_report& plan = *report.conformance;
    EXPECT_EQ(report.judged, verdict::holds) << name << ": " << report.reason;
    EXPECT_EQ(plan.conforms, verdict::holds) << name << ": " << plan.reason;
    EXPECT_TRUE(plan.adequacy.adequate) << name << ": " << plan.adequacy.reason;
    EXPECT_THAT(testing::alarms_of(plan), IsEmpty()) << name;
    EXPECT_THAT(plan.first_bad_stage, IsEmpty()) << name;
    EXPECT_TRUE(plan.power.ran);
    EXPECT_THAT(plan.power.visible, Not(IsEmpty()));
    EXPECT_EQ(plan.stages.empty(), b.path == path_kind::recurrent);
    EXPECT_GT(plan.tests, plan.statistics.size());
  }
}

// Better than the plan is no fault, whichever of its roundings a kernel leaves out.
TEST(referee, holds_for_a_kernel_that_rounds_less_than_its_plan) {
  std::size_t tried = 0;
  for (const auto& [op, name] : {std::pair{op_kind::gated_delta_rule, "fla-chunk-gdn"},
                                 {op_kind::kda, "fla-chunk-kda"},
                                 {op_kind::delta_rule, "bf16-between-steps"},
                                 {op_kind::gated_delta_product, "fla-chunk-gdp"},
                                 {op_kind::kda, "flashkda-repaired"},
                                 {op_kind::gated_delta_rule, "fla-recurrent-gdn"}}) {
    problem p = small(op, "typical", 70);
    p.qk_l2norm = true;
    p.rule = op == op_kind::delta_rule ? rule_kind::exact : rule_kind::euler;
    bench b(std::move(p), name, preset(name).chunk.empty() ? 32 : preset(name).chunk.front());
    b.options.judge.power = false;
    for (const testing::rounding_left_out& one : testing::roundings_to_leave_out()) {
      plan_variant v = variants(b.declared, b.p, b.path, b.chunk).front();
      if (!one.leave_out(v)) continue;
      ++tried;
      emulation_options how;
      how.stages = b.path == path_kind::chunk;
      const check_report report = b.judge(emulate(b.p, v, how, 1));
      EXPECT_EQ(report.judged, verdict::holds) << name << " without rounding " << one.what << ": " << report.reason;
      for (const judged_stage& s : report.conformance->stages) {
        const stage_measurement& m = stage_of(*report.conformance, s.name);
        if (!m.finer) continue;
        EXPECT_FALSE(s.rms_limit.has_value()) << name << " without rounding " << one.what << ": " << s.name;
        EXPECT_EQ(s.rms_ratio, m.rms_ratio) << name << " without rounding " << one.what << ": " << s.name;
      }
    }
  }
  EXPECT_GT(tried, 50U);
}

// "Merged in tf32" does not say which factors are multiplied first, and no bound that ignores it is as tight.
TEST(referee, holds_for_every_order_of_merging_that_its_plan_leaves_open) {
  for (const auto& [op, name] : {std::pair{op_kind::gated_delta_rule, "fla-chunk-gdn"}, {op_kind::kda, "fla-chunk-kda"}}) {
    bench b(small(op, "correlated", 128), name, 64);
    b.options.judge.power = false;
    plan one_order = b.declared;
    one_order.inverse.association = {merge_order::neighbours_left};
    std::size_t told_apart = 0;
    for (const merge_order order : {merge_order::neighbours_left, merge_order::sum_then_left, merge_order::sum_then_right}) {
      for (const bool toward_zero : {false, true}) {
        plan_variant v = variants(b.declared, b.p, b.path, b.chunk).front();
        v.inverse.merge_operand = {tf32, toward_zero};
        v.inverse.association = order;
        emulation_options how;
        how.stages = true;
        const result r = emulate(b.p, v, how, 1);
        b.options.plans = {b.declared};
        const check_report report = b.judge(r);
        EXPECT_EQ(report.judged, verdict::holds) << name << ": " << report.reason;
        b.options.plans = {one_order};
        told_apart += b.judge(r).conformance->first_bad_stage == "Ai" ? 1 : 0;
      }
    }
    EXPECT_GE(told_apart, 2U) << name;
  }
}

TEST(referee, says_why_no_element_of_a_stage_was_judged) {
  stage_measurement m;
  m.name = "A";
  EXPECT_EQ(referee_detail::why_unjudged(m), "A: there is no element to judge");
  m.skipped = 3;
  EXPECT_THAT(referee_detail::why_unjudged(m), HasSubstr("where the exact recurrence diverges"));
  m.unbounded = 1;
  EXPECT_THAT(referee_detail::why_unjudged(m), HasSubstr("no bound is known for the arithmetic"));
  EXPECT_THAT(referee_detail::whose_overflow(true), HasSubstr("emulated runs of the plan are not finite"));
  EXPECT_THAT(referee_detail::whose_overflow(false), HasSubstr("depending on the order of their terms"));
}

// What a coarser state leaves in its values is beyond chance, whatever its error. A state that is bf16 of itself is none.
TEST(referee, refutes_an_fp32_state_that_has_only_values_of_a_narrower_format) {
  bench b(small(op_kind::gated_delta_rule), "fla-chunk-gdn");
  b.options.judge.power = false;
  result r = b.run(nullptr, false);
  const std::vector<double> own = r.final_state->to_doubles();
  for (const format& coarse : {tf32, fp16, bf16}) {
    std::vector<double> values = own;
    emulation::narrow(std::span<double>(values), {coarse, false});
    r.final_state = tensor::from_doubles(fp32, r.final_state->shape(), values, "final_state");
    const check_report report = b.judge(r);
    EXPECT_EQ(report.judged, verdict::refuted);
    EXPECT_THAT(report.conformance->first_bad_stage, ::testing::StrEq("final_state"));
    EXPECT_THAT(report.reason, HasSubstr("every value is a number of " +
                                         std::string(coarse == bf16 ? "bf16" : "fp16 (and of tf32)") + ", and "));
    if (coarse != tf32) {
      // Nor does it matter in what format it is handed over.
      r.final_state = tensor::from_doubles(coarse, r.final_state->shape(), values, "final_state");
      EXPECT_EQ(b.judge(r).judged, verdict::refuted);
    }
    values.front() *= 1 + 0x1p-12;
    r.final_state = tensor::from_doubles(fp32, r.final_state->shape(), values, "final_state");
    EXPECT_THAT(b.judge(r).reason, Not(HasSubstr("every value is a number of")));
  }

  generation g;
  g.regime = "exact";
  g.op = op_kind::delta_rule;
  g.tokens = 64;
  g.key_dim = 16;
  g.value_dim = 16;
  bench exact(generate(g), "fla-chunk-delta");
  exact.options.judge.power = false;
  EXPECT_EQ(exact.judge(exact.run(nullptr, false)).judged, verdict::holds);
}

// A file may hold a tensor in more bits than its values have.
TEST(referee, takes_values_of_the_plans_format_in_a_wider_one_for_what_they_are) {
  const bench b(small(op_kind::kda, "typical", 70), "fla-chunk-kda");
  const result r = b.run();
  const auto widened = [](const tensor& t) { return tensor::from_doubles(fp32, t.shape(), t.to_doubles(), "widened"); };
  for (const auto& stage : r.stages) {
    result wide = r;
    wide.stages.at(stage.first) = widened(stage.second);
    EXPECT_EQ(b.judge(wide).judged, verdict::holds) << stage.first << ": " << b.judge(wide).reason;
  }
  result wide = r;
  wide.o = widened(r.o);
  EXPECT_EQ(b.judge(wide).judged, verdict::holds);
}

// Every fault that power calls visible is refuted; with stages stored, the first bad one is where the fault lies.
TEST(referee, refutes_every_visible_fault_and_names_the_stage_it_lies_in) {
  const bench b(small(op_kind::gated_delta_rule), "fla-chunk-gdn");
  std::size_t refuted = 0, named = 0, invisible = 0;
  for (const fault& f : faults(pass_kind::forward)) {
    if (!applies(f, b.p, b.path)) continue;
    const check_report report = b.judge(b.run(&f));
    const plan_report& plan = *report.conformance;
    const bool visible = std::find(plan.power.visible.begin(), plan.power.visible.end(), &f) != plan.power.visible.end();
    if (report.judged == verdict::holds) {
      EXPECT_FALSE(visible) << f.name;
      ++invisible;
      continue;
    }
    ++refuted;
    EXPECT_EQ(report.judged, verdict::refuted) << f.name;
    EXPECT_EQ(plan.conforms, verdict::refuted) << f.name;
    if (f.stage == "inputs") continue;
    // A gate that is one number a token leaves no Aqk: o is then the next.
    EXPECT_EQ(plan.first_bad_stage, f.stage == "Aqk" ? "o" : f.stage) << f.name << ": " << plan.reason;
    for (const suspect& s : plan.suspects) {
      EXPECT_FALSE(s.planted == &f && s.comes_later) << f.name << " leaves " << plan.first_bad_stage << " bad first";
    }
    if (visible && !plan.suspects.empty()) named += plan.suspects.front().planted == &f ? 1 : 0;
  }
  RecordProperty("refuted", static_cast<int>(refuted));
  RecordProperty("named", static_cast<int>(named));
  EXPECT_GE(refuted, 90U);
  EXPECT_LE(invisible, 8U);
  EXPECT_GE(named, 80U);
}

// Aqk covers one chunk; then o is of one chunk, though the plan's read-out joins several.
TEST(referee, judges_the_weights_of_a_delta_product_where_they_are_stored) {
  const bench b(small(op_kind::gated_delta_product), "fla-chunk-gdp");
  result r = b.run();
  const auto& shape = r.stages.at("A").shape();
  r.stages["Aqk"] = tensor::from_doubles(bf16, shape, std::vector<double>(element_count(shape), 0.0), "Aqk");
  const check_report report = b.judge(r);
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_EQ(report.conformance->first_bad_stage, "Aqk");
}

// o as a kernel with this fault leaves it, and beside it one write that is off: what went wrong first is not in o.
TEST(referee, a_fault_of_a_later_stage_is_not_what_went_wrong_first) {
  const bench b(small(op_kind::gated_delta_rule), "fla-chunk-gdn");
  const fault& misses = *std::find_if(faults(pass_kind::forward).begin(), faults(pass_kind::forward).end(),
                                      [](const fault& f) { return f.name == "o-misses-state"; });
  result r = b.run(&misses);
  std::vector<double> u = r.stages.at("u").to_doubles();
  u[0] += 1;
  r.stages.at("u") = tensor::from_doubles(bf16, r.stages.at("u").shape(), u, "u");
  const check_report report = b.judge(r);
  const plan_report& plan = *report.conformance;
  ASSERT_EQ(plan.first_bad_stage, "u");
  const auto found =
      std::find_if(plan.suspects.begin(), plan.suspects.end(), [&](const suspect& s) { return s.planted == &misses; });
  ASSERT_NE(found, plan.suspects.end());
  EXPECT_GT(found->score, 0.9);
  EXPECT_TRUE(found->comes_later);
  EXPECT_TRUE(std::is_sorted(plan.suspects.begin(), plan.suspects.end(),
                             [](const suspect& a, const suspect& c) { return a.comes_later < c.comes_later; }));
}

// Without stages the outputs alone must do.
TEST(referee, refutes_every_visible_fault_by_the_outputs_alone) {
  for (const char* const name : {"fla-recurrent-gdn", "fla-chunk-gdn"}) {
    const bench b(small(op_kind::gated_delta_rule), name);
    std::size_t tried = 0;
    const check_report right = b.judge(b.run(nullptr, false));
    ASSERT_EQ(right.judged, verdict::holds) << right.reason;
    for (const fault* f : right.conformance->power.visible) {
      // One in three: the lists are long.
      if (b.path == path_kind::chunk && tried++ % 3 != 0) continue;
      const check_report report = b.judge(b.run(f, false));
      EXPECT_EQ(report.judged, verdict::refuted) << name << ": " << f->name;
      EXPECT_THAT(report.conformance->first_bad_stage, Not(IsEmpty())) << f->name;
    }
  }
}

// A fault that leaves infinity or NaN is refuted by that, and power counts it.
TEST(referee, counts_a_fault_that_leaves_infinities_among_those_that_these_inputs_show) {
  const bench b(small(op_kind::gated_delta_rule, "strong-decay", 120), "fla-chunk-gdn", 64);
  const auto is_finite = [](const tensor& t) {
    const std::vector<double> values = t.to_doubles();
    return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
  };
  const check_report right = b.judge(b.run(nullptr, false));
  ASSERT_EQ(right.judged, verdict::holds) << right.reason;
  const std::vector<const fault*>& visible = right.conformance->power.visible;
  std::size_t infinite = 0;
  for (const fault& f : faults(pass_kind::forward)) {
    if (!applies(f, b.p, b.path)) continue;
    const result r = b.run(&f, false);
    if (is_finite(r.o) && is_finite(*r.final_state)) continue;
    ++infinite;
    EXPECT_EQ(b.judge(r).judged, verdict::refuted) << f.name;
    EXPECT_NE(std::find(visible.begin(), visible.end(), &f), visible.end()) << f.name;
  }
  EXPECT_GE(infinite, 3U);
}

TEST(referee, a_transposed_final_state_is_refuted_with_the_layout_in_words) {
  generation g;
  g.op = op_kind::delta_rule;
  g.tokens = 70;
  g.key_dim = g.value_dim = 24;
  g.key_heads = 1;
  const bench b(generate(g), "fla-chunk-delta");
  result r = b.run(nullptr, false);
  const auto kv = r.final_state->to_doubles();
  std::vector<double> vk(kv.size());
  for (std::size_t h = 0; h < kv.size() / 576; ++h) {
    for (std::size_t i = 0; i < 576; ++i) vk[h * 576 + i % 24 * 24 + i / 24] = kv[h * 576 + i];
  }
  r.final_state = tensor::from_doubles(fp32, r.final_state->shape(), vk, "final_state");
  const check_report report = b.judge(r);
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_EQ(report.conformance->first_bad_stage, "final_state");
  ASSERT_FALSE(report.conformance->suspects.empty());
  const suspect& first = report.conformance->suspects.front();
  EXPECT_EQ(first.planted->name, "layout-final-state-transposed");
  EXPECT_NEAR(first.share, 1, 0.05);
  EXPECT_THAT(std::string(first.planted->what), HasSubstr("V")) << "says how the state lies";
  EXPECT_THAT(to_text(report, {}), HasSubstr("layout-final-state-transposed"));
}

TEST(referee, a_plan_that_cannot_invert_these_keys_is_inadequate_though_it_is_kept) {
  const bench b(small(op_kind::delta_rule, "collinear", 128), "neumann-64", 64);
  const check_report report = b.judge(b.run());
  EXPECT_EQ(report.judged, verdict::refuted);
  const plan_report& plan = *report.conformance;
  EXPECT_NE(plan.conforms, verdict::refuted) << plan.reason;
  EXPECT_FALSE(plan.adequacy.adequate);
  EXPECT_THAT(report.reason, HasSubstr("not adequate on these inputs"));
  EXPECT_THAT(report.reason, HasSubstr("inverse"));
  EXPECT_TRUE(std::any_of(plan.adequacy.ranges.begin(), plan.adequacy.ranges.end(),
                          [](const range_report& r) { return r.violated && r.what == "inverse intermediate"; }));
  // The same plan does where keys are far from parallel.
  const bench easy(small(op_kind::delta_rule, "typical", 128), "neumann-64", 64);
  EXPECT_TRUE(easy.judge(easy.run()).conformance->adequacy.adequate);
}

// Powers that reach 1e17 leave entries of 100 in an inverse whose entries are at most 1, in fp64 too: no budget comes from them.
TEST(referee, the_budget_of_an_inverse_is_that_of_its_true_entries) {
  const bench b(small(op_kind::delta_rule, "repeated", 64), "neumann-64", 64);
  const check_report report = b.judge(b.run());
  const auto& ranges = report.conformance->adequacy.ranges;
  const auto at = std::find_if(ranges.begin(), ranges.end(),
                               [](const range_report& r) { return r.what == "inverse intermediate" && r.known == "predicted"; });
  ASSERT_NE(at, ranges.end());
  EXPECT_GT(at->reaches, 1e15);
  EXPECT_EQ(at->limit, 8) << at->says;
}

// The state overflows only after the chunks that the stages of the plan's own runs are drawn from.
TEST(referee, a_plan_that_overflows_late_is_inadequate_and_its_kernel_keeps_it) {
  generation g;
  g.regime = "correlated";
  g.tokens = 448;
  g.key_dim = 32;
  g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  g.initial_state = "none";
  g.seed = 1;
  const bench b(generate(g), "neumann-64", 64);
  const check_report report = b.judge(b.run());
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_NE(report.conformance->conforms, verdict::refuted) << report.conformance->reason;
  EXPECT_FALSE(report.conformance->adequacy.adequate);
}

TEST(referee, fp16_powers_of_collinear_keys_are_inadequate_and_their_repair_is_not) {
  generation g;
  g.regime = "collinear";
  g.op = op_kind::kda;
  g.gate = "-0.01";
  g.tokens = 64;
  g.key_dim = g.value_dim = 32;
  g.key_heads = 1;
  const problem p = generate(g);
  const bench before(p, "flashkda-fp16-neumann", 16), after(p, "flashkda-repaired", 16);
  const check_report bad = before.judge(before.run()), good = after.judge(after.run());
  EXPECT_FALSE(bad.conformance->adequacy.adequate);
  EXPECT_EQ(bad.judged, verdict::refuted);
  EXPECT_EQ(good.judged, verdict::holds) << good.reason;
}

TEST(referee, the_accuracy_asked_for_decides_adequacy) {
  bench b(small(op_kind::delta_rule, "typical", 70), "fla-chunk-delta");
  const result r = b.run(nullptr, false);
  b.options.judge.power = false;
  b.options.judge.accuracy = 0.1;
  EXPECT_EQ(b.judge(r).judged, verdict::holds);
  b.options.memory = make_referee_memory();
  b.options.judge.accuracy = 1e-5;
  const check_report report = b.judge(r);
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_EQ(report.conformance->conforms, verdict::holds);
  EXPECT_EQ(report.conformance->adequacy.until_token, std::optional<std::size_t>(0));
  EXPECT_THAT(report.reason, HasSubstr("that --accuracy allows"));
}

TEST(referee, a_step_the_kernel_computes_may_be_rounded_or_kept) {
  problem p = small(op_kind::gated_delta_rule, "typical", 70);
  p.beta_activation = activation_kind::sigmoid;
  const bench b(p, "fla-chunk-gdn");
  for (const format step : {bf16, fp32}) {
    const auto all = variants(b.declared, b.p, b.path, b.chunk);
    const auto own = std::find_if(all.begin(), all.end(), [&](const plan_variant& v) { return v.beta == step; });
    ASSERT_NE(own, all.end()) << name_of(step);
    emulation_options how;
    how.stages = true;
    const check_report report = b.judge(emulate(b.p, *own, how, 1));
    EXPECT_EQ(report.judged, verdict::holds) << name_of(step) << ": " << report.reason;
    how.planted = &*std::find_if(faults(pass_kind::forward).begin(), faults(pass_kind::forward).end(),
                                 [](const fault& f) { return f.name == "A-beta-of-column"; });
    EXPECT_EQ(b.judge(emulate(b.p, *own, how, 1)).conformance->first_bad_stage, "A");
  }
}

TEST(referee, a_gate_that_resets_is_named_where_a_plan_cannot_take_it) {
  problem p = small(op_kind::gated_delta_rule, "typical", 70);
  std::vector<double> g = p.g->to_doubles();
  g[40] = -std::numeric_limits<double>::infinity();
  p.g = tensor::from_doubles(p.g->element_format(), p.g->shape(), g, "g");
  const bench b(p, "fla-chunk-gdn");
  const check_report report = b.judge(b.run());
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_THAT(report.reason, HasSubstr("a log decay of -inf"));
}

// An inverse of infinities is no fault of the inverse.
TEST(referee, what_overflows_before_the_inverse_is_named) {
  const problem gated = small(op_kind::gated_delta_rule, "strong-decay", 70);
  plan factored = plan_named("fla-chunk-gdn");
  factored.gate.form = {gate_form::factored};
  emulation_options stages;
  stages.stages = true;
  check_options options;
  options.plans = {factored};
  options.judge.power = false;
  const result r = emulate(gated, variants(factored, gated, path_kind::chunk, 32).front(), stages, 1);
  const check_report of_gates = check(gated, r, options);
  EXPECT_THAT(of_gates.reason, HasSubstr("[gate] form \"factored\" makes a gate factor of 2^"));
  EXPECT_EQ(nlohmann::json::parse(to_json(of_gates, {})).at("first_bad_stage"), "A");
  for (const range_report& x : of_gates.conformance->adequacy.ranges) EXPECT_NE(x.what, "A") << "the gate is reason enough";

  // beta |k|^2 is near 1, and k k^T alone is beyond fp32.
  problem p = small(op_kind::delta_rule, "repeated", 70);
  std::vector<double> k = p.k.to_doubles();
  for (double& x : k) x *= 0x1p65;
  p.k = tensor::from_doubles(p.k.element_format(), p.k.shape(), k, "k");
  p.beta = tensor::from_doubles(p.beta.element_format(), p.beta.shape(), std::vector<double>(p.beta.size(), 0x1p-130), "beta");
  const bench keys(p, "fla-chunk-delta");
  const check_report of_keys = keys.judge(keys.run());
  const auto& ranges = of_keys.conformance->adequacy.ranges;
  const auto first = std::find_if(ranges.begin(), ranges.end(), [](const range_report& r) { return r.violated; });
  ASSERT_NE(first, ranges.end());
  EXPECT_THAT(first->says, HasSubstr("A, which is inverted, is not finite on these inputs"));
  EXPECT_EQ(of_keys.conformance->adequacy.stage, "A");
}

TEST(referee, inputs_that_show_nothing_are_vacuous) {
  generation g;
  g.op = op_kind::delta_rule;
  g.tokens = 40;
  g.key_dim = g.value_dim = 16;
  g.key_heads = 1;
  g.initial_state = "none";
  problem p = generate(g);
  const std::vector<double> zeros(p.v.size(), 0.0);
  p.v = tensor::from_doubles(bf16, p.v.shape(), zeros, "v");
  const bench token_by_token(p, "fla-recurrent-delta");
  const check_report report = token_by_token.judge(token_by_token.run());
  EXPECT_EQ(report.judged, verdict::vacuous) << report.reason;
  EXPECT_THAT(report.conformance->power.visible, IsEmpty());
  EXPECT_THAT(report.reason, HasSubstr("can show none"));
  EXPECT_THAT(report.remedy, HasSubstr("gen --regime"));

  // What a fault reads behind the last token may be NaN: that shows.
  const bench b(p, "fla-chunk-delta", 16);
  const check_report in_chunks = b.judge(b.run(nullptr, false));
  EXPECT_EQ(in_chunks.judged, verdict::vacuous) << in_chunks.reason;
  ASSERT_EQ(in_chunks.conformance->power.visible.size(), 1U);
  EXPECT_EQ(in_chunks.conformance->power.visible.front()->name, "update-multiplies-padding");
  EXPECT_THAT(in_chunks.reason, HasSubstr("writes only zeros would pass"));
}

TEST(referee, gates_outside_the_contract_are_named) {
  generation g;
  g.op = op_kind::kda;
  g.gate = "strong";
  g.tokens = 64;
  g.key_dim = g.value_dim = 16;
  g.key_heads = 1;
  const bench b(generate(g), "fla-chunk-kda-safe-gate", 16);
  const check_report report = b.judge(b.run(nullptr, false));
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_THAT(report.reason, HasSubstr("the inputs break the plan's [gate] contract"));
  EXPECT_THAT(report.reason, HasSubstr("[-5, 0]"));
}

// As that of a padding token is, and of a gate whose sigmoid underflows.
TEST(referee, a_log_decay_of_0_keeps_the_contract_of_a_safe_gate) {
  generation g;
  g.op = op_kind::kda;
  g.gate = "zero";
  g.tokens = 64;
  g.key_dim = g.value_dim = 16;
  g.key_heads = 1;
  for (const char* plan : {"fla-chunk-kda-safe-gate", "fla-chunk-kda-shifted-gate"}) {
    const bench b(generate(g), plan, 16);
    const check_report report = b.judge(b.run(nullptr, false));
    EXPECT_EQ(report.judged, verdict::holds) << plan << ": " << report.reason;
  }
}

TEST(referee, a_nan_is_refuted_with_its_place_and_the_other_buckets_are_judged) {
  const bench b(small(op_kind::gated_delta_rule), "fla-chunk-gdn");
  result r = b.run();
  auto o = r.o.to_doubles();
  o[(70 * 2 + 1) * 24 + 5] = std::numeric_limits<double>::quiet_NaN();
  r.o = tensor::from_doubles(bf16, r.o.shape(), o, "o");
  const check_report report = b.judge(r);
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_THAT(report.reason, HasSubstr("token 70"));
  EXPECT_EQ(report.conformance->first_bad_stage, "o");
  EXPECT_EQ(stage_of(*report.conformance, "u").bad, 0U);
  std::size_t bad = 0;
  for (const judged_statistic& s : report.conformance->statistics) bad += s.judged == verdict::refuted ? 1 : 0;
  EXPECT_EQ(bad, 3U) << "rms, max and tiles of one bucket of one head";
}

// Keys of norm 8 and no normalisation: the state leaves fp32 within a few tokens.
TEST(referee, is_asked_only_before_the_recurrence_leaves_its_formats) {
  generation g;
  g.regime = "huge-keys";
  g.op = op_kind::delta_rule;
  g.rule = rule_kind::euler;
  g.beta = "near-one";
  g.tokens = 120;
  g.key_dim = g.value_dim = 16;
  g.key_heads = 1;
  const bench b(generate(g), "fla-chunk-delta", 16);
  const check_report report = b.judge(b.run());
  ASSERT_TRUE(report.diverges) << report.reason;
  ASSERT_GE(report.diverges->first.token, 16U) << "nothing before the first chunk would be judged";
  EXPECT_EQ(report.judged, verdict::vacuous) << report.reason;
  EXPECT_THAT(report.reason, HasSubstr("the range of its formats"));
  for (const judged_statistic& s : report.conformance->statistics) {
    EXPECT_LE(s.last_token, report.diverges->first.token / 16 * 16);
    EXPECT_NE(s.judged, verdict::refuted);
    // Of tiles there may be too few runs for a limit.
    const bool too_few = s.norm == norm_kind::tiles && s.judged == verdict::undecided;
    EXPECT_EQ(s.judged == verdict::vacuous || too_few, s.limit.value >= s.truth || too_few) << name_of(s.norm);
  }
}

TEST(referee, of_several_plans_the_one_that_is_kept_is_reported) {
  bench b(small(op_kind::kda, "typical", 70), "fla-chunk-kda");
  b.options.plans = {preset("fla-chunk-kda-safe-gate"), preset("fla-chunk-kda")};
  b.options.judge.power = false;
  const check_report report = b.judge(b.run());
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  // Under `typical` gates the contract of the first is kept too, unless one gate is exactly 0.
  EXPECT_TRUE(report.conformance->plan == "fla-chunk-kda-safe-gate" || report.other_plans.size() == 1);
}

// Zeros that zeros pass for, under a gate beyond the contract of the one plan: a kernel of the other plan is not wrong.
TEST(referee, of_several_plans_one_that_shows_nothing_comes_before_one_that_is_not_adequate) {
  bench b(small(op_kind::kda, "typical", 1), "fla-chunk-kda");
  std::vector<double> gates = b.p.g->to_doubles();
  gates[0] = -6;
  b.p.g = tensor::from_doubles(b.p.g->element_format(), b.p.g->shape(), gates, "g");
  b.p.q = tensor::from_doubles(b.p.q.element_format(), b.p.q.shape(), std::vector<double>(b.p.q.size(), 0.0), "q");
  b.options.judge.power = false;
  for (const auto& [first, second] :
       {std::pair{"fla-chunk-kda-safe-gate", "fla-chunk-kda"}, {"fla-chunk-kda", "fla-chunk-kda-safe-gate"}}) {
    b.options.plans = {preset(first), preset(second)};
    b.options.memory = nullptr;  // of one plan
    const check_report report = b.judge(b.run());
    EXPECT_EQ(report.judged, verdict::vacuous) << report.reason;
    EXPECT_EQ(report.conformance->plan, "fla-chunk-kda");
    EXPECT_EQ(report.other_plans.size(), 1U);
  }
}

TEST(referee, stops_when_asked) {
  bench b(small(op_kind::gated_delta_rule), "fla-chunk-gdn");
  const result r = b.run();
  const std::atomic<bool> stop{true};
  b.options.stop = &stop;
  const check_report report = b.judge(r);
  EXPECT_EQ(report.judged, verdict::undecided);
  EXPECT_THAT(report.remedy, HasSubstr("--max-seconds"));
}

/// Refuted in the end, the one by the shape of a planted fault, the other because its plan is not accurate enough; both are the
/// last things looked at. Whenever time runs out before, nothing holds.
TEST(referee, holds_nothing_it_had_no_time_for) {
  bench b(small(op_kind::delta_rule), "fla-chunk-delta");
  const result faulty = b.run(&fault_named("o-truncated"), false);
  bench inaccurate(small(op_kind::delta_rule), "fla-chunk-delta");
  inaccurate.options.judge.accuracy = 1e-9;
  inaccurate.options.judge.power = false;
  const std::array<std::pair<bench*, result>, 2> cases{{{&b, faulty}, {&inaccurate, inaccurate.run()}}};
  for (const auto& [judge, r] : cases) {
    judge->options.memory = nullptr;
    const auto began = std::chrono::steady_clock::now();
    ASSERT_EQ(judge->judge(r).judged, verdict::refuted);
    const auto whole = std::chrono::steady_clock::now() - began;
    std::size_t undecided = 0;
    for (int part = 0; part < 16; ++part) {
      std::atomic<bool> stop{false};
      judge->options.stop = &stop;
      judge->options.memory = make_referee_memory();
      std::thread timer([&] {
        std::this_thread::sleep_for(whole * part / 16);
        stop = true;
      });
      const check_report report = judge->judge(r);
      timer.join();
      if (report.judged == verdict::refuted) continue;
      ++undecided;
      EXPECT_EQ(report.judged, verdict::undecided) << part;
      EXPECT_TRUE(report.stopped);
      EXPECT_THAT(report.remedy, HasSubstr("--max-seconds"));
      if (report.conformance) {
        EXPECT_THAT(report.conformance->reason, HasSubstr("stopped before"));
      }
    }
    EXPECT_GT(undecided, 0U);
    judge->options.stop = nullptr;
  }
}

TEST(plans_of, an_unknown_kernel_is_refused_with_the_candidates) {
  const problem p = small(op_kind::kda);
  result r;
  r.kernel = "my kernel";
  r.path = path_kind::chunk;
  r.chunk_size = 64;
  EXPECT_THAT([&] { (void)plans_of(r, p); },
              ::testing::ThrowsMessage<format_error>(::testing::AllOf(HasSubstr("\"my kernel\""), HasSubstr("fla-chunk-kda"),
                                                                      HasSubstr("--plan"), HasSubstr("--no-plan"))));
  r.kernel = "fla chunk_kda";
  const auto found = plans_of(r, p);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].name, "fla-chunk-kda");
}

TEST(referee, json_has_the_promised_keys) {
  const bench b(small(op_kind::gated_delta_rule, "typical", 70), "fla-chunk-gdn");
  check_identity identity;
  identity.reproduce = "deltaproof check a b";
  for (const fault* planted : {static_cast<const fault*>(nullptr), &fault_named("u-beta-missing")}) {
    const auto j = nlohmann::json::parse(to_json(b.judge(b.run(planted)), identity));
    for (const char* key :
         {"schema",        "verdict", "conforms",  "adequate",    "stages",  "first_bad_stage", "diagnosis", "power",
          "known_metrics", "oracle",  "reproduce", "diverges_at", "tensors", "preconditions",   "reason",    "remedy",
          "version",       "problem", "result",    "plan"}) {
      EXPECT_TRUE(j.contains(key)) << key;
    }
    EXPECT_EQ(j["plan"]["name"], "fla-chunk-gdn");
    EXPECT_EQ(j["conforms"], planted == nullptr);
    EXPECT_EQ(j["verdict"], planted == nullptr ? "holds" : "refuted");
    for (const char* key : {"accuracy", "until_token", "range_violations"}) EXPECT_TRUE(j["adequate"].contains(key)) << key;
    for (const char* key : {"visible", "invisible"}) EXPECT_TRUE(j["power"][key].is_array()) << key;
    for (const char* key : {"tier", "radius"}) EXPECT_TRUE(j["oracle"].contains(key)) << key;
    ASSERT_GE(j["stages"].size(), 8U);
    for (const char* key : {"name", "verdict", "bad", "worst", "first_bad", "rms_ratio", "bias", "budget"})
      EXPECT_TRUE(j["stages"][0].contains(key)) << key;
    for (const auto& t : j["tensors"]) {
      EXPECT_FALSE(t["budget"].is_null());
      EXPECT_FALSE(t["provenance"].is_null());
    }
    if (planted == nullptr) {
      EXPECT_TRUE(j["first_bad_stage"].is_null());
      continue;
    }
    EXPECT_EQ(j["first_bad_stage"], "u");
    ASSERT_FALSE(j["diagnosis"].empty());
    EXPECT_EQ(j["diagnosis"][0]["fault"], "u-beta-missing");
    EXPECT_GT(j["diagnosis"][0]["score"].get<double>(), 0.9);
  }
}

// Its keys differ by so little that moving each number by an ulp or two halves the error of a kernel: limits from moved inputs
// alone refuted this run.
TEST(referee, inputs_special_by_less_than_they_are_moved_are_judged_by_runs_on_them) {
  const testing::correct_result run = testing::correct_run(preset("fla-chunk-delta"), 234, testing::build::ordinary);
  ASSERT_EQ(run.made.regime, "collinear");
  check_options options;
  options.plans = {preset("fla-chunk-delta")};
  options.threads = 1;
  options.judge.seed = 234;
  options.judge.power = false;
  const check_report report = check(run.p, run.r, options);
  EXPECT_EQ(report.conformance->conforms, verdict::holds) << report.conformance->reason;
}

// The stages of this plan round about the middle of a block; a slice that cut a block refuted this run.
TEST(referee, stages_are_compared_on_whole_chunks) {
  const testing::correct_result run = testing::correct_run(preset("fla-chunk-kda-safe-gate"), 798, testing::build::ordinary);
  ASSERT_EQ(run.p.tokens() % run.chunk, 4U);
  check_options options;
  options.plans = {preset("fla-chunk-kda-safe-gate")};
  options.threads = 1;
  options.judge.seed = 798;
  options.judge.power = false;
  const check_report report = check(run.p, run.r, options);
  EXPECT_EQ(report.conformance->conforms, verdict::holds) << report.conformance->reason;
}

// The plan amplifies its own roundings: sizes of errors differ by factors from run to run, and projections on planted faults
// with them. Student's limit on projections refuted this run.
TEST(referee, a_plan_that_amplifies_its_roundings_has_projections_as_unsteady_as_its_errors) {
  const testing::correct_result run = testing::correct_run(preset("flashkda-fp16-neumann"), 352, testing::build::ordinary);
  ASSERT_EQ(run.made.regime, "repeated");
  check_options options;
  options.plans = {preset("flashkda-fp16-neumann")};
  options.threads = 1;
  options.judge.seed = 352;
  const check_report report = check(run.p, run.r, options);
  // Somewhere it is farther from the truth than zeros, as the plan allows: that is no reason to refuse the kernel, and none to
  // hold.
  EXPECT_EQ(report.conformance->conforms, verdict::vacuous) << report.conformance->reason;
  EXPECT_THAT(testing::alarms_of(*report.conformance), IsEmpty());
  EXPECT_FALSE(report.conformance->adequacy.adequate);
  EXPECT_THAT(report.reason, ::testing::StartsWith("the plan flashkda-fp16-neumann is not adequate on these inputs: "));
}

}  // namespace
}  // namespace deltaproof
