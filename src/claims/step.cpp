// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about one step: its forms, what it minimises, what it forgets, which rules extend it.

#include "claims/parts.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::claim_detail {
namespace {

using kind = claim_kind;
using verdict = claim_verdict;

constexpr std::size_t channels = 3;
constexpr std::size_t width = 2;

struct sample {
  fraction_matrix s = sample_matrix(width, channels, 1);
  fraction_vector k = sample_vector(channels, 2);
  fraction_vector v = sample_vector(width, 3);
  rational b = fraction(2, 7);
};

claim_values two_forms() {
  const sample x;
  const fraction_matrix factored = combined(product(x.s, transition(x.k, x.b)), x.b, outer(x.v, x.k));
  // The library's own step, states (K, V).
  recurrence<rational> machine(transpose(x.s));
  machine.step(x.k, x.v, x.b);
  return {{"equal", delta_step(x.s, x.k, x.v, x.b) == factored}, {"library_equal", transpose(machine.state()) == factored}};
}

claim_values old_and_new_values() {
  const sample x;
  const fraction_vector old_value = product(x.s, x.k);
  fraction_vector new_value = scaled(x.b, x.v);
  for (std::size_t i = 0; i < width; ++i) new_value[i] += (1 - x.b) * old_value[i];
  const fraction_matrix exchanged = combined(combined(x.s, -1, outer(old_value, x.k)), 1, outer(new_value, x.k));
  return {{"equal", exchanged == delta_step(x.s, x.k, x.v, x.b)}};
}

/// Half the squared prediction error: quadratic, so that central differences are its gradient exactly.
rational loss(const fraction_matrix& s, const sample& x) {
  fraction_vector error = product(s, x.k);
  for (std::size_t i = 0; i < width; ++i) error[i] -= x.v[i];
  return inner(error, error) / 2;
}

claim_values gradient_step() {
  const sample x;
  fraction_matrix gradient(width, channels);
  const rational h = fraction(1, 5);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    fraction_matrix up = x.s;
    fraction_matrix down = x.s;
    up.data()[i] += h;
    down.data()[i] -= h;
    gradient.data()[i] = (loss(up, x) - loss(down, x)) / (2 * h);
  }
  return {{"equal", combined(x.s, -x.b, gradient) == delta_step(x.s, x.k, x.v, x.b)}};
}

/// ‖gradient‖² against ‖error‖² ‖k‖².
claim_values gradient_size() {
  const sample x;
  fraction_vector error = product(x.s, x.k);
  for (std::size_t i = 0; i < width; ++i) error[i] -= x.v[i];
  return {{"equal", squares(outer(error, x.k)) == inner(error, error) * inner(x.k, x.k)}};
}

/// A unit key and b = 1: what lies along the key is erased, the rest stays.
claim_values removes_the_old() {
  const fraction_vector k{fraction(3, 5), fraction(4, 5), 0};
  const fraction_vector other{fraction(-4, 5), fraction(3, 5), 7};
  const sample x;
  const fraction_matrix kept = product(x.s, transition(k, 1));
  const fraction_vector along = product(kept, k);
  const fraction_vector longer = product(product(x.s, transition(scaled(2, k), 1)), k);
  return {{"erased", inner(along, along) == 0},
          {"rest_unchanged", product(kept, other) == product(x.s, other)},
          {"erased_for_a_key_of_length_2", inner(longer, longer) == 0}};
}

/// Outputs and state of one read with q and with a multiple of it.
claim_values query_is_only_read() {
  const sample x;
  const fraction_vector q = sample_vector(channels, 9);
  const fraction_matrix after = delta_step(x.s, x.k, x.v, x.b);
  recurrence<rational> machine(transpose(after));
  fraction_vector once(width);
  fraction_vector thrice(width);
  machine.read(q, once);
  machine.read(scaled(3, q), thrice);
  return {{"output_is_linear", thrice == scaled(3, once)}, {"state_unchanged", transpose(machine.state()) == after}};
}

/// Two keys of one direction: what L2 normalisation makes of the step with each, and what the plain step does.
claim_values length_is_dropped() {
  const sample x;
  const fraction_vector k{fraction(3, 5), fraction(4, 5), 0};  // of length 1
  const auto normalised = [&](const rational& length) {
    return delta_step(x.s, scaled(1 / length, scaled(length, k)), x.v, x.b);
  };
  return {{"normalised_equal", normalised(2) == normalised(5)},
          {"plain_equal", delta_step(x.s, scaled(2, k), x.v, x.b) == delta_step(x.s, scaled(5, k), x.v, x.b)}};
}

