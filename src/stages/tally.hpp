// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Collects errors of one stage under one alternative of its roundings, element by element, and merges those of several
// heads in a fixed order, so that a report does not depend on the number of threads.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "stages/parts.hpp"

namespace deltaproof::stages_detail {

/// The largest sums of squared ratios in one row of a chunk, or in one column of it.
class worst_lines {
 public:
  /// Rows follow each other, each in one piece or several. `squares`: the sum of those of the finite ratios.
  void add(const stage_place& first, std::span<const double> ratios, double squares);
  void merge(const worst_lines& later);
  [[nodiscard]] double sum() const;

 private:
  void end_row();
  void end_chunk();
  void note(double squares);

  std::array<double, excused_lines> largest_{};  ///< the least of them first
  stage_place at_{};
  double row_ = 0;
  std::vector<double> columns_;
};

class tally {
 public:
  explicit tally(const format& stored);

  /// Columns place.element ... of one row: got against want, known (and computed by a correct kernel) within `error`
  /// before it is stored.
  void add(stage_place place, std::span<const double> got, std::span<const double> want, std::span<const double> error);
  void skip(std::size_t count) { measured_.skipped += count; }
  void merge(const tally& later);

  [[nodiscard]] std::size_t bad() const { return measured_.bad; }

  [[nodiscard]] stage_measurement finish() const;

 private:
  /// `stored_want`: want as the format holds it. Sets the bound and the ratio of the place.
  void add_one(stage_place& place, double error, double stored_want);
  void add_plain(stage_place place, std::span<const double> got, std::span<const double> want, std::span<const double> error);
  void add_bias(double got, double want, double error, double storing, double stored_want);
  /// What is worst, and what is bad.
  void note(const stage_place& place);

  format stored_;
  double overflows_from_;  ///< what rounds to infinity in that format
  bool wide_;              ///< it holds more than bf16 does
  half_ulps half_ulp_;
  // Of the row at hand:
  std::vector<double> stored_want_, in_bf16_, storing_, ratio_, open_, lost_, ulps_;
  stage_measurement measured_;
  double ratio_squares_ = 0;
  double ratio_fourths_ = 0;
  worst_lines worst_;
  double expected_squares_ = 0;
  double open_squares_ = 0;
  double bias_sum_ = 0;
  double bias_squares_ = 0;
  std::size_t nonzero_ = 0;
  std::size_t bf16_values_ = 0;
};

}  // namespace deltaproof::stages_detail
