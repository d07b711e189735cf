// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Rows of double-double numbers for certified_rows.hpp: every sum and product errs by at most 2^-103 of its result. The
// algorithms are those of number/double_double.hpp with a fused product and without its care for infinities, so that loops become
// vector code: what overflows is NaN here and has an infinite radius. Source: Joldes, Muller, Popescu, ACM TOMS 44 (2017):
// AccurateDWPlusDW 3 u^2 + 13 u^3, DWTimesDW2 5 u^2, u = 2^-53.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

namespace deltaproof {

/// hi + lo, |lo| at most half a unit of the last place of hi.
struct double_pair {
  double hi = 0, lo = 0;
};

struct pair_field {
  using value = double_pair;
  using radius = double;
  static constexpr int bits = 103;
  static constexpr double unit_roundoff = 0x1p-103;
  static constexpr double square_floor = 0x1p-1074;
  static constexpr double underflow_unit =
      0x1p-950;  ///< line U: an error term that underflows is 2^-1053 at most, with those of a sum

  [[nodiscard]] static value zero() { return {}; }
  /// Infinite for a NaN, which stands for anything here.
  [[nodiscard]] static double magnitude(const value& x) {
    const double m = std::fabs(x.hi) * (1 + 0x1p-52);
    return m <= std::numeric_limits<double>::max() ? m : std::numeric_limits<double>::infinity();
  }
  [[nodiscard]] static bool is_negative(const value& x) { return x.hi < 0; }
  [[nodiscard]] static double decay_floor(double given, bool) { return given; }
  [[nodiscard]] static bool is_zero(const value& x) { return x.hi == 0; }

  [[nodiscard]] static value sum(const value& a, const value& b) {
    const value s = two_sum(a.hi, b.hi), t = two_sum(a.lo, b.lo);
    const value v = fast_two_sum(s.hi, s.lo + t.hi);
    return fast_two_sum(v.hi, t.lo + v.lo);
  }
  [[nodiscard]] static value product(const value& a, const value& b) {
    const double p = a.hi * b.hi, e = std::fma(a.hi, b.hi, -p);
    return fast_two_sum(p, e + std::fma(a.hi, b.lo, a.lo * b.hi));
  }
  [[nodiscard]] static value negated(const value& a) { return {-a.hi, -a.lo}; }

  static void decay_row(value* s, const value& a, double* squares, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) {
      s[v] = product(s[v], a);
      add_square(squares[v], s[v]);
    }
  }
  static void predict_row(value* p, const value& k, const value* s, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) p[v] = sum(p[v], product(k, s[v]));
  }
  static void innovation(value* w, double* r_size, double* w_size, const value& b, const value* v, const value* p,
                         std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const value r = sum(v[i], negated(p[i]));
      w[i] = product(b, r);
      r_size[i] = magnitude(r);
      w_size[i] = magnitude(w[i]);
    }
  }
  static void update_row(value* s, const value& k, const value* w, double* squares, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) {
      s[v] = sum(s[v], product(k, w[v]));
      add_square(squares[v], s[v]);
    }
  }
  [[nodiscard]] static value dot(const value* a, const value* b, std::size_t n) {
    constexpr std::size_t lanes = 4;
    value sums[lanes];
    std::size_t v = 0;
    for (; v + lanes <= n; v += lanes) {
      for (std::size_t j = 0; j < lanes; ++j) sums[j] = sum(sums[j], product(a[v + j], b[v + j]));
    }
    value out = sum(sum(sums[0], sums[2]), sum(sums[1], sums[3]));
    for (; v < n; ++v) out = sum(out, product(a[v], b[v]));
    return out;
  }
  static void subtract(value* out, const value* a, const value* b, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) out[v] = sum(a[v], negated(b[v]));
  }

 private:
  static value two_sum(double a, double b) {
    const double s = a + b, part = s - a;
    return {s, (a - (s - part)) + (b - part)};
  }
  /// |a| >= |b|, or a = 0.
  static value fast_two_sum(double a, double b) {
    const double s = a + b;
    return {s, b - (s - a)};
  }
  static void add_square(double& to, const value& x) {
    const double m = magnitude(x);
    to += m * m;
  }
};

}  // namespace deltaproof
