// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Runs a sequence chunk by chunk, as production kernels do: `chunkwise<A>(sequence, C, inverse)` in one arithmetic, or
// `chunkwise<A, D, M>` where the diagonal blocks of the inverse are made in D and its merges in M. It returns outputs,
// state and every stage under the name that kernels give it. Shapes: C counts rows of k, any C >= 1, the last chunk may
// be shorter; states are (K, V). Rounds: operands of a product to A's storage, as tensor cores take them; sums, decays
// and the state are in A's accumulator, products of the decay with it too; stages that a kernel stores (Ai, w, u, h,
// v_new) are A's storage. With an exact scalar nothing rounds and the result is the recurrence, digit for digit: a ratio
// of decays is the product over (j, i], never a quotient, so decay 0 and integers modulo a prime are no special case.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "deltaproof/algebra/arithmetic.hpp"
#include "deltaproof/algebra/dot.hpp"
#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

namespace detail {

template <class A, class Product = typename A::product_type>
struct sum_arithmetic_of {
  using sum = typename A::sum_type;
  using order = std::conditional_t<is_tensor_core_v<typename A::order_type>, sequential, typename A::order_type>;
  using type = arithmetic<sum, std::conditional_t<A::fused, exact_product, sum>, sum, order>;
};

}  // namespace detail

/// The arithmetic of A's accumulator alone: what a kernel does outside its matrix products.
template <class A>
using sum_arithmetic = typename detail::sum_arithmetic_of<A>::type;

/// What a chunkwise run leaves, X the storage and Y the accumulator of its arithmetic. Rows are those of k, R = T n of
/// them; row r lies in chunk r / C, and j counts rows inside its chunk.
template <class X, class Y>
struct chunkwise_stages {
  std::size_t chunk = 1;       ///< C
  matrix<Y> cumulative_decay;  ///< R x (0, 1 or K): D_(0, r], the product of the decays from the start of the chunk
  matrix<Y> A;                 ///< R x C: b_r <k_r, D_(j, r] k_j> for j < r, 0 elsewhere
  matrix<X> Ai;                ///< R x C: (I + A)^-1
  matrix<X> w;                 ///< R x K: Ai (b D_(0, r] k)
  matrix<X> u;                 ///< R x V: Ai (b v)
  std::vector<matrix<X>> h;    ///< K x V: the state before each chunk
  matrix<X> v_new;             ///< R x V: u - w h
  matrix<Y> Aqk;               ///< R x C: <q, D_(j, r] k_j> for j <= r in the last row of a token, 0 elsewhere; no scale
  matrix<Y> o;                 ///< T x V, no scale
  matrix<Y> final_state;       ///< K x V
};

/// The stage g_cumsum_log2 of a run over formats: log2 D_(0, r]; -inf where the decay is 0. Shapes: as cumulative_decay.
template <class X, class Y>
[[nodiscard]] matrix<double> g_cumsum_log2(const chunkwise_stages<X, Y>& stages) {
  matrix<double> result(stages.cumulative_decay.rows(), stages.cumulative_decay.cols());
  for (std::size_t i = 0; i < result.size(); ++i)
    result.data()[i] = std::log2(static_cast<double>(stages.cumulative_decay.data()[i]));
  return result;
}

namespace detail {

/// One chunkwise run in progress.
template <class A, class D, class M>
class chunk_machine {
  using X = typename A::storage_type;
  using Y = typename A::sum_type;
  using elementwise = sum_arithmetic<A>;

 public:
  chunk_machine(const sequence<X>& s, std::size_t chunk, const inverse_method& method)
      : s_{s}, method_{method}, channels_{s.decays() == decay_kind::per_channel}, gated_{s.decays() != decay_kind::none} {
    const std::size_t width = channels_ ? s.key_dim : gated_ ? 1 : 0;
    out_.chunk = chunk;
    out_.cumulative_decay = matrix<Y>(s.rows(), width);
    out_.A = out_.Aqk = matrix<Y>(s.rows(), chunk, zero<Y>());
    out_.Ai = matrix<X>(s.rows(), chunk, zero<X>());
    out_.w = matrix<X>(s.rows(), s.key_dim);
    out_.u = out_.v_new = matrix<X>(s.rows(), s.value_dim);
    out_.o = matrix<Y>(s.tokens, s.value_dim);
    const matrix<X> start = s.start();
    out_.final_state = matrix<Y>(s.key_dim, s.value_dim);
    for (std::size_t i = 0; i < start.size(); ++i) out_.final_state.data()[i] = lift<Y>(start.data()[i]);
  }

  chunkwise_stages<X, Y> run() {
    for (std::size_t first = 0; first < s_.rows(); first += out_.chunk) run_chunk(first, std::min(out_.chunk, s_.rows() - first));
    return std::move(out_);
  }

