// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Collects errors of one stage under one alternative of its roundings, element by element, and merges those of several
// heads in a fixed order, so that a report does not depend on the number of threads.
#pragma once

#include <span>

#include "deltaproof/stages/stages.hpp"

namespace deltaproof::stages_detail {

class tally {
 public:
  explicit tally(const format& stored) : stored_(stored) {}

  /// Columns place.element ... of one row: got against want, known (and computed by a correct kernel) within `error`
  /// before it is stored.
  void add(stage_place place, std::span<const double> got, std::span<const double> want, std::span<const double> error);
  void skip(std::size_t count) { measured_.skipped += count; }
  void merge(const tally& later);

  [[nodiscard]] std::size_t bad() const { return measured_.bad; }

  [[nodiscard]] stage_measurement finish() const;

 private:
  void add_one(const stage_place& place, double error);
  void add_bias(const stage_place& place, double error, double storing);

  format stored_;
  stage_measurement measured_;
  double ratio_squares_ = 0;
  double ratio_fourths_ = 0;
  double expected_squares_ = 0;
  double open_squares_ = 0;
  double bias_sum_ = 0;
  double bias_squares_ = 0;
  std::size_t nonzero_ = 0;
  std::size_t bf16_values_ = 0;
};

}  // namespace deltaproof::stages_detail
