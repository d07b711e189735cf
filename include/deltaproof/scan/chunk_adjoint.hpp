// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The backward pass chunk by chunk, as production kernels do it, in any scalar and with every stage under the name that kernels
// give it: `chunk_adjoint(sequence, chunkwise(...), cotangents)` equals `adjoint(sequence, cotangents)`, digit for digit. Ring
// operations only: a ratio of decays is a product over (j, r], so a decay of 0 is no special case. In chunk c, with h the state
// before it, dh the cotangent of the state after it, D_(j, r] the decays between two rows, X the last row, Ai = (I + A)^-1,
// kb_r = b_r D_(0, r] k_r, w = Ai kb, u = Ai (b v) and v_new = u - w h:
//   dv_local = Aqk^T do,  dv2_j = dv_local_j + dh^T (D_(j, X] k_j),  dw = -dv2 h^T,  dAqk = do v_new^T (lower)
//   dh_before = D_(0, X] dh + sum_r (D_(0, r] q_r) do_r^T - w^T dv2
//   dkb = Ai^T dw,  dvb = Ai^T dv2,  dA = -Ai^T (dw kb^T + dv2 (b v)^T) Ai^T (strictly lower)
// and from them dq, dk, dv, db and dg_local, the derivative by the logarithm of D_(0, r], whose sum over r >= t is dg_t.
// Each line is the transpose of one of chunkwise.hpp. Source of the stages and their names: ops/gated_delta_rule of
// flash-linear-attention.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/scan/adjoint.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// What a chunkwise backward pass leaves. Rows are those of k, R = T n of them.
template <class S>
struct chunk_adjoint_stages {
  matrix<S> dv_local;         ///< R x V: what the outputs of the chunk give v_new
  std::vector<matrix<S>> dh;  ///< K x V, of each chunk: the cotangent of the state after it
  matrix<S> dv2;              ///< R x V: all that v_new is given
  matrix<S> dAqk;             ///< R x C: <do_r, v_new_j> for j <= r in the last row of a token, 0 elsewhere
  matrix<S> dw;               ///< R x K
  matrix<S> dA;               ///< R x C, strictly lower
  matrix<S> dg_local;         ///< R x (0, 1 or K): by log D_(0, r], before it is summed from the end of the chunk
  sequence<S> gradient;       ///< as `adjoint` returns it
};

namespace detail {

/// One chunkwise backward pass in progress.
template <class S>
class chunk_adjoint_machine {
 public:
  chunk_adjoint_machine(const sequence<S>& s, const chunkwise_stages<S, S>& forward, const cotangents<S>& given)
      : s_{s}, f_{forward}, width_{forward.cumulative_decay.cols()}, d_o_{cotangent_or_zeros(given.o, s.tokens, s.value_dim, "o")},
        d_state_{cotangent_or_zeros(given.final_state, s.key_dim, s.value_dim, "final_state")} {
    out_.dv_local = out_.dv2 = matrix<S>(s.rows(), s.value_dim, zero<S>());
    out_.dAqk = out_.dA = matrix<S>(s.rows(), forward.chunk, zero<S>());
    out_.dw = matrix<S>(s.rows(), s.key_dim, zero<S>());
    out_.dg_local = matrix<S>(s.rows(), width_, zero<S>());
    out_.dh.resize(forward.h.size());
    out_.gradient = sequence<S>::zeros(s.tokens, s.steps_per_token, s.key_dim, s.value_dim, s.decays());
  }

  chunk_adjoint_stages<S> run() {
    for (std::size_t c = f_.h.size(); c-- > 0;) {
      chunk_ = c;
      first_ = c * f_.chunk;
      rows_ = std::min(f_.chunk, s_.rows() - first_);
      out_.dh[c] = d_state_;
      ratios();
      corrections();
      queries();
      const auto [by_kb, by_vb] = transform();
      overlaps();
      keys_and_steps(by_kb, by_vb);
      d_state_ = state_before();
      log_decays();
    }
    out_.gradient.initial_state = std::move(d_state_);
    return std::move(out_);
  }

 private:
  using span = std::span<const S>;

