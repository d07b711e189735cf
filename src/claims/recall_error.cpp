// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about the error tables: what protocol makes them, what else would, and what follows from them.

#include <array>
#include <cmath>

#include "claims/recall_parts.hpp"
#include "claims/recall_sample.hpp"

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

/// Printed errors of six relationships, normalised and not, that the closed form meets.
claim_values printed_and_closed() {
  struct row {
    relationship f;
    double normalised, raw, last_digit;  ///< of raw
  };
  std::uint64_t met = 0;
  std::uint64_t met_of_identity = 0;
  for (const row& r : {row{relationship::identity, 0.028, 0.026, 0.001}, row{relationship::quadratic, 0.030, 0.001, 0.001},
                       row{relationship::cubic, 0.030, 0.0001, 0.0001}, row{relationship::quartic, 0.030, 0.00001, 0.00001},
                       row{relationship::exponential, 0.030, 1.92, 0.01}, row{relationship::sine, 0.030, 0.96, 0.01}}) {
    const auto meets = [](double printed, double closed, double last_digit) {
      return within(printed, closed, 0.05) || std::abs(printed - closed) <= last_digit / 2;
    };
    const std::uint64_t both = (meets(r.normalised, delta_error_of_unit_values(printed_tokens), 0.001) ? 1U : 0U) +
                               (meets(r.raw, delta_error(r.f, printed_tokens), r.last_digit) ? 1U : 0U);
    met += both;
    if (r.f == relationship::identity) met_of_identity += both;
  }
  return {{"met", met}, {"met_of_identity", met_of_identity}};
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

/// Each relationship's error over its mean square, times the 1/64 that normalised values have, and the error of those.
claim_values normalised_by_scale() {
  claim_values out;
  const claim_values ratios = scale_free();
  for (const auto& [name, ratio] : ratios) out[name] = number_at(ratios, name) / recall_channels;
  out["unit_values"] = delta_error_of_unit_values(printed_tokens);
  return out;
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
  return {{"length_of_value_is_1", inner(k, k) == 1}};
}

/// The printed column of gaps from the printed errors.
claim_values gap_column() { return {{"identity", 0.028 / 0.028}, {"others", 0.030 / 0.029}}; }

/// Normalised values read back at stored keys, where the question has an answer.
claim_values normalised_retrieval() {
  const recall_sample identity = sample_recall(relationship::identity, true);
  const recall_sample quadratic = sample_recall(relationship::quadratic, true);
  claim_values out{{"zero_predictor", 1.0 / recall_channels}};
  put(out, "identity_at_independent_queries", identity.delta_error);
  put(out, "quadratic_at_independent_queries", quadratic.delta_error);
  put(out, "identity_at_stored_keys", identity.delta_retrieval);
  put(out, "quadratic_at_stored_keys", quadratic.delta_retrieval);
  return out;
}

/// The run of identity values with and without their normalisation, against the two numbers that are printed.
claim_values identity_runs() {
  const sampled_mean normalised = sample_recall(relationship::identity, true).delta_error;
  const sampled_mean raw = sample_recall(relationship::identity, false).delta_error;
  return {{"difference", std::abs(normalised.mean - raw.mean)},
          {"half_range_of_draws", normalised.half_range},
          {"printed_difference", 0.028 - 0.026}};
}

/// Three correlated keys in three channels: least squares gives every value back, DeltaNet the last alone.
claim_values correlated_keys() {
  const fraction_matrix keys(
      3, 3, std::vector<rational>{1, 0, 0, fraction(4, 5), fraction(3, 5), 0, fraction(4, 5), 0, fraction(3, 5)});
  const fraction_matrix values(3, 2,
                               std::vector<rational>{fraction(3, 5), fraction(4, 5), fraction(-12, 13), fraction(5, 13),
                                                     fraction(8, 17), fraction(-15, 17)});  // of length 1
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
        finding_of(
            "recall", "protocol",
            "of the protocols that the text allows, one meets 10 of 12 printed errors; the other two are those of identity",
            [](const claim_values& v) {
              return truth_at(v, "found") && number_at(v, "agreeing") >= 10 && number_at(v, "not_met") <= 2;
            }),
        finding_of("recall", "error-is-chance",
                   "errors of all six relationships over the mean square of the values, and the cosine of output and value",
                   [](const claim_values& v) {
                     return number_at(v, "lowest") > 1.8 && number_at(v, "highest") < 2.1 && number_at(v, "cosine") < 0.05;
                   }),
        exact_check("the expected squared norm of the state over all words of four keys, for three kinds of values, in fractions",
                    values_do_not_matter,
                    [](const claim_values& v) {
                      return text_at(v, "value_is_the_key") == text_at(v, "closed_form") &&
                             text_at(v, "value_is_constant") == text_at(v, "closed_form") &&
                             text_at(v, "value_follows_time") == text_at(v, "closed_form");
                    })}},
      {"no-degradation-with-nonlinearity",
       recall,
       kind::experiment,
       verdict::artefact,
       "With normalised values the error does not grow with the nonlinearity of the relationship: no breaking point, no ceiling.",
       "at queries independent of the keys no relationship could show one. Read at stored keys the same normalised values differ "
       "by "
       "seven orders: identity errs by 2·10⁻⁹, k² by nearly twice what predicting 0 does",
       {sampled(2 * recall_draws * recall_tokens, recall_seed,
                "normalised identity and k², one state each: at independent queries and at stored keys", normalised_retrieval,
                [](const claim_values& v) {
                  return within(number_at(v, "quadratic_at_independent_queries"), number_at(v, "identity_at_independent_queries"),
                                0.05) &&
                         number_at(v, "identity_at_stored_keys") < 1e-6 &&
                         number_at(v, "quadratic_at_stored_keys") > 1.5 * number_at(v, "zero_predictor");
                })}},
      {"uniformity-comes-from-normalisation",
       recall,
       kind::conclusion,
       verdict::holds,
       "What normalisation removes, the length of the values, explains why all errors become alike.",
       "each error is 1.937 times the mean square of its values, and normalising makes every mean square 1/64",
       {certified("six multiples of 1/64 against the closed form for unit values", normalised_by_scale,
                  [](const claim_values& v) {
                    bool alike = true;
                    for (const auto& [name, value] : v)
                      alike = alike && within(number_at(v, name), number_at(v, "unit_values"), 1e-9);
                    return alike;
                  }),
        finding_of("recall", "error-is-chance", "runs of all six, normalised and not: least and largest error over the mean square",
                   [](const claim_values& v) {
                     return within(number_at(v, "lowest"), 1.937, 0.02) && within(number_at(v, "highest"), 1.937, 0.02);
                   })}},
      {"normalisation-is-a-choice-and-is-not",
       recall,
       kind::contradiction,
       verdict::contradiction,
       "Whether to normalise is called no question of better or worse, and then not optional.",
       "of the memory it is a change of unit: with it and without, runs err by the same multiple of the mean square of the values. "
       "Of training nothing is claimed",
       {finding_of("recall", "error-is-chance",
                   "runs of all six, normalised and not: least and largest error over the mean square",
                   [](const claim_values& v) { return within(number_at(v, "lowest"), number_at(v, "highest"), 0.02); })}},
      {"normalisation-makes-it-tractable",
       recall,
       kind::conclusion,
       verdict::refuted,
       "Uniform errors show that normalisation makes all relationships equally tractable, without a nonlinear ceiling.",
       "equally untouched: the error is exactly the same for values that do not depend on the keys at all, and twice that of "
       "predicting 0; random projections, as the architectures have them, do not change that",
       {exact_check("the expected squared norm of the state for values that are the key, constant, or follow time alone",
                    values_do_not_matter,
                    [](const claim_values& v) {
                      return text_at(v, "value_is_constant") == text_at(v, "value_is_the_key") &&
                             text_at(v, "value_follows_time") == text_at(v, "value_is_the_key") &&
                             text_at(v, "closed_form") == "65/27";
                    }),
        certified("the closed form against predicting 0", normalised_error,
                  [](const claim_values& v) { return number_at(v, "closed_form") > 1.9 * number_at(v, "zero_predictor"); }),
        finding_of("recall", "projections",
                   "least error over the mean square of the values with random projections of keys, queries or values",
                   [](const claim_values& v) { return number_at(v, "lowest") > 1.5 && number_at(v, "highest") < 3; })}},
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
       {certified("closed form over mean square, six relationships", scale_free, all_alike),
        finding_of("recall", "polynomials-are-not-easier",
                   "largest over least error in units of the mean square of the values, from runs",
                   [](const claim_values& v) { return number_at(v, "spread") < 1.1; })}},
      {"patterns-beyond-theory",
       recall,
       kind::conclusion,
       verdict::conditional,
       "The experiments revealed patterns that theory alone does not make obvious.",
       "what is obvious is a matter of taste; but theory alone gives them: closed forms meet ten of the twelve errors with and "
       "without normalisation and all nine over length. The two that they miss are those of identity, which the text gives four "
       "times and never the same",
       {certified("the twelve printed errors against closed forms, within 5 % or half a unit of the last digit", printed_and_closed,
                  [](const claim_values& v) { return number_at(v, "met") == 10 && number_at(v, "met_of_identity") == 0; }),
        finding_of("recall", "scaling-closed-form", "printed errors of the table of lengths that follow from the closed forms",
                   [](const claim_values& v) { return number_at(v, "met") == 9 && number_at(v, "of") == 9; })}},
      {"only-exponential-and-sine-are-hard",
       recall,
       kind::conclusion,
       verdict::refuted,
       "Only for exponentials and sines does nonlinearity mean hardness; identity and polynomials work well.",
       "the experiment tells none of the six apart, see higher-degree-is-easier; by explained variance k², k⁴ and the sine are "
       "hard, and eᵏ, but for its constant, is not",
       {certified("closed form over mean square, six relationships", scale_free, all_alike),
        finding_of("recall", "polynomials-are-not-easier",
                   "largest over least error in units of the mean square of the values, from runs",
                   [](const claim_values& v) { return number_at(v, "spread") < 1.1; }),
        finding_of("recall", "own-key",
                   "the part of the mean square that a linear map explains, cube and exponential, in closed form",
                   [](const claim_values& v) {
                     return within(number_at(v, "cubic"), 0.618, 0.01) && number_at(v, "exponential") < 0.02;
                   })}},
      {"identity-measured-four-times",
       recall,
       kind::contradiction,
       verdict::contradiction,
       "One experiment, identity values of unit keys, is reported with errors of 0.028, 0.026, 0.030 and 0.031.",
       "a unit key's identity value is normalised already, so the first two are one experiment: run on the same draws they agree "
       "to "
       "the last digits, and draws of 1000 tokens range over 3·10⁻⁴, not over the printed 0.002",
       {exact_check("the length of the value", identity_twice,
                    [](const claim_values& v) { return truth_at(v, "length_of_value_is_1"); }),
        sampled(2 * recall_draws * recall_tokens, recall_seed,
                "identity, values normalised and not, on the same four draws of 1000 tokens", identity_runs,
                [](const claim_values& v) {
                  return number_at(v, "difference") < 1e-12 &&
                         number_at(v, "printed_difference") > 5 * number_at(v, "half_range_of_draws");
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
                }),
        finding_of("recall", "least-squares-spike",
                   "the error of least squares averaged over its first tokens, over that of its last state",
                   [](const claim_values& v) { return number_at(v, "spike") > 1.3 && number_at(v, "met") >= 3; }),
        finding_of("recall", "least-squares-halves",
                   "error of DeltaNet over that of least squares at the token’s own key, five relationships",
                   [](const claim_values& v) { return number_at(v, "lowest") > 1.7 && number_at(v, "highest") < 2.3; })}},
      {"gap-column",
       recall,
       kind::identity,
       verdict::holds,
       "The printed gaps of 1.00 and 1.03, below 5 %, are those of the printed errors.",
       "to the digits printed; quartic and sine have no row",
       {exact_check("two quotients", gap_column,
                    [](const claim_values& v) {
                      return within(number_at(v, "identity"), 1, 1e-12) && within(number_at(v, "others"), 1.03, 0.005);
                    })}},
      {"rls-is-not-needed",
       recall,
       kind::conclusion,
       verdict::refuted,
       "With normalised values RLS's correction for correlated keys brings nothing, and DeltaNet's update suffices.",
       "three keys of cosine 0.8 or 0.64 in three channels: least squares gives every value back exactly, DeltaNet only the "
       "last. "
       "With independent keys and noise-like values it errs half as much at a token's own key",
       {exact_check("three pairs of unit keys and unit values in fractions", correlated_keys,
                    [](const claim_values& v) {
                      return text_at(v, "least_squares_error") == "0" && number_at(v, "delta_error_over_values") > 0.2;
                    }),
        finding_of("recall", "least-squares-halves",
                   "error of DeltaNet over that of least squares at the token’s own key, five relationships",
                   [](const claim_values& v) { return number_at(v, "lowest") > 1.7; })}},
  };
}

}  // namespace deltaproof::claim_detail
