// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// dx/dt = A x + B over one step t, input held: x' = e^(tA) x + t phi_1(tA) B exactly, and by the bilinear rule and
// Euler's; for five kinds of A, over 512 bits and in double. Entries of A and B are doubles, so that every precision gets the
// same matrix.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "studies/shared/exponential.hpp"
#include "studies/shared/factored.hpp"

namespace deltaproof::detail::hippo {

using shared::bound_number;
using shared::exponentials_of;
using shared::factored;
using shared::norm_1;
using shared::product;
using shared::scaled;
using shared::sum;

using wide = real<512>;

/// legs: HiPPO-LegS, -(sqrt((2i+1)(2j+1)) below the diagonal, i + 1 on it). rank_one: -k k^T. nilpotent: ones below the
/// diagonal's neighbour, all eigenvalues 0. singular: minus the Laplacian of a path, one eigenvalue 0. defective: one Jordan
/// block of -1.
enum class kind { legs, rank_one, nilpotent, singular, defective };
inline constexpr std::array<kind, 5> kinds{kind::legs, kind::rank_one, kind::nilpotent, kind::singular, kind::defective};
[[nodiscard]] std::string_view name_of(kind);
[[nodiscard]] matrix<double> make(kind, std::size_t n);
/// sqrt(2i+1) for legs, 1, 2, 3, 1, ... otherwise.
[[nodiscard]] std::vector<double> input_of(kind, std::size_t n);

[[nodiscard]] matrix<wide> lifted(const matrix<double>& m);

/// (I - tA/2)^-1 (I + tA/2).
template <class S>
[[nodiscard]] matrix<S> bilinear(const matrix<S>& a, const S& t);

/// One kind of A at one step.
struct comparison {
  kind of = kind::legs;
  double step = 0;
  double length = 0;                ///< |tA|, 1-norm
  double truth_radius = 0;          ///< of e^(tA) and t phi_1(tA), relative, 1-norm
  double bilinear_error = 0;        ///< of the transition, relative, 1-norm, over 512 bits
  double bilinear_input_error = 0;  ///< of the input's part
  double euler_error = 0;
  double double_error = 0;                                       ///< scaling and squaring in double, of e^(tA), relative
  double double_phi_error = 0;                                   ///< of phi_1(tA)
  double inverse_error = 0;                                      ///< of A^-1 (e^(tA) - I)/t in double; NaN where A has no inverse
  double exact_norm = std::numeric_limits<double>::quiet_NaN();  ///< spectral, over real<128>; NaN where not asked for
  double bilinear_norm = std::numeric_limits<double>::quiet_NaN();
  double euler_norm = std::numeric_limits<double>::quiet_NaN();
};
[[nodiscard]] comparison compare(kind, std::size_t n, int exponent, bool with_norms = true);

/// Relative 1-norm error of f(x y^T) = f(0) I + x [(f(y^T x) - f(0))/(y^T x)] y^T against the series, for exp and phi_1, over 512
/// bits; y^T x = 0 reads the bracket as f'(0). The truth's radius beside them.
struct rank_one_error {
  double product = 0;  ///< y^T x
  double exp = 0;
  double phi = 0;
  double radius = 0;
};
[[nodiscard]] rank_one_error check_rank_one(const std::vector<double>& x, const std::vector<double>& y);

/// HiPPO-LegS as published has A/time: the exact step from time t - 1 to t is e^(A ln(t/(t - 1))). Relative errors of the
/// transition by the bilinear and the Euler rule with the step 1/t.
struct clocked {
  std::size_t token = 0;
  double bilinear_error = 0;
  double euler_error = 0;
};
[[nodiscard]] clocked compare_clocked(std::size_t n, std::size_t token);

}  // namespace deltaproof::detail::hippo
