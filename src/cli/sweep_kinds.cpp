// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "cli/sweep_kinds.hpp"

#include <istream>
#include <map>
#include <nlohmann/json.hpp>

#include "deltaproof/support/errors.hpp"
#ifndef DELTAPROOF_WITHOUT_STUDIES
#include "deltaproof/study/study.hpp"
#endif

namespace deltaproof::cli {
namespace {

using json = nlohmann::ordered_json;

json json_of(const search_settings& s) {
  json space = json::array();
  for (const search_range& r : s.space)
    space.push_back({{"name", r.name}, {"least", r.least}, {"most", r.most}, {"whole", r.whole()}});
  return {{"goal", name_of(s.goal)},
          {"population", s.population},
          {"generations", s.generations},
          {"cpu_minutes", s.cpu_minutes},
          {"seed", s.seed},
          {"keep", s.keep},
          {"random", s.random},
          {"space", std::move(space)}};
}

#ifndef DELTAPROOF_WITHOUT_STUDIES
std::optional<std::string> run_study_task(const campaign& c, const sweep_task& t, const std::atomic<bool>* stop) {
  json j = json::parse(payload_head(c, t));
  run_options options;
  if (const std::string seed = t.on("seed"); !seed.empty()) options.seed = std::stoull(seed);
  options.full = t.on("mode") == "full";
  options.interrupted = stop;
  try {
    const report r = run_study(study_named(t.on("study")), options);
    if (options.stopped()) return {};
    std::string why;
    for (const auto* const list : {&r.failed, &r.unfinished}) {
      for (const std::string& line : *list) why += (why.empty() ? "" : "; ") + line;
    }
    j["verdict"] = name_of(!r.failed.empty() ? verdict::refuted : !r.unfinished.empty() ? verdict::undecided : verdict::holds);
    j["reason"] = why.empty() ? r.answer : why;
    j["findings"] = json::parse(to_json(r))["findings"];
  } catch (const error& e) {
    j["state"] = "failed";
    j["verdict"] = nullptr;
    j["reason"] = e.what();
  }
  j["command"] = command_of(c, t);
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}
#endif

}  // namespace

void require_studies(const campaign& c) {
  if (c.kind != campaign_kind::study) return;
#ifdef DELTAPROOF_WITHOUT_STUDIES
  throw format_error(c.file.string() + ": studies are " + std::string(without_studies));
#else
  for (const campaign_axis& a : c.axes) {
    for (std::size_t i = 0; a.name == "study" && i < a.size(); ++i) (void)study_named(a.value(i));
  }
#endif
}

std::optional<std::string> run_any_task(const campaign& c, const sweep_task& t, const std::atomic<bool>* stop) {
#ifndef DELTAPROOF_WITHOUT_STUDIES
  if (c.kind == campaign_kind::study) return run_study_task(c, t, stop);
#endif
  return run_task(c, t, stop);
}

int run_propose(campaign& c, const sweep_folder& folder, std::istream& in, const common_options& common) {
  if (!c.search)
    throw format_error(c.file.string() + ": --propose needs a campaign of kind \"search\", and this one is of kind \"" +
                       std::string(name_of(c.kind)) + "\"; give a search campaign, or leave --propose out");
  folder.open(c);
  folder.take_proposals(c);
  const std::size_t before = c.proposals.size();
  std::map<std::string, std::uint64_t> indices;
  for (std::size_t i = 0; i < before; ++i) indices[c.proposals[i].point] = i;
  std::vector<std::string> asked;
  std::string by, point;
  while (in >> by >> point) {
    c.propose(by, point);
    if (c.proposals.size() > indices.size()) indices[point] = indices.size();
    asked.push_back(point);
  }
  if (c.proposals.size() > before) folder.keep_proposals(c);
  json j{{"schema", "deltaproof.sweep/1"},
         {"campaign", c.file.filename().string()},
         {"kind", name_of(c.kind)},
         {"build", c.build},
         {"shard", {{"index", 0}, {"count", 1}}},
         {"search", json_of(*c.search)},
         {"proposals", c.proposals.size()},
         {"tasks", json::array()}};
  std::string text;
  for (const std::string& one : asked) {
    const sweep_task t = c.task(indices.at(one));
    std::string payload;
    const sweep_folder::state state = folder.look(c, t.key, &payload);
    const bool there = state == sweep_folder::state::done || state == sweep_folder::state::failed;
    const bool lost = state == sweep_folder::state::missing && folder.tries(t.key).size() >= most_tries;
    const json made = there ? json::parse(payload) : json::object();
    j["tasks"].push_back({{"index", t.index},
                          {"key", t.key},
                          {"state", there  ? json(made["state"])
                                    : lost ? json("lost")
                                           : json("todo")},
                          {"task", t.line},
                          {"command", command_of(c, t)},
                          {"by", c.proposals[t.index].by},
                          {"point", one},
                          {"verdict", made.value("verdict", json())},
                          {"score", made.value("score", json())}});
    text += std::to_string(t.index) + " " + t.key + " " + one + "\n";
  }
  publish(common, {"sweep", text, j.dump(1, ' ', false, json::error_handler_t::replace) + "\n", {}, {}, true});
  return 0;
}

}  // namespace deltaproof::cli
