// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <array>

#include "studies/shared/chunks/instantiate.hpp"

namespace deltaproof::detail::chunks {

std::span<const chunk_arithmetic> wide_arithmetics() {
  static const std::array table{
      entry<half_arithmetic<tf32>>("tf32", "operands and stages tf32; sums, state and inverse fp32"),
      entry<single_arithmetic>("fp32", "everything fp32"),
      entry<plain<double>>("fp64", "everything fp64"),
  };
  return table;
}

}  // namespace deltaproof::detail::chunks
