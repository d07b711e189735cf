// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "studies/horizon/formats.hpp"
#include "studies/horizon/sections.hpp"

namespace deltaproof::detail::horizon {
namespace {

constexpr std::array<format, 2> short_formats{bf16, fp16};
constexpr int values = 128;  // the bf16 values of [1, 2): v = 1 + i/128, values of fp16 as well
constexpr int smallest_step = 12;
constexpr double course_step = 0x1p-5;
constexpr double course_value = 1.532470703125;  // between values of bf16 and of fp16
constexpr std::size_t course_streams = 64;

struct rest_row {
  format state{};
  int exponent = 0;     // b = 2^-exponent
  double smallest = 0;  // relative error at rest, over all v
  double largest = 0;
  double of_bound = 0;    // largest |v - S| / (ulp(S) / (2 b))
  std::size_t steps = 0;  // until rest, at most
};

double ulp(double x, format f) { return power_of_two(std::max(std::ilogb(x), f.emin) - f.precision + 1); }

/// |v - S| <= c S for a state at rest, c = u / b, is (v - S) / v <= c / (1 + c).
double bound_of(format state, double b) { return unit_roundoff(state) / (b + unit_roundoff(state)); }

rest_row examine(format state, int exponent) {
  const double b = power_of_two(-exponent);
  rest_row row{state, exponent, INFINITY, 0, 0, 0};
  for (int i = 0; i < values; ++i) {
    const double v = 1 + static_cast<double>(i) / values;
    const resting_point p = rest(state, b, v);
    const double error = (v - p.state) / v;
    row.smallest = std::min(row.smallest, error);
    row.largest = std::max(row.largest, error);
    row.of_bound = std::max(row.of_bound, (v - p.state) / (ulp(p.state, state) / (2 * b)));
    row.steps = std::max(row.steps, p.steps);
  }
  return row;
}

figure rest_figure(const std::vector<rest_row>& rows) {
  figure f;
  f.id = "dead-zone";
  f.title = "Where a rounded state stops learning: one key, S ← S + b (v − S)";
  f.columns = 2;
  f.caption =
      "Left: |S − v| / v against tokens for b = 1/32, v = 1.5325. Rounded to nearest the state stops for good when b (v − S) is "
      "half a unit of the last place; rounded stochastically (root mean square of " +
      std::to_string(course_streams) +
      " runs) it goes on to v and then moves between its neighbours there. Right: the error at rest for each b, rounded to "
      "nearest, from the best to the worst of all 128 bf16 values v in [1, 2); the lines are the proved bound c / (1 + c), c = u "
      "/ b, u the unit roundoff. A step of 1/64 in bf16 can cost a fifth of the value, one of 1/1024 four fifths.";
  f.alt =
      "Left: curves of rounding to nearest level off at some per cent, stochastic ones fall further. Right: two bands rise as "
      "the step shrinks, under their bound lines.";
  panel left;
  left.title = "b = 1/32, v = 1.5325";
  left.x = {"tokens T", axis_scale::logarithmic, 1, 1000};
  left.y = {"relative error", axis_scale::logarithmic, 1e-4, 1};
  panel right;
  right.title = "error at rest";
  right.x = {"step b", axis_scale::logarithmic, power_of_two(-smallest_step), 1};
  right.y = {"relative error", axis_scale::logarithmic, 1e-4, 1};
  const std::vector<std::size_t> at = checkpoints(1000);
  const std::vector<double> tokens(at.begin(), at.end());
  for (const format state : short_formats) {
    const std::string name(deltaproof::name_of(state));
    left.curves.push_back(
        {name + ", to nearest", tokens, scalar_error(state, execution::nearest, course_step, course_value, at, 1, 0)});
    std::vector<double> square(at.size(), 0.0);
    for (std::size_t s = 0; s < course_streams; ++s) {
      const std::vector<double> e = scalar_error(state, execution::stochastic, course_step, course_value, at, 1, s);
      for (std::size_t i = 0; i < e.size(); ++i) square[i] += e[i] * e[i] / static_cast<double>(course_streams);
    }
    for (double& e : square) e = std::sqrt(e);
    left.curves.push_back({name + ", stochastic", tokens, square});
    series band{name + ", to nearest", {}, {}, series_style::band, {}};
    series bound{name + ", bound", {}, {}};
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
      if (row->state != state) continue;
      const double b = power_of_two(-row->exponent);
      band.x.push_back(b);
      band.y.push_back(std::max(row->smallest, 1e-4));
      band.y_upper.push_back(std::max(row->largest, 1e-4));
      bound.x.push_back(b);
      bound.y.push_back(bound_of(state, b));
    }
    right.curves.push_back(std::move(band));
    right.curves.push_back(std::move(bound));
  }
  f.panels = {std::move(left), std::move(right)};
  return f;
}

}  // namespace

