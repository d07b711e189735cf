// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/oracle/measure.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
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

/// A power of two that takes x to about 1.
int exponent_of(double x) { return x > 0 && std::isfinite(x) ? std::ilogb(x) : 0; }

/// x 2^exponent, rounded once: a product where that power is a normal number.
class scaling {
 public:
  explicit scaling(int exponent) : exponent_{exponent}, factor_{std::abs(exponent) <= 1022 ? std::ldexp(1.0, exponent) : 0} {}
  [[nodiscard]] double operator()(double x) const { return factor_ > 0 ? x * factor_ : std::ldexp(x, exponent_); }

 private:
  int exponent_;
  double factor_;
};

/// Sums of squares of intervals, errors and exact values each scaled by a power of two so that neither overflows nor
/// vanishes; the few roundings are covered by one factor at the end.
class square_sums {
 public:
  square_sums(int error_exponent, int exact_exponent)
      : error_exponent_{error_exponent},
        exact_exponent_{exact_exponent},
        of_error_{-error_exponent},
        of_exact_{-exact_exponent} {}

  void add(double e, double e_low, double e_high, double x, double r) {
    const auto square = [](double value, const scaling& to) {
      const double scaled = to(value);
      return scaled * scaled;
    };
    error_ += square(e, of_error_);
    error_low_ += square(e_low, of_error_);
    error_high_ += square(e_high, of_error_);
    exact_ += square(x, of_exact_);
    exact_low_ += square(std::max(0.0, std::fabs(x) - r), of_exact_);
    exact_high_ += square(std::fabs(x) + r, of_exact_);
    some_error_ = some_error_ || e_high > 0;
  }
  [[nodiscard]] bool exact_is_nonzero() const { return exact_low_ > 0; }

  /// sqrt(error / exact) with `floor` added to the denominator's root mean square; 0 / 0 is 0.
  [[nodiscard]] enclosure ratio(double count, double floor) const {
    const double slack = (count + 16) * 0x1p-53;
    const auto over = [&](double error, double exact) {
      if (error == 0) return 0.0;
      if (floor == 0) return std::ldexp(std::sqrt(error / exact), error_exponent_ - exact_exponent_);
      return std::ldexp(std::sqrt(error / count) / (std::ldexp(std::sqrt(exact / count), exact_exponent_) + floor),
                        error_exponent_);
    };
    // Beside the smallest numbers the last scaling rounds as well.
    double low = over(error_low_, exact_high_) * (1 - slack), high = over(error_high_, exact_low_) * (1 + slack);
    if (low < 0x1p-960) low = std::nextafter(low, 0.0);
    if (high > 0 && high < 0x1p-960) high = std::nextafter(high, infinity);
    // What is too small for a double is still not 0.
    if (some_error_) high = std::max(high, std::numeric_limits<double>::denorm_min());
    return {low, over(error_, exact_), high};
  }
  /// error / exact.
  [[nodiscard]] double square_ratio() const {
    return error_ == 0 ? 0 : std::ldexp(error_ / exact_, 2 * (error_exponent_ - exact_exponent_));
  }

 private:
  int error_exponent_, exact_exponent_;
  scaling of_error_, of_exact_;
  double error_ = 0, error_low_ = 0, error_high_ = 0;
  double exact_ = 0, exact_low_ = 0, exact_high_ = 0;
  bool some_error_ = false;
};

struct size_range {
  double least;
  double largest;
};
/// The magnitudes that the exact value behind element i can have, rounded outward: beside a power of two the last bit tells.
size_range sizes(double x, const reference_tensor& want, std::size_t i) {
  double off = want.radius[i];
  for (const auto& low : want.low) off += std::fabs(low[i]);
  const double size = std::fabs(x);
  if (off == 0) return {size, size};
  off *= 1 + 0x1p-40;
  return {std::max(0.0, std::nextafter(size - off, 0.0)), std::nextafter(size + off, infinity)};
}

void raise(enclosure& to, const enclosure& by) {
  to.lower = std::max(to.lower, by.lower);
  to.value = std::max(to.value, by.value);
  to.upper = std::max(to.upper, by.upper);
}

}  // namespace

std::string_view name_of(metric m) {
  for (const named_metric& row : metrics) {
    if (row.which == m) return row.name;
  }
  return "";
}

std::string metric_list() {
  std::string names;
  for (const named_metric& row : metrics) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

metric metric_named(std::string_view name) {
  for (const named_metric& row : metrics) {
    if (row.name == name) return row.which;
  }
  throw format_error("there is no metric '" + std::string(name) + "'; there are " + metric_list());
}

double ulp_at(double x, const format& of) {
  const auto field = static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff);
  if (field == 0x7ff) return infinity;
  const int size = field > 0 ? field - 1023 : x == 0 ? of.emin : std::ilogb(x);
  const int exponent = std::max(size, of.emin) - of.precision + 1;
  return exponent >= -1022 ? std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52) : std::ldexp(1.0, exponent);
}

