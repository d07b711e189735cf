// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about the logistic equation and what it is an example of.

#include <cmath>

#include "claims/parts.hpp"

namespace deltaproof::claim_detail {
namespace {

using kind = claim_kind;
using verdict = claim_verdict;

/// x E / (1 + (b/a) x (E − 1)) for a = b = 1: the exactly discretised map, E = e^h a free number above 1.
rational exact_map(const rational& x, const rational& e) { return x * e / (1 + x * (e - 1)); }

/// Both maps over a grid of starts, a = b = 1 and steps whose E runs from 2 to 10^6: order kept, range kept.
claim_values exact_map_is_tame() {
  bool monotone = true;
  bool inside = true;
  for (long exponent = 1; exponent <= 20; ++exponent) {
    const rational e = rational(1L << exponent);
    for (long i = 1; i < 40; ++i) {
      monotone = monotone && exact_map(fraction(i, 40), e) < exact_map(fraction(i + 1, 40), e);
      inside = inside && exact_map(fraction(i, 40), e) > 0 && exact_map(fraction(i, 40), e) <= 1;
    }
  }
  // Euler with step 3: u + 3 u (1 − u) folds the interval.
  const auto euler_map = [](const rational& u) { return u + 3 * u * (1 - u); };
  return {
      {"monotone", monotone}, {"inside", inside}, {"euler_keeps_order", euler_map(fraction(2, 3)) < euler_map(fraction(9, 10))}};
}

/// The exact map from −1, a = b = 1, around E = 2, where its denominator 2 − E is 0; and from 2, above the equilibrium.
claim_values exact_map_elsewhere() {
  bool falls = true;  // from 2 towards 1, never below it
  for (long exponent = 1; exponent <= 20; ++exponent) {
    const rational x = exact_map(2, rational(1L << exponent));
    falls = falls && x > 1 && x < exact_map(2, fraction(1L << exponent, 2));
  }
  return {{"from_minus_1_just_before", approximate(exact_map(-1, fraction(1999, 1000)))},
          {"from_minus_1_just_after", approximate(exact_map(-1, fraction(2001, 1000)))},
          {"falls_from_above", falls}};
}
bool leaves_below_zero(const claim_values& v) {
  return number_at(v, "from_minus_1_just_before") < -1000 && number_at(v, "from_minus_1_just_after") > 1000;
}

/// The difference of two runs of the delta rule, β‖k‖² = 3, against the same run from the difference without values.
claim_values differences_are_linear() {
  fraction_matrix a = sample_matrix(2, 2, 50);
  fraction_matrix b = sample_matrix(2, 2, 51);
  fraction_matrix difference = combined(a, -1, b);
  for (unsigned t = 0; t < 4; ++t) {
    const fraction_vector k = sample_vector(2, 60 + t);
    const fraction_vector v = sample_vector(2, 70 + t);
    const rational beta = 3 / inner(k, k);
    a = delta_step(a, k, v, beta);
    b = delta_step(b, k, v, beta);
    difference = delta_step(difference, k, fraction_vector(2), beta);
  }
  return {{"equal", combined(a, -1, b) == difference}};
}

/// A difference of 2^−40 at r = 4: |x_n − y_n| after n steps, in fractions.
claim_values sensitive() {
  rational x = fraction(1, 3);
  rational y = x + fraction(1, 1L << 40);
  double largest = 0;
  for (int n = 0; n < 12; ++n) {
    x = 4 * x * (1 - x);
    y = 4 * y * (1 - y);
    const double gap = std::abs(approximate(x - y));
    largest = gap > largest ? gap : largest;
  }
  return {{"first_difference", 0x1p-40}, {"largest_over_first", largest / 0x1p-40}};
}

}  // namespace

claim_table logistic_claims() {
  return {
      {"logistic-function-solves",
       blog,
       kind::identity,
       verdict::conditional,
       "dx/dt = αx − βx² is solved by the logistic function.",
       "α, β > 0 and 0 < x(0) < α/β. From above α/β the same formula falls towards it; from below 0 it leaves in finite time, from "
       "−1 at e^{αt} = 2 for α = β",
       {theorem("ode.logistic.logistic_flow_solves"), theorem("ode.logistic.logistic_flow_start"),
        theorem("ode.logistic.logistic_flow_range"),
        exact_check("the solution from −1 around e^{αt} = 2, and from twice the equilibrium, in fractions", exact_map_elsewhere,
                    [](const claim_values& v) { return leaves_below_zero(v) && truth_at(v, "falls_from_above"); })}},
      {"logistic-difference-is-chaotic",
       blog,
       kind::conclusion,
       verdict::conditional,
       "The difference equation x′ = x + αx − βx² can be chaotic.",
       "beyond r = 1 + α = 3.5699…, in windows not; the theorems give period three at r = 3.84 and the doubling of angles at r = "
       "4. Of real numbers: in bf16 every orbit ends in a cycle of at most 32",
       {theorem("ode.logistic.euler_map_conjugate"), theorem("ode.logistic.period_three"), theorem("ode.logistic.orbit_at_four"),
        exact_check("a difference of 2⁻⁴⁰ at r = 4 over 12 steps, in fractions", sensitive,
                    [](const claim_values& v) { return number_at(v, "largest_over_first") > 1000; }),
        finding_of("horizon", "logistic-parts", "the exponent of the map at αh = 3, against ln 2",
                   [](const claim_values& v) { return within(number_at(v, "logistic_exponent_at_3"), 0.693147, 1e-3); }),
        finding_of("logistic", "accumulation-point", "where period doubling accumulates, by two methods that share no step",
                   [](const claim_values& v) {
                     return truth_at(v, "methods_agree") && text_at(v, "r_infinity").starts_with("3.569945671870944901842");
                   }),
        finding_of(
            "logistic", "lyapunov-at-four", "the exponent at r = 4 against ln 2",
            [](const claim_values& v) { return truth_at(v, "agrees") && within(number_at(v, "exponent"), 0.693147, 1e-3); }),
        finding_of(
            "logistic", "finite-cycles", "the longest cycle of all bf16 starts and parameters: in a format nothing is chaotic",
            [](const claim_values& v) { return number_at(v, "bf16_longest_cycle") == 32 && number_at(v, "cases") > 1e6; })}},
      {"flow-avoids-abnormal-behaviour",
       blog,
       kind::conclusion,
       verdict::conditional,
       "Starting from a differential equation avoids some abnormal behaviour, chaos for one.",
       "of the exact solution from x ≥ 0: its map is monotone for every step length. From x < 0 the exact solution itself leaves "
       "in finite time, and its map jumps there. A discretisation of the same equation may still be chaotic, as this example shows",
       {theorem("ode.logistic.logistic_flow_monotone"),
        exact_check("the exact map from −1 just before and just after e^{αh} = 2", exact_map_elsewhere, leaves_below_zero),
        exact_check("the exact map on 39 starts and 20 step lengths, and Euler's at step 3, in fractions", exact_map_is_tame,
                    [](const claim_values& v) {
                      return truth_at(v, "monotone") && truth_at(v, "inside") && !truth_at(v, "euler_keeps_order");
                    }),
        finding_of("logistic", "exact-map-safe",
                   "the exact map in formats, written so that it cannot overflow: cases that are not finite, error in u, "
                   "neighbours out of order",
                   [](const claim_values& v) {
                     return number_at(v, "safe_not_finite") == 0 && number_at(v, "safe_worst_in_u") < 8 &&
                            number_at(v, "out_of_order") < 0.01 * number_at(v, "cases");
                   }),
        finding_of(
            "logistic", "euler-map-is-logistic", "Euler of the same equation against the logistic map, in rationals",
            [](const claim_values& v) { return number_at(v, "equal") == number_at(v, "cases") && number_at(v, "cases") > 10; })}},
      {"logistic-example-fits-the-delta-rule",
       blog,
       kind::conclusion,
       verdict::conditional,
       "The logistic equation is an example to the point for what a difference equation makes of the delta rule.",
       "up to the loss of the fixed point at β‖k‖² = 2, where the multipliers are the same; beyond it the delta rule, linear in "
       "S, diverges and cannot be chaotic",
       {theorem("ode.logistic.euler_map_multiplier"), theorem("algebra.wy.state_is_affine"),
        exact_check("the difference of two runs with β‖k‖² = 3 against the run from their difference", differences_are_linear,
                    is_equal)}},
  };
}

}  // namespace deltaproof::claim_detail
