// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "studies/recall/printed.hpp"
#include "studies/recall/runs.hpp"
#include "studies/recall/sections.hpp"
#include "studies/recall/theory.hpp"
#include "studies/shared/functions.hpp"
#include "studies/shared/text.hpp"

namespace deltaproof::detail::recall {
namespace {

using shared::percent;

/// One way to read a run that the document's text allows.
struct protocol {
  const char* name;
  query asked;
  enum { prefix, last, final_state } over;
  when read;
};
constexpr std::array<protocol, 10> protocols{{
    {"query apart, after the update, mean over the tokens so far", query::apart, protocol::prefix, when::after},
    {"query apart, before the update, mean over the tokens so far", query::apart, protocol::prefix, when::before},
    {"query apart, after the update, last token", query::apart, protocol::last, when::after},
    {"query apart, before the update, last token", query::apart, protocol::last, when::before},
    {"query apart, final state, mean over all tokens", query::apart, protocol::final_state, when::after},
    {"own key, before the update, mean over the tokens so far", query::own_key, protocol::prefix, when::before},
    {"own key, after the update, mean over the tokens so far", query::own_key, protocol::prefix, when::after},
    {"own key, before the update, last token", query::own_key, protocol::last, when::before},
    {"own key, after the update, last token", query::own_key, protocol::last, when::after},
    {"own key, final state, mean over all tokens", query::own_key, protocol::final_state, when::after},
}};

double read(const protocol& p, const observation& o) {
  switch (p.over) {
    case protocol::prefix:
      return o.over_prefix(p.asked, p.read).error;
    case protocol::last:
      return o.at_last(p.asked, p.read).error;
    case protocol::final_state:
      return o.final_state[std::size_t(p.asked)].error;
  }
  return 0;
}

/// Within half a unit of the last printed digit, or three standard deviations of a run, of the mean of the runs.
bool agrees(const printed& p, const spread& s) { return std::fabs(s.mean - p.value) <= 0.5 * p.unit + 3 * s.deviation + 1e-12; }

struct survey {
  // [relation][normalised][run]
  std::array<std::array<std::vector<observation>, 2>, relations.size()> delta;
  std::array<std::vector<observation>, relations.size()> least_squares;  // values normalised
  bool complete = false;
};

survey run_survey(const run_options& options, const settings& size) {
  survey s;
  for (auto& by_norm : s.delta) {
    for (auto& runs : by_norm) runs.resize(size.runs);
  }
  for (auto& runs : s.least_squares) runs.resize(size.runs);
  const std::size_t jobs = relations.size() * 3 * size.runs;
  const std::size_t done = for_each_index(jobs, options, "protocols", [&](std::size_t i) {
    const std::size_t run = i % size.runs;
    const std::size_t f = i / size.runs % relations.size();
    const std::size_t which = i / size.runs / relations.size();
    task t;
    t.f = relations[f].id;
    t.normalise_values = which != 1;
    t.key_dim = size.key_dim;
    t.tokens = size.tokens;
    const inputs in = make_inputs(t, options.seed, run);
    if (which == 2) {
      // The ridge that gives the printed figures; without one the error has no mean.
      const auto m = least_squares(size.key_dim, size.key_dim, 1e-4);
      s.least_squares[f][run] = observe(*m, in);
    } else {
      const auto m = delta_rule(size.key_dim, size.key_dim, 1);
      s.delta[f][which == 0 ? 1 : 0][run] = observe(*m, in);
    }
  });
  s.complete = done == jobs;
  return s;
}

template <class F>
spread over_runs(const std::vector<observation>& runs, F&& f) {
  std::vector<double> x;
  for (const observation& o : runs) x.push_back(f(o));
  return spread_of(x);
}

struct verdict {
  std::size_t agreeing = 0;  ///< of the twelve printed errors
  double log_error = 0;      ///< root mean square of ln(run / printed), of those above 10^-6
  bool scaling = false;      ///< linear attention's three printed errors follow, by the closed form
};

// Linear attention under a protocol, identity, in expectation: query apart only, the others are not printed numbers' size.
bool scaling_agrees(const protocol& p, std::size_t d) {
  const moments m = moments_of(relation::identity, d);
  for (std::size_t i = 0; i < printed_tokens.size(); ++i) {
    const expectation e = hebbian_apart(m, d, printed_tokens[i]);
    const double expected = p.over == protocol::prefix ? e.prefix : e.last;
    if (p.asked != query::apart || std::fabs(expected / printed_hebbian[i].value - 1) > 0.03) return false;
  }
  return true;
}

verdict judge_protocol(const protocol& p, const survey& s, const settings& size) {
  verdict v;
  double squares = 0;
  std::size_t n = 0;
  for (std::size_t f = 0; f < relations.size(); ++f) {
    for (const bool normalised : {false, true}) {
      const printed& figure = normalised ? printed_errors[f].normalised : printed_errors[f].raw;
      const spread found = over_runs(s.delta[f][normalised ? 1 : 0], [&](const observation& o) { return read(p, o); });
      if (agrees(figure, found)) ++v.agreeing;
      const double away = shared::ln(std::max(found.mean, 1e-20) / figure.value);
      squares += away * away;
      ++n;
    }
  }
  v.log_error = std::sqrt(squares / static_cast<double>(n));
  v.scaling = scaling_agrees(p, size.key_dim);
  return v;
}

std::string with_spread(const spread& s, int digits = 3) { return number(s.mean, digits) + " ± " + number(s.deviation, 2); }

figure chance_figure(const settings& size, const survey& s) {
  figure f;
  f.id = "chance";
  f.title = "The printed errors are those of vectors that have nothing to do with each other";
  f.caption =
      "Each point is one printed error of DeltaNet at T = 1000, with values normalised and not, against 2 E v²: the expected "
      "squared "
      "distance of two independent vectors of that size. All lie on the diagonal, to the digits printed: the error says how "
      "large the values are, and "
      "nothing of how well they are recalled. The predictor 0 lies on the lower line, half as high.";
  f.alt =
      "Twelve points over six orders of magnitude on the diagonal of a log-log plot, twice as high as the line of the predictor "
      "0.";
  panel p;
  p.title = "printed errors";
  p.x = {"2 E v² (closed form)", axis_scale::logarithmic, 3e-6, 10};
  p.y = {"mean squared error", axis_scale::logarithmic, 3e-6, 10};
  series points{"printed", {}, {}, series_style::points};
  series ran{"this study", {}, {}, series_style::points};
  for (std::size_t i = 0; i < relations.size(); ++i) {
    for (const bool normalised : {false, true}) {
      const double square = normalised ? 1 / static_cast<double>(size.key_dim) : moments_of(relations[i].id, size.key_dim).square;
      points.x.push_back(2 * square);
      points.y.push_back((normalised ? printed_errors[i].normalised : printed_errors[i].raw).value);
      ran.x.push_back(2 * square);
      ran.y.push_back(over_runs(s.delta[i][normalised ? 1 : 0], [](const observation& o) {
                        return o.over_prefix(query::apart, when::after).error;
                      }).mean);
    }
  }
  const auto sorted = [](series& x) {
    std::vector<std::size_t> order(x.x.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x.x[a] < x.x[b]; });
    series y = x;
    for (std::size_t i = 0; i < order.size(); ++i) {
      y.x[i] = x.x[order[i]];
      y.y[i] = x.y[order[i]];
    }
    x = y;
  };
  sorted(points);
  sorted(ran);
  p.curves = {{"independent vectors", {3e-6, 10}, {3e-6, 10}},
              {"predictor 0", {3e-6, 10}, {1.5e-6, 5}},
              std::move(ran),
              std::move(points)};
  f.panels = {std::move(p)};
  return f;
}

}  // namespace

