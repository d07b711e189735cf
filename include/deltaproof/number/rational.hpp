// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Exact rationals (GMP through Boost.Multiprecision, expression templates off). After including it,
// `lift<rational>` takes every finite float, double, rounded<F> and double_double, `round_to<F>` rounds a
// rational once, and `reduce` maps it to the integers modulo 2^61 - 1.
#pragma once

#include <gmp.h>

#include <boost/multiprecision/gmp.hpp>
#include <cmath>
#include <string>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/modular.hpp"

namespace deltaproof {

using rational = boost::multiprecision::number<boost::multiprecision::gmp_rational, boost::multiprecision::et_off>;

/// The finite double as a fraction.
/// Throws domain_error for NaN and infinities.
inline rational exact(double x) {
  if (!std::isfinite(x)) {
    throw domain_error("cannot convert " + std::to_string(x) +
                       " to a rational: only a finite number can be converted; test with isfinite first");
  }
  rational result;
  mpq_set_d(result.backend().data(), x);
  return result;
}

/// numerator * denominator^-1 modulo 2^61 - 1.
/// Throws domain_error if the prime divides the denominator.
inline modular reduce(const rational& x) {
  static_assert(sizeof(unsigned long) == 8);
  const mpq_srcptr q = x.backend().data();
  const modular numerator(static_cast<std::int64_t>(mpz_fdiv_ui(mpq_numref(q), modular::prime)));
  const modular denominator(static_cast<std::int64_t>(mpz_fdiv_ui(mpq_denref(q), modular::prime)));
  return numerator / denominator;
}

namespace detail {

/// The 128 leading bits of |z|, and whether others follow.
inline unrounded leading_bits(mpz_srcptr z) {
  unrounded x;
  if (mpz_sgn(z) == 0) return x;
  const auto size = static_cast<int>(mpz_sizeinbase(z, 2));
  const int excess = size > 128 ? size - 128 : 0;
  mpz_t top;
  mpz_init(top);
  mpz_tdiv_q_2exp(top, z, static_cast<mp_bitcnt_t>(excess));
  x.significand = static_cast<uint128>(mpz_size(top) > 1 ? mpz_getlimbn(top, 1) : 0) << 64 | mpz_getlimbn(top, 0);
  mpz_clear(top);
  x.negative = mpz_sgn(z) < 0;
  x.exponent = excess;
  x.rest = excess > 0 && mpz_scan1(z, 0) < static_cast<mp_bitcnt_t>(excess);
  return x;
}

template <>
struct exact_source<rational> {
  static unrounded get(const rational& q) {
    const mpq_srcptr data = q.backend().data();
    if (mpz_sgn(mpq_numref(data)) == 0) return unrounded{};
    // Scale so that the integer quotient has at least 129 bits; its remainder joins the rest.
    const auto numerator_bits = static_cast<long>(mpz_sizeinbase(mpq_numref(data), 2));
    const auto denominator_bits = static_cast<long>(mpz_sizeinbase(mpq_denref(data), 2));
    const long shift = 130 - (numerator_bits - denominator_bits);
    mpz_t quotient;
    mpz_t remainder;
    mpz_t divisor;
    mpz_inits(quotient, remainder, divisor, nullptr);
    mpz_mul_2exp(quotient, mpq_numref(data), static_cast<mp_bitcnt_t>(shift > 0 ? shift : 0));
    mpz_mul_2exp(divisor, mpq_denref(data), static_cast<mp_bitcnt_t>(shift < 0 ? -shift : 0));
    mpz_tdiv_qr(quotient, remainder, quotient, divisor);
    unrounded x = leading_bits(quotient);
    x.rest = x.rest || mpz_sgn(remainder) != 0;
    x.exponent -= static_cast<int>(shift);
    mpz_clears(quotient, remainder, divisor, nullptr);
    return x;
  }
};

template <FormatScalar From>
struct lift_rule<From, rational> {
  static constexpr bool exact = true;
  static rational apply(From x) { return deltaproof::exact(static_cast<double>(x)); }
};

template <>
struct lift_rule<double_double, rational> {
  static constexpr bool exact = true;
  static rational apply(double_double x) { return deltaproof::exact(x.hi()) + deltaproof::exact(x.lo()); }
};

/// The nearest double and the double nearest to what it leaves.
template <>
struct round_rule<double_double, rational> {
  static double_double apply(const rational& x) {
    const double hi = round_to<double>(x);
    return double_double::two_sum(hi, std::isfinite(hi) ? round_to<double>(rational(x - deltaproof::exact(hi))) : 0);
  }
};

}  // namespace detail

template <>
struct scalar_traits<rational> {
  static constexpr bool is_exact = true;
  static std::string name() { return "rational"; }
  static rational from_int(int n) { return rational(n); }
};

}  // namespace deltaproof
