// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Names and notes from other people's files, made fit to be shown: `printable` for a terminal, Markdown and anything else that
// takes text as it is, `markup_escaped` for XML, SVG and HTML. What a reader could not see, or what would move the cursor or turn
// the direction of the text around it, is spelled out.
#pragma once

#include <string>
#include <string_view>

namespace deltaproof::detail {

/// UTF-8 without control characters other than line feed and tab: those (C0, DEL, C1), marks of direction, invisible characters
/// and code points that stand for none become "\x1b" or "\u{202e}"; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string printable(std::string_view text);

/// The same of what must stay one line: a name that could fake the line after it.
[[nodiscard]] std::string printable_line(std::string_view text);

/// `printable`, with &, <, > and " as entities.
[[nodiscard]] std::string markup_escaped(std::string_view text);

}  // namespace deltaproof::detail
