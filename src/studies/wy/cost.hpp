// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the recurrence and the chunkwise form cost: operations as polynomials in C, K, V, operations as a counting scalar
// counts them in the very templates that kernels are modelled by, and bytes under a stated model of memory.
#pragma once

#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/number/counting.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::wy {

/// Bytes between memory and processor, inputs and stages of `width` bytes, A and states that are carried over of 4.
/// Each kernel reads its operands once and writes its results once; what is inside a kernel costs nothing.
struct traffic {
  double recurrent_on_chip = 0;    ///< a token: q, k, v, beta, o; the state never leaves the processor
  double recurrent_in_memory = 0;  ///< a token: the same, and the state read and written at each token, as in decoding
  double chunk_stages = 0;         ///< a token: five kernels that hand A, Ai, w, u, h, v_new through memory, as fla does
  double chunk_fused = 0;          ///< a token: one kernel, as recurrent_on_chip
};

using counted = counting<double>;

/// Which numbers is of no account: no operation is skipped for a value.
inline sequence<counted> some_sequence(std::size_t tokens, std::size_t key_dim, std::size_t value_dim) {
  auto s = sequence<counted>::zeros(tokens, 1, key_dim, value_dim);
  for (counted& x : s.k) x = counted(0.125);
  for (counted& x : s.step) x = counted(0.5);
  return s;
}

/// One chunk of C rows, ungated, one step a token, inverse by forward substitution:
///   *  (K+1) C(C-1)/2 + K C(C+1)/2 + (C^3-C)/6 + C(K+V) + C^2 (K+V) + 3CKV + V C(C+1)/2
///   +  K C(C-1)/2     + K C(C+1)/2 + (C^3-C)/6           + C^2 (K+V) + 3CKV + V C(C+1)/2 + CV
///   -  CV
/// for A, Aqk, (I+A)^-1, (b k, b v), (w, u), (w h, q h, k v_new), the part of o inside the chunk; sums begin at 0.
[[nodiscard]] inline operation_counts chunk_operations(std::uint64_t c, std::uint64_t k, std::uint64_t v) {
  if (c == 0) return {};
  const std::uint64_t below = c * (c - 1) / 2;
  const std::uint64_t lower = c * (c + 1) / 2;
  const std::uint64_t products = k * below + k * lower + (c * c * c - c) / 6 + c * c * (k + v) + 3 * c * k * v + v * lower;
  return {products + c * v, c * v, products + below + c * (k + v), 0, 0};
}

/// T tokens: T / C chunks and one of the rest.
[[nodiscard]] inline operation_counts chunkwise_operations(std::uint64_t tokens, std::uint64_t chunk, std::uint64_t key_dim,
                                                           std::uint64_t value_dim) {
  return tokens / chunk * chunk_operations(chunk, key_dim, value_dim) + chunk_operations(tokens % chunk, key_dim, value_dim);
}

/// T tokens of the recurrence: 3KV + V products, 3KV additions, V subtractions each.
[[nodiscard]] inline operation_counts recurrent_operations(std::uint64_t tokens, std::uint64_t k, std::uint64_t v) {
  return tokens * operation_counts{3 * k * v, v, 3 * k * v + v, 0, 0};
}

/// The same, counted: the library's chunkwise form and recurrence over counting<double>.
[[nodiscard]] inline operation_counts counted_chunkwise(std::size_t tokens, std::size_t chunk, std::size_t key_dim,
                                                        std::size_t value_dim, const inverse_method& method) {
  const auto s = some_sequence(tokens, key_dim, value_dim);
  return count_operations([&] { static_cast<void>(chunkwise<plain<counted>>(s, chunk, method)); });
}

[[nodiscard]] inline operation_counts counted_recurrent(std::size_t tokens, std::size_t key_dim, std::size_t value_dim) {
  const auto s = some_sequence(tokens, key_dim, value_dim);
  return count_operations([&] { static_cast<void>(recurrent(s)); });
}

[[nodiscard]] inline operation_counts counted_inverse(std::size_t chunk, const inverse_method& method) {
  const matrix<counted> lower(chunk, chunk, counted(0.5));
  return count_operations([&] { static_cast<void>(run_inverse<plain<counted>>(method, lower)); });
}

[[nodiscard]] inline traffic traffic_of(double c, double k, double v, double width) {
  traffic t;
  t.recurrent_on_chip = width * (2 * k + 2 * v + 1);  // q, k, beta; v, o
  t.recurrent_in_memory = t.recurrent_on_chip + 2 * 4 * k * v;
  t.chunk_fused = t.recurrent_on_chip;
  const double overlaps = width * (k + 1) + 4 * c;                      // k, beta -> A
  const double inverse = 4 * c + width * c;                             // A -> Ai
  const double transform = width * (c + k + v + 1) + width * (k + v);   // Ai, k, v, beta -> w, u
  const double states = width * (2 * k + v) + width * (k * v / c + v);  // k, w, u -> h, v_new
  const double outputs = width * (2 * k + v + k * v / c) + width * v;   // q, k, v_new, h -> o
  t.chunk_stages = overlaps + inverse + transform + states + outputs;
  return t;
}

}  // namespace deltaproof::detail::wy
