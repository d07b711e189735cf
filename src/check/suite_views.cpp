// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "deltaproof/check/suite.hpp"
#include "deltaproof/support/read_file.hpp"
#include "support/json_number.hpp"
#include "support/printable.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view schema = "deltaproof.suite/1";

/// Names and reasons from files: a control character could fake a line, a bar a column.
std::string one_line(std::string text, bool in_table = false) {
  text = detail::printable_line(text);
  for (char& c : text) {
    if (in_table && c == '|') c = '/';
  }
  return text;
}

/// In place of a verdict, where a case could not be judged.
constexpr std::string_view no_answer = "no answer";

std::string_view word_of(const case_report& c) {
  switch (c.state) {
    case case_state::judged:
      return name_of(c.judged);
    case case_state::skipped:
      return "skipped";
    case case_state::stopped:
      return "undecided";
    case case_state::failed:
      return no_answer;
  }
  return "";
}

std::string_view mark_of(const case_report& c) {
  if (c.state == case_state::failed) return "error";
  return c.state == case_state::skipped ? "skip" : c.state == case_state::stopped ? "stop" : c.as_expected() ? "ok" : "BAD";
}

json shares_json(const std::vector<limit_share>& shares) {
  json j = json::object();
  for (const limit_share& s : shares) j[s.tensor][std::string(name_of(s.norm))] = detail::json_number(s.share);
  return j;
}

/// How many times as far from the truth as before; infinite from nothing to something.
double factor(const suite_drift::moved_share& m) { return m.then.share > 0 ? m.now.share / m.then.share : HUGE_VAL; }
double size_of(const suite_drift::moved_share& m) {
  const double f = factor(m);
  return std::isnan(f) || std::isinf(f) || f <= 0 ? HUGE_VAL : std::abs(std::log(f));
}

json drift_json(const suite_drift& d) {
  json shares = json::array(), verdicts = json::array();
  for (const auto& m : d.shares) {
    shares.push_back({{"case", m.name},
                      {"tensor", m.now.tensor},
                      {"norm", name_of(m.now.norm)},
                      {"then", detail::json_number(m.then.share)},
                      {"now", detail::json_number(m.now.share)},
                      {"factor", detail::json_number(factor(m))},
                      {"within_budget", m.now.share <= 1}});
  }
  for (const auto& m : d.verdicts) verdicts.push_back({{"case", m.name}, {"then", m.then}, {"now", m.now}});
  return {{"file", d.file},
          {"drawn_then", d.drawn_then.empty() ? json(nullptr) : json(d.drawn_then)},
          {"compared", d.compared},
          {"drift", std::move(shares)},
          {"verdicts", std::move(verdicts)},
          {"added", d.added},
          {"gone", d.gone},
          {"other_inputs", d.other_inputs},
          {"other_results", d.other_results},
          {"other_plans", d.other_plans}};
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) text += (i > 0 ? ", " : "") + names[i];
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}

