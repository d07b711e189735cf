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
      : c_{c}, s_{c.s}, f_{forward}, planted_{planted}, K_{s_.key_dim}, V_{s_.value_dim}, n_{s_.steps_per_token},
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

  matrix<S> run_chunk(const matrix<S>& h, const matrix<S>& dh, std::size_t first, std::size_t R) {
    using F = gradient_fault;
    const std::size_t last = first + R - 1;
    matrix<S> q = zeros(R, K_), k = zeros(R, K_), vb = zeros(R, V_), kb = zeros(R, K_), d_o = zeros(R, V_), since = zeros(R, K_), left = zeros(R, K_);
    std::vector<S> b(R, zero<S>());
    for (std::size_t r = 0; r < R; ++r) {
      const std::size_t row = first + r;
      const bool reads = row % n_ == n_ - 1 || is(F::steps_share_query);
      b[r] = s_.step[row];
      for (std::size_t c = 0; c < K_; ++c) {
        since(r, c) = decay(first, row, c);
        left(r, c) = decay(row + 1, last, c);
        k(r, c) = s_.k[row * K_ + c];
        kb(r, c) = b[r] * since(r, c) * k(r, c);
        if (reads) q(r, c) = s_.q[row / n_ * K_ + c];
      }
      for (std::size_t v = 0; v < V_; ++v) {
        vb(r, v) = b[r] * s_.v[row * V_ + v];
        if (reads) d_o(r, v) = c_.with.o(row / n_, v);
      }
    }
    const matrix<S> Ai = cut(f_.Ai, first, R, R), Aqk = cut(f_.Aqk, first, R, R), v_new = cut(f_.v_new, first, R, V_), w = cut(f_.w, first, R, K_);

    const matrix<S> dv_local = times(transpose(Aqk), d_o);
    matrix<S> ends = k, qe = q, dv2 = dv_local;
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t c = 0; c < K_; ++c) {
        if (!is(F::key_end_undecayed)) ends(r, c) = k(r, c) * left(r, c);
        if (!is(F::query_undecayed_in_dh)) qe(r, c) = q(r, c) * since(r, c);
      }
    }
    const matrix<S> later = times(ends, dh);
    for (std::size_t i = 0; i < dv2.size(); ++i) dv2.data()[i] = dv2.data()[i] + later.data()[i];

    matrix<S> dw = times(is(F::dv_local_for_dv2_in_dw) ? dv_local : dv2, transpose(h));
    if (!is(F::dw_sign)) {
      for (S& x : dw.entries()) x = zero<S>() - x;
    }
    matrix<S> ds = times(d_o, transpose(v_new));
    mask(ds, is(F::ds_strict));
    const matrix<S> dk_state = times(v_new, transpose(dh));
    const matrix<S> dq_state = times(d_o, is(F::transposed_state_in_dq) && K_ == V_ ? h : transpose(h));
    matrix<S> dq = zeros(R, K_), dk1 = zeros(R, K_), end_log = zeros(1, K_), dg = zeros(R, K_);
    for (std::size_t c = 0; c < K_; ++c) {
      S h_dh = zero<S>();
      for (std::size_t v = 0; v < V_; ++v) h_dh = h_dh + h(c, v) * dh(c, v);
      if (!is(F::hdh_missing)) end_log(0, c) = h_dh * since(R - 1, c);
      for (std::size_t r = 0; r < R; ++r) {
        dq(r, c) = is(F::query_undecayed_in_dq) ? dq_state(r, c) : dq_state(r, c) * since(r, c);
        dk1(r, c) = dk_state(r, c) * left(r, c);
        end_log(0, c) = end_log(0, c) + dk1(r, c) * k(r, c);
      }
      for (std::size_t r = 0; r < R; ++r) {
        for (std::size_t j = 0; j <= r; ++j) {
          const S x = ds(r, j) * decay(first + j + 1, first + r, c);
          dq(r, c) = dq(r, c) + x * k(j, c);
          dk1(j, c) = dk1(j, c) + x * q(r, c);
          if (j == r && is(F::diagonal_in_gate_once)) dg(r, c) = dg(r, c) + x * k(j, c) * q(r, c);
        }
      }
      for (std::size_t r = 0; r < R; ++r) dg(r, c) = dg(r, c) + dq(r, c) * q(r, c) - dk1(r, c) * k(r, c);
      const std::size_t last_row = is(F::dg_last_at_last_row_of_full_chunk) ? f_.chunk - 1 : R - 1;
      if (last_row < R) dg(last_row, c) = dg(last_row, c) + end_log(0, c);
    }

    const matrix<S> dkb = times(transpose(Ai), dw), dvb = times(transpose(Ai), dv2);
    matrix<S> dA = times(dw, transpose(kb));
    const matrix<S> of_values = times(dv2, transpose(vb));
    for (std::size_t i = 0; i < dA.size(); ++i) dA.data()[i] = dA.data()[i] + of_values.data()[i];
    mask(dA, false);
    dA = times(dA, transpose(Ai));
    if (!is(F::dA_one_inverse)) dA = times(transpose(Ai), dA);
    mask(dA, !is(F::dA_not_strict));
    if (!is(F::dA_not_negated)) {
      for (S& x : dA.entries()) x = zero<S>() - x;
    }
    matrix<S> dk2 = zeros(R, K_);
    std::vector<S> db(R, zero<S>());
    for (std::size_t r = 0; r < R; ++r) {
      for (std::size_t v = 0; v < V_; ++v) db[r] = db[r] + dvb(r, v) * s_.v[(first + r) * V_ + v];
      for (std::size_t c = 0; c < K_; ++c) {
        const S decayed = is(F::dkb_undecayed) ? dkb(r, c) : dkb(r, c) * since(r, c);
        dk2(r, c) = dk2(r, c) + (is(F::dk_without_step) ? decayed : b[r] * decayed);
        if (!is(F::db_without_keys)) db[r] = db[r] + decayed * k(r, c);
        if (!is(F::dgate_of_kb_missing)) dg(r, c) = dg(r, c) + dkb(r, c) * kb(r, c);
        for (std::size_t j = 0; j <= r; ++j) {
          const S x = dA(r, j) * decay(first + j + 1, first + r, c);
          dk2(r, c) = dk2(r, c) + x * b[r] * k(j, c);
          dk2(j, c) = dk2(j, c) + x * b[r] * k(r, c);
          if (!is(F::db_without_overlaps)) db[r] = db[r] + x * k(r, c) * k(j, c);
          if (is(F::overlap_gate_missing)) continue;
          dg(r, c) = dg(r, c) + x * b[r] * k(r, c) * k(j, c);
          dg(j, c) = dg(j, c) - x * b[r] * k(r, c) * k(j, c);
        }
      }
    }
    if (!(is(F::tail_unwritten) && R < f_.chunk)) write(first, R, dq, dk1, dk2, dvb, db, dg, b);

    matrix<S> out = times(transpose(qe), d_o);
    const matrix<S> through = times(transpose(w), is(F::dv_local_for_dv2_in_dh) ? dv_local : dv2);
    for (std::size_t c = 0; c < K_; ++c) {
      S kept = is(F::dh_undecayed) ? one<S>() : since(R - 1, c);
      if (is(F::dh_decayed_twice)) kept = kept * since(R - 1, c);
      for (std::size_t v = 0; v < V_; ++v) out(c, v) = out(c, v) - through(c, v) + kept * dh(c, v);
    }
    return out;
  }

  static void mask(matrix<S>& m, bool strict) {
    for (std::size_t i = 0; i < m.rows(); ++i) {
      for (std::size_t j = strict ? i : i + 1; j < m.cols(); ++j) m(i, j) = zero<S>();
    }
  }

  void write(std::size_t first, std::size_t R, const matrix<S>& dq, const matrix<S>& dk1, const matrix<S>& dk2, const matrix<S>& dvb,
             const std::vector<S>& db, const matrix<S>& dg, const std::vector<S>& b) {
    for (std::size_t r = 0; r < R; ++r) {
      const std::size_t row = first + r;
      d_.step[row] = db[r];
      for (std::size_t v = 0; v < V_; ++v) d_.v[row * V_ + v] = b[r] * dvb(r, v);
      for (std::size_t c = 0; c < K_; ++c) {
        d_.k[row * K_ + c] = is(gradient_fault::dk2_overwrites_dk) ? dk2(r, c) : dk1(r, c) + dk2(r, c);
        if (row % n_ == n_ - 1) d_.q[row / n_ * K_ + c] = dq(r, c);
      }
    }
    const std::size_t width = s_.decay.empty() ? 0 : channels_ ? K_ : 1;
    std::vector<S> sum(width, zero<S>());
    for (std::size_t i = 0; i < R && width > 0; ++i) {
      const std::size_t r = is(gradient_fault::dg_cumsum_forward) ? i : R - 1 - i;
      for (std::size_t c = 0; c < K_; ++c) sum[channels_ ? c : 0] = sum[channels_ ? c : 0] + dg(r, c);
      if ((first + r) % n_ == 0) std::copy(sum.begin(), sum.end(), d_.decay.begin() + static_cast<std::ptrdiff_t>((first + r) / n_ * width));
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
