// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/horizon/sections.hpp"
#include "studies/shared/findings.hpp"

namespace deltaproof {

namespace {

using namespace detail::horizon;
using detail::shared::find;
using detail::shared::value_of;

std::string answer(const report& r) {
  std::string text = "The product of transitions is decided by R(β|k|²) alone: ";
  if (find(r, "product-norms") != nullptr && value_of(r, "euler-against-efla", "largest_log10_of_bounded_rules") < 1e-6) {
    text +=
        "EFLA, implicit Euler and Crank–Nicolson never grow on any keys, Euler grows exponentially once β|k|² stays above 2 "
        "(10^" +
        number(value_of(r, "euler-against-efla", "euler_log10_per_token"), 3) + " a token at |k|² = 4)";
  } else {
    text += "with |R| ≤ 1 it cannot grow, with |R| > 1 it must";
  }
  const double level = value_of(r, "error-stays-level", "bf16");
  if (!std::isnan(level)) {
    text += "; a stable product bounds what a format adds but does not remove it: a bf16 state keeps an error of " +
            number(100 * level, 2) +
            " % where keys keep overwriting, drifts like √T where they do not, and stops learning where the step is small, and a "
            "transition materialised in bf16 " +
            (value_of(r, "materialised-expands", "bf16_norm_at_least") > 1 ? "is no longer stable at all"
                                                                           : "stays stable for the key tried");
  }
  return text + ".";
}

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  add_growth(options, size, r);
  add_exponents(options, size, r);
  add_formats(options, size, r);
  add_rest(options, size, r);
  add_maps(options, size, r);
  r.answer = answer(r);
  r.method =
      "One set of directions for each kind of keys (fresh, one repeated, a vocabulary of 8, 8 clusters), the same for every rule "
      "and norm; β = 1, so x = |k|². Products of exact factors I − x φ(x) u uᵀ are applied to the whole d × d identity in fp64, "
      "rescaled by powers of two, and their spectral norm is bracketed from both sides by repeated squaring of the Gram matrix. "
      "Exponents: closed form for fresh directions, and ln|y| of one vector. Formats: the recurrence of the library in fp32 with "
      "its state rounded after every step, against an fp64 run with the oracle's radius.";
  r.not_claimed = {
      "The norms of long products are fp64 computations: the exact products of factors that differ from the stated ones by about "
      "d·2⁻⁵² each, not enclosures. What is said of all keys rests on the theorem, not on the runs.",
      "The exponents are those of keys uniform in direction; trained keys are not. Clusters, vocabulary and one repeated key "
      "show how far that matters, for one seed and one choice of centres.",
      "The errors of formats are those of the recurrent form with the stated order of operations and a given effective step b, "
      "whichever rule it comes from; a chunkwise kernel rounds other things.",
      "The relative error of a state is not the error of an output: that depends on the query.",
      "Nothing is said about gates other than the three cases of the table and the 2 × 2 example, nor about β that the model "
      "could learn to keep small.",
      "The logistic orbits are those of double arithmetic; that the exact ones are chaotic at x = 3 is classical, not shown "
      "here.",
  };
  r.parameters = {{"key_dim", size.key_dim},
                  {"tokens", size.tokens},
                  {"format_tokens", size.format_tokens},
                  {"value_columns", size.value_rows},
                  {"stochastic_streams", size.rounding_streams},
                  {"exponent_tokens", size.exponent_tokens}};
  return r;
}

}  // namespace

extern const study horizon_study{
    "horizon", "Over a long horizon, what does the product of transitions do, and what does the number format add?", &run};

}  // namespace deltaproof
