// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/adjoint_columns.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/tiers/adjoint_factors.hpp"
#include "oracle/tiers/fp64_coefficients.hpp"
#include "oracle/tiers/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "oracle/tiers/adjoint_columns.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef DELTAPROOF_TIERS_ADJOINT_SHARED
#define DELTAPROOF_TIERS_ADJOINT_SHARED
namespace deltaproof::tiers {

constexpr std::size_t norm_refresh = 4, norm_refresh_of_pairs = 8;  // rows
constexpr double adjoint_norm_floor = 0x1p-1000;
constexpr double adjoint_largest = 0x1p450;

/// Numbers in memory: high parts, and low parts beside them where they are pairs.
struct parts {
  const double* high;
  const double* low;
};

/// What blocks of columns read: the source, and the tokens of it that are looked at.
struct adjoint_job {
  const column_source& source;
  bool pairs;
  std::size_t lanes;
  double limit;
  const double* nothing;  // K zeros
  const std::atomic<bool>* stop;
  const double_double_head* in = nullptr;
  const column_cotangents* with = nullptr;
  adjoint_factors all = {};
  std::size_t first = 0;
  int decay = 0;  // 1: one a token, 2: one a channel

  [[nodiscard]] const sequence<double>& scan() const { return in->high.scan; }
  [[nodiscard]] std::size_t token(std::size_t t) const { return t - first; }
  [[nodiscard]] std::size_t row(std::size_t r) const { return r - first * source.steps_per_token; }
  [[nodiscard]] bool stopped() const { return stop && stop->load(std::memory_order_relaxed); }

  /// Tokens [from, from + count) and the one on each side. False where numbers are out of range.
  [[nodiscard]] bool look_at(std::size_t from, std::size_t count) {
    const std::size_t begin = from > 0 ? from - 1 : 0, end = std::min(source.tokens, from + count + 1);
    if (in != nullptr && first <= begin && end <= first + scan().tokens) return true;
    const column_slice slice = source.slice(begin, end - begin);
    first = slice.first;
    in = &slice.head;
    with = &slice.with;
    all = factors_of_adjoint(*in, *with, pairs, lanes);
    decay = scan().decay.empty() ? 0 : scan().decay.size() == scan().tokens ? 1 : 2;
    return all.fits;
  }
};

/// Zeros for the gradients of so many tokens. Sums are added in whole vectors, beyond the last row too: zeros.
inline void shape_gradients(const adjoint_job& job, std::size_t first, std::size_t count, bool with_state,
                            column_gradients& out) {
  const std::size_t K = job.source.key_dim, V = job.source.value_dim, rows = count * job.source.steps_per_token;
  const auto shape = [&](column_numbers& x, std::size_t size, std::size_t errors) {
    x.high.assign(size + 8, 0.0);
    if (job.pairs) x.low.assign(size + 8, 0.0);
    x.error.assign(errors, 0.0);
  };
  const std::size_t decays = job.decay == 0 ? 0 : job.decay == 1 ? count : count * K;
  out.first = first;
  shape(out.q, count * K, count);
  shape(out.k, rows * K, job.pairs ? rows : rows * K);
  shape(out.v, rows * V, rows * V);
  shape(out.step, rows, rows);
  shape(out.decay, decays, job.pairs && job.decay != 0 ? count : decays);
  shape(out.state, with_state ? K * V : 0, with_state ? V : 0);
  out.state.by_column = true;
}
/// With what the sums of lanes and blocks round.
inline void finish_gradients(const adjoint_job& job, column_gradients& out) {
  const double up = slack * (1 + (static_cast<double>(job.source.value_dim) + 64) * 0x1p-52);
  for (auto* x : {&out.q, &out.k, &out.v, &out.step, &out.decay, &out.state}) {
    x->high.resize(x->high.size() - 8);
    if (job.pairs) x->low.resize(x->high.size());
    for (double& e : x->error) e = e * up <= 0x1.fffffffffffffp1023 ? e * up : std::numeric_limits<double>::infinity();
  }
}

}  // namespace deltaproof::tiers
#endif

