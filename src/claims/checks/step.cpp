// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about one step: its forms, what it minimises, what it forgets, which rules extend it.

#include "claims/checks/parts.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::claim_detail {
namespace {

struct sample {
  fraction_matrix s = sample_matrix(width, channels, 1);
  fraction_vector k = sample_vector(channels, 2);
  fraction_vector v = sample_vector(width, 3);
  rational b = fraction(2, 7);

  [[nodiscard]] fraction_matrix stepped() const { return delta_step(s, k, v, b); }
};

claim_values two_forms() {
  const sample x;
  const fraction_matrix factored = x.s * transition(x.k, x.b) + x.b * x.v * x.k.transpose();
  recurrence<rational> machine(library_state(x.s));
  machine.step(span_of(x.k), span_of(x.v), x.b);
  return {{"equal", x.stepped() == factored}, {"library_equal", state_of(machine.state()) == factored}};
}

claim_values old_and_new_values() {
  const sample x;
  const fraction_vector old_value = x.s * x.k;
  const fraction_vector new_value = x.b * x.v + (1 - x.b) * old_value;
  return {{"equal", x.s - old_value * x.k.transpose() + new_value * x.k.transpose() == x.stepped()}};
}

/// Half the squared prediction error: quadratic, so that central differences are its gradient exactly.
rational loss(const fraction_matrix& s, const sample& x) { return (s * x.k - x.v).squaredNorm() / 2; }

fraction_matrix gradient_at(const sample& x) {
  fraction_matrix gradient = zeros(width, channels);
  const rational h = fraction(1, 5);
  for (Eigen::Index i = 0; i < gradient.size(); ++i) {
    fraction_matrix up = x.s, down = x.s;
    up(i) += h;
    down(i) -= h;
    gradient(i) = (loss(up, x) - loss(down, x)) / (2 * h);
  }
  return gradient;
}

claim_values gradient_step() {
  const sample x;
  return {{"equal", x.s - x.b * gradient_at(x) == x.stepped()}};
}

/// ‖gradient‖² against ‖error‖² ‖k‖²; and values 1000 times as large, with a state that is too and one that is not.
claim_values gradient_size() {
  const sample x;
  sample large = x;
  large.v *= 1000;
  const bool values_alone = gradient_at(large) == 1000 * gradient_at(x);
  large.s *= 1000;
  return {{"equal", gradient_at(x).squaredNorm() == (x.s * x.k - x.v).squaredNorm() * x.k.squaredNorm()},
          {"scales_with_values_and_state", gradient_at(large) == 1000 * gradient_at(x)},
          {"scales_with_values_alone", values_alone}};
}

/// A unit key and b = 1: what lies along the key is erased, the rest stays.
claim_values removes_the_old() {
  const fraction_vector k{{fraction(3, 5), fraction(4, 5), 0}};
  const fraction_vector other{{fraction(-4, 5), fraction(3, 5), 7}};
  const sample x;
  const fraction_matrix kept = x.s * transition(k, 1);
  return {{"erased", (kept * k).isZero(0)},
          {"rest_unchanged", kept * other == x.s * other},
          {"erased_for_a_key_of_length_2", (x.s * transition(2 * k, 1) * k).isZero(0)}};
}

/// Outputs of one read with q and with a multiple of it.
claim_values query_is_only_read() {
  const sample x;
  const fraction_vector q = sample_vector(channels, 9);
  recurrence<rational> machine(library_state(x.stepped()));
  std::array<rational, width> once, thrice;
  machine.read(span_of(q), once);
  machine.read(span_of(3 * q), thrice);
  return {{"output_is_linear", thrice[0] == 3 * once[0] && thrice[1] == 3 * once[1]}};
}

/// Keys of one direction: the transition with k/√(‖k‖² + e), without e and with that of kernels, and the plain step.
claim_values length_is_dropped() {
  const sample x;
  const fraction_vector k{{fraction(3, 5), fraction(4, 5), 0}};  // of length 1
  const fraction_vector tiny = k / 1000;
  const rational epsilon = fraction(1, 1'000'000);
  const auto moved = [&](const fraction_vector& key, const rational& e) -> fraction_matrix {
    return x.s * transition(key, x.b / (key.squaredNorm() + e));
  };
  return {{"normalised_equal", moved(2 * k, 0) == moved(5 * k, 0)},
          {"with_epsilon_equal", moved(tiny, epsilon) == moved(k, epsilon)},
          {"squared_length_at_1e-3", text_of(tiny.squaredNorm() / (tiny.squaredNorm() + epsilon))},
          {"plain_equal", delta_step(x.s, 2 * k, x.v, x.b) == delta_step(x.s, 5 * k, x.v, x.b)}};
}

/// A gate of 1 is no gate; a gate of 0 forgets everything before the step.
claim_values gates_extend_the_step() {
  const sample x;
  const auto gated = [&](const std::vector<rational>& decay) {
    recurrence<rational> machine(library_state(x.s));
    machine.decay(decay);
    machine.step(span_of(x.k), span_of(x.v), x.b);
    return state_of(machine.state());
  };
  return {{"scalar_gate_of_1_equal", gated({1}) == x.stepped()},
          {"channel_gates_of_1_equal", gated({1, 1, 1}) == x.stepped()},
          {"gate_before_the_step", gated({fraction(1, 2)}) == delta_step(x.s / 2, x.k, x.v, x.b)},
          {"channel_gates_before_the_step",
           gated({fraction(1, 2), fraction(1, 3), 1}) ==
               delta_step(x.s * fraction_vector{{fraction(1, 2), fraction(1, 3), 1}}.asDiagonal(), x.k, x.v, x.b)},
          {"gate_of_one_half_equal", gated({fraction(1, 2)}) == x.stepped()}};
}

/// The second difference of the loss along a direction, which is twice its curvature there, for three values and two keys.
claim_values curvature_of_the_loss() {
  const sample x;
  const fraction_matrix direction = sample_matrix(width, channels, 17);
  const auto curvature = [&](const rational& value_scale, const rational& key_scale) -> rational {
    sample at = x;
    at.v *= value_scale;
    at.k *= key_scale;
    return loss(x.s + direction, at) - 2 * loss(x.s, at) + loss(x.s - direction, at);
  };
  return {{"values_times_1000_equal", curvature(1000, 1) == curvature(1, 1)},
          {"values_times_0_equal", curvature(0, 1) == curvature(1, 1)},
          {"keys_times_2_over", text_of(curvature(1, 2) / curvature(1, 1))}};
}

/// Every permutation of 3 and of 5 letters times every reflection I - k k^T, k = e_i - e_j: by induction every word. And the
/// parity of words of bits by one unit key with step 2 for a one.
claim_values words_by_reflections() {
  std::uint64_t steps = 0;
  bool permutations = true;
  for (const Eigen::Index n : {3, 5}) {
    std::vector<Eigen::Index> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), Eigen::Index{0});
    do {
      fraction_matrix state = fraction_matrix::Zero(n, n);
      for (Eigen::Index i = 0; i < n; ++i) state(i, order[static_cast<std::size_t>(i)]) = 1;
      for (Eigen::Index i = 0; i < n; ++i) {
        for (Eigen::Index j = 0; j < i; ++j, ++steps) {
          fraction_vector key = fraction_vector::Zero(n);
          key[i] = 1;
          key[j] = -1;
          fraction_matrix exchanged = state;
          exchanged.col(i).swap(exchanged.col(j));
          permutations = permutations && state * transition(key, 1) == exchanged;
        }
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
  bool parity = true;
  for (std::uint32_t bits = 0; bits < 1024; ++bits) {
    rational reflected = 1;
    int ones = 0;
    for (int i = 0; i < 10; ++i) {
      const bool one = (bits >> i & 1U) != 0;
      ones += one ? 1 : 0;
      reflected *= 1 - rational(one ? 2 : 0);
    }
    parity = parity && reflected == (ones % 2 == 0 ? 1 : -1);
  }
  return {{"steps", steps}, {"permutations_exact", permutations}, {"parity_exact", parity}};
}

/// Eigenvalues in [0, 1]: the least that two steps along one unit key leave of it, and the first entry of (1, 0) after three
/// projections.
claim_values positive_eigenvalues() {
  const fraction_vector k{{fraction(3, 5), fraction(4, 5)}};
  rational least = 1;
  for (long i = 0; i <= 10; ++i) {
    for (long j = 0; j <= 10; ++j)
      least = std::min<rational>(least, k.dot(transition(k, fraction(i, 10)) * (transition(k, fraction(j, 10)) * k)));
  }
  fraction_matrix state{{1, 0}};
  for (const fraction_vector& key :
       {fraction_vector{{fraction(-4, 5), fraction(3, 5)}}, fraction_vector{{fraction(-24, 25), fraction(-7, 25)}},
        fraction_vector{{fraction(-44, 125), fraction(-117, 125)}}})
    state = state * transition(key, 1);
  return {{"along_one_key_least", approximate(least)}, {"three_projections", approximate(state(0, 0))}};
}

/// Five pairs with unit keys in three channels: the objective of each state after all of them, over that of least squares.
claim_values online_regression() {
  const fraction_matrix keys{{fraction(2, 7), fraction(3, 7), fraction(6, 7)},
                             {fraction(3, 5), fraction(4, 5), 0},
                             {0, fraction(5, 13), fraction(12, 13)},
                             {fraction(1, 3), fraction(2, 3), fraction(2, 3)},
                             {fraction(4, 9), fraction(4, 9), fraction(7, 9)}};
  const fraction_matrix values = sample_matrix(5, width, 41);
  fraction_matrix delta = zeros(width, channels);
  for (Eigen::Index t = 0; t < 5; ++t) delta = delta_step(delta, keys.row(t), values.row(t), 1);
  const auto fits = [&](Eigen::Index t) { return delta * keys.row(t).transpose() == values.row(t).transpose(); };
  const fraction_matrix hebb = values.transpose() * keys;
  const fraction_matrix best = hebb * (keys.transpose() * keys).inverse();
  const auto objective = [&](const fraction_matrix& s) -> rational { return (keys * s.transpose() - values).squaredNorm(); };
  return {{"hebbian_over_least_squares", approximate(objective(hebb) / objective(best))},
          {"delta_over_least_squares", approximate(objective(delta) / objective(best))},
          {"delta_fits_the_last_pair", fits(4)},
          {"delta_fits_an_earlier_pair", fits(0) || fits(1) || fits(2) || fits(3)}};
}

}  // namespace

std::span<const claim_check> step_checks() {
  static constexpr auto all = std::to_array<claim_check>({{"two_forms", exactly, two_forms},
                                                          {"old_and_new_values", exactly, old_and_new_values},
                                                          {"gradient_step", exactly, gradient_step},
                                                          {"gradient_size", exactly, gradient_size},
                                                          {"removes_the_old", exactly, removes_the_old},
                                                          {"query_is_only_read", exactly, query_is_only_read},
                                                          {"length_is_dropped", exactly, length_is_dropped},
                                                          {"gates_extend_the_step", exactly, gates_extend_the_step},
                                                          {"curvature_of_the_loss", exactly, curvature_of_the_loss},
                                                          {"words_by_reflections", exactly, words_by_reflections},
                                                          {"positive_eigenvalues", exactly, positive_eigenvalues},
                                                          {"online_regression", exactly, online_regression}});
  return all;
}

}  // namespace deltaproof::claim_detail
