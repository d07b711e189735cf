// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The transition of one chunk as a kernel realises it: from the w that it stored, P^T = I - sum_j k_j w_j^T, which multiplies
// a (K, V) state from the left, beside the exact product of its steps. Its spectral radius says what the same chunk does for
// ever, its norm what it can do once. All in double, sums first to last: the same bits on every machine.
#pragma once

#include <cstddef>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/scan/sequence.hpp"

namespace deltaproof::detail::chunk_stability {

/// I - sum_r k_r w_r^T over rows first .. first + rows - 1. Shapes: k of the sequence (R x K), w (R x K) -> K x K.
[[nodiscard]] matrix<double> realised_transition(const sequence<double>& s, const matrix<double>& w, std::size_t first,
                                                 std::size_t rows);

/// The largest |eigenvalue| by Gelfand's formula, |M^n|_F^(1/n) with n = 2^squarings, powers of two taken out. Error: between
/// the radius and radius * (condition of its eigenvectors * sqrt(d))^(1/n), and a few 2^-50. NaN where M is not finite.
[[nodiscard]] double spectral_radius(const matrix<double>& m, int squarings = 30);

/// sqrt(spectral_radius(M^T M)): the norm, within a relative 1e-8.
[[nodiscard]] double spectral_norm_by_squaring(const matrix<double>& m, int squarings = 26);

/// The largest |eigenvalue| of a realised transition. Where rows < K it is that of the rows x rows matrix I - W K^T or 1,
/// because I - K^T W has the eigenvalues of the former and K - rows times the eigenvalue 1.
[[nodiscard]] double chunk_radius(const sequence<double>& s, const matrix<double>& w, std::size_t first, std::size_t rows,
                                  int squarings = 20);

/// Where all keys of the rows are k or -k: 1 - sum_r w_r . k_r, the eigenvalue along k; all others are 1.
[[nodiscard]] double eigenvalue_along_key(const sequence<double>& s, const matrix<double>& w, std::size_t first,
                                          std::size_t rows);

/// |M|_F and |A - B|_F.
[[nodiscard]] double frobenius(const matrix<double>& m);
[[nodiscard]] double distance(const matrix<double>& a, const matrix<double>& b);

/// For one repeated key: x^2 / (2 - x) C u, the bound on what storing Ai alone does to the eigenvalue along k.
[[nodiscard]] double storage_bound(double x, std::size_t chunk, double unit_roundoff);
/// The largest x with (x - 1)^C + storage_bound <= 1 (x >= 1), by bisection, rounded down.
[[nodiscard]] double proved_safe_x(std::size_t chunk, double unit_roundoff);

}  // namespace deltaproof::detail::chunk_stability
