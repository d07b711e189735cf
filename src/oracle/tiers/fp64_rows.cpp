// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/fp64_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "oracle/tiers/simd.hpp"
#include <hwy/aligned_allocator.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/tiers/fp64_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef DELTAPROOF_TIERS_FP64_SHARED
#define DELTAPROOF_TIERS_FP64_SHARED
namespace deltaproof::tiers {

constexpr double slack = 1 + 0x1p-46;          // line F
constexpr double underflow = 0x1p-1000;        // line U, in units of u
constexpr double norm_floor = 0x1p-1000;       // of a halved square
constexpr double largest_square = 0x1p900;     // beyond it a row has left the tier
constexpr std::size_t near_cache = 32768;       // bytes; a guess that bears on speed alone
constexpr double narrow = 0x1p-300;            // nonzero keys, steps and queries lie between this and its inverse

/// One set of at most B vectors of rows between two blocks of steps: its state and what is carried beside it.
struct row_set {
  std::size_t vectors = 1;
  std::size_t at = 0;          // its first row in the selection
  const double* v = nullptr;   // values, `v_stride` apart
  std::size_t v_stride = 0;
  double* state = nullptr;     // K x (vectors * lanes)
  double* carried = nullptr;   // vectors of half squares, errors, largest norms, predictions
};

struct fp64_job {
  const lowered<double>& in;
  tier_rows& out;
  const double* nothing;  // 2K zeros
  const double* tail;     // where T is odd: the last key and K zeros, the last query and K zeros
};

}  // namespace deltaproof::tiers
#endif

