// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One row of integers on a grid of its own: its state, what it is made of and the steps it takes (integer_engine_steps.hpp).
#pragma once

#include <gmp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "oracle/mpfr_value.hpp"
#include "oracle/tiers/integer_steps.hpp"
#include "oracle/upward.hpp"
#include "support/parallel.hpp"

namespace deltaproof::tiers::integer_detail {

__extension__ typedef unsigned __int128 wide_limb;
__extension__ typedef __int128 wide_signed;

inline constexpr double quarter = 0.25;  // a number is below a quarter of what its limbs hold
inline constexpr int headroom = 24;      // bits left free when a grid is chosen
inline constexpr long deepest = 1100;    // no number needs bits below 2^-1100 beyond its own limbs
inline constexpr std::size_t block_tokens = 128;
inline constexpr std::size_t refresh_steps = 16;
inline constexpr long farthest = 1L << 22;  // bits between two numbers of one row that are still lined up
inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// acc += m x over N limbs; the carry. N = 0: n limbs.
template <std::size_t N>
inline mp_limb_t add_product(mp_limb_t* acc, const mp_limb_t* x, std::size_t n, mp_limb_t m) {
  if constexpr (N == 0) {
    return mpn_addmul_1(acc, x, static_cast<mp_size_t>(n), m);
  } else {
    mp_limb_t carry = 0;
    for (std::size_t i = 0; i < N; ++i) {
      const wide_limb t = static_cast<wide_limb>(x[i]) * m + acc[i] + carry;
      acc[i] = static_cast<mp_limb_t>(t);
      carry = static_cast<mp_limb_t>(t >> 64);
    }
    return carry;
  }
}

/// acc -= m x over N limbs, modulo what they hold.
template <std::size_t N>
inline void subtract_product(mp_limb_t* acc, const mp_limb_t* x, std::size_t n, mp_limb_t m) {
  if constexpr (N == 0) {
    mpn_submul_1(acc, x, static_cast<mp_size_t>(n), m);
  } else {
    mp_limb_t borrow = 0;
    for (std::size_t i = 0; i < N; ++i) {
      const wide_limb t = static_cast<wide_limb>(x[i]) * m + borrow;
      const mp_limb_t low = static_cast<mp_limb_t>(t);
      borrow = static_cast<mp_limb_t>(t >> 64) + (acc[i] < low ? 1 : 0);
      acc[i] -= low;
    }
  }
}

/// sum over the positive (negative) channels of |m| x, as N limbs and what is above them; x in two's complement.
template <std::size_t N>
inline wide_signed sum_products(const mp_limb_t* x, std::size_t n, const integer_vector& k, std::size_t from, std::size_t to,
                                mp_limb_t* acc) {
  wide_signed high = 0;
  const std::size_t limbs = N == 0 ? n : N;
  for (std::size_t i = from; i < to; ++i) {
    const mp_limb_t* xi = x + k.channel[i] * limbs;
    const mp_limb_t m = k.magnitude[i];
    const mp_limb_t sign = static_cast<mp_limb_t>(-static_cast<std::int64_t>(xi[limbs - 1] >> 63));
    high += add_product<N>(acc, xi, limbs, m);
    high -= m & sign;
  }
  return high;
}

void negate(mp_limb_t* x, std::size_t n) { mpn_neg(x, x, static_cast<mp_size_t>(n)); }

/// The number of a row: two's complement to mpz.
inline void to_integer(integer& out, const mp_limb_t* x, std::size_t n) {
  mp_limb_t* to = mpz_limbs_write(out.get(), static_cast<mp_size_t>(n));
  std::copy_n(x, n, to);
  const bool negative = x[n - 1] >> 63 != 0;
  if (negative) negate(to, n);
  mpz_limbs_finish(out.get(), negative ? -static_cast<mp_size_t>(n) : static_cast<mp_size_t>(n));
}

/// |x| 2^shift, rounded up.
inline double magnitude(mpz_srcptr x, long shift) {
  if (mpz_sgn(x) == 0) return 0;
  long exponent = 0;
  const double m = std::fabs(mpz_get_d_2exp(&exponent, x)) * up;
  return scaled(m, exponent + shift);
}

struct row_state {
  std::size_t limbs = 1;
  std::vector<mp_limb_t> x;  // K numbers in two's complement
  long grid = 0;             // S_j = x_j 2^grid
  double top = 0;            // bound on max |x_j| 2^(-64 limbs)
  double error = 0;          // bound on |S - exact|, in units of 2^-bits
  bool zero = true;          // every x_j is 0
  bool left = false;
  std::size_t reached = 0;
  std::size_t moved = 0;
  bool within = true;
};

/// What one thread needs besides.
struct scratch {
  std::vector<mp_limb_t> low, product, factor;
  integer p, r, w, o, half;
  integer_scalar given;
  mpfr_value value;
};

class engine {
 public:
  engine(const problem& p, const integer_lowering& from, const integer_request& ask, const integer_sink& output,
         const integer_sink& state)
      : from_{from},
        ask_{ask},
        output_{output},
        state_{state},
        keys_{p.key_dim()},
        steps_{p.num_householder},
        scale_{p.scale},
        exact_{ask.bits == 0},
        root_{std::sqrt(static_cast<double>(p.key_dim())) * up},
        unit_{std::ldexp(1.0, -ask.bits)} {}

