// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "studies/referee/sections.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "deltaproof/kernel/faults.hpp"
#include "studies/shared/text.hpp"

namespace deltaproof::detail::referee_study {
namespace {

judge_kind judge_at(std::size_t i) { return static_cast<judge_kind>(i); }

double share(std::size_t part, std::size_t all) { return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all); }
double rounded(double x) { return std::round(x); }
std::string percent(std::size_t part, std::size_t all) {
  const double x = 100 * share(part, all);
  return (x >= 99.95 ? std::string("100") : number(x, x >= 10 ? 3 : 2)) + " %";
}
using shared::of;

std::size_t count_runs(const survey& s, const auto& wanted) {
  return static_cast<std::size_t>(std::count_if(s.faulty.begin(), s.faulty.end(), wanted));
}
bool differs(const faulty_run& run) { return run.judged.changed; }
bool refuted(const faulty_run& run) { return differs(run) && run.judged.refused_by(judge_kind::stages); }
bool stage_named(const faulty_run& run) { return run.shown_in.empty() || run.judged.first_bad == run.shown_in; }

figure trade(const survey& s) {
  figure f;
  f.id = "trade";
  f.title = "What a rule catches, and what it costs correct kernels";
  panel p;
  p.x = {"correct results refused, %", axis_scale::linear, -4.0, 104.0, {0, 20, 40, 60, 80, 100}};
  p.y = {"faulty results refused, %", axis_scale::linear, 0.0, 104.0, {0, 20, 40, 60, 80, 100}};
  p.tall = true;
  for (std::size_t i = 0; i < judge_names.size(); ++i) {
    const score x = score_of(s, judge_at(i));
    p.curves.push_back({std::string(judge_names[i]),
                        {100 * share(x.refused, x.correct)},
                        {100 * share(x.caught, x.differing)},
                        series_style::points});
  }
  f.panels = {p};
  const score best = score_of(s, judge_kind::stages);
  f.caption = "Upper left is good: all faults caught, no correct kernel refused. Each point is one rule on the same tensors: " +
              count(best.differing) + " faulty results that differ from the correct one in some bit, " + count(best.correct) +
              " correct results. A rule that refuses everything (upper right) catches everything.";
  f.alt = "Scatter of seven rules: share of correct results refused against share of faulty results refused.";
  return f;
}

figure by_stage(const survey& s) {
  const auto all = faults();
  std::vector<std::string> stages;
  for (const fault& f : all) {
    if (std::find(stages.begin(), stages.end(), f.stage) == stages.end()) stages.emplace_back(f.stage);
  }
  const auto place = [](const std::string& name) {
    if (name == "inputs") return std::size_t{0};
    const auto at = std::find(stage_names.begin(), stage_names.end(), name);
    return static_cast<std::size_t>(at - stage_names.begin()) + (at != stage_names.end() ? 1 : name == "o" ? 1 : 2);
  };
  std::sort(stages.begin(), stages.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  figure f;
  f.id = "by-stage";
  f.title = "Faulty results refused, by the stage of the fault (%)";
  heat_map h;
  h.label = "refused, %";
  h.column_names.assign(judge_names.begin(), judge_names.end());
  for (const std::string& stage : stages) {
    h.row_names.push_back(stage);
    for (std::size_t i = 0; i < judge_names.size(); ++i) {
      const auto here = [&](const faulty_run& run) { return differs(run) && all[run.fault].stage == stage; };
      const std::size_t n = count_runs(s, here);
      h.values.push_back(rounded(
          100 * share(count_runs(s, [&](const faulty_run& run) { return here(run) && run.judged.refused_by(judge_at(i)); }), n)));
    }
  }
  h.row_names.emplace_back("no fault");
  for (std::size_t i = 0; i < judge_names.size(); ++i) {
    const score x = score_of(s, judge_at(i));
    h.values.push_back(rounded(100 * share(x.refused, x.correct)));
  }
  h.rows = h.row_names.size();
  h.columns = h.column_names.size();
  h.minimum = 0;
  h.maximum = 100;
  h.digits = 3;
  panel p;
  p.heat = h;
  p.tall = true;
  f.panels = {p};
  f.caption =
      "Above, all should be 100; in the last row, correct results, all should be 0. Where the rules in use are low the fault "
      "changes the outputs by less than "
      "the one tolerance they have for every tensor and every input.";
  f.alt = "Table of colours: stage of the fault against rule, share of faulty results refused; the last row is correct results.";
  return f;
}

table rules_table(const survey& s) {
  table t;
  t.id = "rules";
  t.title = "The rules on the same tensors";
  t.columns = {"judge", "refuses when", "faulty results refused", "faults refused in some case", "correct results refused"};
  for (std::size_t i = 0; i < judge_names.size(); ++i) {
    const score x = score_of(s, judge_at(i));
    t.rows.push_back({judge_names[i], judge_rules[i], percent(x.caught, x.differing), of(x.faults, faults().size()),
                      of(x.refused, x.correct)});
  }
  t.note = "Of a fault that changes no bit of a result nobody can know: " +
           count(s.faulty.size() - score_of(s, judge_kind::stages).differing) + " of " + count(s.faulty.size()) +
           " runs, left out. A result that is not finite where the exact one is counts as refused by everybody.";
  return t;
}

table cases_table(const survey& s) {
  table t;
  t.id = "cases";
  t.title = "The cases";
  t.columns = {"no.",
               "case",
               "plan",
               "deltaproof gen",
               "faults possible",
               "differ",
               "refuted, outputs alone",
               "refuted, stages given",
               "correct runs"};
  for (const std::string_view name : judge_names) t.columns.emplace_back(std::string(name) + " refuses");
  for (std::size_t c = 0; c < s.cases.size(); ++c) {
    const auto with = [&](const auto& wanted) {
      return count_runs(s, [&](const faulty_run& run) { return run.at == c && wanted(run); });
    };
    std::vector<cell> row{c + 1,
                          s.cases[c].id,
                          s.cases[c].plan,
                          describe(s.cases[c]),
                          with([](const faulty_run&) { return true; }),
                          with(differs),
                          with([](const faulty_run& run) { return differs(run) && run.judged.refused_by(judge_kind::outputs); }),
                          with(refuted)};
    std::size_t correct = 0;
    std::array<std::size_t, judge_names.size()> refused{};
    for (const correct_run& run : s.correct) {
      if (run.at != c) continue;
      ++correct;
      for (std::size_t i = 0; i < refused.size(); ++i) refused[i] += run.judged.refuses[i] ? 1 : 0;
    }
    row.emplace_back(correct);
    for (const std::size_t n : refused) row.emplace_back(n);
    t.rows.push_back(std::move(row));
  }
  t.note =
      "Correct runs: every arithmetic that the plan allows, each as it is and with its sums moved by an ulp of fp32. *step*: the "
      "recurrent kernel.";
  return t;
}

void add_slips(const survey& s, report& r) {
  table t;
  t.id = "not-refuted";
  t.title = "Faulty results that differ and are not refuted";
  t.columns = {"fault", "case", "change / error of a correct kernel", "the same fault is refuted in"};
  std::size_t largest_of = 0;
  double largest = 0;
  for (std::size_t i = 0; i < s.faulty.size(); ++i) {
    const faulty_run& run = s.faulty[i];
    if (!differs(run) || refuted(run)) continue;
    const std::size_t elsewhere = count_runs(s, [&](const faulty_run& x) { return x.fault == run.fault && refuted(x); });
    const std::size_t all = count_runs(s, [&](const faulty_run& x) { return x.fault == run.fault && differs(x); });
    t.rows.push_back({faults()[run.fault].name, s.cases[run.at].id, number(run.judged.size, 2), of(elsewhere, all)});
    if (run.judged.size > largest) {
      largest = run.judged.size;
      largest_of = i;
    }
  }
  t.note =
      "Change: rms of (faulty − correct) over rms of (correct − exact), the larger of o and final_state. Last column: cases in "
      "which the fault changes a bit.";
  finding f;
  f.id = "what-slips";
  f.kind = evidence::measured();
  f.because =
      "The bits of each faulty result are compared with those of the correct run of the same arithmetic on the same inputs.";
  f.values = {{"not_refuted", t.rows.size()}, {"differing", count_runs(s, differs)}};
  if (t.rows.empty()) {
    f.statement = "Every faulty result that differs from the correct one in any bit is refuted.";
  } else {
    f.values["largest_change"] = number(largest, 2);
    f.statement = of(t.rows.size(), count_runs(s, differs)) +
                  " differing results are not refuted; the largest of these changes, " +
                  std::string(faults()[s.faulty[largest_of].fault].name) + " in " + s.cases[s.faulty[largest_of].at].id +
                  ", is " + number(largest, 2) + " times the error that a correct kernel makes there.";
  }
  r.findings.push_back(std::move(f));
  if (!t.rows.empty()) r.tables.push_back(std::move(t));
}

}  // namespace

score score_of(const survey& s, judge_kind who) {
  score out;
  std::set<std::size_t> seen;
  for (const faulty_run& run : s.faulty) {
    if (!differs(run)) continue;
    ++out.differing;
    if (!run.judged.refused_by(who)) continue;
    ++out.caught;
    seen.insert(run.fault);
  }
  out.faults = seen.size();
  out.correct = s.correct.size();
  for (const correct_run& run : s.correct) out.refused += run.judged.refused_by(who) ? 1 : 0;
  return out;
}

void add_faults(const survey& s, report& r) {
  const std::size_t all = faults().size();
  const score stages = score_of(s, judge_kind::stages), outputs = score_of(s, judge_kind::outputs);
  {
    finding f;
    f.id = "faults-refuted";
    std::string never;
    for (std::size_t i = 0; i < all; ++i) {
      if (count_runs(s, [&](const faulty_run& run) { return run.fault == i && refuted(run); }) == 0)
        never += (never.empty() ? "" : ", ") + std::string(faults()[i].name);
    }
    f.statement = (never.empty() ? "Each of the " + count(all) + " faults of the catalogue is refuted in at least one case"
                                 : of(stages.faults, all) +
                                       " faults of the catalogue are refuted in at least one case (not: " + never + ")") +
                  "; of the " + count(stages.differing) + " faulty results that differ from the correct one, check refutes " +
                  percent(stages.caught, stages.differing) + " with stages and " + percent(outputs.caught, outputs.differing) +
                  " from o and final_state alone.";
    f.kind = evidence::measured();
    f.values = {{"faults", all},
                {"refuted_somewhere", stages.faults},
                {"differing", stages.differing},
                {"refuted_with_stages", stages.caught},
                {"refuted_by_outputs", outputs.caught}};
    f.because =
        "Every fault is planted in every case it can happen in, and the tensors are judged by `check` against the plan of the "
        "case.";
    r.findings.push_back(std::move(f));
  }
  {
    finding f;
    f.id = "false-alarms";
    f.statement =
        "Of " + count(stages.correct) + " correct results check refutes " + count(stages.refused) + " with stages and " +
        count(outputs.refused) + " from outputs alone; fla's ratio refuses " + count(score_of(s, judge_kind::fla).refused) +
        ", FlashAttention's factor " + count(score_of(s, judge_kind::flash_attention).refused) + ", attention-gym's " +
        count(score_of(s, judge_kind::attention_gym).refused) + ", allclose " + count(score_of(s, judge_kind::allclose).refused) +
        ", NMSE < 1e-7 " + count(score_of(s, judge_kind::nmse).refused) + ".";
    f.kind = evidence::measured();
    for (std::size_t i = 0; i < judge_names.size(); ++i)
      f.values["refused_by " + std::string(judge_names[i])] = score_of(s, judge_at(i)).refused;
    f.values["correct"] = stages.correct;
    f.because =
        "Every arithmetic each plan allows is emulated as it is and with disturbed sums; each check has a declared false-alarm "
        "probability of 1e-4.";
    r.findings.push_back(std::move(f));
  }
  {
    const std::size_t seen = count_runs(s, refuted);
    const std::size_t stage = count_runs(s, [](const faulty_run& run) { return refuted(run) && stage_named(run); });
    const std::size_t first = count_runs(s, [](const faulty_run& run) { return refuted(run) && run.judged.diagnosed; });
    finding f;
    f.id = "what-is-named";
    f.statement = "With stages, the first bad stage that check names is the fault's own in " + percent(stage, seen) + " of the " +
                  count(seen) + " refuted results, and the fault it finds most alike is the planted one in " +
                  percent(first, seen) + ".";
    f.kind = evidence::measured();
    f.values = {{"refuted", seen}, {"stage_named", stage}, {"fault_named", first}};
    f.because =
        "The catalogue names the stage of each fault; where a result does not hold it the next one counts, and a fault of what "
        "is read may show in any. The diagnosis "
        "counts where no other fault is more alike: two faults may do the same to some inputs.";
    r.findings.push_back(std::move(f));
  }
  add_slips(s, r);
  r.figures.push_back(trade(s));
  r.figures.push_back(by_stage(s));
  r.tables.insert(r.tables.begin(), rules_table(s));
  r.tables.insert(r.tables.begin() + 1, cases_table(s));
}

void add_fault_tables(const survey& s, report& r) {
  const auto all = faults();
  table t;
  t.id = "faults";
  t.title = "Each fault, over the cases in which it changes a bit";
  t.columns = {"fault", "stage", "cases", "differs"};
  for (const std::string_view name : judge_names) t.columns.emplace_back(std::string(name));
  t.columns.emplace_back("stage named");
  t.columns.emplace_back("fault named");
  table where;
  where.id = "verdicts";
  where.title = "Fault × case";
  where.columns = {"fault"};
  for (std::size_t c = 0; c < s.cases.size(); ++c) where.columns.emplace_back(std::to_string(c + 1));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto with = [&](const auto& wanted) {
      return count_runs(s, [&](const faulty_run& run) { return run.fault == i && wanted(run); });
    };
    std::vector<cell> row{all[i].name, all[i].stage, with([](const faulty_run&) { return true; }), with(differs)};
    for (std::size_t k = 0; k < judge_names.size(); ++k)
      row.emplace_back(with([&](const faulty_run& run) { return differs(run) && run.judged.refuses[k]; }));
    row.emplace_back(with([](const faulty_run& run) { return refuted(run) && stage_named(run); }));
    row.emplace_back(with([](const faulty_run& run) { return refuted(run) && run.judged.diagnosed; }));
    t.rows.push_back(std::move(row));
    std::vector<cell> verdicts(s.cases.size() + 1, cell(""));
    verdicts[0] = all[i].name;
    for (const faulty_run& run : s.faulty) {
      if (run.fault == i)
        verdicts[run.at + 1] = !differs(run) ? "=" : run.judged.refused_by(judge_kind::outputs) ? "R" : refuted(run) ? "S" : "·";
    }
    where.rows.push_back(std::move(verdicts));
  }
  t.note = "Numbers are cases. *stage named*, *fault named*: of those refuted with stages.";
  where.note =
      "Columns are the cases by number. R: refuted from o and final_state alone; S: refuted once stages are given; ·: differs, "
      "not refuted; =: changes no bit; empty: cannot happen there.";
  r.tables.push_back(std::move(t));
  r.tables.push_back(std::move(where));
}

