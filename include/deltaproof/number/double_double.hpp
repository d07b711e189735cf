// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Double-word numbers hi + lo with |lo| <= ulp(hi)/2: about 106 bits at some twenty times the cost of
// double. The algorithms are the proven ones; with u = 2^-53 and no over- or underflow on the way
// (results between 2^-900 and 2^990 are safe) the relative errors are stated at each operation. There
// is no correct rounding here: use real<P> where each operation must round once.
// Source: Joldes, Muller, Popescu, "Tight and rigorous error bounds for basic building blocks of
// double-word arithmetic", ACM TOMS 44 (2017); square root: Lefevre, Louvet, Muller, Picot, Rideau,
// "Accurate calculation of Euclidean norms using double-word arithmetic", ACM TOMS 49 (2023).
#pragma once

#include <cmath>
#include <compare>
#include <string>

#include "deltaproof/number/convert.hpp"

namespace deltaproof {

/// T: double, or a vector of doubles (of g++ and clang), each place of which is a number of its own; then +, - and * alone.
/// Passed by reference: how a vector is passed by value depends on the machine.
template <class T>
class basic_double_double {
 public:
  constexpr basic_double_double() = default;
  [[gnu::always_inline]] explicit constexpr basic_double_double(const T& value) : hi_(value) {}
  /// The number in each place of a vector.
  template <class U>
  [[gnu::always_inline]] explicit constexpr basic_double_double(const basic_double_double<U>& x)
      : hi_(x.hi() - T{}), lo_(x.lo() - T{}) {}
  /// Of two parts that are a sum of two doubles already.
  [[gnu::always_inline]] static constexpr basic_double_double of_parts(const T& hi, const T& lo) { return {hi, lo}; }

  /// The exact sum of two doubles.
  [[gnu::always_inline]] static constexpr basic_double_double two_sum(const T& a, const T& b) {
    const T sum = a + b;
    const T b_part = sum - a;
    return checked(sum, (a - (sum - b_part)) + (b - b_part));
  }

  /// The exact product of two doubles of magnitude below 2^990 whose product exceeds 2^-960.
  [[gnu::always_inline]] static constexpr basic_double_double two_product(const T& a, const T& b) {
    const T product = a * b;
    // The 26 leading bits of each (Veltkamp).
    const T a_scaled = 0x1.0000002p27 * a, a_high = a_scaled - (a_scaled - a), a_low = a - a_high;
    const T b_scaled = 0x1.0000002p27 * b, b_high = b_scaled - (b_scaled - b), b_low = b - b_high;
    return checked(product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low);
  }

  [[gnu::always_inline]] constexpr const T& hi() const { return hi_; }
  [[gnu::always_inline]] constexpr const T& lo() const { return lo_; }

  [[gnu::always_inline]] constexpr basic_double_double operator-() const { return {-hi_, -lo_}; }

  /// Error: 3 u^2 + 13 u^3 (AccurateDWPlusDW).
  [[gnu::always_inline]] friend constexpr basic_double_double operator+(const basic_double_double& x,
                                                                        const basic_double_double& y) {
    const basic_double_double s = two_sum(x.hi_, y.hi_);
    const basic_double_double t = two_sum(x.lo_, y.lo_);
    const basic_double_double v = fast_two_sum(s.hi_, s.lo_ + t.hi_);
    return fast_two_sum(v.hi_, t.lo_ + v.lo_);
  }
  [[gnu::always_inline]] friend constexpr basic_double_double operator-(const basic_double_double& x,
                                                                        const basic_double_double& y) {
    return x + -y;
  }

  /// Error: 5 u^2 (DWTimesDW1; the bound of 2017 was 7 u^2, Muller and Rideau 2022 lowered it).
  [[gnu::always_inline]] friend constexpr basic_double_double operator*(const basic_double_double& x,
                                                                        const basic_double_double& y) {
    const basic_double_double c = two_product(x.hi_, y.hi_);
    return fast_two_sum(c.hi_, c.hi_ - c.hi_ == T{} ? c.lo_ + (x.hi_ * y.lo_ + x.lo_ * y.hi_) : T{});
  }

