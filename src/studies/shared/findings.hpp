// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What a study's answer reads: a finding of its report by id, and one of its values as a number or as text. An
// interruption leaves findings out, so each says by its result that there is none.
#pragma once

#include <string>
#include <string_view>

#include "deltaproof/study/report.hpp"

namespace deltaproof::detail::shared {

/// A finding of this id, or null.
[[nodiscard]] const finding* find(const report&, std::string_view id);

/// One of its values as a double: an integer or a double as it is, true as 1, false as 0; NaN for text and where there
/// is none.
[[nodiscard]] double value_of(const report&, std::string_view id, const std::string& key);

/// The same as a reader sees it; empty where there is none.
[[nodiscard]] std::string text_of(const report&, std::string_view id, const std::string& key);

}  // namespace deltaproof::detail::shared