void add_protocol(const run_options& options, const settings& size, report& r) {
  const survey s = run_survey(options, size);
  if (!s.complete) {
    r.unfinished.emplace_back("Protocols: interrupted before all runs were done.");
    return;
  }
  table grid;
  grid.id = "protocols";
  grid.title = "Ways to read the experiment, against the printed errors of DeltaNet";
  grid.columns = {"protocol", "printed errors met (of 12)", {"rms of ln(run / printed)", 3}, "linear attention's three follow"};
  std::size_t best = 0;
  std::vector<verdict> verdicts;
  for (const protocol& p : protocols) {
    verdicts.push_back(judge_protocol(p, s, size));
    const verdict& v = verdicts.back();
    grid.rows.push_back({p.name, v.agreeing, v.log_error, v.scaling});
    const verdict& leader = verdicts[best];
    if (v.scaling > leader.scaling || (v.scaling == leader.scaling && v.agreeing > leader.agreeing)) best = verdicts.size() - 1;
  }
  grid.note =
      "Met: within half a unit of the last printed digit or three standard deviations of one run (the document prints one run). "
      "A "
      "last-token reading meets much because it spreads much; the three errors of linear attention, whose closed forms differ "
      "threefold, tell it from the mean over tokens.";
  const verdict& chosen = verdicts[best];
  bool order_matters = true;
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    const protocol& p = protocols[i];
    if (p.asked == protocols[best].asked && p.over == protocols[best].over && p.read != protocols[best].read &&
        verdicts[i].scaling == chosen.scaling && verdicts[i].agreeing + 1 >= chosen.agreeing)
      order_matters = false;
  }
  const bool found = chosen.scaling && chosen.agreeing >= 9 && protocols[best].asked == query::apart;

  table errors;
  errors.id = "printed-errors";
  errors.title = "Printed errors of DeltaNet beside the protocol found, null predictors and scale-free numbers, T = 1000";
  errors.columns = {"values",     "normalised",       {"printed", 3},  "run",           {"expected", 4},
                    "met",        {"predictor 0", 3}, {"constant", 3}, {"shuffled", 3}, {"error / E v²", 3},
                    {"cosine", 2}};
  double lowest = HUGE_VAL;
  double highest = 0;
  double largest_cosine = 0;
  std::size_t unmet = 0;
  std::size_t unmet_identity = 0;
  for (std::size_t f = 0; f < relations.size(); ++f) {
    const moments m = moments_of(relations[f].id, size.key_dim);
    for (const bool normalised : {true, false}) {
      const auto& runs = s.delta[f][normalised ? 1 : 0];
      const printed& figure = normalised ? printed_errors[f].normalised : printed_errors[f].raw;
      const auto mean = [&](auto get) { return over_runs(runs, get).mean; };
      const spread error = over_runs(runs, [](const observation& o) { return o.over_prefix(query::apart, when::after).error; });
      const double square = mean([](const observation& o) { return o.value_square; });
      const double cosine = mean([](const observation& o) { return o.over_prefix(query::apart, when::after).cosine; });
      moments scaled = m;
      if (normalised) scaled.square = 1 / static_cast<double>(size.key_dim);
      lowest = std::min(lowest, error.mean / square);
      highest = std::max(highest, error.mean / square);
      largest_cosine = std::max(largest_cosine, std::fabs(cosine));
      const bool met = agrees(figure, error);
      if (!met) ++unmet;
      if (!met && relations[f].id == relation::identity) ++unmet_identity;
      errors.rows.push_back({std::string(relations[f].formula), normalised, figure.value, with_spread(error),
                             delta_apart(scaled, size.key_dim, size.tokens).prefix, met, square,
                             mean([](const observation& o) { return o.value_variance; }),
                             mean([](const observation& o) { return o.shuffled; }), error.mean / square, cosine});
    }
  }
  errors.note = "Run: mean ± standard deviation of " + std::to_string(size.runs) +
                " runs. Expected: E v² (2 − mean of (1 − 1/d)ᵗ), exact for every f. Predictors: 0; the mean value of the run; "
                "the value of the "
                "next token. Identity is printed as 0.028 and 0.026 here and as 0.030 elsewhere in the document: with 1000 "
                "tokens the spread of a "
                "run is 0.0001, so neither is met; a mean cosine of 0.08 to 0.14 between query and key would give them.";

  r.findings.push_back(
      {"protocol",
       found ? "The protocol is: " + std::string(protocols[best].name) +
                   (order_matters ? "" : " (before or after the figures do not tell)") +
                   "; o = S q with a unit query that is drawn apart from the keys, "
                   "against the value of the current token, mean over elements. It meets " +
                   std::to_string(chosen.agreeing) + " of 12 printed errors of DeltaNet and the three of linear attention; the " +
                   std::to_string(unmet) + " not met " +
                   (unmet == unmet_identity ? "are those of the identity." : "are marked in the table.")
             : "No protocol tried gives the printed errors: the best, " + std::string(protocols[best].name) + ", meets " +
                   std::to_string(chosen.agreeing) + " of 12.",
       evidence::sampled(size.runs, options.seed, "standard deviation of a run beside each number of the table"),
       {{"found", found},
        {"agreeing", chosen.agreeing},
        {"protocol", protocols[best].name},
        {"log_error", chosen.log_error},
        {"not_met", unmet},
        {"order_matters", order_matters}},
       "Ten ways to read the same runs (query: own key or apart; before or after the update; mean over tokens, last token, final "
       "state); no projections, keys and queries of unit norm, values normalised after f or not, eᵏ not clipped (|k| ≤ 1)."});
  const bool chance = lowest > 1.7 && highest < 2.2 && largest_cosine < 0.05;
  r.findings.push_back(
      {"error-is-chance",
       chance
           ? "Under that protocol the error is " + number(lowest, 3) + " to " + number(highest, 3) +
                 " times E v² for all six relations, normalised or not, with a cosine of at most " + number(largest_cosine, 1) +
                 " between output and value: the error of an answer that has nothing to do with the question. The predictor 0 "
                 "does "
                 "twice as well (1), a constant better still where values have a mean."
           : "Under that protocol the error lies between " + number(lowest, 3) + " and " + number(highest, 3) + " times E v².",
       evidence::sampled(size.runs * 12, options.seed, "of a run: table"),
       {{"lowest", lowest}, {"highest", highest}, {"cosine", largest_cosine}},
       "The value does not depend on the query, so no memory could do better than a constant."});
  r.findings.push_back(
      {"polynomials-are-not-easier",
       highest / lowest < 1.2
           ? "That k⁴ is \"easier\" than k by thousands is the ratio of E v² alone: from k to k⁴ the raw error falls " +
                 number(
                     over_runs(s.delta[0][0], [](const observation& o) { return o.over_prefix(query::apart, when::after).error; })
                             .mean /
                         over_runs(s.delta[3][0],
                                   [](const observation& o) { return o.over_prefix(query::apart, when::after).error; })
                             .mean,
                     3) +
                 " times and E v² " +
                 number(moments_of(relation::identity, size.key_dim).square / moments_of(relation::quartic, size.key_dim).square,
                        3) +
                 " times; per E v² the relations differ by " + percent(highest / lowest - 1, 2) + " at most."
           : "Per E v² the relations differ by " + percent(highest / lowest - 1, 2) + ".",
       evidence::sampled(size.runs * 12, options.seed, "of a run: table"),
       {{"spread", highest / lowest}},
       "The recurrence is linear in v: values a hundred times smaller give errors ten thousand times smaller."});

  table gaps;
  gaps.id = "printed-gap";
  gaps.title = "DeltaNet and least squares under that protocol, values normalised, T = 1000";
  gaps.columns = {"values",   {"DeltaNet, printed", 3}, "DeltaNet, run", {"RLS, printed", 3},
                  "RLS, run", {"RLS, last token", 3},   "RLS met"};
  std::size_t met = 0;
  double spike = 0;
  for (const printed_gap& g : printed_gaps) {
    const auto f = static_cast<std::size_t>(g.f);
    const auto mean_over = [](const observation& o) { return o.over_prefix(query::apart, when::after).error; };
    const spread delta = over_runs(s.delta[f][1], mean_over);
    const spread squares = over_runs(s.least_squares[f], mean_over);
    const double last = over_runs(s.least_squares[f], [](const observation& o) { return o.final_state[1].error; }).mean;
    if (agrees(g.least_squares, squares)) ++met;
    if (g.f == relation::quadratic) spike = squares.mean / last;
    gaps.rows.push_back({std::string(relations[f].formula), g.delta.value, with_spread(delta), g.least_squares.value,
                         with_spread(squares), last, agrees(g.least_squares, squares)});
  }
  gaps.note =
      "RLS with a ridge of 10⁻⁴. Last token: the state after 1000 tokens, read with all queries. Without a ridge the mean over "
      "tokens has "
      "no finite expectation: at t near d the keys are all but dependent, and the fit through them is as large as 1/distance.";
  r.findings.push_back(
      {"least-squares-spike",
       spike > 1.2
           ? "The printed gap of 1.03 between DeltaNet and least squares is made by the first d tokens: averaged over them the "
             "error of least squares for k² is " +
                 number(spike, 3) +
                 " times that of its state after 1000 tokens, "
                 "because at t ≈ d the fit passes through noise; " +
                 std::to_string(met) + " of 4 printed errors are met with a ridge of 10⁻⁴, which decides the height of the spike."
           : "Least squares shows no spike at t ≈ d: the mean over tokens is " + number(spike, 3) + " times the last.",
       evidence::sampled(size.runs, options.seed, "of a run: table"),
       {{"spike", spike}, {"met", met}},
       "Queries apart from the keys; see `least-squares-halves` for what the gap is when the question has an answer."});
  r.tables.push_back(std::move(grid));
  r.tables.push_back(std::move(errors));
  r.tables.push_back(std::move(gaps));
  r.figures.push_back(chance_figure(size, s));
}

}  // namespace deltaproof::detail::recall
