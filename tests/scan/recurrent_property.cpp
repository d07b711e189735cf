// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "deltaproof/scan/transition.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

constexpr testing::recipe_limits small{};
constexpr testing::recipe_limits large{.tokens = 24, .steps_per_token = 3, .key_dim = 12, .value_dim = 9, .chunk = 64};

// Tokens from..to of a sequence, started from a state.
template <class S>
sequence<S> part_of(const sequence<S>& s, std::size_t from, std::size_t to, const matrix<S>& state) {
  sequence<S> part = s;
  const auto keep = [](std::vector<S>& values, std::size_t low, std::size_t high) {
    values =
        std::vector<S>(values.begin() + static_cast<std::ptrdiff_t>(low), values.begin() + static_cast<std::ptrdiff_t>(high));
  };
  const std::size_t n = s.steps_per_token;
  part.tokens = to - from;
  keep(part.q, from * s.key_dim, to * s.key_dim);
  keep(part.k, from * n * s.key_dim, to * n * s.key_dim);
  keep(part.v, from * n * s.value_dim, to * n * s.value_dim);
  keep(part.step, from * n, to * n);
  const std::size_t width = s.tokens == 0 ? 0 : s.decay.size() / s.tokens;
  keep(part.decay, from * width, to * width);
  part.initial_state = state;
  return part;
}

template <class S>
void cutting_anywhere_changes_nothing(testing::recipe_limits limits) {
  const auto recipe = *testing::recipes(limits);
  const auto s = testing::make_sequence<S>(recipe);
  const auto cut = *rc::gen::inRange<std::size_t>(0, s.tokens + 1);
  const trace<S> whole = recurrent(s);
  const trace<S> head = recurrent(part_of(s, 0, cut, s.start()));
  const trace<S> tail = recurrent(part_of(s, cut, s.tokens, head.final_state));
  RC_ASSERT(tail.final_state == whole.final_state);
  for (std::size_t t = 0; t < s.tokens; ++t) {
    const auto got = t < cut ? head.o.row(t) : tail.o.row(t - cut);
    RC_ASSERT(std::equal(got.begin(), got.end(), whole.o.row(t).begin()));
  }
}

// S is affine in (S0, v): final(S0, v) = transition S0 + final(0, v), and final(S0, v) is linear in both.
template <class S>
void state_is_linear_in_values_and_start(testing::recipe_limits limits) {
  auto recipe = *testing::recipes(limits);
  recipe.initial_state = true;
  const auto s = testing::make_sequence<S>(recipe);
  auto written = s;
  written.initial_state = matrix<S>();
  auto carried = s;
  for (S& x : carried.v) x = zero<S>();
  const matrix<S> whole = recurrent(s).final_state;
  const matrix<S> part = recurrent(written).final_state;
  const matrix<S> rest = recurrent(carried).final_state;
  for (std::size_t i = 0; i < whole.size(); ++i) RC_ASSERT(whole.data()[i] == S(part.data()[i] + rest.data()[i]));
  const matrix<S> transition = exact_transition(s, 0, s.rows());
  RC_ASSERT(rest == matmul<plain<S>>(transition, s.start()));
}

template <class S>
void output_is_linear_in_the_query(testing::recipe_limits limits) {
  const auto recipe = *testing::recipes(limits);
  auto s = testing::make_sequence<S>(recipe);
  const trace<S> once = recurrent(s);
  for (S& x : s.q) x = from_int<S>(3) * x;
  const trace<S> thrice = recurrent(s);
  RC_ASSERT(once.final_state == thrice.final_state);
  for (std::size_t i = 0; i < once.o.size(); ++i) RC_ASSERT(thrice.o.data()[i] == S(from_int<S>(3) * once.o.data()[i]));
}

TEST(recurrent_property, cutting_anywhere_changes_nothing_in_rationals) {
  testing::check_property(300, 41, [] { cutting_anywhere_changes_nothing<rational>(small); });
}
TEST(recurrent_property, cutting_anywhere_changes_nothing_modulo_a_prime) {
  testing::check_property(2000, 42, [] { cutting_anywhere_changes_nothing<modular>(large); });
}
TEST(recurrent_property, cutting_anywhere_changes_no_bit_in_fp32) {
  testing::check_property(500, 43, [] { cutting_anywhere_changes_nothing<float>(small); });
}
TEST(recurrent_property, state_is_linear_in_values_and_start_in_rationals) {
  testing::check_property(300, 44, [] { state_is_linear_in_values_and_start<rational>(small); });
}
TEST(recurrent_property, state_is_linear_in_values_and_start_modulo_a_prime) {
  testing::check_property(2000, 45, [] { state_is_linear_in_values_and_start<modular>(large); });
}
TEST(recurrent_property, output_is_linear_in_the_query_and_the_state_never_reads_it) {
  testing::check_property(2000, 46, [] { output_is_linear_in_the_query<modular>(large); });
}

// A token's value is recalled exactly when the step that wrote it had b |k|^2 = 1.
TEST(recurrent_property, a_unit_key_with_step_one_recalls_its_value) {
  testing::check_property(500, 47, [] {
    auto recipe = *testing::recipes(large);
    recipe.regime = testing::key_regime::unit_signs;
    recipe.tokens += 1;
    recipe.step_from = recipe.step_to = 8;
    auto s = testing::make_sequence<modular>(recipe);
    const std::size_t last = s.rows() - 1;
    std::copy(s.k_row(last).begin(), s.k_row(last).end(), s.q.end() - static_cast<std::ptrdiff_t>(s.key_dim));
    const trace<modular> result = recurrent(s);
    const auto o = result.o.row(s.tokens - 1);
    RC_ASSERT(std::equal(o.begin(), o.end(), s.v_row(last).begin()));
  });
}

}  // namespace
}  // namespace deltaproof