/// A gate of 1 is no gate; a gate of 0 forgets everything before the step.
claim_values gates_extend_the_step() {
  const sample x;
  const auto gated = [&](const fraction_vector& decay) {
    recurrence<rational> machine(transpose(x.s));
    machine.decay(decay);
    machine.step(x.k, x.v, x.b);
    return transpose(machine.state());
  };
  const fraction_matrix ungated = delta_step(x.s, x.k, x.v, x.b);
  return {{"scalar_gate_of_1_equal", gated({1}) == ungated},
          {"channel_gates_of_1_equal", gated({1, 1, 1}) == ungated},
          {"gate_of_one_half_equal", gated({fraction(1, 2)}) == ungated}};
}

/// The second difference of the loss along a direction, which is twice its curvature there, for three values and two keys.
claim_values curvature_of_the_loss() {
  const sample x;
  const fraction_matrix direction = sample_matrix(width, channels, 17);
  const auto curvature = [&](const rational& value_scale, const rational& key_scale) {
    sample at = x;
    at.v = scaled(value_scale, x.v);
    at.k = scaled(key_scale, x.k);
    return loss(combined(x.s, 1, direction), at) - 2 * loss(x.s, at) + loss(combined(x.s, -1, direction), at);
  };
  return {{"values_times_1000_equal", curvature(1000, 1) == curvature(1, 1)},
          {"values_times_0_equal", curvature(0, 1) == curvature(1, 1)},
          {"keys_times_2_over", text_of(curvature(1, 2) / curvature(1, 1))}};
}

claim_values two_conventions() {
  const sample x;
  negative_eigenvalues_erase<rational> erase(channels, width);
  negative_eigenvalues_both<rational> both(channels, width);
  fraction_matrix halved(width, channels);
  fraction_matrix doubled(width, channels);
  for (unsigned t = 0; t < 3; ++t) {
    const fraction_vector k = sample_vector(channels, 20 + t);
    const fraction_vector v = sample_vector(width, 30 + t);
    erase.step(k, v, x.b);
    both.step(k, v, x.b);
    halved = delta_step(halved, k, scaled(fraction(1, 2), v), 2 * x.b);
    doubled = delta_step(doubled, k, v, 2 * x.b);
  }
  return {{"as_printed_is_half_the_values", transpose(erase.state()) == halved},
          {"both_doubled_is_step_2_beta", transpose(both.state()) == doubled},
          {"conventions_equal", halved == doubled}};
}

/// Products of reflections I - k k^T, k = e_i - e_j, over all words of up to 5 of the three exchanges of 3 letters; and
/// the parity of words of bits by one unit key with step 2 for a one.
claim_values words_by_reflections() {
  const std::vector<fraction_vector> keys{{1, -1, 0}, {0, 1, -1}, {1, 0, -1}};
  const std::vector<std::vector<std::size_t>> exchanges{{1, 0, 2}, {0, 2, 1}, {2, 1, 0}};
  std::uint64_t words = 0;
  bool permutations = true;
  for (std::size_t length = 1; length <= 5; ++length) {
    std::size_t count = 1;
    for (std::size_t i = 0; i < length; ++i) count *= keys.size();
    for (std::size_t word = 0; word < count; ++word, ++words) {
      fraction_matrix state = identity<rational>(3);
      std::vector<std::size_t> letters{0, 1, 2};  // letters[column]: the row that holds its 1
      for (std::size_t i = 0, rest = word; i < length; ++i, rest /= keys.size()) {
        const std::size_t which = rest % keys.size();
        state = product(state, transition(keys[which], 1));
        const std::vector<std::size_t> before = letters;
        for (std::size_t c = 0; c < 3; ++c) letters[c] = before[exchanges[which][c]];
      }
      fraction_matrix expected(3, 3);
      for (std::size_t c = 0; c < 3; ++c) expected(letters[c], c) = 1;
      permutations = permutations && state == expected;
    }
  }
  bool parity = true;
  bool sign_kept = true;  // with eigenvalues in [0, 1] the same read-out never changes its sign
  for (std::uint32_t bits = 0; bits < 1024; ++bits) {
    rational reflected = 1;
    rational damped = 1;
    int ones = 0;
    for (int i = 0; i < 10; ++i) {
      const bool one = (bits >> i & 1U) != 0;
      ones += one ? 1 : 0;
      reflected *= 1 - rational(one ? 2 : 0);
      damped *= 1 - (one ? fraction(9, 10) : fraction(1, 10));
    }
    parity = parity && reflected == (ones % 2 == 0 ? 1 : -1);
    sign_kept = sign_kept && damped > 0;
  }
  return {{"words", words},
          {"permutations_exact", permutations},
          {"parities", 1024},
          {"parity_exact", parity},
          {"non_negative_never_flips", sign_kept}};
}

