// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gradients whose numbers are all dyadic: ties between two numbers of a format and zeros are decided, by runs in which nothing is
// rounded, as the derivative that the forward pass carries is rounded; and what is not dyadic is never said to be exact.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "oracle/gradient_judge.hpp"
#include "oracle/gradients/exact_bits.hpp"
#include "oracle/solve/decided.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

using exact_number = real<4200>;

/// One head, all numbers multiples of 1/8 of at most 1, some of them 0; gates of 0 and -inf.
problem dyadic_problem(std::uint64_t number) {
  philox random(91, number);
  const std::size_t T = 1 + random.below(5), n = 1 + random.below(2), K = 1 + random.below(3), V = 1 + random.below(3);
  const auto draw = [&](std::vector<std::size_t> shape, const char* name) {
    std::size_t count = 1;
    for (const std::size_t each : shape) count *= each;
    std::vector<double> x(count);
    for (double& xi : x) xi = (static_cast<double>(random.below(17)) - 8) / 8;
    return tensor::from_doubles(fp32, std::move(shape), x, name);
  };
  problem p;
  p.num_householder = n;
  p.op = n > 1 ? op_kind::gated_delta_product : random.below(2) == 0 ? op_kind::gated_delta_rule : op_kind::kda;
  p.scale = 0.5;
  p.q = draw({1, T, 1, K}, "q");
  p.k = draw({1, T * n, 1, K}, "k");
  p.v = draw({1, T * n, 1, V}, "v");
  p.beta = draw({1, T * n, 1}, "beta");
  const bool by_channel = p.op == op_kind::kda;
  std::vector<double> g(T * (by_channel ? K : 1));
  for (double& x : g) x = random.below(4) == 0 ? -std::numeric_limits<double>::infinity() : 0;
  p.g = tensor::from_doubles(
      fp32, by_channel ? std::vector{std::size_t{1}, T, std::size_t{1}, K} : std::vector{std::size_t{1}, T, std::size_t{1}}, g,
      "g");
  if (random.below(2) == 0) p.initial_state = draw({1, 1, K, V}, "initial_state");
  p.d_o = draw({1, T, 1, V}, "do");
  if (random.below(2) == 0) p.d_final_state = draw({1, 1, K, V}, "dfinal_state");
  if (random.below(4) == 0) p.rule = rule_kind::rk2;
  if (random.below(8) == 0) {
    p.beta_activation = random.below(2) == 0 ? activation_kind::sigmoid : activation_kind::two_sigmoid;
    p.beta = tensor::from_doubles(fp32, {1, T * n, 1}, std::vector<double>(T * n), "beta");
  }
  return p;
}

TEST(exact_gradients, decide_every_tie_and_zero) {
  std::size_t problems = 0, left_open = 0, ties = 0, zeros = 0;
  for (std::uint64_t number = 0; number < scaled(150) && !HasFailure(); ++number) {
    const problem p = dyadic_problem(number);
    question q;
    q.threads = 1;
    q.round_output = q.round_state = bf16;
    q.max_bits = 106;
    left_open += solve_gradients(p, q).unanswered;
    q.always_exact = true;
    q.max_bits = 53;
    const reference_gradients got = solve_gradients(p, q);
    EXPECT_EQ(got.unanswered, 0U) << "problem " << number;
    ++problems;
    for (std::size_t i = 0; i < gradient_names.size(); ++i) {
      const auto found = got.tensors.find(gradient_names[i]);
      if (found == got.tensors.end()) continue;
      for (std::size_t j = 0; j < found->second.value.size(); ++j) {
        const auto want = testing::slope_of_loss<exact_number>(p, {i, j});
        const double rounded = round_nearest(want.backend().data(), bf16);
        const auto one = decided_rounding(found->second, j, bf16);
        ASSERT_TRUE(one.has_value()) << "problem " << number << ", " << gradient_names[i] << "[" << j << "]";
        ASSERT_EQ(*one, rounded) << "problem " << number << ", " << gradient_names[i] << "[" << j << "]";
        if (want == 0) ++zeros;
        const double away = 2 * static_cast<double>(want) - rounded;  // a tie lies between two numbers of the format
        if (want != 0 && want != rounded && round_nearest(exact_number(away).backend().data(), bf16) == away) ++ties;
      }
    }
  }
  std::printf("%zu problems, %zu left open by two tiers; %zu ties, %zu zeros\n", problems, left_open, ties, zeros);
  EXPECT_GT(left_open, problems / 4);
  EXPECT_GT(ties, 50U);
  EXPECT_GT(zeros, 50U);
}

