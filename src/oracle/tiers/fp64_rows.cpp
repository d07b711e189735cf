// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/fp64_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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
constexpr double narrow = 0x1p-300;            // nonzero keys, steps and queries lie between this and its inverse

/// What one run of rows reads and writes.
struct fp64_job {
  const lowered<double>& in;
  const step_coefficients& c;
  const double* v;         // rows of values, `v_stride` apart
  std::size_t v_stride;
  const double* start;     // K rows of the initial state, nullptr for zeros
  std::size_t start_stride;
  tier_rows& out;
  std::size_t at;          // first column of the tables
  const std::atomic<bool>* stop;
};

}  // namespace deltaproof::tiers
#endif

HWY_BEFORE_NAMESPACE();
namespace deltaproof::tiers::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
constexpr D d{};
HWY_INLINE std::size_t lanes() { return hn::Lanes(d); }

/// Eight running sums, then a tree: the same bits wherever it is compiled. At most K/8 + 4 roundings a term.
HWY_INLINE double dot(const double* x, const double* y, std::size_t n) {
  double sum[8] = {};
  std::size_t j = 0;
  for (; j + 8 <= n; j += 8) {
    for (std::size_t l = 0; l < 8; ++l) sum[l] += x[j + l] * y[j + l];
  }
  for (; j < n; ++j) sum[j % 8] += x[j] * y[j];
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/// Line N from a computed sum of squares.
HWY_INLINE V norm_of(V sum, double n) {
  const V bound = hn::Sqrt(hn::MulAdd(sum, hn::Set(d, 1 + (n + 8) * 0x1p-52), hn::Set(d, n * 0x1p-1074)));
  return hn::IfThenElseZero(hn::Gt(sum, hn::Zero(d)), hn::Mul(bound, hn::Set(d, slack)));
}

void coefficients(const lowered<double>& in, bool paired, step_coefficients& c) {
  const auto& s = in.scan;
  const lowering_error& le = in.error;
  const std::size_t K = s.key_dim, rows = s.rows(), L = lanes();
  const double n = static_cast<double>(K), u = fp64_unit;
  const std::size_t room = (rows + 15) / 8 * 8, token_room = (s.tokens + 15) / 8 * 8;
  for (auto* x : {&c.step, &c.half_square, &c.norm, &c.gram, &c.rho, &c.from_norm, &c.from_write, &c.constant}) x->resize(room);
  c.query.resize(token_room);
  c.dot = n / (1 - n * u) * slack;
  c.read = (c.dot + le.query) * slack;
  c.fits = true;

  double largest_v = 0;
  if (le.step_floor > 0) {
    for (const double x : s.v) largest_v = std::max(largest_v, std::fabs(x));
  }
  // A sum of squares that underflowed to 0 says nothing.
  const auto is_zero = [](const double* x, std::size_t count) { return std::all_of(x, x + count, [](double xi) { return xi == 0; }); };
  for (std::size_t r = 0; r < rows; ++r) {
    const double* k = s.k.data() + r * K;
    c.norm[r] = dot(k, k, K);
    if (c.norm[r] == 0 && !is_zero(k, K)) c.fits = false;
    c.gram[r] = paired && r % 2 == 1 ? dot(k, k - K, K) : 0;
    c.step[r] = s.step[r];
  }
  for (std::size_t r = rows; r < room; ++r) c.norm[r] = c.gram[r] = c.step[r] = 0;
  for (std::size_t t = 0; t < s.tokens; ++t) {
    const double* q = s.q.data() + t * K;
    c.query[t] = dot(q, q, K);
    if (c.query[t] == 0 && !is_zero(q, K)) c.fits = false;
  }
  for (std::size_t t = s.tokens; t < token_room; ++t) c.query[t] = 0;

  const V one = hn::Set(d, 1.0), up = hn::Set(d, slack), zero = hn::Zero(d);
  const V low = hn::Set(d, narrow), high = hn::Set(d, 1 / narrow);
  const auto outside = [&](V x) HWY_ATTR { return hn::And(hn::Ne(x, zero), hn::Not(hn::And(hn::Ge(x, low), hn::Le(x, high)))); };
  auto bad = hn::Ne(zero, zero);
  for (std::size_t r = 0; r < room; r += L) {
    const V square = hn::LoadU(d, &c.norm[r]);
    const V b = hn::LoadU(d, &c.step[r]);
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
    // Lines W and S; `dots` is gamma/u, more where the prediction was corrected by a Gram product (line G).
    V dots = hn::Set(d, c.dot);
    if (paired) dots = hn::Add(dots, hn::Set(d, 2 * (1 + 0x1p-30)));  // also for even r, where it is not needed
    const V predicted = hn::Mul(hn::Mul(beta, dots), kappa);
    V m = hn::MulAdd(predicted, hn::Set(d, 1 + le.step * u), hn::Mul(hn::Set(d, le.step_floor), kappa));
    m = hn::MulAdd(hn::Mul(beta_plus, hn::Set(d, le.key)), kappa, m);
    m = hn::Mul(hn::Mul(m, kappa_plus), up);
    const double c2 = 2 * (1 + 4 * u);
    V w = hn::Mul(kappa_plus, hn::Set(d, c2 + le.step * (1 + c2 * u)));
    w = hn::Mul(hn::MulAdd(hn::Set(d, 1 + le.key), kappa, w), up);
    V k0 = hn::Mul(hn::Set(d, le.step_floor * largest_v), kappa_plus);
    k0 = hn::MulAdd(hn::Mul(hn::Set(d, underflow), hn::Add(one, kappa_plus)), hn::Add(one, beta_plus), k0);
    const auto live = hn::Gt(square, zero);
    hn::StoreU(hn::IfThenElseZero(live, b), d, &c.step[r]);
    hn::StoreU(kappa, d, &c.norm[r]);
    hn::StoreU(hn::Mul(hn::Mul(kappa, kappa), hn::Set(d, 0.5 * slack)), d, &c.half_square[r]);
    hn::StoreU(hn::IfThenElse(live, rho, one), d, &c.rho[r]);
    hn::StoreU(hn::IfThenElseZero(live, m), d, &c.from_norm[r]);
    hn::StoreU(hn::IfThenElseZero(live, w), d, &c.from_write[r]);
    hn::StoreU(hn::IfThenElseZero(live, k0), d, &c.constant[r]);
  }
  // Line G: what the next step's prediction owes to this write.
  for (std::size_t r = 1; paired && r < rows; r += 2) {
    const double beta = std::fabs(c.step[r]), kappa = c.norm[r];
    c.from_write[r - 1] += kappa * (1 + le.key * u) * beta * (1 + le.step * u) * kappa * (c.dot + 2.001) * c.norm[r - 1] * slack;
  }
  for (std::size_t t = 0; t < token_room; t += L) {
    const V chi = hn::Mul(norm_of(hn::LoadU(d, &c.query[t]), n), hn::Set(d, (1 + le.query * u) * slack));
    bad = hn::Or(bad, outside(chi));
    hn::StoreU(chi, d, &c.query[t]);
  }
  c.fits = c.fits && hn::AllFalse(d, bad) && largest_v < 0x1p450;

  c.decay_largest.clear();
  c.decay_factor.clear();
  if (s.decay.empty()) return;
  c.decay_largest.resize(token_room);
  c.decay_factor.resize(token_room);
  const std::size_t channels = s.decay.size() == s.tokens ? 1 : K;
  for (std::size_t t = 0; t < s.tokens; ++t) {
    const double* a = s.decay.data() + t * channels;
    double largest = 0;
    for (std::size_t j = 0; j < channels; ++j) largest = std::max(largest, std::fabs(a[j]));
    c.decay_largest[t] = largest;
    c.decay_factor[t] = (largest * (1 + le.decay * u) + le.decay_floor * u) * slack;
    if (!(largest < 1 / narrow)) c.fits = false;
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
  for (std::size_t r = 0; r < B; ++r) h[r] = hn::Zero(d);
  for (std::size_t j = 0; j < K; ++j) {
    for (std::size_t r = 0; r < B; ++r) {
      const V s = hn::Load(d, S + (j * B + r) * L);
      h[r] = hn::MulAdd(s, s, h[r]);
    }
  }
  for (std::size_t r = 0; r < B; ++r) h[r] = hn::Mul(h[r], hn::Set(d, 0.5));
}

/// Copies the start state into S; true in `live` where a row has a nonzero entry (as 1.0, else 0.0).
template <std::size_t B>
HWY_INLINE void load_start(const fp64_job& job, double* S, V (&live)[B]) {
  const std::size_t K = job.in.scan.key_dim, L = lanes();
  for (std::size_t r = 0; r < B; ++r) live[r] = hn::Zero(d);
  for (std::size_t j = 0; j < K; ++j) {
    for (std::size_t r = 0; r < B; ++r) {
      const V s = job.start ? hn::LoadU(d, job.start + j * job.start_stride + r * L) : hn::Zero(d);
      live[r] = hn::Max(live[r], hn::Abs(s));
      hn::Store(s, d, S + (j * B + r) * L);
    }
  }
}

template <std::size_t B>
HWY_INLINE void give_state(const fp64_job& job, const double* S, const V (&e)[B], const V (&largest)[B]) {
  const std::size_t K = job.in.scan.key_dim, L = lanes(), stride = job.out.stride;
  for (std::size_t r = 0; r < B; ++r) {
    for (std::size_t j = 0; j < K; ++j) hn::StoreU(hn::Load(d, S + (j * B + r) * L), d, &job.out.final_state[j * stride + job.at + r * L]);
    // Line F: never below the smallest normal number unless 0; NaN and what is too large become "left".
    const auto fits = hn::Le(e[r], hn::Set(d, 0x1p900));
    V radius = hn::Mul(e[r], hn::Set(d, fp64_unit * slack));
    radius = hn::IfThenElseZero(hn::Ne(e[r], hn::Zero(d)), hn::Max(radius, hn::Set(d, std::numeric_limits<double>::min())));
    hn::StoreU(radius, d, &job.out.state_radius[job.at + r * L]);
    hn::StoreU(largest[r], d, &job.out.largest_norm[job.at + r * L]);
    double keep[HWY_MAX_BYTES / sizeof(double)];
    hn::StoreU(hn::IfThenElseZero(fits, hn::Set(d, 1.0)), d, keep);
    for (std::size_t l = 0; l < L; ++l) job.out.left[job.at + r * L + l] = keep[l] == 0 ? 1 : 0;
  }
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

template <std::size_t B, bool Certified>
void run_pairs(const fp64_job& job) {
  const auto& s = job.in.scan;
  const step_coefficients& c = job.c;
  const std::size_t K = s.key_dim, T = s.tokens, L = lanes(), stride = job.out.stride;
  const auto memory = hwy::AllocateAligned<double>(K * B * L);
  double* S = memory.get();
  V h[B], e[B], largest[B], p0[B], p1[B], o0[B], o1[B], w0[B], w1[B], live[B];
  load_start<B>(job, S, live);
  half_squares<B>(K, S, h);
  const double nd = static_cast<double>(K);
  const V zero = hn::Zero(d);
  const V square_up = hn::Set(d, 1 + (nd + 16) * 0x1p-52);
  for (std::size_t r = 0; r < B; ++r) {
    h[r] = hn::IfThenElseZero(hn::Gt(live[r], zero), hn::MulAdd(h[r], square_up, hn::Set(d, norm_floor)));
    e[r] = largest[r] = w0[r] = w1[r] = zero;
  }
  const std::vector<double> nothing(2 * K, 0.0);
  // A last odd step and the keys after the end are zeros.
  std::vector<double> tail(4 * K, 0.0);
  if (T % 2 == 1) {
    std::copy_n(s.k.data() + (T - 1) * K, K, tail.data());
    std::copy_n(s.q.data() + (T - 1) * K, K, tail.data() + 2 * K);
  }
  const auto keys_at = [&](std::size_t t) { return t + 2 <= T ? s.k.data() + t * K : t < T ? tail.data() : nothing.data(); };
  pass_two<B>(K, S, nothing.data(), nothing.data(), keys_at(0), w0, w1, p0, p1, o0, o1);
  const V scale = hn::Set(d, job.in.scale);
  const std::size_t block = paired_block;
  for (std::size_t from = 0; from < T; from += block) {
    if (job.stop && job.stop->load(std::memory_order_relaxed)) return;
    const std::size_t to = std::min(T, from + block);
    V top[B], written[B], start[B];
    if constexpr (Certified) {
      for (std::size_t r = 0; r < B; ++r) {
        top[r] = start[r] = h[r];
        written[r] = zero;
      }
    }
    for (std::size_t t = from; t < to; t += 2) {
      const bool whole = t + 2 <= T;
      const double* v0 = job.v + t * job.v_stride;
      const double* v1 = whole ? v0 + job.v_stride : v0;
      const V b0 = hn::Set(d, c.step[t]), b1 = hn::Set(d, c.step[t + 1]), gram = hn::Set(d, c.gram[t + 1]);
      for (std::size_t r = 0; r < B; ++r) {
        w0[r] = hn::Mul(b0, hn::Sub(hn::LoadU(d, v0 + r * L), p0[r]));
        p1[r] = hn::MulAdd(gram, w0[r], p1[r]);
        w1[r] = hn::Mul(b1, hn::Sub(hn::LoadU(d, v1 + r * L), p1[r]));
      }
      if constexpr (Certified) {
        const V k0 = hn::Set(d, c.half_square[t]), k1 = hn::Set(d, c.half_square[t + 1]);
        const V f0 = hn::Set(d, c.from_write[t]), f1 = hn::Set(d, c.from_write[t + 1]);
        for (std::size_t r = 0; r < B; ++r) {
          h[r] = hn::MulAdd(w0[r], hn::MulAdd(w0[r], k0, p0[r]), h[r]);
          top[r] = hn::Max(top[r], h[r]);
          written[r] = hn::MulAdd(f0, hn::Abs(w0[r]), written[r]);
          h[r] = hn::MulAdd(w1[r], hn::MulAdd(w1[r], k1, p1[r]), h[r]);
          top[r] = hn::Max(top[r], h[r]);
          written[r] = hn::MulAdd(f1, hn::Abs(w1[r]), written[r]);
        }
      }
      const double* keys = whole ? s.k.data() + t * K : tail.data();
      const double* queries = whole ? s.q.data() + t * K : tail.data() + 2 * K;
      pass_two<B>(K, S, keys, queries, keys_at(t + 2), w0, w1, p0, p1, o0, o1);
      double* o = &job.out.o[t * stride + job.at];
      for (std::size_t r = 0; r < B; ++r) hn::StoreU(hn::Mul(scale, o0[r]), d, o + r * L);
      if (whole) {
        for (std::size_t r = 0; r < B; ++r) hn::StoreU(hn::Mul(scale, o1[r]), d, o + stride + r * L);
      }
    }
    if constexpr (Certified) {
      // Line H: the block as a whole.
      double rho = 1, from_norm = 0, constant = 0;
      for (std::size_t t = from; t < to; ++t) {
        rho *= c.rho[t];
        from_norm += c.from_norm[t] + 1;
        constant += c.constant[t];
      }
      V now[B];
      half_squares<B>(K, S, now);
      V row_part[B];
      const double widen = 2 * (1 + 64 * (12 * nd + 200) * 0x1p-52) * slack;
      for (std::size_t r = 0; r < B; ++r) {
        // Rows that were 0 and are given nothing stay 0.
        auto alive = hn::Gt(start[r], zero);
        if (!hn::AllTrue(d, alive)) {
          V given = zero;
          for (std::size_t t = from; t < to; ++t) {
            if (c.step[t] != 0) given = hn::Max(given, hn::Abs(hn::LoadU(d, job.v + t * job.v_stride + r * L)));
          }
          alive = hn::Or(alive, hn::Gt(given, zero));
        }
        const V m = hn::Sqrt(hn::MulAdd(top[r], hn::Set(d, widen), hn::Set(d, norm_floor * 2)));
        const V local = hn::Add(hn::MulAdd(m, hn::Set(d, from_norm), hn::Add(e[r], written[r])), hn::Set(d, constant));
        const auto fits = hn::And(hn::Le(top[r], hn::Set(d, largest_square)), hn::Le(h[r], hn::Set(d, largest_square)));
        e[r] = hn::Mul(local, hn::Set(d, rho * slack * slack));
        e[r] = hn::IfThenElse(fits, e[r], hn::Set(d, std::numeric_limits<double>::infinity()));
        e[r] = hn::IfThenElseZero(alive, e[r]);
        row_part[r] = hn::IfThenElseZero(alive, read_row_part(m, e[r], c.read, job.in.scale));
        const V size = hn::MulAdd(e[r], hn::Set(d, fp64_unit), m);
        largest[r] = hn::Max(largest[r], hn::IfThenElseZero(alive, hn::Mul(size, hn::Set(d, slack))));
        h[r] = hn::IfThenElseZero(alive, hn::MulAdd(now[r], square_up, hn::Set(d, norm_floor)));
      }
      for (std::size_t t = from; t < to; ++t) {
        const V chi = hn::Set(d, c.query[t]);
        const double* o = &job.out.o[t * stride + job.at];
        double* radius = &job.out.o_radius[t * stride + job.at];
        for (std::size_t r = 0; r < B; ++r) hn::StoreU(read_radius(hn::LoadU(d, o + r * L), chi, row_part[r]), d, radius + r * L);
      }
    }
  }
  give_state<B>(job, S, e, largest);
}

template <std::size_t B, bool Certified>
void run_single(const fp64_job& job) {
  const auto& s = job.in.scan;
  const step_coefficients& c = job.c;
  const std::size_t K = s.key_dim, T = s.tokens, n = s.steps_per_token, rows = s.rows(), L = lanes(), stride = job.out.stride;
  const int decay = s.decay.empty() ? 0 : s.decay.size() == T ? 1 : 2;
  const auto memory = hwy::AllocateAligned<double>(K * B * L);
  double* S = memory.get();
  V h[B], m[B], e[B], largest[B], p[B], o[B], w[B], live[B];
  load_start<B>(job, S, live);
  half_squares<B>(K, S, h);
  const double nd = static_cast<double>(K);
  const V zero = hn::Zero(d), up = hn::Set(d, slack), floor = hn::Set(d, norm_floor);
  const V square_up = hn::Set(d, 1 + (nd + 16) * 0x1p-52);
  const V delta = hn::Set(d, (nd + 32) * 0x1p-53 * slack);
  const auto norm_now = [&](std::size_t r) HWY_ATTR { m[r] = hn::Mul(hn::Sqrt(hn::Add(h[r], h[r])), up); };
  for (std::size_t r = 0; r < B; ++r) {
    h[r] = hn::IfThenElseZero(hn::Gt(live[r], zero), hn::MulAdd(h[r], square_up, floor));
    norm_now(r);
    largest[r] = hn::Mul(m[r], up);
    e[r] = w[r] = zero;
  }
  const std::vector<double> nothing(K, 0.0);
  // Line D for the decay of token t.
  const auto certify_decay = [&](std::size_t t) HWY_ATTR {
    const double a = c.decay_largest[t];
    const V factor = hn::Set(d, c.decay_factor[t]), local = hn::Set(d, c.decay_local), off = hn::Set(d, c.decay_floor);
    for (std::size_t r = 0; r < B; ++r) {
      const auto alive = hn::Gt(h[r], zero);
      const V before = m[r];
      if (a == 0) {
        h[r] = m[r] = zero;
      } else {
        h[r] = hn::IfThenElseZero(alive, hn::MulAdd(h[r], hn::Set(d, a * a * slack), floor));
        norm_now(r);
      }
      V next = hn::MulAdd(off, before, hn::MulAdd(local, m[r], hn::Mul(factor, e[r])));
      if (a > 0) next = hn::Add(next, hn::IfThenElseZero(alive, hn::Set(d, underflow)));
      e[r] = hn::Mul(next, up);
    }
  };
  const auto pass = [&](bool reads, int decays, const double* k, const double* q, const double* a, const double* next) HWY_ATTR {
    if (reads) {
      if (decays == 0) return pass_one<B, true, 0>(K, S, k, q, a, next, w, p, o);
      if (decays == 1) return pass_one<B, true, 1>(K, S, k, q, a, next, w, p, o);
      return pass_one<B, true, 2>(K, S, k, q, a, next, w, p, o);
    }
    if (decays == 0) return pass_one<B, false, 0>(K, S, k, q, a, next, w, p, o);
    if (decays == 1) return pass_one<B, false, 1>(K, S, k, q, a, next, w, p, o);
    return pass_one<B, false, 2>(K, S, k, q, a, next, w, p, o);
  };
  const auto decay_at = [&](std::size_t t) { return s.decay.data() + (decay == 2 ? t * K : t); };
  if (T > 0) {
    pass(false, decay, nothing.data(), nullptr, decay == 0 ? nullptr : decay_at(0), s.k.data());
    if (Certified && decay != 0) certify_decay(0);
  }
  const V scale = hn::Set(d, job.in.scale);
  std::size_t row = 0;
  for (std::size_t t = 0; t < T; ++t) {
    if (t % 64 == 0 && job.stop && job.stop->load(std::memory_order_relaxed)) return;
    for (std::size_t i = 0; i < n; ++i, ++row) {
      const bool reads = i + 1 == n, decays = reads && decay != 0 && t + 1 < T;
      const double* v = job.v + row * job.v_stride;
      const V b = hn::Set(d, c.step[row]);
      for (std::size_t r = 0; r < B; ++r) w[r] = hn::Mul(b, hn::Sub(hn::LoadU(d, v + r * L), p[r]));
      V row_part[B];
      if constexpr (Certified) {
        const V k2 = hn::Set(d, c.half_square[row]), rho = hn::Set(d, c.rho[row]), from_norm = hn::Set(d, c.from_norm[row]);
        const V from_write = hn::Set(d, c.from_write[row]), constant = hn::Set(d, c.constant[row]);
        const bool moves = c.norm[row] > 0;
        for (std::size_t r = 0; r < B && moves; ++r) {
          const auto alive = hn::Or(hn::Gt(h[r], zero), hn::And(hn::Ne(b, zero), hn::Ne(hn::LoadU(d, v + r * L), zero)));
          const V size = hn::Abs(w[r]), drift = hn::MulAdd(hn::Mul(w[r], w[r]), k2, h[r]);
          h[r] = hn::MulAdd(w[r], hn::MulAdd(w[r], k2, p[r]), h[r]);
          h[r] = hn::IfThenElseZero(alive, hn::Add(hn::Max(hn::MulAdd(delta, drift, h[r]), zero), floor));
          V next = hn::MulAdd(rho, e[r], hn::MulAdd(from_norm, m[r], hn::Mul(from_write, size)));
          norm_now(r);
          next = hn::Add(hn::Add(next, m[r]), constant);
          e[r] = hn::IfThenElseZero(alive, hn::Mul(next, up));
          e[r] = hn::IfThenElse(hn::Le(drift, hn::Set(d, largest_square)), e[r], hn::Set(d, std::numeric_limits<double>::infinity()));
        }
        for (std::size_t r = 0; r < B; ++r) {
          largest[r] = hn::Max(largest[r], hn::Mul(hn::MulAdd(e[r], hn::Set(d, fp64_unit), m[r]), up));
          row_part[r] = hn::IfThenElseZero(hn::Gt(h[r], zero), read_row_part(m[r], e[r], c.read, job.in.scale));
        }
      }
      const double* next = row + 1 < rows ? s.k.data() + (row + 1) * K : nothing.data();
      pass(reads, decays ? decay : 0, s.k.data() + row * K, s.q.data() + t * K, decays ? decay_at(t + 1) : nullptr, next);
      if (reads) {
        const V chi = hn::Set(d, c.query[t]);
        for (std::size_t r = 0; r < B; ++r) {
          const V out = hn::Mul(scale, o[r]);
          hn::StoreU(out, d, &job.out.o[t * stride + job.at + r * L]);
          if constexpr (Certified) hn::StoreU(read_radius(out, chi, row_part[r]), d, &job.out.o_radius[t * stride + job.at + r * L]);
        }
      }
      if constexpr (Certified) {
        if (decays) certify_decay(t + 1);
        if (row % single_refresh == single_refresh - 1) {
          V now[B];
          half_squares<B>(K, S, now);
          for (std::size_t r = 0; r < B; ++r) {
            h[r] = hn::IfThenElseZero(hn::Gt(h[r], zero), hn::MulAdd(now[r], square_up, floor));
            norm_now(r);
          }
        }
      }
    }
  }
  give_state<B>(job, S, e, largest);
}

template <std::size_t B, bool Certified>
void run_block(const fp64_job& job, bool paired) {
  if (paired) return run_pairs<B, Certified>(job);
  return run_single<B, Certified>(job);
}

template <bool Certified>
void run_all(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out, const std::atomic<bool>* stop,
             const step_coefficients& c, bool paired) {
  const auto& s = in.scan;
  const std::size_t L = lanes(), rows = s.rows();
  std::vector<double> v, start;
  for (std::size_t at = 0; at < columns.size();) {
    if (stop && stop->load(std::memory_order_relaxed)) return;
    const std::size_t left = columns.size() - at;
    const std::size_t widest = L >= 8 ? 4 : 2;  // what the registers hold
    const std::size_t blocks = left >= widest * L ? widest : left >= 2 * L ? 2 : 1;
    const std::size_t here = std::min(left, blocks * L);
    fp64_job job{in, c, nullptr, 0, nullptr, 0, out, at, stop};
    if (here == blocks * L && columns[at + here - 1] - columns[at] + 1 == here) {
      job.v = s.v.data() + columns[at];
      job.v_stride = s.value_dim;
      if (!s.initial_state.empty()) job.start = s.initial_state.data() + columns[at];
      job.start_stride = s.value_dim;
    } else {
      v.assign(rows * blocks * L, 0.0);
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t i = 0; i < here; ++i) v[r * blocks * L + i] = s.v[r * s.value_dim + columns[at + i]];
      }
      job.v = v.data();
      job.v_stride = job.start_stride = blocks * L;
      if (!s.initial_state.empty()) {
        start.assign(s.key_dim * blocks * L, 0.0);
        for (std::size_t j = 0; j < s.key_dim; ++j) {
          for (std::size_t i = 0; i < here; ++i) start[j * blocks * L + i] = s.initial_state(j, columns[at + i]);
        }
        job.start = start.data();
      }
    }
    if (blocks == 4) run_block<4, Certified>(job, paired);
    if (blocks == 2) run_block<2, Certified>(job, paired);
    if (blocks == 1) run_block<1, Certified>(job, paired);
    at += here;
  }
}

void run_certified(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out, const std::atomic<bool>* stop,
                   const step_coefficients& c, bool paired) {
  run_all<true>(in, columns, out, stop, c, paired);
}
void run_plain(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out, const std::atomic<bool>* stop,
               const step_coefficients& c, bool paired) {
  run_all<false>(in, columns, out, stop, c, paired);
}
void grams(const lowered<double>& in, step_coefficients& c) {
  const auto& s = in.scan;
  c.step.assign(s.step.begin(), s.step.end());
  c.step.resize(s.rows() + 2);
  c.gram.assign(s.rows() + 2, 0.0);
  for (std::size_t r = 1; r < s.rows(); r += 2) c.gram[r] = dot(s.k.data() + r * s.key_dim, s.k.data() + (r - 1) * s.key_dim, s.key_dim);
}

}  // namespace deltaproof::tiers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deltaproof::tiers {

