// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The pieces `measure_stages` is made of: values with a radius, roundings chosen at run time, products that carry the sum
// of their terms' magnitudes, decays inside a chunk, and the inputs of one head.
//
// Every bound here is a majorant: where a value is a sum of products of quantities x, each known within r, computed with
// relative errors of at most e_1, e_2 ..., then |computed - exact| <= M(|x| + r) (1 + e_1)(1 + e_2)... - M(|x|), M the
// same expression in absolute values. n roundings with unit roundoff u cost 1 + gamma(n, u), whatever their order.
// Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., Lemma 3.1 and section 3.1.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "deltaproof/algebra/tensor.hpp"
#include "deltaproof/stages/stages.hpp"

namespace deltaproof::stages_detail {

inline constexpr double own_roundoff = 0x1p-53;

/// n u / (1 - n u), infinite where that is no bound.
inline double gamma(std::size_t n, double u) {
  const double nu = static_cast<double>(n) * u;
  return nu < 1 ? nu / (1 - nu) : std::numeric_limits<double>::infinity();
}

/// Half a unit in the last place of f at x: what rounding any value of at most that magnitude to nearest may cost.
inline double half_ulp(double x, const format& f) {
  const auto bits = std::bit_cast<std::uint64_t>(x) & ~deltaproof::detail::sign_bit;
  const int exponent = std::max(static_cast<int>(bits >> 52) - 1023, f.emin) - f.precision;
  return exponent < -1074 ? 0 : deltaproof::detail::power_of_two(std::min(exponent, 1023));
}

/// half_ulp of one format at finite values, in arithmetic that runs in vectors.
class half_ulps {
 public:
  explicit half_ulps(const format& f)
      : lowest_(deltaproof::detail::power_of_two(f.emin)), half_(deltaproof::detail::power_of_two(-f.precision)) {}

  [[gnu::always_inline]] double at(double x) const {
    const double power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & deltaproof::detail::infinity_bits);
    return (power < lowest_ ? lowest_ : power) * half_;
  }

 private:
  double lowest_, half_;
};

double narrow(double x, const narrowing& how);

struct ball {
  double value = 0;
  double radius = 0;
  [[nodiscard]] double upper() const { return std::fabs(value) + radius; }
};

/// The roundings that values within the radius may take, around that of the centre.
ball narrow(ball x, const narrowing& how);

/// A row-major matrix of values with radii; no radii: exact.
struct balls {
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::vector<double> value;
  std::vector<double> radius;

  balls() = default;
  balls(std::size_t row_count, std::size_t col_count) : rows(row_count), cols(col_count), value(row_count * col_count, 0.0) {}
  balls(std::size_t row_count, std::size_t col_count, std::vector<double> values, std::vector<double> radii)
      : rows(row_count), cols(col_count), value(std::move(values)), radius(std::move(radii)) {
    if (std::all_of(radius.begin(), radius.end(), [](double r) { return r == 0; })) radius.clear();
  }

  [[nodiscard]] bool exact() const { return radius.empty(); }
  [[nodiscard]] ball at(std::size_t i, std::size_t j) const {
    return {value[i * cols + j], radius.empty() ? 0 : radius[i * cols + j]};
  }
  void set(std::size_t i, std::size_t j, ball x) {
    value[i * cols + j] = x.value;
    if (radius.empty() && x.radius == 0) return;
    if (radius.empty()) radius.assign(value.size(), 0);
    radius[i * cols + j] = x.radius;
  }
  /// The radii, be they zeros.
  double* radii() {
    if (radius.empty()) radius.assign(value.size(), 0);
    return radius.data();
  }
  [[nodiscard]] balls slice(std::size_t first, std::size_t count) const;
  [[nodiscard]] balls transposed() const;
  [[nodiscard]] balls followed_by(const balls& below) const;
};

balls narrow(balls x, const narrowing& how);

