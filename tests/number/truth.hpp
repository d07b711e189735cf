// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// An oracle for the formats that shares nothing with them: bit layouts written down a second time,
// exact results from MPFR (200 bits toward zero and a sticky bit), and one rounding in integers that
// works on stored patterns. Tests compare patterns; NaN is one pattern.
#pragma once

#include <mpfr.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "deltaproof/number/format.hpp"

namespace deltaproof::truth {

struct layout {
  format name;
  int exponent_bits;
  int mantissa_bits;
  int zero_bits;  // unused low bits of the storage
  bool has_infinity;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int width() const { return 1 + exponent_bits + mantissa_bits; }
  std::uint64_t sign() const { return std::uint64_t{1} << (width() - 1); }
  /// The first pattern that is not a finite magnitude.
  std::uint64_t end() const { return has_infinity ? ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits : sign() - 1; }
  /// The pattern that stands for every NaN.
  std::uint64_t nan() const { return has_infinity ? end() | std::uint64_t{1} << (mantissa_bits - 1) : end(); }
  bool is_nan(std::uint64_t code) const {
    const std::uint64_t magnitude = code & (sign() - 1);
    return has_infinity ? magnitude > end() : magnitude == end();
  }

  double value(std::uint64_t code) const {
    const std::uint64_t magnitude = code & (sign() - 1);
    double x = 0;
    if (is_nan(code)) return std::numeric_limits<double>::quiet_NaN();
    if (magnitude == end()) {
      x = std::numeric_limits<double>::infinity();
    } else {
      const auto field = static_cast<int>(magnitude >> mantissa_bits);
      const auto mantissa = static_cast<double>(magnitude & ((std::uint64_t{1} << mantissa_bits) - 1));
      x = field == 0 ? std::ldexp(mantissa, 1 - bias() - mantissa_bits)
                     : std::ldexp(std::ldexp(1, mantissa_bits) + mantissa, field - bias() - mantissa_bits);
    }
    return (code & sign()) != 0 ? -x : x;
  }

  /// Patterns at which roundings go wrong: ends of the ranges, neighbours of powers of two, halves.
  std::vector<std::uint64_t> hard(std::mt19937_64& random, int extra) const {
    const std::uint64_t one = static_cast<std::uint64_t>(bias()) << mantissa_bits;
    const std::uint64_t unit = std::uint64_t{1} << mantissa_bits;
    std::vector<std::uint64_t> codes{0,
                                     1,
                                     2,
                                     3,
                                     unit / 2,
                                     unit - 1,
                                     unit,
                                     unit + 1,
                                     2 * unit - 1,
                                     2 * unit,
                                     one - unit,
                                     one - 1,
                                     one,
                                     one + 1,
                                     one + 2,
                                     one + unit / 2,
                                     one + unit - 1,
                                     one + unit,
                                     one + unit + 1,
                                     one + unit + unit / 2,
                                     one / 2,
                                     one / 2 + 1,
                                     one + one / 2,
                                     one + one / 2 - 1,
                                     end() - 1,
                                     end() - 2,
                                     end() - unit,
                                     end() - unit - 1,
                                     end(),
                                     nan()};
    for (int i = 0; i < extra; ++i) codes.push_back(random() & (sign() - 1));
    const std::size_t count = codes.size();
    for (std::size_t i = 0; i < count; i += 2) codes.push_back(codes[i] | sign());
    return codes;
  }
};

inline const std::vector<layout>& layouts() {
  static const std::vector<layout> all{{bf16, 8, 7, 0, true},  {fp16, 5, 10, 0, true}, {tf32, 8, 10, 13, true},
                                       {e4m3, 4, 3, 0, false}, {e5m2, 5, 2, 0, true},  {fp32, 8, 23, 0, true},
                                       {fp64, 11, 52, 0, true}};
  return all;
}

inline const layout& layout_of(format f) {
  for (const layout& candidate : layouts()) {
    if (candidate.name == f) return candidate;
  }
  throw error("no layout for this format");
}

enum class mode { nearest, zero, away };

/// An exact value: MPFR's truncation to `bits` bits and whether it lost anything.
class exact_result {
 public:
  explicit exact_result(mpfr_prec_t bits = 200) {
    mpfr_init2(value_, bits);
    mpfr_inits2(53, a_, b_, c_, nullptr);
    mpz_inits(significand_, quotient_, nullptr);
  }
  ~exact_result() {
    mpfr_clears(value_, a_, b_, c_, nullptr);
    mpz_clears(significand_, quotient_, nullptr);
  }
  exact_result(const exact_result&) = delete;
  exact_result& operator=(const exact_result&) = delete;

