// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <type_traits>
#include <vector>

#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/rule/rules.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

// One step from zeros and from a unit vector shows the whole transition: it multiplies k by R(x) and
// leaves alone what is orthogonal to k.
template <class S>
void expect_eigenvalues(const testing::sequence_recipe& recipe) {
  const sequence<S> s = testing::make_sequence<S>(recipe);
  for_each_rule([&](auto rule) {
    if constexpr (!std::is_same_v<decltype(rule), exact_flow>) {
      for (std::size_t row = 0; row < s.rows(); ++row) {
        const auto k = s.k_row(row);
        S squared_norm = zero<S>();
        for (const S& entry : k) squared_norm = squared_norm + entry * entry;
        const S beta = s.step[row];
        const S x = beta * squared_norm;
        const S b = effective_step(rule, beta, squared_norm);
        const S shrink = b * squared_norm;
        for (const S& entry : k) {
          RC_ASSERT(S(entry - shrink * entry) == S(rule.stability(x) * entry));
        }
        RC_ASSERT(rule.stability(x) == S(one<S>() - x * rule.gain(x)));
      }
    }
  });
}

testing::sequence_recipe with_positive_steps(testing::sequence_recipe recipe) {
  if (recipe.step_from < 0) recipe.step_from = 0;  // away from the poles of the implicit rules
  return recipe;
}

TEST(rule_property, one_step_has_eigenvalue_r_along_the_key_in_rationals) {
  testing::check_property(300, 21, [] { expect_eigenvalues<rational>(with_positive_steps(*testing::recipes({.tokens = 4}))); });
}

TEST(rule_property, one_step_has_eigenvalue_r_along_the_key_modulo_a_prime) {
  testing::check_property(
      1000, 22, [] { expect_eigenvalues<modular>(with_positive_steps(*testing::recipes({.tokens = 8, .key_dim = 16}))); });
}

}  // namespace
}  // namespace deltaproof
