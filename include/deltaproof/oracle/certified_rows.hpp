// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A K x V matrix that decays, takes rank-one writes and steps of the delta rule, with a bound on the error of each column carried
// beside it: the state of the forward recurrence, and its cotangent in reverse. Derivation, line by line:
// proofs/notes/oracle-radius.md; the letters D W S R A N U F below are its lines. A `Field` supplies the arithmetic of rows (fp64
// here, MPFR in src/) and the numbers of the radius, in units of its u, inflated so that their own rounding is covered: doubles,
// or `wide_bound`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include "deltaproof/oracle/lower.hpp"
#include "deltaproof/oracle/wide_bound.hpp"

namespace deltaproof {

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
  /// Each term meets at most n roundings, whatever the order.
  [[nodiscard]] static value dot(const value* a, const value* b, std::size_t n) {
    constexpr std::size_t lanes = 8;
    double sums[lanes] = {};
    std::size_t v = 0;
    for (; v + lanes <= n; v += lanes) {
      for (std::size_t j = 0; j < lanes; ++j) sums[j] += a[v + j] * b[v + j];
    }
    double sum = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
    for (; v < n; ++v) sum += a[v] * b[v];
    return sum;
  }
  static void subtract(value* out, const value* a, const value* b, std::size_t n) {
    for (std::size_t v = 0; v < n; ++v) out[v] = a[v] - b[v];
  }
  [[nodiscard]] static value sum(value a, value b) { return a + b; }
  [[nodiscard]] static value product(value a, value b) { return a * b; }
  [[nodiscard]] static value negated(value a) { return -a; }
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

/// eta_b of one step, in units of u.
template <class Field>
[[nodiscard]] typename Field::radius step_floor_of(const lowered<typename Field::value>& in, std::size_t row) {
  if constexpr (std::is_same_v<typename Field::radius, wide_bound>) {
    if (!in.step_floor.empty()) return in.step_floor[row];
  }
  return in.error.step_floor;
}

}  // namespace detail

/// What lines R, W and S need of one step.
template <class Radius>
struct step_bounds {
  Radius key, key_plus, step, step_plus, factor, floor, under;  ///< kappa, kappa+, beta, beta+, rho, eta_b / u, line U
  double key_error = 0, step_error = 0;                         ///< eps_k, eps_b, in units of u
};

template <class Field>
class certified_rows {
 public:
  using value = typename Field::value;
  using radius = typename Field::radius;

