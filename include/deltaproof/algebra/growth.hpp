// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Asks what the intermediates of an inverse of I + L may reach, before it runs: `growth_bound<A>(method, |L|)` is
// rigorous, rounding included, because it is the algorithm itself run over magnitudes (number/magnitude.hpp);
// `estimate_growth(method, C, entries)` tells from the mean and the spread of L's entries alone, hence from a key
// correlation and a step length; `largest_intermediate` observes a run. It exists because |(I+L)^-1| <= 2 says nothing
// about |L^16|: a plan can be refused by what its algorithm forms on the way.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>

#include "deltaproof/algebra/arithmetic.hpp"
#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/number/magnitude.hpp"

namespace deltaproof {

/// The largest |entry| of any intermediate, infinite where one leaves its format, and the stage it was seen in.
struct growth {
  double largest = 0;
  std::string_view stage = "none";
};

/// An observer for run_inverse that keeps the largest |entry| and where it was first seen; NaN counts as infinite.
class largest_intermediate {
 public:
  template <class S>
  void operator()(std::string_view stage, const matrix<S>& m) {
    for (std::size_t i = 0; i < m.size() && !std::isinf(found_.largest); ++i) {
      const double value = std::fabs(static_cast<double>(m.data()[i]));
      if (value <= found_.largest) continue;
      found_ = {std::isnan(value) ? std::numeric_limits<double>::infinity() : value, stage};
    }
  }
  [[nodiscard]] const growth& found() const noexcept { return found_; }

 private:
  growth found_;
};

namespace detail {

/// The arithmetic of bounds: the formats of A, one rounding for each product and each addition in sequence, which is
/// at least what any other order does.
template <class A>
struct magnitude_arithmetic;
template <class Storage, class Product, class Sum, class Order>
struct magnitude_arithmetic<arithmetic<Storage, Product, Sum, Order>> {
  static_assert(!is_tensor_core_v<Order>, "growth_bound has no bound for tensor cores, which truncate terms; use another Order");
  using type = arithmetic<magnitude<format_of<Storage>>, magnitude<format_of<Product>>, magnitude<format_of<Sum>>, sequential>;
};
template <class Storage, class Sum, class Order>
struct magnitude_arithmetic<arithmetic<Storage, exact_product, Sum, Order>> {
  static_assert(!is_tensor_core_v<Order>, "growth_bound has no bound for tensor cores, which truncate terms; use another Order");
  using type = arithmetic<magnitude<format_of<Storage>>, exact_product, magnitude<format_of<Sum>>, sequential>;
};

}  // namespace detail

/// A bound on every intermediate of run_inverse<A, M>(method, L') for every L' with |L'_ij| <= lower(i, j), roundings
/// included; infinite where one may leave its format. Shapes: C x C. Reads: the strict lower triangle.
/// `seen` meets every matrix of bounds. Throws: shape_error unless square; domain_error for a negative entry or NaN.
template <class A, class M = A, class Observer = largest_intermediate>
[[nodiscard]] growth growth_bound(const inverse_method& method, const matrix<double>& lower, Observer seen = {}) {
  if (lower.rows() != lower.cols()) throw shape_error("growth_bound: L is " + shape_text(lower) + "; it must be square");
  matrix<magnitude<fp64>> bounds(lower.rows(), lower.cols());
  for (std::size_t i = 0; i < lower.rows(); ++i) {
    for (std::size_t j = 0; j < i; ++j) bounds(i, j) = magnitude<fp64>(lower(i, j));
  }
  const auto result = run_inverse<typename detail::magnitude_arithmetic<A>::type, typename detail::magnitude_arithmetic<M>::type>(
      method, bounds, seen);
  seen("result", result);
  return seen.found();
}

/// What the entries below the diagonal of L are like: |L_ij| = mean + noise of this standard deviation, with one sign
/// pattern s_i s_j at most (alternating keys), which no power and no inverse sees in absolute value.
struct entry_statistics {
  double mean = 0;
  double spread = 0;
  double overlap = 0;  ///< what paths through different keys have in common, a step: 1/d for keys, 0 for independent entries
};

/// The entries of L = diag(beta) (K K^T) for unit keys of dimension `key_dim` whose pairs have mean cosine `correlation`
/// and steps of the given mean and mean square: cos = c + (1 - c) z with z of variance 1 / key_dim.
[[nodiscard]] entry_statistics entries_of_keys(double correlation, std::size_t key_dim, double beta_mean,
                                               double beta_mean_square);

/// About the largest |entry| that `method` forms for a C x C matrix L with such entries: the larger of what a run of the
/// method on the matrix of means forms, and, for powers, the sum over paths: N = C(n-1, p-1) paths of p steps lead to an
/// entry n below the diagonal, so |L^p| ~ mean^p N + spread^p sqrt(N f) t, where f >= 1 counts pairs of paths that
/// differ in some steps (f = 1 without overlap) and t is the largest of as many normal numbers as there are entries that
/// far down. Not a bound. Rounds: only + - * / sqrt are used, the same everywhere.
[[nodiscard]] growth estimate_growth(const inverse_method& method, std::size_t chunk, const entry_statistics& entries);

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.repeated_keys.powers_are_binomials, algebra.repeated_keys.equal_keys_overlaps,
// proved: algebra.repeated_keys.forward_error_attained
