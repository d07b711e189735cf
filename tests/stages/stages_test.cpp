// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/stages/stages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stages/stages_pipeline.hpp"
#include "stages/tally.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using testing::measure;
using testing::pipeline;
using testing::pipeline_case;
using ::testing::ThrowsMessage;

constexpr double inf = std::numeric_limits<double>::infinity();

tensor values(const format& f, std::vector<std::size_t> shape, const std::vector<double>& x) {
  return tensor::from_doubles(f, std::move(shape), x);
}

/// Two tokens, K = V = C/2 = 1: every stage is a small dyadic number, computed by hand.
struct tiny {
  problem p;
  result r;
};

tiny tiny_delta() {
  tiny t;
  t.p.op = op_kind::delta_rule;
  t.p.q = values(bf16, {1, 2, 1, 1}, {1, 2});
  t.p.k = values(bf16, {1, 2, 1, 1}, {1, 1});
  t.p.v = values(bf16, {1, 2, 1, 1}, {2, 4});
  t.p.beta = values(bf16, {1, 2, 1}, {0.5, 0.5});
  t.p.scale = 0.25;
  t.p.initial_state = values(fp32, {1, 1, 1, 1}, {4});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  t.r.chunk_size = 2;
  t.r.stages.emplace("A", values(fp32, {1, 2, 1, 2}, {nan, nan, 0.5, nan}));
  t.r.stages.emplace("Ai", values(bf16, {1, 2, 1, 2}, {1, nan, -0.5, 1}));
  t.r.stages.emplace("u", values(bf16, {1, 2, 1, 1}, {1, 1.5}));     // Ai (1, 2)
  t.r.stages.emplace("w", values(bf16, {1, 2, 1, 1}, {0.5, 0.25}));  // Ai (0.5, 0.5)
  t.r.stages.emplace("h", values(bf16, {1, 1, 1, 1, 1}, {4}));
  t.r.stages.emplace("v_new", values(bf16, {1, 2, 1, 1}, {-1, 0.5}));  // u - 4 w
  t.r.o = values(bf16, {1, 2, 1, 1}, {0.75, 1.75});                    // (4 - 1)/4, 2 (4 - 1 + 0.5)/4
  t.r.final_state = values(fp32, {1, 1, 1, 1}, {3.5});
  return t;
}

void replace(result& r, const std::string& stage, std::size_t flat, double x) {
  tensor& t = stage == "o" ? r.o : stage == "final_state" ? *r.final_state : r.stages.at(stage);
  std::vector<double> all = t.to_doubles();
  all[flat] = x;
  t = tensor::from_doubles(t.element_format(), t.shape(), all, t.name());
}

TEST(stages, of_a_tiny_delta_rule_are_exact) {
  const tiny t = tiny_delta();
  const stage_report report = measure(t.p, t.r);
  ASSERT_EQ(report.stages.size(), 8U);
  ASSERT_EQ(report.unjudged.size(), 2U);
  for (const stage_measurement& m : report.stages) {
    ASSERT_TRUE(m.worst) << m.name;
    EXPECT_EQ(m.worst->ratio, 0) << m.name;
    EXPECT_EQ(m.worst->got, m.worst->want) << m.name;
  }
  EXPECT_EQ(report.find("A")->judged, 1U);
  EXPECT_EQ(report.find("Ai")->judged, 3U);
  EXPECT_EQ(report.find("o")->judged, 2U);
  EXPECT_EQ(first_bad_stage(report), nullptr);
}

