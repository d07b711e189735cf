// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "studies/logistic/orbits.hpp"
#include "studies/logistic/sections.hpp"
#include "studies/shared/functions.hpp"
#include "studies/shared/maps.hpp"

namespace deltaproof::detail::logistic {
namespace {

constexpr std::array<double, 3> parameters{3.75, 3.875, 4};

using shared::one_step;

/// Values of r x (1 - x) that orbits keep visiting: the map of study horizon in the unit x = (r - 1)/r u.
series attractor(std::size_t sweep, double from, double to) {
  series s{"", {}, {}, series_style::cloud};
  for (std::size_t i = 0; i <= sweep; ++i) {
    const double r = from + (to - from) * static_cast<double>(i) / static_cast<double>(sweep);
    for (const double u : shared::orbit(one_step::logistic_euler, r - 1, 2000, 60)) {
      s.x.push_back(r);
      s.y.push_back(u * (r - 1) / r);
    }
  }
  return s;
}

figure bifurcation_figure(const settings& size) {
  figure f;
  f.id = "bifurcation";
  f.title = "Bifurcation diagram and Lyapunov exponent of r x (1 − x)";
  f.columns = 1;
  f.shared_x = true;
  f.caption =
      "Top: values that orbits visit after 2 000 steps. Bottom: growth of a small difference a step, in nats. It is negative "
      "where the orbit settles on a "
      "cycle, 0 where the period doubles (r = 3, 3.449, 3.544 …), positive in between from r∞ = 3.56995 on, with windows; at r = "
      "4 it is ln 2.";
  f.alt =
      "Top: a line that splits in two, four, eight and dissolves into bands with gaps. Bottom: a curve below zero that rises "
      "above it with dips.";
  panel top;
  top.title = "orbit";
  top.x = {"r", axis_scale::linear, 2.8, 4};
  top.y = {"x", axis_scale::linear, 0, 1};
  top.curves = {attractor(size.sweep, 2.8, 4)};
  top.tall = true;
  panel bottom;
  bottom.title = "Lyapunov exponent";
  bottom.x = top.x;
  bottom.y = {"nats a step", axis_scale::linear, -1.5, 0.8};
  bottom.marks = {{mark_direction::horizontal, 0, ""}, {mark_direction::horizontal, shared::ln(2), "ln 2"}};
  series s{"", {}, {}};
  for (std::size_t i = 0; i <= size.sweep; ++i) {
    const double r = 2.8 + 1.2 * static_cast<double>(i) / static_cast<double>(size.sweep);
    s.x.push_back(r);
    s.y.push_back(shared::logistic_exponent(one_step::logistic_euler, r - 1, 2000, 4000));
  }
  bottom.curves = {std::move(s)};
  f.panels = {std::move(top), std::move(bottom)};
  return f;
}

}  // namespace

void add_chaos(const run_options& options, const settings& size, report& r) {
  if (options.stopped()) {
    r.unfinished.emplace_back("Lyapunov exponents and decorrelation: interrupted.");
    return;
  }
  std::array<estimate, parameters.size()> exponents;
  std::array<std::vector<race>, parameters.size()> races;
  const std::size_t done = for_each_index(parameters.size(), options, "decorrelation", [&](std::size_t i) {
    exponents[i] = lyapunov(parameters[i], size.exponent_steps, size.exponent_streams, options.seed);
    races[i] = decorrelation(parameters[i], size.starts, 800, options.seed);
  });
  if (done < parameters.size()) {
    r.unfinished.emplace_back("Decorrelation: interrupted.");
    return;
  }
  const estimate& at_four = exponents.back();
  const double distance = std::fabs(at_four.mean - shared::ln(2)) / at_four.standard_error();
  r.findings.push_back(
      {"lyapunov-at-four",
       "At r = 4 the exponent is ln 2 = 0.693147; fp64 orbits give " + number(at_four.mean, 6) + " ± " +
           number(at_four.standard_error(), 2) + ", " + number(distance, 2) + " standard errors from it" +
           (distance < 4 ? "." : ", which is too far."),
       evidence::sampled(at_four.n, options.seed, "standard deviation of a stream " + number(at_four.deviation, 2)),
       {{"exponent", at_four.mean}, {"standard_error", at_four.standard_error()}, {"agrees", distance < 4}},
       "Mean of ln|r (1 − 2x)| over " + std::to_string(size.exponent_steps) +
           " steps a stream. That it is ln 2: an orbit is sin²(2^n θ), ode.logistic.orbit_at_four."});

  figure f;
  f.id = "decorrelation";
  f.title = "How long a number format follows a chaotic orbit";
  f.caption =
      "Steps until an orbit in a format with p bits is further than 0.1 from the true one, mean over random starts (bands: one "
      "standard deviation), against "
      "p. Lines: p ln 2/λ, λ the exponent measured in fp64. Every bit buys ln 2/λ steps, whatever the format.";
  f.alt = "Three straight lines through points, steeper for smaller exponents.";
  panel p;
  p.title = "decorrelation time";
  p.x = {"bits p of the significand", axis_scale::linear, 0, 170};
  p.y = {"steps", axis_scale::linear, 0, {}};
  table t;
  t.id = "decorrelation";
  t.title = "Steps until |x − true x| > 0.1";
  t.columns = {"r",         {"exponent λ", 4}, {"its standard error", 2}, "format",
               "bits p",    {"mean steps", 4}, {"standard deviation", 3}, {"least", 4},
               {"most", 4}, {"p ln 2/λ", 4}};
  double worst_slope = 0;
  std::map<std::string, cell> values;
  std::uint64_t never = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double per_bit = shared::ln(2) / exponents[i].mean;
    const std::string label = "r = " + number(parameters[i], 4);
    series points{label, {}, {}, series_style::points};
    series law{label, {0, 170}, {0, 170 * per_bit}};
    series band{label, {}, {}, series_style::band, {}};
    std::vector<double> bits;
    std::vector<double> steps;
    for (const race& one : races[i]) {
      const double precision = one.precision;
      never += one.never;
      bits.push_back(precision);
      steps.push_back(one.steps.mean);
      points.x.push_back(precision);
      points.y.push_back(one.steps.mean);
      band.x.push_back(precision);
      band.y.push_back(one.steps.mean - one.steps.deviation);
      band.y_upper.push_back(one.steps.mean + one.steps.deviation);
      t.rows.push_back({parameters[i], exponents[i].mean, exponents[i].standard_error(), one.format_name, one.precision,
                        one.steps.mean, one.steps.deviation, one.smallest, one.largest, precision * per_bit});
      if (parameters[i] == 4) values[one.format_name + "_steps"] = one.steps.mean;
    }
    const line fitted = fit(bits, steps);
    worst_slope = std::max(worst_slope, std::fabs(fitted.slope / per_bit - 1));
    p.curves.push_back(std::move(band));
    p.curves.push_back(std::move(law));
    p.curves.push_back(std::move(points));
  }
  t.note = "Starts: " + std::to_string(size.starts) +
           " random bf16 numbers in (1/8, 7/8), the same for all formats; true orbits over 2200 bits.";
  f.panels = {std::move(p)};
  values["largest_deviation_of_slope"] = worst_slope;
  values["never"] = never;
  const bool lawful = worst_slope < 0.1;
  r.findings.push_back(
      {"decorrelation-law",
       std::string("A format with p bits follows a chaotic orbit for about p ln 2/λ steps: the slope of steps against p ") +
           (lawful ? "is that to within " : "differs from that by up to ") + number(100 * worst_slope, 2) +
           " % at r = 3.75, 3.875 and 4 over p = 8 … 161. At r = 4 that is " +
           number(std::get<double>(values.at("bf16_steps").value()), 3) + " steps in bf16, " +
           number(std::get<double>(values.at("fp16_steps").value()), 3) + " in fp16, " +
           number(std::get<double>(values.at("fp32_steps").value()), 3) + " in fp32, " +
           number(std::get<double>(values.at("fp64_steps").value()), 3) + " in fp64.",
       evidence::sampled(size.starts * parameters.size(), options.seed, "standard deviations of single orbits in the table"),
       values,
       "A rounding error of 2^−p grows by e^λ a step until it is of the size of the attractor. Truth over 2200 bits loses at "
       "most 2 bits a step, 1600 in 800."});
  r.tables.push_back(std::move(t));
  r.figures.push_back(bifurcation_figure(size));
  r.figures.push_back(std::move(f));
}

}  // namespace deltaproof::detail::logistic
