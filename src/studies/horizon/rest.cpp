// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Two looks at one key: a rounded state that stops learning, and the delta rule beside the logistic map.

#include "studies/horizon/formats.hpp"
#include "studies/shared/maps.hpp"

namespace deltaproof::detail::horizon {
namespace {

using shared::logistic_exponent;
using shared::one_step;

constexpr int value_count = 128;  // the bf16 values of [1, 2): v = 1 + i/128, values of fp16 as well
constexpr int smallest_step = 12;
constexpr double course_step = 0x1p-5;
constexpr double course_value = 1.532470703125;  // between values of bf16 and of fp16
constexpr std::size_t course_streams = 64;
constexpr double right_end = 3;
constexpr std::size_t skipped = 2000;
constexpr std::size_t first_steps = 20;

double ulp(double x, format f) { return power_of_two(std::max(std::ilogb(x), f.emin) - f.precision + 1); }

/// Errors at rest over all v, the largest of |v - S| / (ulp(S) / (2 b)), and the bound: |v - S| <= c S, c = u / b, is
/// (v - S) / v <= c / (1 + c).
frame_row examine(format state, int exponent) {
  const double b = power_of_two(-exponent);
  double smallest = HUGE_VAL, largest = 0, of_bound = 0;
  std::size_t steps = 0;
  for (int i = 0; i < value_count; ++i) {
    const double v = 1 + static_cast<double>(i) / value_count;
    const resting_point p = rest(state, b, v);
    smallest = std::min(smallest, (v - p.state) / v);
    largest = std::max(largest, (v - p.state) / v);
    of_bound = std::max(of_bound, (v - p.state) / (ulp(p.state, state) / (2 * b)));
    steps = std::max(steps, p.steps);
  }
  const double bound = unit_roundoff(state) / (b + unit_roundoff(state));
  return {b, smallest, largest, bound, of_bound, steps, std::max(smallest, 1e-4), std::max(largest, 1e-4)};
}

std::vector<double> up_to_the_end(int steps) {
  std::vector<double> xs;
  for (int i = 1; i <= steps; ++i) xs.push_back(right_end * i / steps);
  return xs;
}

/// The values of every orbit between two ends, over a sweep of x; `rest`: whether the orbit has one value only.
frame orbits(const run_options& options, one_step map, int sweep, std::size_t skip, std::size_t keep, double low, double high) {
  return grid(
      options, "orbits", {"rest", "u"},
      [=](double x) {
        const std::vector<double> values = shared::orbit(map, x, skip, keep);
        std::vector<frame_row> rows;
        for (const double u : values) {
          if (low <= u && u <= high) rows.push_back({values.size() == 1, u});
        }
        return rows;
      },
      grid_axis<double>{"x", up_to_the_end(sweep)});
}

/// Where an orbit comes to rest, and elsewhere the values that it keeps visiting.
void add_limits(const run_options& options, const std::string& name, one_step map, double low, double high, results& r) {
  const frame all = orbits(options, map, 300, skipped, 4, low, high);
  r.table(name + "-rest", all.where("rest", true));
  r.table(name + "-moving", all.where("rest", false));
}

}  // namespace

void add_rest(const run_options& options, results& r) {
  grid_axis<int> exponents{"exponent", std::vector<int>(smallest_step + 1)};
  std::iota(exponents.quick.begin(), exponents.quick.end(), 0);
  const grid_axis<format> states{"state", {bf16, fp16}};
  frame rows = grid(options, "dead zone", {"b", "smallest", "largest", "bound", "of_bound", "steps", "low", "high"}, &examine,
                    states, exponents);
  for (const char* state : {"bf16", "fp16"}) r.table(std::string("rest-") + state, rows.where("state", state));
  const auto at_rest = rows.finder({"state", "exponent"});
  r.values("dead-zone", evidence::exhaustive(rows.size() * static_cast<std::size_t>(value_count)),
           {{"largest_of_bound", rows.over("of_bound", greatest)},
            {"bf16_b64_smallest", at_rest("bf16", 6, "smallest")},
            {"bf16_b64_largest", at_rest("bf16", 6, "largest")}});
  const int frozen_bf16 = frozen_exponent(bf16), frozen_fp16 = frozen_exponent(fp16);
  r.values("frozen-decay", evidence::exhaustive(128 + 1024), {{"bf16_exponent", -frozen_bf16}, {"fp16_exponent", -frozen_fp16}});
  const auto halves = [](int exponent) { return std::ceil(shared::ln(2) / power_of_two(-exponent)); };
  r.values(
      "frozen",
      {{"bf16", frozen_bf16}, {"fp16", frozen_fp16}, {"bf16_halves", halves(frozen_bf16)}, {"fp16_halves", halves(frozen_fp16)}});
  const std::vector<std::size_t> at = shared::checkpoints(1000);
  frame courses = grid(
      options, "courses", {"tokens", "error"},
      [&](const format& state, execution how) {
        std::vector<double> square(at.size(), 0.0);
        const std::size_t runs = how == execution::nearest ? 1 : course_streams;
        for (std::size_t s = 0; s < runs; ++s) {
          const std::vector<double> e = scalar_error(state, how, course_step, course_value, at, 1, s);
          for (std::size_t i = 0; i < e.size(); ++i) square[i] += e[i] * e[i] / static_cast<double>(runs);
        }
        std::vector<frame_row> course;
        for (std::size_t i = 0; i < at.size(); ++i) course.push_back({at[i], std::sqrt(square[i])});
        return course;
      },
      states, grid_axis<execution>{"rounding", {execution::nearest, execution::stochastic}});
  r.values("rest", {{"values", value_count},
                    {"exponent", smallest_step},
                    {"smallest_b", power_of_two(-smallest_step)},
                    {"course_one_in", 1 / course_step},
                    {"course_value", course_value},
                    {"course_streams", course_streams},
                    {"small_one_in", 64},
                    {"small_cost", at_rest("bf16", 6, "largest")},
                    {"smaller_one_in", 1024},
                    {"smaller_cost", at_rest("bf16", 10, "largest")}});
  r.table("dead-zone", std::move(rows));
  r.table("courses", std::move(courses));
}

void add_maps(const run_options& options, results& r) {
  r.table("visited", orbits(options, one_step::logistic_euler, 600, skipped, 60, 0, 1.4));
  add_limits(options, "exact-map", one_step::logistic_exact, 0, 1.4, r);
  for (const auto& [name, map] :
       {std::pair{"euler-rule", one_step::delta_euler}, std::pair{"exact-rule", one_step::delta_exact}}) {
    r.table(std::string(name) + "-first", orbits(options, map, 600, 0, first_steps, -0.5, 2.5));
    add_limits(options, name, map, -0.5, 2.5, r);
  }
  const auto rates = [](std::size_t steps, double x) -> frame_row {
    return {logistic_exponent(one_step::logistic_euler, x, skipped, steps), shared::ln(std::fabs(1 - x)),
            logistic_exponent(one_step::logistic_exact, x, skipped, 100), -x};
  };
  const std::vector<std::string> columns{"map_euler", "rule_euler", "map_exact", "rule_exact"};
  const grid_axis<double> sweep{"x", up_to_the_end(300)};
  r.table("rates", grid(options, "growth of perturbations", columns, [&](double x) { return rates(4000, x); }, sweep));
  frame table = grid(
      options, "logistic maps", columns, [&](double x) { return rates(20000, x); },
      grid_axis<double>{"x", {0.5, 1.5, 1.9, 2.2, 2.5, 2.55, 2.6, 2.8, 2.84, 3.0}});
  table.derive("points", [](const auto& row) {
    const std::size_t period = shared::attractor_period(row.number("x"));
    return period == 0 ? cell() : cell(period);
  });
  constexpr int tokens = 100;
  table.derive("error_euler", [](const auto& row) {
    double error = 1;
    for (int i = 0; i < tokens; ++i) error *= std::fabs(1 - row.number("x"));
    return error;
  });
  table.derive("error_exact", [](const auto& row) { return shared::decay_of(tokens * row.number("x")); });
  frame off = table;
  off.derive("euler", [](const auto& row) {
    return row.number("x") < 2 ? cell(row.number("map_euler") - row.number("rule_euler")) : cell();
  });
  off.derive("exact", [](const auto& row) { return row.number("map_exact") - row.number("rule_exact"); });
  r.values("logistic-parts", evidence::measured(),
           {{"largest_difference_below_2", std::max(off.over("euler", worst), off.over("exact", worst))},
            {"logistic_exponent_at_3", logistic_exponent(one_step::logistic_euler, right_end, skipped, 100000)}});
  r.values("maps", {{"end", right_end},
                    {"skipped", skipped},
                    {"first", first_steps},
                    {"tokens", tokens},
                    {"ln2", shared::ln(2)},
                    {"rate", shared::ln(std::fabs(1 - right_end))}});
  r.table("logistic", std::move(table));
}

}  // namespace deltaproof::detail::horizon
