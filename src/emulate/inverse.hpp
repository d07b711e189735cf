// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// (I + A)^-1 as a variant says: diagonal blocks by substitution or by a sum of powers, joined by products of blocks.
#pragma once

#include <limits>

#include "emulate/machine.hpp"

namespace deltaproof::emulation_detail {

template <class Real>
class inversion {
 public:
  /// L: strictly lower, n x n. `seen` is raised to the largest magnitude of what is formed on the way. `noise`: where each sum
  /// starts is drawn from it; null: with its first term. `cut`: the parts that a planted fault rounds to bf16; null: none.
  /// `any_order`: as emulation_options::in_any_order.
  inversion(const matrix<Real>& lower, const plan_variant& plan, sum_rule rule, double& seen, philox* noise,
            bool (*cut)(const inverse_part&), bool any_order)
      : L_{lower},
        plan_{plan},
        rule_{rule},
        seen_{seen},
        noise_{noise},
        cut_{cut},
        any_order_{any_order},
        X_(lower.rows(), lower.rows(), Real(0)) {}

  matrix<Real> run() {
    const std::size_t n = L_.rows();
    const std::size_t block = plan_.inverse.method.block == 0 ? n : plan_.inverse.method.block;
    for (std::size_t first = 0; first < n; first += block) {
      const std::size_t size = std::min(block, n - first);
      switch (plan_.inverse.method.diagonal) {
        case diagonal_kind::neumann:
          powers(first, size);
          break;
        case diagonal_kind::forward:
          substitute(first, size);
          break;
        case diagonal_kind::split:
          halves(first, size);
          break;
      }
      matrix<Real> finished = block_of(X_, first, first, size, size);
      finish(finished.entries(), {first, first, size, size});
      write(first, first, finished);
    }
    if (plan_.inverse.method.merge == merge_kind::block2) {
      for (std::size_t size = block; size < n; size *= 2) {
        for (std::size_t first = 0; first + size < n; first += 2 * size) join_two(first, size, std::min(size, n - first - size));
      }
    } else if (block < n) {
      join_all(block);
    }
    return std::move(X_);
  }

