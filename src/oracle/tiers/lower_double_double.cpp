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

/// 2^(j/64) as high + low, and ln 2 / 64 in three parts of which the first two have 32 bits: their products with the
/// integers that occur are exact.
struct exponential_table {
  std::array<double, roots> high;
  std::array<double, roots> low;
  double inverse_step;
  std::array<double, 3> step;
  // 1/n! for n = 2 ... 5 as high + low, for n = 6 ... 12 in fp64.
  std::array<double, 6> factor;
  std::array<double, 6> factor_low;
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
    // r = g - n ln2/64: two exact products, then the third.
    const pair first = two_sum(g, hn::Neg(hn::Mul(n, hn::Set(d, table.step[0]))));
    const pair second = two_sum(first.high, hn::Neg(hn::Mul(n, hn::Set(d, table.step[1]))));
    const V rest = hn::Sub(hn::Add(first.low, second.low), hn::Mul(n, hn::Set(d, table.step[2])));
    const pair r = two_sum(second.high, rest);
    V tail = hn::Set(d, table.tail[12]);
    for (std::size_t k = 11; k >= 6; --k) tail = hn::Add(hn::Mul(tail, r.high), hn::Set(d, table.tail[k]));
    pair sum = {hn::Mul(tail, r.high), hn::Zero(d)};
    for (std::size_t k = 5; k >= 2; --k) {
      sum = plus({hn::Set(d, table.factor[k]), hn::Set(d, table.factor_low[k])}, sum);
      sum = times(sum, r);
    }
    // e^r = 1 + r + r (r/2 + ...).
    sum = plus(r, times(sum, r));
    sum = plus({hn::Set(d, 1.0), hn::Zero(d)}, sum);
    hn::Store(n, d, index);
    for (std::size_t l = 0; l < L; ++l) {
      const auto whole = static_cast<long>(index[l]);
      const auto j = static_cast<std::size_t>(whole & static_cast<long>(roots - 1));
      t_high[l] = table.high[j];
      t_low[l] = table.low[j];
      power[l] = std::ldexp(1.0, static_cast<int>((whole - static_cast<long>(j)) / static_cast<long>(roots)));
    }
    const pair result = times({hn::Load(d, t_high), hn::Load(d, t_low)}, sum);
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
constexpr double exponential_error = 40;
constexpr double sigmoid_error = 80;
[[nodiscard]] double normalised_error(std::size_t n) { return 2 * static_cast<double>(n) + 40; }

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
  mpfr_value part(32);
  for (std::size_t i = 0; i < 3; ++i) {
    if (i == 2) mpfr_set_prec(part.get(), 53);
    mpfr_set(part.get(), x.get(), MPFR_RNDN);
    table.step[i] = mpfr_get_d(part.get(), MPFR_RNDN);
    mpfr_sub(x.get(), x.get(), part.get(), MPFR_RNDN);
  }
  for (unsigned long n = 2; n <= 12; ++n) {
    mpfr_fac_ui(x.get(), n, MPFR_RNDN);
    mpfr_ui_div(x.get(), 1, x.get(), MPFR_RNDN);
    if (n <= 5) halves(table.factor[n], table.factor_low[n]);
    if (n >= 6) table.tail[n] = mpfr_get_d(x.get(), MPFR_RNDN);
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

/// x / sqrt(sum x^2 + 1e-6) as high + low. Returns whether every entry is 0 or large enough for its low part.
bool normalise(std::span<double> x, double* high, double* low, std::vector<double>& room) {
  double_double sum;
  for (const double xi : x) sum += double_double::two_product(xi, xi);
  const double_double millionth = double_double(1) / double_double(1000000);
  const double_double factor = double_double(1) / sqrt(sum + millionth);
  const std::size_t n = x.size(), padded = (n + 7) / 8 * 8;
  room.assign(3 * padded, 0.0);
  std::copy(x.begin(), x.end(), room.begin());
  HWY_DYNAMIC_DISPATCH(scaled)(room.data(), n, factor.hi(), factor.lo(), room.data() + padded, room.data() + 2 * padded);
  bool fits = sum.hi() < 0x1p900;
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
      const double_double e = double_double::two_sum(high[r], out.step_low[r]);
      const double_double b = double_double(top) / (double_double(1) + e);
      s.step[r] = b.hi();
      out.step_low[r] = b.lo();
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
