// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/support/write_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include "deltaproof/support/errors.hpp"

namespace deltaproof {
namespace {

[[noreturn]] void cannot_write(const std::filesystem::path& path, int code) {
  std::error_code none;
  const std::filesystem::path folder = path.parent_path();
  if (code == ENOENT && !folder.empty() && !std::filesystem::exists(folder, none))
    throw format_error(path.string() + ": cannot be written: the folder " + folder.string() + " does not exist; create it first");
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

/// The name of this machine, as far as it may stand in a file's name.
std::string host_name() {
  char name[33] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "host";
  std::string out(name);
  for (char& letter : out) {
    const bool plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (!plain && letter != '-') letter = '-';
  }
  return out;
}

/// Tries names beside `target` until `make(name)` succeeds on one that was not there: two writers may have one process id, on two
/// machines, in two containers or two threads. Gives errno where none can be made.
template <class Make>
int make_beside(const std::filesystem::path& target, const char* what, std::filesystem::path& made, const Make& make) {
  std::random_device random;
  for (int tries = 0; tries < 100; ++tries) {
    made = target;
    made += "." + host_name() + "-" + std::to_string(::getpid()) + "-" + std::to_string(random()) + "." + what;
    if (make(made)) return 0;
    if (errno != EEXIST) break;
  }
  return errno;
}

class open_file {
 public:
  /// `shown` is the path that errors name.
  open_file(int descriptor, const std::filesystem::path& shown) : path_(shown), descriptor_(descriptor) {}
  ~open_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  void write(std::string_view bytes) const { write_all(descriptor_, bytes, path_); }
  void close() {
    const int descriptor = std::exchange(descriptor_, -1);
    if (descriptor < 0) return;
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
  file_writer out(path);
  for (const std::string_view piece : pieces) out.write(piece);
  out.finish();
}

/// What exists and is not a regular file is opened itself: a rename would replace the device.
struct file_writer::state {
  std::filesystem::path shown, target, partial;
  std::optional<open_file> out;
};

file_writer::file_writer(const std::filesystem::path& path) : state_{std::make_unique<state>()} {
  state& s = *state_;
  s.shown = path;
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0) cannot_write(path, errno);
    s.out.emplace(descriptor, s.shown);
    return;
  }
  s.target = std::filesystem::exists(status) ? std::filesystem::canonical(path) : path;
  int descriptor = -1;
  const int code = make_beside(s.target, "partial", s.partial, [&](const std::filesystem::path& name) {
    descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return descriptor >= 0;
  });
  if (code != 0) {
    s.partial.clear();
    cannot_write(s.shown, code);
  }
  s.out.emplace(descriptor, s.shown);
}

file_writer::~file_writer() {
  if (!state_->out || state_->partial.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(state_->partial, ignored);
}

void file_writer::write(std::string_view bytes) { state_->out->write(bytes); }

void file_writer::settle() { state_->out->close(); }

void file_writer::finish() {
  state& s = *state_;
  s.out->close();
  if (!s.partial.empty()) {
    std::error_code error;
    std::filesystem::rename(s.partial, s.target, error);
    if (error) cannot_write(s.shown, error.value());
  }
  s.out.reset();
}

void file_batch::add(const std::filesystem::path& path, std::string_view bytes) {
  files_.push_back(std::make_unique<file_writer>(path));
  files_.back()->write(bytes);
  files_.back()->settle();
}

void file_batch::finish() {
  for (const auto& file : files_) file->finish();
  files_.clear();
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw format_error("cannot make the folder " + folder.string() + ": " + error.message() + "; name another one");
}

std::filesystem::path new_folder_beside(const std::filesystem::path& path) {
  std::filesystem::path made;
  const int code =
      make_beside(path, "part", made, [](const std::filesystem::path& name) { return ::mkdir(name.c_str(), 0777) == 0; });
  if (code != 0) cannot_write(path, code);
  return made;
}

scratch_file::scratch_file(const std::filesystem::path& path) : shown_{path} {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  const bool beside = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  const std::filesystem::path target = !beside                           ? std::filesystem::temp_directory_path() / "deltaproof"
                                       : std::filesystem::exists(status) ? std::filesystem::canonical(path)
                                                                         : path;
  std::filesystem::path room;
  const int code = make_beside(target, "scratch", room, [&](const std::filesystem::path& name) {
    descriptor_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return descriptor_ >= 0;
  });
  if (code != 0) cannot_write(shown_, code);
  ::unlink(room.c_str());
}

scratch_file::~scratch_file() { ::close(descriptor_); }

void scratch_file::write(std::size_t at, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(shown_, errno);
    at += static_cast<std::size_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void scratch_file::read(std::size_t at, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) cannot_write(shown_, got < 0 ? errno : EIO);
    at += static_cast<std::size_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace deltaproof
