// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/oracle/measure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct tolerance {
  double relative;
  double absolute;
};

/// torch.testing.assert_close, default_tolerances (torch 2.x).
tolerance allclose_tolerance(const format& of) {
  if (of == bf16) return {1.6e-2, 1e-5};
  if (of == fp16) return {1e-3, 1e-5};
  if (of == fp64) return {1e-7, 1e-7};
  return {1.3e-6, 1e-5};
}

/// Sums of squares of intervals; the few roundings are covered by one factor at the end.
struct square_sums {
  double error_low = 0, error_high = 0, error = 0;
  double exact_low = 0, exact_high = 0, exact = 0;

  void add(double e, double e_low, double e_high, double x, double r) {
    error += e * e;
    error_low += e_low * e_low;
    error_high += e_high * e_high;
    const double x_low = std::max(0.0, std::fabs(x) - r), x_high = std::fabs(x) + r;
    exact += x * x;
    exact_low += x_low * x_low;
    exact_high += x_high * x_high;
  }
  /// sqrt(error / exact) with `floor` added to the denominator; 0 / 0 is 0.
  [[nodiscard]] enclosure ratio(double count, double floor) const {
    const double slack = (count + 16) * 0x1p-53;
    const auto root = [&](double s) { return std::sqrt(s / count); };
    const double low = root(error_low) / (root(exact_high) + floor) * (1 - slack);
    const double divisor = root(exact_low) + floor;
    const double high = error_high == 0 ? 0 : root(error_high) / divisor * (1 + slack);
    const double estimate = error == 0 ? 0 : root(error) / (root(exact) + floor);
    return {error_low == 0 ? 0 : std::max(0.0, low), estimate, high};
  }
};

void raise(enclosure& to, const enclosure& by) {
  to.lower = std::max(to.lower, by.lower);
  to.value = std::max(to.value, by.value);
  to.upper = std::max(to.upper, by.upper);
}

}  // namespace

std::string_view name_of(metric m) {
  for (const auto& [which, name] : metric_names) {
    if (which == m) return name;
  }
  return "";
}

metric metric_named(std::string_view name) {
  std::string names;
  for (const auto& [which, known] : metric_names) {
    if (known == name) return which;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw format_error("no metric is named '" + std::string(name) + "'; there are " + names);
}

double ulp_at(double x, const format& of) {
  if (!std::isfinite(x)) return infinity;
  const int exponent = x == 0 ? of.emin : std::max(std::ilogb(x), of.emin);
  return std::ldexp(1.0, exponent - of.precision + 1);
}

measurement measure(std::span<const double> got, const reference_tensor& want, const format& of, const std::vector<bool>& skip) {
  const std::size_t n = want.value.size();
  if (got.size() != n || want.radius.size() != n || (!skip.empty() && skip.size() != n)) {
    throw shape_error("measure: " + std::to_string(got.size()) + " values against a reference of " + std::to_string(n) +
                      " values, " + std::to_string(want.radius.size()) + " radii and " + std::to_string(skip.size()) +
                      " skip marks; they must be of one shape");
  }
  const std::size_t row_length = want.shape.empty() ? 1 : std::max<std::size_t>(1, want.shape.back());
  const auto [rtol, atol] = allclose_tolerance(of);
  measurement m;
  square_sums all, row;
  std::size_t in_row = 0;
  double worst_error = -1;
  const auto close_row = [&] {
    if (in_row > 0 && row.exact_low > 0) raise(m.worst_row, row.ratio(static_cast<double>(in_row), 0));
    row = {};
    in_row = 0;
  };
  for (std::size_t i = 0; i < n; ++i) {
    if (i % row_length == 0) close_row();
    if (!skip.empty() && skip[i]) {
      ++m.skipped;
      continue;
    }
    ++m.elements;
    const double x = want.value[i], r = want.radius[i];
    m.radius = std::max(m.radius, std::isnan(r) ? infinity : r);
    if (!std::isfinite(x)) {  // the reference failed here: nothing can be said
      m.max_abs.upper = m.rel_fro.upper = m.fla_ratio.upper = m.ulps.upper = infinity;
      all.error_high = infinity;
      continue;
    }
    if (!std::isfinite(got[i])) {
      if (m.nonfinite++ == 0) m.first_nonfinite = element_error{i, got[i], x};
      continue;
    }
    // One rounding for each component, none of which can cancel what is left by more than half.
    double difference = got[i] - x;
    double roundings = difference == 0 ? 0 : 1;
    for (const auto& low : want.low) {
      if (low[i] == 0) break;
      difference -= low[i];
      ++roundings;
    }
    const double e = std::fabs(difference);
    const double off = r + 2 * e * roundings * 0x1p-52;
    const double e_low = std::max(0.0, e - off), e_high = e + off;
    raise(m.max_abs, {e_low, e, e_high});
    // The exact value's binade is known to within the radius: the larger unit for the lower end.
    raise(m.ulps, {e_low / ulp_at(std::fabs(x) + r, of), e / ulp_at(x, of), e_high / ulp_at(std::max(0.0, std::fabs(x) - r), of)});
    all.add(e, e_low, e_high, x, r);
    row.add(e, e_low, e_high, x, r);
    ++in_row;
    if (e > atol + rtol * std::fabs(x)) ++m.allclose_violations;
    if (e > worst_error) {
      worst_error = e;
      m.worst = element_error{i, got[i], x};
    }
  }
  close_row();
  if (m.elements > 0) {
    const auto count = static_cast<double>(m.elements);
    m.rel_fro = all.ratio(count, 0);
    m.fla_ratio = all.ratio(count, 1e-8);
    m.nmse = all.error == 0 ? 0 : all.error / all.exact;
  }
  return m;
}

enclosure value_of(const measurement& m, metric which) {
  switch (which) {
    case metric::max_abs: return m.max_abs;
    case metric::rel_fro: return m.rel_fro;
    case metric::fla_ratio: return m.fla_ratio;
    case metric::ulps: return m.ulps;
  }
  return {};
}

verdict judge(const measurement& m, std::span<const metric_bound> bounds) {
  if (m.nonfinite > 0) return verdict::refuted;
  if (m.elements == 0) return verdict::vacuous;
  verdict v = verdict::measured;
  for (const metric_bound& b : bounds) v = combine(v, judge_interval(value_of(m, b.which), b.limit));
  return v;
}

}  // namespace deltaproof
