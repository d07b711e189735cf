// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A small problem with cotangents, one head of keys read by two heads of values, for tests that look at gradients.
#pragma once

#include <cstddef>
#include <string>

#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof::testing {

[[nodiscard]] inline generation small_with_cotangents(op_kind op, std::size_t tokens, const std::string& regime = "typical") {
  generation g;
  g.regime = regime;
  g.op = op;
  g.tokens = tokens;
  g.key_dim = 8;
  g.value_dim = 6;
  g.key_heads = 1;
  g.value_heads = 2;
  g.seed = 5;
  g.cotangents = true;
  return g;
}

}  // namespace deltaproof::testing
