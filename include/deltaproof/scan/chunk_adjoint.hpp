// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The backward pass chunk by chunk, as production kernels do it, with every stage under the name that kernels give it:
// `chunk_adjoint(sequence, chunkwise(...), cotangents)`. In an exact scalar it equals `adjoint(sequence, cotangents)`, digit for
// digit. Ring operations only: a ratio of decays is a product over (j, r], so a decay of 0 is no special case. In chunk c, with h
// the state before it, dh the cotangent of the state after it, D_(j, r] the decays between two rows, X the last row,
// Ai = (I + A)^-1, kb_r = b_r D_(0, r] k_r, w = Ai kb, u = Ai (b v) and v_new = u - w h:
//   dv_local = Aqk^T do,  dv2_j = dv_local_j + dh^T (D_(j, X] k_j),  dw = -dv2 h^T,  dAqk = do v_new^T (lower)
//   dh_before = D_(0, X] dh + sum_r (D_(0, r] q_r) do_r^T - w^T dv2
//   dkb = Ai^T dw,  dvb = Ai^T dv2,  dA = -Ai^T (dw kb^T + dv2 (b v)^T) Ai^T (strictly lower)
// and from them dq, dk, dv, db and dg_local, the derivative by the logarithm of D_(0, r], whose sum over r >= t is dg_t.
// Each line is the transpose of one of chunkwise.hpp. Rounds, where the forward stages are stored in X and summed in Y: stages of
// this pass to X, as are Aqk, b v, kb, Ai^T dAi and a k that decays channel by channel before they are factors; all sums, decays
// and the cotangent that goes from chunk to chunk are in Y, sums from 0 in the order of their index. Source of the stages, their
// names and their formats: ops/gated_delta_rule of flash-linear-attention.
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

/// What a chunkwise backward pass leaves, X the format of its stages and Y that of its sums. Rows are those of k, R = T n of
/// them.
template <class X, class Y = X>
struct chunk_adjoint_stages {
  matrix<X> dv_local;         ///< R x V: what the outputs of the chunk give v_new
  std::vector<matrix<X>> dh;  ///< K x V, of each chunk: the cotangent of the state after it
  matrix<X> dv2;              ///< R x V: all that v_new is given
  matrix<X> dAqk;             ///< R x C: <do_r, v_new_j> for j <= r in the last row of a token, 0 elsewhere
  matrix<X> dw;               ///< R x K
  matrix<X> dA;               ///< R x C, strictly lower
  matrix<Y> dg_local;         ///< R x (0, 1 or K): by log D_(0, r], before it is summed from the end of the chunk
  sequence<Y> gradient;       ///< as `adjoint` returns it; nothing in it is stored in X
};

namespace detail {

/// One chunkwise backward pass in progress.
template <class X, class Y>
class chunk_adjoint_machine {
 public:
  chunk_adjoint_machine(const sequence<X>& s, const chunkwise_stages<X, Y>& forward, const cotangents<X>& given)
      : s_{s},
        f_{forward},
        width_{forward.cumulative_decay.cols()},
        channels_{s.decays() == decay_kind::per_channel},
        d_o_{cotangent_or_zeros(given.o, s.tokens, s.value_dim, "o")},
        d_state_{lifted(cotangent_or_zeros(given.final_state, s.key_dim, s.value_dim, "final_state"))} {
    out_.dv_local = out_.dv2 = matrix<X>(s.rows(), s.value_dim, zero<X>());
    out_.dAqk = out_.dA = matrix<X>(s.rows(), forward.chunk, zero<X>());
    out_.dw = matrix<X>(s.rows(), s.key_dim, zero<X>());
    out_.dg_local = matrix<Y>(s.rows(), width_, zero<Y>());
    out_.dh.resize(forward.h.size());
    out_.gradient = sequence<Y>::zeros(s.tokens, s.steps_per_token, s.key_dim, s.value_dim, s.decays());
  }