HWY_BEFORE_NAMESPACE();
namespace deltaproof::tiers::HWY_NAMESPACE {
#include "oracle/tiers/lanes.inc"

/// The sums of all lanes of a and of b, to out[0] and out[step].
HWY_INLINE void sums_of_two(V a, V b, double* out, std::size_t step) {
#if HWY_MAX_BYTES >= 64
  const hn::Half<D> d4;
  const hn::Half<decltype(d4)> d2;
  const V pairs = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto four = hn::Add(hn::LowerHalf(d4, pairs), hn::UpperHalf(d4, pairs));
  alignas(16) double both[2];
  hn::Store(hn::Add(hn::LowerHalf(d2, four), hn::UpperHalf(d2, four)), d2, both);
  out[0] = both[0];
  out[step] = both[1];
#else
  out[0] = hn::GetLane(hn::SumOfLanes(d, a));
  out[step] = hn::GetLane(hn::SumOfLanes(d, b));
#endif
}

/// Sums of squares of four vectors of length n and, for Cross, the products of the second with the first and of the
/// fourth with the third. Each term meets at most n/lanes + lanes roundings, fewer than n + 8.
template <bool Squares, bool Cross>
HWY_INLINE void products_of_four(const double* const (&x)[4], std::size_t n, double* square, double* cross) {
  V sum[4], both[2];
  for (V& s : sum) s = hn::Zero(d);
  for (V& s : both) s = hn::Zero(d);
  std::size_t j = 0;
  for (; j + lanes() <= n; j += lanes()) {
    V at[4];
    for (std::size_t i = 0; i < 4; ++i) at[i] = hn::LoadU(d, x[i] + j);
    for (std::size_t i = 0; i < 4 && Squares; ++i) sum[i] = hn::MulAdd(at[i], at[i], sum[i]);
    for (std::size_t i = 0; i < 2 && Cross; ++i) both[i] = hn::MulAdd(at[2 * i], at[2 * i + 1], both[i]);
  }
  if constexpr (Squares) {
    sums_of_two(sum[0], sum[1], square, 1);
    sums_of_two(sum[2], sum[3], square + 2, 1);
  }
  if constexpr (Cross) sums_of_two(both[0], both[1], cross + 1, 2);
  for (; j < n; ++j) {
    for (std::size_t i = 0; i < 4 && Squares; ++i) square[i] += x[i][j] * x[i][j];
    for (std::size_t i = 0; i < 2 && Cross; ++i) cross[2 * i + 1] += x[2 * i][j] * x[2 * i + 1][j];
  }
}

/// Line N from a computed sum of squares.
HWY_INLINE V norm_of(V sum, double n) {
  const V bound = hn::Sqrt(hn::MulAdd(sum, hn::Set(d, 1 + (n + 8) * 0x1p-52), hn::Set(d, n * 0x1p-1074)));
  return hn::IfThenElseZero(hn::Gt(sum, hn::Zero(d)), hn::Mul(bound, hn::Set(d, slack)));
}

/// Sums of squares of `count` vectors of length n, which follow each other; for Cross also the product of each odd one
/// with the one before it. The tables have room for the next multiple of four.
template <bool Squares, bool Cross>
HWY_INLINE void squares(const double* x, std::size_t n, std::size_t count, double* out, double* cross) {
  for (std::size_t i = 0; i < count; i += 4) {
    const auto at = [&](std::size_t k) { return x + std::min(i + k, count - 1) * n; };
    const double* const rows[4] = {at(0), at(1), at(2), at(3)};
    products_of_four<Squares, Cross>(rows, n, out + i, cross + i);
  }
}

HWY_INLINE bool is_zero(const double* x, std::size_t n) {
  return std::all_of(x, x + n, [](double xi) { return xi == 0; });
}

template <bool Certified>
void coefficients_of(const lowered<double>& in, bool paired, std::size_t from, std::size_t to, double largest_v, block_coefficients& c) {
  const auto& s = in.scan;
  const lowering_error& le = in.error;
  const std::size_t K = s.key_dim, L = lanes(), count = to - from;
  const double n = static_cast<double>(K), u = fp64_unit;
  std::copy_n(s.step.data() + from, count, c.step);
  std::fill(c.step + count, c.step + c.room, 0.0);
  const double* keys = s.k.data() + from * K;
  if constexpr (!Certified) {
    if (paired) squares<false, true>(keys, K, count, c.norm, c.gram);
    return;
  }
  if (paired) squares<true, true>(keys, K, count, c.norm, c.gram);
  if (!paired) squares<true, false>(keys, K, count, c.norm, c.gram);
  std::fill(c.norm + count, c.norm + c.room, 0.0);
  const std::size_t token = from / s.steps_per_token, tokens = std::min(s.tokens, (to - 1) / s.steps_per_token + 1) - token;
  squares<true, false>(s.q.data() + token * K, K, tokens, c.query, c.gram);
  std::fill(c.query + tokens, c.query + c.room, 0.0);
  // A sum of squares that underflowed to 0 says nothing.
  for (std::size_t i = 0; i < count; ++i) c.fits = c.fits && (c.norm[i] != 0 || is_zero(s.k.data() + (from + i) * K, K));
  for (std::size_t i = 0; i < tokens; ++i) c.fits = c.fits && (c.query[i] != 0 || is_zero(s.q.data() + (token + i) * K, K));

  const double gamma = n / (1 - n * u) * slack;
  c.read = (gamma + le.query) * slack;
  const V one = hn::Set(d, 1.0), up = hn::Set(d, slack), zero = hn::Zero(d);
  const V low = hn::Set(d, narrow), high = hn::Set(d, 1 / narrow);
  const auto outside = [&](V x) HWY_ATTR { return hn::And(hn::Ne(x, zero), hn::Not(hn::And(hn::Ge(x, low), hn::Le(x, high)))); };
  auto bad = hn::Ne(zero, zero);
  const double c2 = 2 * (1 + 4 * u);
  // gamma/u of a prediction, more where it was corrected by a Gram product (line G): in every second step of a pair.
  double dots[2 * HWY_MAX_BYTES / sizeof(double) + 2];
  for (std::size_t i = 0; i < std::size(dots); ++i) dots[i] = paired && i % 2 == 1 ? gamma + 2 * (1 + 0x1p-30) : gamma;
  for (std::size_t r = 0; r < count; r += L) {
    const V square = hn::Load(d, c.norm + r);
    const V b = hn::Load(d, c.step + r);
    const V kappa = norm_of(square, n);
    const V kappa_plus = hn::Mul(kappa, hn::Set(d, (1 + le.key * u) * slack));
    const V beta = hn::Abs(b);
    const V beta_plus = hn::Mul(hn::MulAdd(beta, hn::Set(d, 1 + le.step * u), hn::Set(d, le.step_floor * u)), up);
    bad = hn::Or(bad, hn::Or(outside(kappa), outside(beta)));
    // Line R.
    const V x = hn::Mul(b, square);
    const V off = hn::Add(hn::MulAdd(hn::Abs(x), hn::Set(d, (n + 16) * 0x1p-52), hn::Set(d, 0x1p-1000)),
                          hn::Mul(hn::Set(d, le.step_floor * u), hn::Mul(kappa_plus, kappa_plus)));
    const V rho = hn::Max(one, hn::Mul(hn::Add(hn::Abs(hn::Sub(one, x)), off), up));
    // Lines W and S.
    const V predicted = hn::Mul(hn::Mul(beta, hn::LoadU(d, dots + r % 2)), kappa);
    V m = hn::MulAdd(predicted, hn::Set(d, 1 + le.step * u), hn::Mul(hn::Set(d, le.step_floor), kappa));
    m = hn::MulAdd(hn::Mul(beta_plus, hn::Set(d, le.key)), kappa, m);
    m = hn::Mul(hn::Mul(m, kappa_plus), up);
    V w = hn::Mul(kappa_plus, hn::Set(d, c2 + le.step * (1 + c2 * u)));
    w = hn::Mul(hn::MulAdd(hn::Set(d, 1 + le.key), kappa, w), up);
    V k0 = hn::Mul(hn::Set(d, le.step_floor * largest_v), kappa_plus);
    k0 = hn::MulAdd(hn::Mul(hn::Set(d, underflow), hn::Add(one, kappa_plus)), hn::Add(one, beta_plus), k0);
    const auto live = hn::Gt(square, zero);
    hn::Store(hn::IfThenElseZero(live, b), d, c.step + r);
    hn::Store(kappa, d, c.norm + r);
    hn::Store(hn::Mul(hn::Mul(kappa, kappa), hn::Set(d, 0.5 * slack)), d, c.half_square + r);
    hn::Store(hn::IfThenElse(live, rho, one), d, c.rho + r);
    hn::Store(hn::IfThenElseZero(live, m), d, c.from_norm + r);
    hn::Store(hn::IfThenElseZero(live, w), d, c.from_write + r);
    hn::Store(hn::IfThenElseZero(live, k0), d, c.constant + r);
  }
  // Line G: what the next step's prediction owes to this write.
  const double owed = (gamma + 2.001) * (1 + le.key * u) * (1 + le.step * u) * slack;
  for (std::size_t r = 1; paired && r < count; r += 2) {
    c.from_write[r - 1] += owed * std::fabs(c.step[r]) * c.norm[r] * c.norm[r] * c.norm[r - 1];
  }
  for (std::size_t t = 0; t < tokens; t += L) {
    const V chi = hn::Mul(norm_of(hn::Load(d, c.query + t), n), hn::Set(d, (1 + le.query * u) * slack));
    bad = hn::Or(bad, outside(chi));
    hn::Store(chi, d, c.query + t);
  }
  c.fits = c.fits && hn::AllFalse(d, bad) && largest_v < 0x1p450;

  if (s.decay.empty()) return;
  const std::size_t channels = s.decay.size() == s.tokens ? 1 : K;
  for (std::size_t t = 0; t < tokens + 1 && token + t < s.tokens; ++t) {
    const double* a = s.decay.data() + (token + t) * channels;
    double largest = 0;
    for (std::size_t j = 0; j < channels; ++j) largest = std::max(largest, std::fabs(a[j]));
    c.decay_largest[t] = largest;
    c.decay_factor[t] = (largest * (1 + le.decay * u) + le.decay_floor * u) * slack;
    c.fits = c.fits && largest < 1 / narrow;
  }
  c.decay_local = (le.decay / (1 - u) + 1) * slack;
  c.decay_floor = le.decay_floor;
}

/// One pass over a block of R = B*L rows: two writes, the read-out after each, and the next two keys' products.
template <std::size_t B>
HWY_INLINE void pass_two(std::size_t K, double* HWY_RESTRICT S, const double* k, const double* q, const double* next,
                         const V (&w0)[B], const V (&w1)[B], V (&p0)[B], V (&p1)[B], V (&o0)[B], V (&o1)[B]) {
  const std::size_t L = lanes();
  V a0[B], a1[B], b0[B], b1[B];
  for (std::size_t r = 0; r < B; ++r) a0[r] = a1[r] = b0[r] = b1[r] = hn::Zero(d);
  for (std::size_t j = 0; j < K; ++j) {
    const V k0 = hn::Set(d, k[j]), k1 = hn::Set(d, k[K + j]);
    const V q0 = hn::Set(d, q[j]), q1 = hn::Set(d, q[K + j]);
    const V n0 = hn::Set(d, next[j]), n1 = hn::Set(d, next[K + j]);
    for (std::size_t r = 0; r < B; ++r) {
      double* at = S + (j * B + r) * L;
      V s = hn::MulAdd(k0, w0[r], hn::Load(d, at));
      b0[r] = hn::MulAdd(q0, s, b0[r]);
      s = hn::MulAdd(k1, w1[r], s);
      b1[r] = hn::MulAdd(q1, s, b1[r]);
      a0[r] = hn::MulAdd(n0, s, a0[r]);
      a1[r] = hn::MulAdd(n1, s, a1[r]);
      hn::Store(s, d, at);
    }
  }
  for (std::size_t r = 0; r < B; ++r) {
    p0[r] = a0[r];
    p1[r] = a1[r];
    o0[r] = b0[r];
    o1[r] = b1[r];
  }
}

/// One write, the read-out, one decay and the next key's product.
template <std::size_t B, bool Read, int Decay>
HWY_INLINE void pass_one(std::size_t K, double* HWY_RESTRICT S, const double* k, const double* q, const double* a, const double* next,
                         const V (&w)[B], V (&p)[B], V (&o)[B]) {
  const std::size_t L = lanes();
  V sum[B], out[B];
  for (std::size_t r = 0; r < B; ++r) sum[r] = out[r] = hn::Zero(d);
  const V scalar = Decay == 1 ? hn::Set(d, *a) : hn::Zero(d);
  for (std::size_t j = 0; j < K; ++j) {
    const V kj = hn::Set(d, k[j]), nj = hn::Set(d, next[j]);
    const V qj = Read ? hn::Set(d, q[j]) : kj;
    const V aj = Decay == 2 ? hn::Set(d, a[j]) : scalar;
    for (std::size_t r = 0; r < B; ++r) {
      double* at = S + (j * B + r) * L;
      V s = hn::MulAdd(kj, w[r], hn::Load(d, at));
      if constexpr (Read) out[r] = hn::MulAdd(qj, s, out[r]);
      if constexpr (Decay != 0) s = hn::Mul(aj, s);
      sum[r] = hn::MulAdd(nj, s, sum[r]);
      hn::Store(s, d, at);
    }
  }
  for (std::size_t r = 0; r < B; ++r) {
    p[r] = sum[r];
    o[r] = out[r];
  }
}

/// Half the sum of squares of each row, computed.
template <std::size_t B>
HWY_INLINE void half_squares(std::size_t K, const double* S, V (&h)[B]) {
  const std::size_t L = lanes();
  V sum[4][B];  // four chains, so that they do not wait for each other
  for (auto& chain : sum) {
    for (V& x : chain) x = hn::Zero(d);
  }
  std::size_t j = 0;
  for (; j + 4 <= K; j += 4) {
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t r = 0; r < B; ++r) {
        const V s = hn::Load(d, S + ((j + i) * B + r) * L);
        sum[i][r] = hn::MulAdd(s, s, sum[i][r]);
      }
    }
  }
  for (; j < K; ++j) {
    for (std::size_t r = 0; r < B; ++r) {
      const V s = hn::Load(d, S + (j * B + r) * L);
      sum[0][r] = hn::MulAdd(s, s, sum[0][r]);
    }
  }
  for (std::size_t r = 0; r < B; ++r) h[r] = hn::Mul(hn::Add(hn::Add(sum[0][r], sum[1][r]), hn::Add(sum[2][r], sum[3][r])), hn::Set(d, 0.5));
}

