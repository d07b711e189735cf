// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "deltaproof/rule/rules.hpp"
#include "studies/discretisation/forced.hpp"
#include "studies/discretisation/sections.hpp"
#include "studies/shared/functions.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof::detail::discretisation {
namespace {

using shared::stability_of;

// The last is 2(1 - 2u) for bf16, the largest step that is safe for every rounded unit key (study eigenvalues).
constexpr std::array<double, 7> strengths{0.5, 1, 1.5, 1.75, 1.875, 1.9375, 1.984375};
constexpr double safe_in_bf16 = 1.984375;

struct forced_row {
  double beta = 0;
  mean_square sampled;
  double expected = 0;
  double repeated = 0;
  double adversary_share = 0;
  double random_share = 0;
};

figure gain_figure() {
  figure f;
  f.id = "energy-gain";
  f.title = "The one number behind the forced state, by rule";
  f.caption =
      "G = (1 − R)/(1 + R), the most that one step adds to |S|² for a value of length 1. Euler's has a pole at x = 2 and rk3's "
      "at its "
      "limit, 2.51, where R = −1; rk2 and rk4 have their limits at R = +1, where nothing is written, so they turn back. "
      "Crank–Nicolson's is "
      "x/2 although |R| < 1 for every x: it is stable and its forced state has no bound as x grows. The exact flow (tanh x/2) "
      "and "
      "implicit Euler (x/(2 + x)) stay below 1.";
  f.alt = "Seven curves against x: two rise to poles, one rises along a straight line, two turn back, two level off below one.";
  panel only;
  only.title = "largest gain of |S|² in one step, values of length 1, unit keys";
  only.x = {"x = β|k|²", axis_scale::linear, 0, 6};
  only.y = {"(1 − R)/(1 + R)", axis_scale::linear, 0, 4};
  only.marks = {{mark_direction::horizontal, 1, ""}};
  for_each_rule([&](auto rule) {
    series s{std::string(rule.name), {}, {}};
    for (int i = 0; i <= 240; ++i) {
      const double x = i / 40.0;
      if (x > rule.limit) break;
      const double gain = energy_gain(rule.stability(rounded<fp64>::from_exact(x)).value());
      if (!(gain <= 4.2)) break;
      s.x.push_back(x);
      s.y.push_back(gain);
    }
    only.curves.push_back(std::move(s));
  });
  f.panels = {std::move(only)};
  return f;
}

figure forced_figure(const std::vector<forced_row>& rows, const settings& size) {
  figure f;
  f.id = "forced";
  f.title = "What bounded values do to the state while every eigenvalue stays in [−1, 1]";
  f.columns = 2;
  f.caption =
      "Left: one unit key for ever, or fresh ones, values of length (root mean square) 1, DeltaNet with step β. Lines: the "
      "largest "
      "|S k| that values can force on one key, β/(1 − |1 − β|); and √(d G), G = β/(2 − β), what |S| settles at with fresh keys "
      "and "
      "random values, d = " +
      std::to_string(size.key_dim) +
      "; points are runs. Right: |S| against keys chosen to make it grow, values of length 1. It grows under every rule, as √(T "
      "G); "
      "under DeltaNet at β = 2 as 2T.";
  f.alt = "Left: two rising curves with points on them, steep near two. Right: two parallel rising lines and a steeper one.";
  panel left;
  left.title = "DeltaNet, unit keys";
  left.x = {"β", axis_scale::linear, 0, 2};
  left.y = {"|S|", axis_scale::logarithmic, 0.3, 1000};
  series one_key{"one key, worst values", {}, {}};
  series fresh{"fresh keys, random values", {}, {}};
  for (int i = 1; i <= 399; ++i) {
    const double beta = i / 200.0;
    one_key.x.push_back(beta);
    one_key.y.push_back(repeated_gain(1 - beta));
    fresh.x.push_back(beta);
    fresh.y.push_back(std::sqrt(static_cast<double>(size.key_dim) * energy_gain(1 - beta)));
  }
  series one_key_runs{"one key, worst values", {}, {}, series_style::points};
  series fresh_runs{"fresh keys, random values", {}, {}, series_style::points};
  for (const forced_row& row : rows) {
    one_key_runs.x.push_back(row.beta);
    one_key_runs.y.push_back(row.repeated);
    fresh_runs.x.push_back(row.beta);
    fresh_runs.y.push_back(std::sqrt(row.sampled.mean));
  }
  left.curves = {one_key, fresh, one_key_runs, fresh_runs};
  panel right;
  right.title = "keys chosen against it";
  right.x = {"tokens T", axis_scale::logarithmic};
  right.y = {"|S|", axis_scale::logarithmic, 0.3, {}};
  const auto grown = [&](const std::string& label, double stability) {
    const std::vector<double> squares = adversary(stability, size.tokens);
    series s{label, {}, {}};
    for (const std::size_t t : shared::checkpoints(size.tokens)) {
      s.x.push_back(static_cast<double>(t));
      s.y.push_back(std::sqrt(squares[t - 1]));
    }
    right.curves.push_back(std::move(s));
  };
  grown("DeltaNet, β = 2", -1);
  grown("DeltaNet, β = 1", 0);
  grown("EFLA, x = 1", stability_of("exact", 1));
  f.panels = {std::move(left), std::move(right)};
  return f;
}

}  // namespace

