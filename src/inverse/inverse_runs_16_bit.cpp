// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "inverse/inverse_runs.hpp"

namespace deltaproof::detail {

std::span<const inverse_arithmetic> inverse_arithmetics_16_bit() {
  static constexpr std::array<inverse_arithmetic, 8> table{
      inverse_in<fp16, fp16>(), inverse_in<fp16, tf32>(), inverse_in<fp16, fp32>(), inverse_in<fp16, fp64>(),
      inverse_in<bf16, bf16>(), inverse_in<bf16, tf32>(), inverse_in<bf16, fp32>(), inverse_in<bf16, fp64>()};
  return table;
}

}  // namespace deltaproof::detail
