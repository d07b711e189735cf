// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Says what an update rule is: a name, an order of accuracy, the stability function R(x) and the gain
// phi(x) = (1 - R(x)) / x. One step of dS/dt = -(S k - v) k^T over time beta, with n = |k|^2 and
// x = beta n, gives S <- S - beta phi(x) (S k - v) k^T, whose transition has eigenvalue R(x) along k and
// 1 on the complement; so these two functions are the whole rule. Each is templated on the scalar and
// rounds as that scalar does. What else the library asks of a rule it derives from them: the errors of a gain by running phi over
// numbers with bounds, poles by divisions by 0, derivatives by dual numbers. It exists so that code over "any rule" can name what
// it needs.
#pragma once

#include <concepts>
#include <limits>
#include <string_view>

#include "deltaproof/number/dual.hpp"

namespace deltaproof {

/// Types side by side, to be iterated over.
template <class... Types>
struct type_list {};

/// The `order` of a rule that makes no error: R(x) = e^-x.
inline constexpr int exact_order = std::numeric_limits<int>::max();

/// Which rule of the catalogue, where that is known at run time only; rules.hpp names them.
enum class rule_kind : unsigned char;

/// R and phi can be evaluated in the scalar S.
template <class Rule, class S>
concept RuleOver = requires(const S& x) {
  { Rule::stability(x) } -> std::convertible_to<S>;
  { Rule::gain(x) } -> std::convertible_to<S>;
};

/// A one-step method of the ODE above; every one of them can be evaluated in double.
template <class Rule>
concept UpdateRule = RuleOver<Rule, double> && requires {
  { Rule::kind } -> std::convertible_to<rule_kind>;
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

/// phi'(x), and (x phi(x))' = -R'(x).
template <class S>
struct gain_slopes {
  S of_gain, of_product;
};

/// Both derivatives, by dual numbers; a rule whose own are better has `slopes(x)`. One that has no `slopes` and uses functions
/// that dual numbers lack does not compile.
template <UpdateRule Rule, class S>
[[nodiscard]] gain_slopes<S> slopes_of(Rule, const S& x) {
  if constexpr (requires { Rule::slopes(x); }) {
    return Rule::slopes(x);
  } else {
    const dual<S> at(x, one<S>());
    return {Rule::gain(at).slope(), -Rule::stability(at).slope()};
  }
}

/// The largest double X such that |R| <= 1 on [0, X]; infinity where R is bounded by 1 for all x >= 0.
template <UpdateRule Rule>
inline constexpr double stability_limit = Rule::limit;

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.rank_one.step_eigenvector, algebra.rank_one.step_fixes_complement,
// proved: algebra.rank_one.step_characteristic_polynomial, algebra.rank_one.step_spectrum, algebra.rank_one.outer_power,
// proved: ode.gain_slopes.gains_are_those_of_the_rules
