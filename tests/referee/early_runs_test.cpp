// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Of a long head most runs on perturbed inputs stop early: limits of what they do not reach.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/plan/plan.hpp"
#include "emulate/products.hpp"
#include "referee/lanes.hpp"

namespace deltaproof {
namespace {

const plan& gdn() {
  return *std::find_if(plans().begin(), plans().end(), [](const plan& x) { return x.name == "fla-chunk-gdn"; });
}

problem drawn(std::size_t tokens) {
  generation g;
  g.regime = "typical";
  g.op = op_kind::gated_delta_rule;
  g.tokens = tokens;
  g.key_dim = g.value_dim = 32;
  g.key_heads = g.value_heads = 2;
  g.seed = 3;
  return generate(g);
}

/// With so little time that more runs than needed are not cheap.
plan_report judged(const problem& p, const result& r, double seconds = 0.1) {
  check_options options;
  options.plans = {gdn()};
  options.threads = 1;
  options.judge.power = false;
  options.judge.seconds = seconds;
  return *check(p, r, options).conformance;
}

emulation_options another_build() {
  emulation_options options;
  options.noise_ulps = 1;
  options.seed = 9;
  return options;
}

result emulated(const problem& p) { return emulate(p, variants(gdn(), p, path_kind::chunk, 64).front(), another_build(), 1); }

TEST(early_runs, stop_after_a_bucket_at_an_eighth_of_the_tokens_or_before) {
  using referee_detail::lane;
  const auto end = [](std::size_t tokens, std::size_t judged) {
    return referee_detail::early_end(lane{0, 0, {0, 0, tokens}, judged, true}, 64);
  };
  EXPECT_EQ(end(511, 511), 0U);
  EXPECT_EQ(end(512, 512), 64U);
  EXPECT_EQ(end(1023, 1023), 64U);
  EXPECT_EQ(end(1024, 1024), 128U);
  EXPECT_EQ(end(4096, 4096), 512U);
  EXPECT_EQ(end(4096, 4000), 0U);  // the rest of it is not judged
}

TEST(early_runs, are_those_of_long_heads_where_time_is_short) {
  const problem shorter = drawn(448), longer = drawn(512);
  const plan_report of_short = judged(shorter, emulated(shorter)), of_long = judged(longer, emulated(longer));
  EXPECT_EQ(of_short.whole_runs, of_short.runs);
  const plan_report with_time = judged(longer, emulated(longer), 30);
  EXPECT_EQ(with_time.whole_runs, with_time.runs);
  EXPECT_EQ(of_long.whole_runs, 3U);  // enough at once: too few would have been doubled
  EXPECT_LT(of_long.whole_runs, of_long.runs);
  for (const plan_report* report : {&of_short, &of_long}) {
    EXPECT_EQ(report->conforms, verdict::holds) << report->reason;
    for (const judged_statistic& s : report->statistics) EXPECT_TRUE(s.limit.finite && s.limit.enough) << s.limit.provenance;
  }
}

TEST(early_runs, of_heads_that_do_not_run_often_have_degrees_enough_for_a_spread) {
  using referee_detail::lane;
  const auto runs = [](std::size_t tokens, bool state) {
    return referee_detail::few_runs(lane{0, 0, {0, 0, tokens}, tokens, state}, 64);
  };
  EXPECT_EQ(runs(511, true), 0U);
  EXPECT_EQ(runs(512, true), 9U);  // 8 degrees in one bucket, and 8 of the state
  EXPECT_EQ(runs(512, false), 17U);
  EXPECT_EQ(runs(4096, true), 5U);  // buckets end at 64, 128, 256 and 512
}

TEST(early_runs, are_made_of_heads_that_do_not_run_often_too) {
  const problem shorter = drawn(448), longer = drawn(512);
  EXPECT_THAT(judged(longer, emulated(longer)).slice, ::testing::HasSubstr("and a few times for the first variant"));
  EXPECT_THAT(judged(shorter, emulated(shorter)).slice, ::testing::Not(::testing::HasSubstr("a few times")));
  EXPECT_EQ(judged(longer, emulated(longer), 30).slice, "every head");
}

TEST(early_runs, leave_late_tokens_and_the_state_with_limits_of_their_own) {
  const problem p = drawn(1024);
  const result correct = emulated(p);
  ASSERT_LT(judged(p, correct).whole_runs, judged(p, correct).runs);
  const auto moved = [](const tensor& x, std::size_t first, double by) {
    std::vector<double> values = x.to_doubles();
    for (std::size_t i = first; i < values.size(); ++i)
      values[i] = emulation::narrowed(values[i] * (1 + by * (i % 2 == 0 ? 1 : -1)), {x.element_format(), false});
    return tensor::from_doubles(x.element_format(), x.shape(), values, "moved");
  };
  result late = correct;
  late.o = moved(correct.o, correct.o.size() / 2, 0x1p-6);
  const plan_report of_late = judged(p, late);
  EXPECT_EQ(of_late.conforms, verdict::refuted);
  for (const judged_statistic& s : of_late.statistics) {
    if (s.norm == norm_kind::rms && s.tensor == "o") EXPECT_EQ(s.judged == verdict::refuted, s.first_token >= 512) << s.got;
  }
  result state = correct;
  state.final_state = moved(*correct.final_state, 0, 0x1p-6);
  EXPECT_EQ(judged(p, state).first_bad_stage, "final_state");
}

}  // namespace
}  // namespace deltaproof
