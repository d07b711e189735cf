// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The gain of every rule a second time, as coefficients: what the tests of rules, of the oracle and of gradients compare with. It
// trusts nothing of rule/rules.hpp but the names. A new rule is a row here.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "deltaproof/rule/rules.hpp"

namespace deltaproof::testing {

/// phi(x) = numerator / denominator, by the coefficients of 1, x, x^2, ...
struct gain_truth {
  std::vector<int> numerator, denominator;
};

/// Nothing for the exact flow, (1 - e^-x) / x. Throws: std::out_of_range for a rule that has no row.
inline const std::optional<gain_truth>& truth_of(rule_kind rule) {
  static const std::map<rule_kind, std::optional<gain_truth>> rows{
      {rule_kind::euler, {{{1}, {1}}}},
      {rule_kind::exact, {}},
      {rule_kind::implicit, {{{1}, {1, 1}}}},
      {rule_kind::crank_nicolson, {{{2}, {2, 1}}}},
      {rule_kind::rk2, {{{2, -1}, {2}}}},
      {rule_kind::rk3, {{{6, -3, 1}, {6}}}},
      {rule_kind::rk4, {{{24, -12, 4, -1}, {24}}}},
  };
  return rows.at(rule);
}

template <class Real>
Real polynomial(const std::vector<int>& coefficients, const Real& x) {
  Real sum(static_cast<double>(coefficients.back()));
  for (std::size_t i = coefficients.size() - 1; i-- > 0;) sum = sum * x + Real(static_cast<double>(coefficients[i]));
  return sum;
}

}  // namespace deltaproof::testing
