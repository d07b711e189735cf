// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/scan/recurrent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/algebra/dot.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/number/scalar.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using testing::fraction;

template <class S>
class recurrent_in : public ::testing::Test {};
using every_scalar = ::testing::Types<float, double, rounded<bf16>, rounded<fp16>, rounded<tf32>, rounded<fp32>, rounded<fp64>,
                                      rounded<e4m3>, rounded<e5m2>, double_double, real<128>, rational, modular>;
/// In their order. CTest's file of durations knows no names with spaces.
struct scalar_names {
  template <class>
  static std::string GetName(int at) {
    constexpr std::array names{"float", "double", "bf16",          "fp16",     "tf32",     "fp32",   "fp64",
                               "e4m3",  "e5m2",   "double_double", "real_128", "rational", "modular"};
    return names.at(static_cast<std::size_t>(at));
  }
};
TYPED_TEST_SUITE(recurrent_in, every_scalar, scalar_names);

// K = 2, V = 1, two tokens, worked out on paper:
// t = 0: S = (0, 0); k = (1, 0), v = 2, b = 1/2: p = 0, change 1, S = (1, 0); q = (1, 1): o = 1
// t = 1: S = (1, 0); k = (1, 1), v = 3, b = 1:   p = 1, change 2, S = (3, 2); q = (1, -1): o = 1
TYPED_TEST(recurrent_in, two_tokens_by_hand) {
  using S = TypeParam;
  auto s = sequence<S>::zeros(2, 1, 2, 1);
  const auto whole = [](int n) { return from_int<S>(n); };
  s.k = {whole(1), whole(0), whole(1), whole(1)};
  s.v = {whole(2), whole(3)};
  s.step = {fraction<S>(1, 2), whole(1)};
  s.q = {whole(1), whole(1), whole(1), whole(-1)};
  const trace<S> result = recurrent(s);
  EXPECT_EQ(result.o(0, 0), whole(1));
  EXPECT_EQ(result.o(1, 0), whole(1));
  EXPECT_EQ(result.final_state(0, 0), whole(3));
  EXPECT_EQ(result.final_state(1, 0), whole(2));
}

// Decay before the first step only, K = 2, V = 2, n = 2, one token:
// S0 = [[4, 0], [0, 2]], a = (1/2, 0): S = [[2, 0], [0, 0]]
// k = (1, 0), v = (0, 1), b = 1: p = (2, 0), change (-2, 1): S = [[0, 1], [0, 0]]
// k = (0, 1), v = (3, 1), b = 1: p = (0, 0), change (3, 1):  S = [[0, 1], [3, 1]]; q = (1, 1): o = (3, 2)
TYPED_TEST(recurrent_in, one_token_of_two_steps_with_channel_decay_by_hand) {
  using S = TypeParam;
  auto s = sequence<S>::zeros(1, 2, 2, 2, decay_kind::per_channel);
  const auto whole = [](int n) { return from_int<S>(n); };
  s.initial_state(0, 0) = whole(4);
  s.initial_state(1, 1) = whole(2);
  s.decay = {fraction<S>(1, 2), whole(0)};
  s.k = {whole(1), whole(0), whole(0), whole(1)};
  s.v = {whole(0), whole(1), whole(3), whole(1)};
  s.step = {whole(1), whole(1)};
  s.q = {whole(1), whole(1)};
  const trace<S> result = recurrent(s);
  EXPECT_EQ(result.final_state, matrix<S>(2, 2, std::vector<S>{whole(0), whole(1), whole(3), whole(1)}));
  EXPECT_EQ(result.o, matrix<S>(1, 2, std::vector<S>{whole(3), whole(2)}));
}

TYPED_TEST(recurrent_in, zero_tokens_return_the_initial_state) {
  using S = TypeParam;
  auto s = sequence<S>::zeros(0, 1, 2, 3);
  s.initial_state(1, 2) = one<S>();
  const trace<S> result = recurrent(s);
  EXPECT_EQ(result.o.rows(), 0u);
  EXPECT_EQ(result.o.cols(), 3u);
  EXPECT_EQ(result.final_state, s.initial_state);
}

// The sequence in S is the one in rationals, exactly, so each result must be the image of the rational one.
template <class S>
void expect_exact(const testing::sequence_recipe& recipe) {
  const trace<S> got = recurrent(testing::make_sequence<S>(recipe));
  const trace<rational> want = recurrent(testing::make_sequence<rational>(recipe));
  const auto expect_same = [&](const matrix<S>& a, const matrix<rational>& b) {
    ASSERT_EQ(a.rows(), b.rows());
    ASSERT_EQ(a.cols(), b.cols());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(lift<rational>(a.data()[i]), b.data()[i]) << scalar_name<S>() << " entry " << i << " of " << recipe;
    }
  };
  expect_same(got.o, want.o);
  expect_same(got.final_state, want.final_state);
}

