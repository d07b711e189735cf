// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "inverse/inverse_runs.hpp"

namespace deltaproof::detail {

std::span<const inverse_arithmetic> inverse_arithmetics_wide() {
  static constexpr std::array<inverse_arithmetic, 6> table{inverse_in<fp64, fp64>(), inverse_in<fp32, fp32>(),
                                                           inverse_in<fp32, fp64>(), inverse_in<tf32, tf32>(),
                                                           inverse_in<tf32, fp32>(), inverse_in<tf32, fp64>()};
  return table;
}

}  // namespace deltaproof::detail
