// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One head of a chunk or token kernel in plain C++, written from the text of a plan, with none of the emulator's arithmetic in
// it: `native_head(head, variant, style).run()` rounds where the variant says and makes every sum as the style says. It exists
// because a plan leaves open how a sum is made, where an elementwise factor is multiplied and what an exponential is taken
// of; limits that were tried on the emulator's own runs alone would never meet another way. Euler steps only.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/plan/plan.hpp"
#include "referee/native_style.hpp"

namespace deltaproof::testing {

/// One head. Real is the format in which sums and elementwise steps are made: float or double.
template <class Real>
class native_head {
 public:
  native_head(const head_input& in, const plan_variant& v, const native_style& style) : in_(in), v_(v), style_(style) {}

  head_output run() {
    load();
    out_.o = matrix<double>(in_.tokens(), in_.value_dim(), 0.0);
    if (v_.path == path_kind::recurrent) {
      run_tokens();
    } else {
      reserve();
      for (std::size_t first = 0; first < k_.rows(); first += v_.chunk) run_chunk(first, std::min(v_.chunk, k_.rows() - first));
    }
    out_.final_state = cast<double>(state_);
    return std::move(out_);
  }

 private:
  using rows = matrix<Real>;

  template <class To, class From>
  static matrix<To> cast(const matrix<From>& m) {
    matrix<To> out(m.rows(), m.cols());
    for (std::size_t i = 0; i < m.size(); ++i) out.data()[i] = static_cast<To>(m.data()[i]);
    return out;
  }
  static Real narrowed(Real x, const narrowing& how) { return static_cast<Real>(native_narrow(static_cast<double>(x), how)); }
  static Real narrowed(Real x, const format& to) { return narrowed(x, narrowing{to, false}); }
  static Real narrowed(Real x, const std::optional<format>& to) { return to ? narrowed(x, *to) : x; }
  static rows narrowed(rows m, const narrowing& how) {
    for (std::size_t i = 0; i < m.size(); ++i) m.data()[i] = narrowed(m.data()[i], how);
    return m;
  }
  static rows transposed(const rows& m) {
    rows out(m.cols(), m.rows());
    for (std::size_t i = 0; i < m.rows(); ++i) {
      for (std::size_t j = 0; j < m.cols(); ++j) out(j, i) = m(i, j);
    }
    return out;
  }

  /// One step of an accumulator of a format that may be narrower than Real.
  Real add(Real sum, Real x, const format& accumulate) const { return narrow_sum(sum + x, accumulate); }
  Real add_product(Real sum, Real a, Real b, const format& accumulate) const {
    return narrow_sum(style_.fused ? std::fma(a, b, sum) : sum + a * b, accumulate);
  }
  static Real narrow_sum(Real x, const format& accumulate) {
    return accumulate.precision < (std::is_same_v<Real, float> ? fp32 : fp64).precision ? narrowed(x, accumulate) : x;
  }

  Real sum_of(const std::vector<Real>& a, const std::vector<Real>& b, std::size_t first, std::size_t last, std::size_t step,
              Real sum, const format& accumulate) const {
    for (std::size_t i = first; i < last; i += step) sum = add_product(sum, a[i], b[i], accumulate);
    return sum;
  }
  Real halves(const std::vector<Real>& a, const std::vector<Real>& b, std::size_t first, std::size_t last,
              const format& accumulate) const {
    if (last - first <= 1) return first < last ? narrow_sum(a[first] * b[first], accumulate) : Real(0);
    const std::size_t middle = first + (last - first) / 2;
    return add(halves(a, b, first, middle, accumulate), halves(a, b, middle, last, accumulate), accumulate);
  }

