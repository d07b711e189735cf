// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Exponentials of gates by the units of a plan, and the decays within a chunk. Included by machine_chunk.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numbers>
#include <utility>

#include "emulate/machine_body.hpp"

namespace deltaproof::emulation_detail {

namespace {

/// Each entry times the decay of its channel, or all times the one decay that there is.
template <class Real>
void multiply_row(std::span<Real> row, std::span<const Real> decays) {
  if (decays.size() == 1) {
    for (Real& x : row) x *= decays[0];
  } else {
    for (std::size_t ch = 0; ch < row.size(); ++ch) row[ch] *= decays[ch];
  }
}

}  // namespace

// 2^0 is exact in every unit.
template <class Real>
void machine<Real>::unit_errors(std::span<Real> y, std::span<const Real> exponents) {
  using bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  constexpr bits exponent_field = ~((bits{1} << (std::numeric_limits<Real>::digits - 1)) - 1) & (~bits{0} >> 1);
  const Real unit = std::numeric_limits<Real>::epsilon() * static_cast<Real>(site_.plan.exp2_ulps);
  deltaproof::detail::in_widest_vectors([&, errs_by = exp2_unit_]() __attribute__((always_inline)) {
    const Real* const x = exponents.data();
    Real* const out = y.data();
    for (std::size_t i = 0, count = y.size(); i < count; ++i) {
      const bits power = std::bit_cast<bits>(out[i]) & exponent_field;
      // Without branches: a masked error of 0 is added where there is none.
      const bits errs = static_cast<bits>(
          -static_cast<std::make_signed_t<bits>>(static_cast<bits>(x[i] != 0) & static_cast<bits>(power != exponent_field)));
      const Real error = std::bit_cast<Real>(power) * unit * errs_by.of(std::bit_cast<bits>(x[i]));
      out[i] += std::bit_cast<Real>(std::bit_cast<bits>(error) & errs);
    }
  });
}

/// The largest of what was seen; a NaN stays.
template <class Real>
void see_largest(Real& largest, std::span<const Real> x) {
  unsigned above = 0;
  deltaproof::detail::in_widest_vectors([&, most = largest]() __attribute__((always_inline)) {
    unsigned any = 0;
    for (const Real value : x) any |= static_cast<unsigned>(!(value <= most));
    above = any;
  });
  if (above == 0) return;
  for (const Real value : x) {
    if (!(value <= largest)) largest = largest == largest ? value : largest;
  }
}

template <class Real>
Real machine<Real>::exp2_of(Real x) {
  if (x == 0 && !site_.plan.clip) return 1;  // exact in every unit
  exp2_of_all({&x, 1});
  return x;
}

template <class Real>
Real machine<Real>::clipped(Real x, Real unit) const {
  if (!site_.plan.clip) return x;
  const auto& [low, high] = *site_.plan.clip;
  return std::clamp(x, static_cast<Real>(low) * unit, static_cast<Real>(high) * unit);  // a NaN stays
}

template <class Real>
void machine<Real>::exp2_of_all(std::span<Real> x) {
  const narrowing to{site_.plan.decay, false};
  const bool coarse = to.to.precision < fp32.precision;
  if (coarse) narrow(x, to);
  if (site_.plan.clip) {
    for (Real& y : x) y = clipped(y, options_.natural_exponents ? Real(1) : std::numbers::log2e_v<Real>);
  }
  const bool inexact = inexact_units_ && site_.plan.exp2_ulps > 0;
  if (inexact) exponents_.assign(x.begin(), x.end());
  see_largest<Real>(largest_exponent_, x);
  if (options_.natural_exponents) {
    for (Real& y : x) y = static_cast<Real>(std::exp(static_cast<double>(y)));
  } else {
    exp2_all(x);
  }
  if (inexact) unit_errors(x, exponents_);
  if (site_.plan.flush_to_zero) {
    for (Real& y : x) y = y < std::numeric_limits<float>::min() ? Real(0) : y;
  }
  if (coarse) narrow(x, to);
  see_largest<Real>(largest_factor_, x);
}

template <class Real>
typename machine<Real>::kept_decays& machine<Real>::decays_of(const matrix<Real>& G) {
  const matrix<Real>& of = kept_decays_.of;
  // By their bits: a NaN is the same again.
  const bool same =
      of.rows() == G.rows() && of.cols() == G.cols() && std::memcmp(of.data(), G.data(), G.size() * sizeof(Real)) == 0;
  if (!same) {
    kept_decays_ = kept_decays();
    kept_decays_.of = G;
  }
  return kept_decays_;
}

template <class Real>
const matrix<Real>& machine<Real>::decays_from_start(const matrix<Real>& G) {
  matrix<Real>& decays = decays_of(G).from_start;
  if (decays.empty() && !G.empty()) {
    decays = G;
    exp2_of_all(decays.entries());
  }
  return decays;
}

template <class Real>
const typename machine<Real>::decays_of_block& machine<Real>::decays_by_reference(const matrix<Real>& G,
                                                                                  std::span<const std::size_t> rows,
                                                                                  std::size_t first, std::size_t last,
                                                                                  const std::vector<Real>& reference) {
  kept_decays& known = decays_of(G);
  for (const decays_of_block& block : known.blocks) {
    if (block.first == first && block.last == last && std::ranges::equal(block.rows, rows) && block.reference == reference)
      return block;
  }
  decays_of_block made{{rows.begin(), rows.end()},     first, last, reference, matrix<Real>(rows.size(), G.cols()),
                       rows_of(G, first, last - first)};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t ch = 0; ch < G.cols(); ++ch) made.left(i, ch) = G(rows[i], ch) - reference[ch];
  }
  for (std::size_t j = 0; j < made.right.rows(); ++j) {
    for (std::size_t ch = 0; ch < G.cols(); ++ch) made.right(j, ch) = reference[ch] - made.right(j, ch);
  }
  exp2_of_all(made.left.entries());
  exp2_of_all(made.right.entries());
  return known.blocks.emplace_back(std::move(made));
}

