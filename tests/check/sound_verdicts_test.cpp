// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// No verdict rests on nothing: options that are no numbers, limits that zeros would pass, elements that nobody judged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "check/invariant_cases.hpp"
#include "deltaproof/check/check.hpp"
#include "deltaproof/check/request.hpp"
#include "deltaproof/check/suite.hpp"
#include "deltaproof/files/view.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/support/write_file.hpp"
#include "deltaproof/testing/trial.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

using namespace deltaproof::testing;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

problem delta_problem(std::size_t tokens, std::size_t keys, std::size_t values, std::size_t heads, std::uint64_t seed = 1,
                      const std::string& regime = "typical", op_kind op = op_kind::delta_rule) {
  generation g;
  g.regime = regime;
  g.op = op;
  g.tokens = tokens;
  g.key_dim = keys;
  g.value_dim = values;
  g.key_heads = g.value_heads = heads;
  g.seed = seed;
  return generate(g);
}

result emulated(const problem& p, const plan& declared, bool stages = false) {
  const path_kind path = declared.path.front();
  emulation_options how;
  how.stages = stages;
  return emulate(p, variants(declared, p, path, path == path_kind::chunk ? 64 : 0).front(), how, 1);
}

check_options by(const plan& declared, bool power = false) {
  check_options out;
  out.plans = {declared};
  out.judge.power = power;
  out.threads = 1;
  return out;
}

double stored(double x, const format& to) {
  if (!std::isfinite(x)) return x;
  return to == bf16 ? round_to<bf16>(x).value() : to == fp32 ? round_to<fp32>(x).value() : x;
}

tensor changed(const tensor& t, const std::function<double(std::size_t, double)>& f) {
  std::vector<double> values = t.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = stored(f(i, values[i]), t.element_format());
  return tensor::from_doubles(t.element_format(), t.shape(), values, t.name());
}
tensor filled(const tensor& t, double x) {
  return changed(t, [x](std::size_t, double) { return x; });
}

// ---- options ----

TEST(sound_options, every_door_refuses_what_is_no_option) {
  const plan declared = plan_named("fla-chunk-gdn");
  const problem p = gated_problem(32, 1);
  const recorded_run whole = run_of(p, "fla-chunk-gdn"), part = run_of(cut(p, 0, 16, p.initial_state), "fla-chunk-gdn");
  struct spoilt {
    std::string says;
    std::function<void(check_options&)> spoil;
  };
  std::vector<spoilt> all;
  for (const double x : {nan, inf, -inf, -0.1, 0.0, 1.5})
    all.push_back({"accuracy", [x](check_options& o) { o.judge.accuracy = x; }});
  for (const double x : {nan, inf, -1.0, 0.0, 1e-13, 0.5, 1.0})
    all.push_back({"false-alarm probability", [x](check_options& o) { o.judge.false_alarm = x; }});
  for (const double x : {nan, inf, -30.0, 0.0}) all.push_back({"seconds", [x](check_options& o) { o.judge.seconds = x; }});
  for (const int x : {-1, 0, 52, 1025}) all.push_back({"bits", [x](check_options& o) { o.judge.max_bits = x; }});
  for (const unsigned x : {static_cast<unsigned>(-1), 40000U}) {
    all.push_back({"threads", [x](check_options& o) { o.threads = x; }});
  }
  all.push_back(
      {"bound", [](check_options& o) { o.judge.bounds.push_back({"o", {metric::max_abs, bound(inf, because("a test"))}}); }});
  all.push_back(
      {"error limit", [](check_options& o) { o.judge.bounds.push_back({"w", {metric::max_abs, bound(1, because("a test"))}}); }});
  for (const spoilt& one : all) {
    check_options options = by(declared);
    one.spoil(options);
    EXPECT_THAT(thrown([&] { (void)check(p, whole.gave, options); }), HasSubstr(one.says));
    for (const invariant_kind kind : {invariant_kind::prefix, invariant_kind::varlen}) {
      invariant_options asked;
      asked.check = options;
      EXPECT_THAT(thrown([&] { (void)check_invariant(kind, whole, std::vector{part}, asked); }), HasSubstr(one.says));
    }
    if (!options.judge.bounds.empty()) continue;
    suite_options suites;
    suites.judge = options.judge;
    suites.threads = options.threads;
    EXPECT_THAT(thrown([&] { (void)run_suite({}, suites); }), HasSubstr(one.says));
    EXPECT_THAT(thrown([&] {
                  (void)judge_plan(p, whole.gave, declared, reference{}, {}, {},
                                   {.judge = options.judge, .threads = options.threads});
                }),
                HasSubstr(one.says));
  }
}