enum carried_part { half_square_part, error_part, largest_part, prediction_part, second_part, start_part, top_part, written_part, carried_parts };

template <std::size_t B>
HWY_INLINE void recall(const row_set& rows, carried_part part, V (&x)[B]) {
  for (std::size_t r = 0; r < B; ++r) x[r] = hn::Load(d, rows.carried + (part * B + r) * lanes());
}
template <std::size_t B>
HWY_INLINE void keep(const row_set& rows, carried_part part, const V (&x)[B]) {
  for (std::size_t r = 0; r < B; ++r) hn::Store(x[r], d, rows.carried + (part * B + r) * lanes());
}

/// Radius of one read-out: u |o| + chi times what the row gives; in absolute terms.
HWY_INLINE V read_radius(V o, V chi, V row) {
  return hn::MulAdd(hn::Abs(o), hn::Set(d, fp64_unit * slack), hn::Mul(chi, row));
}
/// The row's part of line O, times u: |c| (read M + e), with line U.
HWY_INLINE V read_row_part(V m, V e, double read, double scale) {
  const V inner = hn::Add(hn::MulAdd(m, hn::Set(d, read), e), hn::Set(d, 0x1p-600));
  return hn::Mul(inner, hn::Set(d, (std::fabs(scale) + 0x1p-300) * fp64_unit * slack * slack));
}

