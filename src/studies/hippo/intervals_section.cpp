// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "studies/hippo/intervals.hpp"
#include "studies/hippo/sections.hpp"

namespace deltaproof::detail::hippo {
namespace {

/// eta = 1, a sigmoid's range, and the range of "negative eigenvalues".
constexpr std::array<std::pair<double, double>, 5> ranges{{{1, 1}, {0.5, 0.5}, {0.9, 0.9}, {0, 1}, {0, 2}}};

std::string range_text(double low, double high) {
  return low == high ? "η = " + number(low, 3) : "η uniform in (" + number(low, 3) + ", " + number(high, 3) + ")";
}

figure timeline_figure() {
  figure f;
  f.id = "intervals";
  f.title = "Where [t − η, t] lies on the time axis";
  f.columns = 2;
  f.shared_x = true;
  f.caption =
      "Five tokens; a bar is the interval on which token t's equation is said to hold. For η = 1 the bars tile the axis. For η < "
      "1 there are gaps about which nothing is said, for η > 1 "
      "overlaps in which two equations hold at once. Laid end to end (bottom) the bars tile the axis again: that is the clock "
      "that the update formula solves.";
  f.alt = "Four rows of bars: touching, with gaps, overlapping, and touching with different lengths.";
  const std::array<double, 5> short_ones{0.6, 0.35, 0.8, 0.5, 0.7};
  const std::array<double, 5> long_ones{1.4, 1.7, 1.2, 1.9, 1.5};
  const auto row = [&](const std::string& title, const auto& start, const auto& end) {
    panel p;
    p.title = title;
    p.x = {"time", axis_scale::linear, -0.5, 5.2};
    p.y = {"token", axis_scale::linear, 0.4, 5.6, {1, 2, 3, 4, 5}};
    for (int t = 1; t <= 5; ++t) {
      const double at = t;
      p.curves.push_back(
          {"a token's equation holds", {start(t), end(t)}, {at - 0.25, at - 0.25}, series_style::band, {at + 0.25, at + 0.25}});
    }
    f.panels.push_back(std::move(p));
  };
  const auto index = [](int t) { return static_cast<std::size_t>(t - 1); };
  row("η = 1", [](int t) { return t - 1.0; }, [](int t) { return static_cast<double>(t); });
  row("η < 1", [&](int t) { return t - short_ones[index(t)]; }, [](int t) { return static_cast<double>(t); });
  row("η > 1", [&](int t) { return t - long_ones[index(t)]; }, [](int t) { return static_cast<double>(t); });
  const auto clock = [&](int t) {
    double sum = 0;
    for (int i = 0; i < t; ++i) sum += short_ones[static_cast<std::size_t>(i)];
    return sum;
  };
  row("η < 1, end to end", [&](int t) { return clock(t - 1); }, clock);
  return f;
}

}  // namespace

void add_intervals(const run_options& options, const settings& size, report& r) {
  std::vector<gap> all(ranges.size() * readings.size());
  const std::size_t done = for_each_index(all.size(), options, "intervals", [&](std::size_t i) {
    const auto& [low, high] = ranges[i / readings.size()];
    all[i] = measure(readings[i % readings.size()], low, high, size.key_dim, size.tokens, size.streams, options.seed);
  });
  if (done < all.size()) {
    r.unfinished.emplace_back("Time intervals: interrupted.");
    return;
  }
  const auto at = [&](std::size_t range, reading how) -> const gap& {
    return *std::find_if(all.begin() + static_cast<std::ptrdiff_t>(range * readings.size()), all.end(),
                         [&](const gap& g) { return g.how == how; });
  };
  double at_one = 0;
  for (const reading how : readings) at_one = std::max(at_one, at(0, how).largest);
  const gap& running = at(3, reading::running);
  const gap& lingering = at(3, reading::lingering);
  const bool only_at_one = at_one < 1e-12 && running.mean > 0.05 && lingering.mean > 0.05;
  r.findings.push_back(
      {"intervals-assume-one",
       std::string("The intervals [t − η_t, t] tile the time axis only if every η_t is 1. ") +
           (only_at_one ? "There all readings give the same state; " : "All readings give nearly the same state; ") +
           "with η uniform in (0, 1) they part: taken literally, with "
           "token t's equation on all of (t − 1, t], η drops out of the result and the state differs by " +
           number(100 * running.mean, 3) + " %; with the last token's equation in the gap by " + number(100 * lingering.mean, 3) +
           " %.",
       evidence::sampled(
           size.streams, options.seed,
           "standard deviations " + number(100 * running.deviation, 2) + " and " + number(100 * lingering.deviation, 2) + " %"),
       {{"largest_at_one", at_one}, {"running", running.mean}, {"lingering", lingering.mean}, {"only_at_one", only_at_one}},
       "Exact flow in fp64, unit keys, d = " + std::to_string(size.key_dim) + ", " + std::to_string(size.tokens) +
           " tokens; relative distance of the final state from that of the update formula."});
  r.findings.push_back({"clock-reading",
                        "The update formula is the exact solution on another axis: a clock that advances by η_t at token t, "
                        "intervals laid end to end. It holds for every η ≥ 0. Waiting in the gap gives the same "
                        "for η ≤ 1; for η > 1, as with negative eigenvalues, " +
                            number(100 * at(4, reading::clock).overlapping, 3) +
                            " % of the intervals (η uniform in (0, 2)) overlap the one before and no assignment of one equation "
                            "to each moment exists.",
                        evidence::sampled(size.streams * size.tokens, options.seed,
                                          "standard deviation of the share below " +
                                              number(50 / std::sqrt(static_cast<double>(size.streams * size.tokens)), 2) + " %"),
                        {{"overlapping_share", at(4, reading::clock).overlapping}},
                        "Each step of the formula is the flow of a constant equation for a time η_t "
                        "(ode.exact_flow.exact_flow_solves); that η is a length, not a place, is what it needs."});
  table t;
  t.id = "readings";
  t.title = "Distance of the final state from that of the update formula, by reading of [t − η, t]";
  t.columns = {"η", "reading", {"mean, %", 3}, {"standard deviation, %", 2}, {"intervals that overlap, %", 3}};
  for (const gap& g : all) {
    const std::string text = range_text(g.low, g.high);
    const bool impossible = g.how == reading::waiting && g.high > 1;
    t.rows.push_back({text, std::string(name_of(g.how)), impossible ? cell("impossible") : cell(100 * g.mean),
                      impossible ? cell("") : cell(100 * g.deviation), 100 * g.overlapping});
  }
  t.note = "n = " + std::to_string(size.streams) + " sequences, seed " + std::to_string(options.seed) +
           ". For η > 1, lingering lets the new equation take over at t − 1 and is then running.";
  r.tables.push_back(std::move(t));
  r.figures.push_back(timeline_figure());
}

}  // namespace deltaproof::detail::hippo