TEST(sound_options, a_request_and_a_record_pass_the_same_place) {
  const recorded_run run = run_of(gated_problem(16, 1), "fla-chunk-gdn");
  check_request asked;
  asked.plan = "fla-chunk-gdn";
  asked.judge.accuracy = nan;
  EXPECT_THAT(thrown([&] { (void)answer(run.given, run.gave, asked, {}); }), HasSubstr("accuracy is nan"));
  asked.judge.accuracy.reset();
  asked.judge.max_bits = 7;
  EXPECT_THAT(thrown([&] { (void)answer(run.given, run.gave, asked, {}); }), HasSubstr("7 bits"));
  check_record record;
  record.judge.false_alarm = nan;
  EXPECT_THAT(thrown([&] { (void)check(run.given, run.gave, options_of(record)); }), HasSubstr("false-alarm probability is nan"));
  result no_chunk = run.gave;
  no_chunk.stages.clear();
  no_chunk.chunk_size = 0;
  EXPECT_THAT(thrown([&] { (void)check(run.given, no_chunk); }), HasSubstr("chunk_size is 0"));
  const plan declared = plan_named("fla-chunk-gdn");
  for (const double noise : {nan, inf, -1.0}) {
    emulation_options how;
    how.noise_ulps = noise;
    const plan_variant variant = variants(declared, run.given, path_kind::chunk, 64).front();
    EXPECT_THAT(thrown([&] { (void)emulate(run.given, variant, how, 1); }), HasSubstr("noise"));
  }
}

// ---- limits that zeros would pass ----

TEST(sound_limits, no_tiny_tensor_holds_far_from_the_truth) {
  std::size_t vacuous = 0;
  for (const char* name : {"fla-chunk-delta", "fla-recurrent-delta"}) {
    const plan declared = plan_named(name);
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      for (const char* regime : {"typical", "beta-two"}) {
        const problem p = delta_problem(8, 1, 1, 1, seed, regime);
        const result right = emulated(p, declared);
        const std::string what = std::string(name) + " " + regime + " " + std::to_string(seed);
        const check_report correct = check(p, right, by(declared));
        EXPECT_NE(correct.judged, verdict::refuted) << what << ": " << correct.reason;
        vacuous += correct.judged == verdict::vacuous ? 1 : 0;
        const auto judged = [&](const char* of, double factor) {
          result wrong = right;
          const auto spoil = [factor](std::size_t, double x) { return factor * x; };
          if (std::string(of) == "o") wrong.o = changed(right.o, spoil);
          if (std::string(of) == "final_state") wrong.final_state = changed(*right.final_state, spoil);
          const check_report report = check(p, wrong, by(declared));
          EXPECT_NE(report.judged, verdict::holds) << what << ": " << of << " times " << factor << ": " << report.reason;
          if (report.judged == verdict::vacuous) {
            EXPECT_FALSE(report.remedy.empty());
          }
        };
        for (const double factor : {0.0, -1.0, 1e6}) {
          judged("o", factor);
          judged("final_state", factor);
        }
      }
    }
  }
  EXPECT_LT(vacuous, 24U) << "a limit may be that wide for some, not for all";
}

