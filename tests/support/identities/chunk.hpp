// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The identities of the chunkwise form: each stage against what its entry stands for in the recurrence, outputs and state
// against the recurrence for every chunk length and inverse, and what they may depend on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "support/identities/dense.hpp"
#include "support/identities/identity.hpp"

namespace deltaproof::testing {

/// The sequence of a recipe and the stages of its chunkwise run, by any inverse.
template <class I, class S = typename I::scalar>
struct chunk_run {
  sequence<S> s;
  inverse_method method;
  chunkwise_stages<S, S> stages;

  chunk_run(const I& impl, const sequence_recipe& r)
      : s{make_sequence<S>(r)}, method{drawn(r)}, stages{impl.chunkwise(s, r.chunk, method)} {}

  static inverse_method drawn(const sequence_recipe& r) {
    recipe_stream stream = choices(r, 20);
    return any_method(stream);
  }

  /// The row at which the chunk of `row` begins.
  [[nodiscard]] std::size_t first_of(std::size_t row) const { return row - row % stages.chunk; }
};

template <class I>
bool chunk_cumulative_decay(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const chunk_run<I> run(impl, r);
  const auto& s = run.s;
  const std::size_t width = s.decay.empty() ? 0 : s.decay.size() == s.tokens ? 1 : s.key_dim;
  auto want = dense::zeros<S>(dense::rows(s), width);
  for (std::size_t row = 0; row < dense::rows(s); ++row) {
    for (std::size_t c = 0; c < width; ++c) want(row, c) = dense::decays(s, run.first_of(row), row, c);
  }
  return run.stages.cumulative_decay == want && run.stages.chunk == r.chunk;
}

template <class I>
bool chunk_overlaps(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const chunk_run<I> run(impl, r);
  const auto& s = run.s;
  auto want = dense::zeros<S>(dense::rows(s), r.chunk);
  for (std::size_t row = 0; row < dense::rows(s); ++row) {
    const std::size_t first = run.first_of(row);
    for (std::size_t j = first; j < row; ++j) want(row, j - first) = s.step[row] * dense::overlap(s, dense::key(s, row), j, row);
  }
  return run.stages.A == want;
}

template <class I>
bool chunk_query_overlaps(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const chunk_run<I> run(impl, r);
  const auto& s = run.s;
  auto want = dense::zeros<S>(dense::rows(s), r.chunk);
  for (std::size_t t = 0; t < s.tokens; ++t) {
    const std::size_t row = (t + 1) * s.steps_per_token - 1;
    const std::size_t first = run.first_of(row);
    for (std::size_t j = first; j <= row; ++j) want(row, j - first) = dense::overlap(s, dense::query(s, t), j, row);
  }
  return run.stages.Aqk == want;
}

template <class I>
bool chunk_inverse(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const chunk_run<I> run(impl, r);
  const std::size_t rows = dense::rows(run.s);
  if (run.stages.Ai.rows() != rows || run.stages.Ai.cols() != r.chunk) return false;
  for (std::size_t first = 0; first < rows; first += r.chunk) {
    const std::size_t size = std::min(r.chunk, rows - first);
    const auto lower = dense::block(run.stages.A, first, size, 0, size);
    const auto inverse = dense::block(run.stages.Ai, first, size, 0, size);
    if (!(dense::times(dense::sum(dense::unit<S>(size), lower), inverse) == dense::unit<S>(size))) return false;
    if (!(dense::block(run.stages.Ai, first, size, size, r.chunk - size) == dense::zeros<S>(size, r.chunk - size))) return false;
  }
  return true;
}

/// w and u of each chunk by their recursions, with dense overlaps.
template <class I>
bool chunk_w_and_u(const I& impl, const sequence_recipe& r, bool u) {
  using S = typename I::scalar;
  const chunk_run<I> run(impl, r);
  const auto& s = run.s;
  const std::size_t width = u ? s.value_dim : s.key_dim;
  auto want = dense::zeros<S>(dense::rows(s), width);
  for (std::size_t row = 0; row < dense::rows(s); ++row) {
    const std::size_t first = run.first_of(row);
    auto rest = u ? dense::value(s, row) : dense::decayed(s, first, row, dense::key(s, row));
    for (std::size_t j = first; j < row; ++j) {
      const S overlap = dense::overlap(s, dense::key(s, row), j, row);
      for (std::size_t c = 0; c < width; ++c) rest[c] = rest[c] - overlap * want(j, c);
    }
    for (std::size_t c = 0; c < width; ++c) want(row, c) = s.step[row] * rest[c];
  }
  return (u ? run.stages.u : run.stages.w) == want;
}

template <class I>
bool chunk_w(const I& impl, const sequence_recipe& r) {
  return chunk_w_and_u(impl, r, false);
}

template <class I>
bool chunk_u(const I& impl, const sequence_recipe& r) {
  return chunk_w_and_u(impl, r, true);
}

template <class I>
bool chunk_states(const I& impl, const sequence_recipe& r) {
  const chunk_run<I> run(impl, r);
  const auto states = dense::states(run.s);
  const std::size_t rows = dense::rows(run.s);
  if (run.stages.h.size() != (rows + r.chunk - 1) / r.chunk) return false;
  for (std::size_t chunk = 0; chunk < run.stages.h.size(); ++chunk) {
    if (!(run.stages.h[chunk] == states[chunk * r.chunk])) return false;
  }
  return run.stages.final_state == states.back();
}

/// v_new is what the recurrence writes: b (v - k^T D S) with the state before the row.
template <class I>
bool chunk_v_new(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const chunk_run<I> run(impl, r);
  const auto& s = run.s;
  const auto states = dense::states(s);
  auto want = dense::zeros<S>(dense::rows(s), s.value_dim);
  for (std::size_t row = 0; row < dense::rows(s); ++row) {
    const auto predicted = dense::read(states[row], dense::decayed(s, row, row, dense::key(s, row)));
    for (std::size_t c = 0; c < s.value_dim; ++c) want(row, c) = s.step[row] * (s.v[row * s.value_dim + c] - predicted[c]);
  }
  return run.stages.v_new == want;
}

template <class I>
bool chunk_output(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  const chunk_run<I> run(impl, r);
  const auto& s = run.s;
  const auto states = dense::states(s);
  auto want = dense::zeros<S>(s.tokens, s.value_dim);
  for (std::size_t t = 0; t < s.tokens; ++t) {
    const auto o = dense::read(states[(t + 1) * s.steps_per_token], dense::query(s, t));
    for (std::size_t c = 0; c < s.value_dim; ++c) want(t, c) = o[c];
  }
  return run.stages.o == want;
}

template <class I>
bool chunkwise_is_the_recurrence(const I& impl, const sequence_recipe& r) {
  const chunk_run<I> run(impl, r);
  const auto want = impl.recurrent(run.s);
  return run.stages.o == want.o && run.stages.final_state == want.final_state;
}

/// Chunks of 1 row, of any other length and of more rows than there are: the same outputs and state.
template <class I>
bool chunk_lengths_agree(const I& impl, const sequence_recipe& r) {
  const chunk_run<I> run(impl, r);
  const std::size_t rows = dense::rows(run.s);
  recipe_stream stream = choices(r, 21);
  for (const std::size_t chunk : {std::size_t{1}, 1 + below(stream, rows + 2), rows + 1, std::size_t{64}}) {
    const auto other = impl.chunkwise(run.s, chunk, any_method(stream));
    if (!(other.o == run.stages.o && other.final_state == run.stages.final_state)) return false;
  }
  return true;
}

/// o(f q) = f o(q), o(q + p) = o(q) + o(p), and the state never reads q.
template <class I>
bool output_is_linear_in_the_query(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 22);
  const auto s = make_sequence<S>(r);
  const auto method = any_method(stream);
  auto other = s;
  for (S& x : other.q) x = from_int<S>(stream.between(-9, 9));
  auto both = s;
  const S f = from_int<S>(stream.between(2, 9));
  for (std::size_t i = 0; i < s.q.size(); ++i) both.q[i] = f * s.q[i] + other.q[i];
  const auto check = [&](const auto& run) {
    const auto a = run(s);
    const auto b = run(other);
    const auto c = run(both);
    return c.o == dense::sum(dense::scaled(f, a.o), b.o) && a.final_state == b.final_state && a.final_state == c.final_state;
  };
  return check([&](const sequence<S>& x) { return impl.recurrent(x); }) &&
         check([&](const sequence<S>& x) { return impl.chunkwise(x, r.chunk, method); });
}

