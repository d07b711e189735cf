// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/check/check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "check/check_parts.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/rounded.hpp"

namespace deltaproof {
namespace {

problem some_problem(std::size_t tokens = 40, const std::string& regime = "typical") {
  generation g;
  g.regime = regime;
  g.tokens = tokens;
  g.key_dim = 16;
  g.value_dim = 8;
  return generate(g);
}

/// What a perfect kernel gives: the truth, rounded once to `o` in bf16 and the state in fp32.
result perfect(const problem& p) {
  const reference ref = solve(p);
  const auto rounded_tensor = [](const reference_tensor& t, const format& to, const char* name) {
    std::vector<double> values;
    for (const double x : t.value) values.push_back(to == bf16 ? round_to<bf16>(x).value() : round_to<fp32>(x).value());
    return tensor::from_doubles(to, t.shape, values, name);
  };
  result r;
  r.o = rounded_tensor(ref.o, bf16, "o");
  r.final_state = rounded_tensor(ref.final_state, fp32, "final_state");
  r.path = path_kind::recurrent;
  return r;
}

void change(tensor& t, std::size_t index, double value) {
  auto values = t.to_doubles();
  values[index] = value;
  t = tensor::from_doubles(t.element_format(), t.shape(), values, t.name());
}

check_options with(const char* limit) {
  check_options options;
  options.judge.bounds.push_back(parse_tensor_bound(limit, because("a test")));
  return options;
}

TEST(check, a_perfect_kernel_holds_at_half_an_ulp) {
  const problem p = some_problem();
  const check_report report = check(p, perfect(p), with("ulps=0.51"));
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
}

// The reference of fp64 alone is too imprecise for a state that e^-650 lowered and e^800 raised again: 4.36e63.
TEST(check, where_the_reference_knows_no_digit_no_exact_value_is_stated) {
  const auto row = [](const char* name, std::vector<double> x) { return tensor::from_doubles(fp64, {1, 6, 1, 1}, x, name); };
  problem p;
  p.op = op_kind::gated_delta_rule;
  p.q = row("q", std::vector<double>(6, 1));
  p.k = row("k", {1, 0, 0, 0, 0, 0});
  p.v = row("v", {1, 0, 0, 0, 0, 0});
  p.beta = tensor::from_doubles(fp64, {1, 6, 1}, std::vector<double>(6, 1), "beta");
  p.g = tensor::from_doubles(fp64, {1, 6, 1}, std::vector<double>{0, -650, 200, 200, 200, 200}, "g");
  validate(p, "check test");
  result r;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  r.o = row("o", {1, 0, 0, 0, 0, nan});
  r.final_state = tensor::from_doubles(fp64, {1, 1, 1, 1}, std::vector<double>{std::exp(150.0)}, "final_state");
  r.path = path_kind::recurrent;
  check_options options;
  options.judge.max_bits = 53;
  const check_report report = check(p, r, options);
  ASSERT_TRUE(report.tensors[0].first_nonfinite);
  const element_location& at = *report.tensors[0].first_nonfinite;
  EXPECT_LE(std::fabs(at.want - std::exp(150.0)), at.radius);
  ASSERT_GT(at.radius, std::fabs(at.want));
  EXPECT_NE(report.reason.find("where the exact value is within"), std::string::npos) << report.reason;
  // Nor is a relative error of finite outputs; all bits know it.
  r.o = row("o", {1, 0, 0, 0, 0, std::exp(150.0)});
  const check_report blank = check(p, r, options);
  EXPECT_EQ(blank.judged, verdict::undecided);
  EXPECT_NE(blank.reason.find("too imprecise to measure o"), std::string::npos) << blank.reason;
  EXPECT_NE(blank.remedy.find("--max-bits"), std::string::npos) << blank.remedy;
  options.judge.max_bits = 1024;
  const check_report known = check(p, r, options);
  EXPECT_EQ(known.judged, verdict::measured) << known.reason;
  EXPECT_LT(known.tensors[0].errors.rel_fro.upper, 1e-12);
}

TEST(check, one_wrong_element_is_refuted_and_named) {
  const problem p = some_problem();
  result r = perfect(p);
  const std::size_t heads = p.value_heads(), V = p.value_dim();
  change(r.o, ((17 * heads) + heads - 1) * V + 3, 64);
  const check_report report = check(p, r, with("o:max_abs=1"));
  EXPECT_EQ(report.judged, verdict::refuted);
  ASSERT_TRUE(report.tensors[0].worst);
  EXPECT_EQ(report.tensors[0].worst->token, 17U);
  EXPECT_EQ(report.tensors[0].worst->head, heads - 1);
  EXPECT_EQ(report.tensors[0].worst->element, std::vector<std::size_t>{3});
  EXPECT_EQ(report.tensors[0].worst->got, 64);
  EXPECT_EQ(report.tensors[1].judged, verdict::measured);
}

TEST(check, a_non_finite_element_is_refuted_without_any_budget) {
  const problem p = some_problem();
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    result r = perfect(p);
    const std::size_t V = p.value_dim();
    change(*r.final_state, 5 * V + 2, bad);
    const check_report report = check(p, r);
    EXPECT_EQ(report.judged, verdict::refuted);
    ASSERT_TRUE(report.tensors[1].first_nonfinite);
    EXPECT_EQ(report.tensors[1].first_nonfinite->element, (std::vector<std::size_t>{5, 2}));
    EXPECT_FALSE(report.tensors[1].first_nonfinite->token);
  }
}

TEST(check, a_state_stored_vk_is_read_as_such) {
  const problem p = some_problem();
  result r = perfect(p);
  const std::size_t K = p.key_dim(), V = p.value_dim();
  const auto kv = r.final_state->to_doubles();
  std::vector<double> vk(kv.size());
  for (std::size_t h = 0; h < p.value_heads(); ++h) {
    for (std::size_t i = 0; i < K; ++i) {
      for (std::size_t j = 0; j < V; ++j) vk[(h * V + j) * K + i] = kv[(h * K + i) * V + j];
    }
  }
  r.final_state = tensor::from_doubles(fp32, {1, p.value_heads(), V, K}, vk, "final_state");
  r.state_layout = layout_kind::vk;
  EXPECT_EQ(check(p, r, with("ulps=0.51")).judged, verdict::holds);
}

TEST(check, raises_precision_until_a_close_bound_is_decided) {
  const problem p = some_problem(8);
  result r = perfect(p);
  r.o = tensor::from_doubles(fp64, r.o.shape(), solve(p).o.value, "o");
  r.final_state.reset();
  // The fp64 reference cannot tell its own values from an error of 1e-25; more bits can.
  const check_report report = check(p, r, with("o:max_abs=1e-25"));
  EXPECT_NE(report.judged, verdict::undecided);
  EXPECT_EQ(report.tiers.count("fp64"), 0U);
}

TEST(check, is_undecided_when_the_precision_allowed_is_too_small) {
  const problem p = some_problem(8);
  result r = perfect(p);
  r.o = tensor::from_doubles(fp64, r.o.shape(), solve(p).o.value, "o");
  r.final_state.reset();
  check_options options = with("o:max_abs=1e-25");
  options.judge.max_bits = 53;
  const check_report report = check(p, r, options);
  EXPECT_EQ(report.judged, verdict::undecided);
  EXPECT_FALSE(report.remedy.empty());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Where a sequence is packed, tokens count from its start.
TEST(check, text_counts_tokens_in_their_sequence) {
  generation g;
  g.tokens = 30;
  g.key_dim = g.value_dim = 4;
  g.cu_seqlens = {0, 20, 30};
  const problem p = generate(g);
  result r = perfect(p);
  change(r.o, r.o.size() / 30 * 25, std::numeric_limits<double>::quiet_NaN());
  const check_report report = check(p, r, {});
  EXPECT_TRUE(has(report.reason, "o is nan at sequence 1, head 0, token 5, element 0")) << report.reason;
  EXPECT_TRUE(has(report.reason, "; 1 such element")) << report.reason;
  const std::string text = to_text(report, {});
  EXPECT_TRUE(has(text, "1 element, the first at seq 1 head 0 token 5 v 0")) << text;
}

TEST(check, text_says_why_a_number_is_missing) {
  check_report report;
  for (const char* name : {"o", "final_state", "dq"}) report.tensors.emplace_back().name = name;
  report.tensors[1].errors.skipped = 1;
  report.tensors[1].errors.elements = 0;
  report.tensors[2].errors.elements = report.tensors[2].errors.unknown = 7;
  plan_report& plan = report.conformance.emplace();
  plan.adequacy.judged = true;
  plan.adequacy.worst_ratio = 1;
  plan.adequacy.worst_error = std::numeric_limits<double>::infinity();
  plan.power.ran = true;
  plan.power.invisible.assign(90, &fault_named("l2norm-unasked"));
  const std::string text = to_text(report, {});
  EXPECT_TRUE(has(text, "o            empty")) << text;
  EXPECT_TRUE(has(text, "final_state  not judged: 1 element where the recurrence diverges\n")) << text;
  EXPECT_TRUE(has(text, "dq           not judged: 7 elements for which the reference has no error bound")) << text;
  EXPECT_TRUE(has(text, "where all exact values are 0, its relative error is infinite")) << text;
  EXPECT_TRUE(has(text, "0 of 90 planted faults would be detected on these inputs; not detected: l2norm-unasked")) << text;
  EXPECT_TRUE(has(text, " more (--json names them)")) << text;
  EXPECT_TRUE(has(text, "exceeds any of its 0 limits")) << text;
  plan.stopped = true;
  EXPECT_FALSE(has(to_text(report, {}), "exceeds any of its")) << "nothing was compared";
}

TEST(check, what_is_not_judged_is_told_once_for_each_reason) {
  check_report report;
  for (const char* name : {"dq", "dk"}) {
    tensor_report& t = report.tensors.emplace_back();
    t.name = name;
    t.coverage.elements = 100;
    t.coverage.blind = 1;
  }
  EXPECT_EQ(not_judged_text(report),
            "1 of 100 elements of dq (1 %), 1 of 100 elements of dk (1 %): the plan gives no limit there, or a limit that zeros "
            "would pass");
  report.reason = "no limit is exceeded; not judged: " + not_judged_text(report);
  EXPECT_TRUE(has(to_text(report, {}), "no limit is exceeded; not judged: see below\n"));
}

// A remedy fits the cause: overflow, or too little to draw a limit from.
TEST(check, a_remedy_fits_its_cause) {
  check_report report;
  plan_report& plan = report.conformance.emplace();
  plan.adequacy.judged = plan.judged = true;
  report.judged = verdict::undecided;
  plan.conforms = verdict::undecided;
  for (const norm_kind norm : {norm_kind::rms, norm_kind::max}) {
    judged_statistic& s = plan.statistics.emplace_back();
    s.tensor = "o";
    s.norm = norm;
    s.judged = verdict::undecided;
    s.limit.enough = false;
  }
  EXPECT_EQ(check_detail::remedy_for(report, 1024), "use longer sequences or more heads, or judge by another plan");
  for (judged_statistic& s : plan.statistics) s.limit.enough = true;
  EXPECT_TRUE(has(check_detail::remedy_for(report, 1024), "emulating the plan does not overflow"));
  report.judged = plan.conforms = verdict::vacuous;
  report.tensors.emplace_back().name = "o";
  report.tensors.back().errors.elements = 8;
  plan.reach.push_back({.tensor = "o", .elements = 8, .blind = 8});
  EXPECT_TRUE(has(check_detail::remedy_for(report, 1024), "deltaproof gen --regime typical -o FILE"));
  plan.reach.back().overflow = 8;
  EXPECT_TRUE(has(check_detail::remedy_for(report, 1024), "use smaller inputs"));
  EXPECT_TRUE(has(to_text(report, {}), "vacuous (o: no limit, because sums of the plan may overflow)"));
}

TEST(check, json_has_the_promised_keys) {
  const problem p = some_problem(6);
  result r = perfect(p);
  change(r.o, 0, std::nan(""));
  check_identity identity;
  identity.reproduce = "deltaproof check a b";
  const auto j = nlohmann::json::parse(to_json(check(p, r), identity));
  EXPECT_EQ(j["schema"], "deltaproof.verdict/1");
  EXPECT_EQ(j["verdict"], "refuted");
  for (const char* key : {"diverges_at", "tensors", "preconditions", "known_metrics", "reason", "remedy", "reproduce", "version",
                          "problem", "result", "plan"}) {
    EXPECT_TRUE(j.contains(key)) << key;
  }
  for (const char* key : {"name", "dtype", "shape", "verdict", "max_abs", "rel_fro", "radius", "worst", "first_nonfinite",
                          "nonfinite", "budget", "provenance"}) {
    EXPECT_TRUE(j["tensors"][0].contains(key)) << key;
  }
  EXPECT_EQ(j["tensors"][0]["first_nonfinite"]["got"], "nan");
  EXPECT_EQ(j["tensors"][1]["worst"]["token"], nullptr);
  for (const char* key : {"fla_ratio", "nmse", "allclose_violations", "flash_attention_factor", "attention_gym_factor"}) {
    EXPECT_TRUE(j["known_metrics"].contains(key)) << key;
  }
}

/// A theorem is cited for the tiers it is about; of the others it says that the proof is on paper.
TEST(check, json_says_by_tier_what_is_behind_a_radius) {
  const problem p = some_problem(6);
  check_report report = check(p, perfect(p));
  const auto because = [&](const std::string& tier) {
    report.tiers = {{tier, 1}};
    return nlohmann::json::parse(to_json(report, check_identity{}))["oracle"]["because"].get<std::string>();
  };
  const std::string paper = "Proved on paper: proofs/notes/oracle-radius.md", fp64 = "float.tier_run.",
                    entries = "float.oracle_radius.";
  for (const char* tier : {"fp64", "double-double", "fixed-128", "exact"}) {
    EXPECT_TRUE(because(tier).starts_with(paper)) << tier;
    EXPECT_NE(because(tier).find("for tier fp64,"), std::string::npos) << tier;  // rows before were of that tier
    EXPECT_EQ(because(tier).find(entries), std::string::npos) << tier;
  }
  EXPECT_TRUE(because("mpfr-128").starts_with(paper));
  EXPECT_EQ(because("mpfr-128").find(fp64), std::string::npos);
  EXPECT_NE(because("mpfr-128").find("if every step has a decay and nothing underflows (" + entries), std::string::npos);
  const std::string adjoint = "algebra.adjoint.run_transposed";
  EXPECT_EQ(because("fp64").find(adjoint), std::string::npos);
  report.tensors.front().name = "dk";
  EXPECT_NE(because("fp64").find(adjoint), std::string::npos);
}

TEST(check, a_state_bound_without_a_state_is_refused) {
  const problem p = some_problem(4);
  result r = perfect(p);
  r.final_state.reset();
  EXPECT_THROW(static_cast<void>(check(p, r, with("final_state:max_abs=1"))), domain_error);
}

TEST(tensor_bound, malformed_limits_are_named) {
  for (const char* text : {"", "max_abs", "max_abs=", "max_abs=x", "max_abs=-1", "max_abs=nan", "max_abs=inf", "speed=1",
                           "w:max_abs=1", "max_abs=1 "}) {
    EXPECT_THROW(static_cast<void>(parse_tensor_bound(text, because("a test"))), format_error) << text;
  }
  const tensor_bound b = parse_tensor_bound("final_state:rel_fro=2.5e-3", because("a test"));
  EXPECT_EQ(b.tensor, "final_state");
  EXPECT_EQ(b.limit.which, metric::rel_fro);
  EXPECT_EQ(b.limit.limit.value, 2.5e-3);
}

/// The eager run of one step by hand: k = q = 1, v = 1, beta = 1/3 in bf16; every operation rounded.
TEST(eager, one_step_by_hand) {
  problem p;
  const auto one = tensor::from_doubles(bf16, {1, 1, 1, 1}, std::vector<double>{1.0}, "q");
  p.q = one;
  p.k = one.named("k");
  p.v = one.named("v");
  const double third = round_to<bf16>(1.0 / 3).value();
  p.beta = tensor::from_doubles(bf16, {1, 1, 1}, std::vector<double>{third}, "beta");
  p.scale = 0.7;
  const double want = round_to<bf16>(round_to<bf16>(0.7).value() * third).value();
  reference_tensor zero;
  zero.shape = {1, 1, 1, 1};
  zero.value = {0};
  zero.radius = {0};
  EXPECT_EQ(measure_eager(p, zero, {}, 1).same_format_state, want);
  EXPECT_EQ(measure_eager(p, zero, {}, 1).fp32_state, want);
}

}  // namespace
}  // namespace deltaproof