TEST(stages, one_unit_in_the_last_place_of_any_stage_is_found_there) {
  struct wrong {
    const char* stage;
    std::size_t flat;
    double value;
    std::size_t row;
  };
  for (const wrong& w : {wrong{"A", 2, 0.5 + 0x1p-20, 1}, wrong{"Ai", 2, -0.5 - 0x1p-8, 1}, wrong{"u", 1, 1.5 + 0x1p-7, 1},
                         wrong{"w", 1, 0.25 - 0x1p-9, 1}, wrong{"h", 0, 4 + 0x1p-5, 0}, wrong{"v_new", 0, -1 - 0x1p-7, 0},
                         wrong{"o", 1, 1.75 + 0x1p-7, 1}, wrong{"final_state", 0, 3.5 + 0x1p-18, 0}}) {
    SCOPED_TRACE(w.stage);
    tiny t = tiny_delta();
    replace(t.r, w.stage, w.flat, w.value);
    const stage_report report = measure(t.p, t.r);
    const stage_measurement* const bad = first_bad_stage(report);
    ASSERT_NE(bad, nullptr);
    EXPECT_EQ(bad->name, w.stage);
    EXPECT_EQ(bad->first_bad->row, w.row);
    EXPECT_EQ(bad->first_bad->got, w.value);
    EXPECT_THAT(describe(*bad), HasSubstr(w.stage));
  }
}

TEST(stages, with_a_decay_of_zero_are_exact) {
  // g = (0, -inf): the second token forgets everything, and G is -inf from there on.
  tiny t = tiny_delta();
  t.p.op = op_kind::gated_delta_rule;
  t.p.g = values(fp32, {1, 2, 1}, {0, -inf});
  t.r.stages.emplace("g_cumsum_log2", values(fp32, {1, 2, 1}, {0, -inf}));
  replace(t.r, "A", 2, 0);
  replace(t.r, "Ai", 2, 0);
  replace(t.r, "u", 1, 2);
  replace(t.r, "w", 1, 0);
  replace(t.r, "v_new", 1, 2);
  replace(t.r, "o", 1, 1);
  replace(t.r, "final_state", 0, 2);
  const stage_report report = measure(t.p, t.r);
  EXPECT_EQ(report.stages.size(), 9U);
  for (const stage_measurement& m : report.stages) {
    EXPECT_EQ(m.worst->ratio, 0) << m.name;
    EXPECT_EQ(m.unbounded, 0U) << m.name;
  }
}

TEST(stages, a_value_that_is_not_finite_is_counted_at_its_stage_only) {
  tiny t = tiny_delta();
  replace(t.r, "u", 1, std::numeric_limits<double>::quiet_NaN());
  const stage_report report = measure(t.p, t.r);
  EXPECT_EQ(first_bad_stage(report)->name, "u");
  EXPECT_EQ(report.find("u")->nonfinite, 1U);
  EXPECT_EQ(report.find("u")->first_bad->ratio, inf);
  // What is computed from it cannot be judged, and what is not is.
  EXPECT_EQ(report.find("v_new")->unbounded, 1U);
  EXPECT_EQ(report.find("v_new")->bad, 0U);
  EXPECT_EQ(report.find("final_state")->unbounded, 1U);
  EXPECT_EQ(report.find("o")->bad, 0U);
}

TEST(stages, nan_where_no_value_can_be_recomputed_is_bad) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // NaN from u on, as a kernel would pass it on: the first stage is named, and none that has NaN is passed over.
  tiny t = tiny_delta();
  for (const char* stage : {"u", "v_new", "o"}) replace(t.r, stage, 1, nan);
  replace(t.r, "final_state", 0, inf);
  stage_report report = measure(t.p, t.r);
  EXPECT_EQ(first_bad_stage(report)->name, "u");
  for (const char* stage : {"u", "v_new", "o", "final_state"}) {
    EXPECT_EQ(report.find(stage)->bad, 1U) << stage;
    EXPECT_EQ(report.find(stage)->nonfinite, 1U) << stage;
    EXPECT_EQ(report.find(stage)->unbounded, 0U) << stage;
  }
  EXPECT_THAT(describe(*report.find("v_new")),
              HasSubstr("where a finite number was expected; it has no bound, because an input of this stage"));
  // The caller knows that the problem diverges.
  stage_options options;
  options.judged_tokens = {1};
  report = measure_stages(t.p, t.r, testing::public_roundings(t.p, 2), options);
  EXPECT_EQ(first_bad_stage(report), nullptr);
  EXPECT_EQ(report.outcome(), stage_outcome::nothing_judged);
}

