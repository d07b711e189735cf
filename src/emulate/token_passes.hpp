// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One step of the adjoint of the token recurrence over a few columns of a state, in doubles or double-doubles. Included by
// reference_gradients.cpp alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "deltaproof/algebra/matrix.hpp"
#include "emulate/packs.hpp"

namespace deltaproof {

namespace {

/// Columns of a state are independent of each other: a few at a time stay in the nearest cache.
constexpr std::size_t columns = 4;
template <class S>
using few = std::array<S, columns>;

template <class S>
[[gnu::always_inline]] inline void fill_all(typename pack<S>::type (&to)[columns], const few<S>& from) {
  for (std::size_t c = 0; c < columns; ++c) pack<S>::fill(to[c], from[c]);
}

template <class S>
std::size_t padded(std::size_t count) {
  return (count + pack<S>::count - 1) / pack<S>::count * pack<S>::count;
}
template <class S>
matrix<double> padded(const matrix<double>& m) {
  matrix<double> out(m.rows(), padded<S>(m.cols()), 0.0);
  for (std::size_t i = 0; i < m.rows(); ++i) std::copy(m.row(i).begin(), m.row(i).end(), out.row(i).begin());
  return out;
}

// The passes over columns of `keys` entries each, one after the other, `keys` a multiple of pack<S>. Each ends one step of the
// recurrence and begins the next, so that a state is read and written once a step.

/// What a pass forward reads and writes of the step that it ends.
template <class S>
struct step_ended {
  const double *k, *q;
  few<S> change, weight;
  S* dq;
  few<S> read;
};

/// The end of a step of the forward pass (x <- x + k change; then dq <- dq + x weight if Weigh, else read = the sums of q x) and
/// the beginning of the next (x <- a x; the sums of next x), from `from` to `to`.
template <bool Weigh, class S>
[[gnu::always_inline]] inline void forward_pass(std::size_t keys, step_ended<S>& step, const double* a, const double* next,
                                                const S* from, S* to, few<S>& sums) {
  using numbers = pack<S>;
  using vector = typename numbers::type;
  vector own[columns] = {}, reads[columns] = {};
  const double *const k = step.k, *const q = step.q;
  S* const dq = step.dq;
  vector change[columns], weight[columns];
  fill_all<S>(change, step.change);
  fill_all<S>(weight, step.weight);
  for (std::size_t i = 0; i < keys; i += numbers::count) {
    vector key, decay, following, query, weighed;
    load_given<S>(key, k + i);
    load_given<S>(decay, a + i);
    load_given<S>(following, next + i);
    if constexpr (Weigh) {
      numbers::load(weighed, dq + i);
    } else {
      load_given<S>(query, q + i);
    }
    for (std::size_t c = 0; c < columns; ++c) {
      vector x;
      numbers::load(x, from + c * keys + i);
      x = x + key * change[c];
      if constexpr (Weigh) {
        weighed = weighed + x * weight[c];
      } else {
        reads[c] = reads[c] + query * x;
      }
      x = x * decay;
      own[c] = own[c] + following * x;
      numbers::store(to + c * keys + i, x);
    }
    if constexpr (Weigh) numbers::store(dq + i, weighed);
  }
  for (std::size_t c = 0; c < columns; ++c) {
    sums[c] = numbers::sum(own[c]);
    if constexpr (!Weigh) step.read[c] = numbers::sum(reads[c]);
  }
}

/// What a pass back reads and writes of the step that it ends.
template <class S>
struct step_behind {
  const double *k, *a;
  const S* x;  ///< the state after the decay of this step, before its write
  few<S> change, dv;
  S *dk, *dg;
  S total;  ///< of G x, where dg is one number
};

/// The end of a step back (dk <- dk + G change - x dv; G <- G - k dv; dg <- dg + G x if ByChannel, else its total; G <- a G) and
/// the beginning of the one before it in time (G <- G + q read; the sums of k G).
template <bool ByChannel, class S>
[[gnu::always_inline]] inline void backward_pass(std::size_t keys, step_behind<S>& behind, const double* q, const few<S>& read,
                                                 const double* k, S* G, few<S>& sums) {
  using numbers = pack<S>;
  using vector = typename numbers::type;
  vector own[columns] = {}, gate[columns] = {};
  vector change[columns], dv[columns], reads[columns];
  fill_all<S>(change, behind.change);
  fill_all<S>(dv, behind.dv);
  fill_all<S>(reads, read);
  for (std::size_t i = 0; i < keys; i += numbers::count) {
    vector key, decay, query, next, of_k, of_g;
    load_given<S>(key, behind.k + i);
    load_given<S>(decay, behind.a + i);
    load_given<S>(query, q + i);
    load_given<S>(next, k + i);
    numbers::load(of_k, behind.dk + i);
    if constexpr (ByChannel) numbers::load(of_g, behind.dg + i);
    for (std::size_t c = 0; c < columns; ++c) {
      vector g, state;
      numbers::load(g, G + c * keys + i);
      numbers::load(state, behind.x + c * keys + i);
      of_k = of_k + (g * change[c] - state * dv[c]);
      g = g - key * dv[c];
      vector& to = ByChannel ? of_g : gate[c];
      to = to + g * state;
      g = g * decay + query * reads[c];
      own[c] = own[c] + next * g;
      numbers::store(G + c * keys + i, g);
    }
    numbers::store(behind.dk + i, of_k);
    if constexpr (ByChannel) numbers::store(behind.dg + i, of_g);
  }
  for (std::size_t c = 0; c < columns; ++c) sums[c] = numbers::sum(own[c]);
  behind.total = numbers::sum((gate[0] + gate[1]) + (gate[2] + gate[3]));
}

}  // namespace

}  // namespace deltaproof
