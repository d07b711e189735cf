// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The inverses of faulty.hpp: every method of algebra/triangular.hpp in plain loops, with one fault of faults.hpp or none.
// It shows its intermediates as run_inverse does.
#pragma once

#include <algorithm>
#include <cstddef>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/algebra/triangular.hpp"
#include "support/faults.hpp"

namespace deltaproof::testing {

template <class S>
class faulty_inverse {
 public:
  explicit faulty_inverse(fault planted) : planted_{planted} {}

  /// (I + L)^-1, or not.
  template <class Observer>
  [[nodiscard]] matrix<S> run(const inverse_method& method, const matrix<S>& lower, Observer& observe) const {
    matrix<S> x(lower.rows(), lower.rows());
    if (lower.rows() > 0) invert(method, lower, x, 0, lower.rows(), observe);
    return x;
  }

 private:
  [[nodiscard]] bool is(fault f) const { return planted_ == f; }

  template <class Observer>
  void invert(const inverse_method& method, const matrix<S>& lower, matrix<S>& x, std::size_t first, std::size_t size,
              Observer& observe) const {
    const bool split = method.diagonal == diagonal_kind::split;
    if (size <= (split ? 1 : method.block == 0 ? lower.rows() : method.block)) {
      if (split) {
        x(first, first) = one<S>();
      } else {
        method.diagonal == diagonal_kind::forward ? substitute(lower, x, first, size, observe)
                                                  : sum_powers(lower, x, first, size, observe);
      }
      return;
    }
    const std::size_t base = method.merge == merge_kind::block2 ? 2 : 4;
    std::size_t piece = 1;
    while (piece * base < size) piece *= base;
    if (!split && method.merge == merge_kind::block) piece = method.block;
    for (std::size_t at = 0; at < size; at += piece) invert(method, lower, x, first + at, std::min(piece, size - at), observe);
    for (std::size_t i = piece; i < size; i += piece) {
      const std::size_t height = std::min(piece, size - i);
      if (height < piece && is(fault::ragged_block_dropped)) continue;
      for (std::size_t j = i; j > 0; j -= piece) join(lower, x, first + j - piece, first + i, piece, height, observe);
    }
  }

  template <class Observer>
  void substitute(const matrix<S>& lower, matrix<S>& x, std::size_t first, std::size_t size, Observer& observe) const {
    matrix<S> block(size, size);
    for (std::size_t i = 0; i < size; ++i) {
      block(i, i) = one<S>();
      for (std::size_t j = 0; j < i; ++j) {
        S sum = zero<S>();
        for (std::size_t m = j + 1; m < (is(fault::forward_stops_early) ? i - 1 : i); ++m)
          sum = sum + lower(first + i, first + m) * block(m, j);
        block(i, j) = is(fault::forward_sign) ? sum - lower(first + i, first + j) : -(lower(first + i, first + j) + sum);
      }
    }
    observe("substitution", block);
    copy(block, x, first, first);
  }

  template <class Observer>
  void sum_powers(const matrix<S>& lower, matrix<S>& x, std::size_t first, std::size_t size, Observer& observe) const {
    matrix<S> power(size, size);
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const S entry = lower(first + i, first + j);
        power(i, j) = is(fault::doubling_positive) ? entry : S(-entry);
      }
    }
    const matrix<S> unit = deltaproof::identity<S>(size);
    matrix<S> sum = plus(unit, power);
    observe("power", power);
    for (std::size_t terms = 2; terms < size && !(is(fault::doubling_truncated) && 2 * terms >= size); terms *= 2) {
      const matrix<S> previous = power;
      if (!is(fault::doubling_power_not_squared)) power = product(power, power);
      observe("power", power);
      const matrix<S> factor = plus(unit, is(fault::doubling_power_late) ? previous : power);
      sum = is(fault::doubling_forgets_sum) ? factor : product(sum, is(fault::doubling_sum_squared) ? sum : factor);
      observe("partial sum", sum);
    }
    copy(sum, x, first, first);
  }

  template <class Observer>
  void join(const matrix<S>& lower, matrix<S>& x, std::size_t j, std::size_t i, std::size_t width, std::size_t height,
            Observer& observe) const {
    matrix<S> sum(height, width);
    for (std::size_t m = is(fault::block_missing_term) && i - j > width ? j + width : j; m < i; ++m) {
      for (std::size_t a = 0; a < height; ++a) {
        for (std::size_t c = 0; c < width; ++c) sum(a, c) = sum(a, c) + lower(i + a, m) * x(m, j + c);
      }
    }
    observe("off-diagonal sum", transpose(sum));
    matrix<S> diagonal(height, height);
    for (std::size_t a = 0; a < height; ++a) {
      for (std::size_t m = 0; m < height; ++m) diagonal(a, m) = x(i + a, i + m);
    }
    matrix<S> block = is(fault::block_without_diagonal)                   ? sum
                      : is(fault::block_sides_swapped) && height == width ? product(sum, diagonal)
                                                                          : product(diagonal, sum);
    for (S& entry : block.entries()) entry = is(fault::merge_sign) ? entry : S(-entry);
    observe("off-diagonal block", block);
    copy(block, x, i, j);
  }

  static matrix<S> product(const matrix<S>& a, const matrix<S>& b) {
    matrix<S> result(a.rows(), b.cols());
    for (std::size_t i = 0; i < a.rows(); ++i) {
      for (std::size_t m = 0; m < a.cols(); ++m) {
        for (std::size_t j = 0; j < b.cols(); ++j) result(i, j) = result(i, j) + a(i, m) * b(m, j);
      }
    }
    return result;
  }

  static matrix<S> plus(matrix<S> a, const matrix<S>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = a.data()[i] + b.data()[i];
    return a;
  }

  static void copy(const matrix<S>& from, matrix<S>& to, std::size_t row, std::size_t col) {
    for (std::size_t i = 0; i < from.rows(); ++i) {
      for (std::size_t j = 0; j < from.cols(); ++j) to(row + i, col + j) = from(i, j);
    }
  }

  fault planted_;
};

}  // namespace deltaproof::testing
