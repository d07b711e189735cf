// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Equations between tensors that a kernel stored, each measured beside what its formats cost: the right side in long double from
// the stored numbers, and the same once more in the formats and the arithmetic that the kernel declares, whose error is what is
// expected. It exists for the invariants that look inside a handed-on state (flush, cp).
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "check/invariant_parts.hpp"
#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "deltaproof/oracle/lower.hpp"

namespace deltaproof::invariant_detail {

using wide = long double;

/// A residual of a head may be this many times what computing costs (three bits, as in adequacy), that of one window 32 times,
/// and twice what storing costs besides: the error of a rounding is at most sqrt(3) times its root mean square.
inline constexpr double most_of_head = 8;
inline constexpr double most_of_place = 32;
inline constexpr double most_of_storing = 2;

/// One equation of one part, filled head by head.
class measured_equation {
 public:
  measured_equation(std::string name, std::string statement, std::size_t part);

  /// The numbers of one place of a head: `got` as stored in `stored`, the exact right side, and what a run in the declared
  /// formats made of it before it was stored. `floor`: relative error that computing it costs whatever that run does.
  template <class Real>
  void add(std::size_t sequence, std::size_t head, std::optional<std::size_t> window, const std::vector<double>& got,
           const std::vector<wide>& want, const std::vector<Real>& computed, const format& stored, double floor) {
    begin(sequence, head, floor);
    sums s;
    for (std::size_t i = 0; i < got.size(); ++i)
      s.take(got[i], want[i], static_cast<double>(static_cast<wide>(computed[i]) - want[i]), stored);
    end(s, window);
  }
  /// The verdict on what was added; `missing` where nothing could be.
  [[nodiscard]] state_equation done() &&;
  void spans_all_parts() { out_.of_all_parts = true; }
  void counts_key_heads() { out_.by_key_head = true; }
  void lacks(std::string what) { out_.missing = std::move(what); }
  [[nodiscard]] bool is_complete() const { return out_.missing.empty(); }

 private:
  struct sums {
    double residual = 0, computing = 0, storing = 0, size = 0;
    std::size_t numbers = 0;
    bool nonfinite = false;
    void take(double got, wide want, double computing_error, const format& stored);
    void join(const sums& other);
  };
  void begin(std::size_t sequence, std::size_t head, double floor);
  void end(const sums& s, std::optional<std::size_t> window);
  void close_head();
  /// The share of the limit that the residual is.
  double look(const sums& s, double times, std::optional<std::size_t> window);

  state_equation out_;
  std::optional<std::pair<std::size_t, std::size_t>> head_;
  sums of_head_;
  double floor_ = 0;
  double nearest_ = -1;
  double nearest_window_ = -1;  ///< of this head
  std::optional<std::size_t> window_;
};

/// One head's state while tokens go by, every operation rounded to Real.
template <class Real>
struct running_state {
  matrix<Real> s;  ///< K x V

  void decay(std::span<const Real> factors) {
    for (std::size_t i = 0; i < s.rows() && !factors.empty(); ++i) {
      for (Real& x : s.row(i)) x *= factors[factors.size() == 1 ? 0 : i];
    }
  }
  [[nodiscard]] std::vector<Real> read(std::span<const Real> k) const {
    std::vector<Real> out(s.cols(), Real(0));
    for (std::size_t i = 0; i < s.rows(); ++i) {
      for (std::size_t j = 0; j < s.cols(); ++j) out[j] += k[i] * s(i, j);
    }
    return out;
  }
  void write(std::span<const Real> k, std::span<const Real> u) {
    for (std::size_t i = 0; i < s.rows(); ++i) {
      for (std::size_t j = 0; j < s.cols(); ++j) s(i, j) += k[i] * u[j];
    }
  }
};

/// One head of one sequence in Real: the lowered keys, steps and decays, each rounded once.
template <class Real>
struct head_numbers {
  std::size_t tokens = 0, steps = 1, K = 0, V = 0;
  std::vector<Real> q, k, v, b, decay;  ///< decay: none, one or K numbers a token
  Real scale = 1;
  matrix<Real> initial;

