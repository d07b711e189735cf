// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/derived_pairs.hpp"

#include <mpfr.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "deltaproof/number/double_double.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/tiers/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/tiers/derived_pairs.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef DELTAPROOF_TIERS_DERIVED_SHARED
#define DELTAPROOF_TIERS_DERIVED_SHARED
namespace deltaproof::tiers {

constexpr int root_bits = 6;
constexpr std::size_t roots = std::size_t{1} << root_bits;

/// 2^(j/64) as high + low, and ln 2 / 64 in three parts of which the first two have 37 bits: their products with the
/// integers that occur, of 16, are exact.
struct exponential_table {
  std::array<double, roots> high;
  std::array<double, roots> low;
  double inverse_step;
  std::array<double, 3> step;
  // 1/n! for n = 2 ... 6 as high + low, for n = 7 ... 12 in fp64.
  std::array<double, 7> factor;
  std::array<double, 7> factor_low;
  std::array<double, 13> tail;
};

}  // namespace deltaproof::tiers
#endif

HWY_BEFORE_NAMESPACE();
namespace deltaproof::tiers::HWY_NAMESPACE {
#include "oracle/tiers/lanes.inc"

struct pair {
  V high;
  V low;
};
/// Exact where |a| >= |b|.
HWY_INLINE pair fast_two_sum(V a, V b) {
  const V sum = hn::Add(a, b);
  return {sum, hn::Sub(b, hn::Sub(sum, a))};
}
HWY_INLINE pair two_sum(V a, V b) {
  const V sum = hn::Add(a, b), part = hn::Sub(sum, a);
  return {sum, hn::Add(hn::Sub(a, hn::Sub(sum, part)), hn::Sub(b, part))};
}
/// Error: 5 u^2 (DWTimesDW2 of Joldes, Muller, Popescu 2017).
HWY_INLINE pair times(pair x, pair y) {
  const V high = hn::Mul(x.high, y.high);
  const V low = fused(x.high, y.high, hn::Neg(high));
  return fast_two_sum(high, hn::Add(low, fused(x.high, y.low, hn::Mul(x.low, y.high))));
}
/// Error: 3 u^2 + 13 u^3 (AccurateDWPlusDW).
HWY_INLINE pair plus(pair x, pair y) {
  const pair s = two_sum(x.high, y.high), t = two_sum(x.low, y.low);
  const pair v = fast_two_sum(s.high, hn::Add(s.low, t.high));
  return fast_two_sum(v.high, hn::Add(t.low, v.low));
}

/// e^x for |x| <= 600 in each of `count` places; `x` and the results have room for a multiple of eight.
void exponentials(const double* x, std::size_t count, const exponential_table& table, double* high, double* low) {
  const std::size_t L = hn::Lanes(d);
  alignas(64) double index[HWY_MAX_BYTES / sizeof(double)], t_high[HWY_MAX_BYTES / sizeof(double)],
      t_low[HWY_MAX_BYTES / sizeof(double)], power[HWY_MAX_BYTES / sizeof(double)];
  const V magic = hn::Set(d, 0x1.8p52);
  for (std::size_t i = 0; i < count; i += L) {
    const V g = hn::LoadU(d, x + i);
    const V n = hn::Sub(hn::Add(hn::Mul(g, hn::Set(d, table.inverse_step)), magic), magic);
    // r = g - n ln2/64: two exact products, the third below 2^-65.
    const pair once = two_sum(g, hn::Neg(hn::Mul(n, hn::Set(d, table.step[0]))));
    const pair twice = two_sum(once.high, hn::Neg(hn::Mul(n, hn::Set(d, table.step[1]))));
    const V third = hn::Sub(hn::Add(once.low, twice.low), hn::Mul(n, hn::Set(d, table.step[2])));
    const pair r = two_sum(twice.high, third);
    V tail = hn::Set(d, table.tail[12]);
    for (std::size_t k = 11; k >= 7; --k) tail = hn::Add(hn::Mul(tail, r.high), hn::Set(d, table.tail[k]));
    pair sum = {hn::Mul(tail, r.high), hn::Zero(d)};
    for (std::size_t k = 6; k >= 2; --k) {
      sum = plus({hn::Set(d, table.factor[k]), hn::Set(d, table.factor_low[k])}, sum);
      sum = times(sum, r);
    }
    // p = e^r - 1 = r + r (r/2 + ...).
    const pair p = plus(r, times(sum, r));
    hn::Store(n, d, index);
    for (std::size_t l = 0; l < L; ++l) {
      const auto whole = static_cast<long>(index[l]);
      const auto j = static_cast<std::size_t>(whole & static_cast<long>(roots - 1));
      t_high[l] = table.high[j];
      t_low[l] = table.low[j];
      power[l] = std::ldexp(1.0, static_cast<int>((whole - static_cast<long>(j)) / static_cast<long>(roots)));
    }
    // t (1 + p): what is below t_high + p_high is summed exactly, but for the last addition.
    const pair t = {hn::Load(d, t_high), hn::Load(d, t_low)};
    const V product = hn::Mul(t.high, p.high);
    V rest = fused(t.high, p.low, fused(t.high, p.high, hn::Neg(product)));
    rest = fused(t.low, p.high, rest);
    const pair top = fast_two_sum(t.high, product), middle = two_sum(top.low, t.low), first = fast_two_sum(top.high, middle.high);
    const pair result = fast_two_sum(first.high, hn::Add(first.low, hn::Add(middle.low, rest)));
    const V scale = hn::Load(d, power);
    hn::StoreU(hn::Mul(result.high, scale), d, high + i);
    hn::StoreU(hn::Mul(result.low, scale), d, low + i);
  }
}

/// x_i (high + low), error 3 u^2.
void scaled(const double* x, std::size_t count, double high, double low, double* out, double* out_low) {
  const std::size_t L = hn::Lanes(d);
  const V h = hn::Set(d, high), l = hn::Set(d, low);
  for (std::size_t i = 0; i < count; i += L) {
    const V xi = hn::LoadU(d, x + i);
    const V product = hn::Mul(xi, h);
    const pair y = fast_two_sum(product, fused(xi, l, fused(xi, h, hn::Neg(product))));
    hn::StoreU(y.high, d, out + i);
    hn::StoreU(y.low, d, out_low + i);
  }
}

}  // namespace deltaproof::tiers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deltaproof::tiers {

