// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/algebra/spectrum.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

namespace {
using wide = deltaproof::real<128>;
}

namespace Eigen {

// Boost's own specialisation would do but for `lowest()`, which it gets wrong, and for its compile time.
template <>
struct NumTraits<wide> : GenericNumTraits<wide> {
  using Real = wide;
  using NonInteger = wide;
  using Nested = wide;
  using Literal = double;
  // NOLINTNEXTLINE(readability-identifier-naming): Eigen asks for these names
  enum { IsComplex = 0, IsInteger = 0, IsSigned = 1, RequireInitialization = 1, ReadCost = 8, AddCost = 16, MulCost = 32 };
  static wide epsilon() { return std::numeric_limits<wide>::epsilon(); }
  static wide dummy_precision() { return wide(1000) * epsilon(); }
  static wide highest() { return (std::numeric_limits<wide>::max)(); }
  static wide lowest() { return -(std::numeric_limits<wide>::max)(); }
  static int digits10() { return std::numeric_limits<wide>::digits10; }
  static int digits() { return std::numeric_limits<wide>::digits; }
};

}  // namespace Eigen

#include <Eigen/Eigenvalues>

namespace deltaproof {
namespace {

template <class S>
using dense = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;

template <class S>
dense<S> to_eigen(const matrix<S>& a) {
  dense<S> result(static_cast<Eigen::Index>(a.rows()), static_cast<Eigen::Index>(a.cols()));
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t j = 0; j < a.cols(); ++j) result(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = a(i, j);
  }
  return result;
}

template <class S>
S not_a_number() {
  return std::numeric_limits<S>::quiet_NaN();
}

template <class S>
bool all_finite(std::span<const S> values) {
  using std::isfinite;
  return std::all_of(values.begin(), values.end(), [](const S& x) { return isfinite(x); });
}

/// Q^T A Q of a symmetric A, tridiagonal up to rounding. Eigen's own
/// reduction also accumulates Q, whose blocked products would triple the compile time of this file.
template <class S>
dense<S> tridiagonal(dense<S> a) {
  const Eigen::Index d = a.rows();
  Eigen::Matrix<S, Eigen::Dynamic, 1> workspace(d);
  for (Eigen::Index k = 0; k + 2 < d; ++k) {
    const Eigen::Index rest = d - k - 1;
    S tau;
    S beta;
    a.col(k).tail(rest).makeHouseholderInPlace(tau, beta);
    const Eigen::Matrix<S, Eigen::Dynamic, 1> essential = a.col(k).tail(rest - 1);
    a.col(k).tail(rest - 1).setZero();
    a(k + 1, k) = beta;
    a.bottomRightCorner(rest, rest).applyHouseholderOnTheLeft(essential, tau, workspace.data());
    a.rightCols(rest).applyHouseholderOnTheRight(essential, tau, workspace.data());
  }
  return a;
}

template <class S>
std::vector<S> symmetric(const matrix<S>& a) {
  const std::size_t d = a.rows();
  if (d != a.cols()) throw shape_error("symmetric_eigenvalues: the matrix is " + shape_text(a) + "; it must be square");
  if (d == 0) return {};
  bool finite = true;
  for (std::size_t i = 0; i < d; ++i) finite = finite && all_finite(a.row(i).first(i + 1));
  const std::vector<S> unknown(d, not_a_number<S>());
  if (!finite) return unknown;
  dense<S> full = to_eigen(a);
  full.template triangularView<Eigen::StrictlyUpper>() = full.transpose();
  const dense<S> reduced = tridiagonal(std::move(full));
  Eigen::SelfAdjointEigenSolver<dense<S>> solver(static_cast<Eigen::Index>(d));
  solver.computeFromTridiagonal(reduced.diagonal(), reduced.diagonal(-1), Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return unknown;
  return {solver.eigenvalues().data(), solver.eigenvalues().data() + d};
}

/// The eigenvalues of [0 A; A^T 0] are the singular values of A, their negatives, and zeros.
template <class S>
std::vector<S> singular(const matrix<S>& a) {
  using std::abs;
  using std::ilogb;
  using std::ldexp;
  S largest = 0;
  for (const S& x : a.entries()) largest = abs(x) > largest ? S(abs(x)) : largest;
  const bool scaled = largest > S(0) && largest <= (std::numeric_limits<S>::max)();
  const S scale = scaled ? S(ldexp(S(1), static_cast<int>(ilogb(largest)))) : S(1);  // squares neither overflow nor vanish
  const std::size_t side = a.rows() + a.cols();
  matrix<S> both(side, side);
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t j = 0; j < a.cols(); ++j) both(a.rows() + j, i) = a(i, j) / scale;
  }
  std::vector<S> values = symmetric(both);
  std::reverse(values.begin(), values.end());
  values.resize(std::min(a.rows(), a.cols()));
  for (S& x : values) x = x < S(0) ? S(0) : S(x * scale);  // below 0 by rounding
  return values;
}

template <class S>
S norm(const matrix<S>& a) {
  const auto values = singular(a);
  return values.empty() ? S(0) : values.front();
}

}  // namespace

std::vector<double> symmetric_eigenvalues(const matrix<double>& a) { return symmetric(a); }
std::vector<wide> symmetric_eigenvalues(const matrix<wide>& a) { return symmetric(a); }
std::vector<double> singular_values(const matrix<double>& a) { return singular(a); }
std::vector<wide> singular_values(const matrix<wide>& a) { return singular(a); }
double spectral_norm(const matrix<double>& a) { return norm(a); }
wide spectral_norm(const matrix<wide>& a) { return norm(a); }

}  // namespace deltaproof
