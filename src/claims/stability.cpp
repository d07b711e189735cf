// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about eigenvalues and explosion: the condition, what is done to meet it, and what formats make of that.

#include <array>

#include "claims/parts.hpp"
#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::claim_detail {
namespace {

using kind = claim_kind;
using verdict = claim_verdict;

/// Squared length of a vector of length 1 after each entry is rounded to F.
template <format F>
rational rounded_norm(const fraction_vector& unit) {
  rational sum = 0;
  for (const rational& x : unit) {
    const rational rounded_entry = exact(round_to<rounded<F>>(x).value());
    sum += rounded_entry * rounded_entry;
  }
  return sum;
}

/// (a/c, b/c) for Pythagorean triples, so that the length is exactly 1.
std::vector<fraction_vector> pythagorean_keys() {
  std::vector<fraction_vector> keys;
  for (const auto& [a, b, c] : std::initializer_list<std::array<long, 3>>{
           {3, 4, 5}, {5, 12, 13}, {8, 15, 17}, {7, 24, 25}, {20, 21, 29}, {161, 240, 289}}) {
    keys.push_back({fraction(a, c), fraction(b, c)});
  }
  return keys;
}

template <format F>
std::uint64_t keys_that_leave() {
  std::uint64_t n = 0;
  for (const fraction_vector& k : pythagorean_keys()) n += 1 - 2 * rounded_norm<F>(k) < -1 ? 1 : 0;
  return n;
}

claim_values every_format_leaves() {
  return {{"keys", pythagorean_keys().size()},
          {"bf16", keys_that_leave<bf16>()},
          {"fp16", keys_that_leave<fp16>()},
          {"fp32", keys_that_leave<fp32>()},
          {"fp64", keys_that_leave<fp64>()}};
}

/// The key (3/5, 4/5) in bf16 and the gate of a logit of 6.25 in bf16.
claim_values saturated_step() {
  const rational beta = exact(sigmoid(round_to<rounded<bf16>>(6.25)).value());
  const rational before = exact(sigmoid(round_to<rounded<bf16>>(6.21875)).value());
  const rational norm = rounded_norm<bf16>({fraction(3, 5), fraction(4, 5)});
  return {{"sigmoid_is_one", beta == 1},
          {"sigmoid_before_is_one", before == 1},
          {"eigenvalue", text_of(1 - beta * norm)},
          {"eigenvalue_is_positive", 1 - beta * norm > 0},
          {"doubled", text_of(1 - 2 * beta * norm)},
          {"doubled_above_minus_one", 1 - 2 * beta * norm > -1}};
}

/// 1 - 2 η of a unit key: inside (-1, 1] for η < 1, and what η = 1 gives.
claim_values range_at_one() {
  const fraction_vector unit{fraction(2, 7), fraction(3, 7), fraction(6, 7)};
  const auto eigenvalue = [&](const rational& eta) { return inner(unit, product(transition(unit, 2 * eta), unit)); };
  bool inside = true;
  for (long i = 0; i < 100; ++i) inside = inside && eigenvalue(fraction(i, 100)) > -1 && eigenvalue(fraction(i, 100)) <= 1;
  return {{"inside_below_one", inside}, {"at_one", text_of(eigenvalue(1))}, {"one_is_inside", eigenvalue(1) > -1}};
}

/// At 2η = 2, keys of length 1: fifty reflections of one state; values v, −v, v, ... on one key and v for ever, in both
/// conventions, read at the key in units of v.
claim_values driven_reflections() {
  const std::vector<fraction_vector> keys{{fraction(2, 7), fraction(3, 7), fraction(6, 7)},
                                          {fraction(3, 5), fraction(4, 5), 0},
                                          {0, fraction(5, 13), fraction(12, 13)}};
  const fraction_matrix start = sample_matrix(2, 3, 7);
  fraction_matrix s = start;
  for (std::size_t t = 0; t < 50; ++t) s = product(s, transition(keys[t % 3], 2));
  // Reads at the key after `tokens` writes: S k → −S k + written.
  const auto read = [&](const rational& written, bool alternating, int tokens) {
    fraction_matrix state(1, 3);
    for (int t = 0; t < tokens; ++t) {
      const rational v = alternating && t % 2 != 0 ? -written / 2 : written / 2;  // the step 2 writes twice its value
      state = delta_step(state, keys[0], {v}, 2);
    }
    return product(state, keys[0]).front();
  };
  return {{"reflections_keep_the_size", squares(s) == squares(start)},
          {"as_printed_after_20_alternating", text_of(abs(read(1, true, 20)))},
          {"both_doubled_after_20_alternating", text_of(abs(read(2, true, 20)))},
          {"one_value_for_ever_settles", read(1, false, 19) == read(1, false, 20)}};
}

claim_values orthogonal() {
  const fraction_vector unit{fraction(2, 7), fraction(3, 7), fraction(6, 7)};
  const fraction_vector longer{fraction(2, 7), fraction(3, 7), fraction(7, 7)};
  const auto is_orthogonal = [](const fraction_vector& k) {
    const fraction_matrix m = transition(k, 2);
    return product(m, transpose(m)) == identity<rational>(3);
  };
  return {{"unit_key", is_orthogonal(unit)}, {"longer_key", is_orthogonal(longer)}};
}

/// I - β k k^T is its own inverse only for x = β ‖k‖² in {0, 2}.
claim_values reflections() {
  const fraction_vector unit{fraction(2, 7), fraction(3, 7), fraction(6, 7)};
  const auto is_own_inverse = [&](const rational& x) {
    return product(transition(unit, x), transition(unit, x)) == identity<rational>(3);
  };
  return {{"x_2", is_own_inverse(2)}, {"x_1", is_own_inverse(1)}, {"x_half", is_own_inverse(fraction(1, 2))}};
}

/// s = sqrt(β) k with β = 4/9 and k = (3/2, 2), so that every length is a fraction; states 2 x 2.
claim_values squash_is_longhorn() {
  const rational beta = fraction(4, 9);
  const fraction_vector k{fraction(3, 2), 2};
  const rational length = fraction(5, 2);  // of k
  const fraction_vector s = scaled(fraction(2, 3), k);
  const rational s_squared = inner(s, s);
  const rational s_length = fraction(5, 3);
  const fraction_vector squashed = scaled(s_squared / (1 + s_squared) / s_length, s);
  const rational strength = fraction(25, 34);  // ‖squash(s)‖
  const fraction_matrix state = sample_matrix(2, 2, 5);
  const fraction_vector v = sample_vector(2, 6);
  const rational x = beta * inner(k, k);
  const fraction_matrix longhorn = delta_step(state, k, v, effective_step(implicit_euler{}, beta, inner(k, k)));
  const fraction_matrix with_squash = delta_step(state, scaled(1 / length, k), scaled(1 / length, v), strength);
  diagonal_longhorn<rational> published(2, 2);
  const fraction_vector one_beta{beta};
  published.step(k, v, one_beta);
  published.step(v, k, one_beta);
  fraction_matrix full = delta_step(fraction_matrix(2, 2), k, v, effective_step(implicit_euler{}, beta, inner(k, k)));
  full = delta_step(full, v, k, effective_step(implicit_euler{}, beta, inner(v, v)));
  return {{"lengths_fit", inner(k, k) == length * length && s_squared == s_length * s_length &&
                              inner(squashed, squashed) == strength * strength},
          {"strength_is_x_over_1_plus_x", strength == x / (1 + x)},
          {"equal", longhorn == with_squash},
          {"published_diagonal_form_equal", transpose(published.state()) == full}};
}

/// Squash and L1 normalisation meet the condition without L2: 1 - x/(1 + x) and 1 - β‖k‖₂² for ‖k‖₁ = 1.
claim_values other_ways() {
  bool squash = true;
  for (long i = 0; i <= 1000; ++i)
    squash = squash && implicit_euler::stability(fraction(i, 10)) > 0 && implicit_euler::stability(fraction(i, 10)) <= 1;
  bool l1_longer = true;
  bool l1_inside = true;
  bool excess = true;
  for (unsigned which = 0; which < 50; ++which) {
    const fraction_vector k = sample_vector(4, which);
    rational l1 = 0;
    for (const rational& x : k) l1 += abs(x);
    l1_longer = l1_longer && l1 * l1 >= inner(k, k);
    rational products = 0;
    for (std::size_t i = 0; i < k.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) products += 2 * abs(k[i] * k[j]);
    }
    excess = excess && l1 * l1 - inner(k, k) == products;
    const rational norm = inner(scaled(1 / l1, k), scaled(1 / l1, k));
    l1_inside = l1_inside && norm > 0 && norm <= 1;
  }
  const fraction_vector even(64, fraction(1, 64));
  const fraction_vector rms_normalised(64, 1);  // a root mean square of 1
  return {{"squash_inside", squash},
          {"rms_normalised_at_beta_1_inside", 1 - inner(rms_normalised, rms_normalised) >= -1},
          {"l1_at_least_l2", l1_longer},
          {"excess_of_squares_is_products", excess},
          {"l1_normalised_at_most_1", l1_inside},
          {"least_squared_length_64_channels", text_of(inner(even, even))}};
}

