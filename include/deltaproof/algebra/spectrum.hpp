// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Asks for eigenvalues, singular values and the spectral norm of a matrix, over double and over real<128>, by
// Eigen's decompositions (compiled once in src, so this header stays light). Shapes: eigenvalues of d x d
// matrices, singular values of any. These are estimates, not enclosures. Rounds: in double or in real<128>;
// nothing here belongs to a sum under study. Error: singular values and symmetric eigenvalues are those of a
// matrix within about d eps |A| of A, so both precisions agree to d * 2^-50 |A|; a general eigenvalue may
// be off by its condition number times that, and one with a Jordan block of size m by (eps |A|)^(1/m):
// compare with real<128>, or ask for singular values. A matrix with NaN or infinite entries has NaN values.
#pragma once

#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/real.hpp"

namespace deltaproof {

/// re + i im.
template <class S>
struct eigenvalue {
  S re;
  S im;
};

/// All d eigenvalues with multiplicity, by real Schur form: largest modulus first, of equal modulus the larger
/// re first, a conjugate pair with im > 0 first. Throws: shape_error unless square.
[[nodiscard]] std::vector<eigenvalue<double>> eigenvalues(const matrix<double>& a);
[[nodiscard]] std::vector<eigenvalue<real<128>>> eigenvalues(const matrix<real<128>>& a);

/// All d eigenvalues of a symmetric matrix, ascending. Reads: the lower triangle only. Throws: shape_error.
[[nodiscard]] std::vector<double> symmetric_eigenvalues(const matrix<double>& a);
[[nodiscard]] std::vector<real<128>> symmetric_eigenvalues(const matrix<real<128>>& a);

/// min(rows, cols) singular values, descending.
[[nodiscard]] std::vector<double> singular_values(const matrix<double>& a);
[[nodiscard]] std::vector<real<128>> singular_values(const matrix<real<128>>& a);

/// The largest singular value, max |A x| / |x|; 0 for a matrix without entries.
[[nodiscard]] double spectral_norm(const matrix<double>& a);
[[nodiscard]] real<128> spectral_norm(const matrix<real<128>>& a);

}  // namespace deltaproof
