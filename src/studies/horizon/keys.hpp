// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The keys of the horizon study: long sequences of directions of four kinds, the same for every rule and
// every norm, and the token counts at which a run is looked at. Everything is a function of the seed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "studies/shared/functions.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof::detail::horizon {

enum class key_kind { fresh, repeated, vocabulary, clustered };

inline constexpr std::array<key_kind, 4> key_kinds{key_kind::fresh, key_kind::repeated, key_kind::vocabulary,
                                                   key_kind::clustered};
[[nodiscard]] std::string_view name_of(key_kind);

/// Words of the vocabulary and number of cluster centres.
inline constexpr std::size_t vocabulary_size = 8;
/// A clustered key is sqrt(1 - spread^2) centre + spread times a fresh direction, normalised.
inline constexpr double cluster_spread = 0.3;

/// Directions of length 1 (but for rounding), and for fresh keys |g|^2 / d of the Gaussian vector g each came from.
struct key_set {
  std::size_t key_dim = 0;
  std::vector<double> directions;       ///< distinct ones, key_dim each
  std::vector<std::uint32_t> index;     ///< token -> direction
  std::vector<double> relative_square;  ///< of each direction: |g|^2 / d, mean 1

  [[nodiscard]] std::size_t tokens() const { return index.size(); }
  [[nodiscard]] std::span<const double> direction(std::size_t t) const {
    return std::span<const double>(directions).subspan(index[t] * key_dim, key_dim);
  }
};

/// Rounds: normals as `philox`, norms and quotients in double, first to last.
[[nodiscard]] key_set make_keys(key_kind, std::size_t tokens, std::size_t key_dim, std::uint64_t seed);

using shared::checkpoints;
using shared::draw;
using shared::ln;
using shared::log10_of;
using shared::normalise;

}  // namespace deltaproof::detail::horizon
