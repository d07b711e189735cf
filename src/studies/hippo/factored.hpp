// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gaussian elimination over any scalar with + - * / and <, for small systems: A x = b and
// A X = B. Rounds: as the scalar does, no refinement, no error bound.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof::detail::hippo {

/// P A = L U, the largest entry of the column as pivot. Throws: domain_error where a pivot is 0.
template <class R>
class factored {
 public:
  explicit factored(matrix<R> a) : lu_(std::move(a)), row_(lu_.rows()) {
    const std::size_t n = lu_.rows();
    for (std::size_t i = 0; i < n; ++i) row_[i] = i;
    for (std::size_t j = 0; j < n; ++j) {
      std::size_t pivot = j;
      for (std::size_t i = j + 1; i < n; ++i) {
        if (size(lu_(i, j)) > size(lu_(pivot, j))) pivot = i;
      }
      if (lu_(pivot, j) == zero<R>()) {
        throw domain_error("factored: the " + shape_text(lu_) + " matrix is singular: no pivot in column " + std::to_string(j));
      }
      if (pivot != j) {
        for (std::size_t c = 0; c < n; ++c) std::swap(lu_(j, c), lu_(pivot, c));
        std::swap(row_[j], row_[pivot]);
      }
      for (std::size_t i = j + 1; i < n; ++i) {
        lu_(i, j) = lu_(i, j) / lu_(j, j);
        for (std::size_t c = j + 1; c < n; ++c) lu_(i, c) = lu_(i, c) - lu_(i, j) * lu_(j, c);
      }
    }
  }

  /// A^-1 b.
  [[nodiscard]] std::vector<R> solve(const std::vector<R>& b) const {
    const std::size_t n = lu_.rows();
    std::vector<R> x(n);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = b[row_[i]];
      for (std::size_t c = 0; c < i; ++c) x[i] = x[i] - lu_(i, c) * x[c];
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t c = i + 1; c < n; ++c) x[i] = x[i] - lu_(i, c) * x[c];
      x[i] = x[i] / lu_(i, i);
    }
    return x;
  }

  /// A^-1 B, column by column.
  [[nodiscard]] matrix<R> solve(const matrix<R>& b) const {
    matrix<R> result(b.rows(), b.cols());
    for (std::size_t j = 0; j < b.cols(); ++j) {
      std::vector<R> column(b.rows());
      for (std::size_t i = 0; i < b.rows(); ++i) column[i] = b(i, j);
      column = solve(column);
      for (std::size_t i = 0; i < b.rows(); ++i) result(i, j) = column[i];
    }
    return result;
  }

 private:
  static R size(const R& x) { return x < zero<R>() ? R(-x) : x; }

  matrix<R> lu_;
  std::vector<std::size_t> row_;
};

}  // namespace deltaproof::detail::hippo
