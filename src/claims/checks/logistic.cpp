// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about the logistic equation and what it is an example of.

#include "claims/checks/parts.hpp"

namespace deltaproof::claim_detail {
namespace {

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

/// The difference of two runs of the delta rule, β‖k‖² = 3, against the same run from the difference without values.
claim_values differences_are_linear() {
  fraction_matrix a = sample_matrix(2, 2, 50);
  fraction_matrix b = sample_matrix(2, 2, 51);
  fraction_matrix difference = a - b;
  for (unsigned t = 0; t < 4; ++t) {
    const fraction_vector k = sample_vector(2, 60 + t);
    const fraction_vector v = sample_vector(2, 70 + t);
    const rational beta = 3 / k.squaredNorm();
    a = delta_step(a, k, v, beta);
    b = delta_step(b, k, v, beta);
    difference = delta_step(difference, k, 0 * v, beta);
  }
  return {{"equal", a - b == difference}};
}

/// A difference of 2^−40 at r = 4: |x_n − y_n| after n steps, in fractions.
claim_values sensitive() {
  rational x = fraction(1, 3);
  rational y = x + fraction(1, 1L << 40);
  double largest = 0;
  for (int n = 0; n < 12; ++n) {
    x = 4 * x * (1 - x);
    y = 4 * y * (1 - y);
    largest = std::max(largest, std::abs(approximate(x - y)));
  }
  return {{"largest_over_first", largest / 0x1p-40}};
}

}  // namespace

std::span<const claim_check> logistic_checks() {
  static constexpr auto all = std::to_array<claim_check>({{"exact_map_is_tame", exactly, exact_map_is_tame},
                                                          {"exact_map_elsewhere", exactly, exact_map_elsewhere},
                                                          {"differences_are_linear", exactly, differences_are_linear},
                                                          {"sensitive", exactly, sensitive}});
  return all;
}

}  // namespace deltaproof::claim_detail
