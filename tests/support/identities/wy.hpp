// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The identities of the recurrence, of the WY form and of the UT transform: each against dense matrices, factor by factor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "support/identities/dense.hpp"
#include "support/identities/identity.hpp"

namespace deltaproof::testing {

/// Consecutive rows of a sequence, from any row on, also in the middle of a token.
struct row_run {
  std::size_t first;
  std::size_t rows;
};

template <class S>
[[nodiscard]] row_run any_run(const sequence<S>& s, const sequence_recipe& r) {
  recipe_stream stream = choices(r, 1);
  const std::size_t rows = dense::rows(s);
  const std::size_t first = stream.next() % 2 == 0 ? 0 : below(stream, rows + 1);
  return {first, std::min(r.chunk, rows - first)};
}

template <class S>
[[nodiscard]] matrix<S> any_state(const sequence<S>& s, const sequence_recipe& r) {
  recipe_stream stream = choices(r, 2);
  matrix<S> state(s.key_dim, s.value_dim);
  for (S& x : state.entries()) x = from_int<S>(stream.between(-5, 5));
  return state;
}

template <class I>
bool recurrence_final_state(const I& impl, const sequence_recipe& r) {
  const auto s = make_sequence<typename I::scalar>(r);
  return impl.recurrent(s).final_state == dense::states(s).back();
}

template <class I>
bool recurrence_output(const I& impl, const sequence_recipe& r) {
  const auto s = make_sequence<typename I::scalar>(r);
  const auto states = dense::states(s);
  const auto o = impl.recurrent(s).o;
  if (o.rows() != s.tokens || o.cols() != s.value_dim) return false;
  for (std::size_t t = 0; t < s.tokens; ++t) {
    if (dense::row_of(o, t) != dense::read(states[(t + 1) * s.steps_per_token], dense::query(s, t))) return false;
  }
  return true;
}

template <class I>
bool wy_transition_is_the_product(const I& impl, const sequence_recipe& r) {
  const auto s = make_sequence<typename I::scalar>(r);
  const auto [first, rows] = any_run(s, r);
  return impl.transition(impl.wy(s, first, rows)) == dense::product(s, first, first + rows);
}

template <class I>
bool wy_write_is_the_sum(const I& impl, const sequence_recipe& r) {
  const auto s = make_sequence<typename I::scalar>(r);
  const auto [first, rows] = any_run(s, r);
  return impl.write(impl.wy(s, first, rows)) == dense::written(s, first, first + rows);
}

template <class I>
bool wy_apply_is_the_affine_map(const I& impl, const sequence_recipe& r) {
  const auto s = make_sequence<typename I::scalar>(r);
  const auto [first, rows] = any_run(s, r);
  const auto state = any_state(s, r);
  return impl.apply(impl.wy(s, first, rows), state) ==
         dense::sum(dense::times(dense::product(s, first, first + rows), state), dense::written(s, first, first + rows));
}

template <class I>
bool wy_keys_and_decay(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = make_sequence<S>(r);
  const auto [first, rows] = any_run(s, r);
  const auto form = impl.wy(s, first, rows);
  if (form.keys.rows() != rows || form.decay.size() != s.key_dim) return false;
  for (std::size_t i = 0; i < rows; ++i) {
    if (dense::row_of(form.keys, i) != dense::decayed(s, first + i + 1, first + rows - 1, dense::key(s, first + i))) return false;
  }
  for (std::size_t c = 0; c < s.key_dim; ++c) {
    if (!(form.decay[c] == (rows == 0 ? one<S>() : dense::decays(s, first, first + rows - 1, c)))) return false;
  }
  return true;
}

/// u_r is what row r writes into a state of zeros, w_r what it takes from a state: b (v - k^T D S), b k^T D P.
template <class I>
bool wy_rows_are_predictions(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = make_sequence<S>(r);
  const auto [first, rows] = any_run(s, r);
  const auto form = impl.wy(s, first, rows);
  if (form.w.rows() != rows || form.u.rows() != rows) return false;
  auto written = dense::zeros<S>(s.key_dim, s.value_dim);
  auto carried = dense::unit<S>(s.key_dim);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t row = first + i;
    const auto seen = dense::decayed(s, row, row, dense::key(s, row));  // D k reads the state before the decay
    const auto predicted = dense::read(written, seen);
    const auto taken = dense::read(carried, seen);
    for (std::size_t c = 0; c < s.value_dim; ++c) {
      if (!(form.u(i, c) == S(s.step[row] * (s.v[row * s.value_dim + c] - predicted[c])))) return false;
    }
    for (std::size_t c = 0; c < s.key_dim; ++c) {
      if (!(form.w(i, c) == S(s.step[row] * taken[c]))) return false;
    }
    written = dense::stepped(s, row, written);
    carried = dense::times(dense::factor(s, row), carried);
  }
  return true;
}

template <class I>
bool wy_runs_are_the_recurrence(const I& impl, const sequence_recipe& r) {
  const auto s = make_sequence<typename I::scalar>(r);
  auto state = dense::start(s);
  for (std::size_t row = 0; row < dense::rows(s); row += r.chunk) {
    state = impl.apply(impl.wy(s, row, std::min(r.chunk, dense::rows(s) - row)), state);
  }
  return state == impl.recurrent(s).final_state;
}

