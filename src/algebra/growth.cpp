// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/algebra/growth.hpp"

#include <algorithm>

namespace deltaproof {

entry_statistics entries_of_keys(double correlation, std::size_t key_dim, double beta_mean, double beta_mean_square) {
  const double noise = 1 - std::fabs(correlation);
  const double cosine_square = correlation * correlation + noise * noise / static_cast<double>(std::max<std::size_t>(key_dim, 1));
  const double mean = beta_mean * correlation;
  return {mean, std::sqrt(std::max(0.0, beta_mean_square * cosine_square - mean * mean))};
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
  const std::size_t rows = method.diagonal == diagonal_kind::neumann && method.block != 0 ? std::min(method.block, chunk) : chunk;
  if (rows < 2) return found;
  const auto length = static_cast<double>(rows);
  const double extreme = std::sqrt(4 * std::log(length));
  const std::size_t last_power = method.diagonal == diagonal_kind::neumann ? rows : 2;
  for (std::size_t power = 1; power < last_power; power *= 2) {
    const auto p = static_cast<double>(power);
    // log C(b - 2, p - 1): the entries themselves overflow long before their logarithms do.
    const double log_paths = std::lgamma(length - 1) - std::lgamma(p) - std::lgamma(length - p);
    const double mean = entries.mean == 0 ? 0 : std::exp(p * std::log(std::fabs(entries.mean)) + log_paths);
    const double noise = entries.spread == 0 ? 0 : extreme * std::exp(p * std::log(entries.spread) + log_paths / 2);
    if (mean + noise > found.largest) found = {mean + noise, power == 1 ? "operand" : "power"};
  }
  return found;
}

}  // namespace deltaproof
