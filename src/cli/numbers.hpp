// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Numbers on the command line: each refusal says what is wrong with the word and what to write instead.
#pragma once

#include <CLI/CLI.hpp>

namespace deltaproof::cli {

/// A finite decimal from `least` to `most`. "0.5%" is refused with the number to write.
[[nodiscard]] CLI::Validator number_within(double least, double most);
/// A finite decimal above 0.
[[nodiscard]] CLI::Validator positive_number();
[[nodiscard]] CLI::Validator integer_within(long long least, long long most);

}  // namespace deltaproof::cli
