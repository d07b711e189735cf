// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The right-hand sides of identities: plain dense algebra over a field, and what a sequence stands for, factor by
// factor. Nothing here is shared with the library's scan and inverses: it reads a sequence by its own indices, has its
// own product, and eliminates with pivots. Slow on purpose. Shapes: states (K, V), so factors multiply from the left.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof::testing::dense {

/// What an implementation returns may have any shape: a wrong one ends the identity, by shape_error, not the program.
inline void require(bool fits) {
  if (!fits) throw shape_error("dense: shapes that do not fit together");
}

template <class S>
[[nodiscard]] matrix<S> zeros(std::size_t rows, std::size_t cols) {
  return matrix<S>(rows, cols, zero<S>());
}

template <class S>
[[nodiscard]] matrix<S> unit(std::size_t n) {
  auto result = zeros<S>(n, n);
  for (std::size_t i = 0; i < n; ++i) result(i, i) = one<S>();
  return result;
}

template <class S>
[[nodiscard]] matrix<S> times(const matrix<S>& a, const matrix<S>& b) {
  require(a.cols() == b.rows());
  auto result = zeros<S>(a.rows(), b.cols());
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t m = 0; m < a.cols(); ++m) {
      if (a(i, m) == zero<S>()) continue;
      for (std::size_t j = 0; j < b.cols(); ++j) result(i, j) = result(i, j) + a(i, m) * b(m, j);
    }
  }
  return result;
}

/// a + f b.
template <class S>
[[nodiscard]] matrix<S> sum(matrix<S> a, const matrix<S>& b, const S& f = one<S>()) {
  require(a.rows() == b.rows() && a.cols() == b.cols());
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = a.data()[i] + f * b.data()[i];
  return a;
}

template <class S>
[[nodiscard]] matrix<S> difference(const matrix<S>& a, const matrix<S>& b) {
  return sum(a, b, from_int<S>(-1));
}

template <class S>
[[nodiscard]] matrix<S> scaled(const S& f, matrix<S> a) {
  for (S& x : a.entries()) x = f * x;
  return a;
}

template <class S>
[[nodiscard]] matrix<S> turned(const matrix<S>& a) {
  auto result = zeros<S>(a.cols(), a.rows());
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t j = 0; j < a.cols(); ++j) result(j, i) = a(i, j);
  }
  return result;
}

/// f x y^T.
template <class S>
[[nodiscard]] matrix<S> outer(const S& f, const std::vector<S>& x, const std::vector<S>& y) {
  auto result = zeros<S>(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) result(i, j) = f * x[i] * y[j];
  }
  return result;
}

template <class S>
[[nodiscard]] S inner(const std::vector<S>& x, const std::vector<S>& y) {
  require(x.size() == y.size());
  S result = zero<S>();
  for (std::size_t i = 0; i < x.size(); ++i) result = result + x[i] * y[i];
  return result;
}

/// S^T x as a vector.
template <class S>
[[nodiscard]] std::vector<S> read(const matrix<S>& state, const std::vector<S>& x) {
  require(state.rows() == x.size());
  std::vector<S> result(state.cols(), zero<S>());
  for (std::size_t i = 0; i < state.rows(); ++i) {
    for (std::size_t j = 0; j < state.cols(); ++j) result[j] = result[j] + state(i, j) * x[i];
  }
  return result;
}

template <class S>
[[nodiscard]] matrix<S> block(const matrix<S>& a, std::size_t row, std::size_t rows, std::size_t col, std::size_t cols) {
  require(row + rows <= a.rows() && col + cols <= a.cols());
  auto result = zeros<S>(rows, cols);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) result(i, j) = a(row + i, col + j);
  }
  return result;
}

template <class S>
[[nodiscard]] std::vector<S> row_of(const matrix<S>& a, std::size_t row) {
  require(row < a.rows());
  std::vector<S> result;
  for (std::size_t j = 0; j < a.cols(); ++j) result.push_back(a(row, j));
  return result;
}

/// a^-1 and det a by elimination with pivots; a^-1 has no entries where det a = 0.
template <class S>
[[nodiscard]] std::pair<matrix<S>, S> inverse_and_determinant(matrix<S> a) {
  const std::size_t n = a.rows();
  auto result = unit<S>(n);
  S determinant = one<S>();
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    while (pivot < n && a(pivot, c) == zero<S>()) ++pivot;
    if (pivot == n) return {matrix<S>(), zero<S>()};
    if (pivot != c) determinant = -determinant;
    for (std::size_t j = 0; j < n; ++j) {
      std::swap(a(c, j), a(pivot, j));
      std::swap(result(c, j), result(pivot, j));
    }
    determinant = determinant * a(c, c);
    const S scale = one<S>() / a(c, c);
    for (std::size_t j = 0; j < n; ++j) {
      a(c, j) = a(c, j) * scale;
      result(c, j) = result(c, j) * scale;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (i == c || a(i, c) == zero<S>()) continue;
      const S factor = a(i, c);
      for (std::size_t j = 0; j < n; ++j) {
        a(i, j) = a(i, j) - factor * a(c, j);
        result(i, j) = result(i, j) - factor * result(c, j);
      }
    }
  }
  return {result, determinant};
}

