// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "check/check_parts.hpp"
#include "deltaproof/check/check.hpp"
#include "deltaproof/referee/inverse_cost.hpp"
#include "support/printable.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace check_detail {

double closeness(const judged_statistic& s) {
  if (!std::isfinite(s.limit.value)) return -1;
  return s.limit.value > 0 ? s.got / s.limit.value : s.got > 0 ? HUGE_VAL : 0;
}

const judged_statistic* closest(const plan_report& plan, const std::string& tensor, norm_kind norm) {
  const judged_statistic* found = nullptr;
  for (const judged_statistic& s : plan.statistics) {
    if (s.tensor == tensor && s.norm == norm && (found == nullptr || closeness(s) > closeness(*found))) found = &s;
  }
  return found;
}

/// Of the kernel; of the plan where the kernel keeps one that is inadequate.
std::string first_bad_of(const plan_report& plan) {
  return plan.first_bad_stage.empty() && !plan.adequacy.adequate ? plan.adequacy.stage : plan.first_bad_stage;
}

std::vector<unjudged_stage> stages_without_bounds(const plan_report& plan) {
  std::vector<unjudged_stage> out;
  if (!plan.measured_stages) return out;
  for (const unjudged_stage& u : plan.measured_stages->unjudged) {
    const stage_row* const row = find_stage(u.name);
    const bool is_stage = row != nullptr && (row->part == stage_part::stages || row->part == stage_part::backward_stages);
    if (u.stored && is_stage) out.push_back(u);
  }
  return out;
}

bool judged_without_faults(const check_report& report) {
  return report.conformance && report.conformance->judged && !report.conformance->power.ran && !report.conformance->stopped;
}

}  // namespace check_detail

namespace {

using namespace check_detail;
using detail::counted;
using detail::printable_line;

std::string where_text(const std::string& tensor, const element_location& at) {
  std::string text = "seq " + std::to_string(at.sequence) + " " + detail::head_text(tensor, at.head);
  text += at.token ? " token " + std::to_string(at.token_in_sequence.value_or(*at.token)) : "";
  if (at.element.empty()) return text;
  const bool of_keys = tensor == "dq" || tensor == "dk" || tensor == "dg" || at.element.size() > 1;
  text += (of_keys ? " k " : " v ") + std::to_string(at.element[0]);
  if (at.element.size() > 1) text += " v " + std::to_string(at.element[1]);
  return text;
}

/// Why no error of a tensor is shown.
std::string why_not_measured(const tensor_report& t, bool stopped) {
  const measurement& m = t.errors;
  if (t.coverage.overflowed_sums > 0) return "not judged, see above";
  if (m.skipped + m.unknown == 0) return "empty";
  if (m.unknown > 0 && stopped) return "not judged: the reference was not finished";
  const std::string diverges = m.skipped == 0 ? "" : counted(m.skipped, "element") + " where the recurrence diverges";
  const std::string unknown = m.unknown == 0 ? "" : counted(m.unknown, "element") + " for which the reference has no error bound";
  return "not judged: " + diverges + (m.skipped > 0 && m.unknown > 0 ? ", " : "") + unknown;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Stored stages that no bound was derived for, those of one reason together; empty if there is none.
std::string without_bounds_text(const plan_report& plan) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const unjudged_stage& u : check_detail::stages_without_bounds(plan)) {
    const auto known = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == u.reason; });
    if (known == reasons.end())
      reasons.push_back({u.reason, {u.name}});
    else
      known->second.push_back(u.name);
  }
  std::string text;
  for (const auto& [reason, names] : reasons) text += (text.empty() ? "" : "; ") + joined(names) + ": " + reason;
  return text;
}

/// A tensor that is off says nothing of the stage that made it so.
std::string first_bad_text(const plan_report& plan, const std::string& stage) {
  if (plan.first_bad_is_stage) {
    const stage_row* const row = find_stage(stage);
    return row == nullptr ? stage : stage + ", " + std::string(row->meaning);
  }
  return "the tensor " + stage +
         (!plan.stages.empty()          ? "; no stored stage of the forward pass is beyond its bounds"
          : plan.stages_missing.empty() ? ""
                                        : "; no stage was judged") +
         (plan.stages_missing.empty() ? "" : "; to see which stage goes wrong, store " + joined(plan.stages_missing));
}