HWY_EXPORT(exponentials);
HWY_EXPORT(scaled);

namespace {

exponential_table make_table() {
  exponential_table table{};
  mpfr_value x(300), y(300);
  const auto halves = [&](double& high, double& low) {
    high = mpfr_get_d(x.get(), MPFR_RNDN);
    mpfr_sub_d(y.get(), x.get(), high, MPFR_RNDN);
    low = mpfr_get_d(y.get(), MPFR_RNDN);
  };
  for (std::size_t j = 0; j < roots; ++j) {
    mpfr_set_ui(x.get(), j, MPFR_RNDN);
    mpfr_div_2ui(x.get(), x.get(), root_bits, MPFR_RNDN);
    mpfr_exp2(x.get(), x.get(), MPFR_RNDN);
    halves(table.high[j], table.low[j]);
  }
  mpfr_const_log2(x.get(), MPFR_RNDN);
  mpfr_div_2ui(x.get(), x.get(), root_bits, MPFR_RNDN);
  mpfr_ui_div(y.get(), 1, x.get(), MPFR_RNDN);
  table.inverse_step = mpfr_get_d(y.get(), MPFR_RNDN);
  mpfr_value part(37);
  for (std::size_t i = 0; i < 3; ++i) {
    if (i == 2) mpfr_set_prec(part.get(), 53);
    mpfr_set(part.get(), x.get(), MPFR_RNDN);
    table.step[i] = mpfr_get_d(part.get(), MPFR_RNDN);
    mpfr_sub(x.get(), x.get(), part.get(), MPFR_RNDN);
  }
  for (unsigned long n = 2; n <= 12; ++n) {
    mpfr_fac_ui(x.get(), n, MPFR_RNDN);
    mpfr_ui_div(x.get(), 1, x.get(), MPFR_RNDN);
    if (n <= 6) halves(table.factor[n], table.factor_low[n]);
    if (n >= 7) table.tail[n] = mpfr_get_d(x.get(), MPFR_RNDN);
  }
  return table;
}

const exponential_table& table_of_exponentials() {
  static const exponential_table table = make_table();
  return table;
}

/// Exact.
two_parts two_sum(double a, double b) {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}
/// Exact where |a| >= |b|.
two_parts fast_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

/// A sum of positive numbers in three doubles, to nearly 159 bits.
struct triple_sum {
  double a = 0;
  double b = 0;
  double c = 0;