  /// start + sum a_i b_i.
  Real dot(std::vector<Real> a, std::vector<Real> b, Real start, const format& accumulate) const {
    using enum native_style::order;
    const std::size_t n = a.size(), w = style_.width;
    std::vector<Real> parts;
    switch (style_.sums) {
      case sequential:
        return sum_of(a, b, 0, n, 1, start, accumulate);
      case backward:
      case by_size: {
        std::vector<std::size_t> at(n);
        for (std::size_t i = 0; i < n; ++i) at[i] = n - 1 - i;
        if (style_.sums == by_size) {
          const auto size = [&](std::size_t i) { return std::fmax(std::fabs(a[i] * b[i]), Real(0)); };  // of NaN 0
          std::sort(at.begin(), at.end(), [&](auto x, auto y) { return size(x) != size(y) ? size(x) > size(y) : x > y; });
        }
        for (const std::size_t i : at) start = add_product(start, a[i], b[i], accumulate);
        return start;
      }
      case pairwise:
        return add(start, halves(a, b, 0, n, accumulate), accumulate);
      case lanes:
      case lane_tree:
        for (std::size_t r = 0; r < std::min(w, n); ++r) parts.push_back(sum_of(a, b, r, n, w, 0, accumulate));
        break;
      case blocks:
        for (std::size_t first = 0; first < n; first += w)
          parts.push_back(sum_of(a, b, first, std::min(first + w, n), 1, 0, accumulate));
    }
    for (std::size_t size = parts.size(); style_.sums == lane_tree && size > 1; size = (size + 1) / 2) {
      for (std::size_t i = 0; 2 * i < size; ++i) {
        parts[i] = 2 * i + 1 < size ? add(parts[2 * i], parts[2 * i + 1], accumulate) : parts[2 * i];
      }
      parts.resize((size + 1) / 2);
    }
    for (const Real part : parts) start = add(start, part, accumulate);
    return start;
  }

  /// c + a b; of row i of a the first limit(i) columns.
  template <class Limit>
  rows times(const rows& a, const rows& b, const format& accumulate, const rows* c, Limit limit) const {
    rows out(a.rows(), b.cols(), Real(0));
    const rows columns = transposed(b);
    for (std::size_t i = 0; i < a.rows(); ++i) {
      const std::vector<Real> left(a.row(i).begin(), a.row(i).begin() + static_cast<std::ptrdiff_t>(limit(i)));
      for (std::size_t j = 0; j < b.cols(); ++j) {
        const std::vector<Real> right(columns.row(j).begin(), columns.row(j).begin() + static_cast<std::ptrdiff_t>(limit(i)));
        out(i, j) = dot(left, right, c != nullptr ? (*c)(i, j) : Real(0), accumulate);
      }
    }
    return out;
  }
  rows times(const rows& a, const rows& b, const format& accumulate) const {
    return times(a, b, accumulate, nullptr, [&](std::size_t) { return a.cols(); });
  }

  /// x in the unit of gates().
  Real power(Real x) const { return of_unit(style_.natural ? std::exp(x) : std::exp2(x)); }
  Real of_unit(Real y) const {
    for (int i = 0; i < std::abs(style_.unit_errs) && y != 1 && std::isfinite(y); ++i)
      y = std::nextafter(y, static_cast<Real>(style_.unit_errs > 0 ? 2 : -2) * y);
    return y;
  }

  void load() {
    q_ = cast<Real>(in_.q);
    k_ = cast<Real>(in_.k);
    val_ = cast<Real>(in_.v);
    state_ = cast<Real>(in_.state);
    scale_ = narrowed(static_cast<Real>(in_.scale), v_.o.scale_format);
    const bool with_norm = v_.o.scale == read_scale::l2norm && in_.qk_l2norm;
    for (rows* m : {&q_, &k_}) {
      for (std::size_t i = 0; in_.qk_l2norm && i < m->rows(); ++i) {
        const std::vector<Real> x(m->row(i).begin(), m->row(i).end());
        const Real epsilon = static_cast<Real>(v_.l2norm_epsilon);
        const Real inverse = 1 / std::sqrt(dot(x, x, 0, std::is_same_v<Real, float> ? fp32 : fp64) + epsilon);
        for (Real& y : m->row(i)) y = narrowed(with_norm && m == &q_ ? y * inverse * scale_ : y * inverse, v_.l2norm_store);
      }
    }
    if (v_.o.scale != read_scale::o) {
      for (std::size_t i = 0; !with_norm && i < q_.size(); ++i)
        q_.data()[i] = narrowed(q_.data()[i] * scale_, narrowing{v_.o.scale_store.value_or(v_.o.operand.to), false});
      scale_ = 1;
    }
    for (const double b : in_.beta) step_.push_back(narrowed(static_cast<Real>(b), v_.beta));
  }
  /// Of a row of q, k or v as it is read.
  [[nodiscard]] format row_format() const { return !in_.qk_l2norm ? in_.x : v_.l2norm_store.value_or(v_.l2norm_compute); }
  /// b times a row, in the wider of their formats.
  Real stepped(std::size_t row, Real x, const format& of_row) const {
    return narrowed(step_[row] * x, v_.beta.precision >= of_row.precision ? v_.beta : of_row);
  }

