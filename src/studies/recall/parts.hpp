// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The parts of the study that stand in other files than study.cpp, and what all share: its sizes, and how a figure of the
// document is given. Figures without a note are of its tables at T = 1000.
#pragma once

#include "studies/recall/tasks.hpp"

namespace deltaproof::detail::recall {

inline constexpr std::size_t key_dim = 64;
inline constexpr std::size_t tokens = 1000;  ///< T of the document's tables
[[nodiscard]] inline std::size_t retrieval_runs(const run_options& o) { return o.size(24, 200); }
[[nodiscard]] inline std::size_t rule_tokens(const run_options& o) { return o.size(3000, 8000); }
inline const grid_axis<std::size_t> many_runs = draws(6, 12), few_runs = draws(3, 6);

inline const grid_axis<relation> formulas{"formula", {relations.begin(), relations.end()}};

/// A figure and the unit of its last printed digit.
struct printed {
  double value = 0;
  double unit = 0;
};

/// Table "Normalized MSE, Unnormalized MSE", DeltaNet.
[[nodiscard]] inline printed printed_error(relation f, bool normalised) {
  constexpr std::array<printed, relations.size()> raw{
      {{0.026, 1e-3}, {0.001, 1e-3}, {0.0001, 1e-4}, {0.00001, 1e-5}, {1.92, 1e-2}, {0.96, 1e-2}}};
  if (normalised) return {f == relation::identity ? 0.028 : 0.030, 1e-3};
  return raw[static_cast<std::size_t>(f)];
}

/// The reading that the printed figures come from.
inline constexpr std::string_view chosen = "apart after prefix";

using shared::root_mean_square;
/// The mean of each column under its name and the standard deviation (n - 1; 0 of one value) under its name and _sd.
[[nodiscard]] std::vector<aggregate> means(const std::vector<std::string>& columns);

/// What the text leaves open before a memory sees a token: norm before or after f, projections or none.
void add_axes(const run_options&, results&);
/// What is learnt, read with the token's own key; least squares, with and without a constant feature; gradients.
void add_learning(const run_options&, results&);
/// Keys of the past.
void add_retrieval(const run_options&, results&);
void add_convolution(const run_options&, results&);
/// A task whose answer is the next token: a mean over two tokens on q, k, v.
void add_successors(const run_options&, results&);
void add_information(const run_options&, results&);
/// All memories, on keys of one norm and of spread norms, with and without noise.
void add_rules(const run_options&, results&);
void add_cost(const run_options&, results&);

}  // namespace deltaproof::detail::recall
