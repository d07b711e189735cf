// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Finds the name a user meant: `nearest_name(wrong, names)` is the name with the fewest letters inserted, deleted or
// replaced. It exists so that a refusal can say what to write instead.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace deltaproof::detail {

/// The first of those nearest to `wrong`, case aside; "" if there are none.
[[nodiscard]] std::string_view nearest_name(std::string_view wrong, std::span<const std::string_view> names);
/// "; did you mean \"bf16\"? There are bf16, fp16, ...".
[[nodiscard]] std::string suggestion(std::string_view wrong, std::span<const std::string_view> names);

}  // namespace deltaproof::detail
