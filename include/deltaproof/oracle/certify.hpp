// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Runs one lowered head and carries the row-norm radius beside it: after `certify` every output and every entry of
// the final state is known to within its radius. Derivation, line by line: proofs/notes/oracle-radius.md; the
// letters D W S R O N U F below are its lines. A `Field` supplies the arithmetic of rows (fp64 here, MPFR in src/) and
// the numbers of the radius, in units of its u, inflated so that their own rounding is covered: doubles, or `wide_bound`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "deltaproof/oracle/wide_bound.hpp"
#include "deltaproof/oracle/lower.hpp"

namespace deltaproof {

/// Largest magnitudes the outputs and the state may reach before the recurrence has left its formats.
struct range_limits {
  double output = std::numeric_limits<double>::infinity();
  double state = std::numeric_limits<double>::infinity();
};

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

/// Rows of fp64: products and sums are rounded separately.
struct fp64_field {
  using value = double;
  using radius = double;
  static constexpr double unit_roundoff = 0x1p-53;
  static constexpr double square_floor = 0x1p-1074;    ///< what the square of a magnitude loses
  static constexpr double underflow_unit = 0x1p-1000;  ///< line U

  [[nodiscard]] value zero() const { return 0; }
  [[nodiscard]] static double approximate(value x) { return x; }
  [[nodiscard]] static double magnitude(value x) { return std::fabs(x); }
  [[nodiscard]] static bool is_negative(value x) { return x < 0; }
  [[nodiscard]] static double decay_floor(double given, bool) { return given; }
  [[nodiscard]] static bool is_zero(value x) { return x == 0; }

  static void decay_row(value* s, value a, double* squares, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) {
      s[v] *= a;
      squares[v] += s[v] * s[v];
    }
  }
  static void predict_row(value* p, value k, const value* s, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) p[v] += k * s[v];
  }
  static void innovation(value* w, double* r_size, double* w_size, value b, const value* v, const value* p, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const double r = v[i] - p[i];
      w[i] = b * r;
      r_size[i] = std::fabs(r);
      w_size[i] = std::fabs(w[i]);
    }
  }
  static void update_row(value* s, value k, const value* w, double* squares, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) {
      s[v] += k * w[v];
      squares[v] += s[v] * s[v];
    }
  }
  static void read_row(value* o, value q, const value* s, std::size_t n) { predict_row(o, q, s, n); }
  static void scale_row(value* o, double c, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) o[v] *= c;
  }
};

namespace detail {

inline constexpr double radius_slack = 1 + 0x1p-46;  // line F

[[nodiscard]] inline double finite_or_infinite(double x) {
  return x <= std::numeric_limits<double>::max() ? x : std::numeric_limits<double>::infinity();
}
[[nodiscard]] inline wide_bound finite_or_infinite(const wide_bound& x) { return x; }
[[nodiscard]] inline double above(double x) { return x; }
[[nodiscard]] inline double above(const wide_bound& x) { return x.above(); }

/// Line N for one vector of the field.
template <class Field>
[[nodiscard]] typename Field::radius norm_bound(const typename Field::value* x, std::size_t n) {
  using std::sqrt;
  typename Field::radius sum = 0;
  bool nonzero = false;
  for (std::size_t i = 0; i < n; ++i) {
    const auto m = Field::magnitude(x[i]);
    sum += m * m;
    nonzero = nonzero || !Field::is_zero(x[i]);
  }
  if (!nonzero) return 0;
  const double size = static_cast<double>(n);
  return sqrt(sum * (1 + (size + 8) * 0x1p-52) + size * Field::square_floor) * radius_slack;
}

/// Line F: units of u to an absolute radius, rounded up.
[[nodiscard]] inline double absolute_radius(double units, double u) {
  if (units == 0) return 0;
  const double r = finite_or_infinite(units * u * radius_slack);
  return std::max(r, std::numeric_limits<double>::min());
}
/// Nothing underflows here: not below the smallest double unless it is 0.
[[nodiscard]] inline wide_bound absolute_bound(const wide_bound& units, const wide_bound& u) { return units * u * radius_slack; }
[[nodiscard]] inline double absolute_radius(const wide_bound& units, const wide_bound& u) {
  return absolute_bound(units, u).above();
}

}  // namespace detail