TEST(stages, nan_in_a_stage_whose_inputs_are_not_stored_is_bad) {
  for (const char* stage : {"w", "u", "h", "v_new", "o", "final_state"}) {
    SCOPED_TRACE(stage);
    pipeline_case c;
    c.op = op_kind::gated_delta_product;
    c.steps = 2;
    c.cu_seqlens = {0, 30, 79, 100};
    pipeline kernel(c);
    result r = kernel.run();
    const std::string name = stage;
    if (name == "w" || name == "u") {
      r.stages.erase("Ai");
    } else {
      r.stages.erase(name == "h" ? "u" : "w");
    }
    if (name == "o") r.stages.erase("h");
    ASSERT_EQ(measure(kernel.given(), r).outcome(), stage_outcome::inconclusive);
    ASSERT_EQ(measure(kernel.given(), r).find(name), nullptr);
    const std::size_t last = (name == "o" ? r.o : name == "final_state" ? *r.final_state : r.stages.at(name)).size() - 1;
    replace(r, name, last, inf);
    const stage_report report = measure(kernel.given(), r);
    ASSERT_NE(first_bad_stage(report), nullptr) << to_text(report);
    EXPECT_EQ(first_bad_stage(report)->name, name);
    const stage_measurement& m = *report.find(name);
    EXPECT_EQ(m.bad, 1U);
    EXPECT_EQ(m.judged, 1U);
    EXPECT_EQ(m.unbounded, last);
    EXPECT_EQ(m.first_bad->sequence, 2U);
    EXPECT_EQ(m.first_bad->head, 1U);
    EXPECT_EQ(m.first_bad->element, (name == "w" ? c.keys : c.values) - 1);
    // 21 tokens are 42 rows, one chunk.
    const bool state = name == "h" || name == "final_state";
    EXPECT_EQ(m.first_bad->row, state ? c.keys - 1 : 41U);
  }
}

TEST(stages, an_outcome_tells_a_pass_from_nothing_judged) {
  tiny t = tiny_delta();
  stage_report report = measure(t.p, t.r);
  EXPECT_EQ(report.outcome(), stage_outcome::within);
  EXPECT_EQ(report.judged(), 14U);  // 1 of A, 3 of Ai, 2 each of u, w, v_new and o, 1 each of h and final_state
  EXPECT_THAT(to_text(report), HasSubstr("outcome: within"));
  tiny other = t;
  other.r.stages.erase("Ai");  // u and w, though stored, cannot be judged
  EXPECT_EQ(measure(other.p, other.r).outcome(), stage_outcome::inconclusive);
  other.r.stages.erase("A");
  other.r.stages.erase("u");
  other.r.stages.erase("v_new");
  report = measure(other.p, other.r);
  EXPECT_EQ(first_bad_stage(report), nullptr);
  EXPECT_EQ(report.judged(), 0U);
  EXPECT_EQ(report.outcome(), stage_outcome::nothing_judged);
  EXPECT_THAT(to_text(report), HasSubstr("outcome: nothing judged"));
  // A finite value computed from one that is not.
  other = t;
  replace(other.r, "A", 2, inf);
  EXPECT_EQ(measure(other.p, other.r).outcome(), stage_outcome::bad);
  EXPECT_EQ(measure(other.p, other.r).find("Ai")->unbounded, 1U);
}

TEST(stages, a_fault_says_where_it_begins) {
  pipeline_case c;
  c.tokens = 150;
  pipeline kernel(c);
  result r = kernel.run();
  // Head 1, row 10 of chunk 2 (token 106), column 3 of u.
  const std::size_t flat = (106 * c.value_heads + 1) * c.values + 3;
  replace(r, "u", flat, r.stages.at("u").at(flat) * 2);
  const stage_report report = measure(kernel.given(), r);
  const stage_measurement* const bad = first_bad_stage(report);
  ASSERT_NE(bad, nullptr);
  EXPECT_EQ(bad->name, "u");
  EXPECT_EQ(bad->bad, 1U);
  EXPECT_EQ(bad->first_bad->head, 1U);
  EXPECT_EQ(bad->first_bad->chunk, 2U);
  EXPECT_EQ(bad->first_bad->row, 10U);
  EXPECT_EQ(bad->first_bad->element, 3U);
  EXPECT_THAT(describe(*bad), HasSubstr("u: sequence 0, head 1, chunk 2, row 10, column 3"));
}

