// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Multiplies many transitions I - b k k^T (and decays) together, in two ways. As exact factors:
// `transition_product` applies them one by one to a K x m block in O(K m) a step, the block being the
// whole product when it starts as the identity. As materialised matrices: `materialised_transition<F>`
// rounds each entry of I - b k k^T once to a format, `apply_materialised<A>` multiplies by it under an
// arithmetic. Products act on (K, V) states from the left, latest factor leftmost. "Exact" is said of the
// factors; the products round as their scalar does. It exists to ask how a product of many steps grows.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/algebra/multiply.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// The product of the factors so far, times the block it started from.
template <class S>
class transition_product {
 public:
  /// Starts from the K x K identity: the block is the product itself.
  explicit transition_product(std::size_t key_dim) : transition_product(identity<S>(key_dim)) {}

  /// Starts from a K x m block: the block is the product times it.
  explicit transition_product(matrix<S> block) : block_(std::move(block)), overlap_(block_.cols(), zero<S>()) {}

  /// X <- (I - b k k^T) X as X - k (b (k^T X)). Shapes: k (K). Rounds: as `recurrence::step` with v = 0,
  /// bit for bit but for the sign of zeros.
  void step(std::span<const S> k, const S& b) {
    require("k", k.size(), "");
    for (S& entry : overlap_) entry = zero<S>();
    for (std::size_t i = 0; i < k.size(); ++i) {
      const std::span<const S> row = std::as_const(block_).row(i);
      for (std::size_t j = 0; j < row.size(); ++j) overlap_[j] = overlap_[j] + k[i] * row[j];
    }
    for (S& entry : overlap_) entry = b * entry;
    for (std::size_t i = 0; i < k.size(); ++i) {
      const std::span<S> row = block_.row(i);
      for (std::size_t j = 0; j < row.size(); ++j) row[j] = row[j] - k[i] * overlap_[j];
    }
  }

  /// X <- diag(a) X. Shapes: a holds no number, one, or K.
  void decay(std::span<const S> a) {
    if (a.empty()) return;
    if (a.size() != 1) require("the decay", a.size(), "none, 1 or ");
    for (std::size_t i = 0; i < block_.rows(); ++i) {
      for (S& entry : block_.row(i)) entry = entry * (a.size() == 1 ? a[0] : a[i]);
    }
  }

  /// Divides the block by a power of two near its largest entry and counts it in `exponent`, so that no
  /// horizon overflows: product = 2^exponent block. Exact, unless entries 2^-1000 times the largest are there.
  void rescale()
    requires std::floating_point<S>
  {
    S largest = 0;
    for (const S& entry : block_.entries()) largest = std::fmax(largest, std::fabs(entry));
    if (!(largest > 0) || !std::isfinite(largest)) return;
    const int shift = std::ilogb(largest);
    if (shift == 0) return;
    for (S& entry : block_.entries()) entry = std::scalbn(entry, -shift);
    exponent_ += shift;
  }

  [[nodiscard]] const matrix<S>& block() const noexcept { return block_; }
  [[nodiscard]] long long exponent() const noexcept { return exponent_; }

 private:
  void require(const char* what, std::size_t holds, const char* use) const {
    if (holds != block_.rows()) {
      throw shape_error(std::string("transition_product: ") + what + " holds " + std::to_string(holds) + " values; give " + use +
                        "key_dim = " + std::to_string(block_.rows()));
    }
  }

  matrix<S> block_;
  std::vector<S> overlap_;
  long long exponent_ = 0;
};

namespace detail {

inline void require_run(const char* who, std::size_t first_row, std::size_t rows, std::size_t available) {
  if (first_row > available || rows > available - first_row) {
    throw shape_error(std::string(who) + ": " + std::to_string(rows) + " rows from row " + std::to_string(first_row) +
                      " on were asked for, but the sequence has " + std::to_string(available) + " rows");
  }
}

}  // namespace detail

/// Feeds rows first_row .. first_row + rows - 1 of a sequence to the product, each token's decay before its
/// first step, and calls after_row() behind each. Throws: shape_error.
template <class S, class AfterRow>
void run_transitions(const sequence<S>& s, std::size_t first_row, std::size_t rows, transition_product<S>& product,
                     AfterRow&& after_row) {
  s.validate();
  detail::require_run("run_transitions", first_row, rows, s.rows());
  for (std::size_t row = first_row; row < first_row + rows; ++row) {
    if (row % s.steps_per_token == 0) product.decay(s.decay_of(row / s.steps_per_token));
    product.step(s.k_row(row), s.step[row]);
    after_row();
  }
}

/// The same for the transposed product: rows last to first, each step before its token's decay.
template <class S, class AfterRow>
void run_transitions_transposed(const sequence<S>& s, std::size_t first_row, std::size_t rows, transition_product<S>& product,
                                AfterRow&& after_row) {
  s.validate();
  detail::require_run("run_transitions_transposed", first_row, rows, s.rows());
  for (std::size_t row = first_row + rows; row-- > first_row;) {
    product.step(s.k_row(row), s.step[row]);
    if (row % s.steps_per_token == 0) product.decay(s.decay_of(row / s.steps_per_token));
    after_row();
  }
}

/// (P^R)^T, the K x K product of a run's factors (I - b k k^T) diag(a), latest leftmost.
template <class S>
[[nodiscard]] matrix<S> exact_transition(const sequence<S>& s, std::size_t first_row, std::size_t rows) {
  transition_product<S> product(s.key_dim);
  run_transitions(s, first_row, rows, product, [] {});
  return product.block();
}

