// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Reals of a precision fixed in the type (MPFR through Boost.Multiprecision, expression templates
// off): `real<128>` has at least 128 significant bits, `precision_bits<real<128>>` says how many. Each
// operation rounds to nearest even; exponents do not run out. Formats with no more bits lift into it,
// and `round_to` takes it to any format in one rounding.
#pragma once

#include <mpfr.h>

#include <boost/multiprecision/mpfr.hpp>
#include <string>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rational.hpp"

namespace deltaproof {

namespace detail {

namespace mp = boost::multiprecision;

/// Boost states the precision in decimal digits: the least count that gives `bits` bits.
constexpr unsigned digits_for(unsigned long bits) {
  unsigned long digits = 2;
  while (mp::detail::digits10_2_2(digits) < bits) ++digits;
  return static_cast<unsigned>(digits);
}

template <unsigned Digits>
using real_of_digits = mp::number<mp::mpfr_float_backend<Digits, mp::allocate_stack>, mp::et_off>;

}  // namespace detail

template <int Bits>
using real = detail::real_of_digits<detail::digits_for(Bits)>;

template <unsigned Digits>
inline constexpr int precision_bits<detail::real_of_digits<Digits>> =
    static_cast<int>(boost::multiprecision::detail::digits10_2_2(static_cast<unsigned long>(Digits)));

namespace detail {

template <unsigned Digits>
struct exact_source<real_of_digits<Digits>> {
  static unrounded get(const real_of_digits<Digits>& x) {
    const mpfr_srcptr data = x.backend().data();
    if (mpfr_regular_p(data) == 0) return unrounded_special(mpfr_get_d(data, MPFR_RNDN));
    mpz_t significand;
    mpz_init(significand);
    const mpfr_exp_t exponent = mpfr_get_z_2exp(significand, data);
    unrounded result = leading_bits(significand);
    mpz_clear(significand);
    // Far beyond every format, and still an int.
    constexpr mpfr_exp_t limit = 1 << 24;
    result.exponent += static_cast<int>(exponent > limit ? limit : exponent < -limit ? -limit : exponent);
    return result;
  }
};

template <FormatScalar From, unsigned Digits>
struct round_rule<real_of_digits<Digits>, From> {
  static real_of_digits<Digits> apply(From x) {
    real_of_digits<Digits> result;
    mpfr_set_d(result.backend().data(), static_cast<double>(x), MPFR_RNDN);
    return result;
  }
};

template <unsigned Digits>
struct round_rule<real_of_digits<Digits>, double_double> {
  static real_of_digits<Digits> apply(double_double x) {
    mpfr_t lo;
    mpfr_init2(lo, 53);
    mpfr_set_d(lo, x.lo(), MPFR_RNDN);
    real_of_digits<Digits> result;
    mpfr_add_d(result.backend().data(), lo, x.hi(), MPFR_RNDN);
    mpfr_clear(lo);
    return result;
  }
};

template <unsigned Digits>
struct round_rule<double_double, real_of_digits<Digits>> {
  static double_double apply(const real_of_digits<Digits>& x) {
    const double hi = round_to<double>(x);
    if (!std::isfinite(hi)) return double_double(hi);
    // Exact: a multiple of the last bit of x, and smaller than x.
    real_of_digits<Digits> rest;
    mpfr_sub_d(rest.backend().data(), x.backend().data(), hi, MPFR_RNDN);
    return double_double::two_sum(hi, round_to<double>(rest));
  }
};

template <FormatScalar From, unsigned Digits>
  requires(format_of<From>.precision <= precision_bits<real_of_digits<Digits>>)
struct lift_rule<From, real_of_digits<Digits>> {
  static constexpr bool exact = true;
  static real_of_digits<Digits> apply(From x) { return round_rule<real_of_digits<Digits>, From>::apply(x); }
};

template <unsigned Narrow, unsigned Wide>
  requires(Narrow < Wide)
struct lift_rule<real_of_digits<Narrow>, real_of_digits<Wide>> {
  static constexpr bool exact = true;
  static real_of_digits<Wide> apply(const real_of_digits<Narrow>& x) { return real_of_digits<Wide>(x); }
};

/// Every finite real is a rational; one with an exponent of millions is a large one.
template <unsigned Digits>
struct lift_rule<real_of_digits<Digits>, rational> {
  static constexpr bool exact = true;
  static rational apply(const real_of_digits<Digits>& x) {
    if (mpfr_number_p(x.backend().data()) == 0) {
      throw domain_error("cannot convert NaN or an infinity to a rational; test with isfinite first");
    }
    rational result;
    mpfr_get_q(result.backend().data(), x.backend().data());
    return result;
  }
};

template <unsigned Digits>
struct round_rule<real_of_digits<Digits>, rational> {
  static real_of_digits<Digits> apply(const rational& x) {
    real_of_digits<Digits> result;
    mpfr_set_q(result.backend().data(), x.backend().data(), MPFR_RNDN);
    return result;
  }
};

template <unsigned Wide, unsigned Digits>
struct round_rule<real_of_digits<Digits>, real_of_digits<Wide>> {
  static real_of_digits<Digits> apply(const real_of_digits<Wide>& x) {
    real_of_digits<Digits> result;
    mpfr_set(result.backend().data(), x.backend().data(), MPFR_RNDN);
    return result;
  }
};

}  // namespace detail

template <unsigned Digits>
struct scalar_traits<detail::real_of_digits<Digits>> {
  static constexpr bool is_exact = false;
  static std::string name() { return "real<" + std::to_string(precision_bits<detail::real_of_digits<Digits>>) + ">"; }
  static detail::real_of_digits<Digits> from_int(int n) { return detail::real_of_digits<Digits>(n); }
};

}  // namespace deltaproof
