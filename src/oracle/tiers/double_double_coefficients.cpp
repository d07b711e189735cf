// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/tiers/double_double_rows.hpp"

namespace deltaproof::tiers {

namespace {

/// Line N.
double norm_bound(const double* x, std::size_t n, bool& fits) {
  double sum = 0;
  bool zero = true;
  for (std::size_t i = 0; i < n; ++i) {
    sum += x[i] * x[i];
    zero = zero && x[i] == 0;
  }
  if (zero) return 0;
  const double size = static_cast<double>(n);
  const double norm = std::sqrt(sum * (1 + (size + 8) * 0x1p-52) + size * 0x1p-1074) * (1 + 0x1p-46);
  fits = fits && norm >= 0x1p-300 && norm <= 0x1p300;
  return norm;
}

/// u times it bounds the rounding of a number that is at most x: the largest power of two below x.
double half_ulp(double x) {
  if (x <= 0) return 0;
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5 ? std::ldexp(1.0, exponent - 2) : std::ldexp(1.0, exponent - 1);
}

double power_of_two_above(double x) {
  int exponent = 0;
  return x == 0 ? 1 : std::frexp(x, &exponent) == 0.5 ? x : std::ldexp(1.0, exponent);
}

}  // namespace

void coefficients_of_steps(const double_double_head& in, std::size_t from, std::size_t to, double_double_coefficients& c,
                           bool begins) {
  const auto& s = in.high.scan;
  const lowering_error& le = in.error;
  const double n = static_cast<double>(s.key_dim), root = std::sqrt(n) * (1 + 0x1p-46);
  const bool low = !in.q_low.empty() || !in.k_low.empty() || !in.step_low.empty();
  const double kl = low ? 1 : 0, unit = pair_unit;
  const std::size_t token = from / s.steps_per_token, K = s.key_dim;
  const std::size_t channels = s.decay.empty() ? 0 : s.decay.size() == s.tokens ? 1 : K;
  c.fits = true;
  c.largest_write = 0;
  const double dl = in.decay_low.empty() ? 0 : 1;
  // Line P4: |low part| <= ell grids.
  begins = begins && from == 0;
  double ell = begins ? 0.5 : 0.625;
  const auto decay = [&](std::size_t t) {
    double largest = 0;
    bool inexact = false;  // a factor of at least a quarter leaves nothing to round first
    for (std::size_t j = 0; j < channels; ++j) {
      const double size = std::fabs(s.decay[t * channels + j]);
      largest = std::max(largest, size);
      inexact = inexact || (size != 0 && size < 0.25);
    }
    const std::size_t i = t - token;
    c.decay_largest[i] = largest;
    c.decay_factor[i] = (largest * (1 + le.decay * unit) + le.decay_floor * unit) * (1 + 0x1p-46);
    // Line P3.
    const double kept = (largest * ell + 0.5) * pair_slack;
    const double third = half_ulp((kept + 0.25 * largest) * pair_slack);
    const double rounded = (inexact ? 0.25 : 0) + half_ulp(kept) + dl * (third + largest * ell);
    c.decay_window[i] = (4 * root * rounded + le.decay * largest + le.decay_floor + 0x1p-480) * pair_slack;
    ell = (kept + dl * 0.25 * largest) * pair_slack;
    c.fits = c.fits && largest < 0x1p300;
  };
  // Line P1, in units of u g: the error of a product with a vector of norm x in the window x_scale.
  const auto rest_of = [&](double x, double x_scale) {
    return x * root * ell + n * x_scale / 2 + kl * std::min(x / 4, n * x_scale / 8);
  };
  const auto product = [&](double x, double x_scale, const double* entries) {
    double inexact = 0;  // entries of at least a quarter of the scale leave nothing to round first
    for (std::size_t j = 0; j < K; ++j) inexact += std::fabs(entries[j]) < 0.25 * x_scale ? 1 : 0;
    const double outer = std::min(n * x_scale * half_ulp(ell + 0.5), x * root * ell + n * x_scale / 2);
    const double left_out = std::min(x * root, n * x_scale / 2) * ell;
    const double low_part = std::min(n * x_scale * half_ulp((ell + 0.625) * pair_slack), rest_of(x, x_scale)) + left_out;
    return (inexact * x_scale / 4 + outer + kl * low_part + (n - 1) * half_ulp(rest_of(x, x_scale) * pair_slack)) * pair_slack;
  };
  if (begins && channels > 0) decay(0);
  for (std::size_t row = from; row < to; ++row) {
    const std::size_t i = row - from, t = row / s.steps_per_token;
    const double kappa = norm_bound(s.k.data() + row * K, K, c.fits);
    const double kappa_plus = kappa * (1 + 0x1p-52) * (1 + le.key * unit) * (1 + 0x1p-46);
    c.norm[i] = kappa;
    c.scale[i] = power_of_two_above(kappa);
    c.step[i] = kappa == 0 ? 0 : s.step[row];
    c.step_low[i] = kappa == 0 || in.step_low.empty() ? 0 : in.step_low[row];
    c.half_square[i] = 0.5 * kappa_plus * kappa_plus * (1 + 0x1p-46);
    const double beta = std::fabs(c.step[i]) * (1 + 0x1p-52);
    if (beta != 0) c.fits = c.fits && beta >= 0x1p-300 && beta <= 0x1p300;
    const double beta_plus = (beta * (1 + le.step * unit) + le.step_floor * unit) * (1 + 0x1p-46);
    c.largest_write = std::max(c.largest_write, beta * kappa);
    // Line R.
    double square = 0;
    for (std::size_t j = 0; j < K; ++j) square += s.k[row * K + j] * s.k[row * K + j];
    const double x = c.step[i] * square;
    const double off = std::fabs(x) * (n + 20) * 0x1p-52 + le.step_floor * unit * kappa_plus * kappa_plus + 0x1p-1000;
    c.rho[i] = std::max(1.0, (std::fabs(1 - x) + off) * (1 + 0x1p-46));
    if (kappa == 0) {
      c.rho[i] = 1;
      c.from_window[i] = c.from_write[i] = c.from_value[i] = 0;
    } else {
      // Lines P1, P5 and P2.
      const double rest = rest_of(kappa, c.scale[i]);
      const double rounded = beta == 0 ? rest : half_ulp((rest + 0.5 / (beta * kappa) + rest * 0x1p-52) * pair_slack);
      const double dots = product(kappa, c.scale[i], s.k.data() + row * K) + std::min(rest, rounded);
      const double write = kappa_plus * (4 * beta * dots + kappa * le.step_floor + beta_plus * le.key * kappa);
      ell = (ell + 1 + 0.25 * kl) * pair_slack;
      const double state = 4 * root * (0.75 + 0.75 * kl + half_ulp(ell)) + kl * std::min(root, 2.0);
      c.from_window[i] = (write + state + 0x1p-480 * (1 + kappa_plus) * (1 + beta_plus)) * pair_slack;
      c.from_write[i] = (kappa_plus * ((rounded <= rest ? 2 : 3) + 3 * kl + le.step) + kappa * le.key) * pair_slack;
      c.from_value[i] = kappa_plus * le.step_floor * pair_slack;
    }
    if (row % s.steps_per_token == s.steps_per_token - 1) {
      const double chi = norm_bound(s.q.data() + t * K, K, c.fits);
      c.query[t - token] = chi * (1 + 0x1p-52) * (1 + le.query * unit) * (1 + 0x1p-46);
      c.query_scale[t - token] = power_of_two_above(chi);
      c.read[t - token] =
          (4 * product(chi, c.query_scale[t - token], s.q.data() + t * K) + le.query * chi + 0x1p-480 * (1 + chi)) * pair_slack;
      if (chi == 0) c.read[t - token] = 0;
      if (channels > 0 && t + 1 < s.tokens) decay(t + 1);
    }
  }
  c.fits = c.fits && root * ell < 0x1p25 && n < 0x1p20;
}

}  // namespace deltaproof::tiers
