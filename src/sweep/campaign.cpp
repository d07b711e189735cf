// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/sweep/campaign.hpp"

#include <algorithm>
#include <charconv>

#include "deltaproof/files/text_hash.hpp"
#include "deltaproof/support/read_file.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

/// The value of each name in "T=64,cosine=0.9".
std::vector<std::pair<std::string, std::string>> parts_of(std::string_view point) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t at = 0; at < point.size();) {
    const std::size_t comma = std::min(point.find(',', at), point.size());
    const std::string_view one = point.substr(at, comma - at);
    const std::size_t equals = std::min(one.find('='), one.size());
    out.emplace_back(one.substr(0, equals), equals < one.size() ? one.substr(equals + 1) : std::string_view());
    at = comma + 1;
  }
  return out;
}

}  // namespace

std::string sweep_task::on(std::string_view axis) const {
  for (const auto& [name, value] : at) {
    if (name == axis) return value;
  }
  for (const auto& [name, value] : point) {
    if (name == axis) return value;
  }
  return "";
}

std::uint64_t campaign::count() const {
  std::uint64_t all = 1;
  for (const campaign_axis& a : axes) all *= a.size();
  return all;
}

sweep_task campaign::task(std::uint64_t index) const {
  if (index >= count())
    throw domain_error(file.string() + ": there is no task " + std::to_string(index) + "; the campaign has " +
                       std::to_string(count()) + ", numbered from 0");
  sweep_task out;
  out.index = index;
  out.at.resize(axes.size());
  std::uint64_t rest = index;
  for (std::size_t a = axes.size(); a-- > 0;) {
    out.at[a] = {axes[a].name, axes[a].value(rest % axes[a].size())};
    if (axes[a].name == "case") out.recording = static_cast<std::size_t>(rest % axes[a].size());
    rest /= axes[a].size();
  }
  out.judge = judge;
  out.expect = expect.value_or(kind == campaign_kind::mutants ? verdict::refuted : verdict::holds);
  out.plan = out.on("against").empty() ? out.on("plan") : out.on("against");
  if (kind == campaign_kind::search) {
    // Two plans are told apart by their kernels; each kernel is judged by its own.
    if (search->goal == search_goal::distance) out.plan = out.on("plan");
    std::string law;
    for (auto& [name, value] : parts_of(out.on("point"))) {
      if (name == "T" || name == "seed")
        out.point.emplace_back(name, value);
      else
        law += (law.empty() ? "" : ",") + name + "=" + value;
    }
    out.point.emplace_back("regime", "law");
    out.point.emplace_back("law", law);
  }
  std::string inputs;
  if (kind == campaign_kind::recordings) {
    const suite_case& c = cases[out.recording];
    out.expect = expect.value_or(c.expect);
    if (c.accuracy) out.judge.accuracy = c.accuracy;
    if (const std::string seed = out.on("seed"); !seed.empty()) out.judge.seed = std::stoull(seed);
    if (out.plan.empty()) out.plan = c.plan;
    inputs = c.problem.string() + "\n" + c.result.string() + "\n" + out.plan + (c.no_plan ? "\nno plan\n" : "\n");
  }
  out.line = std::string(name_of(kind));
  for (const auto& [name, value] : out.at) out.line += " " + name + "=" + shell_quoted(value);
  if (kind == campaign_kind::search) out.line += " goal=" + std::string(name_of(search->goal));
  out.line += options_text(out.judge);
  std::string key = "deltaproof.task/1\n" + build + "\n" + out.line + "\n" + inputs;
  for (const std::string& named : {out.on("plan"), out.on("against").empty() ? out.plan : out.on("against")}) {
    const auto own = plan_texts.find(named);
    if (own != plan_texts.end()) key += sha256_hex(own->second) + "\n";
  }
  out.key = sha256_hex(key).substr(0, 32);
  return out;
}

void campaign::propose(std::string_view by, std::string_view point) {
  const auto refuse = [&](const std::string& why) {
    return format_error(file.string() + ": " + in_quotes(point) + " is not a point of this search: " + why);
  };
  if (!search) throw refuse("the kind of the campaign is " + std::string(name_of(kind)) + ", not search");
  if (by != "search" && by != "random" && by != "shrink")
    throw refuse("its proposer is " + in_quotes(by) + "; the proposer must be search, random or shrink");
  const auto parts = parts_of(point);
  if (parts.size() != search->space.size() || point.ends_with(',')) {
    std::string names;
    for (const search_range& range : search->space) names += (names.empty() ? "" : ", ") + range.name;
    throw refuse("it must give a number to each key of [space], as NAME=NUMBER separated by commas; the keys are " + names);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const search_range& range = search->space[i];
    double value = 0;
    const std::string& word = parts[i].second;
    const auto [end, bad] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool number = bad == std::errc{} && end == word.data() + word.size();
    const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
    if (parts[i].first != range.name || !number || (range.whole() && !digits) || !(value >= range.least && value <= range.most))
      throw refuse("its part " + std::to_string(i + 1) + " must be " + range.name + "=N, with N " +
                   (range.whole() ? "an integer" : "a number") + " from " + detail::shortest(range.least) + " to " +
                   detail::shortest(range.most));
  }
  if (!points.insert(std::string(point)).second) return;
  axes.back().words.emplace_back(point);
  proposals.push_back({std::string(by), std::string(point)});
}

plan plan_of(const campaign& c, const std::string& name) {
  const auto text = c.plan_texts.find(name);
  return text == c.plan_texts.end() ? plan_named(name) : parse_plan(text->second, name);
}

std::size_t usual_chunk(const plan& p, path_kind path) {
  if (path != path_kind::chunk) return 0;
  // Most public chunk kernels count 64 rows; a plan that does not know that length names its own.
  return p.chunk.empty() || std::find(p.chunk.begin(), p.chunk.end(), std::size_t{64}) != p.chunk.end() ? 64 : p.chunk.front();
}

campaign read_campaign(const std::filesystem::path& file, const std::string& build) {
  return parse_campaign(read_file(file, suite_limit), file, build);
}

}  // namespace deltaproof
