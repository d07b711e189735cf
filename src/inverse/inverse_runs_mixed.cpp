// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "inverse/inverse_runs.hpp"

namespace deltaproof::detail {

std::span<const inverse_arithmetic> inverse_arithmetics_mixed() {
  static constexpr std::array<inverse_arithmetic, 3> table{inverse_in<fp32, fp32, tf32>(), inverse_in<fp32, fp32, fp16>(),
                                                           inverse_in<fp32, fp32, bf16>()};
  return table;
}

}  // namespace deltaproof::detail