void add_rest(const run_options& options, const settings&, report& r) {
  const std::size_t steps = smallest_step + 1;
  std::vector<rest_row> rows(short_formats.size() * steps);
  const std::size_t done = for_each_index(rows.size(), options, "dead zone", [&](std::size_t i) {
    rows[i] = examine(short_formats[i / steps], static_cast<int>(i % steps));
  });
  if (done < rows.size()) {
    r.unfinished.emplace_back("Dead zone of rounding to nearest: interrupted.");
    return;
  }
  double worst = 0;
  for (const rest_row& row : rows) worst = std::max(worst, row.of_bound);
  const rest_row& example = rows[6];  // bf16, b = 1/64
  r.findings.push_back({"dead-zone-bound",
                        "A state rounded to nearest does not move where b |v − S| < ulp(S)/2. Started at 0 toward v it stops for "
                        "ever with a relative error of up to c / (1 + c), c = u / b. The smaller the step, the larger the error.",
                        evidence::proved(),
                        {},
                        "For steps computed exactly: within half a unit of the last place the nearest value is S itself; ulp(S) "
                        "≤ 2 u |S|; from 0 the state rises monotonically to at most v."});
  r.findings.push_back(
      {"dead-zone",
       "Of all " + std::to_string(values) +
           " bf16 values v in [1, 2), steps b = 1 … 2^−12 and states in bf16 and fp16, started at 0, " +
           (worst <= 1 ? "none rests farther off than that bound" : "some rest farther off than that bound") +
           " (the nearest to it at " + number(worst, 4) + " of ulp(S)/(2b)); at b = 1/64 a bf16 state rests " +
           number(100 * example.smallest, 3) + " to " + number(100 * example.largest, 3) + " % below v.",
       evidence::exhaustive(static_cast<std::uint64_t>(rows.size()) * values),
       {{"largest_of_bound", worst}, {"bf16_b64_smallest", example.smallest}, {"bf16_b64_largest", example.largest}},
       "Each run followed to its fixed point; the step in fp32."});
  const int frozen_bf16 = frozen_exponent(bf16);
  const int frozen_fp16 = frozen_exponent(fp16);
  r.findings.push_back(
      {"frozen-decay",
       "A decay that rounds away: S ← (1 − b) S leaves every bf16 state as it is for b ≤ 2^−" + std::to_string(frozen_bf16) +
           ", every fp16 state for b ≤ 2^−" + std::to_string(frozen_fp16) + ", where the exact one halves every " +
           number(std::ceil(ln(2) / power_of_two(-frozen_bf16)), 3) + " and " +
           number(std::ceil(ln(2) / power_of_two(-frozen_fp16)), 4) + " tokens.",
       evidence::exhaustive(128 + 1024),
       {{"bf16_exponent", -frozen_bf16}, {"fp16_exponent", -frozen_fp16}},
       "All significands of [1, 2), powers of two for b; other binades scale (normal range). Smaller b only move less."});
  table t;
  t.id = "dead-zone";
  t.title = "Where S ← S + b (v − S), rounded to nearest, comes to rest";
  t.columns = {"state",
               "b",
               {"smallest error", 3},
               {"largest error", 3},
               {"bound c / (1 + c)", 3},
               {"largest of ulp(S)/(2b)", 4},
               "tokens to rest, at most"};
  for (const rest_row& row : rows) {
    const double b = power_of_two(-row.exponent);
    t.rows.push_back({std::string(deltaproof::name_of(row.state)), "2^-" + std::to_string(row.exponent), row.smallest,
                      row.largest, bound_of(row.state, b), row.of_bound, row.steps});
  }
  t.note = "Relative to v, over all 128 bf16 values v in [1, 2), from S = 0.";
  r.figures.push_back(rest_figure(rows));
  r.tables.push_back(std::move(t));
}

}  // namespace deltaproof::detail::horizon