/// The state and the outputs are affine in (S_0, v): what S_0 = 0 gives and what v = 0 gives add up.
template <class I>
bool linear_in_state_and_values(const I& impl, const sequence_recipe& recipe) {
  using S = typename I::scalar;
  auto r = recipe;
  r.initial_state = true;
  recipe_stream stream = choices(r, 23);
  const auto s = make_sequence<S>(r);
  const auto method = any_method(stream);
  auto written = s;
  written.initial_state = matrix<S>();
  auto carried = s;
  for (S& x : carried.v) x = zero<S>();
  const auto check = [&](const auto& run) {
    const auto whole = run(s);
    const auto a = run(written);
    const auto b = run(carried);
    return whole.o == dense::sum(a.o, b.o) && whole.final_state == dense::sum(a.final_state, b.final_state);
  };
  return check([&](const sequence<S>& x) { return impl.recurrent(x); }) &&
         check([&](const sequence<S>& x) { return impl.chunkwise(x, r.chunk, method); });
}

/// Tokens from .. to - 1, started from a state.
template <class S>
[[nodiscard]] sequence<S> tokens_of(const sequence<S>& s, std::size_t from, std::size_t to, const matrix<S>& state) {
  sequence<S> part = s;
  const auto keep = [&](std::vector<S>& values, std::size_t per_token) {
    values = std::vector<S>(values.begin() + static_cast<std::ptrdiff_t>(from * per_token),
                            values.begin() + static_cast<std::ptrdiff_t>(to * per_token));
  };
  const std::size_t width = s.tokens == 0 ? 0 : s.decay.size() / s.tokens;
  part.tokens = to - from;
  keep(part.q, s.key_dim);
  keep(part.k, s.steps_per_token * s.key_dim);
  keep(part.v, s.steps_per_token * s.value_dim);
  keep(part.step, s.steps_per_token);
  keep(part.decay, width);
  part.initial_state = state;
  return part;
}

