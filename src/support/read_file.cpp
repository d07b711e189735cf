// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/support/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "deltaproof/support/errors.hpp"

namespace deltaproof {
namespace {

/// Throws unless `mode` is that of a regular file.
void require_regular(mode_t mode, const std::string& where) {
  if (S_ISDIR(mode)) throw format_error(where + ": is a folder; name the file");
  if (!S_ISREG(mode)) {
    throw format_error(where +
                       ": is not a regular file (a pipe or a device may never end); save its bytes to a file and name that");
  }
}

}  // namespace

input_file::input_file(const std::filesystem::path& path) : where_(path.string()) {
  if (where_.find('\0') != std::string::npos)
    throw format_error(in_quotes(where_) + ": no file name may contain a NUL character");
  struct stat status{};
  // Asked before it is opened: to open a device can already do something.
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) throw format_error(where_ + ": there is no such file");
    throw format_error(where_ + ": cannot be opened for reading: " + std::strerror(errno));
  }
  require_regular(status.st_mode, where_);
  // Not waiting: somebody may have put a pipe there since.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0)
    throw format_error(where_ + ": cannot be opened for reading: " + std::strerror(errno) + "; check its permissions");
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    require_regular(status.st_mode, where_);
    throw format_error(where_ + ": cannot be opened for reading: " + std::strerror(errno));
  }
  size_ = static_cast<std::size_t>(status.st_size);
}

input_file::~input_file() { ::close(descriptor_); }

void input_file::read(std::size_t at, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw format_error(where_ + ": cannot be read: " + std::strerror(errno));
    if (got == 0) {
      throw format_error(where_ + ": only " + std::to_string(at) + " of " + std::to_string(size_) +
                         " bytes could be read; wait until the file is written completely, then run the same command again");
    }
    at += static_cast<std::size_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

std::string read_file(const std::filesystem::path& path, const size_limit& limit) {
  const input_file in(path);
  if (in.size() > limit.bytes) {
    throw format_error(path.string() + ": has " + std::to_string(in.size()) + " bytes, and " + std::string(limit.of) +
                       " may have at most " + std::to_string(limit.bytes) + "; check that the path names the right file");
  }
  std::string text(in.size(), '\0');
  in.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

namespace detail {
namespace {

[[noreturn]] void too_deep(const std::string& where, std::size_t line, const std::string& what) {
  throw format_error(where + ": line " + std::to_string(line) + ": nests deeper than " + std::to_string(deepest_nesting) +
                     " levels (" + what +
                     "), which no file written by deltaproof does; check that the path names the right file");
}

}  // namespace

void require_shallow_json(std::string_view text, const std::string& where) {
  std::size_t depth = 0, line = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest_nesting) too_deep(where, line, "lists and objects");
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
}

void require_shallow_toml(std::string_view text, const std::string& where) {
  std::size_t depth = 0, dots = 0, line = 1;
  std::string_view quote;  // what ends the string that `i` is in; empty: none
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  // A tensor file, or text in UTF-16.
  if (text.substr(0, 8).find('\0') != std::string_view::npos)
    throw format_error(where + ": not a TOML file in UTF-8; check that the path names the right file");
  for (std::size_t i = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (!quote.empty()) {
      if (quote.front() == '"' && c == '\\') {
        ++i;
      } else if (text.substr(i).starts_with(quote)) {
        i += quote.size() - 1;
        // A text in three quotes may end with two more of its own.
        for (int own = 0; own < 2 && quote.size() == 3 && i + 1 < text.size() && text[i + 1] == c; ++own) ++i;
        quote = {};
      } else if (quote.size() == 1 && c == '\n') {
        quote = {};  // not TOML; its parser stops here
      }
      continue;
    }
    if (c == '"' || c == '\'') {
      const std::string_view three = c == '"' ? "\"\"\"" : "'''";
      quote = text.substr(i).starts_with(three) ? three : three.substr(0, 1);
      i += quote.size() - 1;
    } else if (c == '#') {
      const std::size_t end = std::min(text.find('\n', i), text.size());
      i = end - 1;
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      throw format_error(where + ": line " + std::to_string(line) +
                         ": not valid TOML: a non-ASCII letter outside quotes; quote the key or text");
    } else if (c == '.') {
      if (++dots > deepest_nesting) too_deep(where, line, "a dotted key");
    } else if (c == '=' || c == ',' || c == '\n') {
      dots = 0;
    } else if (c == '[' || c == '{') {
      dots = 0;
      if (++depth > deepest_nesting) too_deep(where, line, "lists and tables");
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
}

}  // namespace detail
}  // namespace deltaproof
