// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the gates of a chunk gain in the backward pass, and their sums over a chunk. Included by the two files that compile
// `adjoint`.
#pragma once

#include "emulate/backward_body.hpp"

namespace deltaproof::emulation_detail {

template <class Real>
void adjoint<Real>::gate_gradients(chunk& c) {
  c.dg = matrix<Real>(c.rows, c.G.cols(), Real(0));
  if (c.G.cols() == 0) return;
  if (by_residual()) {
    add_dg_of_residual(c);
  } else if (site_.all.channels) {
    add_dg_of_channels(c);
  } else {
    add_dg_of_rows(c);
  }
  if (options_.noise_ulps > 0) fuse_products(c);
  c.dg = narrow_copy(std::move(c.dg), {site_.declared.dg, false});
  for (std::vector<Real>& end : other_ends_) narrow(std::span<Real>(end), {site_.declared.dg, false});
}

template <class Real>
std::vector<std::vector<Real>> adjoint<Real>::decayed_state_sums(const chunk& c, bool by_row) {
  const backward_variant& b = site_.declared;
  std::vector<std::vector<Real>> out{state_sums(c.h, c.dh, b, b.state_sum_order, by_row)};
  for (const tile_order order : other_orders_) out.push_back(state_sums(c.h, c.dh, b, order, by_row));
  for (std::size_t m = 0; options_.in_any_order && m < out.front().size(); ++m) {
    const std::size_t V = c.h.cols();
    const auto term = [&](std::size_t j) { return c.h.data()[m * V + j] * c.dh.data()[m * V + j]; };
    for (std::vector<Real>& sums : out) guard(sums[m], by_row ? V : c.h.size(), term);
  }
  for (std::size_t m = 0; m < out.front().size(); ++m) {
    const Real decay = forward_.exp2_of(c.G(c.rows - 1, m));
    for (std::vector<Real>& sums : out) sums[m] *= decay;
  }
  return out;
}

template <class Real>
void adjoint<Real>::add_at_end(chunk& c, const std::vector<std::vector<Real>>& at_end) {
  const std::span<Real> last = c.dg.row(c.rows - 1);
  other_ends_.assign(other_orders_.size(), std::vector<Real>(last.begin(), last.end()));
  for (std::size_t m = 0; m < last.size(); ++m) {
    last[m] += at_end.front()[m];
    for (std::size_t o = 0; o < other_ends_.size(); ++o) other_ends_[o][m] += at_end[o + 1][m];
  }
}

template <class Real>
void adjoint<Real>::fuse_products(chunk& c) {
  const auto lost = [](Real x, Real y) {
    const Real product = x * y;
    if (!std::isfinite(product)) return Real(0);
    if constexpr (sizeof(Real) == sizeof(double)) return std::fma(x, y, -product);
    return static_cast<Real>(static_cast<double>(x) * static_cast<double>(y) - static_cast<double>(product));
  };
  const bool channels = c.dg.cols() == c.k.cols(),
             by_query = !by_residual() && (site_.all.channels || site_.declared.dg_form == gate_gradient::rows);
  for (std::size_t r = 0; r < c.rows; ++r) {
    std::vector<Real> kept(c.dg.cols(), Real(0));
    for (std::size_t m = 0; m < c.k.cols(); ++m) {
      Real& to = kept[channels ? m : 0];
      to -= lost(c.k(r, m), c.dk_write(r, m));
      if (by_query) to += lost(c.q(r, m), c.dq_gated(r, m));
    }
    for (std::size_t m = 0; m < kept.size(); ++m) {
      c.dg(r, m) += kept[m];
      for (std::vector<Real>& end : other_ends_) end[m] += r + 1 == c.rows ? kept[m] : Real(0);
    }
  }
}

// A gate of one number: of each product that e^G is a factor of, its gradient times itself.
template <class Real>
void adjoint<Real>::add_dg_of_rows(chunk& c) {
  const backward_variant& b = site_.declared;
  std::vector<std::vector<Real>> at_end = decayed_state_sums(c, false);
  matrix<Real> overlaps = times(c.k, transpose(c.k));
  for (std::size_t r = 0; r < c.rows; ++r) {
    for (Real& x : overlaps.row(r)) x *= c.step[r];
  }
  const bool rows = b.dg_form == gate_gradient::rows, apart = b.diagonal == diagonal_terms::excluded;
  const matrix<Real> products = rows ? matrix<Real>() : times(c.q, transpose(c.k));
  const matrix<Real> keys = gated_keys(c);
  const std::vector<Real> written = row_sums(c.dk_write, c.k), by_query = row_sums(rows ? c.dq_gated : c.dq_read, c.q),
                          by_key = row_sums(rows ? c.dk_gated : c.dk_write, c.k), by_transform = row_sums(c.dk_transform, keys);
  for (std::size_t r = 0; r < c.rows; ++r) {
    for (std::vector<Real>& end : at_end) end.front() += written[r];
    c.dg(r, 0) += by_query[r] - by_key[r] + by_transform[r] * c.step[r];
  }
  matrix<Real> across(c.rows, c.rows, Real(0));
  for (std::size_t i = 0; i < c.rows; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Real both = c.dA(i, j) * overlaps(i, j) + (rows ? Real(0) : c.ds(i, j) * products(i, j));
      c.dg(i, 0) += both;
      c.dg(j, 0) -= both;
      across(i, j) = both;
    }
    if (rows || apart) continue;
    c.dg(i, 0) += c.ds(i, i) * products(i, i);
    c.dg(i, 0) -= c.ds(i, i) * products(i, i);
  }
  for (std::size_t r = 0; options_.in_any_order && r < c.rows; ++r) {
    const std::array<Real, 3> own{by_query[r], -by_key[r], by_transform[r] * c.step[r]};
    guard(c.dg(r, 0), c.rows + own.size(),
          [&](std::size_t j) { return j < c.rows ? (j < r ? across(r, j) : -across(j, r)) : own[j - c.rows]; });
  }
  add_at_end(c, at_end);
}