/// The row's factor of every radius of the 64 tokens from `from`.
template <std::size_t B>
HWY_INLINE void give_factors(const fp64_job& job, const row_set& rows, std::size_t from, const V (&part)[B]) {
  const std::size_t blocks = (job.in.scan.tokens + block_steps - 1) / block_steps;
  for (std::size_t r = 0; r < B; ++r) {
    hn::StoreU(part[r], d, job.out.row_factor.data() + tier_rows::panel(from / block_steps, rows.at + r * lanes(), blocks));
  }
}

/// Not 0: a NaN is something too.
HWY_INLINE hn::Mask<D> is_something(V h) { return hn::Not(hn::Le(h, hn::Zero(d))); }

/// The largest norm so far, infinite from where it could not be bounded: what left the tier does not come back.
HWY_INLINE V larger_norm(hn::Mask<D> fits, V size, V largest) {
  return hn::IfThenElse(fits, hn::Max(size, largest), hn::Set(d, std::numeric_limits<double>::infinity()));
}

/// Line N from half squares with room for their own rounding.
HWY_INLINE V norm_from(V half) { return hn::Mul(hn::Sqrt(hn::Add(half, half)), hn::Set(d, slack)); }

HWY_INLINE V squares_up(double n) { return hn::Set(d, 1 + (n + 16) * 0x1p-52); }

HWY_INLINE double* panel_of(table& of, const row_set& rows, std::size_t r, std::size_t count) {
  return of.data() + tier_rows::panel(0, rows.at + r * lanes(), count);
}

/// Keys of the pair (t, t+1) of an ungated head with zeros after its end; `ahead` more doubles lead to the queries.
HWY_INLINE const double* pair_at(const fp64_job& job, const std::vector<double>& from, const double* tail, std::size_t t) {
  const auto& s = job.in.scan;
  return t + 2 <= s.tokens ? from.data() + t * s.key_dim : t < s.tokens ? tail : job.nothing;
}

/// Memory is slower than the arithmetic and must be asked while there is some to do: each set of rows fetches its share
/// of the next block's keys and queries, a part with each step, and the values of the steps after this one.
struct ahead {
  const double* k;
  const double* q;
  const double* decay = nullptr;  // where there is one for each channel
  std::size_t part;               // doubles with each of the block's steps

  ahead(const fp64_job& job, const row_set& rows, std::size_t from) {
    const auto& s = job.in.scan;
    const std::size_t next = from + block_steps, padded = job.out.state_radius.size();
    const bool whole = next + block_steps <= s.rows() && s.steps_per_token == 1;
    part = whole ? (s.key_dim * rows.vectors * lanes() / padded + 7) / 8 * 8 : 0;
    const std::size_t at = std::min(next * s.key_dim + rows.at * block_steps * s.key_dim / padded, s.k.size());
    k = s.k.data() + at;
    q = s.q.data() + (whole ? at : 0);
    if (whole && s.decay.size() > s.tokens) decay = s.decay.data() + at;
  }
  HWY_INLINE void fetch(const row_set& rows, std::size_t step, std::size_t row, std::size_t steps) const {
    for (std::size_t j = step * part; j < (step + steps) * part; j += 8) {
      __builtin_prefetch(k + j, 0, 2);
      __builtin_prefetch(q + j, 0, 2);
      if (decay) __builtin_prefetch(decay + j, 0, 2);
    }
    for (std::size_t i = 0; i < rows.vectors; ++i) {
      for (std::size_t r = row; r < row + steps; ++r) {
        __builtin_prefetch(rows.v + (r + steps) * rows.v_stride + i * lanes(), 0, 3);
        __builtin_prefetch(rows.v + (r + block_steps) * rows.v_stride + i * lanes(), 0, 2);
      }
    }
  }
};

/// The predictions of the pair (t, t+1) from the state as it is.
template <std::size_t B>
void predict_pair(const fp64_job& job, const row_set& rows, std::size_t t) {
  V none[B], p0[B], p1[B], o0[B], o1[B];
  for (std::size_t r = 0; r < B; ++r) none[r] = hn::Zero(d);
  pass_two<B>(job.in.scan.key_dim, rows.state, job.nothing, job.nothing, pair_at(job, job.in.scan.k, job.tail, t), none, none, p0, p1, o0, o1);
  keep<B>(rows, prediction_part, p0);
  keep<B>(rows, second_part, p1);
}

template <std::size_t B>
void begin(const fp64_job& job, const row_set& rows) {
  const auto& s = job.in.scan;
  const std::size_t K = s.key_dim;
  const V zero = hn::Zero(d);
  V h[B], none[B], live[B];
  for (std::size_t r = 0; r < B; ++r) none[r] = live[r] = zero;
  for (std::size_t j = 0; j < K * B; ++j) {
    const V x = hn::Load(d, rows.state + j * lanes());
    live[j % B] = hn::Max(live[j % B], hn::Abs(x));
  }
  half_squares<B>(K, rows.state, h);
  for (std::size_t r = 0; r < B; ++r) {
    h[r] = hn::IfThenElseZero(hn::Gt(live[r], zero), hn::MulAdd(h[r], squares_up(static_cast<double>(K)), hn::Set(d, norm_floor)));
    live[r] = norm_from(h[r]);
  }
  keep<B>(rows, half_square_part, h);
  keep<B>(rows, error_part, none);
  keep<B>(rows, largest_part, live);
}

