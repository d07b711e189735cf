// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Where the Taylor polynomials of e^-x leave [-1, 1], decided digit by digit in rationals.
#pragma once

#include "deltaproof/number/rational.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/support/errors.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::discretisation {

inline constexpr int limit_grid = 64;
inline constexpr int limit_digits = 20;

[[nodiscard]] inline bool inside(const rational& stability) { return stability <= 1 && stability >= -1; }

/// Of sum_{m <= degree} (-x)^m / m!: the last multiple of 10^-20 before the first crossing after steps of 1/64 from 0.
[[nodiscard]] inline rational taylor_limit(int degree) {
  using integer = boost::multiprecision::number<boost::multiprecision::gmp_int, boost::multiprecision::et_off>;
  const auto stable = [&](const rational& x) { return inside(deltaproof::detail::taylor_stability(x, degree)); };
  int step = 1;
  while (stable(rational(step, limit_grid))) {
    if (++step > limit_grid * (degree + 4))
      throw domain_error("no limit was found for the Taylor polynomial of degree " + std::to_string(degree));
  }
  // The limit lies in the step before; as a multiple of 10^-20, low is inside and high is not.
  integer unit = 1;
  for (int i = 0; i < limit_digits; ++i) unit *= 10;
  integer low = integer(step - 1) * unit / limit_grid;
  integer high = integer(step) * unit / limit_grid + 1;
  while (high - low > 1) {
    const integer middle = (low + high) / 2;
    (stable(rational(middle, unit)) ? low : high) = middle;
  }
  return rational(low, unit);
}

}  // namespace deltaproof::detail::discretisation
