// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/discretisation/sections.hpp"
#include "studies/shared/findings.hpp"

namespace deltaproof {

namespace detail::discretisation {

using shared::find;
using shared::value_of;

std::string answer(const report& r) {
  if (find(r, "order-or-stability") == nullptr) return "Interrupted: order and stability were not compared.";
  std::string text;
  if (value_of(r, "order-or-stability", "stability_decides") == 1) {
    text = "Stability: methods of equal order explode or do not, an explicit one of order 32 does (an order buys " +
           number(value_of(r, "order-buys-little", "gain_per_order"), 2) +
           " of β|k|², never immunity), the implicit one of order 1 does not";
  } else {
    text = "The methods compared do not tell order from stability";
  }
  const double gain = value_of(r, "forced-repeated-key", "gain_at_safe_beta");
  if (!std::isnan(gain)) {
    text +=
        "; but eigenvalues in [−1, 1] bound what is kept and not what is written: bounded values force up to β/(2 − β) into the "
        "state, " +
        number(gain, 3) + " at the largest step that is safe in bf16 and without bound at β = 2";
  }
  const double turning = value_of(r, "exact-for-frozen-keys", "order_frozen_at_end");
  if (!std::isnan(turning) && turning < 1.1) text += ", and the exact flow is of order " + number(turning, 2) + " once keys move";
  return text + ".";
}

}  // namespace detail::discretisation

namespace {

using namespace detail::discretisation;

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  add_limits(options, size, r);
  add_orders(options, size, r);
  add_trial(options, size, r);
  add_forced(options, size, r);
  r.answer = answer(r);
  r.method =
      "Every rule is its stability function R(x), x = β|k|²: the code of the rules is run over rationals (limits), over power "
      "series "
      "with rational coefficients (orders), over 256 bits (errors) and over doubles (forced states). One key stands for the "
      "direction "
      "it acts on; the rest of the state does not move. Products over many keys are the subject of study `horizon`.";
  r.not_claimed = {
      "Nothing is said of adaptive steps, multistep methods, or of discretisations of another ODE.",
      "That a model with a stable rule trains better is not claimed; no model is trained here.",
      "The adversarial keys are chosen knowing the state; data need not be like that. The fresh keys are uniform in direction.",
      "Arithmetic is exact or nearly so throughout: what rounding adds at R = −1 is in studies `eigenvalues` and `horizon`.",
      "The limits of Taylor polynomials beyond degree 4 are first crossings on a grid of 1/64, not proved to be the first.",
  };
  r.parameters = {{"key_dim", size.key_dim},
                  {"streams", size.streams},
                  {"tokens", size.tokens},
                  {"digits", size.digits},
                  {"largest_degree", size.largest_degree}};
  return r;
}

}  // namespace

extern const study discretisation_study{
    "discretisation", "Is it the order of a discretisation or its stability that keeps the state from exploding?", &run};

}  // namespace deltaproof
