// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How strongly a step writes, 1 - R(x) with x = beta |k|^2, under each normalisation of a Gaussian key, and the identity
// that makes EFLA a DeltaNet on unit keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "deltaproof/number/rational.hpp"

namespace deltaproof::detail::efla {

/// l2: |k|_2 = 1. l1: |k|_1 = 1. rms: |k|_2^2 = d. none: standard normal entries.
enum class normalisation { l2, l1, rms, none };
inline constexpr std::array<normalisation, 4> normalisations{normalisation::l2, normalisation::l1, normalisation::rms,
                                                             normalisation::none};
[[nodiscard]] std::string_view name_of(normalisation);

/// |k|^2 of random keys, and what steps with beta uniform in (0, 1) do in bf16.
struct norm_sample {
  normalisation how = normalisation::l2;
  std::size_t key_dim = 0;
  std::size_t keys = 0;
  double mean = 0;  ///< of |k|^2
  double deviation = 0;
  double smallest = 0;
  double largest = 0;
  std::uint64_t euler_unstable = 0;  ///< beta |k|^2 > 2
  std::uint64_t naive_dead = 0;      ///< bf16: the naive coefficient is 0
  std::uint64_t naive_off = 0;       ///< bf16: it errs by more than 10 %
  std::uint64_t saturated = 0;       ///< bf16, through expm1: 1 - b n <= 0, all is erased
};
[[nodiscard]] norm_sample sample_norms(normalisation, std::size_t key_dim, std::size_t keys, std::uint64_t seed);

/// Keys of rational norm for the identity below: multiples of (3, 4), (1, 2, 2), (2, 3, 6), (1, 4, 8), (4, 4, 7) by rationals.
struct rational_key {
  std::vector<rational> k;
  rational norm;
};
[[nodiscard]] std::vector<rational_key> rational_keys();

/// Runs both forms in rationals, e^-x a free number: S under k, v, b = (1 - E)/|k|^2 and under k/|k|, v/|k|, b = 1 - E.
/// Returns the cases looked at and those where the states are equal.
struct identity_check {
  std::uint64_t cases = 0;
  std::uint64_t equal = 0;
};
[[nodiscard]] identity_check efla_is_deltanet();

}  // namespace deltaproof::detail::efla