 private:
  void run_chunk(std::size_t first, std::size_t rows) {
    overlaps(first, rows);
    invert(first, rows);
    transform(first, rows);
    const matrix<Y>& state = out_.final_state;
    out_.h.push_back(rounded_copy(state));
    const matrix<X> columns = transpose(out_.h.back());
    corrections(first, rows, columns);
    outputs(first, rows, columns);
    advance(first, rows);
  }

  // A and Aqk: keys_ row j is D_(j, r] k_j, ratio_[j] the same for one decay a token.
  void overlaps(std::size_t first, std::size_t rows) {
    keys_ = matrix<Y>(channels_ ? rows : 0, s_.key_dim);
    ratio_.assign(rows, one<Y>());
    std::vector<Y> decay(out_.cumulative_decay.cols(), one<Y>());
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t row = first + r;
      const std::size_t token = row / s_.steps_per_token;
      if (gated_ && row % s_.steps_per_token == 0) {
        const std::span<const X> a = s_.decay_of(token);
        for (std::size_t c = 0; c < decay.size(); ++c) decay[c] = decay[c] * lift<Y>(a[c]);
        for (std::size_t j = 0; j < r; ++j) {
          if (!channels_) ratio_[j] = ratio_[j] * lift<Y>(a[0]);
          for (std::size_t c = 0; channels_ && c < s_.key_dim; ++c) keys_(j, c) = keys_(j, c) * lift<Y>(a[c]);
        }
      }
      std::copy(decay.begin(), decay.end(), out_.cumulative_decay.row(row).begin());
      if (channels_) {
        for (std::size_t c = 0; c < s_.key_dim; ++c) keys_(r, c) = lift<Y>(s_.k_row(row)[c]);
      }
      const Y step = lift<Y>(s_.step[row]);
      const std::vector<Y> k = lifted(s_.k_row(row));
      for (std::size_t j = 0; j < r; ++j) out_.A(row, j) = step * overlap(s_.k_row(row), k, first, j);
      if (row % s_.steps_per_token != s_.steps_per_token - 1) continue;
      const std::vector<Y> q = lifted(s_.q_row(token));
      for (std::size_t j = 0; j <= r; ++j) out_.Aqk(row, j) = overlap(s_.q_row(token), q, first, j);
    }
  }

  // <x, D_(j, r] k_j>: a product in A and the decay afterwards, or, channel by channel, without a matrix product.
  [[nodiscard]] Y overlap(std::span<const X> x, const std::vector<Y>& lifted_x, std::size_t first, std::size_t j) const {
    if (channels_) return dot<elementwise>(std::span<const Y>(lifted_x), keys_.row(j));
    const Y product = dot<A>(x, s_.k_row(first + j));
    return gated_ ? product * ratio_[j] : product;
  }

