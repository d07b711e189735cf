// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `check SUITE.toml`: what `check` runs when its only argument is a list of cases. It exists so that one command judges
// everything a kernel author brings back.
#pragma once

#include "cli/program.hpp"
#include "deltaproof/referee/judging.hpp"

namespace deltaproof::cli {

/// The options of `check` that a suite has; what a case states for itself is not among them.
struct suite_arguments {
  std::string file;
  std::string baseline;  ///< a suite's JSON; empty: none
  bool skip_missing = false;
  judging judge;
};

/// The exit code: 2 where a case could not be judged. Throws: format_error where the suite or the baseline cannot be read.
[[nodiscard]] int run_suite_file(const suite_arguments& args, const common_options& common);

}  // namespace deltaproof::cli
