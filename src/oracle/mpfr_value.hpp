// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// An MPFR number with run-time precision that owns its limbs, and the field of rows made of such numbers: they answer for
// heads that may leave their range, and for the tests of the other tiers. Assignment takes the other's precision;
// arithmetic is written out as MPFR calls, so that every rounding is visible. Source of the field's contract:
// oracle/certify.hpp.
#pragma once

#include <mpfr.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "deltaproof/oracle/wide_bound.hpp"

namespace deltaproof {

class mpfr_value {
 public:
  mpfr_value() : mpfr_value(MPFR_PREC_MIN) {}
  explicit mpfr_value(mpfr_prec_t bits) {
    mpfr_init2(x_, bits);
    mpfr_set_zero(x_, 1);
  }
  mpfr_value(const mpfr_value& other) {
    mpfr_init2(x_, mpfr_get_prec(other.x_));
    mpfr_set(x_, other.x_, MPFR_RNDN);
  }
  mpfr_value(mpfr_value&& other) noexcept : mpfr_value() { mpfr_swap(x_, other.x_); }
  mpfr_value& operator=(const mpfr_value& other) {
    if (this != &other) {
      mpfr_set_prec(x_, mpfr_get_prec(other.x_));
      mpfr_set(x_, other.x_, MPFR_RNDN);
    }
    return *this;
  }
  mpfr_value& operator=(mpfr_value&& other) noexcept {
    mpfr_swap(x_, other.x_);
    return *this;
  }
  ~mpfr_value() { mpfr_clear(x_); }

  [[nodiscard]] mpfr_ptr get() noexcept { return x_; }
  [[nodiscard]] mpfr_srcptr get() const noexcept { return x_; }

 private:
  mpfr_t x_;
};

/// Whether all results of this thread were exact since mpfr_clear_inexflag.
[[nodiscard]] inline bool nothing_was_rounded() { return mpfr_buildopt_tls_p() != 0 && mpfr_inexflag_p() == 0; }

/// What is rounded while it lives is not noted there: a bound on a result is no part of it.
class bounds_alone {
 public:
  bounds_alone() = default;
  bounds_alone(const bounds_alone&) = delete;
  bounds_alone& operator=(const bounds_alone&) = delete;
  ~bounds_alone() {
    if (!rounded_) mpfr_clear_inexflag();
  }

 private:
  bool rounded_ = mpfr_inexflag_p() != 0;
};

/// At least |x|, and at most (1 + 2^-52)|x|.
[[nodiscard]] inline wide_bound magnitude_bound(mpfr_srcptr x) {
  if (mpfr_regular_p(x) != 0 && mpfr_get_exp(x) < 250 && mpfr_get_exp(x) > -250) return std::fabs(mpfr_get_d(x, MPFR_RNDA));
  long exponent = 0;
  const double m = mpfr_get_d_2exp(&exponent, x, MPFR_RNDA);
  return wide_bound::scaled(m < 0 ? -m : m, exponent);
}

/// Rows of MPFR numbers of `bits` bits; k*s + acc is rounded once.
struct mpfr_field {
  using value = mpfr_value;
  using radius = wide_bound;
  static constexpr double square_floor = 0;
  /// Line U: MPFR's exponents end at 2^-(2^30), and a unit is at least 2^-widest_bits.
  static inline const wide_bound underflow_unit = wide_bound::scaled(1, -(std::int64_t{1} << 29));
  mpfr_prec_t bits;

  [[nodiscard]] value zero() const { return value(bits); }
  [[nodiscard]] static double approximate(const value& x) { return mpfr_get_d(x.get(), MPFR_RNDN); }
  [[nodiscard]] static wide_bound magnitude(const value& x) { return magnitude_bound(x.get()); }
  [[nodiscard]] static bool is_negative(const value& x) { return mpfr_sgn(x.get()) < 0; }
  /// A decay below MPFR's exponents is the least of their numbers: 0 is a decay of 0.
  [[nodiscard]] static wide_bound decay_floor(double given, bool all_zero) {
    return given == 0 || all_zero ? wide_bound() : underflow_unit;
  }
  [[nodiscard]] static bool is_zero(const value& x) { return mpfr_zero_p(x.get()) != 0; }

  static void decay_row(value* s, const value& a, wide_bound* squares, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) {
      mpfr_mul(s[v].get(), s[v].get(), a.get(), MPFR_RNDN);
      add_square(squares[v], s[v]);
    }
  }
  static void predict_row(value* p, const value& k, const value* s, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) mpfr_fma(p[v].get(), k.get(), s[v].get(), p[v].get(), MPFR_RNDN);
  }
  static void innovation(value* w, wide_bound* r_size, wide_bound* w_size, const value& b, const value* v, const value* p,
                         std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      mpfr_sub(w[i].get(), v[i].get(), p[i].get(), MPFR_RNDN);
      r_size[i] = magnitude(w[i]);
      mpfr_mul(w[i].get(), b.get(), w[i].get(), MPFR_RNDN);
      w_size[i] = magnitude(w[i]);
    }
  }
  static void update_row(value* s, const value& k, const value* w, wide_bound* squares, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) {
      mpfr_fma(s[v].get(), k.get(), w[v].get(), s[v].get(), MPFR_RNDN);
      add_square(squares[v], s[v]);
    }
  }
  static void read_row(value* o, const value& q, const value* s, std::size_t n) { predict_row(o, q, s, n); }
  [[nodiscard]] value dot(const value* a, const value* b, std::size_t n) const {
    value out = zero();
    for (std::size_t v = 0; v < n; ++v) mpfr_fma(out.get(), a[v].get(), b[v].get(), out.get(), MPFR_RNDN);
    return out;
  }
  static void subtract(value* out, const value* a, const value* b, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) mpfr_sub(out[v].get(), a[v].get(), b[v].get(), MPFR_RNDN);
  }
  [[nodiscard]] value sum(const value& a, const value& b) const {
    value out = zero();
    mpfr_add(out.get(), a.get(), b.get(), MPFR_RNDN);
    return out;
  }
  [[nodiscard]] value product(const value& a, const value& b) const {
    value out = zero();
    mpfr_mul(out.get(), a.get(), b.get(), MPFR_RNDN);
    return out;
  }
  [[nodiscard]] value negated(const value& a) const {
    value out = zero();
    mpfr_neg(out.get(), a.get(), MPFR_RNDN);
    return out;
  }
  static void scale_row(value* o, double c, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) mpfr_mul_d(o[v].get(), o[v].get(), c, MPFR_RNDN);
  }

 private:
  static void add_square(wide_bound& sum, const value& x) {
    const wide_bound m = magnitude(x);
    sum += m * m;
  }
};

}  // namespace deltaproof
