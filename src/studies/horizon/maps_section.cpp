// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "studies/horizon/keys.hpp"
#include "studies/horizon/sections.hpp"
#include "studies/shared/maps.hpp"

namespace deltaproof::detail::horizon {
namespace {

using shared::attractor_period;
using shared::decay_of;
using shared::logistic_exponent;
using shared::one_step;
using shared::orbit;

constexpr double right_end = 3;
const std::string logistic_label = "logistic map";
const std::string delta_label = "delta rule, one key";

/// Every value of every orbit, over a sweep of x.
series cloud(const std::string& label, one_step map, int sweep, std::size_t skip, std::size_t keep, double low, double high) {
  series s{label, {}, {}, series_style::cloud};
  for (int i = 1; i <= sweep; ++i) {
    const double x = right_end * i / sweep;
    for (const double u : orbit(map, x, skip, keep)) {
      if (u < low || u > high) continue;
      s.x.push_back(x);
      s.y.push_back(u);
    }
  }
  return s;
}

/// Where an orbit comes to rest a line; elsewhere the values that it keeps visiting.
std::vector<series> limits(const std::string& label, one_step map, double low, double high) {
  series at_rest{label, {}, {}};
  series moving{label, {}, {}, series_style::cloud};
  for (int i = 1; i <= 300; ++i) {
    const double x = right_end * i / 300;
    const std::vector<double> values = orbit(map, x, 2000, 4);
    for (const double u : values) {
      if (u < low || u > high) continue;
      (values.size() == 1 ? at_rest : moving).x.push_back(x);
      (values.size() == 1 ? at_rest : moving).y.push_back(u);
    }
  }
  if (moving.x.empty()) return {at_rest};
  return {at_rest, moving};
}

panel orbit_panel(std::string title, std::vector<series> curves, double low, double high, const std::string& y,
                  const std::string& x) {
  panel p;
  p.title = std::move(title);
  p.x = {x, axis_scale::linear, 0, right_end};
  p.y = {y, axis_scale::linear, low, high};
  p.curves = std::move(curves);
  return p;
}

/// The first steps of the delta rule in the neutral colour, and where they lead.
std::vector<series> delta_curves(one_step map, double low, double high) {
  std::vector<series> curves{cloud("", map, 600, 0, 20, low, high)};
  for (series& s : limits(delta_label, map, low, high)) curves.push_back(std::move(s));
  return curves;
}

figure maps_figure() {
  figure f;
  f.id = "logistic";
  f.title = "Logistic map and delta rule over one axis";
  f.columns = 2;
  f.caption =
      "Left Euler, right exact; the axis is x = a h for the logistic map (r = 1 + x) and x = β|k|² for the delta rule on one "
      "key. Top: values the logistic map visits after 2 000 steps. Middle: S k / v after 2 000 steps, and in grey after 1 … 20, "
      "S₀ = 0. Bottom: mean growth of a perturbation a step, ln of the multiplier; after T steps an error is e^(T × this). Up to "
      "x = 2 the pictures are one: both sit at their fixed point with multiplier 1 − x (Euler), e^(−x) (exact), and both lose it "
      "at x = 2. There the analogy ends: the logistic map is bent back by its square, doubles its period and turns chaotic (x > "
      "2.570); the delta rule is linear in S, has nothing that bends it back, and diverges. The exact ones have no such point.";
  f.alt =
      "Six panels. Top left the bifurcation diagram of the logistic map; middle left a line at one that ends at x of two; bottom "
      "left two exponents that agree up to two and part. Right: straight lines.";
  const std::string x_map = "x = a h";
  const std::string x_rule = "x = β|k|²";
  panel top_left = orbit_panel("Euler logistic map", {cloud(logistic_label, one_step::logistic_euler, 600, 2000, 60, 0, 1.4)}, 0,
                               1.4, "u", x_map);
  top_left.marks = {{mark_direction::vertical, 2, ""}};
  panel top_right =
      orbit_panel("exact logistic map", limits(logistic_label, one_step::logistic_exact, 0, 1.4), 0, 1.4, "u", x_map);
  panel middle_left =
      orbit_panel("delta rule, Euler (DeltaNet)", delta_curves(one_step::delta_euler, -0.5, 2.5), -0.5, 2.5, "S k / v", x_rule);
  middle_left.marks = {{mark_direction::vertical, 2, "diverges beyond"}};
  panel middle_right =
      orbit_panel("delta rule, exact (EFLA)", delta_curves(one_step::delta_exact, -0.5, 2.5), -0.5, 2.5, "S k / v", x_rule);
  panel bottom_left;
  bottom_left.title = "growth of a perturbation, Euler";
  bottom_left.x = {"x", axis_scale::linear, 0, right_end};
  bottom_left.y = {"nats a step", axis_scale::linear, -3, 1};
  bottom_left.marks = {{mark_direction::horizontal, 0, ""}, {mark_direction::vertical, 2, ""}};
  panel bottom_right = bottom_left;
  bottom_right.title = "growth of a perturbation, exact";
  bottom_right.marks = {{mark_direction::horizontal, 0, ""}};
  series map_euler{logistic_label, {}, {}};
  series map_exact = map_euler;
  series rule_euler{delta_label, {}, {}};
  series rule_exact = rule_euler;
  for (int i = 1; i <= 300; ++i) {
    const double x = right_end * i / 300;
    for (series* s : {&map_euler, &map_exact, &rule_euler, &rule_exact}) s->x.push_back(x);
    map_euler.y.push_back(logistic_exponent(one_step::logistic_euler, x, 2000, 4000));
    map_exact.y.push_back(logistic_exponent(one_step::logistic_exact, x, 2000, 100));
    rule_euler.y.push_back(ln(std::fabs(1 - x)));
    rule_exact.y.push_back(-x);
  }
  bottom_left.curves = {map_euler, rule_euler};
  bottom_right.curves = {map_exact, rule_exact};
  f.panels = {top_left, top_right, middle_left, middle_right, bottom_left, bottom_right};
  return f;
}

}  // namespace

void add_maps(const run_options& options, const settings&, report& r) {
  if (options.stopped()) {
    r.unfinished.emplace_back("Logistic maps beside the delta rule: interrupted.");
    return;
  }
  table t;
  t.id = "logistic";
  t.title = "Logistic map and delta rule on one key at the same x";
  t.columns = {"x",
               {"points the Euler logistic map visits"},
               {"its exponent"},
               {"delta rule, Euler: ln|1 − x|"},
               {"its error after 100 tokens", 3},
               {"exact logistic map: exponent"},
               {"delta rule, exact: −x"},
               {"its error after 100 tokens", 3}};
  double worst_below = 0;
  for (const double x : {0.5, 1.5, 1.9, 2.2, 2.5, 2.55, 2.6, 2.8, 2.84, 3.0}) {
    const double map = logistic_exponent(one_step::logistic_euler, x, 2000, 20000);
    const double rule = ln(std::fabs(1 - x));
    const double exact_map = logistic_exponent(one_step::logistic_exact, x, 2000, 100);
    if (x < 2) worst_below = std::max(worst_below, std::fabs(map - rule));
    worst_below = std::max(worst_below, std::fabs(exact_map + x));
    double error = 1;
    for (int i = 0; i < 100; ++i) error *= std::fabs(1 - x);
    const std::size_t period = attractor_period(x);
    t.rows.push_back(
        {x, period == 0 ? cell("a band (chaotic)") : cell(period), map, rule, error, exact_map, -x, decay_of(100 * x)});
  }
  t.note =
      "Exponents in nats a step. Above x = 2 the logistic map stays bounded whatever its exponent; the delta rule's error is |1 "
      "− x|^T without end.";
  const double chaos = logistic_exponent(one_step::logistic_euler, 3, 2000, 100000);
  r.findings.push_back(
      {"logistic-alignment",
       "The axes fit: at its fixed point u = 1 the Euler logistic map has multiplier 1 − a h and the exact map e^(−a h), the "
       "stability functions R(x) of Euler and of EFLA at x = a h. Both Euler maps lose their fixed point at x = 2, that is r = "
       "3.",
       evidence::proved("ode.logistic.euler_map_multiplier"),
       {},
       "d/du (u + x u (1 − u)) = 1 + x (1 − 2u), at u = 1 equal to 1 − x; likewise e^(−x) for u / (u + (1 − u) e^(−x))."});
  r.findings.push_back({"logistic-parts",
                        "For x < 2 the exponents of map and rule agree to " + number(worst_below, 2) +
                            "; beyond they part: at x = 3 the logistic map is bounded and chaotic with exponent " +
                            number(chaos, 4) + " (ln 2 = 0.6931), the delta rule diverges with the same rate ln|1 − 3| = 0.6931.",
                        evidence::measured(),
                        {{"largest_difference_below_2", worst_below}, {"logistic_exponent_at_3", chaos}},
                        "Orbits in double by + − × ÷, 2 000 steps discarded; e^(−x) correctly rounded."});
  r.findings.push_back({"no-chaos",
                        "For given keys and steps the delta rule cannot be chaotic in exact arithmetic: the difference of two "
                        "states is the product of transitions times their first difference, whatever the states are. It shrinks, "
                        "stays or diverges; nothing folds it back.",
                        evidence::proved("algebra.wy.state_is_affine"),
                        {},
                        "S′ = (I − b k kᵀ) S + b k vᵀ is affine in S."});
  r.figures.push_back(maps_figure());
  r.tables.push_back(std::move(t));
}

}  // namespace deltaproof::detail::horizon
