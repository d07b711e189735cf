// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What values from outside do to the state when every eigenvalue lies in [-1, 1]. For unit keys and b = 1 - R one step is
// S <- S + b (v - S k) k^T, and everything below depends on one number, G = (1 - R)/(1 + R): beta/(2 - beta) for Euler, x/2
// for Crank-Nicolson, tanh(x/2) for the exact flow.
#pragma once

#include "deltaproof/scan/recurrent.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::discretisation {

/// G = (1 - R)/(1 + R), the most that one step with a value of length 1 and a key of length 1 adds to |S|^2.
[[nodiscard]] constexpr double energy_gain(double r) { return (1 - r) / (1 + r); }

/// b/(1 - |R|), b = 1 - R: the largest |S k| that values of length at most 1 reach with one key repeated.
[[nodiscard]] constexpr double repeated_gain(double r) { return (1 - r) / (1 - (r < 0 ? -r : r)); }

struct mean_square {
  double mean = 0;
  double standard_error = 0;
  std::size_t n = 0;
};

enum stream : std::uint64_t { of_fresh_keys = 0x6469736300000000U, of_random_values = 0x6469736400000000U };

inline double square(const recurrence<double>& machine) { return shared::squared_norm(machine.state().entries()); }

/// A run from S = 0 with unit keys of fresh Gaussian directions: `value(random)` gives each token's, `look(t, |S|^2)` sees each.
template <class Value, class Look>
void run_fresh(double r, std::size_t key_dim, std::size_t tokens, philox random, Value&& value, Look&& look) {
  recurrence<double> machine(key_dim, 1);
  std::vector<double> k(key_dim);
  for (std::size_t t = 0; t < tokens; ++t) {
    shared::draw(random, k);
    (void)shared::normalise(k);
    machine.step(k, std::array<double, 1>{value(random)}, 1 - r);
    look(t, square(machine));
  }
}

/// |S|^2 after T steps against keys chosen to make it grow: in two dimensions the key has S k = R b v/(1 - R^2), v = 1.
/// Where |S| is too short for that, k is parallel to S. Entry t: after t + 1 steps.
[[nodiscard]] inline std::vector<double> adversary(double r, std::size_t tokens) {
  const double b = 1 - r;
  recurrence<double> machine(2, 1);
  const std::array<double, 1> v{1};
  std::vector<double> result;
  for (std::size_t t = 0; t < tokens; ++t) {
    const double x = machine.state()(0, 0), y = machine.state()(1, 0), length = std::sqrt(x * x + y * y);
    const double wanted = std::fabs(r) < 1 ? r * b / (1 - r * r) : (r < 0 ? -length : 0);
    std::array<double, 2> k{1, 0};
    if (length > 0) {
      const double c = std::clamp(wanted / length, -1.0, 1.0);
      const double s = std::sqrt(1 - c * c);
      k = {(c * x - s * y) / length, (c * y + s * x) / length};
    }
    machine.step(k, v, b);
    result.push_back(square(machine));
  }
  return result;
}

/// |S k| of one repeated key under the worst values of length 1: their signs alternate where R < 0. Entry t: after t + 1.
[[nodiscard]] inline std::vector<double> worst_values(double r, std::size_t tokens) {
  std::vector<double> result;
  double s = 0;
  for (std::size_t t = 0; t < tokens; ++t) {
    s = r * s + (1 - r) * (r < 0 && t % 2 != 0 ? -1 : 1);
    result.push_back(std::fabs(s));
  }
  return result;
}

/// Mean of |S|^2 over independent streams after `tokens` steps, unit keys of fresh Gaussian directions (d entries), one
/// value column with standard normal values, S(0) = 0.
[[nodiscard]] inline mean_square fresh_keys(double r, std::size_t key_dim, std::size_t tokens, std::size_t streams,
                                            std::uint64_t seed) {
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < streams; ++i) {
    double last = 0;
    run_fresh(
        r, key_dim, tokens, philox(seed, of_fresh_keys + i), [](philox& random) { return random.normal(); },
        [&](std::size_t, double at) { last = at; });
    sum += last;
    squares += last * last;
  }
  const auto n = static_cast<double>(streams);
  const double mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, squares / n - mean * mean) / (n - 1)), streams};
}

/// What the mean is in theory: d G (1 - (1 - (1 - R^2)/d)^T); (1 - R)^2 T where |R| = 1.
[[nodiscard]] inline double fresh_keys_expected(double r, std::size_t key_dim, std::size_t tokens) {
  // E|S'|^2 = (1 - (1 - R^2)/d) E|S|^2 + b^2, step by step: no cancellation as R approaches -1.
  const double kept = 1 - (1 - r * r) / static_cast<double>(key_dim);
  double mean = 0;
  for (std::size_t t = 0; t < tokens; ++t) mean = kept * mean + (1 - r) * (1 - r);
  return mean;
}

/// The largest |S|^2 / (T G) over `streams` runs with random keys and random values of length 1: at most 1 by the theorem.
[[nodiscard]] inline double largest_share_of_bound(double r, std::size_t key_dim, std::size_t tokens, std::size_t streams,
                                                   std::uint64_t seed) {
  double worst = 0;
  for (std::size_t i = 0; i < streams; ++i) {
    run_fresh(
        r, key_dim, tokens, philox(seed, of_random_values + i),
        [](philox& random) { return random.uniform() < 0.5 ? -1.0 : 1.0; },
        [&](std::size_t t, double at) { worst = std::max(worst, at / (static_cast<double>(t + 1) * energy_gain(r))); });
  }
  return worst;
}

}  // namespace deltaproof::detail::discretisation
