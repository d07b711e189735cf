// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// e^X and phi_1(X) = X^-1 (e^X - I), read as the power series sum X^m / (m+1)!, for any square X, singular or not, by
// scaling and squaring over any scalar with + - * /. Over real<P> the result carries a bound on its own error, computed
// along with it. It exists as the ruler of the study: what double algorithms are compared with.
#pragma once

#include <cmath>
#include <cstddef>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/algebra/multiply.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof::detail::shared {

/// What bounds are kept in: their own roundings are covered by a factor, their exponents do not run out.
using bound_number = real<64>;

/// The largest column sum of absolute values; NaN where an entry is.
template <class S>
[[nodiscard]] S norm_1(const matrix<S>& m) {
  S largest = zero<S>();
  for (std::size_t j = 0; j < m.cols(); ++j) {
    S sum = zero<S>();
    for (std::size_t i = 0; i < m.rows(); ++i) sum = sum + (m(i, j) < zero<S>() ? S(-m(i, j)) : m(i, j));
    if (sum > largest || sum != sum) largest = sum;  // NaN stays
  }
  return largest;
}

/// e^X, phi_1(X) and, over real<P>, what they may differ by from the exact ones in the 1-norm.
template <class S>
struct exponentials {
  matrix<S> exp;
  matrix<S> phi;
  bound_number exp_error = 0;
  bound_number phi_error = 0;
};

template <class S>
[[nodiscard]] matrix<S> scaled(const matrix<S>& m, const S& factor) {
  matrix<S> result = m;
  for (S& entry : result.entries()) entry = entry * factor;
  return result;
}

template <class S>
[[nodiscard]] matrix<S> sum(const matrix<S>& a, const matrix<S>& b) {
  matrix<S> result = a;
  for (std::size_t i = 0; i < result.size(); ++i) result.data()[i] = result.data()[i] + b.data()[i];
  return result;
}

template <class S>
[[nodiscard]] matrix<S> product(const matrix<S>& a, const matrix<S>& b) {
  return matmul<plain<S>>(a, b);
}

/// Significant bits of the scalars used here.
template <class S>
inline constexpr int significant_bits = precision_bits<S>;
template <>
inline constexpr int significant_bits<double> = 53;

/// Y = X / 2^s with |Y|_1 <= 1/16, Taylor polynomials of e^Y and phi_1(Y) of a degree whose remainder is below the
/// unit roundoff, then s times phi <- (e + I) phi / 2, e <- e e. Rounds: as S does; products of matrices sum first to last.
/// Error: 1-norm, as returned. Truncation: sum_{j>m} |Y|^j / j!. Rounding: an n x n product adds n u / (1 - n u) times the
/// product of the norms, everything else one or two roundings of its norm; an error e of E becomes 2 |E| e + e^2 when
/// E is squared. Throws: shape_error unless X is square, domain_error where an entry is not finite.
template <class S>
[[nodiscard]] exponentials<S> exponentials_of(const matrix<S>& x) {
  if (x.rows() != x.cols()) throw shape_error("exponentials_of: the matrix is " + shape_text(x) + "; needs a square one");
  const std::size_t n = x.rows();
  const auto bound = [](const S& value) {
    if constexpr (std::is_same_v<S, double>) {
      return bound_number(value);
    } else {
      return round_to<bound_number>(value);
    }
  };
  // Covers the roundings of the bound's own arithmetic, of norms and of conversions, a few hundred each.
  const bound_number slack = 1 + ldexp(bound_number(1), -40);
  const bound_number unit = ldexp(bound_number(1), -significant_bits<S>);
  const bound_number dimension(static_cast<unsigned>(n));
  const bound_number gamma = (dimension + 2) * unit / (1 - (dimension + 2) * unit);

  const bound_number length = bound(norm_1(x)) * slack;
  if (!(length < bound_number(1e300)))
    throw domain_error("exponentials_of: the matrix has an entry that is not finite or too large");
  int squarings = 0;
  bound_number theta = length;
  while (theta > bound_number(0.0625)) {
    theta /= 2;
    ++squarings;
  }
  S scale = one<S>();
  for (int i = 0; i < squarings; ++i) scale = scale / from_int<S>(2);
  const matrix<S> y = scaled(x, scale);  // powers of two: exact

  exponentials<S> r{identity<S>(n), identity<S>(n)};
  matrix<S> term = identity<S>(n);
  bound_number term_size = 1;
  bound_number term_error = 0;
  bound_number sum_size = 1;
  bound_number remainder = 1;
  int m = 0;
  while (remainder > unit && m < 1000) {
    ++m;
    const S count = from_int<S>(m);
    const S next = from_int<S>(m + 1);
    term = product(term, y);
    for (S& entry : term.entries()) entry = entry / count;
    term_error = (theta * term_error + (gamma + 2 * unit) * term_size * theta) / m * slack;
    term_size = bound(norm_1(term)) * slack;
    sum_size = (sum_size + term_size) * slack;
    r.exp = sum(r.exp, term);
    for (std::size_t i = 0; i < term.size(); ++i) r.phi.data()[i] = r.phi.data()[i] + term.data()[i] / next;
    // Each partial sum rounds once (phi: twice) at a size of at most sum_size.
    r.exp_error = (r.exp_error + term_error + 2 * unit * sum_size) * slack;
    r.phi_error = (r.phi_error + term_error + 2 * unit * sum_size) * slack;
    remainder = remainder * theta / m * slack;
  }
  // theta <= 1/16: what follows the last term is below twice the next one.
  const bound_number truncation = 2 * remainder * theta / (m + 1) * slack;
  r.exp_error += truncation;
  r.phi_error += truncation;

  const S half = one<S>() / from_int<S>(2);
  for (int i = 0; i < squarings; ++i) {
    const bound_number exp_size = bound(norm_1(r.exp)) * slack;
    const bound_number phi_size = bound(norm_1(r.phi)) * slack;
    const bound_number factor_size = exp_size + 1;
    const bound_number factor_error = r.exp_error + unit * factor_size;
    r.phi = scaled(product(sum(r.exp, identity<S>(n)), r.phi), half);
    r.phi_error =
        (factor_size * r.phi_error + factor_error * phi_size + factor_error * r.phi_error + 2 * gamma * factor_size * phi_size) /
        2 * slack;
    r.exp = product(r.exp, r.exp);
    r.exp_error = (2 * exp_size * r.exp_error + r.exp_error * r.exp_error + gamma * exp_size * exp_size) * slack;
  }
  return r;
}

}  // namespace deltaproof::detail::shared