/// A sequence cut between any two tokens is its head, then its tail from the state of the head.
template <class I>
bool cutting_changes_nothing(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 24);
  const auto s = make_sequence<S>(r);
  const auto method = any_method(stream);
  const std::size_t cut = below(stream, s.tokens + 1);
  const auto check = [&](const auto& run) {
    const auto whole = run(s);
    const auto head = run(tokens_of(s, 0, cut, dense::start(s)));
    const auto tail = run(tokens_of(s, cut, s.tokens, head.final_state));
    return tail.final_state == whole.final_state && dense::block(whole.o, 0, cut, 0, s.value_dim) == head.o &&
           dense::block(whole.o, cut, s.tokens - cut, 0, s.value_dim) == tail.o;
  };
  return check([&](const sequence<S>& x) { return impl.recurrent(x); }) &&
         check([&](const sequence<S>& x) { return impl.chunkwise(x, r.chunk, method); });
}

/// What comes with a token changes no output before it.
template <class I>
bool outputs_are_causal(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 25);
  const auto s = make_sequence<S>(r);
  const auto method = any_method(stream);
  const std::size_t from = below(stream, s.tokens + 1);
  auto other = s;
  const auto change = [&](std::vector<S>& values, std::size_t per_token) {
    for (std::size_t i = from * per_token; i < values.size(); ++i) values[i] = values[i] + from_int<S>(stream.between(1, 9));
  };
  change(other.q, s.key_dim);
  change(other.k, s.steps_per_token * s.key_dim);
  change(other.v, s.steps_per_token * s.value_dim);
  change(other.step, s.steps_per_token);
  change(other.decay, s.tokens == 0 ? 0 : s.decay.size() / s.tokens);
  const auto before = [&](const matrix<S>& o) { return dense::block(o, 0, from, 0, s.value_dim); };
  return before(impl.chunkwise(s, r.chunk, method).o) == before(impl.chunkwise(other, r.chunk, method).o) &&
         before(impl.recurrent(s).o) == before(impl.recurrent(other).o);
}

