// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// An MPFR number and a bound on how far the exact one is from it, for chains of a few operations on single numbers: gains of
// rules, their derivatives and those of activations. Each operation has the more bits of its operands, and adds its rounding and
// what the errors of its operands do, to all orders. Source: proofs/notes/oracle-radius.md, "Lowered inputs".
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <limits>
#include <string>

#include "deltaproof/number/scalar.hpp"
#include "deltaproof/oracle/wide_bound.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"

namespace deltaproof {

class mpfr_ball {
 public:
  /// Exactly x.
  mpfr_ball(mpfr_prec_t bits, double x) : value_{std::max<mpfr_prec_t>(bits, 53)} { mpfr_set_d(value_.get(), x, MPFR_RNDN); }

  /// x, and all that is within 2^exponent |x| of it.
  [[nodiscard]] static mpfr_ball around(mpfr_srcptr x, int exponent) {
    mpfr_ball out(mpfr_get_prec(x), 0);
    mpfr_set(out.value_.get(), x, MPFR_RNDN);
    out.error_ = out.size() * wide_bound::scaled(1, exponent);
    return out;
  }

  /// The decimal that x is nearest to.
  [[nodiscard]] static mpfr_ball decimal(mpfr_prec_t bits, double x) {
    mpfr_ball out(bits, 0);
    set_decimal(out.value_.get(), x);
    return out.rounded({}, inexact);
  }

  [[nodiscard]] mpfr_srcptr value() const { return value_.get(); }
  [[nodiscard]] const wide_bound& error() const { return error_; }
  [[nodiscard]] bool is_exact_zero() const { return mpfr_zero_p(value_.get()) != 0 && error_ == wide_bound(); }
  /// Every number within the bounds is below `x`.
  [[nodiscard]] bool surely_below(double x) const {
    mpfr_value top = above();
    return mpfr_cmp_d(top.get(), x) < 0;
  }
  [[nodiscard]] bool is_negative() const { return mpfr_sgn(value_.get()) < 0; }

  /// The middle alone.
  [[nodiscard]] mpfr_ball exactly() const {
    mpfr_ball out = *this;
    out.error_ = {};
    return out;
  }
  /// The same number, known less well.
  [[nodiscard]] mpfr_ball widened(const wide_bound& by) const {
    mpfr_set_inexflag();
    mpfr_ball out = *this;
    out.error_ += by;
    return out;
  }

  friend mpfr_ball operator+(const mpfr_ball& a, const mpfr_ball& b) {
    mpfr_ball out = a.like(b);
    const int way = mpfr_add(out.value_.get(), a.value(), b.value(), MPFR_RNDN);
    return out.rounded(a.error_ + b.error_, way);
  }
  friend mpfr_ball operator-(const mpfr_ball& a, const mpfr_ball& b) {
    mpfr_ball out = a.like(b);
    const int way = mpfr_sub(out.value_.get(), a.value(), b.value(), MPFR_RNDN);
    return out.rounded(a.error_ + b.error_, way);
  }
  friend mpfr_ball operator*(const mpfr_ball& a, const mpfr_ball& b) {
    mpfr_ball out = a.like(b);
    if (a.is_exact_zero() || b.is_exact_zero()) return out;
    const int way = mpfr_mul(out.value_.get(), a.value(), b.value(), MPFR_RNDN);
    return out.rounded(a.size() * b.error_ + a.error_ * b.size() + a.error_ * b.error_, way);
  }
  /// a / b; of infinite error where b may be 0.
  friend mpfr_ball operator/(const mpfr_ball& a, const mpfr_ball& b) {
    mpfr_ball out = a.like(b);
    const mpfr_value least = b.least_size();
    if (mpfr_sgn(least.get()) <= 0) return out.unknown();
    if (a.is_exact_zero()) return out;
    const int way = mpfr_div(out.value_.get(), a.value(), b.value(), MPFR_RNDN);
    // a'/b' - a/b = (a' - a)/b' + (a/b)(b - b')/b'
    mpfr_value inverse(64);
    const bounds_alone bounds;
    mpfr_ui_div(inverse.get(), 1, least.get(), MPFR_RNDU);
    return out.rounded((a.error_ + out.size() * (1 + 0x1p-50) * b.error_) * magnitude_bound(inverse.get()), way);
  }
  friend mpfr_ball exp(const mpfr_ball& a) {
    mpfr_ball out = a.like();
    const int way = mpfr_exp(out.value_.get(), a.value(), MPFR_RNDN);
    return out.rounded(a.change_of_exp(), way);
  }
  friend mpfr_ball expm1(const mpfr_ball& a) {
    mpfr_ball out = a.like();
    const int way = mpfr_expm1(out.value_.get(), a.value(), MPFR_RNDN);
    return out.rounded(a.change_of_exp(), way);
  }
  /// Of a number that is positive with its error.
  friend mpfr_ball sqrt(const mpfr_ball& a) {
    mpfr_ball out = a.like();
    const mpfr_value least = a.least_size();
    if (a.is_negative() || mpfr_sgn(least.get()) <= 0) return out.unknown();
    const int way = mpfr_sqrt(out.value_.get(), a.value(), MPFR_RNDN);
    mpfr_value inverse(64);
    const bounds_alone bounds;
    mpfr_rec_sqrt(inverse.get(), least.get(), MPFR_RNDU);
    return out.rounded(a.error_ * magnitude_bound(inverse.get()), way);
  }
  friend mpfr_ball operator-(const mpfr_ball& a) {
    mpfr_ball out = a;
    mpfr_neg(out.value_.get(), out.value_.get(), MPFR_RNDN);
    return out;
  }
  /// Both are exact and equal.
  friend bool operator==(const mpfr_ball& a, const mpfr_ball& b) {
    return a.error_ == wide_bound() && b.error_ == wide_bound() && mpfr_equal_p(a.value(), b.value()) != 0;
  }

