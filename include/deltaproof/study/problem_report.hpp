// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can make the page of one's own tensors: `report_on(problem, results, options)` says what keys,
// steps and gates are like, what an inverse of each chunk would form, which gate factors overflow which factorisation, how
// fast the state forgets, how the error of each result grows with the horizon beside what its plan allows, and the verdicts.
// Everything here is of one file; studies (study.hpp) are about laws of inputs. Shapes: those of the exchange format. Rounds:
// inputs are read exactly; what describes them is fp64 and estimates; errors are distances to the certified reference.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/study/study.hpp"

namespace deltaproof {

/// A result and how to judge it.
struct named_result {
  std::string path;  ///< as the reader knows it
  result values;
  std::vector<plan> plans;  ///< as in check_options; empty: measured only
  std::string command;      ///< that judges it alone, in the same way
};

struct problem_report_options {
  run_options run;        ///< threads, progress and interruption; the rest is not read
  std::size_t chunk = 0;  ///< rows of a chunk for what an inverse forms; 0: that of the first result that states one, else 64
  judging judge;
};

/// What the page says of where it comes from.
struct problem_identity {
  std::string name;     ///< of the report, lower case letters, digits and '-'
  std::string path;     ///< of the problem's file
  std::string command;  ///< that makes the report again
};

/// The report, with study = identity.name.
/// Throws: as check.
[[nodiscard]] report report_on(const problem& p, const problem_identity& identity, std::span<const named_result> results,
                               const problem_report_options& options = {});

}  // namespace deltaproof
