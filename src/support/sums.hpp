// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Sums of many terms, quickly and the same on every machine.
#pragma once

#include <array>
#include <cstddef>

#include "support/widest_vectors.hpp"

namespace deltaproof::detail {

/// term(0) + ... + term(count - 1) of each term, in eight sums side by side; of all terms in one pass, as an addition waits only
/// for those to its own sum. To be called in `in_widest_vectors`.
template <class... Terms>
[[gnu::always_inline]] inline std::array<double, sizeof...(Terms)> sums_side_by_side(std::size_t count, const Terms&... terms) {
  constexpr std::size_t lanes = 8;
  double sums[sizeof...(Terms)][lanes] = {};
  std::array<double, sizeof...(Terms)> out{};
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    std::size_t at = 0;
    const auto add = [&](const auto& term) __attribute__((always_inline)) {
      for (std::size_t j = 0; j < lanes; ++j) sums[at][j] += term(i + j);
      ++at;
    };
    (add(terms), ...);
  }
  for (std::size_t i = whole; i < count; ++i) {
    std::size_t at = 0;
    ((out[at++] += terms(i)), ...);
  }
  for (std::size_t at = 0; at < out.size(); ++at) {
    for (const double x : sums[at]) out[at] += x;
  }
  return out;
}

/// The sum of one term, in the widest vectors; `term` must be always_inline.
template <class Term>
[[nodiscard]] double quick_sum(std::size_t count, const Term& term) {
  double sum = 0;
  in_widest_vectors([&]() __attribute__((always_inline)) { sum = sums_side_by_side(count, term)[0]; });
  return sum;
}

}  // namespace deltaproof::detail
