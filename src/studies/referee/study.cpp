// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The study `referee` plants every fault of the catalogue in every case it can happen in, has the emulator make the tensors, and
// asks `check` and the field's rules about the same tensors; beside them correct runs, and inverses that kernels shipped with.

#include "deltaproof/study/study.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/study/grid.hpp"
#include "studies/referee/inverses.hpp"
#include "studies/shared/trials/bench.hpp"

namespace deltaproof {
namespace {

using namespace detail::referee_study;
namespace trials = detail::trials;
using trials::bench;
using trials::trial_case;

/// Who refuses. `stages` is check on everything the result holds; `outputs` is check on o and final_state alone.
const std::vector<std::string> judges{"stages", "outputs", "fla", "flash_attention", "attention_gym", "allclose", "nmse"};
constexpr double fla_ratio = 0.005;
constexpr double eager_factor = 2;
constexpr double nmse_limit = 1e-7;
constexpr double alarm_probability = 1e-4;

/// rms(got - correct) / rms(correct - exact); infinite where got is not finite.
double relative_change(const tensor& got, const tensor& correct, double error_rms) {
  const std::vector<double> x = got.to_doubles(), y = correct.to_doubles();
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += (x[i] - y[i]) * (x[i] - y[i]);
  const double rms = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, x.size())));
  return rms == rms && error_rms > 0 ? rms / error_rms : std::numeric_limits<double>::infinity();
}

struct judgement {
  std::vector<cell> refuses;  // by each of `judges`
  std::string first_bad;      // stage, with stages
  bool diagnosed = false;     // the planted fault is the first suspect, or projects exactly as the first

  [[nodiscard]] bool with_stages() const { return refuses[0] == cell(true); }
  [[nodiscard]] bool from_outputs() const { return refuses[1] == cell(true); }
};

judgement judge(const bench& b, const result& r, const fault* planted) {
  judgement out;
  result outputs = r;
  outputs.stages.clear();
  const check_report alone = check(b.p, outputs, b.options);
  bool fla = false, allclose = false, nmse = false, finite = true;
  for (const tensor_report& t : alone.tensors) {
    finite = finite && t.errors.nonfinite == 0;
    fla = fla || !(t.errors.fla_ratio.value < fla_ratio);
    allclose = allclose || t.errors.allclose_violations > 0;
    nmse = nmse || !(t.errors.nmse < nmse_limit);
  }
  const check_report full = r.stages.empty() ? alone : check(b.p, r, b.options);
  out.refuses = {full.judged == verdict::refuted,
                 alone.judged == verdict::refuted,
                 fla || !finite,
                 !finite || alone.flash_attention_factor.value_or(0) > eager_factor,
                 !finite || alone.attention_gym_factor.value_or(0) > eager_factor,
                 allclose || !finite,
                 nmse || !finite};
  if (full.conformance) {
    out.first_bad = full.conformance->first_bad_stage;
    const auto& suspects = full.conformance->suspects;
    for (const suspect& s : suspects) {
      // Two faults may do the same thing to these inputs; then nothing tells them apart.
      out.diagnosed =
          out.diagnosed || (planted != nullptr && s.planted->name == planted->name &&
                            s.comes_later == suspects.front().comes_later && s.score >= suspects.front().score - 1e-6);
    }
  }
  if (out.first_bad.empty() && !finite) out.first_bad = "o";
  return out;
}

bool changed(const bench& b, const result& r) {
  const auto differs = [&](const auto& stage) { return !same_bits(stage.second, b.correct.stages.at(stage.first)); };
  return !same_bits(r.o, b.correct.o) || !same_bits(*r.final_state, *b.correct.final_state) ||
         std::any_of(r.stages.begin(), r.stages.end(), differs);
}

