// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What values from outside do to the state when every eigenvalue lies in [-1, 1]. For unit keys and b = 1 - R one step is
// S <- S + b (v - S k) k^T, and everything below depends on one number, G = (1 - R)/(1 + R): beta/(2 - beta) for Euler, x/2
// for Crank-Nicolson, tanh(x/2) for the exact flow.
#pragma once

#include "studies/shared/common.hpp"

namespace deltaproof::detail::discretisation {

/// G = (1 - R)/(1 + R), the most that one step with a value of length 1 and a key of length 1 adds to |S|^2.
[[nodiscard]] constexpr double energy_gain(double r) { return (1 - r) / (1 + r); }

/// b/(1 - |R|), b = 1 - R: the largest |S k| that values of length at most 1 reach with one key repeated.
[[nodiscard]] constexpr double repeated_gain(double r) { return (1 - r) / (1 - (r < 0 ? -r : r)); }

/// |S|^2 after T steps against keys chosen to make it grow: in two dimensions the key has S k = R b v/(1 - R^2), v = 1.
/// Where |S| is too short for that, k is parallel to S. Entry t: after t + 1 steps.
[[nodiscard]] std::vector<double> adversary(double r, std::size_t tokens);

/// |S k| of one repeated key under the worst values of length 1: their signs alternate where R < 0. Entry t: after t + 1.
[[nodiscard]] std::vector<double> worst_values(double r, std::size_t tokens);

struct mean_square {
  double mean = 0;
  double standard_error = 0;
  std::size_t n = 0;
};

/// Mean of |S|^2 over independent streams after `tokens` steps, unit keys of fresh Gaussian directions (d entries), one
/// value column with standard normal values, S(0) = 0.
[[nodiscard]] mean_square fresh_keys(double r, std::size_t key_dim, std::size_t tokens, std::size_t streams, std::uint64_t seed);

/// What the mean is in theory: d G (1 - (1 - (1 - R^2)/d)^T); (1 - R)^2 T where |R| = 1.
[[nodiscard]] double fresh_keys_expected(double r, std::size_t key_dim, std::size_t tokens);

/// The largest |S|^2 / (T G) over `streams` runs with random keys and random values of length 1: at most 1 by the theorem.
[[nodiscard]] double largest_share_of_bound(double r, std::size_t key_dim, std::size_t tokens, std::size_t streams,
                                            std::uint64_t seed);

}  // namespace deltaproof::detail::discretisation