template <class Real>
void adjoint<Real>::add_dg_of_channels(chunk& c) {
  const std::size_t channels = c.k.cols();
  std::vector<std::vector<Real>> at_end = decayed_state_sums(c, true);
  const matrix<Real> keys = gated_keys(c);
  for (std::size_t r = 0; r < c.rows; ++r) {
    for (std::size_t m = 0; m < channels; ++m) {
      const Real k = c.k(r, m), q = c.q(r, m), written = k * c.dk_write(r, m);
      for (std::vector<Real>& end : at_end) end[m] += written;
      Real sum = q * c.dq_read(r, m) - written;
      sum += keys(r, m) * c.dk_transform(r, m) * c.step[r];
      c.dg(r, m) +=
          sum + (q * c.dq_gated(r, m) + (c.dk_overlap(r, m) * c.step[r] - c.dk_gated(r, m) - c.dk_overlapped(r, m)) * k);
      if (!options_.in_any_order) continue;
      const std::array<Real, 7> parts{q * c.dq_read(r, m),
                                      -written,
                                      keys(r, m) * c.dk_transform(r, m) * c.step[r],
                                      q * c.dq_gated(r, m),
                                      c.dk_overlap(r, m) * c.step[r] * k,
                                      -c.dk_gated(r, m) * k,
                                      -c.dk_overlapped(r, m) * k};
      guard(c.dg(r, m), parts.size(), [&](std::size_t part) { return parts[part]; });
    }
  }
  add_at_end(c, at_end);
}

// From the end of each chunk to its start.
template <class Real>
void adjoint<Real>::cumulate(const matrix<Real>& dg_local, matrix<Real>& dg) {
  const narrowing to{site_.declared.dg, false};
  const std::size_t n = site_.all.steps_per_token, C = site_.plan.chunk, rows = dg_local.rows();
  if (scans_dg_ && !options_.in_any_order) {
    matrix<Real> sums = dg_local;
    for (std::size_t step = 1; step < C; step *= 2) {
      for (std::size_t row = 0; row + step < rows; ++row) {
        if (row / C != (row + step) / C) continue;
        for (std::size_t m = 0; m < sums.cols(); ++m) sums(row, m) = narrowed(sums(row, m) + sums(row + step, m), to);
      }
    }
    for (std::size_t row = 0; row < rows; row += n)
      std::copy(sums.row(row).begin(), sums.row(row).end(), dg.row(row / n).begin());
    return;
  }
  for (std::size_t m = 0; m < dg_local.cols(); ++m) {
    Real sum = 0;
    for (std::size_t row = rows; row-- > 0;) {
      if ((row + 1) % C == 0) sum = 0;
      sum = narrowed(sum + dg_local(row, m), to);
      if (options_.in_any_order)
        guard(sum, std::min(rows, (row / C + 1) * C) - row, [&](std::size_t i) { return dg_local(row + i, m); });
      if (row % n == 0) dg(row / n, m) = sum;
    }
  }
}

}  // namespace deltaproof::emulation_detail
