// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <nlohmann/json.hpp>

#include "deltaproof/files/text_hash.hpp"
#include "deltaproof/support/read_file.hpp"
#include "deltaproof/support/write_file.hpp"
#include "deltaproof/sweep/sweep.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr size_limit task_limit{"the result of a task", std::size_t{1} << 24};
constexpr size_limit campaign_limit{"a campaign", std::size_t{1} << 28};

bool is_key(std::string_view word) {
  return word.size() == 32 && word.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

json parsed(const std::string& payload) { return json::parse(payload, nullptr, false); }

std::string word_in(const json& j, const char* key) {
  const auto found = j.is_object() ? j.find(key) : j.end();
  return j.is_object() && found != j.end() && found->is_string() ? found->get<std::string>() : "";
}

format_error of_another_build(const fs::path& file, const std::string& made, const std::string& ours) {
  return format_error(file.string() + ": made by build " + in_quotes(made) + " of deltaproof, and this program is build " +
                      in_quotes(ours) + "; keep the results of each build in a folder of their own");
}

}  // namespace

std::string sealed(std::string_view schema, std::string_view payload) {
  const std::string hash = sha256_hex(payload);
  return "{\"schema\":\"" + std::string(schema) + "\",\"bytes\":" + std::to_string(payload.size()) + ",\"sha256\":\"" + hash +
         "\",\"result\":" + std::string(payload) + "}\n";
}

std::optional<std::string> unsealed(std::string_view schema, std::string_view text) {
  constexpr std::string_view before = "\",\"result\":", after = "}\n";
  const std::size_t begin = text.find(before);
  if (begin == std::string_view::npos || !text.ends_with(after)) return {};
  const std::size_t from = begin + before.size();
  if (text.size() < from + after.size()) return {};
  const std::string_view payload = text.substr(from, text.size() - after.size() - from);
  if (sealed(schema, payload) != text) return {};
  return std::string(payload);
}

fs::path sweep_folder::file_of(const std::string& key) const { return folder_ / "tasks" / key.substr(0, 2) / (key + ".json"); }
fs::path sweep_folder::tries_of(const std::string& key) const { return folder_ / "tries" / (key + ".json"); }

void sweep_folder::open(const campaign& c) const {
  const fs::path file = folder_ / "campaign.json";
  const json j{{"build", c.build}, {"name", c.file.filename().string()}, {"text", c.text}, {"plans", c.plan_texts}};
  const std::string text = sealed(campaign_schema, j.dump());
  make_folder(folder_ / "tasks");
  std::error_code none;
  if (fs::exists(file, none) && read_file(file, campaign_limit) == text) return;
  refuse_another_build(c);
  write_file(file, text);
}

void sweep_folder::refuse_another_build(const campaign& c) const {
  const fs::path file = folder_ / "campaign.json";
  std::error_code none;
  if (!fs::exists(file, none)) return;
  const auto payload = unsealed(campaign_schema, read_file(file, campaign_limit));
  const std::string build = payload ? word_in(parsed(*payload), "build") : c.build;
  if (build != c.build) throw of_another_build(file, build, c.build);
}

campaign sweep_folder::read(const std::string& build) const {
  const fs::path file = folder_ / "campaign.json";
  std::error_code none;
  if (!fs::exists(file, none))
    throw format_error(file.string() + ": is not there; give a folder that `deltaproof sweep CAMPAIGN -o DIR` filled");
  const auto payload = unsealed(campaign_schema, read_file(file, campaign_limit));
  const json j = payload ? parsed(*payload) : json();
  if (!payload || !j.is_object()) throw format_error(file.string() + ": was changed or cut short; run the sweep again");
  if (word_in(j, "build") != build) throw of_another_build(file, word_in(j, "build"), build);
  campaign c =
      parse_campaign(word_in(j, "text"), word_in(j, "name"), build, j.at("plans").get<std::map<std::string, std::string>>());
  take_proposals(c);
  return c;
}

