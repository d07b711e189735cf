// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the gates study says; each section adds findings, tables and figures to the report.
#pragma once

#include <cstddef>
#include <vector>

#include "deltaproof/study/study.hpp"

namespace deltaproof::detail::gates {

struct settings {
  std::vector<std::size_t> chunks{16, 32, 64};  ///< of the limits
  std::size_t heads = 64;                       ///< of model-like gates
  std::size_t tokens = 256;                     ///< of each head
  std::size_t draws = 4;                        ///< of random gates for the sums
};
[[nodiscard]] settings settings_for(const run_options&);

/// Decays that round to 1, and what that does to memories.
void add_decays(const run_options&, const settings&, report&);
/// Which gates overflow which factorisation.
void add_limits(const run_options&, const settings&, report&);
/// Cumulative sums: what large gates and resets cost the ratios beside them.
void add_sums(const run_options&, const settings&, report&);

}  // namespace deltaproof::detail::gates
