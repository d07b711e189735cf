// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The matrices A of x' = A x + B that the study of discretisations goes over, and what takes them to a step of the exact rule, of
// the bilinear one and of Euler's. Entries are doubles, so that every precision gets the same matrix.
#pragma once

#include "deltaproof/algebra/matrix.hpp"
#include "studies/hippo/factored.hpp"
#include "studies/shared/common.hpp"
#include "studies/shared/exponential.hpp"

namespace deltaproof::detail::hippo {

inline constexpr int ruler_bits = 512;
using wide = real<ruler_bits>;

/// legs: HiPPO-LegS, -(sqrt((2i+1)(2j+1)) below the diagonal, i + 1 on it). rank_one: -k k^T. nilpotent: ones below the
/// diagonal's neighbour, all eigenvalues 0. singular: minus the Laplacian of a path, one eigenvalue 0. defective: one Jordan
/// block of -1.
enum class kind { legs, rank_one, nilpotent, singular, defective };
inline constexpr std::array<kind, 5> kinds{kind::legs, kind::rank_one, kind::nilpotent, kind::singular, kind::defective};
[[nodiscard]] inline std::string_view name_of(kind which) {
  constexpr std::array<std::string_view, 5> names{"legs", "rank_one", "nilpotent", "singular", "defective"};
  return names[static_cast<std::size_t>(which)];
}

[[nodiscard]] inline double entry(kind which, std::size_t n, std::size_t i, std::size_t j) {
  const auto row = static_cast<double>(i);
  const auto col = static_cast<double>(j);
  // Multiples of 1/4: the products are exact.
  const auto k = [](std::size_t m) { return (static_cast<double>(m * m % 7) - 3) / 4; };
  switch (which) {
    case kind::legs:
      return i > j ? -std::sqrt((2 * row + 1) * (2 * col + 1)) : i == j ? -(row + 1) : 0;
    case kind::rank_one:
      return -k(i) * k(j);
    case kind::nilpotent:
      return i == j + 1 ? 1 : 0;
    case kind::singular:
      return i == j ? (i == 0 || i + 1 == n ? -1 : -2) : i == j + 1 || j == i + 1 ? 1 : 0;
    case kind::defective:
      return i == j ? -1 : i == j + 1 ? 1 : 0;
  }
  return 0;
}

[[nodiscard]] inline matrix<double> make(kind which, std::size_t n) {
  matrix<double> a(n, n);
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = entry(which, n, i / n, i % n);
  return a;
}

[[nodiscard]] inline matrix<wide> lifted(const matrix<double>& m) {
  matrix<wide> result(m.rows(), m.cols());
  for (std::size_t i = 0; i < m.size(); ++i) result.data()[i] = lift<wide>(m.data()[i]);
  return result;
}

/// I + tA and (I - tA/2)^-1 (I + tA/2).
template <class S>
[[nodiscard]] matrix<S> euler_step(const matrix<S>& a, const S& t) {
  return shared::sum(identity<S>(a.rows()), shared::scaled(a, t));
}
template <class S>
[[nodiscard]] matrix<S> bilinear_step(const matrix<S>& a, const S& t) {
  const S half = t / from_int<S>(2);
  return factored<S>(euler_step(a, S(-half))).solve(euler_step(a, half));
}

}  // namespace deltaproof::detail::hippo