  void begin(row_state& row, std::size_t column) const {
    row.limbs = exact_ ? 1 : static_cast<std::size_t>(ask_.bits) / 64 + 1;
    row.x.assign(keys_ * row.limbs, 0);
    integer_vector start;
    std::vector<double> x(keys_);
    for (std::size_t j = 0; j < keys_; ++j) x[j] = from_.start(j, column);
    start.set(x, exact_ ? std::numeric_limits<std::size_t>::max() / 64 : row.limbs);
    if (start.limbs == 0) return;
    // Two bits and a sign are free above; where the limbs are all used, one more or a coarser grid.
    const bool tight = start.norm >= 0x1p61;
    if (exact_) row.limbs = start.limbs + (tight ? 1 : 0);
    const std::size_t shift = exact_ ? 0 : row.limbs - start.limbs;
    row.x.assign(keys_ * row.limbs, 0);
    for (std::size_t i = 0; i < start.channel.size(); ++i) {
      mp_limb_t* to = &row.x[start.channel[i] * row.limbs];
      if (!exact_ && shift == 0) {
        mpn_rshift(to, &start.magnitude[i * start.limbs], static_cast<mp_size_t>(start.limbs), 4);
      } else {
        std::copy_n(&start.magnitude[i * start.limbs], start.limbs, to + shift);
        if (!exact_) mpn_rshift(to, to, static_cast<mp_size_t>(row.limbs), 4);
      }
      if (i >= start.positive) negate(to, row.limbs);
    }
    row.grid = start.exponent - 64 * static_cast<long>(shift) + (exact_ ? 0 : 4);
    // What the shift by four cut off where there was no free limb, and what rounding did before.
    if (!exact_ && shift == 0)
      row.error = (root_ * scaled(1, row.grid + ask_.bits) + scaled(start.rounded, start.exponent + ask_.bits)) * up;
    row.zero = false;
    refresh(row);
  }

  /// Token `t` of the block for one row. Returns false where the row has nothing more to do.
  bool token(row_state& row, std::size_t r, const integer_block& block, std::size_t i, scratch& s) const {
    const integer_token& token = block.tokens[i];
    const std::size_t t = block.first + i;
    if (!token.fits) return leave(row);
    if (!token.decay.empty()) decay(row, token, block.decay_limbs, s);
    for (std::size_t j = 0; j < steps_; ++j) {
      const std::size_t number = t * steps_ + j;
      if (!step(row, block.steps[i * steps_ + j], from_.value(number, ask_.columns[r]), s)) return leave(row);
      if (!exact_ && number % refresh_steps == refresh_steps - 1) settle(row);
      watch(row);
    }
    if (exact_) trim(row);
    if (!(row.error < infinity)) return leave(row);
    read(row, r, t, token, s);
    row.reached = t + 1;
    return row.reached < ask_.until[r] && !row.left;
  }

  void finish(row_state& row, std::size_t r, scratch& s) const {
    const double radius = detail::absolute_radius(row.error, unit_);
    for (std::size_t j = 0; j < keys_; ++j) {
      to_integer(s.o, &row.x[j * row.limbs], row.limbs);
      give(state_, r, j, s, row.grid, radius);
    }
    row.reached = ask_.until[r];
  }

 private:
  static bool leave(row_state& row) {
    row.left = true;
    return false;
  }

