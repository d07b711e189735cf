// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/state_precision/sections.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "studies/shared/keys.hpp"
#include "studies/shared/text.hpp"

namespace deltaproof::detail::state_precision {
namespace {

using shared::percent;

constexpr double good = 0.01;
constexpr double bad = 0.1;

std::size_t choice_named(std::string_view name) {
  return static_cast<std::size_t>(std::find_if(choices.begin(), choices.end(), [&](const choice& c) { return c.name == name; }) -
                                  choices.begin());
}
std::size_t head_named(std::string_view id) {
  return static_cast<std::size_t>(std::find_if(heads.begin(), heads.end(), [&](const head& h) { return h.id == id; }) -
                                  heads.begin());
}

struct extreme {
  double error = 0;
  std::size_t head = 0;
};
extreme worst_of(const survey& s, std::size_t choice) {
  extreme e;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const double x = largest(s.heads[h].runs[choice]);
    if (x > e.error) e = {x, h};
  }
  return e;
}
std::size_t good_heads(const survey& s, std::size_t choice) {
  std::size_t n = 0;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    if (largest(s.heads[h].runs[choice]) <= good) ++n;
  }
  return n;
}

figure error_figure(const survey& s) {
  figure f;
  f.id = "error";
  f.title = "Error of the state against the horizon";
  f.caption =
      "|S′ − S| / |S| (Frobenius) against the oracle's state; one panel for each head, one number kept in few bits at a time. 1 "
      "% is drawn. With β near ½ "
      "every curve is flat from a hundred tokens on: writing forgets what rounding did. With small β and a long memory errors "
      "grow with the memory: "
      "a bf16 or fp16 state rounded to nearest drifts away, rounded stochastically it does not, and a decay stored as e^g is "
      "another decay. g itself may "
      "be kept in bf16 everywhere.";
  f.alt =
      "Six panels of error curves over tokens; flat near one percent or below for ordinary steps, rising beyond ten percent for "
      "small steps and long memories.";
  f.columns = 2;
  f.shared_x = true;
  f.shared_y = true;
  const std::vector<std::string_view> shown{"all fp32", "state bf16",     "state bf16, stochastic", "state fp16",
                                            "β bf16",   "decay e^g bf16", "log decay g bf16",       "all bf16"};
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const head_run& run = s.heads[h];
    panel p;
    p.title = std::string(heads[h].title);
    p.x = {"tokens T", axis_scale::logarithmic, 10, static_cast<double>(run.reference.at.back())};
    p.y = {"relative error", axis_scale::logarithmic, 1e-8, 1};
    p.marks = {{mark_direction::horizontal, good, "1 %"}};
    for (const std::string_view name : shown) {
      series line{std::string(name), {}, {}};
      for (std::size_t i = 0; i < run.reference.at.size(); ++i) {
        if (run.reference.at[i] < 10) continue;
        line.x.push_back(static_cast<double>(run.reference.at[i]));
        line.y.push_back(run.runs[choice_named(name)].error[i]);
      }
      p.curves.push_back(std::move(line));
    }
    f.panels.push_back(std::move(p));
  }
  return f;
}

figure worst_figure(const survey& s) {
  figure f;
  f.id = "worst";
  f.title = "Which choice is good for which head: the largest error over the run";
  f.caption =
      "Largest |S′ − S| / |S| over the checkpoints. An output rounded to bf16 errs by up to 0.004 by itself: what is at or below "
      "that does not show.";
  f.alt =
      "A table of colours, choices by heads; the last two columns of small steps are bad for 16-bit states and for decays stored "
      "as exponentials.";
  heat_map h;
  h.rows = choices.size();
  h.columns = heads.size();
  h.scale = axis_scale::logarithmic;
  h.minimum = 1e-7;
  h.maximum = 1;
  h.digits = 2;
  h.label = "largest relative error of the state";
  for (const choice& c : choices) h.row_names.emplace_back(c.name);
  for (const head& x : heads) h.column_names.emplace_back(x.title);
  for (std::size_t c = 0; c < choices.size(); ++c) {
    for (std::size_t i = 0; i < heads.size(); ++i) h.values.push_back(largest(s.heads[i].runs[c]));
  }
  panel p;
  p.title = "largest error of all checkpoints";
  p.heat = std::move(h);
  f.panels = {std::move(p)};
  return f;
}

}  // namespace

std::size_t horizon(const measured_run& run, const std::vector<std::size_t>& at, double limit) {
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (!(run.error[i] <= limit)) return at[i];
  }
  return 0;
}

