// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can put bytes or text into a file in one step: a reader meets what was there before or all
// of it, never half. Everything the library and the program write goes through it.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace deltaproof {

/// Writes `bytes` beside `path` and renames, so that `path` is never half a file; a link keeps pointing where it did.
/// What exists and is not a regular file (a pipe, a device) is written to directly. Throws: format_error.
void write_file(const std::filesystem::path& path, std::string_view bytes);
/// The same of pieces that follow each other in the file and lie apart in memory.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> pieces);

/// Asked before long work whose outcome goes to `path`: whether write_file could. Throws: format_error where it could not.
void require_writable(const std::filesystem::path& path);

}  // namespace deltaproof
