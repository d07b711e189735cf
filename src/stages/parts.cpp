// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "stages/parts.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "deltaproof/number/rounding.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof::stages_detail {

namespace {

template <class Mode>
double round_at_run_time(double x, const format& f) {
  Mode mode;
  return visit_format(f, [&]<format F>() { return deltaproof::detail::round_value<F>(x, mode); });
}

}  // namespace

double half_ulp(double x, const format& f) {
  const auto bits = std::bit_cast<std::uint64_t>(x) & ~deltaproof::detail::sign_bit;
  const int exponent = std::max(static_cast<int>(bits >> 52) - 1023, f.emin) - f.precision;
  return exponent < -1074 ? 0 : deltaproof::detail::power_of_two(std::min(exponent, 1023));
}

double narrow(double x, const narrowing& how) {
  if (how.toward_zero) return round_at_run_time<toward_zero>(x, how.to);
  return how.to == tf32 ? round_at_run_time<nearest_away>(x, how.to) : round_at_run_time<nearest_even>(x, how.to);
}

ball narrow(ball x, const narrowing& how) {
  const double centre = narrow(x.value, how);
  if (x.radius == 0) return {centre, 0};
  const double below = narrow(x.value - x.radius, how);
  const double above = narrow(x.value + x.radius, how);
  return {centre, std::max(above - centre, centre - below)};
}

balls narrow(balls x, const narrowing& how) {
  if (x.exact()) {
    for (double& value : x.value) value = narrow(value, how);
    return x;
  }
  bool any = false;
  for (std::size_t i = 0; i < x.value.size(); ++i) {
    const ball rounded = narrow(ball{x.value[i], x.radius[i]}, how);
    x.value[i] = rounded.value;
    x.radius[i] = rounded.radius;
    any = any || !(rounded.radius == 0);
  }
  if (!any) x.radius.clear();
  return x;
}

balls balls::slice(std::size_t first, std::size_t count) const {
  balls result(0, cols);
  result.rows = count;
  const auto cut = [&](const std::vector<double>& from) {
    return std::vector<double>(from.begin() + static_cast<std::ptrdiff_t>(first * cols),
                               from.begin() + static_cast<std::ptrdiff_t>((first + count) * cols));
  };
  result.value = cut(value);
  if (!exact()) result.radius = cut(radius);
  return result;
}

balls balls::transposed() const {
  balls result(cols, rows);
  if (!exact()) result.radius.assign(value.size(), 0);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) {
      result.value[j * rows + i] = value[i * cols + j];
      if (!exact()) result.radius[j * rows + i] = radius[i * cols + j];
    }
  }
  return result;
}

balls balls::followed_by(const balls& below) const {
  balls result = *this;
  result.rows += below.rows;
  if (!exact() || !below.exact()) {
    result.radius.resize(value.size(), 0);
    if (below.exact()) result.radius.resize(value.size() + below.value.size(), 0);
    result.radius.insert(result.radius.end(), below.radius.begin(), below.radius.end());
  }
  result.value.insert(result.value.end(), below.value.begin(), below.value.end());
  return result;
}

product multiply(const balls& a, const balls& b, std::span<const std::size_t> limits) {
  product result;
  const std::size_t n = b.cols;
  result.cols = n;
  result.value.assign(a.rows * n, 0);
  result.terms.assign(a.rows * n, 0);
  const bool exact = a.exact() && b.exact();
  if (!exact) result.upper.assign(a.rows * n, 0);
  std::vector<double> magnitude(b.value.size());
  std::vector<double> above(exact ? 0 : b.value.size());
  for (std::size_t i = 0; i < magnitude.size(); ++i) magnitude[i] = std::fabs(b.value[i]);
  for (std::size_t i = 0; i < above.size(); ++i) above[i] = magnitude[i] + (b.exact() ? 0 : b.radius[i]);
  for (std::size_t i = 0; i < a.rows; ++i) {
    const std::size_t last = limits.empty() ? a.cols : limits[i];
    deltaproof::detail::in_widest_vectors([&]() __attribute__((always_inline)) {
      const double *row = b.value.data(), *sizes = magnitude.data(), *uppers = above.data();
      double *const value = &result.value[i * n], *const terms = &result.terms[i * n],
                    *const upper = exact ? nullptr : &result.upper[i * n];
      for (std::size_t m = 0; m < last; ++m, row += n, sizes += n, uppers += exact ? 0 : n) {
        const ball x = a.at(i, m);
        const double size = std::fabs(x.value), top = x.upper();
        for (std::size_t j = 0; j < n; ++j) {
          value[j] += x.value * row[j];
          terms[j] += size * sizes[j];
        }
        for (std::size_t j = 0; j < n && !exact; ++j) upper[j] += top * uppers[j];
      }
    });
  }
  if (exact) result.upper = result.terms;
  return result;
}