/// The stage itself where the result holds it, else the next that it holds; empty: any.
std::string shown_in(std::string_view stage, const result& r) {
  if (stage == "inputs") return "";
  const auto own = std::find(stage_names.begin(), stage_names.end(), stage);
  for (auto name = own; name != stage_names.end(); ++name) {
    if (r.stages.count(std::string(*name)) != 0) return std::string(*name);
  }
  return stage == "final_state" ? "final_state" : "o";
}

/// Sorts stages as they come: inputs, those of the chunk, o, final_state.
std::size_t place_of(std::string_view stage) {
  if (stage == "inputs") return 0;
  const auto at = std::find(stage_names.begin(), stage_names.end(), stage);
  return static_cast<std::size_t>(at - stage_names.begin()) + (at != stage_names.end() || stage == "o" ? 1 : 2);
}

std::vector<std::string> and_judges(std::vector<std::string> columns) {
  columns.insert(columns.end(), judges.begin(), judges.end());
  return columns;
}

/// One fault in one case; a fault that cannot happen there has only empty cells.
frame_row faulty_row(const fault& planted, const trial_case& c, const bench& b) {
  if (!applies(planted, b.p, c.path)) return frame_row(6 + judges.size());
  emulation_options how;
  how.stages = true;
  how.planted = &planted;
  const result r = emulated(b, c, b.allowed.front(), how);
  const judgement judged = judge(b, r, &planted);
  const std::string must_show = shown_in(planted.stage, r);
  const bool differs = changed(b, r);
  const double size = std::max(relative_change(r.o, b.correct.o, b.o_error),
                               relative_change(*r.final_state, *b.correct.final_state, b.state_error));
  const char* seen = !differs ? "same" : judged.from_outputs() ? "outputs" : judged.with_stages() ? "stages" : "missed";
  frame_row row{c.id,
                planted.stage,
                seen,
                size,
                judged.with_stages() && (must_show.empty() || judged.first_bad == must_show),
                judged.with_stages() && judged.diagnosed};
  row.insert(row.end(), judged.refuses.begin(), judged.refuses.end());
  return row;
}

/// Every arithmetic that the plan allows, as it is and with its sums disturbed. `first`: runs of the cases before.
std::vector<frame_row> correct_rows(const run_options& options, const trial_case& c, const bench& b, std::size_t first) {
  std::vector<frame_row> rows;
  for (const plan_variant& v : b.allowed) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}}) {
      emulation_options how;
      how.stages = true;
      how.noise_ulps = seed == 0 ? 0 : 1;
      how.seed = (options.seed << 20) ^ (1000003 * seed + first + rows.size());
      rows.push_back(judge(b, emulated(b, c, v, how), nullptr).refuses);
    }
  }
  return rows;
}

std::size_t count(const frame& f, std::string_view column) { return static_cast<std::size_t>(f.over(column, total)); }
double share(std::size_t part, std::size_t all) { return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all); }

void add_judges(const frame& differing, const frame& correct, results& r) {
  frame rules({"judge", "caught", "caught_share", "faults", "refused", "refused_share"});
  std::map<std::string, cell> alarms{{"correct", correct.size()}}, refused, shares;
  for (const std::string& judge : judges) {
    const frame caught = differing.where(judge, true);
    const std::size_t alarm = count(correct, judge);
    const double caught_share = share(caught.size(), differing.size());
    rules.add({judge, caught.size(), caught_share, caught.by({"fault"}, {}).size(), alarm, share(alarm, correct.size())});
    shares[judge] = caught_share;
    refused[judge] = alarm;
  }
  frame by_stage({"stage", "judge", "share"});
  std::vector<std::string> stages;
  const frame own_stages = differing.by({"stage"}, {});
  for (const frame_row& row : own_stages.rows()) stages.push_back(row.front().text());
  std::stable_sort(stages.begin(), stages.end(), [](const auto& x, const auto& y) { return place_of(x) < place_of(y); });
  for (const std::string& stage : stages) {
    const frame own = differing.where("stage", stage);
    for (const std::string& judge : judges) by_stage.add({stage, judge, std::round(100 * share(count(own, judge), own.size()))});
  }
  for (const std::string& judge : judges)
    by_stage.add({"no_fault", judge, std::round(100 * share(count(correct, judge), correct.size()))});
  r.table("rules", std::move(rules));
  r.table("by-stage", std::move(by_stage));
  r.values("caught", shares);
  r.values("refused", refused);
  r.values("most", {{"allclose", share(count(correct, "allclose"), correct.size())},
                    {"nmse", share(count(correct, "nmse"), correct.size())}});
  for (const auto& [judge, times] : refused) alarms["refused_by " + judge] = times;
  r.values("false-alarms", evidence::measured(), alarms);
}