  /// The bound on the entries, from their leading limbs.
  void refresh(row_state& row) const {
    mp_limb_t most = 0;
    bool zero = true;
    for (std::size_t j = 0; j < keys_; ++j) {
      const mp_limb_t* x = &row.x[j * row.limbs];
      const mp_limb_t high = x[row.limbs - 1];
      most = std::max(most, high >> 63 != 0 ? ~high : high);
      for (std::size_t l = 0; l < row.limbs && zero; ++l) zero = x[l] == 0;
    }
    row.zero = zero;
    row.top = zero ? 0 : (static_cast<double>(most) + 1) * 0x1p-64 * up;
  }

  /// Where leading limbs say nothing the grid goes down by whole limbs, exactly.
  void settle(row_state& row) const {
    refresh(row);
    if (row.zero || row.limbs < 2 || row.top > 0x1p-63) return;
    std::size_t spare = row.limbs;
    for (std::size_t j = 0; j < keys_; ++j) {
      const mp_limb_t* x = &row.x[j * row.limbs];
      const mp_limb_t sign = static_cast<mp_limb_t>(-static_cast<std::int64_t>(x[row.limbs - 1] >> 63));
      std::size_t own = 0;
      while (own + 1 < row.limbs && x[row.limbs - 1 - own] == sign && ((x[row.limbs - 2 - own] ^ sign) >> (64 - headroom)) == 0)
        ++own;
      spare = std::min(spare, own);
    }
    const long floor = -64 * static_cast<long>(row.limbs) - deepest;
    spare = std::min(spare, static_cast<std::size_t>(std::max(0L, (row.grid - floor) / 64)));
    if (spare == 0) return;
    for (std::size_t j = 0; j < keys_; ++j) {
      mp_limb_t* x = &row.x[j * row.limbs];
      std::copy_backward(x, x + row.limbs - spare, x + row.limbs);
      std::fill_n(x, spare, 0);
    }
    row.grid -= 64 * static_cast<long>(spare);
    refresh(row);
  }

  /// Line X5: a coarser grid by `bits`; exactly, more limbs above instead.
  bool make_room(row_state& row, long bits) const {
    if (exact_) return widen(row, row.limbs + static_cast<std::size_t>(bits + 63) / 64, 0);
    ++row.moved;
    std::size_t inexact = 0;
    const auto limbs = static_cast<std::size_t>(bits / 64);
    const auto by = static_cast<unsigned>(bits % 64);
    for (std::size_t j = 0; j < keys_; ++j) {
      mp_limb_t* x = &row.x[j * row.limbs];
      const bool negative = x[row.limbs - 1] >> 63 != 0;
      if (negative) negate(x, row.limbs);
      bool lost = false, half = false;
      for (std::size_t l = 0; l < std::min(limbs, row.limbs); ++l) {
        lost = lost || x[l] != 0;
        half = l + 1 == limbs && x[l] >> 63 != 0;
      }
      if (limbs >= row.limbs) {
        half = false;  // all of it goes: below half a unit of a grid that is 2^headroom coarser still
        std::fill_n(x, row.limbs, 0);
      } else {
        std::copy(x + limbs, x + row.limbs, x);
        std::fill(x + row.limbs - limbs, x + row.limbs, 0);
        if (by != 0) {
          lost = lost || x[0] << (64 - by) != 0;
          half = (x[0] >> (by - 1) & 1) != 0;
          mpn_rshift(x, x, static_cast<mp_size_t>(row.limbs), by);
        }
      }
      if (half) mpn_add_1(x, x, static_cast<mp_size_t>(row.limbs), 1);
      if (negative) negate(x, row.limbs);
      inexact += lost ? 1 : 0;
    }
    row.grid += bits;
    row.error = (row.error + rounding(inexact) * grid_unit(row)) * up;
    refresh(row);
    return true;
  }

  /// Limbs for the exact rows: `limbs` in all, `below` of the new ones under the old. False beyond the cap.
  bool widen(row_state& row, std::size_t limbs, std::size_t below) const {
    if (limbs * 64 > exact_bits_cap) return false;
    std::vector<mp_limb_t> wider(keys_ * limbs);
    for (std::size_t j = 0; j < keys_; ++j) {
      const mp_limb_t* x = &row.x[j * row.limbs];
      mp_limb_t* to = &wider[j * limbs];
      const mp_limb_t sign = static_cast<mp_limb_t>(-static_cast<std::int64_t>(x[row.limbs - 1] >> 63));
      std::copy_n(x, row.limbs, to + below);
      std::fill(to + below + row.limbs, to + limbs, sign);
    }
    row.x = std::move(wider);
    row.limbs = limbs;
    row.grid -= 64 * static_cast<long>(below);
    refresh(row);
    return true;
  }

