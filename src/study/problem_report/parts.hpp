// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The sections of a report on one problem, in the order of its page; each adds its findings, tables and figures.
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
  const problem_identity& identity;
  std::vector<lowered_head> heads;
  std::size_t chunk;
  const problem_report_options& options;
};

void add_inputs(const subject& of, report& to);
void add_chunks(const subject& of, report& to);
void add_gates(const subject& of, report& to);
void add_memory(const subject& of, report& to);
/// The verdicts, and errors against the horizon; returns a sentence for each result.
std::vector<std::string> add_results(const subject& of, std::span<const named_result> results, report& to);

}  // namespace deltaproof::problem_report_detail
