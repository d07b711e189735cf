// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Runs one lowered head and carries the row-norm radius beside it: after `certify` every output and every entry of
// the final state is known to within its radius. Derivation, line by line: proofs/notes/oracle-radius.md; the
// letters O F below are its lines, the others stand in certified_rows.hpp, with the `Field` of the arithmetic.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "deltaproof/oracle/certified_rows.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "deltaproof/oracle/range_limits.hpp"
#include "deltaproof/oracle/wide_bound.hpp"

namespace deltaproof {

/// Shapes: o and o_radius T x V; final_state K x V, state_radius V (one for each column).
template <class Value>
struct certified {
  std::vector<Value> o;
  std::vector<double> o_radius;
  std::vector<Value> final_state;
  std::vector<double> state_radius;
  /// The same radii before they became doubles, where the field's are `wide_bound`; else empty.
  std::vector<wide_bound> o_bound;
  std::vector<wide_bound> state_bound;
  /// First token at which an exact |o| or |S| exceeds its limit; nothing from there on is computed.
  std::optional<std::size_t> diverges_at;
  /// Some magnitude could not be told from its limit: a higher precision is needed to say where it diverges.
  bool divergence_undecided = false;
};

/// One head with its radius. `stop`, where given, abandons the run at the next token (the result is then void).
template <class Field>
class certifier {
 public:
  using value = typename Field::value;
  using radius = typename Field::radius;

  certifier(const Field& field, radius unit_roundoff, const lowered<value>& in)
      : field_{field},
        u_{unit_roundoff},
        in_{in},
        keys_{in.scan.key_dim},
        cols_{in.scan.value_dim},
        rows_(field, unit_roundoff, keys_, cols_, entries_of(in.scan.start())) {}

  [[nodiscard]] certified<value> run(const range_limits& limits, const std::atomic<bool>* stop = nullptr) {
    const auto& s = in_.scan;
    const bool per_channel = s.decay.size() != s.tokens;
    certified<value> out;
    out.o.assign(s.tokens * cols_, field_.zero());
    out.o_radius.assign(s.tokens * cols_, 0.0);
    if constexpr (wide) out.o_bound.assign(s.tokens * cols_, wide_bound());
    for (std::size_t t = 0; t < s.tokens; ++t) {
      if (stop && stop->load(std::memory_order_relaxed)) return out;
      if (!s.decay.empty()) rows_.decay(s.decay.data() + (per_channel ? t * keys_ : t), per_channel, in_.error);
      for (std::size_t j = 0; j < s.steps_per_token; ++j) {
        step(t * s.steps_per_token + j);
        if (leaves_state_range(limits.state, out)) return diverged(std::move(out), t);
      }
      read(t, out);
      if (leaves_output_range(limits.output, t, out)) return diverged(std::move(out), t);
    }
    out.final_state = std::move(rows_.entries());
    out.state_radius.resize(cols_);
    for (std::size_t v = 0; v < cols_; ++v) out.state_radius[v] = detail::absolute_radius(rows_.error()[v], u_);
    if constexpr (wide) {
      for (std::size_t v = 0; v < cols_; ++v) out.state_bound.push_back(detail::absolute_bound(rows_.error()[v], u_));
    }
    return out;
  }

 private:
  static constexpr bool wide = std::is_same_v<radius, wide_bound>;

  [[nodiscard]] static std::vector<value> entries_of(const matrix<value>& start) {
    return {start.entries().begin(), start.entries().end()};
  }

  void step(std::size_t row) {
    const auto& s = in_.scan;
    const value* k = s.k.data() + row * keys_;
    const radius kappa = detail::norm_bound<Field>(k, keys_);
    if (kappa == 0) return;  // I - b k k^T = I and k v^T = 0, exactly
    rows_.predict(k);
    rows_.innovate(s.v.data() + row * cols_, s.step[row]);
    rows_.update(k, rows_.bounds_of(k, s.step[row], kappa, in_.error, detail::step_floor_of<Field>(in_, row)));
  }

