// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Asks for the eigenvalues of a symmetric matrix, singular values and the spectral norm, over double and over real<128>, by
// Eigen's solver (compiled once in src, so this header stays light). These are estimates, not enclosures. Rounds: in double or in
// real<128>; nothing here belongs to a sum under study. Error: the values are those of a matrix within about d eps |A| of A, so
// both precisions agree to d * 2^-50 |A|. A matrix with NaN or infinite entries has NaN values.
#pragma once

#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/real.hpp"

namespace deltaproof {

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