/// The pair of steps (t, t+1) of one set of rows of an ungated head.
template <std::size_t B, bool Certified>
HWY_INLINE void step_pair(const fp64_job& job, const row_set& rows, const block_coefficients& c, const ahead& next, std::size_t from, std::size_t t) {
  const auto& s = job.in.scan;
  const std::size_t K = s.key_dim, T = s.tokens, L = lanes(), i = t - from;
  const V scale = hn::Set(d, job.in.scale);
  V h[B], top[B], written[B], p0[B], p1[B], o0[B], o1[B], w0[B], w1[B];
  const bool whole = t + 2 <= T;
  const double* v0 = rows.v + t * rows.v_stride;
  const double* v1 = whole ? v0 + rows.v_stride : v0;
  recall<B>(rows, prediction_part, p0);
  recall<B>(rows, second_part, p1);
  const V b0 = hn::Set(d, c.step[i]), b1 = hn::Set(d, c.step[i + 1]), gram = hn::Set(d, c.gram[i + 1]);
  for (std::size_t r = 0; r < B; ++r) {
    w0[r] = hn::Mul(b0, hn::Sub(hn::LoadU(d, v0 + r * L), p0[r]));
    p1[r] = hn::MulAdd(gram, w0[r], p1[r]);
    w1[r] = hn::Mul(b1, hn::Sub(hn::LoadU(d, v1 + r * L), p1[r]));
  }
  if constexpr (Certified) {
    const V k0 = hn::Set(d, c.half_square[i]), k1 = hn::Set(d, c.half_square[i + 1]);
    const V f0 = hn::Set(d, c.from_write[i]), f1 = hn::Set(d, c.from_write[i + 1]);
    recall<B>(rows, half_square_part, h);
    recall<B>(rows, top_part, top);
    recall<B>(rows, written_part, written);
    for (std::size_t r = 0; r < B; ++r) {
      h[r] = hn::MulAdd(w0[r], hn::MulAdd(w0[r], k0, p0[r]), h[r]);
      top[r] = hn::Max(top[r], h[r]);
      written[r] = hn::MulAdd(f0, hn::Abs(w0[r]), written[r]);
      h[r] = hn::MulAdd(w1[r], hn::MulAdd(w1[r], k1, p1[r]), h[r]);
      top[r] = hn::Max(top[r], h[r]);
      written[r] = hn::MulAdd(f1, hn::Abs(w1[r]), written[r]);
    }
    keep<B>(rows, half_square_part, h);
    keep<B>(rows, top_part, top);
    keep<B>(rows, written_part, written);
  }
  next.fetch(rows, i, t, 2);
  pass_two<B>(K, rows.state, pair_at(job, s.k, job.tail, t), pair_at(job, s.q, job.tail + 2 * K, t), pair_at(job, s.k, job.tail, t + 2),
              w0, w1, p0, p1, o0, o1);
  keep<B>(rows, prediction_part, p0);
  keep<B>(rows, second_part, p1);
  for (std::size_t r = 0; r < B; ++r) {
    double* o = panel_of(job.out.o, rows, r, T) + t * 8;
    // Its lines are fetched before they are written: stores wait for each other in order.
    __builtin_prefetch(o + 32, 1, 3);
    __builtin_prefetch(o + 40, 1, 3);
    hn::StoreU(hn::Mul(scale, o0[r]), d, o);
    if (whole) hn::StoreU(hn::Mul(scale, o1[r]), d, o + 8);
  }
}

template <std::size_t B>
void begin_pairs(const row_set& rows) {
  V start[B], none[B];
  for (V& x : none) x = hn::Zero(d);
  recall<B>(rows, half_square_part, start);
  keep<B>(rows, start_part, start);
  keep<B>(rows, top_part, start);
  keep<B>(rows, written_part, none);
}

/// Line H: the block as a whole.
template <std::size_t B>
void end_pairs(const fp64_job& job, const row_set& rows, const block_coefficients& c, std::size_t from, std::size_t to) {
  const std::size_t K = job.in.scan.key_dim, L = lanes();
  const double n = static_cast<double>(K);
  double rho = 1, from_norm = 0, constant = 0;
  for (std::size_t i = 0; i < to - from; ++i) {
    rho *= c.rho[i];
    from_norm += c.from_norm[i] + 1;
    constant += c.constant[i];
  }
  const V widen = hn::Set(d, 2 * (1 + 64 * (12 * n + 200) * 0x1p-52) * slack);
  V h[B], top[B], written[B], start[B], now[B], e[B], largest[B], part[B];
  recall<B>(rows, half_square_part, h);
  recall<B>(rows, start_part, start);
  recall<B>(rows, top_part, top);
  recall<B>(rows, written_part, written);
  recall<B>(rows, error_part, e);
  recall<B>(rows, largest_part, largest);
  half_squares<B>(K, rows.state, now);
  for (std::size_t r = 0; r < B; ++r) {
    // Rows that were 0 and are given nothing stay 0.
    auto alive = is_something(start[r]);
    if (!hn::AllTrue(d, alive)) {
      V given = hn::Zero(d);
      for (std::size_t t = from; t < to; ++t) {
        if (c.step[t - from] != 0) given = hn::Max(given, hn::Abs(hn::LoadU(d, rows.v + t * rows.v_stride + r * L)));
      }
      alive = hn::Or(alive, hn::Gt(given, hn::Zero(d)));
    }
    const V m = hn::Sqrt(hn::MulAdd(top[r], widen, hn::Set(d, norm_floor * 2)));
    const V local = hn::Add(hn::MulAdd(m, hn::Set(d, from_norm), hn::Add(e[r], written[r])), hn::Set(d, constant));
    const V limit = hn::Set(d, largest_square);
    const auto fits = hn::And(hn::Le(top[r], limit), hn::Le(h[r], limit));
    e[r] = hn::IfThenElse(fits, hn::Mul(local, hn::Set(d, rho * slack * slack)), hn::Set(d, std::numeric_limits<double>::infinity()));
    e[r] = hn::IfThenElseZero(alive, e[r]);
    part[r] = hn::IfThenElseZero(alive, read_row_part(m, e[r], c.read, job.in.scale));
    const V size = hn::Mul(hn::MulAdd(e[r], hn::Set(d, fp64_unit), m), hn::Set(d, slack));
    largest[r] = larger_norm(fits, hn::IfThenElseZero(alive, size), largest[r]);
    h[r] = hn::IfThenElseZero(alive, hn::MulAdd(now[r], squares_up(n), hn::Set(d, norm_floor)));
  }
  give_factors<B>(job, rows, from, part);
  keep<B>(rows, half_square_part, h);
  keep<B>(rows, error_part, e);
  keep<B>(rows, largest_part, largest);
}

