// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "emulate/step_slopes.hpp"

#include <cmath>

#include "deltaproof/rule/rules.hpp"

namespace deltaproof::emulation_detail {

step_slopes slopes_of_step(const head_input& in, double given, double squared_norm) {
  double beta = given, activation = 1;
  if (in.activation != activation_kind::none) {
    const double times = in.activation == activation_kind::two_sigmoid ? 2 : 1, y = 1 / (1 + std::exp(-given));
    beta = times * y;
    activation = times * y * (1 / (1 + std::exp(given)));
  }
  if (in.rule == rule_kind::euler) return {activation, 0};
  const auto [of_gain, of_product] = slopes_of(in.rule, beta * squared_norm);
  return {activation * of_product, 2 * beta * beta * of_gain};
}

double reference_step(const head_input& in, double given, double squared_norm) {
  double beta = given;
  if (in.activation != activation_kind::none)
    beta = (in.activation == activation_kind::two_sigmoid ? 2 : 1) / (1 + std::exp(-given));
  return effective_step(in.rule, beta, squared_norm);
}

}  // namespace deltaproof::emulation_detail
