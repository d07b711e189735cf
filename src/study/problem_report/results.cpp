// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "study/problem_report/parts.hpp"

namespace deltaproof::problem_report_detail {
namespace {

/// Bins of tokens that grow by about a quarter: [from, to).
std::vector<std::pair<std::size_t, std::size_t>> horizon_bins(std::size_t tokens) {
  std::vector<std::pair<std::size_t, std::size_t>> bins;
  for (std::size_t from = 0; from < tokens;) {
    const std::size_t to = std::min(tokens, std::max(from + 1, from + from / 4));
    bins.emplace_back(from, to);
    from = to;
  }
  return bins;
}

/// rms(error) / rms(exact) of o in each bin of the token within its sequence, over heads and sequences; what diverges is left
/// out.
series error_curve(const subject& of, const reference& truth, const named_result& r, const std::string& label) {
  std::size_t longest = 0;
  const auto ranges = of.p.sequences();
  for (const sequence_range& range : ranges) longest = std::max(longest, range.tokens);
  const std::size_t row = of.p.value_heads() * of.p.value_dim();
  std::vector<double> error(longest, 0.0), exact(longest, 0.0);
  for (const sequence_range& range : ranges) {
    for (std::size_t t = 0; t < range.tokens; ++t) {
      const std::size_t first = (range.batch * of.p.tokens() + range.first_token + t) * row;
      for (std::size_t i = first; i < first + row; ++i) {
        const double want = truth.o.value[i];
        if (!(truth.o.radius[i] < std::numeric_limits<double>::infinity())) continue;
        const double d = r.values.o.at(i) - want;
        error[t] += d * d;
        exact[t] += want * want;
      }
    }
  }
  series out{label, {}, {}};
  for (const auto& [from, to] : horizon_bins(longest)) {
    double e = 0, w = 0;
    for (std::size_t t = from; t < to; ++t) {
      e += error[t];
      w += exact[t];
    }
    if (!(w > 0)) continue;
    out.x.push_back(0.5 * static_cast<double>(from + to + 1));
    out.y.push_back(std::sqrt(e / w));
  }
  return out;
}

/// Errors of a tensor in units of their limits, the worst head of each bucket.
series budget_curve(const plan_report& plan, const std::string& tensor, norm_kind norm, const std::string& label) {
  std::map<std::size_t, double> worst;
  for (const judged_statistic& s : plan.statistics) {
    if (s.tensor != tensor || s.norm != norm || !s.limit.finite || !(s.limit.value > 0)) continue;
    double& most = worst[s.last_token];
    most = std::max(most, s.got / s.limit.value);
  }
  series out{label, {}, {}, series_style::points};
  for (const auto& [token, share] : worst) {
    out.x.push_back(static_cast<double>(token));
    out.y.push_back(share);
  }
  return out;
}

/// `name` where it is new, else with a number.
std::string distinct(const std::string& name, const std::vector<std::string>& taken) {
  std::string out = name;
  for (int n = 2; std::find(taken.begin(), taken.end(), out) != taken.end(); ++n) out = name + " (" + std::to_string(n) + ")";
  return out;
}

std::string file_name(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

void add_plan(const check_report& checked, table& t, std::vector<cell> row) {
  const auto& plan = checked.conformance;
  row.push_back(plan ? plan->plan : "none");
  row.push_back(plan ? std::string(name_of(plan->conforms)) : "-");
  row.push_back(plan ? cell(plan->adequacy.adequate ? "yes" : "no") : cell("-"));
  row.push_back(plan && plan->adequacy.until_token ? cell(*plan->adequacy.until_token) : cell("-"));
  row.push_back(plan && !plan->first_bad_stage.empty() ? plan->first_bad_stage : "-");
  const bool named = plan && !plan->suspects.empty() && plan->suspects.front().is_alike() && plan->conforms == verdict::refuted;
  row.push_back(named ? std::string(plan->suspects.front().planted->name) : "-");
  row.push_back(plan && plan->power.ran ? cell(std::to_string(plan->power.visible.size()) + " of " +
                                               std::to_string(plan->power.visible.size() + plan->power.invisible.size()))
                                        : cell("-"));
  t.rows.push_back(std::move(row));
}

void add_figure(const panel& errors, const panel& budgets, report& to) {
  const auto drawable = [](const series& s) {
    return std::any_of(s.y.begin(), s.y.end(), [](double y) { return std::isfinite(y) && y > 0; });
  };
  std::vector<panel> panels;
  for (const panel* one : {&errors, &budgets}) {
    if (std::any_of(one->curves.begin(), one->curves.end(), drawable)) panels.push_back(*one);
  }
  if (!panels.empty()) {
    to.figures.push_back({"horizon", "Error against the token position",
                          "Left, the error of o itself; right, the worst head of each bucket in units of the limit that a kernel "
                          "which conforms to the plan stays below.",
                          "Curves of the relative error of each result over tokens, and of its share of the plan's limit.",
                          std::move(panels)});
  }
}

}  // namespace

std::vector<std::string> add_results(const subject& of, std::span<const named_result> results, report& to) {
  std::vector<std::string> sentences, labels;
  if (results.empty()) return sentences;
  std::optional<reference> truth;
  question asked;
  check_options options;
  options.judge = of.options.judge;
  options.threads = of.options.run.threads;
  options.stop = of.options.run.interrupted;
  options.memory = make_referee_memory();
  // Results share the problem, and nearly always the question.
  options.solver = [&](const problem& p, const question& q) {
    const bool same = truth && q.relative_radius == asked.relative_radius && q.round_output == asked.round_output &&
                      q.round_state == asked.round_state && q.min_bits == asked.min_bits && q.max_bits == asked.max_bits;
    if (!same) truth = solve(p, q);
    asked = q;
    return *truth;
  };
  table verdicts{"verdicts",
                 "Verdicts",
                 {"result",
                  "kernel",
                  "verdict",
                  {"error of o", 4},
                  {"error of final_state", 4},
                  "plan",
                  "conforms",
                  "adequate",
                  "T*",
                  "first bad stage",
                  "diagnosis",
                  "planted faults that would be detected"},
                 {},
                 "Errors are relative, in the Frobenius norm. T*: the plan is adequate before this token."};
  panel errors{
      "error of o", {"token within its sequence", axis_scale::logarithmic}, {"rms error / rms exact", axis_scale::logarithmic}};
  panel budgets{"in units of what the plan allows",
                {"token within its sequence", axis_scale::logarithmic},
                {"rms error / limit", axis_scale::logarithmic},
                {},
                {{mark_direction::horizontal, 1, "limit"}}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const named_result& r = results[i];
    if (of.options.run.stopped()) {
      to.unfinished.push_back("The result " + r.path + " and those after it: interrupted before they were judged.");
      break;
    }
    of.options.run.progress("verdicts", static_cast<double>(i) / static_cast<double>(results.size()));
    options.plans = r.plans;
    const check_report checked = check(of.p, r.values, options);
    const std::string label = distinct(r.values.kernel.empty() ? file_name(r.path) : r.values.kernel, labels);
    labels.push_back(label);
    double o = std::nan(""), state = std::nan("");
    for (const tensor_report& t : checked.tensors) (t.name == "o" ? o : state) = t.errors.rel_fro.value;
    add_plan(checked, verdicts,
             {file_name(r.path), r.values.kernel.empty() ? "not stated" : r.values.kernel, std::string(name_of(checked.judged)),
              o, state});
    const std::string id = "result-" + std::to_string(i + 1);
    finding f{id,
              "`" + file_name(r.path) + "` " +
                  (checked.judged == verdict::measured
                       ? "is measured"
                       : std::string(checked.judged == verdict::holds ? "" : "is ") + std::string(name_of(checked.judged))) +
                  ": " + checked.reason + ".",
              evidence::measured(),  // the limits are statistical, whatever the reference's radius
              {{"verdict", std::string(name_of(checked.judged))}, {"error_o", o}},
              std::string("distance to the certified reference (oracle-radius.md)") +
                  (checked.conformance ? "; limits from emulated runs of the plan (false-alarm.md)" : ""),
              r.command};
    sentences.push_back(f.statement);
    to.findings.push_back(std::move(f));
    if (truth && i < 8) {
      errors.curves.push_back(error_curve(of, *truth, r, label));
      if (checked.conformance) budgets.curves.push_back(budget_curve(*checked.conformance, "o", norm_kind::rms, label));
    }
  }
  to.tables.push_back(std::move(verdicts));
  add_figure(errors, budgets, to);
  return sentences;
}

}  // namespace deltaproof::problem_report_detail
