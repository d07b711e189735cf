// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the recurrence and the chunkwise form cost: operations as polynomials in C, K, V, operations as a counting scalar
// counts them in the very templates that kernels are modelled by, and bytes under a stated model of memory.
#pragma once

#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/number/counting.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::wy {

/// One chunk of C rows, ungated, one step a token, inverse by forward substitution:
///   *  (K+1) C(C-1)/2 + K C(C+1)/2 + (C^3-C)/6 + C(K+V) + C^2 (K+V) + 3CKV + V C(C+1)/2
///   +  K C(C-1)/2     + K C(C+1)/2 + (C^3-C)/6           + C^2 (K+V) + 3CKV + V C(C+1)/2 + CV
///   -  CV
/// for A, Aqk, (I+A)^-1, (b k, b v), (w, u), (w h, q h, k v_new), the part of o inside the chunk; sums begin at 0.
[[nodiscard]] operation_counts chunk_operations(std::uint64_t chunk, std::uint64_t key_dim, std::uint64_t value_dim);
/// T tokens: T / C chunks and one of the rest.
[[nodiscard]] operation_counts chunkwise_operations(std::uint64_t tokens, std::uint64_t chunk, std::uint64_t key_dim,
                                                    std::uint64_t value_dim);
/// T tokens of the recurrence: 3KV + V products, 3KV additions, V subtractions each.
[[nodiscard]] operation_counts recurrent_operations(std::uint64_t tokens, std::uint64_t key_dim, std::uint64_t value_dim);

/// The same, counted: the library's chunkwise form and recurrence over counting<double>.
[[nodiscard]] operation_counts counted_chunkwise(std::size_t tokens, std::size_t chunk, std::size_t key_dim,
                                                 std::size_t value_dim, const inverse_method& method);
[[nodiscard]] operation_counts counted_recurrent(std::size_t tokens, std::size_t key_dim, std::size_t value_dim);
[[nodiscard]] operation_counts counted_inverse(std::size_t chunk, const inverse_method& method);

/// Bytes between memory and processor, inputs and stages of `width` bytes, A and states that are carried over of 4.
/// Each kernel reads its operands once and writes its results once; what is inside a kernel costs nothing.
struct traffic {
  double recurrent_on_chip = 0;    ///< a token: q, k, v, beta, o; the state never leaves the processor
  double recurrent_in_memory = 0;  ///< a token: the same, and the state read and written at each token, as in decoding
  double chunk_stages = 0;         ///< a token: five kernels that hand A, Ai, w, u, h, v_new through memory, as fla does
  double chunk_fused = 0;          ///< a token: one kernel, as recurrent_on_chip
};
[[nodiscard]] traffic traffic_of(double chunk, double key_dim, double value_dim, double width);

}  // namespace deltaproof::detail::wy