std::string counted(std::size_t n, const std::string& what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

std::vector<std::string> drift_lines(const suite_drift& d) {
  std::vector<std::string> lines;
  lines.push_back("since " + d.file + ": " + counted(d.verdicts.size(), "verdict") + " changed, " +
                  std::to_string(d.shares.size()) + " of " + std::to_string(d.compared) + " error-to-limit ratios changed, " +
                  counted(d.added.size(), "case") + " added, " + std::to_string(d.gone.size()) + " gone");
  if (!d.drawn_then.empty())
    lines.push_back(
        "ratios   not compared, because the baseline's limits were computed with other options (--seed, --no-power, "
        "--false-alarm, --max-bits): " +
        d.drawn_then);
  for (const auto& m : d.verdicts) lines.push_back("verdict  " + m.name + ": " + m.then + " -> " + m.now);
  constexpr std::size_t most = 10;
  for (std::size_t i = 0; i < std::min(d.shares.size(), most); ++i) {
    const auto& m = d.shares[i];
    lines.push_back("drift    " + m.name + " " + m.now.tensor + " " + std::string(name_of(m.now.norm)) + ": " +
                    detail::general(m.then.share, 3) + " -> " + detail::general(m.now.share, 3) + " of the limit" +
                    (m.then.share > 0 ? " (x " + detail::general(factor(m), 6) + ")" : "") +
                    (m.now.share <= 1 ? ", within the limit" : ", beyond the limit"));
  }
  if (d.shares.size() > most)
    lines.push_back("drift    " + std::to_string(d.shares.size() - most) + " smaller drifts, which --json lists");
  if (!d.added.empty()) lines.push_back("added    " + listed(d.added));
  if (!d.gone.empty()) lines.push_back("gone     " + listed(d.gone));
  if (!d.other_inputs.empty())
    lines.push_back("inputs   the problem file has changed, so error-to-limit ratios are not compared: " +
                    listed(d.other_inputs));
  if (!d.other_plans.empty())
    lines.push_back("plans    the plan has changed, so error-to-limit ratios are not compared: " + listed(d.other_plans));
  if (!d.other_results.empty()) lines.push_back("results  the result file has changed: " + listed(d.other_results));
  return lines;
}

std::string summary_line(const suite_report& r) {
  const std::size_t met = r.count(case_state::judged) - r.unexpected();
  std::string text =
      std::string(name_of(r.judged)) + ": " + counted(r.cases.size(), "case") + ", " + std::to_string(met) + " as expected";
  const auto add = [&](std::size_t n, const char* what) {
    if (n > 0) text += ", " + std::to_string(n) + " " + what;
  };
  add(r.unexpected(), "not as expected");
  add(r.count(case_state::stopped), "stopped unfinished (undecided)");
  add(r.count(case_state::failed), "that could not be judged");
  add(r.count(case_state::skipped), "skipped (no result file)");
  return text + "; inputs from " + counted(r.problems, "problem file") + ", the reference computed " + counted(r.solved, "time");
}

/// What chance leaves to each case adds up over them.
double family(const suite_report& r) {
  std::size_t planned = 0;
  for (const case_report& c : r.cases) planned += c.plan.empty() ? 0 : 1;
  return std::min(1.0, r.false_alarm * static_cast<double>(planned));
}

double share_from(const json& value) {
  if (value.is_number()) return value.get<double>();
  return value == "inf" ? HUGE_VAL : std::nan("");
}

}  // namespace

std::string summary_of(const case_report& c) {
  if (c.state != case_state::judged) return c.reason;
  // Most reasons begin with the name of what is bad.
  if (!c.first_bad_stage.empty() && !c.reason.starts_with(c.first_bad_stage + ":") &&
      !c.reason.starts_with(c.first_bad_stage + " "))
    return (c.first_bad_is_stage ? "first bad stage " : "first bad tensor ") + c.first_bad_stage + "; " + c.reason;
  if (!c.first_bad_stage.empty() || exit_code(c.judged) != 0 || c.shares.empty()) return c.reason;
  const auto worst = std::max_element(c.shares.begin(), c.shares.end(),
                                      [](const limit_share& a, const limit_share& b) { return a.share < b.share; });
  return worst->tensor + " " + std::string(name_of(worst->norm)) + " at " + detail::general(worst->share, 3) + " of its limit" +
         (c.not_judged.empty() ? "" : "; not judged: " + c.not_judged);
}