  /// Exact rows: limbs that say nothing, at either end, go.
  void trim(row_state& row) const {
    std::size_t below = 0, above = 0;
    const auto all = [&](const auto& holds) {
      for (std::size_t j = 0; j < keys_; ++j) {
        if (!holds(&row.x[j * row.limbs])) return false;
      }
      return true;
    };
    while (below + 1 < row.limbs && all([&](const mp_limb_t* x) { return x[below] == 0; })) ++below;
    while (below + above + 1 < row.limbs && all([&](const mp_limb_t* x) {
             const std::size_t last = row.limbs - 1 - above;
             return x[last] == static_cast<mp_limb_t>(-static_cast<std::int64_t>(x[last - 1] >> 63)) &&
                    (x[last - 1] >> 61 == 0 || x[last - 1] >> 61 == 7);
           })) {
      ++above;
    }
    if (below + above == 0) return;
    const std::size_t limbs = row.limbs - below - above;
    for (std::size_t j = 0; j < keys_; ++j) std::copy_n(&row.x[j * row.limbs + below], limbs, &row.x[j * limbs]);
    row.x.resize(keys_ * limbs);
    row.limbs = limbs;
    row.grid += 64 * static_cast<long>(below);
    refresh(row);
  }

  /// Half a unit for each of `inexact` entries.
  [[nodiscard]] static double rounding(std::size_t inexact) {
    return inexact == 0 ? 0 : 0.5 * std::sqrt(static_cast<double>(inexact)) * up;
  }
  [[nodiscard]] double grid_unit(const row_state& row) const { return scaled(1, row.grid + ask_.bits); }
  /// One unit of n limbs as a part of what they hold.
  [[nodiscard]] static double least_top(std::size_t n) {
    return std::ldexp(1.0, -64 * static_cast<int>(std::min<std::size_t>(n, 15)));
  }
  /// A bound on the norm of the state, times 2^shift.
  [[nodiscard]] double norm(const row_state& row, long shift = 0) const {
    return scaled(row.top * root_, 64 * static_cast<long>(row.limbs) + row.grid + shift);
  }

  /// Line X4.
  void decay(row_state& row, const integer_token& token, std::size_t limbs, scratch& s) const;

  /// key^T x exactly, as an integer on the grid of their product.
  void dot(const row_state& row, const integer_vector& k, integer& out, scratch& s) const;

  static void multiply(mp_limb_t* out, const mp_limb_t* a, std::size_t n, const mp_limb_t* b, std::size_t m) {
    if (n >= m) mpn_mul(out, a, static_cast<mp_size_t>(n), b, static_cast<mp_size_t>(m));
    if (n < m) mpn_mul(out, b, static_cast<mp_size_t>(m), a, static_cast<mp_size_t>(n));
  }

  /// Lines X1 to X3. False where the exact tier's cap is passed.
  bool step(row_state& row, const integer_step& step, double v, scratch& s) const;

  /// Line X3: the radius; s.w is on the grid of the row over that of the key.
  void account(row_state& row, const integer_step& step, bool lost, double innovation, double predicted, const scratch& s) const;

  /// x_j += m_j w, in two's complement; what is dropped from wide products is rounded to nearest.
  void write(row_state& row, const integer_vector& k, long cut, scratch& s) const;

  /// Line X6.
  void read(row_state& row, std::size_t r, std::size_t t, const integer_token& token, scratch& s) const;

  /// The state against its range.
  void watch(row_state& row) const;

  /// s.o 2^exponent to the sink, exactly.
  static void give(const integer_sink& to, std::size_t row, std::size_t at, scratch& s, long exponent, double radius) {
    const auto bits = static_cast<mpfr_prec_t>(std::max<std::size_t>(mpz_sizeinbase(s.o.get(), 2), 2));
    mpfr_set_prec(s.value.get(), bits);
    mpfr_set_z_2exp(s.value.get(), s.o.get(), exponent, MPFR_RNDN);
    to(row, at, s.value.get(), radius);
  }

  const integer_lowering& from_;
  const integer_request& ask_;
  const integer_sink& output_;
  const integer_sink& state_;
  std::size_t keys_;
  std::size_t steps_;
  double scale_;
  bool exact_;
  double root_;
  double unit_;
};

}  // namespace deltaproof::tiers::integer_detail