// The state is read as bf16, which does not hold 1000.25: of what the two channels leave of each other nothing is left.
TEST(sound_limits, a_place_where_zeros_would_pass_is_vacuous_in_every_view) {
  const plan declared = plan_named("fla-chunk-delta");
  problem p = delta_problem(20, 2, 4, 1);
  p.q = filled(p.q, 1);
  p.beta = filled(p.beta, 0);
  p.scale = 1;
  p.initial_state = tensor::from_doubles(
      fp32, {1, 1, 2, 4}, std::vector<double>{1000.25, 1000.5, 999.75, 1000.25, -1000, -1000, -1000, -1000}, "initial_state");
  for (const double factor : {1.0, 0.0, 1.5}) {
    result r = emulated(p, declared);
    r.o = changed(r.o, [&](std::size_t, double x) { return factor * x; });
    const check_report report = check(p, r, by(declared));
    EXPECT_EQ(report.judged, verdict::vacuous) << report.reason;
    EXPECT_EQ(report.tensors[0].judged, verdict::vacuous);
    EXPECT_EQ(report.tensors[0].coverage.blind, 80U);
    EXPECT_THAT(report.reason, HasSubstr("zeros"));
    EXPECT_THAT(to_text(report, {}), HasSubstr("not judged   80 of 80 elements of o (100 %)"));
    const auto j = nlohmann::json::parse(to_json(report, {}));
    EXPECT_EQ(j["tensors"][0]["coverage"]["blind"], 80);
    EXPECT_EQ(j["tensors"][0]["buckets"][0]["verdict"], "vacuous");
    EXPECT_EQ(j["tensors"][1]["verdict"], "holds");
  }
}

// Errors scatter so much here that zeros would keep the limits on the state; no zero keeps the bound on it.
TEST(sound_limits, a_place_where_zeros_would_pass_is_judged_where_every_stage_is) {
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    const plan declared = plan_named(op == op_kind::kda ? "fla-chunk-kda" : "fla-chunk-gdn");
    const problem p = delta_problem(128, 16, 16, 1, 0, "rewritten", op);
    const result whole = emulated(p, declared, true);
    const check_report right = check(p, whole, by(declared));
    EXPECT_EQ(right.judged, verdict::holds) << right.reason;
    EXPECT_EQ(right.tensors[1].coverage.blind, 0U);
    for (const char* missing : {"u", "Ai", "all"}) {
      result r = whole;
      r.stages.erase(missing);
      if (std::string(missing) == "all") r.stages.clear();
      const check_report report = check(p, r, by(declared));
      EXPECT_EQ(report.judged, verdict::vacuous) << missing << ": " << report.reason;
      EXPECT_THAT(report.reason, HasSubstr("a kernel that writes only zeros would pass"));
      EXPECT_THAT(report.remedy, HasSubstr("store every stage of the kernel"));
    }
    result zeros = whole;
    zeros.final_state = filled(*zeros.final_state, 0);
    EXPECT_EQ(check(p, zeros, by(declared)).judged, verdict::refuted);
  }
}

// Each preset of a kernel may be the kernel's: that whose contract the inputs break says least about it.
TEST(sound_limits, a_kernel_that_keeps_none_of_its_plans_is_told_by_one_that_could_work) {
  problem p = delta_problem(96, 16, 16, 1, 1, "typical", op_kind::kda);
  p.g = changed(*p.g, [](std::size_t, double) { return -8; });
  const plan could = plan_named("fla-chunk-kda"), cannot = plan_named("fla-chunk-kda-safe-gate");
  result r = emulated(p, could, true);
  r.stages.at("A") = changed(r.stages.at("A"), [](std::size_t, double x) { return 1.5 * x; });
  check_options options = by(cannot);
  options.plans = {cannot, could};
  const check_report report = check(p, r, options);
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_EQ(report.conformance->plan, could.name);
  EXPECT_THAT(report.reason, HasSubstr("A: sequence 0"));
}

