// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Errors by tile: what is wrong in one chunk and 16 columns alone, and too small for the norms over many.
#include "referee/tiles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "emulate/products.hpp"

namespace deltaproof {
namespace {

using referee_detail::tile;
using referee_detail::tile_floors;
using referee_detail::tile_rms;
using referee_detail::tile_runs;
using referee_detail::tiles_of_head;
using referee_detail::tiling;
using referee_detail::typical_tiles;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(tiles, are_chunks_of_rows_in_sixteen_columns) {
  const tiling x{10, 20, 4};
  ASSERT_EQ(x.size(), 6U);
  const tile last = x.at(5);
  EXPECT_EQ(last.first_row, 8U);
  EXPECT_EQ(last.rows, 2U);
  EXPECT_EQ(last.first_column, 16U);
  EXPECT_EQ(last.columns, 4U);
  EXPECT_EQ(x.of_rows(4, 9).first, 2U);
  EXPECT_EQ(x.of_rows(4, 9).last, 6U);
  EXPECT_EQ(x.of_rows(4, 8).last, 4U);
  EXPECT_EQ(x.of_rows(4, 4).first, x.of_rows(4, 4).last);
  EXPECT_EQ((tiling{3, 20, 0}.size()), 2U);
  EXPECT_EQ((tiling{0, 20, 4}.size()), 0U);
  EXPECT_EQ((tiling{0, 20, 0}.size()), 0U);
}

TEST(tiles, have_the_rms_of_what_is_judged_in_them) {
  std::vector<double> values(2 * 17, 0);
  values[16] = 3, values[33] = 4, values[5] = -2;
  const tiling where{2, 17, 1};
  EXPECT_THAT(tile_rms(where, values.data()), ElementsAre(0.5, 3, 0, 4));
  std::vector<bool> skip(values.size(), false);
  skip[33] = true;
  values[33] = std::nan("");
  EXPECT_THAT(tile_rms(where, values.data(), skip), ElementsAre(0.5, 3, 0, 0));
  EXPECT_EQ(tile_rms(where, values.data())[3], std::numeric_limits<double>::infinity());
}

TEST(tiles, are_measured_by_what_runs_on_the_given_inputs_err) {
  // Two variants, each with runs on the given inputs and on perturbed ones, and two tiles; nothing in the second is below 2.
  const tile_runs runs{{{1, 0}, {8, 8}}, {{3, 1}, {4, 9}}, {{2, 1}}, {{6, 1}}};
  const tiles_of_head known(runs, {0, 2});
  EXPECT_THAT(known.scales(), ElementsAre(2, 2));
  EXPECT_EQ(known.worst_of({0, 1}, {0, 2}).at, 1U);
  EXPECT_EQ(known.worst_of({0, 1}, {0, 2}).ratio, 0.5);
  EXPECT_EQ(known.worst_of({0, 0}, {0, 2}).ratio, 0);
  EXPECT_EQ(known.worst_of({std::numeric_limits<double>::infinity(), 0}, {1, 2}).ratio, 0);
  EXPECT_EQ(known.worst_of({std::nan(""), 0}, {0, 2}).ratio, std::numeric_limits<double>::infinity());
  const statistic like{"o", 3, 0, norm_kind::rms, 0, {{0, 0}, {0, 0}, {0}, {0}}};
  typical_tiles typical;
  const auto s = known.samples_of({0, 2}, like, typical);
  ASSERT_TRUE(s.has_value());
  EXPECT_EQ(s->norm, norm_kind::tiles);
  EXPECT_EQ(s->floor, 0.5);
  EXPECT_EQ(s->allowance, open_order);
  // On perturbed inputs: {3, 1} and {6, 1} beside {4, 9}, {4, 9} beside {3, 2}, and all beside {2, 2}.
  EXPECT_THAT(s->samples, ElementsAre(ElementsAre(0.5, 4), ElementsAre(1.5, 4.5), ElementsAre(1), ElementsAre(3)));
  // A run that errs little in a tile is no measure of it.
  const tile_runs small{{{5}}, {{5}, {0.5}, {5}}};
  const statistic three{"o", 0, 0, norm_kind::rms, 0, {{0}, {0, 0, 0}}};
  EXPECT_THAT(tiles_of_head(small, {0}).samples_of({0, 1}, three, typical)->samples[1], ElementsAre(10, 0.1, 1));
  // A head that ran once takes the runs on perturbed inputs of those that ran often, of the nearest bucket before its own.
  const tile_runs once{{{1, 1}}, {{}}, {{1, 1}}, {{}}};
  const tiles_of_head alone(once, {0, 0});
  const statistic room{"o", 4, 1, norm_kind::rms, 0, {{0}, {0}, {0}, {0}}};
  EXPECT_FALSE(alone.samples_of({0, 2}, room, typical).has_value());
  typical.add(*s);
  EXPECT_FALSE(alone.samples_of({0, 2}, {"final_state", 4, 1, norm_kind::rms, 0, room.samples}, typical).has_value());
  const auto borrowed = alone.samples_of({0, 2}, room, typical);
  ASSERT_TRUE(borrowed.has_value());
  EXPECT_EQ(borrowed->samples[0][0], 1);
  EXPECT_NEAR(borrowed->samples[1][0], std::sqrt(1.5 * 4.5), 1e-12);
  EXPECT_NEAR(borrowed->samples[3][0], 3, 1e-12);
  // Of several heads that ran often the largest counts.
  statistic larger = *s;
  larger.samples[3] = {5};
  typical.add(larger);
  typical.add(*s);
  EXPECT_NEAR(alone.samples_of({0, 2}, room, typical)->samples[3][0], 5, 1e-12);
}

TEST(tiles, of_runs_that_stop_early_are_measured_by_each_other) {
  // On perturbed inputs two runs have both tiles and two the first alone.
  const tile_runs runs{{{1, 1}}, {{3, 1}, {4, 9}, {2}, {5}}};
  const tiles_of_head known(runs, {0, 0}, 2);
  const typical_tiles none;
  const statistic early{"o", 0, 0, norm_kind::rms, 0, {{0}, {0, 0, 0, 0}}}, late{"o", 1, 0, norm_kind::rms, 0, {{0}, {0, 0}}};
  EXPECT_THAT(known.samples_of({0, 1}, early, none)->samples[1], ElementsAre(3, 4, 2, 5));
  EXPECT_THAT(known.samples_of({1, 2}, late, none)->samples[1], ElementsAre(1, 9));
  // A state that such runs leave is not the state that is judged.
  statistic state{"final_state", 0, 0, norm_kind::rms, 0, {{0}, {0, 0}}};
  state.neighbours = {{}, {0, 0}};
  const auto s = known.samples_of({0, 1}, state, none);
  EXPECT_THAT(s->samples[1], ElementsAre(3, 4));
  EXPECT_THAT(s->neighbours[1], ElementsAre(0.4, 2.5));
}

TEST(tiles, of_a_head_of_few_runs_are_those_of_others_where_none_of_these_comes) {
  const tile_runs runs{{{1, 1}}, {{3}, {4}, {2}}};  // three on perturbed inputs have the first tile alone
  const tiles_of_head known(runs, {0, 0}, 0);
  typical_tiles typical;
  const statistic early{"o", 0, 1, norm_kind::rms, 0, {{0}, {0, 0, 0}}}, late{"o", 1, 1, norm_kind::rms, 0, {{0}, {0}}};
  EXPECT_THAT(known.samples_of({0, 1}, early, typical)->samples[1], ElementsAre(3, 4, 2));
  EXPECT_FALSE(known.samples_of({1, 2}, late, typical).has_value());
  typical.add({"o", 1, 0, norm_kind::tiles, 0.5, {{1}, {7, 7}}});
  EXPECT_NEAR(known.samples_of({1, 2}, late, typical)->samples[1][0], 7, 1e-12);
  typical.add({"final_state", 0, 0, norm_kind::tiles, 0.5, {{1}, {5, 5}}});
  statistic state{"final_state", 0, 1, norm_kind::rms, 0, {{0}, {0}}};
  state.neighbours = {{}, {0, 0, 0}};
  const auto s = known.samples_of({0, 1}, state, typical);
  EXPECT_NEAR(s->samples[1][0], 5, 1e-12);
  EXPECT_THAT(s->neighbours[1], ElementsAre(0.75, 2, 2.0 / 3));
}

TEST(tiles, have_a_floor_of_the_radius_the_format_and_their_own_size) {
  EXPECT_THAT(tile_floors({0.5, 0, 0}, {2, 8, 0}, bf16), ElementsAre(0.5, 0x1p-6, smallest_subnormal(bf16) / 2));
}

problem made(bool cotangents) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = 1024;
  g.key_dim = 64;
  g.value_dim = 128;
  g.key_heads = g.value_heads = 1;
  g.seed = 3;
  g.cotangents = cotangents;
  return generate(g);
}

check_report judged(const problem& p, const result& r) {
  check_options options;
  options.plans = {plan_named("fla-chunk-gdn")};
  options.judge.power = false;
  return check(p, r, options);
}

/// The same but for rows [first, last) in columns 16 to 31, where each value is off by this share of itself, up and down in turn.
tensor off_in_a_tile(const tensor& t, std::size_t first, std::size_t last, double share) {
  std::vector<double> values = t.to_doubles();
  for (std::size_t row = first; row < last; ++row) {
    for (std::size_t j = 16; j < 32; ++j) {
      double& x = values[row * t.shape().back() + j];
      x = emulation::narrowed(x * (1 + (j % 2 == 0 ? share : -share)), {t.element_format(), false});
    }
  }
  return tensor::from_doubles(t.element_format(), t.shape(), values, t.name());
}

void expect_tiles_alone(const check_report& report, const std::string& tensor, const std::string& where) {
  EXPECT_EQ(report.judged, verdict::refuted) << tensor << report.reason;
  EXPECT_THAT(report.reason, HasSubstr("the rms error of " + tensor)) << where;
  EXPECT_THAT(report.reason, HasSubstr(where));
  EXPECT_EQ(report.conformance->first_bad_stage, tensor);
  for (const judged_statistic& s : report.conformance->statistics)
    EXPECT_TRUE(s.judged != verdict::refuted || s.norm == norm_kind::tiles) << s.tensor << ": this fault needs no tiles";
}

TEST(tiles, show_what_is_wrong_in_one_of_them) {
  const problem p = made(false);
  const result r = emulate(p, variants(plan_named("fla-chunk-gdn"), p, path_kind::chunk, 64).front());
  const check_report correct = judged(p, r);
  EXPECT_EQ(correct.judged, verdict::holds);
  // A ratio of two errors has no tail of first order.
  for (const judged_statistic& s : correct.conformance->statistics)
    EXPECT_EQ(s.norm != norm_kind::tiles, s.limit.provenance.find("of first order") != std::string::npos) << s.tensor;
  result wrong = r;
  wrong.o = off_in_a_tile(r.o, 640, 704, 0.01);
  expect_tiles_alone(judged(p, wrong), "o", "tokens 640-703, columns 16-31 is");
}

TEST(tiles, show_what_is_wrong_in_one_of_a_gradient) {
  const problem p = made(true);
  result r = emulate_gradients(p, gradient_variants(plan_named("fla-chunk-gdn"), p, path_kind::chunk, 64).front());
  r.o = tensor();
  r.final_state.reset();
  const check_report right = judged(p, r);
  EXPECT_EQ(right.judged, verdict::holds) << right.reason;
  for (const judged_statistic& s : right.conformance->statistics) {
    const std::string where = s.worst ? std::to_string(s.worst->last_row) + "/" + std::to_string(s.worst->last_column) : "";
    EXPECT_EQ(s.norm == norm_kind::tiles, s.worst.has_value()) << s.tensor;
    EXPECT_TRUE(!s.worst || s.worst->last_row <= (s.tensor == "dinitial_state" ? 64U : 1024U)) << s.tensor << " " << where;
  }
  r.gradients.at("dq") = off_in_a_tile(r.gradients.at("dq"), 576, 640, 0.0135);
  expect_tiles_alone(judged(p, r), "dq", "tokens 576-639, columns 16-31 is");
}

}  // namespace
}  // namespace deltaproof
