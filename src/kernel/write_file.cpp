// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/kernel/write_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "deltaproof/number/errors.hpp"

namespace deltaproof {
namespace {

[[noreturn]] void cannot_write(const std::filesystem::path& path, int code) {
  throw format_error(path.string() + ": cannot be written: " + std::strerror(code));
}

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

class open_file {
 public:
  /// `shown` is the path that errors name.
  open_file(const std::filesystem::path& path, const std::filesystem::path& shown, int flags) : path_(shown), descriptor_(::open(path.c_str(), flags, 0666)) {
    if (descriptor_ < 0) cannot_write(shown, errno);
  }
  ~open_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  void write(std::string_view bytes) const { write_all(descriptor_, bytes, path_); }
  void close() {
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) != 0) cannot_write(path_, errno);
  }

 private:
  const std::filesystem::path& path_;
  int descriptor_;
};

}  // namespace

void require_writable(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) cannot_write(path, EISDIR);
  const bool exists = std::filesystem::exists(path, ignored);
  const std::filesystem::path target = exists ? std::filesystem::canonical(path, ignored) : path;
  const bool in_place = exists && !std::filesystem::is_regular_file(path, ignored);
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
  if (::access(in_place ? path.c_str() : folder.c_str(), W_OK) != 0) cannot_write(path, errno);
}

void write_file(const std::filesystem::path& path, std::string_view bytes) { write_file(path, std::span(&bytes, 1)); }

void write_file(const std::filesystem::path& path, std::span<const std::string_view> pieces) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    open_file out(path, path, O_WRONLY | O_CLOEXEC);  // a rename would replace the device itself
    for (const std::string_view piece : pieces) out.write(piece);
    out.close();
    return;
  }
  const std::filesystem::path target = std::filesystem::exists(status) ? std::filesystem::canonical(path) : path;
  std::filesystem::path partial = target;
  partial += "." + std::to_string(::getpid()) + ".partial";
  try {
    open_file out(partial, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    for (const std::string_view piece : pieces) out.write(piece);
    out.close();
    std::error_code error;
    std::filesystem::rename(partial, target, error);
    if (error) cannot_write(path, error.value());
  } catch (...) {
    std::filesystem::remove(partial, ignored);
    throw;
  }
}

}  // namespace deltaproof
