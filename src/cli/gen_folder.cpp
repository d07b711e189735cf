// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/gen_folder.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "deltaproof/files/text_hash.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/read_file.hpp"
#include "deltaproof/support/write_file.hpp"

namespace deltaproof::cli {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

std::vector<std::string> earlier_files(const fs::path& folder) {
  const auto refuse = [&](const std::string& why) {
    return format_error("gen: " + folder.string() + " " + why +
                        "; give a folder that is new, empty, or unchanged since gen wrote it");
  };
  if (!fs::exists(folder)) return {};
  if (!fs::is_directory(folder)) throw refuse("is not a folder");
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename().string());
  if (found.empty()) return {};
  std::sort(found.begin(), found.end());
  const auto contents = [&](const std::string& name) {
    constexpr size_limit made_limit{"what gen wrote", std::size_t{1} << 36};
    if (fs::file_size(folder / name) > made_limit.bytes)
      throw refuse("holds " + in_quotes(name) + ", which is larger than any file that gen writes");
    return read_file(folder / name, made_limit);
  };
  const std::string text = fs::is_regular_file(folder / manifest_name) ? contents(manifest_name) : "{}";
  detail::require_shallow_json(text, (folder / manifest_name).string());
  const json manifest = json::parse(text, nullptr, false);
  const bool ours = manifest.is_object() && manifest.value("schema", json()) == manifest_schema && manifest.contains("files") &&
                    manifest["files"].is_object();
  for (const std::string& name : found) {
    if (name == manifest_name && ours) continue;
    if (!ours || !manifest["files"].contains(name)) throw refuse("holds " + in_quotes(name) + ", which gen did not write");
    if (!fs::is_regular_file(fs::symlink_status(folder / name)) || manifest["files"][name] != sha256_hex(contents(name))) {
      throw refuse("holds " + in_quotes(name) + ", which has changed since gen wrote it");
    }
  }
  return found;
}

unfinished_folder::unfinished_folder(fs::path wanted) : wanted_(std::move(wanted)), made_(!fs::exists(wanted_)) {
  make_folder(wanted_);
  path_ = new_folder_beside(wanted_ / ".unfinished");
}

unfinished_folder::~unfinished_folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (made_ && !finished_) fs::remove(wanted_, ignored);
}

void unfinished_folder::add(const std::string& name, std::string_view bytes) {
  write_file(path_ / name, bytes);
  files_[name] = sha256_hex(bytes);
}

void unfinished_folder::finish(const std::vector<std::string>& earlier, const std::string& more) {
  json manifest{{"schema", manifest_schema}, {"files", files_}};
  if (!more.empty()) manifest.update(json::parse(more));
  write_file(path_ / manifest_name, manifest.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  for (const std::string& name : earlier) fs::remove(wanted_ / name);
  for (const auto& [name, hash] : files_) fs::rename(path_ / name, wanted_ / name);
  fs::rename(path_ / manifest_name, wanted_ / manifest_name);
  finished_ = true;
}

}  // namespace deltaproof::cli
