// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Runs the delta rule token by token, in any scalar: `recurrent(sequence)` for a whole sequence,
// `recurrence<S>` for a stream of any length in the memory of one state. Shapes: state (K, V), rows are
// channels of the key. Every operation rounds as the scalar S does and in one order, stated at each
// function, so that the bits depend on the inputs alone; ring operations only, no exp, no sqrt, no
// division. It exists as the plainest form of the recurrence: what all faster forms are compared with.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// The state of one head and the four things that may be done with it.
template <class S>
class recurrence {
 public:
  /// Starts from zeros. Shapes: key_dim x value_dim.
  recurrence(std::size_t key_dim, std::size_t value_dim) : recurrence(matrix<S>(key_dim, value_dim)) {}

  /// Starts from a (K, V) state.
  explicit recurrence(matrix<S> initial_state) : state_(std::move(initial_state)), prediction_(state_.cols(), S{}) {}

  /// S <- diag(a) S. Shapes: a holds no number (nothing happens), one, or K. Rounds: one multiplication
  /// an entry. A decay of 0 makes zeros of finite entries; 0 times infinity is NaN, as in a kernel.
  void decay(std::span<const S> a) {
    if (a.empty()) return;
    if (a.size() != 1) require("decay", a.size(), "1 or key_dim", state_.rows());
    for (std::size_t i = 0; i < state_.rows(); ++i) {
      const S& factor = a.size() == 1 ? a[0] : a[i];
      for (S& entry : state_.row(i)) entry = entry * factor;
    }
  }

  /// S <- S + k (b (v - k^T S)). Shapes: k (K), v (V). Rounds: k^T S multiplies, then adds, channel 0
  /// first, starting from 0; then one subtraction, one multiplication by b, and for each entry one
  /// multiplication by k and one addition.
  void step(std::span<const S> k, std::span<const S> v, const S& b) {
    require("k", k.size(), "key_dim", state_.rows());
    require("v", v.size(), "value_dim", state_.cols());
    predict(k);
    for (std::size_t j = 0; j < prediction_.size(); ++j) prediction_[j] = b * (v[j] - prediction_[j]);
    for (std::size_t i = 0; i < state_.rows(); ++i) {
      const std::span<S> row = state_.row(i);
      for (std::size_t j = 0; j < row.size(); ++j) row[j] = row[j] + k[i] * prediction_[j];
    }
  }

  /// o = S^T q. Shapes: q (K), o (V). Rounds: like k^T S in `step`. The state is only read.
  void read(std::span<const S> q, std::span<S> o) const {
    require("q", q.size(), "key_dim", state_.rows());
    require("o", o.size(), "value_dim", state_.cols());
    accumulate(q, o);
  }

  /// Replaces each entry x by f(x), row after row: a state that is kept in another format between steps,
  /// or one whose divergence is watched.
  template <class F>
  void store(F&& f) {
    for (std::size_t i = 0; i < state_.rows(); ++i) {
      for (S& entry : state_.row(i)) entry = f(entry);
    }
  }

  [[nodiscard]] const matrix<S>& state() const noexcept { return state_; }

 private:
  void predict(std::span<const S> k) { accumulate(k, prediction_); }

  void accumulate(std::span<const S> x, std::span<S> sum) const {
    for (S& entry : sum) entry = S{};
    for (std::size_t i = 0; i < state_.rows(); ++i) {
      const std::span<const S> row = state_.row(i);
      for (std::size_t j = 0; j < row.size(); ++j) sum[j] = sum[j] + x[i] * row[j];
    }
  }

  static void require(const char* name, std::size_t holds, const char* formula, std::size_t needs) {
    if (holds != needs) {
      throw shape_error("recurrence: " + std::string(name) + " holds " + std::to_string(holds) + " values, needs " + formula +
                        " = " + std::to_string(needs));
    }
  }

  matrix<S> state_;
  std::vector<S> prediction_;  // room for k^T S, so that a step allocates nothing
};

/// What the recurrence returns: o (T x V), one row a token, not scaled, and the state after the last token.
template <class S>
struct trace {
  matrix<S> o;
  matrix<S> final_state;
};

/// Feeds the tokens of a sequence to a state one after the other: decay, n steps, then
/// `on_token(t, machine)`. Reads: all of the sequence but q. Throws: shape_error (sequence::validate).
template <class S, class OnToken>
void run_tokens(const sequence<S>& s, recurrence<S>& machine, OnToken&& on_token) {
  s.validate();
  for (std::size_t t = 0; t < s.tokens; ++t) {
    machine.decay(s.decay_of(t));
    for (std::size_t j = 0; j < s.steps_per_token; ++j) {
      const std::size_t row = t * s.steps_per_token + j;
      machine.step(s.k_row(row), s.v_row(row), s.step[row]);
    }
    on_token(t, machine);
  }
}

/// The whole sequence by the recurrence S <- diag(a) S; S <- S + k (b (v - k^T S)) n times; o = S^T q.
/// Shapes: o is T x V, also for T = 0. Rounds: see `recurrence`. Throws: shape_error (sequence::validate).
template <class S>
[[nodiscard]] trace<S> recurrent(const sequence<S>& s) {
  s.validate();
  trace<S> result;
  result.o = matrix<S>(s.tokens, s.value_dim);
  recurrence<S> machine(s.start());
  run_tokens(s, machine, [&](std::size_t t, const recurrence<S>& now) { now.read(s.q_row(t), result.o.row(t)); });
  result.final_state = machine.state();
  return result;
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.rank_one.rank_one_apply, algebra.wy.run_cut, algebra.wy.delta_rule_row, float.step.step_error
