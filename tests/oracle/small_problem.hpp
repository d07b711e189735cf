// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A problem of any regime that is small enough for MPFR, intervals and rationals to follow: `small(regime, tokens, seed)`.
// Eight channels and rows where the regime leaves them free; its own tokens where it is about lengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof::testing {

inline problem small(const std::string& regime, std::size_t tokens, std::uint64_t seed) {
  generation g;
  g.regime = regime;
  g.seed = seed;
  if (regime != "varlen" && regime != "tails") g.tokens = tokens;
  if (regime != "exact") {
    g.key_dim = 8;
    g.value_dim = regime == "k-ne-v" ? 5 : 8;
  }
  return generate(g);
}

}  // namespace deltaproof::testing