template <class Real>
std::span<const Real> machine<Real>::decays_of_pairs(const matrix<Real>& G) {
  std::vector<Real>& pairs = decays_of(G).pairs;
  if (!pairs.empty()) return pairs;
  pairs.resize(G.rows() * (G.rows() + 1) / 2);
  for (std::size_t i = 0, at = 0; i < G.rows(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) pairs[at++] = G(i, 0) - G(j, 0);
  }
  exp2_of_all(pairs);
  return pairs;
}

// e^x of one log decay. An approximate unit takes 2^(x / ln 2), in Real: no format of the plan rounds that exponent.
template <class Real>
Real machine<Real>::exp_of(Real x) {
  if (x == 0 && !site_.plan.clip) return 1;
  x = clipped(x, Real(1));
  Real y = std::exp(x), exponent = x * static_cast<Real>(std::numbers::log2e);
  if (inexact_units_ && site_.plan.exp2_ulps > 0) {
    exp2_all({&(y = exponent), 1});
    unit_errors({&y, 1}, {&exponent, 1});
  }
  see(formed::gate_exponent, x > 0 ? exponent : Real(0));
  see(formed::gate_factor, y);
  return site_.plan.flush_to_zero && y < std::numeric_limits<float>::min() ? Real(0) : y;
}

template <class Real>
void machine<Real>::decay_row(std::span<Real> row, std::span<const Real> to, std::span<const Real> from) {
  if (!site_.all.channels) {
    const Real e = exp2_of(from.empty() ? to[0] : to[0] - from[0]);
    for (Real& x : row) x *= e;
    return;
  }
  decays_.assign(to.begin(), to.end());
  for (std::size_t ch = 0; ch < from.size(); ++ch) decays_[ch] -= from[ch];
  exp2_of_all(decays_);
  multiply_row<Real>(row, decays_);
}

}  // namespace deltaproof::emulation_detail
