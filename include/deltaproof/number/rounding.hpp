// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The rounding modes, as types, and the only two functions that round: `round_value` from a double
// and `round_unrounded` from an exact value of any kind. A mode answers one question, whether a value
// between two neighbours moves away from zero, and says what overflow gives. After including it you
// can round doubles to any format; rounded.hpp and convert.hpp are the comfortable way to do so.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "deltaproof/number/format.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/wide.hpp"

namespace deltaproof {

/// What a result beyond the largest value becomes. `infinity` is NaN in a format without infinities.
enum class overflow {
  infinity,         // IEEE nearest
  largest,          // IEEE toward zero: finite values give the largest, infinities stay
  largest_for_all,  // saturating conversions: infinities give the largest as well
};

/// To the nearest value, ties to the even one: IEEE's default.
struct nearest_even {
  static constexpr overflow on_overflow = overflow::infinity;
  static constexpr std::string_view name = "nearest_even";
  static constexpr bool rounds_away(bool odd, std::uint64_t fraction, bool rest) {
    constexpr std::uint64_t half = std::uint64_t{1} << 63;
    return fraction > half || (fraction == half && (rest || odd));
  }
};

/// To the nearest value, ties away from zero: public hardware's conversion to tf32 (cvt.rna of the PTX instruction set).
struct nearest_away {
  static constexpr overflow on_overflow = overflow::infinity;
  static constexpr std::string_view name = "nearest_away";
  static constexpr bool rounds_away(bool, std::uint64_t fraction, bool) { return fraction >> 63 != 0; }
};

/// To the neighbour nearer to zero.
struct toward_zero {
  static constexpr overflow on_overflow = overflow::largest;
  static constexpr std::string_view name = "toward_zero";
  static constexpr bool rounds_away(bool, std::uint64_t, bool) { return false; }
};

/// nearest_even with every overflow, infinities included, replaced by the largest value: the
/// saturating conversions to fp8 of public hardware.
struct nearest_saturating {
  static constexpr overflow on_overflow = overflow::largest_for_all;
  static constexpr std::string_view name = "nearest_saturating";
  static constexpr bool rounds_away(bool odd, std::uint64_t fraction, bool rest) {
    return nearest_even::rounds_away(odd, fraction, rest);
  }
};

/// Away from zero with the probability that makes the expectation exact, a multiple of 2^-64 of it.
/// Each rounding, exact ones too, takes one number of its stream, so the n-th rounding meets the
/// same random number whatever the values are. Between the largest value and the next one that an
/// unbounded exponent would allow, overflow is one of the two outcomes.
class stochastic {
 public:
  static constexpr overflow on_overflow = overflow::infinity;
  static constexpr std::string_view name = "stochastic";

  explicit stochastic(std::uint64_t seed, std::uint64_t stream = 0) : generator_(seed, stream) {}

  bool rounds_away(bool, std::uint64_t fraction, bool) { return generator_() < fraction; }

  const philox& generator() const { return generator_; }

