// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The judge of the hostile problems: the recurrence of one head once more, straight from a problem's tensors, in exact
// rationals or in MPFR numbers of any precision that know whether they are exact. No lowering, certificate or tier is used.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <boost/multiprecision/gmp.hpp>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "deltaproof/oracle/problem.hpp"
#include "rule/truth.hpp"

namespace deltaproof::testing {

using fraction = boost::multiprecision::number<boost::multiprecision::gmp_rational, boost::multiprecision::et_off>;

/// An MPFR number of `precision()` bits. `exact`: no operation that led to it rounded.
class tracked {
 public:
  static mpfr_prec_t& precision() {
    static thread_local mpfr_prec_t bits = 4096;
    return bits;
  }

  tracked() : tracked(0.0) {}
  tracked(double x) {
    mpfr_init2(x_, precision());
    note(mpfr_set_d(x_, x, MPFR_RNDN));
  }
  tracked(const tracked& y) : exact{y.exact} {
    mpfr_init2(x_, precision());
    note(mpfr_set(x_, y.x_, MPFR_RNDN));
  }
  tracked(tracked&& y) noexcept : exact{y.exact} {
    mpfr_init2(x_, MPFR_PREC_MIN);
    mpfr_swap(x_, y.x_);
  }
  tracked& operator=(const tracked& y) {
    if (this != &y) {
      mpfr_set(x_, y.x_, MPFR_RNDN);
      exact = y.exact;
    }
    return *this;
  }
  tracked& operator=(tracked&& y) noexcept {
    mpfr_swap(x_, y.x_);
    std::swap(exact, y.exact);
    return *this;
  }
  ~tracked() { mpfr_clear(x_); }

  [[nodiscard]] mpfr_srcptr get() const { return x_; }
  [[nodiscard]] bool is_zero() const { return mpfr_zero_p(x_) != 0; }

  friend tracked operator+(const tracked& a, const tracked& b) { return made(a, b, mpfr_add); }
  friend tracked operator-(const tracked& a, const tracked& b) { return made(a, b, mpfr_sub); }
  friend tracked operator/(const tracked& a, const tracked& b) {
    return a.exact && a.is_zero() ? tracked() : made(a, b, mpfr_div);
  }
  friend tracked operator*(const tracked& a, const tracked& b) {
    if ((a.exact && a.is_zero()) || (b.exact && b.is_zero())) return {};  // nothing is left of the other one
    return made(a, b, mpfr_mul);
  }
  friend tracked root(const tracked& a) {
    tracked out;
    out.exact = a.exact;
    out.note(mpfr_sqrt(out.x_, a.x_, MPFR_RNDN));
    return out;
  }
  friend tracked exponential(const tracked& a) {
    tracked out;
    out.exact = a.exact;
    out.note(mpfr_exp(out.x_, a.x_, MPFR_RNDN));
    return out;
  }
  /// 1 - e^-x, to all bits where it is small.
  friend tracked missing(const tracked& a) {
    tracked out, minus = tracked() - a;
    out.exact = a.exact;
    out.note(mpfr_expm1(out.x_, minus.x_, MPFR_RNDN));
    return tracked() - out;
  }

  friend bool operator<(const tracked& a, const tracked& b) { return mpfr_less_p(a.x_, b.x_) != 0; }
  friend tracked magnitude(const tracked& a) { return mpfr_sgn(a.x_) < 0 ? tracked() - a : a; }
  static tracked from(mpfr_srcptr x) {
    tracked out;
    out.note(mpfr_set(out.x_, x, MPFR_RNDN));
    return out;
  }
  /// 2^exponent.
  static tracked power(long exponent) {
    tracked out;
    mpfr_set_ui_2exp(out.x_, 1, exponent, MPFR_RNDN);
    return out;
  }

  bool exact = true;

