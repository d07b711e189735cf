// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/wy/cost.hpp"

#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::detail::wy {
namespace {

using counted = counting<double>;

// Which numbers is of no account: no operation is skipped for a value.
sequence<counted> some_sequence(std::size_t tokens, std::size_t key_dim, std::size_t value_dim) {
  auto s = sequence<counted>::zeros(tokens, 1, key_dim, value_dim);
  for (counted& x : s.k) x = counted(0.125);
  for (counted& x : s.step) x = counted(0.5);
  return s;
}

}  // namespace

operation_counts chunk_operations(std::uint64_t c, std::uint64_t k, std::uint64_t v) {
  if (c == 0) return {};
  const std::uint64_t below = c * (c - 1) / 2;
  const std::uint64_t lower = c * (c + 1) / 2;
  const std::uint64_t products = k * below + k * lower + (c * c * c - c) / 6 + c * c * (k + v) + 3 * c * k * v + v * lower;
  return {products + c * v, c * v, products + below + c * (k + v), 0, 0};
}

operation_counts chunkwise_operations(std::uint64_t tokens, std::uint64_t chunk, std::uint64_t key_dim, std::uint64_t value_dim) {
  return tokens / chunk * chunk_operations(chunk, key_dim, value_dim) + chunk_operations(tokens % chunk, key_dim, value_dim);
}

operation_counts recurrent_operations(std::uint64_t tokens, std::uint64_t k, std::uint64_t v) {
  return tokens * operation_counts{3 * k * v, v, 3 * k * v + v, 0, 0};
}

operation_counts counted_chunkwise(std::size_t tokens, std::size_t chunk, std::size_t key_dim, std::size_t value_dim,
                                   const inverse_method& method) {
  const auto s = some_sequence(tokens, key_dim, value_dim);
  return count_operations([&] { static_cast<void>(chunkwise<plain<counted>>(s, chunk, method)); });
}

operation_counts counted_recurrent(std::size_t tokens, std::size_t key_dim, std::size_t value_dim) {
  const auto s = some_sequence(tokens, key_dim, value_dim);
  return count_operations([&] { static_cast<void>(recurrent(s)); });
}

operation_counts counted_inverse(std::size_t chunk, const inverse_method& method) {
  const matrix<counted> lower(chunk, chunk, counted(0.5));
  return count_operations([&] { static_cast<void>(run_inverse<plain<counted>>(method, lower)); });
}

traffic traffic_of(double c, double k, double v, double width) {
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
