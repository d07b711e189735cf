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

constexpr std::size_t norm_refresh = 4;  // rows
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
#include "oracle/tiers/adjoint_numbers.inc"
#include "oracle/tiers/adjoint_passes.inc"

/// A block of columns: what is carried with its state or cotangent, and one step.
template <bool P>
class column_block {
 public:
  static constexpr std::size_t B = P ? 2 : 4;
  [[nodiscard]] static std::size_t width() { return lanes() * (P ? 2 : 1); }
  [[nodiscard]] static std::size_t columns() { return B * lanes(); }

  column_block(const adjoint_job& job, column_gradients& out)
      : job_{job},
        s_{job.in.high.scan},
        out_{out},
        K_{s_.key_dim},
        n_{s_.steps_per_token},
        T_{s_.tokens},
        state_size_{K_ * B * width()},
        bad_{hn::Lt(hn::Zero(d), hn::Zero(d))} {
    const auto root = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(T_)) / 4));
    segment_ = std::max<std::size_t>(16, root);
    decay_ = s_.decay.empty() ? 0 : s_.decay.size() == T_ ? 1 : 2;
    const std::size_t segments = (T_ + segment_ - 1) / segment_;
    kept_states_.resize(segments * state_size_);
    kept_bounds_.resize(segments * 2 * columns());
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
  /// What a replayed step leaves for the reverse one: v - k^T S, the write, and bounds.
  enum note { innovation, write, innovation_error, write_error, norm, error, note_parts };

  [[nodiscard]] bool stopped() const { return job_.stop && job_.stop->load(std::memory_order_relaxed); }
  [[nodiscard]] parts row_of(const std::vector<double>& high, const std::vector<double>& low, std::size_t at) const {
    return {high.data() + at, P ? low.empty() ? job_.nothing : low.data() + at : nullptr};
  }
  [[nodiscard]] parts key(std::size_t row) const { return row_of(s_.k, job_.in.k_low, row * K_); }
  [[nodiscard]] parts query(std::size_t t) const { return row_of(s_.q, job_.in.q_low, t * K_); }
  [[nodiscard]] parts decays(std::size_t t) const {
    return decay_ == 0 ? parts{nullptr, nullptr} : row_of(s_.decay, job_.in.decay_low, decay_ == 2 ? t * K_ : t);
  }
  [[nodiscard]] parts nothing() const { return {job_.nothing, job_.nothing}; }
  [[nodiscard]] number strength(std::size_t row) const { return spread<P>(row_of(s_.step, job_.in.step_low, row), 0); }

  /// Numbers r of a row of `all` columns; zeros beyond them.
  [[nodiscard]] HWY_INLINE V columns_of(const std::vector<double>& of, std::size_t row, std::size_t r) const {
    const std::size_t all = s_.value_dim, at = first_ + r * lanes();
    if (of.empty() || at >= all) return hn::Zero(d);
    const double* x = of.data() + row * all + at;
    return at + lanes() <= all ? hn::LoadU(d, x) : load_some(x, all - at);
  }
  HWY_INLINE void put_columns(V x, double* to, std::size_t r) const {
    const std::size_t all = s_.value_dim, at = first_ + r * lanes();
    if (at >= all) return;
    if (at + lanes() <= all) return hn::StoreU(x, d, to + at);
    store_some(x, to + at, all - at);
  }
  [[nodiscard]] HWY_INLINE number cotangent_of(std::size_t t, std::size_t r) const {
    return {columns_of(job_.with.o, t, r), P ? columns_of(job_.with.o_low, t, r) : hn::Zero(d)};
  }

  /// Entries of the given columns to `state`, and their norms.
  void start(const double* from, double* state, V (&m)[B], V (&e)[B]) {
    for (std::size_t j = 0; j < K_; ++j) {
      for (std::size_t r = 0; r < B; ++r) {
        V x = hn::Zero(d);
        const std::size_t all = s_.value_dim, at = first_ + r * lanes();
        if (from != nullptr && at < all) x = load_some(from + j * all + at, std::min(lanes(), all - at));
        put<P>({x, hn::Zero(d)}, state + (j * B + r) * width());
      }
    }
    for (V& x : e) x = hn::Zero(d);
    refresh(state, m);
  }
  /// Line N.
  void refresh(const double* state, V (&m)[B]) {
    norms<P, B>(K_, state, m);
    note_range(m);
  }
  void note_range(const V (&m)[B]) {
    for (const V& x : m) bad_ = hn::Or(bad_, hn::Not(hn::Le(x, hn::Set(d, job_.limit))));
  }

  // Forwards.

  void decay_bounds(std::size_t t, V (&m)[B], V (&e)[B]) {  // line D
    const adjoint_token& a = job_.all.tokens[t];
    for (std::size_t r = 0; r < B; ++r) {
      if (a.decay_factor == 0) {
        m[r] = e[r] = hn::Zero(d);
        continue;
      }
      const V before = m[r];
      const auto some = hn::Or(is_something(m[r]), is_something(e[r]));
      m[r] = hn::IfThenElseZero(is_something(m[r]),
                                hn::MulAdd(m[r], hn::Set(d, a.decay_largest * slack), hn::Set(d, adjoint_norm_floor)));
      V next = hn::MulAdd(hn::Set(d, a.decay_factor), e[r], hn::Mul(hn::Set(d, job_.all.decay_local), m[r]));
      next = hn::MulAdd(hn::Set(d, job_.all.decay_floor), before, hn::Add(next, hn::Set(d, job_.all.under)));
      e[r] = hn::IfThenElseZero(some, hn::Mul(next, hn::Set(d, slack)));
    }
    note_range(m);
  }

  /// Lines W and S: what a step with this |r|, |w| and |v| makes of the bounds of the state it acts on.
  HWY_INLINE void step_bounds(const adjoint_step& s, V innovation, V written, V value, V& m, V& e) const {
    if (s.key == 0) return;
    const auto some = hn::Or(is_something(m), is_something(e));
    const auto alive = s.acts ? hn::Or(some, is_something(innovation)) : some;
    V next = hn::MulAdd(hn::Set(d, s.rho), e, hn::Mul(hn::Set(d, s.from_norm), m));
    next = hn::MulAdd(hn::Set(d, s.from_write), written, hn::MulAdd(hn::Set(d, s.from_innovation), innovation, next));
    e = hn::IfThenElseZero(alive, hn::MulAdd(next, hn::Set(d, slack), hn::Set(d, s.under)));
    const V grown = hn::MulAdd(hn::Set(d, s.norm_growth), m, hn::Mul(hn::Set(d, s.norm_of_value), value));
    m = hn::IfThenElseZero(alive, hn::Add(grown, hn::Set(d, adjoint_norm_floor)));
  }

  /// r and w of a row from its prediction.
  HWY_INLINE void write_of(std::size_t row, std::size_t r, const number& predicted, number& left, number& written) const {
    left = less<P>(columns_of(s_.v, row, r), predicted);
    written = product<P>(strength(row), left);
  }

  void forwards() {
    start(s_.initial_state.rows() == 0 ? nullptr : s_.initial_state.entries().data(), tape_.data(), m_, e_);
    double* state = tape_.data();
    begin(state);
    for (std::size_t row = 0; row < s_.rows(); ++row) {
      const std::size_t t = row / n_;
      if (row % (segment_ * n_) == 0) {
        if (stopped()) return;
        keep(t / segment_, state);
      }
      number w[B];
      for (std::size_t r = 0; r < B; ++r) {
        number left;
        write_of(row, r, p_[r], left, w[r]);
        step_bounds(job_.all.steps[row], hn::Abs(left.high), hn::Abs(w[r].high), hn::Abs(columns_of(s_.v, row, r)), m_[r], e_[r]);
      }
      note_range(m_);
      if (row % n_ == n_ - 1) read(t);
      pass(row, state, state, w, row % n_ == n_ - 1);
    }
  }
  /// The first token's decay and prediction.
  void begin(double* state) {
    number w[B], c[B];
    for (std::size_t r = 0; r < B; ++r) w[r] = c[r] = p_[r] = zero_number();
    if (s_.rows() == 0) return;
    forward_any<P, B>(false, decay_, {K_, state, state, nothing(), decays(0), key(0), sums_.data()}, w, c, p_);
    if (decay_ != 0) decay_bounds(0, m_, e_);
  }
  /// The step of a row, after its bounds, what is read after it, the decay and prediction of the next one.
  void pass(std::size_t row, const double* from, double* to, const number (&w)[B], bool reads) {
    const std::size_t t = row / n_;
    const bool last = row % n_ == n_ - 1, decays_next = last && t + 1 < T_;
    number c[B];
    for (std::size_t r = 0; r < B; ++r) {
      c[r] = reads ? cotangent_of(t, r) : zero_number();
      p_[r] = zero_number();
    }
    const parts next = row + 1 < s_.rows() ? key(row + 1) : nothing();
    forward_any<P, B>(reads, decays_next ? decay_ : 0,
                      {K_, from, to, key(row), decays_next ? decays(t + 1) : nothing(), next, sums_.data()}, w, c, p_);
    if (reads) add_rows<P>(sums_.data(), K_, out_.q.high.data() + t * K_, P ? out_.q.low.data() + t * K_ : nullptr);
    if (decays_next && decay_ != 0) decay_bounds(t + 1, m_, e_);
    if (row % norm_refresh == norm_refresh - 1) refresh(to, m_);
  }
  /// The radius of dq.
  void read(std::size_t t) {
    V sum = hn::Zero(d);
    for (std::size_t r = 0; r < B; ++r) {
      const V size = columns_of(job_.with.o_size, t, r);
      sum = hn::Add(sum, product_error(job_, m_[r], e_[r], size, size, job_.all.column_sum));
    }
    out_.q.error[t] += hn::GetLane(hn::SumOfLanes(d, sum));
  }

  void keep(std::size_t segment, const double* state) {
    std::copy_n(state, state_size_, kept_states_.data() + segment * state_size_);
    for (std::size_t r = 0; r < B; ++r) {
      hn::StoreU(m_[r], d, kept_bounds_.data() + (segment * 2 * B + r) * lanes());
      hn::StoreU(e_[r], d, kept_bounds_.data() + (segment * 2 * B + B + r) * lanes());
      put<P>(p_[r], kept_predictions_.data() + (segment * B + r) * width());
    }
  }
  [[nodiscard]] double* note_at(std::size_t i, note what, std::size_t r) {
    return notes_.data() + ((i * note_parts + what) * B + r) * width();
  }

  /// The states before each row of a segment to the tape, and what the rows did.
  void replay(std::size_t segment) {
    std::copy_n(kept_states_.data() + segment * state_size_, state_size_, tape_.data());
    for (std::size_t r = 0; r < B; ++r) {
      m_[r] = hn::LoadU(d, kept_bounds_.data() + (segment * 2 * B + r) * lanes());
      e_[r] = hn::LoadU(d, kept_bounds_.data() + (segment * 2 * B + B + r) * lanes());
      p_[r] = get<P>(kept_predictions_.data() + (segment * B + r) * width());
    }
    const std::size_t from = segment * segment_ * n_, to = std::min(T_, (segment + 1) * segment_) * n_;
    for (std::size_t row = from; row < to; ++row) {
      const std::size_t i = row - from;
      const adjoint_step& s = job_.all.steps[row];
      number w[B];
      for (std::size_t r = 0; r < B; ++r) {
        number left;
        write_of(row, r, p_[r], left, w[r]);
        const V left_size = hn::Abs(left.high), size = hn::Abs(w[r].high);
        const step_errors errors = errors_of(s, m_[r], e_[r], left_size, size);
        put<P>(left, note_at(i, innovation, r));
        put<P>(w[r], note_at(i, write, r));
        hn::StoreU(errors.innovation, d, note_at(i, innovation_error, r));
        hn::StoreU(errors.write, d, note_at(i, write_error, r));
        hn::StoreU(m_[r], d, note_at(i, norm, r));
        hn::StoreU(e_[r], d, note_at(i, error, r));
        step_bounds(s, left_size, size, hn::Abs(columns_of(s_.v, row, r)), m_[r], e_[r]);
      }
      if (row + 1 < to) pass(row, tape_.data() + i * state_size_, tape_.data() + (i + 1) * state_size_, w, false);
    }
  }

  // In reverse.

  /// Line A: what q d_o^T of token t makes of the bounds.
  void outer_bounds(std::size_t t) {
    const double chi = job_.all.tokens[t].query;
    for (std::size_t r = 0; r < B && chi != 0; ++r) {
      const V size = columns_of(job_.with.o_size, t, r);
      const auto live = is_something(size);
      V next = hn::MulAdd(hn::Set(d, job_.all.outer * chi), size, hn::Add(ge_[r], gm_[r]));
      next = hn::MulAdd(next, hn::Set(d, slack), hn::Set(d, job_.all.under * (1 + chi)));
      ge_[r] = hn::IfThenElse(live, next, ge_[r]);
      const V grown = hn::MulAdd(hn::MulAdd(hn::Set(d, chi), size, gm_[r]), hn::Set(d, slack), hn::Set(d, adjoint_norm_floor));
      gm_[r] = hn::IfThenElse(live, grown, gm_[r]);
    }
    note_range(gm_);
  }

  void start_reverse() {
    start(job_.with.state.empty() ? nullptr : job_.with.state.data(), cotangent_.data(), gm_, ge_);
    if (s_.rows() == 0) return;
    outer_bounds(T_ - 1);
    number none[B], c[B];
    for (std::size_t r = 0; r < B; ++r) {
      none[r] = y_[r] = zero_number();
      c[r] = cotangent_of(T_ - 1, r);
    }
    const reverse_rows rows{K_,         tape_.data(), cotangent_.data(), nothing(), nothing(), query(T_ - 1), key(s_.rows() - 1),
                            sums_at(0), sums_at(1),   sums_at(2),        sums_at(3)};
    std::fill_n(tape_.data(), state_size_, 0.0);
    reverse_pass<P, B, true, 0>(rows, none, none, c, y_, total_);
  }

  /// The row's reverse step, whose state is on the tape at i.
  void reverse(std::size_t row, std::size_t i) {
    const std::size_t t = row / n_;
    const adjoint_step& s = job_.all.steps[row];
    const bool first = row % n_ == 0, outer = first && row > 0;
    number w[B], dv[B], c[B];
    V of_step = hn::Zero(d);
    row_radii of_key = no_radii(), of_gate = no_radii();
    V all_written = hn::Zero(d);
    number db = zero_number();
    for (std::size_t r = 0; r < B; ++r) {
      const V size = hn::Abs(y_[r].high);
      const number b_y = product<P>(strength(row), y_[r]), left = get<P>(note_at(i, innovation, r));
      dv[r] = {hn::Neg(b_y.high), hn::Neg(b_y.low)};
      w[r] = get<P>(note_at(i, write, r));
      const V written = hn::Abs(b_y.high), m = hn::LoadU(d, note_at(i, norm, r)), e = hn::LoadU(d, note_at(i, error, r));
      const step_errors errors = errors_of(s, gm_[r], ge_[r], size, written);
      put_columns(b_y.high, out_.v.high.data() + row * s_.value_dim, r);
      if constexpr (P) put_columns(b_y.low, out_.v.low.data() + row * s_.value_dim, r);
      put_columns(errors.write, out_.v.error.data() + row * s_.value_dim, r);
      add_product<P>(db, y_[r], left);
      of_step = hn::Add(of_step, product_error(job_, size, errors.prediction, hn::Abs(left.high),
                                               hn::LoadU(d, note_at(i, innovation_error, r)), job_.all.column_sum));
      of_key.add(job_, gm_[r], ge_[r], hn::Abs(w[r].high), hn::LoadU(d, note_at(i, write_error, r)), job_.all.column_sum,
                 of_key.cotangent);
      of_key.add(job_, m, e, written, errors.write, job_.all.column_sum, of_key.state);
      all_written = hn::Add(all_written, written);
      step_bounds(s, size, written, hn::Zero(d), gm_[r], ge_[r]);
    }
    note_range(gm_);
    add_one<P>(db, out_.step.high.data() + row, P ? out_.step.low.data() + row : nullptr);
    out_.step.error[row] += hn::GetLane(hn::SumOfLanes(d, of_step));
    for (std::size_t r = 0; r < B; ++r) c[r] = outer ? cotangent_of(t - 1, r) : zero_number();
    const int decay = first ? decay_ : 0;
    if (decay != 0) {
      gate_radii(i, of_gate);
      decay_bounds(t, gm_, ge_);
    }
    if (outer) outer_bounds(t - 1);
    run_reverse(row, i, decay, w, dv, c);
    give_radii(row, decay, hn::GetLane(hn::SumOfLanes(d, all_written)), of_key, of_gate);
    if (row % norm_refresh == 0) refresh(cotangent_.data(), gm_);
  }
  /// The radius of dg of a token whose first row is on the tape at i, from the bounds after that row's step.
  void gate_radii(std::size_t i, row_radii& of_gate) {
    for (std::size_t r = 0; r < B; ++r) {
      const V m = hn::LoadU(d, note_at(i, norm, r)), e = hn::LoadU(d, note_at(i, error, r));
      of_gate.add_entries(job_, gm_[r], ge_[r], m, e, job_.all.gate_sum);
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
  void run_reverse(std::size_t row, std::size_t i, int decay, const number (&w)[B], const number (&dv)[B], const number (&c)[B]) {
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
    reverse_any<P, B>(first, decay, rows, w, dv, c, y_, total_);
    add_rows<P>(sums_at(0), K_, out_.k.high.data() + row * K_, P ? out_.k.low.data() + row * K_ : nullptr);
    if (decay == 2) add_rows<P>(sums_at(1), K_, out_.decay.high.data() + t * K_, P ? out_.decay.low.data() + t * K_ : nullptr);
    if (decay != 1) return;
    for (std::size_t r = 1; r < B; ++r) total_[0] = sum<P>(total_[0], total_[r]);
    add_one<P>(total_[0], out_.decay.high.data() + t, P ? out_.decay.low.data() + t : nullptr);
  }

  void give_state() {
    for (std::size_t j = 0; j < K_; ++j) {
      for (std::size_t r = 0; r < B; ++r) {
        const number x = get<P>(cotangent_.data() + (j * B + r) * width());
        put_columns(x.high, out_.state.high.data() + j * s_.value_dim, r);
        if constexpr (P) put_columns(x.low, out_.state.low.data() + j * s_.value_dim, r);
      }
    }
    for (std::size_t r = 0; r < B; ++r) put_columns(ge_[r], out_.state.error.data(), r);
  }

  const adjoint_job& job_;
  const sequence<double>& s_;
  column_gradients& out_;
  std::size_t K_, n_, T_, state_size_, segment_ = 16, first_ = 0;
  int decay_ = 0;  // 1: one a token, 2: one a channel
  table kept_states_, kept_bounds_, kept_predictions_, tape_, notes_, cotangent_, sums_;
  V m_[B], e_[B], gm_[B], ge_[B];  // bounds of the state's columns and the cotangent's
  number p_[B], y_[B], total_[B];
  hn::Mask<D> bad_;
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
