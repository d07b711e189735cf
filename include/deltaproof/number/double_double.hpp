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

class double_double {
 public:
  constexpr double_double() = default;
  explicit constexpr double_double(double value) : hi_(value) {}

  /// The exact sum of two doubles.
  static constexpr double_double two_sum(double a, double b) {
    const double sum = a + b;
    const double b_part = sum - a;
    return checked(sum, (a - (sum - b_part)) + (b - b_part));
  }

  /// The exact product of two doubles of magnitude below 2^990 whose product exceeds 2^-960.
  static constexpr double_double two_product(double a, double b) {
    const double product = a * b;
    const double a_high = high_half(a);
    const double b_high = high_half(b);
    const double a_low = a - a_high;
    const double b_low = b - b_high;
    return checked(product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low);
  }

  constexpr double hi() const { return hi_; }
  constexpr double lo() const { return lo_; }

  constexpr double_double operator-() const { return {-hi_, -lo_}; }

  /// Error: 3 u^2 + 13 u^3 (AccurateDWPlusDW).
  friend constexpr double_double operator+(double_double x, double_double y) {
    const double_double s = two_sum(x.hi_, y.hi_);
    const double_double t = two_sum(x.lo_, y.lo_);
    const double_double v = fast_two_sum(s.hi_, s.lo_ + t.hi_);
    return fast_two_sum(v.hi_, t.lo_ + v.lo_);
  }
  friend constexpr double_double operator-(double_double x, double_double y) { return x + -y; }

  /// Error: 5 u^2 (DWTimesDW1; the bound of 2017 was 7 u^2, Muller and Rideau 2022 lowered it).
  friend constexpr double_double operator*(double_double x, double_double y) {
    const double_double c = two_product(x.hi_, y.hi_);
    if (!isfinite(c)) return c;
    return fast_two_sum(c.hi_, c.lo_ + (x.hi_ * y.lo_ + x.lo_ * y.hi_));
  }

  /// Error: 15 u^2 + 56 u^3 (DWDivDW2).
  friend constexpr double_double operator/(double_double x, double_double y) {
    const double quotient = x.hi_ / y.hi_;
    if (quotient - quotient != 0 || !isfinite(y)) return double_double(quotient);
    const double_double r = times(y, quotient);
    const double rest = (x.hi_ - r.hi_) + (x.lo_ - r.lo_);
    return fast_two_sum(quotient, rest / y.hi_);
  }

  constexpr double_double& operator+=(double_double y) { return *this = *this + y; }
  constexpr double_double& operator-=(double_double y) { return *this = *this - y; }
  constexpr double_double& operator*=(double_double y) { return *this = *this * y; }
  constexpr double_double& operator/=(double_double y) { return *this = *this / y; }

  friend constexpr bool operator==(double_double x, double_double y) { return x.hi_ == y.hi_ && x.lo_ == y.lo_; }
  friend constexpr std::partial_ordering operator<=>(double_double x, double_double y) {
    return x.hi_ == y.hi_ ? x.lo_ <=> y.lo_ : x.hi_ <=> y.hi_;
  }

  /// Error: 25/8 u^2; NaN below zero.
  friend double_double sqrt(double_double x) {
    const double root = std::sqrt(x.hi_);
    if (!(x.hi_ > 0) || !std::isfinite(root)) return double_double(root);
    const double_double square = two_product(root, root);
    const double rest = x.lo_ + ((x.hi_ - square.hi_) - square.lo_);
    return fast_two_sum(root, rest / (2 * root));
  }

  friend constexpr double_double abs(double_double x) { return x.hi_ < 0 || x.hi_ == 0 ? double_double() - x : x; }
  friend constexpr bool isnan(double_double x) { return x.hi_ != x.hi_; }
  friend constexpr bool isfinite(double_double x) { return x.hi_ - x.hi_ == 0; }

 private:
  constexpr double_double(double hi, double lo) : hi_(hi), lo_(lo) {}

  /// An infinite or NaN sum has no error term.
  static constexpr double_double checked(double hi, double lo) { return {hi, hi - hi == 0 ? lo : 0}; }

  /// The exact sum where |a| >= |b| or a = 0.
  static constexpr double_double fast_two_sum(double a, double b) {
    const double sum = a + b;
    return checked(sum, b - (sum - a));
  }

  /// The 26 leading bits (Veltkamp).
  static constexpr double high_half(double x) {
    const double scaled = 0x1.0000002p27 * x;
    return scaled - (scaled - x);
  }

  /// Error: 2 u^2 (DWTimesFP1).
  static constexpr double_double times(double_double x, double y) {
    const double_double c = two_product(x.hi_, y);
    const double_double t = fast_two_sum(c.hi_, x.lo_ * y);
    return fast_two_sum(t.hi_, t.lo_ + c.lo_);
  }

  double hi_ = 0;
  double lo_ = 0;
};

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
