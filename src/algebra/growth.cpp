// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/algebra/growth.hpp"

#include <algorithm>

#include "deltaproof/number/random.hpp"

namespace deltaproof {
namespace {

// The median, nearly, of the largest |z| of n standard normal numbers: n = 1 gives their quartile.
double largest_normal(double n) { return standard_normal_quantile(1 - 1 / (4 * n)); }

// About the largest |entry| of the power p of a strictly lower triangular block.
double estimate_power(std::size_t rows, std::size_t power, const entry_statistics& entries) {
  double largest = 0;
  for (std::size_t n = power; n < rows; ++n) {
    // mean^p C(n-1, p-1) and spread^p sqrt(C(n-1, p-1)), factor by factor: the binomial alone may overflow.
    double mean = std::fabs(entries.mean);
    double noise = entries.spread;
    for (std::size_t i = 1; i < power; ++i) {
      const double ratio = static_cast<double>(n - i) / static_cast<double>(i);
      mean *= std::fabs(entries.mean) * ratio;
      noise *= entries.spread * std::sqrt(ratio);
    }
    // Pairs of paths through different keys at s of the p - 1 places: C(p-1, s)^2 N / C(n-1, p-1-s) of them a path.
    double pairs = 1;
    double term = 1;
    for (std::size_t s = 0; s + 1 < power && term > 0; ++s) {
      term *= entries.overlap * static_cast<double>(power - 1 - s) * static_cast<double>(n + 1 + s - power) /
              static_cast<double>((s + 1) * (s + 1));
      pairs += term;
    }
    noise *= std::sqrt(pairs);
    const auto left = static_cast<double>(rows - n);  // diagonals from here to the corner
    largest = std::max(largest, mean + noise * largest_normal(left * (left + 1) / 2));
  }
  return largest;
}

}  // namespace

entry_statistics entries_of_keys(double correlation, std::size_t key_dim, double beta_mean, double beta_mean_square) {
  const auto dim = static_cast<double>(std::max<std::size_t>(key_dim, 1));
  const double noise = 1 - std::fabs(correlation);
  const double from_keys = beta_mean_square * noise * noise / dim;
  const double mean = beta_mean * correlation;
  const double variance = std::max(0.0, from_keys + beta_mean_square * correlation * correlation - mean * mean);
  if (!(variance > 0)) return {mean, 0, 0};
  return {mean, std::sqrt(variance), from_keys / variance * (beta_mean * beta_mean / beta_mean_square) / dim};
}

growth estimate_growth(const inverse_method& method, std::size_t chunk, const entry_statistics& entries) {
  matrix<double> means(chunk, chunk);
  for (std::size_t i = 0; i < chunk; ++i) {
    for (std::size_t j = 0; j < i; ++j) means(i, j) = entries.mean;
  }
  largest_intermediate seen;
  const auto result = run_inverse<plain<double>>(method, means, seen);
  seen("result", result);
  growth found = seen.found();
  const bool sums_powers = method.diagonal == diagonal_kind::neumann;
  const std::size_t rows = sums_powers && method.block != 0 ? std::min(method.block, chunk) : chunk;
  for (std::size_t power = 1; power < (sums_powers ? rows : std::min<std::size_t>(rows, 2)); power *= 2) {
    const double largest = estimate_power(rows, power, entries);
    if (largest > found.largest) found = {largest, sums_powers ? "power" : "result"};
  }
  return found;
}

}  // namespace deltaproof
