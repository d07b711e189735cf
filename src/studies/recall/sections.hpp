// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the recall study says: each section runs what it needs and adds findings, tables and figures to the report. A section
// that an interruption left incomplete adds nothing but a line to `unfinished`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/recall/tasks.hpp"

namespace deltaproof::detail::recall {

struct settings {
  std::size_t key_dim = 64;
  std::size_t tokens = 1000;        ///< T of the document's tables
  std::size_t runs = 6;             ///< of each cell of a table
  std::size_t retrieval_runs = 24;  ///< of the retrieval section
  std::size_t longest = 32000;      ///< T of the scaling section
  std::size_t longest_runs = 1;     ///< of it
  std::size_t rule_tokens = 3000;   ///< of the comparison of rules
};
[[nodiscard]] settings settings_for(const run_options&);

/// Which protocol gives the printed errors; what the errors are in units of E v^2.
void add_protocol(const run_options&, const settings&, report&);
/// Norm before or after f, projections or none.
void add_axes(const run_options&, const settings&, report&);
/// Moments on the sphere, and the closed forms against runs.
void add_moments(const run_options&, const settings&, report&);
/// Error against T: linear attention, DeltaNet, least squares.
void add_scaling(const run_options&, const settings&, report&);
/// What is learnt, read with the token's own key; least squares, with and without a constant feature; gradients.
void add_learning(const run_options&, const settings&, report&);
/// Keys of the past.
void add_retrieval(const run_options&, const settings&, report&);
void add_convolution(const run_options&, const settings&, report&);
/// A task whose answer is the next token: convolution on k, on v, on both.
void add_successors(const run_options&, const settings&, report&);
void add_information(const run_options&, const settings&, report&);
/// All memories, on keys of one norm and of spread norms, with and without noise.
void add_rules(const run_options&, const settings&, report&);
void add_cost(const settings&, report&);

/// "identity", ...
[[nodiscard]] std::string name_of(relation);

}  // namespace deltaproof::detail::recall