/// Unit key: eigenvalue 1 - β along it and 1 across, for β up to 2; and a key of length 2 with β = 1.
claim_values below_one() {
  const fraction_vector unit{fraction(3, 5), fraction(4, 5)};
  const fraction_vector across{fraction(-4, 5), fraction(3, 5)};
  const bool stays = product(transition(unit, fraction(1, 2)), across) == across;
  const rational long_key = inner(unit, product(transition(scaled(2, unit), 1), unit));
  return {{"one_is_an_eigenvalue", stays},
          {"beta_beyond_2", text_of(inner(unit, product(transition(unit, fraction(5, 2)), unit)))},
          {"key_of_length_2", text_of(long_key)},
          {"key_of_length_2_inside", long_key >= -1}};
}

}  // namespace

claim_table stability_claims() {
  return {
      {"transition-eigenvalues",
       blog,
       kind::identity,
       verdict::holds,
       "I − η k kᵀ has the eigenvalue 1 − η‖k‖² once and 1 otherwise.",
       "two channels or more; with one there is no 1 beside it",
       {theorem("algebra.rank_one.step_characteristic_polynomial"), theorem("algebra.rank_one.step_spectrum")}},
      {"learning-rate-has-a-limit",
       blog,
       kind::conclusion,
       verdict::holds,
       "As an optimiser with a fixed rate is sensitive to it, DeltaNet needs its transition restrained.",
       "the limit is 2/‖k‖²: beyond it one repeated key diverges",
       {theorem("ode.stability.euler_limit"), theorem("algebra.non_expansive.repeated_key_diverges")}},
      {"stability-interval",
       blog,
       kind::bound,
       verdict::holds,
       "The condition on a step is −1 ≤ 1 − η‖k‖² ≤ 1.",
       "0 ≤ η‖k‖² ≤ 2, and exactly then the step lengthens no vector",
       {theorem("algebra.non_expansive.step_non_expansive_iff"), theorem("ode.stability.euler_stable")}},
      {"bounded-eigenvalues-suffice",
       blog,
       kind::bound,
       verdict::conditional,
       "If no transition has an eigenvalue of modulus above 1, their product does not explode.",
       "symmetric transitions, or decays in [0, 1] before them with η‖k‖² ≤ 2: there eigenvalues are the norm. With gates per "
       "channel and η‖k‖² > 2 eigenvalues inside the disc do not suffice",
       {theorem("algebra.non_expansive.run_non_expansive"), theorem("algebra.non_expansive.gated_steps_in_turn_grow"),
        finding_of("horizon", "product-norms",
                   "no computed norm of a product lies outside the proved range, and none exceeds 1 where every |R| is at most 1",
                   [](const claim_values& v) {
                     return number_at(v, "outside") == 0 && number_at(v, "norms") > 1000 &&
                            number_at(v, "largest_log10_with_R_at_most_1") < 1e-12;
                   })}},
      {"bounded-eigenvalues-necessary",
       blog,
       kind::bound,
       verdict::conditional,
       "To avoid explosion no transition may have an eigenvalue of modulus above 1.",
       "necessary where keys repeat or all have one norm; where η‖k‖² varies from token to token a third of the transitions may "
       "exceed 1 and the product still shrinks",
       {theorem("algebra.non_expansive.expansive_product_unbounded"), theorem("algebra.non_expansive.repeated_key_diverges"),
        finding_of("horizon", "not-necessary",
                   "Gaussian keys just below the critical norm: many factors beyond 1, a negative exponent",
                   [](const claim_values& v) {
                     return within(number_at(v, "share_of_factors_beyond_1"), 1.0 / 3, 0.05) && number_at(v, "gaussian_exponent_below") < 0;
                   })}},
      {"eigenvalues-explain-it-all",
       blog,
       kind::conclusion,
       verdict::conditional,
       "The explanation by the eigenvalues of the transition is complete.",
       "of products of transitions. What values do to the state it leaves out: with every eigenvalue in [−1, 1] values of length 1 "
       "drive it to a norm that grows as √T at η‖k‖² = 1, to 44.7 after 2000 tokens, and as 2T at 2, to 4000",
       {theorem("algebra.non_expansive.run_non_expansive"),
        finding_of("discretisation", "forced-all-rules",
                   "the norm that the step is driven to at η‖k‖² = 1 and 2 by keys chosen against the state, 2000 tokens",
                   [](const claim_values& v) {
                     return within(number_at(v, "euler_at_1"), std::sqrt(number_at(v, "tokens")), 1e-9) &&
                            within(number_at(v, "euler_at_2"), 2 * number_at(v, "tokens"), 1e-9);
                   })}},
      {"l2-and-sigmoid-give-unit-interval",
       blog,
       kind::bound,
       verdict::fails_in_format,
       "With L2-normalised keys and η a sigmoid every eigenvalue lies in (0, 1].",
       "true of real numbers; in bf16 the sigmoid is exactly 1 from a logit of 6.25 (fp16 8.32, fp32 17.33), and the rounded "
       "unit key (3/5, 4/5) then gives an eigenvalue below 0",
       {theorem("float.sigmoid.bf16_sigmoid_saturates"),
        exact_check("the sigmoid rounded to bf16 and the squared norm of the rounded key, in fractions", saturated_step,
                    [](const claim_values& v) {
                      return truth_at(v, "sigmoid_is_one") && !truth_at(v, "sigmoid_before_is_one") &&
                             !truth_at(v, "eigenvalue_is_positive");
                    }),
        finding_of("eigenvalues", "sigmoid-saturates", "the first logits that saturate, over all inputs of the 16-bit formats",
                   [](const claim_values& v) {
                     return number_at(v, "bf16") == 6.25 && number_at(v, "fp16") == 8.3203125 && truth_at(v, "monotone");
                   })}},
      {"l2-ensures-below-one",
       notes,
       kind::bound,
       verdict::conditional,
       "L2 normalisation ensures that the eigenvalues stay below 1.",
       "at most 1, not below it: across the key the eigenvalue is 1; and not below −1 only for β ≤ 2",
       {theorem("algebra.rank_one.step_fixes_complement"),
        exact_check(
            "a unit key in fractions: the eigenvalue across it, and along it for β = 5/2", below_one,
            [](const claim_values& v) { return truth_at(v, "one_is_an_eigenvalue") && text_at(v, "beta_beyond_2") == "-3/2"; })}},
      {"keys-must-stay-short",
       notes,
       kind::conclusion,
       verdict::conditional,
       "k, unlike q, must be kept short, because of the product of k with itself.",
       "what must stay at most 2 is β‖k‖²: 1 for ‖k‖ is enough with β ≤ 2, and more than needed with a smaller β",
       {theorem("algebra.non_expansive.step_non_expansive_iff"), exact_check("β = 1 with a key of length 2", below_one,
                                                                             [](const claim_values& v) {
                                                                               return text_at(v, "key_of_length_2") == "-3" &&
                                                                                      !truth_at(v, "key_of_length_2_inside");
                                                                             })}},
      {"condition-is-not-unique-to-l2",
       blog,
       kind::conclusion,
       verdict::holds,
       "L2 normalisation is one way to meet the condition and not the only one.",
       "Longhorn's squash, L1 normalisation and the exact flow meet it too. RMS normalisation of keys does not: ‖k‖² is then the "
       "number of channels",
       {theorem("ode.stability.implicit_euler_range"),
        exact_check("x/(1 + x) for x up to 100, 50 L1-normalised keys, and an RMS-normalised one, in fractions", other_ways,
                    [](const claim_values& v) {
                      return truth_at(v, "squash_inside") && truth_at(v, "l1_normalised_at_most_1") &&
                             !truth_at(v, "rms_normalised_at_beta_1_inside");
                    })}},
      {"longhorn-is-a-squash",
       blog,
       kind::identity,
       verdict::conditional,
       "Longhorn's step is a squash as in capsule networks.",
       "Longhorn before its diagonal approximation: DeltaNet on k/‖k‖ and v/‖k‖ with strength ‖squash(√β k)‖ = x/(1 + x). The "
       "published diagonal form is another step",
       {theorem("algebra.rank_one.longhorn_is_implicit_euler"),
        exact_check("both steps in fractions, lengths chosen rational; the published diagonal form beside them",
                    squash_is_longhorn,
                    [](const claim_values& v) {
                      return truth_at(v, "lengths_fit") && truth_at(v, "strength_is_x_over_1_plus_x") && truth_at(v, "equal") &&
                             !truth_at(v, "published_diagonal_form_equal");
                    })}},
      {"l1-is-at-least-l2",
       blog_zh,
       kind::bound,
       verdict::holds,
       "The L1 norm of a vector is at least its L2 norm.",
       "any vector: the squares differ by twice the sum of |x_i x_j|, i < j",
       {exact_check("50 vectors in fractions, squares compared, and what they differ by", other_ways,
                    [](const claim_values& v) {
                      return truth_at(v, "l1_at_least_l2") && truth_at(v, "excess_of_squares_is_products");
                    })}},
      {"l1-normalised-keys-are-stable",
       blog_zh,
       kind::conclusion,
       verdict::conditional,
       "L1-normalised keys have length at most 1, so the explanation of L2 carries over.",
       "stable, yes; but ‖k‖² then lies anywhere in [1/d, 1], so the same β writes up to d times more weakly: 1/64 of it in 64 "
       "channels",
       {exact_check("50 vectors, and the one with 64 equal entries, in fractions", other_ways,
                    [](const claim_values& v) {
                      return truth_at(v, "l1_normalised_at_most_1") && text_at(v, "least_squared_length_64_channels") == "1/64";
                    }),
        finding_of("efla", "l1-writes-little",
                   "‖k‖² of L1-normalised Gaussian keys in 128 channels: π/256, and what the exact rule writes at β = 1",
                   [](const claim_values& v) {
                     return within(number_at(v, "mean"), 0.01227, 0.02) && number_at(v, "written_at_one") < 0.02;
                   })}},
      {"negative-range",
       blog,
       kind::bound,
       verdict::fails_in_format,
       "With unit keys and η a sigmoid the eigenvalues of I − 2η k kᵀ lie in (−1, 1].",
       "true of real numbers; in every format the sigmoid reaches 1 and rounded keys exceed length 1, so that −1 is reached and "
       "passed",
       {theorem("float.key_norm.bf16_key_3_4"),
        exact_check("the rounded key (3/5, 4/5) with the saturated sigmoid of bf16", saturated_step,
                    [](const claim_values& v) { return !truth_at(v, "doubled_above_minus_one"); }),
        finding_of(
            "eigenvalues", "beta-two-leaves", "the share of random unit keys that leave at β = 2, over formats and lengths",
            [](const claim_values& v) { return number_at(v, "least_share") > 0.3 && number_at(v, "largest_share") < 0.6; })}},
      {"eta-one-is-reached",
       blog,
       kind::bound,
       verdict::conditional,
       "η, a sigmoid, can be 1, where the eigenvalue is −1.",
       "not of real numbers, whose sigmoid stays below 1; in a format it rounds to 1, in bf16 from a logit of 6.25 on",
       {exact_check("the eigenvalue of a unit key for η below 1 and at 1, in fractions", range_at_one,
                    [](const claim_values& v) {
                      return truth_at(v, "inside_below_one") && text_at(v, "at_one") == "-1" && !truth_at(v, "one_is_inside");
                    }),
        exact_check("the sigmoid rounded to bf16 at 6.25 and at the number before", saturated_step,
                    [](const claim_values& v) { return truth_at(v, "sigmoid_is_one") && !truth_at(v, "sigmoid_before_is_one"); }),
        finding_of(
            "negative-eigenvalues", "logit-margin",
            "every bf16 logit in [1/2, 16]: the first whose sigmoid is 1, and the largest within the safe margin",
            [](const claim_values& v) { return number_at(v, "first_one") == 6.25 && number_at(v, "largest_safe") == 5.125; })}},
      {"minus-one-is-excluded-and-reached",
       blog,
       kind::contradiction,
       verdict::contradiction,
       "The eigenvalues are said to lie in (−1, 1], which excludes −1, and η = 1, where one is −1, is then called a case of theirs.",
       "of real numbers the range is right and the case does not occur; in formats it occurs and the range is wrong",
       {exact_check("the eigenvalue of a unit key for η below 1 and at 1, in fractions", range_at_one,
                    [](const claim_values& v) {
                      return truth_at(v, "inside_below_one") && text_at(v, "at_one") == "-1" && !truth_at(v, "one_is_inside");
                    })}},
      {"householder-is-orthogonal",
       blog,
       kind::identity,
       verdict::conditional,
       "At η = 1 the transition I − 2 k kᵀ is orthogonal.",
       "a key of length exactly 1; for a longer one it is not",
       {theorem("algebra.rank_one.step_reflection"),
        exact_check("(2, 3, 6)/7, and the same with a longer last entry", orthogonal,
                    [](const claim_values& v) { return truth_at(v, "unit_key") && !truth_at(v, "longer_key"); })}},
      {"reflections-are-fine-in-theory",
       blog,
       kind::conclusion,
       verdict::conditional,
       "At η = 1, where the transition is a reflection, nothing is wrong in theory.",
       "of products of transitions: every length is kept exactly. Driven by values, not: in exact arithmetic alternating values on "
       "one key add up, by v a token as the step is printed and by 2v with both terms doubled, and one value for ever never "
       "settles",
       {exact_check("fifty reflections of a state, and one key with alternating values and with one, in fractions",
                    driven_reflections,
                    [](const claim_values& v) {
                      return truth_at(v, "reflections_keep_the_size") && text_at(v, "as_printed_after_20_alternating") == "20" &&
                             text_at(v, "both_doubled_after_20_alternating") == "40" &&
                             !truth_at(v, "one_value_for_ever_settles");
                    }),
        finding_of("discretisation", "forced-repeated-key",
                   "2000 alternating values of length 1 on one key at exactly 2η = 2, both terms doubled: the norm of what is read",
                   [](const claim_values& v) { return within(number_at(v, "alternating_at_two"), 2 * number_at(v, "tokens"), 1e-9); })}},
      {"transitions-are-householder",
       notes,
       kind::definition,
       verdict::conditional,
       "The factors I − β k kᵀ are Householder transforms.",
       "a reflection only where β‖k‖² = 2 (or 0, the identity); a projection at 1; elsewhere neither",
       {theorem("algebra.rank_one.step_reflection"),
        exact_check("the square of the factor at β‖k‖² = 2, 1 and 1/2", reflections,
                    [](const claim_values& v) { return truth_at(v, "x_2") && !truth_at(v, "x_1") && !truth_at(v, "x_half"); })}},
      {"bf16-falls-below-minus-one",
       blog,
       kind::bound,
       verdict::holds,
       "In bf16 an eigenvalue of I − 2 k kᵀ can fall below −1.",
       "bf16: (3/5, 4/5) rounded gives −32973/32768, and of random unit keys about half leave",
       {theorem("float.key_norm.bf16_key_3_4"),
        exact_check("the rounded key in fractions", saturated_step,
                    [](const claim_values& v) { return text_at(v, "doubled") == "-32973/32768"; }),
        finding_of("eigenvalues", "beta-two-leaves", "the share of random unit keys that leave at β = 2",
                   [](const claim_values& v) { return within(number_at(v, "share"), 0.5, 0.05); })}},
      {"low-precision-is-the-reason",
       blog,
       kind::conclusion,
       verdict::conditional,
       "Eigenvalues of I − 2 k kᵀ fall below −1 because bf16 has so few bits.",
       "every format does it, fp64 included, for about half of the keys; the bits decide by how much (a few u), and so how fast "
       "a product grows",
       {exact_check("six unit keys from Pythagorean triples, rounded to four formats: how many leave", every_format_leaves,
                    [](const claim_values& v) {
                      return number_at(v, "bf16") > 0 && number_at(v, "fp16") > 0 && number_at(v, "fp32") > 0 &&
                             number_at(v, "fp64") > 0;
                    }),
        finding_of("eigenvalues", "beta-two-leaves", "the least share over all seven formats, fp64 among them",
                   [](const claim_values& v) { return number_at(v, "least_share") > 0.3; })}},
      {"long-products-may-explode",
       blog,
       kind::conclusion,
       verdict::conditional,
       "Multiplied over a long time, transitions near a reflection can explode in bf16.",
       "of one key repeated, in exact arithmetic on the rounded inputs: growth (1 + c u)^T. Executed as a recurrence, rounding "
       "limits it: within 0.5 % for each 4096 tokens in bf16, fp16 and fp32. Executed in chunks of 64 with the inverse stored in "
       "bf16 "
       "it does explode, at 2η = 1.797 already; with an inverse in fp32 not. And driven by alternating values the state grows at "
       "2η = 2 with no eigenvalue beyond −1",
       {theorem("bridge.rounded_steps.bf16_key_3_4_diverges"),
        finding_of("chunk-stability", "recurrence-survives", "the state at the end over its start, largest over all keys and β",
                   [](const claim_values& v) {
                     const double limit = 1 + 0.005 * number_at(v, "tokens") / 4096;
                     return number_at(v, "bf16") < limit && number_at(v, "fp16") < limit && number_at(v, "fp32") < limit;
                   }),
        finding_of("chunk-stability", "one-key-explodes",
                   "the 2η from which one key explodes with the inverse stored in bf16, by length of the chunk; and with fp32",
                   [](const claim_values& v) {
                     return number_at(v, "bf16_C64") < 1.798 && number_at(v, "bf16_C64") > 1.464 && number_at(v, "bf16_C16") < 2 && !truth_at(v, "fp32_explodes");
                   }),
        finding_of("discretisation", "forced-repeated-key",
                   "2000 alternating values of length 1 on one key at exactly 2η = 2: the norm of what is read",
                   [](const claim_values& v) { return within(number_at(v, "alternating_at_two"), 2 * number_at(v, "tokens"), 1e-9); })}},
      {"eta-must-stay-below-one",
       blog,
       kind::bound,
       verdict::conditional,
       "η must be kept from coming too close to 1.",
       "of products of transitions the margin is sharp: 2η ≤ 2(1 − 2u) is safe for every unit key rounded once, the next number "
       "is "
       "not; 1.984375 in bf16, so η ≤ 0.9921875. Keys normalised inside the format need more; chunks of 64 with the inverse "
       "stored in bf16 far more: one key explodes at 2η = 1.797 already, 1.464 is proved safe. Where the transition itself is stored with "
       "rounded entries no margin helps: all 3660 looked at expand, those of step 1/2 and 1 too. The margin costs memory: a "
       "reflected direction halves in 44 steps",
       {theorem("float.key_norm.bf16_safe_step"), theorem("float.key_norm.bf16_safe_step_sharp"),
        theorem("bridge.rounded_steps.bf16_run_non_expansive"),
        finding_of("eigenvalues", "safe-beta", "keys that leave at the safe β, of all that were drawn",
                   [](const claim_values& v) { return truth_at(v, "condition_holds") && number_at(v, "keys_that_leave") == 0; }),
        finding_of("eigenvalues", "materialised-expands", "transitions stored entry by entry, of step 1/2, 1 and 2, that expand",
                   [](const claim_values& v) { return number_at(v, "expansive") >= 3660; }),
        finding_of("negative-eigenvalues", "margin-costs-memory",
                   "reflections until half of a direction is lost at the safe margin of bf16",
                   [](const claim_values& v) { return within(number_at(v, "bf16"), 44.0139, 1e-4); }),
        finding_of("chunk-stability", "one-key-explodes",
                   "the 2η from which one key explodes in chunks of 64, inverse stored in bf16",
                   [](const claim_values& v) { return number_at(v, "bf16_C64") < 1.798 && number_at(v, "bf16_C64") > 1.464; }),
        finding_of("chunk-stability", "proved-safe", "the 2η that is proved safe there",
                   [](const claim_values& v) { return within(number_at(v, "bf16_C64"), 1.464, 1e-3); })}},
  };
}

}  // namespace deltaproof::claim_detail
