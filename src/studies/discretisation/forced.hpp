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
    result.push_back(shared::squared_norm(machine.state().entries()));
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

}  // namespace deltaproof::detail::discretisation
