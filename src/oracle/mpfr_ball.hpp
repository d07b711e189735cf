// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// An MPFR number and a bound on how far the exact one is from it, for chains of a few operations on single numbers: the
// derivatives of gains and activations. Each operation adds its rounding and what the errors of its operands do, to all orders.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <limits>

#include "deltaproof/oracle/wide_bound.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"

namespace deltaproof {

class mpfr_ball {
 public:
  /// Exactly x.
  mpfr_ball(mpfr_prec_t bits, double x) : value_{std::max<mpfr_prec_t>(bits, 53)} { mpfr_set_d(value_.get(), x, MPFR_RNDN); }

  /// The decimal that x is nearest to.
  [[nodiscard]] static mpfr_ball decimal(mpfr_prec_t bits, double x) {
    mpfr_ball out(bits, 0);
    set_decimal(out.value_.get(), x);
    return out.rounded({});
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

  /// The same number, known less well.
  [[nodiscard]] mpfr_ball widened(const wide_bound& by) const {
    mpfr_set_inexflag();
    mpfr_ball out = *this;
    out.error_ += by;
    return out;
  }

  friend mpfr_ball operator+(const mpfr_ball& a, const mpfr_ball& b) {
    mpfr_ball out = a.like();
    mpfr_add(out.value_.get(), a.value(), b.value(), MPFR_RNDN);
    return out.rounded(a.error_ + b.error_);
  }
  friend mpfr_ball operator-(const mpfr_ball& a, const mpfr_ball& b) {
    mpfr_ball out = a.like();
    mpfr_sub(out.value_.get(), a.value(), b.value(), MPFR_RNDN);
    return out.rounded(a.error_ + b.error_);
  }
  friend mpfr_ball operator*(const mpfr_ball& a, const mpfr_ball& b) {
    mpfr_ball out = a.like();
    if (a.is_exact_zero() || b.is_exact_zero()) return out;
    mpfr_mul(out.value_.get(), a.value(), b.value(), MPFR_RNDN);
    return out.rounded(a.size() * b.error_ + a.error_ * b.size() + a.error_ * b.error_);
  }
  /// a / b; of infinite error where b may be 0.
  friend mpfr_ball operator/(const mpfr_ball& a, const mpfr_ball& b) {
    mpfr_ball out = a.like();
    const mpfr_value least = b.least_size();
    if (mpfr_sgn(least.get()) <= 0) return out.unknown();
    if (a.is_exact_zero()) return out;
    mpfr_div(out.value_.get(), a.value(), b.value(), MPFR_RNDN);
    // a'/b' - a/b = (a' - a)/b' + (a/b)(b - b')/b'
    mpfr_value inverse(64);
    const bounds_alone bounds;
    mpfr_ui_div(inverse.get(), 1, least.get(), MPFR_RNDU);
    return out.rounded((a.error_ + out.size() * (1 + 0x1p-50) * b.error_) * magnitude_bound(inverse.get()));
  }
  /// e^a; where a is known too coarsely and not positive, all of [0, 1].
  friend mpfr_ball exp(const mpfr_ball& a) {
    mpfr_ball out = a.like();
    if (!(a.error_ < wide_bound(0.5))) {
      if (!a.surely_below(0)) return out.unknown();
      mpfr_set_inexflag();
      out.error_ = 1.0;
      return out;
    }
    mpfr_exp(out.value_.get(), a.value(), MPFR_RNDN);
    return out.rounded(2 * a.error_ * out.size());  // e^x - 1 <= 2 x up to 1
  }
  /// Of a number that is positive with its error.
  friend mpfr_ball sqrt(const mpfr_ball& a) {
    mpfr_ball out = a.like();
    const mpfr_value least = a.least_size();
    if (a.is_negative() || mpfr_sgn(least.get()) <= 0) return out.unknown();
    mpfr_sqrt(out.value_.get(), a.value(), MPFR_RNDN);
    mpfr_value inverse(64);
    const bounds_alone bounds;
    mpfr_rec_sqrt(inverse.get(), least.get(), MPFR_RNDU);
    return out.rounded(a.error_ * magnitude_bound(inverse.get()));
  }
  friend mpfr_ball operator-(const mpfr_ball& a) {
    mpfr_ball out = a;
    mpfr_neg(out.value_.get(), out.value_.get(), MPFR_RNDN);
    return out;
  }

 private:
  [[nodiscard]] mpfr_ball like() const { return {mpfr_get_prec(value_.get()), 0}; }
  [[nodiscard]] wide_bound size() const { return magnitude_bound(value_.get()); }
  [[nodiscard]] mpfr_ball unknown() {
    mpfr_set_inexflag();  // nobody takes what stands for it for exact
    mpfr_set_zero(value_.get(), 1);
    error_ = std::numeric_limits<double>::infinity();
    return *this;
  }
  /// With its own rounding, and what the arithmetic of these bounds may lose.
  [[nodiscard]] mpfr_ball rounded(const wide_bound& from_operands) {
    if (mpfr_number_p(value_.get()) == 0) return unknown();
    const wide_bound own = size() * wide_bound::scaled(1, -mpfr_get_prec(value_.get())) + mpfr_field::underflow_unit;
    error_ = (from_operands + own) * (1 + 0x1p-40);
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

}  // namespace deltaproof
