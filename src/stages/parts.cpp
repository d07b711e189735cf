// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "stages/parts.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numbers>

#include "emulate/products.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof::stages_detail {

double narrow(double x, const narrowing& how) { return emulation::narrowed(x, how); }

ball narrow(ball x, const narrowing& how) {
  const double centre = narrow(x.value, how);
  if (x.radius == 0) return {centre, 0};
  const double below = narrow(x.value - x.radius, how);
  const double above = narrow(x.value + x.radius, how);
  return {centre, std::max(above - centre, centre - below)};
}

balls narrow(balls x, const narrowing& how) {
  if (x.exact()) {
    emulation::narrow(std::span(x.value), how);
    return x;
  }
  const std::size_t count = x.value.size();
  std::vector<double> below(count), above(count);
  double *const value = x.value.data(), *const radius = x.radius.data(), *const low = below.data(), *const high = above.data();
  deltaproof::detail::in_widest_vectors([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) {
      low[i] = value[i] - radius[i];
      high[i] = value[i] + radius[i];
    }
  });
  emulation::narrow(std::span(below), how);
  emulation::narrow(std::span(above), how);
  emulation::narrow(std::span(x.value), how);
  unsigned any = 0;
  deltaproof::detail::in_widest_vectors([=, &any]() __attribute__((always_inline)) {
    unsigned some = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double around = std::max(high[i] - value[i], value[i] - low[i]), now = radius[i] == 0 ? 0 : around;
      some |= static_cast<unsigned>(!(now == 0));
      radius[i] = now;
    }
    any = some;
  });
  if (any == 0) x.radius.clear();
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

namespace {

/// c += a b, row i over the first limits[i] columns of a, in that order.
void add_product(const std::vector<double>& a, std::size_t inner, const std::vector<double>& b, std::size_t cols,
                 std::span<const std::size_t> limits, std::vector<double>& c) {
  constexpr std::size_t block = 8;  // rows that share what the shortest of them reads
  constexpr emulation::sum_rule rule{sum_order::sequential, fp64};
  const auto add = [&](std::size_t row, std::size_t rows, std::size_t from, std::size_t to) {
    emulation::multiply({&a[row * inner + from], inner, &b[from * cols], cols, &c[row * cols], cols, rows, to - from, cols},
                        rule);
  };
  if (std::all_of(limits.begin(), limits.end(), [inner](std::size_t limit) { return limit == inner; }))
    return add(0, limits.size(), 0, inner);
  for (std::size_t row = 0; row < limits.size(); row += block) {
    const auto rows = limits.subspan(row, std::min(block, limits.size() - row));
    const std::size_t shared = *std::min_element(rows.begin(), rows.end());
    if (shared > 0) add(row, rows.size(), 0, shared);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] > shared) add(row + i, 1, shared, rows[i]);
    }
  }
}

/// |x|, or what |x| is at most.
std::vector<double> uppers(const balls& x, bool with_radius) {
  std::vector<double> out(x.value.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::fabs(x.value[i]);
  for (std::size_t i = 0; i < out.size() && with_radius && !x.exact(); ++i) out[i] += x.radius[i];
  return out;
}

}  // namespace

product multiply(const balls& a, const balls& b, std::span<const std::size_t> limits) {
  product result;
  result.cols = b.cols;
  const std::size_t size = a.rows * b.cols;
  if (size == 0) return result;
  const std::vector<std::size_t> all(limits.empty() ? a.rows : 0, a.cols);
  if (limits.empty()) limits = all;
  const auto times = [&](const std::vector<double>& left, const std::vector<double>& right) {
    std::vector<double> sum(size, 0);
    add_product(left, a.cols, right, b.cols, limits, sum);
    return sum;
  };
  result.value = times(a.value, b.value);
  result.terms = times(uppers(a, false), uppers(b, false));
  result.upper = a.exact() && b.exact() ? result.terms : times(uppers(a, true), uppers(b, true));
  return result;
}

arithmetic_errors::arithmetic_errors(const stage_roundings& r)
    : elementwise(r.elementwise),
      gates(r.gates),
      exp2_relative(r.exp2_ulps * 2 * r.gates + 0x1p-50),
      gate(r.other_gate_sums ? gamma(3, r.gates) : 0),
      underflow(r.elementwise > 0x1p-40 ? smallest_normal(fp32) : smallest_normal(fp64)) {
  if (r.clip) clip = std::pair{r.clip->first * std::numbers::log2e, r.clip->second * std::numbers::log2e};
}

std::vector<double> sum_bound::of_all(const product& sums) const {
  std::vector<double> out(sums.terms.size());
  deltaproof::detail::in_widest_vectors([this_one = *this, terms = sums.terms.data(), upper = sums.upper.data(), to = out.data(),
                                         count = out.size()]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) to[i] = this_one.of(terms[i], upper[i]);
  });
  return out;
}