/// log2 of the Frobenius norm of 2^exponent block, without overflow: at most log2(sqrt(columns)) above log2 of
/// the spectral norm of the same, never below it. -inf for zeros, NaN where the block has one.
[[nodiscard]] inline double log2_frobenius(const matrix<double>& block, long long exponent) {
  double largest = 0;
  for (const double x : block.entries()) {
    if (std::isnan(x)) return x;
    largest = std::fmax(largest, std::fabs(x));
  }
  if (largest == 0) return -std::numeric_limits<double>::infinity();
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (const double x : block.entries()) {
    const double y = x / largest;
    sum += y * y;
  }
  return static_cast<double>(exponent) + std::log2(largest) + 0.5 * std::log2(sum);
}

namespace detail {

/// Gram-Schmidt, twice, in place; a column that is zero or dependent becomes zero.
inline void orthonormalise(matrix<double>& block) {
  for (std::size_t j = 0; j < block.cols(); ++j) {
    double before = 0;
    for (std::size_t i = 0; i < block.rows(); ++i) before += block(i, j) * block(i, j);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t c = 0; c < j; ++c) {
        double overlap = 0;
        for (std::size_t i = 0; i < block.rows(); ++i) overlap += block(i, c) * block(i, j);
        for (std::size_t i = 0; i < block.rows(); ++i) block(i, j) -= overlap * block(i, c);
      }
    }
    double after = 0;
    for (std::size_t i = 0; i < block.rows(); ++i) after += block(i, j) * block(i, j);
    const double scale = after > 0x1p-80 * before ? 1 / std::sqrt(after) : 0;
    for (std::size_t i = 0; i < block.rows(); ++i) block(i, j) *= scale;
  }
}

}  // namespace detail

/// A lower estimate of log2 of the spectral norm of a run's product M, by block power iteration on M^T M from a
/// given K x m block, O(K m) a row and iteration: the largest |M x| met over unit columns x. In double: never
/// above the norm but for rounding, and converging to it unless the block is orthogonal to the top direction.
[[nodiscard]] inline double estimate_log2_norm(const sequence<double>& s, std::size_t first_row, std::size_t rows,
                                               matrix<double> block, int iterations) {
  double best = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < iterations; ++i) {
    detail::orthonormalise(block);
    transition_product<double> forward(std::move(block));
    run_transitions(s, first_row, rows, forward, [&forward] { forward.rescale(); });
    for (std::size_t j = 0; j < forward.block().cols(); ++j) {
      matrix<double> column(s.key_dim, 1);
      for (std::size_t r = 0; r < s.key_dim; ++r) column(r, 0) = forward.block()(r, j);
      best = std::fmax(best, log2_frobenius(column, forward.exponent()));
    }
    transition_product<double> backward(forward.block());
    run_transitions_transposed(s, first_row, rows, backward, [&backward] { backward.rescale(); });
    block = backward.block();
  }
  return best;
}

namespace detail {

/// Whether x y is a double, finite and far from underflow, so that fma sees the whole error of a product.
inline bool exact_in_double(double x, double y) {
  const double product = x * y;
  if (x == 0 || y == 0) return std::isfinite(product);
  return std::isfinite(product) && std::fabs(product) > 0x1p-900 && std::fma(x, y, -product) == 0;
}

}  // namespace detail

/// Entry (i, j) of I - b k k^T, rounded once to F, to nearest even, from its exact value. Shapes: k (K) -> K x K.
/// Reads: k and b as exact values, so give them in the format in which a kernel has them.
/// Throws: domain_error where b or an entry of k is not finite.
template <format F>
[[nodiscard]] matrix<rounded<F>> materialised_transition(std::span<const double> k, double b) {
  bool finite = std::isfinite(b);
  for (const double x : k) finite = finite && std::isfinite(x);
  if (!finite) {
    throw domain_error("materialised_transition: b and every entry of k must be finite; " +
                       (std::isfinite(b) ? std::string("an entry of k is not") : "b is " + std::to_string(b)));
  }
  const auto entry = [&](std::size_t i, std::size_t j) {
    const double first = b * k[i];
    if (i != j && detail::exact_in_double(b, k[i]) && detail::exact_in_double(first, k[j])) {
      return round_to<F>(0.0 - first * k[j]);
    }
    const rational product = exact(b) * exact(k[i]) * exact(k[j]);
    return round_to<F>(rational((i == j ? 1 : 0) - product));
  };
  matrix<rounded<F>> result(k.size(), k.size());
  for (std::size_t i = 0; i < k.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      result(i, j) = entry(i, j);
      result(j, i) = result(i, j);
    }
  }
  return result;
}

/// X <- M X, sums in the arithmetic A, each entry then rounded to A's storage type in its mode.
/// Shapes: M (K x K), X (K x m). Throws: shape_error.
template <class A>
void apply_materialised(const matrix<typename A::storage_type>& m, matrix<typename A::storage_type>& block) {
  using storage = typename A::storage_type;
  matrix<typename A::sum_type> sums = matmul<A>(m, block);
  if constexpr (std::is_same_v<typename A::sum_type, storage>) {
    block = std::move(sums);
  } else {
    for (std::size_t i = 0; i < block.size(); ++i) block.data()[i] = round_to<storage>(sums.data()[i]);
  }
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.rank_one.rank_one_apply, algebra.rank_one.rank_one_determinant, algebra.rank_one.step_determinant,
// proved: algebra.rank_one.rank_one_characteristic_polynomial, algebra.rank_one.rank_one_spectrum,
// proved: algebra.ordered_product.ordered_product_cut, algebra.non_expansive.projections_in_turn_grow,
// proved: algebra.non_expansive.shear_power_grows, algebra.materialised.unit_diagonal_expands,
// proved: algebra.materialised.unit_diagonal_exceeds_one
