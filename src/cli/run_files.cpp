// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/run_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <compare>
#include <map>
#include <utility>

#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/write_file.hpp"

namespace deltaproof::cli {
namespace {

namespace fs = std::filesystem;

/// What makes two names one file: device and inode where something is there, else the place that the name leads to.
struct identity {
  dev_t device = 0;
  ino_t inode = 0;
  std::string place;

  auto operator<=>(const identity&) const = default;
};

/// Where a name leads: links followed to their end, also one that points at nothing yet; the folder as it is, if it is there.
fs::path place_of(fs::path file) {
  std::error_code none;
  for (int followed = 0; followed < 40 && fs::is_symlink(fs::symlink_status(file, none)); ++followed) {
    file = file.parent_path() / fs::read_symlink(file, none);
  }
  const fs::path whole = fs::weakly_canonical(fs::absolute(file, none), none);
  return none ? file.lexically_normal() : whole;
}

identity identity_of(const fs::path& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) == 0) return {status.st_dev, status.st_ino, ""};
  return {0, 0, place_of(file).string()};
}

/// A device, say /dev/null, takes what anybody writes to it.
bool is_shared(const fs::path& file) {
  std::error_code none;
  return fs::is_character_file(file, none);
}

std::string shown(const std::string& option, const fs::path& file) { return option + " " + file.string(); }

/// The first file of each identity, with what is done to it.
class seen_files {
 public:
  void add(const std::string& option, const fs::path& file, bool written) {
    if (is_shared(file)) return;
    const auto [place, is_new] = seen_.try_emplace(identity_of(file), entry{option, file, written});
    if (is_new) return;
    entry& first = place->second;
    if (!first.written && !written) return;
    if (first.written && written) {
      throw format_error(shown(option, file) + ": is the file that " + shown(first.option, first.file) +
                         " writes; nothing was done, name another one");
    }
    const entry second{option, file, written};
    const entry &read = written ? first : second, &write = written ? second : first;
    throw format_error(shown(write.option, write.file) + ": is the file that is read as " + shown(read.option, read.file) +
                       "; nothing was done, name another file for " + write.option);
  }

 private:
  struct entry {
    std::string option;
    fs::path file;
    bool written;
  };
  std::map<identity, entry> seen_;
};

/// stdout where it goes to a file: what is said would run into that file.
void require_not_stdout(const identity& of, const std::string& option, const fs::path& file, bool written) {
  struct stat status{};
  if (::fstat(STDOUT_FILENO, &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (of.place.empty() && of.device == status.st_dev && of.inode == status.st_ino) {
    throw format_error(shown(option, file) + ": is the file that stdout goes to; " +
                       (written ? "nothing was done" : "if that was \">\" of a shell, it has emptied the file: restore it") +
                       ", and send stdout to another file");
  }
}

CLI::Validator given() {
  return {[](const std::string& word) {
            if (word.empty()) return std::string("is empty; give a path");
            return std::string();
          },
          ""};
}

}  // namespace

CLI::Option* run_files::reads(CLI::Option* option) {
  declared_.push_back({option, use::read});
  return option->check(given());
}

CLI::Option* run_files::reads_plan(CLI::Option* option) {
  declared_.push_back({option, use::read_plan});
  return option->check(given());
}

CLI::Option* run_files::writes(CLI::Option* option) {
  declared_.push_back({option, use::written});
  return option->check(given());
}

void run_files::reads(const std::string& option, const fs::path& file) { named_.push_back({option, file, false}); }
void run_files::writes(const std::string& option, const fs::path& file) { named_.push_back({option, file, true}); }
void run_files::writes_in(const std::string& option, const fs::path& folder, std::function<bool(const std::string&)> of_ours) {
  folders_.push_back({option, folder, std::move(of_ours)});
}

std::vector<run_files::named> run_files::all() const {
  std::vector<named> out;
  const auto add = [&](const std::string& option, const fs::path& file, bool written) {
    std::error_code none;
    if (written || !fs::is_directory(file, none)) {
      out.push_back({option, file, written});
      return;
    }
    for (fs::directory_iterator entry(file, none), end; !none && entry != end; entry.increment(none)) {
      out.push_back({option, entry->path(), false});
    }
  };
  for (const declared& one : declared_) {
    for (const std::string& word : one.option->results()) {
      if (one.as == use::read_plan && !word.ends_with(".toml")) continue;
      if (one.as == use::written && word == "-") continue;
      add(one.option->get_name(), word, one.as == use::written);
    }
  }
  for (const named& one : named_) add(one.option, one.file, one.written);
  return out;
}

void run_files::require_apart() const {
  const std::vector<named> files = all();
  seen_files seen;
  for (const named& one : files) {
    seen.add(one.option, one.file, one.written);
    if (!is_shared(one.file)) require_not_stdout(identity_of(one.file), one.option, one.file, one.written);
  }
  for (const folder& one : folders_) {
    std::error_code none;
    const fs::path own = place_of(one.path);
    for (const named& file : files) {
      const fs::path place = place_of(file.file);
      const bool inside = place.parent_path() == own && one.of_ours(place.filename().string());
      if (place != own && !inside) continue;
      if (!inside && !file.written)
        throw format_error(shown(one.option, one.path) + ": is the file that is read as " + file.option +
                           "; nothing was done, name another folder");
      throw format_error(shown(file.option, file.file) + ": is " + (inside ? "a file" : "the folder") + " that " +
                         shown(one.option, one.path) + " writes; nothing was done, name another one");
    }
    for (fs::directory_iterator entry(one.path, none), end; !none && entry != end; entry.increment(none)) {
      if (one.of_ours(entry->path().filename().string())) seen.add(one.option, entry->path(), true);
    }
  }
  for (const named& one : files) {
    if (one.written) require_writable(one.file);
  }
}

}  // namespace deltaproof::cli