/// Steps [from, to) of some sets of rows of an ungated head, two at a time. The sets take turns: the first write of a pair
/// waits for the last product of the one before, and meanwhile the others have work; keys are read from the near cache.
template <std::size_t B, bool Certified>
void advance_pairs(const fp64_job& job, std::span<const row_set> sets, const block_coefficients& c, std::size_t from, std::size_t to) {
  std::vector<ahead> next;
  for (const row_set& rows : sets) {
    next.emplace_back(job, rows, from);
    if constexpr (Certified) begin_pairs<B>(rows);
  }
  for (std::size_t t = from; t < to; t += 2) {
    for (std::size_t n = 0; n < sets.size(); ++n) step_pair<B, Certified>(job, sets[n], c, next[n], from, t);
  }
  if constexpr (Certified) {
    for (const row_set& rows : sets) end_pairs<B>(job, rows, c, from, to);
  }
}

/// Line D for one decay.
template <std::size_t B>
HWY_INLINE void certify_decay(const block_coefficients& c, std::size_t token, V (&h)[B], V (&m)[B], V (&e)[B]) {
  const double a = c.decay_largest[token];
  const V factor = hn::Set(d, c.decay_factor[token]), local = hn::Set(d, c.decay_local), off = hn::Set(d, c.decay_floor);
  for (std::size_t r = 0; r < B; ++r) {
    const auto alive = is_something(h[r]);
    const V before = m[r];
    h[r] = a == 0 ? hn::Zero(d) : hn::IfThenElseZero(alive, hn::MulAdd(h[r], hn::Set(d, a * a * slack), hn::Set(d, norm_floor)));
    m[r] = norm_from(h[r]);
    // A decay of exactly 0 ends every error, an unbounded one too.
    const V left = c.decay_factor[token] == 0 ? hn::Zero(d) : hn::Mul(factor, e[r]);
    V next = hn::MulAdd(off, before, hn::MulAdd(local, m[r], left));
    if (a > 0) next = hn::Add(next, hn::IfThenElseZero(alive, hn::Set(d, underflow)));
    e[r] = hn::Mul(next, hn::Set(d, slack));
  }
}

template <std::size_t B>
HWY_INLINE void pass_any(bool reads, int decays, std::size_t K, double* S, const double* k, const double* q, const double* a,
                         const double* next, const V (&w)[B], V (&p)[B], V (&o)[B]) {
  if (reads) {
    if (decays == 0) return pass_one<B, true, 0>(K, S, k, q, a, next, w, p, o);
    if (decays == 1) return pass_one<B, true, 1>(K, S, k, q, a, next, w, p, o);
    return pass_one<B, true, 2>(K, S, k, q, a, next, w, p, o);
  }
  if (decays == 0) return pass_one<B, false, 0>(K, S, k, q, a, next, w, p, o);
  if (decays == 1) return pass_one<B, false, 1>(K, S, k, q, a, next, w, p, o);
  return pass_one<B, false, 2>(K, S, k, q, a, next, w, p, o);
}

