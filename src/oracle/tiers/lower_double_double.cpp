// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/lower_double_double.hpp"

#include <mpfr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "deltaproof/number/double_double.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/parallel.hpp"
#include "oracle/tiers/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/tiers/lower_double_double.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef DELTAPROOF_TIERS_LOWER_SHARED
#define DELTAPROOF_TIERS_LOWER_SHARED
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
  alignas(64) double index[HWY_MAX_BYTES / sizeof(double)], t_high[HWY_MAX_BYTES / sizeof(double)], t_low[HWY_MAX_BYTES / sizeof(double)],
      power[HWY_MAX_BYTES / sizeof(double)];
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

constexpr int bits = 106;
/// Below it a low part would be cut off.
constexpr double smallest = 0x1p-900;

/// A number of 106 bits as high + low, exactly. Returns whether it could.
bool split(const mpfr_value& x, mpfr_value& rest, double& high, double& low) {
  high = mpfr_get_d(x.get(), MPFR_RNDN);
  mpfr_sub_d(rest.get(), x.get(), high, MPFR_RNDN);
  low = mpfr_get_d(rest.get(), MPFR_RNDN);
  return mpfr_zero_p(x.get()) != 0 || std::fabs(high) >= smallest;
}

/// Errors of the pieces below in units of 2^-106; proofs/notes/oracle-radius.md, line L.
constexpr double exponential_error = 1.6;
constexpr double sigmoid_error = 6.2;
[[nodiscard]] double normalised_error(std::size_t n) {
  const double count = static_cast<double>(n) + 2;
  return 6.6 + 8 * count * count * count * 0x1p-53;
}

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

/// Where one head's elements lie in the problem's tensors.
struct head_place {
  const problem& p;
  sequence_range range;
  std::size_t value_head;

  [[nodiscard]] std::size_t token(std::size_t t) const { return range.batch * p.tokens() + range.first_token + t; }
  [[nodiscard]] std::size_t row(std::size_t r) const { return range.batch * p.steps() + range.first_token * p.num_householder + r; }
  [[nodiscard]] std::size_t key(std::size_t i) const { return (i * p.key_heads() + p.key_head(value_head)) * p.key_dim(); }
  [[nodiscard]] std::size_t value(std::size_t i) const { return i * p.value_heads() + value_head; }
};

struct two_parts {
  double high;
  double low;
};
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

