// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/fp64_coefficients.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/tiers/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/tiers/fp64_coefficients.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef DELTAPROOF_TIERS_FP64_COEFFICIENTS_SHARED
#define DELTAPROOF_TIERS_FP64_COEFFICIENTS_SHARED
namespace deltaproof::tiers {

constexpr double narrow = 0x1p-300;  // nonzero keys, steps and queries lie between this and its inverse

}  // namespace deltaproof::tiers
#endif

HWY_BEFORE_NAMESPACE();
namespace deltaproof::tiers::HWY_NAMESPACE {
#include "oracle/tiers/lanes.inc"
#include "oracle/tiers/products.inc"

/// Line N from a computed sum of squares.
HWY_INLINE V norm_of(V sum, double n) {
  const V bound = hn::Sqrt(hn::MulAdd(sum, hn::Set(d, 1 + (n + 8) * 0x1p-52), hn::Set(d, n * 0x1p-1074)));
  return hn::IfThenElseZero(hn::Gt(sum, hn::Zero(d)), hn::Mul(bound, hn::Set(d, slack)));
}

/// A sum of squares that underflowed to 0 says nothing.
HWY_INLINE bool says_something(const double* square, const double* x, std::size_t n, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (square[i] == 0 && std::any_of(x + i * n, x + (i + 1) * n, [](double xi) { return xi != 0; })) return false;
  }
  return true;
}

/// The tokens of the steps [from, to).
struct token_range {
  std::size_t first, count;
  token_range(const sequence<double>& s, std::size_t from, std::size_t to)
      : first{from / s.steps_per_token}, count{std::min(s.tokens, (to - 1) / s.steps_per_token + 1) - first} {}
};

void products_of_block(const lowered<double>& in, bool paired, std::size_t from, std::size_t to, block_coefficients& c) {
  const auto& s = in.scan;
  const token_range tokens(s, from, to);
  const double* keys = s.k.data() + from * s.key_dim;
  const double* queries = s.q.data() + tokens.first * s.key_dim;
  if (paired) return products<true, true, true>(keys, queries, s.key_dim, to - from, c.norm, c.gram, c.query);
  products<true, false, false>(keys, keys, s.key_dim, to - from, c.norm, c.gram, c.query);
  products<true, false, false>(queries, queries, s.key_dim, tokens.count, c.query, c.gram, c.query);
}

