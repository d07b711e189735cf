// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/logistic/maps.hpp"
#include "studies/logistic/orbits.hpp"

namespace deltaproof {
namespace {

using namespace detail::logistic;

constexpr double onset = 3.5699456718709449;  // of chaos (Feigenbaum 1978); only which grid points lie beyond it matters
constexpr double shown_from = 2.8;            // r in the figure
constexpr double shown_to = 4;
constexpr std::size_t settling = 2000;  // steps before an orbit is looked at

void add_cycles(const run_options& options, results& r) {
  const grid_axis<double> parameters{"r", bf16_parameters()};
  const grid_axis<format> formats{"format", {bf16, fp16}};
  frame all = grid(
      options, "cycles", {"starts", "cycles", "longest_cycle", "longest_transient"},
      [](double at, const format& f) -> frame_row {
        const cycle_census c = census(name_of(f), at);
        return {c.starts, c.cycles, c.longest_cycle, c.longest_transient};
      },
      parameters, formats);
  std::map<std::string, cell> longest;
  for (const std::string name : {"bf16", "fp16"}) {
    const frame one = all.where("format", name);
    const double length = one.over("longest_cycle", greatest);
    longest[name + "_longest_cycle"] = static_cast<std::uint64_t>(length);
    if (name == "bf16")
      longest["bf16_longest_cycle_at"] = one.where("longest_cycle", longest.at("bf16_longest_cycle")).at(0, "r");
    longest[name + "_longest_chaotic_transient"] = static_cast<std::uint64_t>(
        one.where([](const auto& row) { return row.number("r") > onset; }).over("longest_transient", greatest));
  }
  const auto cases = [](const frame& f) { return static_cast<std::uint64_t>(f.over("starts", total)); };
  longest["cases"] = cases(all.where("format", "bf16"));
  r.values("finite-cycles", evidence::exhaustive(cases(all)), longest);
  r.table("cycles", std::move(all));
}

void add_flow(const run_options& options, results& r) {
  const frame& all = r.table("exact-map", survey_flow(options));
  const auto count = [&](const char* column) { return static_cast<std::uint64_t>(all.over(column, total)); };
  const auto at = all.finder({"format"});
  r.values("exact-map-safe", evidence::measured(),
           {{"cases", count("cases")},
            {"safe_not_finite", count("second_not_finite")},
            {"safe_worst_in_u", all.over("second_worst", worst)},
            {"fp16_naive_fails_from", at("fp16", "from")},
            {"fp32_naive_fails_from", at("fp32", "from")},
            {"fp64_naive_fails_from", at("fp64", "from")},
            {"fp32_naive_fails_from_one", at("fp32", "from_one")},
            {"out_of_order", count("out_of_order")}});
  r.values("flow", {{"x", large_x}});
}

/// The exponents of both maps and of the delta rule on one key at the same x.
void add_parting(const run_options& options, results& r) {
  constexpr double right_end = 3;
  frame table = grid(
      options, "logistic maps", {"points", "map_euler", "rule_euler", "map_exact", "rule_exact"},
      [](double x) -> frame_row {
        const std::size_t period = attractor_period(x);
        return {period == 0 ? cell() : cell(period), logistic_exponent(one_step::logistic_euler, x, settling, 20000),
                shared::ln(std::fabs(1 - x)), logistic_exponent(one_step::logistic_exact, x, settling, 100), -x};
      },
      grid_axis<double>{"x", {0.5, 1.5, 1.9, 2.2, 2.5, 2.55, 2.6, 2.8, 2.84, right_end}});
  frame off = table;
  off.derive("euler", [](const auto& row) {
    return row.number("x") < 2 ? cell(row.number("map_euler") - row.number("rule_euler")) : cell();
  });
  off.derive("exact", [](const auto& row) { return row.number("map_exact") - row.number("rule_exact"); });
  r.values("logistic-parts", evidence::measured(),
           {{"largest_difference_below_2", std::max(off.over("euler", worst), off.over("exact", worst))},
            {"logistic_exponent_at_3", logistic_exponent(one_step::logistic_euler, right_end, settling, 100000)}});
  r.values("maps", {{"end", right_end}, {"rate", shared::ln(std::fabs(1 - right_end))}});
  r.table("logistic", std::move(table));
}

results run(const run_options& options) {
  results r =
      in_parts(options, {{"cycles in short formats", &add_cycles}, {"exact map", &add_flow}, {"where it ends", &add_parting}});
  r.values("chaos", {{"r", shown_to}, {"x", shown_to - 1}, {"ln2", shared::ln(2)}});
  r.values("shown-range", {{"from", shown_from}, {"to", shown_to}, {"settling", settling}});
  return r;
}

}  // namespace

extern const study logistic_study{"logistic", &run};

}  // namespace deltaproof
