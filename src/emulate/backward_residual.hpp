// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The stages of a chunk of the backward pass where v_new = M (v - e^G (k S)), M = Ai b_j e^{G_i - G_j}, with A and Ai without a
// gate: no w and no u, so no dw. A gate of one number, or none. Included by the two files that compile `adjoint`.
#pragma once

#include "emulate/backward_body.hpp"

namespace deltaproof::emulation_detail {

// dv = M^T dv2, and what it gives k S.
template <class Real>
void adjoint<Real>::through_residual(chunk& c) {
  c.dv = times(transpose(c.gated), c.dv2);
  c.d_read = decayed_to_row(c.dv, c.G);
  for (std::size_t i = 0; i < c.d_read.size(); ++i) c.d_read.data()[i] = -c.d_read.data()[i];
}

// dM = dv2 (v - e^G k S)^T on and below the diagonal, times e^{G_i - G_j}; dA = -Ai^T (dM b_j) Ai^T below it. db is what M and A
// give, and G gains dM M.
template <class Real>
void adjoint<Real>::inverse_gradients(chunk& c) {
  const backward_variant& b = site_.declared;
  matrix<Real> d = times(c.dv2, transpose(c.residual));
  c.d_inverse = matrix<Real>(c.rows, c.rows, Real(0));
  matrix<Real> by_step(c.rows, c.rows, Real(0));
  std::vector<Real> decays;
  for (std::size_t i = 0; i < c.rows; ++i) {
    decays.assign(i + 1, Real(1));
    if (c.G.cols() > 0) {
      for (std::size_t j = 0; j <= i; ++j) decays[j] = c.G(i, 0) - c.G(j, 0);
      forward_.exp2_of_all(decays);
    }
    for (std::size_t j = 0; j < c.rows; ++j) {
      d(i, j) = j <= i ? d(i, j) * decays[j] : Real(0);
      const Real whole = c.Ai(i, j) * d(i, j);
      c.d_inverse(i, j) = whole * c.step[j];
      by_step(i, j) = narrowed(whole, b.operand);
      d(i, j) *= c.step[j];
    }
  }
  matrix<Real> between = times(transpose(c.Ai), d);
  if (b.dA_between) between = narrow_copy(std::move(between), {*b.dA_between, false});
  c.dA = times(between, transpose(c.Ai));
  const matrix<Real> products = times(c.k, transpose(c.k));
  c.d_step.assign(c.rows, Real(0));
  for (std::size_t j = 0; j < c.rows; ++j) {
    for (std::size_t i = j; i < c.rows; ++i) c.d_step[j] += by_step(i, j);
    if (options_.in_any_order) guard(c.d_step[j], c.rows - j, [&](std::size_t i) { return by_step(j + i, j); });
  }
  for (std::size_t i = 0; i < c.rows; ++i) {
    Real sum = 0;
    for (std::size_t j = 0; j < c.rows; ++j) {
      c.dA(i, j) = j < i ? -c.dA(i, j) : Real(0);
      sum += c.dA(i, j) * products(i, j);
    }
    c.d_step[i] = narrowed(c.d_step[i] + sum, kept());
    if (options_.in_any_order) guard(c.d_step[i], i, [&](std::size_t j) { return c.dA(i, j) * products(i, j); });
  }
  c.dA = narrow_copy(std::move(c.dA), {b.dA, false});
}

// dq, and dk from all of its parts; b dA and its transpose are added before they are multiplied with k.
template <class Real>
void adjoint<Real>::inside_of_residual(chunk& c) {
  const backward_variant& b = site_.declared;
  c.dq = plus_times(c.dq_read, c.ds, c.k, b.intra_operand);
  c.dk_inside = plus_times(c.dk_write, c.d_read, transpose(c.h), b.operand);
  c.dk_inside = plus_times(std::move(c.dk_inside), transpose(c.ds), c.q, b.intra_operand);
  matrix<Real> both = c.dA;
  for (std::size_t i = 0; i < c.rows; ++i) {
    for (Real& x : both.row(i)) x *= c.step[i];
  }
  const matrix<Real> turned = transpose(narrow_copy(both, b.intra_operand));
  for (std::size_t i = 0; i < both.size(); ++i) both.data()[i] += turned.data()[i];
  c.dk_inside = plus_times(std::move(c.dk_inside), both, c.k, b.intra_operand);
}

template <class Real>
void adjoint<Real>::add_dg_of_residual(chunk& c) {
  const backward_variant& b = site_.declared;
  const bool apart = b.diagonal == diagonal_terms::excluded;
  std::vector<std::vector<Real>> at_end = decayed_state_sums(c, false);
  const matrix<Real> read = narrow_copy(c.read, b.operand), weights = narrow_copy(c.weights, b.operand);
  matrix<Real> gained = times(c.d_o, transpose(c.v_new));
  for (std::size_t i = 0; i < c.rows; ++i) {
    for (std::size_t j = 0; j < c.rows; ++j)
      gained(i, j) = j <= i && !(apart && i == j) ? gained(i, j) * weights(i, j) + c.d_inverse(i, j) : Real(0);
  }
  const std::vector<Real> written = row_sums(c.dk_write, c.k), by_key = row_sums(c.dk_write, c.k),
                          by_read = row_sums(c.d_read, read), by_query = row_sums(c.dq_read, c.q);
  for (std::size_t r = 0; r < c.rows; ++r) {
    for (std::vector<Real>& end : at_end) end.front() += written[r];
    c.dg(r, 0) += by_read[r] - by_key[r] + by_query[r];
    Real across = 0, down = 0;
    for (std::size_t j = 0; j < c.rows; ++j) {
      across += gained(r, j);
      down += gained(j, r);
    }
    c.dg(r, 0) += across - down;
    if (!options_.in_any_order) continue;
    const std::array<Real, 3> own{by_read[r], -by_key[r], by_query[r]};
    guard(c.dg(r, 0), c.rows + c.rows + own.size(), [&](std::size_t j) {
      return j < c.rows ? gained(r, j) : j < 2 * c.rows ? -gained(j - c.rows, r) : own[j - 2 * c.rows];
    });
  }
  add_at_end(c, at_end);
}

}  // namespace deltaproof::emulation_detail