  void reserve() {
    const std::size_t R = k_.rows(), K = k_.cols(), V = val_.cols(), C = v_.chunk;
    out_.g_cumsum_log2 = matrix<double>(R, in_.g.cols(), 0.0);
    out_.A = out_.Ai = out_.Aqk = matrix<double>(R, C, 0.0);
    out_.w = matrix<double>(R, K, 0.0);
    out_.u = out_.v_new = matrix<double>(R, V, 0.0);
    out_.h = matrix<double>((R + C - 1) / C * K, V, 0.0);
  }

  void run_tokens() {
    const std::size_t n = in_.steps_per_token, K = k_.cols(), V = val_.cols();
    for (std::size_t t = 0; t < in_.tokens(); ++t) {
      for (std::size_t c = 0; c < K && in_.gated(); ++c) {
        const Real e = of_unit(std::exp(static_cast<Real>(in_.g(t, in_.channels() ? c : 0))));
        for (Real& x : state_.row(c)) x *= e;
      }
      for (std::size_t r = t * n; r < (t + 1) * n; ++r) {
        const std::vector<Real> key(k_.row(r).begin(), k_.row(r).end());
        const bool in_rows = v_.step == step_factor::rows;
        std::vector<Real> reads = key;
        for (Real& x : reads) x = in_rows ? stepped(r, x, row_format()) : x;
        for (std::size_t j = 0; j < V; ++j) {
          const Real past = dot(reads, column(state_, j), 0, v_.state.accumulate);
          const Real change = in_rows ? stepped(r, val_(r, j), in_.x) - past : step_[r] * (val_(r, j) - past);
          for (std::size_t c = 0; c < K; ++c) {
            state_(c, j) = style_.fused ? std::fma(key[c], change, state_(c, j)) : state_(c, j) + key[c] * change;
          }
        }
      }
      keep_state();
      std::vector<Real> q(q_.row(t).begin(), q_.row(t).end());
      for (Real& x : q) x = style_.scale_first ? x * scale_ : x;
      for (std::size_t j = 0; j < V; ++j) {
        const Real read = dot(q, column(state_, j), 0, v_.o.accumulate);
        out_.o(t, j) = static_cast<double>(narrowed(style_.scale_first ? read : read * scale_, v_.o.store));
      }
    }
  }
  void keep_state() {
    for (std::size_t i = 0; v_.state.between_tokens && i < state_.size(); ++i) {
      state_.data()[i] = narrowed(state_.data()[i], *v_.state.between_tokens);
    }
  }
  static std::vector<Real> column(const rows& m, std::size_t j) {
    std::vector<Real> out(m.rows());
    for (std::size_t i = 0; i < m.rows(); ++i) out[i] = m(i, j);
    return out;
  }

  static rows part(const rows& m, std::size_t first, std::size_t count) {
    rows out(count, m.cols());
    std::copy_n(m.data() + first * m.cols(), out.size(), out.data());
    return out;
  }

  /// Sums of log decays of the rows from `first` on: natural ones, or those to base 2.
  rows gates(std::size_t first, std::size_t count) const {
    const std::size_t n = in_.steps_per_token;
    const Real log2_e = style_.natural ? 1 : std::numbers::log2e_v<Real>;
    rows G(count, in_.g.cols(), Real(0));
    for (std::size_t c = 0; c < G.cols(); ++c) {
      for (std::size_t r = 0; r < count; ++r) {
        G(r, c) = (first + r) % n == 0 ? static_cast<Real>(in_.g((first + r) / n, c)) * (style_.gates_scaled_first ? log2_e : 1)
                                       : Real(0);
      }
      for (std::size_t step = 1; style_.gates_scanned && step < count; step *= 2) {
        for (std::size_t r = count; r-- > step;) G(r, c) += G(r - step, c);
      }
      for (std::size_t r = 1; !style_.gates_scanned && r < count; ++r) G(r, c) += G(r - 1, c);
      for (std::size_t r = 0; !style_.gates_scaled_first && r < count; ++r) G(r, c) *= log2_e;
    }
    return G;
  }

  Real decay(const rows& G, std::size_t i, std::size_t j, std::size_t c) const {
    return power(G(i, c) - G(j, c)) * static_cast<Real>(i == j ? 1 : style_.decay_factor);
  }

