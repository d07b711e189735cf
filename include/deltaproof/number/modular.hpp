// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Integers modulo the prime 2^61 - 1: a field in which algebraic identities are tests with `==`, at
// about twice the cost of double. An identity between polynomials with integer coefficients that
// fails over the rationals also fails here, except for inputs that a random choice does not meet.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "deltaproof/number/traits.hpp"
#include "deltaproof/number/wide.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

class modular {
 public:
  static constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;

  constexpr modular() = default;
  explicit constexpr modular(std::int64_t value) : value_(reduced(value)) {}

  /// The representative in [0, prime).
  constexpr std::uint64_t value() const { return value_; }

  constexpr modular operator-() const { return of(value_ == 0 ? 0 : prime - value_); }
  friend constexpr modular operator+(modular a, modular b) {
    const std::uint64_t sum = a.value_ + b.value_;
    return of(sum >= prime ? sum - prime : sum);
  }
  friend constexpr modular operator-(modular a, modular b) { return a + -b; }
  friend constexpr modular operator*(modular a, modular b) {
    const detail::uint128 product = static_cast<detail::uint128>(a.value_) * b.value_;
    // 2^61 = 1, so the two halves add.
    const std::uint64_t sum = (static_cast<std::uint64_t>(product) & prime) + static_cast<std::uint64_t>(product >> 61);
    return of(sum >= prime ? sum - prime : sum);
  }
  /// Throws domain_error if b is zero.
  friend constexpr modular operator/(modular a, modular b) { return a * b.inverse(); }

  constexpr modular& operator+=(modular b) { return *this = *this + b; }
  constexpr modular& operator-=(modular b) { return *this = *this - b; }
  constexpr modular& operator*=(modular b) { return *this = *this * b; }
  constexpr modular& operator/=(modular b) { return *this = *this / b; }

  constexpr modular pow(std::uint64_t exponent) const {
    modular result = of(1);
    for (modular base = *this; exponent != 0; exponent >>= 1, base *= base) {
      if ((exponent & 1) != 0) result *= base;
    }
    return result;
  }

  /// a^(p - 2), the inverse by Fermat's little theorem.
  /// Throws domain_error if a is zero.
  constexpr modular inverse() const {
    if (value_ == 0) throw domain_error("0 has no inverse modulo 2^61 - 1; check the denominator before dividing");
    return pow(prime - 2);
  }

  friend constexpr bool operator==(modular, modular) = default;

 private:
  static constexpr modular of(std::uint64_t value) {
    modular x;
    x.value_ = value;
    return x;
  }
  static constexpr std::uint64_t reduced(std::int64_t value) {
    const std::int64_t rest = value % static_cast<std::int64_t>(prime);
    return static_cast<std::uint64_t>(rest < 0 ? rest + static_cast<std::int64_t>(prime) : rest);
  }

  std::uint64_t value_ = 0;
};

/// The image of a finite double, a dyadic rational, under the ring homomorphism.
/// Throws domain_error for NaN and infinities.
inline modular reduce(double x) {
  const detail::unrounded parts = detail::unround(x);
  if (parts.is_special()) {
    if (x == 0) return modular();
    throw domain_error("cannot reduce " + std::to_string(x) +
                       " modulo 2^61 - 1: only a finite number can be reduced; test with isfinite first");
  }
  const modular magnitude(static_cast<std::int64_t>(parts.significand));
  // The order of 2 is 61, so a negative power is a positive one.
  const auto shift = static_cast<std::uint64_t>((parts.exponent % 61 + 61) % 61);
  const modular scaled = magnitude * modular(2).pow(shift);
  return parts.negative ? -scaled : scaled;
}

template <>
struct scalar_traits<modular> {
  static constexpr bool is_exact = true;
  static std::string name() { return "modular"; }
  static constexpr modular from_int(int n) { return modular(n); }
};

}  // namespace deltaproof