/// Steps [from, to) one at a time, decays and several steps a token included.
template <std::size_t B, bool Certified>
void advance_single(const fp64_job& job, const row_set& rows, const block_coefficients& c, std::size_t from, std::size_t to) {
  const auto& s = job.in.scan;
  const std::size_t K = s.key_dim, T = s.tokens, n = s.steps_per_token, L = lanes(), token = from / n;
  const int decay = s.decay.empty() ? 0 : s.decay.size() == T ? 1 : 2;
  const auto decay_at = [&](std::size_t t) { return s.decay.data() + (decay == 2 ? t * K : t); };
  const V zero = hn::Zero(d), scale = hn::Set(d, job.in.scale), floor = hn::Set(d, norm_floor), up = hn::Set(d, slack);
  const V delta = hn::Set(d, (static_cast<double>(K) + 32) * 0x1p-53 * slack);
  const V infinite = hn::Set(d, std::numeric_limits<double>::infinity());
  V h[B], m[B], e[B], largest[B], p[B], o[B], w[B];
  // A paired head that is run step by step for a while has its radii by block all the same.
  const bool by_block = job.out.o_radius.empty();
  V largest_part_seen[B];
  double* out[B];
  double* radius[B];
  const ahead ahead_of(job, rows, from);
  recall<B>(rows, prediction_part, p);
  recall<B>(rows, half_square_part, h);
  recall<B>(rows, error_part, e);
  recall<B>(rows, largest_part, largest);
  for (std::size_t r = 0; r < B; ++r) {
    out[r] = panel_of(job.out.o, rows, r, T);
    radius[r] = by_block ? nullptr : panel_of(job.out.o_radius, rows, r, T);
    m[r] = norm_from(h[r]);
    w[r] = largest_part_seen[r] = zero;
  }
  if (from == 0) {
    pass_any<B>(false, decay, K, rows.state, job.nothing, nullptr, decay == 0 ? nullptr : decay_at(0), s.k.data(), w, p, o);
    if (Certified && decay != 0) certify_decay<B>(c, 0, h, m, e);
  }
  for (std::size_t row = from; row < to; ++row) {
    const std::size_t t = row / n, i = row - from;
    const bool reads = row % n == n - 1, decays = reads && decay != 0 && t + 1 < T;
    const double* v = rows.v + row * rows.v_stride;
    ahead_of.fetch(rows, i, row, 1);
    const V b = hn::Set(d, c.step[i]);
    for (std::size_t r = 0; r < B; ++r) w[r] = hn::Mul(b, hn::Sub(hn::LoadU(d, v + r * L), p[r]));
    V part[B];
    if constexpr (Certified) {
      const V k2 = hn::Set(d, c.half_square[i]), rho = hn::Set(d, c.rho[i]), from_norm = hn::Set(d, c.from_norm[i]);
      const V from_write = hn::Set(d, c.from_write[i]), constant = hn::Set(d, c.constant[i]);
      const bool moves = c.norm[i] > 0;
      for (std::size_t r = 0; r < B && moves; ++r) {
        const auto alive = hn::Or(is_something(h[r]), hn::And(hn::Ne(b, zero), hn::Ne(hn::LoadU(d, v + r * L), zero)));
        const V drift = hn::MulAdd(hn::Mul(w[r], w[r]), k2, h[r]);
        h[r] = hn::MulAdd(w[r], hn::MulAdd(w[r], k2, p[r]), h[r]);
        h[r] = hn::IfThenElseZero(alive, hn::Add(hn::Max(hn::MulAdd(delta, drift, h[r]), zero), floor));
        V next = hn::MulAdd(rho, e[r], hn::MulAdd(from_norm, m[r], hn::Mul(from_write, hn::Abs(w[r]))));
        m[r] = norm_from(h[r]);
        next = hn::Add(hn::Add(next, m[r]), constant);
        e[r] = hn::IfThenElseZero(alive, hn::Mul(next, up));
        e[r] = hn::IfThenElse(hn::Le(drift, hn::Set(d, largest_square)), e[r], infinite);
      }
      for (std::size_t r = 0; r < B; ++r) {
        const V limit = hn::Set(d, largest_square);
        const auto fits = hn::And(hn::Le(h[r], limit), hn::Le(hn::Mul(hn::Mul(w[r], w[r]), k2), limit));
        largest[r] = larger_norm(fits, hn::Mul(hn::MulAdd(e[r], hn::Set(d, fp64_unit), m[r]), up), largest[r]);
        part[r] = hn::IfThenElseZero(is_something(h[r]), read_row_part(m[r], e[r], c.read, job.in.scale));
      }
    }
    const double* next = row + 1 < s.rows() ? s.k.data() + (row + 1) * K : job.nothing;
    pass_any<B>(reads, decays ? decay : 0, K, rows.state, s.k.data() + row * K, s.q.data() + t * K, decays ? decay_at(t + 1) : nullptr, next, w, p, o);
    if (reads) {
      const V chi = hn::Set(d, c.query[t - token]);
      for (std::size_t r = 0; r < B; ++r) {
        const V x = hn::Mul(scale, o[r]);
        hn::StoreU(x, d, out[r] + t * 8);
        if (Certified && !by_block) hn::StoreU(read_radius(x, chi, part[r]), d, radius[r] + t * 8);
        if constexpr (Certified) largest_part_seen[r] = hn::Max(largest_part_seen[r], part[r]);
      }
    }
    if constexpr (Certified) {
      if (decays) certify_decay<B>(c, t + 1 - token, h, m, e);
      if (row % single_refresh == single_refresh - 1) {
        V now[B];
        half_squares<B>(K, rows.state, now);
        for (std::size_t r = 0; r < B; ++r) {
          h[r] = hn::IfThenElseZero(is_something(h[r]), hn::MulAdd(now[r], squares_up(static_cast<double>(K)), floor));
          m[r] = norm_from(h[r]);
        }
      }
    }
  }
  if (Certified && by_block) give_factors<B>(job, rows, from, largest_part_seen);
  keep<B>(rows, prediction_part, p);
  keep<B>(rows, half_square_part, h);
  keep<B>(rows, error_part, e);
  keep<B>(rows, largest_part, largest);
}

template <std::size_t B>
void finish(const fp64_job& job, const row_set& rows) {
  const std::size_t K = job.in.scan.key_dim, L = lanes();
  V e[B], largest[B];
  recall<B>(rows, error_part, e);
  recall<B>(rows, largest_part, largest);
  for (std::size_t r = 0; r < B; ++r) {
    double* state = panel_of(job.out.final_state, rows, r, K);
    for (std::size_t j = 0; j < K; ++j) hn::StoreU(hn::Load(d, rows.state + (j * B + r) * L), d, state + j * 8);
    // Line F: never below the smallest normal number unless 0; NaN and what is too large has left.
    const V radius = hn::Max(hn::Mul(e[r], hn::Set(d, fp64_unit * slack)), hn::Set(d, std::numeric_limits<double>::min()));
    hn::StoreU(hn::IfThenElseZero(hn::Ne(e[r], hn::Zero(d)), radius), d, &job.out.state_radius[rows.at + r * L]);
    hn::StoreU(largest[r], d, &job.out.largest_norm[rows.at + r * L]);
    double fits[HWY_MAX_BYTES / sizeof(double)];
    const auto inside = hn::And(hn::Le(e[r], hn::Set(d, largest_square)), hn::Le(largest[r], hn::Set(d, largest_square)));
    hn::StoreU(hn::IfThenElseZero(inside, hn::Set(d, 1.0)), d, fits);
    for (std::size_t l = 0; l < L; ++l) job.out.left[rows.at + r * L + l] = fits[l] == 0 ? 1 : 0;
  }
}

/// f(std::integral_constant<std::size_t, B>) for the B of these rows.
template <class F>
HWY_INLINE void with_vectors(const row_set& rows, const F& f) {
  if (rows.vectors == 2) return f(std::integral_constant<std::size_t, 2>{});
  f(std::integral_constant<std::size_t, 1>{});
}

