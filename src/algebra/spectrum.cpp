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
#include <Eigen/SVD>

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

template <class S>
void require_square(const matrix<S>& a, const char* who) {
  if (a.rows() != a.cols()) throw shape_error(std::string(who) + ": the matrix is " + shape_text(a) + "; it must be square");
}

/// Q^T A Q with zeros below the first subdiagonal; tridiagonal up to rounding where A is symmetric. Eigen's own
/// reduction also accumulates Q, whose blocked products would triple the compile time of this file.
template <class S>
dense<S> hessenberg(dense<S> a) {
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

/// Both eigenvalues of the 2 x 2 diagonal block at (i, i) of a real Schur form.
template <class S>
std::pair<eigenvalue<S>, eigenvalue<S>> block_eigenvalues(const dense<S>& t, Eigen::Index i) {
  using std::abs;
  using std::max;
  using std::sqrt;
  const S half_difference = (t(i, i) - t(i + 1, i + 1)) / S(2);
  const S upper = t(i, i + 1);
  const S lower = t(i + 1, i);
  const S centre = t(i + 1, i + 1) + half_difference;
  const S largest = max(abs(half_difference), max(abs(upper), abs(lower)));
  const S p = half_difference / largest;
  const S discriminant = p * p + (upper / largest) * (lower / largest);
  const S root = largest * sqrt(abs(discriminant));
  if (discriminant < S(0)) return {{centre, root}, {centre, -root}};
  return {{centre + root, S(0)}, {centre - root, S(0)}};
}

template <class S>
std::vector<eigenvalue<S>> general(const matrix<S>& a) {
  using std::isfinite;
  require_square(a, "eigenvalues");
  const std::size_t d = a.rows();
  if (d == 0) return {};
  const std::vector<eigenvalue<S>> unknown(d, {not_a_number<S>(), not_a_number<S>()});
  if (!all_finite(a.entries())) return unknown;
  Eigen::RealSchur<dense<S>> schur(static_cast<Eigen::Index>(d));
  schur.computeFromHessenberg(hessenberg(to_eigen(a)), dense<S>(), false);
  if (schur.info() != Eigen::Success) return unknown;
  const dense<S>& t = schur.matrixT();
  std::vector<eigenvalue<S>> result;
  result.reserve(d);
  for (Eigen::Index i = 0; i < t.rows(); ++i) {
    if (i + 1 < t.rows() && t(i + 1, i) != S(0)) {
      const auto [first, second] = block_eigenvalues<S>(t, i++);
      result.push_back(first);
      result.push_back(second);
    } else {
      result.push_back({t(i, i), S(0)});
    }
  }
  for (const eigenvalue<S>& value : result) {
    if (!isfinite(value.re) || !isfinite(value.im)) return unknown;  // entries near overflow
  }
  std::sort(result.begin(), result.end(), [](const eigenvalue<S>& x, const eigenvalue<S>& y) {
    const S left = x.re * x.re + x.im * x.im;
    const S right = y.re * y.re + y.im * y.im;
    if (left != right) return left > right;
    if (x.re != y.re) return x.re > y.re;
    return x.im > y.im;
  });
  return result;
}

template <class S>
std::vector<S> symmetric(const matrix<S>& a) {
  require_square(a, "symmetric_eigenvalues");
  const std::size_t d = a.rows();
  if (d == 0) return {};
  bool finite = true;
  for (std::size_t i = 0; i < d; ++i) finite = finite && all_finite(a.row(i).first(i + 1));
  const std::vector<S> unknown(d, not_a_number<S>());
  if (!finite) return unknown;
  dense<S> full = to_eigen(a);
  full.template triangularView<Eigen::StrictlyUpper>() = full.transpose();
  const dense<S> reduced = hessenberg(std::move(full));
  Eigen::SelfAdjointEigenSolver<dense<S>> solver(static_cast<Eigen::Index>(d));
  solver.computeFromTridiagonal(reduced.diagonal(), reduced.diagonal(-1), Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return unknown;
  return {solver.eigenvalues().data(), solver.eigenvalues().data() + d};
}

template <class S>
std::vector<S> singular(const matrix<S>& a) {
  const std::size_t count = std::min(a.rows(), a.cols());
  if (count == 0) return {};
  if (!all_finite(a.entries())) return std::vector<S>(count, not_a_number<S>());
  // Zero rows or columns make it square and add zeros to the end of the spectrum.
  const auto side = static_cast<Eigen::Index>(std::max(a.rows(), a.cols()));
  dense<S> square = dense<S>::Zero(side, side);
  square.topLeftCorner(static_cast<Eigen::Index>(a.rows()), static_cast<Eigen::Index>(a.cols())) = to_eigen(a);
  const Eigen::JacobiSVD<dense<S>, Eigen::NoQRPreconditioner> svd(square);
  return {svd.singularValues().data(), svd.singularValues().data() + count};
}

template <class S>
S norm(const matrix<S>& a) {
  const auto values = singular(a);
  return values.empty() ? S(0) : values.front();
}

}  // namespace

std::vector<eigenvalue<double>> eigenvalues(const matrix<double>& a) { return general(a); }
std::vector<eigenvalue<wide>> eigenvalues(const matrix<wide>& a) { return general(a); }
std::vector<double> symmetric_eigenvalues(const matrix<double>& a) { return symmetric(a); }
std::vector<wide> symmetric_eigenvalues(const matrix<wide>& a) { return symmetric(a); }
std::vector<double> singular_values(const matrix<double>& a) { return singular(a); }
std::vector<wide> singular_values(const matrix<wide>& a) { return singular(a); }
double spectral_norm(const matrix<double>& a) { return norm(a); }
wide spectral_norm(const matrix<wide>& a) { return norm(a); }

}  // namespace deltaproof
