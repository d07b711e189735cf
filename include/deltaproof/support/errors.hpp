// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The exceptions of the library. A broken precondition throws one of them and its message names the
// operands, the values and the remedy. Results that overflow, turn into NaN or diverge are findings,
// never exceptions.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace deltaproof {

/// Base of everything the library throws on purpose.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Two shapes that do not fit together, or a shape that is not allowed.
struct shape_error : error {
  using error::error;
};

/// A value outside the set on which an operation is defined or exact.
struct domain_error : error {
  using error::error;
};

/// A file, a name or a bit pattern that is not what its format says.
struct format_error : error {
  using error::error;
};

/// `text` between quotes, control characters escaped and what is long cut short: names from files, for messages.
[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace deltaproof
