// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The exact gradient of the delta rule, token by token in reverse, in any scalar: `adjoint(sequence, cotangents)` is the
// derivative of L = sum o . d_o + sum S_T . d_S with respect to every number of the sequence. Ring operations only. States are
// kept, never undone: I - b k k^T has no inverse at b |k|^2 = 1. With S~ the state before a step, u = b (v - S~^T k) its write
// and G the cotangent of the state after it:
//   y = G^T k,  dv = b y,  db = y . (v - S~^T k),  dk = G u - S~ dv,  then G <- G - k dv^T = (I - b k k^T) G.
// Before the last step of a token G += q d_o^T and dq = S d_o; after the first, d(log a) = rows of G . S~ and G <- diag(a) G.
// It exists as the plainest form of the backward pass: what all faster forms and the oracle's gradients are compared with.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// Derivatives of a loss with respect to what the recurrence returns. Shapes: o T x V, final_state K x V; 0 x 0: zeros.
template <class S>
struct cotangents {
  matrix<S> o;
  matrix<S> final_state;
};

namespace detail {

/// sum of a_i b_i, from 0, in order.
template <class S>
[[nodiscard]] S dot_of(std::span<const S> a, std::span<const S> b) {
  S sum = zero<S>();
  for (std::size_t i = 0; i < a.size(); ++i) sum = sum + a[i] * b[i];
  return sum;
}

/// m^T x for each column.
template <class S>
[[nodiscard]] std::vector<S> transposed_apply(const matrix<S>& m, std::span<const S> x) {
  std::vector<S> out(m.cols(), zero<S>());
  for (std::size_t i = 0; i < m.rows(); ++i) {
    for (std::size_t j = 0; j < m.cols(); ++j) out[j] = out[j] + x[i] * m(i, j);
  }
  return out;
}

template <class S>
[[nodiscard]] matrix<S> cotangent_or_zeros(const matrix<S>& given, std::size_t rows, std::size_t cols, const char* name) {
  if (given.rows() == 0 && given.cols() == 0) return matrix<S>(rows, cols, zero<S>());
  if (given.rows() == rows && given.cols() == cols) return given;
  throw shape_error("adjoint: the cotangent of " + std::string(name) + " is " + shape_text(given) + ", needs " +
                    std::to_string(rows) + " x " + std::to_string(cols) + "; leave it 0 x 0 for zeros");
}

}  // namespace detail

/// The derivatives, in the shapes of `s`: q, k, v, step and initial_state of those; decay of the *logarithms* of the decays,
/// which is 0 where a decay is 0. Rounds: as S does, sums from 0 in the order of their index. Memory: T n states. Throws:
/// shape_error.
template <class S>
[[nodiscard]] sequence<S> adjoint(const sequence<S>& s, const cotangents<S>& given) {
  s.validate();
  const std::size_t n = s.steps_per_token;
  const matrix<S> d_o = detail::cotangent_or_zeros(given.o, s.tokens, s.value_dim, "o");
  auto out = sequence<S>::zeros(s.tokens, n, s.key_dim, s.value_dim, s.decays());
  std::vector<matrix<S>> before;  // each step
  recurrence<S> machine(s.start());
  for (std::size_t t = 0; t < s.tokens; ++t) {
    machine.decay(s.decay_of(t));
    for (std::size_t row = t * n; row < (t + 1) * n; ++row) {
      before.push_back(machine.state());
      machine.step(s.k_row(row), s.v_row(row), s.step[row]);
    }
    for (std::size_t i = 0; i < s.key_dim; ++i) {
      out.q[t * s.key_dim + i] = detail::dot_of(machine.state().row(i), std::span<const S>(d_o.row(t)));
    }
  }

  matrix<S> G = detail::cotangent_or_zeros(given.final_state, s.key_dim, s.value_dim, "final_state");
  for (std::size_t t = s.tokens; t-- > 0;) {
    for (std::size_t i = 0; i < s.key_dim; ++i) {
      for (std::size_t j = 0; j < s.value_dim; ++j) G(i, j) = G(i, j) + s.q_row(t)[i] * d_o(t, j);
    }
    for (std::size_t row = (t + 1) * n; row-- > t * n;) {
      const matrix<S>& state = before[row];
      const std::span<const S> k = s.k_row(row);
      const std::vector<S> y = detail::transposed_apply(G, k), p = detail::transposed_apply(state, k);
      std::vector<S> write(s.value_dim), dv(s.value_dim);
      S db = zero<S>();
      for (std::size_t j = 0; j < s.value_dim; ++j) {
        const S innovation = s.v_row(row)[j] - p[j];
        write[j] = s.step[row] * innovation;
        dv[j] = s.step[row] * y[j];
        db = db + y[j] * innovation;
      }
      out.step[row] = db;
      for (std::size_t i = 0; i < s.key_dim; ++i) {
        out.k[row * s.key_dim + i] = detail::dot_of<S>(G.row(i), write) - detail::dot_of<S>(state.row(i), dv);
        for (std::size_t j = 0; j < s.value_dim; ++j) G(i, j) = G(i, j) - k[i] * dv[j];
      }
      std::move(dv.begin(), dv.end(), out.v.begin() + static_cast<std::ptrdiff_t>(row * s.value_dim));
    }
    const std::span<const S> a = s.decay_of(t);
    for (std::size_t i = 0; i < s.key_dim && !a.empty(); ++i) {
      S& log_decay = out.decay[a.size() == 1 ? t : t * s.key_dim + i];
      log_decay = log_decay + detail::dot_of<S>(G.row(i), before[t * n].row(i));
      for (std::size_t j = 0; j < s.value_dim; ++j) G(i, j) = a[a.size() == 1 ? 0 : i] * G(i, j);
    }
  }
  out.initial_state = std::move(G);
  return out;
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.ordered_product.ordered_product_transposed, algebra.adjoint.cotangent_transition,
// proved: algebra.adjoint.row_transposed, algebra.adjoint.reads_agree, algebra.adjoint.writes_agree, algebra.adjoint.sums_agree,
// proved: algebra.adjoint.value_sums_agree, algebra.adjoint.key_sums_symmetric, algebra.adjoint.run_value_sums,
// proved: algebra.adjoint.run_transposed, algebra.adjoint_run.back_transposed, algebra.adjoint_run.run_cotangent
