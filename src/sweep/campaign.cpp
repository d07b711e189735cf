// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/sweep/campaign.hpp"

#include <algorithm>
#include <span>

#include "deltaproof/files/safetensors.hpp"
#include "deltaproof/support/read_file.hpp"

namespace deltaproof {
namespace {

std::string sha256_of(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text.data(), text.size()))); }

}  // namespace

std::string sweep_task::on(std::string_view axis) const {
  for (const auto& [name, value] : at) {
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
    throw domain_error(file.string() + ": there is no task " + std::to_string(index) + "; it has " + std::to_string(count()));
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
  out.line += options_text(out.judge);
  std::string key = "deltaproof.task/1\n" + build + "\n" + out.line + "\n" + inputs;
  for (const std::string& named : {out.on("plan"), out.plan}) {
    const auto own = plan_texts.find(named);
    if (own != plan_texts.end()) key += sha256_of(own->second) + "\n";
  }
  out.key = sha256_of(key).substr(0, 32);
  return out;
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
