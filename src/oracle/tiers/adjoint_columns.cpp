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

struct adjoint_job {
  const double_double_head& in;
  const column_cotangents& with;
  const adjoint_factors& all;
  double limit;
  const double* nothing;  // K zeros
  const std::atomic<bool>* stop;
};

}  // namespace deltaproof::tiers
#endif

HWY_BEFORE_NAMESPACE();
namespace deltaproof::tiers::HWY_NAMESPACE {
#define DELTAPROOF_TIERS_FOUR_LANES
#include "oracle/tiers/lanes.inc"
#undef DELTAPROOF_TIERS_FOUR_LANES
#include "oracle/tiers/adjoint_block.inc"

/// A block of columns: what is carried with its state or cotangent, and one step.
template <bool P>
class column_block : columns_of_head<P> {
  using base = columns_of_head<P>;
  using base::B, base::width, base::refresh, base::job_, base::s_, base::out_, base::K_, base::n_, base::T_, base::state_size_,
      base::first_, base::decay_, base::bad_, base::stopped, base::key, base::query, base::decays, base::nothing, base::strength,
      base::columns_of, base::put_columns, base::cotangent_of, base::size_of, base::start, base::renew, base::note_range,
      base::sum_window, base::grids_of, base::note_prediction, base::give_sum_radii;

 public:
  using base::columns;

