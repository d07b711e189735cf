// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The rows and columns of chunks that the rms of a stage is compared without; which errors count in a bias.
#include "stages/tally.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace deltaproof::stages_detail {
namespace {

/// A chunk of three rows and four columns.
void add_chunk(worst_lines& lines, std::size_t chunk, const double (&ratios)[3][4]) {
  for (std::size_t row = 0; row < 3; ++row) {
    stage_place at{};
    at.chunk = chunk;
    at.row = row;
    double squares = 0;
    for (const double x : ratios[row]) squares += x * x;
    lines.add(at, ratios[row], squares);
  }
}

// A row and a column cross in one element, which counts in both: never less is excused than they have.
TEST(worst_lines, are_rows_and_columns_of_one_chunk_each) {
  worst_lines lines;
  add_chunk(lines, 0, {{0, 0, 2, 0}, {3, 3, 3, 3}, {0, 0, 2, 0}});
  EXPECT_EQ(lines.sum(), 36.0 + 17 + 3 * 9 + 4);  // the second row, the third column, the other columns, one of the other rows
  worst_lines column;
  add_chunk(column, 0, {{0, 1, 0, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}});
  EXPECT_EQ(column.sum(), 3.0 + 3);
}

TEST(worst_lines, of_several_chunks_are_the_largest_of_all) {
  worst_lines in_one, first, second;
  const double a[3][4] = {{5, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}, b[3][4] = {{0, 7, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 1}};
  add_chunk(in_one, 0, a);
  add_chunk(in_one, 1, b);
  add_chunk(first, 0, a);
  add_chunk(second, 1, b);
  first.merge(second);
  EXPECT_EQ(in_one.sum(), 25.0 * 2 + 49 * 2 + 2);
  EXPECT_EQ(first.sum(), in_one.sum());
}

/// 100 values a third of the way from one fp16 number to the next, each rounded toward zero, from `first` steps of this size on.
/// With something infinite among them they are added one by one, else all at once.
stage_bias bias_toward_zero(double step, double first, bool one_by_one) {
  std::vector<double> got, want;
  for (std::size_t i = 0; i < 100; ++i) {
    got.push_back((first + static_cast<double>(i)) * step);
    want.push_back(got.back() + step / 3);
  }
  if (one_by_one) {
    got.push_back(std::numeric_limits<double>::infinity());
    want.push_back(1);
  }
  tally errors(fp16);
  errors.add({}, got, want, std::vector<double>(got.size(), 0.0));
  return errors.finish().bias;
}

// What hundreds of values are rounded to where a format has a handful of numbers is no chance, and no bias either.
TEST(bias, is_not_counted_in_the_smallest_steps_of_a_format) {
  for (const bool one_by_one : {false, true}) {
    EXPECT_EQ(bias_toward_zero(0x1p-24, 1, one_by_one).count, 0U);     // below the first normal number
    EXPECT_EQ(bias_toward_zero(0x1p-24, 1500, one_by_one).count, 0U);  // above it, in steps of the same size
    const stage_bias above = bias_toward_zero(0x1p-23, 1500, one_by_one);
    EXPECT_EQ(above.count, 100U);
    EXPECT_NEAR(above.mean, -1.0 / 3, 1e-6);
  }
}

}  // namespace
}  // namespace deltaproof::stages_detail
