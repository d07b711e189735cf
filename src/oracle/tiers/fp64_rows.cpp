// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/fp64_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "oracle/tiers/fp64_coefficients.hpp"
#include "oracle/tiers/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/tiers/fp64_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef DELTAPROOF_TIERS_FP64_SHARED
#define DELTAPROOF_TIERS_FP64_SHARED
namespace deltaproof::tiers {

constexpr double norm_floor = 0x1p-1000;    // of a halved square
constexpr double factor_floor = 0x1p-700;   // of a row's factor: times a query of at least 2^-300 it is not lost (line U)
constexpr double largest_square = 0x1p900;  // beyond it a row has left the tier
constexpr std::size_t near_cache = 32768;   // bytes; this and the next bear on speed alone
constexpr std::size_t keys_ahead = 16;      // steps beyond the next block

/// One set of at most B vectors of rows between two blocks of steps: its state and what is carried beside it.
struct row_set {
  std::size_t vectors = 1;
  std::size_t at = 0;         // its first row in the selection
  const double* v = nullptr;  // values, `v_stride` apart
  std::size_t v_stride = 0;
  double* state = nullptr;    // K x (vectors * lanes)
  double* carried = nullptr;  // vectors of half squares, errors, largest norms, predictions
};

struct fp64_job {
  const lowered<double>& in;
  tier_rows& out;
  const double* nothing;  // 2K zeros
  const double* tail;     // where T is odd: the last key and K zeros, the last query and K zeros
  bool begins;            // step 0 is the first of the head
};

}  // namespace deltaproof::tiers
#endif

