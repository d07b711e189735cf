// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/discretisation/limits.hpp"

#include "deltaproof/rule/rules.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof::detail::discretisation {
namespace {

using integer = boost::multiprecision::number<boost::multiprecision::gmp_int, boost::multiprecision::et_off>;

integer ten_to(int digits) {
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

}  // namespace

std::string limit_enclosure::text() const {
  const integer unit = ten_to(digits);
  const rational scaled = lower * unit;
  const integer value = numerator(scaled);  // a multiple of 10^-digits: the denominator is 1
  const integer whole = value / unit;
  std::string fraction = integer(value % unit).str();
  fraction.insert(0, static_cast<std::size_t>(digits) - fraction.size(), '0');
  return whole.str() + "." + fraction;
}

std::optional<limit_enclosure> limit_of(std::string_view rule, int digits, int last) {
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

limit_enclosure taylor_limit(int degree, int digits) {
  const auto found =
      first_exit([degree](const rational& x) { return deltaproof::detail::taylor_stability(x, degree); }, digits, degree + 4);
  if (!found) throw domain_error("no limit was found for the Taylor polynomial of degree " + std::to_string(degree));
  return *found;
}

}  // namespace deltaproof::detail::discretisation
