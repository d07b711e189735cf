// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Multiplies matrices in a stated arithmetic: matvec<A>(m, x) and matmul<A>(a, b), each entry of the result equal
// to the bit to dot<A> of its row and column, so all that dot.hpp promises holds entry by entry. Shapes: stated
// at each function, checked. Rounds: as A says. A transposed operand is spelled transpose(m): it copies, and the
// order of the sum is always that of the inner index. Every entry given is read; NaN anywhere it matters shows.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "deltaproof/algebra/arithmetic.hpp"
#include "deltaproof/algebra/dot.hpp"
#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

/// result_i = sum_j m(i, j) x_j in the arithmetic A. Shapes: (rows x cols), (cols) -> (rows).
/// Throws: shape_error.
template <class A>
[[nodiscard]] std::vector<typename A::sum_type> matvec(const matrix<typename A::storage_type>& m,
                                                       std::span<const typename A::storage_type> x) {
  if (m.cols() != x.size()) {
    throw shape_error("matvec: the matrix is " + shape_text(m) + " and the vector has " + std::to_string(x.size()) +
                      " entries; give the vector one entry for each column of the matrix");
  }
  std::vector<typename A::sum_type> result;
  result.reserve(m.rows());
  for (std::size_t i = 0; i < m.rows(); ++i) result.push_back(dot<A>(m.row(i), x));
  return result;
}

/// result(i, j) = start(i, j) + sum_k a(i, k) b(k, j) in the arithmetic A, accumulators beginning at `start`.
/// Shapes: (I x K), (K x J), start (I x J) -> (I x J). Throws: shape_error.
template <class A>
[[nodiscard]] matrix<typename A::sum_type> matmul(const matrix<typename A::storage_type>& a,
                                                  const matrix<typename A::storage_type>& b,
                                                  matrix<std::type_identity_t<typename A::sum_type>> start) {
  if (a.cols() != b.rows() || start.rows() != a.rows() || start.cols() != b.cols()) {
    throw shape_error("matmul: a is " + shape_text(a) + ", b is " + shape_text(b) + ", start is " + shape_text(start) +
                      "; expected I x K, K x J, I x J");
  }
  using summation = detail::summation<A>;
  const std::size_t inner = a.cols();
  const auto left = detail::prepare<A>(a.entries());
  if constexpr (std::is_same_v<typename A::order_type, sequential>) {
    // Row by row through b: each entry still takes its products in the order of the inner index.
    const auto right = detail::prepare<A>(b.entries());
    for (std::size_t i = 0; i < a.rows(); ++i) {
      const auto out = start.row(i);
      for (std::size_t k = 0; k < inner; ++k) {
        const auto* row = right.data() + k * b.cols();
        for (std::size_t j = 0; j < out.size(); ++j) out[j] = summation::add(out[j], left[i * inner + k], row[j]);
      }
    }
  } else {
    const auto columns = transpose(b);
    const auto right = detail::prepare<A>(columns.entries());
    for (std::size_t i = 0; i < a.rows(); ++i) {
      for (std::size_t j = 0; j < b.cols(); ++j) {
        start(i, j) = summation::sum(left.data() + i * inner, right.data() + j * inner, inner, start(i, j));
      }
    }
  }
  return start;
}

/// result(i, j) = sum_k a(i, k) b(k, j). Shapes: (I x K), (K x J) -> (I x J). Throws: shape_error.
template <class A>
[[nodiscard]] matrix<typename A::sum_type> matmul(const matrix<typename A::storage_type>& a,
                                                  const matrix<typename A::storage_type>& b) {
  return matmul<A>(a, b, matrix<typename A::sum_type>(a.rows(), b.cols(), zero<typename A::sum_type>()));
}

}  // namespace deltaproof