template <class I>
bool state_is_the_sum_of_writes(const I& impl, const sequence_recipe& recipe) {
  using S = typename I::scalar;
  auto r = recipe;
  r.decays = decay_kind::none;
  r.initial_state = false;
  const auto s = make_sequence<S>(r);
  const auto form = impl.wy(s, 0, dense::rows(s));
  const auto stages = impl.chunkwise(s, dense::rows(s) + 1, inverse_methods[0].method);
  if (form.u.rows() != dense::rows(s) || stages.u.rows() != dense::rows(s)) return false;
  auto from_form = dense::zeros<S>(s.key_dim, s.value_dim);
  auto from_stages = from_form;
  for (std::size_t row = 0; row < dense::rows(s); ++row) {
    from_form = dense::sum(from_form, dense::outer(one<S>(), dense::key(s, row), dense::row_of(form.u, row)));
    from_stages = dense::sum(from_stages, dense::outer(one<S>(), dense::key(s, row), dense::row_of(stages.u, row)));
  }
  const auto want = impl.recurrent(s).final_state;
  return from_form == want && from_stages == want;
}

/// b_r <k_r, D_(j, r] k_j> for j < r of a run, from dense products.
template <class S>
[[nodiscard]] matrix<S> dense_overlaps(const sequence<S>& s, row_run run) {
  auto lower = dense::zeros<S>(run.rows, run.rows);
  for (std::size_t i = 0; i < run.rows; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      lower(i, j) = s.step[run.first + i] * dense::overlap(s, dense::key(s, run.first + i), run.first + j, run.first + i);
    }
  }
  return lower;
}

/// T = X diag(b) for an inverse X that the implementation makes of L.
template <class I, class S>
[[nodiscard]] matrix<S> ut_matrix(const I& impl, const sequence<S>& s, row_run run, const matrix<S>& lower,
                                  const sequence_recipe& r) {
  recipe_stream stream = choices(r, 3);
  auto t = impl.inverse(any_method(stream), lower);
  for (std::size_t i = 0; i < run.rows; ++i) {
    for (std::size_t j = 0; j < run.rows; ++j) t(i, j) = t(i, j) * s.step[run.first + j];
  }
  return t;
}

template <class I>
bool ut_recursion(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = make_sequence<S>(r);
  const auto run = any_run(s, r);
  const auto lower = dense_overlaps(s, run);
  auto want = dense::zeros<S>(run.rows, run.rows);
  for (std::size_t i = 0; i < run.rows; ++i) {
    want(i, i) = s.step[run.first + i];
    for (std::size_t m = 0; m < i; ++m) {
      for (std::size_t j = 0; j < run.rows; ++j) want(i, j) = want(i, j) - lower(i, m) * want(m, j);
    }
  }
  return ut_matrix(impl, s, run, lower, r) == want;
}

template <class I>
bool ut_transform(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = make_sequence<S>(r);
  const auto run = any_run(s, r);
  const auto t = ut_matrix(impl, s, run, dense_overlaps(s, run), r);
  auto keys = dense::zeros<S>(run.rows, s.key_dim);
  auto values = dense::zeros<S>(run.rows, s.value_dim);
  for (std::size_t i = 0; i < run.rows; ++i) {
    const auto k = dense::decayed(s, run.first, run.first + i, dense::key(s, run.first + i));
    for (std::size_t c = 0; c < s.key_dim; ++c) keys(i, c) = k[c];
    for (std::size_t c = 0; c < s.value_dim; ++c) values(i, c) = s.v[(run.first + i) * s.value_dim + c];
  }
  const auto form = impl.wy(s, run.first, run.rows);
  return form.w == dense::times(t, keys) && form.u == dense::times(t, values);
}

/// On values where nothing commutes by luck, the product from the other side is another matrix.
template <class I>
bool order_of_multiplication(const I& impl, const sequence_recipe& recipe) {
  auto r = recipe;
  r.tokens += 3;
  r.key_dim += 1;
  const auto s = with_generic_values(make_sequence<typename I::scalar>(r), r);
  const std::size_t rows = dense::rows(s);
  const auto form = impl.wy(s, 0, rows);
  return impl.transition(form) == dense::product(s, 0, rows) && !(impl.transition(form) == dense::reversed_product(s, 0, rows)) &&
         impl.write(form) == dense::written(s, 0, rows) && !(impl.write(form) == dense::written(s, 0, rows, true));
}

template <class I>
inline constexpr identity<I> wy_identities[] = {
    {"recurrence_final_state", "S_t = prod (I - b k k^T) diag(a) S_0 + writes", wide_runs, &recurrence_final_state<I>},
    {"recurrence_output", "o_t = S_t^T q_t", wide_runs, &recurrence_output<I>},
    {"wy_transition", "P^r = D_r - sum_i w_i k_i^T D_(i, r]", wide_runs, &wy_transition_is_the_product<I>},
    {"wy_write", "H^r = sum_i u_i k_i^T D_(i, r]", wide_runs, &wy_write_is_the_sum<I>},
    {"wy_apply", "S^r = S^0 P^r + H^r", wide_runs, &wy_apply_is_the_affine_map<I>},
    {"wy_keys", "keys_i = D_(i, r] k_i, decay = D_r", wide_runs, &wy_keys_and_decay<I>},
    {"wy_rows", "w_r = b P^(r-1) D k_r, u_r = b (v_r - H^(r-1) D k_r)", wide_runs, &wy_rows_are_predictions<I>},
    {"wy_runs", "runs of C rows one after the other = recurrence", long_runs, &wy_runs_are_the_recurrence<I>},
    {"sum_of_writes", "S_t = sum_i u_i k_i^T (S_0 = 0, no gate)", wide_runs, &state_is_the_sum_of_writes<I>},
    {"ut_recursion", "T = (I + L)^-1 diag(b): T_r = b_r e_r - sum_{i<r} L_ri T_i", long_runs, &ut_recursion<I>},
    {"ut_transform", "W = T (D k), U = T V", long_runs, &ut_transform<I>},
    {"order_of_multiplication", "P^r != the product from the other side", short_runs, &order_of_multiplication<I>},
};

}  // namespace deltaproof::testing
