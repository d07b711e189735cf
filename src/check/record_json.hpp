// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The options of a check as JSON: what a verdict writes under `options`, and `replay` reads back.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "deltaproof/check/check.hpp"

namespace deltaproof::check_detail {

[[nodiscard]] nlohmann::ordered_json json_of(const check_record& record);
/// Throws: format_error that names `file` where a key is missing, a bound is none or a plan's text has another hash.
[[nodiscard]] check_record record_of(const nlohmann::ordered_json& options, const std::filesystem::path& file);

/// A key of a verdict. Throws: format_error that names `file` where it lacks it.
[[nodiscard]] const nlohmann::ordered_json& key_of(const nlohmann::ordered_json& j, const char* key,
                                                   const std::filesystem::path& file);

}  // namespace deltaproof::check_detail
