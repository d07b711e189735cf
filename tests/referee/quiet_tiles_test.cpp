// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A part that is small beside the rest of its range: the limits of the range are made by the rest, and zeros there would pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "referee/parts.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::size_t judged_tokens = 256, value_columns = 32;

/// The values of columns from 16 on, or the queries of tokens from 192 on, are smaller by `factor`.
problem with_a_quiet_part(bool columns, double factor) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = judged_tokens;
  g.key_dim = g.value_dim = value_columns;
  g.key_heads = g.value_heads = 1;
  g.gate = "typical";
  g.initial_state = "none";
  problem p = generate(g);
  tensor& t = columns ? p.v : p.q;
  std::vector<double> values = t.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (columns ? i % value_columns >= 16 : i / value_columns >= 192) values[i] *= factor;
  }
  t = tensor::from_doubles(t.element_format(), t.shape(), values, t.name());
  return p;
}

check_report judged_part(const problem& p, bool stages, bool columns, bool zeros) {
  const plan declared = plan_named("fla-chunk-gdn");
  emulation_options how;
  how.stages = stages;
  result r = emulate(p, variants(declared, p, path_kind::chunk, 64).front(), how, 1);
  std::vector<double> o = r.o.to_doubles();
  for (std::size_t i = 0; i < o.size(); ++i) {
    if (zeros && (columns ? i % value_columns >= 16 : i / value_columns >= 192)) o[i] = 0;
  }
  r.o = tensor::from_doubles(r.o.element_format(), r.o.shape(), o, "o");
  check_options options;
  options.plans = {declared};
  options.judge.power = false;
  options.threads = 1;
  return check(p, r, options);
}

TEST(quiet_tiles, leave_a_verdict_vacuous_where_zeros_would_pass) {
  for (const bool columns : {true, false}) {
    const problem p = with_a_quiet_part(columns, 0x1p-12);
    for (const bool zeros : {true, false}) {
      const check_report report = judged_part(p, false, columns, zeros);
      EXPECT_EQ(report.judged, verdict::vacuous) << columns << zeros << report.reason;
      EXPECT_THAT(report.reason, HasSubstr("a kernel that writes only zeros would pass for"));
      EXPECT_THAT(report.reason, HasSubstr(columns ? "in columns 16-31 is" : "of tokens 192-255 in columns 0-15 is"));
    }
    if (columns) {
      for (const limit_reach& of : judged_part(p, false, columns, false).conformance->reach) {
        EXPECT_EQ(of.blind, of.elements / 2) << of.tensor;  // of the state too
      }
    }
    // Each element has a bound of its own where the stages are stored.
    EXPECT_EQ(judged_part(p, true, columns, true).judged, verdict::refuted) << columns;
    EXPECT_EQ(judged_part(p, true, columns, false).judged, verdict::holds) << columns;
  }
}

TEST(quiet_tiles, are_none_where_a_part_is_large_enough_to_show) {
  for (const bool columns : {true, false}) {
    const problem p = with_a_quiet_part(columns, 0x1p-4);
    EXPECT_EQ(judged_part(p, false, columns, true).judged, verdict::refuted) << columns;
    EXPECT_EQ(judged_part(p, false, columns, false).judged, verdict::holds) << columns;
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
