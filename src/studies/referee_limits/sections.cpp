// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "deltaproof/kernel/faults.hpp"
#include "studies/referee_limits/limits.hpp"
#include "studies/shared/text.hpp"

namespace deltaproof::detail::referee_limits {
namespace {

std::size_t count_if(const limits& s, const auto& wanted) {
  return static_cast<std::size_t>(std::count_if(s.rows.begin(), s.rows.end(), wanted));
}
bool refuted(const limit& x) { return x.scaled() && x.check.has_value(); }
bool visible(const limit& x) { return x.visible(); }
bool missed(const limit& x) { return x.visible() && !x.check; }

using shared::of;
using shared::quantile;

/// check's least s over the filter's where both see the fault.
std::vector<double> ratios(const limits& s) {
  std::vector<double> out;
  for (const limit& x : s.rows) {
    if (refuted(x) && x.filter) out.push_back(*x.check / *x.filter);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Faults that the filter sees in some case, and of these those that check refutes in some case.
struct fault_count {
  std::size_t visible = 0, refuted = 0;
  std::string not_refuted;
};
fault_count count_faults(const limits& s) {
  fault_count out;
  for (std::size_t f = 0; f < faults().size(); ++f) {
    bool seen = false, caught = false;
    for (const limit& x : s.rows) {
      if (x.fault != f) continue;
      seen = seen || visible(x);
      caught = caught || refuted(x);
    }
    out.visible += seen ? 1 : 0;
    out.refuted += seen && caught ? 1 : 0;
    if (seen && !caught) out.not_refuted += (out.not_refuted.empty() ? "" : ", ") + std::string(faults()[f].name);
  }
  return out;
}

figure beside_the_filter(const limits& s) {
  figure f;
  f.id = "least-scale";
  f.title = "Least scale of a fault that is seen: check beside a filter that knows the fault";
  panel p;
  const auto scale = [](std::string label) {
    return axis{std::move(label), axis_scale::logarithmic, 1e-5, 1.5, {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1}};
  };
  p.x = scale("matched filter");
  p.y = scale("check");
  p.tall = true;
  series points{"a fault in a case", {}, {}, series_style::cloud};
  for (const limit& x : s.rows) {
    if (!refuted(x) || !x.filter) continue;
    points.x.push_back(*x.filter);
    points.y.push_back(*x.check);
  }
  p.curves = {points, {"equal", {1e-5, 1}, {1e-5, 1}, series_style::line}};
  f.panels = {p};
  f.caption =
      "1 is the fault as planted. Above the line the filter sees a fainter fault than check does. It may: it knows which fault to "
      "look for, and which of the arithmetics that the plan allows was used.";
  f.alt = "Scatter of least scales on logarithmic axes, check against a matched filter, with the diagonal.";
  return f;
}

std::string shown(const std::optional<double>& s) { return s ? number(*s, 2) : "–"; }

table matrix_of(const limits& s) {
  table t;
  t.id = "least-scales";
  t.title = "Least s, check / matched filter";
  t.columns = {"fault"};
  for (std::size_t c = 0; c < s.cases.size(); ++c) t.columns.emplace_back(std::to_string(c + 1));
  for (std::size_t f = 0; f < faults().size(); ++f) {
    std::vector<cell> row(s.cases.size() + 1, cell(""));
    row[0] = faults()[f].name;
    bool any = false;
    for (const limit& x : s.rows) {
      if (x.fault != f) continue;
      any = true;
      row[x.at + 1] = !x.changed ? std::string("=") : !x.finite ? std::string("NaN") : shown(x.check) + " / " + shown(x.filter);
    }
    if (any) t.rows.push_back(std::move(row));
  }
  t.note =
      "Columns are the cases by number. –: not even the whole fault (s = 1) in all eight results; =: changes no bit of o and "
      "final_state; NaN: leaves no finite result, which everybody refuses; empty: cannot happen there.";
  return t;
}

table case_names(const limits& s) {
  table t;
  t.id = "cases";
  t.title = "The cases";
  t.columns = {"no.", "case", "plan", "deltaproof gen", "visible", "of these refuted", {"median s of check", 2}, {"median s of the filter", 2}};
  for (std::size_t c = 0; c < s.cases.size(); ++c) {
    std::vector<double> by_check, by_filter;
    std::size_t seen = 0, caught = 0;
    for (const limit& x : s.rows) {
      if (x.at != c || !visible(x)) continue;
      ++seen;
      caught += refuted(x) ? 1 : 0;
      if (refuted(x) && x.filter) {
        by_check.push_back(*x.check);
        by_filter.push_back(*x.filter);
      }
    }
    std::sort(by_check.begin(), by_check.end());
    std::sort(by_filter.begin(), by_filter.end());
    t.rows.push_back({c + 1, s.cases[c].id, s.cases[c].plan, describe(s.cases[c]), seen, caught, quantile(by_check, 0.5), quantile(by_filter, 0.5)});
  }
  t.note = "Visible: the matched filter separates the whole fault by more than six standard deviations in all eight results.";
  return t;
}

table misses(const limits& s) {
  table t;
  t.id = "not-refuted";
  t.title = "Visible to the filter, not refuted from the outputs";
  t.columns = {"fault", "case", {"standard deviations", 3}};
  for (const limit& x : s.rows) {
    if (missed(x)) t.rows.push_back({faults()[x.fault].name, s.cases[x.at].id, x.separated});
  }
  t.note = "With the intermediates stored, many of these are refuted: see the study `referee`.";
  return t;
}

}  // namespace

void add_limits(const limits& s, report& r) {
  const fault_count by_fault = count_faults(s);
  const std::size_t seen = count_if(s, visible), caught = count_if(s, [](const limit& x) { return visible(x) && refuted(x); });
  {
    finding f;
    f.id = "visible-faults";
    f.statement = "Of the " + count(by_fault.visible) + " faults that a filter knowing them separates in some case, check refutes " +
                  (by_fault.refuted == by_fault.visible ? std::string("every one") : count(by_fault.refuted)) +
                  " in some case from o and final_state alone" +
                  (by_fault.not_refuted.empty() ? "" : " (not: " + by_fault.not_refuted + ")") + "; case by case " + of(caught, seen) + ".";
    f.kind = evidence::measured();
    f.values = {{"visible_faults", by_fault.visible}, {"refuted_faults", by_fault.refuted}, {"visible", seen}, {"refuted", caught}};
    f.because = "All eight results of a fault must be refuted, and all eight separated by more than six standard deviations.";
    r.findings.push_back(std::move(f));
  }
  {
    const std::vector<double> x = ratios(s);
    finding f;
    f.id = "distance-to-the-filter";
    f.statement = "Where both see a fault, check needs it " + number(quantile(x, 0.5), 2) +
                  " times as large as the filter does in the median, " + number(quantile(x, 0.9), 2) + " times at the 90th percentile and " +
                  number(quantile(x, 1), 2) + " times at most.";
    f.kind = evidence::measured();
    f.values = {{"median", quantile(x, 0.5)}, {"percentile_90", quantile(x, 0.9)}, {"largest", quantile(x, 1)}, {"compared", x.size()}};
    f.because = "Least s of each, to a factor of √2.";
    r.findings.push_back(std::move(f));
  }
  r.figures.push_back(beside_the_filter(s));
  r.tables.push_back(case_names(s));
  table t = misses(s);
  if (!t.rows.empty()) r.tables.push_back(std::move(t));
  r.tables.push_back(matrix_of(s));
}

std::string answer(const limits& s) {
  const fault_count by_fault = count_faults(s);
  const std::vector<double> x = ratios(s);
  return "From o and final_state alone check refutes " + of(by_fault.refuted, by_fault.visible) +
         " faults that a matched filter can see at all, each in some case; it needs a fault " + number(quantile(x, 0.5), 2) +
         " times as large as that filter does (median), which knows the fault and the arithmetic.";
}

}  // namespace deltaproof::detail::referee_limits