void sweep_folder::take_proposals(campaign& c) const {
  const fs::path file = folder_ / "proposals.json";
  std::error_code none;
  if (!c.search || !fs::exists(file, none)) return;
  const auto payload = unsealed(proposals_schema, read_file(file, campaign_limit));
  const json j = payload ? parsed(*payload) : json();
  if (!payload || !j.is_object() || !j.contains("proposals") || !j["proposals"].is_array())
    throw format_error(file.string() + ": was changed or cut short; remove it, and start the search again: results are kept");
  if (word_in(j, "build") != c.build) throw of_another_build(file, word_in(j, "build"), c.build);
  if (word_in(j, "campaign") != sha256_hex(c.text))
    throw format_error(file.string() +
                       ": its points were proposed before the campaign file was changed; take a new folder for each search");
  for (const json& one : j["proposals"]) c.propose(word_in(one, "by"), word_in(one, "point"));
}

void sweep_folder::keep_proposals(const campaign& c) const {
  json list = json::array();
  for (const proposal& p : c.proposals) list.push_back({{"by", p.by}, {"point", p.point}});
  const json j{{"build", c.build}, {"campaign", sha256_hex(c.text)}, {"proposals", std::move(list)}};
  write_file(folder_ / "proposals.json", sealed(proposals_schema, j.dump()));
}

sweep_folder::state sweep_folder::look(const campaign& c, const std::string& key, std::string* payload) const {
  const fs::path file = file_of(key);
  std::error_code none;
  if (!fs::exists(file, none)) return state::missing;
  std::optional<std::string> found;
  try {
    found = unsealed(task_schema, read_file(file, task_limit));
  } catch (const format_error&) {
    return state::damaged;
  }
  const json j = found ? parsed(*found) : json();
  if (!found || word_in(j, "build").empty()) return state::damaged;
  if (word_in(j, "build") != c.build) return state::other_build;
  if (word_in(j, "key") != key) return state::damaged;
  if (payload != nullptr) *payload = *found;
  return word_in(j, "state") == "failed" ? state::failed : state::done;
}

void sweep_folder::keep(const std::string& key, std::string_view payload) const {
  const fs::path file = file_of(key);
  std::error_code none;
  fs::create_directories(file.parent_path(), none);
  write_file(file, sealed(task_schema, payload));
}

std::vector<std::string> sweep_folder::tries(const std::string& key) const {
  std::error_code none;
  if (!fs::exists(tries_of(key), none)) return {};
  const auto payload = unsealed(tries_schema, read_file(tries_of(key), task_limit));
  const json j = payload ? parsed(*payload) : json();
  if (!j.is_object() || !j.contains("tries") || !j["tries"].is_array()) return {};
  std::vector<std::string> out;
  for (const json& one : j["tries"]) out.push_back(one.is_string() ? one.get<std::string>() : "");
  return out;
}

void sweep_folder::add_try(const campaign& c, const sweep_task& t, const std::string& how) const {
  std::vector<std::string> all = tries(t.key);
  all.push_back(how);
  const json j{{"key", t.key}, {"build", c.build}, {"task", t.line}, {"command", command_of(c, t)}, {"tries", all}};
  std::error_code none;
  fs::create_directories(folder_ / "tries", none);
  write_file(tries_of(t.key), sealed(tries_schema, j.dump(-1, ' ', false, json::error_handler_t::replace)));
}

void sweep_folder::forget_tries(const std::string& key) const {
  std::error_code none;
  fs::remove(tries_of(key), none);
}

std::vector<std::string> sweep_folder::keys() const {
  std::vector<std::string> out;
  std::error_code none;
  for (const auto& folder : fs::directory_iterator(folder_ / "tasks", none)) {
    if (!folder.is_directory()) continue;
    for (const auto& file : fs::directory_iterator(folder.path())) {
      const std::string name = file.path().stem().string();
      if (file.path().extension() == ".json" && is_key(name) && file_of(name) == file.path()) out.push_back(name);
    }
  }
  return out;
}

}  // namespace deltaproof
