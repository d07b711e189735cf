// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Numbers of a stated format: `rounded<bf16>`. Every operation is exact and then rounded once, by the
// mode in the type; signed zeros, subnormals, overflow and NaN are those of the format. Nothing
// converts silently: `lift` widens where that is exact, `round_to` narrows (convert.hpp). Modes with
// state (stochastic) have no operators; add, sub, mul, div, sqrt and fma take the mode as their last
// argument instead, and work for every mode. NaN has one pattern: payloads and its sign are not kept.
#pragma once

#include <bit>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "deltaproof/number/encoding.hpp"
#include "deltaproof/number/rounding.hpp"
#include "deltaproof/number/traits.hpp"

namespace deltaproof {

template <format F, class Mode = nearest_even>
  requires StatelessMode<Mode>
class rounded {
 public:
  using carrier = std::conditional_t<(F.precision <= 24), float, double>;
  using mode_type = Mode;
  using bits_type = typename detail::encoding<F>::bits_type;
  static constexpr format number_format = F;

  constexpr rounded() = default;

  /// The integer, which must be a value of the format.
  /// Throws domain_error if it is not (at compile time in a constant expression).
  explicit constexpr rounded(int value) : value_(static_cast<carrier>(value)) {
    Mode mode;
    if (detail::round_value<F>(static_cast<double>(value), mode) != value) {
      throw domain_error(std::to_string(value) + " is not a value of " + std::string(name_of(F)) +
                         "; round_to<F>(double) rounds it");
    }
  }

  /// The value that the stored pattern means.
  /// Throws format_error where padding bits (tf32's last 13) are not zero.
  static constexpr rounded from_bits(bits_type bits) {
    constexpr int padding = detail::encoding<F>::padding;
    if ((bits & ((std::uint64_t{1} << padding) - 1)) != 0) {
      throw format_error("the last " + std::to_string(padding) + " bits of a stored " + std::string(name_of(F)) +
                         " must be zero; round the number first");
    }
    return rounded(static_cast<carrier>(detail::encoding<F>::decode(bits)), 0);
  }

  /// Only for a value that is known to be one of the format: nothing is checked or rounded.
  static constexpr rounded from_exact(double value) { return rounded(static_cast<carrier>(value), 0); }

  constexpr bits_type bits() const { return static_cast<bits_type>(detail::encoding<F>::encode(value_)); }
  constexpr double value() const { return static_cast<double>(value_); }
  explicit constexpr operator double() const { return value(); }

  constexpr rounded operator-() const { return rounded(-value_, 0); }
  constexpr rounded operator+() const { return *this; }

  friend constexpr rounded operator+(rounded a, rounded b) {
    return with_mode([&](Mode& m) { return add(a, b, m); });
  }
  friend constexpr rounded operator-(rounded a, rounded b) {
    return with_mode([&](Mode& m) { return sub(a, b, m); });
  }
  friend constexpr rounded operator*(rounded a, rounded b) {
    return with_mode([&](Mode& m) { return mul(a, b, m); });
  }
  friend constexpr rounded operator/(rounded a, rounded b) {
    return with_mode([&](Mode& m) { return div(a, b, m); });
  }
  constexpr rounded& operator+=(rounded b) { return *this = *this + b; }
  constexpr rounded& operator-=(rounded b) { return *this = *this - b; }
  constexpr rounded& operator*=(rounded b) { return *this = *this * b; }
  constexpr rounded& operator/=(rounded b) { return *this = *this / b; }

  friend constexpr bool operator==(rounded a, rounded b) { return a.value_ == b.value_; }
  friend constexpr std::partial_ordering operator<=>(rounded a, rounded b) { return a.value_ <=> b.value_; }

 private:
  constexpr rounded(carrier value, int) : value_(value) {}

  template <class Operation>
  static constexpr rounded with_mode(Operation operation) {
    Mode mode;
    return operation(mode);
  }

