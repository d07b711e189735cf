// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The identities of one step: functions of rank-one matrices, spectrum, rules (EFLA, Longhorn, Runge-Kutta), the step of
// gradient descent and the v_old / v_new form. A step of the implementation is a sequence of one token.
#pragma once

#include <cstddef>
#include <vector>

#include "deltaproof/rule/rules.hpp"
#include "deltaproof/support/errors.hpp"
#include "support/identities/dense.hpp"
#include "support/identities/identity.hpp"
#include "support/identities/wy.hpp"

namespace deltaproof::testing {

/// One key, value, step length and state, out of a recipe.
template <class S>
struct one_step {
  std::vector<S> k;
  std::vector<S> v;
  S beta;
  matrix<S> state;

  explicit one_step(sequence_recipe r) {
    r.tokens = 1 + r.tokens;
    r.step_from = r.step_from < 0 ? 1 : r.step_from;  // away from the poles of the implicit rules
    const auto s = make_sequence<S>(r);
    recipe_stream stream = choices(r, 30);
    const std::size_t row = below(stream, dense::rows(s));
    k = dense::key(s, row);
    v = dense::value(s, row);
    beta = s.step[row];
    state = any_state(s, r);
  }
  [[nodiscard]] S squared_norm() const { return dense::inner(k, k); }
};

/// What the implementation makes of a state in one step. Throws: domain_error where its recurrence and a chunk of one row
/// differ.
template <class I, class S>
[[nodiscard]] matrix<S> stepped_by(const I& impl, const std::vector<S>& k, const std::vector<S>& v, const S& b,
                                   const matrix<S>& state) {
  auto s = sequence<S>::zeros(1, 1, k.size(), state.cols());
  s.k = k;
  s.v = v;
  s.step = {b};
  s.initial_state = state;
  const auto result = impl.recurrent(s).final_state;
  if (!(impl.chunkwise(s, 1, inverse_methods[0].method).final_state == result))
    throw domain_error("one step: the two forms differ");
  return result;
}

/// The transition I - b k k^T as the implementation has it: one step from the identity with v = 0.
template <class I, class S>
[[nodiscard]] matrix<S> transition_by(const I& impl, const std::vector<S>& k, const S& b) {
  return stepped_by(impl, k, std::vector<S>(k.size(), zero<S>()), b, dense::unit<S>(k.size()));
}

/// sum_n coefficients_n m^n.
template <class S>
[[nodiscard]] matrix<S> polynomial_of(const std::vector<S>& coefficients, const matrix<S>& m) {
  auto result = dense::zeros<S>(m.rows(), m.rows());
  for (std::size_t n = coefficients.size(); n-- > 0;) {
    result = dense::sum(dense::times(result, m), dense::unit<S>(m.rows()), coefficients[n]);
  }
  return result;
}

/// f(x y^T) = f(0) I + x [(f(y^T x) - f(0)) / (y^T x)] y^T for polynomials f, the bracket f'(0) where y^T x = 0: with
/// x = b k and y = k, f = 1 - z, it is the step of the implementation.
template <class I>
bool rank_one_function(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const one_step<S> step(r);
  recipe_stream stream = choices(r, 31);
  std::vector<S> f;
  for (int n = stream.between(1, 6); n > 0; --n) f.push_back(from_int<S>(stream.between(-3, 3)));
  auto x = step.k;
  for (S& entry : x) entry = step.beta * entry;
  auto y = step.k;
  if (stream.next() % 2 == 0) {
    for (S& entry : y) entry = from_int<S>(stream.between(-3, 3));
    if (y.size() > 1 && stream.next() % 2 == 0) {  // turned until y^T x = 0
      y.assign(y.size(), zero<S>());
      y[0] = x[1];
      y[1] = -x[0];
    }
  }
  const S product = dense::inner(x, y);
  const S at_zero = f[0];
  S bracket = f.size() > 1 ? f[1] : zero<S>();
  if (!(product == zero<S>())) {
    S at_product = zero<S>();
    for (std::size_t n = f.size(); n-- > 0;) at_product = at_product * product + f[n];
    bracket = (at_product - at_zero) / product;
  }
  const auto formula = dense::sum(dense::scaled(at_zero, dense::unit<S>(x.size())), dense::outer(bracket, x, y));
  const bool holds = polynomial_of(f, dense::outer(one<S>(), x, y)) == formula;
  const auto step_matrix = polynomial_of({one<S>(), from_int<S>(-1)}, dense::outer(step.beta, step.k, step.k));
  return holds && transition_by(impl, step.k, step.beta) == step_matrix;
}

/// det(l I - (I - b k k^T)) = (l - 1)^(K - 1) (l - 1 + b |k|^2) at K + 2 values of l, more than its degree; det at l = 0.
template <class I>
bool characteristic_polynomial(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const one_step<S> step(r);
  const auto transition = transition_by(impl, step.k, step.beta);
  for (std::size_t i = 0; i < step.k.size() + 2; ++i) {
    const S l = from_int<S>(static_cast<int>(i));  // 0 gives (-1)^K det
    S want = l - one<S>() + step.beta * step.squared_norm();
    for (std::size_t n = 1; n < step.k.size(); ++n) want = want * (l - one<S>());
    const auto shifted = dense::sum(dense::scaled(l, dense::unit<S>(step.k.size())), transition, from_int<S>(-1));
    if (!(dense::inverse_and_determinant(shifted).second == want)) return false;
  }
  return true;
}

/// b |k|^2 = 2: the transition is its own inverse and transpose, det = -1; two steps with v = 0 restore the state.
template <class I>
bool orthogonal_at_two(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const one_step<S> step(r);
  if (step.squared_norm() == zero<S>()) return transition_by(impl, step.k, step.beta) == dense::unit<S>(step.k.size());
  const S b = from_int<S>(2) / step.squared_norm();
  const auto transition = transition_by(impl, step.k, b);
  return dense::times(dense::turned(transition), transition) == dense::unit<S>(step.k.size()) &&
         dense::turned(transition) == transition && dense::inverse_and_determinant(transition).second == from_int<S>(-1);
}

/// S' = S - b grad 1/2 |S^T k - v|^2; the loss is quadratic, so its central difference is its derivative.
template <class I>
bool gradient_step(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const one_step<S> step(r);
  const auto loss = [&step](const matrix<S>& state) {
    S sum = zero<S>();
    const auto predicted = dense::read(state, step.k);
    for (std::size_t c = 0; c < predicted.size(); ++c) sum = sum + (predicted[c] - step.v[c]) * (predicted[c] - step.v[c]);
    return S(sum / from_int<S>(2));
  };
  auto want = step.state;
  for (std::size_t i = 0; i < want.size(); ++i) {
    auto ahead = step.state;
    auto behind = step.state;
    ahead.data()[i] = ahead.data()[i] + one<S>();
    behind.data()[i] = behind.data()[i] - one<S>();
    want.data()[i] = want.data()[i] - step.beta * ((loss(ahead) - loss(behind)) / from_int<S>(2));
  }
  return stepped_by(impl, step.k, step.v, step.beta, step.state) == want;
}

/// S' = S + k (v_new - v_old)^T, v_old = S^T k, v_new = (1 - b) v_old + b v; for a unit key S'^T k = v_new.
template <class I>
bool old_and_new_value(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const one_step<S> step(r);
  const auto old_value = dense::read(step.state, step.k);
  std::vector<S> new_value;
  std::vector<S> change;
  for (std::size_t c = 0; c < step.v.size(); ++c) {
    new_value.push_back((one<S>() - step.beta) * old_value[c] + step.beta * step.v[c]);
    change.push_back(new_value[c] - old_value[c]);
  }
  const auto after = stepped_by(impl, step.k, step.v, step.beta, step.state);
  const bool unit_key = step.squared_norm() == one<S>();
  return after == dense::sum(step.state, dense::outer(one<S>(), step.k, change)) &&
         (!unit_key || dense::read(after, step.k) == new_value);
}

/// A key of norm c, an integer other than 0: signs over sqrt(K), times c.
template <class S>
struct key_of_known_norm {
  std::vector<S> k;
  S norm;
};

template <class S>
[[nodiscard]] key_of_known_norm<S> any_key_of_known_norm(const sequence_recipe& recipe) {
  auto r = recipe;
  r.regime = key_regime::unit_signs;
  recipe_stream stream = choices(r, 32);
  const S norm = from_int<S>(stream.between(1, 7));
  auto k = one_step<S>(r).k;
  for (S& x : k) x = x * norm;
  return {k, norm};
}

template <class S>
[[nodiscard]] std::vector<S> divided(std::vector<S> x, const S& by) {
  for (S& entry : x) entry = entry / by;
  return x;
}

/// EFLA, b = (1 - e) / |k|^2, is DeltaNet on k / |k|, v / |k| with strength 1 - e, for any ring element e in the place of
/// e^-x; it multiplies S^T k by e, and its steps add up: e and then e' are one step of e e'.
template <class I>
bool exact_flow_is_a_normalised_step(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto known = any_key_of_known_norm<S>(r);
  const std::vector<S>& k = known.k;
  const S norm = known.norm;
  auto shape = r;
  shape.key_dim = k.size();
  const one_step<S> step(shape);
  recipe_stream stream = choices(r, 33);
  const S e = fraction<S>(stream.between(-9, 9), 8);
  const S later = fraction<S>(stream.between(-9, 9), 8);
  const S squared = norm * norm;
  auto state = dense::zeros<S>(k.size(), step.v.size());
  for (S& x : state.entries()) x = from_int<S>(stream.between(-5, 5));
  const auto flow = [&](const S& decayed, const matrix<S>& from) {
    return stepped_by(impl, k, step.v, S((one<S>() - decayed) / squared), from);
  };
  const auto after = flow(e, state);
  auto residual = dense::read(state, k);
  for (std::size_t c = 0; c < residual.size(); ++c) residual[c] = step.v[c] + e * (residual[c] - step.v[c]);
  return after == stepped_by(impl, divided(k, norm), divided(step.v, norm), S(one<S>() - e), state) &&
         dense::read(after, k) == residual && flow(later, after) == flow(S(e * later), state);
}

/// Longhorn: b = beta / (1 + x) solves S' = S - beta k (k^T S' - v^T), the implicit Euler step.
template <class I>
bool longhorn_is_implicit_euler(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const one_step<S> step(r);
  const auto after =
      stepped_by(impl, step.k, step.v, effective_step(implicit_euler{}, step.beta, step.squared_norm()), step.state);
  auto residual = dense::read(after, step.k);
  for (std::size_t c = 0; c < residual.size(); ++c) residual[c] = residual[c] - step.v[c];
  const auto implicit = dense::sum(dense::unit<S>(step.k.size()), dense::outer(step.beta, step.k, step.k));
  const auto solved = dense::times(dense::inverse_and_determinant(implicit).first,
                                   dense::sum(step.state, dense::outer(step.beta, step.k, step.v)));
  return after == dense::sum(step.state, dense::outer(step.beta, step.k, residual), from_int<S>(-1)) && after == solved;
}

/// Longhorn is DeltaNet on k / |k|, v / |k| with strength x / (1 + x) = |squash(sqrt(beta) k)|.
template <class I>
bool longhorn_is_squash(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto known = any_key_of_known_norm<S>(r);
  const std::vector<S>& k = known.k;
  const S norm = known.norm;
  auto shape = r;
  shape.key_dim = k.size();
  const one_step<S> step(shape);
  const S x = step.beta * norm * norm;
  const auto state = dense::outer(from_int<S>(3), k, step.v);
  return stepped_by(impl, k, step.v, effective_step(implicit_euler{}, step.beta, S(norm * norm)), state) ==
         stepped_by(impl, divided(k, norm), divided(step.v, norm), S(x / (one<S>() + x)), state);
}

/// The transition of a rule is its stability function of the matrix beta k k^T.
template <class I>
bool rules_are_functions_of_the_matrix(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const one_step<S> step(r);
  const auto a = dense::outer(step.beta, step.k, step.k);
  const S n = step.squared_norm();
  const auto by = [&](auto rule) { return transition_by(impl, step.k, effective_step(rule, step.beta, n)); };
  const auto over = [](int sign, int denominator) { return fraction<S>(sign, denominator); };
  const std::vector<S> taylor{over(1, 1), over(-1, 1), over(1, 2), over(-1, 6), over(1, 24)};
  const auto taylor_of = [&](std::ptrdiff_t terms) {
    return polynomial_of(std::vector<S>(taylor.begin(), taylor.begin() + terms), a);
  };
  const auto two = dense::scaled(from_int<S>(2), dense::unit<S>(step.k.size()));
  return by(euler{}) == taylor_of(2) && by(rk2{}) == taylor_of(3) && by(rk3{}) == taylor_of(4) && by(rk4{}) == taylor_of(5) &&
         dense::times(dense::sum(two, a), by(crank_nicolson{})) == dense::difference(two, a) &&
         dense::times(dense::sum(dense::unit<S>(step.k.size()), a), by(implicit_euler{})) == dense::unit<S>(step.k.size());
}

template <class I>
inline constexpr identity<I> step_identities[] = {
    {"rank_one_function", "f(x y^T) = f(0) I + x [(f(y^T x) - f(0)) / (y^T x)] y^T", short_runs, &rank_one_function<I>},
    {"characteristic_polynomial", "det(l I - (I - b k k^T)) = (l - 1)^(K-1) (l - 1 + b |k|^2)", short_runs,
     &characteristic_polynomial<I>},
    {"orthogonal_at_two", "b |k|^2 = 2: P^T P = I, det P = -1", short_runs, &orthogonal_at_two<I>},
    {"gradient_step", "S' = S - b grad 1/2 |S^T k - v|^2", short_runs, &gradient_step<I>},
    {"old_and_new_value", "S' = S + k (v_new - v_old)^T", short_runs, &old_and_new_value<I>},
    {"efla_normalised", "EFLA = DeltaNet on k/|k|, v/|k| with 1 - e^-x", short_runs, &exact_flow_is_a_normalised_step<I>},
    {"longhorn_implicit", "Longhorn: S' = S - beta k (k^T S' - v^T)", short_runs, &longhorn_is_implicit_euler<I>},
    {"longhorn_squash", "Longhorn = DeltaNet on k/|k|, v/|k| with x / (1 + x)", short_runs, &longhorn_is_squash<I>},
    {"rules_of_the_matrix", "I - b k k^T = R(beta k k^T) for each rule", short_runs, &rules_are_functions_of_the_matrix<I>},
};

}  // namespace deltaproof::testing
