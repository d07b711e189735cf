// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/scan/transition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "deltaproof/algebra/spectrum.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

matrix<rational> rational_entries(int rows, int cols, std::vector<rational> entries) {
  return matrix<rational>(static_cast<std::size_t>(rows), static_cast<std::size_t>(cols), std::move(entries));
}

testing::sequence_recipe gated_recipe(std::uint64_t seed) {
  testing::sequence_recipe r;
  r.seed = seed;
  r.tokens = 4;
  r.steps_per_token = 2;
  r.key_dim = 3;
  r.value_dim = 3;
  r.decays = decay_kind::per_channel;
  return r;
}

TEST(transition_product, one_and_two_factors_by_hand) {
  transition_product<rational> product(2);
  product.step(std::vector<rational>{1, 2}, rational(1) / 2);
  EXPECT_EQ(product.block(), rational_entries(2, 2, {rational(1) / 2, -1, -1, -1}));
  product.decay(std::vector<rational>{2, 3});
  EXPECT_EQ(product.block(), rational_entries(2, 2, {1, -2, -3, -3}));
  product.step(std::vector<rational>{1, 0}, rational(1));  // erases the first channel
  EXPECT_EQ(product.block(), rational_entries(2, 2, {0, 0, -3, -3}));
}

TEST(transition_product, is_the_recurrence_without_values_to_the_bit) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    auto s = testing::make_sequence<double>(gated_recipe(seed));
    philox random(seed);
    for (double& x : s.k) x *= 1 + random.uniform();
    for (double& x : s.v) x = 0;
    s.initial_state = identity<double>(3);
    EXPECT_EQ(exact_transition(s, 0, s.rows()), recurrent(s).final_state) << "seed " << seed;
  }
}

TEST(transition_product, transposed_run_gives_the_transposed_matrix) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto s = testing::make_sequence<rational>(gated_recipe(seed));
    transition_product<rational> backward(3);
    run_transitions_transposed(s, 1, 6, backward, [] {});
    EXPECT_EQ(transpose(backward.block()), exact_transition(s, 1, 6)) << "seed " << seed;
  }
}

TEST(transition_product, rescaling_keeps_the_product) {
  transition_product<double> scaled_product(2);
  transition_product<double> plain_product(2);
  const std::vector<double> k{3, 1};
  for (int t = 0; t < 100; ++t) {
    scaled_product.step(k, 1.0);
    scaled_product.rescale();
    plain_product.step(k, 1.0);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(std::scalbn(scaled_product.block().data()[i], static_cast<int>(scaled_product.exponent())),
              plain_product.block().data()[i]);
  }
}

TEST(transition_product, a_hundred_thousand_expansive_steps_do_not_overflow) {
  // Euler with one key, |k|^2 = 64: eigenvalue -63, so log2 of the norm grows by log2(63) a step.
  transition_product<double> product(4);
  const std::vector<double> k{4, 4, 4, 4};
  constexpr int steps = 100000;
  for (int t = 0; t < steps; ++t) {
    product.step(k, 1.0);
    product.rescale();
  }
  EXPECT_NEAR(log2_frobenius(product.block(), product.exponent()), steps * std::log2(63.0), 1e-5);
}

TEST(transition_product, refuses_operands_of_the_wrong_length) {
  transition_product<double> product(3);
  EXPECT_THROW(product.step(std::vector<double>(2), 1.0), shape_error);
  EXPECT_THROW(product.decay(std::vector<double>(2)), shape_error);
  const auto s = testing::make_sequence<double>(gated_recipe(0));
  EXPECT_THROW((void)exact_transition(s, 5, 4), shape_error);
  EXPECT_THROW((void)exact_transition(s, 9, 0), shape_error);
}

TEST(log2_frobenius, handles_zeros_infinities_and_extremes) {
  EXPECT_EQ(log2_frobenius(matrix<double>(2, 2, 2.0), 10), 12);
  EXPECT_EQ(log2_frobenius(matrix<double>(2, 2), 0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(log2_frobenius(matrix<double>(1, 1, std::numeric_limits<double>::infinity()), 0),
            std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(log2_frobenius(matrix<double>(1, 2, std::vector<double>{std::nan(""), 1}), 0)));
  EXPECT_EQ(log2_frobenius(matrix<double>(1, 1, 0x1p1000), 1000), 2000);
}

sequence<double> gaussian_run(std::uint64_t seed, std::size_t tokens, std::size_t key_dim, decay_kind decays) {
  philox random(seed);
  auto s = sequence<double>::zeros(tokens, 1, key_dim, 1, decays);
  for (double& x : s.k) x = random.normal() / std::sqrt(static_cast<double>(key_dim));
  for (double& x : s.step) x = 2.5 * random.uniform();
  for (double& x : s.decay) x = 0.5 + 0.5 * random.uniform();
  return s;
}

TEST(estimate_log2_norm, agrees_with_the_spectral_norm_from_below) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const auto s = gaussian_run(seed, 40, 12, seed % 2 == 0 ? decay_kind::none : decay_kind::per_channel);
    const double norm = std::log2(spectral_norm(exact_transition(s, 0, s.rows())));
    philox random(seed, 1);
    matrix<double> block(12, 4);
    for (double& x : block.entries()) x = random.normal();
    EXPECT_LE(estimate_log2_norm(s, 0, s.rows(), block, 1), norm + 1e-9);
    EXPECT_NEAR(estimate_log2_norm(s, 0, s.rows(), block, 30), norm, 1e-6) << "seed " << seed;
  }
}

