// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A part that is small beside the rest of its range: the limits of the range are made by the rest, and zeros there would pass. It
// is judged by the limit on tiles, and where that says nothing, not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "referee/parts.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::size_t judged_tokens = 256, value_columns = 32, quiet_heads = 2;

/// Whether element i of v, or of q, lies in a column from 16 on, or in a token from 192 on.
bool is_quiet(bool columns, std::size_t i) {
  return columns ? i % value_columns >= 16 : i / (quiet_heads * value_columns) >= 192;
}

/// The values, or the queries, of the quiet part are smaller by `factor`.
problem with_a_quiet_part(bool columns, double factor) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = judged_tokens;
  g.key_dim = g.value_dim = value_columns;
  g.key_heads = g.value_heads = quiet_heads;
  g.gate = "typical";
  g.initial_state = "none";
  problem p = generate(g);
  tensor& t = columns ? p.v : p.q;
  std::vector<double> values = t.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_quiet(columns, i)) values[i] *= factor;
  }
  t = tensor::from_doubles(t.element_format(), t.shape(), values, t.name());
  return p;
}

/// `often`: both heads are run often, otherwise the first alone.
check_report judged_part(const problem& p, bool stages, bool columns, bool zeros, bool often) {
  const plan declared = plan_named("fla-chunk-gdn");
  emulation_options how;
  how.stages = stages;
  result r = emulate(p, variants(declared, p, path_kind::chunk, 64).front(), how, 1);
  std::vector<double> o = r.o.to_doubles();
  for (std::size_t i = 0; i < o.size(); ++i) {
    if (zeros && is_quiet(columns, i)) o[i] = 0;
  }
  r.o = tensor::from_doubles(r.o.element_format(), r.o.shape(), o, "o");
  std::vector<double> state = r.final_state->to_doubles();
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (zeros && columns && is_quiet(columns, i)) state[i] = 0;
  }
  r.final_state = tensor::from_doubles(r.final_state->element_format(), r.final_state->shape(), state, "final_state");
  check_options options;
  options.plans = {declared};
  options.judge.power = false;
  if (!often) options.judge.seconds = 1e-3;
  options.threads = 1;
  return check(p, r, options);
}

TEST(quiet_tiles, have_limits_of_their_own_in_every_head) {
  for (const bool often : {true, false}) {
    for (const bool columns : {true, false}) {
      const problem p = with_a_quiet_part(columns, 0x1p-12);
      const check_report zeros = judged_part(p, false, columns, true, often);
      EXPECT_EQ(zeros.judged, verdict::refuted) << columns;
      EXPECT_THAT(zeros.reason, HasSubstr("times that of an emulated run"));
      EXPECT_THAT(zeros.reason, HasSubstr(columns ? ", columns 16-31 is" : "tokens 192-255, columns"));
      for (const judged_statistic& s : zeros.conformance->statistics)
        EXPECT_EQ(s.judged == verdict::refuted, s.norm == norm_kind::tiles && s.got > 100) << columns;
      const check_report correct = judged_part(p, false, columns, false, often);
      EXPECT_EQ(correct.judged, verdict::holds) << columns << correct.reason;
      for (const limit_reach& of : correct.conformance->reach) EXPECT_EQ(of.blind, 0U) << of.tensor;
    }
  }
}

// Where runs on perturbed inputs err by orders more than on the given ones, the limit on tiles says nothing.
TEST(quiet_tiles, leave_a_verdict_vacuous_where_zeros_would_pass) {
  judged_statistic limit;
  limit.norm = norm_kind::tiles;
  limit.limit.value = 3;
  const std::vector<double> scales{1, 2, 3, 4};
  referee_detail::tiles_judged judged{&limit, &scales, {4, 32, 2}, 2};
  EXPECT_FALSE(judged.refutes_zeros({0, 2, 0, 16, 9.0}));
  EXPECT_TRUE(judged.refutes_zeros({0, 2, 0, 16, 9.1}));
  EXPECT_FALSE(judged.refutes_zeros({0, 2, 16, 16, 12.0}));
  EXPECT_TRUE(judged.refutes_zeros({0, 2, 16, 16, 12.1}));
  limit.judged = verdict::undecided;
  EXPECT_FALSE(judged.refutes_zeros({0, 2, 16, 16, 12.1}));
  EXPECT_FALSE(referee_detail::tiles_judged{}.refutes_zeros({0, 2, 16, 16, 12.1}));
}