HWY_BEFORE_NAMESPACE();
namespace deltaproof::tiers::HWY_NAMESPACE {
#include "oracle/tiers/lanes.inc"
#include "oracle/tiers/pass_one.inc"
#include "oracle/tiers/pass_two.inc"
#include "oracle/tiers/products.inc"

enum carried_part {
  half_square_part,
  error_part,
  largest_part,
  prediction_part,
  second_part,
  start_part,
  top_part,
  written_part,
  write_part,
  second_write_part,
  carried_parts
};

template <std::size_t B>
HWY_INLINE void recall(const row_set& rows, carried_part part, V (&x)[B]) {
  for (std::size_t r = 0; r < B; ++r) x[r] = hn::Load(d, rows.carried + (part * B + r) * lanes());
}
template <std::size_t B>
HWY_INLINE void keep(const row_set& rows, carried_part part, const V (&x)[B]) {
  for (std::size_t r = 0; r < B; ++r) hn::Store(x[r], d, rows.carried + (part * B + r) * lanes());
}

/// Radius of one read-out: u |o| + chi times what the row gives; in absolute terms.
HWY_INLINE V read_radius(V o, V chi, V row) { return hn::MulAdd(hn::Abs(o), hn::Set(d, fp64_unit * slack), hn::Mul(chi, row)); }
/// The row's part of line O, times u: |c| (read M + e), with line U. 0 for a row that is 0 and has no error.
HWY_INLINE V read_row_part(hn::Mask<D> something, V m, V e, double read, double scale) {
  const V inner = hn::Add(hn::MulAdd(m, hn::Set(d, read), e), hn::Set(d, 0x1p-600));
  const V part = hn::Mul(inner, hn::Set(d, (std::fabs(scale) + 0x1p-300) * fp64_unit * slack * slack));
  return hn::IfThenElseZero(something, hn::Add(part, hn::Set(d, factor_floor)));
}

/// The row's factor of every radius of the 64 tokens from `from`.
template <std::size_t B>
HWY_INLINE void give_factors(const fp64_job& job, const row_set& rows, std::size_t from, const V (&part)[B]) {
  const std::size_t blocks = (job.out.tokens + block_steps - 1) / block_steps;
  for (std::size_t r = 0; r < B; ++r) {
    hn::StoreU(part[r], d, job.out.row_factor.data() + tier_rows::panel(from / block_steps, rows.at + r * lanes(), blocks));
  }
}

/// Not 0: a NaN is something too.
HWY_INLINE hn::Mask<D> is_something(V h) { return hn::Not(hn::Le(h, hn::Zero(d))); }
/// A row whose computed state is 0 is not 0 in truth while an error is carried.
HWY_INLINE hn::Mask<D> has_something(V h, V e) { return hn::Or(is_something(h), is_something(e)); }

/// Whether a step can write: a strength of 0 that was rounded may not be 0.
HWY_INLINE bool writes(const fp64_job& job, const block_coefficients& c, std::size_t i) {
  return c.norm[i] > 0 && (c.step[i] != 0 || job.in.error.step_floor > 0);
}

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

#include "oracle/tiers/fp64_pairs.inc"

/// Line D for one decay.
template <std::size_t B>
HWY_INLINE void certify_decay(const block_coefficients& c, std::size_t token, V (&h)[B], V (&m)[B], V (&e)[B]) {
  const double a = c.decay_largest[token];
  const V factor = hn::Set(d, c.decay_factor[token]), local = hn::Set(d, c.decay_local), off = hn::Set(d, c.decay_floor);
  for (std::size_t r = 0; r < B; ++r) {
    const auto alive = is_something(h[r]), something = has_something(h[r], e[r]);
    const V before = m[r];
    // Not h a^2: the square of a small factor is lost where the product is not.
    const V once = hn::Mul(h[r], hn::Set(d, a));
    h[r] = a == 0 ? hn::Zero(d) : hn::IfThenElseZero(alive, hn::MulAdd(once, hn::Set(d, a * slack), hn::Set(d, norm_floor)));
    m[r] = norm_from(h[r]);
    // A decay of exactly 0 ends every error, an unbounded one too; any other leaves some.
    if (c.decay_factor[token] == 0) {
      e[r] = hn::Zero(d);
      continue;
    }
    const V next = hn::MulAdd(off, before, hn::MulAdd(local, m[r], hn::MulAdd(factor, e[r], hn::Set(d, underflow))));
    e[r] = hn::IfThenElseZero(something, hn::Mul(next, hn::Set(d, slack)));
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
void advance_single(const fp64_job& job, const row_set& rows, const block_coefficients& c, ahead& next_block, std::size_t from,
                    std::size_t to) {
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
  recall<B>(rows, prediction_part, p);
  recall<B>(rows, half_square_part, h);
  recall<B>(rows, error_part, e);
  recall<B>(rows, largest_part, largest);
  for (std::size_t r = 0; r < B; ++r) {
    out[r] = panel_of(job.out.o, rows, r, job.out.tokens);
    radius[r] = by_block ? nullptr : panel_of(job.out.o_radius, rows, r, job.out.tokens);
    m[r] = norm_from(h[r]);
    w[r] = largest_part_seen[r] = zero;
  }
  if (from == 0 && job.begins) {
    pass_any<B>(false, decay, K, rows.state, job.nothing, nullptr, decay == 0 ? nullptr : decay_at(0), s.k.data(), w, p, o);
    if (Certified && decay != 0) certify_decay<B>(c, 0, h, m, e);
  }
  for (std::size_t row = from; row < to; ++row) {
    const std::size_t t = row / n, i = row - from;
    const bool reads = row % n == n - 1, decays = reads && decay != 0 && t + 1 < T;
    const double* v = rows.v + row * rows.v_stride;
    next_block.fetch(rows, row, 1);
    const V b = hn::Set(d, c.step[i]);
    for (std::size_t r = 0; r < B; ++r) w[r] = hn::Mul(b, hn::Sub(hn::LoadU(d, v + r * L), p[r]));
    V part[B];
    if constexpr (Certified) {
      const V k2 = hn::Set(d, c.half_square[i]), rho = hn::Set(d, c.rho[i]), from_norm = hn::Set(d, c.from_norm[i]);
      const V from_write = hn::Set(d, c.from_write[i]), constant = hn::Set(d, c.constant[i]);
      const bool moves = c.norm[i] > 0, acts = writes(job, c, i);
      for (std::size_t r = 0; r < B && moves; ++r) {
        const V given = acts ? hn::LoadU(d, v + r * L) : zero;
        const auto alive = hn::Or(is_something(h[r]), hn::Ne(given, zero)), something = hn::Or(alive, is_something(e[r]));
        const V grown = hn::Mul(hn::Mul(w[r], k2), w[r]);  // not w^2 k2: the square of a small write is lost
        const V drift = hn::Add(grown, h[r]);
        h[r] = hn::MulAdd(w[r], hn::MulAdd(w[r], k2, p[r]), h[r]);
        h[r] = hn::IfThenElseZero(alive, hn::Add(hn::Max(hn::MulAdd(delta, drift, h[r]), zero), floor));
        V next = hn::MulAdd(rho, e[r], hn::MulAdd(from_norm, m[r], hn::Mul(from_write, hn::Abs(w[r]))));
        m[r] = norm_from(h[r]);
        next = hn::Add(hn::Add(next, m[r]), constant);
        e[r] = hn::IfThenElseZero(something, hn::Mul(next, up));
        e[r] = hn::IfThenElse(hn::Le(drift, hn::Set(d, largest_square)), e[r], infinite);
      }
      for (std::size_t r = 0; r < B; ++r) {
        const V limit = hn::Set(d, largest_square);
        const auto fits = hn::And(hn::Le(h[r], limit), hn::Le(hn::Mul(hn::Mul(w[r], k2), w[r]), limit));
        largest[r] = larger_norm(fits, hn::Mul(hn::MulAdd(e[r], hn::Set(d, fp64_unit), m[r]), up), largest[r]);
        part[r] = read_row_part(has_something(h[r], e[r]), m[r], e[r], c.read, job.in.scale);
      }
    }
    const double* next = row + 1 < s.rows() ? s.k.data() + (row + 1) * K : job.nothing;
    pass_any<B>(reads, decays ? decay : 0, K, rows.state, s.k.data() + row * K, s.q.data() + t * K,
                decays ? decay_at(t + 1) : nullptr, next, w, p, o);
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
  if constexpr (Certified) note_left<B>(job, rows, from, largest);
  keep<B>(rows, prediction_part, p);
  keep<B>(rows, half_square_part, h);
  keep<B>(rows, error_part, e);
  keep<B>(rows, largest_part, largest);
}

/// After the head's last token.
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
void run_rows(const lowered<double>& in, double largest_v, std::span<const std::size_t> columns, carried_rows& carried,
              tier_rows& out, const std::atomic<bool>* stop) {
  const auto& s = in.scan;
  const std::size_t L = lanes(), K = s.key_dim, V_ = s.value_dim, steps = out.tokens * s.steps_per_token;
  const bool begins = carried.steps == 0, ends = out.tokens == s.tokens;
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
  carried.memory.resize((K + carried_parts) * padded);
  std::vector<double> packed;
  bool direct = columns.size() == padded && steps > 0;
  for (std::size_t i = 1; i < columns.size() && direct; ++i) direct = columns[i] == columns[0] + i;
  if (!direct) {
    packed.assign((steps + 1) * padded, 0.0);
    for (std::size_t r = 0; r < steps; ++r) {
      for (std::size_t i = 0; i < columns.size(); ++i) packed[r * padded + i] = s.v[r * V_ + columns[i]];
    }
  }
  for (row_set& rows : sets) {
    const std::size_t width = rows.vectors * L;
    rows.v = direct ? s.v.data() + columns[0] + rows.at : packed.data() + rows.at;
    rows.v_stride = direct ? V_ : padded;
    rows.state = carried.memory.data() + (K + carried_parts) * rows.at;
    rows.carried = rows.state + K * width;
    for (std::size_t j = 0; j < K && begins; ++j) {
      if (direct && !s.initial_state.empty()) {
        std::copy_n(s.initial_state.row(j).data() + columns[0] + rows.at, width, rows.state + j * width);
        continue;
      }
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
  const fp64_job job{in, out, zeros.data(), zeros.data() + 2 * K, begins};
  std::array<block_coefficients, 2> room;
  block_coefficients *now = &room[0], *after = &room[1];
  for (const row_set& rows : sets) {
    if (begins) with_vectors(rows, [&](auto b) { begin<b()>(job, rows); });
  }
  bool have_products = false;
  bool& predicted = carried.predicted;
  for (std::size_t from = 0; from < steps && carried.fits; from += block_steps) {
    if (stop && stop->load(std::memory_order_relaxed)) return;
    const std::size_t to = std::min(steps, from + block_steps);
    block_coefficients& c = *now;
    if constexpr (Certified) {
      if (!have_products) fp64_products(in, paired, from, to, c);
      fp64_certificate(in, paired, from, to, largest_v, c);
      if (paired) std::copy_n(c.query, to - from, out.query_factor.data() + from);
    } else {
      if (!have_products && paired)
        products<false, true, false>(s.k.data() + from * K, s.k.data(), K, to - from, c.norm, c.gram, c.query);
      std::copy_n(s.step.data() + from, to - from, c.step);
      std::fill(c.step + (to - from), c.step + c.room, 0.0);
    }
    // A block as a whole pays for the product of its factors at every step: where they grow, step by step is better.
    const bool two = paired && c.growth < 1.25;
    if (paired && !two) fp64_coefficients(in, false, from, to, largest_v, c);
    carried.fits = c.fits;
    for (std::size_t& valid : out.valid) valid = c.fits ? valid : std::min(valid, from / s.steps_per_token);
    ahead next(job, from);
    products_ahead<Certified> next_products(s, to, *after);
    for (std::size_t at = 0; at < sets.size();) {
      std::size_t end = at + 1;
      while (end < sets.size() && end < at + together && sets[end].vectors == sets[at].vectors) ++end;
      const std::span turn(sets.data() + at, end - at);
      with_vectors(sets[at], [&](auto b) {
        for (const row_set& rows : turn) {
          if (two && !predicted) predict_pair<b()>(job, rows, from);
          if (!two) advance_single<b(), Certified>(job, rows, c, next, from, to);
        }
        if (two)
          advance_pairs<b(), Certified>(job, turn, c, next, end == sets.size() && to < steps ? &next_products : nullptr, from,
                                        to);
      });
      at = end;
    }
    predicted = have_products = two;
    std::swap(now, after);
  }
  carried.steps += steps;
  for (std::size_t r = 0; r < padded; ++r) out.left[r] = out.valid[r] < out.tokens ? 1 : 0;
  for (const row_set& rows : sets) {
    if (ends) with_vectors(rows, [&](auto b) { finish<b()>(job, rows); });
  }
}

void run_certified(const lowered<double>& in, double largest_v, std::span<const std::size_t> columns, carried_rows& carried,
                   tier_rows& out, const std::atomic<bool>* stop) {
  run_rows<true>(in, largest_v, columns, carried, out, stop);
}
void run_plain(const lowered<double>& in, double largest_v, std::span<const std::size_t> columns, carried_rows& carried,
               tier_rows& out, const std::atomic<bool>* stop) {
  run_rows<false>(in, largest_v, columns, carried, out, stop);
}

}  // namespace deltaproof::tiers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deltaproof::tiers {

HWY_EXPORT(run_certified);
HWY_EXPORT(run_plain);

void tier_rows::shape(const sequence<double>& scan, std::size_t count, std::size_t selected, bool pairs, bool by_block) {
  rows = selected;
  tokens = count;
  const std::size_t padded = (selected + 7) / 8 * 8;
  o.resize(count * padded);
  o_radius.resize(by_block ? 0 : o.size());
  query_factor.resize(by_block ? count : 0);
  row_factor.resize(by_block ? (count + block_steps - 1) / block_steps * padded : 0);
  final_state.resize(scan.key_dim * padded);
  o_low.resize(pairs ? o.size() : 0);
  final_state_low.resize(pairs ? final_state.size() : 0);
  state_radius.resize(padded);
  largest_norm.resize(padded);
  left.assign(padded, 0);
  valid.assign(padded, count);
}

void restrict_targets(long long mask) { hwy::SetSupportedTargetsForTest(mask); }
long long available_targets() { return hwy::SupportedTargets() & HWY_TARGETS; }

double largest_value(const lowered<double>& in) {
  double most = 0;
  if (in.error.step_floor == 0) return most;
  for (const double x : in.scan.v) most = std::max(most, std::fabs(x));
  return most;
}

void run_fp64(const lowered<double>& in, std::size_t tokens, double largest_v, std::span<const std::size_t> columns,
              carried_rows& carried, tier_rows& out, const std::atomic<bool>* stop) {
  in.scan.validate();
  out.shape(in.scan, tokens, columns.size(), false, runs_in_pairs(in.scan));
  if (!carried.fits) std::fill(out.valid.begin(), out.valid.end(), std::size_t{0});
  if (carried.fits) HWY_DYNAMIC_DISPATCH(run_certified)(in, largest_v, columns, carried, out, stop);
  if (!carried.fits) std::fill(out.left.begin(), out.left.end(), std::uint8_t{1});
}

void run_fp64(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out, const std::atomic<bool>* stop) {
  carried_rows carried;
  run_fp64(in, in.scan.tokens, largest_value(in), columns, carried, out, stop);
}

void run_fp64_uncertified(const lowered<double>& in, std::span<const std::size_t> columns, tier_rows& out) {
  in.scan.validate();
  out.shape(in.scan, in.scan.tokens, columns.size(), false, runs_in_pairs(in.scan));
  carried_rows carried;
  HWY_DYNAMIC_DISPATCH(run_plain)(in, largest_value(in), columns, carried, out, nullptr);
}

}  // namespace deltaproof::tiers
#endif

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.sum_trees.fp64_fused_dot_error, float.tier_radius.fused_product, float.tier_radius.decay_line,
// proved: float.tier_radius.read_line, float.tier_run.one_step, float.tier_run.fp64_single_run_decided,
// proved: float.half_squares.half_square_line