HWY_BEFORE_NAMESPACE();
namespace deltaproof::tiers::HWY_NAMESPACE {
#define DELTAPROOF_TIERS_FOUR_LANES
#include "oracle/tiers/lanes.inc"
#undef DELTAPROOF_TIERS_FOUR_LANES
#include "oracle/tiers/adjoint_states.inc"

/// A block of columns: what is carried with its cotangent, and one step in reverse.
template <bool P>
class column_block : public column_states<P> {
  using base = column_states<P>;
  using base::B, base::width, base::refresh, base::job_, base::out_, base::K_, base::n_, base::T_, base::cols_, base::state_size_,
      base::first_, base::decay_, base::bad_, base::key, base::step, base::token, base::own_token, base::own_row, base::query,
      base::decays, base::nothing, base::strength, base::columns_of, base::put_columns, base::cotangent_of, base::size_of,
      base::start, base::renew, base::note_range, base::grids_of, base::note_prediction, base::give_sum_radii, base::note_at,
      base::state_at, base::sizes_at, base::replay, base::room_, base::rows_, base::after_;

 public:
  using base::columns;
  /// Columns [first, first + columns()).
  column_block(const adjoint_job& job, column_gradients& out, segment_room<P>& room, std::size_t first)
      : base(job, out, room, first) {
    cotangent_.resize(state_size_);
    cotangent_sizes_.resize(P ? 0 : room.sizes_row(K_));
  }

  void start_reverse() {
    start(job_.with->state.empty() ? nullptr : job_.with->state.data(), cotangent_.data(), g_);
    if constexpr (!P) sizes_of_rows<B>(K_, cotangent_.data(), room_.size_sums.data(), cotangent_sizes_.data());
    if (T_ == 0) return;
    make_room_for_cotangent(T_, nullptr);
    add_outer_bounds(T_ - 1);
    number none[B], c[B];
    for (std::size_t r = 0; r < B; ++r) {
      none[r] = y_[r] = zero_number();
      c[r] = cotangent_of(T_ - 1, r);
    }
    const double power = step(T_ * n_ - 1).key_power;
    grids<B> on = grids_of(g_);
    for (std::size_t r = 0; r < B; ++r) on.next[r] = hn::Mul(hn::Set(d, power), on.after[r]);
    // What it adds to the sums of the first row is 0.
    std::fill_n(room_.tape.data(), state_size_, 0.0);
    reverse_pass<P, B, true, 0>({K_, room_.tape.data(), cotangent_.data(), nothing(), nothing(), query(T_ - 1), key(T_ * n_ - 1),
                                 room_.key_sums.data(), room_.gate_sums.data(), true},
                                on, none, none, c, y_, total_);
    if constexpr (!P) grow_sizes(query(T_ - 1).high, K_, sum_of_sizes(c), cotangent_sizes_.data(), cotangent_sizes_.data());
    note_prediction(power, g_);
  }
  /// Its tokens in reverse.
  void backwards(std::size_t segment) {
    replay(segment);
    const std::size_t from = segment * rows_, to = std::min(T_ * n_, from + rows_);
    for (std::size_t row = to; row-- > from;) reverse(row, row - from);
  }
  void give_state() {
    for (std::size_t j = 0; j < K_; ++j) {
      for (std::size_t r = 0; r < B; ++r) {
        const number x = settled<P>(get<P>(cotangent_.data() + (j * B + r) * width()));
        put_columns(x.high, out_.state.high.data() + j * cols_, r);
        if constexpr (P) put_columns(x.low, out_.state.low.data() + j * cols_, r);
      }
    }
    for (std::size_t r = 0; r < B; ++r) put_columns(g_.e[r], out_.state.error.data(), r);
  }

 private:
  // In reverse.

  /// Line A for what token t reads.
  void add_outer_bounds(std::size_t t) {
    for (std::size_t r = 0; r < B; ++r) {
      outer_bounds<P, B>(job_, token(t).query, r, size_of(t, r), g_);
    }
    g_.spread += grid_lines::of_product;
    note_range(g_);
  }
  /// The grids hold the cotangent after `step`, if there is one, and after the decay of token t what the token before reads
  /// (`needed_after_`) where that decays, else at once.
  void make_room_for_cotangent(std::size_t t, const adjoint_step* step, bool outer = true, bool decays = false) {
    V needed[B];
    for (std::size_t r = 0; P && r < B; ++r) {
      needed[r] = step == nullptr ? g_.m[r] : stepped_norm(*step, g_.m[r], hn::Zero(d));
      V last = decays ? decayed_norm(token(t), needed[r]) : needed[r];
      if (outer) last = outer_norm(token(t - 1).query, last, size_of(t - 1, r));
      needed_after_[r] = last;
      if (!decays) needed[r] = hn::Max(needed[r], last);
    }
    make_room<P, B>(job_, K_, cotangent_.data(), g_, needed);
  }