testing::sequence_recipe exact_recipe(testing::key_regime regime, std::uint64_t seed, std::size_t tokens, std::size_t key_dim) {
  testing::sequence_recipe r;
  r.regime = regime;
  r.seed = seed;
  r.tokens = tokens;
  r.key_dim = key_dim;
  r.value_dim = 3;
  r.step_from = r.step_to = 8;  // b = 1, with |k| = 1: DeltaNet's textbook case
  return r;
}

TEST(exact_family, orthogonal_keys_are_exact_in_fp32_and_bf16_for_any_length) {
  for (const std::size_t key_dim : {4u, 16u, 64u}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const auto recipe = exact_recipe(testing::key_regime::hadamard, seed, 3 * key_dim, key_dim);
      expect_exact<float>(recipe);
      expect_exact<rounded<fp32>>(recipe);
    }
  }
  // A state of eighths below 16 times queries of halves fits the eight bits of bf16 only while sums are short.
  expect_exact<rounded<bf16>>(exact_recipe(testing::key_regime::hadamard, 1, 4, 4));
}

TEST(exact_family, sign_keys_of_norm_one_are_exact_in_fp32_for_short_sequences) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    auto recipe = exact_recipe(testing::key_regime::unit_signs, seed, 4, 64);
    expect_exact<float>(recipe);
    recipe = exact_recipe(testing::key_regime::unit_signs, seed, 5, 16);
    expect_exact<float>(recipe);
    recipe.step_from = 4;  // b in {1/2, 5/8, ..., 1}
    recipe.tokens = 2;
    expect_exact<float>(recipe);
    expect_exact<rounded<fp32>>(recipe);
  }
}

TEST(recurrent, agrees_between_rationals_and_modulo_a_prime) {
  testing::sequence_recipe recipe;
  recipe.tokens = 6;
  recipe.steps_per_token = 2;
  recipe.key_dim = 3;
  recipe.value_dim = 2;
  recipe.decays = decay_kind::per_channel;
  recipe.initial_state = true;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    recipe.seed = seed;
    const trace<rational> exactly = recurrent(testing::make_sequence<rational>(recipe));
    const trace<modular> image = recurrent(testing::make_sequence<modular>(recipe));
    for (std::size_t i = 0; i < exactly.o.size(); ++i) EXPECT_EQ(reduce(exactly.o.data()[i]), image.o.data()[i]);
    for (std::size_t i = 0; i < exactly.final_state.size(); ++i) {
      EXPECT_EQ(reduce(exactly.final_state.data()[i]), image.final_state.data()[i]);
    }
  }
}

TEST(recurrent, queries_never_reach_the_state) {
  testing::sequence_recipe recipe;
  recipe.tokens = 9;
  recipe.steps_per_token = 2;
  recipe.key_dim = 3;
  recipe.value_dim = 2;
  recipe.decays = decay_kind::per_token;
  auto s = testing::make_sequence<double>(recipe);
  const trace<double> clean = recurrent(s);
  for (double& x : s.q) x = std::numeric_limits<double>::quiet_NaN();
  const trace<double> poisoned = recurrent(s);
  EXPECT_EQ(clean.final_state, poisoned.final_state);
  for (const double x : poisoned.o.entries()) EXPECT_TRUE(std::isnan(x));
}

TEST(recurrent, zero_keys_and_zero_steps_leave_the_state_alone) {
  auto s = sequence<double>::zeros(2, 1, 2, 2);
  s.initial_state = matrix<double>(2, 2, std::vector<double>{1, 2, 3, 4});
  s.step = {1, 0};
  s.k = {0, 0, 5, 7};
  s.v = {9, 9, 9, 9};
  EXPECT_EQ(recurrent(s).final_state, s.initial_state);
}

TEST(recurrent, decay_of_zero_forgets_everything_before_it) {
  testing::sequence_recipe recipe;
  recipe.tokens = 5;
  recipe.key_dim = 3;
  recipe.value_dim = 2;
  recipe.decays = decay_kind::per_token;
  recipe.initial_state = true;
  auto s = testing::make_sequence<rational>(recipe);
  s.decay[3] = 0;
  const trace<rational> whole = recurrent(s);
  auto tail = sequence<rational>::zeros(2, 1, 3, 2, decay_kind::per_token);
  tail.q.assign(s.q.begin() + 9, s.q.end());
  tail.k.assign(s.k.begin() + 9, s.k.end());
  tail.v.assign(s.v.begin() + 6, s.v.end());
  tail.step.assign(s.step.begin() + 3, s.step.end());
  tail.decay.assign(s.decay.begin() + 3, s.decay.end());
  EXPECT_EQ(recurrent(tail).final_state, whole.final_state);
}

