// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A folder that `gen` fills: its files appear together or not at all, a manifest names them with their hashes, and a folder that
// holds anything else, or a file that was changed since, is refused.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace deltaproof::cli {

inline constexpr const char* manifest_name = "manifest.json";
inline constexpr const char* manifest_schema = "deltaproof.manifest/1";

/// The files of an earlier `gen`. Throws: format_error if the folder holds anything else, or one of them was changed.
[[nodiscard]] std::vector<std::string> earlier_files(const std::filesystem::path& folder);

/// A folder inside the wanted one that is gone again unless its files were moved out.
class unfinished_folder {
 public:
  explicit unfinished_folder(std::filesystem::path wanted);
  ~unfinished_folder();
  unfinished_folder(const unfinished_folder&) = delete;
  unfinished_folder& operator=(const unfinished_folder&) = delete;

  void add(const std::string& name, std::string_view bytes);
  /// `more`: an object whose keys the manifest has besides; empty: none.
  void finish(const std::vector<std::string>& earlier, const std::string& more = {});

 private:
  std::filesystem::path wanted_;
  bool made_;
  bool finished_ = false;
  std::filesystem::path path_;
  std::map<std::string, std::string> files_;
};

}  // namespace deltaproof::cli