  column_block(const adjoint_job& job, column_gradients& out) : base(job, out) {
    const auto root = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(T_)) / 4));
    segment_ = std::max<std::size_t>(16, root);
    const std::size_t segments = (T_ + segment_ - 1) / segment_;
    kept_states_.resize(segments * state_size_);
    kept_bounds_.resize(segments * 4 * columns());
    kept_spreads_.resize(segments * 2);
    tape_spreads_.resize(segment_ * n_);
    kept_predictions_.resize(segments * B * width());
    tape_.resize((segment_ * n_ + 1) * state_size_);
    notes_.resize(segment_ * n_ * note_parts * B * width());
    cotangent_.resize(state_size_);
    sums_.resize(4 * (K_ + 4) * width());
    std::fill(sums_.begin(), sums_.end(), 0.0);
  }

  /// Columns [first, first + columns()). Returns whether all stayed in range.
  [[nodiscard]] bool run(std::size_t first) {
    first_ = first;
    forwards();
    for (std::size_t i = 0; i < B; ++i) total_[i] = zero_number();
    start_reverse();
    for (std::size_t segment = (T_ + segment_ - 1) / segment_; segment-- > 0;) {
      if (stopped()) return false;
      replay(segment);
      const std::size_t from = segment * segment_ * n_, to = std::min(T_, (segment + 1) * segment_) * n_;
      for (std::size_t row = to; row-- > from;) reverse(row, row - from);
    }
    give_state();
    return hn::AllFalse(d, bad_);
  }

 private:
  /// What a replayed step leaves for the reverse one: v - k^T S, the write, bounds and windows.
  enum note { innovation, write, innovation_error, write_error, norm, error, window, note_parts };

  // Forwards.

  /// r and w of a row from its prediction.
  HWY_INLINE void write_of(std::size_t row, std::size_t r, const number& predicted, number& left, number& written) const {
    left = less<P>(columns_of(s_.v, row, r), predicted);
    written = product<P>(strength(row), left);
  }
  /// The grids hold the state after the row.
  void make_room_for(std::size_t row, double* state) {
    V needed[B];
    for (std::size_t r = 0; P && r < B; ++r) {
      needed[r] = stepped_norm(job_.all.steps[row], x_.m[r], hn::Abs(columns_of(s_.v, row, r)));
    }
    make_room<P, B>(job_, K_, state, x_, needed);
  }

  void forwards() {
    double* state = tape_.data();
    start(s_.initial_state.rows() == 0 ? nullptr : s_.initial_state.entries().data(), state, x_);
    begin(state);
    for (std::size_t row = 0; row < s_.rows(); ++row) {
      const std::size_t t = row / n_;
      if (row % (segment_ * n_) == 0) {
        if (stopped()) return;
        keep(t / segment_, state);
      }
      make_room_for(row, state);
      number w[B];
      for (std::size_t r = 0; r < B; ++r) {
        number left;
        write_of(row, r, p_[r], left, w[r]);
        step_bounds<P, B>(job_, job_.all.steps[row], r, hn::Abs(left.high), hn::Abs(w[r].high), hn::Abs(columns_of(s_.v, row, r)),
                          x_);
      }
      x_.spread += grid_lines::of_product;
      note_range(x_);
      pass(row, state, state, w, row % n_ == n_ - 1);
    }
  }
  /// The first token's decay and prediction.
  void begin(double* state) {
    number w[B], c[B];
    for (std::size_t r = 0; r < B; ++r) w[r] = c[r] = p_[r] = zero_number();
    if (s_.rows() == 0) return;
    grids<B> on = grids_of(x_);
    const double spread = decay_grids(decay_ != 0, 0, 0, on);
    forward_any<P, B>(false, decay_, {K_, state, state, nothing(), decays(0), key(0), sums_.data()}, on, w, c, p_);
    decayed_and_predicted(decay_ != 0, 0, 0, spread);
  }
  /// Those of the state after the decay of token t, if one follows, and of the product with the key of `row`. The low parts then.
  [[nodiscard]] double decay_grids(bool decays, std::size_t t, std::size_t row, grids<B>& on) {
    if (!P) return 0;
    double spread = x_.spread;
    for (std::size_t r = 0; r < B; ++r) after_[r] = x_.window[r];
    if (decays) {
      V needed[B];
      for (std::size_t r = 0; r < B; ++r) needed[r] = decayed_norm(job_.all.tokens[t], x_.m[r]);
      spread = windows_after<B>(job_.all.tokens[t], x_, needed, after_);
    }
    const V power = hn::Set(d, row < s_.rows() ? job_.all.steps[row].key_power : 0);
    for (std::size_t r = 0; r < B; ++r) {
      on.after[r] = grid_of(after_[r]);
      on.next[r] = hn::Mul(power, on.after[r]);
    }
    return spread;
  }
  void decayed_and_predicted(bool decays, std::size_t t, std::size_t row, double spread) {
    if (decays) {
      decay_bounds<P, B>(job_, job_.all.tokens[t], after_, spread, x_);
      note_range(x_);
    }
    note_prediction(row < s_.rows() ? job_.all.steps[row].key_power : 0, x_);
  }
  /// The step of a row, after its bounds, what is read after it, the decay and prediction of the next one.
  void pass(std::size_t row, const double* from, double* to, const number (&w)[B], bool reads) {
    const std::size_t t = row / n_;
    const bool last = row % n_ == n_ - 1, decays_next = decay_ != 0 && last && t + 1 < T_;
    number c[B];
    for (std::size_t r = 0; r < B; ++r) {
      c[r] = reads ? cotangent_of(t, r) : zero_number();
      p_[r] = zero_number();
    }
    grids<B> on = grids_of(x_);
    if (reads) read(t, on);
    const double spread = decay_grids(decays_next, t + 1, row + 1, on);
    const parts next = row + 1 < s_.rows() ? key(row + 1) : nothing();
    forward_any<P, B>(reads, decays_next ? decay_ : 0,
                      {K_, from, to, key(row), decays_next ? decays(t + 1) : nothing(), next, sums_.data()}, on, w, c, p_);
    if (reads) add_rows<P>(sums_.data(), K_, out_.q.high.data() + t * K_, P ? out_.q.low.data() + t * K_ : nullptr);
    decayed_and_predicted(decays_next, t + 1, row + 1, spread);
    if (row % refresh == refresh - 1) renew(to, x_);
  }
  /// The radius of dq, and the grid that it is summed on.
  void read(std::size_t t, grids<B>& on) {
    V sum = hn::Zero(d), sizes = hn::Zero(d);
    for (std::size_t r = 0; r < B; ++r) {
      const V size = size_of(t, r);
      sum = hn::Add(sum, product_error(job_, x_.m[r], x_.e[r], size, size, job_.all.column_sum));
      if (P) sizes = hn::MulAdd(size, x_.window[r], sizes);
    }
    out_.q.error[t] += hn::GetLane(hn::SumOfLanes(d, sum));
    if (!P) return;
    const double window = sum_window(sizes);
    on.row = hn::Set(d, 3 * window);
    out_.q.error[t] += window * grid_lines::columns(B, x_.spread);
  }

  void keep(std::size_t segment, const double* state) {
    std::copy_n(state, state_size_, kept_states_.data() + segment * state_size_);
    kept_spreads_[2 * segment] = x_.spread;
    kept_spreads_[2 * segment + 1] = x_.power;
    for (std::size_t r = 0; r < B; ++r) {
      std::size_t i = 0;
      for (const V& x : {x_.m[r], x_.e[r], x_.window[r], x_.off[r]}) hn::StoreU(x, d, kept_bound(segment, i++, r));
      put<P>(p_[r], kept_predictions_.data() + (segment * B + r) * width());
    }
  }
  [[nodiscard]] double* kept_bound(std::size_t segment, std::size_t i, std::size_t r) {
    return kept_bounds_.data() + ((segment * 4 + i) * B + r) * lanes();
  }
  [[nodiscard]] double* note_at(std::size_t i, note what, std::size_t r) {
    return notes_.data() + ((i * note_parts + what) * B + r) * width();
  }

  /// The states before each row of a segment to the tape, and what the rows did.
  void replay(std::size_t segment) {
    std::copy_n(kept_states_.data() + segment * state_size_, state_size_, tape_.data());
    x_.spread = kept_spreads_[2 * segment];
    x_.power = kept_spreads_[2 * segment + 1];
    for (std::size_t r = 0; r < B; ++r) {
      std::size_t i = 0;
      for (V* x : {&x_.m[r], &x_.e[r], &x_.window[r], &x_.off[r]}) *x = hn::LoadU(d, kept_bound(segment, i++, r));
      p_[r] = get<P>(kept_predictions_.data() + (segment * B + r) * width());
    }
    const std::size_t from = segment * segment_ * n_, to = std::min(T_, (segment + 1) * segment_) * n_;
    for (std::size_t row = from; row < to; ++row) {
      const std::size_t i = row - from;
      const adjoint_step& s = job_.all.steps[row];
      make_room_for(row, tape_.data() + i * state_size_);
      tape_spreads_[i] = x_.spread;
      number w[B];
      for (std::size_t r = 0; r < B; ++r) {
        number left;
        write_of(row, r, p_[r], left, w[r]);
        const V left_size = hn::Abs(left.high), size = hn::Abs(w[r].high);
        const step_errors errors = errors_of<P>(s, x_.m[r], x_.e[r], x_.off[r], left_size, size);
        put<P>(left, note_at(i, innovation, r));
        put<P>(w[r], note_at(i, write, r));
        hn::StoreU(errors.innovation, d, note_at(i, innovation_error, r));
        hn::StoreU(errors.write, d, note_at(i, write_error, r));
        hn::StoreU(x_.m[r], d, note_at(i, norm, r));
        hn::StoreU(x_.e[r], d, note_at(i, error, r));
        hn::StoreU(x_.window[r], d, note_at(i, window, r));
        step_bounds<P, B>(job_, s, r, left_size, size, hn::Abs(columns_of(s_.v, row, r)), x_);
      }
      x_.spread += grid_lines::of_product;
      if (row + 1 < to) pass(row, tape_.data() + i * state_size_, tape_.data() + (i + 1) * state_size_, w, false);
    }
  }

  // In reverse.

  void start_reverse() {
    start(job_.with.state.empty() ? nullptr : job_.with.state.data(), cotangent_.data(), g_);
    if (s_.rows() == 0) return;
    make_room_for_cotangent(T_, nullptr);
    add_outer_bounds(T_ - 1);
    number none[B], c[B];
    for (std::size_t r = 0; r < B; ++r) {
      none[r] = y_[r] = zero_number();
      c[r] = cotangent_of(T_ - 1, r);
    }
    const double power = job_.all.steps[s_.rows() - 1].key_power;
    grids<B> on = grids_of(g_);
    for (std::size_t r = 0; r < B; ++r) on.next[r] = hn::Mul(hn::Set(d, power), on.after[r]);
    const reverse_rows rows{K_,         tape_.data(), cotangent_.data(), nothing(), nothing(), query(T_ - 1), key(s_.rows() - 1),
                            sums_at(0), sums_at(1),   sums_at(2),        sums_at(3)};
    std::fill_n(tape_.data(), state_size_, 0.0);
    reverse_pass<P, B, true, 0>(rows, on, none, none, c, y_, total_);
    note_prediction(power, g_);
  }
  /// Line A for what token t reads.
  void add_outer_bounds(std::size_t t) {
    for (std::size_t r = 0; r < B; ++r) {
      outer_bounds<P, B>(job_, job_.all.tokens[t].query, r, size_of(t, r), g_);
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
      V last = decays ? decayed_norm(job_.all.tokens[t], needed[r]) : needed[r];
      if (outer) last = outer_norm(job_.all.tokens[t - 1].query, last, size_of(t - 1, r));
      needed_after_[r] = last;
      if (!decays) needed[r] = hn::Max(needed[r], last);
    }
    make_room<P, B>(job_, K_, cotangent_.data(), g_, needed);
  }

  /// The row's reverse step, whose state is on the tape at i.
  void reverse(std::size_t row, std::size_t i) {
    const std::size_t t = row / n_;
    const adjoint_step& s = job_.all.steps[row];
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
      const number b_y = product<P>(strength(row), y_[r]), left = get<P>(note_at(i, innovation, r));
      dv[r] = {hn::Neg(b_y.high), hn::Neg(b_y.low)};
      w[r] = get<P>(note_at(i, write, r));
      const V written = hn::Abs(b_y.high), m = hn::LoadU(d, note_at(i, norm, r)), e = hn::LoadU(d, note_at(i, error, r));
      const step_errors errors = errors_of<P>(s, g_.m[r], g_.e[r], g_.off[r], size, written);
      put_columns(b_y.high, out_.v.high.data() + row * s_.value_dim, r);
      if constexpr (P) put_columns(b_y.low, out_.v.low.data() + row * s_.value_dim, r);
      put_columns(errors.write, out_.v.error.data() + row * s_.value_dim, r);
      add_product<P>(db, y_[r], left);
      of_step = hn::Add(of_step, product_error(job_, size, errors.prediction, hn::Abs(left.high),
                                               hn::LoadU(d, note_at(i, innovation_error, r)), job_.all.column_sum));
      of_key.add(job_, g_.m[r], g_.e[r], hn::Abs(w[r].high), hn::LoadU(d, note_at(i, write_error, r)), job_.all.column_sum,
                 of_key.cotangent);
      of_key.add(job_, m, e, written, errors.write, job_.all.column_sum, of_key.state);
      all_written = hn::Add(all_written, written);
      key_sizes = hn::MulAdd(hn::Abs(w[r].high), g_.window[r], hn::MulAdd(written, window_at(i, r), key_sizes));
      step_bounds<P, B>(job_, s, r, size, written, hn::Zero(d), g_);
    }
    grids<B> on = grids_of(g_);
    const double key_spread = g_.spread + tape_spreads_[i];
    g_.spread += grid_lines::of_product;
    note_range(g_);
    add_one<P>(db, out_.step.high.data() + row, P ? out_.step.low.data() + row : nullptr);
    out_.step.error[row] += hn::GetLane(hn::SumOfLanes(d, of_step));
    for (std::size_t r = 0; r < B; ++r) c[r] = outer ? cotangent_of(t - 1, r) : zero_number();
    const double gate_spread = g_.spread + tape_spreads_[i], low_parts = g_.spread * tape_spreads_[i];
    double spread = g_.spread;
    if (decay != 0) {
      gate_radii(i, of_gate);
      for (std::size_t r = 0; P && r < B; ++r) on.gate[r] = grid_of(hn::Mul(g_.window[r], window_at(i, r)));
      if (P) spread = windows_after<B>(job_.all.tokens[t], g_, needed_after_, after_);
      decay_bounds<P, B>(job_, job_.all.tokens[t], after_, spread, g_);
    }
    if (outer) add_outer_bounds(t - 1);
    const double power = row > 0 ? job_.all.steps[row - 1].key_power : 0;
    for (std::size_t r = 0; P && r < B; ++r) {
      on.after[r] = grid_of(g_.window[r]);
      on.next[r] = hn::Mul(hn::Set(d, power), on.after[r]);
    }
    if (P) give_sum_radii(row, decay, key_sizes, key_spread, gate_spread, low_parts, on);
    run_reverse(row, i, decay, on, w, dv, c);
    give_radii(row, decay, hn::GetLane(hn::SumOfLanes(d, all_written)), of_key, of_gate);
    note_prediction(power, g_);
    if (row % refresh == 0) renew(cotangent_.data(), g_);
  }
  [[nodiscard]] V window_at(std::size_t i, std::size_t r) { return P ? hn::LoadU(d, note_at(i, window, r)) : hn::Zero(d); }
  /// The radius of dg of a token whose first row is on the tape at i, from the bounds after that row's step.
  void gate_radii(std::size_t i, row_radii& of_gate) {
    for (std::size_t r = 0; r < B; ++r) {
      const V m = hn::LoadU(d, note_at(i, norm, r)), e = hn::LoadU(d, note_at(i, error, r));
      of_gate.add_entries(job_, g_.m[r], g_.e[r], m, e, job_.all.gate_sum);
    }
  }
  /// dk and dg by row: of pairs from the norms of columns; of doubles, where that is nearer, from the entries of the row.
  void give_radii(std::size_t row, int decay, double written, const row_radii& of_key, const row_radii& of_gate) {
    const std::size_t t = row / n_;
    const double key = hn::GetLane(hn::SumOfLanes(d, of_key.whole));
    if (P) {
      out_.k.error[row] += key;
    } else {
      add_radii(sums_at(3), sums_at(2), K_, of_key.rest(), of_key.most(of_key.cotangent), of_key.most(of_key.state), key,
                out_.k.error.data() + row * K_);
    }
    if (decay == 0) return;
    const double gate = hn::GetLane(hn::SumOfLanes(d, of_gate.whole));
    if (P || decay == 1) {
      out_.decay.error[t] += gate;
      return;
    }
    // |G| after the step is at most |G| + |k dv|.
    const double from_cotangent = of_gate.most(of_gate.cotangent),
                 base = of_gate.rest() + from_cotangent * job_.all.steps[row].key * written * slack;
    add_radii(sums_at(3), sums_at(2), K_, base, from_cotangent, of_gate.most(of_gate.state), gate,
              out_.decay.error.data() + t * K_);
  }
  [[nodiscard]] double* sums_at(std::size_t i) { return sums_.data() + i * (K_ + 4) * width(); }
  void run_reverse(std::size_t row, std::size_t i, int decay, const grids<B>& on, const number (&w)[B], const number (&dv)[B],
                   const number (&c)[B]) {
    const std::size_t t = row / n_;
    const bool first = row % n_ == 0;
    const reverse_rows rows{K_,
                            tape_.data() + i * state_size_,
                            cotangent_.data(),
                            key(row),
                            decay != 0 ? decays(t) : nothing(),
                            first && row > 0 ? query(t - 1) : nothing(),
                            row > 0 ? key(row - 1) : nothing(),
                            sums_at(0),
                            sums_at(1),
                            sums_at(2),
                            sums_at(3)};
    for (std::size_t r = 0; r < B; ++r) total_[r] = y_[r] = zero_number();
    reverse_any<P, B>(first, decay, rows, on, w, dv, c, y_, total_);
    add_rows<P>(sums_at(0), K_, out_.k.high.data() + row * K_, P ? out_.k.low.data() + row * K_ : nullptr);
    if (decay == 2) add_rows<P>(sums_at(1), K_, out_.decay.high.data() + t * K_, P ? out_.decay.low.data() + t * K_ : nullptr);
    if (decay != 1) return;
    for (std::size_t r = 1; r < B; ++r) total_[0] = sum<P>(total_[0], total_[r]);
    add_one<P>(total_[0], out_.decay.high.data() + t, P ? out_.decay.low.data() + t : nullptr);
  }

  void give_state() {
    for (std::size_t j = 0; j < K_; ++j) {
      for (std::size_t r = 0; r < B; ++r) {
        const number x = settled<P>(get<P>(cotangent_.data() + (j * B + r) * width()));
        put_columns(x.high, out_.state.high.data() + j * s_.value_dim, r);
        if constexpr (P) put_columns(x.low, out_.state.low.data() + j * s_.value_dim, r);
      }
    }
    for (std::size_t r = 0; r < B; ++r) put_columns(g_.e[r], out_.state.error.data(), r);
  }

  std::size_t segment_ = 16;
  table kept_states_, kept_bounds_, kept_predictions_, tape_, notes_, cotangent_, sums_;
  std::vector<double> kept_spreads_, tape_spreads_;
  carried<B> x_, g_;              // of the state's columns and the cotangent's
  V after_[B], needed_after_[B];  // windows after a decay, and norms that they must hold
  number p_[B], y_[B], total_[B];
};

