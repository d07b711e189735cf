// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The backward pass token by token. States come from the recurrence again, a segment at a time: the same bits as if each were
// kept. Included by the two files that compile `adjoint`.
#pragma once

#include "emulate/backward_body.hpp"

namespace deltaproof::emulation_detail {

/// The states of tokens [first, last): of each row of k the decayed one before its step, and what each token leaves.
template <class Real>
struct adjoint<Real>::replayed {
  std::size_t first = 0;
  std::vector<matrix<Real>> before;  ///< by row
  std::vector<matrix<Real>> after;   ///< by token
  matrix<Real> decays;               ///< tokens x (0, 1 or K)
};

// What the forward pass saves of each row of k: v - S^T k, in the format of the plan.
template <class Real>
void adjoint<Real>::save_residuals() {
  const auto& all = site_.all;
  const std::size_t n = all.steps_per_token, K = all.k.cols(), V = all.v.cols();
  matrix<Real> state = cast<Real>(site_.in.state), decays(1, all.g.cols());
  residuals_ = matrix<Real>(all.k.rows(), V, Real(0));
  for (std::size_t row = 0; row < residuals_.rows(); ++row) {
    if (row % n == 0) decay(state, row / n, decays.row(0));
    const auto residual = residuals_.row(row);
    forward_.accumulate({all.k.row(row).data(), K, state.data(), V, residual.data(), V, 1, K, V},
                        forward_.sums(fp32, site_.plan.state.accumulate));
    for (std::size_t j = 0; j < V; ++j) residual[j] = all.v(row, j) - residual[j];
    write(state, row, residual);
    if (site_.plan.state.between_tokens && (row + 1) % n == 0)
      state = narrow_copy(std::move(state), {*site_.plan.state.between_tokens, false});
  }
  residuals_ = narrow_copy(std::move(residuals_), {site_.declared.residual, false});
}

template <class Real>
void adjoint<Real>::decay(matrix<Real>& state, std::size_t t, std::span<Real> decays) {
  for (std::size_t i = 0; i < state.rows() && site_.all.gated; ++i) {
    const std::size_t gate = site_.all.channels ? i : 0;
    if (i <= gate) decays[gate] = narrowed(forward_.exp_of(site_.all.g(t, gate)), {site_.plan.cumsum, false});
    for (Real& x : state.row(i)) x *= decays[gate];
  }
}

template <class Real>
void adjoint<Real>::write(matrix<Real>& state, std::size_t row, std::span<const Real> residual) {
  for (std::size_t i = 0; i < state.rows(); ++i) {
    for (std::size_t j = 0; j < state.cols(); ++j) state(i, j) += site_.all.k(row, i) * (site_.all.step[row] * residual[j]);
  }
}

// From the saved residuals, not from v: where they were rounded these are not the states of the forward pass.
template <class Real>
void adjoint<Real>::replay(std::size_t first, std::size_t last, matrix<Real>& state, replayed& to) {
  const std::size_t n = site_.all.steps_per_token;
  to.first = first;
  to.before.clear();
  to.after.clear();
  to.decays = matrix<Real>(last - first, site_.all.g.cols(), Real(1));
  for (std::size_t t = first; t < last; ++t) {
    decay(state, t, to.decays.row(t - first));
    for (std::size_t row = t * n; row < (t + 1) * n; ++row) {
      to.before.push_back(state);
      write(state, row, residuals_.row(row));
    }
    if (site_.plan.state.between_tokens) state = narrow_copy(std::move(state), {*site_.plan.state.between_tokens, false});
    to.after.push_back(state);
  }
}

// One step of the recurrence backwards: y = dS^T k, dv = b y, db = y . u, dk = dS (b u) - S dv, dS <- dS - k dv^T.
template <class Real>
void adjoint<Real>::step_back_row(std::size_t row, const matrix<Real>& before) {
  const auto& all = site_.all;
  const backward_variant& b = site_.declared;
  const std::size_t K = all.k.cols(), V = all.v.cols(), tile = b.value_tile == 0 ? V : b.value_tile;
  const Real step = all.step[row];
  matrix<Real>& dS = site_.now.d_state;
  std::vector<Real> y(V, Real(0)), dv(V), reloaded(V);
  forward_.accumulate({all.k.row(row).data(), K, dS.data(), V, y.data(), V, 1, K, V}, forward_.sums(fp32, b.accumulate));
  for (std::size_t j = 0; j < V; ++j) reloaded[j] = dv[j] = y[j] * step;
  narrow(std::span<Real>(reloaded), {b.dv, false});
  const auto residual = residuals_.row(row);
  const narrowing sum{b.group_sum, false};
  for (std::size_t first = 0; first < V; first += tile) {
    const std::size_t last = std::min(first + tile, V);
    Real db = 0;
    for (std::size_t j = first; j < last; ++j) db += y[j] * residual[j];
    site_.d_step[row] = narrowed(site_.d_step[row] + narrowed(db, {b.dbeta, false}), sum);
    for (std::size_t i = 0; i < K; ++i) {
      Real written = 0, read = 0;
      for (std::size_t j = first; j < last; ++j) {
        written += dS(i, j) * (residual[j] * step);
        read += reloaded[j] * before(i, j);
      }
      const Real part = narrowed(narrowed(written, {b.dk, false}) - read, {b.dk, false});
      site_.dk(row, i) = narrowed(site_.dk(row, i) + part, sum);
    }
  }
  if (options_.in_any_order) {
    guard(site_.d_step[row], V, [&](std::size_t j) { return y[j] * residual[j]; });
    for (std::size_t i = 0; i < K; ++i) {
      guard(site_.dk(row, i), 2 * V,
            [&](std::size_t j) { return j < V ? dS(i, j) * (residual[j] * step) : -(reloaded[j - V] * before(i, j - V)); });
    }
  }
  for (std::size_t i = 0; i < K; ++i) {
    for (std::size_t j = 0; j < V; ++j) dS(i, j) -= all.k(row, i) * dv[j];
    for (std::size_t j = 0; options_.in_any_order && j < V; ++j) guard(dS(i, j), 1, [&](std::size_t) { return dS(i, j); });
  }
  narrow(std::span<Real>(dS.data(), dS.size()), kept());
  std::copy(dv.begin(), dv.end(), site_.dv.row(row).begin());
}

template <class Real>
void adjoint<Real>::step_back(std::size_t t, const replayed& from) {
  const auto& all = site_.all;
  const backward_variant& b = site_.declared;
  const std::size_t n = all.steps_per_token, K = all.k.cols(), V = all.v.cols(), tile = b.value_tile == 0 ? V : b.value_tile;
  matrix<Real>& dS = site_.now.d_state;
  const matrix<Real>& after = from.after[t - from.first];
  for (std::size_t i = 0; i < K; ++i) {
    const Real q = all.q(t, i) * all.scale;
    for (std::size_t j = 0; j < V; ++j) dS(i, j) += q * site_.d_o(t, j);
    for (std::size_t first = 0; first < V; first += tile) {
      Real dq = 0;
      for (std::size_t j = first; j < std::min(first + tile, V); ++j) dq += after(i, j) * site_.d_o(t, j);
      site_.dq(t, i) = narrowed(site_.dq(t, i) + narrowed(dq * all.scale, {b.dq, false}), {b.group_sum, false});
    }
    if (options_.in_any_order) guard(site_.dq(t, i), V, [&](std::size_t j) { return after(i, j) * site_.d_o(t, j); });
  }
  for (std::size_t row = (t + 1) * n; row-- > t * n;) step_back_row(row, from.before[row - from.first * n]);
  const matrix<Real>& decayed = from.before[(t - from.first) * n];
  const std::vector<Real> by_row = all.gated ? row_sums(dS, decayed) : std::vector<Real>();
  for (std::size_t i = 0; i < by_row.size(); ++i) {
    const std::size_t gate = all.channels ? i : 0;
    site_.dg(t, gate) += by_row[i];
    for (Real& x : dS.row(i)) x *= from.decays(t - from.first, gate);
  }
  for (Real& x : site_.dg.row(t)) x = narrowed(x, {b.dg, false});
}

template <class Real>
void adjoint<Real>::run_tokens() {
  const std::size_t T = site_.all.q.rows();
  std::size_t segment = 1;
  while (segment * segment < T) ++segment;
  save_residuals();
  std::vector<matrix<Real>> starts;
  matrix<Real> state = cast<Real>(site_.in.state);
  replayed from;
  for (std::size_t first = 0; first < T; first += segment) {
    starts.push_back(state);
    replay(first, std::min(first + segment, T), state, from);
  }
  for (std::size_t part = starts.size(); part-- > 0;) {
    const std::size_t first = part * segment, last = std::min(first + segment, T);
    replay(first, last, starts[part], from);
    for (std::size_t t = last; t-- > first;) {
      site_.token = t;
      planted(backward_step::token, true);
      step_back(t, from);
      planted(backward_step::token, false);
    }
  }
  site_.d_initial_state = site_.now.d_state;
}

}  // namespace deltaproof::emulation_detail