  /// <x_i, k_j> with the decay from j to the row that reads, `row_of`[i].
  Real overlap(const rows& x, std::size_t i, std::size_t row, const rows& k, std::size_t j, const rows& G,
               const narrowing& operand, const format& accumulate, const std::optional<format>& product) const {
    std::vector<Real> a(x.row(i).begin(), x.row(i).end()), b(k.row(j).begin(), k.row(j).end());
    const bool channels = in_.channels() && G.cols() > 0;
    const std::size_t block = v_.gate_block, start = row / block * block;
    std::optional<std::size_t> reference;
    const bool factored = v_.form == gate_form::factored;
    const Real shift = static_cast<Real>(v_.gate_shift * (style_.natural ? 1 : std::numbers::log2e));
    if (channels && v_.form != gate_form::difference) {
      if (v_.form == gate_form::first_block && j >= start) reference = start;
      if (v_.form == gate_form::middle_block && j >= start) reference = std::min(start + block / 2, G.rows() - 1);
      if (!factored && j < start) reference = start;
    }
    if (channels && !factored && !reference) {
      for (std::size_t c = 0; c < a.size(); ++c) a[c] *= decay(G, row, j, c);
      return narrowed(dot(a, b, 0, accumulate), product);
    }
    for (std::size_t c = 0; c < a.size(); ++c) {
      const std::size_t g = channels ? c : 0;
      if ((channels || factored) && G.cols() > 0) {
        // Blocks on the diagonal alone are shifted.
        const Real R = reference ? G(*reference, g) + (j >= start ? shift : Real(0)) : Real(0);
        a[c] *= power(G(row, g) - R) * static_cast<Real>(row == j ? 1 : style_.decay_factor);
        b[c] *= power(R - G(j, g));
      }
      a[c] = narrowed(a[c], operand);
      b[c] = narrowed(b[c], operand);
    }
    const Real sum = narrowed(dot(a, b, 0, accumulate), product);
    return channels || factored || G.cols() == 0 ? sum : sum * decay(G, row, j, 0);
  }

