// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Stored bit patterns of a format, derived from its row in the table: sign, biased exponent, mantissa,
// and zero padding below where the storage is wider. `encode` expects a value of the format; it does not
// round. rounded<F>::bits and from_bits are the way to use it.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "deltaproof/number/format.hpp"

namespace deltaproof {

namespace detail {

template <int Bits>
using uint_of = std::conditional_t<
    Bits == 8, std::uint8_t,
    std::conditional_t<Bits == 16, std::uint16_t, std::conditional_t<Bits == 32, std::uint32_t, std::uint64_t>>>;

template <format F>
struct encoding {
  using bits_type = uint_of<F.storage_bits>;
  static constexpr int mantissa_bits = F.precision - 1;
  static constexpr int bias = 1 - F.emin;
  static constexpr int exponent_bits = std::bit_width(static_cast<unsigned>(bias)) + 1;
  static constexpr int sign_position = exponent_bits + mantissa_bits;
  static constexpr int padding = F.storage_bits - sign_position - 1;
  static constexpr std::uint64_t sign = std::uint64_t{1} << sign_position;
  static constexpr std::uint64_t exponent_mask = ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  static constexpr std::uint64_t nan = F.has_infinity ? exponent_mask | std::uint64_t{1} << (mantissa_bits - 1) : sign - 1;
  static constexpr std::uint64_t rebias = static_cast<std::uint64_t>(1023 - bias) << mantissa_bits;

  static constexpr std::uint64_t encode(double value) {
    if (value != value) return nan << padding;
    const auto wide = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t magnitude = wide & ~sign_bit;
    std::uint64_t code = 0;
    if (magnitude == infinity_bits) {
      code = exponent_mask;
    } else if (magnitude >= std::bit_cast<std::uint64_t>(smallest_normal(F))) {
      code = (magnitude >> (53 - F.precision)) - rebias;
    } else {
      code = static_cast<std::uint64_t>(static_cast<std::int64_t>(std::bit_cast<double>(magnitude) / smallest_subnormal(F)));
    }
    return (code | (wide != magnitude ? sign : 0)) << padding;
  }

  // Without branches, so that a loop over it runs in vectors.
  static constexpr double decode(std::uint64_t stored) {
    const std::uint64_t code = stored >> padding, magnitude = code & (sign - 1);
    const double subnormal = static_cast<double>(static_cast<std::int64_t>(magnitude)) * smallest_subnormal(F);
    std::uint64_t bits = (magnitude + rebias) << (53 - F.precision);
    bits = magnitude >> mantissa_bits == 0 ? std::bit_cast<std::uint64_t>(subnormal) : bits;
    if constexpr (F.has_infinity) bits = magnitude == exponent_mask ? infinity_bits : bits;
    bits |= (code & sign) != 0 ? sign_bit : 0;
    const bool is_nan = F.has_infinity ? magnitude > exponent_mask : magnitude == sign - 1;
    return is_nan ? std::numeric_limits<double>::quiet_NaN() : std::bit_cast<double>(bits);
  }
};

}  // namespace detail

}  // namespace deltaproof