template <bool Certified>
void run_rows(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out, const std::atomic<bool>* stop) {
  const auto& s = in.scan;
  const std::size_t L = lanes(), K = s.key_dim, V_ = s.value_dim;
  const bool paired = runs_in_pairs(s);
  // Pairs: one vector a set, so that a pass is short enough to overlap with the next, as many sets as the near cache holds.
  const std::size_t together = std::clamp<std::size_t>(near_cache / 2 / (K * L * sizeof(double)), 2, 4);
  std::vector<row_set> sets;
  for (std::size_t at = 0; at < out.state_radius.size();) {  // padded to eight rows
    const std::size_t vectors = !paired && out.state_radius.size() - at >= 2 * L ? 2 : 1;
    sets.push_back({vectors, at, nullptr, 0, nullptr, nullptr});
    at += vectors * L;
  }
  const std::size_t padded = out.state_radius.size();
  const auto memory = hwy::AllocateAligned<double>((K + carried_parts) * padded);
  std::vector<double> packed;
  bool direct = columns.size() == padded && s.rows() > 0;
  for (std::size_t i = 1; i < columns.size() && direct; ++i) direct = columns[i] == columns[0] + i;
  if (!direct) {
    packed.assign((s.rows() + 1) * padded, 0.0);
    for (std::size_t r = 0; r < s.rows(); ++r) {
      for (std::size_t i = 0; i < columns.size(); ++i) packed[r * padded + i] = s.v[r * V_ + columns[i]];
    }
  }
  for (row_set& rows : sets) {
    const std::size_t width = rows.vectors * L;
    rows.v = direct ? s.v.data() + columns[0] + rows.at : packed.data() + rows.at;
    rows.v_stride = direct ? V_ : padded;
    rows.state = memory.get() + (K + carried_parts) * rows.at;
    rows.carried = rows.state + K * width;
    for (std::size_t j = 0; j < K; ++j) {
      for (std::size_t i = 0; i < width; ++i) {
        const std::size_t r = rows.at + i;
        rows.state[j * width + i] = s.initial_state.empty() || r >= columns.size() ? 0.0 : s.initial_state(j, columns[r]);
      }
    }
  }
  std::vector<double> zeros(6 * K, 0.0);
  if (s.tokens % 2 == 1 && paired) {
    std::copy_n(s.k.data() + (s.tokens - 1) * K, K, zeros.data() + 2 * K);
    std::copy_n(s.q.data() + (s.tokens - 1) * K, K, zeros.data() + 4 * K);
  }
  const fp64_job job{in, out, zeros.data(), zeros.data() + 2 * K};
  double largest_v = 0;
  if (in.error.step_floor > 0) {
    for (const double x : s.v) largest_v = std::max(largest_v, std::fabs(x));
  }
  block_coefficients c;
  for (const row_set& rows : sets) with_vectors(rows, [&](auto b) { begin<b()>(job, rows); });
  bool predicted = false;
  for (std::size_t from = 0; from < s.rows() && c.fits; from += block_steps) {
    if (stop && stop->load(std::memory_order_relaxed)) return;
    const std::size_t to = std::min(s.rows(), from + block_steps);
    coefficients_of<Certified>(in, paired, from, to, largest_v, c);
    if (Certified && paired) std::copy_n(c.query, to - from, out.query_factor.data() + from);
    // A block as a whole pays for the product of its factors at every step: where they grow, step by step is better.
    double growth = 1;
    for (std::size_t i = 0; Certified && i < to - from; ++i) growth *= c.rho[i];
    const bool two = paired && growth < 1.25;
    if (paired && !two) coefficients_of<Certified>(in, false, from, to, largest_v, c);
    for (std::size_t at = 0; at < sets.size();) {
      std::size_t end = at + 1;
      while (end < sets.size() && end < at + together && sets[end].vectors == sets[at].vectors) ++end;
      const std::span turn(sets.data() + at, end - at);
      with_vectors(sets[at], [&](auto b) {
        for (const row_set& rows : turn) {
          if (two && !predicted) predict_pair<b()>(job, rows, from);
          if (!two) advance_single<b(), Certified>(job, rows, c, from, to);
        }
        if (two) advance_pairs<b(), Certified>(job, turn, c, from, to);
      });
      at = end;
    }
    predicted = two;
  }
  for (const row_set& rows : sets) with_vectors(rows, [&](auto b) { finish<b()>(job, rows); });
  if (!c.fits) std::fill(out.left.begin(), out.left.end(), std::uint8_t{1});
}

void run_certified(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out, const std::atomic<bool>* stop) {
  run_rows<true>(in, columns, out, stop);
}
void run_plain(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out, const std::atomic<bool>* stop) {
  run_rows<false>(in, columns, out, stop);
}
void coefficients(const lowered<double>& in, bool paired, std::size_t from, std::size_t to, double largest_v, block_coefficients& out) {
  coefficients_of<true>(in, paired, from, to, largest_v, out);
}

}  // namespace deltaproof::tiers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deltaproof::tiers {

HWY_EXPORT(coefficients);
HWY_EXPORT(run_certified);
HWY_EXPORT(run_plain);

void tier_rows::shape(const sequence<double>& scan, std::size_t selected, bool pairs, bool by_block) {
  rows = selected;
  tokens = scan.tokens;
  const std::size_t padded = (selected + 7) / 8 * 8;
  o.resize(scan.tokens * padded);
  o_radius.resize(by_block ? 0 : o.size());
  query_factor.resize(by_block ? scan.tokens : 0);
  row_factor.resize(by_block ? (scan.tokens + block_steps - 1) / block_steps * padded : 0);
  final_state.resize(scan.key_dim * padded);
  o_low.resize(pairs ? o.size() : 0);
  final_state_low.resize(pairs ? final_state.size() : 0);
  state_radius.resize(padded);
  largest_norm.resize(padded);
  left.resize(padded);
}

void restrict_targets(long long mask) { hwy::SetSupportedTargetsForTest(mask); }
long long available_targets() { return hwy::SupportedTargets() & HWY_TARGETS; }

void fp64_coefficients(const lowered<double>& in, bool paired, std::size_t from, std::size_t to, double largest_v,
                       block_coefficients& out) {
  HWY_DYNAMIC_DISPATCH(coefficients)(in, paired, from, to, largest_v, out);
}

void run_fp64(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out, const std::atomic<bool>* stop) {
  in.scan.validate();
  out.shape(in.scan, columns.size(), false, runs_in_pairs(in.scan));
  HWY_DYNAMIC_DISPATCH(run_certified)(in, columns, out, stop);
}

void run_fp64_uncertified(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out) {
  in.scan.validate();
  out.shape(in.scan, columns.size(), false, runs_in_pairs(in.scan));
  HWY_DYNAMIC_DISPATCH(run_plain)(in, columns, out, nullptr);
}

}  // namespace deltaproof::tiers
#endif