TEST(estimate_log2_norm, of_a_forgotten_run_is_minus_infinity) {
  auto s = gaussian_run(1, 3, 4, decay_kind::per_token);
  s.decay[1] = 0;
  EXPECT_EQ(estimate_log2_norm(s, 0, 3, identity<double>(4), 2), -std::numeric_limits<double>::infinity());
}

// Every entry against the exact rational one, rounded by itself.
template <format F>
void expect_rounded_once(std::span<const double> k, double b) {
  const matrix<rounded<F>> got = materialised_transition<F>(k, b);
  for (std::size_t i = 0; i < k.size(); ++i) {
    for (std::size_t j = 0; j < k.size(); ++j) {
      const rational entry = (i == j ? 1 : 0) - exact(b) * exact(k[i]) * exact(k[j]);
      EXPECT_EQ(got(i, j).bits(), round_to<F>(entry).bits()) << name_of(F) << " (" << i << ", " << j << ")";
    }
  }
}

TEST(materialised_transition, rounds_each_exact_entry_once) {
  philox random(4);
  for (int sample = 0; sample < 40; ++sample) {
    std::vector<double> keys(5);
    for (double& x : keys) x = random.normal();
    const double b = 2 * random.uniform();
    expect_rounded_once<fp64>(keys, b);
    expect_rounded_once<bf16>(keys, b);
    for (double& x : keys) x = static_cast<double>(round_to<fp32>(x));
    expect_rounded_once<fp32>(keys, static_cast<double>(round_to<fp32>(b)));
    for (double& x : keys) x = static_cast<double>(round_to<bf16>(x));
    expect_rounded_once<bf16>(keys, static_cast<double>(round_to<bf16>(b)));
    expect_rounded_once<e4m3>(keys, static_cast<double>(round_to<bf16>(b)));
  }
  const std::vector<double> extremes{0.0, -0.0, 1, 0x1p-500, 0x1p-1074, 1 - 0x1p-53, -1e200};
  expect_rounded_once<fp32>(extremes, 1.0);
  expect_rounded_once<fp64>(extremes, 0x1.fffffp-3);
  expect_rounded_once<bf16>(extremes, 0.0);
}

TEST(materialised_transition, refuses_what_is_not_finite) {
  const std::vector<double> k{1, std::numeric_limits<double>::infinity()};
  EXPECT_THROW((void)materialised_transition<bf16>(k, 1.0), domain_error);
  EXPECT_THROW((void)materialised_transition<bf16>(std::vector<double>{1}, std::nan("")), domain_error);
}

TEST(apply_materialised, sums_in_fp32_and_stores_in_bf16) {
  using mixed = arithmetic<rounded<bf16>, exact_product, rounded<fp32>, sequential>;
  const std::vector<double> k{0.5, 0.25};
  const auto m = materialised_transition<bf16>(k, 1.0);  // [[3/4, -1/8], [-1/8, 15/16]]
  matrix<rounded<bf16>> block(2, 1);
  block(0, 0) = round_to<bf16>(1.0);
  block(1, 0) = round_to<bf16>(0x1p-9);
  apply_materialised<mixed>(m, block);
  EXPECT_EQ(block(0, 0).value(), 0.75);          // 3/4 - 2^-12 = 0.7497... lies nearer to 3/4 than to 3/4 - 2^-8
  EXPECT_EQ(block(1, 0).value(), -0.123046875);  // -1/8 + 15/16 2^-9 = -252.25 2^-11, 8 bits keep 252
  matrix<rounded<bf16>> too_tall(3, 1);
  EXPECT_THROW(apply_materialised<mixed>(m, too_tall), shape_error);
}

TEST(apply_materialised, in_one_format_is_that_formats_product) {
  using S = rounded<fp16>;
  const std::vector<double> k{0.75, -0.5, 0.125};
  const auto m = materialised_transition<fp16>(k, 1.25);
  matrix<S> block = identity<S>(3);
  apply_materialised<plain<S>>(m, block);
  EXPECT_EQ(block, m);
  apply_materialised<plain<S>>(m, block);
  EXPECT_EQ(block, matmul<plain<S>>(m, m));
}

}  // namespace
}  // namespace deltaproof