  void add(double x) {
    const two_parts first = two_sum(a, x);
    a = first.high;
    add_low(first.low);
  }
  void add_low(double x) {
    const two_parts second = two_sum(b, x);
    b = second.high;
    c += second.low;
  }
};

/// (a + b + c)^(-1/2): two terms of Newton's series from fp64.
two_parts inverse_root(triple_sum x) {
  const two_parts tail = two_sum(x.b, x.c), head = fast_two_sum(x.a, tail.high), middle = fast_two_sum(head.low, tail.low);
  const double f = 1 / std::sqrt(head.high), square = f * f, square_low = std::fma(f, f, -square);
  const double product = head.high * square, product_low = std::fma(head.high, square, -product);
  // 1 - (a + b + c) f^2 = off - tiny
  const double rest = std::fma(middle.high, square, std::fma(head.high, square_low, product_low));
  const double off = (1 - product) - rest, tiny = std::fma(middle.high, square_low, middle.low * square);
  const double second = std::fma(0.375 * off, off, -0.5 * tiny);
  return fast_two_sum(f, std::fma(0.5 * off, f, second * f));
}

}  // namespace

two_parts over_one_plus(double top, double e, double e_low) {
  const two_parts first = two_sum(1, e), below = fast_two_sum(first.high, first.low + e_low);
  const double quotient = top / below.high;
  const double rest = std::fma(-quotient, below.low, std::fma(-quotient, below.high, top));
  return fast_two_sum(quotient, rest / below.high);
}

three_parts parts_of_decimal(double x) {
  mpfr_value rest(256);
  set_decimal(rest.get(), x);
  const auto part = [&] {
    const double high = mpfr_get_d(rest.get(), MPFR_RNDN);
    mpfr_sub_d(rest.get(), rest.get(), high, MPFR_RNDN);
    return high;
  };
  const double a = part(), b = part();
  return {a, b, part()};
}

bool normalise(std::span<const double> x, const three_parts& epsilon, double* high, double* low, std::vector<double>& room) {
  triple_sum sum;
  for (const double xi : x) {
    const double_double square = double_double::two_product(xi, xi);
    sum.add(square.hi());
    sum.add_low(square.lo());
  }
  const bool in_range = sum.a < 0x1p900;
  sum.add(epsilon.a);
  sum.add_low(epsilon.b);
  sum.c += epsilon.c;
  const two_parts factor = inverse_root(sum);
  const std::size_t n = x.size(), padded = (n + 7) / 8 * 8;
  room.assign(3 * padded, 0.0);
  std::copy(x.begin(), x.end(), room.begin());
  HWY_DYNAMIC_DISPATCH(scaled)(room.data(), n, factor.high, factor.low, room.data() + padded, room.data() + 2 * padded);
  bool fits = in_range;
  for (std::size_t i = 0; i < n; ++i) {
    high[i] = room[padded + i];
    low[i] = room[2 * padded + i];
    // Products below 2^-960 would not be exact; they change the sum by nothing beside epsilon.
    fits = fits && (x[i] == 0 || std::fabs(high[i]) >= smallest_pair);
  }
  return fits;
}

void exponentials(std::span<const double> x, double* high, double* low) {
  HWY_DYNAMIC_DISPATCH(exponentials)(x.data(), x.size(), table_of_exponentials(), high, low);
}

}  // namespace deltaproof::tiers
#endif
