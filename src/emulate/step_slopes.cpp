// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "emulate/step_slopes.hpp"

#include <cmath>
#include <type_traits>
#include <utility>

#include "deltaproof/number/dual.hpp"
#include "deltaproof/rule/rules.hpp"

namespace deltaproof::emulation_detail {

namespace {

/// phi'(x) and (x phi(x))'.
std::pair<double, double> gain_slopes(rule_kind rule, double x) {
  if (rule == rule_kind::exact) {
    // (e^-x - phi) / x cancels near 0: sum of m (-1)^m x^(m-1) / (m+1)! there.
    double slope = 0, power = 1;
    for (int m = 1; m < 20 && std::fabs(x) < 0.5; ++m) {
      power /= m + 1;
      slope -= m * power;
      power *= -x;
    }
    if (std::fabs(x) >= 0.5) slope = (std::exp(-x) + std::expm1(-x) / x) / x;
    return {slope, std::exp(-x)};
  }
  std::pair<double, double> out{0, 1};
  visit_rule(name_of(rule), [&](auto r) {
    if constexpr (!std::is_same_v<decltype(r), exact_flow>) {
      const dual<double> at(x, 1.0);
      const dual<double> gain = r.gain(at);
      out = {gain.slope(), (at * gain).slope()};
    }
  });
  return out;
}

}  // namespace

step_slopes slopes_of_step(const head_input& in, double given, double squared_norm) {
  double beta = given, activation = 1;
  if (in.activation != activation_kind::none) {
    const double times = in.activation == activation_kind::two_sigmoid ? 2 : 1, y = 1 / (1 + std::exp(-given));
    beta = times * y;
    activation = times * y * (1 / (1 + std::exp(given)));
  }
  if (in.rule == rule_kind::euler) return {activation, 0};
  const auto [of_gain, of_product] = gain_slopes(in.rule, beta * squared_norm);
  return {activation * of_product, 2 * beta * beta * of_gain};
}

double reference_step(const head_input& in, double given, double squared_norm) {
  double beta = given;
  if (in.activation != activation_kind::none)
    beta = (in.activation == activation_kind::two_sigmoid ? 2 : 1) / (1 + std::exp(-given));
  if (in.rule == rule_kind::euler) return beta;
  double step = beta;
  visit_rule(name_of(in.rule), [&](auto rule) { step = effective_step(rule, beta, squared_norm); });
  return step;
}

}  // namespace deltaproof::emulation_detail
