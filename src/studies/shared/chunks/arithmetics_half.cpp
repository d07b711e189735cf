// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <array>

#include "studies/shared/chunks/instantiate.hpp"

namespace deltaproof::detail::chunks {

std::span<const chunk_arithmetic> half_arithmetics() {
  static const std::array table{
      entry<half_arithmetic<bf16>>("bf16", "operands and stages bf16; sums, state and inverse fp32"),
      entry<half_arithmetic<fp16>>("fp16", "operands and stages fp16; sums, state and inverse fp32"),
  };
  return table;
}

}  // namespace deltaproof::detail::chunks
