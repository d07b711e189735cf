// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/hippo/discretise.hpp"

#include <cmath>
#include <limits>

#include "deltaproof/algebra/spectrum.hpp"

namespace deltaproof::detail::hippo {
namespace {

template <class S>
matrix<S> difference(const matrix<S>& a, const matrix<S>& b) {
  matrix<S> result = a;
  for (std::size_t i = 0; i < result.size(); ++i) result.data()[i] = result.data()[i] - b.data()[i];
  return result;
}

/// Of two wide matrices in the 1-norm; of one rounded to nothing but a double.
double relative(const matrix<wide>& computed, const matrix<wide>& truth) {
  return round_to<double>(wide(norm_1(difference(computed, truth)) / norm_1(truth)));
}

/// Over real<128>, whose bits do not depend on the machine, as those of a vectorised decomposition in double might.
double norm_2(const matrix<wide>& m) {
  matrix<real<128>> rounded_once(m.rows(), m.cols());
  for (std::size_t i = 0; i < m.size(); ++i) rounded_once.data()[i] = round_to<real<128>>(m.data()[i]);
  return round_to<double>(spectral_norm(rounded_once));
}

template <class S>
matrix<S> euler_step(const matrix<S>& a, const S& t) {
  return sum(identity<S>(a.rows()), scaled(a, t));
}

double relative_radius(const bound_number& error, const matrix<wide>& m) {
  return round_to<double>(bound_number(error / round_to<bound_number>(norm_1(m))));
}

}  // namespace

template <class S>
matrix<S> bilinear(const matrix<S>& a, const S& t) {
  const S half = t / from_int<S>(2);
  const matrix<S> one = identity<S>(a.rows());
  return factored<S>(sum(one, scaled(a, S(-half)))).solve(sum(one, scaled(a, half)));
}
template matrix<double> bilinear(const matrix<double>&, const double&);
template matrix<wide> bilinear(const matrix<wide>&, const wide&);

std::string_view name_of(kind which) {
  switch (which) {
    case kind::legs:
      return "HiPPO-LegS";
    case kind::rank_one:
      return "−k kᵀ";
    case kind::nilpotent:
      return "nilpotent";
    case kind::singular:
      return "singular";
    case kind::defective:
      return "defective";
  }
  return "";
}

matrix<double> make(kind which, std::size_t n) {
  matrix<double> a(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const auto row = static_cast<double>(i);
      const auto col = static_cast<double>(j);
      switch (which) {
        case kind::legs:
          a(i, j) = i > j ? -std::sqrt((2 * row + 1) * (2 * col + 1)) : i == j ? -(row + 1) : 0;
          break;
        case kind::rank_one: {
          // Multiples of 1/4: the products are exact.
          const auto k = [](std::size_t m) { return (static_cast<double>(m * m % 7) - 3) / 4; };
          a(i, j) = -k(i) * k(j);
          break;
        }
        case kind::nilpotent:
          a(i, j) = i == j + 1 ? 1 : 0;
          break;
        case kind::singular:
          a(i, j) = i == j ? (i == 0 || i + 1 == n ? -1 : -2) : i == j + 1 || j == i + 1 ? 1 : 0;
          break;
        case kind::defective:
          a(i, j) = i == j ? -1 : i == j + 1 ? 1 : 0;
          break;
      }
    }
  }
  return a;
}

std::vector<double> input_of(kind which, std::size_t n) {
  std::vector<double> b(n);
  for (std::size_t i = 0; i < n; ++i)
    b[i] = which == kind::legs ? std::sqrt(2 * static_cast<double>(i) + 1) : static_cast<double>(i % 3 + 1);
  return b;
}

matrix<wide> lifted(const matrix<double>& m) {
  matrix<wide> result(m.rows(), m.cols());
  for (std::size_t i = 0; i < m.size(); ++i) result.data()[i] = lift<wide>(m.data()[i]);
  return result;
}