/// Zeros, as an empty initial state or spelled out, are the same start.
template <class I>
bool no_state_is_zeros(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  auto s = make_sequence<S>(r);
  s.initial_state = matrix<S>();
  auto spelled = s;
  spelled.initial_state = dense::zeros<S>(s.key_dim, s.value_dim);
  const chunk_run<I> drawn(impl, r);
  const auto a = impl.chunkwise(s, r.chunk, drawn.method);
  const auto b = impl.chunkwise(spelled, r.chunk, drawn.method);
  return a.o == b.o && a.final_state == b.final_state && a.final_state == impl.recurrent(s).final_state &&
         impl.recurrent(s).final_state == dense::states(spelled).back();
}

template <class I>
inline constexpr identity<I> chunk_identities[] = {
    {"chunk_decay", "cumulative_decay = D_(0, r]", long_runs, &chunk_cumulative_decay<I>},
    {"chunk_A", "A_rj = b_r <k_r, D_(j, r] k_j>, j < r", wide_runs, &chunk_overlaps<I>},
    {"chunk_Aqk", "Aqk_rj = <q, D_(j, r] k_j>, j <= r, at the last row of a token", wide_runs, &chunk_query_overlaps<I>},
    {"chunk_Ai", "(I + A) Ai = I", long_runs, &chunk_inverse<I>},
    {"chunk_w", "w_r = b (D_r k_r - sum_j w_j <k_j, D_(j, r] k_r>)", wide_runs, &chunk_w<I>},
    {"chunk_u", "u_r = b (v_r - sum_j u_j <k_j, D_(j, r] k_r>)", wide_runs, &chunk_u<I>},
    {"chunk_h", "h = the state before each chunk, final_state the last", wide_runs, &chunk_states<I>},
    {"chunk_v_new", "u - w h = b (v - k^T D S)", wide_runs, &chunk_v_new<I>},
    {"chunk_o", "o_t = S_t^T q_t", wide_runs, &chunk_output<I>},
    {"chunkwise_recurrent", "chunkwise = recurrent: any C, tail, gate, n, inverse", long_runs, &chunkwise_is_the_recurrence<I>},
    {"chunk_lengths", "o, final_state the same for C = 1, any, all rows, 64", wide_runs, &chunk_lengths_agree<I>},
    {"linear_in_q", "o(f q + p) = f o(q) + o(p), S never reads q", wide_runs, &output_is_linear_in_the_query<I>},
    {"linear_in_v_and_start", "o, S affine: (S_0, 0) + (0, v) = (S_0, v)", wide_runs, &linear_in_state_and_values<I>},
    {"cut", "head, then tail from its state = whole", wide_runs, &cutting_changes_nothing<I>},
    {"causal", "o_t reads nothing after token t", wide_runs, &outputs_are_causal<I>},
    {"no_state", "no initial state = zeros", wide_runs, &no_state_is_zeros<I>},
};

}  // namespace deltaproof::testing
