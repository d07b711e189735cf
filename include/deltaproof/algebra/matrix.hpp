// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Holds a dense matrix of any scalar: `matrix<S> m(rows, cols)`, m(i, j), m.row(i) as a span, identity,
// transpose, ==. Shapes: row-major, rows x cols, either may be 0; new entries are S{}, which is 0 for
// every scalar of this library. There are no arithmetic operators on purpose: each sum under study names
// its order and formats through arithmetic.hpp, so nothing here rounds.
#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "deltaproof/number/scalar.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// Row-major rows x cols matrix that owns its entries.
template <class S>
class matrix {
 public:
  using value_type = S;

  /// The 0 x 0 matrix.
  matrix() = default;

  /// rows x cols entries equal to `fill`. Throws: shape_error where their number exceeds std::size_t.
  matrix(std::size_t rows, std::size_t cols, const S& fill = S{}) : rows_{rows}, cols_{cols}, entries_(count(rows, cols), fill) {}

  /// Entries given row after row. Throws: shape_error unless there are rows * cols of them.
  matrix(std::size_t rows, std::size_t cols, std::vector<S> entries) : rows_{rows}, cols_{cols}, entries_(std::move(entries)) {
    if (entries_.size() != count(rows, cols)) {
      throw shape_error("matrix: " + std::to_string(rows) + " x " + std::to_string(cols) + " needs " +
                        std::to_string(count(rows, cols)) + " entries, got " + std::to_string(entries_.size()));
    }
  }

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t cols() const noexcept { return cols_; }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

  [[nodiscard]] S& operator()(std::size_t i, std::size_t j) noexcept {
    assert(i < rows_ && j < cols_);
    return entries_[i * cols_ + j];
  }
  [[nodiscard]] const S& operator()(std::size_t i, std::size_t j) const noexcept {
    assert(i < rows_ && j < cols_);
    return entries_[i * cols_ + j];
  }

  /// Row i, cols() entries side by side.
  [[nodiscard]] std::span<S> row(std::size_t i) noexcept {
    assert(i < rows_);
    return std::span<S>(entries_).subspan(i * cols_, cols_);
  }
  [[nodiscard]] std::span<const S> row(std::size_t i) const noexcept {
    assert(i < rows_);
    return std::span<const S>(entries_).subspan(i * cols_, cols_);
  }

  /// All entries, row after row.
  [[nodiscard]] std::span<S> entries() noexcept { return entries_; }
  [[nodiscard]] std::span<const S> entries() const noexcept { return entries_; }
  [[nodiscard]] S* data() noexcept { return entries_.data(); }
  [[nodiscard]] const S* data() const noexcept { return entries_.data(); }

  /// Same shape and entries equal by S's own ==: NaN differs from itself, -0 equals +0.
  [[nodiscard]] friend bool operator==(const matrix& a, const matrix& b) {
    if (a.rows_ != b.rows_ || a.cols_ != b.cols_) return false;
    for (std::size_t i = 0; i < a.entries_.size(); ++i) {
      if (!(a.entries_[i] == b.entries_[i])) return false;
    }
    return true;
  }

 private:
  static std::size_t count(std::size_t rows, std::size_t cols) {
    if (cols != 0 && rows > static_cast<std::size_t>(-1) / cols) {
      throw shape_error("matrix: " + std::to_string(rows) + " x " + std::to_string(cols) +
                        " entries are more than can be counted; give smaller dimensions");
    }
    return rows * cols;
  }

  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  std::vector<S> entries_;
};

/// The n x n identity.
template <class S>
[[nodiscard]] matrix<S> identity(std::size_t n) {
  matrix<S> result(n, n);
  for (std::size_t i = 0; i < n; ++i) result(i, i) = one<S>();
  return result;
}

/// result(j, i) = m(i, j). Shapes: rows x cols -> cols x rows.
template <class S>
[[nodiscard]] matrix<S> transpose(const matrix<S>& m) {
  matrix<S> result(m.cols(), m.rows());
  // Tiles that fit registers: columns of a large matrix are too far apart for the nearest cache.
  constexpr std::size_t side = std::is_trivially_copyable_v<S> ? 4 : 1;
  const std::size_t rows = m.rows() / side * side, cols = m.cols() / side * side;
  for (std::size_t top = 0; top < rows; top += side) {
    for (std::size_t left = 0; left < cols; left += side) {
      S tile[side][side];
      for (std::size_t i = 0; i < side; ++i) {
        for (std::size_t j = 0; j < side; ++j) tile[j][i] = m(top + i, left + j);
      }
      for (std::size_t j = 0; j < side; ++j) {
        for (std::size_t i = 0; i < side; ++i) result(left + j, top + i) = tile[j][i];
      }
    }
  }
  for (std::size_t i = 0; i < m.rows(); ++i) {
    for (std::size_t j = i < rows ? cols : 0; j < m.cols(); ++j) result(j, i) = m(i, j);
  }
  return result;
}

/// "rows x cols", for messages.
template <class S>
[[nodiscard]] std::string shape_text(const matrix<S>& m) {
  return std::to_string(m.rows()) + " x " + std::to_string(m.cols());
}

}  // namespace deltaproof