 private:
  philox generator_;
};

template <class Mode>
concept RoundingMode = requires(Mode& mode, bool flag, std::uint64_t fraction) {
  { mode.rounds_away(flag, fraction, flag) } -> std::same_as<bool>;
  { Mode::on_overflow } -> std::convertible_to<overflow>;
};

/// A mode without state: it may be part of a number type and hide behind operators.
template <class Mode>
concept StatelessMode = RoundingMode<Mode> && std::is_empty_v<Mode> && std::default_initializable<Mode>;

/// A mode passed as an argument: an lvalue where it has state, which a temporary would lose.
template <class Mode>
concept RoundingModeRef = RoundingMode<std::remove_reference_t<Mode>> &&
                          (std::is_lvalue_reference_v<Mode> || StatelessMode<std::remove_reference_t<Mode>>);

namespace detail {

template <format F, class Mode>
constexpr double overflowed(bool negative, bool from_infinity) {
  constexpr overflow what = Mode::on_overflow;
  if (what == overflow::largest_for_all || (what == overflow::largest && !from_infinity)) {
    return with_sign(largest(F), negative);
  }
  return F.has_infinity ? with_sign(std::numeric_limits<double>::infinity(), negative) : std::numeric_limits<double>::quiet_NaN();
}

/// NaN, infinities and zeros, which no mode moves; takes its random number like any rounding.
template <format F, class Mode>
constexpr double round_special(double x, Mode& mode) {
  static_cast<void>(mode.rounds_away(false, 0, false));
  if (x != x) return std::numeric_limits<double>::quiet_NaN();
  return x == 0 ? x : overflowed<F, Mode>(x < 0, true);
}

/// (floor(m) + away) * quantum for the m < 2^precision below 2^emin; exact products throughout.
template <format F, class Mode>
constexpr double round_subnormal(double magnitude, Mode& mode) {
  constexpr double quantum = smallest_subnormal(F);
  const double scaled = magnitude / quantum;
  const auto kept = static_cast<std::int64_t>(scaled);
  const double fraction = (scaled - static_cast<double>(kept)) * 0x1p64;
  const auto leading = static_cast<std::uint64_t>(fraction);
  const bool rest = static_cast<double>(leading) != fraction;
  const bool away = mode.rounds_away((kept & 1) != 0, leading, rest);
  return static_cast<double>(kept + (away ? 1 : 0)) * quantum;
}

/// x rounded once to F.
template <format F, class Mode>
constexpr double round_value(double x, Mode& mode) {
  if constexpr (F == fp32 && std::is_same_v<std::remove_const_t<Mode>, nearest_even>) {
    return x == x ? static_cast<double>(static_cast<float>(x)) : std::numeric_limits<double>::quiet_NaN();
  } else {
    constexpr int dropped = 53 - F.precision;
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const std::uint64_t magnitude = bits & ~sign_bit;
    if (magnitude >= infinity_bits || magnitude == 0) return round_special<F>(x, mode);
    if constexpr (dropped == 0) {
      static_cast<void>(mode.rounds_away(false, 0, false));
      return x;
    } else {
      const bool negative = bits != magnitude;
      if (magnitude < std::bit_cast<std::uint64_t>(smallest_normal(F))) {
        return with_sign(round_subnormal<F>(std::bit_cast<double>(magnitude), mode), negative);
      }
      const std::uint64_t kept = magnitude >> dropped;
      const bool away = mode.rounds_away((kept & 1) != 0, magnitude << (64 - dropped), false);
      const std::uint64_t result = (kept + (away ? 1 : 0)) << dropped;
      if (result > std::bit_cast<std::uint64_t>(largest(F))) return overflowed<F, Mode>(negative, false);
      return std::bit_cast<double>(result | (bits & sign_bit));
    }
  }
}

/// An exact value of any kind rounded once to F.
template <format F, class Mode>
double round_unrounded(const unrounded& value, Mode& mode) {
  if (value.is_special()) return round_value<F>(value.special, mode);
  const unrounded x = value.normalised();
  const int exponent = x.exponent + 127;
  const int dropped = 128 - F.precision + (exponent < F.emin ? F.emin - exponent : 0);
  std::uint64_t kept = 0;
  std::uint64_t fraction = 0;
  bool rest = true;
  if (dropped <= 128) {
    kept = dropped == 128 ? 0 : static_cast<std::uint64_t>(x.significand >> dropped);
    const uint128 below = dropped == 128 ? x.significand : x.significand << (128 - dropped);
    fraction = static_cast<std::uint64_t>(below >> 64);
    rest = x.rest || static_cast<std::uint64_t>(below) != 0;
  } else if (dropped < 192) {
    fraction = static_cast<std::uint64_t>(x.significand >> 64) >> (dropped - 128);
  }
  const bool away = mode.rounds_away((kept & 1) != 0, fraction, rest);
  if (exponent > F.emax + 1) return overflowed<F, Mode>(x.negative, false);
  const int quantum = exponent < F.emin ? F.emin - F.precision + 1 : exponent - F.precision + 1;
  const double result = static_cast<double>(kept + (away ? 1 : 0)) * power_of_two(quantum);
  if (result > largest(F)) return overflowed<F, Mode>(x.negative, false);
  return with_sign(result, x.negative);
}

/// a + b rounded to odd: a double that rounds to any format of at most 51 bits as a + b does.
/// Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", IEEE TC 57 (2008).
constexpr double odd_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (!(error > 0 || error < 0) || (bits & 1) != 0 || (bits & ~sign_bit) >= infinity_bits) return sum;
  return std::bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

}  // namespace detail
}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.rounding.nearest_rounding, float.rounding.toward_zero_rounding
