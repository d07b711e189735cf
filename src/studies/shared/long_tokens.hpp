// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Tokens of one head for as long as one likes, with model-like gates and steps and keys of a vocabulary: what the studies of
// states that are kept in few bits run on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "deltaproof/number/random.hpp"

namespace deltaproof::detail::shared {

/// g = -rate softplus(N(0,1) + bias), softplus(bias) = dt, as gated DeltaNet models start; rate 0: no gate.
/// beta = sigmoid(N(0,1) + logit). Keys: a vocabulary of unit vectors rounded to bf16, the r-th word with frequency 1/r; values:
/// one for each word and noise half as large, rounded to bf16.
struct head {
  std::string_view name;
  double rate = 0;
  double dt = 0.001;
  double logit = 0;
};
inline constexpr std::array<head, 6> heads{{{"short", 8, 0.05, 0},
                                            {"medium", 1, 0.01, 0},
                                            {"long", 0.05, 0.001, 0},
                                            {"long-slow", 0.05, 0.001, -5},
                                            {"no-gate", 0, 0.001, 0},
                                            {"no-gate-slow", 0, 0.001, -5}}};

struct shape {
  std::size_t key_dim = 32;
  std::size_t value_dim = 4;
  std::size_t words = 256;
};

/// Tokens first ... first + count - 1 of a head. k and v are bf16 values; beta, g and decay (e^g rounded once) fp32 values.
struct tokens {
  std::vector<double> k, v, beta, g, decay;
};
/// Makes the tokens of a head block after block; equal arguments give equal tokens, whatever the blocks.
class token_source {
 public:
  token_source(const head&, const shape&, std::uint64_t seed);
  [[nodiscard]] tokens next(std::size_t count);

 private:
  head head_;
  shape shape_;
  philox choice_, gate_, step_, noise_;
  double bias_ = 0;
  std::vector<double> words_, values_, frequency_;
};

}  // namespace deltaproof::detail::shared