/// Five pairs in three channels: the objective of each state after all of them, over that of least squares.
claim_values online_regression() {
  const std::size_t tokens = 5;
  fraction_matrix hebb(width, channels);
  fraction_matrix delta(width, channels);
  const fraction_matrix keys = sample_matrix(tokens, channels, 40);
  const fraction_matrix values = sample_matrix(tokens, width, 41);
  for (std::size_t t = 0; t < tokens; ++t) {
    const fraction_vector k = row_of(keys, t);
    hebb = combined(hebb, 1, outer(row_of(values, t), k));
    delta = delta_step(delta, k, row_of(values, t), 1 / inner(k, k));  // as with a unit key and b = 1
  }
  const fraction_matrix best = product(product(transpose(values), keys), inverse(product(transpose(keys), keys)));
  const auto objective = [&](const fraction_matrix& s) { return squares(combined(product(keys, transpose(s)), -1, values)); };
  const fraction_vector last = product(delta, row_of(keys, tokens - 1));
  return {{"hebbian_over_least_squares", approximate(objective(hebb) / objective(best))},
          {"delta_over_least_squares", approximate(objective(delta) / objective(best))},
          {"delta_fits_the_last_pair", last == row_of(values, tokens - 1)}};
}

}  // namespace

claim_table step_claims() {
  return {
      {"delta-rule-two-forms",
       blog | recall | notes,
       kind::identity,
       verdict::holds,
       "Subtracting η (S k − v) kᵀ from the state is multiplying it by I − η k kᵀ and adding η v kᵀ.",
       "any commutative ring",
       {theorem("algebra.wy.delta_rule_row"),
        exact_check("both forms and the library's step on one state of fractions", two_forms,
                    [](const claim_values& v) { return truth_at(v, "equal") && truth_at(v, "library_equal"); })}},
      {"delta-rule-old-new-values",
       notes,
       kind::identity,
       verdict::holds,
       "The step exchanges the value read at the key for a new one: S − v_old kᵀ + v_new kᵀ.",
       "with v_old = S k and v_new = (1 − β) v_old + β v, which the notes leave unsaid",
       {exact_check("the exchange against the step, in fractions", old_and_new_values, is_equal)}},
      {"sgd-view",
       blog | notes,
       kind::identity,
       verdict::holds,
       "One step is one step of gradient descent, learning rate η, on half the squared error of S k against v.",
       "any scalars",
       {exact_check("the gradient by central differences, exact for a quadratic, against the step", gradient_step, is_equal)}},
      {"online-regression-objective",
       recall,
       kind::conclusion,
       verdict::conditional,
       "Linear attention, DeltaNet and RLS each minimise the sum of the squared errors on all pairs so far.",
       "RLS does; DeltaNet with a unit key and β = 1 fits the last pair exactly and that only; linear attention minimises none "
       "of it",
       {exact_check("five pairs in three channels, in fractions: the objective of each state over that of least squares; "
                    "DeltaNet's last pair",
                    online_regression,
                    [](const claim_values& v) {
                      return number_at(v, "hebbian_over_least_squares") > 2 && number_at(v, "delta_over_least_squares") > 1.05 &&
                             truth_at(v, "delta_fits_the_last_pair");
                    })}},
      {"delta-removes-outdated",
       recall,
       kind::identity,
       verdict::conditional,
       "The factor I − k kᵀ takes what the state held for this key out of it before the new value is written.",
       "a unit key and β = 1; then all of it goes and nothing else does. A key of another length leaves a part or overshoots",
       {theorem("algebra.rank_one.step_fixes_complement"),
        exact_check("a state of fractions read along the key and across it, and with a key of length 2", removes_the_old,
                    [](const claim_values& v) {
                      return truth_at(v, "erased") && truth_at(v, "rest_unchanged") &&
                             !truth_at(v, "erased_for_a_key_of_length_2");
                    })}},
      {"q-normalisation-not-necessary",
       blog,
       kind::conclusion,
       verdict::holds,
       "Stability needs no normalised queries.",
       "the state never reads q, and an output is linear in it: its length only scales the output",
       {exact_check("a read with q and with 3 q; the state before and after", query_is_only_read,
                    [](const claim_values& v) { return truth_at(v, "output_is_linear") && truth_at(v, "state_unchanged"); })}},
      {"deltanet-discards-length",
       blog,
       kind::conclusion,
       verdict::holds,
       "L2 normalisation makes the step blind to the length of the key.",
       "exact arithmetic; without normalisation the step does depend on it",
       {exact_check("the step with a key of length 2 and of length 5, normalised and not", length_is_dropped,
                    [](const claim_values& v) { return truth_at(v, "normalised_equal") && !truth_at(v, "plain_equal"); })}},
      {"gdn-kda-extend-the-step",
       blog,
       kind::conclusion,
       verdict::holds,
       "Gated DeltaNet and Kimi delta attention are built on DeltaNet.",
       "each is a decay of the state, by one number or one per channel, before the same step; a gate of 1 gives DeltaNet back",
       {theorem("algebra.wy.ungated_overlap"),
        exact_check("the library's gated step with gates of 1, one and per channel, and of 1/2", gates_extend_the_step,
                    [](const claim_values& v) {
                      return truth_at(v, "scalar_gate_of_1_equal") && truth_at(v, "channel_gates_of_1_equal") &&
                             !truth_at(v, "gate_of_one_half_equal");
                    })}},
      {"negative-eigenvalue-form",
       blog,
       kind::definition,
       verdict::conditional,
       "Negative eigenvalues are had by doubling η in the transition and leaving it single in what is written.",
       "as printed this is the delta rule with step 2η on values v/2; public code doubles both terms: step 2η, values v. The two "
       "are not equal; name the one that is meant",
       {theorem("algebra.wy.negative_eigenvalue_conventions"),
        exact_check("three steps of each convention in fractions", two_conventions,
                    [](const claim_values& v) {
                      return truth_at(v, "as_printed_is_half_the_values") && truth_at(v, "both_doubled_is_step_2_beta") &&
                             !truth_at(v, "conventions_equal");
                    }),
        finding_of("negative-eigenvalues", "fixed-points",
                   "one pair for ever: what each convention stores, and the alternation at β = 1, in rationals",
                   [](const claim_values& v) {
                     return truth_at(v, "erase_half") && truth_at(v, "both_whole") && truth_at(v, "cycles");
                   }),
        finding_of(
            "recall", "two-conventions-recall",
            "the error of identity at β = 0.9 over the mean square of the values, in each convention",
            [](const claim_values& v) { return within(number_at(v, "erase"), 0.25, 0.01) && number_at(v, "both") < 1e-3; })}},
      {"negative-eigenvalues-track-state",
       blog,
       kind::conclusion,
       verdict::conditional,
       "Eigenvalues below 0 let DeltaNet follow a state that positive ones cannot.",
       "of the recurrence, not of a trained model: parity and the permutations of three and of five letters come out exactly "
       "with "
       "reflections; with eigenvalues in [0, 1] the same read-out never changes its sign. Reflections must be exact: with the "
       "margin that keeps bf16 safe the lead of the right answer in S₅ is below one half after 57 or 58 tokens",
       {exact_check("all words of up to 5 exchanges of 3 letters, all words of 10 bits, in fractions", words_by_reflections,
                    [](const claim_values& v) {
                      return number_at(v, "words") == 363 && truth_at(v, "permutations_exact") && truth_at(v, "parity_exact") &&
                             truth_at(v, "non_negative_never_flips");
                    }),
        finding_of(
            "negative-eigenvalues", "words-are-exact",
            "every element of S₂, S₃, S₅ times every exchange, in rationals and three formats",
            [](const claim_values& v) { return number_at(v, "exact") == number_at(v, "cases") && number_at(v, "cases") > 1000; }),
        finding_of("negative-eigenvalues", "margin-costs-words",
                   "tokens until the lead of the right answer in S₅ is below one half, at 2η = 1.984375 and 1.75",
                   [](const claim_values& v) {
                     return within(number_at(v, "faint_margin"), 57.5, 0.01) && number_at(v, "faint_coarse") > 0 &&
                            number_at(v, "faint_margin") > number_at(v, "faint_coarse");
                   })}},
      {"gradient-follows-the-error",
       recall,
       kind::conclusion,
       verdict::conditional,
       "Large errors (exponentials) make large gradients, small ones (polynomials) vanishing gradients.",
       "the gradient by the state has the norm ‖S k − v‖ ‖k‖: it scales with the values and says nothing of how hard they are; "
       "of training nothing is claimed",
       {exact_check("squared norm of the gradient against that of the error times that of the key", gradient_size, is_equal),
        finding_of("recall", "gradients", "norms of the gradient for eᵏ and k⁴, as they are and over the length of the values",
                   [](const claim_values& v) {
                     return number_at(v, "exponential") > 100 * number_at(v, "quartic") &&
                            within(number_at(v, "relative_exponential"), number_at(v, "relative_quartic"), 0.1);
                   })}},
      {"values-set-the-learning-rate",
       recall,
       kind::conclusion,
       verdict::conditional,
       "Errors of such different size would call for very different learning rates.",
       "not for the state: the curvature of its loss is k kᵀ whatever the values are, so that the limit 2/‖k‖² is that of the "
       "keys. "
       "In layers behind it gradients scale with the values; of training them nothing is claimed",
       {theorem("ode.stability.euler_limit"),
        exact_check("second differences of the loss for values times 0, 1 and 1000, and for a key twice as long, in fractions",
                    curvature_of_the_loss,
                    [](const claim_values& v) {
                      return truth_at(v, "values_times_1000_equal") && truth_at(v, "values_times_0_equal") &&
                             text_at(v, "keys_times_2_over") == "4";
                    })}},
  };
}

}  // namespace deltaproof::claim_detail
