// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/double_double_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "oracle/tiers/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/tiers/double_double_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef DELTAPROOF_TIERS_DOUBLE_DOUBLE_SHARED
#define DELTAPROOF_TIERS_DOUBLE_DOUBLE_SHARED
namespace deltaproof::tiers {

constexpr double pair_floor = 0x1p-1000;  // of a halved square
constexpr double smallest_window = 0x1p-400;
constexpr double largest_window = 0x1p400;

/// Rows of one set between two blocks of steps.
struct pair_set {
  std::size_t vectors = 1;
  std::size_t at = 0;
  const double* v = nullptr;
  std::size_t v_stride = 0;
  double* high = nullptr;  // K x (vectors * lanes): bias + high part
  double* low = nullptr;
  double* saved_high = nullptr;  // at the start of the block, without bias
  double* saved_low = nullptr;
  double* carried = nullptr;  // vectors of windows, errors, largest norms, 1 where the row has left
};

struct pair_job {
  const double_double_head& in;
  tier_rows& out;
  const double* nothing;  // K zeros
  bool begins;            // step 0 is the first of the head
};

}  // namespace deltaproof::tiers
#endif

HWY_BEFORE_NAMESPACE();
namespace deltaproof::tiers::HWY_NAMESPACE {
#include "oracle/tiers/lanes.inc"

/// x y - z rounded once.
HWY_INLINE V fused_minus(V x, V y, V z) {
#if HWY_NATIVE_FMA
  return hn::MulSub(x, y, z);
#else
  return fused(x, y, hn::Neg(z));
#endif
}

/// high + low <- high + low exactly, with |low| <= ulp(high)/2.
HWY_INLINE void renormalise(V& high, V& low) {
  const V sum = hn::Add(high, low);
  const V part = hn::Sub(sum, high);
  low = hn::Add(hn::Sub(high, hn::Sub(sum, part)), hn::Sub(low, part));
  high = sum;
}

HWY_INLINE V norm_from(V half) { return hn::Mul(hn::Sqrt(hn::Add(half, half)), hn::Set(d, 1 + 0x1p-46)); }

/// The least power of two that is not below x > 0.
HWY_INLINE V power_above(V x) {
  const hn::RebindToUnsigned<D> bits;
  const auto all = hn::BitCast(bits, x);
  const auto fraction = hn::Set(bits, (std::uint64_t{1} << 52) - 1);
  return hn::BitCast(d, hn::AndNot(fraction, hn::Add(all, fraction)));
}

/// Sums of k_j S_j: `sum` on the grid of its bias, the rest in `rest`.
template <std::size_t B>
struct product_sum {
  V sum[B];
  V rest[B];
};

/// sum + rest <- sum + rest + x (high + low); x_low where x has a low part.
template <bool Low>
HWY_INLINE void accumulate(V x, V x_low, V high, V low, V& sum, V& rest) {
  const V next = fused(x, high, sum);
  const V moved = hn::Sub(next, sum);  // exact: both lie in the window of the bias
  V left = fused(x, low, fused_minus(x, high, moved));
  if constexpr (Low) left = fused(x_low, high, left);
  rest = hn::Add(rest, left);
  sum = next;
}

/// One write (line P2), the read-out (P1), one decay (P3) and the next key's product (P1).
template <std::size_t B, bool Low, bool Decay>
HWY_INLINE void pass(std::size_t K, double* HWY_RESTRICT high, double* HWY_RESTRICT low, const double* k, const double* k_low,
                     const double* q, const double* q_low, const double* a, const double* a_low, std::size_t a_stride,
                     const double* next, const double* next_low, const V (&bias)[B], const V (&w)[B], const V (&w_low)[B],
                     product_sum<B>& p, product_sum<B>& o) {
  const std::size_t L = lanes();
  V ps[B], pr[B], os[B], orest[B];
  for (std::size_t r = 0; r < B; ++r) {
    ps[r] = p.sum[r];
    pr[r] = p.rest[r];
    os[r] = o.sum[r];
    orest[r] = o.rest[r];
  }
  const V zero = hn::Zero(d);
  for (std::size_t j = 0; j < K; ++j) {
    const V kj = hn::Set(d, k[j]), qj = hn::Set(d, q[j]), nj = hn::Set(d, next[j]);
    const V kl = Low ? hn::Set(d, k_low[j]) : zero, ql = Low ? hn::Set(d, q_low[j]) : zero,
            nl = Low ? hn::Set(d, next_low[j]) : zero;
    const V aj = Decay ? hn::Set(d, a[j * a_stride]) : zero, al = Decay ? hn::Set(d, a_low[j * a_stride]) : zero;
    for (std::size_t r = 0; r < B; ++r) {
      const std::size_t at = (j * B + r) * L;
      const V before = hn::Load(d, high + at);
      V biased = fused(kj, w[r], before);
      const V moved = hn::Sub(biased, before);
      V left = fused(kj, w_low[r], fused_minus(kj, w[r], moved));
      if constexpr (Low) left = fused(kl, w[r], left);
      V rest = hn::Add(hn::Load(d, low + at), left);
      V plain = hn::Sub(biased, bias[r]);
      accumulate<Low>(qj, ql, plain, rest, os[r], orest[r]);
      if constexpr (Decay) {
        biased = fused(aj, plain, bias[r]);
        const V kept = hn::Sub(biased, bias[r]);
        rest = fused(al, plain, fused(aj, rest, fused_minus(aj, plain, kept)));
        plain = kept;
      }
      accumulate<Low>(nj, nl, plain, rest, ps[r], pr[r]);
      hn::Store(biased, d, high + at);
      hn::Store(rest, d, low + at);
    }
  }
  for (std::size_t r = 0; r < B; ++r) {
    p.sum[r] = ps[r];
    p.rest[r] = pr[r];
    o.sum[r] = os[r];
    o.rest[r] = orest[r];
  }
}

enum carried_part { window_part, error_part, largest_part, left_part, carried_parts };

template <std::size_t B>
HWY_INLINE void recall(const pair_set& rows, carried_part part, V (&x)[B]) {
  for (std::size_t r = 0; r < B; ++r) x[r] = hn::Load(d, rows.carried + (part * B + r) * lanes());
}
template <std::size_t B>
HWY_INLINE void keep(const pair_set& rows, carried_part part, const V (&x)[B]) {
  for (std::size_t r = 0; r < B; ++r) hn::Store(x[r], d, rows.carried + (part * B + r) * lanes());
}

/// One attempt at the steps [from, to) from the saved state in the windows given. Where a row's norm fits its window at
/// every step `fits` stays true; the largest half square seen is left in `top`.
template <std::size_t B, bool Low>
HWY_INLINE void attempt(const pair_job& job, const pair_set& rows, const double_double_coefficients& c, std::size_t from,
                        std::size_t to, const V (&window)[B], const V (&start)[B], const V (&largest_v)[B], V (&e)[B],
                        V (&top)[B], hn::Mask<D> (&fits)[B]) {
  const double_double_head& in = job.in;
  const auto& s = in.high.scan;
  const std::size_t K = s.key_dim, T = s.tokens, n = s.steps_per_token, L = lanes(), token = from / n;
  const bool gated = !s.decay.empty();
  const std::size_t a_stride = gated && s.decay.size() != T ? 1 : 0, a_width = a_stride == 1 ? K : 1;
  const auto decay_at = [&](std::size_t t) { return s.decay.data() + t * a_width; };
  const auto decay_low_at = [&](std::size_t t) { return in.decay_low.empty() ? job.nothing : in.decay_low.data() + t * a_width; };
  const auto low_at = [&](const std::vector<double>& x, std::size_t row) { return x.empty() ? job.nothing : x.data() + row * K; };
  const V zero = hn::Zero(d), floor = hn::Set(d, pair_floor);
  const V delta = hn::Set(d, (static_cast<double>(K) + 32) * 0x1p-53 * (1 + 0x1p-46));
  V bias[B], limit[B], h[B], w[B], w_low[B];
  product_sum<B> p, o;
  for (std::size_t r = 0; r < B; ++r) {
    bias[r] = hn::Mul(window[r], hn::Set(d, 3.0));
    limit[r] = hn::Mul(hn::Mul(window[r], window[r]), hn::Set(d, 0.5 - 0x1p-20));
    h[r] = top[r] = start[r];
    fits[r] = hn::Le(h[r], limit[r]);
    w[r] = w_low[r] = zero;
  }
  const auto watch = [&](std::size_t r) HWY_ATTR {
    top[r] = hn::Max(top[r], h[r]);
    fits[r] = hn::And(fits[r], hn::Le(h[r], limit[r]));
  };
  const auto reset = [&](product_sum<B>& x, double scale) HWY_ATTR {
    for (std::size_t r = 0; r < B; ++r) {
      x.sum[r] = hn::Mul(bias[r], hn::Set(d, scale));
      x.rest[r] = zero;
    }
  };
  const auto read = [&](const product_sum<B>& x, double scale, std::size_t r, V& high, V& low) HWY_ATTR {
    high = hn::Sub(x.sum[r], hn::Mul(bias[r], hn::Set(d, scale)));
    low = x.rest[r];
  };
  // Line P4: onto this block's grid.
  for (std::size_t j = 0; j < K; ++j) {
    for (std::size_t r = 0; r < B; ++r) {
      const std::size_t at = (j * B + r) * L;
      const V x = hn::Load(d, rows.saved_high + at);
      const V biased = hn::Add(bias[r], x);
      hn::Store(biased, d, rows.high + at);
      hn::Store(hn::Add(hn::Sub(x, hn::Sub(biased, bias[r])), hn::Load(d, rows.saved_low + at)), d, rows.low + at);
    }
  }
  // The first block starts from doubles: there is nothing to round.
  const bool begins = from == 0 && job.begins;
  const double renewal = begins ? 0 : std::sqrt(static_cast<double>(K)) * 2 * pair_slack;
  for (std::size_t r = 0; r < B; ++r) e[r] = fused(window[r], hn::Set(d, renewal), e[r]);
  const auto certify_decay = [&](std::size_t t) HWY_ATTR {
    const double a = c.decay_largest[t];
    for (std::size_t r = 0; r < B; ++r) {
      // Not h a^2: the square of a small factor is lost where the product is not.
      h[r] = fused(hn::Mul(h[r], hn::Set(d, a)), hn::Set(d, a * (1 + 0x1p-46)), floor);
      e[r] = fused(window[r], hn::Set(d, c.decay_window[t]), hn::Mul(e[r], hn::Set(d, c.decay_factor[t])));
      watch(r);
    }
  };
  reset(p, c.scale[0]);
  reset(o, 1);
  if (begins && gated) {
    pass<B, Low, true>(K, rows.high, rows.low, job.nothing, job.nothing, job.nothing, job.nothing, decay_at(0), decay_low_at(0),
                       a_stride, s.k.data(), low_at(in.k_low, 0), bias, w, w_low, p, o);
    certify_decay(0);
  } else {
    pass<B, Low, false>(K, rows.high, rows.low, job.nothing, job.nothing, job.nothing, job.nothing, nullptr, nullptr, 0,
                        s.k.data() + from * K, low_at(in.k_low, from), bias, w, w_low, p, o);
  }
  const V scale = hn::Set(d, in.high.scale);
  for (std::size_t row = from; row < to; ++row) {
    const std::size_t t = row / n, i = row - from;
    const bool reads = row % n == n - 1, decays = reads && gated && t + 1 < T;
    const V b = hn::Set(d, c.step[i]), b_low = hn::Set(d, c.step_low[i]), k2 = hn::Set(d, c.half_square[i]);
    for (std::size_t r = 0; r < B; ++r) {
      V predicted, predicted_low;
      read(p, c.scale[i], r, predicted, predicted_low);
      // Line P5: r = v - p, w = b r.
      V high = hn::LoadU(d, rows.v + row * rows.v_stride + r * L), low = hn::Neg(predicted);
      renormalise(high, low);
      low = hn::Sub(low, predicted_low);
      renormalise(high, low);
      w[r] = hn::Mul(b, high);
      w_low[r] = fused(b, low, fused_minus(b, high, w[r]));
      if constexpr (Low) w_low[r] = fused(b_low, high, w_low[r]);
      renormalise(w[r], w_low[r]);
      const V grown = hn::Add(h[r], hn::Mul(hn::Mul(w[r], k2), w[r]));  // not w^2 k2: the square of a small write is lost
      h[r] = hn::Add(h[r], hn::Mul(w[r], hn::Add(hn::Mul(w[r], k2), hn::Add(predicted, predicted_low))));
      h[r] = hn::Add(hn::Max(hn::Add(h[r], hn::Mul(delta, grown)), zero), floor);
      e[r] = hn::Add(hn::Mul(e[r], hn::Set(d, c.rho[i])), hn::Mul(window[r], hn::Set(d, c.from_window[i])));
      e[r] = hn::Add(e[r], hn::Mul(hn::Abs(w[r]), hn::Set(d, c.from_write[i])));
      e[r] = hn::Mul(hn::Add(e[r], hn::Mul(largest_v[r], hn::Set(d, c.from_value[i]))), hn::Set(d, 1 + 0x1p-46));
      watch(r);
    }
    const std::size_t next = std::min(row + 1, s.rows() - 1);  // after the last row of a block the product is not used
    const double next_scale = i + 1 < to - from ? c.scale[i + 1] : 1, query_scale = c.query_scale[t - token];
    const double* following = i + 1 < to - from ? s.k.data() + next * K : job.nothing;
    const double* following_low = i + 1 < to - from ? low_at(in.k_low, next) : job.nothing;
    reset(p, next_scale);
    reset(o, query_scale);
    const double* q = reads ? s.q.data() + t * K : job.nothing;
    const double* q_low = reads ? low_at(in.q_low, t) : job.nothing;
    if (decays) {
      pass<B, Low, true>(K, rows.high, rows.low, s.k.data() + row * K, low_at(in.k_low, row), q, q_low, decay_at(t + 1),
                         decay_low_at(t + 1), a_stride, following, following_low, bias, w, w_low, p, o);
    } else {
      pass<B, Low, false>(K, rows.high, rows.low, s.k.data() + row * K, low_at(in.k_low, row), q, q_low, nullptr, nullptr, 0,
                          following, following_low, bias, w, w_low, p, o);
    }
    if (reads) {
      // Line P6.
      const double size = std::fabs(in.high.scale) * (1 + 0x1p-46);
      // A scale below the normal numbers has few digits left when it is multiplied with a small norm: then it comes last.
      const double first = size < 0x1p-300 ? 1 : size;
      const V chi = hn::Set(d, c.query[t - token] * first), own = hn::Set(d, c.read[t - token] * first);
      const V last = hn::Set(d, size < 0x1p-300 ? size : 1.0);
      const V least = hn::Set(d, c.query[t - token] > 0 && size > 0 ? std::numeric_limits<double>::min() : 0.0);  // line U
      for (std::size_t r = 0; r < B; ++r) {
        V high, low;
        read(o, query_scale, r, high, low);
        renormalise(high, low);
        V out = hn::Mul(scale, high);
        V out_low = fused(scale, low, fused_minus(scale, high, out));
        renormalise(out, out_low);
        const std::size_t at = tier_rows::panel(t, rows.at + r * L, job.out.tokens);
        hn::StoreU(out, d, &job.out.o[at]);
        hn::StoreU(out_low, d, &job.out.o_low[at]);
        V radius = hn::Add(hn::Mul(chi, e[r]), hn::Mul(own, window[r]));
        radius = hn::Add(hn::Mul(radius, last), hn::Mul(hn::Abs(out), hn::Set(d, 2.0)));
        hn::StoreU(hn::Add(hn::Mul(radius, hn::Set(d, pair_unit * (1 + 0x1p-44))), least), d, &job.out.o_radius[at]);
      }
    }
    if (decays) certify_decay(t + 1 - token);
  }
}

template <std::size_t B, bool Low>
std::size_t advance(const pair_job& job, const pair_set& rows, const double_double_coefficients& c, std::size_t from,
                    std::size_t to) {
  const auto& s = job.in.high.scan;
  const std::size_t K = s.key_dim, L = lanes();
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0);
  V window[B], e[B], largest[B], left[B], start[B], largest_v[B], top[B], error[B];
  hn::Mask<D> fits[B];
  recall<B>(rows, error_part, e);
  recall<B>(rows, largest_part, largest);
  recall<B>(rows, left_part, left);
  for (std::size_t r = 0; r < B; ++r) largest_v[r] = start[r] = zero;
  for (std::size_t row = from; row < to; ++row) {
    for (std::size_t r = 0; r < B; ++r)
      largest_v[r] = hn::Max(largest_v[r], hn::Abs(hn::LoadU(d, rows.v + row * rows.v_stride + r * L)));
  }
  for (std::size_t j = 0; j < K; ++j) {
    for (std::size_t r = 0; r < B; ++r) {
      const V x = hn::Load(d, rows.saved_high + (j * B + r) * L);
      start[r] = hn::Add(start[r], hn::Mul(x, x));
    }
  }
  // Within a block the bound on the norm knows of a decay by channel only its largest factor, so it runs ahead.
  const double ahead = s.decay.size() > s.tokens ? 4 : 1.5;
  const V up = hn::Set(d, 0.5 * (1 + (static_cast<double>(K) + 16) * 0x1p-52));
  for (std::size_t r = 0; r < B; ++r) {
    start[r] = fused(start[r], up, hn::Set(d, pair_floor));
    const V guess = hn::Add(hn::Mul(norm_from(start[r]), hn::Set(d, ahead)), hn::Mul(largest_v[r], hn::Set(d, c.largest_write)));
    const auto alive = hn::Eq(left[r], zero);
    window[r] = hn::IfThenElse(alive, power_above(hn::Max(guess, hn::Set(d, smallest_window))), one);
    // Beyond the widest window, and NaN.
    left[r] = hn::IfThenElse(hn::Le(window[r], hn::Set(d, largest_window)), left[r], one);
    window[r] = hn::IfThenElse(hn::Eq(left[r], zero), window[r], one);
  }
  std::size_t again = 0;
  for (;; ++again) {
    for (std::size_t r = 0; r < B; ++r) error[r] = e[r];
    attempt<B, Low>(job, rows, c, from, to, window, start, largest_v, error, top, fits);
    bool done = true;
    for (std::size_t r = 0; r < B; ++r) {
      const auto wider = hn::And(hn::Not(fits[r]), hn::Eq(left[r], zero));
      if (hn::AllFalse(d, wider)) continue;
      done = false;
      const V seen =
          hn::IfThenElse(hn::Le(top[r], hn::Set(d, 0x1p790)), power_above(hn::Mul(norm_from(top[r]), hn::Set(d, 1.25))),
                         hn::Mul(window[r], hn::Set(d, 0x1p200)));
      window[r] = hn::IfThenElse(wider, hn::Max(seen, hn::Mul(window[r], hn::Set(d, 4.0))), window[r]);
      left[r] = hn::IfThenElse(hn::Le(window[r], hn::Set(d, largest_window)), left[r], one);
    }
    if (done) break;
  }
  for (std::size_t r = 0; r < B; ++r) {
    e[r] = error[r];
    const V size = fused(error[r], hn::Set(d, pair_unit), norm_from(top[r]));
    largest[r] = hn::Max(largest[r], hn::Mul(size, hn::Set(d, 1 + 0x1p-46)));
    const V bias = hn::Mul(window[r], hn::Set(d, 3.0));
    for (std::size_t j = 0; j < K; ++j) {
      const std::size_t at = (j * B + r) * L;
      V high = hn::Sub(hn::Load(d, rows.high + at), bias), low = hn::Load(d, rows.low + at);
      renormalise(high, low);
      hn::Store(high, d, rows.saved_high + at);
      hn::Store(low, d, rows.saved_low + at);
    }
  }
  keep<B>(rows, error_part, e);
  keep<B>(rows, largest_part, largest);
  keep<B>(rows, left_part, left);
  for (std::size_t r = 0; r < B; ++r) {
    if (hn::AllTrue(d, hn::Eq(left[r], zero))) continue;
    alignas(64) double gone[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(left[r], d, gone);
    for (std::size_t l = 0; l < L; ++l) {
      std::size_t& valid = job.out.valid[rows.at + r * L + l];
      if (gone[l] != 0) valid = std::min(valid, from / s.steps_per_token);
    }
  }
  return again;
}

template <std::size_t B>
void finish(const pair_job& job, const pair_set& rows) {
  const std::size_t K = job.in.high.scan.key_dim, L = lanes();
  V e[B], largest[B], left[B];
  recall<B>(rows, error_part, e);
  recall<B>(rows, largest_part, largest);
  recall<B>(rows, left_part, left);
  for (std::size_t r = 0; r < B; ++r) {
    for (std::size_t j = 0; j < K; ++j) {
      const std::size_t to = tier_rows::panel(j, rows.at + r * L, K), at = (j * B + r) * L;
      hn::StoreU(hn::Load(d, rows.saved_high + at), d, &job.out.final_state[to]);
      hn::StoreU(hn::Load(d, rows.saved_low + at), d, &job.out.final_state_low[to]);
    }
    hn::StoreU(hn::Mul(e[r], hn::Set(d, pair_unit * (1 + 0x1p-44))), d, &job.out.state_radius[rows.at + r * L]);
    hn::StoreU(largest[r], d, &job.out.largest_norm[rows.at + r * L]);
    alignas(64) double gone[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(
        hn::IfThenElse(hn::And(hn::Eq(left[r], hn::Zero(d)), hn::Le(e[r], hn::Set(d, 0x1p900))), hn::Zero(d), hn::Set(d, 1.0)), d,
        gone);
    for (std::size_t l = 0; l < L; ++l) job.out.left[rows.at + r * L + l] = gone[l] != 0 ? 1 : 0;
  }
}

std::size_t run(const double_double_head& in, std::span<const std::size_t> columns, carried_rows& carried, tier_rows& out,
                const std::atomic<bool>* stop) {
  const auto& s = in.high.scan;
  const std::size_t steps = out.tokens * s.steps_per_token;
  const bool begins = carried.steps == 0, ends = out.tokens == s.tokens;
  const std::size_t L = lanes(), K = s.key_dim, padded = out.state_radius.size();
  const bool low = !in.q_low.empty() || !in.k_low.empty() || !in.step_low.empty();
  carried.memory.resize((4 * K + carried_parts) * padded);
  std::vector<double> packed((steps + 1) * padded, 0.0);
  for (std::size_t r = 0; r < steps; ++r) {
    for (std::size_t i = 0; i < columns.size(); ++i) packed[r * padded + i] = s.v[r * s.value_dim + columns[i]];
  }
  const std::vector<double> zeros(K, 0.0);
  const pair_job job{in, out, zeros.data(), begins};
  std::vector<pair_set> sets;
  for (std::size_t at = 0; at < padded;) {
    pair_set rows;
    rows.vectors = padded - at >= 2 * L ? 2 : 1;
    const std::size_t width = rows.vectors * L;
    rows.at = at;
    rows.v = packed.data() + at;
    rows.v_stride = padded;
    rows.high = carried.memory.data() + (4 * K + carried_parts) * at;
    rows.low = rows.high + K * width;
    rows.saved_high = rows.low + K * width;
    rows.saved_low = rows.saved_high + K * width;
    rows.carried = rows.saved_low + K * width;
    if (begins) std::fill_n(rows.saved_low, K * width, 0.0);
    if (begins) std::fill_n(rows.carried, carried_parts * width, 0.0);
    for (std::size_t j = 0; j < K && begins; ++j) {
      for (std::size_t i = 0; i < width; ++i) {
        rows.saved_high[j * width + i] =
            s.initial_state.empty() || at + i >= columns.size() ? 0.0 : s.initial_state(j, columns[at + i]);
      }
    }
    sets.push_back(rows);
    at += width;
  }
  std::size_t again = 0;
  double_double_coefficients c;
  for (std::size_t from = 0; from < steps && carried.fits; from += block_steps) {
    if (stop && stop->load(std::memory_order_relaxed)) return again;
    const std::size_t to = std::min(steps, from + block_steps);
    coefficients_of_steps(in, from, to, c, begins);
    carried.fits = c.fits;
    for (std::size_t& valid : out.valid) valid = c.fits ? valid : std::min(valid, from / s.steps_per_token);
    for (const pair_set& rows : sets) {
      if (rows.vectors == 2) {
        again += low ? advance<2, true>(job, rows, c, from, to) : advance<2, false>(job, rows, c, from, to);
      } else {
        again += low ? advance<1, true>(job, rows, c, from, to) : advance<1, false>(job, rows, c, from, to);
      }
    }
  }
  carried.steps += steps;
  for (std::size_t r = 0; r < padded; ++r) out.left[r] = out.valid[r] < out.tokens ? 1 : 0;
  for (const pair_set& rows : sets) {
    if (ends) rows.vectors == 2 ? finish<2>(job, rows) : finish<1>(job, rows);
  }
  return again;
}

}  // namespace deltaproof::tiers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deltaproof::tiers {

HWY_EXPORT(run);

std::size_t run_double_double(const double_double_head& in, std::size_t tokens, std::span<const std::size_t> columns,
                              carried_rows& carried, tier_rows& out, const std::atomic<bool>* stop) {
  in.high.scan.validate();
  out.shape(in.high.scan, tokens, columns.size(), true);
  if (!carried.fits) std::fill(out.valid.begin(), out.valid.end(), std::size_t{0});
  const std::size_t again = carried.fits ? HWY_DYNAMIC_DISPATCH(run)(in, columns, carried, out, stop) : 0;
  if (!carried.fits) std::fill(out.left.begin(), out.left.end(), std::uint8_t{1});
  return again;
}

std::size_t run_double_double(const double_double_head& in, std::span<const std::size_t> columns, tier_rows& out,
                              const std::atomic<bool>* stop) {
  carried_rows carried;
  return run_double_double(in, in.high.scan.tokens, columns, carried, out, stop);
}

}  // namespace deltaproof::tiers
#endif