comparison compare(kind which, std::size_t n, int exponent, bool with_norms) {
  comparison c;
  c.of = which;
  c.step = detail::power_of_two(exponent);
  const matrix<double> a = make(which, n);
  c.length = c.step * norm_1(a);
  const matrix<wide> exact_a = lifted(a);
  const wide t = lift<wide>(c.step);
  const auto truth = exponentials_of(scaled(exact_a, t));
  c.truth_radius = std::max(relative_radius(truth.exp_error, truth.exp), relative_radius(truth.phi_error, truth.phi));

  const matrix<wide> by_bilinear = bilinear(exact_a, t);
  const matrix<wide> by_euler = euler_step(exact_a, t);
  c.bilinear_error = relative(by_bilinear, truth.exp);
  c.euler_error = relative(by_euler, truth.exp);
  // Input: phi_1(tA) B against (I - tA/2)^-1 B; the factor t is common.
  const std::vector<double> b = input_of(which, n);
  matrix<wide> input(n, 1);
  for (std::size_t i = 0; i < n; ++i) input(i, 0) = lift<wide>(b[i]);
  const matrix<wide> solved = factored<wide>(sum(identity<wide>(n), scaled(exact_a, wide(-t / 2)))).solve(input);
  c.bilinear_input_error = relative(solved, product(truth.phi, input));

  const auto in_double = exponentials_of(scaled(a, c.step));
  c.double_error = relative(lifted(in_double.exp), truth.exp);
  c.double_phi_error = relative(lifted(in_double.phi), truth.phi);
  try {
    const matrix<double> minus_one = difference(in_double.exp, identity<double>(n));
    const matrix<double> by_inverse = scaled(factored<double>(a).solve(minus_one), 1 / c.step);
    c.inverse_error = relative(lifted(by_inverse), truth.phi);
  } catch (const domain_error&) {
    c.inverse_error = std::numeric_limits<double>::quiet_NaN();
  }
  if (with_norms) {
    c.exact_norm = norm_2(truth.exp);
    c.bilinear_norm = norm_2(by_bilinear);
    c.euler_norm = norm_2(by_euler);
  }
  return c;
}

rank_one_error check_rank_one(const std::vector<double>& x, const std::vector<double>& y) {
  const std::size_t n = x.size();
  matrix<wide> m(n, n);
  wide s = 0;
  for (std::size_t i = 0; i < n; ++i) {
    s = s + lift<wide>(x[i]) * lift<wide>(y[i]);
    for (std::size_t j = 0; j < n; ++j) m(i, j) = lift<wide>(x[i]) * lift<wide>(y[j]);
  }
  const auto truth = exponentials_of(m);
  // (e^s - 1)/s and (phi_1(s) - 1)/s, at s = 0 the derivatives 1 and 1/2.
  const wide first = s == 0 ? wide(1) : wide(expm1(s) / s);
  const wide second = s == 0 ? wide(wide(1) / 2) : wide((first - 1) / s);
  rank_one_error result;
  result.product = round_to<double>(s);
  result.exp = relative(sum(identity<wide>(n), scaled(m, first)), truth.exp);
  result.phi = relative(sum(identity<wide>(n), scaled(m, second)), truth.phi);
  result.radius = std::max(relative_radius(truth.exp_error, truth.exp), relative_radius(truth.phi_error, truth.phi));
  return result;
}

clocked compare_clocked(std::size_t n, std::size_t token) {
  const matrix<wide> a = lifted(make(kind::legs, n));
  const wide t(static_cast<unsigned>(token));
  const auto truth = exponentials_of(scaled(a, wide(log(wide(t / (t - 1))))));
  const wide step = 1 / t;
  clocked c;
  c.token = token;
  c.bilinear_error = relative(bilinear(a, step), truth.exp);
  c.euler_error = relative(euler_step(a, step), truth.exp);
  return c;
}

}  // namespace deltaproof::detail::hippo