TEST(recurrent, divergence_is_a_finding_and_not_an_exception) {
  auto s = sequence<float>::zeros(200, 1, 1, 1);
  for (float& x : s.k) x = 8;
  for (float& x : s.v) x = 1;
  for (float& x : s.step) x = 1;
  for (float& x : s.q) x = 1;
  const trace<float> result = recurrent(s);
  EXPECT_FALSE(std::isfinite(result.o(199, 0)));
  EXPECT_TRUE(std::isfinite(result.o(10, 0)));
}

TEST(recurrent, predictions_are_dots_in_the_plain_arithmetic) {
  testing::sequence_recipe recipe;
  recipe.seed = 5;
  recipe.tokens = 1;
  recipe.key_dim = 7;
  recipe.value_dim = 1;
  recipe.initial_state = true;
  auto s = testing::make_sequence<rounded<bf16>>(recipe);
  for (auto& x : s.initial_state.entries()) x = x * fraction<rounded<bf16>>(201, 256);
  const auto result = recurrent(s);
  std::vector<rounded<bf16>> column(result.final_state.entries().begin(), result.final_state.entries().end());
  EXPECT_EQ(result.o(0, 0), dot<plain<rounded<bf16>>>(column, s.q_row(0)));
}

TEST(recurrence, refuses_operands_of_the_wrong_length_naming_both_values) {
  recurrence<double> machine(3, 2);
  const std::vector<double> two(2);
  const std::vector<double> three(3);
  try {
    machine.step(two, two, 1.0);
    FAIL() << "no exception";
  } catch (const shape_error& e) {
    EXPECT_THAT(e.what(), ::testing::AllOf(::testing::HasSubstr("k holds 2"), ::testing::HasSubstr("key_dim = 3")));
  }
  std::vector<double> o(2);
  EXPECT_THROW(machine.step(three, three, 1.0), shape_error);
  EXPECT_THROW(machine.decay(two), shape_error);
  EXPECT_THROW(machine.read(two, o), shape_error);
  EXPECT_THROW(machine.read(three, std::span<double>(o).first(1)), shape_error);
  EXPECT_NO_THROW(machine.decay(std::span<const double>{}));
}

TEST(recurrence, runs_a_million_steps_in_the_memory_of_one_state) {
  // One repeated unit key, b = 1/2: S_t = 1 - 2^-t, exactly, in the field modulo p.
  constexpr std::uint64_t steps = 1'000'000;
  recurrence<modular> machine(2, 1);
  const std::vector<modular> k{modular(1), modular(0)};
  const std::vector<modular> v{modular(1)};
  const modular half = modular(1) / modular(2);
  const modular* entries = machine.state().data();
  for (std::uint64_t t = 0; t < steps; ++t) machine.step(k, v, half);
  EXPECT_EQ(machine.state()(0, 0), modular(1) - half.pow(steps));
  EXPECT_EQ(machine.state().data(), entries);
}

TEST(recurrent, takes_a_sequence_of_a_million_tokens) {
  constexpr std::size_t tokens = 1'000'000;
  auto s = sequence<double>::zeros(tokens, 1, 1, 1, decay_kind::per_token);
  for (double& x : s.k) x = 1;
  for (double& x : s.v) x = 1;
  for (double& x : s.q) x = 2;
  for (double& x : s.step) x = 0.5;
  for (double& x : s.decay) x = 0.5;
  const trace<double> result = recurrent(s);  // S <- S/4 + 1/2
  EXPECT_EQ(result.o(0, 0), 1.0);
  EXPECT_EQ(result.o(1, 0), 1.25);
  EXPECT_NEAR(result.o(tokens - 1, 0), 4.0 / 3, 1e-15);
}

TEST(recurrence, keeps_its_state_in_another_format_between_steps_if_told_so) {
  recurrence<float> machine(1, 1);
  const std::vector<float> k{1};
  machine.step(k, std::vector<float>{1.00390625f}, 1.0f);
  EXPECT_EQ(machine.state()(0, 0), 1.00390625f);
  machine.store([](float x) { return lift<float>(round_to<bf16>(x)); });
  EXPECT_EQ(machine.state()(0, 0), 1.0f);
}

}  // namespace
}  // namespace deltaproof
