// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the study negative-eigenvalues says; each section adds findings, tables and figures to the report.
#pragma once

#include <cstddef>
#include <vector>

#include "deltaproof/study/study.hpp"

namespace deltaproof::detail::negative_eigenvalues {

struct settings {
  std::size_t tokens = 4096;                                                     ///< longest word
  std::size_t reference_tokens = 20000;                                          ///< longest word in 256 bits
  std::size_t words = 9;                                                         ///< of each cell
  std::size_t reference_words = 3;                                               ///< of the 256-bit runs
  std::vector<double> steps{2, 1.984375, 1.96875, 1.9375, 1.875, 1.75, 1.5, 1};  ///< b, values of bf16
  std::vector<std::size_t> groups{2, 3, 5};
};
[[nodiscard]] settings settings_for(const run_options&);

/// The two conventions: fixed points, forced state.
void add_conventions(const run_options&, const settings&, report&);
/// Half-lives, and which logits keep the margin.
void add_margins(const run_options&, const settings&, report&);
/// Parity, S3, S5.
void add_words(const run_options&, const settings&, report&);

/// The median, and 0 ("none") counted as larger than all.
[[nodiscard]] std::size_t median_horizon(std::vector<std::size_t> horizons);

}  // namespace deltaproof::detail::negative_eigenvalues