  chunk_adjoint_stages<X, Y> run() {
    for (std::size_t c = f_.h.size(); c-- > 0;) {
      chunk_ = c;
      first_ = c * f_.chunk;
      rows_ = std::min(f_.chunk, s_.rows() - first_);
      out_.dh[c] = matrix<X>(s_.key_dim, s_.value_dim);
      for (std::size_t i = 0; i < d_state_.size(); ++i) out_.dh[c].data()[i] = stored<X>(d_state_.data()[i]);
      ratios();
      operands();
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
  using span = std::span<const X>;

  [[nodiscard]] static matrix<Y> lifted(const matrix<X>& m) {
    matrix<Y> out(m.rows(), m.cols());
    for (std::size_t i = 0; i < m.size(); ++i) out.data()[i] = lift<Y>(m.data()[i]);
    return out;
  }
  /// A factor of a product, as it is stored before.
  [[nodiscard]] static Y operand(const Y& x) { return lift<Y>(stored<X>(x)); }
  /// sum of a_i b_i, from 0, in order.
  template <class B>
  [[nodiscard]] static Y sum_of(span a, std::span<const B> b) {
    Y sum = zero<Y>();
    for (std::size_t i = 0; i < a.size(); ++i) sum = sum + lift<Y>(a[i]) * lift<Y>(b[i]);
    return sum;
  }

  [[nodiscard]] const matrix<X>& h() const { return f_.h[chunk_]; }
  [[nodiscard]] const matrix<X>& dh() const { return out_.dh[chunk_]; }
  [[nodiscard]] bool reads(std::size_t r) const { return (first_ + r) % s_.steps_per_token == s_.steps_per_token - 1; }
  [[nodiscard]] std::size_t token(std::size_t r) const { return (first_ + r) / s_.steps_per_token; }
  [[nodiscard]] span key(std::size_t r) const { return s_.k_row(first_ + r); }
  [[nodiscard]] Y key(std::size_t r, std::size_t c) const { return lift<Y>(s_.k[(first_ + r) * s_.key_dim + c]); }
  [[nodiscard]] Y query(std::size_t r, std::size_t c) const { return lift<Y>(s_.q[token(r) * s_.key_dim + c]); }
  [[nodiscard]] Y step(std::size_t r) const { return lift<Y>(s_.step[first_ + r]); }
  [[nodiscard]] span dv2(std::size_t r) const { return out_.dv2.row(first_ + r); }
  [[nodiscard]] span d_o(std::size_t r) const { return d_o_.row(token(r)); }
  [[nodiscard]] Y* gradient_of_key(std::size_t r) { return &out_.gradient.k[(first_ + r) * s_.key_dim]; }
  /// D_(0, r] in channel c.
  [[nodiscard]] Y since(std::size_t r, std::size_t c) const {
    return width_ == 0 ? one<Y>() : f_.cumulative_decay(first_ + r, width_ == 1 ? 0 : c);
  }
  /// D_(j, r] in channel c.
  [[nodiscard]] Y ratio(std::size_t j, std::size_t r, std::size_t c) const {
    return width_ == 0 ? one<Y>() : ratios_[(j * rows_ + r) * width_ + (width_ == 1 ? 0 : c)];
  }
  void ratios() {
    ratios_.assign(rows_ * rows_ * width_, one<Y>());
    for (std::size_t j = 0; j < rows_ && width_ > 0; ++j) {
      for (std::size_t r = j + 1; r < rows_; ++r) {
        const bool decays = (first_ + r) % s_.steps_per_token == 0;
        for (std::size_t c = 0; c < width_; ++c) {
          const Y& before = ratios_[(j * rows_ + r - 1) * width_ + c];
          ratios_[(j * rows_ + r) * width_ + c] = decays ? before * lift<Y>(s_.decay_of(token(r))[c]) : before;
        }
      }
    }
  }
  /// Channel c of log D_(0, r] moves the loss by `x` more.
  void add_log(std::size_t r, std::size_t c, const Y& x) {
    if (width_ == 0) return;
    Y& to = out_.dg_local(first_ + r, width_ == 1 ? 0 : c);
    to = to + x;
  }

  // kb and b v as the forward pass multiplied them, and D_(r, X] k_r.
  void operands() {
    kb_ = kept_ = matrix<Y>(rows_, s_.key_dim);
    vb_ = matrix<Y>(rows_, s_.value_dim);
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t c = 0; c < s_.key_dim; ++c) {
        kb_(r, c) = operand(step(r) * key(r, c) * since(r, c));
        const Y kept = ratio(r, rows_ - 1, c) * key(r, c);
        kept_(r, c) = channels_ ? operand(kept) : kept;
      }
      for (std::size_t v = 0; v < s_.value_dim; ++v) vb_(r, v) = operand(step(r) * lift<Y>(s_.v_row(first_ + r)[v]));
    }
  }

