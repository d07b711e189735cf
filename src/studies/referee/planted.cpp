// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "studies/referee/planted.hpp"

#include <map>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"

namespace deltaproof::detail::referee_study {
namespace {

using trials::bench;
using trials::make_bench;
using trials::trial_case;

/// One fault in one case; a fault that cannot happen there has only empty cells.
frame_row faulty_row(const survey& s, const fault& planted, const trial_case& c, const bench& b) {
  if (!applies(planted, b.p, c.path)) return frame_row(6 + s.judges.size());
  emulation_options how;
  how.stages = true;
  how.planted = &planted;
  const result r = emulated(b, c, b.allowed.front(), how);
  const judgement judged = s.judge(b, r, &planted);
  const bool with_stages = judged.refuses[0] == cell(true), without = judged.refuses[1] == cell(true);
  const char* seen = !s.changed(b, r) ? "same" : without ? "outputs" : with_stages ? "stages" : "missed";
  frame_row row{c.id,
                planted.stage,
                seen,
                s.size(b, r),
                with_stages && s.named(planted, b, r, judged.first_bad),
                with_stages && judged.diagnosed};
  row.insert(row.end(), judged.refuses.begin(), judged.refuses.end());
  return row;
}

/// Every arithmetic that the plan allows, as it is and with its sums disturbed. `first`: runs of the cases before.
std::vector<frame_row> correct_rows(const survey& s, const run_options& options, const trial_case& c, const bench& b,
                                    std::size_t first) {
  std::vector<frame_row> rows;
  for (const plan_variant& v : b.allowed) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}}) {
      emulation_options how;
      how.stages = true;
      how.noise_ulps = seed == 0 ? 0 : 1;
      how.seed = (options.seed << 20) ^ (1000003 * seed + first + rows.size());
      rows.push_back(s.judge(b, emulated(b, c, v, how), nullptr).refuses);
    }
  }
  return rows;
}

std::size_t count(const frame& f, std::string_view column) { return static_cast<std::size_t>(f.over(column, total)); }
double share(std::size_t part, std::size_t all) { return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all); }

void add_judges(const survey& s, const frame& differing, const frame& correct, results& r) {
  frame rules({"judge", "caught", "caught_share", "faults", "refused", "refused_share"});
  std::map<std::string, cell> alarms{{"correct", correct.size()}}, refused, shares, most;
  for (const std::string& judge : s.judges) {
    const frame caught = differing.where(judge, true);
    const std::size_t alarm = count(correct, judge);
    const double caught_share = share(caught.size(), differing.size());
    rules.add({judge, caught.size(), caught_share, caught.by({"fault"}, {}).size(), alarm, share(alarm, correct.size())});
    shares[judge] = caught_share;
    refused[judge] = alarm;
    most[judge] = share(alarm, correct.size());
  }
  frame by_stage({"stage", "judge", "share"});
  std::multimap<std::size_t, std::string> stages;
  const frame own_stages = differing.by({"stage"}, {});
  for (const frame_row& row : own_stages.rows()) stages.emplace(s.place_of(row.front().text()), row.front().text());
  for (const auto& [place, stage] : stages) {
    const frame own = differing.where("stage", stage);
    for (const std::string& judge : s.judges)
      by_stage.add({stage, judge, std::round(100 * share(count(own, judge), own.size()))});
  }
  for (const std::string& judge : s.judges)
    by_stage.add({"no_fault", judge, std::round(100 * share(count(correct, judge), correct.size()))});
  r.table(s.prefix + "rules", std::move(rules));
  r.table(s.prefix + "by-stage", std::move(by_stage));
  r.values(s.prefix + "caught", shares);
  r.values(s.prefix + "refused", refused);
  r.values(s.prefix + "most", most);
  for (const auto& [judge, times] : refused) alarms["refused_by " + judge] = times;
  r.values(s.prefix + "false-alarms", evidence::measured(), alarms);
}

/// Cases and faults, one row for each judge.
void add_tables(const survey& s, const frame& possible, const frame& correct, results& r) {
  const auto is = [](const frame& f, std::string_view seen) { return f.where("seen", seen).size(); };
  frame by_case(
      {"number", "case", "plan", "gen", "possible", "differ", "by_outputs", "by_stages", "correct", "judge", "refused"});
  for (std::size_t i = 0; i < s.cases.size(); ++i) {
    const frame here = possible.where("number", i + 1);
    const frame runs = correct.where("number", i + 1);
    const frame differing = here.where([](const auto& row) { return row["seen"] != cell("same"); });
    for (const std::string& judge : s.judges) {
      by_case.add({i + 1, s.cases[i].id, s.cases[i].plan, describe(s.cases[i]), here.size(), differing.size(),
                   count(differing, s.judges[1]), count(differing, s.judges[0]), runs.size(), judge, count(runs, judge)});
    }
  }
  r.table(s.prefix + "cases", std::move(by_case));
  frame by_fault({"fault", "stage", "cases", "differs", "judge", "refused", "stage_named", "fault_named"});
  for (const fault& f : s.faults) {
    const frame own = possible.where("fault", f.name);
    const frame differing = own.where([](const auto& row) { return row["seen"] != cell("same"); });
    for (const std::string& judge : s.judges) {
      by_fault.add({f.name, f.stage, own.size(), own.size() - is(own, "same"), judge, count(differing, judge),
                    count(differing, "stage_named"), count(differing, "fault_named")});
    }
  }
  r.table(s.prefix + "faults", std::move(by_fault));
}

