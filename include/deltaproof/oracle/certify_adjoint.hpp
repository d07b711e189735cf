// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Runs one lowered head forwards and its adjoint backwards, each with the row-norm radius of certified_rows.hpp beside it: every
// derivative of sum o . d_o + sum S_T . d_S with respect to a lowered q, k, v, step, log decay or entry of the initial state is
// then known to within its radius. The adjoint's state goes through the transposes of the forward steps, which for I - b k k^T
// are the same: lines D, W, S serve both directions, line A adds q d_o^T. Formulas: scan/adjoint.hpp. Derivation:
// proofs/notes/oracle-radius.md, "Gradients". States are kept every ceil(sqrt T) tokens and run again from there; no step is
// undone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "deltaproof/oracle/certified_rows.hpp"
#include "deltaproof/oracle/lower.hpp"

namespace deltaproof {

/// Numbers and their radii, in units of the field's u.
template <class Field>
struct certified_entries {
  std::vector<typename Field::value> value;
  std::vector<typename Field::radius> error;
};

/// Shapes: q T x K, k (T n) x K, v (T n) x V, step T n, decay as the sequence's (of the logarithms), initial_state K x V.
template <class Field>
struct certified_adjoint {
  certified_entries<Field> q, k, v, step, decay, initial_state;
  std::size_t states_until = 0;     ///< tokens [0, states_until) leave a state within the range asked about
  std::size_t cotangents_from = 0;  ///< tokens [cotangents_from, T) meet a cotangent within it
};

namespace detail {

/// A vector known by bounds alone: at least each |computed entry|, and at least each error in units of u.
template <class Radius>
struct bounded_vector {
  std::vector<Radius> size, error;
};

/// The error of a computed sum of a_v b_v. 0 only where every product is exactly 0.
template <class Radius>
class product_sum_error {
 public:
  product_sum_error(const Radius& u, double gamma) : u_{u}, gamma_{gamma} {}

  void add(const Radius& a, const Radius& a_error, const Radius& b, const Radius& b_error) {
    if ((a == Radius(0) && a_error == Radius(0)) || (b == Radius(0) && b_error == Radius(0))) return;
    exact_zero_ = false;
    sum_ += a_error * b + a * b_error + u_ * a_error * b_error + gamma_ * a * b;
    sizes_ += a + b;
    ++terms_;
  }
  void add(const bounded_vector<Radius>& a, const bounded_vector<Radius>& b) {
    for (std::size_t v = 0; v < a.size.size(); ++v) add(a.size[v], a.error[v], b.size[v], b.error[v]);
  }
  /// `under`: line U.
  [[nodiscard]] Radius total(const Radius& under) const {
    if (exact_zero_) return Radius(0);
    const double slack = radius_slack * (1 + static_cast<double>(8 * terms_ + 64) * 0x1p-52);
    return finite_or_infinite(sum_ * slack + under * (1 + sizes_));
  }

 private:
  Radius u_;
  double gamma_;
  Radius sum_ = 0, sizes_ = 0;
  std::size_t terms_ = 0;
  bool exact_zero_ = true;
};

}  // namespace detail

template <class Field>
class adjoint_certifier {
 public:
  using value = typename Field::value;
  using radius = typename Field::radius;

  /// `d_o`: T x V, already multiplied by the scale, each product rounded once; `d_o_size`: at least their magnitudes, above 0
  /// where the exact product is not 0. `d_state`: K x V, exact. `range`: entries of states and cotangents beyond it are looked
  /// for. Of the columns [from, from + count) alone: the others add to q, k, step and decay.
  adjoint_certifier(const Field& field, radius unit_roundoff, const lowered<value>& in, const std::vector<value>& d_o,
                    const std::vector<radius>& d_o_size, const std::vector<value>& d_state, std::size_t from, std::size_t count,
                    double range)
      : field_{field},
        u_{unit_roundoff},
        range_{range},
        in_{in},
        d_o_{d_o},
        d_o_size_{d_o_size},
        keys_{in.scan.key_dim},
        all_{in.scan.value_dim},
        from_{from},
        cols_{count},
        steps_{in.scan.steps_per_token},
        forward_(field, unit_roundoff, keys_, cols_, columns_of(in.scan.start().data())),
        reverse_(field, unit_roundoff, keys_, cols_, columns_of(d_state.data())),
        zeros_(cols_, field.zero()) {}

