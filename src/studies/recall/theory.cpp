// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/recall/theory.hpp"

#include <algorithm>

namespace deltaproof::detail::recall {
namespace {

/// r^n and (1/T) sum of r^t over t = first ... first + T - 1, r = 1 - 1/d.
struct geometric {
  double power = 1;
  double mean = 0;
};
geometric powers(std::size_t key_dim, std::size_t first, std::size_t tokens) {
  const double r = 1 - 1 / static_cast<double>(key_dim);
  geometric g;
  for (std::size_t t = 0; t < first; ++t) g.power *= r;
  for (std::size_t t = 0; t < tokens; ++t) {
    if (t > 0) g.power *= r;
    g.mean += g.power / static_cast<double>(tokens);
  }
  return g;
}

}  // namespace

expectation hebbian_apart(const moments& m, std::size_t key_dim, std::size_t tokens) {
  const auto d = static_cast<double>(key_dim);
  const auto t = static_cast<double>(tokens);
  const double mu = m.with_key * m.with_key / d;
  return {m.square * (1 + t / d) + t * (t - 1) * mu, m.square * (1 + (t + 1) / (2 * d)) + (t * t - 1) / 3 * mu};
}

expectation delta_apart(const moments& m, std::size_t key_dim, std::size_t tokens) {
  const geometric g = powers(key_dim, 1, tokens);
  return {m.square * (2 - g.power), m.square * (2 - g.mean)};
}

expectation delta_own_before(const moments& m, std::size_t key_dim, std::size_t tokens) {
  const geometric g = powers(key_dim, 0, tokens);
  const double linear = 2 * static_cast<double>(key_dim) * m.with_key * m.with_key;
  return {m.square * (2 - g.power) - linear * (1 - g.power), m.square * (2 - g.mean) - linear * (1 - g.mean)};
}

expectation identity_least_squares_apart(std::size_t key_dim, std::size_t tokens) {
  const auto d = static_cast<double>(key_dim);
  double mean = 0;
  for (std::size_t t = 1; t <= tokens; ++t) mean += std::min(static_cast<double>(t) / d, 1.0) / static_cast<double>(tokens);
  return {(1 + std::min(static_cast<double>(tokens) / d, 1.0)) / d, (1 + mean) / d};
}

double delta_own_before_limit(const moments& m, std::size_t key_dim, double beta) {
  return 2 * (m.square - static_cast<double>(key_dim) * m.with_key * m.with_key) / (2 - beta);
}

}  // namespace deltaproof::detail::recall
