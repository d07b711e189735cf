// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The catalogue of update rules: euler (DeltaNet), exact_flow (EFLA), implicit_euler (Longhorn before
// its diagonal approximation), crank_nicolson, rk2, rk3, rk4, and ways to go over all of them or to pick
// one by name. x = beta |k|^2. Polynomial and rational rules take any scalar with + - * / by small
// integers, fields such as rationals and integers modulo a prime included; exact_flow takes scalars with
// exp and expm1. R and phi are evaluated in S itself, in the order written. A new rule is one struct, its entry of `rule_kind`
// and of `rules` in this file: problems name it, the oracle certifies it, kernels are emulated with it, and tests, studies and
// the program find it. tests/rule/truth.hpp has its gain a second time.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "deltaproof/number/scalar.hpp"
#include "deltaproof/rule/rule.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// The kernel turns beta into beta * phi(beta * |k|^2) by this rule's gain phi. In the order of `rules`.
enum class rule_kind : unsigned char { euler, exact, implicit, crank_nicolson, rk2, rk3, rk4 };

/// The slopes of exact_flow in double; other scalars bring theirs. (e^-x - phi) / x cancels near 0.
[[nodiscard]] gain_slopes<double> flow_slopes(double x);

/// R(x) = 1 - x, phi(x) = 1.
struct euler {
  static constexpr rule_kind kind = rule_kind::euler;
  static constexpr std::string_view name = "euler";
  static constexpr int order = 1;
  static constexpr double limit = 2;

  template <class S>
  [[nodiscard]] static S stability(const S& x) {
    return one<S>() - x;
  }
  template <class S>
  [[nodiscard]] static S gain(const S&) {
    return one<S>();
  }
};

/// R(x) = e^-x, phi(x) = -expm1(-x) / x, 1 at x = 0.
/// Error: of phi at most that of expm1 and of one division, for every x; the form (1 - e^-x) / x loses
/// all digits near 0.
struct exact_flow {
  static constexpr rule_kind kind = rule_kind::exact;
  static constexpr std::string_view name = "exact";
  static constexpr int order = exact_order;
  static constexpr double limit = std::numeric_limits<double>::infinity();

  template <class S>
    requires HasExp<S>
  [[nodiscard]] static S stability(const S& x) {
    using std::exp;
    const S negative = -x;
    return exp(negative);
  }
  template <class S>
    requires HasExp<S>
  [[nodiscard]] static S gain(const S& x) {
    using std::expm1;
    if (x == zero<S>()) return one<S>();
    const S negative = -x;
    const S decayed = expm1(negative);
    return decayed / negative;
  }
  template <class S>
  [[nodiscard]] static gain_slopes<S> slopes(const S& x) {
    return flow_slopes(x);
  }
};

/// R(x) = phi(x) = 1 / (1 + x).
struct implicit_euler {
  static constexpr rule_kind kind = rule_kind::implicit;
  static constexpr std::string_view name = "implicit";
  static constexpr int order = 1;
  static constexpr double limit = std::numeric_limits<double>::infinity();

  template <class S>
  [[nodiscard]] static S stability(const S& x) {
    return gain(x);
  }
  template <class S>
  [[nodiscard]] static S gain(const S& x) {
    const S denominator = one<S>() + x;
    return one<S>() / denominator;
  }
};

/// R(x) = (2 - x) / (2 + x), phi(x) = 2 / (2 + x): the bilinear map.
struct crank_nicolson {
  static constexpr rule_kind kind = rule_kind::crank_nicolson;
  static constexpr std::string_view name = "crank_nicolson";
  static constexpr int order = 2;
  static constexpr double limit = std::numeric_limits<double>::infinity();

  template <class S>
  [[nodiscard]] static S stability(const S& x) {
    const S two = from_int<S>(2);
    const S numerator = two - x;
    const S denominator = two + x;
    return numerator / denominator;
  }
  template <class S>
  [[nodiscard]] static S gain(const S& x) {
    const S two = from_int<S>(2);
    const S denominator = two + x;
    return two / denominator;
  }
  /// -R' as phi^2, without the difference of two numbers near 1.
  template <class S>
  [[nodiscard]] static gain_slopes<S> slopes(const S& x) {
    const S phi = gain(x);
    const S square = phi * phi;
    return {-square / from_int<S>(2), square};
  }
};

namespace detail {

/// sum_{m <= degree} (-x)^m / (m+1)! by Horner: 1 - x/2 (1 - x/3 (1 - ... x/(degree+1))), the phi of the
/// Taylor polynomial of e^-x of degree + 1.
template <class S>
[[nodiscard]] S taylor_gain(const S& x, int degree) {
  S value = one<S>();
  for (int m = degree; m >= 1; --m) {
    const S part = x / from_int<S>(m + 1);
    const S product = part * value;
    value = one<S>() - product;
  }
  return value;
}

/// sum_{m <= degree} (-x)^m / m! by Horner: 1 - x (1 - x/2 (1 - ... x/degree)).
template <class S>
[[nodiscard]] S taylor_stability(const S& x, int degree) {
  const S inner = taylor_gain(x, degree - 1);
  const S product = x * inner;
  return one<S>() - product;
}

/// Runge-Kutta method of `Stages` stages and order `Stages`, which exists up to 4.
template <int Stages>
struct runge_kutta {
  static constexpr int order = Stages;

