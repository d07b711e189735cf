// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The inputs of the chunk studies: unit keys of seven kinds, values and steps, all of them values of bf16, of fp16 and of
// every wider format, so that each arithmetic receives the same bits. Every key obeys |k|^2 <= 1, decided exactly: with
// beta <= 2 the exact transition has norm 1 at most, and whatever grows is the kernel's. Everything is a function of the seed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "deltaproof/scan/sequence.hpp"

namespace deltaproof::detail::chunks {

/// fresh: Gaussian directions. signs: (+-1, ..., +-1) / sqrt(K), of norm exactly 1 where K is a power of 4. cosine_*: one
/// direction m for all, k = sqrt(c) m + sqrt(1 - c) z, z orthogonal to m. repeated: one key.
/// vocabulary: vocabulary_size fresh keys in random order.
enum class key_kind { fresh, signs, cosine_90, cosine_99, cosine_999, vocabulary, repeated };

inline constexpr std::array<key_kind, 7> key_kinds{key_kind::fresh,     key_kind::signs,      key_kind::cosine_90,
                                                   key_kind::cosine_99, key_kind::cosine_999, key_kind::vocabulary,
                                                   key_kind::repeated};
[[nodiscard]] std::string_view name_of(key_kind);
/// The mean cosine of two keys of a kind, where one direction is common to all; else 0.
[[nodiscard]] double cosine_of(key_kind);
inline constexpr std::size_t vocabulary_size = 8;

/// x rounded to bf16, then to fp16: a value of both, and of every format that holds them.
[[nodiscard]] double common_value(double x);

/// rows * key_dim entries; every row is common_value entry by entry of a unit vector, then, while |k|^2 > 1, its largest
/// entry is moved one value of bf16 toward 0. Entries are multiples of 2^-24, so shared::squared_norm of a row is exact.
[[nodiscard]] std::vector<double> make_keys(key_kind, std::size_t rows, std::size_t key_dim, std::uint64_t seed);

/// How steps are drawn: each uniform in [low, high], rounded down to a multiple of 2^-7. low = high: that number.
struct step_law {
  double low = 1;
  double high = 1;
};

/// Queries and values: common_value of normals (v times `value_scale`), one step a token, no decay; the initial state is
/// common_value of normals where `value_scale` is 0, else zeros.
[[nodiscard]] sequence<double> make_sequence(key_kind, const step_law&, std::size_t tokens, std::size_t key_dim,
                                             std::size_t value_dim, double value_scale, std::uint64_t seed);

}  // namespace deltaproof::detail::chunks