TEST(sound_limits, an_error_that_the_plan_declares_of_its_hardware_is_the_plans_own) {
  plan declared = plan_named("fla-chunk-gdn");
  declared.hardware.exp2_ulps = 1e6;
  const problem p = gated_problem(96, 1);
  result zeros = emulated(p, declared);
  check_options options = by(declared, true);
  EXPECT_FALSE(check(p, zeros, options).conformance->adequacy.adequate);
  zeros.o = filled(zeros.o, 0);
  zeros.final_state = filled(*zeros.final_state, 0);
  EXPECT_EQ(check(p, zeros, options).judged, verdict::refuted);
  // What shipped declares as much as its formats cost anyway.
  const plan shipped = plan_named("fla-chunk-gdn");
  EXPECT_EQ(check(p, emulated(p, shipped), by(shipped)).judged, verdict::holds);
}

TEST(sound_limits, a_bound_that_zeros_would_keep_says_nothing) {
  const problem p = delta_problem(40, 8, 8, 1);
  result r = emulated(p, plan_named("fla-recurrent-delta"));
  const auto judged = [&](const result& of, const char* limit) {
    check_options options;
    options.judge.bounds.push_back(parse_tensor_bound(limit, because("a test")));
    return check(p, of, options);
  };
  EXPECT_EQ(judged(r, "rel_fro=0.05").judged, verdict::holds);
  for (const char* limit : {"rel_fro=1", "rel_fro=2", "o:max_abs=1e9", "o:fla_ratio=1.1", "final_state:ulps=1e20"}) {
    EXPECT_EQ(judged(r, limit).judged, verdict::vacuous) << limit;
    EXPECT_THAT(judged(r, limit).reason, HasSubstr("zeros")) << limit;
    EXPECT_THAT(judged(r, limit).remedy, HasSubstr("--max-error")) << limit;
  }
  result zeros = r;
  zeros.o = filled(r.o, 0);
  EXPECT_EQ(judged(zeros, "o:rel_fro=1.5").judged, verdict::vacuous);
  EXPECT_EQ(judged(zeros, "o:rel_fro=0.5").judged, verdict::refuted);
  // Beside a plan that says something such a bound takes nothing away.
  check_options both = by(plan_named("fla-recurrent-delta"));
  both.judge.bounds.push_back(parse_tensor_bound("o:max_abs=1e9", because("a test")));
  EXPECT_EQ(check(p, r, both).judged, verdict::holds);
}

TEST(sound_limits, zeros_where_zeros_are_right_show_nothing) {
  problem p = delta_problem(40, 8, 8, 1);
  p.v = filled(p.v, 0);
  p.initial_state.reset();
  const plan declared = plan_named("fla-recurrent-delta");
  const result r = emulated(p, declared);
  const check_report planned = check(p, r, by(declared));
  EXPECT_EQ(planned.judged, verdict::vacuous) << planned.reason;
  check_options options;
  options.judge.bounds.push_back(parse_tensor_bound("rel_fro=0.01", because("a test")));
  EXPECT_EQ(check(p, r, options).judged, verdict::vacuous);
  EXPECT_THAT(check(p, r, options).remedy, HasSubstr("inputs whose exact outputs are not 0"));
  // Something else than zeros is wrong all the same.
  result wrong = r;
  wrong.o = filled(r.o, 1e-3);
  EXPECT_EQ(check(p, wrong, by(declared)).judged, verdict::refuted);
  EXPECT_EQ(check(p, wrong, options).judged, verdict::refuted);
  // One head of four with nothing to say takes nothing from the others.
  problem one = delta_problem(40, 8, 8, 4);
  one.v = changed(one.v, [](std::size_t i, double x) { return i / 8 % 4 == 1 ? 0.0 : x; });
  one.initial_state.reset();
  EXPECT_EQ(check(one, emulated(one, declared), by(declared)).judged, verdict::holds);
}

TEST(sound_limits, correctly_rounded_zeros_show_nothing) {
  problem p = delta_problem(10, 4, 4, 1);
  p.initial_state.reset();
  const auto judged = [](const problem& of) {
    result r = emulated(of, plan_named("fla-recurrent-delta"));
    r.final_state.reset();
    const reference truth = solve(of);
    r.o = changed(r.o, [&](std::size_t i, double) { return truth.o.value[i]; });
    return rounding_trial(of, {})(r).judged;
  };
  EXPECT_EQ(judged(p), verdict::holds);
  p.v = filled(p.v, 0);
  EXPECT_EQ(judged(p), verdict::vacuous);
  EXPECT_EQ(judged(delta_problem(0, 4, 4, 1)), verdict::vacuous);
  trial_options wrong;
  wrong.judge.max_bits = 7;
  EXPECT_THAT(thrown([&] { (void)rounding_trial(p, wrong)(emulated(p, plan_named("fla-recurrent-delta"))); }),
              HasSubstr("7 bits"));
}