namespace {

/// What limits depend on in `drawn`, without the version: another one is no other question.
std::string options_in(const std::string& drawn) { return drawn.substr(0, drawn.find(", version ")); }

std::string_view word_then(const json& was) {
  if (was["state"] == name_of(case_state::failed)) return no_answer;
  if (was["state"] != name_of(case_state::judged)) return name_of(verdict::undecided);
  return was["verdict"].get_ref<const std::string&>();
}

/// A hash of the earlier report: of the case itself, else inside its verdict, where older ones have it.
std::string hash_then(const json& was, const char* key, const char* part) {
  if (const json own = was.value(key, json()); own.is_string()) return own;
  const json report = was.value("report", json());
  const json inside = report.is_object() ? report.value(part, json()) : json();
  const json hash = inside.is_object() ? inside.value("sha256", json()) : json();
  return hash.is_string() ? hash.get<std::string>() : "";
}

void compare_case(const case_report& c, const json& was, suite_drift& out) {
  const std::string& name = c.what.name;
  if (word_then(was) != word_of(c)) out.verdicts.push_back({name, std::string(word_then(was)), std::string(word_of(c))});
  if (c.state != case_state::judged || was["state"] != name_of(case_state::judged)) return;
  const auto moved = [&](const std::string& then, const std::string& now, std::vector<std::string>& to) {
    if (then != now && !then.empty()) to.push_back(name);
    return then != now;
  };
  const bool other_problem = moved(was["problem_sha256"], c.problem_sha256, out.other_inputs);
  const bool other_plan = moved(hash_then(was, "plan_sha256", "plan"), c.plan_sha256, out.other_plans);
  moved(hash_then(was, "result_sha256", "result"), c.result_sha256, out.other_results);
  // A ratio to another limit says nothing about the kernel.
  if (other_problem || other_plan || !out.drawn_then.empty()) return;
  const json& shares = was["limit_share"];
  for (const limit_share& s : c.shares) {
    const std::string norm(name_of(s.norm));
    if (!shares.contains(s.tensor) || !shares[s.tensor].is_object() || !shares[s.tensor].contains(norm)) continue;
    limit_share old_share = s;
    old_share.share = share_from(shares[s.tensor][norm]);
    ++out.compared;
    if (old_share.share == s.share || (std::isnan(old_share.share) && std::isnan(s.share))) continue;
    out.shares.push_back({name, old_share, s});
  }
}

}  // namespace

suite_drift compare_baseline(const suite_report& now, std::string_view text, const std::string& file) {
  const auto refuse = [&](const std::string& why) {
    return format_error(file + ": this file is not a baseline: " + why +
                        "; give a file that `deltaproof check SUITE.toml --json` wrote");
  };
  detail::require_shallow_json(text, file);
  const json old = json::parse(text, nullptr, false);
  if (old.is_discarded()) throw refuse("not JSON");
  if (!old.is_object() || old.value("schema", json()) != schema || !old.contains("cases") || !old["cases"].is_array()) {
    throw refuse("its schema is not " + std::string(schema));
  }
  suite_drift out;
  out.file = file;
  const json drawn = old.value("drawn", json());
  if (drawn.is_string() && options_in(drawn.get<std::string>()) != options_in(now.drawn)) out.drawn_then = drawn;
  std::map<std::string, const json*> then;
  for (const json& c : old["cases"]) {
    const bool whole = c.is_object() && c.value("name", json()).is_string() && c.value("verdict", json()).is_string() &&
                       c.value("state", json()).is_string() && c.value("problem_sha256", json()).is_string() &&
                       c.value("limit_share", json()).is_object();
    if (!whole) throw refuse("a case lacks its name, state, verdict, problem_sha256 or limit_share");
    if (c["state"] != name_of(case_state::skipped)) then[c["name"]] = &c;
  }
  for (const case_report& c : now.cases) {
    const auto found = then.find(c.what.name);
    if (found == then.end()) {
      if (c.state == case_state::judged) out.added.push_back(c.what.name);
      continue;
    }
    const json& was = *found->second;
    then.erase(found);
    // What is left out on request is no change of the kernel's.
    if (c.state != case_state::skipped) compare_case(c, was, out);
  }
  for (const auto& [name, unused] : then) out.gone.push_back(name);
  std::sort(out.shares.begin(), out.shares.end(), [](const auto& a, const auto& b) {
    return std::tuple(-size_of(a), a.name, a.now.tensor, a.now.norm) < std::tuple(-size_of(b), b.name, b.now.tensor, b.now.norm);
  });
  return out;
}

