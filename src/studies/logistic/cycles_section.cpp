// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <string>
#include <vector>

#include "studies/logistic/orbits.hpp"
#include "studies/logistic/sections.hpp"

namespace deltaproof::detail::logistic {
namespace {

constexpr double onset = 3.5699456718709449;  // of chaos, rounded; only which grid points lie beyond it matters

struct summary {
  std::uint64_t cases = 0;
  const cycle_census* longest_cycle = nullptr;
  const cycle_census* longest_transient = nullptr;
  std::size_t longest_chaotic_transient = 0;  ///< r beyond the onset
};

summary summarise(const std::vector<cycle_census>& all) {
  summary s;
  for (const cycle_census& c : all) {
    s.cases += c.starts;
    if (s.longest_cycle == nullptr || c.longest_cycle > s.longest_cycle->longest_cycle) s.longest_cycle = &c;
    if (s.longest_transient == nullptr || c.longest_transient > s.longest_transient->longest_transient) s.longest_transient = &c;
    if (c.r > onset) s.longest_chaotic_transient = std::max(s.longest_chaotic_transient, c.longest_transient);
  }
  return s;
}

}  // namespace

void add_cycles(const run_options& options, const settings&, report& r) {
  const std::vector<double> grid = bf16_parameters();
  std::vector<cycle_census> narrow(grid.size());
  std::vector<cycle_census> wide(grid.size());
  const std::size_t done = for_each_index(2 * grid.size(), options, "cycles", [&](std::size_t i) {
    (i % 2 == 0 ? narrow : wide)[i / 2] = census(i % 2 == 0 ? "bf16" : "fp16", grid[i / 2]);
  });
  if (done < 2 * grid.size()) {
    r.unfinished.emplace_back("Cycles in 16-bit formats: interrupted.");
    return;
  }
  const summary b = summarise(narrow);
  const summary h = summarise(wide);
  const cycle_census& b4 = narrow.back();
  const cycle_census& h4 = wide.back();
  r.findings.push_back({"finite-cycles",
                        "In bf16 no orbit is chaotic: of all " + count(b.cases) +
                            " pairs of a start in [0, 1] and an r in [1, 4] every one ends in a cycle, none longer than " +
                            std::to_string(b.longest_cycle->longest_cycle) + " (r = " + number(b.longest_cycle->r, 8) +
                            "). In fp16 the longest is " + std::to_string(h.longest_cycle->longest_cycle) +
                            ". Beyond r∞ no transient exceeds " + std::to_string(b.longest_chaotic_transient) +
                            " steps in bf16 and " + std::to_string(h.longest_chaotic_transient) + " in fp16.",
                        evidence::exhaustive(b.cases + h.cases),
                        {{"bf16_longest_cycle", b.longest_cycle->longest_cycle},
                         {"bf16_longest_cycle_at", b.longest_cycle->r},
                         {"fp16_longest_cycle", h.longest_cycle->longest_cycle},
                         {"bf16_longest_chaotic_transient", b.longest_chaotic_transient},
                         {"fp16_longest_chaotic_transient", h.longest_chaotic_transient},
                         {"cases", b.cases}},
                        "The map r (x (1 − x)) on all numbers of the format in [0, 1], all bf16 numbers r in [1, 4]; the graph "
                        "of each r followed to its cycles."});
  r.findings.push_back({"finite-at-four",
                        "At r = 4, where almost every true orbit fills [0, 1], " +
                            number(100 * static_cast<double>(b4.ends_at_zero) / static_cast<double>(b4.starts), 4) +
                            " % of the bf16 starts and " +
                            number(100 * static_cast<double>(h4.ends_at_zero) / static_cast<double>(h4.starts), 4) +
                            " % of the fp16 starts end at 0 for ever; the most visited cycle has length " +
                            std::to_string(b4.largest_basin_cycle) + " and " + std::to_string(h4.largest_basin_cycle) + ".",
                        evidence::exhaustive(b4.starts + h4.starts),
                        {{"bf16_share_at_zero", static_cast<double>(b4.ends_at_zero) / static_cast<double>(b4.starts)},
                         {"fp16_share_at_zero", static_cast<double>(h4.ends_at_zero) / static_cast<double>(h4.starts)},
                         {"bf16_cycles", b4.cycles},
                         {"fp16_cycles", h4.cycles}},
                        "x that rounds to 1, or 1/2 exactly, goes to 1 and then to 0."});
  table t;
  t.id = "cycles";
  t.title = "All starts of bf16 and fp16 in [0, 1]: what they end in";
  t.columns = {"r",
               "format",
               "cycles",
               "longest cycle",
               "longest transient",
               {"mean transient", 3},
               {"share at 0", 3},
               "cycle of the largest basin",
               {"its share", 3}};
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const double at = grid[i];
    if (!(at == 1 || at == 2 || at == 3 || at == 3.25 || at == 3.5 || at == 3.640625 || at == 3.75 || at == 3.828125 ||
          at == 3.875 || at == 4))
      continue;
    for (const auto& [name, c] : {std::pair{"bf16", &narrow[i]}, std::pair{"fp16", &wide[i]}}) {
      t.rows.push_back({at, name, c->cycles, c->longest_cycle, c->longest_transient, c->mean_transient,
                        static_cast<double>(c->ends_at_zero) / static_cast<double>(c->starts), c->largest_basin_cycle,
                        c->largest_basin});
    }
  }
  t.note =
      "At r = 1 the true fixed point is 0; in a format thousands of small x stay where they are, because x (1 − x) rounds to x.";
  r.tables.push_back(std::move(t));