arithmetic_errors::arithmetic_errors(const stage_roundings& r)
    : elementwise(r.elementwise),
      exp2_relative(r.exp2_ulps * 2 * r.elementwise + 0x1p-51),
      gate(r.other_gate_sums ? gamma(3, r.elementwise) : 0),
      underflow(r.elementwise > 0x1p-40 ? smallest_normal(fp32) : smallest_normal(fp64)) {}

chunk_decays::chunk_decays(const balls& log_gates, const balls* stored, const arithmetic_errors& errors)
    : errors_(errors), channels_(log_gates.cols), g_(log_gates.rows, log_gates.cols) {
  constexpr double log2_e = 0x1.71547652b82fep+0;
  const std::size_t rows = log_gates.rows;
  sum_.assign(rows * channels_, 0);
  magnitude_.assign(rows * channels_, 0);
  reset_.assign(rows * channels_, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t c = 0; c < channels_; ++c) {
      const double gate = log_gates.value[index(i, c)] * log2_e;
      const bool reset = std::isinf(gate);
      const std::size_t at = index(i, c);
      sum_[at] = (i > 0 ? sum_[index(i - 1, c)] : 0) + (reset ? 0 : gate);
      magnitude_[at] = (i > 0 ? magnitude_[index(i - 1, c)] : 0) + (reset ? 0 : std::fabs(gate));
      reset_[at] = reset ? i + 1 : i > 0 ? reset_[index(i - 1, c)] : 0;
    }
  }
  if (stored != nullptr) {
    g_ = *stored;
    return;
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t c = 0; c < channels_; ++c) g_.set(i, c, cumulative(i, c));
  }
}

// i additions of i + 1 loaded gates, the factor 1/ln 2 and its own rounding: a loaded gate meets i + 3 roundings.
ball chunk_decays::cumulative(std::size_t row, std::size_t channel) const {
  const std::size_t at = index(row, channel);
  if (reset_[at] != 0) return {-std::numeric_limits<double>::infinity(), 0};
  return {sum_[at], magnitude_[at] * (gamma(row + 3, errors_.elementwise) + gamma(row + 3, own_roundoff))};
}

// 2^(x + d) = 2^x e^(d ln 2), and e^y - 1 <= y + y^2 (y <= 1) bounds the relative error; the exponential's own comes on top.
ball chunk_decays::power(double exponent, double argument_error) const {
  if (exponent == 0 && argument_error == 0) return {1, 0};
  const double value = std::exp2(exponent);
  const double y = 0.6931471805599454 * argument_error;
  const double shift = y <= 1 ? y + y * y : std::expm1(y);
  return {value, value * (shift + errors_.exp2_relative * (1 + shift)) + errors_.underflow};
}

ball chunk_decays::since_start(std::size_t i, std::size_t channel) const {
  const ball g = g_.at(i, channel);
  return std::isinf(g.value) && g.value < 0 ? ball{} : power(g.value, g.radius + errors_.gate * std::fabs(g.value));
}

bool chunk_decays::signed_between(std::size_t i, std::size_t j, std::size_t channel, ball& result) const {
  const ball a = g_.at(i, channel);
  const ball b = g_.at(j, channel);
  if (!std::isfinite(a.value) || !std::isfinite(b.value)) return false;
  const double difference = a.value - b.value;
  const double sums = a.radius + b.radius + errors_.gate * (std::fabs(a.value) + std::fabs(b.value));
  result = power(difference, i == j ? 0 : std::fabs(difference) * errors_.elementwise + sums);
  return true;
}

ball chunk_decays::between(std::size_t i, std::size_t j, std::size_t channel) const {
  if (channels_ == 0 || i == j) return {1, 0};
  ball result;
  if (signed_between(i, j, channel, result)) return result;
  const std::size_t here = index(i, channel);
  const std::size_t there = index(j, channel);
  if (reset_[here] > j + 1) return {0, 0};
  if (std::isnan(g_.value[here]) || std::isnan(g_.value[there])) return {std::numeric_limits<double>::quiet_NaN(), 0};
  const double error = (magnitude_[here] + magnitude_[there]) * gamma(i + 3, errors_.elementwise);
  return power(sum_[here] - sum_[there], error);
}

const ball* chunk_decays::channels_between(std::size_t i, std::size_t j) {
  constexpr std::size_t near = 16;
  const std::size_t rows = sum_.size() / channels_;
  if (kept_.empty()) {
    kept_.resize((rows * near + 1) * channels_);
    is_kept_.assign(rows * near, false);
  }
  const bool keep = i - j < near;
  const std::size_t slot = keep ? i * near + (i - j) : rows * near;
  ball* const result = &kept_[slot * channels_];
  if (keep && is_kept_[slot]) return result;
  for (std::size_t c = 0; c < channels_; ++c) result[c] = between(i, j, c);
  if (keep) is_kept_[slot] = true;
  return result;
}

}  // namespace deltaproof::stages_detail
