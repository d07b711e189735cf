// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/study.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "deltaproof/study/grid.hpp"
#include "studies/state_life/trials.hpp"

namespace deltaproof {
namespace {

using namespace detail::state_life;

struct numbered_trial {
  std::string name;  ///< of the axis: one row a trial
  trial of;
};

std::vector<numbered_trial> all_trials() {
  std::vector<numbered_trial> out;
  for (const trial& t : trials()) out.push_back({std::string(name_of(t.kind)) + " " + std::string(t.fault), t});
  return out;
}

void add_servers(const run_options& options, results& r) {
  const frame& found =
      r.table("servers", grid(
                             options, "servers", {"invariant", "fault", "what", "verdict", "by"},
                             [&](const numbered_trial& t) -> frame_row {
                               const invariant_report report = judged(t.of, options.seed);
                               return {std::string(name_of(t.of.kind)), std::string(t.of.fault), std::string(t.of.fault),
                                       std::string(name_of(report.judged)), refuted_by(report)};
                             },
                             grid_axis<numbered_trial>{"trial", all_trials()}));
  const auto count = [&](std::string_view fault, const std::string& as) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool planted = found.at(i, "fault") != cell(correct) && found.at(i, "fault") != cell(silent);
      const bool asked = fault.empty() ? planted : found.at(i, "fault") == cell(fault);
      n += asked && (as.empty() || found.at(i, "verdict") == cell(as)) ? 1 : 0;
    }
    return n;
  };
  std::size_t fewest = found.size();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const frame of_invariant = found.where([&](const auto& row) { return row["invariant"] == found.at(i, "invariant"); });
    fewest = std::min(fewest, of_invariant.size() - 2);  // the correct one, and inputs that show nothing
  }
  r.values("verdicts", {{"fewest", fewest},
                        {"invariants", count(correct, "")},
                        {"hold", count(correct, "holds")},
                        {"faults", count({}, "")},
                        {"refuted", count({}, "refuted")},
                        {"silent", count(silent, "")},
                        {"vacuous", count(silent, "vacuous")}});
}

results run(const run_options& options) { return in_parts(options, {{"servers", &add_servers}}); }

}  // namespace

extern const study state_life_study{"state-life", &run};

}  // namespace deltaproof
