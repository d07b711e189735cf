// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about the error tables: what protocol makes them, what else would, and what follows from them.

#include <array>
#include <cmath>

#include "claims/recall_parts.hpp"
#include "claims/recall_sample.hpp"
#include "deltaproof/number/counting.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::claim_detail {
namespace {

using kind = claim_kind;
using verdict = claim_verdict;

constexpr double printed_tokens = 1000;

/// DeltaNet on unit values of any origin, and predictors that know nothing.
claim_values normalised_error() {
  return {{"printed", 0.030},
          {"printed_identity", 0.028},
          {"closed_form", delta_error_of_unit_values(printed_tokens)},
          {"zero_predictor", 1.0 / recall_channels},
          {"two_independent_unit_vectors", 2.0 / recall_channels}};
}

/// E ‖S_4‖² over all sequences of 4 keys ±e_i in 3 channels (signs cancel), for unit values that are the key, that are one
/// and the same vector, and that change with time alone.
claim_values values_do_not_matter() {
  const auto mean_squares = [](auto value) {
    rational sum = 0;
    for (int word = 0; word < 81; ++word) {
      fraction_matrix s(3, 3);
      for (int t = 0, rest = word; t < 4; ++t, rest /= 3) {
        fraction_vector k(3);
        k[static_cast<std::size_t>(rest % 3)] = 1;
        s = delta_step(s, k, value(static_cast<std::size_t>(rest % 3), static_cast<std::size_t>(t)), 1);
      }
      sum += squares(s);
    }
    return sum / 81;
  };
  const auto axis = [](std::size_t i) {
    fraction_vector e(3);
    e[i] = 1;
    return e;
  };
  const rational closed = 3 * (1 - fraction(16, 81));  // d (1 − (1 − 1/d)^4)
  return {{"value_is_the_key", text_of(mean_squares([&](std::size_t key, std::size_t) { return axis(key); }))},
          {"value_is_constant", text_of(mean_squares([&](std::size_t, std::size_t) { return axis(0); }))},
          {"value_follows_time", text_of(mean_squares([&](std::size_t, std::size_t t) { return axis(t % 3); }))},
          {"closed_form", text_of(closed)}};
}

claim_values raw_error(relationship f, double printed) {
  const double closed = delta_error(f, printed_tokens);
  const double square = moments_of(f).square;
  return {{"printed", printed}, {"closed_form", closed}, {"over_zero_predictor", closed / square}};
}

claim_values raw_identity() { return raw_error(relationship::identity, 0.026); }
claim_values raw_quadratic() { return raw_error(relationship::quadratic, 0.001); }
claim_values raw_cubic() { return raw_error(relationship::cubic, 0.0001); }
claim_values raw_quartic() { return raw_error(relationship::quartic, 0.00001); }
claim_values raw_exponential() { return raw_error(relationship::exponential, 1.92); }
claim_values raw_sine() { return raw_error(relationship::sine, 0.96); }

/// The number of the closed form to the digit that is printed (one digit: half a unit of it), and worse than predicting 0.
bool to_one_digit(const claim_values& v) {
  return within(number_at(v, "printed"), number_at(v, "closed_form"), 0.5) && number_at(v, "over_zero_predictor") > 1.9;
}
bool to_part(const claim_values& v, double part) {
  return within(number_at(v, "printed"), number_at(v, "closed_form"), part) && number_at(v, "over_zero_predictor") > 1.9;
}

/// One more degree, the same error in units of the values' mean square.
claim_values scale_free() {
  claim_values out;
  const std::array<std::pair<const char*, relationship>, 6> all{{{"identity", relationship::identity},
                                                                 {"quadratic", relationship::quadratic},
                                                                 {"cubic", relationship::cubic},
                                                                 {"quartic", relationship::quartic},
                                                                 {"exponential", relationship::exponential},
                                                                 {"sine", relationship::sine}}};
  for (const auto& [name, f] : all) out[name] = delta_error(f, printed_tokens) / moments_of(f).square;
  return out;
}
bool all_alike(const claim_values& v) {
  bool alike = true;
  for (const auto& [name, value] : v)
    alike = alike && within(number_at(v, name), number_at(v, "identity"), 1e-9) && number_at(v, name) > 1.9;
  return alike;
}

/// The printed ratio column from the printed errors.
claim_values ratio_column() {
  return {{"identity", 0.026 / 0.028},  {"quadratic", 0.001 / 0.030},  {"cubic", 0.0001 / 0.030},
          {"quartic", 0.00001 / 0.030}, {"exponential", 1.92 / 0.030}, {"sine", 0.96 / 0.030}};
}

claim_values cubic_factor() {
  return {{"from_the_table", 0.030 / 0.0001},
          {"in_the_text", 100},
          {"quadratic_from_the_table", 0.030 / 0.001},
          {"quartic_from_the_table", 0.030 / 0.00001}};
}

/// Identity values of unit keys are unit vectors already.
claim_values identity_twice() {
  const fraction_vector k{fraction(2, 7), fraction(3, 7), fraction(6, 7)};
  return {{"length_of_value_is_1", inner(k, k) == 1},
          {"printed_normalised", 0.028},
          {"printed_raw", 0.026},
          {"printed_before_convolution", 0.030},
          {"printed_for_4000_tokens", 0.031}};
}

claim_values hebbian_table() {
  return {{"printed_500", 0.40},
          {"printed_4000", 20.8},
          {"printed_32000", 1306},
          {"closed_form_500", hebbian_error(relationship::identity, 500)},
          {"closed_form_4000", hebbian_error(relationship::identity, 4000)},
          {"closed_form_32000", hebbian_error(relationship::identity, 32000)}};
}

/// Exponents of growth between the printed errors, and what exponential growth would have made of the first two.
claim_values growth_law() {
  const double first = std::log(20.8 / 0.40) / std::log(8.0);
  const double second = std::log(1306 / 20.8) / std::log(8.0);
  return {{"exponent_500_to_4000", first},
          {"exponent_4000_to_32000", second},
          {"exponential_would_give", 20.8 * std::pow(20.8 / 0.40, 8)},
          {"factor_to_4000", 20.8 / 0.40}};
}

/// A stored key read back from linear attention, v = k, T tokens: E kᵀ S k = 1 + (T − 1)/d and
/// E ‖S k‖² = 1 + 3 (T − 1)/d + (T − 1)(T − 2)/d²; the cosine of the two.
claim_values hebbian_cosine() {
  const auto squared_cosine = [](double t) {
    const double along = 1 + (t - 1) / recall_channels;
    return along * along / (1 + 3 * (t - 1) / recall_channels + (t - 1) * (t - 2) / (recall_channels * recall_channels));
  };
  return {{"squared_cosine_500", squared_cosine(500)}, {"squared_cosine_32000", squared_cosine(32000)}};
}

/// Orthonormal keys, four of them, three times in turn: no correlation at all.
claim_values orthogonal_keys() {
  fraction_matrix s(4, 4);
  fraction_matrix keys(12, 4);
  for (std::size_t t = 0; t < 12; ++t) {
    keys(t, t % 4) = 1;
    const fraction_vector k = row_of(keys, t);
    s = combined(s, 1, outer(k, k));
  }
  fraction_matrix first(2, 4);  // two orthonormal keys of four channels
  first(0, 0) = first(1, 1) = 1;
  return {{"state_is_three_times_identity", s == combined(fraction_matrix(4, 4), 3, identity<rational>(4))},
          {"k_kt_of_two_orthonormal_keys_is_identity", product(first, transpose(first)) == identity<rational>(2)},
          {"kt_k_of_two_orthonormal_keys_is_identity", product(transpose(first), first) == identity<rational>(4)},
          {"expected_kt_k_at_1000_tokens", 1000.0 / recall_channels}};
}

claim_values delta_long() {
  return {{"printed_500", 0.030},
          {"printed_4000", 0.031},
          {"printed_32000", 0.031},
          {"closed_form_500", delta_error(relationship::identity, 500)},
          {"closed_form_4000", delta_error(relationship::identity, 4000)},
          {"closed_form_32000", delta_error(relationship::identity, 32000)},
          {"two_independent_unit_vectors", 2.0 / recall_channels}};
}

/// E ‖S_T‖² = d E‖v‖² (1 − (1 − 1/d)^T) ≤ d E‖v‖², and that of linear attention with identity values.
claim_values state_size() {
  const double d = recall_channels;
  const auto delta = [d](double t) { return d * (1 - std::pow(1 - 1 / d, t)); };
  const auto hebbian = [d](double t) { return t + t * (t - 1) / d; };
  return {{"delta_1000", delta(1000)},
          {"delta_32000", delta(32000)},
          {"linear_attention_1000", hebbian(1000)},
          {"linear_attention_32000", hebbian(32000)}};
}

claim_values exponential_long() {
  return {{"printed_delta", 2.06},
          {"printed_linear_attention", 1534},
          {"closed_form_delta", delta_error(relationship::exponential, 32000)},
          {"closed_form_linear_attention", hebbian_error(relationship::exponential, 32000)},
          {"twice_mean_square", 2 * moments_of(relationship::exponential).square}};
}

claim_values widening() {
  const auto gap = [](double t) { return hebbian_error(relationship::identity, t) / delta_error(relationship::identity, t); };
  return {{"gap_500", gap(500)}, {"gap_4000", gap(4000)}, {"gap_32000", gap(32000)}};
}

/// Operations a step, K = V, over counting<double>: doubling K multiplies a K² law by 4, a K³ law by 8.
claim_values cost_a_step() {
  using number = counting<double>;
  const auto counted = [](std::size_t d, int which) {
    std::vector<number> k(d, number(1));
    hebbian<number> linear(d, d);
    recurrence<number> delta(d, d);
    recursive_least_squares<number> squares_of(d, d, number(1));
    const auto counts = count_operations([&] {
      if (which == 0) linear.step(k, k);
      if (which == 1) delta.step(k, k, number(1));
      if (which == 2) squares_of.step(k, k);
    });
    return static_cast<double>(counts.total());
  };
  return {{"linear_attention_64_over_32", counted(64, 0) / counted(32, 0)},
          {"deltanet_64_over_32", counted(64, 1) / counted(32, 1)},
          {"rls_64_over_32", counted(64, 2) / counted(32, 2)},
          {"rls_over_deltanet_64", counted(64, 2) / counted(64, 1)}};
}

/// Four pairs in three channels: the document's formula, the library's rank-one updates, and what is short of three.
claim_values least_squares() {
  const fraction_matrix keys = sample_matrix(4, 3, 110);
  const fraction_matrix values = sample_matrix(4, 2, 111);
  const rational ridge = fraction(1, 3);
  recursive_least_squares<rational> machine(3, 2, ridge);
  for (std::size_t t = 0; t < 4; ++t) machine.step(row_of(keys, t), row_of(values, t));
  const fraction_matrix gram = product(transpose(keys), keys);
  const fraction_matrix with_ridge =
      product(product(transpose(values), keys), inverse(combined(gram, ridge, identity<rational>(3))));
  const fraction_matrix best = product(product(transpose(values), keys), inverse(gram));
  const auto objective = [&](const fraction_matrix& s) { return squares(combined(product(keys, transpose(s)), -1, values)); };
  bool least = true;
  for (std::size_t i = 0; i < best.size(); ++i) {
    for (const rational& h : {fraction(1, 100), fraction(-1, 100)}) {
      fraction_matrix other = best;
      other.data()[i] += h;
      least = least && objective(other) > objective(best);
    }
  }
  bool two_pairs_have_an_inverse = true;
  try {
    const fraction_matrix few = sample_matrix(2, 3, 112);
    (void)inverse(product(transpose(few), few));
  } catch (const domain_error&) {
    two_pairs_have_an_inverse = false;
  }
  return {{"rank_one_updates_equal", transpose(machine.state()) == with_ridge},
          {"least", least},
          {"two_pairs_have_an_inverse", two_pairs_have_an_inverse}};
}

/// Three correlated keys in three channels: least squares gives every value back, DeltaNet the last alone.
claim_values correlated_keys() {
  const fraction_matrix keys(
      3, 3, std::vector<rational>{1, 0, 0, fraction(4, 5), fraction(3, 5), 0, fraction(4, 5), 0, fraction(3, 5)});
  const fraction_matrix values = sample_matrix(3, 2, 113);
  fraction_matrix delta(2, 3);
  for (std::size_t t = 0; t < 3; ++t) delta = delta_step(delta, row_of(keys, t), row_of(values, t), 1);
  const fraction_matrix best = transpose(product(inverse(keys), values));
  const auto error = [&](const fraction_matrix& s) { return squares(combined(product(keys, transpose(s)), -1, values)); };
  return {{"least_squares_error", text_of(error(best))},
          {"delta_error_over_values", approximate(error(delta) / squares(values))}};
}

claim_values rls_table() {
  const recall_sample quadratic = sample_recall(relationship::quadratic, true);
  claim_values out{{"printed_delta", 0.030}, {"printed_rls", 0.029}, {"zero_predictor", 1.0 / recall_channels}};
  put(out, "delta", quadratic.delta_error);
  put(out, "rls", quadratic.rls_error);
  put(out, "delta_retrieval", quadratic.delta_retrieval);
  put(out, "rls_retrieval", quadratic.rls_retrieval);
  return out;
}

}  // namespace

