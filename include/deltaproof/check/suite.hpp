// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Judges many results at once: `read_suite(file)` reads a TOML list of cases, `run_suite(suite, options)` checks each and
// says which came out as expected. Cases of one problem are judged in turn and share the oracle's answers; different problems
// are judged side by side. A case whose files are missing, damaged or changed fails alone, with the reason. Views:
// `to_json` (schema deltaproof.suite/1), `to_text`, `to_markdown`; `compare_baseline` says what moved since an earlier JSON.
//     [[case]]
//     problem = "typical.problem.safetensors"   # as result and a plan that ends in .toml: relative to the suite's folder
//     result = "typical.result.safetensors"
//     name = "typical"             # default: result without .safetensors and .result; of a further plan for it, "typical (fp32)"
//     plan = "fla-chunk-delta"     # default: what lists the result's kernel
//     no_plan = false              # true: errors only, and measured is expected
//     expect = "holds"             # any verdict
//     accuracy = 0.02              # as check --accuracy
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/check/check.hpp"

namespace deltaproof {

struct suite_case {
  std::string name;                       ///< no other case has it
  std::filesystem::path problem, result;  ///< the suite's folder is part of them
  std::string plan;                       ///< preset or file; empty: those that list the kernel
  bool no_plan = false;
  verdict expect = verdict::holds;
  std::optional<double> accuracy;
  std::size_t line = 0;
};

struct suite {
  std::filesystem::path file;
  std::vector<suite_case> cases;
};

/// `beside`: keys that may stand beside [[case]], for those who read a longer file.
/// Throws: format_error with the file, the line, the key and the nearest valid one.
[[nodiscard]] suite parse_suite(std::string_view toml, const std::filesystem::path& file,
                                const std::vector<std::string_view>& beside = {});
[[nodiscard]] suite read_suite(const std::filesystem::path& file);

struct suite_options {
  judging judge;              ///< of every case; accuracy is that of the case, bounds are not read
  bool skip_missing = false;  ///< a case whose result file is not there is counted and left out
  unsigned threads = 0;       ///< of the whole suite
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::size_t, std::size_t)> progress;   ///< (cases done, cases in all), from 0, never twice at a time
  std::function<std::string(const suite_case&)> reproduce;  ///< the command line that judges this case alone
  std::string version;
};

enum class case_state { judged, skipped, stopped, failed };
inline constexpr detail::kind_names<case_state, 4> case_state_names{{
    {case_state::judged, "judged"},
    {case_state::skipped, "skipped"},
    {case_state::stopped, "stopped"},
    {case_state::failed, "failed"},
}};
[[nodiscard]] inline std::string_view name_of(case_state s) { return detail::name_in(case_state_names, s); }

/// The statistic of a tensor closest to its limit, as a share of it: 1 is the limit.
struct limit_share {
  std::string tensor;
  norm_kind norm = norm_kind::rms;
  double share = 0;
};
/// Of every tensor and norm that the plan budgets.
[[nodiscard]] std::vector<limit_share> shares_of(const plan_report& plan);

struct case_report {
  suite_case what;
  case_state state = case_state::stopped;
  verdict judged = verdict::undecided;
  std::string reason;
  std::string plan;  ///< the one judged against; empty: none
  std::string first_bad_stage;
  bool first_bad_is_stage = false;  ///< else it is a tensor
  std::string not_judged;           ///< how much of which tensor, and why; empty: all of it is
  std::vector<limit_share> shares;  ///< of every tensor and norm the plan budgets
  std::string problem_sha256;
  std::string result_sha256;  ///< empty: not read
  std::string plan_sha256;    ///< of the text of the one judged against
  double seconds = 0;         ///< of its judging
  std::string verdict_json;   ///< deltaproof.verdict/1; empty unless judged or stopped half-way
  std::string verdict_text;

  [[nodiscard]] bool as_expected() const { return state == case_state::judged && judged == what.expect; }
  /// What the case adds to the suite's verdict: holds where it is as expected, refuted where it should not have held.
  [[nodiscard]] verdict counts_as() const;
};

/// What moved since a baseline; none of it changes a verdict. Verdicts are compared by the names of the cases, files by their
/// hashes; error-to-limit ratios only where problem, plan and the options that limits depend on are the same.
struct suite_drift {
  struct moved_share {
    std::string name;
    limit_share then, now;
  };
  struct moved_verdict {
    std::string name, then, now;
  };
  std::string file;
  std::string drawn_then;           ///< how limits were drawn, where that was otherwise: then no ratios are compared
  std::vector<moved_share> shares;  ///< the largest factor first; what is bit for bit as before is left out
  std::vector<moved_verdict> verdicts;
  std::vector<std::string> added, gone;
  std::vector<std::string> other_inputs;   ///< cases whose problem is another file than then
  std::vector<std::string> other_results;  ///< whose result is
  std::vector<std::string> other_plans;    ///< whose plan, or its text, is
  std::size_t compared = 0;                ///< shares
};

struct suite_report {
  std::string file;
  std::vector<case_report> cases;
  verdict judged = verdict::holds;  ///< of every case's counts_as; vacuous if no case was judged
  std::size_t problems = 0;         ///< distinct
  std::size_t solved = 0;           ///< questions the oracle was asked
  double false_alarm = 0;           ///< of one case
  std::string drawn;                ///< what limits depend on beside the inputs: seed, power, false alarm, bits, version
  std::optional<suite_drift> drift;
  std::string version, reproduce;

  [[nodiscard]] std::size_t count(case_state state) const;
  [[nodiscard]] std::size_t unexpected() const;  ///< cases that are judged, and not as expected
};

/// A case that cannot be judged (a file missing or damaged, a plan that does not fit) is `failed`, with the reason.
[[nodiscard]] suite_report run_suite(const suite& s, const suite_options& options);

/// Throws: format_error if `json` is no deltaproof.suite/1.
[[nodiscard]] suite_drift compare_baseline(const suite_report& now, std::string_view json, const std::string& file);

/// Schema `deltaproof.suite/1`: each case with its whole verdict under `report`.
[[nodiscard]] std::string to_json(const suite_report& report);
/// A line for each case, then what moved and the summary.
[[nodiscard]] std::string to_text(const suite_report& report);
[[nodiscard]] std::string to_markdown(const suite_report& report);
/// What decided a case, short: the first bad stage, or the statistic closest to its limit.
[[nodiscard]] std::string summary_of(const case_report& c);

}  // namespace deltaproof