  carrier value_ = 0;
};

namespace detail {

template <format F, StatelessMode Mode>
struct format_trait<rounded<F, Mode>> {
  static constexpr format value = F;
};

/// Below this precision the sum, product, quotient or root of two values, rounded to a double, still
/// falls on the right side of every value and midpoint of the format (2p + 2 <= 53; sums need
/// odd_sum in the modes that look below the midpoint).
inline constexpr int double_suffices = 24;

template <class Mode>
inline constexpr bool is_nearest =
    std::is_same_v<std::remove_const_t<Mode>, nearest_even> || std::is_same_v<std::remove_const_t<Mode>, nearest_saturating>;

template <format F, class Mode>
constexpr double rounded_sum(double a, double b, Mode& mode) {
  if constexpr (is_nearest<Mode>)
    return round_value<F>(a + b, mode);
  else if constexpr (F.precision <= double_suffices)
    return round_value<F>(odd_sum(a, b), mode);
  else
    return round_unrounded<F>(wide_sum(a, b), mode);
}

template <format F, class Mode>
constexpr double rounded_product(double a, double b, Mode& mode) {
  if constexpr (F.precision <= double_suffices || is_nearest<Mode>)
    return round_value<F>(a * b, mode);
  else
    return round_unrounded<F>(wide_product(a, b), mode);
}

template <format F, class Mode>
constexpr double rounded_quotient(double a, double b, Mode& mode) {
  if constexpr (F.precision <= double_suffices || is_nearest<Mode>)
    return round_value<F>(a / b, mode);
  else
    return round_unrounded<F>(wide_quotient(a, b), mode);
}

template <format F, class Mode>
double rounded_sqrt(double a, Mode& mode) {
  if constexpr (F.precision <= double_suffices || is_nearest<Mode>)
    return round_value<F>(std::sqrt(a), mode);
  else
    return round_unrounded<F>(wide_sqrt(a), mode);
}

/// `Exact` says that a * b is exact in double.
template <format F, bool Exact, class Mode>
double rounded_fma(double a, double b, double c, Mode& mode) {
  if constexpr (Exact && F.precision <= double_suffices)
    return round_value<F>(odd_sum(a * b, c), mode);
  else if constexpr (F == fp64 && is_nearest<Mode>)
    return round_value<F>(std::fma(a, b, c), mode);
  else
    return round_unrounded<F>(wide_fma(a, b, c), mode);
}

}  // namespace detail

/// a + b, rounded once by the given mode. `Own` is the mode in the operands' type; it is not used.
template <format F, class Own, RoundingModeRef Mode>
constexpr rounded<F, Own> add(rounded<F, Own> a, rounded<F, Own> b, Mode&& mode) {
  return rounded<F, Own>::from_exact(detail::rounded_sum<F>(a.value(), b.value(), mode));
}

/// a - b, rounded once by the given mode.
template <format F, class Own, RoundingModeRef Mode>
constexpr rounded<F, Own> sub(rounded<F, Own> a, rounded<F, Own> b, Mode&& mode) {
  return rounded<F, Own>::from_exact(detail::rounded_sum<F>(a.value(), -b.value(), mode));
}

/// a * b, rounded once by the given mode.
template <format F, class Own, RoundingModeRef Mode>
constexpr rounded<F, Own> mul(rounded<F, Own> a, rounded<F, Own> b, Mode&& mode) {
  return rounded<F, Own>::from_exact(detail::rounded_product<F>(a.value(), b.value(), mode));
}

/// a / b, rounded once by the given mode; x / 0 is an infinity, NaN in a format without them.
template <format F, class Own, RoundingModeRef Mode>
constexpr rounded<F, Own> div(rounded<F, Own> a, rounded<F, Own> b, Mode&& mode) {
  return rounded<F, Own>::from_exact(detail::rounded_quotient<F>(a.value(), b.value(), mode));
}

/// The square root, rounded once by the given mode; NaN below zero, sqrt(-0) = -0.
template <format F, class Own, RoundingModeRef Mode>
rounded<F, Own> sqrt(rounded<F, Own> a, Mode&& mode) {
  return rounded<F, Own>::from_exact(detail::rounded_sqrt<F>(a.value(), mode));
}

/// a * b + c, rounded once by the given mode to the format of c: the operands may have formats of
/// their own, as in a product of bf16 accumulated in fp32.
template <format A, class OwnA, format B, class OwnB, format F, class Own, RoundingModeRef Mode>
rounded<F, Own> fma(rounded<A, OwnA> a, rounded<B, OwnB> b, rounded<F, Own> c, Mode&& mode) {
  constexpr bool exact = A.precision + B.precision <= 53 && A.emin + B.emin > -900 && A.emax + B.emax < 1000;
  return rounded<F, Own>::from_exact(detail::rounded_fma<F, exact>(a.value(), b.value(), c.value(), mode));
}

template <format F, class Mode>
rounded<F, Mode> sqrt(rounded<F, Mode> a) {
  Mode mode;
  return sqrt(a, mode);
}

template <format A, class OwnA, format B, class OwnB, format F, class Mode>
rounded<F, Mode> fma(rounded<A, OwnA> a, rounded<B, OwnB> b, rounded<F, Mode> c) {
  Mode mode;
  return fma(a, b, c, mode);
}

template <format F, class Mode>
constexpr rounded<F, Mode> abs(rounded<F, Mode> a) {
  return rounded<F, Mode>::from_exact(a.value() < 0 || a.value() == 0 ? 0 - a.value() : a.value());
}

template <format F, class Mode>
constexpr bool isnan(rounded<F, Mode> a) {
  return a.value() != a.value();
}

template <format F, class Mode>
constexpr bool isinf(rounded<F, Mode> a) {
  return a.value() - a.value() != 0 && !isnan(a);
}

template <format F, class Mode>
constexpr bool isfinite(rounded<F, Mode> a) {
  return a.value() - a.value() == 0;
}

template <format F, class Mode>
constexpr bool signbit(rounded<F, Mode> a) {
  return (std::bit_cast<std::uint64_t>(a.value()) & detail::sign_bit) != 0;
}

template <format F, StatelessMode Mode>
struct scalar_traits<rounded<F, Mode>> {
  static constexpr bool is_exact = false;
  static std::string name() {
    const std::string base(name_of(F));
    return std::is_same_v<Mode, nearest_even> ? base : base + "/" + std::string(Mode::name);
  }
  static constexpr rounded<F, Mode> from_int(int n) { return rounded<F, Mode>(n); }
};

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: golden.bf16_operators.add_correct
