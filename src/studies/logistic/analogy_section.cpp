// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "deltaproof/number/rational.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/logistic/orbits.hpp"
#include "studies/logistic/sections.hpp"
#include "studies/shared/functions.hpp"
#include "studies/shared/maps.hpp"

namespace deltaproof::detail::logistic {
namespace {

constexpr std::array<std::string_view, 4> flow_formats{"bf16", "fp16", "fp32", "fp64"};

/// Cases of y -> r y (1 - y), y = b h/(1 + a h) x, r = 1 + a h, against x -> x + h (a x - b x^2), and those that agree.
std::pair<std::uint64_t, std::uint64_t> conjugate_cases() {
  std::uint64_t cases = 0;
  std::uint64_t equal = 0;
  for (const rational& a : {rational(1, 3), rational(2), rational(-5, 7)}) {
    for (const rational& b : {rational(1, 2), rational(3), rational(-4, 9)}) {
      for (const rational& h : {rational(1, 10), rational(1), rational(7, 2)}) {
        for (const rational& x : {rational(0), rational(1, 5), rational(-2), rational(13, 11)}) {
          const rational r = 1 + a * h;
          const rational unit = b * h / r;
          const rational y = unit * x;
          ++cases;
          if (unit * (x + h * (a * x - b * x * x)) == r * y * (1 - y)) ++equal;
        }
      }
    }
  }
  return {cases, equal};
}

constexpr double floor_of_growth = -4;

panel phase_panel(const std::string& title, bool euler_rule) {
  panel p;
  p.title = title;
  p.x = {"step β", axis_scale::linear, 0, 2};
  p.y = {"|k|²", axis_scale::linear, 0, 4};
  heat_map h;
  h.rows = 80;
  h.columns = 80;
  h.label = "ln|R|, nats a step";
  h.minimum = floor_of_growth;
  h.maximum = -floor_of_growth;
  h.middle = 0;
  for (std::size_t i = 0; i < h.rows; ++i) {
    for (std::size_t j = 0; j < h.columns; ++j) {
      const double n = 4 * (static_cast<double>(i) + 0.5) / static_cast<double>(h.rows);
      const double beta = 2 * (static_cast<double>(j) + 0.5) / static_cast<double>(h.columns);
      const double x = beta * n;
      const double growth = euler_rule ? shared::ln(std::fabs(1 - x)) : -x;
      h.values.push_back(std::max(growth, floor_of_growth));
    }
  }
  p.heat = std::move(h);
  series hyperbola{"β|k|² = 2", {}, {}};
  for (int j = 100; j <= 200; ++j) {
    const double beta = j / 100.0;
    if (2 / beta > 4) continue;
    hyperbola.x.push_back(beta);
    hyperbola.y.push_back(2 / beta);
  }
  for (int j = 50; j < 100; ++j) {
    hyperbola.x.insert(hyperbola.x.begin() + (j - 50), j / 100.0);
    hyperbola.y.insert(hyperbola.y.begin() + (j - 50), 2 / (j / 100.0));
  }
  p.curves = {std::move(hyperbola)};
  return p;
}

figure phase_figure(const settings& size) {
  figure f;
  f.id = "phase";
  f.title = "Delta rule over β and |k|², and the logistic map over the same x";
  f.columns = 2;
  f.caption =
      "Top: growth a step along the key, ln|R|; cold colours shrink, warm ones grow (cut off at −4; the dark band of DeltaNet is "
      "R = 0, β|k|² = 1). DeltaNet grows beyond the line β|k|² = 2, EFLA nowhere: its "
      "map is one colour of decay. Bottom: the logistic map over x = β|k|² = a h = r − 1: left stepped by Euler, right exactly. "
      "The one line of the upper left map is the "
      "first fork of the lower left diagram, and there the likeness ends: beyond it the logistic map forks on and turns chaotic "
      "inside its bounds, the delta rule, linear in "
      "S, leaves every bound.";
  f.alt =
      "Top left a map that turns from cold to warm across a hyperbola, top right a map that is cold everywhere. Bottom left a "
      "bifurcation diagram, bottom right a horizontal line.";
  panel left;
  left.title = "logistic map, Euler";
  left.x = {"x = a h", axis_scale::linear, 0, 3};
  left.y = {"u", axis_scale::linear, 0, 1.4};
  left.marks = {{mark_direction::vertical, 2, ""}};
  series cloud{"", {}, {}, series_style::cloud};
  for (std::size_t i = 1; i <= size.sweep; ++i) {
    const double x = 3 * static_cast<double>(i) / static_cast<double>(size.sweep);
    for (const double u : shared::orbit(shared::one_step::logistic_euler, x, 2000, 60)) {
      cloud.x.push_back(x);
      cloud.y.push_back(u);
    }
  }
  left.curves = {std::move(cloud)};
  panel right = left;
  right.title = "logistic map, exact";
  right.marks = {};
  series rest{"", {}, {}};
  for (int i = 1; i <= 60; ++i) {
    const double x = i / 20.0;
    for (const double u : shared::orbit(shared::one_step::logistic_exact, x, 2000, 4)) {
      rest.x.push_back(x);
      rest.y.push_back(u);
    }
  }
  right.curves = {std::move(rest)};
  f.panels = {phase_panel("DeltaNet (Euler)", true), phase_panel("EFLA (exact)", false), std::move(left), std::move(right)};
  return f;
}

}  // namespace

void add_flow(const run_options& options, const settings&, report& r) {
  std::vector<flow_census> all(flow_formats.size());
  const std::size_t done =
      for_each_index(all.size(), options, "exact map", [&](std::size_t i) { all[i] = survey_flow(flow_formats[i]); });
  if (done < all.size()) {
    r.unfinished.emplace_back("Exact map: interrupted.");
    return;
  }
  table t;
  t.id = "exact-map";
  t.title = "The exact map of x′ = x − x² in formats: x E/(1 + x (E − 1)), and x/(e^−h + h φ(h) x)";
  t.columns = {"format",
               "cases",
               "first form not finite",
               {"for x = 8 from h", 4},
               {"for x ≤ 1 from h", 4},
               {"worst relative error where finite, in u", 3},
               "second form not finite",
               {"worst relative error, in u", 3},
               "images out of order"};
  std::uint64_t safe_failures = 0;
  double safe_worst = 0;
  bool holds_at_zero = true;
  std::uint64_t decreases = 0;
  std::uint64_t cases = 0;
  for (const flow_census& c : all) {
    const double u = unit_roundoff(format_named(c.format_name));
    safe_failures += c.safe_not_finite;
    safe_worst = std::max(safe_worst, c.safe_worst / u);
    holds_at_zero = holds_at_zero && c.holds_at_zero;
    decreases += c.safe_decreases;
    cases += c.cases;
    t.rows.push_back({c.format_name, c.cases, c.naive_not_finite, c.naive_fails_from, c.naive_fails_from_one, c.naive_worst / u, c.safe_not_finite,
                      c.safe_worst / u, c.safe_decreases});
  }
  t.note =
      "h from 2⁻¹² to 2¹⁰, x from 2⁻¹² to 8. Out of order: neighbouring x of the grid whose rounded images decrease; the exact "
      "map is monotone.";
  r.findings.push_back(
      {"exact-map-safe",
       std::string("Written as x/(e^−ah + b h φ(ah) x), φ the gain of EFLA, the exactly discretised map ") +
           (safe_failures == 0 ? "is finite in every case" : "is not finite in " + std::to_string(safe_failures) + " cases") +
           ", within " + number(safe_worst, 3) + " u in every format, and " +
           (holds_at_zero ? "holds at a = 0" : "fails at a = 0") + "; written with e^ah it turns to NaN from ah = " +
           number(all[1].naive_fails_from, 3) + " in fp16, " + number(all[2].naive_fails_from, 3) + " in fp32, " +
           number(all[3].naive_fails_from, 4) + " in fp64 for x = 8, and from " + number(all[2].naive_fails_from_one, 3) +
           " in fp32 for x ≤ 1. Rounding costs it strict order in " +
           std::to_string(decreases) + " of " + std::to_string(cases) + " neighbouring pairs.",
       evidence::measured(),
       {{"cases", cases},
        {"safe_not_finite", safe_failures},
        {"safe_worst_in_u", safe_worst},
        {"fp16_naive_fails_from", all[1].naive_fails_from},
        {"fp32_naive_fails_from", all[2].naive_fails_from},
        {"fp64_naive_fails_from", all[3].naive_fails_from},
        {"fp32_naive_fails_from_one", all[2].naive_fails_from_one},
        {"holds_at_zero", holds_at_zero},
        {"out_of_order", decreases}},
       "a = b = 1 on a fixed grid of x and h, truth over 256 bits. That the exact map solves the equation, stays in (0, a/b] and "
       "is monotone: ode.logistic.logistic_flow_solves, "
       "_range, _monotone."});
  r.tables.push_back(std::move(t));
}

void add_analogy(const run_options& options, const settings& size, report& r) {
  if (options.stopped()) {
    r.unfinished.emplace_back("Analogy with the delta rule: interrupted.");
    return;
  }
  const auto [cases, equal] = conjugate_cases();
  r.findings.push_back(
      {"euler-map-is-logistic",
       std::string("Euler's method for x′ = a x − b x² is the logistic map with r = 1 + a h in the unit b h/(1 + a h): ") +
           (cases == equal ? "equal in rationals in all cases tried" : "NOT equal in rationals in every case") +
           ". So the difference equation of the same form is chaotic for some settings: at a h = 3 its orbits are those of r = "
           "4.",
       evidence::proved("ode.logistic.euler_map_conjugate"),
       {{"cases", cases}, {"equal", equal}},
       "Both sides evaluated in rationals for 108 choices of a, b, h and x, signs included; chaos at r = 4 by "
       "ode.logistic.orbit_at_four."});
  r.findings.push_back(
      {"where-the-analogy-ends",
       "The likeness is the multiplier at the fixed point, R(x) with x = a h or β|k|², and nothing else. The logistic map has a "
       "square that folds a "
       "growing difference back, so beyond x = 2 it forks and turns chaotic; the delta rule is affine in S, so for given keys, "
       "values and steps the difference "
       "of two states is a product of matrices times their first difference: it shrinks, stays or grows, and cannot be chaotic.",
       evidence::proved("algebra.wy.state_is_affine"),
       {},
       "A product of transitions does not depend on the state. Numbers of the comparison: study horizon, findings logistic-parts "
       "and no-chaos. Keys that depend "
       "on the state, as in a model that feeds its output back, are not covered."});
  r.findings.push_back(
      {"phase-map",
       "Over β and |k|² the growth of DeltaNet is positive exactly above the hyperbola β|k|² = 2, that of EFLA nowhere.",
       evidence::proved("ode.stability.euler_stable"),
       {},
       "|1 − x| ≤ 1 exactly for 0 ≤ x ≤ 2; 0 < e^−x ≤ 1 for x ≥ 0 (ode.stability.exact_range)."});
  r.figures.push_back(phase_figure(size));
}

}  // namespace deltaproof::detail::logistic
