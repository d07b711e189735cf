// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "deltaproof/algebra/spectrum.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/scan/transition.hpp"
#include "studies/eigenvalues/parts.hpp"

namespace deltaproof::detail::eigenvalues {
namespace {

using wide = real<128>;

/// To three significant digits: decompositions differ in their last bits between compilers.
double three_digits(double x) { return std::strtod(number(x, 3).c_str(), nullptr); }

template <class S, format F>
matrix<S> lifted(const matrix<rounded<F>>& m) {
  matrix<S> result(m.rows(), m.cols());
  for (std::size_t i = 0; i < m.size(); ++i) result.data()[i] = lift<S>(m.data()[i]);
  return result;
}

/// |M| - 1 for a symmetric M: its largest |eigenvalue|.
template <class S>
S excess_over_one(const matrix<S>& m) {
  const std::vector<S> values = symmetric_eigenvalues(m);
  const S bottom = -values.front();
  const S top = values.back();
  return (bottom > top ? bottom : top) - 1;
}

/// A 2 x 2 principal part (1 c; c m) with c != 0 has an eigenvalue above 1, and so has M (interlacing).
template <format F>
bool has_expansive_row(const matrix<rounded<F>>& m) {
  for (std::size_t i = 0; i < m.rows(); ++i) {
    if (m(i, i).value() < 1) continue;
    for (std::size_t j = 0; j < m.cols(); ++j) {
      if (j != i && m(i, j).value() != 0) return true;
    }
  }
  return false;
}

/// fp64 needs more than double to show its own roundings.
template <format F>
constexpr bool needs_wide = F.precision > 40;
constexpr std::size_t wide_share = 10;

template <format F>
frame_row examine(std::span<const double> k, double beta, bool check) {
  const matrix<rounded<F>> m = materialised_transition<F>(k, beta);
  const rational n = exact_squared_norm(k);
  const double u = unit_roundoff(F);
  const rational lambda = 1 - exact(beta) * n;
  const double exact_excess = lambda < -1 ? to_double(-1 - lambda) / u : 0;
  double radius_excess = 0;
  cell disagreement;  // between double and real<128>, where looked at
  double noise = static_cast<double>(k.size()) * 0x1p-48;
  if constexpr (needs_wide<F>) {
    radius_excess = round_to<double>(excess_over_one(lifted<wide>(m)));
    noise = 0x1p-100;
  } else {
    radius_excess = excess_over_one(lifted<double>(m));
    if (check) {
      disagreement = std::fabs(radius_excess - round_to<double>(excess_over_one(lifted<wide>(m))));
    }
  }
  return {to_double(n - 1) / u,
          three_digits(radius_excess / u),
          three_digits(radius_excess / u - exact_excess),
          radius_excess > noise,
          has_expansive_row(m),
          disagreement};
}

template <format F>
std::vector<frame_row> rows_of(const run_options& options, std::size_t dim, double beta, std::size_t keys) {
  std::vector<frame_row> rows;
  for (std::size_t i = 0; i < (needs_wide<F> ? std::max<std::size_t>(1, keys / wide_share) : keys); ++i) {
    rows.push_back(examine<F>(unit_key(deltaproof::name_of(F), options.seed, dim, i), beta, i == 0));
  }
  return rows;
}

}  // namespace

frame survey_transitions(const run_options& options, std::size_t keys) {
  const auto rows = [&](const format& wanted, std::size_t dim, double beta) {
    std::vector<frame_row> result;
    for_each_format([&](auto tag, std::size_t) {
      if (decltype(tag)::value == wanted) result = rows_of<decltype(tag)::value>(options, dim, beta, keys);
    });
    return result;
  };
  return grid(options, "materialised transitions",
              {"norm_excess", "radius_excess", "added", "expansive", "proved", "disagreement"}, rows, all_formats(),
              grid_axis<std::size_t>{"dim", {16, 64}}, grid_axis<double>{"beta", {0.5, 1, 2}});
}

}  // namespace deltaproof::detail::eigenvalues