// ---- what nobody judged ----

/// 16 heads, in all but one of which keys of 1e30 and values of 1e10 take the recurrence out of its formats at once.
problem mostly_out_of_range(std::size_t tokens, bool read) {
  problem p = delta_problem(tokens, 8, 8, 16);
  const auto spoilt = [](std::size_t i) { return i / 8 % 16 != 3; };
  p.k = changed(p.k, [&](std::size_t i, double x) { return spoilt(i) ? 1e30 : x; });
  p.v = changed(p.v, [&](std::size_t i, double x) { return spoilt(i) ? 1e10 : x; });
  if (read) p.q = changed(p.q, [&](std::size_t i, double x) { return spoilt(i) ? 1.0 : x; });
  if (!read) p.q = changed(p.q, [&](std::size_t i, double x) { return spoilt(i) ? 0.0 : x; });
  p.initial_state.reset();
  return p;
}

/// `o` and `state` in the heads that are out of range.
result with_garbage(const problem& p, const plan& declared, double o, double state) {
  result r = emulated(p, declared);
  r.o = changed(r.o, [&](std::size_t i, double x) { return i / 8 % 16 != 3 ? o : x; });
  r.final_state = changed(*r.final_state, [&](std::size_t i, double x) { return i / 64 % 16 != 3 ? state : x; });
  return r;
}

TEST(sound_coverage, garbage_in_most_heads_does_not_hold) {
  const plan declared = plan_named("fla-recurrent-delta");
  for (const bool read : {true, false}) {
    SCOPED_TRACE(read);
    const problem p = mostly_out_of_range(64, read);
    for (const bool with_plan : {true, false}) {
      const check_options options = with_plan ? by(declared) : check_options{};
      const check_report report = check(p, with_garbage(p, declared, 42, -7), options);
      ASSERT_TRUE(report.diverges);
      // 42 is wrong where the exact outputs are beyond bf16; where nothing reads the state, nobody can say.
      EXPECT_EQ(report.judged, read ? verdict::refuted : verdict::vacuous) << report.reason;
      EXPECT_THAT(report.reason, HasSubstr(read ? "more than twice the largest number" : "93.8 %"));
      EXPECT_THAT(to_text(report, {}), HasSubstr("not judged   7680 of 8192 elements of o (93.8 %)"));
      EXPECT_EQ(report.tensors[1].coverage.out_of_range, 960U);
    }
    // What a correct kernel leaves there is infinities and NaN.
    const check_report correct = check(p, emulated(p, declared), by(declared));
    EXPECT_NE(correct.judged, verdict::refuted) << correct.reason;
    EXPECT_EQ(correct.tensors[0].beyond_range, 0U);
    for (const double x : {nan, inf}) {
      const check_report due = check(p, with_garbage(p, declared, x, x), by(declared));
      EXPECT_EQ(due.judged, verdict::vacuous);
      EXPECT_THAT(due.reason, HasSubstr("7680 of 8192 elements of o (93.8 %)"));
    }
  }
}

