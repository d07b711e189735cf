// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/state_life/trials.hpp"

namespace deltaproof {
namespace {

using namespace detail::state_life;

/// One row a trial.
struct named_trial {
  std::string name;
  trial of;
};

void add_servers(const run_options& options, results& r) {
  grid_axis<named_trial> all{"trial", {}};
  for (const trial& t : trials()) all.quick.push_back({std::string(name_of(t.kind)) + " " + std::string(t.fault), t});
  const auto row_of = [&](const named_trial& t) -> frame_row {
    const invariant_report report = judged(t.of, options.seed);
    return {name_of(t.of.kind), t.of.fault, t.of.fault, name_of(report.judged), refuted_by(report)};
  };
  const frame& found = r.table("servers", grid(options, "servers", {"invariant", "fault", "what", "verdict", "by"}, row_of, all));
  const frame right = found.where("fault", correct), quiet = found.where("fault", silent);
  const frame planted =
      found.where([](const auto& row) { return row["fault"] != cell(correct) && row["fault"] != cell(silent); });
  const double fewest = planted.by({"invariant"}, {{"faults", "verdict", size_of}}).over("faults", least);
  r.values("verdicts", {{"fewest", static_cast<std::size_t>(fewest)},
                        {"invariants", right.size()},
                        {"hold", right.where("verdict", "holds").size()},
                        {"faults", planted.size()},
                        {"refuted", planted.where("verdict", "refuted").size()},
                        {"silent", quiet.size()},
                        {"vacuous", quiet.where("verdict", "vacuous").size()}});
}

results run(const run_options& options) { return in_parts(options, {{"servers", &add_servers}}); }

}  // namespace

extern const study state_life_study{"state-life", &run};

}  // namespace deltaproof
