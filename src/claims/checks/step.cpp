// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about one step: its forms, what it minimises, what it forgets, which rules extend it.

#include <array>

#include "claims/checks/parts.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::claim_detail {
namespace {

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

std::span<const claim_check> step_checks() {
  static constexpr std::array all{
      claim_check{"two_forms", claim_method::exact_check, two_forms},
      claim_check{"old_and_new_values", claim_method::exact_check, old_and_new_values},
      claim_check{"gradient_step", claim_method::exact_check, gradient_step},
      claim_check{"gradient_size", claim_method::exact_check, gradient_size},
      claim_check{"removes_the_old", claim_method::exact_check, removes_the_old},
      claim_check{"query_is_only_read", claim_method::exact_check, query_is_only_read},
      claim_check{"length_is_dropped", claim_method::exact_check, length_is_dropped},
      claim_check{"gates_extend_the_step", claim_method::exact_check, gates_extend_the_step},
      claim_check{"curvature_of_the_loss", claim_method::exact_check, curvature_of_the_loss},
      claim_check{"two_conventions", claim_method::exact_check, two_conventions},
      claim_check{"words_by_reflections", claim_method::exact_check, words_by_reflections},
      claim_check{"online_regression", claim_method::exact_check, online_regression},
  };
  return all;
}

}  // namespace deltaproof::claim_detail
