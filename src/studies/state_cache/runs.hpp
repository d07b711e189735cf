// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Decoding with a cached state: the gated delta rule in fp32, token by token, its state stored and read back every so many
// tokens, beside the same tokens in fp64. o is read before the state is stored, as [state] between_tokens of a plan has it.
#pragma once

#include "deltaproof/number/block_format.hpp"
#include "studies/state_cache/tokens.hpp"

namespace deltaproof::detail::state_cache {

/// A cache: element and layout ("none": no scale; "fixed": the element's name has them), rounding, tokens from store to store.
struct choice {
  std::string_view name;
  std::string_view element;
  std::string_view layout;
  block_rounding rounding = block_rounding::nearest;
  std::size_t every = 1;
};
inline constexpr auto to_nearest = block_rounding::nearest;
inline constexpr auto by_chance = block_rounding::stochastic;
inline constexpr auto fed_back = block_rounding::error_feedback;
inline constexpr auto stored_choices = std::to_array<choice>({
    {"bf16-nearest", "bf16", "none", to_nearest},         {"bf16-stochastic", "bf16", "none", by_chance},
    {"bf16-feedback", "bf16", "none", fed_back},          {"fp16-nearest", "fp16", "none", to_nearest},
    {"int8-nearest", "int8", "row", to_nearest},          {"int8-stochastic", "int8", "row", by_chance},
    {"int8-feedback", "int8", "row", fed_back},           {"int8-nearest-16", "int8", "row", to_nearest, 16},
    {"int8-stochastic-16", "int8", "row", by_chance, 16}, {"int8-tensor-nearest", "int8", "tensor", to_nearest},
    {"int8-tensor-feedback", "int8", "tensor", fed_back}, {"e4m3-nearest", "e4m3", "row", to_nearest},
    {"e4m3-feedback", "e4m3", "row", fed_back},           {"mxfp8-nearest", "mxfp8", "fixed", to_nearest},
    {"mxfp8-feedback", "mxfp8", "fixed", fed_back},       {"int4-nearest", "int4", "row", to_nearest},
    {"int4-feedback", "int4", "row", fed_back},           {"nvfp4-nearest", "nvfp4", "fixed", to_nearest},
    {"nvfp4-feedback", "nvfp4", "fixed", fed_back},
});
[[nodiscard]] block_format stored_as(const choice& c);

/// Errors of o in (at[i - 1], at[i]], relative to o there: root mean square over tokens and values.
struct cached_run {
  std::vector<double> error;
};
struct head_runs {
  std::vector<cached_run> runs;  ///< as the choices given
  double half_life = 0;          ///< of the gates drawn, in tokens; infinite without a gate
  double dead = 0;               ///< share of entries that a token changes by less than half a step of int8 in rows, at the end
};
/// `tokens`: of `at.back()` tokens of K x V. Queries ask for keys of the past, drawn by `seed`.
[[nodiscard]] head_runs run_tokens(const token_list& tokens, const shape& s, std::span<const choice> which,
                                   std::span<const std::size_t> at, std::uint64_t seed);

}  // namespace deltaproof::detail::state_cache