 private:
  [[nodiscard]] mpfr_ball like() const { return {mpfr_get_prec(value_.get()), 0}; }
  [[nodiscard]] mpfr_ball like(const mpfr_ball& b) const {
    return {std::max(mpfr_get_prec(value_.get()), mpfr_get_prec(b.value_.get())), 0};
  }
  /// How far e^x may be from e^a for an x within the bounds: both lie in (0, e^top], and the slope is at most e^top.
  [[nodiscard]] wide_bound change_of_exp() const {
    if (!error_.finite()) return error_;
    const bounds_alone bounds;
    mpfr_value top = above();
    mpfr_exp(top.get(), top.get(), MPFR_RNDU);
    if (mpfr_number_p(top.get()) == 0) return std::numeric_limits<double>::infinity();
    return magnitude_bound(top.get()) * (error_ < wide_bound(1) ? error_ : wide_bound(1));
  }
  [[nodiscard]] wide_bound size() const { return magnitude_bound(value_.get()); }
  [[nodiscard]] mpfr_ball unknown() {
    mpfr_set_inexflag();  // nobody takes what stands for it for exact
    mpfr_set_zero(value_.get(), 1);
    error_ = std::numeric_limits<double>::infinity();
    return *this;
  }
  /// What MPFR returns of an operation that was rounded; 0 is one that was not.
  static constexpr int inexact = 1;
  /// With its own rounding, unless MPFR says that there was none, and what the arithmetic of these bounds may lose. A constant of
  /// few bits would lose all others in a sum with another, 0 + 1 as dual numbers form it, if each operation counted as rounded.
  [[nodiscard]] mpfr_ball rounded(const wide_bound& from_operands, int way) {
    if (mpfr_number_p(value_.get()) == 0) return unknown();
    wide_bound sum = from_operands;
    if (way != 0) sum += size() * wide_bound::scaled(1, -mpfr_get_prec(value_.get())) + mpfr_field::underflow_unit;
    error_ = sum * (1 + 0x1p-40);
    return *this;
  }
  /// The error as an MPFR number, rounded up.
  [[nodiscard]] mpfr_value error_number() const {
    mpfr_value e(64);
    mpfr_set_d(e.get(), error_.significand(), MPFR_RNDU);
    mpfr_mul_2si(e.get(), e.get(), error_.scale(), MPFR_RNDU);
    return e;
  }
  [[nodiscard]] mpfr_value above() const {
    const bounds_alone bounds;
    mpfr_value out = error_number();
    mpfr_add(out.get(), value_.get(), out.get(), MPFR_RNDU);
    return out;
  }
  /// |value| - error, rounded down.
  [[nodiscard]] mpfr_value least_size() const {
    const bounds_alone bounds;
    const mpfr_value e = error_number();
    mpfr_value out(64);
    mpfr_abs(out.get(), value_.get(), MPFR_RNDD);
    mpfr_sub(out.get(), out.get(), e.get(), MPFR_RNDD);
    return out;
  }

  mpfr_value value_;
  wide_bound error_;
};

template <>
struct scalar_traits<mpfr_ball> {
  static constexpr bool is_exact = false;
  static std::string name() { return "mpfr_ball"; }
  static mpfr_ball from_int(int n) { return {53, static_cast<double>(n)}; }
};

}  // namespace deltaproof