  /// Error: 15 u^2 + 56 u^3 (DWDivDW2).
  friend constexpr basic_double_double operator/(basic_double_double x, basic_double_double y) {
    const double quotient = x.hi_ / y.hi_;
    if (quotient - quotient != 0 || !isfinite(y)) return basic_double_double(quotient);
    const basic_double_double r = times(y, quotient);
    const double rest = (x.hi_ - r.hi_) + (x.lo_ - r.lo_);
    return fast_two_sum(quotient, rest / y.hi_);
  }

  constexpr basic_double_double& operator+=(basic_double_double y) { return *this = *this + y; }
  constexpr basic_double_double& operator-=(basic_double_double y) { return *this = *this - y; }
  constexpr basic_double_double& operator*=(basic_double_double y) { return *this = *this * y; }
  constexpr basic_double_double& operator/=(basic_double_double y) { return *this = *this / y; }

  friend constexpr bool operator==(basic_double_double x, basic_double_double y) { return x.hi_ == y.hi_ && x.lo_ == y.lo_; }
  friend constexpr std::partial_ordering operator<=>(basic_double_double x, basic_double_double y) {
    return x.hi_ == y.hi_ ? x.lo_ <=> y.lo_ : x.hi_ <=> y.hi_;
  }

  /// Error: 25/8 u^2; NaN below zero.
  friend basic_double_double sqrt(basic_double_double x) {
    const double root = std::sqrt(x.hi_);
    if (!(x.hi_ > 0) || !std::isfinite(root)) return basic_double_double(root);
    const basic_double_double square = two_product(root, root);
    const double rest = x.lo_ + ((x.hi_ - square.hi_) - square.lo_);
    return fast_two_sum(root, rest / (2 * root));
  }

  friend constexpr basic_double_double abs(basic_double_double x) {
    return x.hi_ < 0 || x.hi_ == 0 ? basic_double_double() - x : x;
  }
  friend constexpr bool isnan(basic_double_double x) { return x.hi_ != x.hi_; }
  friend constexpr bool isfinite(basic_double_double x) { return x.hi_ - x.hi_ == 0; }

 private:
  [[gnu::always_inline]] constexpr basic_double_double(const T& hi, const T& lo) : hi_(hi), lo_(lo) {}

  /// An infinite or NaN sum has no error term.
  [[gnu::always_inline]] static constexpr basic_double_double checked(const T& hi, const T& lo) {
    return {hi, hi - hi == T{} ? lo : T{}};
  }

  /// The exact sum where |a| >= |b| or a = 0.
  [[gnu::always_inline]] static constexpr basic_double_double fast_two_sum(const T& a, const T& b) {
    const T sum = a + b;
    return checked(sum, b - (sum - a));
  }

  /// Error: 2 u^2 (DWTimesFP1).
  static constexpr basic_double_double times(basic_double_double x, double y) {
    const basic_double_double c = two_product(x.hi_, y);
    const basic_double_double t = fast_two_sum(c.hi_, x.lo_ * y);
    return fast_two_sum(t.hi_, t.lo_ + c.lo_);
  }

  T hi_ = {};
  T lo_ = {};
};
using double_double = basic_double_double<double>;

template <>
inline constexpr int precision_bits<double_double> = 106;

namespace detail {

template <>
struct exact_source<double_double> {
  static unrounded get(double_double x) { return wide_sum(x.hi(), x.lo()); }
};

template <FormatScalar From>
struct lift_rule<From, double_double> {
  static constexpr bool exact = true;
  static constexpr double_double apply(From x) { return double_double(static_cast<double>(x)); }
};

}  // namespace detail

template <>
struct scalar_traits<double_double> {
  static constexpr bool is_exact = false;
  static std::string name() { return "double_double"; }
  static constexpr double_double from_int(int n) { return double_double(n); }
};

}  // namespace deltaproof
