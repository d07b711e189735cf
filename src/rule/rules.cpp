// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/rule/rules.hpp"

#include "deltaproof/support/errors.hpp"

namespace deltaproof {

gain_slopes<double> flow_slopes(double x) {
  // phi' near 0: the sum of m (-1)^m x^(m-1) / (m+1)!.
  double slope = 0, power = 1;
  for (int m = 1; m < 20 && std::fabs(x) < 0.5; ++m) {
    power /= m + 1;
    slope -= m * power;
    power *= -x;
  }
  if (std::fabs(x) >= 0.5) slope = (std::exp(-x) + std::expm1(-x) / x) / x;
  return {slope, std::exp(-x)};
}

rule_kind rule_named(std::string_view name) {
  rule_kind kind{};
  visit_rule(name, [&](auto rule) { kind = rule.kind; });
  return kind;
}

std::string_view name_of(rule_kind rule) {
  const auto at = static_cast<std::size_t>(rule);
  if (at >= rule_names.size()) throw domain_error("name_of: the value is none of the enumerators of its type; pass one of them");
  return rule_names[at].second;
}

double gain(rule_kind rule, double x) {
  double phi = 1;
  visit_rule(rule, [&](auto one) { phi = one.gain(x); });
  return phi;
}

double effective_step(rule_kind rule, double beta, double squared_norm) {
  double step = beta;
  visit_rule(rule, [&](auto one) { step = effective_step(one, beta, squared_norm); });
  return step;
}

gain_slopes<double> slopes_of(rule_kind rule, double x) {
  gain_slopes<double> slopes{0, 1};
  visit_rule(rule, [&](auto one) { slopes = slopes_of(one, x); });
  return slopes;
}

}  // namespace deltaproof