template <class S>
[[nodiscard]] std::vector<S> entries(const std::vector<S>& all, std::size_t index, std::size_t length) {
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(index * length);
  return std::vector<S>(first, first + static_cast<std::ptrdiff_t>(length));
}

template <class S>
[[nodiscard]] std::vector<S> key(const sequence<S>& s, std::size_t row) {
  return entries(s.k, row, s.key_dim);
}
template <class S>
[[nodiscard]] std::vector<S> value(const sequence<S>& s, std::size_t row) {
  return entries(s.v, row, s.value_dim);
}
template <class S>
[[nodiscard]] std::vector<S> query(const sequence<S>& s, std::size_t token) {
  return entries(s.q, token, s.key_dim);
}
template <class S>
[[nodiscard]] std::size_t rows(const sequence<S>& s) {
  return s.tokens * s.steps_per_token;
}

/// What acts on channel c before row `row`: the decay of a token, before its first row; 1 elsewhere.
template <class S>
[[nodiscard]] S decay_before(const sequence<S>& s, std::size_t row, std::size_t c) {
  if (s.decay.empty() || row % s.steps_per_token != 0) return one<S>();
  const std::size_t token = row / s.steps_per_token;
  return s.decay.size() == s.tokens ? s.decay[token] : s.decay[token * s.key_dim + c];
}

/// D_(j, r] of channel c: the product of what acts before rows j+1 .. r, from `after` = j + 1 to r.
template <class S>
[[nodiscard]] S decays(const sequence<S>& s, std::size_t after, std::size_t r, std::size_t c) {
  S result = one<S>();
  for (std::size_t row = after; row <= r; ++row) result = result * decay_before(s, row, c);
  return result;
}

/// D_[after, r] x, entry by entry.
template <class S>
[[nodiscard]] std::vector<S> decayed(const sequence<S>& s, std::size_t after, std::size_t r, std::vector<S> x) {
  for (std::size_t c = 0; c < x.size(); ++c) x[c] = x[c] * decays(s, after, r, c);
  return x;
}

/// <x, D_(j, r] k_j>.
template <class S>
[[nodiscard]] S overlap(const sequence<S>& s, const std::vector<S>& x, std::size_t j, std::size_t r) {
  return inner(x, decayed(s, j + 1, r, key(s, j)));
}

/// (I - b k k^T) diag(a) of one row, from the left.
template <class S>
[[nodiscard]] matrix<S> factor(const sequence<S>& s, std::size_t row) {
  auto decay = unit<S>(s.key_dim);
  for (std::size_t c = 0; c < s.key_dim; ++c) decay(c, c) = decay_before(s, row, c);
  return times(sum(unit<S>(s.key_dim), outer(s.step[row], key(s, row), key(s, row)), from_int<S>(-1)), decay);
}

/// The product of the factors of rows first .. end - 1, latest leftmost.
template <class S>
[[nodiscard]] matrix<S> product(const sequence<S>& s, std::size_t first, std::size_t end) {
  auto result = unit<S>(s.key_dim);
  for (std::size_t row = first; row < end; ++row) result = times(factor(s, row), result);
  return result;
}

/// The same factors with the latest rightmost: the wrong order.
template <class S>
[[nodiscard]] matrix<S> reversed_product(const sequence<S>& s, std::size_t first, std::size_t end) {
  auto result = unit<S>(s.key_dim);
  for (std::size_t row = first; row < end; ++row) result = times(result, factor(s, row));
  return result;
}

/// What rows first .. end - 1 write into zeros: sum_i (prod_{m > i} factor_m) b_i k_i v_i^T; `reversed` multiplies the
/// later factors from the wrong side.
template <class S>
[[nodiscard]] matrix<S> written(const sequence<S>& s, std::size_t first, std::size_t end, bool reversed = false) {
  auto result = zeros<S>(s.key_dim, s.value_dim);
  auto later = unit<S>(s.key_dim);
  for (std::size_t row = end; row-- > first;) {
    result = sum(result, times(later, outer(s.step[row], key(s, row), value(s, row))));
    later = reversed ? times(factor(s, row), later) : times(later, factor(s, row));
  }
  return result;
}

/// The state before the first row.
template <class S>
[[nodiscard]] matrix<S> start(const sequence<S>& s) {
  return s.initial_state.rows() == 0 ? zeros<S>(s.key_dim, s.value_dim) : s.initial_state;
}

/// One row: factor times the state, plus b k v^T.
template <class S>
[[nodiscard]] matrix<S> stepped(const sequence<S>& s, std::size_t row, const matrix<S>& state) {
  return sum(times(factor(s, row), state), outer(s.step[row], key(s, row), value(s, row)));
}

/// The states before row 0, 1, .., rows: all of the recurrence.
template <class S>
[[nodiscard]] std::vector<matrix<S>> states(const sequence<S>& s) {
  std::vector<matrix<S>> result{start(s)};
  for (std::size_t row = 0; row < rows(s); ++row) result.push_back(stepped(s, row, result.back()));
  return result;
}

}  // namespace deltaproof::testing::dense