HWY_EXPORT(coefficients);
HWY_EXPORT(run_certified);
HWY_EXPORT(run_plain);
HWY_EXPORT(grams);

void tier_rows::shape(const sequence<double>& scan, std::size_t selected, bool pairs) {
  rows = selected;
  stride = (selected + 7) / 8 * 8;
  o.resize(scan.tokens * stride);
  o_radius.resize(o.size());
  final_state.resize(scan.key_dim * stride);
  o_low.resize(pairs ? o.size() : 0);
  final_state_low.resize(pairs ? final_state.size() : 0);
  state_radius.resize(stride);
  largest_norm.resize(stride);
  left.resize(stride);
}

void restrict_targets(long long mask) { hwy::SetSupportedTargetsForTest(mask); }
long long available_targets() { return hwy::SupportedTargets() & HWY_TARGETS; }

step_coefficients fp64_coefficients(const lowered<double>& in, bool paired) {
  step_coefficients c;
  HWY_DYNAMIC_DISPATCH(coefficients)(in, paired, c);
  return c;
}

void run_fp64(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out, const std::atomic<bool>* stop) {
  in.scan.validate();
  out.shape(in.scan, columns.size(), false);
  const bool paired = runs_in_pairs(in.scan);
  step_coefficients c;
  HWY_DYNAMIC_DISPATCH(coefficients)(in, paired, c);
  if (!c.fits) {
    std::fill(out.left.begin(), out.left.end(), std::uint8_t{1});
    return;
  }
  HWY_DYNAMIC_DISPATCH(run_certified)(in, columns, out, stop, c, paired);
}

void run_fp64_uncertified(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out) {
  in.scan.validate();
  out.shape(in.scan, columns.size(), false);
  step_coefficients c;
  HWY_DYNAMIC_DISPATCH(grams)(in, c);
  HWY_DYNAMIC_DISPATCH(run_plain)(in, columns, out, nullptr, c, runs_in_pairs(in.scan));
}

}  // namespace deltaproof::tiers
#endif
