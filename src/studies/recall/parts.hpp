// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The parts of the study that stand in other files than study.cpp, and what all share: its sizes, and how a figure of the
// document is given. Figures without a note are of its tables at T = 1000.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "deltaproof/study/grid.hpp"
#include "studies/recall/tasks.hpp"

namespace deltaproof::detail::recall {

inline constexpr std::size_t key_dim = 64;
inline constexpr std::size_t tokens = 1000;  ///< T of the document's tables
[[nodiscard]] inline std::size_t runs_of(const run_options& o) { return o.size(6, 12); }
[[nodiscard]] inline std::size_t retrieval_runs(const run_options& o) { return o.size(24, 200); }
[[nodiscard]] inline std::size_t rule_tokens(const run_options& o) { return o.size(3000, 8000); }

inline const grid_axis<relation> formulas{"formula", {relations.begin(), relations.end()}};

/// A figure and the unit of its last printed digit.
struct printed {
  double value = 0;
  double unit = 0;
};

/// Table "Normalized MSE, Unnormalized MSE", DeltaNet; rows as `relations`.
struct printed_error {
  printed normalised, raw;
};
inline constexpr std::array<printed_error, relations.size()> printed_errors{{{{0.028, 1e-3}, {0.026, 1e-3}},
                                                                             {{0.030, 1e-3}, {0.001, 1e-3}},
                                                                             {{0.030, 1e-3}, {0.0001, 1e-4}},
                                                                             {{0.030, 1e-3}, {0.00001, 1e-5}},
                                                                             {{0.030, 1e-3}, {1.92, 1e-2}},
                                                                             {{0.030, 1e-3}, {0.96, 1e-2}}}};
[[nodiscard]] inline const printed_error& printed_errors_of(relation f) { return printed_errors[static_cast<std::size_t>(f)]; }

/// The reading that the printed figures come from.
inline constexpr std::string_view chosen = "apart after prefix";

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
