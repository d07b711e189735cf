// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Claims about eigenvalues and explosion: the condition, what is done to meet it, and what formats make of that.

#include <array>
#include <cmath>

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
  static constexpr std::array all{
      claim_check{"every_format_leaves", claim_method::exact_check, every_format_leaves},
      claim_check{"saturated_step", claim_method::exact_check, saturated_step},
      claim_check{"range_at_one", claim_method::exact_check, range_at_one},
      claim_check{"driven_reflections", claim_method::exact_check, driven_reflections},
      claim_check{"orthogonal", claim_method::exact_check, orthogonal},
      claim_check{"reflections", claim_method::exact_check, reflections},
      claim_check{"squash_is_longhorn", claim_method::exact_check, squash_is_longhorn},
      claim_check{"other_ways", claim_method::exact_check, other_ways},
      claim_check{"repeated_key_in_formats", claim_method::exact_check, repeated_key_in_formats},
      claim_check{"below_one", claim_method::exact_check, below_one},
  };
  return all;
}

}  // namespace deltaproof::claim_detail