  void corrections() {
    std::vector<Y> local(s_.value_dim), later(s_.value_dim);
    for (std::size_t j = 0; j < rows_; ++j) {
      std::fill(local.begin(), local.end(), zero<Y>());
      std::fill(later.begin(), later.end(), zero<Y>());
      for (std::size_t r = j; r < rows_; ++r) {
        if (!reads(r)) continue;
        const Y weight = operand(f_.Aqk(first_ + r, j));
        for (std::size_t v = 0; v < s_.value_dim; ++v) local[v] = local[v] + weight * lift<Y>(d_o(r)[v]);
      }
      for (std::size_t c = 0; c < s_.key_dim; ++c) {
        for (std::size_t v = 0; v < s_.value_dim; ++v) later[v] = later[v] + kept_(j, c) * lift<Y>(dh()(c, v));
      }
      for (std::size_t v = 0; v < s_.value_dim; ++v) {
        out_.dv_local(first_ + j, v) = stored<X>(local[v]);
        out_.dv2(first_ + j, v) = stored<X>(lift<Y>(out_.dv_local(first_ + j, v)) + later[v]);
      }
    }
  }

  // dq, what the outputs and the next state give dk, and their logarithms.
  void queries() {
    const std::size_t last = rows_ - 1;
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t c = 0; c < s_.key_dim; ++c) {
        const Y kept = ratio(r, last, c) * sum_of(dh().row(c), f_.v_new.row(first_ + r));
        gradient_of_key(r)[c] = kept;
        add_log(last, c, key(r, c) * kept);
        add_log(r, c, -(key(r, c) * kept));
      }
      if (!reads(r)) continue;
      for (std::size_t c = 0; c < s_.key_dim; ++c) {
        Y& dq = out_.gradient.q[token(r) * s_.key_dim + c];
        dq = since(r, c) * sum_of(h().row(c), d_o(r));
        add_log(r, c, query(r, c) * dq);
      }
      for (std::size_t j = 0; j <= r; ++j) {
        X& weight = out_.dAqk(first_ + r, j);
        weight = stored<X>(sum_of(d_o(r), f_.v_new.row(first_ + j)));
        add_overlap(lift<Y>(weight), r, j, s_.q_row(token(r)), &out_.gradient.q[token(r) * s_.key_dim]);
      }
    }
  }
  /// <x, D_(j, r] k_j> moves the loss by `weight` times what it moves.
  void add_overlap(const Y& weight, std::size_t r, std::size_t j, span x, Y* by_x) {
    for (std::size_t c = 0; c < s_.key_dim; ++c) {
      const Y decayed = weight * ratio(j, r, c);
      const Y of_key = decayed * lift<Y>(x[c]), moved = of_key * key(j, c);
      by_x[c] = by_x[c] + decayed * key(j, c);
      gradient_of_key(j)[c] = gradient_of_key(j)[c] + of_key;
      add_log(r, c, moved);
      add_log(j, c, -moved);
    }
  }

  /// dw, then Ai^T dw and Ai^T dv2.
  std::pair<matrix<Y>, matrix<Y>> transform() {
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t c = 0; c < s_.key_dim; ++c) out_.dw(first_ + r, c) = stored<X>(-sum_of(h().row(c), dv2(r)));
    }
    return {through_inverse(out_.dw), through_inverse(out_.dv2)};
  }
  [[nodiscard]] matrix<Y> through_inverse(const matrix<X>& m) const {
    matrix<Y> out(rows_, m.cols(), zero<Y>());
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t j = 0; j <= r; ++j) {
        const Y entry = lift<Y>(f_.Ai(first_ + r, j));
        for (std::size_t c = 0; c < m.cols(); ++c) out(j, c) = out(j, c) + entry * lift<Y>(m(first_ + r, c));
      }
    }
    return out;
  }

  // dAi in its lower triangle, Ai^T dAi, then dA = -(Ai^T dAi) Ai^T below the diagonal.
  void overlaps() {
    matrix<Y> left(rows_, rows_, zero<Y>());
    for (std::size_t r = 0; r < rows_; ++r) {
      const span dw = std::as_const(out_.dw).row(first_ + r);
      for (std::size_t j = 0; j <= r; ++j) {
        const Y by_inverse = operand(sum_of(dw, std::as_const(kb_).row(j)) + sum_of(dv2(r), std::as_const(vb_).row(j)));
        for (std::size_t i = 0; i <= r; ++i) left(i, j) = left(i, j) + lift<Y>(f_.Ai(first_ + r, i)) * by_inverse;
      }
    }
    for (Y& entry : left.entries()) entry = operand(entry);
    for (std::size_t r = 0; r < rows_; ++r) {
      for (std::size_t j = 0; j < r; ++j) {
        Y sum = zero<Y>();
        for (std::size_t i = 0; i <= j; ++i) sum = sum + left(r, i) * lift<Y>(f_.Ai(first_ + j, i));
        out_.dA(first_ + r, j) = stored<X>(-sum);
      }
    }
  }

  void keys_and_steps(const matrix<Y>& by_kb, const matrix<Y>& by_vb) {
    for (std::size_t r = 0; r < rows_; ++r) {
      Y& db = out_.gradient.step[first_ + r];
      db = sum_of(s_.v_row(first_ + r), by_vb.row(r));
      for (std::size_t i = 0; i < s_.value_dim; ++i) out_.gradient.v[(first_ + r) * s_.value_dim + i] = step(r) * by_vb(r, i);
      for (std::size_t c = 0; c < s_.key_dim; ++c) {
        const Y decayed = since(r, c) * by_kb(r, c);
        db = db + key(r, c) * decayed;
        gradient_of_key(r)[c] = gradient_of_key(r)[c] + step(r) * decayed;
        add_log(r, c, step(r) * key(r, c) * decayed);
      }
      for (std::size_t j = 0; j < r; ++j) {
        const Y weight = lift<Y>(out_.dA(first_ + r, j));
        for (std::size_t c = 0; c < s_.key_dim; ++c) db = db + weight * ratio(j, r, c) * key(r, c) * key(j, c);
        add_overlap(step(r) * weight, r, j, key(r), gradient_of_key(r));
      }
    }
  }

  [[nodiscard]] matrix<Y> state_before() {
    matrix<Y> out(s_.key_dim, s_.value_dim, zero<Y>());
    for (std::size_t c = 0; c < s_.key_dim; ++c) {
      const Y kept = since(rows_ - 1, c);
      add_log(rows_ - 1, c, kept * sum_of(h().row(c), dh().row(c)));
      for (std::size_t v = 0; v < s_.value_dim; ++v) out(c, v) = kept * d_state_(c, v);
      for (std::size_t r = 0; r < rows_; ++r) {
        const Y w = lift<Y>(f_.w(first_ + r, c));
        for (std::size_t v = 0; v < s_.value_dim; ++v) out(c, v) = out(c, v) - w * lift<Y>(dv2(r)[v]);
        if (!reads(r)) continue;
        const Y decayed = since(r, c) * query(r, c), q = channels_ ? operand(decayed) : decayed;
        for (std::size_t v = 0; v < s_.value_dim; ++v) out(c, v) = out(c, v) + q * lift<Y>(d_o(r)[v]);
      }
    }
    return out;
  }

  // A token's decay is in D_(0, r] of every later row of its chunk, from its first row on.
  void log_decays() {
    for (std::size_t c = 0; c < width_; ++c) {
      Y sum = zero<Y>();
      for (std::size_t r = rows_; r-- > 0;) {
        sum = sum + out_.dg_local(first_ + r, c);
        if ((first_ + r) % s_.steps_per_token == 0) out_.gradient.decay[token(r) * width_ + c] = sum;
      }
    }
  }

  const sequence<X>& s_;
  const chunkwise_stages<X, Y>& f_;
  std::size_t width_;
  bool channels_;
  matrix<X> d_o_;
  matrix<Y> d_state_;
  chunk_adjoint_stages<X, Y> out_;
  std::size_t chunk_ = 0, first_ = 0, rows_ = 0;
  std::vector<Y> ratios_;
  matrix<Y> kb_, kept_, vb_;
};

}  // namespace detail