 private:
  // X_i = e_i - sum_{m<i} L_im X_m, row after row. Rows are as wide as whole tiles of products, which need no copies then.
  void substitute(std::size_t first, std::size_t size) {
    constexpr std::size_t tile = 32;
    matrix<Real> above(size, (size + tile - 1) / tile * tile, Real(0)), factors(1, size), row(1, above.cols());
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t m = 0; m < i; ++m) factors(0, m) = -L_(first + i, first + m);
      narrow(factors.row(0).first(i), plan_.inverse.operand);
      std::fill(row.entries().begin(), row.entries().end(), Real(0));
      add_product({factors.data(), size, above.data(), above.cols(), row.data(), row.cols(), 1, i, row.cols()},
                  plan_.inverse.operand.to, plan_.inverse.accumulate);
      row(0, i) = 1;
      keep(row.row(0).first(size));
      finish(row.row(0).first(size), {first + i, first, 1, size});
      std::copy_n(row.data(), i + 1, X_.row(first + i).data() + first);
      std::copy_n(row.data(), i + 1, above.row(i).data());
      narrow(above.row(i).first(i + 1), plan_.inverse.operand);
    }
  }

  // S <- S + S G, G <- G^2, from S = I, G = -L.
  void powers(std::size_t first, std::size_t size) {
    matrix<Real> sum(size, size, Real(0)), power(size, size, Real(0));
    for (std::size_t i = 0; i < size; ++i) {
      sum(i, i) = 1;
      for (std::size_t j = 0; j < i; ++j) power(i, j) = narrowed(-L_(first + i, first + j), plan_.inverse.operand);
    }
    for (std::size_t reached = 1; reached < size; reached *= 2) {
      const matrix<Real> left = operand(sum), right = operand(power);
      add_product(sum, left, right, plan_.inverse.operand.to, plan_.inverse.accumulate);
      keep(sum);
      if (2 * reached >= size) break;
      matrix<Real> square(size, size, Real(0));
      add_product(square, right, right, plan_.inverse.operand.to, plan_.inverse.accumulate);
      keep(square);
      power = std::move(square);
    }
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j <= i; ++j) X_(first + i, first + j) = sum(i, j);
    }
  }

  void halves(std::size_t first, std::size_t size) {
    if (size == 1) {
      X_(first, first) = 1;
      return;
    }
    const std::size_t half = size / 2;
    halves(first, half);
    halves(first + half, size - half);
    join_two(first, half, size - half);
  }

  // X_21 = -X_22 (L_21 X_11).
  void join_two(std::size_t first, std::size_t top, std::size_t bottom) {
    const std::size_t below = first + top;
    const matrix<Real> inner = merged(block_of(L_, below, first, bottom, top), block_of(X_, first, first, top, top));
    write_merged(below, first, negative(merged(block_of(X_, below, below, bottom, bottom), inner)));
  }

  // X_ij = -X_ii (sum_{j<=m<i} L_im X_mj) or -(sum_{j<m<=i} X_im L_mj) X_jj; where the plan allows any, as fla does: the second
  // for blocks next to the diagonal.
  void join_all(std::size_t block) {
    const std::size_t n = L_.rows(), blocks = (n + block - 1) / block;
    const auto size = [&](std::size_t b) { return std::min(block, n - b * block); };
    for (std::size_t distance = 1; distance < blocks; ++distance) {
      for (std::size_t i = distance; i < blocks; ++i) {
        const std::size_t j = i - distance;
        const matrix<Real> diagonal = block_of(X_, i * block, i * block, size(i), size(i));
        const bool by_right = plan_.inverse.association == merge_order::sum_then_right ||
                              (plan_.inverse.association != merge_order::sum_then_left && distance == 1);
        matrix<Real> sum(size(i), size(j), Real(0));
        for (std::size_t m = j; m < i; ++m) {
          const std::size_t inner = by_right ? m + 1 : m;
          add_product(sum, merge_operand(block_of(by_right ? X_ : L_, i * block, inner * block, size(i), size(inner))),
                      merge_operand(block_of(by_right ? L_ : X_, inner * block, j * block, size(inner), size(j))),
                      plan_.inverse.merge_operand.to, plan_.inverse.merge_accumulate);
        }
        keep(sum);
        write_merged(
            i * block, j * block,
            negative(by_right ? merged(sum, block_of(X_, j * block, j * block, size(j), size(j))) : merged(diagonal, sum)));
      }
    }
  }

  [[nodiscard]] matrix<Real> operand(matrix<Real> m) const {
    narrow(std::span<Real>(m.data(), m.size()), plan_.inverse.operand);
    return m;
  }
  [[nodiscard]] matrix<Real> merge_operand(matrix<Real> m) const {
    narrow(std::span<Real>(m.data(), m.size()), plan_.inverse.merge_operand);
    return m;
  }
  [[nodiscard]] matrix<Real> merged(const matrix<Real>& a, const matrix<Real>& b) {
    matrix<Real> out(a.rows(), b.cols(), Real(0));
    add_product(out, merge_operand(a), merge_operand(b), plan_.inverse.merge_operand.to, plan_.inverse.merge_accumulate);
    keep(out);
    return out;
  }
  void add_product(matrix<Real>& out, const matrix<Real>& a, const matrix<Real>& b, const format& operand,
                   const format& accumulate) const {
    add_product({a.data(), a.cols(), b.data(), b.cols(), out.data(), out.cols(), a.rows(), a.cols(), b.cols()}, operand,
                accumulate);
  }
  void add_product(const product<Real>& p, const format& operand, const format& accumulate) const {
    const sum_rule rule = rule_for(rule_, operand, accumulate);
    if (any_order_) return multiply_in_any_order(p, rule);
    const std::size_t start = noise_ != nullptr ? drawn_start(p.inner, rule, *noise_) : 0;
    if (start % 2 == 1 && rule.order != sum_order::tensor_core) {
      multiply_in_two_lanes(p, rule);
    } else {
      multiply_from(p, start, rule);
    }
  }
  /// What was just formed: its size is noted, and it is rounded where the plan rounds between steps.
  void keep(std::span<Real> formed) {
    for (const Real x : formed) {
      const double size = std::fabs(static_cast<double>(x));
      if (!(size <= seen_)) seen_ = seen_ != seen_ ? seen_ : size;
    }
    if (plan_.inverse.between) narrow(formed, {*plan_.inverse.between, false});
  }
  void keep(matrix<Real>& m) { keep(m.entries()); }
  void finish(std::span<Real> formed, const inverse_part& part) const {
    if (cut_ != nullptr && cut_(part)) narrow(formed, {bf16, false});
  }
  [[nodiscard]] static matrix<Real> block_of(const matrix<Real>& m, std::size_t row, std::size_t col, std::size_t rows,
                                             std::size_t cols) {
    matrix<Real> out(rows, cols);
    for (std::size_t i = 0; i < rows; ++i)
      std::copy_n(m.row(row + i).begin() + static_cast<std::ptrdiff_t>(col), cols, out.row(i).begin());
    return out;
  }
  [[nodiscard]] static matrix<Real> negative(matrix<Real> m) {
    for (std::size_t i = 0; i < m.size(); ++i) m.data()[i] = -m.data()[i];
    return m;
  }
  void write_merged(std::size_t row, std::size_t col, matrix<Real> m) {
    finish(m.entries(), {row, col, m.rows(), m.cols()});
    write(row, col, m);
  }
  void write(std::size_t row, std::size_t col, const matrix<Real>& m) {
    for (std::size_t i = 0; i < m.rows(); ++i)
      std::copy(m.row(i).begin(), m.row(i).end(), X_.row(row + i).begin() + static_cast<std::ptrdiff_t>(col));
  }

  const matrix<Real>& L_;
  const plan_variant& plan_;
  sum_rule rule_;
  double& seen_;
  philox* noise_;
  bool (*cut_)(const inverse_part&);
  bool any_order_;
  matrix<Real> X_;
};