void decay_row(balls& x, std::size_t row, std::span<const ball> e, const arithmetic_errors& errors) {
  const auto is_one = [](const ball& f) { return f.value == 1 && f.radius == 0; };
  if (e.size() == 1 && is_one(e[0])) return;
  double *const value = x.value.data() + row * x.cols, *const radius = x.radii() + row * x.cols;
  const double grown = 1 + errors.elementwise, underflow = errors.underflow;
  deltaproof::detail::in_widest_vectors([=, cols = x.cols]() __attribute__((always_inline)) {
    const auto decay = [=](std::size_t c, const ball& f) __attribute__((always_inline)) {
      const double product = value[c] * f.value,
                   above = (std::fabs(value[c]) + radius[c]) * (std::fabs(f.value) + f.radius) * grown;
      const double around = (above - std::fabs(product)) + 4 * own_roundoff * above + (product == 0 ? 0 : underflow);
      const bool stays = (f.value == 1) & (f.radius == 0);
      value[c] = stays ? value[c] : product;
      radius[c] = stays ? radius[c] : around;
    };
    if (e.size() == 1) {
      const ball f = e[0];
      for (std::size_t c = 0; c < cols; ++c) decay(c, f);
    } else {
      for (std::size_t c = 0; c < cols; ++c) decay(c, e[c]);
    }
  });
}

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
  } else {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t c = 0; c < channels_; ++c) g_.set(i, c, cumulative(i, c));
    }
  }
  g_.radii();
}

// i additions of i + 1 loaded gates, the factor 1/ln 2 and its own rounding: a loaded gate meets i + 3 roundings.
ball chunk_decays::cumulative(std::size_t row, std::size_t channel) const {
  const std::size_t at = index(row, channel);
  if (reset_[at] != 0) return {-std::numeric_limits<double>::infinity(), 0};
  return {sum_[at], magnitude_[at] * (gamma(row + 3, errors_.gates) + gamma(row + 3, own_roundoff))};
}

// 2^(x + d) = 2^x e^(d ln 2), and e^y - 1 <= y + y^2 (y <= 1) bounds the relative error; the exponential's own comes on top.
// Clipping moves two exponents no further apart.
ball chunk_decays::power(double exponent, double argument_error) const {
  if (errors_.clip) exponent = std::clamp(exponent, errors_.clip->first, errors_.clip->second);
  if (exponent == 0 && argument_error == 0) return {1, 0};
  const double value = std::exp2(exponent);
  const double y = 0.6931471805599454 * argument_error;
  const double shift = y <= 1 ? y + y * y : std::expm1(y);
  return {value, value * (shift + errors_.exp2_relative * (1 + shift)) + errors_.underflow};
}

namespace {

/// 2^x within 2^-51 of it, in arithmetic that runs in vectors. With n the integer next to x and z = (x - n) ln 2, |z| <= 0.3466:
/// 2^n times the Taylor polynomial of e^z of degree 13, whose remainder is below 2^-57. 2^n is made of two factors, for it may
/// leave the normal range.
[[gnu::always_inline]] inline double exp2_lane(double x) {
  constexpr double shift = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const auto power = [](double shifted) __attribute__((always_inline)) {
    return std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) << 52) + std::bit_cast<std::uint64_t>(1.0));
  };
  x = x < -1100 ? -1100 : x;
  x = x > 1100 ? 1100 : x;
  const double n = (x + shift) - shift, z = (x - n) * 0x1.62e42fefa39efp-1;
  double sum = 1.0 / 6227020800;
  sum = sum * z + 1.0 / 479001600;
  sum = sum * z + 1.0 / 39916800;
  sum = sum * z + 1.0 / 3628800;
  sum = sum * z + 1.0 / 362880;
  sum = sum * z + 1.0 / 40320;
  sum = sum * z + 1.0 / 5040;
  sum = sum * z + 1.0 / 720;
  sum = sum * z + 1.0 / 120;
  sum = sum * z + 1.0 / 24;
  sum = sum * z + 1.0 / 6;
  sum = sum * z + 0.5;
  sum = sum * z + 1;
  sum = sum * z + 1;
  const double half = n / 2 + shift;
  return sum * power(half) * power(n - (half - shift) + shift);
}

[[gnu::always_inline]] inline unsigned not_finite(double x) {
  return static_cast<unsigned>(!(std::fabs(x) < std::numeric_limits<double>::infinity()));
}

}  // namespace

void chunk_decays::powers(std::span<ball> x) const {
  constexpr double ln_2 = 0.6931471805599454, no_end = std::numeric_limits<double>::infinity();
  const bool narrow = std::all_of(x.begin(), x.end(), [](const ball& b) { return b.radius * ln_2 <= 1; });
  const double low = errors_.clip ? errors_.clip->first : -no_end, high = errors_.clip ? errors_.clip->second : no_end;
  for (std::size_t c = 0; c < x.size() && !narrow; ++c) x[c] = power(x[c].value, x[c].radius);
  if (!narrow) return;
  deltaproof::detail::in_widest_vectors([out = x.data(), count = x.size(), low, high, relative = errors_.exp2_relative,
                                         underflow = errors_.underflow]() __attribute__((always_inline)) {
    for (std::size_t c = 0; c < count; ++c) {
      const double y = ln_2 * out[c].radius, shift = y + y * y;
      const double within = out[c].value < low ? low : out[c].value, exponent = within > high ? high : within;
      const double value = exp2_lane(exponent), radius = value * (shift + relative * (1 + shift)) + underflow;
      const bool one = (exponent == 0) & (y == 0);
      out[c] = {one ? 1 : value, one ? 0 : radius};
    }
  });
}

