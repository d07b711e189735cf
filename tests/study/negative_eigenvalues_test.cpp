// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/negative_eigenvalues/words.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::negative_eigenvalues;

TEST(negative_eigenvalues_words, permutations_are_made_of_transpositions) {
  for (const std::size_t n : {1U, 2U, 3U, 5U}) {
    const auto elements = all_permutations(n);
    std::size_t factorial = 1;
    for (std::size_t i = 2; i <= n; ++i) factorial *= i;
    EXPECT_EQ(elements.size(), factorial);
    for (const permutation& p : elements) {
      permutation rows(n);
      for (std::size_t i = 0; i < n; ++i) rows[i] = i;
      const auto steps = as_transpositions(p);
      EXPECT_LT(steps.size(), n);
      for (const transposition& t : steps) std::swap(rows[t.i], rows[t.j]);
      EXPECT_EQ(rows, p);
    }
  }
  EXPECT_EQ(all_transpositions(5).size(), 10U);
}

// e_i - e_j at b = 1 never errs, in any execution; a projection (b = 1 with unit keys) errs at the first exchange.
TEST(negative_eigenvalues_words, exact_keys_never_err_and_projections_always_do) {
  for (const execution& how : executions) {
    const horizon exact_keys = follow_word(how, 5, 2, false, 500, 3, 0);
    EXPECT_EQ(exact_keys.wrong, 0U) << how.name;
    EXPECT_EQ(exact_keys.faint, 0U);
    EXPECT_EQ(exact_keys.lead, 1);
    const horizon projections = follow_word(how, 5, 1, false, 500, 3, 0);
    EXPECT_GT(projections.wrong, 0U);
    EXPECT_LT(projections.wrong, 10U);
    EXPECT_LE(projections.lead, 0);
  }
}

TEST(negative_eigenvalues_words, the_lead_of_parity_is_a_power) {
  // In S2 every exchange multiplies the lead by -(1 - b) = b - 1; with b = 1.5 it is below 1/2 after the second.
  const horizon h = follow_word(executions[5], 2, 1.5, true, 40, 1, 0);
  EXPECT_EQ(h.wrong, 0U);
  EXPECT_GT(h.faint, 0U);
  const double halvings = -std::log2(h.lead);
  EXPECT_NEAR(halvings, std::round(halvings), 1e-9);
  EXPECT_GT(halvings, 5);
}

TEST(negative_eigenvalues_half_life, is_what_one_counts) {
  EXPECT_EQ(half_life(rational(1) / rational(2)), 1);
  EXPECT_EQ(half_life(rational(-1) / rational(4)), 0.5);
  EXPECT_TRUE(std::isinf(half_life(rational(-1))));
  EXPECT_EQ(half_life(rational(0)), 0);
  EXPECT_NEAR(half_life(rational(63) / rational(64)), 44.0139, 1e-4);
  EXPECT_LT(half_life(rational(-2)), 0);  // doubles
  // Its own inverse: |lambda|^t = 1/2.
  EXPECT_NEAR(std::pow(0.984375, half_life(rational(63) / rational(64))), 0.5, 1e-13);
}

TEST(negative_eigenvalues_words, medians_count_none_as_longest) {
  const auto of = [](double q, const std::vector<double>& horizons) { return as_number(horizon_at(q)(horizons)); };
  EXPECT_EQ(of(0.5, {0, 5, 3}), 5);
  EXPECT_EQ(of(0.5, {0, 0, 3}), 0);
  EXPECT_EQ(of(0, {0, 5, 3}), 3);
  EXPECT_EQ(of(1, {5, 0, 3}), 0);
}

}  // namespace
}  // namespace deltaproof