TEST(sound_coverage, a_finite_result_beyond_the_range_of_its_format_is_refuted) {
  // One key of 1e30 at the last token: k (v - k^T S) is of the order of 1e60, and so is what q reads of it.
  const plan declared = plan_named("fla-recurrent-delta");
  problem p = delta_problem(20, 4, 4, 1, 5);
  p.initial_state.reset();
  p.v = filled(p.v, 1);
  p.beta = filled(p.beta, 1);
  p.q = filled(p.q, 1);
  p.k = changed(p.k, [](std::size_t i, double x) { return i / 4 < 19 ? (x < 0 ? -0.5 : 0.5) : 1e30; });
  const result right = emulated(p, declared);
  const check_report correct = check(p, right, by(declared));
  ASSERT_TRUE(correct.diverges);
  EXPECT_EQ(correct.diverges->token, 19U);
  EXPECT_EQ(correct.tensors[0].beyond_range + correct.tensors[1].beyond_range, 0U) << correct.reason;
  for (const double x : {0.0, 42.0, -42.0, 1e30}) {
    result wrong = right;
    wrong.final_state = filled(*right.final_state, x);
    const check_report report = check(p, wrong, by(declared));
    EXPECT_EQ(report.judged, verdict::refuted) << x << ": " << report.reason;
    ASSERT_EQ(report.tensors.size(), 2U);
    EXPECT_GT(report.tensors[1].beyond_range, 0U);
    EXPECT_THAT(report.reason, HasSubstr("final_state is"));
    EXPECT_TRUE(nlohmann::json::parse(to_json(report, {}))["tensors"][1]["first_beyond_range"].is_object());
  }
  // The largest number, with the sign of the exact value, is what a kernel that saturates leaves.
  result saturated = right;
  saturated.final_state = changed(
      *right.final_state, [](std::size_t, double x) { return std::isnan(x) ? x : std::clamp(x, -largest(fp32), largest(fp32)); });
  EXPECT_EQ(check(p, saturated, by(declared)).tensors[1].beyond_range, 0U);
}

TEST(sound_coverage, one_flipped_bit_of_a_key_hides_nothing) {
  const plan declared = plan_named("fla-chunk-gdn");
  problem p = gated_problem(256, 1);
  p.k = changed(p.k, [](std::size_t i, double x) { return i == 5 * 16 + 3 ? std::ldexp(x == 0 ? 0.1 : x, 120) : x; });
  result r = emulated(p, declared);
  r.o = changed(r.o, [](std::size_t i, double x) { return i / 12 >= 5 ? 42.0 : x; });
  r.final_state = filled(*r.final_state, -7);
  const check_report report = check(p, r, by(declared));
  ASSERT_TRUE(report.diverges);
  EXPECT_NE(report.judged, verdict::holds) << report.reason;
  EXPECT_NE(check(p, r).judged, verdict::measured);
}

TEST(sound_coverage, no_tokens_and_no_heads_judged_are_vacuous) {
  const problem p = delta_problem(0, 8, 8, 1);
  const plan declared = plan_named("fla-recurrent-delta");
  EXPECT_EQ(check(p, emulated(p, declared), by(declared)).judged, verdict::vacuous);
  EXPECT_EQ(check(p, emulated(p, declared)).judged, verdict::vacuous);
  // No token may change the state.
  result moved = emulated(p, declared);
  moved.final_state = changed(*moved.final_state, [](std::size_t, double x) { return x + 1; });
  EXPECT_EQ(check(p, moved, by(declared)).judged, verdict::refuted);
}

// ---- entries that no kernel reads ----

