// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about eigenvalues and explosion: the condition, what is done to meet it, and what formats make of that.

#include "claims/checks/parts.hpp"
#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::claim_detail {
namespace {

/// Squared length of a vector of length 1 after each entry is rounded to F.
template <format F>
rational rounded_norm(const fraction_vector& unit) {
  return unit.unaryExpr([](const rational& x) { return exact(round_to<rounded<F>>(x).value()); }).squaredNorm();
}

/// (a/c, b/c) for Pythagorean triples, so that the length is exactly 1.
std::vector<fraction_vector> pythagorean_keys() {
  std::vector<fraction_vector> keys;
  for (const auto& [a, b, c] : std::initializer_list<std::array<long, 3>>{
           {3, 4, 5}, {5, 12, 13}, {8, 15, 17}, {7, 24, 25}, {20, 21, 29}, {161, 240, 289}}) {
    keys.push_back(fraction_vector{{fraction(a, c), fraction(b, c)}});
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
  return {{"bf16", keys_that_leave<bf16>()},
          {"fp16", keys_that_leave<fp16>()},
          {"fp32", keys_that_leave<fp32>()},
          {"fp64", keys_that_leave<fp64>()}};
}

/// The key (3/5, 4/5) in bf16 and the gate of a logit of 6.25 in bf16.
claim_values saturated_step() {
  const rational beta = exact(sigmoid(round_to<rounded<bf16>>(6.25)).value());
  const rational before = exact(sigmoid(round_to<rounded<bf16>>(6.21875)).value());
  const rational norm = rounded_norm<bf16>(fraction_vector{{fraction(3, 5), fraction(4, 5)}});
  return {{"sigmoid_is_one", beta == 1},
          {"sigmoid_before_is_one", before == 1},
          {"eigenvalue_is_positive", 1 - beta * norm > 0},
          {"doubled", text_of(1 - 2 * beta * norm)},
          {"doubled_above_minus_one", 1 - 2 * beta * norm > -1}};
}

/// Three directions of length 1.
const fraction_vector first{{fraction(2, 7), fraction(3, 7), fraction(6, 7)}};
const fraction_vector second{{fraction(3, 5), fraction(4, 5), 0}};
const fraction_vector third{{0, fraction(5, 13), fraction(12, 13)}};

/// 1 - 2 η of a unit key: inside (-1, 1] for η < 1, and what η = 1 gives.
claim_values range_at_one() {
  const auto eigenvalue = [](const rational& eta) -> rational { return first.dot(transition(first, 2 * eta) * first); };
  bool inside = true;
  for (long i = 0; i < 100; ++i) inside = inside && eigenvalue(fraction(i, 100)) > -1 && eigenvalue(fraction(i, 100)) <= 1;
  return {{"inside_below_one", inside}, {"at_one", text_of(eigenvalue(1))}, {"one_is_inside", eigenvalue(1) > -1}};
}

/// At 2η = 2, keys of length 1: fifty reflections of one state; values v, −v, v, ... on one key and v for ever, in both
/// conventions, read at the key in units of v.
claim_values driven_reflections() {
  const std::array keys{first, second, third};
  const fraction_matrix start = sample_matrix(2, 3, 7);
  fraction_matrix s = start;
  for (std::size_t t = 0; t < 50; ++t) s = s * transition(keys[t % 3], 2);
  // Reads at the key after `tokens` writes: S k → −S k + written.
  const auto read = [&](const rational& written, bool alternating, int tokens) -> rational {
    fraction_matrix state = zeros(1, 3);
    for (int t = 0; t < tokens; ++t) {
      const rational v = alternating && t % 2 != 0 ? -written / 2 : written / 2;  // the step 2 writes twice its value
      state = delta_step(state, first, fraction_vector{{v}}, 2);
    }
    return (state * first).value();
  };
  return {{"reflections_keep_the_size", s.squaredNorm() == start.squaredNorm()},
          {"as_printed_after_20_alternating", text_of(abs(read(1, true, 20)))},
          {"both_doubled_after_20_alternating", text_of(abs(read(2, true, 20)))},
          {"one_value_for_ever_settles", read(1, false, 19) == read(1, false, 20)}};
}

/// |S| after 2000 values of length 1 and unit keys chosen against the state, in two dimensions, for a step b = 1 − R: that with
/// S k = R b / (1 − R²) makes it longest, or where |S| is too short for that a key along S.
double driven(double r) {
  const double b = 1 - r;
  double x = 0, y = 0;
  for (int t = 0; t < 2000; ++t) {
    const double length = std::hypot(x, y);
    const double wanted = std::abs(r) < 1 ? r * b / (1 - r * r) : -length;
    const double along = length > 0 ? std::clamp(wanted / length, -1.0, 1.0) : 1;
    const double across = std::sqrt(1 - along * along);
    const std::array<double, 2> k =
        length > 0 ? std::array{(along * x - across * y) / length, (along * y + across * x) / length} : std::array{1.0, 0.0};
    const double change = b * (1 - (x * k[0] + y * k[1]));
    x += change * k[0];
    y += change * k[1];
  }
  return std::hypot(x, y);
}

claim_values driven_by_keys() {
  return {{"exact_at_1", driven(std::exp(-1.0))}, {"euler_at_1", driven(0)}, {"euler_at_2", driven(-1)}};
}

claim_values orthogonal() {
  const fraction_vector longer{{fraction(2, 7), fraction(3, 7), 1}};
  const auto is_orthogonal = [](const fraction_vector& k) { return transition(k, 2) * transition(k, 2).transpose() == eye(3); };
  return {{"unit_key", is_orthogonal(first)}, {"longer_key", is_orthogonal(longer)}};
}

/// I - β k k^T is its own inverse only for x = β ‖k‖² in {0, 2}, its own square only for x in {0, 1}.
claim_values reflections() {
  const auto is_own_inverse = [](const rational& x) { return transition(first, x) * transition(first, x) == eye(3); };
  const auto is_projection = [](const rational& x) {
    return transition(first, x) * transition(first, x) == transition(first, x);
  };
  return {{"x_2", is_own_inverse(2)},
          {"x_1", is_own_inverse(1)},
          {"x_half", is_own_inverse(fraction(1, 2))},
          {"x_0_is_the_identity", transition(first, 0) == eye(3)},
          {"projection_at_1", is_projection(1)},
          {"projection_at_half", is_projection(fraction(1, 2))},
          {"projection_at_2", is_projection(2)}};
}

/// s = sqrt(β) k with β = 4/9 and k = (3/2, 2), so that every length is a fraction; states 2 x 2.
claim_values squash_is_longhorn() {
  const rational beta = fraction(4, 9);
  const fraction_vector k{{fraction(3, 2), 2}};
  const rational length = fraction(5, 2);  // of k
  const fraction_vector s = fraction(2, 3) * k;
  const rational s_squared = s.squaredNorm();
  const rational s_length = fraction(5, 3);
  const fraction_vector squashed = s_squared / (1 + s_squared) / s_length * s;
  const rational strength = fraction(25, 34);  // ‖squash(s)‖
  const fraction_matrix state = sample_matrix(2, 2, 5);
  const fraction_vector v = sample_vector(2, 6);
  const rational x = beta * k.squaredNorm();
  const auto longhorn = [&](const fraction_matrix& from, const fraction_vector& key, const fraction_vector& value) {
    return delta_step(from, key, value, effective_step(implicit_euler{}, beta, rational(key.squaredNorm())));
  };
  diagonal_longhorn<rational> published(2, 2);
  const std::vector<rational> one_beta{beta};
  published.step(span_of(k), span_of(v), one_beta);
  published.step(span_of(v), span_of(k), one_beta);
  return {{"lengths_fit", k.squaredNorm() == length * length && s_squared == s_length * s_length &&
                              squashed.squaredNorm() == strength * strength},
          {"strength_is_x_over_1_plus_x", strength == x / (1 + x)},
          {"equal", longhorn(state, k, v) == delta_step(state, k / length, v / length, strength)},
          {"published_diagonal_form_equal", state_of(published.state()) == longhorn(longhorn(zeros(2, 2), k, v), v, k)}};
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
    const rational l1 = k.cwiseAbs().sum();
    l1_longer = l1_longer && l1 * l1 >= k.squaredNorm();
    rational products = 0;
    for (Eigen::Index i = 0; i < k.size(); ++i) {
      for (Eigen::Index j = 0; j < i; ++j) products += 2 * abs(k[i] * k[j]);
    }
    excess = excess && l1 * l1 - k.squaredNorm() == products;
    const rational norm = (k / l1).squaredNorm();
    l1_inside = l1_inside && norm > 0 && norm <= 1;
  }
  const fraction_vector even = fraction_vector::Constant(64, fraction(1, 64));
  const fraction_vector rms_normalised = fraction_vector::Ones(64);  // a root mean square of 1
  return {{"squash_inside", squash},
          {"rms_normalised_at_beta_1_inside", 1 - rms_normalised.squaredNorm() >= -1},
          {"l1_at_least_l2", l1_longer},
          {"excess_of_squares_is_products", excess},
          {"l1_normalised_at_most_1", l1_inside},
          {"least_squared_length_64_channels", text_of(even.squaredNorm())}};
}

/// Unit key: eigenvalue 1 - β along it and 1 across, for β up to 2; and a key of length 2 with β = 1.
claim_values below_one() {
  const fraction_vector across{{fraction(-4, 5), fraction(3, 5), 0}};
  const auto along = [](const fraction_vector& k, const rational& beta) -> rational {
    return second.dot(transition(k, beta) * second);
  };
  return {{"one_is_an_eigenvalue", transition(second, fraction(1, 2)) * across == across},
          {"beta_beyond_2", text_of(along(second, fraction(5, 2)))},
          {"key_of_length_2", text_of(along(2 * second, 1))},
          {"key_of_length_2_inside", along(2 * second, 1) >= -1}};
}

/// One unit key for ever, β = 12/5 and 9/10 in turn: what the first step and both do along it.
claim_values varying_step() {
  const fraction_matrix one = transition(second, fraction(12, 5));
  const fraction_matrix two = one * transition(second, fraction(9, 10));
  return {{"first", text_of(second.dot(one * second))}, {"product_of_two", text_of(second.dot(two * second))}};
}

/// A state on (3/5, 4/5) through 4096 steps with that key in bf16, 2η = 2, no values: its length over that of the start, each
/// operation rounded to Operation, the state stored in Store.
template <format Operation, format Store>
double growth_on_one_key() {
  using number = rounded<Operation>;
  const auto stored = [](const number& x) { return number::from_exact(round_to<rounded<Store>>(x.value()).value()); };
  const std::array<number, 2> k{number::from_exact(round_to<rounded<bf16>>(fraction(3, 5)).value()),
                                number::from_exact(round_to<rounded<bf16>>(fraction(4, 5)).value())};
  std::array<number, 2> s = k;
  for (int t = 0; t < 4096; ++t) {
    const number change = number(2) * (s[0] * k[0] + s[1] * k[1]);
    for (std::size_t i = 0; i < 2; ++i) s[i] = stored(s[i] - change * k[i]);
  }
  const auto length = [](const std::array<number, 2>& x) { return std::hypot(x[0].value(), x[1].value()); };
  return length(s) / length(k);
}

claim_values repeated_key_in_formats() {
  return {{"fp32_state_grows", growth_on_one_key<fp32, fp32>()},
          {"bf16_state_grows", growth_on_one_key<fp32, bf16>()},
          {"bf16_operations_grow", growth_on_one_key<bf16, bf16>()}};
}

}  // namespace

std::span<const claim_check> stability_checks() {
  static constexpr auto all = std::to_array<claim_check>({{"every_format_leaves", exactly, every_format_leaves},
                                                          {"saturated_step", exactly, saturated_step},
                                                          {"range_at_one", exactly, range_at_one},
                                                          {"driven_reflections", exactly, driven_reflections},
                                                          {"driven_by_keys", claim_method::measurement, driven_by_keys},
                                                          {"orthogonal", exactly, orthogonal},
                                                          {"reflections", exactly, reflections},
                                                          {"squash_is_longhorn", exactly, squash_is_longhorn},
                                                          {"other_ways", exactly, other_ways},
                                                          {"repeated_key_in_formats", exactly, repeated_key_in_formats},
                                                          {"varying_step", exactly, varying_step},
                                                          {"below_one", exactly, below_one}});
  return all;
}

}  // namespace deltaproof::claim_detail