std::string to_json(const suite_report& r) {
  json j{{"schema", schema}, {"verdict", name_of(r.judged)}, {"suite", r.file}};
  j["counts"] = {{"cases", r.cases.size()},
                 {"as_expected", r.count(case_state::judged) - r.unexpected()},
                 {"unexpected", r.unexpected()},
                 {"stopped", r.count(case_state::stopped)},
                 {"failed", r.count(case_state::failed)},
                 {"skipped", r.count(case_state::skipped)},
                 {"problems", r.problems},
                 {"oracle_questions", r.solved}};
  j["false_alarm"] = {{"case", r.false_alarm}, {"suite", family(r)}};
  j["cases"] = json::array();
  for (const case_report& c : r.cases) {
    json one{{"name", c.what.name},
             {"state", name_of(c.state)},
             {"verdict", name_of(c.judged)},
             {"expect", name_of(c.what.expect)},
             {"as_expected", c.as_expected()},
             {"counts_as", name_of(c.counts_as())},
             {"reason", c.reason},
             {"problem", c.what.problem.string()},
             {"problem_sha256", c.problem_sha256},
             {"result", c.what.result.string()},
             {"result_sha256", c.result_sha256},
             {"plan_sha256", c.plan_sha256}};
    one["plan"] = c.plan.empty() ? json(nullptr) : json(c.plan);
    one["first_bad_stage"] = c.first_bad_stage.empty() ? json(nullptr) : json(c.first_bad_stage);
    one["not_judged"] = c.not_judged.empty() ? json(nullptr) : json(c.not_judged);
    one["limit_share"] = shares_json(c.shares);
    one["report"] = c.verdict_json.empty() ? json(nullptr) : json::parse(c.verdict_json);
    j["cases"].push_back(std::move(one));
  }
  j["drawn"] = r.drawn;
  j["baseline"] = r.drift ? drift_json(*r.drift) : json(nullptr);
  j["version"] = r.version;
  j["reproduce"] = r.reproduce;
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string to_text(const suite_report& r) {
  std::size_t name_width = 4, plan_width = 4;
  for (const case_report& c : r.cases) {
    name_width = std::max(name_width, c.what.name.size());
    plan_width = std::max(plan_width, c.plan.size());
  }
  name_width = std::min<std::size_t>(name_width, 48);
  const auto row = [&](std::string_view mark, const std::string& name, std::string_view judged, std::string_view expected,
                       const std::string& plan, const std::string& rest) {
    return detail::padded(std::string(mark), 6) + detail::padded(name + "  ", name_width + 2) +
           detail::padded(std::string(judged), 11) + detail::padded(std::string(expected), 11) +
           detail::padded(plan, plan_width + 2) + rest + "\n";
  };
  std::string out = row("", "case", "verdict", "expected", "plan", "what decided");
  for (const case_report& c : r.cases) {
    out += row(mark_of(c), one_line(c.what.name), word_of(c), name_of(c.what.expect), c.plan.empty() ? "-" : one_line(c.plan),
               one_line(summary_of(c)));
  }
  if (r.drift) {
    for (const std::string& line : drift_lines(*r.drift)) out += one_line(line) + "\n";
  }
  out += "verdict      " + summary_line(r) + "\n";
  if (family(r) > 0) {
    out += "false alarm  if every kernel conforms to its plan, the probability that any of them exceeds a limit is at most " +
           detail::general(family(r), 2) + " (" + detail::general(r.false_alarm, 2) + " for each case)\n";
  }
  return out + "again        " + one_line(r.reproduce) + "\n";
}

std::string to_markdown(const suite_report& r) {
  std::string out = "## " + one_line(r.file) + ": " + std::string(name_of(r.judged)) + "\n\n" + summary_line(r) + "\n\n";
  out += "| | case | verdict | expected | plan | what decided |\n|---|---|---|---|---|---|\n";
  for (const case_report& c : r.cases) {
    out += "| " + std::string(mark_of(c)) + " | " + one_line(c.what.name, true) + " | " + std::string(word_of(c)) + " | " +
           std::string(name_of(c.what.expect)) + " | " + (c.plan.empty() ? "-" : one_line(c.plan, true)) + " | " +
           one_line(summary_of(c), true) + " |\n";
  }
  if (r.drift) {
    out += "\n```\n";
    for (const std::string& line : drift_lines(*r.drift)) out += one_line(line) + "\n";
    out += "```\n";
  }
  return out + "\n`" + one_line(r.reproduce) + "`\n";
}

}  // namespace deltaproof
