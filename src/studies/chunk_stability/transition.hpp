// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The transition of one chunk as a kernel realises it: from the w that it stored, P^T = I - sum_j k_j w_j^T, which multiplies
// a (K, V) state from the left, beside the exact product of its steps. Its spectral radius says what the same chunk does for
// ever, its norm what it can do once. All in double, sums first to last: the same bits on every machine.
#pragma once

#include <cstddef>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/algebra/multiply.hpp"
#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::chunk_stability {

/// |M|_F and |A - B|_F.
[[nodiscard]] inline double frobenius(const matrix<double>& m) { return std::sqrt(shared::squared_norm(m.entries())); }

[[nodiscard]] inline double distance(const matrix<double>& a, const matrix<double>& b) {
  matrix<double> difference = a;
  for (std::size_t i = 0; i < a.size(); ++i) difference.data()[i] -= b.data()[i];
  return frobenius(difference);
}

/// I - sum_r k_r w_r^T over rows first .. first + rows - 1. Shapes: k of the sequence (R x K), w (R x K) -> K x K.
[[nodiscard]] inline matrix<double> realised_transition(const sequence<double>& s, const matrix<double>& w, std::size_t first,
                                                        std::size_t rows) {
  auto m = identity<double>(s.key_dim);
  for (std::size_t r = first; r < first + rows; ++r) {
    const auto k = s.k_row(r);
    const auto step = w.row(r);
    for (std::size_t i = 0; i < k.size(); ++i) {
      const auto out = m.row(i);
      for (std::size_t j = 0; j < out.size(); ++j) out[j] -= k[i] * step[j];
    }
  }
  return m;
}

/// The largest |eigenvalue| by Gelfand's formula, |M^n|_F^(1/n) with n = 2^squarings, powers of two taken out. Error: between
/// the radius and radius * (condition of its eigenvectors * sqrt(d))^(1/n), and a few 2^-50. NaN where M is not finite.
[[nodiscard]] inline double spectral_radius(const matrix<double>& m, int squarings = 30) {
  if (!std::all_of(m.entries().begin(), m.entries().end(), [](double x) { return std::isfinite(x); }))
    return std::numeric_limits<double>::quiet_NaN();
  matrix<double> power = m;
  // log2 |M^(2^j)| / 2^j, the exponents taken out so far included.
  double taken = 0;
  for (int j = 0; j < squarings; ++j) {
    taken += std::scalbn(shared::take_out_power(power.entries()), -j);
    power = matmul<plain<double>>(power, power);
  }
  const double length = frobenius(power);
  if (length == 0) return 0;
  constexpr double ln2 = 0.69314718055994530942;
  const double log_radius = taken * ln2 + std::scalbn(shared::ln(length), -squarings);
  return shared::exp64(log_radius);
}

/// The largest |eigenvalue| of a realised transition. Where rows < K it is that of the rows x rows matrix I - W K^T or 1,
/// because I - K^T W has the eigenvalues of the former and K - rows times the eigenvalue 1.
[[nodiscard]] inline double chunk_radius(const sequence<double>& s, const matrix<double>& w, std::size_t first, std::size_t rows,
                                         int squarings = 20) {
  if (rows >= s.key_dim) return spectral_radius(realised_transition(s, w, first, rows), squarings);
  auto small = identity<double>(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < rows; ++j) {
      small(i, j) -= shared::dot(w.row(first + i), s.k_row(first + j));
    }
  }
  const double radius = spectral_radius(small, squarings);
  return radius < 1 ? 1 : radius;  // NaN stays
}

/// Where all keys of the rows are k or -k: 1 - sum_r w_r . k_r, the eigenvalue along k; all others are 1.
[[nodiscard]] inline double eigenvalue_along_key(const sequence<double>& s, const matrix<double>& w, std::size_t first,
                                                 std::size_t rows) {
  const std::size_t from = first * s.key_dim, count = rows * s.key_dim;
  return 1 - shared::dot(w.entries().subspan(from, count), std::span(s.k).subspan(from, count));
}

/// For one repeated key: x^2 / (2 - x) C u, the bound on what storing Ai alone does to the eigenvalue along k.
[[nodiscard]] inline double storage_bound(double x, std::size_t chunk, double unit_roundoff) {
  return static_cast<double>(chunk) * unit_roundoff * x * x / (2 - x);
}

/// The largest x with (x - 1)^C + storage_bound <= 1 (x >= 1), by bisection, rounded down.
[[nodiscard]] inline double proved_safe_x(std::size_t chunk, double unit_roundoff) {
  const auto safe = [&](double x) {
    double power = 1;
    for (std::size_t i = 0; i < chunk; ++i) power *= x - 1;
    return power + storage_bound(x, chunk, unit_roundoff) <= 1;
  };
  double low = 1, high = 2;
  if (!safe(low)) return 0;
  for (int i = 0; i < 20; ++i) {
    const double middle = 0.5 * (low + high);
    (safe(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace deltaproof::detail::chunk_stability

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.repeated_keys.inverse_is_geometric, algebra.repeated_keys.stored_inverse_moves_eigenvalue
