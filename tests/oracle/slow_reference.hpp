// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The recurrence of the exchange format written once more, plainly, in 1000-bit reals (or others asked for) and straight
// from a problem's tensors: an independent truth for the oracle's tests. Shares nothing with lowering, certificate or
// solver.
#pragma once

#include <boost/multiprecision/mpfr.hpp>
#include <cstddef>
#include <iomanip>
#include <sstream>
#include <vector>

#include "deltaproof/oracle/problem.hpp"
#include "rule/truth.hpp"

namespace deltaproof::testing {

using slow_real = boost::multiprecision::number<boost::multiprecision::mpfr_float_backend<300>, boost::multiprecision::et_off>;

template <class Real>
struct slow_results {
  std::vector<Real> o;            // [B, T, HV, V]
  std::vector<Real> final_state;  // [N, HV, K, V]
};
using slow_outputs = slow_results<slow_real>;

template <class Real>
Real slow_gain(rule_kind rule, const Real& x) {
  const auto& truth = truth_of(rule);
  if (!truth) return x == 0 ? Real(1) : Real((1 - exp(Real(-x))) / x);
  return polynomial(truth->numerator, x) / polynomial(truth->denominator, x);
}

/// The decimal of at most 15 digits that x is nearest to.
template <class Real>
Real slow_decimal(double x) {
  std::ostringstream text;
  text << std::setprecision(15) << x;
  return Real(text.str());
}

template <class Real = slow_real>
slow_results<Real> slow_solve(const problem& p) {
  const std::size_t K = p.key_dim(), V = p.value_dim(), H = p.key_heads(), HV = p.value_heads(), n = p.num_householder,
                    T = p.tokens();
  slow_results<Real> out{std::vector<Real>(p.batch() * T * HV * V), std::vector<Real>(p.sequence_count() * HV * K * V)};
  std::size_t number = 0;
  for (const sequence_range& range : p.sequences()) {
    for (std::size_t h = 0; h < HV; ++h) {
      const std::size_t kh = h / (HV / H);
      std::vector<Real> S(K * V);
      for (std::size_t i = 0; i < K * V && p.initial_state; ++i) S[i] = p.initial_state->at((number * HV + h) * K * V + i);
      const auto row = [&](const tensor& x, std::size_t r) {
        std::vector<Real> y(K);
        Real sum = 0;
        for (std::size_t i = 0; i < K; ++i) {
          y[i] = x.at((r * H + kh) * K + i);
          sum += y[i] * y[i];
        }
        if (p.qk_l2norm) {
          for (auto& yi : y) yi /= sqrt(Real(sum + slow_decimal<Real>(p.l2norm_epsilon)));
        }
        return y;
      };
      for (std::size_t t = 0; t < range.tokens; ++t) {
        const std::size_t token = range.batch * T + range.first_token + t;
        if (p.g) {
          for (std::size_t i = 0; i < K; ++i) {
            const double g = p.gate_per_channel() ? p.g->at((token * HV + h) * K + i) : p.g->at(token * HV + h);
            const Real decay = g < -1e300 ? Real(0) : exp(Real(g));
            for (std::size_t j = 0; j < V; ++j) S[i * V + j] *= decay;
          }
        }
        for (std::size_t s = 0; s < n; ++s) {
          const std::size_t r = token * n + s;
          const auto k = row(p.k, r);
          Real beta = p.beta.at(r * HV + h), norm = 0;
          if (p.beta_activation != activation_kind::none)
            beta = (p.beta_activation == activation_kind::two_sigmoid ? 2 : 1) / (1 + exp(Real(-beta)));
          for (const auto& ki : k) norm += ki * ki;
          const Real b = beta * slow_gain(p.rule, Real(beta * norm));
          for (std::size_t j = 0; j < V; ++j) {
            Real predicted = 0;
            for (std::size_t i = 0; i < K; ++i) predicted += k[i] * S[i * V + j];
            const Real w = b * (Real(p.v.at((r * HV + h) * V + j)) - predicted);
            for (std::size_t i = 0; i < K; ++i) S[i * V + j] += k[i] * w;
          }
        }
        const auto q = row(p.q, token);
        for (std::size_t j = 0; j < V; ++j) {
          Real sum = 0;
          for (std::size_t i = 0; i < K; ++i) sum += q[i] * S[i * V + j];
          out.o[(token * HV + h) * V + j] = p.scale * sum;
        }
      }
      for (std::size_t i = 0; i < K * V; ++i) out.final_state[(number * HV + h) * K * V + i] = S[i];
    }
    ++number;
  }
  return out;
}

}  // namespace deltaproof::testing
