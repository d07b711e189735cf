// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `deltaproof report PROBLEM [RESULT...]`: the page of one's own tensors.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "deltaproof/referee/judging.hpp"

namespace deltaproof::cli {

struct problem_report_arguments {
  std::string problem;
  std::vector<std::string> results;
  std::string output;
  std::string plan;
  bool no_plan = false;
  judging judge;
  std::size_t chunk = 0;
};

void add_problem_report_options(CLI::App& command, problem_report_arguments& args, common_options& common);
/// The worst verdict's exit code.
int run_problem_report(const problem_report_arguments& args, const common_options& common);

}  // namespace deltaproof::cli