  /// Starts from `entries`, K x V, exact.
  certified_rows(const Field& field, radius unit_roundoff, std::size_t keys, std::size_t cols, std::vector<value> entries)
      : field_{field}, u_{unit_roundoff}, keys_{keys}, cols_{cols}, gamma_{gamma(keys)}, state_{std::move(entries)} {
    for (auto* bounds : {&error_, &norm_, &before_, &squares_, &innovation_size_, &write_size_}) bounds->assign(cols_, radius(0));
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

  /// Column v becomes x, known to within `error`.
  void start_column(std::size_t v, const value* x, const radius& error) {
    for (std::size_t i = 0; i < keys_; ++i) state_[i * cols_ + v] = x[i];
    norm_[v] = detail::norm_bound<Field>(x, keys_);
    error_[v] = error;
  }

  [[nodiscard]] std::vector<value>& entries() { return state_; }
  [[nodiscard]] const std::vector<value>& entries() const { return state_; }
  [[nodiscard]] const value* row(std::size_t i) const { return &state_[i * cols_]; }
  [[nodiscard]] const std::vector<radius>& error() const { return error_; }        ///< of each column, in units of u
  [[nodiscard]] const std::vector<radius>& norm() const { return norm_; }          ///< at least that of each computed column
  [[nodiscard]] const std::vector<value>& prediction() const { return predict_; }  ///< of the last `predict`: k^T S
  [[nodiscard]] const std::vector<value>& written() const { return write_; }       ///< of the last `innovate`: b (v - k^T S)
  [[nodiscard]] const std::vector<radius>& innovation_size() const { return innovation_size_; }
  [[nodiscard]] const std::vector<radius>& write_size() const { return write_size_; }
  /// n u / (1 - n u) in units of u, rounded up: the error of a sum of n products.
  [[nodiscard]] double gamma(std::size_t count) const {
    const double n = static_cast<double>(count);
    return n / (1 - n * detail::above(u_)) * detail::radius_slack;
  }

  void decay(const value* a, bool per_channel, const lowering_error& le) {  // line D
    radius largest = 0;
    before_.assign(norm_.begin(), norm_.end());
    std::fill(squares_.begin(), squares_.end(), radius(0));
    for (std::size_t i = 0; i < keys_; ++i) {
      const value& ai = a[per_channel ? i : 0];
      largest = std::max(largest, radius(Field::magnitude(ai)));
      field_.decay_row(&state_[i * cols_], ai, squares_.data(), cols_);
    }
    refresh_norms();
    const radius floor = Field::decay_floor(le.decay_floor, largest == 0);
    const radius factor = largest * (1 + le.decay * u_) + floor * u_;
    const double local = le.decay / (1 - detail::above(u_)) + 1;
    for (std::size_t v = 0; v < cols_; ++v) {
      radius e = factor * error_[v] + local * norm_[v] + floor * before_[v];
      if ((before_[v] > 0 || error_[v] > 0) && (largest > 0 || floor > 0)) e += Field::underflow_unit;
      error_[v] = detail::finite_or_infinite(e * detail::radius_slack);
    }
  }

  /// Of the step with key k, |k| <= kappa, and strength b.
  [[nodiscard]] step_bounds<radius> bounds_of(const value* k, const value& b, const radius& kappa, const lowering_error& le,
                                              const radius& floor) const {
    step_bounds<radius> s;
    s.key = kappa;
    s.key_plus = kappa * (1 + le.key * u_) * detail::radius_slack;
    s.step = Field::magnitude(b);
    s.step_plus = (s.step * (1 + le.step * u_) + floor * u_) * detail::radius_slack;
    s.floor = floor;
    s.factor = factor_bound(k, b, s);
    s.under = Field::underflow_unit * (1 + s.key_plus) * (1 + s.step_plus);
    s.key_error = le.key;
    s.step_error = le.step;
    return s;
  }

  /// k^T S.
  void predict(const value* k) {
    std::fill(predict_.begin(), predict_.end(), field_.zero());
    for (std::size_t i = 0; i < keys_; ++i) field_.predict_row(predict_.data(), k[i], &state_[i * cols_], cols_);
  }
  /// b (v - k^T S), after `predict`.
  void innovate(const value* v, const value& b) {
    field_.innovation(write_.data(), innovation_size_.data(), write_size_.data(), b, v, predict_.data(), cols_);
  }
  /// S <- S + k w, after `innovate`.
  void update(const value* k, const step_bounds<radius>& s) {  // lines W, S
    write_rows(k, write_.data());
    for (std::size_t v = 0; v < cols_; ++v) {
      const radius w = write_size_[v];
      const radius e_w = write_error(v, s, before_[v]);
      radius e = s.factor * error_[v] + s.key_plus * e_w + s.key_error * s.key * w + (norm_[v] + s.key * w);
      if (before_[v] > 0 || (innovation_size_[v] > 0 && (s.step > 0 || s.floor > 0))) e += s.under;
      error_[v] = detail::finite_or_infinite(e * detail::radius_slack);
    }
  }
  /// S <- S + q d^T, where d is the result of one rounding, `size` at least its magnitude, and q of an error of `query_error` u.
  void add_outer(const value* q, const value* d, const radius* size, double query_error) {  // line A
    const radius chi = detail::norm_bound<Field>(q, keys_);
    if (chi == radius(0)) return;
    write_rows(q, d);
    for (std::size_t v = 0; v < cols_; ++v) {
      if (size[v] == radius(0)) continue;
      const radius e = error_[v] + norm_[v] + (3 + 2 * query_error) * chi * size[v] + Field::underflow_unit * (1 + chi);
      error_[v] = detail::finite_or_infinite(e * detail::radius_slack);
    }
  }
  /// Line W: how far the write of column v is from b (v - k^T S) of the computed S, whose column's norm was `norm`.
  [[nodiscard]] radius write_error(std::size_t v, const step_bounds<radius>& s, const radius& norm) const {
    const radius c2 = 2 * (1 + 4 * u_);
    const radius w = write_size_[v];
    const radius km = s.key * norm;
    const radius y = (1 + c2 * u_) * w + s.step * gamma_ * u_ * km;
    const radius x = (1 + u_) * innovation_size_[v] + gamma_ * u_ * km;
    return c2 * w + s.step * gamma_ * km + s.step_error * y + s.floor * x + s.step_plus * s.key_error * km;
  }

 protected:
  void write_rows(const value* k, const value* w) {
    std::fill(squares_.begin(), squares_.end(), radius(0));
    for (std::size_t i = 0; i < keys_; ++i) field_.update_row(&state_[i * cols_], k[i], w, squares_.data(), cols_);
    before_.assign(norm_.begin(), norm_.end());
    refresh_norms();
  }

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

  [[nodiscard]] radius factor_bound(const value* k, const value& b, const step_bounds<radius>& s) const {  // line R
    radius n = 0;
    for (std::size_t i = 0; i < keys_; ++i) {
      const radius ki = Field::magnitude(k[i]);
      n += ki * ki;
    }
    const radius x = s.step * n;
    const radius off = x * ((static_cast<double>(keys_) + 16) * 0x1p-52) + s.floor * u_ * s.key_plus * s.key_plus + 0x1p-1000 +
                       s.step * (static_cast<double>(keys_) * 0x1p-1074);
    // |1 - x|; beyond doubles 1 + x, which is as good there.
    const double plain = detail::above(x);
    const bool same = Field::is_negative(b) || plain > 0x1p1000;
    const radius away = same ? 1 + x : radius(std::fabs(1 - plain));
    const radius rho = detail::finite_or_infinite((away + off) * detail::radius_slack);
    return rho > radius(1) ? rho : radius(1);
  }

  Field field_;
  radius u_;
  std::size_t keys_;
  std::size_t cols_;
  double gamma_;
  std::vector<value> state_;
  std::vector<value> predict_;
  std::vector<value> write_;
  std::vector<radius> error_;
  std::vector<radius> norm_;
  std::vector<radius> before_;  // the norms before the operation at hand
  std::vector<radius> squares_;
  std::vector<radius> innovation_size_;
  std::vector<radius> write_size_;
};

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.non_expansive.step_non_expansive, algebra.non_expansive.step_norm, algebra.non_expansive.decay_non_expansive,
// proved: algebra.error_accumulation.decayed_step_factor, float.standard_model.sum_of_squares_low,
// proved: float.oracle_radius.factor_line, float.oracle_radius.factor_computed, float.oracle_radius.decay_line,
// proved: float.oracle_radius.norm_line, code.constants.radius_slack_covers
