// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "oracle/tiers/adjoint_factors.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/tiers/fp64_coefficients.hpp"

namespace deltaproof::tiers {
namespace {

constexpr double narrow = 0x1p-300;
constexpr double largest_given = 0x1p600;

bool in_range(double x) { return x == 0 || (x >= narrow && x <= 1 / narrow); }

/// gamma / u of a sum of n products: of doubles, or of pairs whose high parts are summed exactly.
double gamma_of(double n, bool pairs) {
  if (!pairs) return n / (1 - n * fp64_unit) * slack;
  return (n * n + 12 * n + 64) / 64 * (1 + n * 0x1p-48);
}

/// What a term of a sum over K channels meets: the roundings of its chunk, and those of the chunks.
double roundings_of(std::size_t K) {
  const std::size_t chunks = (K + sum_chunk - 1) / sum_chunk;
  return static_cast<double>(std::min(K, sum_chunk) + chunks);
}

/// A sum of squares and line N from it; NaN where the squares say nothing. A low part moves a number by 2^-52 of it at most.
struct size_of {
  double square = 0, norm = 0;
  size_of(const double* x, std::size_t n) {
    constexpr std::size_t lanes = 8;
    double sums[lanes] = {}, largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sums[i % lanes] += x[i] * x[i];
      largest = std::max(largest, std::fabs(x[i]));
    }
    for (const double sum : sums) square += sum;
    if (largest == 0) return;
    norm = std::sqrt(square * (1 + (static_cast<double>(n) + 24) * 0x1p-52)) * slack;
    if (square < narrow * narrow) norm = std::nan("");
  }
};

double largest_of(const std::vector<double>& x) {
  double out = 0;
  for (const double xi : x) {
    if (!(std::fabs(xi) <= out)) out = std::fabs(xi);
  }
  return out;
}

/// Lines R, W and S.
adjoint_step step_of(const double* k, std::size_t K, double b, const lowering_error& le, const adjoint_factors& all, bool pairs) {
  adjoint_step s;
  const size_of key(k, K);
  const double n = static_cast<double>(K), u = all.u, kappa = key.norm, beta = std::fabs(b) * (pairs ? 1 + 0x1p-52 : 1);
  const double beta_plus = (beta * (1 + le.step * u) + le.step_floor * u) * slack;
  const double gamma = gamma_of(roundings_of(K), pairs) + (pairs ? 1 : 0), c2 = 2 * (1 + 4 * u);
  s.acts = beta > 0 || le.step_floor > 0;
  s.key = kappa;
  s.key_power = power_above(kappa);
  s.step_plus = beta_plus;
  s.write_size = (c2 + le.step * (1 + c2 * u)) * slack;
  s.write_innovation = le.step_floor * (1 + u) * slack;
  if (kappa == 0) return s;
  s.key_plus = kappa * (1 + le.key * u) * slack;
  s.predicted = (gamma + le.key) * kappa * slack;
  s.write_norm = ((beta * gamma * (1 + le.step * u) + le.step_floor * gamma * u + beta_plus * le.key) * kappa) * slack;
  s.write_error = beta_plus * s.key_plus * slack;
  const double x = b * key.square;
  const double off = std::fabs(x) * ((n + 24) * 0x1p-52) + le.step_floor * u * s.key_plus * s.key_plus + 0x1p-1000;
  s.rho = std::max(1.0, (std::fabs(1 - x) + off) * slack);
  s.from_norm = (s.key_plus * s.write_norm + 1) * slack;
  s.from_write = (s.key_plus * s.write_size + (le.key + 2) * kappa) * slack;
  s.from_innovation = s.key_plus * s.write_innovation * slack;
  const double growth = (1 + (2 * gamma + 16) * u) * slack;
  s.norm_growth = s.rho * growth * slack;
  s.norm_of_value = kappa * beta * growth * slack;
  s.under = all.under * (1 + s.key_plus) * (1 + beta_plus);
  return s;
}

}  // namespace

double power_above(double x) {
  int exponent = 0;
  if (x == 0) return 0;
  static_cast<void>(std::frexp(x * slack, &exponent));
  return std::ldexp(1.0, exponent);
}

adjoint_factors factors_of_adjoint(const double_double_head& in, const column_cotangents& with, bool pairs, std::size_t lanes) {
  const auto& s = in.high.scan;
  const std::size_t K = s.key_dim;
  adjoint_factors out;
  lowering_error le = in.high.error;
  out.u = pairs ? adjoint_pair_unit : fp64_unit;
  out.under = pairs ? 0x1p-950 : underflow;
  if (pairs) {
    le = in.error;
    constexpr double unit = pair_unit / adjoint_pair_unit;  // a power of two
    for (double* e : {&le.key, &le.query, &le.step, &le.decay, &le.step_floor, &le.decay_floor}) *e *= unit;
  }
  // Of pairs both products of each vector of a block, its lanes, the blocks; of doubles those of all blocks, their lanes.
  const std::size_t width = pairs ? 8 : lanes, blocks = (s.value_dim + width - 1) / width;
  const double sums = pairs ? static_cast<double>(blocks) + 16 : static_cast<double>(2 * (blocks + 3) + lanes + 2);
  const bool per_channel = s.decay.size() != s.tokens;
  out.grid = {static_cast<double>(K), std::sqrt(static_cast<double>(K)) / 16 * slack};
  out.column_sum = gamma_of(sums, pairs);
  out.gate_sum = gamma_of(per_channel ? sums : sums + roundings_of(K), pairs);
  out.decay_local = (le.decay / (1 - out.u) + 1) * slack;
  out.decay_floor = le.decay_floor;
  out.outer = 3 + 2 * le.query;
  out.fits = !in.underflowed && K < 4096 && s.value_dim < 65536 && largest_of(s.v) <= largest_given &&
             largest_of(with.o) <= largest_given && largest_of(with.o_size) <= largest_given;
  for (std::size_t row = 0; row < s.rows(); ++row) {
    out.steps.push_back(step_of(s.k.data() + row * K, K, s.step[row], le, out, pairs));
    out.fits = out.fits && in_range(out.steps.back().key) && in_range(std::fabs(s.step[row]));
  }
  for (std::size_t t = 0; t < s.tokens; ++t) {
    adjoint_token token;
    token.query = size_of(s.q.data() + t * K, K).norm;
    out.fits = out.fits && in_range(token.query);
    if (!s.decay.empty()) {
      const std::size_t count = per_channel ? K : 1;
      double largest = 0;
      for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(s.decay[t * count + i]));
      if (pairs) largest *= 1 + 0x1p-52;
      out.fits = out.fits && largest <= 1 / narrow;
      token.decay_largest = largest;
      token.decay_factor = (largest * (1 + le.decay * out.u) + le.decay_floor * out.u) * slack;
    }
    out.tokens.push_back(token);
  }
  return out;
}

}  // namespace deltaproof::tiers