void add_forced(const run_options& options, const settings& size, report& r) {
  std::vector<forced_row> rows(strengths.size());
  const std::size_t done = for_each_index(rows.size(), options, "forced states", [&](std::size_t i) {
    const double beta = strengths[i];
    const double stability = 1 - beta;
    forced_row& row = rows[i];
    row.beta = beta;
    // Six times the time in which a state forgets.
    const auto tokens = static_cast<std::size_t>(std::ceil(6 * static_cast<double>(size.key_dim) / (1 - stability * stability)));
    row.sampled = fresh_keys(stability, size.key_dim, tokens, size.streams, options.seed);
    row.expected = fresh_keys_expected(stability, size.key_dim, tokens);
    row.repeated = worst_values(stability, 4000).back();
    const std::vector<double> grown = adversary(stability, size.tokens);
    row.adversary_share = grown.back() / (static_cast<double>(size.tokens) * energy_gain(stability));
    row.random_share = largest_share_of_bound(stability, size.key_dim, size.tokens / 10, 4, options.seed);
  });
  if (done < rows.size()) {
    r.unfinished.emplace_back("Forced states: interrupted.");
    return;
  }
  const forced_row& safe = rows.back();
  double worst_deviation = 0;
  double largest_repeated_error = 0;
  double smallest_share = 1;
  double largest_share = 0;
  for (const forced_row& row : rows) {
    worst_deviation = std::max(worst_deviation, std::fabs(row.sampled.mean - row.expected) / row.sampled.standard_error);
    largest_repeated_error = std::max(largest_repeated_error, std::fabs(row.repeated / repeated_gain(1 - row.beta) - 1));
    smallest_share = std::min(smallest_share, row.adversary_share);
    largest_share = std::max({largest_share, row.adversary_share, row.random_share});
  }
  const double at_two = std::sqrt(adversary(-1, size.tokens).back());
  const double alternating_at_two = worst_values(-1, size.tokens).back();
  r.findings.push_back({"forced-bound",
                        "With |R| < 1 and values of length at most v, every step adds at most G v²/|k|² to |S|², G = (1 − R)/(1 "
                        "+ R), whatever the "
                        "keys: |S_T|² ≤ |S_0|² + T G v² for unit keys, and no smaller G will do. G is β/(2 − β) for DeltaNet, "
                        "tanh(x/2) < 1 for EFLA, "
                        "x/(2 + x) < 1 for implicit Euler, and x/2 for Crank–Nicolson.",
                        evidence::proved(),
                        {},
                        "With a = S k, |k| = 1, b = 1 − R: |S′|² = |S|² − |a|² + |R a + b v|², and over a this is largest at a = "
                        "R b v/(1 − R²), where it "
                        "is |S|² + b²|v|²/(1 − R²). The homogeneous part is algebra.non_expansive.energy_balance."});
  r.findings.push_back({"forced-bound-runs",
                        std::string(largest_share <= 1 + 1e-9 ? "No run exceeds that bound" : "Some run exceeds that bound") +
                            " (largest share " + number(largest_share, 6) + "); keys chosen against the state reach " +
                            number(smallest_share, 4) + " of it or more after " + std::to_string(size.tokens) +
                            " tokens at every β from 0.5 to 1.984375.",
                        evidence::worst_found(rows.size() * (4 * (size.tokens / 10) + size.tokens), options.seed),
                        {{"largest_share", largest_share}, {"adversary_share", smallest_share}},
                        "Random keys and signs, and the adversary of the proof, in fp64; |S_T|²/(T G) at every token."});
  r.findings.push_back(
      {"forced-repeated-key",
       "With one repeated key, values of length 1 can force |S k| up to b/(1 − |R|): 1 for β ≤ 1, β/(2 − β) beyond, " +
           number(repeated_gain(1 - safe_in_bf16), 4) +
           " at β = 1.984375, the largest step that is safe for every rounded bf16 key. At β = 2 "
           "there is no bound: alternating values give |S k| = " +
           number(alternating_at_two, 5) + " after " + std::to_string(size.tokens) +
           " tokens, 2 a token, with every eigenvalue in [−1, 1].",
       evidence::proved(),
       {{"gain_at_safe_beta", repeated_gain(1 - safe_in_bf16)},
        {"alternating_at_two", alternating_at_two},
        {"tokens", size.tokens},
        {"largest_relative_error_of_runs", largest_repeated_error}},
       "S k is a geometric sum of b R^j v: at most b Σ|R|^j, attained by values whose signs follow R. The runs agree to " +
           number(largest_repeated_error, 2) + "."});
  const bool random_agrees = worst_deviation < 4;
  r.findings.push_back(
      {"forced-random",
       std::string("With fresh keys and random values |S|² has mean d G|v|²; the runs ") +
           (random_agrees ? "agree" : "disagree") + " (largest of " + std::to_string(rows.size()) + " deviations " +
           number(worst_deviation, 2) + " standard errors): " +
           number(std::sqrt(rows[1].sampled.mean / static_cast<double>(size.key_dim)), 3) + " √d at β = 1 and " +
           number(std::sqrt(safe.sampled.mean / static_cast<double>(size.key_dim)), 3) + " √d at β = 1.984375.",
       evidence::sampled(rows.size() * size.streams, options.seed, "standard errors in the table"),
       {{"largest_deviation", worst_deviation},
        {"agrees", random_agrees},
        {"root_mean_square_per_root_d_at_1", std::sqrt(rows[1].sampled.mean / static_cast<double>(size.key_dim))},
        {"root_mean_square_per_root_d_at_safe", std::sqrt(safe.sampled.mean / static_cast<double>(size.key_dim))}},
       "E|S′|² = (1 − (1 − R²)/d) E|S|² + b² E v²: the direction of a fresh key is independent of S."});
  r.findings.push_back({"forced-all-rules",
                        "No rule bounds |S| for all keys and bounded values: keys chosen against the state make it grow as √(T "
                        "G), with EFLA at x = 1 to " +
                            number(std::sqrt(adversary(stability_of("exact", 1), size.tokens).back()), 3) +
                            " and with DeltaNet at β = 1 to " + number(std::sqrt(adversary(0, size.tokens).back()), 3) +
                            " after " + std::to_string(size.tokens) + " tokens, at β = 2 to " + number(at_two, 5) +
                            ". Stability bounds what is remembered, not what is written.",
                        evidence::measured(),
                        {{"exact_at_1", std::sqrt(adversary(stability_of("exact", 1), size.tokens).back())},
                         {"euler_at_1", std::sqrt(adversary(0, size.tokens).back())},
                         {"tokens", size.tokens},
                         {"euler_at_2", at_two}},
                        "The adversary of the proof of forced-bound, two dimensions, fp64."});
  table t;
  t.id = "forced";
  t.title = "DeltaNet, unit keys, values of length 1: what is written as β → 2";
  t.columns = {"β",
               "eigenvalue R",
               {"G = β/(2 − β)", 5},
               {"one key, worst values: |S k|", 5},
               {"fresh keys: mean |S|²/d", 4},
               {"standard error", 2},
               {"expected", 4},
               {"adversary: |S|²/(T G)", 4}};
  const auto d = static_cast<double>(size.key_dim);
  for (const forced_row& row : rows) {
    t.rows.push_back({row.beta, 1 - row.beta, energy_gain(1 - row.beta), row.repeated, row.sampled.mean / d,
                      row.sampled.standard_error / d, row.expected / d, row.adversary_share});
  }
  t.note = "d = " + std::to_string(size.key_dim) + ", " + std::to_string(size.streams) +
           " streams, each 6 d/(1 − R²) tokens long. At β = 2 every column is infinite.";
  r.tables.push_back(std::move(t));
  r.figures.push_back(forced_figure(rows, size));
  r.figures.push_back(gain_figure());
}

}  // namespace deltaproof::detail::discretisation