claim_table recall_error_claims() {
  return {
      {"cost-of-linear-attention",
       recall,
       kind::bound,
       verdict::holds,
       "Linear attention costs O(d²) a step.",
       "d = K = V; operations",
       {exact_check("operations counted in the code that runs, d = 32 and 64", cost_a_step,
                    [](const claim_values& v) { return within(number_at(v, "linear_attention_64_over_32"), 4, 0.02); })}},
      {"cost-of-deltanet",
       recall,
       kind::bound,
       verdict::holds,
       "DeltaNet costs O(d²) a step.",
       "3 K V + V products and as many additions",
       {exact_check("operations counted in the code that runs, d = 32 and 64", cost_a_step,
                    [](const claim_values& v) { return within(number_at(v, "deltanet_64_over_32"), 4, 0.02); }),
        finding_of("wy", "counts-are-polynomials", "cases whose counted operations are those of the polynomial",
                   [](const claim_values& v) {
                     return number_at(v, "equal") == number_at(v, "cases") && number_at(v, "cases") > 400;
                   })}},
      {"cost-of-rls",
       recall,
       kind::bound,
       verdict::refuted,
       "RLS costs O(t d² + d³) where DeltaNet costs O(d²).",
       "that is the cost of solving afresh; by rank-one updates of the inverse RLS gives the same state at O(d²) a step, twice "
       "DeltaNet's operations",
       {exact_check("operations counted in the code that runs, d = 32 and 64", cost_a_step,
                    [](const claim_values& v) {
                      return within(number_at(v, "rls_64_over_32"), 4, 0.02) && number_at(v, "rls_over_deltanet_64") < 2.01;
                    }),
        exact_check("the state by rank-one updates and by the formula, in fractions", least_squares,
                    [](const claim_values& v) { return truth_at(v, "rank_one_updates_equal"); })}},
      {"rls-formula",
       recall,
       kind::definition,
       verdict::conditional,
       "RLS holds S = VᵀK (KᵀK)⁻¹.",
       "only from d independent keys on; before, KᵀK has no inverse and a ridge λI must be added",
       {exact_check("two and four pairs in three channels, in fractions", least_squares,
                    [](const claim_values& v) {
                      return truth_at(v, "rank_one_updates_equal") && !truth_at(v, "two_pairs_have_an_inverse");
                    })}},
      {"rls-is-the-linear-optimum",
       recall,
       kind::conclusion,
       verdict::conditional,
       "RLS is the best linear fit of all pairs at every step.",
       "of the sum of squared errors, without a ridge and with d independent keys",
       {exact_check("the objective at that state against twelve states beside it, in fractions", least_squares,
                    [](const claim_values& v) { return truth_at(v, "least"); })}},
      {"normalised-errors",
       recall,
       kind::experiment,
       verdict::artefact,
       "With normalised values DeltaNet has a mean squared error of 0.028 to 0.030 on every relationship.",
       "reproduced by queries independent of the keys: (2 − 64/T)/64 = 0.0302, the distance of two unit vectors that have "
       "nothing to do with each other. Predicting 0 gives 0.0156. The 0.028 of identity is 7 % below it",
       {certified("the closed form for T = 1000 and 64 channels beside the printed numbers", normalised_error,
                  [](const claim_values& v) {
                    return within(number_at(v, "printed"), number_at(v, "closed_form"), 0.02) &&
                           within(number_at(v, "printed_identity"), number_at(v, "closed_form"), 0.08) &&
                           number_at(v, "closed_form") > 1.9 * number_at(v, "zero_predictor");
                  }),
        exact_check("the expected squared norm of the state over all words of four keys, for three kinds of values, in fractions",
                    values_do_not_matter,
                    [](const claim_values& v) {
                      return text_at(v, "value_is_the_key") == text_at(v, "closed_form") &&
                             text_at(v, "value_is_constant") == text_at(v, "closed_form") &&
                             text_at(v, "value_follows_time") == text_at(v, "closed_form");
                    })}},
      {"normalisation-makes-it-tractable",
       recall,
       kind::conclusion,
       verdict::refuted,
       "Uniform errors show that normalisation makes all relationships equally tractable, without a nonlinear ceiling.",
       "equally untouched: the error is exactly the same for values that do not depend on the keys at all, and twice that of "
       "predicting 0",
       {exact_check("the expected squared norm of the state for values that are the key, constant, or follow time alone",
                    values_do_not_matter,
                    [](const claim_values& v) {
                      return text_at(v, "value_is_constant") == text_at(v, "value_is_the_key") &&
                             text_at(v, "value_follows_time") == text_at(v, "value_is_the_key") &&
                             text_at(v, "closed_form") == "65/27";
                    }),
        certified("the closed form against predicting 0", normalised_error,
                  [](const claim_values& v) { return number_at(v, "closed_form") > 1.9 * number_at(v, "zero_predictor"); })}},
      {"raw-error-identity",
       recall,
       kind::experiment,
       verdict::artefact,
       "Without normalisation identity has an error of 0.026.",
       "2 E v² − E v² 64/T = 0.0303, as with normalisation; the printed number is 14 % below, beyond its spread",
       {certified("the closed form beside the printed number", raw_identity,
                  [](const claim_values& v) { return to_part(v, 0.15); })}},
      {"raw-error-quadratic",
       recall,
       kind::experiment,
       verdict::artefact,
       "Without normalisation quadratic values have an error of 0.001.",
       "1.94 times the mean square of the values, 0.0014; predicting 0 errs half as much",
       {certified("the closed form beside the printed number", raw_quadratic, to_one_digit)}},
      {"raw-error-cubic",
       recall,
       kind::experiment,
       verdict::artefact,
       "Without normalisation cubic values have an error of 0.0001.",
       "1.94 times the mean square of the values, 0.00010",
       {certified("the closed form beside the printed number", raw_cubic, to_one_digit)}},
      {"raw-error-quartic",
       recall,
       kind::experiment,
       verdict::artefact,
       "Without normalisation quartic values have an error of 0.00001.",
       "1.94 times the mean square of the values, 0.000010",
       {certified("the closed form beside the printed number", raw_quartic, to_one_digit)}},
      {"raw-error-exponential",
       recall,
       kind::experiment,
       verdict::artefact,
       "Without normalisation exponential values have an error of 1.92: a magnitude explosion.",
       "1.94 times the mean square of the values, 2.00: eᵏ is near 1 and its mean square 1.03",
       {certified("the closed form beside the printed number", raw_exponential,
                  [](const claim_values& v) { return to_part(v, 0.05); })}},
      {"raw-error-sine",
       recall,
       kind::experiment,
       verdict::artefact,
       "Without normalisation values sin(10πk) have an error of 0.96.",
       "1.94 times the mean square of the values, 0.97: a half for any fast sine",
       {certified("the closed form beside the printed number", raw_sine,
                  [](const claim_values& v) { return to_part(v, 0.02); })}},
      {"ratio-column",
       recall,
       kind::identity,
       verdict::holds,
       "The printed ratios are those of the printed errors.",
       "to the digits printed",
       {exact_check("six quotients", ratio_column,
                    [](const claim_values& v) {
                      return within(number_at(v, "identity"), 0.93, 0.005) && within(number_at(v, "quadratic"), 0.03, 0.12) &&
                             within(number_at(v, "cubic"), 0.003, 0.12) && within(number_at(v, "quartic"), 0.0003, 0.12) &&
                             within(number_at(v, "exponential"), 64, 1e-9) && within(number_at(v, "sine"), 32, 1e-9);
                    })}},
      {"factor-of-cubic",
       recall,
       kind::contradiction,
       verdict::contradiction,
       "The table has cubic at 0.003 of the normalised error, the text at 100 times less.",
       "the table gives 300; the factors 30 and 3000 beside it agree with the table",
       {exact_check("quotients of the printed errors", cubic_factor,
                    [](const claim_values& v) {
                      return number_at(v, "from_the_table") > 2.9 * number_at(v, "in_the_text") &&
                             within(number_at(v, "quadratic_from_the_table"), 30, 1e-9) &&
                             within(number_at(v, "quartic_from_the_table"), 3000, 1e-9);
                    })}},
      {"higher-degree-is-easier",
       recall,
       kind::conclusion,
       verdict::artefact,
       "Higher powers of a key are easier to learn, exponentials and sines harder.",
       "in units of the values' mean square all six errors are the same, 1.937: nothing was learned of any",
       {certified("closed form over mean square, six relationships", scale_free, all_alike)}},
      {"only-exponential-and-sine-are-hard",
       recall,
       kind::conclusion,
       verdict::refuted,
       "Only for exponentials and sines does nonlinearity mean hardness; identity and polynomials work well.",
       "the experiment tells none of the six apart, see higher-degree-is-easier; by explained variance k², k⁴ and the sine are "
       "hard, and eᵏ is not",
       {certified("closed form over mean square, six relationships", scale_free, all_alike)}},
      {"identity-measured-four-times",
       recall,
       kind::contradiction,
       verdict::contradiction,
       "One experiment, identity values of unit keys, is reported with errors of 0.028, 0.026, 0.030 and 0.031.",
       "a unit key's identity value is normalised already, so the first two are one experiment; their difference shows the "
       "spread that is not stated",
       {exact_check("the length of the value, and the printed numbers", identity_twice,
                    [](const claim_values& v) {
                      return truth_at(v, "length_of_value_is_1") &&
                             number_at(v, "printed_normalised") != number_at(v, "printed_raw") &&
                             number_at(v, "printed_before_convolution") != number_at(v, "printed_normalised");
                    })}},
      {"rls-and-deltanet-table",
       recall,
       kind::experiment,
       verdict::artefact,
       "With normalised values RLS and DeltaNet err alike, within 5 %: 0.029 against 0.030.",
       "reproduced, with queries independent of the keys, where both err twice as much as predicting 0; on stored keys RLS errs "
       "half as much as DeltaNet",
       {sampled(recall_draws * recall_tokens, recall_seed,
                "quadratic values, normalised: errors at independent queries and at stored keys, mean of four draws", rls_table,
                [](const claim_values& v) {
                  return within(number_at(v, "delta"), number_at(v, "printed_delta"), 0.05) &&
                         within(number_at(v, "rls"), number_at(v, "printed_rls"), 0.08) &&
                         number_at(v, "rls") > 1.5 * number_at(v, "zero_predictor") &&
                         number_at(v, "rls_retrieval") < 0.6 * number_at(v, "delta_retrieval");
                })}},
      {"rls-is-not-needed",
       recall,
       kind::conclusion,
       verdict::refuted,
       "RLS's correction for correlated keys brings nothing, and DeltaNet's update suffices.",
       "three keys of cosine 0.8 in three channels: least squares gives every value back exactly, DeltaNet only the last",
       {exact_check("three pairs in fractions", correlated_keys,
                    [](const claim_values& v) {
                      return text_at(v, "least_squares_error") == "0" && number_at(v, "delta_error_over_values") > 0.2;
                    })}},
      {"linear-attention-over-length",
       recall,
       kind::experiment,
       verdict::artefact,
       "Linear attention errs by 0.40, 20.8 and 1306 after 500, 4000 and 32 000 tokens of identity.",
       "reproduced within 2 % by queries independent of the keys: ((T² − 1)/3d² + (T + 1)/2d + 1)/d, the size of a state that is "
       "never normalised",
       {certified("the closed form beside the printed numbers", hebbian_table,
                  [](const claim_values& v) {
                    return within(number_at(v, "printed_500"), number_at(v, "closed_form_500"), 0.02) &&
                           within(number_at(v, "printed_4000"), number_at(v, "closed_form_4000"), 0.005) &&
                           within(number_at(v, "printed_32000"), number_at(v, "closed_form_32000"), 0.001);
                  })}},
      {"linear-attention-degrades-exponentially",
       recall,
       kind::conclusion,
       verdict::refuted,
       "The error of linear attention grows exponentially with length.",
       "as T², from the printed numbers alone: exponents 1.90 and 1.99. Exponential growth would have led from 20.8 to 10¹⁵",
       {exact_check("exponents between the printed errors", growth_law,
                    [](const claim_values& v) {
                      return number_at(v, "exponent_500_to_4000") < 2.05 &&
                             within(number_at(v, "exponent_4000_to_32000"), 2, 0.01) &&
                             number_at(v, "exponential_would_give") > 1e14;
                    })}},
      {"growth-to-4000-tokens",
       recall,
       kind::identity,
       verdict::holds,
       "By 4000 tokens the error of linear attention has grown 52 times.",
       "from the printed numbers",
       {exact_check("20.8 over 0.40", growth_law,
                    [](const claim_values& v) { return within(number_at(v, "factor_to_4000"), 52, 1e-9); })}},
      {"linear-attention-loses-identity",
       recall,
       kind::conclusion,
       verdict::refuted,
       "At 32 000 tokens linear attention has lost all ability to reconstruct identity.",
       "up to scale it has not: between a stored key and what is read at it the squared cosine of expectations is 0.998, and "
       "rises with T",
       {certified("expectations over keys uniform on the sphere", hebbian_cosine,
                  [](const claim_values& v) {
                    return number_at(v, "squared_cosine_32000") > 0.99 &&
                           number_at(v, "squared_cosine_32000") > number_at(v, "squared_cosine_500");
                  })}},
      {"keys-orthogonal-means-ktk",
       recall,
       kind::misprint,
       verdict::misprint,
       "Orthogonality of the keys is written KᵀK ≈ I.",
       "K Kᵀ ≈ I is meant, keys being rows as in its formula of RLS; and with more keys than channels it cannot hold at all: the "
       "mean of KᵀK is T/d I",
       {exact_check("two orthonormal keys in four channels", orthogonal_keys,
                    [](const claim_values& v) {
                      return truth_at(v, "k_kt_of_two_orthonormal_keys_is_identity") &&
                             !truth_at(v, "kt_k_of_two_orthonormal_keys_is_identity") &&
                             number_at(v, "expected_kt_k_at_1000_tokens") > 15;
                    })}},
      {"correlations-accumulate",
       recall,
       kind::conclusion,
       verdict::refuted,
       "Linear attention fails over length because correlations between keys accumulate.",
       "it does the same with keys that are exactly orthonormal and return: nothing is ever erased",
       {exact_check("four orthonormal keys, three times in turn", orthogonal_keys,
                    [](const claim_values& v) { return truth_at(v, "state_is_three_times_identity"); })}},
      {"deltanet-over-length",
       recall,
       kind::experiment,
       verdict::artefact,
       "DeltaNet and RLS stay at 0.030, 0.031 and 0.031.",
       "reproduced within 3 %: (2 − 64/T)/64 tends to 2/64, two unrelated unit vectors. A flat error here is no memory",
       {certified("the closed form beside the printed numbers", delta_long,
                  [](const claim_values& v) {
                    return within(number_at(v, "printed_500"), number_at(v, "closed_form_500"), 0.03) &&
                           within(number_at(v, "printed_4000"), number_at(v, "closed_form_4000"), 0.02) &&
                           within(number_at(v, "printed_32000"), number_at(v, "closed_form_32000"), 0.02) &&
                           within(number_at(v, "closed_form_32000"), number_at(v, "two_independent_unit_vectors"), 0.01);
                  })}},
      {"deltanet-state-stays-bounded",
       recall,
       kind::conclusion,
       verdict::holds,
       "The projection I − k kᵀ keeps DeltaNet from the growth of linear attention.",
       "unit keys, β = 1, values of one size: the expected squared norm of the state is at most d E‖v‖² for every T, that of "
       "linear attention grows as T²/d",
       {theorem("algebra.error_accumulation.forced_state_bound"),
        certified("both expectations for identity values at 1000 and 32 000 tokens", state_size,
                  [](const claim_values& v) {
                    return number_at(v, "delta_32000") <= recall_channels &&
                           number_at(v, "delta_1000") < number_at(v, "delta_32000") &&
                           number_at(v, "linear_attention_32000") > 1e6;
                  })}},
      {"exponential-over-length",
       recall,
       kind::experiment,
       verdict::artefact,
       "With exponential values DeltaNet errs by 2.06 and linear attention by 1534 after 32 000 tokens.",
       "reproduced, DeltaNet within 0.2 % and linear attention within 4 %: twice the mean square of eᵏ, and the size of the "
       "state",
       {certified("the closed forms beside the printed numbers", exponential_long,
                  [](const claim_values& v) {
                    return within(number_at(v, "printed_delta"), number_at(v, "closed_form_delta"), 0.002) &&
                           within(number_at(v, "printed_linear_attention"), number_at(v, "closed_form_linear_attention"), 0.04) &&
                           within(number_at(v, "closed_form_delta"), number_at(v, "twice_mean_square"), 0.002);
                  })}},
      {"gap-widens-with-length",
       recall,
       kind::conclusion,
       verdict::holds,
       "The gap between DeltaNet and linear attention widens with length.",
       "of squared errors that are not scale-free: 13, 672 and 41 833 times",
       {certified("quotients of the closed forms", widening,
                  [](const claim_values& v) {
                    return number_at(v, "gap_4000") > 10 * number_at(v, "gap_500") &&
                           number_at(v, "gap_32000") > 10 * number_at(v, "gap_4000");
                  })}},
      {"fit-for-long-contexts",
       recall,
       kind::conclusion,
       verdict::refuted,
       "Its flat error validates DeltaNet for long contexts.",
       "the flat error is that of unrelated vectors at every length, see deltanet-over-length; it shows a bounded state, not a "
       "memory",
       {certified("the closed form at 32 000 tokens against two unrelated unit vectors", delta_long,
                  [](const claim_values& v) {
                    return within(number_at(v, "closed_form_32000"), number_at(v, "two_independent_unit_vectors"), 0.01);
                  })}},
  };
}

}  // namespace deltaproof::claim_detail
