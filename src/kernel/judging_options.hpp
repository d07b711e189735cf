// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

namespace deltaproof::detail {

/// More threads than any machine has are a slip, or a negative number.
inline constexpr unsigned most_threads = 4096;

/// Why this is no accuracy that can be asked of a plan; nothing where it is one.
[[nodiscard]] std::optional<std::string> wrong_accuracy(double accuracy);

}  // namespace deltaproof::detail
