// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Names how a sum of products is made: `arithmetic<Storage, Product, Sum, Order>` states the four things, and
// the only four, that may change a bit of it. Storage holds the operands, Product is the format each product
// is rounded to (or exact_product), Sum holds the accumulator, Order says who is added to whom. Steps between
// formats are exact and checked by the compiler (lift); whoever wants to narrow an operand first, rounds it
// before. dot.hpp and multiply.hpp obey these types to the bit, on every compiler and at every -O level.
#pragma once

#include <cstddef>
#include <type_traits>

namespace deltaproof {

/// The product is not rounded by itself: each accumulation rounds once, acc <- round(acc + x y).
struct exact_product {};

/// acc starts at `start` and takes the products one after the other, first index first.
struct sequential {};

/// Neighbours are added pair by pair, level after level; an odd last one moves up a level unchanged. The same
/// tree from above: n > 1 terms split after the largest power of two below n. The root is added to `start`.
struct pairwise {};

/// Products N by N, the last block possibly shorter: each block is summed sequentially from +0, then the block
/// sums are added to `start` one after the other, first block first.
template <std::size_t N>
struct blocked {
  static_assert(N > 0, "blocked<N>: N is the number of products in a block and must be at least 1");
  static constexpr std::size_t length = N;
};

/// The block model of a tensor core generation, see tensor_core.hpp.
template <class Generation>
struct tensor_core {
  using generation = Generation;
};

template <class Order>
inline constexpr bool is_tensor_core_v = false;
template <class Generation>
inline constexpr bool is_tensor_core_v<tensor_core<Generation>> = true;

template <class Order>
inline constexpr bool is_order_v =
    std::is_same_v<Order, sequential> || std::is_same_v<Order, pairwise> || is_tensor_core_v<Order>;
template <std::size_t N>
inline constexpr bool is_order_v<blocked<N>> = true;

template <class Storage, class Product, class Sum, class Order>
struct arithmetic {
  static_assert(is_order_v<Order>, "arithmetic: Order must be sequential, pairwise, blocked<N> or tensor_core<Generation>");
  using storage_type = Storage;
  using product_type = Product;
  using sum_type = Sum;
  using order_type = Order;
  /// True where a product is not rounded before it is added.
  static constexpr bool fused = std::is_same_v<Product, exact_product>;
};

/// One scalar throughout, products rounded, summed first to last: what a plain loop does.
template <class S>
using plain = arithmetic<S, S, S, sequential>;

}  // namespace deltaproof
