// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/sweep/merge.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>
#include <unordered_set>

#include "deltaproof/files/text_hash.hpp"
#include "deltaproof/support/read_file.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

using json = nlohmann::ordered_json;

std::string text_in(const json& j, const char* key) {
  const auto found = j.find(key);
  return found != j.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_from(const json& value) {
  if (value.is_number()) return value.get<double>();
  return value == "inf" ? HUGE_VAL : std::nan("");
}

/// NaN is worse than any number.
double rank_of(const merged_case& c) { return !c.share ? -1 : std::isnan(*c.share) ? HUGE_VAL : *c.share; }

bool worse(const merged_detail& a, const merged_detail& b) {
  const double first = -rank_of(a.what), second = -rank_of(b.what);
  return std::tie(a.what.as_expected, first, a.what.line) < std::tie(b.what.as_expected, second, b.what.line);
}

void count(sweep_tally& t, const merged_case& c) {
  const std::pair<std::string_view, std::uint64_t*> words[] = {
      {"holds", &t.holds},         {"measured", &t.measured}, {"vacuous", &t.vacuous},
      {"undecided", &t.undecided}, {"refuted", &t.refuted},   {"skipped", &t.skipped},
      {"failed", &t.failed},       {"lost", &t.lost},         {"missing", &t.missing}};
  for (const auto& [word, number] : words) {
    if (word == c.outcome) ++*number;
  }
  if (!c.as_expected) ++t.unexpected;
  if (c.share && (!t.worst_share || !(*c.share <= *t.worst_share))) t.worst_share = c.share;
}

class merger {
 public:
  merger(const sweep_folder& folder, campaign c) : folder_(folder), c_(std::move(c)) {}

  sweep_report run() {
    out_.name = c_.file.filename().string();
    out_.kind = name_of(c_.kind);
    out_.build = c_.build;
    std::string all = c_.text;
    for (const auto& [name, text] : c_.plan_texts) all += '\0' + name + '\0' + text;
    out_.campaign_sha256 = sha256_hex(all);
    for (const campaign_axis& a : c_.axes) {
      if (a.name == "point") continue;
      out_.axes.emplace_back(a.name, std::vector<std::pair<std::string, sweep_tally>>());
      for (std::uint64_t i = 0; a.size() <= most_values && i < a.size(); ++i) out_.axes.back().second.push_back({a.value(i), {}});
    }
    if (c_.search) out_.axes.push_back({"by", {{"search", {}}, {"random", {}}, {"shrink", {}}}});
    std::unordered_set<std::string> ours;
    for (std::uint64_t i = 0; i < c_.count(); ++i) {
      const sweep_task t = c_.task(i);
      ours.insert(t.key);
      take(t);
    }
    look_at_others(ours);
    std::erase_if(out_.axes, [](const auto& a) { return a.second.size() < 2; });
    if (out_.counts.judged() == 0) out_.judged = combine(out_.judged, verdict::vacuous);
    return std::move(out_);
  }

 private:
  /// Results that are none of this campaign's tasks: an earlier text of it had them. Another build's are refused.
  void look_at_others(const std::unordered_set<std::string>& ours) {
    std::vector<std::string> others;
    for (std::string& key : folder_.keys()) {
      if (!ours.contains(key)) others.push_back(std::move(key));
    }
    std::sort(others.begin(), others.end());
    for (const std::string& key : others) {
      if (folder_.look(c_, key) == sweep_folder::state::other_build) refuse(key);
      ++out_.other;
    }
  }
  [[noreturn]] void refuse(const std::string& key) const {
    throw format_error(folder_.file_of(key).string() + ": this result was made by another build than " + in_quotes(c_.build) +
                       "; results of two builds are never merged: remove this file, or keep the results of each build in a "
                       "folder of their own and merge each folder with its own build");
  }

  void take(const sweep_task& t) {
    merged_detail one{{t.line, "missing", true, "", "", {}}, t.key, "not run", command_of(c_, t)};
    std::string payload;
    switch (folder_.look(c_, t.key, &payload)) {
      case sweep_folder::state::other_build:
        refuse(t.key);
      case sweep_folder::state::damaged:
        one.reason = std::filesystem::relative(folder_.file_of(t.key), folder_.path()).string() +
                     ", the file of this task, was changed or cut short; run the sweep again, which repeats this task";
        break;
      case sweep_folder::state::missing: {
        const std::vector<std::string> tries = folder_.tries(t.key);
        if (tries.size() < most_tries) break;
        one.what.outcome = "lost";
        one.reason = "the process that ran this task ended " + std::to_string(tries.size()) + " times without a verdict: ";
        for (std::size_t i = 0; i < tries.size(); ++i) one.reason += (i > 0 ? ", " : "") + tries[i];
        one.reason += "; sweep no longer runs this task: to have it run again, remove tries/" + t.key +
                      ".json from the folder of results, then run the sweep again";
        break;
      }
      case sweep_folder::state::failed:
      case sweep_folder::state::done:
        read(json::parse(payload), t.expect, one);
    }
    add(t, std::move(one));
  }

  /// A key does not hold what is expected: the campaign may have changed it since the task ran.
  static void read(const json& j, verdict expect, merged_detail& one) {
    const std::string state = text_in(j, "state");
    one.what.outcome = state == "judged" ? text_in(j, "verdict") : state;
    one.what.as_expected = state != "judged" || one.what.outcome == name_of(expect);
    one.what.expected = name_of(expect);
    one.reason = text_in(j, "reason");
    for (const char* const key : {"worst", "score"}) {
      if (!j.contains(key) || !j[key].is_object()) continue;
      one.what.tensor = text_in(j[key], "tensor");
      one.what.norm = text_in(j[key], "norm");
      one.what.share = number_from(j[key].value("share", json()));
    }
  }

  void add(const sweep_task& t, merged_detail one) {
    count(out_.counts, one.what);
    for (auto& [name, values] : out_.axes) {
      const std::string here = name == "by" ? c_.proposals[t.index].by : t.on(name);
      for (auto& [value, tally] : values) {
        if (value == here) count(tally, one.what);
      }
    }
    const std::string& outcome = one.what.outcome;
    if (outcome == "skipped") return;
    out_.cases.push_back(one.what);
    if (outcome == "missing" || outcome == "lost" || outcome == "failed") out_.judged = combine(out_.judged, verdict::undecided);
    if (outcome == "missing")
      out_.missing.push_back(std::move(one));
    else if (outcome == "lost")
      out_.lost.push_back(std::move(one));
    else if (outcome == "failed")
      out_.failed.push_back(std::move(one));
    else
      add_judged(std::move(one));
  }

  void add_judged(merged_detail one) {
    if (!one.what.as_expected) {
      const bool good = one.what.outcome == "holds" || one.what.outcome == "measured" || one.what.outcome == "refuted";
      out_.judged = combine(out_.judged, good                            ? verdict::refuted
                                         : one.what.outcome == "vacuous" ? verdict::vacuous
                                                                         : verdict::undecided);
    }
    const auto place = std::upper_bound(out_.worst.begin(), out_.worst.end(), one, worse);
    out_.worst.insert(place, std::move(one));
    if (out_.worst.size() > most_worst) out_.worst.pop_back();
  }

  const sweep_folder& folder_;
  campaign c_;
  sweep_report out_;
};

struct earlier_case {
  std::string outcome;
  std::optional<double> share;
};

std::map<std::string, earlier_case> earlier_cases(std::string_view text, const std::string& file) {
  const auto refuse = [&file](const std::string& why) {
    return format_error(file + ": is not the report of an earlier merge: " + why +
                        "; give a file that `deltaproof merge DIR -o FILE` wrote");
  };
  detail::require_shallow_json(text, file);
  const json j = json::parse(text, nullptr, false);
  if (!j.is_object() || j.value("schema", json()) != "deltaproof.merge/1") throw refuse("its schema is not deltaproof.merge/1");
  const json cases = j.value("cases", json());
  if (!cases.is_array()) throw refuse("it has no cases");
  std::map<std::string, earlier_case> out;
  for (const json& c : cases) {
    if (!c.is_object() || !c.value("task", json()).is_string() || !c.value("outcome", json()).is_string())
      throw refuse("a case lacks its task or outcome");
    earlier_case& one = out[c["task"]];
    one.outcome = c["outcome"];
    if (c.contains("share") && !c["share"].is_null()) one.share = number_from(c["share"]);
  }
  return out;
}

}  // namespace

