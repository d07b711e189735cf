// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <array>

#include "studies/shared/chunks/instantiate.hpp"

namespace deltaproof::detail::chunks {

std::span<const chunk_arithmetic> inverse_arithmetics() {
  using stages = half_arithmetic<bf16>;
  static const std::array table{
      entry<stages, single_arithmetic, half_arithmetic<tf32>>("bf16, merges tf32",
                                                              "as bf16, merges of the inverse with tf32 operands"),
      entry<stages, half_arithmetic<bf16>>("bf16, inverse bf16", "as bf16, the whole inverse with bf16 operands and fp32 sums"),
  };
  return table;
}

}  // namespace deltaproof::detail::chunks
