// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Results and the words of a page become a report. What a run left out is left out of the report, whose one sentence about it is
// made here; what a page expects and the values are not stands in the report at that place and in `failed`.
#pragma once

#include "deltaproof/study/report.hpp"
#include "study/scope.hpp"
#include "study/toml_section.hpp"

namespace deltaproof::detail {

/// Throws: format_error naming page and line where the page names what the results lack.
[[nodiscard]] report rendered(const page&, const results&);

/// What the TOML of a block describes; a key that is not known is refused by name.
[[nodiscard]] table table_of(toml_section block, const std::string& id, const scope&);
[[nodiscard]] figure figure_of(toml_section block, const std::string& id, const scope&);

/// The rows of a frame for which all comparisons hold.
[[nodiscard]] frame chosen(const frame& rows, const std::vector<prose>& where, const scope& around);
/// The combinations of values that some columns have, in order of appearance: a frame with those columns.
[[nodiscard]] frame combinations(const frame& rows, const std::vector<std::string>& columns);

}  // namespace deltaproof::detail