/// top / (1 + e) for e > 0: one correction of the fp64 quotient.
two_parts over_one_plus(double top, double e, double e_low) {
  const two_parts first = two_sum(1, e), below = fast_two_sum(first.high, first.low + e_low);
  const double quotient = top / below.high;
  const double rest = std::fma(-quotient, below.low, std::fma(-quotient, below.high, top));
  return fast_two_sum(quotient, rest / below.high);
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

/// x / sqrt(sum x^2 + 1e-6) as high + low. Returns whether every entry is 0 or large enough for its low part.
bool normalise(std::span<double> x, double* high, double* low, std::vector<double>& room) {
  triple_sum sum;
  for (const double xi : x) {
    const double_double square = double_double::two_product(xi, xi);
    sum.add(square.hi());
    sum.add_low(square.lo());
  }
  // 10^-6 to 159 bits.
  constexpr double millionth = 1e-6;
  const double missing = std::fma(-millionth, 1e6, 1.0), millionth_low = missing / 1e6;
  const bool in_range = sum.a < 0x1p900;
  sum.add(millionth);
  sum.add_low(millionth_low);
  sum.c += std::fma(-millionth_low, 1e6, missing) / 1e6;
  const two_parts factor = inverse_root(sum);
  const std::size_t n = x.size(), padded = (n + 7) / 8 * 8;
  room.assign(3 * padded, 0.0);
  std::copy(x.begin(), x.end(), room.begin());
  HWY_DYNAMIC_DISPATCH(scaled)(room.data(), n, factor.high, factor.low, room.data() + padded, room.data() + 2 * padded);
  bool fits = in_range;
  for (std::size_t i = 0; i < n; ++i) {
    high[i] = room[padded + i];
    low[i] = room[2 * padded + i];
    // Products below 2^-960 would not be exact; they change the sum by nothing beside 1e-6.
    fits = fits && (x[i] == 0 || std::fabs(high[i]) >= smallest);
  }
  return fits;
}

double_double_head lower_quickly(const problem& p, std::size_t sequence_index, std::size_t value_head, unsigned threads) {
  const head_place at{p, p.sequences().at(sequence_index), value_head};
  const std::size_t T = at.range.tokens, n = p.num_householder, rows = T * n, K = p.key_dim(), cols = p.value_dim();
  double_double_head out;
  out.high.scale = p.scale;
  auto& s = out.high.scan;
  s.tokens = T;
  s.steps_per_token = n;
  s.key_dim = K;
  s.value_dim = cols;
  s.q.resize(T * K);
  s.k.resize(rows * K);
  s.v.resize(rows * cols);
  s.step.resize(rows);
  s.initial_state = matrix<double>(K, cols);
  std::atomic<bool> fits = true;
  // f(from, to) for parts of [0, count), whole vectors each.
  const auto in_parts = [&](std::size_t count, const auto& f) {
    const std::size_t eights = (count + 7) / 8, parts = std::max<std::size_t>(1, std::min<std::size_t>(threads, eights / 64));
    parallel_for(parts, threads, [&](std::size_t i) { f(std::min(count, eights * i / parts * 8), std::min(count, eights * (i + 1) / parts * 8)); });
  };
  const auto keys = [&](const tensor& from, std::size_t count, const auto& place, std::vector<double>& to, std::vector<double>& low) {
    if (!p.qk_l2norm) {
      in_parts(count, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) from.read(at.key(place(i)), std::span(to).subspan(i * K, K));
      });
      return;
    }
    low.resize(to.size());
    in_parts(count, [&](std::size_t first, std::size_t last) {
      std::vector<double> x(K), room;
      for (std::size_t i = first; i < last; ++i) {
        from.read(at.key(place(i)), x);
        if (!normalise(x, to.data() + i * K, low.data() + i * K, room)) fits = false;
      }
    });
  };
  keys(p.q, T, [&](std::size_t t) { return at.token(t); }, s.q, out.q_low);
  keys(p.k, rows, [&](std::size_t r) { return at.row(r); }, s.k, out.k_low);
  if (p.qk_l2norm) out.error.key = out.error.query = normalised_error(K);
  in_parts(rows, [&](std::size_t first, std::size_t last) {
    for (std::size_t r = first; r < last; ++r) p.v.read(at.value(at.row(r)) * cols, std::span(s.v).subspan(r * cols, cols));
  });
  for (std::size_t r = 0; r < rows; ++r) {
    s.step[r] = p.beta.at(at.value(at.row(r)));
  }
  const exponential_table& table = table_of_exponentials();
  const auto exponentials_of = [&](std::vector<double>& x, std::vector<double>& high, std::vector<double>& low) {
    const std::size_t count = x.size();
    x.resize((count + 7) / 8 * 8);
    high.resize(x.size());
    low.resize(x.size());
    in_parts(x.size(), [&](std::size_t first, std::size_t last) {
      HWY_DYNAMIC_DISPATCH(exponentials)(x.data() + first, last - first, table, high.data() + first, low.data() + first);
    });
    for (auto* v : {&x, &high, &low}) v->resize(count);
  };
  if (p.beta_activation != activation_kind::none) {
    std::vector<double> x(rows), high;
    for (std::size_t r = 0; r < rows; ++r) {
      x[r] = -s.step[r];
      if (!(std::fabs(x[r]) <= 600)) {
        fits = false;
        x[r] = 0;
      }
    }
    exponentials_of(x, high, out.step_low);
    const double top = p.beta_activation == activation_kind::two_sigmoid ? 2 : 1;
    for (std::size_t r = 0; r < rows; ++r) {
      const two_parts b = over_one_plus(top, high[r], out.step_low[r]);
      s.step[r] = b.high;
      out.step_low[r] = b.low;
    }
    out.error.step = sigmoid_error;
  }
  if (p.g) {
    const std::size_t channels = p.gate_per_channel() ? K : 1;
    std::vector<double> g(T * channels);
    std::vector<double> given(g.size());
    std::atomic<bool> derived = false, floored = false;
    in_parts(T, [&](std::size_t first, std::size_t last) {
      for (std::size_t t = first; t < last; ++t) p.g->read(at.value(at.token(t)) * channels, std::span(given).subspan(t * channels, channels));
      bool any = false;
      for (std::size_t i = first * channels; i < last * channels; ++i) {
        const double x = given[i];
        any = any || (x != 0 && !std::isinf(x));
        if (x > 600 && !std::isinf(x)) fits = false;
        g[i] = std::fabs(x) <= 600 ? x : 0;
      }
      if (any) derived = true;
    });
    exponentials_of(g, s.decay, out.decay_low);
    in_parts(given.size(), [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) {
        if (given[i] == 0) s.decay[i] = 1;
        if (given[i] < -600) {  // nearly nothing becomes nothing, and the floor says what that leaves out
          s.decay[i] = 0;
          if (!std::isinf(given[i])) floored = true;
        }
        if (given[i] == 0 || given[i] < -600) out.decay_low[i] = 0;
      }
    });
    if (floored) out.error.decay_floor = 0x1p-860 / pair_unit;
    if (derived) out.error.decay = exponential_error;
    if (!derived) out.decay_low.clear();
  }
  if (p.initial_state) {
    const std::size_t base = (sequence_index * p.value_heads() + value_head) * K;
    for (std::size_t j = 0; j < K; ++j) p.initial_state->read((base + j) * cols, s.initial_state.row(j));
  }
  out.underflowed = !fits;
  const auto cut = [](double pairs) { return pairs > 0 ? 1 + 0x1p-20 : 0; };
  const lowering_error& e = out.error;
  out.high.error = {cut(e.key), cut(e.query), cut(e.step), cut(e.decay), 0, e.decay_floor * 0x1p-53};
  return out;
}

}  // namespace