/// How near each tensor comes to its limits.
std::string closeness_text(const plan_report& plan) {
  std::string out;
  for (const char* tensor : {"o", "final_state", "dq", "dk", "dv", "dbeta", "dg", "dinitial_state"}) {
    const judged_statistic* rms = closest(plan, tensor, norm_kind::rms);
    const judged_statistic* max = closest(plan, tensor, norm_kind::max);
    if (rms == nullptr || max == nullptr) continue;
    out += std::string(out.empty() ? "" : "; ") + tensor;
    const bool no_limit = std::any_of(plan.reach.begin(), plan.reach.end(), [&](const limit_reach& x) {
      return x.tensor == tensor && x.overflow > 0 && x.blind >= x.elements;
    });
    if (no_limit) {
      out += ": no limit, because sums of the plan may overflow";
    } else if (std::isfinite(rms->limit.value) && std::isfinite(max->limit.value)) {
      out += " rms " + detail::general(closeness(*rms), 3) + ", max " + detail::general(closeness(*max), 3);
      for (const norm_kind norm : {norm_kind::changes, norm_kind::tiles}) {
        const judged_statistic* const s = closest(plan, tensor, norm);
        if (s != nullptr && std::isfinite(s->limit.value))
          out += ", " + std::string(name_of(norm)) + " " + detail::general(closeness(*s), 3);
      }
      out += " of the limit";
    } else {
      out += std::string(": no limit, because ") +
             (rms->limit.enough ? "emulated runs overflow" : "too few emulated runs have errors");
    }
  }
  return out;
}

std::string power_text(const power_report& power) {
  std::string unseen;
  std::size_t more = power.invisible.size();
  for (const fault* f : power.invisible) {
    if (unseen.size() + f->name.size() > 160) break;
    unseen += (unseen.empty() ? "; not detected: " : ", ") + std::string(f->name);
    --more;
  }
  if (more > 0) unseen += " and " + std::to_string(more) + " more (--json names them)";
  return std::to_string(power.visible.size()) + " of " + std::to_string(power.visible.size() + power.invisible.size()) +
         " planted faults would be detected on these inputs" + unseen;
}

std::string runs_text(const plan_report& plan) {
  const std::size_t early = plan.runs - plan.whole_runs;
  return std::to_string(plan.variants.size()) + " variants, each run on the given inputs and " + std::to_string(plan.runs) +
         " times on perturbed inputs (" +
         (early > 0 ? std::to_string(early) + " of these stop within the first eighth of the tokens; " : "") +
         "variants that differ only in the order of sums share these runs)";
}