  figure f;
  f.id = "cycles";
  f.title = "What is left of chaos in 16 bits";
  f.columns = 2;
  f.caption =
      "Top: every number on every cycle of the map in bf16 and fp16, for each bf16 r in [2.8, 4]: a few dozen points where the "
      "true map fills bands. Bottom: the longest "
      "cycle and the longest transient over all starts. Most of the longest transients is the climb from the smallest numbers of "
      "the format at a factor r a step; "
      "then every orbit is on a short cycle within some tens of steps.";
  f.alt =
      "Top: two sparse versions of the bifurcation diagram. Bottom: two curves against r, both below some hundred in the chaotic "
      "range.";
  for (const bool is_bf16 : {true, false}) {
    panel p;
    p.title = is_bf16 ? "bf16: all cycles" : "fp16: all cycles";
    p.x = {"r", axis_scale::linear, 2.8, 4};
    p.y = {"x", axis_scale::linear, 0, 1};
    series s{"", {}, {}, series_style::cloud};
    for (const cycle_census& c : is_bf16 ? narrow : wide) {
      if (c.r < 2.8) continue;
      for (const double x : c.on_cycles) {
        s.x.push_back(c.r);
        s.y.push_back(x);
      }
    }
    p.curves = {std::move(s)};
    f.panels.push_back(std::move(p));
  }
  for (const bool is_bf16 : {true, false}) {
    panel p;
    p.title = is_bf16 ? "bf16: lengths" : "fp16: lengths";
    p.x = {"r", axis_scale::linear, 2.8, 4};
    p.y = {"steps", axis_scale::logarithmic, 0.8, 2000};
    series cycle{"longest cycle", {}, {}, series_style::steps};
    series transient{"longest transient", {}, {}, series_style::steps};
    for (const cycle_census& c : is_bf16 ? narrow : wide) {
      if (c.r < 2.8) continue;
      cycle.x.push_back(c.r);
      cycle.y.push_back(static_cast<double>(c.longest_cycle));
      transient.x.push_back(c.r);
      transient.y.push_back(static_cast<double>(c.longest_transient));
    }
    p.curves = {std::move(cycle), std::move(transient)};
    f.panels.push_back(std::move(p));
  }
  r.figures.push_back(std::move(f));
}

}  // namespace deltaproof::detail::logistic