/// A tie in the first dq, and more tokens than numbers of a whole group have bits for.
problem tie_before_many_tokens(std::size_t T) {
  philox random(92, T);
  std::vector<double> k(2 * T), v(2 * T), d(2 * T), beta(T);
  for (auto* list : {&k, &v, &d}) {
    for (double& x : *list) x = (static_cast<double>(random.below(255)) - 127) / 128;
  }
  for (double& x : beta) x = static_cast<double>(random.below(127) + 1) / 128;
  k[0] = v[0] = beta[0] = 1;
  k[1] = v[1] = d[1] = 0;
  d[0] = 1 + 0x1p-8;
  problem p;
  p.op = op_kind::delta_rule;
  p.scale = 1;
  p.q = tensor::from_doubles(fp32, {1, T, 1, 2}, k, "q");
  p.k = tensor::from_doubles(fp32, {1, T, 1, 2}, k, "k");
  p.v = tensor::from_doubles(fp32, {1, T, 1, 2}, v, "v");
  p.beta = tensor::from_doubles(fp32, {1, T, 1}, beta, "beta");
  p.d_o = tensor::from_doubles(fp32, {1, T, 1, 2}, d, "do");
  return p;
}

TEST(exact_gradients, decide_a_tie_among_many_tokens) {
  for (const std::size_t T : {20U, 60U, 300U}) {
    const problem p = tie_before_many_tokens(T);
    question q;
    q.threads = 1;
    q.round_output = q.round_state = bf16;
    const reference_gradients got = solve_gradients(p, q);
    EXPECT_EQ(got.unanswered, 0U) << T << " tokens";
    EXPECT_EQ(decided_rounding(got.tensors.find("dq")->second, 0, bf16), 1.0) << T << " tokens";
    EXPECT_EQ(got.tiers.count("fp64 and elements in exact"), 1U) << T << " tokens: " << got.tiers.begin()->first;
  }
}

TEST(exact_gradients, are_said_of_dyadic_numbers_alone) {
  const problem p = tie_before_many_tokens(5);
  EXPECT_TRUE(bits_of_exact_run(p, 0, 0).has_value());
  for (int change = 0; change < 4; ++change) {
    problem other = p;
    if (change == 0) other.qk_l2norm = true;
    if (change == 1) other.rule = rule_kind::exact;
    if (change == 2) other.beta_activation = activation_kind::sigmoid;
    if (change == 3) {
      other.op = op_kind::gated_delta_rule;
      other.g = tensor::from_doubles(fp32, {1, 5, 1}, std::vector<double>(5, -0.5), "g");
    }
    EXPECT_FALSE(bits_of_exact_run(other, 0, 0).has_value()) << change;
    question q;
    q.threads = 1;
    q.relative_radius = 0x1p-300;  // beyond what coarser tiers know
    const reference_gradients got = solve_gradients(other, q);
    EXPECT_EQ(got.tiers.count("exact"), 0U) << change;
    for (const auto& [name, t] : got.tensors) {
      std::size_t known = 0;
      for (std::size_t i = 0; i < t.value.size(); ++i) known += t.radius[i] == 0 && t.value[i] != 0 ? 1 : 0;
      EXPECT_EQ(known, 0U) << name << ", " << change;
    }
  }
}

}  // namespace
}  // namespace deltaproof