int sweep_report::exit_code() const {
  if (counts.missing > 0) return 3;
  return counts.failed > 0 ? 2 : deltaproof::exit_code(judged);
}

sweep_report merge_sweep(const sweep_folder& folder, const std::string& build) {
  return merger(folder, folder.read(build)).run();
}

void add_drift(sweep_report& now, std::string_view text, const std::string& file) {
  std::map<std::string, earlier_case> then = earlier_cases(text, file);
  std::vector<std::string> changed, added;
  std::vector<std::tuple<double, std::string, std::string>> moved;
  std::size_t compared = 0;
  const bool scores = now.kind == name_of(campaign_kind::search);
  for (const merged_case& c : now.cases) {
    const auto was = then.find(c.line);
    if (was == then.end()) {
      added.push_back(c.line);
      continue;
    }
    if (was->second.outcome != c.outcome)
      changed.push_back("verdict  " + c.line + ": " + was->second.outcome + " -> " + c.outcome);
    if (c.share && was->second.share) {
      ++compared;
      const double before = *was->second.share, factor = before > 0 ? *c.share / before : HUGE_VAL;
      const bool same = before == *c.share || (std::isnan(before) && std::isnan(*c.share));
      const double size = std::isfinite(factor) && factor > 0 ? std::abs(std::log(factor)) : HUGE_VAL;
      if (!same)
        moved.emplace_back(-size, c.line,
                           "share    " + c.line + ": " + detail::general(before, 3) + " -> " + detail::general(*c.share, 3) +
                               (scores ? "" : " of the limit"));
    }
    then.erase(was);
  }
  std::sort(moved.begin(), moved.end());
  now.drift_from = file;
  now.drift = {"since " + file + ": " + std::to_string(changed.size()) + " outcomes changed, " + std::to_string(moved.size()) +
               " of " + std::to_string(compared) + (scores ? " scores changed, " : " error-to-limit ratios changed, ") +
               std::to_string(added.size()) + " tasks added, " + std::to_string(then.size()) + " gone"};
  now.drift.insert(now.drift.end(), changed.begin(), changed.end());
  for (std::size_t i = 0; i < std::min<std::size_t>(moved.size(), most_worst); ++i) now.drift.push_back(std::get<2>(moved[i]));
}

}  // namespace deltaproof
