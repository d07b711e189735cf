// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/elementary.hpp"

#include <mpfr.h>

#include <cmath>

namespace deltaproof::detail {

namespace {

/// An MPFR variable that is freed with its scope.
class variable {
 public:
  explicit variable(mpfr_prec_t precision) { mpfr_init2(value_, precision); }
  ~variable() { mpfr_clear(value_); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

/// Beyond every format in either direction, and still far from the limits of an int.
constexpr int far_exponent = 1 << 24;

/// The leading 128 bits of a nonzero finite value; `rest` says that the truth lies further from zero.
unrounded leading(mpfr_srcptr x, bool rest) {
  unrounded result;
  mpz_t significand;
  mpz_init(significand);
  const mpfr_exp_t exponent = mpfr_get_z_2exp(significand, x);
  result.negative = mpz_sgn(significand) < 0;
  const std::size_t bits = mpz_sizeinbase(significand, 2);
  const mp_bitcnt_t excess = bits > 128 ? bits - 128 : 0;
  result.rest = rest || mpz_scan1(significand, 0) < excess;
  mpz_tdiv_q_2exp(significand, significand, excess);
  result.significand =
      static_cast<uint128>(mpz_size(significand) > 1 ? mpz_getlimbn(significand, 1) : 0) << 64 | mpz_getlimbn(significand, 0);
  mpz_clear(significand);
  const mpfr_exp_t limit = far_exponent;
  result.exponent = static_cast<int>(exponent > limit ? limit : exponent < -limit ? -limit : exponent) + static_cast<int>(excess);
  return result;
}

using mpfr_function = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

/// MPFR rounds correctly, so its truncation to 128 bits and its ternary value are exact knowledge.
unrounded truncated(mpfr_function function, double x) {
  variable argument(53);
  variable value(128);
  mpfr_set_d(argument.get(), x, MPFR_RNDN);
  const bool inexact = function(value.get(), argument.get(), MPFR_RNDZ) != 0;
  if (mpfr_regular_p(value.get()) != 0) return leading(value.get(), inexact);
  if (!inexact) return unrounded_special(mpfr_get_d(value.get(), MPFR_RNDN));
  // Truncated to zero below MPFR's own exponent range.
  unrounded result;
  result.significand = 1;
  result.exponent = -far_exponent;
  result.rest = true;
  return result;
}

}  // namespace

unrounded wide_exp(double x) { return truncated(mpfr_exp, x); }

unrounded wide_expm1(double x) { return truncated(mpfr_expm1, x); }

unrounded wide_log(double x) { return truncated(mpfr_log, x); }

unrounded wide_sigmoid(double x) {
  if (x != x) return unrounded_special(x);
  if (x == 0) return unrounded_special(0.5);
  if (std::isinf(x)) return unrounded_special(x > 0 ? 1 : 0);
  unrounded result;
  result.rest = true;
  // Closer to 1/2 or to 1 than 128 bits can tell: only the side matters.
  if (std::fabs(x) < 0x1p-126) {
    result.significand = x > 0 ? uint128{1} << 127 : ~uint128{0};
    result.exponent = x > 0 ? -128 : -129;
    return result;
  }
  if (x > 100) {
    result.significand = ~uint128{0};
    result.exponent = -128;
    return result;
  }
  // A few roundings at 320 bits. The value is transcendental, so it never lies on a boundary; that it
  // keeps 2^-300 away from every one is not proved but holds with all but a vanishing probability.
  variable power(320);
  variable value(320);
  mpfr_set_d(power.get(), x > 0 ? -x : x, MPFR_RNDN);
  mpfr_exp(power.get(), power.get(), MPFR_RNDN);
  if (mpfr_zero_p(power.get()) != 0) {
    result.significand = 1;
    result.exponent = -far_exponent;
    return result;
  }
  mpfr_add_ui(value.get(), power.get(), 1, MPFR_RNDN);
  if (x > 0) {
    mpfr_ui_div(value.get(), 1, value.get(), MPFR_RNDN);
  } else {
    mpfr_div(value.get(), power.get(), value.get(), MPFR_RNDN);
  }
  return leading(value.get(), true);
}

}  // namespace deltaproof::detail