TEST(stages, of_which_inputs_are_missing_are_named_and_the_rest_is_judged) {
  pipeline kernel(pipeline_case{});
  result r = kernel.run();
  r.stages.erase("Ai");
  r.stages.erase("g_cumsum_log2");
  stage_report report = measure(kernel.given(), r);
  EXPECT_EQ(first_bad_stage(report), nullptr) << to_text(report);
  EXPECT_EQ(report.find("w"), nullptr);
  EXPECT_EQ(report.find("u"), nullptr);
  EXPECT_GT(report.find("A")->judged, 0U);
  EXPECT_GT(report.find("h")->judged, 0U);
  EXPECT_THAT(to_text(report), HasSubstr("needs Ai, which is not stored"));
  // h and v_new are rebuilt for o where they are not stored.
  r = kernel.run();
  r.stages.erase("h");
  r.stages.erase("v_new");
  r.stages.erase("A");
  report = measure(kernel.given(), r);
  EXPECT_EQ(first_bad_stage(report), nullptr) << to_text(report);
  EXPECT_GT(report.find("o")->judged, 0U);
  EXPECT_GT(report.find("Ai")->judged, 0U);
  r.stages.clear();
  report = measure(kernel.given(), r);
  EXPECT_TRUE(report.stages.empty());
  EXPECT_EQ(report.outcome(), stage_outcome::nothing_judged);
  EXPECT_EQ(report.unjudged.size(), judged_stages.size());
}

TEST(stages, past_the_judged_tokens_are_counted_not_judged) {
  pipeline_case c;
  pipeline kernel(c);
  result r = kernel.run();
  for (std::size_t i = 60 * c.value_heads * c.values; i < r.o.size(); ++i)
    replace(r, "o", i, std::numeric_limits<double>::quiet_NaN());
  stage_options options;
  options.judged_tokens = {60, 100};
  options.threads = 1;
  const stage_roundings roundings = testing::public_roundings(kernel.given(), c.chunk);
  const stage_report report = measure_stages(kernel.given(), r, roundings, options);
  const stage_measurement& o = *report.find("o");
  EXPECT_EQ(o.judged, (48 + 100) * c.values);
  EXPECT_EQ(o.skipped, 52 * c.values);
  EXPECT_EQ(o.first_bad->head, 1U);
  EXPECT_EQ(o.nonfinite, 40 * c.values);
  EXPECT_EQ(report.find("final_state")->judged, c.keys * c.values);
  options.judged_tokens = {1};
  EXPECT_THAT([&] { return measure_stages(kernel.given(), r, roundings, options); },
              ThrowsMessage<shape_error>(HasSubstr("judged_tokens")));
}

TEST(stages, of_no_tokens_are_the_initial_state) {
  pipeline_case c;
  c.tokens = 0;
  pipeline kernel(c);
  const stage_report report = measure(kernel.given(), kernel.run());
  EXPECT_EQ(report.find("o")->judged, 0U);
  EXPECT_EQ(report.find("final_state")->judged, c.value_heads * c.keys * c.values);
  EXPECT_EQ(report.find("final_state")->worst->ratio, 0);
}

TEST(stages, do_not_depend_on_the_number_of_threads) {
  pipeline_case c;
  c.value_heads = 4;
  pipeline kernel(c);
  const result r = kernel.run("o: truncated");
  stage_options options;
  options.threads = 1;
  const stage_roundings roundings = testing::public_roundings(kernel.given(), c.chunk);
  const std::string one = to_text(measure_stages(kernel.given(), r, roundings, options));
  options.threads = 4;
  EXPECT_EQ(one, to_text(measure_stages(kernel.given(), r, roundings, options)));
}