/// Cases and faults, one row for each judge.
void add_tables(const frame& possible, const frame& correct, const std::vector<trial_case>& cases, results& r) {
  const auto is = [](const frame& f, std::string_view seen) { return f.where("seen", seen).size(); };
  frame by_case(
      {"number", "case", "plan", "gen", "possible", "differ", "by_outputs", "by_stages", "correct", "judge", "refused"});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const frame here = possible.where("number", i + 1);
    const frame runs = correct.where("number", i + 1);
    const frame differing = here.where([](const auto& row) { return row["seen"] != cell("same"); });
    for (const std::string& judge : judges) {
      by_case.add({i + 1, cases[i].id, cases[i].plan, describe(cases[i]), here.size(), differing.size(),
                   count(differing, "outputs"), count(differing, "stages"), runs.size(), judge, count(runs, judge)});
    }
  }
  r.table("cases", std::move(by_case));
  frame by_fault({"fault", "stage", "cases", "differs", "judge", "refused", "stage_named", "fault_named"});
  for (const fault& f : faults()) {
    const frame own = possible.where("fault", f.name);
    const frame differing = own.where([](const auto& row) { return row["seen"] != cell("same"); });
    for (const std::string& judge : judges) {
      by_fault.add({f.name, f.stage, own.size(), own.size() - is(own, "same"), judge, count(differing, judge),
                    count(differing, "stage_named"), count(differing, "fault_named")});
    }
  }
  r.table("faults", std::move(by_fault));
}

/// What is not refuted, case by case.
void add_slips(const frame& differing, const std::vector<trial_case>& cases, results& r) {
  frame slips({"fault", "case", "size", "elsewhere", "all"});
  for (const trial_case& c : cases) {
    const frame missed = differing.where("case", c.id).where("stages", false);
    for (std::size_t i = 0; i < missed.size(); ++i) {
      const frame same = differing.where("fault", missed.at(i, "fault"));
      slips.add({missed.at(i, "fault"), c.id, missed.at(i, "size"), count(same, "stages"), same.size()});
    }
  }
  const double largest = slips.over("size", greatest);
  const frame worst_of = slips.where("size", largest);
  r.values("what-slips", evidence::measured(),
           {{"not_refuted", slips.size()}, {"differing", differing.size()}, {"largest_change", largest}});
  const auto named = [&](const char* column) { return worst_of.size() == 0 ? cell("none") : worst_of.at(0, column); };
  r.values("slip", {{"fault", named("fault")}, {"case", named("case")}});
  r.table("not-refuted", std::move(slips));
}

