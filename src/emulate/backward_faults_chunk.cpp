// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Faults of the products of a chunk of the backward pass and of the gradients of its gates.
#include <numbers>

#include "emulate/backward_faults.hpp"

namespace deltaproof::emulation_detail {
namespace {

/// -Ai^T D, or -D Ai^T, or with both, D = dw (b e^G k)^T + dv2 (b v)^T: as far as a wrong kernel goes.
template <class Real>
matrix<Real> overlap_without(const backward_chunk<Real>& c, bool left, bool strict) {
  matrix<Real> keys = decayed_keys(c), values = c.v;
  const bool by_channel = c.G.cols() > 1;
  for (std::size_t r = 0; r < c.rows && !by_channel; ++r) {
    for (Real& x : keys.row(r)) x *= c.step[r];
    for (Real& x : values.row(r)) x *= c.step[r];
  }
  matrix<Real> d = plain_product(c.dw, transpose(keys));
  const matrix<Real> other = plain_product(c.dv2, transpose(values));
  for (std::size_t i = 0; i < c.rows; ++i) {
    for (std::size_t j = 0; j < c.rows; ++j) {
      d(i, j) = (d(i, j) + other(i, j)) * (by_channel ? c.step[j] : Real(1));
      if (j > i || (strict && j == i)) d(i, j) = 0;
    }
  }
  d = plain_product(d, transpose(c.Ai));
  if (left) d = plain_product(transpose(c.Ai), d);
  for (std::size_t i = 0; i < c.rows; ++i) {
    for (std::size_t j = 0; j < c.rows; ++j) {
      const bool kept = strict ? j < i : j <= i;
      const Real decay = c.G.cols() == 1 && kept ? std::exp2(c.G(i, 0) - c.G(j, 0)) : Real(1);
      d(i, j) = kept ? -d(i, j) * decay : Real(0);
    }
  }
  return d;
}

fault_table weights_and_reads() {
  using enum backward_step;
  return {
      {"ds-strict", "dAqk", "the diagonal of dAqk, by which a token reads its own write, is left out", paths::chunk, with_do,
       after_step(ds,
                  [](auto& s) {
                    for (std::size_t r = 0; r < s.now.rows; ++r) s.now.ds(r, r) = 0;
                  })},
      {"ds-undecayed", "dAqk", "dAqk lacks the decay e^{G_i - G_j} of its entries", paths::chunk, gated_do & one_gate_a_head,
       before_step(ds, [](auto& s) { zero_all(s.now.G); })},
      {"v-for-v-new", "dAqk", "the backward pass uses v in place of v_new", paths::chunk, always,
       after_step(chunk, [](auto& s) { s.now.v_new = s.now.v; })},
      {"dq-read-undecayed",
       "dg_local",
       "the part of dq from the state lacks its decay",
       paths::chunk,
       gated_do,
       after_step(read,
                  [](auto& s) {
                    auto& c = s.now;
                    c.dq_read = plain_product(c.d_o, transpose(c.h));
                    scale_all(c.dq_read, s.all.scale);
                  }),
       {"dq", "dg"}},
      {"dq-read-missing",
       "dg_local",
       "dq lacks the part from the state before the chunk",
       paths::chunk,
       with_do,
       after_step(read, [](auto& s) { zero_all(s.now.dq_read); }),
       {"dq", "dg"}},
      {"dk-write-missing",
       "dg_local",
       "dk lacks the part from the cotangent of the state",
       paths::chunk,
       always,
       after_step(read, [](auto& s) { zero_all(s.now.dk_write); }),
       {"dk", "dg"}},
  };
}

fault_table overlaps_and_chains() {
  using enum backward_step;
  return {
      {"dA-one-Ai", "dAkk", "dA is formed with Ai^T on the right only, not on both sides", paths::chunk, always,
       after_step(dA, [](auto& s) { s.now.dA = overlap_without(s.now, false, true); })},
      {"dA-not-negated", "dAkk", "dA has the wrong sign", paths::chunk, always,
       after_step(dA, [](auto& s) { scale_all(s.now.dA, decltype(s.all.scale)(-1)); })},
      {"dA-nonstrict", "dAkk", "the diagonal of dA is not set to 0, though A is 0 there", paths::chunk, always,
       after_step(dA, [](auto& s) { s.now.dA = overlap_without(s.now, true, false); })},
      {"dA-without-du", "dAkk", "the gradient of A lacks the part from u", paths::chunk, always,
       before_step(dA, [](auto& s) { zero_all(s.now.dv2); })},
      {"dA-without-dw", "dAkk", "the gradient of A lacks the part from w", paths::chunk, always,
       before_step(dA, [](auto& s) { zero_all(s.now.dw); })},
      {"Ai-untransposed",
       "dg_local",
       "dw and dv2 are multiplied by Ai, not by its transpose",
       paths::chunk,
       always,
       before_step(wy, [](auto& s) { s.now.Ai = transpose(s.now.Ai); }),
       {"dk", "dv", "dbeta", "dg"}},
      {"dv-without-beta", "dv", "dv lacks the factor beta", paths::chunk, always,
       after_step(wy,
                  [](auto& s) {
                    for (std::size_t r = 0; r < s.now.rows; ++r) {
                      for (auto& x : s.now.dv.row(r)) x = s.now.step[r] == 0 ? x : x / s.now.step[r];
                    }
                  })},
      {"dk2-overwrites-dk", "dk_hat", "the part of dk from w and A overwrites the other parts of dk", paths::chunk, always,
       before_step(wy, [](auto& s) { zero_all(s.now.dk_inside); })},
      {"dk-beta-missing", "dk_hat", "the part of dk from the rows of A is dA k, not b (dA k)", paths::chunk, always,
       after_step(wy,
                  [](auto& s) {
                    auto& c = s.now;
                    for (std::size_t r = 0; r < c.rows; ++r) {
                      for (std::size_t m = 0; m < c.dk.cols(); ++m) c.dk(r, m) += c.dk_overlap(r, m) * (1 - c.step[r]);
                    }
                  })},
      {"dk-columns-missing",
       "dg_local",
       "dk lacks dA^T (b k), its part from the columns of A",
       paths::chunk,
       always,
       after_step(intra, [](auto& s) { zero_all(s.now.dk_overlapped); }),
       {"dk", "dg"}},
      {"db-k-part-missing",
       "dbeta",
       "the part of dbeta from A is left out",
       paths::chunk,
       always,
       after_step(wy,
                  [](auto& s) {
                    for (std::size_t r = 0; r < s.now.rows; ++r) s.now.d_step[r] -= along(s.now.dk_overlap, s.now.k, r);
                  }),
       {"dk", "dbeta"}},
      {"db-w-part-missing",
       "dbeta",
       "the part of dbeta from w is left out",
       paths::chunk,
       always,
       after_step(wy,
                  [](auto& s) {
                    const auto keys = decayed_keys(s.now);
                    for (std::size_t r = 0; r < s.now.rows; ++r) s.now.d_step[r] -= along(s.now.dk_transform, keys, r);
                  }),
       {"dk", "dbeta"}},
  };
}

}  // namespace

fault_table product_faults() { return joined({weights_and_reads, overlaps_and_chains}); }

namespace {

/// Sums of dg_local over each chunk, forward or from its end, with or without the row's own.
template <class Real>
void sum_again(backward_site<Real>& s, bool forward, bool own, bool restart) {
  const std::size_t n = s.all.steps_per_token, C = s.plan.chunk, rows = s.dg_local.rows();
  for (std::size_t m = 0; m < s.dg_local.cols(); ++m) {
    Real sum = 0;
    for (std::size_t at = 0; at < rows; ++at) {
      const std::size_t row = forward ? at : rows - 1 - at;
      if (restart && (forward ? row % C == 0 : (row + 1) % C == 0)) sum = 0;
      const Real next = sum + s.dg_local(row, m);
      if (row % n == 0) s.dg(row / n, m) = own ? next : sum;
      sum = next;
    }
  }
}

}  // namespace

fault_table gate_gradient_faults() {
  using enum backward_step;
  return {
      {"hdh-missing", "dg_local", "dg lacks the part from the decay of the state over the chunk, <h, dh>", paths::chunk, gated,
       before_step(backward_step::gate, [](auto& s) { zero_all(s.now.h); })},
      {"hdh-undecayed", "dg_local", "<h, dh> in dg lacks the decay of the chunk", paths::chunk, gated,
       before_step(backward_step::gate,
                   [](auto& s) {
                     auto& c = s.now;
                     for (std::size_t i = 0; i < c.h.rows() && c.G.cols() > 0; ++i) {
                       const auto grown = std::exp2(-c.G(c.rows - 1, c.G.cols() > 1 ? i : 0));
                       for (auto& x : c.h.row(i)) x *= std::isfinite(grown) ? grown : 1;
                     }
                   })},
      {"hdh-in-e4m3", "dg_local", "the products and the sum of <h, dh> are computed in e4m3", paths::chunk, gated,
       backward_arithmetic([](backward_variant& b, const head_input&) { b.state_sum = e4m3; })},
      {"dg-diagonal-in-blocks",
       "dg_local",
       "in a diagonal block e^{G_i - G_j} is split into e^{G_i - M} and e^{M - G_j}, with M = G of the block's middle row, and "
       "operands of products inside a chunk are truncated to tf32; the terms i = j, which should cancel in dg, then cancel only "
       "in part",
       paths::chunk,
       gated_by_channel,
       backward_arithmetic([](backward_variant& b, const head_input&) {
         b.blocks = gate_form::middle_block;
         b.diagonal = diagonal_terms::numeric;
         b.intra_operand = {tf32, true};
       }),
       {"dq", "dk", "dbeta", "dg"}},
      {"A-gate-term-missing", "dg_local", "dg lacks the part from A", paths::chunk, gated,
       before_step(backward_step::gate,
                   [](auto& s) {
                     zero_all(s.now.dA);
                     zero_all(s.now.dk_overlap);
                     zero_all(s.now.dk_overlapped);
                   })},
      {"w-gate-term-missing", "dg_local", "dg lacks the part from w", paths::chunk, gated,
       before_step(backward_step::gate, [](auto& s) { zero_all(s.now.dk_transform); })},
      {"dg-last-beyond-the-tail", "dg_local",
       "in a partial last chunk, what the decay to the chunk's end adds to dg is written to row C - 1, not to the last row: it "
       "is lost",
       paths::chunk, gated,
       after_step(backward_step::gate,
                  [](auto& s) {
                    auto& c = s.now;
                    if (!c.last || c.rows == c.full_rows) return;
                    for (std::size_t i = 0; i < c.h.rows(); ++i) {
                      const std::size_t m = c.G.cols() > 1 ? i : 0;
                      auto lost = std::exp2(c.G(c.rows - 1, m)) * along(c.h, c.dh, i);
                      for (std::size_t r = 0; r < c.rows; ++r) lost += c.dk_write(r, i) * c.k(r, i);
                      c.dg(c.rows - 1, m) -= lost;
                    }
                  })},
      {"dg-cumsum-forward", "dg", "dg is summed from the start of the chunk, not from its end", paths::chunk, gated,
       after_step(cumsum, [](auto& s) { sum_again(s, true, true, true); })},
      {"dg-cumsum-exclusive", "dg", "the reversed cumulative sum that gives dg leaves out the row's own part", paths::chunk,
       gated, after_step(cumsum, [](auto& s) { sum_again(s, false, false, true); })},
      {"dg-cumsum-across-chunks", "dg", "the reversed cumulative sum that gives dg does not restart at each chunk", paths::chunk,
       gated, after_step(cumsum, [](auto& s) { sum_again(s, false, true, false); })},
      {"dg-without-cumsum", "dg", "the reversed cumulative sum that gives dg is not made", paths::chunk, gated,
       after_step(cumsum,
                  [](auto& s) {
                    for (std::size_t t = 0; t < s.dg.rows(); ++t) {
                      for (std::size_t m = 0; m < s.dg.cols(); ++m) s.dg(t, m) = s.dg_local(t * s.all.steps_per_token, m);
                    }
                  })},
      {"dg-times-ln2", "dg", "dg is the gradient of the log2 decay, not of g", paths::both, gated,
       after_step(head, [](auto& s) { scale_all(s.dg, std::numbers::ln2_v<std::decay_t<decltype(s.all.scale)>>); })},
  };
}

}  // namespace deltaproof::emulation_detail
