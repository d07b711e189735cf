// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The judge of gradients: the forward pass of one head once more, straight from a problem's tensors, in numbers that carry one
// derivative (value, slope) of thousands of bits. No adjoint, lowering, chain rule by hand or tier is used.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "deltaproof/number/real.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "rule/truth.hpp"

namespace deltaproof::testing {

/// x + d e with e^2 = 0.
template <class R>
struct jet {
  R x = R(0), d = R(0);

  jet() = default;
  jet(double value) : x(value) {}
  jet(R value, R slope) : x(std::move(value)), d(std::move(slope)) {}
  friend jet operator+(const jet& a, const jet& b) { return {R(a.x + b.x), R(a.d + b.d)}; }
  friend jet operator-(const jet& a, const jet& b) { return {R(a.x - b.x), R(a.d - b.d)}; }
  friend jet operator*(const jet& a, const jet& b) { return {R(a.x * b.x), R(a.x * b.d + a.d * b.x)}; }
  friend jet operator/(const jet& a, const jet& b) {
    const R q = a.x / b.x;
    return {q, R((a.d - q * b.d) / b.x)};
  }
};
template <class R>
jet<R> over(const jet<R>& a, int n) {
  return {R(a.x / n), R(a.d / n)};
}
template <class R>
jet<R> exp_of(const jet<R>& a) {
  const R e = exp(a.x);
  return {e, R(e * a.d)};
}
template <class R>
jet<R> sqrt_of(const jet<R>& a) {
  const R s = sqrt(a.x);
  return {s, R(a.d / (2 * s))};
}

/// phi(x): (1 - e^-x)/x and its derivative by the series near 0, where there are digits enough for none of it to matter.
template <class R>
jet<R> gain_of(rule_kind rule, const jet<R>& x) {
  if (const auto& truth = truth_of(rule)) return polynomial(truth->numerator, x) / polynomial(truth->denominator, x);
  if (abs(x.x) < R(0.25)) {
    const R least = ldexp(R(1), -precision_bits<R> - 64);
    jet<R> sum(1.0), term(1.0);
    // The slope of a term is of the size of the term before it.
    for (int m = 1, small = 0; small < 2; ++m) {
      term = over(term * x, -(m + 1));
      sum = sum + term;
      small += abs(term.x) < least ? 1 : 0;
    }
    return sum;
  }
  const jet<R> one(1.0), minus(-1.0);
  return (one - exp_of(minus * x)) / x;
}

/// Which number of a problem's one head moves: tensor 0 q, 1 k, 2 v, 3 beta, 4 g, 5 initial_state.
struct moved_input {
  std::size_t tensor, element;
};

/// dL / d(that number), B = H = HV = 1.
template <class R>
R slope_of_loss(const problem& p, const moved_input& moved) {
  using J = jet<R>;
  const std::size_t K = p.key_dim(), V = p.value_dim(), n = p.num_householder;
  const auto take = [&](const tensor& t, std::size_t i, std::size_t which) {
    return J(R(t.at(i)), R(which == moved.tensor && i == moved.element ? 1 : 0));
  };
  const auto row = [&](const tensor& t, std::size_t r, std::size_t which) {
    std::vector<J> x(K);
    J sum(0.0);
    for (std::size_t i = 0; i < K; ++i) {
      x[i] = take(t, r * K + i, which);
      sum = sum + x[i] * x[i];
    }
    if (p.qk_l2norm) {
      const J length = sqrt_of(sum + J(1.0) / J(1e6));
      for (J& xi : x) xi = xi / length;
    }
    return x;
  };
  std::vector<J> S(K * V);
  for (std::size_t i = 0; p.initial_state && i < K * V; ++i) S[i] = take(*p.initial_state, i, 5);
  R loss(0);
  for (std::size_t t = 0; t < p.tokens(); ++t) {
    for (std::size_t i = 0; p.g && i < K; ++i) {
      const std::size_t at = p.gate_per_channel() ? t * K + i : t;
      const bool reset = std::isinf(p.g->at(at));
      const J a = reset ? J(0.0) : exp_of(take(*p.g, at, 4));
      for (std::size_t v = 0; v < V; ++v) S[i * V + v] = a * S[i * V + v];
    }
    for (std::size_t r = t * n; r < (t + 1) * n; ++r) {
      const std::vector<J> k = row(p.k, r, 1);
      J step = take(p.beta, r, 3);
      const J one(1.0);
      if (p.beta_activation != activation_kind::none) {
        const bool positive = step.x > 0;  // e^-|x| does not overflow
        const J small = exp_of(J(positive ? -1.0 : 1.0) * step);
        step = J(p.beta_activation == activation_kind::two_sigmoid ? 2.0 : 1.0) * (positive ? one : small) / (one + small);
      }
      J norm(0.0);
      for (const J& ki : k) norm = norm + ki * ki;
      step = step * gain_of(p.rule, step * norm);
      for (std::size_t v = 0; v < V; ++v) {
        J read(0.0);
        for (std::size_t i = 0; i < K; ++i) read = read + k[i] * S[i * V + v];
        const J write = step * (take(p.v, r * V + v, 2) - read);
        for (std::size_t i = 0; i < K; ++i) S[i * V + v] = S[i * V + v] + k[i] * write;
      }
    }
    const std::vector<J> q = row(p.q, t, 0);
    for (std::size_t v = 0; p.d_o && v < V; ++v) {
      J o(0.0);
      for (std::size_t i = 0; i < K; ++i) o = o + q[i] * S[i * V + v];
      loss += R(p.scale) * o.d * R(p.d_o->at(t * V + v));
    }
  }
  for (std::size_t i = 0; p.d_final_state && i < K * V; ++i) loss += S[i].d * R(p.d_final_state->at(i));
  return loss;
}

}  // namespace deltaproof::testing
