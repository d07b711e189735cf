// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Sums products in a stated arithmetic: `dot<A>(x, y)` and `dot<A>(x, y, start)`, A an `arithmetic<...>` (or
// `plain<S>`). Shapes: x and y of one length, which may be 0; the result is then `start`. Every accumulator
// begins at `start`, +0 unless given. Rounds: as A says and nowhere else; operands reach Product, and products
// Sum, by exact lifts only, so an A that would have to narrow one does not compile. The result's bits depend on A and the
// operands alone: not on the compiler, its optimisation or the width of its vectors.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "deltaproof/algebra/arithmetic.hpp"
#include "deltaproof/algebra/tensor_core.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {

namespace detail {

template <class S>
inline constexpr bool is_rounded_v = false;
template <format F, class Mode>
inline constexpr bool is_rounded_v<rounded<F, Mode>> = true;

template <class S>
concept HasOwnFma = requires(const S& x) {
  { fma(x, x, x) } -> std::same_as<S>;
};

/// round(x y + acc), one rounding.
template <class Factor, class S>
[[nodiscard]] S multiply_add(const Factor& x, const Factor& y, const S& acc) {
  static_assert(
      FormatScalar<S> || is_exact_scalar_v<S> || HasOwnFma<S>,
      "exact_product needs a Sum with a fused multiply-add: float, double, rounded<F>, magnitude<F> or an exact scalar");
  if constexpr (is_exact_scalar_v<S>) {
    return acc + x * y;
  } else {
    using std::fma;
    return fma(x, y, acc);
  }
}

/// What a factor is turned into before anything is multiplied, and how a run of factors is summed.
template <class A, class Order = typename A::order_type>
struct summation {
  using storage_type = typename A::storage_type;
  using sum_type = typename A::sum_type;
  /// rounded<F> multiplies formats of its own choice into any other with one rounding; the rest lifts first.
  static constexpr bool mixed = A::fused && is_rounded_v<storage_type> && is_rounded_v<sum_type>;
  using factor = std::conditional_t<mixed, storage_type, std::conditional_t<A::fused, sum_type, typename A::product_type>>;

  static factor prepare(const storage_type& x) { return lift<factor>(x); }

  static sum_type product(const factor& x, const factor& y) {
    if constexpr (A::fused) {
      return multiply_add(x, y, -zero<sum_type>());  // -0 leaves every product as it is
    } else {
      return lift<sum_type>(x * y);
    }
  }

  /// One accumulation.
  static sum_type add(const sum_type& acc, const factor& x, const factor& y) {
    if constexpr (A::fused) {
      return multiply_add(x, y, acc);
    } else {
      return acc + product(x, y);
    }
  }

  static sum_type run(const factor* x, const factor* y, std::size_t count, sum_type acc) {
    for (std::size_t i = 0; i < count; ++i) acc = add(acc, x[i], y[i]);
    return acc;
  }

  static sum_type tree(const factor* x, const factor* y, std::size_t count) {
    if (count == 1) return product(*x, *y);
    const std::size_t left = std::bit_floor(count - 1);
    return tree(x, y, left) + tree(x + left, y + left, count - left);
  }

  static sum_type sum(const factor* x, const factor* y, std::size_t count, sum_type start) {
    if constexpr (std::is_same_v<Order, sequential>) {
      return run(x, y, count, std::move(start));
    } else if constexpr (std::is_same_v<Order, pairwise>) {
      return count == 0 ? start : start + tree(x, y, count);
    } else {
      for (std::size_t i = 0; i < count; i += Order::length) {
        start = start + run(x + i, y + i, count - i < Order::length ? count - i : Order::length, zero<sum_type>());
      }
      return start;
    }
  }
};

template <class S>
struct core_storage;  // operands of a tensor core are rounded<F>
template <format F, class Mode>
struct core_storage<rounded<F, Mode>> {
  static constexpr format layout = F;
};

template <class A, class Generation>
struct summation<A, tensor_core<Generation>> {
  using sum_type = typename A::sum_type;
  using factor = core_operand;
  static constexpr format layout = core_storage<typename A::storage_type>::layout;
  static constexpr core_parameters model = core_model<Generation, layout>;
  static_assert(
      model.block > 0,
      "this generation has no tensor core instruction for this operand format; use another Generation or operand format");
  static_assert(A::fused, "a tensor core does not round its products: Product must be exact_product");
  static_assert(std::is_same_v<sum_type, float> || std::is_same_v<sum_type, rounded<fp32>>,
                "the tensor core model accumulates in fp32: Sum must be float or rounded<fp32>");

  static factor prepare(const typename A::storage_type& x) { return take_apart(lift<double>(x), layout.precision, layout.emin); }

  static sum_type sum(const factor* x, const factor* y, std::size_t count, sum_type start) {
    double acc = lift<double>(start);
    for (std::size_t i = 0; i < count; i += model.block) {
      const std::size_t length = count - i < model.block ? count - i : model.block;
      acc = fused_block({x + i, length}, {y + i, length}, layout.precision, acc, model);
    }
    if constexpr (std::is_same_v<sum_type, float>) {
      return static_cast<float>(acc);  // exact: a block ends in a value of fp32
    } else {
      return sum_type::from_exact(acc);
    }
  }
};

template <class A>
using factor_of = typename summation<A>::factor;

template <class A>
[[nodiscard]] std::vector<factor_of<A>> prepare(std::span<const typename A::storage_type> x) {
  std::vector<factor_of<A>> result;
  result.reserve(x.size());
  for (const auto& value : x) result.push_back(summation<A>::prepare(value));
  return result;
}

}  // namespace detail

/// start + sum_i x_i y_i in the arithmetic A. Throws: shape_error if the lengths differ.
template <class A>
[[nodiscard]] typename A::sum_type dot(std::span<const typename A::storage_type> x, std::span<const typename A::storage_type> y,
                                       const std::type_identity_t<typename A::sum_type>& start = zero<typename A::sum_type>()) {
  if (x.size() != y.size()) {
    throw shape_error("dot: x has " + std::to_string(x.size()) + " entries and y has " + std::to_string(y.size()) +
                      "; give both the same length");
  }
  using summation = detail::summation<A>;
  if constexpr (std::is_same_v<typename summation::factor, typename A::storage_type>) {
    return summation::sum(x.data(), y.data(), x.size(), start);
  } else {
    const auto left = detail::prepare<A>(x);
    const auto right = detail::prepare<A>(y);
    return summation::sum(left.data(), right.data(), left.size(), start);
  }
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.standard_model.dot_error, float.standard_model.dot_fused_error
