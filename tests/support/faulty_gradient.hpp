// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A second chunkwise backward pass, stage by stage as flash-linear-attention orders it (dv_local, dhu, dqkwg, wy, then dg from
// dq . q - dk . k and a sum from the end), into which any one fault of gradient_faults can be planted. It shares no code with
// scan/chunk_adjoint.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "support/gradient_cases.hpp"

namespace deltaproof::testing {

enum class gradient_fault {
  none,
  hdh_missing,
  dg_cumsum_forward,
  dg_last_at_last_row_of_full_chunk,
  overlap_gate_missing,
  diagonal_in_gate_once,
  dA_one_inverse,
  dA_not_negated,
  dA_not_strict,
  dk2_overwrites_dk,
  dk_without_step,
  db_without_keys,
  db_without_overlaps,
  dw_sign,
  dv_local_for_dv2_in_dw,
  dv_local_for_dv2_in_dh,
  dh_undecayed,
  dh_decayed_twice,
  d_final_state_ignored,
  initial_state_skips_first_chunk,
  query_undecayed_in_dh,
  query_undecayed_in_dq,
  ds_strict,
  tail_unwritten,
  transposed_state_in_dq,
  key_end_undecayed,
  dkb_undecayed,
  dgate_of_kb_missing,
  steps_share_query,
};

struct planted_gradient_fault {
  gradient_fault id;
  std::string_view name;
};
inline constexpr auto gradient_faults = std::to_array<planted_gradient_fault>({
    {gradient_fault::hdh_missing, "dg without <h, dh>"},
    {gradient_fault::dg_cumsum_forward, "dg summed from the start"},
    {gradient_fault::dg_last_at_last_row_of_full_chunk, "<h, dh> at row C - 1 of a tail"},
    {gradient_fault::overlap_gate_missing, "dg without A's gate"},
    {gradient_fault::diagonal_in_gate_once, "i = j terms do not cancel in dg"},
    {gradient_fault::dA_one_inverse, "dA through one inverse"},
    {gradient_fault::dA_not_negated, "dA not negated"},
    {gradient_fault::dA_not_strict, "dA keeps its diagonal"},
    {gradient_fault::dk2_overwrites_dk, "dk of WY overwrites dk"},
    {gradient_fault::dk_without_step, "dk of WY without b"},
    {gradient_fault::db_without_keys, "db without the keys' part"},
    {gradient_fault::db_without_overlaps, "db without A's part"},
    {gradient_fault::dw_sign, "dw not negated"},
    {gradient_fault::dv_local_for_dv2_in_dw, "dw from dv_local"},
    {gradient_fault::dv_local_for_dv2_in_dh, "dh from dv_local"},
    {gradient_fault::dh_undecayed, "dh not decayed"},
    {gradient_fault::dh_decayed_twice, "dh decayed twice"},
    {gradient_fault::d_final_state_ignored, "dfinal_state not read"},
    {gradient_fault::initial_state_skips_first_chunk, "dinitial_state after the first chunk"},
    {gradient_fault::query_undecayed_in_dh, "q not decayed in dh"},
    {gradient_fault::query_undecayed_in_dq, "dq not decayed"},
    {gradient_fault::ds_strict, "ds without its diagonal"},
    {gradient_fault::tail_unwritten, "gradients of the last, short chunk unwritten"},
    {gradient_fault::transposed_state_in_dq, "dq from the transposed state"},
    {gradient_fault::key_end_undecayed, "k not decayed to the end in dv2"},
    {gradient_fault::dkb_undecayed, "dk of w not decayed"},
    {gradient_fault::dgate_of_kb_missing, "dg without w's gate"},
    {gradient_fault::steps_share_query, "q . do at each step of a token"},
});

template <class S>
class faulty_gradient {
 public:
  faulty_gradient(const gradient_case<S>& c, const chunkwise_stages<S, S>& forward, gradient_fault planted)
      : c_{c},
        s_{c.s},
        f_{forward},
        planted_{planted},
        K_{s_.key_dim},
        V_{s_.value_dim},
        n_{s_.steps_per_token},
        channels_{s_.decays() == decay_kind::per_channel} {}