  /// The row's reverse step, whose state is on the tape at i.
  void reverse(std::size_t row, std::size_t i) {
    const std::size_t t = row / n_;
    const adjoint_step& s = step(row);
    const bool first = row % n_ == 0, outer = first && row > 0;
    const int decay = first ? decay_ : 0;
    make_room_for_cotangent(t, &s, outer, decay != 0);
    number w[B], dv[B], c[B];
    V of_step = hn::Zero(d);
    row_radii of_key = no_radii(), of_gate = no_radii();
    V all_written = hn::Zero(d), key_sizes = hn::Zero(d);
    number db = zero_number();
    for (std::size_t r = 0; r < B; ++r) {
      const V size = hn::Abs(y_[r].high);
      const number b_y = product<P>(strength(row), y_[r]), left = get<P>(note_at(i, segment_room<P>::innovation, r));
      dv[r] = {hn::Neg(b_y.high), hn::Neg(b_y.low)};
      w[r] = get<P>(note_at(i, segment_room<P>::write, r));
      const V written = hn::Abs(b_y.high), m = hn::LoadU(d, note_at(i, segment_room<P>::norm, r)),
              e = hn::LoadU(d, note_at(i, segment_room<P>::error, r));
      const step_errors errors = errors_of<P>(s, g_.m[r], g_.e[r], g_.off[r], size, written);
      put_columns(b_y.high, out_.v.high.data() + own_row(row) * cols_, r);
      if constexpr (P) put_columns(b_y.low, out_.v.low.data() + own_row(row) * cols_, r);
      put_columns(errors.write, out_.v.error.data() + own_row(row) * cols_, r);
      add_product<P>(db, y_[r], left);
      of_step =
          hn::Add(of_step, product_error(job_, size, errors.prediction, hn::Abs(left.high),
                                         hn::LoadU(d, note_at(i, segment_room<P>::innovation_error, r)), job_.all.column_sum));
      of_key.add(job_, g_.m[r], g_.e[r], hn::Abs(w[r].high), hn::LoadU(d, note_at(i, segment_room<P>::write_error, r)),
                 job_.all.column_sum, of_key.cotangent);
      of_key.add(job_, m, e, written, errors.write, job_.all.column_sum, of_key.state);
      all_written = hn::Add(all_written, written);
      key_sizes = hn::MulAdd(hn::Abs(w[r].high), g_.window[r], hn::MulAdd(written, window_at(i, r), key_sizes));
      step_bounds<P, B>(job_, s, r, size, written, hn::Zero(d), g_);
    }
    grids<B> on = grids_of(g_);
    const double key_spread = g_.spread + room_.tape_spreads[i];
    g_.spread += grid_lines::of_product;
    note_range(g_);
    sum_up(db, room_.step_sums.data() + i * width(), out_.step, own_row(row));
    out_.step.error[own_row(row)] += hn::GetLane(hn::SumOfLanes(d, of_step));
    for (std::size_t r = 0; r < B; ++r) c[r] = outer ? cotangent_of(t - 1, r) : zero_number();
    const double gate_spread = g_.spread + room_.tape_spreads[i], low_parts = g_.spread * room_.tape_spreads[i];
    double spread = g_.spread;
    if (decay != 0) {
      gate_radii(i, of_gate);
      for (std::size_t r = 0; P && r < B; ++r) on.gate[r] = grid_of(hn::Mul(g_.window[r], window_at(i, r)));
      if (P) spread = windows_after<B>(token(t), g_, needed_after_, after_);
      decay_bounds<P, B>(job_, token(t), after_, spread, g_);
    }
    if (outer) add_outer_bounds(t - 1);
    const double power = row > 0 ? step(row - 1).key_power : 0;
    for (std::size_t r = 0; P && r < B; ++r) {
      on.after[r] = grid_of(g_.window[r]);
      on.next[r] = hn::Mul(hn::Set(d, power), on.after[r]);
    }
    if (P) give_sum_radii(row, decay, key_sizes, key_spread, gate_spread, low_parts, on);
    run_reverse(row, i, decay, on, w, dv, c);
    give_radii(row, i, decay, hn::GetLane(hn::SumOfLanes(d, all_written)) * slack, of_key, of_gate);
    if constexpr (!P) {
      if (outer) grow_sizes(query(t - 1).high, K_, sum_of_sizes(c), cotangent_sizes_.data(), cotangent_sizes_.data());
    }
    note_prediction(power, g_);
    if (row % refresh != 0) return;
    renew(cotangent_.data(), g_);
    if constexpr (!P) sizes_of_rows<B>(K_, cotangent_.data(), room_.size_sums.data(), cotangent_sizes_.data());
  }
  [[nodiscard]] V window_at(std::size_t i, std::size_t r) {
    return P ? hn::LoadU(d, note_at(i, segment_room<P>::window, r)) : hn::Zero(d);
  }
  /// The radius of dg of a token whose first row is on the tape at i, from the bounds after that row's step.
  void gate_radii(std::size_t i, row_radii& of_gate) {
    for (std::size_t r = 0; r < B; ++r) {
      const V m = hn::LoadU(d, note_at(i, segment_room<P>::norm, r)), e = hn::LoadU(d, note_at(i, segment_room<P>::error, r));
      of_gate.add_entries(job_, g_.m[r], g_.e[r], m, e, job_.all.gate_sum);
    }
  }
  /// dk and dg by row: of pairs from the norms of columns; of doubles, where that is nearer, from the entries of the row.
  void give_radii(std::size_t row, std::size_t i, int decay, double written, const row_radii& of_key, const row_radii& of_gate) {
    const std::size_t t = row / n_;
    const double whole = hn::GetLane(hn::SumOfLanes(d, of_key.whole)), gate = hn::GetLane(hn::SumOfLanes(d, of_gate.whole));
    if constexpr (P) {
      out_.k.error[own_row(row)] += whole;
      if (decay != 0) out_.decay.error[own_token(t)] += gate;
    } else {
      double* const sizes = cotangent_sizes_.data();
      add_radii(sizes, sizes_at(i), K_, of_key.rest(), of_key.most(of_key.cotangent), of_key.most(of_key.state), whole,
                out_.k.error.data() + own_row(row) * K_);
      grow_sizes(key(row).high, K_, written, sizes, sizes);
      if (decay == 1) out_.decay.error[own_token(t)] += gate;
      if (decay == 2)
        add_radii(sizes, sizes_at(i), K_, of_gate.rest(), of_gate.most(of_gate.cotangent), of_gate.most(of_gate.state), gate,
                  out_.decay.error.data() + own_token(t) * K_);
      if (decay != 0) decay_sizes(decays(t).high, decay == 2, K_, sizes);
    }
  }
  [[nodiscard]] static double sum_of_sizes(const number (&x)[B]) {
    V sum = hn::Abs(x[0].high);
    for (std::size_t r = 1; r < B; ++r) sum = hn::Add(sum, hn::Abs(x[r].high));
    return hn::GetLane(hn::SumOfLanes(d, sum)) * slack;
  }
  /// One number a lane of what is summed over columns: of pairs to the sum itself, of doubles to that by lane.
  void sum_up(const number& x, double* by_lane, column_numbers& to, std::size_t at) const {
    if constexpr (P) {
      add_one<P>(x, to.high.data() + at, to.low.data() + at);
    } else {
      hn::Store(hn::Add(hn::Load(d, by_lane), x.high), d, by_lane);
    }
  }
  void run_reverse(std::size_t row, std::size_t i, int decay, const grids<B>& on, const number (&w)[B], const number (&dv)[B],
                   const number (&c)[B]) {
    const std::size_t t = row / n_;
    const bool first = row % n_ == 0;
    double* const key_sums = room_.key_sums.data() + i * room_.row;
    double* const gate_sums = room_.gate_sums.data() + t % room_.tokens * room_.row;
    const reverse_rows rows{K_,
                            state_at(i),
                            cotangent_.data(),
                            key(row),
                            decay != 0 ? decays(t) : nothing(),
                            first && row > 0 ? query(t - 1) : nothing(),
                            row > 0 ? key(row - 1) : nothing(),
                            key_sums,
                            gate_sums,
                            first_ == 0};
    for (std::size_t r = 0; r < B; ++r) total_[r] = y_[r] = zero_number();
    reverse_any<P, B>(first, decay, rows, on, w, dv, c, y_, total_);
    if constexpr (P) {
      const std::size_t of_row = own_row(row) * K_, of_token = own_token(t) * K_;
      add_rows<P>(key_sums, K_, out_.k.high.data() + of_row, out_.k.low.data() + of_row);
      if (decay == 2) add_rows<P>(gate_sums, K_, out_.decay.high.data() + of_token, out_.decay.low.data() + of_token);
    }
    if (decay != 1) return;
    for (std::size_t r = 1; r < B; ++r) total_[0] = sum<P>(total_[0], total_[r]);
    sum_up(total_[0], room_.total_sums.data() + t % room_.tokens * width(), out_.decay, own_token(t));
  }