template <bool P>
bool run_blocks(const adjoint_job& job, column_gradients& out) {
  column_block<P> block(job, out);
  for (std::size_t first = 0; first < job.in.high.scan.value_dim; first += column_block<P>::columns()) {
    if (!block.run(first)) return false;
  }
  return true;
}

bool run(const adjoint_job& job, bool pairs, column_gradients& out) {
  return pairs ? run_blocks<true>(job, out) : run_blocks<false>(job, out);
}

}  // namespace deltaproof::tiers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace deltaproof::tiers {

HWY_EXPORT(run);

bool run_adjoint(const double_double_head& in, const column_cotangents& with, bool pairs, double range,
                 const std::atomic<bool>* stop, column_gradients& out) {
  const auto& s = in.high.scan;
  const adjoint_factors all = factors_of_adjoint(in, with, pairs);
  if (!all.fits) return false;
  out = {};
  // Sums are added in whole vectors, beyond the last row too: zeros.
  constexpr std::size_t beyond = 8;
  const auto shape = [&](column_numbers& x, std::size_t count, std::size_t errors) {
    x.high.assign(count + beyond, 0.0);
    if (pairs) x.low.assign(count + beyond, 0.0);
    x.error.assign(errors, 0.0);
  };
  shape(out.q, s.q.size(), s.tokens);
  shape(out.k, s.k.size(), pairs ? s.rows() : s.k.size());
  shape(out.v, s.v.size(), s.v.size());
  shape(out.step, s.step.size(), s.rows());
  shape(out.decay, s.decay.size(), pairs && !s.decay.empty() ? s.tokens : s.decay.size());
  shape(out.state, s.key_dim * s.value_dim, s.value_dim);
  out.state.by_column = true;
  const std::vector<double> nothing(s.key_dim + 1, 0.0);
  const adjoint_job job{in, with, all, std::min(range, adjoint_largest), nothing.data(), stop};
  if (!HWY_DYNAMIC_DISPATCH(run)(job, pairs, out)) return false;
  // What the sums of lanes and blocks round.
  const double up = slack * (1 + (static_cast<double>(s.value_dim) + 64) * 0x1p-52);
  for (auto* x : {&out.q, &out.k, &out.v, &out.step, &out.decay, &out.state}) {
    x->high.resize(x->high.size() - beyond);
    if (pairs) x->low.resize(x->high.size());
    for (double& e : x->error) e = e * up <= 0x1.fffffffffffffp1023 ? e * up : std::numeric_limits<double>::infinity();
  }
  return true;
}

}  // namespace deltaproof::tiers
#endif
