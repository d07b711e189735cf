// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Where the stability function of a rule leaves [-1, 1], decided digit by digit in rationals by the code of the rule
// itself, and the same for Taylor polynomials of e^-x of any degree.
#pragma once

#include "deltaproof/number/rational.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::discretisation {

/// lower <= limit < lower + 10^-digits: |R| <= 1 at `lower`, |R| > 1 at the end.
struct limit_enclosure {
  rational lower;
  int digits = 0;
  bool leaves_below = false;               ///< R < -1 beyond; otherwise R > 1
  [[nodiscard]] std::string text() const;  ///< `digits` decimals, the last not rounded
};

inline constexpr int limit_grid = 64;
/// The first crossing after steps of 1/64 from 0, then bisected; nothing where |R| <= 1 at every step up to `last`.
/// Throws: format_error for a rule that is not there, domain_error for one without rational values.
[[nodiscard]] std::optional<limit_enclosure> limit_of(std::string_view rule, int digits, int last = 16);
/// Of sum_{m <= degree} (-x)^m / m!.
[[nodiscard]] limit_enclosure taylor_limit(int degree, int digits);

}  // namespace deltaproof::detail::discretisation
