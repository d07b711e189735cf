// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the program does for a person at a terminal, and for nobody else: lines wrapped to its width, the words that decide in
// colour. What goes to a file or a pipe is the plain text.
#pragma once

#include <cstddef>
#include <string>

namespace deltaproof::cli {

struct screen {
  std::size_t columns = 0;  ///< 0: no terminal, text stays as it is
  bool colour = false;      ///< not where NO_COLOR is set or TERM is dumb
};
/// Of stdout (1) or stderr (2).
[[nodiscard]] screen screen_of(int descriptor);

/// Lines wrapped between words, continued below where their last column begins; a line that is a command to copy stays whole.
[[nodiscard]] std::string fitted(const std::string& text, const screen& on);

/// "38 s", "2 min 10 s", "1 h 3 min".
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace deltaproof::cli
