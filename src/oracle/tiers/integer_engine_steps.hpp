// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Decay, prediction, write and read-out of `engine`.
#pragma once

#include "oracle/tiers/integer_engine.hpp"

namespace deltaproof::tiers::integer_detail {

inline void engine::decay(row_state& row, const integer_token& token, std::size_t limbs, scratch& s) const {
  const bool shared = token.decay.size() == 1;
  const auto each = [&](decay_value kind) {
    return std::all_of(token.decay.begin(), token.decay.end(), [&](decay_value d) { return d == kind; });
  };
  if (each(decay_value::one)) return;
  if (each(decay_value::zero)) {
    std::fill(row.x.begin(), row.x.end(), 0);
    row.error = row.top = 0;
    row.zero = true;
    return;
  }
  if (!row.zero && token.decay_largest * row.top >= quarter) {
    refresh(row);
    int exponent = 0;
    if (token.decay_largest * row.top >= quarter) {
      static_cast<void>(std::frexp(token.decay_largest * row.top, &exponent));
      static_cast<void>(make_room(row, exponent + 2 + headroom));
    }
  }
  std::size_t inexact = 0;
  const std::size_t n = row.limbs;
  s.product.resize(n + limbs);
  for (std::size_t j = 0; j < keys_ && !row.zero; ++j) {
    const std::size_t c = shared ? 0 : j;
    mp_limb_t* x = &row.x[j * n];
    if (token.decay[c] == decay_value::one) continue;
    if (token.decay[c] == decay_value::zero) {
      std::fill_n(x, n, 0);
      continue;
    }
    const bool negative = x[n - 1] >> 63 != 0;
    if (negative) negate(x, n);
    mpn_mul(s.product.data(), &token.decay_m[c * limbs], static_cast<mp_size_t>(limbs), x, static_cast<mp_size_t>(n));
    // A factor of more limbs than are kept is a multiple of 2^64: then nothing is dropped, and zeros come in below.
    const long shift = token.decay_shift[c];
    const bool lost = std::any_of(s.product.begin(), s.product.begin() + std::max(0L, shift), [](mp_limb_t l) { return l != 0; });
    for (std::size_t l = 0; l < n; ++l) {
      const long from = static_cast<long>(l) + shift;
      x[l] = from >= 0 && from < static_cast<long>(n + limbs) ? s.product[static_cast<std::size_t>(from)] : 0;
    }
    if (lost && s.product[static_cast<std::size_t>(shift) - 1] >> 63 != 0) mpn_add_1(x, x, static_cast<mp_size_t>(n), 1);
    if (negative) negate(x, n);
    inexact += lost ? 1 : 0;
  }
  // Half a unit of the factor's last place, on the state before.
  long least = std::numeric_limits<long>::max();
  for (std::size_t c = 0; c < token.decay.size(); ++c) {
    if (token.decay[c] == decay_value::other) least = std::min(least, token.decay_shift[c]);
  }
  const bool enclosed = least != std::numeric_limits<long>::max();
  const double half = 0.5 + 0x1p-20;
  double e =
      product({token.decay_largest + (enclosed ? scaled(half, -64 * least) : 0), row.error}) + rounding(inexact) * grid_unit(row);
  if (enclosed) e += half * norm(row, ask_.bits - 64 * least);
  row.error = e * up;
  row.top = token.decay_largest * row.top * up + least_top(n);
}

inline void engine::dot(const row_state& row, const integer_vector& k, integer& out, scratch& s) const {
  const std::size_t n = row.limbs;
  if (k.limbs == 1) {
    // Two sums of non-negative multipliers, then their difference.
    s.low.assign(2 * (n + 2), 0);
    mp_limb_t* plus = s.low.data();
    mp_limb_t* minus = plus + n + 2;
    const auto both = [&](auto size) {
      constexpr std::size_t N = decltype(size)::value;
      const wide_signed a = sum_products<N>(row.x.data(), n, k, 0, k.positive, plus);
      const wide_signed b = sum_products<N>(row.x.data(), n, k, k.positive, k.channel.size(), minus);
      plus[n] = static_cast<mp_limb_t>(a);
      plus[n + 1] = static_cast<mp_limb_t>(a >> 64);
      minus[n] = static_cast<mp_limb_t>(b);
      minus[n + 1] = static_cast<mp_limb_t>(b >> 64);
    };
    switch (n) {
      case 3:
        both(std::integral_constant<std::size_t, 3>{});
        break;
      case 5:
        both(std::integral_constant<std::size_t, 5>{});
        break;
      default:
        both(std::integral_constant<std::size_t, 0>{});
    }
    mpn_sub_n(plus, plus, minus, static_cast<mp_size_t>(n + 2));
    to_integer(out, plus, n + 2);
    return;
  }
  const std::size_t m = k.limbs, size = n + m + 1;
  s.low.assign(size, 0);
  s.product.resize(n + m);
  s.factor.resize(n);
  for (std::size_t i = 0; i < k.channel.size(); ++i) {
    const mp_limb_t* x = &row.x[k.channel[i] * n];
    const bool negative = x[n - 1] >> 63 != 0;
    if (negative) mpn_neg(s.factor.data(), x, static_cast<mp_size_t>(n));
    if (!negative) std::copy_n(x, n, s.factor.data());
    multiply(s.product.data(), s.factor.data(), n, &k.magnitude[i * m], m);
    if (negative == (i >= k.positive)) {
      mpn_add(s.low.data(), s.low.data(), static_cast<mp_size_t>(size), s.product.data(), static_cast<mp_size_t>(n + m));
    } else {
      mpn_sub(s.low.data(), s.low.data(), static_cast<mp_size_t>(size), s.product.data(), static_cast<mp_size_t>(n + m));
    }
  }
  to_integer(out, s.low.data(), size);
}

inline bool engine::step(row_state& row, const integer_step& step, double v, scratch& s) const {
  const integer_vector& k = step.key;
  if (k.limbs == 0) return true;
  const long cut = exact_ ? 0 : 64 * (static_cast<long>(k.limbs) - 1);  // dropped from each product
  const long kept = exact_ ? 64 * (static_cast<long>(k.limbs) - 1) : 0;
  integer_scalar& given = s.given;
  given.set(v);
  double innovation = 0, predicted = 0;  // |v - n p|, |n p|
  bool lost = false;
  for (;;) {
    // r = v - n p, exactly.
    long g = given.exponent;
    predicted = 0;
    if (row.zero) {
      mpz_set(s.r.get(), given.m.get());
    } else {
      dot(row, k, s.p, s);
      long at = k.exponent + row.grid;
      if (step.normalised) {
        mpz_mul(s.p.get(), s.p.get(), step.inverse.m.get());
        at += step.inverse.exponent;
        predicted = magnitude(s.p.get(), at);
      }
      if (v == 0 || mpz_sgn(s.p.get()) == 0) {
        if (v == 0) mpz_neg(s.r.get(), s.p.get());
        if (v == 0) g = at;
        if (v != 0) mpz_set(s.r.get(), given.m.get());
      } else {
        if (std::abs(given.exponent - at) > farthest) return false;
        if (given.exponent >= at) {
          mpz_mul_2exp(s.r.get(), given.m.get(), static_cast<mp_bitcnt_t>(given.exponent - at));
          g = at;
        } else {
          mpz_mul_2exp(s.p.get(), s.p.get(), static_cast<mp_bitcnt_t>(at - given.exponent));
          mpz_set(s.r.get(), given.m.get());
        }
        mpz_sub(s.r.get(), s.r.get(), s.p.get());
      }
    }
    innovation = magnitude(s.r.get(), g);
    mpz_mul(s.w.get(), s.r.get(), step.write.m.get());
    g += step.write.exponent;
    if (mpz_sgn(s.w.get()) == 0) break;
    const auto bits = static_cast<long>(mpz_sizeinbase(s.w.get(), 2));
    int norm_bits = 0;
    static_cast<void>(std::frexp(k.norm, &norm_bits));
    if (row.zero) {                                              // any grid will do
      const long top = bits + g + k.top_exponent() + norm_bits;  // |w| |k| < 2^top
      if (exact_) {
        row.grid = g + static_cast<long>(mpz_scan1(s.w.get(), 0)) + k.exponent;
        row.limbs = static_cast<std::size_t>(std::max(1L, (top - row.grid + 3 + 63) / 64));
        if (row.limbs * 64 > exact_bits_cap) return false;
        row.x.assign(keys_ * row.limbs, 0);
      } else {
        row.grid = std::max(top + 2 + headroom, -deepest) - 64 * static_cast<long>(row.limbs);
      }
      row.top = 0;
    }
    // Onto the grid on which the products with the key are exact.
    long shift = row.grid - k.exponent - cut - g;
    lost = shift > 0 && mpz_scan1(s.w.get(), 0) < static_cast<mp_bitcnt_t>(shift);
    if (shift < -farthest) return false;
    if (lost && exact_) {
      const auto below = (static_cast<std::size_t>(shift) - mpz_scan1(s.w.get(), 0) + 63) / 64;
      if (!widen(row, row.limbs + below, below)) return false;
      shift -= 64 * static_cast<long>(below);
      lost = false;
    }
    if (shift > bits + 1) {
      mpz_set_ui(s.w.get(), 0);  // less than half a unit
    } else if (shift > 0) {
      if (lost) {
        mpz_set_ui(s.half.get(), 1);
        mpz_mul_2exp(s.half.get(), s.half.get(), static_cast<mp_bitcnt_t>(shift - 1));
        mpz_add(s.w.get(), s.w.get(), s.half.get());
      }
      mpz_fdiv_q_2exp(s.w.get(), s.w.get(), static_cast<mp_bitcnt_t>(shift));
    } else {
      mpz_mul_2exp(s.w.get(), s.w.get(), static_cast<mp_bitcnt_t>(-shift));
    }
    const double grown = magnitude(s.w.get(), kept - 64 * static_cast<long>(row.limbs)) * k.norm;
    if (row.top + grown < quarter) break;
    refresh(row);
    if (row.top + grown < quarter) break;
    int exponent = 0;
    if (!(grown < infinity)) return false;
    static_cast<void>(std::frexp(row.top + grown, &exponent));
    if (!make_room(row, exponent + 2 + headroom)) return false;
    lost = false;
  }
  account(row, step, lost, innovation, predicted, s);
  if (mpz_sgn(s.w.get()) != 0) write(row, step.key, cut, s);
  return true;
}

inline void engine::account(row_state& row, const integer_step& step, bool lost, double innovation, double predicted,
                            const scratch& s) const {
  if (exact_) return;
  const integer_vector& k = step.key;
  double e = product({step.rho, row.error});
  if (lost) e += product({0.5 * k.norm, grid_unit(row)});
  const long top = k.top_exponent();
  const double kappa = scaled(k.norm, top);
  const integer_scalar& a = step.write;
  constexpr double more = 1 + 0x1p-20;
  const double strength = a.size + product({a.floor, unit_});  // >= |a|, up to `more`
  if (a.relative > 0) {
    const double written = product({magnitude(s.w.get(), row.grid), k.norm});  // kappa |w|
    e += product({a.relative * more, written + 0.5 * k.norm * scaled(1, row.grid)});
    if (step.normalised) e += product({step.inverse.relative * more, kappa, strength, predicted});
    e += product({a.floor, more, kappa, innovation});
  }
  if (k.rounded > 0) {
    const double off = scaled(k.rounded, k.exponent + ask_.bits);  // |k - k^| in units
    e += product({magnitude(s.w.get(), row.grid + ask_.bits - 64 * (static_cast<long>(k.limbs) - 1)), k.rounded});
    e += product({off * more, strength, step.normalised ? step.inverse.size : 1.0, kappa, norm(row)});
  }
  if (lost || a.relative > 0 || k.rounded > 0) e += tiny;
  row.error = std::isnan(e) ? infinity : e * up;
}

inline void engine::write(row_state& row, const integer_vector& k, long cut, scratch& s) const {
  const std::size_t n = row.limbs, m = k.limbs;
  const std::size_t size = mpz_size(s.w.get());
  const bool negative = mpz_sgn(s.w.get()) < 0;
  const mp_limb_t* w = mpz_limbs_read(s.w.get());
  row.top = row.zero ? 0 : row.top;
  row.zero = false;
  const double grown = magnitude(s.w.get(), (exact_ ? 64 * (static_cast<long>(m) - 1) : 0) - 64 * static_cast<long>(n)) * k.norm;
  row.top = (row.top + grown) * up + least_top(n);
  if (m == 1) {
    s.factor.assign(n, 0);
    std::copy_n(w, std::min(size, n), s.factor.data());
    const auto all = [&](auto limbs) {
      constexpr std::size_t N = decltype(limbs)::value;
      for (std::size_t i = 0; i < k.channel.size(); ++i) {
        mp_limb_t* x = &row.x[k.channel[i] * n];
        if (negative == (i >= k.positive)) {
          add_product<N>(x, s.factor.data(), n, k.magnitude[i]);
        } else {
          subtract_product<N>(x, s.factor.data(), n, k.magnitude[i]);
        }
      }
    };
    switch (n) {
      case 3:
        all(std::integral_constant<std::size_t, 3>{});
        break;
      case 5:
        all(std::integral_constant<std::size_t, 5>{});
        break;
      default:
        all(std::integral_constant<std::size_t, 0>{});
    }
    return;
  }
  s.product.resize(size + m);
  const auto drop = static_cast<std::size_t>(cut / 64);
  std::size_t inexact = 0;
  for (std::size_t i = 0; i < k.channel.size(); ++i) {
    mp_limb_t* x = &row.x[k.channel[i] * n];
    multiply(s.product.data(), w, size, &k.magnitude[i * m], m);
    s.factor.assign(n, 0);
    for (std::size_t l = 0; l < n && l + drop < size + m; ++l) s.factor[l] = s.product[l + drop];
    const bool lost =
        std::any_of(s.product.begin(), s.product.begin() + static_cast<std::ptrdiff_t>(drop), [](mp_limb_t l) { return l != 0; });
    if (lost && s.product[drop - 1] >> 63 != 0) mpn_add_1(s.factor.data(), s.factor.data(), static_cast<mp_size_t>(n), 1);
    inexact += lost ? 1 : 0;
    if (negative == (i >= k.positive)) {
      mpn_add_n(x, x, s.factor.data(), static_cast<mp_size_t>(n));
    } else {
      mpn_sub_n(x, x, s.factor.data(), static_cast<mp_size_t>(n));
    }
  }
  row.error = (row.error + rounding(inexact) * grid_unit(row)) * up;
}

inline void engine::read(row_state& row, std::size_t r, std::size_t t, const integer_token& token, scratch& s) const {
  const integer_vector& q = token.query;
  if (q.limbs == 0 || scale_ == 0) {
    mpz_set_ui(s.o.get(), 0);
    give(output_, r, t, s, 0, 0);
    return;
  }
  integer_scalar& c = s.given;
  c.set(scale_);
  if (row.zero) {
    mpz_set_ui(s.o.get(), 0);
  } else {
    dot(row, q, s.o, s);
  }
  mpz_mul(s.o.get(), s.o.get(), c.m.get());
  long at = q.exponent + row.grid + c.exponent;
  const double inverse = token.normalised ? token.inverse.size : 1;
  if (token.normalised) {
    mpz_mul(s.o.get(), s.o.get(), token.inverse.m.get());
    at += token.inverse.exponent;
  }
  const double o = magnitude(s.o.get(), at);
  double units = product({c.size, inverse, q.norm, row.error}, q.top_exponent());
  if (token.normalised) units += product({token.inverse.relative, o}) + product({token.inverse.relative, unit_, units});
  if (q.rounded > 0) units += product({c.size, inverse, q.rounded, norm(row)}, q.exponent + ask_.bits);
  if (row.error > 0 || token.normalised || q.rounded > 0) units += tiny;
  const double radius = detail::absolute_radius(detail::finite_or_infinite(units * up), unit_);
  if (!(o + radius <= ask_.range.output)) row.within = false;
  give(output_, r, t, s, at, radius);
}

inline void engine::watch(row_state& row) const {
  if (ask_.range.state == infinity || (row.zero && row.error == 0)) return;
  const auto fits = [&] {
    return scaled(row.top, 64 * static_cast<long>(row.limbs) + row.grid) + row.error * unit_ <= ask_.range.state;
  };
  if (fits()) return;
  if (!row.zero) refresh(row);
  if (!fits()) row.within = false;
}

}  // namespace deltaproof::tiers::integer_detail