/// The derivatives of sum o . d_o + sum S_T . d_S, from the stages that the chunkwise forward pass left. Shapes: see
/// chunk_adjoint_stages. Rounds: see the head of this file. Memory: C^2 decays. Throws: shape_error (sequence::validate, a
/// cotangent of another shape, stages of another sequence).
template <class X, class Y>
[[nodiscard]] chunk_adjoint_stages<X, Y> chunk_adjoint(const sequence<X>& s, const chunkwise_stages<X, Y>& forward,
                                                       const cotangents<X>& given) {
  s.validate();
  if (forward.w.rows() != s.rows() || forward.w.cols() != s.key_dim || forward.u.cols() != s.value_dim) {
    throw shape_error("chunk_adjoint: the forward stages do not belong to this sequence: w is " + shape_text(forward.w) +
                      " and u is " + shape_text(forward.u) + ", k is " + std::to_string(s.rows()) + " x " +
                      std::to_string(s.key_dim) + " and v is " + std::to_string(s.rows()) + " x " + std::to_string(s.value_dim) +
                      "; pass what chunkwise() returned for this sequence");
  }
  return detail::chunk_adjoint_machine<X, Y>(s, forward, given).run();
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.adjoint_run.cotangent_cut, algebra.chunk_adjoint.dvb_rows, algebra.chunk_adjoint.dh_before,
// proved: algebra.chunk_adjoint.dA_entry, algebra.chunk_adjoint.dq_of_stages, algebra.chunk_adjoint.dg_of_stages