  [[nodiscard]] const matrix<S>& h() const { return f_.h[chunk_]; }
  [[nodiscard]] const matrix<S>& dh() const { return out_.dh[chunk_]; }
  [[nodiscard]] bool reads(std::size_t r) const { return (first_ + r) % s_.steps_per_token == s_.steps_per_token - 1; }
  [[nodiscard]] std::size_t token(std::size_t r) const { return (first_ + r) / s_.steps_per_token; }
  [[nodiscard]] span key(std::size_t r) const { return s_.k_row(first_ + r); }
  [[nodiscard]] const S& step(std::size_t r) const { return s_.step[first_ + r]; }
  [[nodiscard]] S* gradient_of_key(std::size_t r) { return &out_.gradient.k[(first_ + r) * s_.key_dim]; }
  /// D_(0, r] in channel c.
  [[nodiscard]] S since(std::size_t r, std::size_t c) const {
    return width_ == 0 ? one<S>() : f_.cumulative_decay(first_ + r, width_ == 1 ? 0 : c);
  }
  /// D_(j, r] in channel c.
  [[nodiscard]] S ratio(std::size_t j, std::size_t r, std::size_t c) const {
    return width_ == 0 ? one<S>() : ratios_[(j * rows_ + r) * width_ + (width_ == 1 ? 0 : c)];
  }
  void ratios() {
    ratios_.assign(rows_ * rows_ * width_, one<S>());
    for (std::size_t j = 0; j < rows_ && width_ > 0; ++j) {
      for (std::size_t r = j + 1; r < rows_; ++r) {
        const bool decays = (first_ + r) % s_.steps_per_token == 0;
        for (std::size_t c = 0; c < width_; ++c) {
          const S& before = ratios_[(j * rows_ + r - 1) * width_ + c];
          ratios_[(j * rows_ + r) * width_ + c] = decays ? before * s_.decay_of(token(r))[c] : before;
        }
      }
    }
  }
  /// Channel c of log D_(0, r] moves the loss by `x` more.
  void add_log(std::size_t r, std::size_t c, const S& x) {
    if (width_ == 0) return;
    S& to = out_.dg_local(first_ + r, width_ == 1 ? 0 : c);
    to = to + x;
  }

  void corrections() {
    for (std::size_t j = 0; j < rows_; ++j) {
      for (std::size_t v = 0; v < s_.value_dim; ++v) {
        S local = zero<S>(), later = zero<S>();
        for (std::size_t r = j; r < rows_; ++r) {
          if (reads(r)) local = local + f_.Aqk(first_ + r, j) * d_o_(token(r), v);
        }
        for (std::size_t c = 0; c < s_.key_dim; ++c) later = later + ratio(j, rows_ - 1, c) * key(j)[c] * dh()(c, v);
        out_.dv_local(first_ + j, v) = local;
        out_.dv2(first_ + j, v) = local + later;
      }
    }
  }

