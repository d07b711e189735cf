// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Rounding errors of the chunkwise form and of the recurrence against a double-double run of the recurrence on the same
// bits: over chunk length at one horizon, and over the horizon at one chunk length.
#pragma once

#include "studies/shared/chunks/keys.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::wy {

struct regime {
  std::string_view name;
  chunks::key_kind keys{};
  chunks::step_law steps;
};
inline constexpr std::array<regime, 4> regimes{{{"ordinary", chunks::key_kind::fresh, {0, 1}},
                                                {"reflecting", chunks::key_kind::fresh, {1.9, 2}},
                                                {"clustered", chunks::key_kind::cosine_90, {0, 1}},
                                                {"hard", chunks::key_kind::cosine_90, {1.9, 2}}}};

/// In the order of the tables. The last sums in bf16 too.
inline constexpr std::array<std::string_view, 6> studied{"bf16", "fp16", "tf32", "fp32", "fp64", "bf16 native"};
inline constexpr std::size_t horizon_chunk = 64;
inline constexpr std::string_view inverse_name = "forward16+block";

/// (|x' - x| / |x|)^2 over all entries (Frobenius) for each arithmetic and chunk length, infinite where it is not a number. o,
/// state: of the chunkwise form; accumulator, storage: of the recurrence's o, its state in the accumulator's format or rounded to
/// the storage format after every token.
[[nodiscard]] frame squared_errors(const sequence<double>&, std::span<const std::size_t> chunk_lengths);
inline const std::vector<std::string> error_columns{"arithmetic", "chunk", "o", "state", "accumulator", "storage"};

/// |o' - o| / |o| over tokens (T / 2, T] for T in `horizons`, in bf16, fp16 and fp32. run: "chunkwise", chunks of horizon_chunk;
/// "recurrence", with its state in the storage format.
[[nodiscard]] frame window_errors(const sequence<double>&, std::span<const std::size_t> horizons);
inline const std::vector<std::string> window_columns{"arithmetic", "run", "at", "error"};

/// The recurrence in double-double, rounded once to double: o and the state. Each operation is within 2^-102, and as every
/// transition has norm 1 at most, errors of steps add: below T K 2^-100 of the largest state.
struct reference {
  std::vector<double> o;
  std::vector<double> state;
};
[[nodiscard]] reference run_reference(const sequence<double>&);

}  // namespace deltaproof::detail::wy