/// One head with its radius. `stop`, where given, abandons the run at the next token (the result is then void).
template <class Field>
class certifier {
 public:
  using value = typename Field::value;
  using radius = typename Field::radius;

  certifier(const Field& field, radius unit_roundoff, const lowered<value>& in)
      : field_{field}, u_{unit_roundoff}, in_{in}, keys_{in.scan.key_dim}, cols_{in.scan.value_dim} {
    const double n = static_cast<double>(keys_);
    gamma_ = n / (1 - n * detail::above(u_)) * detail::radius_slack;  // gamma / u
    const auto start = in.scan.start();
    state_.assign(start.entries().begin(), start.entries().end());
    error_.assign(cols_, radius(0));
    squares_.assign(cols_, radius(0));
    norm_.assign(cols_, radius(0));
    r_size_.assign(cols_, radius(0));
    w_size_.assign(cols_, radius(0));
    predict_.assign(cols_, field_.zero());
    write_.assign(cols_, field_.zero());
    for (std::size_t i = 0; i < keys_; ++i) {
      for (std::size_t v = 0; v < cols_; ++v) {
        const radius m = Field::magnitude(state_[i * cols_ + v]);
        squares_[v] += m * m;
      }
    }
    refresh_norms();
  }

  [[nodiscard]] certified<value> run(const range_limits& limits, const std::atomic<bool>* stop = nullptr) {
    const auto& s = in_.scan;
    certified<value> out;
    out.o.assign(s.tokens * cols_, field_.zero());
    out.o_radius.assign(s.tokens * cols_, 0.0);
    if constexpr (wide) out.o_bound.assign(s.tokens * cols_, wide_bound());
    for (std::size_t t = 0; t < s.tokens; ++t) {
      if (stop && stop->load(std::memory_order_relaxed)) return out;
      decay(t);
      for (std::size_t j = 0; j < s.steps_per_token; ++j) {
        step(t * s.steps_per_token + j);
        if (leaves_state_range(limits.state, out)) return diverged(std::move(out), t);
      }
      read(t, out);
      if (leaves_output_range(limits.output, t, out)) return diverged(std::move(out), t);
    }
    out.final_state = std::move(state_);
    out.state_radius.resize(cols_);
    for (std::size_t v = 0; v < cols_; ++v) out.state_radius[v] = detail::absolute_radius(error_[v], u_);
    if constexpr (wide) {
      for (std::size_t v = 0; v < cols_; ++v) out.state_bound.push_back(detail::absolute_bound(error_[v], u_));
    }
    return out;
  }

 private:
  static constexpr bool wide = std::is_same_v<radius, wide_bound>;

  void refresh_norms() {  // line N
    using std::sqrt;
    const double size = static_cast<double>(keys_);
    const double slack = 1 + (size + 8) * 0x1p-52;
    for (std::size_t v = 0; v < cols_; ++v) {
      if (squares_[v] == 0 && column_is_zero(v)) {
        norm_[v] = 0;
      } else if (!wide && squares_[v] > std::numeric_limits<double>::max()) {
        norm_[v] = scaled_norm(v);
      } else {
        norm_[v] = detail::finite_or_infinite(sqrt(squares_[v] * slack + size * Field::square_floor) * detail::radius_slack);
      }
    }
  }
  /// Line N where the squares overflow and the norm need not: entries scaled by 2^-600 first.
  [[nodiscard]] radius scaled_norm(std::size_t v) const {
    using std::sqrt;
    radius sum = 0;
    for (std::size_t i = 0; i < keys_; ++i) {
      const radius m = Field::magnitude(state_[i * cols_ + v]) * 0x1p-600;
      sum += m * m;
    }
    const double size = static_cast<double>(keys_);
    const radius norm = sqrt(sum * (1 + (size + 8) * 0x1p-52) + size * Field::square_floor) * detail::radius_slack;
    return detail::finite_or_infinite(norm * 0x1p600);
  }
  [[nodiscard]] bool column_is_zero(std::size_t v) const {
    for (std::size_t i = 0; i < keys_; ++i) {
      if (!Field::is_zero(state_[i * cols_ + v])) return false;
    }
    return true;
  }

