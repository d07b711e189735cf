// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A verdict that was cut short says by what: the library knows that it was stopped, and not by whom.
#pragma once

#include <algorithm>

#include "cli/program.hpp"
#include "deltaproof/check/invariant.hpp"

namespace deltaproof::cli {

[[nodiscard]] inline bool ended_early(const check_report& r) { return r.stopped || (r.conformance && r.conformance->stopped); }
[[nodiscard]] inline bool ended_early(const invariant_report& r) {
  if (r.stopped || (r.gradients && r.gradients->stopped)) return true;
  return std::any_of(r.runs.begin(), r.runs.end(), [](const judged_run& run) { return ended_early(run.report); });
}

/// Puts it before the reason of what is undecided for no other cause.
template <class Report>
void say_why_stopped(Report& report, const common_options& common) {
  if (!stop_requested() || !ended_early(report) || report.judged != verdict::undecided) return;
  report.reason = why_stopped(common) + ": " + report.reason;
  if (was_interrupted()) report.remedy = "run the same command again and let it finish";
}

}  // namespace deltaproof::cli
