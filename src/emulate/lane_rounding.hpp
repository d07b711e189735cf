// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One rounding to a format chosen at run time, without branches, so that a loop over it vectorises: `rounding<Real>` holds
// the constants, its members apply them. Rounds: with M = 2^(q + digits - 1), q the exponent of the last place kept,
// (|x| + M) - M is |x| to nearest even in multiples of 2^q, subnormals included. Where the format has the exponents of Real,
// M would overflow and the bits are rounded as integers instead. tf32 is rounded to nearest as its conversion does it (cvt.rna
// of the PTX instruction set): a tie goes away from zero.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "deltaproof/number/format.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof::emulation {

template <class Real>
struct rounding {
  using bits_type = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int digits = std::numeric_limits<Real>::digits;
  static constexpr format own = sizeof(Real) == 4 ? fp32 : fp64;
  static constexpr bits_type sign = bits_type{1} << (sizeof(Real) * 8 - 1);
  static constexpr bits_type exponent_field = std::bit_cast<bits_type>(std::numeric_limits<Real>::infinity());
  enum class method { none, bits, magic };

  method how = method::none;
  bool ties_away = false;
  int dropped = 0;      ///< low bits that are not kept (method bits)
  Real lowest = 0;      ///< 2^emin
  Real highest = 0;     ///< 2^emax
  Real magic = 0;       ///< M / 2^e of a value in [2^e, 2^(e+1))
  Real last_place = 0;  ///< 2^q / 2^e
  Real largest = 0;
  Real beyond = 0;  ///< what overflow gives: infinity, or NaN

  /// Throws: format_error for a format this cannot round to.
  explicit rounding(const format& to) {
    if (is_lossless(own, to)) return;
    dropped = digits - to.precision;
    ties_away = to == tf32;
    if (to.emin == own.emin && to.emax == own.emax && to.has_infinity && dropped > 0) {
      how = method::bits;
      return;
    }
    if (to.precision < 2 || dropped < 2 || to.emin < own.emin || to.emax + dropped + 1 > own.emax) {
      throw format_error("numbers in " + std::string(name_of(own)) + " cannot be rounded to a format of " +
                         std::to_string(to.precision) + " significand bits with exponents " + std::to_string(to.emin) + " to " +
                         std::to_string(to.emax) + "; take a format that `deltaproof list formats` names");
    }
    how = method::magic;
    lowest = static_cast<Real>(detail::power_of_two(to.emin));
    highest = static_cast<Real>(detail::power_of_two(to.emax));
    magic = static_cast<Real>(detail::power_of_two(dropped));
    last_place = static_cast<Real>(detail::power_of_two(1 - to.precision));
    largest = static_cast<Real>(deltaproof::largest(to));
    beyond = to.has_infinity ? std::numeric_limits<Real>::infinity() : std::numeric_limits<Real>::quiet_NaN();
  }

  [[gnu::always_inline]] static Real with_sign_of(Real magnitude, bits_type bits) {
    return std::bit_cast<Real>(std::bit_cast<bits_type>(magnitude) | (bits & sign));
  }

  /// 2^e of the binade |x| lies in, held between `lowest` and `highest`; above, every result is larger than `largest`.
  [[gnu::always_inline]] Real binade(bits_type bits) const {
    Real power = std::bit_cast<Real>(bits & exponent_field);
    power = power < lowest ? lowest : power;
    return power > highest ? highest : power;
  }

  /// The method `magic`.
  [[gnu::always_inline]] Real nearest(Real x) const {
    const auto bits = std::bit_cast<bits_type>(x);
    const Real shift = binade(bits) * magic;
    const Real kept = (std::bit_cast<Real>(bits & ~sign) + shift) - shift;
    return with_sign_of(kept > largest ? beyond : kept, bits);
  }
  [[gnu::always_inline]] Real nearest_away(Real x) const {
    const auto bits = std::bit_cast<bits_type>(x);
    const Real magnitude = std::bit_cast<Real>(bits & ~sign);
    const Real power = binade(bits);
    const Real shift = power * magic;
    Real kept = (magnitude + shift) - shift;
    kept += magnitude - kept == power * last_place / 2 ? power * last_place : Real{0};
    return with_sign_of(kept > largest ? beyond : kept, bits);
  }
  [[gnu::always_inline]] Real toward_zero(Real x) const {
    const auto bits = std::bit_cast<bits_type>(x);
    const Real magnitude = std::bit_cast<Real>(bits & ~sign);
    const Real power = binade(bits);
    const Real shift = power * magic;
    Real kept = (magnitude + shift) - shift;
    kept -= kept > magnitude ? power * last_place : Real{0};
    const Real most = magnitude > std::numeric_limits<Real>::max() ? beyond : largest;
    return with_sign_of(kept > largest ? most : kept, bits);
  }

  /// The method `bits`: a carry out of the significand is the right exponent, and out of the largest value infinity.
  [[gnu::always_inline]] Real nearest_bits(Real x) const {
    const auto bits = std::bit_cast<bits_type>(x);
    const bits_type kept_bit = (bits >> dropped) & 1;
    const bits_type moved = bits + ((bits_type{1} << (dropped - 1)) - 1) + kept_bit;
    return x != x ? x : std::bit_cast<Real>((moved >> dropped) << dropped);
  }
  [[gnu::always_inline]] Real nearest_away_bits(Real x) const {
    const auto bits = std::bit_cast<bits_type>(x);
    return x != x ? x : std::bit_cast<Real>(((bits + (bits_type{1} << (dropped - 1))) >> dropped) << dropped);
  }
  [[gnu::always_inline]] Real toward_zero_bits(Real x) const {
    const auto bits = std::bit_cast<bits_type>(x);
    return x != x ? x : std::bit_cast<Real>((bits >> dropped) << dropped);
  }

  [[nodiscard]] Real operator()(Real x, bool to_zero) const {
    if (how == method::none) return x;
    if (how == method::bits) return to_zero ? toward_zero_bits(x) : ties_away ? nearest_away_bits(x) : nearest_bits(x);
    return to_zero ? toward_zero(x) : ties_away ? nearest_away(x) : nearest(x);
  }
};

}  // namespace deltaproof::emulation