  void decay(std::size_t t) {  // line D
    const auto& s = in_.scan;
    if (s.decay.empty()) return;
    const bool per_channel = s.decay.size() != s.tokens;
    const value* a = s.decay.data() + (per_channel ? t * keys_ : t);
    radius largest = 0;
    before_.assign(norm_.begin(), norm_.end());
    std::fill(squares_.begin(), squares_.end(), radius(0));
    for (std::size_t i = 0; i < keys_; ++i) {
      const value& ai = a[per_channel ? i : 0];
      largest = std::max(largest, radius(Field::magnitude(ai)));
      field_.decay_row(&state_[i * cols_], ai, squares_.data(), cols_);
    }
    refresh_norms();
    const radius floor = Field::decay_floor(in_.error.decay_floor, largest == 0);
    const radius factor = largest * (1 + in_.error.decay * u_) + floor * u_;
    const double local = in_.error.decay / (1 - detail::above(u_)) + 1;
    for (std::size_t v = 0; v < cols_; ++v) {
      radius e = factor * error_[v] + local * norm_[v] + floor * before_[v];
      if ((before_[v] > 0 || error_[v] > 0) && (largest > 0 || floor > 0)) e += Field::underflow_unit;
      error_[v] = detail::finite_or_infinite(e * detail::radius_slack);
    }
  }

  void step(std::size_t row) {
    const auto& s = in_.scan;
    const value* k = s.k.data() + row * keys_;
    const radius kappa = detail::norm_bound<Field>(k, keys_);
    if (kappa == 0) return;  // I - b k k^T = I and k v^T = 0, exactly
    std::fill(predict_.begin(), predict_.end(), field_.zero());
    for (std::size_t i = 0; i < keys_; ++i) field_.predict_row(predict_.data(), k[i], &state_[i * cols_], cols_);
    field_.innovation(write_.data(), r_size_.data(), w_size_.data(), s.step[row], s.v.data() + row * cols_, predict_.data(), cols_);
    std::fill(squares_.begin(), squares_.end(), radius(0));
    for (std::size_t i = 0; i < keys_; ++i) field_.update_row(&state_[i * cols_], k[i], write_.data(), squares_.data(), cols_);
    before_.assign(norm_.begin(), norm_.end());
    refresh_norms();
    carry(row, kappa);
  }

  /// Lines R, W, S, U, F for every column; before_ holds M_d, norm_ holds M_n.
  void carry(std::size_t row, const radius& kappa) {
    const lowering_error& le = in_.error;
    const value& b = in_.scan.step[row];
    const double eps_k = le.key;
    const radius floor = floor_of(row);
    const radius kappa_plus = kappa * (1 + eps_k * u_) * detail::radius_slack;
    const radius beta = Field::magnitude(b);
    const radius beta_plus = (beta * (1 + le.step * u_) + floor * u_) * detail::radius_slack;
    const radius rho = factor_bound(row, kappa_plus);
    const radius c2 = 2 * (1 + 4 * u_);
    const radius under = Field::underflow_unit * (1 + kappa_plus) * (1 + beta_plus);
    for (std::size_t v = 0; v < cols_; ++v) {
      const radius w = w_size_[v];
      const radius km = kappa * before_[v];
      const radius y = (1 + c2 * u_) * w + beta * gamma_ * u_ * km;
      const radius x = (1 + u_) * r_size_[v] + gamma_ * u_ * km;
      const radius e_w = c2 * w + beta * gamma_ * km + le.step * y + floor * x + beta_plus * eps_k * km;
      radius e = rho * error_[v] + kappa_plus * e_w + eps_k * kappa * w + (norm_[v] + kappa * w);
      if (before_[v] > 0 || (r_size_[v] > 0 && (beta > 0 || floor > 0))) e += under;
      error_[v] = detail::finite_or_infinite(e * detail::radius_slack);
    }
  }

  [[nodiscard]] radius floor_of(std::size_t row) const {
    if constexpr (wide) {
      if (!in_.step_floor.empty()) return in_.step_floor[row];
    }
    return in_.error.step_floor;
  }

