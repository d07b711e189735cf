// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/integer_rows.hpp"

#include <gmp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "oracle/mpfr_value.hpp"
#include "oracle/tiers/integer_steps.hpp"
#include "oracle/upward.hpp"
#include "support/parallel.hpp"

namespace deltaproof::tiers {
namespace {

__extension__ typedef unsigned __int128 wide_limb;
__extension__ typedef __int128 wide_signed;

constexpr double quarter = 0.25;    // a number is below a quarter of what its limbs hold
constexpr int headroom = 24;        // bits left free when a grid is chosen
constexpr long deepest = 1100;      // no number needs bits below 2^-1100 beyond its own limbs
constexpr std::size_t block_tokens = 128;
constexpr std::size_t refresh_steps = 16;
constexpr long farthest = 1L << 22;  // bits between two numbers of one row that are still lined up
constexpr double infinity = std::numeric_limits<double>::infinity();

/// acc += m x over N limbs; the carry. N = 0: n limbs.
template <std::size_t N>
mp_limb_t add_product(mp_limb_t* acc, const mp_limb_t* x, std::size_t n, mp_limb_t m) {
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
void subtract_product(mp_limb_t* acc, const mp_limb_t* x, std::size_t n, mp_limb_t m) {
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
wide_signed sum_products(const mp_limb_t* x, std::size_t n, const integer_vector& k, std::size_t from, std::size_t to,
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
void to_integer(integer& out, const mp_limb_t* x, std::size_t n) {
  mp_limb_t* to = mpz_limbs_write(out.get(), static_cast<mp_size_t>(n));
  std::copy_n(x, n, to);
  const bool negative = x[n - 1] >> 63 != 0;
  if (negative) negate(to, n);
  mpz_limbs_finish(out.get(), negative ? -static_cast<mp_size_t>(n) : static_cast<mp_size_t>(n));
}

/// |x| 2^shift, rounded up.
double magnitude(mpz_srcptr x, long shift) {
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
  void decay(row_state& row, const integer_token& token, std::size_t limbs, scratch& s) const {
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
    double e = product({token.decay_largest + (enclosed ? scaled(half, -64 * least) : 0), row.error}) + rounding(inexact) * grid_unit(row);
    if (enclosed) e += half * norm(row, ask_.bits - 64 * least);
    row.error = e * up;
    row.top = token.decay_largest * row.top * up + least_top(n);
  }

  /// key^T x exactly, as an integer on the grid of their product.
  void dot(const row_state& row, const integer_vector& k, integer& out, scratch& s) const {
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

  static void multiply(mp_limb_t* out, const mp_limb_t* a, std::size_t n, const mp_limb_t* b, std::size_t m) {
    if (n >= m) mpn_mul(out, a, static_cast<mp_size_t>(n), b, static_cast<mp_size_t>(m));
    if (n < m) mpn_mul(out, b, static_cast<mp_size_t>(m), a, static_cast<mp_size_t>(n));
  }

  /// Lines X1 to X3. False where the exact tier's cap is passed.
  bool step(row_state& row, const integer_step& step, double v, scratch& s) const {
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

  /// Line X3: the radius; s.w is on the grid of the row over that of the key.
  void account(row_state& row, const integer_step& step, bool lost, double innovation, double predicted, const scratch& s) const {
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

  /// x_j += m_j w, in two's complement; what is dropped from wide products is rounded to nearest.
  void write(row_state& row, const integer_vector& k, long cut, scratch& s) const {
    const std::size_t n = row.limbs, m = k.limbs;
    const std::size_t size = mpz_size(s.w.get());
    const bool negative = mpz_sgn(s.w.get()) < 0;
    const mp_limb_t* w = mpz_limbs_read(s.w.get());
    row.top = row.zero ? 0 : row.top;
    row.zero = false;
    const double grown =
        magnitude(s.w.get(), (exact_ ? 64 * (static_cast<long>(m) - 1) : 0) - 64 * static_cast<long>(n)) * k.norm;
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
      const bool lost = std::any_of(s.product.begin(), s.product.begin() + static_cast<std::ptrdiff_t>(drop),
                                    [](mp_limb_t l) { return l != 0; });
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

  /// Line X6.
  void read(row_state& row, std::size_t r, std::size_t t, const integer_token& token, scratch& s) const {
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

  /// The state against its range.
  void watch(row_state& row) const {
    if (ask_.range.state == infinity || (row.zero && row.error == 0)) return;
    const auto fits = [&] {
      return scaled(row.top, 64 * static_cast<long>(row.limbs) + row.grid) + row.error * unit_ <= ask_.range.state;
    };
    if (fits()) return;
    if (!row.zero) refresh(row);
    if (!fits()) row.within = false;
  }

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

}  // namespace

integer_outcome run_integers(const problem& p, std::size_t sequence_index, std::size_t value_head, const integer_request& request,
                             const integer_sink& output, const integer_sink& state) {
  const integer_lowering from(p, sequence_index, value_head, request.bits);
  const engine run(p, from, request, output, state);
  const std::size_t rows = request.columns.size(), T = from.tokens();
  integer_outcome out;
  std::vector<row_state> states(rows);
  for (std::size_t r = 0; r < rows; ++r) run.begin(states[r], request.columns[r]);
  std::size_t last = 0;
  for (const std::size_t until : request.until) last = std::max(last, std::min(until, T));
  integer_block block;
  std::vector<std::size_t> reached(rows, 0);
  for (std::size_t first = 0; first < last; first += block_tokens) {
    if (request.stop && request.stop->load(std::memory_order_relaxed)) return out;
    const std::size_t count = std::min(block_tokens, last - first);
    if (request.before) request.before(first, count);
    const bool all_left = std::all_of(states.begin(), states.end(), [](const row_state& row) { return row.left; });
    if (all_left && !request.after) break;
    if (all_left) {
      request.after(first, count, reached);
      continue;
    }
    from.block(first, count, request.threads, block);
    out.wide += block.wide;
    out.rounded += block.rounded;
    parallel_for(rows, request.threads, [&](std::size_t r) {
      if (states[r].left || states[r].reached >= request.until[r]) return;
      scratch s;
      for (std::size_t i = 0; i < block.tokens.size(); ++i) {
        if (!run.token(states[r], r, block, i, s)) return;
      }
      if (block.tokens.size() < count) states[r].left = true;
    });
    for (std::size_t r = 0; r < rows; ++r) reached[r] = states[r].reached;
    if (request.after) request.after(first, count, reached);
  }
  scratch s;
  for (std::size_t r = 0; r < rows; ++r) {
    row_state& row = states[r];
    if (!row.left && request.until[r] > T && row.reached == T) run.finish(row, r, s);
    out.reached.push_back(row.reached);
    out.within = out.within && row.within;
    out.moved += row.moved;
  }
  return out;
}

double exact_cost(const problem& p, std::size_t sequence_index, std::size_t value_head, const std::vector<std::size_t>& until,
                  double size, double limit) {
  const integer_lowering from(p, sequence_index, value_head, 0);
  std::vector<std::size_t> ends;
  for (const std::size_t row : until) ends.push_back(std::min(row, from.tokens()));
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  const std::vector<double> sum = from.exact_limbs(ends, size, static_cast<double>(exact_bits_cap), limit);
  double cost = 0;
  for (const std::size_t row : until) {
    const auto end = static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), std::min(row, from.tokens())) - ends.begin());
    cost += end < sum.size() ? sum[end] : infinity;
  }
  return cost;
}

double fixed_cost(const std::vector<std::size_t>& until, int bits) {
  double cost = 0;
  for (const std::size_t last : until) cost += static_cast<double>(last) * (bits / 64 + 1);
  return cost;
}

}  // namespace deltaproof::tiers