  // dq, what the outputs and the next state give dk, and their logarithms.
  void queries() {
    const std::size_t last = rows_ - 1;
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t c = 0; c < s_.key_dim; ++c) {
        const S kept = ratio(r, last, c) * dot_of<S>(dh().row(c), f_.v_new.row(first_ + r));
        gradient_of_key(r)[c] = kept;
        add_log(last, c, key(r)[c] * kept);
        add_log(r, c, -(key(r)[c] * kept));
      }
      if (!reads(r)) continue;
      const span d_o = std::as_const(d_o_).row(token(r)), q = s_.q_row(token(r));
      for (std::size_t c = 0; c < s_.key_dim; ++c) {
        S& dq = out_.gradient.q[token(r) * s_.key_dim + c];
        dq = since(r, c) * dot_of<S>(h().row(c), d_o);
        add_log(r, c, q[c] * dq);
      }
      for (std::size_t j = 0; j <= r; ++j) {
        const S weight = dot_of<S>(d_o, f_.v_new.row(first_ + j));
        out_.dAqk(first_ + r, j) = weight;
        add_overlap(weight, r, j, q, &out_.gradient.q[token(r) * s_.key_dim]);
      }
    }
  }
  /// <x, D_(j, r] k_j> moves the loss by `weight` times what it moves.
  void add_overlap(const S& weight, std::size_t r, std::size_t j, span x, S* by_x) {
    for (std::size_t c = 0; c < s_.key_dim; ++c) {
      const S decayed = weight * ratio(j, r, c);
      const S of_key = decayed * x[c], moved = of_key * key(j)[c];
      by_x[c] = by_x[c] + decayed * key(j)[c];
      gradient_of_key(j)[c] = gradient_of_key(j)[c] + of_key;
      add_log(r, c, moved);
      add_log(j, c, -moved);
    }
  }

  /// dw, then Ai^T dw and Ai^T dv2.
  std::pair<matrix<S>, matrix<S>> transform() {
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t c = 0; c < s_.key_dim; ++c) out_.dw(first_ + r, c) = -dot_of<S>(h().row(c), std::as_const(out_.dv2).row(first_ + r));
    }
    return {through_inverse(out_.dw), through_inverse(out_.dv2)};
  }
  [[nodiscard]] matrix<S> through_inverse(const matrix<S>& m) const {
    matrix<S> out(rows_, m.cols(), zero<S>());
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t j = 0; j <= r; ++j) {
        for (std::size_t c = 0; c < m.cols(); ++c) out(j, c) = out(j, c) + f_.Ai(first_ + r, j) * m(first_ + r, c);
      }
    }
    return out;
  }

  // dAi in its lower triangle, Ai^T dAi, then dA = -(Ai^T dAi) Ai^T below the diagonal.
  void overlaps() {
    matrix<S> by_inverse(rows_, rows_, zero<S>()), left(rows_, rows_, zero<S>());
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t j = 0; j <= r; ++j) {
        S sum = zero<S>();
        for (std::size_t c = 0; c < s_.key_dim; ++c) sum = sum + out_.dw(first_ + r, c) * since(j, c) * key(j)[c];
        by_inverse(r, j) = step(j) * (sum + dot_of<S>(std::as_const(out_.dv2).row(first_ + r), s_.v_row(first_ + j)));
        for (std::size_t i = 0; i <= r; ++i) left(i, j) = left(i, j) + f_.Ai(first_ + r, i) * by_inverse(r, j);
      }
    }
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t j = 0; j < r; ++j) {
        S sum = zero<S>();
        for (std::size_t i = 0; i <= j; ++i) sum = sum + left(r, i) * f_.Ai(first_ + j, i);
        out_.dA(first_ + r, j) = -sum;
      }
    }
  }

  void keys_and_steps(const matrix<S>& by_kb, const matrix<S>& by_vb) {
    for (std::size_t r = 0; r < rows_; ++r) {
      const span v = s_.v_row(first_ + r);
      S& db = out_.gradient.step[first_ + r];
      db = dot_of<S>(v, by_vb.row(r));
      for (std::size_t i = 0; i < s_.value_dim; ++i) out_.gradient.v[(first_ + r) * s_.value_dim + i] = step(r) * by_vb(r, i);
      for (std::size_t c = 0; c < s_.key_dim; ++c) {
        const S decayed = since(r, c) * by_kb(r, c);
        db = db + key(r)[c] * decayed;
        gradient_of_key(r)[c] = gradient_of_key(r)[c] + step(r) * decayed;
        add_log(r, c, step(r) * key(r)[c] * decayed);
      }
      for (std::size_t j = 0; j < r; ++j) {
        const S& weight = out_.dA(first_ + r, j);
        for (std::size_t c = 0; c < s_.key_dim; ++c) db = db + weight * ratio(j, r, c) * key(r)[c] * key(j)[c];
        add_overlap(step(r) * weight, r, j, key(r), gradient_of_key(r));
      }
    }
  }

  [[nodiscard]] matrix<S> state_before() {
    matrix<S> out(s_.key_dim, s_.value_dim, zero<S>());
    for (std::size_t c = 0; c < s_.key_dim; ++c) {
      const S kept = since(rows_ - 1, c);
      add_log(rows_ - 1, c, kept * dot_of<S>(h().row(c), dh().row(c)));
      for (std::size_t v = 0; v < s_.value_dim; ++v) {
        S sum = kept * dh()(c, v);
        for (std::size_t r = 0; r < rows_; ++r) {
          if (reads(r)) sum = sum + since(r, c) * s_.q_row(token(r))[c] * d_o_(token(r), v);
          sum = sum - f_.w(first_ + r, c) * out_.dv2(first_ + r, v);
        }
        out(c, v) = sum;
      }
    }
    return out;
  }

  // A token's decay is in D_(0, r] of every later row of its chunk, from its first row on.
  void log_decays() {
    for (std::size_t c = 0; c < width_; ++c) {
      S sum = zero<S>();
      for (std::size_t r = rows_; r-- > 0;) {
        sum = sum + out_.dg_local(first_ + r, c);
        if ((first_ + r) % s_.steps_per_token == 0) out_.gradient.decay[token(r) * width_ + c] = sum;
      }
    }
  }

  const sequence<S>& s_;
  const chunkwise_stages<S, S>& f_;
  std::size_t width_;
  matrix<S> d_o_, d_state_;
  chunk_adjoint_stages<S> out_;
  std::size_t chunk_ = 0, first_ = 0, rows_ = 0;
  std::vector<S> ratios_;
};

}  // namespace detail

/// The derivatives of sum o . d_o + sum S_T . d_S, from the stages that the chunkwise forward pass left. Shapes: see
/// chunk_adjoint_stages. Rounds: as S does. Memory: C^2 decays. Throws: shape_error (sequence::validate, a cotangent of another
/// shape, stages of another sequence).
template <class S>
[[nodiscard]] chunk_adjoint_stages<S> chunk_adjoint(const sequence<S>& s, const chunkwise_stages<S, S>& forward, const cotangents<S>& given) {
  s.validate();
  if (forward.w.rows() != s.rows() || forward.w.cols() != s.key_dim || forward.u.cols() != s.value_dim) {
    throw shape_error("chunk_adjoint: the forward stages are of another sequence: w is " + shape_text(forward.w) + ", the keys are " +
                      std::to_string(s.rows()) + " x " + std::to_string(s.key_dim));
  }
  return detail::chunk_adjoint_machine<S>(s, forward, given).run();
}

}  // namespace deltaproof
