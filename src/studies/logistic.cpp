// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/logistic/sections.hpp"
#include "studies/shared/findings.hpp"

namespace deltaproof {

namespace detail::logistic {

using shared::find;
using shared::text_of;
using shared::value_of;

std::string answer(const report& r) {
  std::string text;
  if (find(r, "where-the-analogy-ends") == nullptr) return "Interrupted: the map and the rule were not compared.";
  text =
      "As far as the multiplier of one fixed point: up to β|k|² = 2 Euler's logistic map and DeltaNet are stable alike, and the "
      "exact versions always are";
  const std::string point = text_of(r, "accumulation-point", "r_infinity");
  if (!point.empty()) {
    text += "; beyond it the map doubles its period toward r = " + point.substr(0, 12) + "… and turns chaotic";
  } else {
    text += "; beyond it the map turns chaotic";
  }
  text += ", while the delta rule, linear in S, can only diverge";
  const double slope = value_of(r, "decorrelation-law", "largest_deviation_of_slope");
  if (!std::isnan(slope) && slope < 0.1) {
    text += "; and chaos is not what a format computes: it follows an orbit for p ln 2/λ steps (" +
            number(value_of(r, "decorrelation-law", "bf16_steps"), 2) + " in bf16 at r = 4)";
    const std::string cycle = text_of(r, "finite-cycles", "bf16_longest_cycle");
    if (!cycle.empty()) text += ", then falls on a cycle, of at most " + cycle + " numbers in bf16";
  }
  return text + ".";
}

}  // namespace detail::logistic

namespace {

using namespace detail::logistic;

report run(const run_options& options) {
  const settings size = settings_for(options);
  report r;
  add_constants(options, size, r);
  add_chaos(options, size, r);
  add_cycles(options, size, r);
  add_flow(options, size, r);
  add_analogy(options, size, r);
  r.answer = answer(r);
  r.method =
      "The source notes liken the stability of EFLA to that of the exactly solved logistic equation. Here the logistic map is "
      "taken "
      "apart with the same tools as the delta rule: its "
      "constants over MPFR by two independent methods, its orbits in four formats against 2200 bits, all of its cycles in 16 "
      "bits, its exact discretisation in every "
      "format; and the two are set side by side over one axis, x = a h = β|k|².";
  r.not_claimed = {
      "The digits of δ, α and r∞ are those on which two truncations agree, not enclosures; that the limits exist is a theorem of "
      "others (Lanford 1982), used here.",
      "That the map is chaotic for a given r between r∞ and 4 is not claimed; the exponents there are fp64 averages.",
      "Decorrelation times and cycles are those of r (x (1 − x)) rounded at each operation; another order of operations has "
      "other cycles.",
      "Nothing is said of recurrent models whose keys depend on their state: those are not linear, and chaos in them is not "
      "excluded.",
      "Overflow of b h x itself, and negative a, b or x, are outside the exact map as written.",
  };
  r.parameters = {{"terms", size.terms},   {"doublings", size.doublings},           {"superstable", size.superstable},
                  {"starts", size.starts}, {"exponent_steps", size.exponent_steps}, {"exponent_streams", size.exponent_streams}};
  return r;
}

}  // namespace

extern const study logistic_study{
    "logistic", "How far does the likeness of the delta rule to the logistic map go, and what do number formats make of chaos?",
    &run};

}  // namespace deltaproof
