// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The identities of the baselines: recursive least squares, linear attention as a parallel form, in chunks and as a
// recurrence, the two conventions of negative eigenvalues, and Longhorn's diagonal form where it is not an approximation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "deltaproof/number/dual.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/rule/rules.hpp"
#include "support/identities/dense.hpp"
#include "support/identities/identity.hpp"

namespace deltaproof::testing {

template <class S>
[[nodiscard]] std::span<const S> view(const std::vector<S>& x) {
  return std::span<const S>(x);
}

/// Rank-one updates of the inverse end at (K^T K + l I)^-1 K^T V.
template <class I>
bool least_squares_is_the_batch(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = make_sequence<S>(r);
  const S ridge = fraction<S>(choices(r, 40).between(1, 9), 4);
  recursive_least_squares<S> memory(s.key_dim, s.value_dim, ridge);
  matrix<S> keys(dense::rows(s), s.key_dim);
  matrix<S> values(dense::rows(s), s.value_dim);
  for (std::size_t row = 0; row < dense::rows(s); ++row) {
    const auto k = dense::key(s, row);
    const auto v = dense::value(s, row);
    std::copy(k.begin(), k.end(), keys.row(row).begin());
    std::copy(v.begin(), v.end(), values.row(row).begin());
    memory.step(view(k), view(v));
  }
  const auto transposed = dense::turned(keys);
  const auto gram = dense::sum(dense::times(transposed, keys), dense::unit<S>(s.key_dim), ridge);
  const auto inverse = dense::inverse_and_determinant(gram).first;
  return memory.inverse() == inverse && memory.state() == dense::times(inverse, dense::times(transposed, values));
}

/// (Q K^T . M) V with the decays over (j, t] inside: the parallel form of linear attention, one row a token.
template <class S>
[[nodiscard]] matrix<S> parallel_attention(const sequence<S>& s) {
  auto weights = dense::zeros<S>(s.tokens, s.tokens);
  auto values = dense::zeros<S>(s.tokens, s.value_dim);
  for (std::size_t t = 0; t < s.tokens; ++t) {
    for (std::size_t j = 0; j <= t; ++j) weights(t, j) = dense::overlap(s, dense::query(s, t), j, t);
    for (std::size_t c = 0; c < s.value_dim; ++c) values(t, c) = s.v[t * s.value_dim + c];
  }
  return dense::times(weights, values);
}

/// The same in chunks: what the state before the chunk gives, and (Q K^T . M) V inside it.
template <class S>
[[nodiscard]] matrix<S> chunked_attention(const sequence<S>& s, std::size_t chunk) {
  auto o = dense::zeros<S>(s.tokens, s.value_dim);
  auto state = dense::zeros<S>(s.key_dim, s.value_dim);
  for (std::size_t first = 0; first < s.tokens; first += chunk) {
    const std::size_t end = std::min(first + chunk, s.tokens);
    for (std::size_t t = first; t < end; ++t) {
      auto row = dense::read(state, dense::decayed(s, first, t, dense::query(s, t)));
      for (std::size_t j = first; j <= t; ++j) {
        const S weight = dense::overlap(s, dense::query(s, t), j, t);
        for (std::size_t c = 0; c < s.value_dim; ++c) row[c] = row[c] + weight * s.v[j * s.value_dim + c];
      }
      std::copy(row.begin(), row.end(), o.row(t).begin());
    }
    for (std::size_t c = 0; c < s.key_dim; ++c) {
      for (S& x : state.row(c)) x = x * dense::decays(s, first, end - 1, c);
    }
    for (std::size_t j = first; j < end; ++j) {
      state = dense::sum(state, dense::outer(one<S>(), dense::decayed(s, j + 1, end - 1, dense::key(s, j)), dense::value(s, j)));
    }
  }
  return o;
}

/// parallel = chunks = recurrence, and all three are the slope of the delta rule at step 0: with steps 0 + 1 e the
/// corrections are of second order.
template <class I>
bool linear_attention(const I& impl, sequence_recipe r, bool gated) {
  using S = typename I::scalar;
  r.steps_per_token = 1;
  r.initial_state = false;
  if (!gated) r.decays = decay_kind::none;
  const auto s = make_sequence<S>(r);
  const auto want = parallel_attention(s);
  if (!(chunked_attention(s, r.chunk) == want)) return false;
  matrix<S> o(s.tokens, s.value_dim);
  gated_hebbian<S> with_gates(s.key_dim, s.value_dim);
  hebbian<S> without(s.key_dim, s.value_dim);
  const std::size_t width = s.tokens == 0 ? 0 : s.decay.size() / s.tokens;
  for (std::size_t t = 0; t < s.tokens; ++t) {
    const auto k = dense::key(s, t);
    const auto v = dense::value(s, t);
    const auto a = width == 0 ? std::vector<S>{one<S>()} : dense::entries(s.decay, t, width);
    with_gates.step(view(a), view(k), view(v));
    without.step(view(k), view(v));
    gated ? with_gates.read(view(dense::query(s, t)), o.row(t)) : without.read(view(dense::query(s, t)), o.row(t));
  }
  if (!(o == want)) return false;
  auto lifted = convert<dual<S>>(s, [](const S& x) { return dual<S>(x); });
  for (auto& b : lifted.step) b = dual<S>(zero<S>(), one<S>());
  const auto slope_of = [](const matrix<dual<S>>& m) {
    matrix<S> slope(m.rows(), m.cols());
    for (std::size_t i = 0; i < m.size(); ++i) slope.data()[i] = m.data()[i].slope();
    return slope;
  };
  const auto over = impl.template over<dual<S>>();
  return slope_of(over.recurrent(lifted).o) == want &&
         slope_of(over.chunkwise(lifted, r.chunk, inverse_methods[0].method).o) == want;
}

template <class I>
bool hebbian_attention(const I& impl, const sequence_recipe& r) {
  return linear_attention(impl, r, false);
}

template <class I>
bool gated_attention(const I& impl, const sequence_recipe& r) {
  return linear_attention(impl, r, true);
}

/// Orthogonal keys: the delta rule with b = 1 from zeros is linear attention until a key comes back.
template <class I>
bool orthogonal_keys_do_not_interfere(const I& impl, const sequence_recipe& recipe) {
  using S = typename I::scalar;
  auto r = recipe;
  r.regime = key_regime::hadamard;
  r.decays = decay_kind::none;
  r.steps_per_token = 1;
  r.initial_state = false;
  r.step_from = r.step_to = 8;
  r.tokens = std::min(r.tokens, power_of_four(r.key_dim));
  const auto s = make_sequence<S>(r);
  const auto want = parallel_attention(s);
  return impl.recurrent(s).o == want && impl.chunkwise(s, r.chunk, inverse_methods[0].method).o == want;
}

/// S (I - 2 beta k k^T) + beta v k^T, and both terms with 2 beta, which is the delta rule with step 2 beta.
template <class I>
bool negative_eigenvalues(const I& impl, const sequence_recipe& recipe) {
  using S = typename I::scalar;
  auto r = recipe;
  r.decays = decay_kind::none;
  r.initial_state = false;
  auto s = make_sequence<S>(r);
  negative_eigenvalues_both<S> both(s.key_dim, s.value_dim);
  negative_eigenvalues_erase<S> erase(s.key_dim, s.value_dim);
  auto doubled = s;
  for (S& b : doubled.step) b = b + b;
  auto halved = doubled;  // step 2 beta and values v / 2
  for (S& x : halved.v) x = x / from_int<S>(2);
  for (std::size_t row = 0; row < dense::rows(s); ++row) {
    const auto k = dense::key(s, row);
    const auto v = dense::value(s, row);
    both.step(view(k), view(v), s.step[row]);
    erase.step(view(k), view(v), s.step[row]);
  }
  return both.state() == impl.recurrent(doubled).final_state && erase.state() == impl.recurrent(halved).final_state &&
         both.state() == dense::states(doubled).back() && erase.state() == dense::states(halved).back();
}

/// With one channel of keys k k^T is its own diagonal: Longhorn as published is then the implicit Euler step.
template <class I>
bool diagonal_longhorn_in_one_channel(const I& impl, const sequence_recipe& recipe) {
  using S = typename I::scalar;
  auto r = recipe;
  r.regime = r.regime == key_regime::hadamard || r.regime == key_regime::unit_signs ? key_regime::generic : r.regime;
  r.key_dim = 1;
  r.decays = decay_kind::none;
  r.initial_state = false;
  r.step_from = std::max(r.step_from, 0);
  auto s = make_sequence<S>(r);
  diagonal_longhorn<S> memory(1, s.value_dim);
  for (std::size_t row = 0; row < dense::rows(s); ++row) {
    const auto k = dense::key(s, row);
    const auto v = dense::value(s, row);
    const std::vector<S> beta{s.step[row]};
    memory.step(view(k), view(v), view(beta));
    s.step[row] = effective_step(implicit_euler{}, s.step[row], S(k[0] * k[0]));
  }
  return memory.state() == impl.recurrent(s).final_state && memory.state() == dense::states(s).back();
}

template <class I>
inline constexpr identity<I> baseline_identities[] = {
    {"hebbian", "(Q K^T . M) V = chunks = recurrence = slope of the delta rule at step 0", wide_runs, &hebbian_attention<I>},
    {"gated_hebbian", "the same with decays over (j, t]", wide_runs, &gated_attention<I>},
    {"orthogonal_keys", "orthogonal unit keys, b = 1: delta rule = linear attention", wide_runs,
     &orthogonal_keys_do_not_interfere<I>},
    {"negative_eigenvalues", "2 beta in both terms: step 2 beta; in the first only: values v / 2 too", wide_runs,
     &negative_eigenvalues<I>},
    {"diagonal_longhorn", "K = 1: published Longhorn = implicit Euler", wide_runs, &diagonal_longhorn_in_one_channel<I>},
};

}  // namespace deltaproof::testing
