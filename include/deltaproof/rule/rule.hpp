// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Says what an update rule is: a name, an order of accuracy, the stability function R(x) and the gain
// phi(x) = (1 - R(x)) / x. One step of dS/dt = -(S k - v) k^T over time beta, with n = |k|^2 and
// x = beta n, gives S <- S - beta phi(x) (S k - v) k^T, whose transition has eigenvalue R(x) along k and
// 1 on the complement; so these two functions are the whole rule. Each is templated on the scalar and
// rounds as that scalar does. It exists so that code over "any rule" can name what it needs.
#pragma once

#include <concepts>
#include <limits>
#include <string_view>

namespace deltaproof {

/// Types side by side, to be iterated over.
template <class... Types>
struct type_list {};

/// The `order` of a rule that makes no error: R(x) = e^-x.
inline constexpr int exact_order = std::numeric_limits<int>::max();

/// R and phi can be evaluated in the scalar S.
template <class Rule, class S>
concept RuleOver = requires(const S& x) {
  { Rule::stability(x) } -> std::convertible_to<S>;
  { Rule::gain(x) } -> std::convertible_to<S>;
};

/// A one-step method of the ODE above; every one of them can be evaluated in double.
template <class Rule>
concept UpdateRule = RuleOver<Rule, double> && requires {
  { Rule::name } -> std::convertible_to<std::string_view>;
  { Rule::order } -> std::convertible_to<int>;
  { Rule::limit } -> std::convertible_to<double>;
};

/// The effective step b = beta phi(beta n) for n = |k|^2: a kernel that follows `Rule` with step length
/// beta is a DeltaNet kernel with step b. Rounds: one multiplication, phi, one multiplication.
template <UpdateRule Rule, class S>
  requires RuleOver<Rule, S>
[[nodiscard]] S effective_step(Rule, const S& beta, const S& squared_norm) {
  const S x = beta * squared_norm;
  return beta * Rule::gain(x);
}

/// The largest double X such that |R| <= 1 on [0, X]; infinity where R is bounded by 1 for all x >= 0.
template <UpdateRule Rule>
inline constexpr double stability_limit = Rule::limit;

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.rank_one.step_eigenvector, algebra.rank_one.step_fixes_complement,
// proved: algebra.rank_one.step_characteristic_polynomial, algebra.rank_one.step_spectrum, algebra.rank_one.outer_power
