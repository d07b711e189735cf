// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can read a file that somebody else named: `read_file(path, limit)` gives its text, `input_file` its
// bytes piece by piece. Only regular files are opened (a pipe or a device would be waited for, or read for ever), no larger
// than a stated limit, and every refusal names the file. Every file the library and the program open goes through it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace deltaproof {

/// The largest file of a kind that is read into memory, and what that kind is called in messages.
struct size_limit {
  std::string_view of;
  std::size_t bytes;
};
inline constexpr size_limit plan_limit{"a plan", std::size_t{1} << 20};
inline constexpr size_limit suite_limit{"a suite", std::size_t{1} << 24};
inline constexpr size_limit verdict_limit{"a verdict", std::size_t{1} << 28};
inline constexpr size_limit suite_verdict_limit{"the JSON of a suite", std::size_t{1} << 30};
inline constexpr size_limit report_limit{"a page or figure of a report", std::size_t{1} << 28};

/// An open regular file. Throws: format_error where there is none, or it cannot be read.
class input_file {
 public:
  explicit input_file(const std::filesystem::path& path);
  ~input_file();
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;
  /// When it was opened.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The bytes from `at` on. Throws: format_error where the file has become shorter.
  void read(std::size_t at, std::span<std::byte> bytes) const;

 private:
  std::string where_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
};

/// All of a regular file. Throws: format_error, also where it is larger than the limit.
[[nodiscard]] std::string read_file(const std::filesystem::path& path, const size_limit& limit);

namespace detail {

/// Levels of brackets, of braces and of the segments of a dotted key: a reader goes down as many.
inline constexpr std::size_t deepest_nesting = 64;
/// Throws: format_error if JSON text nests deeper; whatever else is wrong with it is left to its parser.
void require_shallow_json(std::string_view text, const std::string& where);
/// The same of TOML, whose dotted keys nest too; and for letters beyond ASCII outside texts and comments, which TOML has not and
/// whose handling in toml++ 3.3 is undefined.
void require_shallow_toml(std::string_view text, const std::string& where);

}  // namespace detail
}  // namespace deltaproof
