// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A result before its rounding: sign, 128 leading bits, exponent, and whether anything lies below.
// That is enough to round once, in any mode, to any format of the table, so exact values of every
// kind (rational, MPFR, products of doubles) meet the formats here and nowhere else.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "deltaproof/number/format.hpp"

namespace deltaproof::detail {

__extension__ typedef unsigned __int128 uint128;

constexpr int leading_zeros(uint128 x) {
  const auto high = static_cast<std::uint64_t>(x >> 64);
  return high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<std::uint64_t>(x));
}

/// The value ±(significand + t) * 2^exponent with t = 0 if !rest and 0 < t < 1 if rest; where both
/// are empty, the value is `special`: mostly a zero, an infinity or NaN.
struct unrounded {
  bool negative = false;
  uint128 significand = 0;
  int exponent = 0;
  bool rest = false;
  double special = 0;

  constexpr bool is_special() const { return significand == 0 && !rest; }

  /// The same value with the leading bit at position 127. A nonzero rest needs a significand.
  constexpr unrounded normalised() const {
    unrounded x = *this;
    const int shift = leading_zeros(significand);
    x.significand = shift < 128 ? significand << shift : 0;  // a shift by the whole width is undefined
    x.exponent -= shift;
    return x;
  }
};

inline unrounded unrounded_special(double value) {
  unrounded x;
  x.special = value;
  return x;
}

/// A finite double, exactly.
inline unrounded unround(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto field = static_cast<int>(bits >> 52 & 0x7ff);
  const std::uint64_t fraction = bits & 0xfffffffffffffU;
  if (field == 0x7ff || (field == 0 && fraction == 0)) return unrounded_special(value);
  unrounded x;
  x.negative = bits >> 63 != 0;
  x.significand = field == 0 ? fraction : fraction | std::uint64_t{1} << 52;
  x.exponent = (field == 0 ? 1 : field) - 1075;
  return x;
}

/// a + b for two exact nonzero values of at most 120 bits; a zero sum is +0.
inline unrounded wide_sum(const unrounded& a, const unrounded& b) {
  unrounded big = a.normalised();
  unrounded small = b.normalised();
  if (big.exponent < small.exponent || (big.exponent == small.exponent && big.significand < small.significand)) {
    std::swap(big, small);
  }
  // One bit of head room for the carry.
  big.significand >>= 1;
  big.exponent += 1;
  const int gap = big.exponent - small.exponent;
  const uint128 lost = gap >= 128 ? small.significand : small.significand << (128 - gap);
  small.significand = gap >= 128 ? 0 : small.significand >> gap;
  big.rest = lost != 0;
  if (big.negative == small.negative) {
    big.significand += small.significand;
  } else {
    // big - (small + t) = (big - small - 1) + (1 - t).
    big.significand -= small.significand + (big.rest ? 1U : 0U);
  }
  return big;
}

inline unrounded wide_product(double a, double b) {
  unrounded x = unround(a);
  const unrounded y = unround(b);
  if (x.is_special() || y.is_special()) return unrounded_special(a * b);
  x.negative = x.negative != y.negative;
  x.significand *= y.significand;
  x.exponent += y.exponent;
  return x;
}

inline unrounded wide_sum(double a, double b) {
  const unrounded x = unround(a);
  const unrounded y = unround(b);
  if (x.is_special() || y.is_special())
    return std::isfinite(a) && std::isfinite(b) && a + b != 0 ? (x.is_special() ? y : x) : unrounded_special(a + b);
  return wide_sum(x, y);
}

/// a * b + c, exactly.
inline unrounded wide_fma(double a, double b, double c) {
  const unrounded product = wide_product(a, b);
  const unrounded addend = unround(c);
  if (product.is_special()) {
    const double sum = product.special + c;
    return addend.is_special() || !std::isfinite(sum) ? unrounded_special(sum) : addend;
  }
  if (addend.is_special()) return c == 0 ? product : unrounded_special(c);
  return wide_sum(product, addend);
}

inline unrounded wide_quotient(double a, double b) {
  unrounded x = unround(a);
  const unrounded y = unround(b).normalised();
  if (x.is_special() || y.is_special()) return unrounded_special(a / b);
  x = x.normalised();
  // 127 bits over 53 bits: at least 74 bits of quotient, then 52 more from the remainder.
  const uint128 numerator = x.significand >> 1;
  const uint128 divisor = y.significand >> 75;
  const uint128 remainder = (numerator % divisor) << 52;
  x.negative = x.negative != y.negative;
  x.significand = (numerator / divisor) << 52 | remainder / divisor;
  x.rest = remainder % divisor != 0;
  x.exponent = x.exponent + 1 - (y.exponent + 75) - 52;
  return x;
}

inline unrounded wide_sqrt(double a) {
  unrounded x = unround(a);
  if (x.is_special() || x.negative) return unrounded_special(std::sqrt(a));
  x = x.normalised();
  // Two spare bits keep the trial square below 2^128; the exponent must be even.
  const int shift = (x.exponent & 1) != 0 ? 1 : 2;
  const uint128 radicand = x.significand >> shift;
  uint128 root = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const uint128 trial = root | uint128{1} << bit;
    if (trial * trial <= radicand) root = trial;
  }
  // The remainder gives 62 more bits; the last may be one too high, which only the probability of a
  // stochastic rounding sees, and never a carry.
  const uint128 remainder = radicand - root * root;
  const uint128 tail = (remainder << 61) / root;
  const uint128 limit = (uint128{1} << 62) - 1;
  x.significand = root << 62 | (tail < limit ? tail : limit);
  x.rest = remainder != 0;
  x.exponent = (x.exponent + shift) / 2 - 62;
  return x;
}

}  // namespace deltaproof::detail