double largest(const measured_run& run) { return *std::max_element(run.error.begin(), run.error.end()); }

survey run_survey(const run_options& options, const settings& size) {
  survey s;
  s.heads.resize(heads.size());
  const std::vector<std::size_t> at = shared::checkpoints(size.tokens);
  s.complete = for_each_index(heads.size(), options, "heads", [&](std::size_t i) {
                 s.heads[i] = run_head(heads[i], size.dims, at, options.seed);
               }) == heads.size();
  return s;
}

void add_findings(const run_options& options, const settings& size, const survey& s, report& r) {
  const std::vector<std::size_t>& at = s.heads.front().reference.at;
  const std::string tokens_text = count(size.tokens) + " tokens";
  const std::string seed = "Seed " + std::to_string(options.seed) + ", one run of each head.";
  double radius = 0;
  for (const head_run& h : s.heads) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      double square = 0;
      for (const double x : h.reference.states[i].entries()) square += x * x;
      radius = std::max(radius, h.reference.radius[i] / std::sqrt(square));
    }
  }
  r.findings.push_back({"reference",
                        "The reference states are within " + number(radius, 2) +
                            " (relative, Frobenius) of the exact ones at every checkpoint to " + tokens_text +
                            ", for all six heads.",
                        evidence::certified(),
                        {{"relative_radius", radius}},
                        "The oracle's radius of each block of 4096 tokens, plus the one before times the decays since: no step "
                        "expands (β|k|² ≤ 2, checked at "
                        "each token). Theorem: algebra.error_accumulation.delta_errors_only_add."});
  const auto at_end = [&](std::string_view head_id, std::string_view name) {
    return s.heads[head_named(head_id)].runs[choice_named(name)].error.back();
  };
  const auto kept_at_end = [&](std::string_view head_id, std::string_view name) {
    return s.heads[head_named(head_id)].runs[choice_named(name)].kept.back();
  };
  const extreme all32 = worst_of(s, choice_named("all fp32"));
  r.findings.push_back({"fp32",
                        "With state, β and decay in fp32 the error stays below " + number(all32.error, 2) + " on every head to " +
                            tokens_text + " (worst: " + std::string(heads[all32.head].title) +
                            "): good for every horizon looked at.",
                        evidence::measured(),
                        {{"worst", all32.error}},
                        seed});
  const extreme b = worst_of(s, choice_named("state bf16"));
  const extreme h = worst_of(s, choice_named("state fp16"));
  const double ordinary = std::max({largest(s.heads[head_named("medium")].runs[choice_named("state bf16")]),
                                    largest(s.heads[head_named("long")].runs[choice_named("state bf16")]),
                                    largest(s.heads[head_named("no-gate")].runs[choice_named("state bf16")])});
  r.findings.push_back(
      {"sixteen-bit-state",
       std::string("A bf16 state ") +
           (ordinary < 0.05 ? "is a question of the step, not of the horizon: with β near ½ its error is level, at most " +
                                  percent(ordinary, 2) + " on any head; "
                            : "errs by up to " + percent(ordinary, 2) + " with β near ½; ") +
           "with small β (0.01 or so) and a long memory it grows to " + percent(b.error, 2) + " (" +
           std::string(heads[b.head].title) + "), first above 10 % after " +
           count(horizon(s.heads[b.head].runs[choice_named("state bf16")], at, bad)) + " tokens. An fp16 state does the same " +
           number(b.error / h.error, 2) + " times smaller: at most " + percent(h.error, 2) + ".",
       evidence::measured(),
       {{"ordinary", ordinary}, {"bf16_worst", b.error}, {"fp16_worst", h.error}},
       seed + " A write β k (v − p) below half a unit in the last place of the state is lost whole (finding dead-zone of study "
              "`horizon`), and so is a decay."});
  const double nearest = at_end("long-slow", "state bf16");
  const double random = at_end("long-slow", "state bf16, stochastic");
  r.findings.push_back(
      {"stochastic-state",
       random < nearest ? "Rounding the state stochastically takes the drift away: on long memory with small β the error of "
                          "a bf16 state ends at " +
                              percent(random, 2) + " instead of " + percent(nearest, 2) + ", and it holds " +
                              number(kept_at_end("long-slow", "state bf16, stochastic"), 4) + " of the map instead of " +
                              number(kept_at_end("long-slow", "state bf16"), 4) + "; with β near ½ it is " +
                              number(at_end("no-gate", "state bf16, stochastic") / at_end("no-gate", "state bf16"), 2) +
                              " times as noisy as rounding to nearest."
                        : "Stochastic rounding does not help a bf16 state on long memory with small β: " + percent(random, 2) +
                              " against " + percent(nearest, 2) + ".",
       evidence::measured(),
       {{"nearest", nearest}, {"stochastic", random}, {"kept_nearest", kept_at_end("long-slow", "state bf16")}},
       seed + " One stream of random numbers."});
  const extreme exponential = worst_of(s, choice_named("decay e^g bf16"));
  const extreme half = worst_of(s, choice_named("decay e^g fp16"));
  const extreme logarithm = worst_of(s, choice_named("log decay g bf16"));
  r.findings.push_back(
      {"decay",
       exponential.error > 10 * logarithm.error
           ? "Keep g, not e^g: a decay stored as e^g costs up to " + percent(exponential.error, 2) + " in bf16 and " +
                 percent(half.error, 2) + " in fp16 (" + std::string(heads[exponential.head].title) +
                 "), with an fp32 state; g stored in bf16 and raised in fp32 at most " + percent(logarithm.error, 2) + "."
           : "A decay stored as e^g in bf16 costs up to " + percent(exponential.error, 2) + ", g stored in bf16 " +
                 percent(logarithm.error, 2) + ".",
       evidence::measured(),
       {{"exponential_bf16", exponential.error}, {"exponential_fp16", half.error}, {"logarithm_bf16", logarithm.error}},
       seed + " e^g near 1 has an absolute error of u/2, a relative error of u/(2|g|) in the memory; see study `gates`."});
  const extreme beta = worst_of(s, choice_named("β bf16"));
  r.findings.push_back({"beta",
                        "β in bf16 costs at most " + percent(beta.error, 2) +
                            ", level in the horizon: it is another step by one part in 512, not a loss that adds up.",
                        evidence::measured(),
                        {{"worst", beta.error}},
                        seed});
  std::map<std::string, cell> values;
  std::string list;
  std::size_t full = 0;
  for (std::size_t c = 0; c < choices.size(); ++c) {
    const std::size_t n = good_heads(s, c);
    values["choice_" + std::to_string(c)] = n;
    if (n == heads.size()) ++full;
    list += (list.empty() ? "" : "; ") + std::string(choices[c].name) + ": " + std::to_string(n);
  }
  values["good_everywhere"] = full;
  r.findings.push_back({"which-choice", "Below 1 % at every checkpoint to " + tokens_text + ", heads of six — " + list + ".",
                        evidence::measured(), values,
                        seed + " 1 %: two and a half times the largest rounding of an output to bf16."});

  table t;
  t.id = "horizons";
  t.title = "First checkpoint with an error above 1 % | above 10 %";
  t.columns = {"choice"};
  for (std::size_t i = 0; i < heads.size(); ++i) {
    t.columns.push_back({std::string(heads[i].title) +
                         (std::isfinite(s.heads[i].half_life) ? ", half-life " + number(s.heads[i].half_life, 3) : "")});
  }
  const auto text = [](std::size_t x) { return x == 0 ? std::string("none") : count(x); };
  for (std::size_t c = 0; c < choices.size(); ++c) {
    std::vector<cell> row{std::string(choices[c].name)};
    for (std::size_t i = 0; i < heads.size(); ++i) {
      row.emplace_back(text(horizon(s.heads[i].runs[c], at, good)) + " | " + text(horizon(s.heads[i].runs[c], at, bad)));
    }
    t.rows.push_back(std::move(row));
  }
  t.note =
      "One number in few bits at a time, the others fp32; the last row all three. Half-lives in tokens, of the gates drawn. "
      "Checkpoints: ten to a decade.";
  table e;
  e.id = "errors";
  e.title = "Relative error of the state at the end (share of the map held)";
  e.columns = {"choice"};
  for (const head& x : heads) e.columns.push_back({std::string(x.title)});
  for (std::size_t c = 0; c < choices.size(); ++c) {
    std::vector<cell> row{std::string(choices[c].name)};
    for (std::size_t i = 0; i < heads.size(); ++i) {
      row.emplace_back(number(s.heads[i].runs[c].error.back(), 2) + " (" + number(s.heads[i].runs[c].kept.back(), 4) + ")");
    }
    e.rows.push_back(std::move(row));
  }
  e.note = "After " + tokens_text + ". Share: ⟨S′, S⟩/⟨S, S⟩.";
  r.tables.push_back(std::move(t));
  r.tables.push_back(std::move(e));
  r.figures.push_back(error_figure(s));
  r.figures.push_back(worst_figure(s));
}

}  // namespace deltaproof::detail::state_precision