  [[nodiscard]] sequence<S> run() {
    d_ = sequence<S>::zeros(s_.tokens, n_, K_, V_, s_.decays());
    matrix<S> dh = is(gradient_fault::d_final_state_ignored) ? zeros(K_, V_) : c_.last_cotangent();
    for (std::size_t chunk = f_.h.size(); chunk-- > 0;) {
      const std::size_t first = chunk * f_.chunk;
      matrix<S> before = run_chunk(f_.h[chunk], dh, first, std::min(f_.chunk, s_.rows() - first));
      if (chunk > 0 || !is(gradient_fault::initial_state_skips_first_chunk)) dh = std::move(before);
    }
    d_.initial_state = dh;
    return d_;
  }

 private:
  [[nodiscard]] bool is(gradient_fault f) const { return planted_ == f; }
  [[nodiscard]] static matrix<S> zeros(std::size_t rows, std::size_t cols) { return matrix<S>(rows, cols, zero<S>()); }
  [[nodiscard]] static matrix<S> times(const matrix<S>& a, const matrix<S>& b) {
    matrix<S> out = zeros(a.rows(), b.cols());
    for (std::size_t i = 0; i < a.rows(); ++i) {
      for (std::size_t m = 0; m < a.cols(); ++m) {
        for (std::size_t j = 0; j < b.cols(); ++j) out(i, j) = out(i, j) + a(i, m) * b(m, j);
      }
    }
    return out;
  }
  [[nodiscard]] static matrix<S> cut(const matrix<S>& m, std::size_t first, std::size_t rows, std::size_t cols) {
    matrix<S> out = zeros(rows, cols);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t j = 0; j < cols; ++j) out(r, j) = m(first + r, j);
    }
    return out;
  }
  /// The product of the decays of channel c over rows (j, r]; from the start of the chunk for j = first - 1.
  [[nodiscard]] S decay(std::size_t after, std::size_t r, std::size_t c) const {
    S out = one<S>();
    for (std::size_t row = after; row <= r && !s_.decay.empty(); ++row) {
      if (row % n_ == 0) out = out * s_.decay[channels_ ? row / n_ * K_ + c : row / n_];
    }
    return out;
  }

  /// What a chunk reads, and what its stages leave.
  struct chunk {
    std::size_t first, rows;
    const matrix<S>&h, &dh;
    std::vector<S> b;
    matrix<S> q, k, vb, kb, d_o, since, left, Ai, Aqk, v_new, w;  // since: D_(0, r]; left: D_(r, X]
    matrix<S> dv_local, dv2, dw, dq, dk1, dk2, dvb, dg;
    std::vector<S> db;
  };

  matrix<S> run_chunk(const matrix<S>& h, const matrix<S>& dh, std::size_t first, std::size_t rows) {
    chunk c = loaded(h, dh, first, rows);
    corrections(c);
    queries(c);
    keys(c);
    if (!(is(gradient_fault::tail_unwritten) && rows < f_.chunk)) write(c);
    return state_before(c);
  }

  [[nodiscard]] chunk loaded(const matrix<S>& h, const matrix<S>& dh, std::size_t first, std::size_t R) const {
    chunk c{first,
            R,
            h,
            dh,
            std::vector<S>(R, zero<S>()),
            zeros(R, K_),
            zeros(R, K_),
            zeros(R, V_),
            zeros(R, K_),
            zeros(R, V_),
            zeros(R, K_),
            zeros(R, K_),
            cut(f_.Ai, first, R, R),
            cut(f_.Aqk, first, R, R),
            cut(f_.v_new, first, R, V_),
            cut(f_.w, first, R, K_),
            {},
            {},
            {},
            zeros(R, K_),
            zeros(R, K_),
            zeros(R, K_),
            {},
            zeros(R, K_),
            std::vector<S>(R, zero<S>())};
    for (std::size_t r = 0; r < R; ++r) {
      const std::size_t row = first + r;
      const bool reads = row % n_ == n_ - 1 || is(gradient_fault::steps_share_query);
      c.b[r] = s_.step[row];
      for (std::size_t i = 0; i < K_; ++i) {
        c.since(r, i) = decay(first, row, i);
        c.left(r, i) = decay(row + 1, first + R - 1, i);
        c.k(r, i) = s_.k[row * K_ + i];
        c.kb(r, i) = c.b[r] * c.since(r, i) * c.k(r, i);
        if (reads) c.q(r, i) = s_.q[row / n_ * K_ + i];
      }
      for (std::size_t v = 0; v < V_; ++v) {
        c.vb(r, v) = c.b[r] * s_.v[row * V_ + v];
        if (reads) c.d_o(r, v) = c_.with.o(row / n_, v);
      }
    }
    return c;
  }

  // dv_local, dv2, dw.
  void corrections(chunk& c) const {
    c.dv_local = times(transpose(c.Aqk), c.d_o);
    const matrix<S> later = times(is(gradient_fault::key_end_undecayed) ? c.k : each(c.k, c.left), c.dh);
    c.dv2 = sum(c.dv_local, later);
    c.dw = times(is(gradient_fault::dv_local_for_dv2_in_dw) ? c.dv_local : c.dv2, transpose(c.h));
    if (!is(gradient_fault::dw_sign)) negate(c.dw);
  }

  // dq, what outputs and the next state give dk, and dg of both.
  void queries(chunk& c) const {
    using F = gradient_fault;
    matrix<S> ds = times(c.d_o, transpose(c.v_new));
    mask(ds, is(F::ds_strict));
    const matrix<S> dq_state = times(c.d_o, is(F::transposed_state_in_dq) && K_ == V_ ? c.h : transpose(c.h));
    c.dq = is(F::query_undecayed_in_dq) ? dq_state : each(dq_state, c.since);
    c.dk1 = each(times(c.v_new, transpose(c.dh)), c.left);
    for (std::size_t i = 0; i < K_; ++i) {
      S end = zero<S>();
      for (std::size_t v = 0; v < V_ && !is(F::hdh_missing); ++v) end = end + c.h(i, v) * c.dh(i, v) * c.since(c.rows - 1, i);
      for (std::size_t r = 0; r < c.rows; ++r) end = end + c.dk1(r, i) * c.k(r, i);
      for (std::size_t r = 0; r < c.rows; ++r) {
        for (std::size_t j = 0; j <= r; ++j) {
          const S x = ds(r, j) * decay(c.first + j + 1, c.first + r, i);
          c.dq(r, i) = c.dq(r, i) + x * c.k(j, i);
          c.dk1(j, i) = c.dk1(j, i) + x * c.q(r, i);
          if (j == r && is(F::diagonal_in_gate_once)) c.dg(r, i) = c.dg(r, i) + x * c.k(j, i) * c.q(r, i);
        }
      }
      for (std::size_t r = 0; r < c.rows; ++r) c.dg(r, i) = c.dg(r, i) + c.dq(r, i) * c.q(r, i) - c.dk1(r, i) * c.k(r, i);
      const std::size_t last = is(F::dg_last_at_last_row_of_full_chunk) ? f_.chunk - 1 : c.rows - 1;
      if (last < c.rows) c.dg(last, i) = c.dg(last, i) + end;
    }
  }

  [[nodiscard]] matrix<S> overlaps(const chunk& c) const {
    using F = gradient_fault;
    matrix<S> dA = sum(times(c.dw, transpose(c.kb)), times(c.dv2, transpose(c.vb)));
    mask(dA, false);
    dA = times(dA, transpose(c.Ai));
    if (!is(F::dA_one_inverse)) dA = times(transpose(c.Ai), dA);
    mask(dA, !is(F::dA_not_strict));
    if (!is(F::dA_not_negated)) negate(dA);
    return dA;
  }

  // Through w, u and A: the rest of dk and dg, dv and db.
  void keys(chunk& c) const {
    using F = gradient_fault;
    const matrix<S> dkb = times(transpose(c.Ai), c.dw), dA = overlaps(c);
    c.dvb = times(transpose(c.Ai), c.dv2);
    for (std::size_t r = 0; r < c.rows; ++r) {
      for (std::size_t v = 0; v < V_; ++v) c.db[r] = c.db[r] + c.dvb(r, v) * s_.v[(c.first + r) * V_ + v];
      for (std::size_t i = 0; i < K_; ++i) {
        const S decayed = is(F::dkb_undecayed) ? dkb(r, i) : dkb(r, i) * c.since(r, i);
        c.dk2(r, i) = c.dk2(r, i) + (is(F::dk_without_step) ? decayed : c.b[r] * decayed);
        if (!is(F::db_without_keys)) c.db[r] = c.db[r] + decayed * c.k(r, i);
        if (!is(F::dgate_of_kb_missing)) c.dg(r, i) = c.dg(r, i) + dkb(r, i) * c.kb(r, i);
        for (std::size_t j = 0; j <= r; ++j) {
          const S x = dA(r, j) * decay(c.first + j + 1, c.first + r, i), both = x * c.k(r, i) * c.k(j, i);
          c.dk2(r, i) = c.dk2(r, i) + x * c.b[r] * c.k(j, i);
          c.dk2(j, i) = c.dk2(j, i) + x * c.b[r] * c.k(r, i);
          if (!is(F::db_without_overlaps)) c.db[r] = c.db[r] + both;
          if (is(F::overlap_gate_missing)) continue;
          c.dg(r, i) = c.dg(r, i) + both * c.b[r];
          c.dg(j, i) = c.dg(j, i) - both * c.b[r];
        }
      }
    }
  }

  [[nodiscard]] matrix<S> state_before(const chunk& c) const {
    using F = gradient_fault;
    matrix<S> out = times(transpose(is(F::query_undecayed_in_dh) ? c.q : each(c.q, c.since)), c.d_o);
    const matrix<S> through = times(transpose(c.w), is(F::dv_local_for_dv2_in_dh) ? c.dv_local : c.dv2);
    for (std::size_t i = 0; i < K_; ++i) {
      S kept = is(F::dh_undecayed) ? one<S>() : c.since(c.rows - 1, i);
      if (is(F::dh_decayed_twice)) kept = kept * c.since(c.rows - 1, i);
      for (std::size_t v = 0; v < V_; ++v) out(i, v) = out(i, v) - through(i, v) + kept * c.dh(i, v);
    }
    return out;
  }

  [[nodiscard]] static matrix<S> each(matrix<S> a, const matrix<S>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = a.data()[i] * b.data()[i];
    return a;
  }
  [[nodiscard]] static matrix<S> sum(matrix<S> a, const matrix<S>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = a.data()[i] + b.data()[i];
    return a;
  }
  static void negate(matrix<S>& m) {
    for (S& x : m.entries()) x = zero<S>() - x;
  }
  static void mask(matrix<S>& m, bool strict) {
    for (std::size_t i = 0; i < m.rows(); ++i) {
      for (std::size_t j = strict ? i : i + 1; j < m.cols(); ++j) m(i, j) = zero<S>();
    }
  }

  void write(const chunk& c) {
    for (std::size_t r = 0; r < c.rows; ++r) {
      const std::size_t row = c.first + r;
      d_.step[row] = c.db[r];
      for (std::size_t v = 0; v < V_; ++v) d_.v[row * V_ + v] = c.b[r] * c.dvb(r, v);
      for (std::size_t i = 0; i < K_; ++i) {
        d_.k[row * K_ + i] = is(gradient_fault::dk2_overwrites_dk) ? c.dk2(r, i) : c.dk1(r, i) + c.dk2(r, i);
        if (row % n_ == n_ - 1) d_.q[row / n_ * K_ + i] = c.dq(r, i);
      }
    }
    const std::size_t width = s_.decay.empty() ? 0 : channels_ ? K_ : 1;
    std::vector<S> sums(width, zero<S>());
    for (std::size_t i = 0; i < c.rows && width > 0; ++i) {
      const std::size_t r = is(gradient_fault::dg_cumsum_forward) ? i : c.rows - 1 - i, row = c.first + r;
      for (std::size_t m = 0; m < K_; ++m) sums[channels_ ? m : 0] = sums[channels_ ? m : 0] + c.dg(r, m);
      if (row % n_ == 0) std::copy(sums.begin(), sums.end(), d_.decay.begin() + static_cast<std::ptrdiff_t>(row / n_ * width));
    }
  }

  const gradient_case<S>& c_;
  const sequence<S>& s_;
  const chunkwise_stages<S, S>& f_;
  gradient_fault planted_;
  std::size_t K_, V_, n_;
  bool channels_;
  sequence<S> d_;
};

}  // namespace deltaproof::testing
