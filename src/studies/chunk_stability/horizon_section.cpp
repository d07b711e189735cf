// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "studies/chunk_stability/sections.hpp"
#include "studies/shared/functions.hpp"

namespace deltaproof::detail::chunk_stability {
namespace {

using chunks::key_kind;

std::string title_of(const horizon_case& c) {
  const std::string steps = c.steps.low == c.steps.high
                                ? "β = " + number(c.steps.low, 5)
                                : "β in [" + number(c.steps.low, 3) + ", " + number(c.steps.high, 3) + ")";
  return std::string(name_of(c.keys)) + ", " + steps + (c.value_scale > 0 ? ", v ≠ 0" : ", v = 0");
}

const horizon_run& run_of(const horizon_case& c, bool chunkwise, std::string_view label) {
  return *std::find_if(c.runs.begin(), c.runs.end(),
                       [&](const horizon_run& r) { return r.chunkwise == chunkwise && r.label == label; });
}

figure horizon_figure(const settings& size, std::span<const horizon_case> cases) {
  figure f;
  f.id = "many-chunks";
  f.title = "The same tokens through chunk kernels and recurrences, C = 64";
  f.caption =
      "|S| (Frobenius) against tokens; K = " + std::to_string(size.key_dim) + ", " + std::to_string(size.value_dim) +
      " value columns. v = 0: from a random state, |S| may only fall. v ≠ 0: from zero, fresh normal values. The recurrences "
      "(state kept in fp32 or "
      "rounded to bf16 after every token) stay on the fp64 run, and so do chunk kernels that store fp16 or fp32. The chunk "
      "kernel that "
      "stores its inverse in bf16 leaves it exponentially on one repeated key with one β, and visibly on keys of cosine 0.999.";
  f.alt =
      "Eight panels. With the repeated key and one step the bf16 chunk curve rises by orders of magnitude above all others, with "
      "cosine "
      "0.999 and values by a factor of a few; elsewhere all curves coincide.";
  f.columns = 2;
  f.shared_x = true;
  std::vector<const horizon_case*> order;
  for (std::size_t i = 0; i < cases.size() / 2; ++i) {
    order.push_back(&cases[i]);
    order.push_back(&cases[cases.size() / 2 + i]);
  }
  for (const horizon_case* c : order) {
    panel p;
    p.title = title_of(*c);
    p.x = {"tokens", axis_scale::linear, 0, static_cast<double>(size.tokens)};
    p.y = {"|S|", axis_scale::logarithmic, 1, 1e5};
    const auto add = [&](std::string label, const horizon_run& run) {
      series s{std::move(label), {}, {}};
      for (std::size_t i = 0; i < run.norm.size(); ++i) {
        s.x.push_back(static_cast<double>(i * c->chunk));
        s.y.push_back(run.norm[i]);
      }
      p.curves.push_back(std::move(s));
    };
    add("chunk, bf16 stored", run_of(*c, true, "bf16"));
    add("chunk, fp16 stored", run_of(*c, true, "fp16"));
    add("chunk, fp32 stored", run_of(*c, true, "fp32"));
    add("recurrence, fp32 state", run_of(*c, false, "fp32"));
    add("recurrence, bf16 state", run_of(*c, false, "bf16"));
    f.panels.push_back(std::move(p));
  }
  return f;
}

}  // namespace

void add_horizon(const run_options& options, const settings& size, const control_result& control,
                 std::span<const horizon_case> cases, report& r) {
  const double worst = *std::max_element(control.largest_ratio.begin(), control.largest_ratio.end());
  r.findings.push_back(
      {"recurrence-survives",
       std::string(worst < 2 ? "The recurrence survives all of it: " : "The recurrence itself grows: ") + "over " +
           count(size.tokens) + " tokens, all kinds of keys and β from 1 to 2, |S| ends at no more than " +
           number(control.largest_ratio[0], 4) + " times its start with the state in fp32, " +
           number(control.largest_ratio[1], 4) + " in bf16, " + number(control.largest_ratio[2], 4) + " in fp16.",
       evidence::worst_found(3 * control.runs, options.seed),
       {{"fp32", control.largest_ratio[0]},
        {"bf16", control.largest_ratio[1]},
        {"fp16", control.largest_ratio[2]},
        {"tokens", size.tokens}},
       "v = 0, random start, products and sums in fp32, the state rounded after every token. One step of a recurrence cannot "
       "expand by more than its "
       "own rounding, whatever the earlier ones did."});

  table beside;
  beside.id = "recurrence";
  beside.title = "The control: largest |S| / |S₀| of the recurrence after " + count(size.tokens) + " tokens";
  beside.columns = {"keys", {"state fp32", 5}, {"state bf16", 5}, {"state fp16", 5}, "explodes at β"};
  for (std::size_t k = 0; k < chunks::key_kinds.size(); ++k) {
    const auto& ratio = control.by_keys[k];
    const double largest = *std::max_element(ratio.begin(), ratio.end());
    beside.rows.push_back(
        {std::string(name_of(chunks::key_kinds[k])), ratio[0], ratio[1], ratio[2], largest < 2 ? "none" : "some"});
  }
  beside.note =
      "v = 0, β from 1 to 2, the worst of all β and draws; the state is rounded to the format after every token. *none*: no run "
      "doubles |S|.";
  r.tables.push_back(std::move(beside));

  table t;
  t.id = "many-chunks";
  t.title = "|S| after " + count(size.tokens) + " tokens";
  t.columns = {"keys and steps",  {"radius of a bf16 chunk", 4},
               "start",           {"exact (fp64 recurrence)", 4},
               "chunk bf16",      "chunk fp16",
               "chunk fp32",      "recurrence fp32",
               "recurrence bf16", "recurrence fp16"};
  for (const horizon_case& c : cases) {
    t.rows.push_back({title_of(c), c.radius, c.runs[0].norm.front(), run_of(c, false, "fp64").norm.back(),
                      run_of(c, true, "bf16").norm.back(), run_of(c, true, "fp16").norm.back(),
                      run_of(c, true, "fp32").norm.back(), run_of(c, false, "fp32").norm.back(),
                      run_of(c, false, "bf16").norm.back(), run_of(c, false, "fp16").norm.back()});
  }
  t.note = "C = 64. The radius is that of the first chunk; a repeated key makes every chunk the same. nan: the state left the range of fp32.";
  r.tables.push_back(std::move(t));

  const auto first = std::find_if(cases.begin(), cases.end(), [](const horizon_case& c) {
    return c.keys == key_kind::repeated && c.steps.low == c.steps.high;
  });
  if (first != cases.end()) {
    const horizon_run& run = run_of(*first, true, "bf16");
    const auto overflow = std::find_if(run.norm.begin(), run.norm.end(), [](double x) { return !std::isfinite(x); });
    const auto chunks_run = static_cast<std::size_t>(overflow - run.norm.begin());
    const std::size_t half = chunks_run / 2, last = chunks_run - 1;
    const double rate = (shared::ln(run.norm[last]) - shared::ln(run.norm[half])) / static_cast<double>(last - half);
    const double predicted = shared::ln(first->radius);
    const double ratio = run.norm[last] / run_of(*first, false, "fp64").norm[last];
    r.findings.push_back({"kernel-follows-the-radius",
                          "Executed at its first exploding β (" + number(first->steps.low, 7) +
                              ", C = 64) the bf16 chunk kernel grows by e^" + number(rate, 4) +
                              " a chunk in the second half of the run; its transition alone predicts e^" + number(predicted, 4) +
                              ". After " + count(last * first->chunk) + " tokens |S| is " + number(ratio, 3) + " times the exact one" +
                              (overflow != run.norm.end() ? ", and leaves the range of fp32 in the next chunk." : "."),
                          evidence::measured(),
                          {{"rate", rate}, {"predicted", predicted}, {"ratio", ratio}, {"beta", first->steps.low}},
                          "Seed " + std::to_string(options.seed) +
                              ", v = 0. The kernel also rounds h and v_new; the transition knows only the stored w."});
  }
  const auto cluster = std::find_if(cases.begin(), cases.end(),
                                    [](const horizon_case& c) { return c.keys == key_kind::cosine_999 && c.value_scale > 0; });
  if (cluster != cases.end()) {
    const double exact = run_of(*cluster, false, "fp64").norm.back();
    const double chunk = run_of(*cluster, true, "bf16").norm.back() / exact;
    const double state = run_of(*cluster, false, "bf16").norm.back() / exact;
    r.findings.push_back({"with-values",
                          "With values (keys of cosine 0.999, β = 2, fresh v) the bf16 chunk kernel ends at " + number(chunk, 3) +
                              " times the exact |S|, the recurrence with a bf16 state at " + number(state, 4) + " times.",
                          evidence::measured(),
                          {{"chunk_bf16", chunk}, {"recurrence_bf16", state}},
                          "Seed " + std::to_string(options.seed) + "; the exact run is the fp64 recurrence."});
  }
  r.figures.push_back(horizon_figure(size, cases));
}

}  // namespace deltaproof::detail::chunk_stability
