// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Products of bounds, rounded up, for the tiers whose rows are integers: their numbers leave the exponents of doubles on the way
// to a product that does not. Source: proofs/notes/oracle-radius.md, lines F and U.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace deltaproof::tiers {

inline constexpr double up = 1 + 0x1p-46;  // line F
inline constexpr double tiny = 0x1p-1000;  // line U: bounds that are not 0 never fall below it

/// m 2^exponent for m >= 0, rounded up.
inline double scaled(double m, long exponent) {
  if (m == 0) return 0;
  const double x = std::ldexp(m * up, static_cast<int>(std::clamp(exponent, -5000L, 5000L)));
  return x < tiny ? tiny : x;  // a NaN stays one
}

/// The product of the factors, none of them negative, times 2^exponent, rounded up: 0 only where one of them is 0.
inline double product(std::initializer_list<double> factors, long exponent = 0) {
  double m = 1;
  bool plain = exponent == 0;
  for (const double x : factors) {
    if (x == 0) return 0;
    m *= x;
    plain = plain && x > 0x1p-200 && x < 0x1p200;
  }
  if (plain && factors.size() <= 4) return m * up;
  m = 1;
  for (const double x : factors) {
    int e = 0;
    m *= std::frexp(x, &e);
    exponent += std::isfinite(x) ? e : 0;
  }
  return scaled(m, exponent);
}

}  // namespace deltaproof::tiers
