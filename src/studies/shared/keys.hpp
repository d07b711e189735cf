// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Vectors of doubles, random directions, and the token counts at which a long run is looked at.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "deltaproof/number/random.hpp"

namespace deltaproof::detail::shared {

/// Scales to length 1; returns the squared length it had. Rounds: in double, first to last.
double normalise(std::span<double> x);

/// |x|^2. Rounds: in double, first to last.
[[nodiscard]] double squared_norm(std::span<const double> x);

/// x^T y. Rounds: in double, first to last.
[[nodiscard]] double dot(std::span<const double> x, std::span<const double> y);

/// |x - exact| / |exact|, infinite where x is not finite, and what x keeps of it, <x, exact> / <exact, exact>, then NaN.
struct nearness {
  double error = 0, kept = 0;
};
[[nodiscard]] nearness nearness_of(std::span<const double> x, std::span<const double> exact);

/// Divides by a power of two so that the largest magnitude lies in [1, 2); returns its exponent, 0 where none is finite and not
/// 0.
int take_out_power(std::span<double> x);

/// Fills x with standard normals.
void draw(philox& random, std::span<double> x);

/// 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, ..., ten to a decade, up to and including `last`.
[[nodiscard]] std::vector<std::size_t> checkpoints(std::size_t last);

}  // namespace deltaproof::detail::shared
