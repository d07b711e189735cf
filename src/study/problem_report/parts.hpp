// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The numbers of a report on one problem, for problem_report/page.md; each section adds its values and frames.
#pragma once

#include <string>
#include <vector>

#include "deltaproof/oracle/lower.hpp"
#include "deltaproof/study/problem_report.hpp"

namespace deltaproof::problem_report_detail {

/// One head, lowered to fp64, and where it lies.
struct lowered_head {
  std::size_t sequence;
  std::size_t head;
  lowered<double> in;
};

/// What all sections read.
struct subject {
  const problem& p;
  std::vector<lowered_head> heads;
  std::size_t chunk;
  const problem_report_options& options;
};

inline constexpr std::size_t block = 16;   ///< rows of a diagonal block, tokens of a block of gates
inline constexpr std::size_t listed = 64;  ///< heads that tables list

void add_inputs(const subject& of, results& to);
void add_chunks(const subject& of, results& to);
void add_gates(const subject& of, results& to);
void add_memory(const subject& of, results& to);
/// The verdicts, and errors against the horizon; returns a finding for each result.
std::vector<finding> add_results(const subject& of, std::span<const named_result> judged, results& to);

}  // namespace deltaproof::problem_report_detail
