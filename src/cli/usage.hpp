// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What is said of a command line that cannot be run: which word is wrong, and the nearest that would be right; and how usage
// lines show positional words.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

namespace deltaproof::cli {

/// Of every --help.
[[nodiscard]] std::shared_ptr<CLI::Formatter> help_formatter();

/// "; did you mean "check"? There are check, ...", of the verbs of `app`.
[[nodiscard]] std::string verb_suggestion(const CLI::App& app, const std::string& wrong);

/// One sentence, or one for each word that nothing takes.
[[nodiscard]] std::string usage_error(const CLI::App& app, const CLI::ParseError& e);

}  // namespace deltaproof::cli