std::string answer(const survey& s, const inverse_survey& inverses) {
  const auto text = [&](judge_kind who) { return percent(score_of(s, who).caught, score_of(s, who).differing); };
  const score stages = score_of(s, judge_kind::stages), fla = score_of(s, judge_kind::fla),
              factor = score_of(s, judge_kind::flash_attention);
  std::string out =
      "On the same tensors check refutes " + text(judge_kind::stages) + " of the faulty results that differ at all (" +
      text(judge_kind::outputs) + " without their intermediates), at least once " +
      (stages.faults == faults().size() ? "each of the " + count(stages.faults) : of(stages.faults, faults().size())) +
      " planted faults, and " + (stages.refused == 0 ? "none" : std::to_string(stages.refused)) + " of " + count(stages.correct) +
      " correct results; fla's ratio catches " + text(judge_kind::fla) + " and refuses " + count(fla.refused) +
      " correct ones, FlashAttention's factor " + text(judge_kind::flash_attention) + " and " + count(factor.refused) +
      ", allclose and NMSE < 1e-7 refuse most of what they see, correct or not.";
  const score strict = score_of(s, judge_kind::nmse), close = score_of(s, judge_kind::allclose);
  if (2 * strict.refused < strict.correct || 2 * close.refused < close.correct) {
    out = out.substr(0, out.rfind(", allclose")) + ", allclose " + text(judge_kind::allclose) + " and " + count(close.refused) +
          ", NMSE " + text(judge_kind::nmse) + " and " + count(strict.refused) + ".";
  }
  const auto named = std::count_if(inverses.rows.begin(), inverses.rows.end(),
                                   [](const inverse_row& row) { return row.verdict == "refuted" && !row.adequate; });
  if (named > 0) out += " Inverses by powers are refused on correlated keys before their outputs are looked at.";
  return out;
}

}  // namespace deltaproof::detail::referee_study
