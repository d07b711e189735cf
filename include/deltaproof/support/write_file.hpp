// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can put bytes or text into a file in one step: a reader meets what was there before or all
// of it, never half. Everything the library and the program write goes through it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace deltaproof {

/// Writes `bytes` beside `path` and renames, so that `path` is never half a file; a link keeps pointing where it did.
/// What exists and is not a regular file (a pipe, a device) is written to directly. Throws: format_error.
void write_file(const std::filesystem::path& path, std::string_view bytes);
/// The same of pieces that follow each other in the file and lie apart in memory.
void write_file(const std::filesystem::path& path, std::span<const std::string_view> pieces);

/// The same piece by piece: `path` is what it was until `finish`, and stays so where that is never called.
class file_writer {
 public:
  explicit file_writer(const std::filesystem::path& path);
  ~file_writer();
  file_writer(const file_writer&) = delete;
  file_writer& operator=(const file_writer&) = delete;
  void write(std::string_view bytes);
  void finish();

 private:
  friend class file_batch;
  void settle();  // all bytes are with the system
  struct state;
  std::unique_ptr<state> state_;
};

/// Several files that appear together: each is written beside its place, and takes it in `finish`. Where one cannot be written,
/// or `finish` is never called, none has changed.
class file_batch {
 public:
  void add(const std::filesystem::path& path, std::string_view bytes);
  void finish();

 private:
  std::vector<std::unique_ptr<file_writer>> files_;
};

/// The folder and those above it, where they are not there yet. Throws: format_error.
void make_folder(const std::filesystem::path& folder);
/// A new empty folder beside `path`, under a name that nobody else has.
[[nodiscard]] std::filesystem::path new_folder_beside(const std::filesystem::path& path);

/// A file without a name beside `path` (elsewhere if that is no regular file), gone with this object or with the process: room
/// for what does not fit memory. From any thread, for different places. Throws: format_error, as write_file, also where what is
/// read was not written.
class scratch_file {
 public:
  explicit scratch_file(const std::filesystem::path& path);
  ~scratch_file();
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  void write(std::size_t at, std::span<const std::byte> bytes) const;
  void read(std::size_t at, std::span<std::byte> bytes) const;

 private:
  std::filesystem::path shown_;
  int descriptor_ = -1;
};

/// Asked before long work whose outcome goes to `path`: whether write_file could. Throws: format_error where not.
void require_writable(const std::filesystem::path& path);

}  // namespace deltaproof