  // (I + L)^-1, by substitution on diagonal blocks joined by merges, or as a sum of powers by doubling.
  rows inverse(const rows& L) const {
    const std::size_t m = L.rows(), block = v_.inverse.method.block == 0 ? m : v_.inverse.method.block;
    rows X(m, m, Real(0));
    for (std::size_t first = 0; first < m; first += block) {
      const std::size_t size = std::min(block, m - first);
      if (v_.inverse.method.diagonal == diagonal_kind::neumann)
        powers(L, X, first, size);
      else
        substitute(L, X, first, size);
    }
    const bool by_right = v_.inverse.association == merge_order::sum_then_right ||
                          (v_.inverse.association == merge_order::any && style_.merges_by_right);
    for (std::size_t below = block; below < m; below += block) {
      for (std::size_t column = below; column > 0; column -= block) merge(L, X, below, column - block, block, by_right);
    }
    return X;
  }
  void between(Real& x) const {
    if (v_.inverse.between) x = narrowed(x, *v_.inverse.between);
  }
  void substitute(const rows& L, rows& X, std::size_t first, std::size_t size) const {
    for (std::size_t i = 0; i < size; ++i) {
      X(first + i, first + i) = 1;
      for (std::size_t j = 0; j < i; ++j) {
        std::vector<Real> a, b;
        for (std::size_t t = j; t < i; ++t) {
          a.push_back(-narrowed(L(first + i, first + t), v_.inverse.operand));
          b.push_back(narrowed(X(first + t, first + j), v_.inverse.operand));
        }
        X(first + i, first + j) = dot(a, b, 0, v_.inverse.accumulate);
        between(X(first + i, first + j));
      }
    }
  }
  void powers(const rows& L, rows& X, std::size_t first, std::size_t size) const {
    rows sum(size, size, Real(0)), power(size, size, Real(0));
    for (std::size_t i = 0; i < size; ++i) {
      sum(i, i) = 1;
      for (std::size_t j = 0; j < i; ++j) power(i, j) = narrowed(-L(first + i, first + j), v_.inverse.operand);
    }
    const auto all = [&](std::size_t) { return size; };
    for (std::size_t reached = 1; reached < size; reached *= 2) {
      const rows right = narrowed(power, v_.inverse.operand);
      sum = times(narrowed(sum, v_.inverse.operand), right, v_.inverse.accumulate, &sum, all);
      power = times(right, right, v_.inverse.accumulate);
      for (std::size_t i = 0; i < sum.size(); ++i) between(sum.data()[i]), between(power.data()[i]);
    }
    for (std::size_t i = 0; i < size; ++i) {
      std::copy_n(sum.row(i).begin(), i + 1, X.row(first + i).begin() + static_cast<std::ptrdiff_t>(first));
    }
  }
  /// Block (below, column) of X; next to the diagonal from the right where the plan says so.
  void merge(const rows& L, rows& X, std::size_t below, std::size_t column, std::size_t block, bool by_right) const {
    const std::size_t m = L.rows(), size = std::min(block, m - below), middle = below - column - block;
    by_right = by_right || (v_.inverse.association == merge_order::neighbours_left && middle == 0);
    const auto cut = [&](const rows& from, std::size_t r, std::size_t count, std::size_t c, std::size_t width) {
      rows out(count, width);
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < width; ++j) out(i, j) = narrowed(from(r + i, c + j), v_.inverse.merge_operand);
      }
      return out;
    };
    const rows left = by_right ? cut(X, below, size, column + block, middle + size) : cut(L, below, size, column, middle + block);
    const rows right =
        by_right ? cut(L, column + block, middle + size, column, block) : cut(X, column, middle + block, column, block);
    rows sum = times(left, right, v_.inverse.merge_accumulate);
    for (std::size_t i = 0; i < sum.size(); ++i) between(sum.data()[i]);
    sum = narrowed(sum, v_.inverse.merge_operand);
    const rows found = by_right ? times(sum, cut(X, column, block, column, block), v_.inverse.merge_accumulate)
                                : times(cut(X, below, size, below, size), sum, v_.inverse.merge_accumulate);
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < block; ++j) {
        X(below + i, column + j) = -found(i, j);
        between(X(below + i, column + j));
      }
    }
  }

  /// beta times a row in the wider of their formats, times e^G where there are gates.
  rows scaled(const rows& x, std::size_t first, const rows* G, const format& of_row, const narrowing& operand) const {
    rows out = x;
    for (std::size_t i = 0; i < x.rows(); ++i) {
      for (std::size_t c = 0; c < x.cols(); ++c) {
        Real y = stepped(first + i, x(i, c), of_row);
        if (G != nullptr && G->cols() > 0) y *= power((*G)(i, in_.channels() ? c : 0));
        out(i, c) = narrowed(y, operand);
      }
    }
    return out;
  }

  static void put(matrix<double>& to, std::size_t first, const rows& from) {
    for (std::size_t i = 0; i < from.rows(); ++i) {
      for (std::size_t j = 0; j < from.cols(); ++j) to(first + i, j) = static_cast<double>(from(i, j));
    }
  }
  static narrowing stored(const narrowing& n) { return n.to == tf32 ? narrowing{fp32, false} : n; }

  void run_chunk(std::size_t first, std::size_t m) {
    const rows k = part(k_, first, m), G = gates(first, m);
    rows A(m, m, Real(0)), left = k;
    const bool in_rows = v_.step == step_factor::rows;
    for (std::size_t i = 0; in_rows && i < m; ++i) {
      for (Real& x : left.row(i)) x = stepped(first + i, x, row_format());
    }
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Real product = overlap(left, i, i, k, j, G, v_.A.operand, v_.A.accumulate, v_.A.product_store);
        A(i, j) = narrowed(in_rows ? product : step_[first + i] * product, v_.A.store);
      }
    }
    rows Ai = inverse(A);
    for (std::size_t i = 0; i < Ai.size(); ++i) Ai.data()[i] = narrowed(Ai.data()[i], v_.inverse.store);
    const auto lower = [](std::size_t i) { return i + 1; };
    const auto transformed = [&](const plan_variant::transform& t, const rows& right) {
      return narrowed(times(narrowed(Ai, t.operand), right, t.accumulate, nullptr, lower), {t.store, false});
    };
    const rows w = transformed(v_.w, scaled(k, first, &G, row_format(), v_.w.operand));
    const rows u = transformed(v_.u, scaled(part(val_, first, m), first, nullptr, in_.x, v_.u.operand));
    const rows h = narrowed(state_, stored(v_.state.store));
    rows fresh = times(narrowed(w, v_.state.store), narrowed(h, v_.state.store), v_.state.accumulate);
    for (std::size_t i = 0; i < fresh.size(); ++i) fresh.data()[i] = u.data()[i] - fresh.data()[i];
    const rows v_new = narrowed(fresh, {v_.v_new.store, false});
    rows log2_sums = G;
    for (std::size_t i = 0; style_.natural && i < G.size(); ++i) log2_sums.data()[i] *= std::numbers::log2e_v<Real>;
    put(out_.g_cumsum_log2, first, log2_sums);
    put(out_.A, first, A);
    put(out_.Ai, first, Ai);
    put(out_.w, first, w);
    put(out_.u, first, u);
    put(out_.v_new, first, v_new);
    put(out_.h, first / v_.chunk * h.rows(), h);
    read_out(first, m, k, G, h, v_new);
    update(k, G, v_.v_new.update == update_source::stored ? v_new : fresh);
  }

  void read_out(std::size_t first, std::size_t m, const rows& k, const rows& G, const rows& h, const rows& v_new) {
    const std::size_t n = in_.steps_per_token, V = val_.cols(), K = k.cols();
    const bool channels = in_.channels() && G.cols() > 0;
    const bool on_query = channels || (v_.o.decay == read_decay::q && G.cols() > 0);
    const rows state = transposed(narrowed(h, v_.o.operand)), values = transposed(narrowed(v_new, v_.o.operand));
    for (std::size_t r = 0; r < m; ++r) {
      if ((first + r) % n != n - 1) continue;
      const std::size_t t = (first + r) / n;
      const rows q = part(q_, t, 1);
      std::vector<Real> weights(r + 1), query(K);
      for (std::size_t j = 0; j <= r; ++j) {
        const Real sum = overlap(q, 0, r, k, j, G, channels ? v_.A.operand : v_.o.operand, v_.o.accumulate, v_.o.product_store);
        weights[j] = narrowed(channels ? narrowed(sum * scale_, stored(v_.o.operand)) : sum, v_.o.operand);
        if (channels) out_.Aqk(first + r, j) = static_cast<double>(narrowed(sum * scale_, stored(v_.o.operand)));
      }
      for (std::size_t c = 0; c < K; ++c)
        query[c] = narrowed(on_query ? q(0, c) * power(G(r, channels ? c : 0)) : q(0, c), v_.o.operand);
      for (std::size_t j = 0; j < V; ++j) {
        Real past = dot(query, {state.row(j).begin(), state.row(j).end()}, 0, v_.o.accumulate);
        past = narrowed(past, v_.o.read_store);
        const auto fresh = values.row(j).begin();
        const Real inside = dot(weights, {fresh, fresh + static_cast<std::ptrdiff_t>(r + 1)}, 0, v_.o.accumulate);
        if (G.cols() > 0 && !on_query) past *= power(G(r, 0));
        const Real o = channels             ? past * scale_ + inside
                       : style_.scale_first ? past * scale_ + inside * scale_
                                            : (past + inside) * scale_;
        out_.o(t, j) = static_cast<double>(narrowed(o, v_.o.store));
      }
    }
  }

  // S <- e^{G_C} S + k^T v_new, the decay to the end of the chunk on v_new, or on the keys where the plan says so or it has
  // channels.
  void update(rows keys, const rows& G, rows values) {
    const std::size_t m = keys.rows();
    const bool channels = in_.channels(), on_keys = channels || v_.v_new.decay == write_decay::k;
    for (std::size_t r = 0; r < m; ++r) {
      if (G.cols() > 0 && on_keys) {
        for (std::size_t c = 0; c < keys.cols(); ++c) keys(r, c) *= power(G(m - 1, channels ? c : 0) - G(r, channels ? c : 0));
      } else if (G.cols() > 0) {
        const Real e = power(G(m - 1, 0) - G(r, 0));
        for (Real& x : values.row(r)) x *= e;
      }
    }
    for (std::size_t c = 0; c < state_.rows() && G.cols() > 0; ++c) {
      const Real e = power(G(m - 1, channels ? c : 0));
      for (Real& x : state_.row(c)) x *= e;
    }
    const rows left = transposed(narrowed(keys, v_.v_new.key_operand.value_or(v_.v_new.update_operand)));
    const rows right = narrowed(values, v_.v_new.update_operand);
    if (style_.state_last) {
      const rows sum = times(left, right, v_.state.accumulate);
      for (std::size_t i = 0; i < state_.size(); ++i) state_.data()[i] += sum.data()[i];
    } else {
      state_ = times(left, right, v_.state.accumulate, &state_, [&](std::size_t) { return m; });
    }
    keep_state();
  }

  const head_input& in_;
  const plan_variant& v_;
  const native_style& style_;
  rows q_, k_, val_, state_;
  std::vector<Real> step_;
  Real scale_ = 1;
  head_output out_;
};

}  // namespace deltaproof::testing
