// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Numbers value + slope e with e^2 = 0: run a template over scalars with `dual<S>` and each result carries, beside its
// value, the derivative along the slopes that its inputs were given. Over rationals or modulo a prime that derivative is
// exact, so gradients are tested with `==`. Ring operations and division; nothing is compared but equality of both
// parts. Rounds: as S does, in the order written at each operation. It exists to check backward passes without trusting
// a hand-made one.
#pragma once

#include <string>
#include <utility>

#include "deltaproof/number/scalar.hpp"

namespace deltaproof {

template <class S>
class dual {
 public:
  using value_type = S;

  dual() = default;

  /// value + slope e: a constant unless a slope is given.
  explicit constexpr dual(S value, S slope = zero<S>()) : value_(std::move(value)), slope_(std::move(slope)) {}

  [[nodiscard]] constexpr const S& value() const { return value_; }
  [[nodiscard]] constexpr const S& slope() const { return slope_; }

  constexpr dual operator-() const { return dual(-value_, -slope_); }
  friend constexpr dual operator+(const dual& a, const dual& b) { return dual(a.value_ + b.value_, a.slope_ + b.slope_); }
  friend constexpr dual operator-(const dual& a, const dual& b) { return dual(a.value_ - b.value_, a.slope_ - b.slope_); }

  /// a b + (a' b + a b') e.
  friend constexpr dual operator*(const dual& a, const dual& b) {
    return dual(a.value_ * b.value_, a.slope_ * b.value_ + a.value_ * b.slope_);
  }

  /// q + ((a' - q b') / b) e with q = a / b. Throws: what S throws where the value of b is 0.
  friend constexpr dual operator/(const dual& a, const dual& b) {
    const S quotient = a.value_ / b.value_;
    return dual(quotient, (a.slope_ - quotient * b.slope_) / b.value_);
  }

  constexpr dual& operator+=(const dual& b) { return *this = *this + b; }
  constexpr dual& operator-=(const dual& b) { return *this = *this - b; }
  constexpr dual& operator*=(const dual& b) { return *this = *this * b; }
  constexpr dual& operator/=(const dual& b) { return *this = *this / b; }

  /// Value and slope are equal.
  friend constexpr bool operator==(const dual& a, const dual& b) { return a.value_ == b.value_ && a.slope_ == b.slope_; }

 private:
  S value_ = zero<S>();
  S slope_ = zero<S>();
};

template <class S>
struct scalar_traits<dual<S>> {
  static constexpr bool is_exact = scalar_traits<S>::is_exact;
  static std::string name() { return "dual<" + scalar_traits<S>::name() + ">"; }
  static constexpr dual<S> from_int(int n) { return dual<S>(scalar_traits<S>::from_int(n)); }
};

}  // namespace deltaproof
