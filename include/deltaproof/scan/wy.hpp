// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Turns a run of steps into its WY form: `wy_recursion(sequence, first_row, rows)` gives the vectors w_r
// and u_r, from which the transition P^r and the write H^r of the run are one sum each. With
// P^r = prod_{i<=r} A_i (I - b_i k_i k_i^T), multiplied on the right in order, D_(j,r] the product of the
// decays over rows j+1 .. r and D_r that over all of them,
//   w_r = b_r (D_r k_r - sum_{i<r} w_i (k_i^T D_(i,r] k_r))    P^r = D_r - sum_i w_i k_i^T D_(i,r]
//   u_r = b_r (v_r     - sum_{i<r} u_i (k_i^T D_(i,r] k_r))    H^r =       sum_i u_i k_i^T D_(i,r]
// and S^r = S^0 P^r + H^r for states (V, K). The code holds states (K, V), so it returns transposes.
// Ratios of decays are products, never quotients: no division, decay 0 included, any commutative ring.
// It exists as the bridge between the recurrence and every chunkwise form.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// R consecutive steps of a sequence.
template <class S>
struct wy_form {
  matrix<S> w;           ///< R x K
  matrix<S> u;           ///< R x V
  matrix<S> keys;        ///< R x K: row i is D_(i,R] k_i, the key as the end of the run sees it
  std::vector<S> decay;  ///< K: D_R
};

namespace detail {

/// Multiplies row by the decay that acts before `row_index`, if there is one.
template <class S>
void decay_before(const sequence<S>& s, std::size_t row_index, std::span<S> row) {
  if (row_index % s.steps_per_token != 0) return;
  const std::span<const S> a = s.decay_of(row_index / s.steps_per_token);
  if (a.empty()) return;
  for (std::size_t c = 0; c < row.size(); ++c) row[c] = row[c] * (a.size() == 1 ? a[0] : a[c]);
}

}  // namespace detail

/// w and u of rows first_row .. first_row + rows - 1 by their recursions. Rounds: all in S; sums over
/// channels from channel 0, sums over earlier rows from the first, subtracted one by one.
/// Throws: shape_error (sequence::validate, or a run that leaves the sequence).
template <class S>
[[nodiscard]] wy_form<S> wy_recursion(const sequence<S>& s, std::size_t first_row, std::size_t rows) {
  s.validate();
  if (first_row > s.rows() || rows > s.rows() - first_row) {
    throw shape_error("wy_recursion: " + std::to_string(rows) + " rows from row " + std::to_string(first_row) +
                      " on were asked for, but the sequence has " + std::to_string(s.rows()) + " rows");
  }
  wy_form<S> form{matrix<S>(rows, s.key_dim), matrix<S>(rows, s.value_dim), matrix<S>(rows, s.key_dim),
                  std::vector<S>(s.key_dim, one<S>())};
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t row = first_row + r;
    const std::span<const S> k = s.k_row(row);
    const std::span<const S> v = s.v_row(row);
    detail::decay_before(s, row, std::span<S>(form.decay));
    for (std::size_t i = 0; i < r; ++i) detail::decay_before(s, row, form.keys.row(i));
    for (std::size_t c = 0; c < s.key_dim; ++c) {
      form.keys(r, c) = k[c];
      form.w(r, c) = form.decay[c] * k[c];
    }
    for (std::size_t c = 0; c < s.value_dim; ++c) form.u(r, c) = v[c];
    for (std::size_t i = 0; i < r; ++i) {
      S overlap = zero<S>();
      for (std::size_t c = 0; c < s.key_dim; ++c) overlap = overlap + form.keys(i, c) * k[c];
      for (std::size_t c = 0; c < s.key_dim; ++c) form.w(r, c) = form.w(r, c) - form.w(i, c) * overlap;
      for (std::size_t c = 0; c < s.value_dim; ++c) form.u(r, c) = form.u(r, c) - form.u(i, c) * overlap;
    }
    for (S& entry : form.w.row(r)) entry = s.step[row] * entry;
    for (S& entry : form.u.row(r)) entry = s.step[row] * entry;
  }
  return form;
}

/// (P^R)^T = D_R - sum_i keys_i w_i^T, which multiplies a (K, V) state from the left. Shapes: K x K.
template <class S>
[[nodiscard]] matrix<S> wy_transition(const wy_form<S>& form) {
  const std::size_t dim = form.decay.size();
  matrix<S> result(dim, dim, zero<S>());
  for (std::size_t c = 0; c < dim; ++c) result(c, c) = form.decay[c];
  for (std::size_t i = 0; i < form.w.rows(); ++i) {
    for (std::size_t a = 0; a < dim; ++a) {
      for (std::size_t b = 0; b < dim; ++b) result(a, b) = result(a, b) - form.keys(i, a) * form.w(i, b);
    }
  }
  return result;
}

/// (H^R)^T = sum_i keys_i u_i^T, what the run writes into a state of zeros. Shapes: K x V.
template <class S>
[[nodiscard]] matrix<S> wy_write(const wy_form<S>& form) {
  matrix<S> result(form.decay.size(), form.u.cols(), zero<S>());
  for (std::size_t i = 0; i < form.u.rows(); ++i) {
    for (std::size_t a = 0; a < result.rows(); ++a) {
      for (std::size_t b = 0; b < result.cols(); ++b) result(a, b) = result(a, b) + form.keys(i, a) * form.u(i, b);
    }
  }
  return result;
}

/// S^R = D_R S^0 + sum_i keys_i (u_i - (S^0)^T w_i)^T: the state after the run. Shapes: K x V.
/// Throws: shape_error unless S^0 is K x V.
template <class S>
[[nodiscard]] matrix<S> wy_apply(const wy_form<S>& form, const matrix<S>& state) {
  if (state.rows() != form.decay.size() || state.cols() != form.u.cols()) {
    throw shape_error("wy_apply: state is " + shape_text(state) + ", needs key_dim x value_dim = " +
                      std::to_string(form.decay.size()) + " x " + std::to_string(form.u.cols()));
  }
  matrix<S> result = state;
  for (std::size_t a = 0; a < result.rows(); ++a) {
    for (S& entry : result.row(a)) entry = form.decay[a] * entry;
  }
  for (std::size_t i = 0; i < form.u.rows(); ++i) {
    for (std::size_t b = 0; b < result.cols(); ++b) {
      S predicted = zero<S>();
      for (std::size_t a = 0; a < result.rows(); ++a) predicted = predicted + form.w(i, a) * state(a, b);
      const S change = form.u(i, b) - predicted;
      for (std::size_t a = 0; a < result.rows(); ++a) result(a, b) = result(a, b) + form.keys(i, a) * change;
    }
  }
  return result;
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.rank_one.rank_one_eigenvector, algebra.rank_one.rank_one_fixes_hyperplane,
// proved: algebra.ordered_product.scalar_decay_ratio, algebra.ordered_product.channel_decay_ratio, algebra.wy.wy_transition,
// proved: algebra.wy.wy_write, algebra.wy.w_recursion, algebra.wy.u_recursion, algebra.wy.wy_recursion_unique,
// proved: algebra.wy.state_is_affine, algebra.wy.wy_state, algebra.wy.run_shift