template <class Real>
matrix<Real> cast(const matrix<double>& m) {
  return {m.rows(), m.cols(), std::vector<Real>(m.entries().begin(), m.entries().end())};
}

template <class Real>
void machine<Real>::invert(chunk_state<Real>& c) {
  matrix<Real> lower(c.rows, c.rows, Real(0));
  for (std::size_t r = 0; r < c.rows; ++r) std::copy_n(c.A.row(r).begin(), r, lower.row(r).begin());
  double& seen = range_[static_cast<std::size_t>(formed::inverse_intermediate)];
  matrix<Real> inverse;
  philox* const noise = options_.noise_ulps > 0 ? &noise_ : nullptr;
  if (site_.plan.inverse.accumulate.precision > std::numeric_limits<Real>::digits) {
    inverse =
        cast<Real>(inversion<double>(widened(lower), site_.plan, rule_, seen, noise, site_.cut, options_.in_any_order).run());
  } else {
    inverse = inversion<Real>(lower, site_.plan, rule_, seen, noise, site_.cut, options_.in_any_order).run();
  }
  disturb({inverse.data(), inverse.size()});
  for (std::size_t r = 0; r < c.rows; ++r)
    inverse(r, r) = options_.noise_ulps > 1 ? Real(1) : inverse(r, r);  // a sum of one term
  see(formed::inverse, inverse);
  narrow(std::span<Real>(inverse.data(), inverse.size()), {site_.plan.inverse.read.value_or(site_.plan.inverse.store), false});
  c.Ai = matrix<Real>(c.rows, c.full_rows, Real(0));
  for (std::size_t r = 0; r < c.rows; ++r) std::copy(inverse.row(r).begin(), inverse.row(r).end(), c.Ai.row(r).begin());
}

}  // namespace deltaproof::emulation_detail
