// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The files of one run: each verb declares, beside its options, which of them name files that are read and which name files
// that are written. `require_apart` compares them all before any work, as files and not as words: a link, another spelling or
// a path that is not there yet is found too. It exists so that no output replaces an input or another output.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace deltaproof::cli {

class run_files {
 public:
  /// The option's words are files that are read; of a folder, all files in it. An empty word is refused. Gives the option back.
  CLI::Option* reads(CLI::Option* option);
  /// The same of a plan, which is a file only where its name ends in .toml.
  CLI::Option* reads_plan(CLI::Option* option);
  /// The option's words are files that are written; "-" is stdout.
  CLI::Option* writes(CLI::Option* option);

  /// The same of what a verb learns later than its options: the cases of a suite, the files of a recorded verdict.
  void reads(const std::string& option, const std::filesystem::path& file);
  void writes(const std::string& option, const std::filesystem::path& file);
  /// Files in a folder, those there and those to come, whose names `of_ours` knows.
  void writes_in(const std::string& option, const std::filesystem::path& folder, std::function<bool(const std::string&)> of_ours);

  /// Throws: format_error if a file would be read and written, or written twice, or cannot be written.
  void require_apart() const;

 private:
  enum class use { read, read_plan, written };
  struct declared {
    const CLI::Option* option;
    use as;
  };
  struct named {
    std::string option;
    std::filesystem::path file;
    bool written;
  };
  struct folder {
    std::string option;
    std::filesystem::path path;
    std::function<bool(const std::string&)> of_ours;
  };
  [[nodiscard]] std::vector<named> all() const;

  std::vector<declared> declared_;
  std::vector<named> named_;
  std::vector<folder> folders_;
};

}  // namespace deltaproof::cli