namespace {

/// A number over the finite elements alone would make a broken kernel look like a good one.
void widen_where_unknown(measurement& m) {
  const auto widen = [&](enclosure& e, bool over_norm) {
    if (m.nonfinite > 0) e = {infinity, infinity, infinity};
    if (m.unknown > 0) e.upper = infinity;
    if (m.unknown > 0 && m.nonfinite == 0 && over_norm) e.lower = 0;
  };
  for (const named_metric& row : metrics) widen(m.*row.value, row.over_norm);
  widen(m.worst_row, true);
  if (m.nonfinite > 0) m.nmse = infinity;
}

}  // namespace

measurement measure(std::span<const double> got, const reference_tensor& want, const format& of, const std::vector<bool>& skip) {
  const std::size_t n = want.value.size();
  if (got.size() != n || want.radius.size() != n || (!skip.empty() && skip.size() != n)) {
    throw shape_error("measure: " + std::to_string(got.size()) + " values, " + std::to_string(n) + " reference values, " +
                      std::to_string(want.radius.size()) + " radii and " + std::to_string(skip.size()) +
                      " flags in skip; these counts must be equal (skip may be empty)");
  }
  const std::size_t row_length = want.shape.empty() ? 1 : std::max<std::size_t>(1, want.shape.back());
  const auto [rtol, atol] = allclose_tolerance(of);
  const auto judged = [&](std::size_t i) { return skip.empty() || !skip[i]; };
  const auto known = [&](std::size_t i) { return std::isfinite(want.value[i]) && want.radius[i] < infinity; };
  double largest_error = 0, largest_exact = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!judged(i) || !known(i)) continue;
    largest_exact = std::max(largest_exact, std::fabs(want.value[i]));
    largest_error = std::max(largest_error, want.radius[i]);
    for (const auto& low : want.low) largest_error = std::max(largest_error, std::fabs(low[i]));
    if (std::isfinite(got[i])) largest_error = std::max(largest_error, std::fabs(got[i] - want.value[i]));
  }
  const square_sums none(exponent_of(largest_error), exponent_of(largest_exact));
  measurement m;
  double worst_error = -1;
  square_sums all = none, row = none;
  std::size_t in_row = 0;
  const auto close_row = [&] {
    if (in_row > 0 && row.exact_is_nonzero()) raise(m.worst_row, row.ratio(static_cast<double>(in_row), 0));
    row = none;
    in_row = 0;
  };
  for (std::size_t i = 0; i < n; ++i) {
    if (i % row_length == 0) close_row();
    if (!judged(i)) {
      ++m.skipped;
      continue;
    }
    ++m.elements;
    const double x = want.value[i], r = want.radius[i];
    m.radius = std::max(m.radius, std::isnan(r) ? infinity : r);
    if (!known(i)) {  // the reference failed here: nothing can be said
      ++m.unknown;
      continue;
    }
    if (!std::isfinite(got[i])) {
      ++m.allclose_violations;
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
    // The exact value's binade is known to within the radius and what one double does not say: the larger unit for the lower end.
    const auto [least, largest] = sizes(x, want, i);
    raise(m.ulps, {e_low / ulp_at(largest, of), e / ulp_at(x, of), e_high / ulp_at(least, of)});
    all.add(e, e_low, e_high, x, r);
    row.add(e, e_low, e_high, x, r);
    ++in_row;
    if (e > atol + rtol * std::fabs(x)) ++m.allclose_violations;
    if (e > worst_error) m.worst = element_error{i, got[i], x};
    worst_error = std::max(worst_error, e);
  }
  close_row();
  if (m.elements > 0) {
    const auto count = static_cast<double>(m.elements);
    m.rel_fro = all.ratio(count, 0);
    m.fla_ratio = all.ratio(count, 1e-8);
    m.nmse = all.square_ratio();
  }
  widen_where_unknown(m);
  return m;
}

enclosure value_of(const measurement& m, metric which) {
  for (const named_metric& row : metrics) {
    if (row.which == which) return m.*row.value;
  }
  throw domain_error("value_of: the metric is none of those of `deltaproof list metrics`; pass one of them");
}

verdict judge(const measurement& m, std::span<const metric_bound> bounds) {
  if (m.nonfinite > 0) return verdict::refuted;
  if (m.elements == 0) return verdict::vacuous;
  verdict v = m.unknown > 0 ? verdict::undecided : verdict::measured;
  for (const metric_bound& b : bounds) v = combine(v, judge_interval(value_of(m, b.which), b.limit));
  return v;
}

}  // namespace deltaproof