  head_numbers(const problem& p, std::size_t sequence, std::size_t head) {
    const lowered<double> low = lower(p, sequence, head);
    const auto cast = [](const std::vector<double>& from) { return std::vector<Real>(from.begin(), from.end()); };
    tokens = low.scan.tokens;
    steps = low.scan.steps_per_token;
    K = low.scan.key_dim;
    V = low.scan.value_dim;
    q = cast(low.scan.q);
    k = cast(low.scan.k);
    v = cast(low.scan.v);
    b = cast(low.scan.step);
    decay = cast(low.scan.decay);
    scale = static_cast<Real>(low.scale);
    initial = matrix<Real>(K, V, Real(0));
    for (std::size_t i = 0; i < low.scan.initial_state.size(); ++i)
      initial.data()[i] = static_cast<Real>(low.scan.initial_state.data()[i]);
  }
  [[nodiscard]] std::span<const Real> key(std::size_t row) const { return {k.data() + row * K, K}; }
  [[nodiscard]] std::size_t decays() const { return tokens == 0 ? 0 : decay.size() / tokens; }
  [[nodiscard]] std::span<const Real> decay_of(std::size_t t) const { return {decay.data() + t * decays(), decays()}; }
  /// b (v - r) of one row.
  [[nodiscard]] std::vector<Real> change(std::size_t row, std::vector<Real> r) const {
    for (std::size_t j = 0; j < V; ++j) r[j] = b[row] * (v[row * V + j] - r[j]);
    return r;
  }
  [[nodiscard]] std::vector<Real> out(std::size_t t, const running_state<Real>& state) const {
    std::vector<Real> o = state.read({q.data() + t * K, K});
    for (Real& x : o) x *= scale;
    return o;
  }
  void step(std::size_t t, running_state<Real>& state) const {
    state.decay(decay_of(t));
    for (std::size_t row = t * steps; row < (t + 1) * steps; ++row) state.write(key(row), change(row, state.read(key(row))));
  }
};

/// o of tokens [first, last) from `state` on, which is left after them.
template <class Real>
std::vector<Real> run_tokens(const head_numbers<Real>& in, std::size_t first, std::size_t last, running_state<Real>& state) {
  std::vector<Real> o;
  for (std::size_t t = first; t < last; ++t) {
    in.step(t, state);
    const std::vector<Real> row = in.out(t, state);
    o.insert(o.end(), row.begin(), row.end());
  }
  return o;
}

/// `values` rounded once to `to`, as doubles.
template <class Real>
std::vector<double> rounded_to(const std::vector<Real>& values, const format& to) {
  std::vector<double> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = round_nearest(static_cast<double>(values[i]), to);
  return out;
}
template <class Real>
std::vector<Real> entries_of(const matrix<Real>& m) {
  return {m.data(), m.data() + m.size()};
}

/// `count` numbers of `t` from `first` on.
[[nodiscard]] std::vector<double> numbers_of(const tensor& t, std::size_t first, std::size_t count);
/// Rows [first, first + count) of one head of a tensor [B, rows, heads, ...], one after the other.
[[nodiscard]] std::vector<double> head_rows(const tensor& t, std::size_t first, std::size_t count, std::size_t head);
template <class Real>
matrix<Real> matrix_of(const tensor& t, std::size_t index, std::size_t rows, std::size_t cols) {
  const std::vector<double> x = numbers_of(t, index * rows * cols, rows * cols);
  return {rows, cols, std::vector<Real>(x.begin(), x.end())};
}

/// ||a - b|| and ||b||.
struct distance {
  double apart = 0, size = 0;
};
template <class A, class B>
distance distance_of(const std::vector<A>& a, const std::vector<B>& b) {
  wide apart = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const wide d = static_cast<wide>(a[i]) - static_cast<wide>(b[i]);
    apart += d * d;
    size += static_cast<wide>(b[i]) * static_cast<wide>(b[i]);
  }
  return {static_cast<double>(std::sqrt(apart)), static_cast<double>(std::sqrt(size))};
}

/// Joins the verdict on equations to `out`: a refuted one gives the reason.
void join_equations(invariant_report& out);

/// flush: a decode kernel with a ring, beside plain decode. `asked`: what is to be judged by plans.
[[nodiscard]] std::vector<question_to_judge> compare_flushes(const recorded_run& whole, std::span<const recorded_run> parts,
                                                             invariant_report& out);
/// After the plans were asked: what the rings' formats cost, and the equations of each ring.
void judge_flushes(const recorded_run& whole, std::span<const recorded_run> parts, const invariant_options& options,
                   invariant_report& out);

/// cp: the ranks of a split sequence.
[[nodiscard]] std::vector<question_to_judge> compare_ranks(const recorded_run& whole, std::span<const recorded_run> parts,
                                                           const invariant_options& options, invariant_report& out);
void judge_ranks(const recorded_run& whole, std::span<const recorded_run> parts, const invariant_options& options,
                 std::span<const plan> plans, invariant_report& out);

}  // namespace deltaproof::invariant_detail