  void read(std::size_t t, certified<value>& out) {  // line O
    const value* q = in_.scan.q.data() + t * keys_;
    value* o = &out.o[t * cols_];
    double* to = &out.o_radius[t * cols_];
    const radius chi = detail::norm_bound<Field>(q, keys_);
    if (chi == 0) return;
    for (std::size_t i = 0; i < keys_; ++i) field_.read_row(o, q[i], rows_.row(i), cols_);
    field_.scale_row(o, in_.scale, cols_);
    const double c = std::fabs(in_.scale);
    const radius chi_plus = chi * (1 + in_.error.query * u_) * detail::radius_slack;
    for (std::size_t v = 0; v < cols_; ++v) {
      const radius &norm = rows_.norm()[v], &error = rows_.error()[v];
      if (norm == 0 && error == 0) continue;
      radius e = Field::magnitude(o[v]) + c * ((rows_.gamma(keys_) + in_.error.query) * chi * norm + chi_plus * error);
      e += Field::underflow_unit * (1 + c) * (1 + chi_plus);
      e = detail::finite_or_infinite(e * detail::radius_slack);
      to[v] = detail::absolute_radius(e, u_);
      if constexpr (wide) out.o_bound[t * cols_ + v] = detail::absolute_bound(e, u_);
    }
  }

  [[nodiscard]] bool leaves_state_range(double limit, certified<value>& out) const {
    bool certain = false;
    for (std::size_t v = 0; v < cols_; ++v) {
      const double e = detail::absolute_radius(rows_.error()[v], u_);
      if (rows_.norm()[v] + e <= limit) continue;
      for (std::size_t i = 0; i < keys_; ++i) certain |= exceeds(Field::approximate(rows_.row(i)[v]), e, limit, out);
    }
    return certain;
  }
  [[nodiscard]] bool leaves_output_range(double limit, std::size_t t, certified<value>& out) const {
    bool certain = false;
    for (std::size_t v = 0; v < cols_; ++v) {
      certain |= exceeds(Field::approximate(out.o[t * cols_ + v]), out.o_radius[t * cols_ + v], limit, out);
    }
    return certain;
  }
  /// Whether |exact| > limit for certain; notes what cannot be told. NaN (fp64 left its range) cannot.
  [[nodiscard]] static bool exceeds(double x, double e, double limit, certified<value>& out) {
    const double m = std::fabs(x);
    if (m - e > limit) return true;
    if (!(m + e <= limit)) out.divergence_undecided = true;
    return false;
  }
  [[nodiscard]] certified<value> diverged(certified<value> out, std::size_t t) const {
    out.diverges_at = t;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::fill(out.o_radius.begin() + static_cast<std::ptrdiff_t>(t * cols_), out.o_radius.end(), infinity);
    for (std::size_t i = t * cols_; i < out.o_bound.size(); ++i) out.o_bound[i] = infinity;
    return out;
  }

  Field field_;
  radius u_;
  const lowered<value>& in_;
  std::size_t keys_;
  std::size_t cols_;
  certified_rows<Field> rows_;
};

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.non_expansive.cauchy_schwarz, algebra.non_expansive.transposed_product_norm,
// proved: algebra.error_accumulation.triangle_inequality, algebra.error_accumulation.forced_state_bound,
// proved: algebra.error_accumulation.error_accumulation, algebra.error_accumulation.errors_only_add,
// proved: algebra.error_accumulation.delta_errors_only_add, algebra.error_accumulation.errors_add_attained,
// proved: float.formats.bf16_unit_roundoff, float.vectors.cauchy_schwarz, float.standard_model.nearest_is_a_model,
// proved: float.standard_model.gamma_bound, float.standard_model.dot_error, float.underflow.product_error,
// proved: float.oracle_radius.read_line, float.oracle_radius.token_line, float.oracle_radius.radius_unrolled,
// proved: float.oracle_radius.state_radius, float.oracle_radius.computed_expression_low, float.radius_arithmetic.floor_covers
