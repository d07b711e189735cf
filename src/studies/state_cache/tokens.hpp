// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Tokens of one head, with model-like gates and steps and keys of a vocabulary.
#pragma once

#include "studies/shared/common.hpp"

namespace deltaproof::detail::state_cache {

/// g = -rate softplus(N(0,1) + bias), softplus(bias) = dt, as gated DeltaNet models start.
/// beta = sigmoid(N(0,1) + logit). Keys: a vocabulary of unit vectors rounded to bf16, the r-th word with frequency 1/r; values:
/// one for each word and noise half as large, rounded to bf16.
struct head {
  std::string_view name;
  double rate = 0;
  double dt = 0.001;
  double logit = 0;
};
inline constexpr std::array<head, 4> heads{
    {{"short", 8, 0.05, 0}, {"medium", 1, 0.01, 0}, {"long", 0.05, 0.001, 0}, {"long-slow", 0.05, 0.001, -5}}};

struct shape {
  std::size_t key_dim = 32;
  std::size_t value_dim = 4;
  std::size_t words = 256;
};

/// k and v are bf16 values; beta, g and decay (e^g rounded once) fp32 values.
struct token_list {
  std::vector<double> k, v, beta, g, decay;
};
[[nodiscard]] token_list draw_tokens(const head&, const shape&, std::size_t count, std::uint64_t seed);

}  // namespace deltaproof::detail::state_cache