/// value = a b, terms = |a| |b|, upper = (|a| + radius) (|b| + radius). Of row i of a, limits[i]
/// columns are read; all of them where `limits` is empty.
struct product {
  std::size_t cols = 0;
  std::vector<double> value, terms, upper;
};
product multiply(const balls& a, const balls& b, std::span<const std::size_t> limits = {});

/// Everything a bound needs to know about elementwise arithmetic.
struct arithmetic_errors {
  double elementwise;
  double gates;
  double exp2_relative;
  double gate;                                    ///< relative error of a stored G, as the decays formed it
  double underflow;                               ///< what a result below the normal range may lose, flushed or not
  std::optional<std::pair<double, double>> clip;  ///< of exponents of 2

  explicit arithmetic_errors(const stage_roundings& r);
  /// sum_bound(*this, n, u).of(...)
  [[nodiscard]] double bound(double terms, double upper, double factor, double factor_upper, std::size_t n, double u) const;
};

/// What sums of n roundings in `u` may be off by. A flushed sum loses at most one `underflow` for each of its leaves, which are
/// more than n where sums are added to each other; a leaf of a sum in fp16 loses up to half of the smallest number of fp16.
class sum_bound {
 public:
  sum_bound(const arithmetic_errors& errors, std::size_t n, double u, std::size_t leaves = 0)
      : grown_(1 + gamma(n, u)),
        own_(static_cast<double>(n + 8) * own_roundoff),
        lost_(static_cast<double>(std::max(n, leaves) + 8) *
              std::max(errors.underflow, u == unit_roundoff(fp16) ? smallest_subnormal(fp16) / 2 : 0)) {}
  /// Of `factor` times a sum of `terms`, computed within `factor_upper` times a sum of `upper`.
  [[gnu::always_inline]] double of(double terms, double upper, double factor = 1, double factor_upper = 1) const {
    const double above = factor_upper * upper;
    return (above * grown_ - factor * terms) + own_ * above + lost_ * (factor_upper > 1 ? factor_upper : 1);
  }
  /// Of each sum of a product.
  [[nodiscard]] std::vector<double> of_all(const product& sums) const;

 private:
  double grown_, own_, lost_;
};
inline double arithmetic_errors::bound(double terms, double upper, double factor, double factor_upper, std::size_t n,
                                       double u) const {
  return sum_bound(*this, n, u).of(terms, upper, factor, factor_upper);
}

/// A row of x times e, or times e[c] in column c where there is one for each: one elementwise rounding unless e is 1.
void decay_row(balls& x, std::size_t row, std::span<const ball> e, const arithmetic_errors& errors);

/// G of one chunk in log2 (channels = 1 for a gate per head, 0 without a gate) and the decays formed from it. Where G is
/// -inf on both sides of a difference, the decay is what the given gates between the rows make it.
class chunk_decays {
 public:
  /// `log_gates`: natural logs, rows x channels. `stored`: G as the kernel stored it, or nothing.
  chunk_decays(const balls& log_gates, const balls* stored, const arithmetic_errors& errors);

  [[nodiscard]] std::size_t channels() const { return channels_; }
  /// The cumulative sum from the given gates, and what computing it in the elementwise arithmetic may cost.
  [[nodiscard]] ball cumulative(std::size_t row, std::size_t channel) const;
  /// e^{G_i - G_j}, i >= j, with the errors of the difference and of the exponential.
  [[nodiscard]] ball between(std::size_t i, std::size_t j, std::size_t channel) const;
  /// between(i, j, c) of every channel c, kept for rows that are near each other. What is answered is there until the next call.
  std::span<const ball> channels_between(std::size_t i, std::size_t j);
  /// e^{G_i}: the decay since the chunk began.
  [[nodiscard]] ball since_start(std::size_t i, std::size_t channel) const;
  /// between and since_start of every channel.
  void between(std::size_t i, std::size_t j, std::span<ball> out) const;
  void since_start(std::size_t i, std::span<ball> out) const;
  /// The decay over a gate of -inf.
  [[nodiscard]] ball emptied() const { return errors_.clip ? power(errors_.clip->first, 0) : ball{}; }
  /// e^{G_i - G_j} where either may come first; false where G is not finite. `shift`: to base 2, rounded and added to one of the
  /// two before they are subtracted.
  bool signed_between(std::size_t i, std::size_t j, std::size_t channel, ball& result, double shift = 0) const;
  /// Of every channel; false where G of one is not finite.
  bool signed_between(std::size_t i, std::size_t j, std::span<ball> out, double shift = 0) const;