  [[nodiscard]] radius factor_bound(std::size_t row, const radius& kappa_plus) const {  // line R
    const value* k = in_.scan.k.data() + row * keys_;
    const value& b = in_.scan.step[row];
    radius n = 0;
    for (std::size_t i = 0; i < keys_; ++i) {
      const radius ki = Field::magnitude(k[i]);
      n += ki * ki;
    }
    const radius x = Field::magnitude(b) * n;
    const radius off = x * ((static_cast<double>(keys_) + 16) * 0x1p-52) +
                       floor_of(row) * u_ * kappa_plus * kappa_plus + 0x1p-1000 +
                       Field::magnitude(b) * (static_cast<double>(keys_) * 0x1p-1074);
    // |1 - x|; beyond doubles 1 + x, which is as good there.
    const double plain = detail::above(x);
    const bool same = Field::is_negative(b) || plain > 0x1p1000;
    const radius away = same ? 1 + x : radius(std::fabs(1 - plain));
    const radius rho = detail::finite_or_infinite((away + off) * detail::radius_slack);
    return rho > radius(1) ? rho : radius(1);
  }

  void read(std::size_t t, certified<value>& out) {  // line O
    const value* q = in_.scan.q.data() + t * keys_;
    value* o = &out.o[t * cols_];
    double* to = &out.o_radius[t * cols_];
    const radius chi = detail::norm_bound<Field>(q, keys_);
    if (chi == 0) return;
    for (std::size_t i = 0; i < keys_; ++i) field_.read_row(o, q[i], &state_[i * cols_], cols_);
    field_.scale_row(o, in_.scale, cols_);
    const double c = std::fabs(in_.scale);
    const radius chi_plus = chi * (1 + in_.error.query * u_) * detail::radius_slack;
    for (std::size_t v = 0; v < cols_; ++v) {
      if (norm_[v] == 0 && error_[v] == 0) continue;
      radius e = Field::magnitude(o[v]) + c * ((gamma_ + in_.error.query) * chi * norm_[v] + chi_plus * error_[v]);
      e += Field::underflow_unit * (1 + c) * (1 + chi_plus);
      e = detail::finite_or_infinite(e * detail::radius_slack);
      to[v] = detail::absolute_radius(e, u_);
      if constexpr (wide) out.o_bound[t * cols_ + v] = detail::absolute_bound(e, u_);
    }
  }

  [[nodiscard]] bool leaves_state_range(double limit, certified<value>& out) const {
    bool certain = false;
    for (std::size_t v = 0; v < cols_; ++v) {
      const double e = detail::absolute_radius(error_[v], u_);
      if (norm_[v] + e <= limit) continue;
      for (std::size_t i = 0; i < keys_; ++i) certain |= exceeds(Field::approximate(state_[i * cols_ + v]), e, limit, out);
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
  double gamma_ = 0;
  std::vector<value> state_;
  std::vector<value> predict_;
  std::vector<value> write_;
  std::vector<radius> error_;   // e, in units of u
  std::vector<radius> norm_;    // bound on the norm of each column of the computed state
  std::vector<radius> before_;  // the same before the operation at hand
  std::vector<radius> squares_;
  std::vector<radius> r_size_;
  std::vector<radius> w_size_;
};

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.non_expansive.cauchy_schwarz, algebra.non_expansive.step_non_expansive, algebra.non_expansive.step_norm,
// proved: algebra.non_expansive.decay_non_expansive, algebra.non_expansive.transposed_product_norm,
// proved: algebra.error_accumulation.triangle_inequality, algebra.error_accumulation.error_accumulation,
// proved: algebra.error_accumulation.errors_only_add, algebra.error_accumulation.decayed_step_factor,
// proved: algebra.error_accumulation.delta_errors_only_add, algebra.error_accumulation.errors_add_attained,
// proved: float.formats.bf16_unit_roundoff, float.vectors.cauchy_schwarz, float.standard_model.nearest_is_a_model,
// proved: float.standard_model.gamma_bound, float.standard_model.dot_error, float.underflow.product_error,
// proved: float.standard_model.sum_of_squares_low, float.oracle_radius.factor_line, float.oracle_radius.factor_computed,
// proved: float.oracle_radius.decay_line, float.oracle_radius.read_line, float.oracle_radius.norm_line,
// proved: float.oracle_radius.token_line, float.oracle_radius.radius_unrolled, float.oracle_radius.state_radius,
// proved: float.oracle_radius.computed_expression_low, float.radius_arithmetic.floor_covers, code.constants.radius_slack_covers
