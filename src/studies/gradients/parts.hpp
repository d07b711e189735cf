// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the parts of the study gradients share: sizes, laws and seeds.
#pragma once

#include "studies/gradients/runs.hpp"

namespace deltaproof::detail::gradients {

inline constexpr std::size_t dim = 64;        ///< K = V of most runs
inline constexpr std::size_t norm_dim = 128;  ///< of keys that are normalised
inline constexpr double usual_length = 10;    ///< of such a key: near sqrt(norm_dim)
[[nodiscard]] inline std::size_t tokens_of(const run_options& options) { return options.size(512, 2048); }
[[nodiscard]] inline std::size_t vectors_of(const run_options& options) { return options.size(40, 400); }

inline const grid_axis<law> all_laws{"law", {laws.begin(), laws.end()}};
[[nodiscard]] inline std::uint64_t seed_of(const run_options& options, std::size_t draw) { return 1000 * options.seed + draw; }
[[nodiscard]] inline double squared(double x) { return x * x; }

/// The backward pass of the l2norm, and how much of dk it would meet along the keys.
void add_norm(const run_options&, results&);

}  // namespace deltaproof::detail::gradients
