// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

namespace deltaproof::detail {

/// Why this is no accuracy that can be asked of a plan; nothing where it is one.
[[nodiscard]] std::optional<std::string> wrong_accuracy(double accuracy);

}  // namespace deltaproof::detail