 private:
  [[nodiscard]] ball power(double exponent, double argument_error) const;
  /// power(x.value, x.radius) of each, in its place.
  void powers(std::span<ball> x) const;
  /// a - b + shift, with the errors of the difference.
  [[nodiscard, gnu::always_inline]] static ball exponent_between(const arithmetic_errors& errors, ball a, ball b, bool same,
                                                                 double shift);
  [[nodiscard]] std::size_t index(std::size_t i, std::size_t c) const { return i * channels_ + c; }

  arithmetic_errors errors_;
  std::size_t channels_;
  balls g_;
  std::vector<double> sum_, magnitude_;  // of the finite gates so far
  // Decays between rows that are near each other, some pairs a page, so that none moves when another is added.
  static constexpr std::size_t pairs_of_page = 32;
  std::vector<std::vector<ball>> pages_;
  std::size_t pairs_ = 0;
  std::vector<std::size_t> place_;  // of a pair, from 1 on; 0: not made yet
  std::vector<ball> far_;           // between the last two rows that are not
  std::vector<std::size_t> reset_;  // 1 + the last row up to here whose decay is 0; 0: none
};

/// What one head of one sequence reads, rows of k in order; the step is the effective one.
struct head_inputs {
  std::size_t rows = 0;
  std::size_t tokens = 0;
  balls q, k, v, step, log_gates;
};
/// The scale as the kernel has it.
[[nodiscard]] inline double scale_as_read(const problem& p, const row_rounding& how) {
  return how.scale_format ? narrow(p.scale, narrowing{*how.scale_format, false}) : p.scale;
}
head_inputs load_head(const problem& p, const sequence_range& sequence, std::size_t head, const stage_roundings& roundings);

/// `rows` rows of `width` elements; row r starts at element (first + r) * stride + offset.
balls load_rows(const tensor& t, std::size_t first, std::size_t rows, std::size_t stride, std::size_t offset, std::size_t width);

/// m_i x_i k_j e^{G_r(i) - G_j} for j < r(i) (`strict`) or j <= r(i), r = `row_of`, m the multiplier of row i, which
/// costs `extra` roundings more than one. Elsewhere 0. `in_sum`: the decays belong to the channels, be it one, and stand in the
/// sum; otherwise one decay is multiplied into the finished product.
balls decayed_gram(const balls& x, std::span<const std::size_t> row_of, const balls& k, chunk_decays& decays, bool in_sum,
                   const balls& multiplier, std::size_t extra, bool strict, const gram_rounding& how,
                   const arithmetic_errors& errors);

/// (I + L)^-1 for the strictly lower part of L as the declared algorithm gives it, and how far that may be off.
balls inverse_of(const balls& l, const inverse_rounding& how, const arithmetic_errors& errors);

/// The step times each row, rounded once.
balls stepped_rows(const balls& x, const balls& step, const format& to);

/// x_i scaled by step and, for channels or one gate, by e^{G_i}; narrowed.
balls scaled_rows(const balls& x, const balls& step, const chunk_decays* decays, const scaled_rounding& how,
                  const arithmetic_errors& errors);

}  // namespace deltaproof::stages_detail

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.rounding.nearest_rounding, float.rounding.toward_zero_rounding, float.rounding.flushed_rounding,
// proved: float.standard_model.gamma_bound, float.sum_trees.tree_error, float.sum_trees.dot_error_gamma,
// proved: float.sum_trees.flushed_tree_error