void certificate(const lowered<double>& in, bool paired, std::size_t from, std::size_t to, double largest_v,
                 block_coefficients& c) {
  const auto& s = in.scan;
  const lowering_error& le = in.error;
  const std::size_t K = s.key_dim, L = lanes(), count = to - from;
  const double n = static_cast<double>(K), u = fp64_unit;
  const auto [token, tokens] = token_range(s, from, to);
  const double* keys = s.k.data() + from * K;
  const double* queries = s.q.data() + token * K;
  std::copy_n(s.step.data() + from, count, c.step);
  std::fill(c.step + count, c.step + c.room, 0.0);
  std::fill(c.norm + count, c.norm + c.room, 0.0);
  // The second step of a pair that the head's end cuts off: one vector need not reach it.
  c.half_square[count] = c.from_write[count] = 0;
  std::fill(c.query + tokens, c.query + c.room, 0.0);
  const double gamma = n / (1 - n * u) * slack;
  c.read = (gamma + le.query) * slack;
  const V one = hn::Set(d, 1.0), up = hn::Set(d, slack), zero = hn::Zero(d);
  const V low = hn::Set(d, narrow), high = hn::Set(d, 1 / narrow);
  const auto outside = [&](V x) HWY_ATTR { return hn::And(hn::Ne(x, zero), hn::Not(hn::And(hn::Ge(x, low), hn::Le(x, high)))); };
  auto bad = hn::Ne(zero, zero);
  const double c2 = 2 * (1 + 4 * u);
  // gamma/u of a prediction, more where it was corrected by a Gram product (line G): in every second step of a pair.
  double dots[2 * HWY_MAX_BYTES / sizeof(double) + 2];
  for (std::size_t i = 0; i < std::size(dots); ++i) dots[i] = paired && i % 2 == 1 ? gamma + 2 * (1 + 0x1p-30) : gamma;
  for (std::size_t r = 0; r < count; r += L) {
    const V square = hn::Load(d, c.norm + r);
    if (!hn::AllTrue(d, hn::Ne(square, zero)))
      c.fits = c.fits && says_something(c.norm + r, keys + r * K, K, std::min(L, count - r));
    const V b = hn::Load(d, c.step + r);
    const V kappa = norm_of(square, n);
    const V kappa_plus = hn::Mul(kappa, hn::Set(d, (1 + le.key * u) * slack));
    const V beta = hn::Abs(b);
    const V beta_plus = hn::Mul(hn::MulAdd(beta, hn::Set(d, 1 + le.step * u), hn::Set(d, le.step_floor * u)), up);
    bad = hn::Or(bad, hn::Or(outside(kappa), outside(beta)));
    // Line R.
    const V x = hn::Mul(b, square);
    const V off = hn::Add(hn::MulAdd(hn::Abs(x), hn::Set(d, (n + 16) * 0x1p-52), hn::Set(d, 0x1p-1000)),
                          hn::Mul(hn::Set(d, le.step_floor * u), hn::Mul(kappa_plus, kappa_plus)));
    const V rho = hn::Max(one, hn::Mul(hn::Add(hn::Abs(hn::Sub(one, x)), off), up));
    // Lines W and S.
    const V predicted = hn::Mul(hn::Mul(beta, hn::LoadU(d, dots + r % 2)), kappa);
    V m = hn::MulAdd(predicted, hn::Set(d, 1 + le.step * u), hn::Mul(hn::Set(d, le.step_floor), kappa));
    m = hn::MulAdd(hn::Mul(beta_plus, hn::Set(d, le.key)), kappa, m);
    m = hn::Mul(hn::Mul(m, kappa_plus), up);
    V w = hn::Mul(kappa_plus, hn::Set(d, c2 + le.step * (1 + c2 * u)));
    w = hn::Mul(hn::MulAdd(hn::Set(d, 1 + le.key), kappa, w), up);
    V k0 = hn::Mul(hn::Set(d, le.step_floor * largest_v), kappa_plus);
    k0 = hn::MulAdd(hn::Mul(hn::Set(d, underflow), hn::Add(one, kappa_plus)), hn::Add(one, beta_plus), k0);
    const auto live = hn::Gt(square, zero);
    hn::Store(hn::IfThenElseZero(live, b), d, c.step + r);
    hn::Store(kappa, d, c.norm + r);
    hn::Store(hn::Mul(hn::Mul(kappa, kappa), hn::Set(d, 0.5 * slack)), d, c.half_square + r);
    hn::Store(hn::IfThenElse(live, rho, one), d, c.rho + r);
    hn::Store(hn::IfThenElseZero(live, m), d, c.from_norm + r);
    hn::Store(hn::IfThenElseZero(live, w), d, c.from_write + r);
    hn::Store(hn::IfThenElseZero(live, k0), d, c.constant + r);
  }
  // Line G: what the next step's prediction owes to this write.
  const double owed = (gamma + 2.001) * (1 + le.key * u) * (1 + le.step * u) * slack;
  for (std::size_t r = 1; paired && r < count; r += 2) {
    c.from_write[r - 1] += owed * std::fabs(c.step[r]) * c.norm[r] * c.norm[r] * c.norm[r - 1];
  }
  c.growth = 1;
  c.from_norms = c.constants = 0;
  for (std::size_t i = 0; i < count; ++i) {
    c.growth *= c.rho[i];
    c.from_norms += c.from_norm[i] + 1;
    c.constants += c.constant[i];
  }
  for (std::size_t t = 0; t < tokens; t += L) {
    const V square = hn::Load(d, c.query + t);
    if (!hn::AllTrue(d, hn::Ne(square, zero)))
      c.fits = c.fits && says_something(c.query + t, queries + t * K, K, std::min(L, tokens - t));
    const V chi = hn::Mul(norm_of(square, n), hn::Set(d, (1 + le.query * u) * slack));
    bad = hn::Or(bad, outside(chi));
    hn::Store(chi, d, c.query + t);
  }
  c.fits = c.fits && hn::AllFalse(d, bad) && largest_v < 0x1p450;

  if (s.decay.empty()) return;
  const std::size_t channels = s.decay.size() == s.tokens ? 1 : K;
  for (std::size_t t = 0; t < tokens + 1 && token + t < s.tokens; ++t) {
    const double* a = s.decay.data() + (token + t) * channels;
    double largest = 0;
    for (std::size_t j = 0; j < channels; ++j) largest = std::max(largest, std::fabs(a[j]));
    c.decay_largest[t] = largest;
    c.decay_factor[t] = (largest * (1 + le.decay * u) + le.decay_floor * u) * slack;
    c.fits = c.fits && largest < 1 / narrow;
  }
  c.decay_local = (le.decay / (1 - u) + 1) * slack;
  c.decay_floor = le.decay_floor;
}

}  // namespace deltaproof::tiers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deltaproof::tiers {

HWY_EXPORT(certificate);
HWY_EXPORT(products_of_block);

void fp64_products(const lowered<double>& in, bool paired, std::size_t from, std::size_t to, block_coefficients& out) {
  HWY_DYNAMIC_DISPATCH(products_of_block)(in, paired, from, to, out);
}

void fp64_certificate(const lowered<double>& in, bool paired, std::size_t from, std::size_t to, double largest_v,
                      block_coefficients& out) {
  HWY_DYNAMIC_DISPATCH(certificate)(in, paired, from, to, largest_v, out);
}

}  // namespace deltaproof::tiers
#endif

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.tier_radius.write_line, float.tier_radius.gram_line, float.tier_radius.underflow_line,
// proved: float.radius_arithmetic.computed_in_fp64