  template <class S>
  [[nodiscard]] static S stability(const S& x) {
    return taylor_stability(x, Stages);
  }
  template <class S>
  [[nodiscard]] static S gain(const S& x) {
    return taylor_gain(x, Stages - 1);
  }
};

}  // namespace detail

/// R(x) = 1 - x + x^2/2, phi(x) = 1 - x/2.
struct rk2 : detail::runge_kutta<2> {
  static constexpr rule_kind kind = rule_kind::rk2;
  static constexpr std::string_view name = "rk2";
  static constexpr double limit = 2;
};

/// R(x) = 1 - x + x^2/2 - x^3/6, phi(x) = 1 - x/2 + x^2/6; R reaches -1 at the limit.
struct rk3 : detail::runge_kutta<3> {
  static constexpr rule_kind kind = rule_kind::rk3;
  static constexpr std::string_view name = "rk3";
  static constexpr double limit = 2.5127453266183286;
};

/// R(x) = 1 - x + x^2/2 - x^3/6 + x^4/24, phi(x) = 1 - x/2 + x^2/6 - x^3/24; R reaches 1 at the limit,
/// where phi has its zero and so keeps absolute, not relative, accuracy in a rounded scalar.
struct rk4 : detail::runge_kutta<4> {
  static constexpr rule_kind kind = rule_kind::rk4;
  static constexpr std::string_view name = "rk4";
  static constexpr double limit = 2.7852935634052813;
};

/// Every rule, in the order in which they are listed everywhere.
using rules = type_list<euler, exact_flow, implicit_euler, crank_nicolson, rk2, rk3, rk4>;

namespace detail {

template <UpdateRule... Rules, class F>
void each_rule(type_list<Rules...>, F& f) {
  (f(Rules{}), ...);
}

}  // namespace detail

/// Calls f(Rule{}) for each rule of the catalogue, in order.
template <class F>
void for_each_rule(F&& f) {
  detail::each_rule(rules{}, f);
}

/// Every rule's kind and name, in order.
inline constexpr auto rule_names = []<class... Rules>(type_list<Rules...>) {
  return std::array{std::pair<rule_kind, std::string_view>{Rules::kind, Rules::name}...};
}(rules{});
static_assert(
    [] {
      for (std::size_t i = 0; i < rule_names.size(); ++i) {
        if (static_cast<std::size_t>(rule_names[i].first) != i) return false;
      }
      return true;
    }(),
    "rule_kind and rules must list the same rules in the same order");

/// Calls f(Rule{}) for this rule.
template <class F>
void visit_rule(rule_kind kind, F&& f) {
  for_each_rule([&](auto rule) {
    if (rule.kind == kind) f(rule);
  });
}

/// The kind with this name. Throws: as visit_rule.
[[nodiscard]] rule_kind rule_named(std::string_view name);
[[nodiscard]] std::string_view name_of(rule_kind rule);

/// phi(x) of a rule that is known at run time. Rounds: fp64, as the rule is written.
[[nodiscard]] double gain(rule_kind rule, double x);
/// Its step b = beta phi(beta squared_norm).
[[nodiscard]] double effective_step(rule_kind rule, double beta, double squared_norm);
[[nodiscard]] gain_slopes<double> slopes_of(rule_kind rule, double x);

/// Calls f(Rule{}) for the rule with this name. Throws: format_error that lists the names there are.
template <class F>
void visit_rule(std::string_view name, F&& f) {
  bool found = false;
  std::string names;
  for_each_rule([&](auto rule) {
    names += (names.empty() ? "" : ", ") + std::string(rule.name);
    if (rule.name == name) {
      found = true;
      f(rule);
    }
  });
  if (!found) throw format_error("unknown rule \"" + std::string(name) + "\"; use one of " + names);
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.rank_one.step_eigenvector, algebra.rank_one.step_fixes_complement,
// proved: algebra.rank_one.step_characteristic_polynomial, algebra.rank_one.step_spectrum, algebra.rank_one.outer_power,
// proved: algebra.rank_one.step_composition, algebra.rank_one.sherman_morrison, algebra.rank_one.longhorn_is_implicit_euler,
// proved: algebra.rank_one.implicit_euler_unique, algebra.non_expansive.step_non_expansive_iff,
// proved: ode.exact_flow.flow_step_eigenvalue, ode.exact_flow.flow_eigenvalue_range, ode.exact_flow.flow_step_composition,
// proved: ode.exact_flow.exact_flow_start, ode.exact_flow.exact_flow_solves, ode.exact_flow.exact_flow_unique,
// proved: ode.stability.euler_stable, ode.stability.euler_limit, ode.stability.rk2_stable, ode.stability.rk2_limit,
// proved: ode.stability.rk3_stable, ode.stability.rk3_limit, ode.stability.rk4_positive, ode.stability.rk4_stable,
// proved: ode.stability.rk4_limit, ode.stability.implicit_euler_range, ode.stability.crank_nicolson_range,
// proved: ode.stability.exact_range, ode.stability.euler_below_exact, ode.stability.exact_below_rk2,
// proved: ode.stability.euler_local_error, ode.stability.exact_below_implicit_euler, ode.stability.euler_below_crank_nicolson,
// proved: ode.stability.crank_nicolson_below_exact, ode.stability.rk4_accuracy, ode.stability.rk4_accuracy_wide,
// proved: ode.stability.euler_gap, float.gain.gain_robust, float.alpha.one_minus_exp_condition, float.alpha.alpha_fp32,
// proved: code.constants.limit_euler_is_the_end
