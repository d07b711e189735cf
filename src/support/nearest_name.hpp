// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Finds the name a user meant: `nearest_name(wrong, names)` is the name with the fewest letters inserted, deleted or
// replaced, unless that is a third of it. It exists so that a refusal can say what to write instead.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace deltaproof::detail {

/// The first of those nearest to `wrong`, else the first that holds it, case aside; "" where none is near.
[[nodiscard]] std::string_view nearest_name(std::string_view wrong, std::span<const std::string_view> names);
/// "; did you mean \"bf16\"? Choose from bf16, fp16, ...", or "; choose from bf16, ..." where none is near.
[[nodiscard]] std::string suggestion(std::string_view wrong, std::span<const std::string_view> names);

}  // namespace deltaproof::detail
