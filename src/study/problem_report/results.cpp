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
void add_errors(const subject& of, const reference& truth, const named_result& r, const std::string& label, frame& to) {
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
  for (const auto& [from, end] : horizon_bins(longest)) {
    double e = 0, w = 0;
    for (std::size_t t = from; t < end; ++t) {
      e += error[t];
      w += exact[t];
    }
    if (w > 0) to.add({label, 0.5 * static_cast<double>(from + end + 1), std::sqrt(e / w)});
  }
}

/// Errors of o in units of their limits, the worst head of each bucket.
void add_shares(const plan_report& plan, const std::string& label, frame& to) {
  std::map<std::size_t, double> worst;
  for (const judged_statistic& s : plan.statistics) {
    if (s.tensor != "o" || s.norm != norm_kind::rms || !s.limit.finite || !(s.limit.value > 0)) continue;
    double& most = worst[s.last_token];
    most = std::max(most, s.got / s.limit.value);
  }
  for (const auto& [token, share] : worst) to.add({label, token, share});
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

void add_verdict(const check_report& checked, frame& to, frame_row row) {
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
  to.add(std::move(row));
}

}  // namespace

std::vector<finding> add_results(const subject& of, std::span<const named_result> judged, results& to) {
  std::vector<finding> findings;
  if (judged.empty()) return findings;
  std::vector<std::string> labels;
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
  frame verdicts({"result", "kernel", "verdict", "o", "final_state", "plan", "conforms", "adequate", "until", "first_bad_stage",
                  "diagnosis", "power"});
  frame errors({"result", "token", "error"}), shares({"result", "token", "share"});
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const named_result& r = judged[i];
    if (of.options.run.stopped()) {
      to.unfinished.push_back({"The result " + r.path + " and those after it", 0, 0, "interrupted before they were judged."});
      break;
    }
    of.options.run.progress("verdicts", static_cast<double>(i) / static_cast<double>(judged.size()));
    options.plans = r.plans;
    const check_report checked = check(of.p, r.values, options);
    const std::string label = distinct(r.values.kernel.empty() ? file_name(r.path) : r.values.kernel, labels);
    labels.push_back(label);
    double o = std::nan(""), state = std::nan("");
    for (const tensor_report& t : checked.tensors) (t.name == "o" ? o : state) = t.errors.rel_fro.value;
    add_verdict(checked, verdicts,
                {file_name(r.path), r.values.kernel.empty() ? "not stated" : r.values.kernel,
                 std::string(name_of(checked.judged)), o, state});
    const std::string verb = checked.judged == verdict::holds ? "" : "is ";
    findings.push_back(
        {"result-" + std::to_string(i + 1),
         "`" + file_name(r.path) + "` " + verb + std::string(name_of(checked.judged)) + ": " + checked.reason + ".",
         evidence::measured(),  // the limits are statistical, whatever the reference's radius
         {{"verdict", name_of(checked.judged)}, {"error_o", o}},
         std::string("distance to the certified reference (proofs/notes/oracle-radius.md)") +
             (checked.conformance ? "; limits from emulated runs of the plan (proofs/notes/false-alarm.md)" : ""),
         r.command});
    if (truth && i < 8) {
      add_errors(of, *truth, r, label, errors);
      if (checked.conformance) add_shares(*checked.conformance, label, shares);
    }
  }
  to.table("verdicts", std::move(verdicts));
  to.table("errors", std::move(errors));
  to.table("shares", std::move(shares));
  return findings;
}

}  // namespace deltaproof::problem_report_detail