void chunk_decays::since_start(std::size_t i, std::span<ball> out) const {
  unsigned infinite = 0;
  deltaproof::detail::in_widest_vectors([&, gate = errors_.gate, value = g_.value.data() + index(i, 0),
                                         radius = g_.radius.data() + index(i, 0)]() __attribute__((always_inline)) {
    unsigned any = 0;
    for (std::size_t c = 0; c < out.size(); ++c) {
      any |= not_finite(value[c]);
      out[c] = {value[c], radius[c] + gate * std::fabs(value[c])};
    }
    infinite = any;
  });
  if (infinite == 0) return powers(out);
  for (std::size_t c = 0; c < out.size(); ++c) out[c] = since_start(i, c);
}

inline ball chunk_decays::exponent_between(const arithmetic_errors& errors, ball a, ball b, bool same, double shift) {
  const double difference = a.value - b.value + shift;
  const double sums = a.radius + b.radius + errors.gate * (std::fabs(a.value) + std::fabs(b.value));
  const double reference =
      shift == 0 ? 0 : errors.gates * (std::max(std::fabs(a.value), std::fabs(b.value)) + 3 * std::fabs(shift));
  return {difference, same && shift == 0 ? 0 : std::fabs(difference) * errors.gates + sums + reference};
}

bool chunk_decays::signed_between(std::size_t i, std::size_t j, std::span<ball> out, double shift) const {
  unsigned infinite = 0;
  const std::size_t first = index(i, 0), second = index(j, 0);
  deltaproof::detail::in_widest_vectors(
      [&, errors = errors_, value = g_.value.data(), radius = g_.radius.data(), same = i == j]() __attribute__((always_inline)) {
        unsigned any = 0;
        for (std::size_t c = 0; c < out.size(); ++c) {
          const ball a{value[first + c], radius[first + c]}, b{value[second + c], radius[second + c]};
          any |= not_finite(a.value) | not_finite(b.value);
          out[c] = exponent_between(errors, a, b, same, shift);
        }
        infinite = any;
      });
  if (infinite == 0) powers(out);
  return infinite == 0;
}

void chunk_decays::between(std::size_t i, std::size_t j, std::span<ball> out) const {
  if (i != j && signed_between(i, j, out)) return;
  for (std::size_t c = 0; c < out.size(); ++c) out[c] = between(i, j, c);
}

ball chunk_decays::since_start(std::size_t i, std::size_t channel) const {
  const ball g = g_.at(i, channel);
  const bool empty = std::isinf(g.value) && g.value < 0;
  return empty ? emptied() : power(g.value, g.radius + errors_.gate * std::fabs(g.value));
}

bool chunk_decays::signed_between(std::size_t i, std::size_t j, std::size_t channel, ball& result, double shift) const {
  const ball a = g_.at(i, channel);
  const ball b = g_.at(j, channel);
  if (!std::isfinite(a.value) || !std::isfinite(b.value)) return false;
  const ball exponent = exponent_between(errors_, a, b, i == j, shift);
  result = power(exponent.value, exponent.radius);
  return true;
}

ball chunk_decays::between(std::size_t i, std::size_t j, std::size_t channel) const {
  if (channels_ == 0 || i == j) return {1, 0};
  ball result;
  if (signed_between(i, j, channel, result)) return result;
  const std::size_t here = index(i, channel);
  const std::size_t there = index(j, channel);
  if (reset_[here] > j + 1) return emptied();
  if (std::isnan(g_.value[here]) || std::isnan(g_.value[there])) return {std::numeric_limits<double>::quiet_NaN(), 0};
  const double error = (magnitude_[here] + magnitude_[there]) * gamma(i + 3, errors_.gates);
  return power(sum_[here] - sum_[there], error);
}

std::span<const ball> chunk_decays::channels_between(std::size_t i, std::size_t j) {
  constexpr std::size_t near = 64;
  const std::size_t rows = sum_.size() / channels_;
  const auto before = [](std::size_t row) {
    return row < near ? row * (row + 1) / 2 : near * (near + 1) / 2 + (row - near) * near;
  };
  if (i - j >= near) {
    far_.resize(channels_);
    between(i, j, std::span(far_));
    return far_;
  }
  if (place_.empty()) place_.assign(before(rows), 0);
  std::size_t& place = place_[before(i) + (i - j)];
  const bool is_new = place == 0;
  if (is_new) place = ++pairs_;
  const std::size_t page = (place - 1) / pairs_of_page;
  if (page == pages_.size()) pages_.emplace_back(pairs_of_page * channels_);
  const std::span<ball> decays = std::span(pages_[page]).subspan((place - 1) % pairs_of_page * channels_, channels_);
  if (is_new) between(i, j, decays);
  return decays;
}

}  // namespace deltaproof::stages_detail
