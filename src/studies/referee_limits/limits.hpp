// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How small a fault may be before the referee no longer sees it: `run_limits` scales each planted fault of each case of the
// referee study down, round(correct + s (faulty - correct)), and finds the least s at which all of eight results are refuted,
// beside the least s of a matched filter, which knows the fault and 64 correct runs.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "deltaproof/study/study.hpp"
#include "studies/shared/trials/cases.hpp"

namespace deltaproof::detail::referee_limits {

inline constexpr std::size_t seeds = 8;           ///< results that must all be refuted
inline constexpr std::size_t correct_runs = 64;   ///< behind the filter's mean and spread
inline constexpr double separation = 6;           ///< standard deviations that the filter asks for
inline constexpr int halvings = 16;               ///< the smallest s tried is 2^-16

struct limit {
  std::size_t fault = 0;  ///< index in faults()
  std::size_t at = 0;     ///< index in the cases
  bool changed = false;   ///< the fault changes a bit of o or final_state
  bool finite = false;    ///< and leaves them finite: else there is nothing to scale
  double separated = 0;   ///< standard deviations between the whole fault (the least of eight) and the mean correct run
  /// Least s; nothing: not even the whole fault.
  std::optional<double> check, filter;

  [[nodiscard]] bool scaled() const { return changed && finite; }
  [[nodiscard]] bool visible() const { return scaled() && separated > separation; }
};

struct limits {
  std::vector<trials::trial_case> cases;
  std::vector<limit> rows;  ///< case-major, faults in the order of the catalogue
  std::size_t checks = 0;
  bool complete = false;
};

/// Only faults and cases whose index the two predicates accept; all where they are empty.
struct selection {
  std::function<bool(std::size_t)> fault = {}, at = {};
};
[[nodiscard]] limits run_limits(const run_options&, const selection& = {});

void add_limits(const limits&, report&);
[[nodiscard]] std::string answer(const limits&);

}  // namespace deltaproof::detail::referee_limits