template <class Line>
void conformance_text(const plan_report& plan, const check_report& report, const Line& line) {
  const std::string budgets = closeness_text(plan);
  line("plan", plan.plan + ": " +
                   (plan.conforms == verdict::refuted ? "does not conform"
                    : plan.conforms == verdict::holds ? "conforms"
                                                      : std::string(name_of(plan.conforms))) +
                   (budgets.empty() ? "" : " (" + budgets + ")"));
  line("adequate", !plan.adequacy.judged
                       ? "not known: " + (plan.adequacy.reason.empty() ? "the check was stopped before this was judged"
                                                                       : plan.adequacy.reason)
                   : plan.adequacy.adequate && plan.adequacy.worst_ratio == 0
                       ? "not measured: no head that is judged up to its last token has an error to compare"
                   : plan.adequacy.adequate
                       ? "yes: the plan's own error is at most " + detail::general(plan.adequacy.worst_ratio, 3) +
                             " times that of its formats alone; " +
                             (std::isfinite(plan.adequacy.worst_error)
                                  ? "the plan's relative error is at most " + detail::general(plan.adequacy.worst_error, 3)
                                  : "where all exact values are 0, its relative error is infinite")
                       : "no: " + plan.adequacy.reason);
  for (const range_report& r : plan.adequacy.ranges) {
    if (!r.violated && (r.known == "bound" || r.what == "log decay")) line("range", r.says);
  }
  const bool gradients = std::any_of(report.tensors.begin(), report.tensors.end(), [](const tensor_report& t) {
    return std::find(gradient_names.begin(), gradient_names.end(), t.name) != gradient_names.end();
  });
  if (gradients && !plan.gradients.judged)
    line("gradients", std::string("compared with the exact gradients; ") +
                          (!plan.gradients.stated ? "the plan has no [backward] section, so no limit of it applies to them"
                           : report.stopped       ? "the check was stopped before they had limits"
                                                  : "on these inputs the plan limits no element of them"));
  if (!plan.stages.empty()) {
    std::string text;
    for (const judged_stage& s : plan.stages) {
      const stage_measurement& m = *plan.measured_stages->find(s.name);
      const bool within = s.judged == verdict::refuted && m.worst && m.worst->ratio <= 1;  // refuted by all its errors together
      const std::string ratio = !m.worst                                       ? "not judged"
                                : m.worst->ratio > 1 && m.worst->ratio < 1.005 ? "just above 1"
                                                                               : detail::general(m.worst->ratio, 3);
      text += (text.empty() ? "" : ", ") + s.name + " " + ratio +
              (within                                      ? " BAD (" + s.reason + ")"
               : s.judged == verdict::refuted              ? " BAD"
               : s.judged == verdict::undecided && m.worst ? " undecided"
                                                           : "");
    }
    line("stages", "worst error in units of its bound: " + text);
  }
  if (const std::string text = without_bounds_text(plan); !text.empty()) line("no bounds", text);
  if (!plan.first_bad_stage.empty()) line("first bad", first_bad_text(plan, plan.first_bad_stage));
  if (judged_without_faults(report)) line("power", "not measured; " + std::string(no_limits_on_faults));
  if (plan.power.ran) {
    if (!plan.first_bad_stage.empty() || plan.conforms == verdict::refuted) {
      std::string text;
      // A fault may stand there once for each tensor.
      std::set<const fault*> shown;
      for (const suspect& s : plan.suspects) {
        if (shown.size() == 3) break;
        if (!s.is_alike() || (s.comes_later && !shown.empty()) || !shown.insert(s.planted).second) continue;
        text += (text.empty() ? "" : "; ") + std::string(s.planted->name) + " (score " + detail::general(s.score, 2) +
                "): " + std::string(s.planted->what);
      }
      const bool infinite = std::any_of(plan.statistics.begin(), plan.statistics.end(),
                                        [](const judged_statistic& s) { return !std::isfinite(s.got); });
      if (text.empty())
        text = infinite ? "not known: the result is not finite, so its error cannot be compared with those of planted faults"
                        : "no planted fault explains the error";
      line("diagnosis", text);
    }
    line("power", power_text(plan.power));
  }
  if (!plan.stopped || !plan.statistics.empty())
    line("false alarm",
         "a kernel that conforms to this plan, with errors distributed as in the emulated runs, exceeds any of its " +
             std::to_string(plan.tests) + " limits with probability at most " + detail::general(plan.false_alarm, 2) + " (" +
             runs_text(plan) + "; " + plan.slice + ")");
  for (const std::string& other : report.other_plans) line("other plan", other);
}

/// Where exact numbers leave the range, forward and backward.
template <class Line>
void divergences_text(const check_report& report, const Line& line) {
  if (report.diverges) {
    const auto& d = *report.diverges;
    line("diverges", "the exact recurrence leaves the range of its formats in " + std::to_string(d.heads) +
                         (d.heads == 1 ? " head" : " heads") + ", first at sequence " + std::to_string(d.first.sequence) +
                         ", head " + std::to_string(d.first.value_head) + ", token " + std::to_string(d.first.token) +
                         ". In such a head, from that token on (on the chunk path: from the start of its chunk), infinity and "
                         "NaN are correct, and a finite value is refuted only if the exact one is more than twice the largest "
                         "number of its format; this concerns " +
                         counted(d.skipped, "element") + " of o");
  }
  if (!report.gradients_diverge.empty()) {
    const gradient_divergence& d = report.gradients_diverge.front();
    line("diverges", "backward, in " + std::to_string(report.gradients_diverge.size()) +
                         (report.gradients_diverge.size() == 1 ? " head" : " heads") +
                         ": the exact state or its cotangent leaves the range of its format; in sequence " +
                         std::to_string(d.sequence) + ", head " + std::to_string(d.value_head) +
                         (d.cotangents_from < d.states_until
                              ? ", gradients are judged for tokens " + std::to_string(d.cotangents_from) + " to " +
                                    std::to_string(d.states_until - 1)
                              : ", only dq is judged, for the first " + std::to_string(d.states_until) + " tokens") +
                         " of the sequence (on the chunk path: for the whole chunks among these, if there are any)");
  }
}

}  // namespace