  /// v and initial_state are of the columns. Void where `stop` was set.
  [[nodiscard]] certified_adjoint<Field> run(const std::atomic<bool>* stop = nullptr) {
    certified_adjoint<Field> out;
    const auto& s = in_.scan;
    reset(out.q, s.q.size());
    reset(out.k, s.k.size());
    reset(out.v, s.rows() * cols_);
    reset(out.step, s.step.size());
    reset(out.decay, s.decay.size());
    out.states_until = s.tokens;
    const auto segment = std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(s.tokens)))));
    std::vector<certified_rows<Field>> checkpoints;
    for (std::size_t t = 0; t < s.tokens; ++t) {
      if (stop && stop->load(std::memory_order_relaxed)) return out;
      if (t % segment == 0) checkpoints.push_back(forward_);
      advance(t, nullptr);
      read(t, out.q);
      if (leaves_range(forward_)) out.states_until = std::min(out.states_until, t);
    }
    for (; !checkpoints.empty(); checkpoints.pop_back()) {
      const std::size_t first = (checkpoints.size() - 1) * segment, last = std::min(s.tokens, first + segment);
      forward_ = checkpoints.back();
      std::vector<taped_step> tape;
      for (std::size_t t = first; t < last; ++t) {
        if (stop && stop->load(std::memory_order_relaxed)) return out;
        advance(t, &tape);
      }
      for (std::size_t t = last; t-- > first;) {
        if (stop && stop->load(std::memory_order_relaxed)) return out;
        reverse(t, tape.data() + (t - first) * steps_, out);
      }
    }
    out.initial_state.value = reverse_.entries();
    for (std::size_t i = 0; i < keys_; ++i) {
      for (std::size_t v = 0; v < cols_; ++v) out.initial_state.error.push_back(reverse_.error()[v]);
    }
    return out;
  }

 private:
  /// The state before a step, and what the step wrote.
  struct taped_step {
    std::vector<value> state;
    detail::bounded_vector<radius> columns;  ///< of the state
    std::vector<value> innovation, write;    ///< v - k^T S, b (v - k^T S)
    detail::bounded_vector<radius> innovation_bounds, write_bounds;
  };

  /// An entry is beyond the range, and known to be: to within a factor of 1 + 2^-10 of it.
  [[nodiscard]] bool leaves_range(const certified_rows<Field>& rows) const {
    const radius range = range_;
    for (std::size_t v = 0; v < cols_ && range_ < std::numeric_limits<double>::infinity(); ++v) {
      if (!(rows.norm()[v] > range)) continue;
      for (std::size_t i = 0; i < keys_; ++i) {
        const radius size = Field::magnitude(rows.row(i)[v]);
        if (size > range && rows.error()[v] * u_ * 0x1p10 < size) return true;
      }
    }
    return false;
  }
  [[nodiscard]] std::vector<value> columns_of(const value* whole) const {
    std::vector<value> out;
    for (std::size_t i = 0; i < keys_; ++i) out.insert(out.end(), whole + i * all_ + from_, whole + i * all_ + from_ + cols_);
    return out;
  }
  void reset(certified_entries<Field>& out, std::size_t count) const {
    out.value.assign(count, field_.zero());
    out.error.assign(count, radius(0));
  }
  [[nodiscard]] step_bounds<radius> bounds_of(const certified_rows<Field>& rows, std::size_t row) const {
    const value* k = key(row);
    return rows.bounds_of(k, in_.scan.step[row], detail::norm_bound<Field>(k, keys_), in_.error,
                          detail::step_floor_of<Field>(in_, row));
  }
  [[nodiscard]] const value* key(std::size_t row) const { return in_.scan.k.data() + row * keys_; }
  [[nodiscard]] const value* query(std::size_t t) const { return in_.scan.q.data() + t * keys_; }

  void decay(certified_rows<Field>& rows, std::size_t t) const {
    const auto& s = in_.scan;
    if (s.decay.empty()) return;
    const bool per_channel = s.decay.size() != s.tokens;
    rows.decay(s.decay.data() + (per_channel ? t * keys_ : t), per_channel, in_.error);
  }

  /// What the last `predict` and `innovate` of `rows` gave, and how far it is from that of the exact state: its column's error
  /// and line W. `exact_values`: what was predicted was subtracted from something.
  struct step_outcome {
    detail::bounded_vector<radius> prediction, innovation, write;
  };
  [[nodiscard]] step_outcome outcome_of(const certified_rows<Field>& rows, const step_bounds<radius>& s) const {
    step_outcome out;
    out.innovation.size = rows.innovation_size();
    out.write.size = rows.write_size();
    const double gamma = rows.gamma(keys_);
    for (std::size_t v = 0; v < cols_; ++v) {
      const radius &norm = rows.norm()[v], &error = rows.error()[v];
      radius e_p = (gamma + s.key_error) * s.key * norm + s.key_plus * error;
      radius e_r = e_p + out.innovation.size[v];
      radius e_w = rows.write_error(v, s, norm) + s.step_plus * s.key_plus * error;
      if ((!(norm == radius(0)) || !(error == radius(0))) && !(s.key == radius(0))) e_p += s.under;
      if (!(e_r == radius(0)) || !(e_p == radius(0))) e_r += s.under;
      if (!(e_r == radius(0)) && (!(s.step == radius(0)) || !(s.floor == radius(0)))) e_w += s.under;
      out.prediction.size.push_back(detail::finite_or_infinite(Field::magnitude(rows.prediction()[v])));
      out.prediction.error.push_back(detail::finite_or_infinite(e_p * detail::radius_slack));
      out.innovation.error.push_back(detail::finite_or_infinite(e_r * detail::radius_slack));
      out.write.error.push_back(detail::finite_or_infinite(e_w * detail::radius_slack));
    }
    return out;
  }

  /// Token t of the forward recurrence; what its steps did goes to `tape`, if there is one.
  void advance(std::size_t t, std::vector<taped_step>* tape) {
    decay(forward_, t);
    for (std::size_t row = t * steps_; row < (t + 1) * steps_; ++row) {
      const auto bounds = bounds_of(forward_, row);
      if (tape == nullptr && bounds.key == radius(0)) continue;  // I - b k k^T = I, exactly
      const value* v = in_.scan.v.data() + row * all_ + from_;
      forward_.predict(key(row));
      forward_.innovate(v, in_.scan.step[row]);
      if (tape != nullptr) {
        auto outcome = outcome_of(forward_, bounds);
        tape->push_back({forward_.entries(),
                         {forward_.norm(), forward_.error()},
                         forward_.prediction(),
                         forward_.written(),
                         std::move(outcome.innovation),
                         std::move(outcome.write)});
        Field::subtract(tape->back().innovation.data(), v, tape->back().innovation.data(), cols_);
      }
      if (bounds.key > radius(0)) forward_.update(key(row), bounds);
    }
  }

  /// dq = S (scale d_o), after the token's last step.
  void read(std::size_t t, certified_entries<Field>& out) const {
    const value* d = d_o_.data() + t * all_ + from_;
    detail::product_sum_error<radius> error(u_, forward_.gamma(cols_));
    bool any = false;
    for (std::size_t v = 0; v < cols_; ++v) {
      const radius& size = d_o_size_[t * all_ + from_ + v];
      any = any || !(size == radius(0));
      error.add(forward_.norm()[v], forward_.error()[v], size, size);
    }
    if (!any) return;
    const radius e = error.total(Field::underflow_unit);
    for (std::size_t i = 0; i < keys_; ++i) {
      out.value[t * keys_ + i] = field_.dot(forward_.row(i), d, cols_);
      out.error[t * keys_ + i] = e;
    }
  }

  void reverse(std::size_t t, const taped_step* tape, certified_adjoint<Field>& out) {
    reverse_.add_outer(query(t), d_o_.data() + t * all_ + from_, d_o_size_.data() + t * all_ + from_, in_.error.query);  // line A
    if (leaves_range(reverse_)) out.cotangents_from = std::max(out.cotangents_from, t + 1);
    for (std::size_t row = (t + 1) * steps_; row-- > t * steps_;) reverse_step(row, tape[row - t * steps_], out);
    if (in_.scan.decay.empty()) return;
    log_decays(t, tape[0], out.decay);
    decay(reverse_, t);
  }

  void reverse_step(std::size_t row, const taped_step& taped, certified_adjoint<Field>& out) {
    const auto bounds = bounds_of(reverse_, row);
    const detail::bounded_vector<radius> cotangent{reverse_.norm(), reverse_.error()};
    reverse_.predict(key(row));
    reverse_.innovate(zeros_.data(), in_.scan.step[row]);  // w = -b y = -dv
    const auto outcome = outcome_of(reverse_, bounds);

    detail::product_sum_error<radius> step_error(u_, reverse_.gamma(cols_));
    step_error.add(outcome.prediction, taped.innovation_bounds);
    out.step.value[row] = field_.dot(reverse_.prediction().data(), taped.innovation.data(), cols_);
    out.step.error[row] = step_error.total(Field::underflow_unit);
    for (std::size_t v = 0; v < cols_; ++v) {
      out.v.value[row * cols_ + v] = field_.negated(reverse_.written()[v]);
      out.v.error[row * cols_ + v] = outcome.write.error[v];
    }
    // dk = G w + S (-dv); each of the two sums, then their sum.
    detail::product_sum_error<radius> key_error(u_, reverse_.gamma(cols_ + 1));
    key_error.add(cotangent, taped.write_bounds);
    key_error.add(taped.columns, outcome.write);
    const radius e = key_error.total(Field::underflow_unit);
    for (std::size_t i = 0; i < keys_; ++i) {
      const value from_write = field_.dot(reverse_.row(i), taped.write.data(), cols_);
      const value from_state = field_.dot(&taped.state[i * cols_], reverse_.written().data(), cols_);
      out.k.value[row * keys_ + i] = field_.sum(from_write, from_state);
      out.k.error[row * keys_ + i] = e;
    }
    if (bounds.key > radius(0)) reverse_.update(key(row), bounds);
  }

  /// Rows of (cotangent . state), both after the decay; one number a token: of all rows.
  void log_decays(std::size_t t, const taped_step& first, certified_entries<Field>& out) const {
    const bool per_channel = out.value.size() != in_.scan.tokens;
    detail::product_sum_error<radius> error(u_, reverse_.gamma(per_channel ? cols_ : cols_ + keys_));
    error.add({reverse_.norm(), reverse_.error()}, first.columns);
    const radius e = error.total(Field::underflow_unit);
    for (std::size_t i = 0; i < keys_; ++i) {
      const std::size_t at = per_channel ? t * keys_ + i : t;
      out.value[at] = field_.sum(out.value[at], field_.dot(reverse_.row(i), &first.state[i * cols_], cols_));
      out.error[at] = e;
    }
  }

  Field field_;
  radius u_;
  double range_;
  const lowered<value>& in_;
  const std::vector<value>& d_o_;
  const std::vector<radius>& d_o_size_;
  std::size_t keys_, all_, from_, cols_, steps_;
  certified_rows<Field> forward_, reverse_;
  std::vector<value> zeros_;
};

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.ordered_product.ordered_product_transposed, algebra.adjoint_run.back_transposed,
// proved: algebra.adjoint_run.run_cotangent, algebra.adjoint_run.cotangent_cut, float.adjoint_radius.product_sum_line,
// proved: float.adjoint_radius.prediction_line, float.adjoint_radius.read_back_line, float.cotangent_run.exact_before_transition,
// proved: float.cotangent_run.by_key_radius