  void invert(std::size_t first, std::size_t rows) {
    matrix<Y> block(rows, rows, zero<Y>());
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t j = 0; j < r; ++j) block(r, j) = out_.A(first + r, j);
    }
    const auto inverse = run_inverse<D, M>(method_, block);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t j = 0; j <= r; ++j) out_.Ai(first + r, j) = stored<X>(inverse(r, j));
    }
  }

  void transform(std::size_t first, std::size_t rows) {
    matrix<X> keys(s_.key_dim, rows);  // b D_(0, r] k_r and b v_r as columns
    matrix<X> values(s_.value_dim, rows);
    for (std::size_t r = 0; r < rows; ++r) {
      const Y step = lift<Y>(s_.step[first + r]);
      for (std::size_t c = 0; c < s_.key_dim; ++c) {
        const Y weighted = step * lift<Y>(s_.k_row(first + r)[c]);
        keys(c, r) = stored<X>(gated_ ? weighted * out_.cumulative_decay(first + r, channels_ ? c : 0) : weighted);
      }
      for (std::size_t c = 0; c < s_.value_dim; ++c) values(c, r) = stored<X>(step * lift<Y>(s_.v_row(first + r)[c]));
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const std::span<const X> row = out_.Ai.row(first + r).first(rows);
      for (std::size_t c = 0; c < s_.key_dim; ++c) out_.w(first + r, c) = stored<X>(dot<A>(row, keys.row(c)));
      for (std::size_t c = 0; c < s_.value_dim; ++c) out_.u(first + r, c) = stored<X>(dot<A>(row, values.row(c)));
    }
  }

  void corrections(std::size_t first, std::size_t rows, const matrix<X>& columns) {
    change_ = matrix<Y>(rows, s_.value_dim);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < s_.value_dim; ++c) {
        change_(r, c) = lift<Y>(out_.u(first + r, c)) - dot<A>(std::span<const X>(out_.w.row(first + r)), columns.row(c));
        out_.v_new(first + r, c) = stored<X>(change_(r, c));
      }
    }
  }

  void outputs(std::size_t first, std::size_t rows, const matrix<X>& columns) {
    std::vector<X> weights(rows, zero<X>());
    std::vector<X> column(rows, zero<X>());
    std::vector<X> query(s_.key_dim, zero<X>());
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t row = first + r;
      if (row % s_.steps_per_token != s_.steps_per_token - 1) continue;
      const std::size_t token = row / s_.steps_per_token;
      for (std::size_t j = 0; j <= r; ++j) weights[j] = stored<X>(out_.Aqk(row, j));
      const std::span<const X> q = s_.q_row(token);
      for (std::size_t c = 0; c < s_.key_dim; ++c)
        query[c] = channels_ ? stored<X>(lift<Y>(q[c]) * out_.cumulative_decay(row, c)) : q[c];
      for (std::size_t c = 0; c < s_.value_dim; ++c) {
        for (std::size_t j = 0; j <= r; ++j) column[j] = out_.v_new(first + j, c);
        const Y read = dot<A>(std::span<const X>(query), columns.row(c));
        const Y inside = dot<A>(std::span<const X>(weights).first(r + 1), std::span<const X>(column).first(r + 1));
        out_.o(token, c) = (gated_ && !channels_ ? read * out_.cumulative_decay(row, 0) : read) + inside;
      }
    }
  }

  // S <- D_(0, R] S + sum_j (D_(j, R] k_j) v_new_j^T, the decay on v_new where it is one number, else on the keys.
  void advance(std::size_t first, std::size_t rows) {
    const std::size_t last = first + rows - 1;
    matrix<X> keys(s_.key_dim, rows);
    matrix<X> changes(s_.value_dim, rows);
    for (std::size_t j = 0; j < rows; ++j) {
      for (std::size_t c = 0; c < s_.key_dim; ++c) keys(c, j) = channels_ ? stored<X>(keys_(j, c)) : s_.k_row(first + j)[c];
      for (std::size_t c = 0; c < s_.value_dim; ++c) {
        changes(c, j) = stored<X>(gated_ && !channels_ ? change_(j, c) * ratio_[j] : change_(j, c));
      }
    }
    for (std::size_t a = 0; a < s_.key_dim; ++a) {
      for (std::size_t c = 0; c < s_.value_dim; ++c) {
        Y& entry = out_.final_state(a, c);
        const Y kept = gated_ ? entry * out_.cumulative_decay(last, channels_ ? a : 0) : entry;
        entry = dot<A>(std::span<const X>(keys.row(a)), changes.row(c), kept);
      }
    }
  }

  [[nodiscard]] static std::vector<Y> lifted(std::span<const X> x) {
    std::vector<Y> result;
    result.reserve(x.size());
    for (const X& value : x) result.push_back(lift<Y>(value));
    return result;
  }

  [[nodiscard]] static matrix<X> rounded_copy(const matrix<Y>& m) {
    matrix<X> result(m.rows(), m.cols());
    for (std::size_t i = 0; i < m.size(); ++i) result.data()[i] = stored<X>(m.data()[i]);
    return result;
  }

  const sequence<X>& s_;
  inverse_method method_;
  bool channels_;
  bool gated_;
  chunkwise_stages<X, Y> out_;
  matrix<Y> keys_;
  std::vector<Y> ratio_;
  matrix<Y> change_;  // v_new before it is stored
};

}  // namespace detail

/// The sequence in chunks of C rows: A, Ai, w, u inside each chunk, then v_new, o and the next state. Shapes: see
/// chunkwise_stages; T = 0 leaves the initial state. Rounds: see the head of this file.
/// Throws: shape_error (sequence::validate, C = 0).
template <class A, class D = sum_arithmetic<A>, class M = D>
[[nodiscard]] chunkwise_stages<typename A::storage_type, typename A::sum_type> chunkwise(
    const sequence<typename A::storage_type>& s, std::size_t chunk, const inverse_method& method) {
  s.validate();
  if (chunk == 0) throw shape_error("chunkwise: the chunk length is 0; give at least 1 row");
  return detail::chunk_machine<A, D, M>(s, chunk, method).run();
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.ordered_product.ordered_product_cut, algebra.ordered_product.scalar_decay_ratio,
// proved: algebra.ordered_product.channel_decay_ratio, algebra.wy.wy_output, algebra.wy.wy_correction, algebra.wy.run_cut,
// proved: algebra.wy.run_shift, algebra.wy.ungated_overlap, algebra.wy.scalar_gate_overlap, algebra.wy.channel_gate_overlap,
// proved: algebra.ut.chunk_solution, algebra.ut.chunk_w_rows, algebra.ut.chunk_u_rows, algebra.ut.chunk_v_new_rows,
// proved: algebra.ut.chunk_state, algebra.ut.chunk_output, algebra.ut.chunk_Ai_unique, algebra.ut.ut_w, algebra.ut.ut_u,
// proved: algebra.ut.ut_state, algebra.ut.ut_output