/// What is not refuted, case by case.
void add_slips(const survey& s, const frame& differing, results& r) {
  frame slips({"fault", "case", "size", "elsewhere", "all"});
  for (const trial_case& c : s.cases) {
    const frame missed = differing.where("case", c.id).where(s.judges[0], false);
    for (std::size_t i = 0; i < missed.size(); ++i) {
      const frame same = differing.where("fault", missed.at(i, "fault"));
      slips.add({missed.at(i, "fault"), c.id, missed.at(i, "size"), count(same, s.judges[0]), same.size()});
    }
  }
  const double largest = slips.over("size", greatest);
  const frame worst_of = slips.where("size", largest);
  r.values(s.prefix + "what-slips", evidence::measured(),
           {{"not_refuted", slips.size()}, {"differing", differing.size()}, {"largest_change", largest}});
  const auto named = [&](const char* column) { return worst_of.size() == 0 ? cell("none") : worst_of.at(0, column); };
  r.values(s.prefix + "slip", {{"fault", named("fault")}, {"case", named("case")}});
  r.table(s.prefix + "not-refuted", std::move(slips));
}

}  // namespace

void take_diagnosis(const check_report& full, const fault* planted, judgement& out) {
  if (!full.conformance) return;
  out.first_bad = full.conformance->first_bad_stage;
  const auto& suspects = full.conformance->suspects;
  for (const suspect& s : suspects) {
    // Two faults may do the same thing to these inputs; then nothing tells them apart.
    out.diagnosed = out.diagnosed || (planted != nullptr && s.planted->name == planted->name &&
                                      s.comes_later == suspects.front().comes_later && s.score >= suspects.front().score - 1e-6);
  }
}

double relative_change(const tensor& got, const tensor& correct, double error_rms) {
  const std::vector<double> x = got.to_doubles(), y = correct.to_doubles();
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += (x[i] - y[i]) * (x[i] - y[i]);
  const double rms = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, x.size())));
  return rms == rms && error_rms > 0 ? rms / error_rms : std::numeric_limits<double>::infinity();
}

void add_planted(const run_options& options, const survey& s, results& r) {
  std::vector<bench> benches(s.cases.size());
  grid_axis<std::size_t> numbers{"number", std::vector<std::size_t>(s.cases.size())};
  std::iota(numbers.quick.begin(), numbers.quick.end(), std::size_t{1});
  // One correct run of each case first: it leaves the plan's own draws for all that follow.
  (void)grid(
      options, s.prefix + "cases", {},
      [&](std::size_t number) -> frame_row {
        benches[number - 1] = make_bench(s.cases[number - 1]);
        (void)s.judge(benches[number - 1], benches[number - 1].correct, nullptr);
        return {};
      },
      numbers);
  std::vector<std::string> columns{"case", "stage", "seen", "size", "stage_named", "fault_named"};
  columns.insert(columns.end(), s.judges.begin(), s.judges.end());
  const frame& all =
      r.table(s.prefix + "verdicts",
              grid(
                  options, s.prefix + "planted faults", columns,
                  [&](const fault& f, std::size_t number) { return faulty_row(s, f, s.cases[number - 1], benches[number - 1]); },
                  grid_axis<fault>{"fault", s.faults}, numbers));
  const frame correct = grid(
      options, s.prefix + "correct runs", s.judges,
      [&](std::size_t number) {
        std::size_t before = 0;
        for (std::size_t i = 0; i + 1 < number; ++i) before += 2 * benches[i].allowed.size();
        return correct_rows(s, options, s.cases[number - 1], benches[number - 1], before);
      },
      numbers);

  const frame possible = all.where([](const auto& row) { return !is_missing(row["seen"]); });
  const frame differing = possible.where([](const auto& row) { return row["seen"] != cell("same"); });
  const frame refuted = differing.where(s.judges[0], true);
  const std::size_t planted = possible.by({"fault"}, {}).size();
  r.values(s.prefix + "faults-refuted", evidence::measured(),
           {{"faults", planted},
            {"elsewhere", s.faults.size() - planted},
            {"refuted_somewhere", refuted.by({"fault"}, {}).size()},
            {"differing", differing.size()},
            {"refuted_with_stages", refuted.size()},
            {"refuted_by_" + s.judges[1], count(differing, s.judges[1])}});
  r.values(s.prefix + "what-is-named", evidence::measured(),
           {{"refuted", refuted.size()},
            {"stage_named", count(refuted, "stage_named")},
            {"fault_named", count(refuted, "fault_named")}});
  r.values(s.prefix + "named", {{"stage", share(count(refuted, "stage_named"), refuted.size())},
                                {"fault", share(count(refuted, "fault_named"), refuted.size())}});
  r.values(s.prefix + "runs", {{"all", possible.size()}, {"same", possible.size() - differing.size()}});
  add_judges(s, differing, correct, r);
  add_tables(s, possible, correct, r);
  add_slips(s, differing, r);
}

}  // namespace deltaproof::detail::referee_study
