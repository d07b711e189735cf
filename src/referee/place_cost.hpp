// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a plan costs in one place beside its formats alone, and whether that is too much, for outputs and gradients.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "deltaproof/referee/inverse_cost.hpp"
#include "referee/parts.hpp"

namespace deltaproof::referee_detail {

/// Runs of the formats alone in each place, half of them on the given inputs.
inline constexpr std::size_t alone_draws = 6;

/// The same formats of operands and stores; the inverse substituted, every sum and the state in fp32 at least, what cancels left
/// out, in the arithmetic of usual hardware.
[[nodiscard]] plan_variant formats_alone(plan_variant v, double l2norm_epsilon);

/// What the plan costs in one place beside its formats alone, law by law: on the given inputs and on moved ones, each with the
/// runs of the formats alone on such inputs. Inputs that happen to be special are so for both.
struct place_cost {
  double plan = 0;
  double magnitude = 0;           ///< what errors are relative to
  std::array<double, 2> least{};  ///< errors below it count as that, on the given inputs and on moved ones
  std::size_t first = 0;
  std::string tensor;
  std::array<std::vector<double>, 2> alone;  ///< on the given inputs, on moved ones
  const statistic* runs = nullptr;

  /// The largest ratio of typical errors.
  [[nodiscard]] double ratio() const;
  /// Whether one of the ratios is surely above `allowed_ratio`: beyond what so few runs scatter, at `alpha` for each law. Log
  /// errors, one spread for all, Student's law.
  [[nodiscard]] bool surely_above(double alpha) const;
};

void judge_place(const place_cost& c, double alpha, adequacy_report& out);

}  // namespace deltaproof::referee_detail
