// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the studies of long horizons share: random directions, the token counts at which a run is looked at, and
// logarithms with the same bits on every machine.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "deltaproof/number/random.hpp"

namespace deltaproof::detail::shared {

/// Scales to length 1; returns the squared length it had. Rounds: in double, first to last.
double normalise(std::span<double> x);

/// Fills x with standard normals.
void draw(philox& random, std::span<double> x);

/// 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, ..., ten to a decade, up to and including `last`.
[[nodiscard]] std::vector<std::size_t> checkpoints(std::size_t last);

/// The natural and the decimal logarithm, the first correctly rounded, the second a product with it: the same
/// bits on every machine. 0 gives -infinity.
[[nodiscard]] double ln(double x);
[[nodiscard]] double log10_of(double x);

}  // namespace deltaproof::detail::shared
