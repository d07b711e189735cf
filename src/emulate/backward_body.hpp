// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What `adjoint` does beside the stages of a chunk (backward_chunk.hpp) and single tokens (backward_tokens.hpp): arithmetic,
// products with a gate of channels, the chain from the effective step to beta, a whole head.
#pragma once

#include <utility>

#include "emulate/backward.hpp"
#include "emulate/machine_body.hpp"
#include "emulate/step_slopes.hpp"
#include "support/widest_vectors.hpp"

namespace deltaproof::emulation_detail {

template <class Real>
adjoint<Real>::adjoint(machine<Real>& forward, std::vector<saved_chunk<Real>> saved, const head_cotangents& d,
                       const emulation_options& options, std::span<const tile_order> other_orders)
    : forward_{forward},
      saved_{std::move(saved)},
      options_{options},
      starts_{options.seed, 0x5a27},
      site_{forward.site_.in,
            d,
            forward.site_.plan,
            *forward.site_.plan.backward,
            forward.site_.all,
            cast<Real>(d.d_o),
            {},
            std::nullopt,
            0,
            {},
            {},
            {},
            {},
            {},
            {},
            {},
            {},
            {}},
      other_orders_(other_orders.begin(), other_orders.end()) {
  if (options.noise_ulps > 0) {
    const std::uint64_t bits = philox(options.seed, 0xad15)();
    adds_in_place_ = (bits & 1) != 0;
    scans_dg_ = (bits & 2) != 0;
  }
}

template <class Real>
matrix<Real> adjoint<Real>::times(matrix<Real> a, matrix<Real> b, const narrowing& operand) {
  a = narrow_copy(std::move(a), operand);
  b = narrow_copy(std::move(b), operand);
  return forward_.times(a, b, operand.to, site_.declared.accumulate);
}

template <class Real>
matrix<Real> adjoint<Real>::plus_times(matrix<Real> c, matrix<Real> a, matrix<Real> b, const narrowing& operand, Real scale) {
  a = narrow_copy(std::move(a), operand);
  b = narrow_copy(std::move(b), operand);
  for (std::size_t i = 0; i < b.size() && scale != 1; ++i) b.data()[i] *= scale;
  forward_.accumulate({a.data(), a.cols(), b.data(), b.cols(), c.data(), c.cols(), a.rows(), a.cols(), b.cols()},
                      forward_.sums(operand.to, site_.declared.accumulate));
  return c;
}

// Each addition to a sum waits for the one before, so the sums of eight rows are formed side by side. Where fewer are left, the
// last row is added up again in the place of each missing one.
template <class Real>
std::vector<Real> adjoint<Real>::row_sums(const matrix<Real>& x, const matrix<Real>& y) {
  constexpr std::size_t abreast = 8;
  const std::size_t rows = x.rows(), cols = x.cols();
  const std::size_t start = options_.noise_ulps > 0 && cols > 1 ? static_cast<std::size_t>(starts_.below(cols)) : 0;
  std::vector<Real> out(rows);
  for (std::size_t first = 0; first < rows; first += abreast) {
    std::array<Real, abreast> sums{};
    std::array<std::size_t, abreast> at{};
    for (std::size_t r = 0; r < abreast; ++r) at[r] = std::min(first + r, rows - 1) * cols;
    for (std::size_t term = start; term < start + cols; ++term) {
      const std::size_t j = term < cols ? term : term - cols;
      for (std::size_t r = 0; r < abreast; ++r) sums[r] += x.data()[at[r] + j] * y.data()[at[r] + j];
    }
    std::copy_n(sums.begin(), std::min(abreast, rows - first), out.data() + first);
  }
  for (std::size_t r = 0; options_.in_any_order && r < rows; ++r)
    guard(out[r], cols, [&](std::size_t j) { return x(r, j) * y(r, j); });
  narrow(std::span<Real>(out), kept());
  return out;
}

template <class Real>
void adjoint<Real>::take_decays(const matrix<Real>& G) {
  if (decays_.of.rows() == G.rows() && decays_.of == G) return;
  decays_ = {G, matrix<Real>(G.rows(), G.cols(), Real(1)), matrix<Real>(G.rows(), G.cols(), Real(1))};
  for (std::size_t r = 0; r < G.rows(); ++r) {
    forward_.decay_row(decays_.to_row.row(r), G.row(r), {});
    forward_.decay_row(decays_.to_end.row(r), G.row(G.rows() - 1), G.row(r));
  }
}

/// Rows of x times those of `decays`, which have one number or one for each channel.
template <class Real>
matrix<Real> with_decays(matrix<Real> x, const matrix<Real>& decays) {
  const bool channels = decays.cols() == x.cols();
  for (std::size_t r = 0; r < x.rows(); ++r) {
    const Real* const decay = decays.row(r).data();
    Real* const row = x.row(r).data();
    for (std::size_t c = 0; c < x.cols(); ++c) row[c] *= decay[channels ? c : 0];
  }
  return x;
}

template <class Real>
matrix<Real> adjoint<Real>::decayed_to_row(matrix<Real> x, const matrix<Real>& G) {
  if (G.cols() == 0) return x;
  take_decays(G);
  return with_decays(std::move(x), decays_.to_row);
}

template <class Real>
matrix<Real> adjoint<Real>::decayed_to_end(matrix<Real> x, const matrix<Real>& G) {
  if (G.cols() == 0) return x;
  take_decays(G);
  return with_decays(std::move(x), decays_.to_end);
}

// Out rows [to_first, to_last) from rows [first, last) of each x, with a reference R between them: a product of x e^{R - G}
// (rows: e^{G - R}) with m, times what is left of the decay.
template <class Real>
void adjoint<Real>::add_products(decayed_sums& all, const matrix<Real>& G, bool rows, const row_range& to, const row_range& from,
                                 const std::vector<Real>& reference) {
  if (to.first >= to.last || from.first >= from.last) return;
  const std::size_t channels = G.cols();
  const auto weight = [&](const matrix<Real>& m, std::size_t i, std::size_t j) { return rows ? m(i, j) : m(j, i); };
  std::vector<Real> decays(channels);
  const auto decay = [&](std::size_t row, bool to_row, const std::vector<matrix<Real>*>& parts, std::size_t part_row) {
    const std::span<const Real> here = G.row(row), there(reference);
    std::fill(decays.begin(), decays.end(), Real(1));
    forward_.decay_row(decays, to_row ? here : there, to_row ? there : here);
    for (matrix<Real>* part : parts) {
      for (std::size_t c = 0; c < channels; ++c) (*part)(part_row, c) *= decays[c];
    }
  };
  std::vector<matrix<Real>> right;
  for (const decayed_sum& one : all) right.push_back(rows_of(*one.in_blocks, from.first, from.last - from.first));
  for (std::size_t j = from.first; j < from.last; ++j) decay(j, !rows, {&right[0], &right[1]}, j - from.first);
  std::vector<matrix<Real>> sums;
  for (std::size_t n = 0; n < all.size(); ++n) {
    matrix<Real> left(to.last - to.first, from.last - from.first, Real(0));
    for (std::size_t i = to.first; i < to.last; ++i) {
      for (std::size_t j = from.first; j < from.last; ++j) left(i - to.first, j - from.first) = weight(*all[n].m, i, j);
    }
    sums.push_back(times(std::move(left), std::move(right[n]), site_.declared.intra_operand));
  }
  for (std::size_t i = to.first; i < to.last; ++i) {
    decay(i, rows, {&sums[0], &sums[1]}, i - to.first);
    for (std::size_t n = 0; n < all.size(); ++n) {
      for (std::size_t c = 0; c < channels; ++c) all[n].out(i, c) += sums[n](i - to.first, c);
    }
  }
}

// Blocks as [gate] form has them. The reference of a block of rows is its first gate; of one that sums over later rows, its last.
template <class Real>
void adjoint<Real>::add_products(decayed_sums& all, const matrix<Real>& G, bool rows) {
  const std::size_t count = G.rows(), block = site_.plan.gate_block;
  const auto gate_of = [&](std::size_t row) { return std::vector<Real>(G.row(row).begin(), G.row(row).end()); };
  const gate_form form = site_.declared.blocks.value_or(site_.plan.form);
  if (form == gate_form::difference) return;
  if (form == gate_form::factored)
    return add_products(all, G, rows, {0, count}, {0, count}, std::vector<Real>(G.cols(), Real(0)));
  for (std::size_t first = 0; first < count; first += block) {
    const row_range here{first, std::min(first + block, count)};
    add_products(all, G, rows, here, rows ? row_range{0, first} : row_range{here.last, count},
                 gate_of(rows ? first : here.last - 1));
    if (form == gate_form::reference_block) continue;
    const std::size_t inside = form == gate_form::first_block ? first : std::min(first + block / 2, count - 1);
    add_products(all, G, rows, here, here, shifted_reference(gate_of(inside), site_.plan, options_.natural_exponents));
  }
}

template <class Real>
void adjoint<Real>::add_terms(decayed_sums& by_rows, decayed_sums& by_columns, const matrix<Real>& G, const row_range& block) {
  struct term {
    Real* out;
    const Real* x;
    Real weight;
  };
  const std::size_t channels = G.cols();
  std::vector<Real> decays(channels);
  for (std::size_t j = block.first; j < block.last; ++j) {
    for (std::size_t i = j; i < block.last; ++i) {
      for (std::size_t c = 0; c < channels; ++c) decays[c] = G(i, c) - G(j, c);
      forward_.exp2_of_all(decays);
      const auto term_of = [](decayed_sum& one, std::size_t to, std::size_t from, Real weight) {
        return term{one.out.row(to).data(), one.x->row(from).data(), weight};
      };
      const term terms[] = {term_of(by_rows[0], i, j, (*by_rows[0].m)(i, j)), term_of(by_rows[1], i, j, (*by_rows[1].m)(i, j)),
                            term_of(by_columns[0], j, i, (*by_columns[0].m)(i, j)),
                            term_of(by_columns[1], j, i, (*by_columns[1].m)(i, j))};
      deltaproof::detail::in_widest_vectors([&, decay = decays.data()]() __attribute__((always_inline)) {
        for (const term& t : terms) {
          for (std::size_t c = 0; c < channels; ++c) t.out[c] += t.weight * t.x[c] * decay[c];
        }
      });
    }
  }
}

template <class Real>
void adjoint<Real>::add_decayed(decayed_sums& by_rows, decayed_sums& by_columns, const matrix<Real>& G) {
  for (decayed_sums* all : {&by_rows, &by_columns}) {
    for (decayed_sum& one : *all) one.out = matrix<Real>(G.rows(), G.cols(), Real(0));
  }
  add_products(by_rows, G, true);
  add_products(by_columns, G, false);
  const gate_form form = site_.declared.blocks.value_or(site_.plan.form);
  if (form != gate_form::difference && form != gate_form::reference_block) return;
  const std::size_t block = form == gate_form::difference ? G.rows() : site_.plan.gate_block;
  for (std::size_t first = 0; first < G.rows(); first += block)
    add_terms(by_rows, by_columns, G, {first, std::min(first + block, G.rows())});
  if (!options_.in_any_order) return;
  const auto guard_each = [&](decayed_sums& all, bool rows) {
    for (decayed_sum& one : all) {
      for (std::size_t i = 0; i < G.rows(); ++i) {
        for (std::size_t c = 0; c < G.cols(); ++c) {
          guard(one.out(i, c), G.rows(), [&](std::size_t j) {
            const Real weight = rows ? (*one.m)(i, j) : (*one.m)(j, i);
            return weight == 0 ? Real(0) : weight * (*one.x)(j, c) * std::exp2(rows ? G(i, c) - G(j, c) : G(j, c) - G(i, c));
          });
        }
      }
    }
  };
  guard_each(by_rows, true);
  guard_each(by_columns, false);
}

template <class Real>
void adjoint<Real>::planted(backward_step which, bool input) {
  if (options_.planted == nullptr || options_.planted->code->backward == nullptr) return;
  for (const planted_backward_hook& h : options_.planted->code->backward->hooks) {
    if (h.at != which || h.before != input) continue;
    call(h.change, site_);
    if (!input) store_again(site_.now);
  }
}

// What a fault left is stored as what it stands for would be.
template <class Real>
void adjoint<Real>::store_again(chunk& c) {
  const backward_variant& b = site_.declared;
  const auto store = [](matrix<Real>& m, const format& to) { narrow(std::span<Real>(m.data(), m.size()), {to, false}); };
  store(c.dv_local, b.dv_local);
  store(c.dv2, b.dv2);
  store(c.dw, b.dw);
  store(c.ds, b.ds);
  store(c.dA, b.dA);
  store(c.dg, b.dg);
  store(site_.dg_local, b.dg);
}

template <class Real>
template <class Compute, class Keep>
void adjoint<Real>::stage(backward_step which, const Compute& compute, const Keep& keep) {
  bool reads_wrongly = false;
  if (options_.planted != nullptr && options_.planted->code->backward != nullptr) {
    for (const planted_backward_hook& h : options_.planted->code->backward->hooks)
      reads_wrongly = reads_wrongly || (h.at == which && h.before);
  }
  if (reads_wrongly) {
    chunk right = site_.now;
    planted(which, true);
    compute(site_.now);
    keep(right, site_.now);
    site_.now = std::move(right);
  } else {
    compute(site_.now);
  }
  planted(which, false);
}

// The chain from the effective step to beta and k, and every gradient in the format it leaves in.
template <class Real>
void adjoint<Real>::finish() {
  const backward_variant& b = site_.declared;
  const head_input& in = site_.in;
  site_.d_beta = site_.d_step;
  for (std::size_t r = 0; r < in.rows(); ++r) {
    Real& d = site_.d_beta[r];
    const Real step = site_.all.step[r];
    if (b.dbeta_form == step_gradient::divide) d = (step * d) / (step + Real(1e-10));
    d = narrowed(d, {b.dbeta, false});
    if (in.rule == rule_kind::euler && in.activation == activation_kind::none) continue;
    Real norm = 0;
    for (const Real x : site_.all.k.row(r)) norm += x * x;
    const step_slopes slopes = slopes_of_step(in, in.beta[r], static_cast<double>(norm));
    for (std::size_t m = 0; m < in.key_dim() && in.rule != rule_kind::euler; ++m) {
      Real& dk = site_.dk(r, m);
      dk = narrowed(dk + d * static_cast<Real>(slopes.by_key) * site_.all.k(r, m), {b.dk, false});
    }
    d *= static_cast<Real>(slopes.by_beta);
  }
  site_.dq = narrow_copy(std::move(site_.dq), {b.dq, false});
  planted(backward_step::head, false);
  narrow(std::span<Real>(site_.d_beta), {in.beta_format, false});
  site_.dv = narrow_copy(std::move(site_.dv), {in.x, false});
  site_.dg = narrow_copy(std::move(site_.dg), {in.g_format, false});
  for (matrix<Real>& dg : other_dg_) dg = narrow_copy(std::move(dg), {in.g_format, false});
}

template <class Real>
backward_site<Real>& adjoint<Real>::run() {
  const head_input& in = site_.in;
  const std::size_t T = in.tokens(), R = in.rows(), K = in.key_dim(), V = in.value_dim(), gates = in.g.cols();
  site_.now.d_state =
      narrow_copy(site_.d.d_final_state.empty() ? matrix<Real>(K, V, Real(0)) : cast<Real>(site_.d.d_final_state), kept());
  site_.dq = matrix<Real>(T, K, Real(0));
  site_.dk = matrix<Real>(R, K, Real(0));
  site_.dv = matrix<Real>(R, V, Real(0));
  site_.d_step.assign(R, Real(0));
  site_.dg_local = matrix<Real>(R, gates, Real(0));
  site_.dg = matrix<Real>(T, gates, Real(0));
  planted(backward_step::start, false);
  if (site_.plan.path == path_kind::chunk) {
    other_local_.assign(other_orders_.size(), site_.dg_local);
    other_dg_.assign(other_orders_.size(), site_.dg);
    run_chunks();
  } else {
    run_tokens();
  }
  finish();
  return site_;
}

}  // namespace deltaproof::emulation_detail