// Where the cotangents of some columns are small, so is dv there.
TEST(quiet_tiles, of_a_gradient_have_limits_of_their_own) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = judged_tokens;
  g.key_dim = g.value_dim = value_columns;
  g.key_heads = g.value_heads = quiet_heads;
  g.initial_state = "none";
  g.cotangents = true;
  problem p = generate(g);
  p.d_final_state.reset();
  std::vector<double> values = p.d_o->to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= is_quiet(true, i) ? 0x1p-12 : 1;
  p.d_o = tensor::from_doubles(p.d_o->element_format(), p.d_o->shape(), values, "d_o");
  const plan declared = plan_named("fla-chunk-gdn");
  result r = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front());
  check_options options;
  options.plans = {declared};
  options.judge.power = false;
  const check_report correct = check(p, r, options);
  EXPECT_EQ(correct.conformance->conforms, verdict::holds) << correct.reason;
  for (const limit_reach& of : correct.conformance->reach) EXPECT_TRUE(of.blind == 0 || of.tensor != "dv") << of.blind;
  tensor& dv = r.gradients.at("dv");
  values = dv.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = is_quiet(true, i) ? 0 : values[i];
  dv = tensor::from_doubles(dv.element_format(), dv.shape(), values, "dv");
  const check_report zeros = check(p, r, options);
  EXPECT_EQ(zeros.judged, verdict::refuted);
  EXPECT_THAT(zeros.reason, HasSubstr("the rms error of dv"));
  EXPECT_THAT(zeros.reason, HasSubstr(", columns 16-31 is"));
}

TEST(quiet_tiles, are_none_where_a_part_is_large_enough_to_show) {
  for (const bool columns : {true, false}) {
    const problem p = with_a_quiet_part(columns, 0x1p-4);
    EXPECT_EQ(judged_part(p, false, columns, true, false).judged, verdict::refuted) << columns;
    EXPECT_EQ(judged_part(p, false, columns, false, false).judged, verdict::holds) << columns;
  }
}

TEST(quiet_tiles, are_those_that_both_norms_let_pass) {
  judged_statistic rms, max;
  rms.limit.value = 0.5;
  rms.got = 0.45;
  max.limit.value = 4;
  // 4 rows of 20 columns: room for a sum of squares of 80 (0.25 - 0.2025) = 3.8.
  std::vector<double> exact(80, 0.4);
  const auto tiles = [&] { return referee_detail::tiles_that_may_be_zeros(rms, max, exact, 20, 2, 0); };
  ASSERT_THAT(tiles(), SizeIs(2));  // columns 16-19: 8 elements each; the others have 32
  EXPECT_EQ(tiles()[1].first_row, 2U);
  EXPECT_EQ(tiles()[1].first_column, 16U);
  EXPECT_EQ(tiles()[1].elements(), 8U);
  EXPECT_DOUBLE_EQ(tiles()[1].rms, 0.4);
  rms.got = 0.3;
  EXPECT_THAT(tiles(), SizeIs(4));
  std::fill(exact.begin(), exact.end(), 0.6);  // zeros of the smaller tiles would pass, but they are no smaller than the rest
  EXPECT_THAT(tiles(), SizeIs(0));
  std::fill(exact.begin(), exact.end(), 0.4);
  max.limit.value = 0.3;
  EXPECT_THAT(tiles(), SizeIs(0));
  max.limit.value = 4;
  rms.judged = verdict::undecided;  // it has no limit
  EXPECT_THAT(tiles(), SizeIs(4));
  std::fill(exact.begin(), exact.end(), 0.0);
  EXPECT_THAT(tiles(), SizeIs(0));  // rightly zeros
}

}  // namespace
}  // namespace deltaproof
