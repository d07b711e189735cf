// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The options of judging, the same for every verb that judges.
#pragma once

#include "cli/program.hpp"
#include "deltaproof/check/check.hpp"

namespace deltaproof::cli {

/// --false-alarm, --accuracy, --no-power, --max-bits and --strict-padding. `with`: before each description, as "With PROBLEM: ".
void add_judging_options(CLI::App& command, judging& judge, const std::string& with = {});

/// Threads and stop as common to all verbs; progress is shown on `line`.
[[nodiscard]] check_options watched(const common_options& common, progress_line& line);

}  // namespace deltaproof::cli