void add_faults(const run_options& options, results& r) {
  const std::vector<trial_case> cases = trials::cases(options);
  std::vector<bench> benches(cases.size());
  grid_axis<std::size_t> numbers{"number", std::vector<std::size_t>(cases.size())};
  std::iota(numbers.quick.begin(), numbers.quick.end(), std::size_t{1});
  // One correct run of each case first: it leaves the plan's own draws for all that follow.
  (void)grid(
      options, "cases", {},
      [&](std::size_t number) -> frame_row {
        benches[number - 1] = make_bench(cases[number - 1]);
        (void)judge(benches[number - 1], benches[number - 1].correct, nullptr);
        return {};
      },
      numbers);
  const frame& all = r.table(
      "verdicts", grid(
                      options, "planted faults", and_judges({"case", "stage", "seen", "size", "stage_named", "fault_named"}),
                      [&](const fault& f, std::size_t number) { return faulty_row(f, cases[number - 1], benches[number - 1]); },
                      grid_axis<fault>{"fault", {faults().begin(), faults().end()}}, numbers));
  const frame correct = grid(
      options, "correct runs", judges,
      [&](std::size_t number) {
        std::size_t before = 0;
        for (std::size_t i = 0; i + 1 < number; ++i) before += 2 * benches[i].allowed.size();
        return correct_rows(options, cases[number - 1], benches[number - 1], before);
      },
      numbers);

  const frame possible = all.where([](const auto& row) { return !is_missing(row["seen"]); });
  const frame differing = possible.where([](const auto& row) { return row["seen"] != cell("same"); });
  const frame refuted = differing.where("stages", true);
  const std::size_t planted = possible.by({"fault"}, {}).size();
  r.values("faults-refuted", evidence::measured(),
           {{"faults", planted},
            {"elsewhere", faults().size() - planted},
            {"refuted_somewhere", refuted.by({"fault"}, {}).size()},
            {"differing", differing.size()},
            {"refuted_with_stages", refuted.size()},
            {"refuted_by_outputs", count(differing, "outputs")}});
  r.values("what-is-named", evidence::measured(),
           {{"refuted", refuted.size()},
            {"stage_named", count(refuted, "stage_named")},
            {"fault_named", count(refuted, "fault_named")}});
  r.values("named", {{"stage", share(count(refuted, "stage_named"), refuted.size())},
                     {"fault", share(count(refuted, "fault_named"), refuted.size())}});
  r.values("runs", {{"all", possible.size()}, {"same", possible.size() - differing.size()}});
  add_judges(differing, correct, r);
  add_tables(possible, correct, cases, r);
  add_slips(differing, cases, r);
}

void add_inverses(const run_options& options, results& r) {
  const frame& all = r.table("inverses", survey_inverses(options));
  const frame powers = all.where("kind", "powers");
  const frame repaired = all.where("kind", "repaired");
  r.values("inverses-judged-before-running", evidence::measured(),
           {{"powers", powers.size()},
            {"powers_refuted", powers.where("verdict", "refuted").where("adequate", false).size()},
            {"repaired", repaired.size()},
            {"repaired_hold", repaired.where("verdict", "holds").size()}});
  const frame first = all.where("keys", key_laws.front().name);
  const frame between = first.where("of", "bf16-between-steps");
  const auto one = [](const frame& f, const char* plan) { return f.where("against", plan).where("of", plan); };
  const frame promised = between.where("against", "fla-chunk-gdn");
  r.values("promise-not-kept", evidence::measured(),
           {{"rms_over_limit", promised.at(0, "rms_ratio")},
            {"verdict", promised.at(0, "verdict")},
            {"first_bad_stage", promised.at(0, "first_bad")}});
  r.values("promise", {{"plan", promised.at(0, "against")},
                       {"own_verdict", one(between, "bf16-between-steps").at(0, "verdict")},
                       {"error", promised.at(0, "error")},
                       {"promised_error", one(first, "fla-chunk-gdn").at(0, "error")}});
}

results run(const run_options& options) {
  results r = in_parts(options, {{"planted faults", &add_faults}, {"inverses", &add_inverses}});
  r.values("limits", {{"fla", fla_ratio}, {"factor", eager_factor}, {"nmse", nmse_limit}});
  r.values(
      "law",
      {{"dim", dim}, {"first_tokens", key_laws[0].tokens}, {"second_tokens", key_laws[1].tokens}, {"judged", judged_tokens}});
  r.parameters = {{"cases", trials::cases(options).size()}, {"false_alarm", alarm_probability}};
  return r;
}

}  // namespace

extern const study referee_study{"referee", &run};

}  // namespace deltaproof