  table cotangent_, cotangent_sizes_;
  carried<B> g_;
  V needed_after_[B];  // norms that windows after a decay must hold
  number y_[B], total_[B];
};

/// The sum of one vector's lanes, which begins anew, joins `to`.
HWY_INLINE void add_lanes_of(double* lane_sums, double* to) {
  add_one<false>({hn::Load(d, lane_sums), hn::Zero(d)}, to, nullptr);
  hn::Store(hn::Zero(d), d, lane_sums);
}
/// The sums by lane of a segment's tokens to what they are of.
void add_lanes(segment_room<false>& room, const adjoint_job& job, std::size_t count, column_gradients& out) {
  const std::size_t K = job.source.key_dim, n = job.source.steps_per_token, L = lanes();
  for (std::size_t t = 0; t < count; ++t) {
    add_rows<false>(room.read_sums.data() + t * room.row, K, out.q.high.data() + t * K, nullptr);
    if (job.decay == 2) add_rows<false>(room.gate_sums.data() + t * room.row, K, out.decay.high.data() + t * K, nullptr);
    if (job.decay == 1) add_lanes_of(room.total_sums.data() + t * L, out.decay.high.data() + t);
    for (std::size_t row = t * n; row < (t + 1) * n; ++row) {
      add_rows<false>(room.key_sums.data() + row * room.row, K, out.k.high.data() + row * K, nullptr);
      add_lanes_of(room.step_sums.data() + row * L, out.step.high.data() + row);
    }
  }
}

template <bool P>
bool run_blocks(adjoint_job& job, const std::function<void(column_gradients&)>& sink) {
  const std::size_t T = job.source.tokens, V = job.source.value_dim;
  segment_room<P> room(job.source);
  const std::size_t segments = (T + room.tokens - 1) / room.tokens;
  const auto count = [&](std::size_t segment) { return std::min(room.tokens, T - segment * room.tokens); };
  const auto look_at = [&](std::size_t segment) { return job.look_at(segment * room.tokens, count(segment)); };
  if (!look_at(0)) return false;
  column_gradients out;
  std::vector<column_block<P>, line_allocator<column_block<P>>> blocks;
  blocks.reserve((V + column_block<P>::columns() - 1) / column_block<P>::columns());
  for (std::size_t first = 0; first < V; first += column_block<P>::columns()) blocks.emplace_back(job, out, room, first);
  for (auto& block : blocks) block.start_forwards();
  for (std::size_t segment = 0; segment + 1 < segments; ++segment) {
    if (job.stopped() || (segment > 0 && !look_at(segment))) return false;
    for (auto& block : blocks) block.forwards(segment);
  }
  if (segments > 1 && !look_at(segments - 1)) return false;
  for (auto& block : blocks) block.start_reverse();
  for (std::size_t segment = segments; segment-- > 0;) {
    if (job.stopped() || (segment + 1 < segments && !look_at(segment))) return false;
    shape_gradients(job, segment * room.tokens, count(segment), segment == 0, out);
    for (auto& block : blocks) block.backwards(segment);
    if constexpr (!P) add_lanes(room, job, count(segment), out);
    if (segment > 0) {
      finish_gradients(job, out);
      sink(out);
    }
  }
  if (segments == 0) shape_gradients(job, 0, 0, true, out);
  for (auto& block : blocks) block.give_state();
  if (!std::all_of(blocks.begin(), blocks.end(), [](const auto& block) { return block.in_range(); })) return false;
  finish_gradients(job, out);
  sink(out);
  return true;
}

/// The lanes of a vector here.
std::size_t count_lanes() { return lanes(); }

bool run(adjoint_job& job, const std::function<void(column_gradients&)>& sink) {
  return job.pairs ? run_blocks<true>(job, sink) : run_blocks<false>(job, sink);
}

}  // namespace deltaproof::tiers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deltaproof::tiers {

HWY_EXPORT(run);
HWY_EXPORT(count_lanes);

std::size_t adjoint_segment(std::size_t tokens) {
  const auto root = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(tokens))));
  return std::max<std::size_t>(32, (root + 7) / 8 * 8);
}

bool run_adjoint(const column_source& from, bool pairs, double range, const std::atomic<bool>* stop,
                 const std::function<void(column_gradients&)>& sink) {
  const std::vector<double> nothing(from.key_dim + 1, 0.0);
  adjoint_job job{from, pairs, HWY_DYNAMIC_DISPATCH(count_lanes)(), std::min(range, adjoint_largest), nothing.data(), stop};
  return HWY_DYNAMIC_DISPATCH(run)(job, sink);
}

}  // namespace deltaproof::tiers
#endif

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.adjoint_radius.product_sum_line
