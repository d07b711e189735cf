// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A campaign: many verdicts asked for in one TOML file. `read_campaign(file, build)` reads it; `task(i)` is its i-th task, made
// when it is asked for, so that a million of them cost no memory. What the tasks are depends on the text alone; their keys also
// on the build and on the texts of plan files that it names. Results go by these keys (sweep/sweep.hpp).
//     kind = "regimes"                      # or "mutants": with a planted fault, or "recordings": [[case]] as in a suite
//     expect = "holds"                      # default: holds; of mutants refuted; of recordings, what each case says
//     [axes]                                # every combination is a task; a value, a list, or "all"
//     plan = ["fla-chunk-gdn", "my.toml"]   # emulated, and judged by; relative to the campaign's folder
//     regime = "all"
//     T = [64, 160]
//     seed = { from = 1, to = 1000 }
//     [judging]                             # as the options of `check`
//     power = false
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/check/suite.hpp"
#include "deltaproof/check/witness.hpp"
#include "deltaproof/oracle/problem.hpp"
#include "deltaproof/plan/plan.hpp"
#include "deltaproof/referee/judging.hpp"

namespace deltaproof {

enum class campaign_kind { recordings, regimes, mutants };
inline constexpr detail::kind_names<campaign_kind, 3> campaign_kind_names{{
    {campaign_kind::recordings, "recordings"},
    {campaign_kind::regimes, "regimes"},
    {campaign_kind::mutants, "mutants"},
}};
[[nodiscard]] inline std::string_view name_of(campaign_kind k) { return detail::name_in(campaign_kind_names, k); }

/// The values of one axis: words, or the integers from `from` on.
struct campaign_axis {
  std::string name;
  std::vector<std::string> words;
  std::uint64_t from = 0, count = 0;  ///< where there are no words

  [[nodiscard]] std::uint64_t size() const { return words.empty() ? count : words.size(); }
  [[nodiscard]] std::string value(std::uint64_t i) const { return words.empty() ? std::to_string(from + i) : words[i]; }
};

/// One verdict that is asked for.
struct sweep_task {
  std::uint64_t index = 0;
  std::string key;   ///< 32 hexadecimal digits: of the build, the line and the texts of its plan and of the options of judging
  std::string line;  ///< "regimes plan=fp32 regime=typical T=64 seed=7 --no-power": tells it from every other
  std::vector<std::pair<std::string, std::string>> at;  ///< axis and value, in the order of the axes
  verdict expect = verdict::holds;
  std::string plan;           ///< judged by; empty: those that list the recording's kernel, or none
  std::size_t recording = 0;  ///< of the campaign's cases, where it has any
  judging judge;

  /// The value on an axis; empty where the campaign has none.
  [[nodiscard]] std::string on(std::string_view axis) const;
};

struct campaign {
  campaign_kind kind = campaign_kind::regimes;
  std::filesystem::path file;
  std::string text;
  std::string build;                ///< what computes the results: another one's are never taken for its own
  std::vector<campaign_axis> axes;  ///< the last is run through first
  std::vector<suite_case> cases;    ///< of recordings, by the axis `case`
  judging judge;
  std::optional<verdict> expect;
  std::map<std::string, std::string> plan_texts;  ///< of plan files, by the names that the campaign gives them

  [[nodiscard]] std::uint64_t count() const;
  /// Throws: domain_error where there is no such task.
  [[nodiscard]] sweep_task task(std::uint64_t index) const;
};

/// `plan_texts`: of the plan files; nothing: they are read from the campaign's folder.
/// Throws: format_error with the file, the line, the key and the nearest valid one.
[[nodiscard]] campaign parse_campaign(std::string_view toml, const std::filesystem::path& file, const std::string& build,
                                      const std::optional<std::map<std::string, std::string>>& plan_texts = {});
[[nodiscard]] campaign read_campaign(const std::filesystem::path& file, const std::string& build);

/// A plan as a campaign names it: a preset, or one of its files.
[[nodiscard]] plan plan_of(const campaign& c, const std::string& name);

/// The path and the chunk length in which an emulated kernel runs that states neither: the plan's first path; 64 rows, which
/// most public kernels take, or the plan's first where it does not have that. 0 on the recurrent path.
[[nodiscard]] std::size_t usual_chunk(const plan& p, path_kind path);

}  // namespace deltaproof