double_double_head lower_double_double(const problem& p, std::size_t sequence_index, std::size_t value_head, unsigned threads) {
  if (p.rule == rule_kind::euler) return lower_quickly(p, sequence_index, value_head, threads);
  // The gain of another rule: by MPFR.
  double_double_head out;
  const auto fine = lower_mpfr(p, sequence_index, value_head, bits);
  const lowering_error& e = fine.error;
  out.error = e;
  mpfr_value rest(bits);
  out.high.scale = fine.scale;
  auto& s = out.high.scan;
  s.tokens = fine.scan.tokens;
  s.steps_per_token = fine.scan.steps_per_token;
  s.key_dim = fine.scan.key_dim;
  s.value_dim = fine.scan.value_dim;
  const auto all = [&](const std::vector<mpfr_value>& from, std::vector<double>& high, std::vector<double>& low, bool derived) {
    high.resize(from.size());
    if (derived) low.resize(from.size());
    double none = 0;
    bool fits = true;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const bool whole = split(from[i], rest, high[i], derived ? low[i] : none);
      fits = fits && (whole || !derived);
    }
    return fits;
  };
  std::vector<double> none;
  bool fits = all(fine.scan.q, s.q, out.q_low, e.query > 0);
  fits = all(fine.scan.k, s.k, out.k_low, e.key > 0) && fits;
  fits = all(fine.scan.step, s.step, out.step_low, e.step > 0) && fits;
  all(fine.scan.v, s.v, none, false);
  s.initial_state = matrix<double>(s.key_dim, s.value_dim);
  for (std::size_t i = 0; i < s.initial_state.size(); ++i) {
    s.initial_state.data()[i] = mpfr_get_d(fine.scan.initial_state.data()[i].get(), MPFR_RNDN);
  }
  if (!all(fine.scan.decay, s.decay, out.decay_low, e.decay > 0)) {
    // A decay that is nearly nothing becomes nothing, and the floor says what that leaves out.
    for (std::size_t i = 0; i < s.decay.size(); ++i) {
      if (std::fabs(s.decay[i]) < smallest) s.decay[i] = out.decay_low[i] = 0;
    }
    out.error.decay_floor = smallest / pair_unit;
  }
  out.underflowed = !fits || fine.underflowed;
  // In units of 2^-53: the cut to the high part, and far below it the error of high + low.
  const auto cut = [](double pairs) { return pairs > 0 ? 1 + 0x1p-20 : 0; };
  out.high.error = {cut(e.key), cut(e.query), cut(e.step), cut(e.decay), e.step_floor * 0x1p-53, out.error.decay_floor * 0x1p-53};
  return out;
}

}  // namespace deltaproof::tiers
#endif