  mpfr_ptr value() { return value_; }
  /// To be called whenever the value was changed.
  void set_inexact(bool inexact) {
    inexact_ = inexact;
    cut_to_ = nullptr;
  }

  exact_result& add(double a, double b) { return apply(mpfr_add, a, b); }
  exact_result& sub(double a, double b) { return apply(mpfr_sub, a, b); }
  exact_result& mul(double a, double b) { return apply(mpfr_mul, a, b); }
  exact_result& div(double a, double b) { return apply(mpfr_div, a, b); }
  exact_result& sqrt(double a) { return apply(mpfr_sqrt, a); }
  exact_result& set(double a) { return apply(mpfr_set_number, a); }
  exact_result& fma(double a, double b, double c) {
    load(a, b);
    mpfr_set_d(c_, c, MPFR_RNDN);
    set_inexact(mpfr_fma(value_, a_, b_, c_, MPFR_RNDZ) != 0);
    return *this;
  }
  template <class Function>
  exact_result& apply(Function function, double a) {
    mpfr_set_d(a_, a, MPFR_RNDN);
    set_inexact(function(value_, a_, MPFR_RNDZ) != 0);
    return *this;
  }

  /// The stored pattern after one rounding.
  std::uint64_t round(const layout& f, mode m) {
    if (mpfr_nan_p(value_) != 0) return f.nan();
    const std::uint64_t sign = mpfr_signbit(value_) != 0 ? f.sign() : 0;
    if (mpfr_zero_p(value_) != 0) return sign;
    if (mpfr_inf_p(value_) != 0) return f.has_infinity ? f.end() | sign : f.nan();
    if (cut_to_ != &f) cut(f);
    if (m == mode::zero) return (!beyond_ && below_ < f.end() ? below_ : f.end() - 1) | sign;
    const bool up = m == mode::away ? half_ || rest_ : half_ && (rest_ || (below_ & 1) != 0);
    const std::uint64_t code = below_ + (up ? 1 : 0);
    if (!beyond_ && code < f.end()) return code | sign;
    return f.has_infinity ? f.end() | sign : f.nan();
  }

 private:
  static int mpfr_set_number(mpfr_ptr to, mpfr_srcptr from, mpfr_rnd_t rounding) { return mpfr_set(to, from, rounding); }

  /// What the three roundings to a format share: the pattern below |value|, and how the rest compares with half a quantum.
  void cut(const layout& f) {
    const auto scale = static_cast<long>(mpfr_get_z_2exp(significand_, value_));
    mpz_abs(significand_, significand_);
    const long exponent = scale + static_cast<long>(mpz_sizeinbase(significand_, 2)) - 1;
    const long least = 1 - f.bias();
    const long binade = exponent > least ? exponent : least;
    const long drop = binade - f.mantissa_bits - scale;
    half_ = false;
    rest_ = inexact_;
    if (drop > 0) {
      const auto count = static_cast<mp_bitcnt_t>(drop);
      half_ = mpz_tstbit(significand_, count - 1) != 0;
      rest_ = rest_ || mpz_scan1(significand_, 0) < count - 1;
      mpz_tdiv_q_2exp(quotient_, significand_, count);
    } else {
      mpz_mul_2exp(quotient_, significand_, static_cast<mp_bitcnt_t>(-drop));
    }
    beyond_ = binade - least > 100000;
    below_ = mpz_get_ui(quotient_) + (static_cast<std::uint64_t>(binade - least) << f.mantissa_bits);
    cut_to_ = &f;
  }

  void load(double a, double b) {
    mpfr_set_d(a_, a, MPFR_RNDN);
    mpfr_set_d(b_, b, MPFR_RNDN);
  }

  template <class Function>
  exact_result& apply(Function function, double a, double b) {
    load(a, b);
    set_inexact(function(value_, a_, b_, MPFR_RNDZ) != 0);
    return *this;
  }

  mpfr_t value_;
  mpfr_t a_;
  mpfr_t b_;
  mpfr_t c_;
  mpz_t significand_;
  mpz_t quotient_;
  bool inexact_ = false;
  // Of the last cut.
  const layout* cut_to_ = nullptr;
  std::uint64_t below_ = 0;
  bool half_ = false, rest_ = false, beyond_ = false;
};

inline std::string hex(std::uint64_t code) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(code));
  return text;
}

}  // namespace deltaproof::truth