 private:
  template <class F>
  static tracked made(const tracked& a, const tracked& b, F f) {
    tracked out;
    out.exact = a.exact && b.exact;
    out.note(f(out.x_, a.x_, b.x_, MPFR_RNDN));
    return out;
  }
  void note(int ternary) {
    if (ternary != 0) exact = false;
  }
  mpfr_t x_;
};

inline bool is_zero(const tracked& x) { return x.is_zero(); }
inline bool is_zero(const fraction& x) { return x == 0; }

/// Beyond it no number can matter but that it is one: MPFR's exponents end long before, and say that 0 is not exact.
inline constexpr double deepest_exponent = 1e15;

template <class Real>
struct judged {
  std::vector<Real> o;      // T x V
  std::vector<Real> state;  // K x V
  /// By token: the largest |S| after any of its steps and the largest |o|, rounded to fp64 (saturating).
  std::vector<double> most_state, most_output;
  bool pole = false;  ///< a rule had no finite gain: nothing else is set
};

/// Whether every factor of the recurrence is rational.
inline bool is_rational(const problem& p) {
  if (p.qk_l2norm || !truth_of(p.rule)) return false;
  for (std::size_t i = 0; p.g && i < p.g->size(); ++i) {
    if (p.g->at(i) != 0 && !std::isinf(p.g->at(i))) return false;
  }
  for (std::size_t i = 0; p.beta_activation != activation_kind::none && i < p.beta.size(); ++i) {
    if (p.beta.at(i) != 0) return false;
  }
  return true;
}

namespace judge_detail {

inline double nearest(const tracked& x) { return mpfr_get_d(x.get(), MPFR_RNDN); }
inline double nearest(const fraction& x) {
  mpfr_t y;
  mpfr_init2(y, 53);
  mpfr_set_q(y, x.backend().data(), MPFR_RNDN);
  const double out = mpfr_get_d(y, MPFR_RNDN);
  mpfr_clear(y);
  return out;
}

inline tracked decay_of(double g) {
  static thread_local std::map<std::pair<mpfr_prec_t, double>, tracked> known;
  if (std::isinf(g)) return {};
  g = std::max(g, -deepest_exponent);
  auto at = known.find({tracked::precision(), g});
  if (at == known.end()) {
    if (known.size() > 300) known.clear();
    at = known.emplace(std::pair{tracked::precision(), g}, exponential(tracked(g))).first;
  }
  return at->second;
}

template <class Real>
Real activated(double beta, activation_kind activation) {
  if (activation == activation_kind::none) return beta;
  const Real top = activation == activation_kind::two_sigmoid ? 2.0 : 1.0;
  if constexpr (std::is_same_v<Real, tracked>) {
    return top / (Real(1.0) + decay_of(std::clamp(-beta, -deepest_exponent, deepest_exponent)));
  } else {
    return top / 2;  // is_rational
  }
}

/// phi(x); nothing where it has a pole.
template <class Real>
std::optional<Real> gain_of(rule_kind rule, const Real& x) {
  const auto& truth = truth_of(rule);
  if (!truth) {
    if constexpr (std::is_same_v<Real, tracked>) return is_zero(x) ? Real(1.0) : missing(x) / x;
    return std::nullopt;
  }
  // One division: it is exact where the gain is dyadic, though its terms be not.
  const Real below = polynomial(truth->denominator, x);
  if (is_zero(below)) return std::nullopt;
  return polynomial(truth->numerator, x) / below;
}

/// Row `r` of keys or queries, normalised where the kernel does so.
template <class Real>
std::vector<Real> row_of(const problem& p, const tensor& x, std::size_t r) {
  const std::size_t K = p.key_dim();
  std::vector<Real> y(K);
  Real sum = 0.0;
  for (std::size_t i = 0; i < K; ++i) {
    y[i] = x.at(r * K + i);
    sum = sum + y[i] * y[i];
  }
  if constexpr (std::is_same_v<Real, tracked>) {
    if (p.qk_l2norm) {
      const Real norm = root(sum + Real(1.0) / Real(1000000.0));
      for (Real& yi : y) yi = yi / norm;
    }
  }
  return y;
}

}  // namespace judge_detail

/// The truth about a problem of one sequence and one head.
template <class Real>
judged<Real> judge(const problem& p) {
  const std::size_t K = p.key_dim(), V = p.value_dim(), T = p.tokens(), n = p.num_householder;
  judged<Real> out;
  std::vector<Real> S(K * V);
  for (std::size_t i = 0; i < K * V && p.initial_state; ++i) S[i] = p.initial_state->at(i);
  for (std::size_t t = 0; t < T; ++t) {
    double most_state = 0, most_output = 0;
    for (std::size_t i = 0; p.g && i < K; ++i) {
      const double g = p.gate_per_channel() ? p.g->at(t * K + i) : p.g->at(t);
      if (g == 0) continue;
      for (std::size_t j = 0; j < V; ++j) {
        if constexpr (std::is_same_v<Real, tracked>)
          S[i * V + j] = S[i * V + j] * judge_detail::decay_of(g);
        else
          S[i * V + j] = 0;
      }
    }
    for (std::size_t r = t * n; r < (t + 1) * n; ++r) {
      const std::vector<Real> k = judge_detail::row_of<Real>(p, p.k, r);
      Real norm = 0.0;
      for (const Real& ki : k) norm = norm + ki * ki;
      const Real beta = judge_detail::activated<Real>(p.beta.at(r), p.beta_activation);
      const auto gain = judge_detail::gain_of<Real>(p.rule, beta * norm);
      if (!gain) {
        out.pole = true;
        return out;
      }
      const Real b = beta * *gain;
      for (std::size_t j = 0; j < V; ++j) {
        Real rest = p.v.at(r * V + j);
        for (std::size_t i = 0; i < K; ++i) rest = rest - k[i] * S[i * V + j];
        const Real w = b * rest;
        for (std::size_t i = 0; i < K; ++i) S[i * V + j] = S[i * V + j] + k[i] * w;
      }
      for (const Real& s : S) most_state = std::max(most_state, std::fabs(judge_detail::nearest(s)));
    }
    const std::vector<Real> q = judge_detail::row_of<Real>(p, p.q, t);
    for (std::size_t j = 0; j < V; ++j) {
      Real sum = 0.0;
      for (std::size_t i = 0; i < K; ++i) sum = sum + q[i] * S[i * V + j];
      out.o.push_back(Real(p.scale) * sum);
      most_output = std::max(most_output, std::fabs(judge_detail::nearest(out.o.back())));
    }
    out.most_state.push_back(most_state);
    out.most_output.push_back(most_output);
  }
  out.state = std::move(S);
  return out;
}

}  // namespace deltaproof::testing