std::string to_text(const check_report& report, const check_identity& identity) {
  std::string out;
  const auto line = [&](const std::string& label, const std::string& text) {
    out += detail::padded(label, 13) + printable_line(text) + "\n";
  };
  const std::string left = not_judged_text(report);
  std::string reason = report.reason;
  if (const auto at = reason.find(left); !left.empty() && at != std::string::npos) reason.replace(at, left.size(), "see below");
  line("verdict", std::string(name_of(report.judged)) + ": " + reason);
  if (!report.remedy.empty()) line("remedy", report.remedy);
  line("kernel",
       (identity.kernel.empty() ? "not stated" : identity.kernel) + (identity.path.empty() ? "" : " (" + identity.path + ")"));
  divergences_text(report, line);
  if (!left.empty()) line("not judged", left);
  std::size_t names = 12;
  for (const tensor_report& t : report.tensors) names = std::max(names, t.name.size());
  out += detail::padded("", names + 1) + detail::padded("max_abs", 11) + detail::padded("rel_fro", 11) +
         detail::padded("ulps", 11) + detail::padded("radius", 11) + "worst at\n";
  for (const tensor_report& t : report.tensors) {
    const measurement& m = t.errors;
    if (m.elements == m.unknown) {
      out += detail::padded(t.name, names) + " " + why_not_measured(t, report.stopped) + "\n";
      continue;
    }
    out += detail::padded(t.name, names) + " " + detail::padded(detail::scientific(m.max_abs.value), 11) +
           detail::padded(check_detail::no_digit_known(m) ? "not known" : detail::scientific(m.rel_fro.value), 11) +
           detail::padded(detail::scientific(m.ulps.value), 11) + detail::padded(detail::scientific(m.radius), 11) +
           (t.first_nonfinite ? where_text(t.name, *t.first_nonfinite)
            : t.worst         ? where_text(t.name, *t.worst)
                              : "-") +
           "\n";
    if (t.first_nonfinite)
      line("", "not finite where the exact value is: " + counted(m.nonfinite, "element") + ", the first at " +
                   where_text(t.name, *t.first_nonfinite));
  }
  if (!report.tensors.empty() && report.tensors.front().name == "o" &&
      report.tensors.front().errors.elements > report.tensors.front().errors.unknown) {
    const measurement& o = report.tensors.front().errors;
    std::string text = "fla ratio " + detail::scientific(o.fla_ratio.value) + ", nmse " + detail::scientific(o.nmse) +
                       ", allclose violations " + std::to_string(o.allclose_violations) + " of " + std::to_string(o.elements);
    if (report.flash_attention_factor) text += ", FlashAttention factor " + detail::scientific(*report.flash_attention_factor);
    line("known (o)", text);
  }
  if (report.conformance) conformance_text(*report.conformance, report, line);
  for (const precondition& p : report.preconditions) {
    if (p.level == remark::fine) continue;
    line(std::string(name_of(p.level)),
         p.says + (p.first && p.count < p.rows ? "; the first such row: sequence " + std::to_string(p.first->sequence) +
                                                     (p.name == "key_norm" ? ", key head " : ", head ") +
                                                     std::to_string(p.first->head) + ", token " + std::to_string(p.first->token)
                                               : ""));
  }
  std::string tiers;
  for (const auto& [name, heads] : report.tiers)
    tiers += (tiers.empty() ? "" : ", ") + name + " for " + std::to_string(heads) + (heads == 1 ? " head" : " heads");
  if (!tiers.empty()) line("reference", tiers);
  for (const unread_entries& x : report.unread) line("note", check_detail::describe(x));
  for (const std::string& note : identity.notes) line("note", note);
  line("again", identity.reproduce);
  return out;
}

}  // namespace deltaproof
