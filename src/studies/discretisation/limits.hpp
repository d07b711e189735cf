// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Where the stability function of a rule leaves [-1, 1], decided digit by digit in rationals by the code of the rule
// itself, and the same for Taylor polynomials of e^-x of any degree.
#pragma once

#include "deltaproof/number/rational.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/support/errors.hpp"
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

using integer = boost::multiprecision::number<boost::multiprecision::gmp_int, boost::multiprecision::et_off>;

inline integer ten_to(int digits) {
  integer result = 1;
  for (int i = 0; i < digits; ++i) result *= 10;
  return result;
}

template <class Stability>
std::optional<limit_enclosure> first_exit(const Stability& stability, int digits, int last) {
  const auto inside = [&](const rational& x) {
    const rational r = stability(x);
    return r <= 1 && r >= -1;
  };
  int step = 1;
  while (inside(rational(step, limit_grid))) {
    if (++step > limit_grid * last) return std::nullopt;
  }
  // The limit lies in the step before; as a multiple of 10^-digits, low is inside and high is not.
  const integer unit = ten_to(digits);
  integer low = integer(step - 1) * unit / limit_grid;
  integer high = integer(step) * unit / limit_grid + 1;
  while (high - low > 1) {
    const integer middle = (low + high) / 2;
    (inside(rational(middle, unit)) ? low : high) = middle;
  }
  return limit_enclosure{rational(low, unit), digits, stability(rational(high, unit)) < 0};
}

inline std::string limit_enclosure::text() const {
  const integer unit = ten_to(digits);
  const rational scaled = lower * unit;
  const integer value = numerator(scaled);  // a multiple of 10^-digits: the denominator is 1
  const integer whole = value / unit;
  std::string fraction = integer(value % unit).str();
  fraction.insert(0, static_cast<std::size_t>(digits) - fraction.size(), '0');
  return whole.str() + "." + fraction;
}

/// The first crossing after steps of 1/64 from 0, then bisected; nothing where |R| <= 1 at every step up to `last`.
/// Throws: format_error for a rule that is not there, domain_error for one without rational values.
[[nodiscard]] inline std::optional<limit_enclosure> limit_of(std::string_view rule, int digits, int last = 16) {
  std::optional<limit_enclosure> result;
  bool decidable = false;
  visit_rule(rule, [&](auto r) {
    using Rule = decltype(r);
    if constexpr (RuleOver<Rule, rational>) {
      decidable = true;
      result = first_exit([](const rational& x) { return Rule::stability(x); }, digits, last);
    }
  });
  if (!decidable) throw domain_error("rule '" + std::string(rule) + "' has no rational values; its limit is a theorem's");
  return result;
}

/// Of sum_{m <= degree} (-x)^m / m!.
[[nodiscard]] inline limit_enclosure taylor_limit(int degree, int digits) {
  const auto found =
      first_exit([degree](const rational& x) { return deltaproof::detail::taylor_stability(x, degree); }, digits, degree + 4);
  if (!found) throw domain_error("no limit was found for the Taylor polynomial of degree " + std::to_string(degree));
  return *found;
}

}  // namespace deltaproof::detail::discretisation
