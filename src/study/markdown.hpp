// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the pages of a report and their index share.
#pragma once

#include <string>
#include <string_view>

#include "deltaproof/study/report.hpp"

namespace deltaproof::detail {

/// Plain text as Markdown that shows it: one line, no markup, safe inside a table.
[[nodiscard]] std::string escaped(std::string_view text);
/// "10⁻³".
[[nodiscard]] std::string power_of_ten(int exponent);
/// "State cache" for the study state-cache.
[[nodiscard]] std::string title_of(const report&);

}  // namespace deltaproof::detail
