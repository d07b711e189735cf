// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A campaign: many verdicts asked for in one TOML file. `read_campaign(file, build)` reads it; `task(i)` is its i-th task, made
// when it is asked for, so that a million of them cost no memory. What the tasks are depends on the text alone; their keys also
// on the build and on the texts of plan files that it names. Results go by these keys (sweep/sweep.hpp).
//     kind = "regimes"                      # or "mutants": with a planted fault, "recordings": [[case]] as in a suite,
//                                           # "search": for the worst points of a [space], or "study"
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
#include <set>
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

enum class campaign_kind { recordings, regimes, mutants, search, study };
inline constexpr detail::kind_names<campaign_kind, 5> campaign_kind_names{{
    {campaign_kind::recordings, "recordings"},
    {campaign_kind::regimes, "regimes"},
    {campaign_kind::mutants, "mutants"},
    {campaign_kind::search, "search"},
    {campaign_kind::study, "study"},
}};
[[nodiscard]] inline std::string_view name_of(campaign_kind k) { return detail::name_in(campaign_kind_names, k); }

/// What a search makes large: the error of the plan itself in units of what adequacy allows; what it forms in units of the range
/// or budget of that; the error of a kernel of the plan in units of the limits of `against`; the distance of kernels of two
/// plans, |a - b| / |b|.
enum class search_goal { error, intermediate, limits, distance };
inline constexpr detail::kind_names<search_goal, 4> search_goal_names{{
    {search_goal::error, "error"},
    {search_goal::intermediate, "intermediate"},
    {search_goal::limits, "limits"},
    {search_goal::distance, "distance"},
}};
[[nodiscard]] inline std::string_view name_of(search_goal g) { return detail::name_in(search_goal_names, g); }

/// T, seed or a parameter of the regime law, from least to most; the first two are integers.
struct search_range {
  std::string name;
  double least = 0, most = 0;
  [[nodiscard]] bool whole() const { return name == "T" || name == "seed"; }
};
struct search_settings {
  search_goal goal = search_goal::error;
  std::vector<search_range> space;
  std::size_t population = 16, keep = 3;
  std::uint64_t seed = 1;
  std::size_t generations = 0;  ///< 0: as many as cpu_minutes allow
  double cpu_minutes = 0;       ///< 0: as many as `generations`
  bool random = true;           ///< random points beside, for as many evaluations, or as much time
};
/// A point of a search that was proposed, by "search", "random" or "shrink".
struct proposal {
  std::string by, point;
};

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
  std::vector<std::pair<std::string, std::string>> point;  ///< of a search: regime, law, and T and seed where the space has them
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
  std::optional<search_settings> search;
  std::vector<proposal> proposals;                ///< of a search: its tasks, in the order in which they were proposed
  std::set<std::string, std::less<>> points;      ///< of these
  std::map<std::string, std::string> plan_texts;  ///< of plan files, by the names that the campaign gives them

  [[nodiscard]] std::uint64_t count() const;
  /// Throws: domain_error where there is no such task.
  [[nodiscard]] sweep_task task(std::uint64_t index) const;
  /// Adds a point "T=64,cosine=0.9", all of the space and nothing else; one that is there is not added again.
  /// Throws: format_error for what is no point of the space.
  void propose(std::string_view by, std::string_view point);
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
