// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Joins the results of a sweep: `merge_sweep(folder, build)` says what came of every task, by axis, with the worst cases and the
// commands that make them again. It is a function of the set of results: who made them, in what order and how often leaves no
// trace in a byte of it. A task without a result is named. Views: `to_json` (schema deltaproof.merge/1), `to_text`, `to_html`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/sweep/sweep.hpp"

namespace deltaproof {

/// How many tasks came out how. What is skipped, failed, lost or missing has no verdict.
struct sweep_tally {
  std::uint64_t holds = 0, measured = 0, vacuous = 0, undecided = 0, refuted = 0;
  std::uint64_t skipped = 0, failed = 0, lost = 0, missing = 0;
  std::uint64_t unexpected = 0;       ///< judged, and not as expected
  std::optional<double> worst_share;  ///< the largest error, in units of its limit

  [[nodiscard]] std::uint64_t judged() const { return holds + measured + vacuous + undecided + refuted; }
};

/// One task in the report.
struct merged_case {
  std::string line;
  std::string outcome;  ///< a verdict, or skipped, failed, lost, missing
  bool as_expected = true;
  std::string tensor, norm;     ///< closest to its limit, or with the goal of a search; empty: none is known
  std::optional<double> share;  ///< its error in units of the limit, or the score of a search
  std::string expected = {};    ///< the verdict that was expected
};
struct merged_detail {
  merged_case what;
  std::string key, reason, command;
};

struct sweep_report {
  std::string name, kind, build;    ///< of the campaign
  std::string campaign_sha256;      ///< of its text and its plan files
  verdict judged = verdict::holds;  ///< as of a suite; what is failed, lost or missing is undecided
  sweep_tally counts;
  std::uint64_t other = 0;  ///< results there of tasks that the campaign no longer has
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, sweep_tally>>>> axes;  ///< of at most most_values values
  std::vector<merged_detail> worst;    ///< the unexpected first, then the largest share; at most most_worst
  std::vector<merged_detail> missing;  ///< reason: "not run", "its file is damaged"
  std::vector<merged_detail> lost, failed;
  std::vector<merged_case> cases;  ///< every task in the campaign's order, what was skipped left out
  std::optional<std::string> drift_from;
  std::vector<std::string> drift;  ///< a line each: verdicts that changed, tasks added and gone, shares that moved most

  /// 3 where a task is missing, 2 where one failed, else that of the verdict.
  [[nodiscard]] int exit_code() const;
};
inline constexpr std::size_t most_values = 200, most_worst = 20;

/// Throws: format_error as sweep_folder::read, and for any result there of another build, by its name.
[[nodiscard]] sweep_report merge_sweep(const sweep_folder& folder, const std::string& build);
/// Compares with the JSON of an earlier merge, tasks by their lines. Throws: format_error if `json` is none.
void add_drift(sweep_report& now, std::string_view json, const std::string& file);

/// Schema deltaproof.merge/1.
[[nodiscard]] std::string to_json(const sweep_report& report);
[[nodiscard]] std::string to_text(const sweep_report& report);
/// One file that opens from disk without network or scripts.
[[nodiscard]] std::string to_html(const sweep_report& report);

}  // namespace deltaproof
