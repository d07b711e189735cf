// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Which heads run how often, and how much of them.
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "referee/parts.hpp"

namespace deltaproof::referee_detail {

std::string slice_text(std::span<const std::pair<std::size_t, std::size_t>> often, std::size_t heads, const std::string& head,
                       std::size_t with_few) {
  if (often.size() == heads) return "every head";
  std::string text = "run more than once: ";
  for (const auto& [sequence, number] : often) {
    text += (text.ends_with(": ") ? "" : ", ") + std::string("sequence ") + std::to_string(sequence) + " " + head + " " +
            std::to_string(number);
  }
  const std::size_t others = heads - often.size();
  text += (others == 1 ? "; the other " + head : "; each of the other " + std::to_string(others) + " " + head + "s") +
          " was run once for each variant (variants that differ only in the order of sums share one run), ";
  const std::string assumed =
      "its errors are assumed to scatter no more than those of the noisiest " + head + " that was run more often";
  if (with_few == 0) return text + "and " + assumed;
  return text + (with_few < others ? std::to_string(with_few) + " of them also " : "and ") +
         "a few times for the first variant on perturbed inputs, within the first eighth of its tokens; " + assumed +
         ", times the factor by which these few runs scatter more";
}

std::string slice_text(const trial& t) {
  std::vector<std::pair<std::size_t, std::size_t>> often;
  for (const std::size_t i : t.slice) often.emplace_back(t.lanes[i].sequence, t.lanes[i].head);
  std::size_t with_few = 0;
  for (std::size_t i = 0; i < t.lanes.size(); ++i) with_few += !t.runs_often(i) && t.runs_of(i, 1) > 0 ? 1 : 0;
  return slice_text(often, t.lanes.size(), "head", with_few);
}

namespace {

/// How often each kind of the heads chosen runs. A state has no neighbours to fill its wide pool with; it has one where the
/// runs for it cost little. `cost`: of a run of each kind of these heads.
runs_of_kind runs_of(const trial& t, std::size_t places, std::size_t states, double cost) {
  const std::size_t kinds = t.kinds.size();
  const double cheap = t.options.judge.seconds * cheap_share;
  runs_of_kind runs{1, std::max(fewest_runs, runs_needed(std::max<std::size_t>(1, places), kinds))};
  while (runs.given < 4 && cost * static_cast<double>(runs.given + 1) <= cheap) ++runs.given;
  while (states > 0 && runs.moved < runs_needed(states, kinds) && cost * static_cast<double>(runs.moved + 1) <= cheap)
    ++runs.moved;
  runs.whole = runs.moved;
  return runs;
}

/// Lets runs on moved inputs stop early where that saves time. As few stay whole as a skewness and `fewest_degrees` of a place of
/// its own need, for pools have neighbours as well, or as cost little. There is one run more at least, so that a state has as
/// many degrees as before. `cost`: of a run of each kind of the heads chosen.
void stop_early(trial& t, double cost) {
  constexpr std::size_t fewest_degrees = 6;
  const std::size_t kinds = t.kinds.size(), before = t.runs.moved;
  runs_of_kind runs = t.runs;
  runs.whole = std::max(fewest_runs, 1 + (fewest_degrees + kinds - 1) / kinds);
  const double cheap = t.options.judge.seconds * cheap_share;
  while (runs.whole < before && cost * static_cast<double>(runs.whole + 1) <= cheap) ++runs.whole;
  for (runs.moved = before + 1; runs.moved > runs.whole; ++runs.moved) {
    std::size_t degrees = 0, tokens = 0, tokens_before = 0;
    for (const std::size_t i : t.slice) {
      const lane& at = t.lanes[i];
      const std::size_t end = early_end(at, t.unit), whole = end > 0 ? runs.whole : runs.moved;
      tokens += whole * at.judged + (runs.moved - whole) * end;
      tokens_before += before * at.judged;
      for (const bucket& b : buckets(at.judged, t.unit)) degrees += ((b.last <= end ? runs.moved : whole) - 1) * kinds;
    }
    if (tokens >= tokens_before) return;
    if (degrees < wide_pool_degrees) continue;
    t.runs = runs;
    return;
  }
}

}  // namespace

void plan_runs(trial& t, bool may_stop_early) {
  std::vector<std::size_t> order(t.lanes.size());
  std::vector<double> cost;  // of a run of each kind
  double once = 0;
  for (std::size_t i = 0; i < t.lanes.size(); ++i) {
    order[i] = i;
    cost.push_back(seconds_of_run(t.p, t.variants.front(), t.lanes[i].range.tokens) * static_cast<double>(t.kinds.size()));
    once += cost.back();
    if (may_stop_early && t.lanes[i].range.tokens > 0)
      once += cost.back() * static_cast<double>(few_runs(t.lanes[i], t.unit) * early_end(t.lanes[i], t.unit)) /
              static_cast<double>(t.lanes[i].range.tokens * t.kinds.size());
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::pair(t.lanes[b].judged, a) < std::pair(t.lanes[a].judged, b); });
  const double allowed = t.options.judge.seconds * (t.options.judge.power ? 0.2 : 0.35);
  double often = 0;
  std::size_t places = 0, states = 0;
  t.slice.clear();
  for (const std::size_t i : order) {
    places += buckets(t.lanes[i].judged, t.unit).size();
    states += t.lanes[i].state ? 1 : 0;
    const runs_of_kind runs = runs_of(t, places, states, often + cost[i]);
    if (!t.slice.empty() && once + (often + cost[i]) * static_cast<double>(runs.moved) > allowed) break;
    often += cost[i];
    t.slice.push_back(i);
    t.runs = runs;
  }
  std::sort(t.slice.begin(), t.slice.end());
  if (!may_stop_early) return;
  stop_early(t, often);
  t.runs.few = true;
}

}  // namespace deltaproof::referee_detail
