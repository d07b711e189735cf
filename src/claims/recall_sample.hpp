// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The experiment of document `recall`, run: DeltaNet (β = 1) and RLS (ridge 10⁻⁶) on keys uniform on the unit sphere of 64
// channels and values f(k), in double.
#pragma once

#include <cstdint>

#include "claims/recall_parts.hpp"

namespace deltaproof::claim_detail {

inline constexpr std::uint64_t recall_draws = 4;
inline constexpr std::uint64_t recall_tokens = 1000;
inline constexpr std::uint64_t recall_seed = 1;

/// Mean of the draws, and half the range of their means.
struct sampled_mean {
  double mean = 0;
  double half_range = 0;
};

/// Mean squared errors per channel.
struct recall_sample {
  sampled_mean delta_error;  ///< at a query independent of the keys, against the token's own value, over all tokens
  sampled_mean rls_error;
  sampled_mean delta_retrieval;  ///< of the final state at all stored keys
  sampled_mean rls_retrieval;
  sampled_mean mean_square;    ///< of the values: the error of predicting 0
  double least_retrieval = 0;  ///< DeltaNet, of one stored key, over all draws
  double most_retrieval = 0;
};

[[nodiscard]] recall_sample sample_recall(relationship f, bool normalised);
/// The mean as `name`, the spread as `name_half_range`.
void put(claim_values& values, const std::string& name, const sampled_mean& m);

/// DeltaNet, v = k: S_T − I is a product of projections, so a fresh unit vector is missed by (1 − 1/d)^T / d a channel.
[[nodiscard]] claim_values identity_retrieval();

}  // namespace deltaproof::claim_detail