TEST(sound_padding, what_lies_in_entries_that_nobody_reads_is_noted) {
  const plan declared = plan_named("fla-chunk-kda");
  const problem p = delta_problem(70, 8, 8, 1, 1, "typical", op_kind::kda);
  const result clean = emulated(p, declared, true);
  check_options options = by(declared), strict = options;
  options.memory = strict.memory = make_referee_memory();
  strict.judge.strict_padding = true;
  EXPECT_TRUE(check(p, clean, options).unread.empty());
  EXPECT_EQ(check(p, clean, strict).judged, verdict::holds);
  for (const char* stage : {"A", "Ai", "Aqk"}) {
    for (const double garbage : {5.0, nan}) {
      result r = clean;
      // Row 2 of the first chunk reads columns before 3 at most; row 66 lies in a chunk of 6 rows.
      const auto spoil = [&](std::size_t i, double x) { return i == 2 * 64 + 3 || i == 66 * 64 + 60 ? garbage : x; };
      r.stages.at(stage) = changed(clean.stages.at(stage), spoil);
      const check_report report = check(p, r, options);
      EXPECT_EQ(report.judged, verdict::holds) << stage << ": " << report.reason;
      ASSERT_EQ(report.unread.size(), 1U) << stage;
      EXPECT_EQ(report.unread[0].stage, stage);
      EXPECT_EQ(report.unread[0].nonzero, 2U);
      EXPECT_EQ(report.unread[0].nonfinite, std::isnan(garbage) ? 2U : 0U);
      ASSERT_TRUE(report.unread[0].first);
      EXPECT_EQ(report.unread[0].first->row, 2U);
      EXPECT_EQ(report.unread[0].first->element, 3U);
      EXPECT_THAT(to_text(report, {}), HasSubstr("entries of " + std::string(stage) + " that no kernel reads are not 0"));
      EXPECT_THAT(nlohmann::json::parse(to_json(report, {}))["notes"].dump(), HasSubstr("that no kernel reads"));
      const check_report refused = check(p, r, strict);
      EXPECT_EQ(refused.judged, verdict::refuted);
      EXPECT_THAT(refused.reason, HasSubstr("chunk 0, row 2, column 3"));
    }
  }
}

TEST(sound_padding, a_request_carries_it_into_command_and_record) {
  check_request asked;
  asked.judge.strict_padding = true;
  asked.plan = "fla-chunk-gdn";
  EXPECT_THAT(options_text(asked), HasSubstr("--strict-padding"));
  const recorded_run run = run_of(gated_problem(16, 1), "fla-chunk-gdn");
  const answered_check answered = answer(run.given, run.gave, asked, {});
  ASSERT_TRUE(answered.identity.record);
  EXPECT_TRUE(options_of(*answered.identity.record).judge.strict_padding);
  EXPECT_TRUE(nlohmann::json::parse(to_json(answered.report, answered.identity))["options"]["strict_padding"]);
}

// ---- invariants ----

recorded_run with_outputs(recorded_run run, double x) {
  run.gave.o = filled(run.gave.o, x);
  if (run.gave.final_state) run.gave.final_state = filled(*run.gave.final_state, x);
  run.gave.stages.clear();
  return run;
}

TEST(sound_invariants, outputs_that_depend_on_nothing_are_no_invariant) {
  const problem p = gated_problem(100);
  const recorded_run whole = run_of(p, "fla-chunk-gdn"), part = run_of(cut(p, 0, 64, p.initial_state), "fla-chunk-gdn");
  EXPECT_EQ(check_invariant(invariant_kind::prefix, whole, std::vector{part}, quick()).judged, verdict::holds);
  for (const double x : {0.0, 42.0, nan, inf}) {
    const invariant_report report =
        check_invariant(invariant_kind::prefix, with_outputs(whole, x), std::vector{with_outputs(part, x)}, quick());
    EXPECT_EQ(report.judged, verdict::vacuous) << x << ": " << report.reason;
    EXPECT_FALSE(report.remedy.empty());
  }
  // Most of it NaN, the same bits.
  recorded_run a = whole, b = part;
  for (recorded_run* run : {&a, &b}) {
    run->gave.o = changed(run->gave.o, [](std::size_t i, double x) { return i % 8 != 0 ? nan : x; });
  }
  EXPECT_EQ(check_invariant(invariant_kind::prefix, a, std::vector{b}, quick()).judged, verdict::vacuous);
}

TEST(sound_invariants, limits_that_judge_nothing_make_no_invariant_hold) {
  invariant_options options = quick();
  options.check.plans = {plan_named("fla-recurrent-gdn")};
  const problem p = gated_problem(40);
  const recorded_run whole = run_of(p, "fla-recurrent-gdn", 0), part = run_of(p, "fla-recurrent-gdn", 0);
  const std::vector<recorded_run> zeros{with_outputs(part, 0)};
  EXPECT_EQ(check_invariant(invariant_kind::varlen, with_outputs(whole, 0), zeros, options).judged, verdict::refuted);
}

}  // namespace
}  // namespace deltaproof