TEST(stages, refuse_what_they_cannot_measure) {
  tiny t = tiny_delta();
  stage_roundings roundings = testing::public_roundings(t.p, 2);
  roundings.inverse.clear();
  EXPECT_THAT([&] { return measure_stages(t.p, t.r, roundings); },
              ThrowsMessage<domain_error>(HasSubstr("stage_roundings::inverse")));
  roundings = testing::public_roundings(t.p, 2);
  roundings.gram[0].block = 0;
  EXPECT_THAT([&] { return measure_stages(t.p, t.r, roundings); }, ThrowsMessage<domain_error>(HasSubstr("blocks of 0 rows")));
  roundings = testing::public_roundings(t.p, 2);
  roundings.output_span = 0;
  EXPECT_THAT([&] { return measure_stages(t.p, t.r, roundings); }, ThrowsMessage<domain_error>(HasSubstr("output_span")));
  t.r.chunk_size.reset();
  EXPECT_THAT([&] { return measure_stages(t.p, t.r, testing::public_roundings(t.p, 2)); },
              ThrowsMessage<domain_error>(HasSubstr("chunk_size")));
}

// bf16 has 8 bits: 1 + 2^-10 lies an eighth of an ulp from 1, 1 + 3 2^-10 lies 3/8 from it; half an ulp is the bound.
TEST(stages, errors_of_right_roundings_are_as_expected_and_scatter_by_their_fourth_powers) {
  stages_detail::tally of(bf16);
  const std::vector<double> want{1 + 0x1p-10, 1 + 0x3p-10, 1}, got{1, 1, 1}, exact{0, 0, 0};
  of.add({}, got, want, exact);
  const stage_measurement m = of.finish();
  const double squares = 1.0 / 16 + 9.0 / 16, fourths = 1.0 / 256 + 81.0 / 256;
  EXPECT_DOUBLE_EQ(m.rms_ratio, std::sqrt(squares / 3));
  EXPECT_DOUBLE_EQ(m.rms_expected, m.rms_ratio);
  EXPECT_DOUBLE_EQ(m.rms_scatter, std::sqrt(fourths - squares * squares / 3) / (2 * squares));
  stages_detail::tally other(bf16);
  other.add({}, std::vector<double>{1 + 0x1p-7}, std::vector<double>{1 + 0x3p-10},
            std::vector<double>{0});  // rounded the wrong way
  EXPECT_DOUBLE_EQ(other.finish().rms_ratio, 1.25);
  EXPECT_DOUBLE_EQ(other.finish().rms_expected, 0.75);
}

TEST(stages, ratio_histogram_has_its_quantiles) {
  ratio_histogram h;
  EXPECT_EQ(h.quantile(0.5), 0);
  for (int i = 1; i <= 100; ++i) h.add(i / 100.0);
  h.add(3);
  h.add(inf);
  EXPECT_EQ(h.count(), 102U);
  EXPECT_NEAR(h.quantile(0.5), 0.51, 1.0 / 64);
  EXPECT_EQ(h.quantile(1), inf);
  EXPECT_NEAR(h.share_above(1), 2.0 / 102, 1e-12);
  EXPECT_NEAR(h.share_above(0.5), 52.0 / 102, 1e-12);
}

TEST(stages, ratio_histogram_takes_many_as_one_by_one) {
  std::vector<double> ratios{0, 5e-324, 2, 2 + 0x1p-51, 1e300, inf};
  for (int i = 0; i < 200; ++i) ratios.push_back(i % 3 == 0 ? i / 64.0 : i * 0.0137);
  ratio_histogram many, single;
  many.add(ratios);
  for (const double x : ratios) single.add(x);
  EXPECT_EQ(many.count(), single.count());
  for (int i = 0; i <= 1000; ++i) EXPECT_EQ(many.quantile(i / 1000.0), single.quantile(i / 1000.0)) << i;
}

}  // namespace
}  // namespace deltaproof
