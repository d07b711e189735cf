// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "check/check_parts.hpp"
#include "check/record_json.hpp"
#include "deltaproof/check/check.hpp"
#include "support/json_number.hpp"
#include "support/printable.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

using json = nlohmann::ordered_json;

json location_json(const std::optional<element_location>& at) {
  if (!at) return nullptr;
  json j{{"batch", at->batch}, {"sequence", at->sequence}, {"head", at->head}};
  j["token"] = at->token ? json(*at->token) : json(nullptr);
  j["token_in_sequence"] = at->token_in_sequence ? json(*at->token_in_sequence) : json(nullptr);
  j["element"] = at->element.size() == 1 ? json(at->element[0]) : json(at->element);
  j["got"] = detail::json_number(at->got);
  j["want"] = detail::json_number(at->want);
  return j;
}

json row_json(const std::optional<row_location>& at) {
  if (!at) return nullptr;
  return {{"batch", at->batch}, {"sequence", at->sequence}, {"head", at->head}, {"token", at->token}, {"step", at->step}};
}

json tensor_json(const tensor_report& t) {
  json j{{"name", t.name}, {"dtype", t.dtype}, {"shape", t.shape}, {"verdict", name_of(t.judged)}};
  const measurement& m = t.errors;
  j["elements"] = m.elements;
  j["skipped"] = m.skipped;
  j["not_enclosed"] = m.unknown;
  const bool measured = m.elements > m.unknown;  // else there is no error to speak of
  const auto metric_json = [measured](double x) { return measured ? detail::json_number(x) : json(nullptr); };
  j["max_abs"] = metric_json(m.max_abs.value);
  j["rel_fro"] = check_detail::no_digit_known(m) ? json(nullptr) : metric_json(m.rel_fro.value);
  j["ulps"] = metric_json(m.ulps.value);
  j["worst_row"] = metric_json(m.worst_row.value);
  j["radius"] = detail::json_number(m.radius);
  j["worst"] = location_json(t.worst);
  j["first_nonfinite"] = location_json(t.first_nonfinite);
  j["nonfinite"] = m.nonfinite;
  j["first_beyond_range"] = location_json(t.first_beyond_range);
  j["beyond_range"] = t.beyond_range;
  const tensor_coverage& c = t.coverage;
  j["coverage"] = {{"elements", c.elements}, {"out_of_range", c.out_of_range}, {"overflowed", c.overflowed}, {"blind", c.blind},
                   {"zero", c.zero}, {"share_not_judged", c.share_not_judged()}};
  j["fla_ratio"] = metric_json(m.fla_ratio.value);
  j["nmse"] = metric_json(m.nmse);
  j["allclose_violations"] = measured ? json(m.allclose_violations) : json(nullptr);
  if (t.bounds.empty()) {
    j["budget"] = nullptr;
    j["provenance"] = nullptr;
    return j;
  }
  json budget = json::object(), provenance = json::object();
  for (const metric_bound& b : t.bounds) {
    const std::string name(name_of(b.which));
    if (budget.contains(name) && budget[name].get<double>() <= b.limit.value) continue;
    budget[name] = b.limit.value;
    provenance[name] = b.limit.provenance.text();
  }
  j["budget"] = std::move(budget);
  j["provenance"] = std::move(provenance);
  return j;
}

/// What stands behind a decision, by its name in the index of proofs/README.md. Limits from emulated runs have no theorem: their
/// provenance says how they were measured.
constexpr std::string_view stage_because =
    "derived (src/stages); the sums in it, of two numbers at a time rounded to nearest, in any order and with underflow, are "
    "machine-checked: float.sum_trees.dot_error_gamma, where results are flushed float.sum_trees.flushed_tree_error; their composition is "
    "proved on paper; sums of whole blocks, as tensor cores make them, are not covered by either";

// Text from files goes on one line: a control character could fake a line of ours.
using detail::printable_line;

std::string where_text(const std::string& tensor, const element_location& at) {
  std::string text = "seq " + std::to_string(at.sequence) + " head " + std::to_string(at.head);
  text += at.token ? " token " + std::to_string(*at.token) : "";
  if (at.element.empty()) return text;
  const bool of_keys = tensor == "dq" || tensor == "dk" || tensor == "dg" || at.element.size() > 1;
  text += (of_keys ? " k " : " v ") + std::to_string(at.element[0]);
  if (at.element.size() > 1) text += " v " + std::to_string(at.element[1]);
  return text;
}

std::string tier_text(const check_report& report) {
  std::string text;
  for (const auto& [name, heads] : report.tiers) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// What stands behind the radii, by tier. A head counts for the last tier that a row of it needed: rows before that were of fp64.
std::string radius_because(const std::map<std::string, std::size_t>& tiers) {
  const auto any = [&](std::string_view name) {
    return std::any_of(tiers.begin(), tiers.end(), [&](const auto& tier) { return tier.first.starts_with(name); });
  };
  std::string text = "proofs/notes/oracle-radius.md, proved on paper";
  if (any("fp64") || any("double-double") || any("fixed") || any("exact")) {
    text += "; of tier fp64 the error of steps, decays and read-outs of rows in vectors is machine-checked, with underflow: "
            "float.tier_run.tier_output_radius; its lowered inputs, its norms, its factors, what is exact and adds nothing, "
            "the arithmetic of its radius, and heads run whole are not";
  }
  if (any("mpfr")) text += "; of tier mpfr the error of tokens with a decay is machine-checked, without underflow: float.oracle_radius.output_radius";
  return text;
}

json largest_radius(const check_report& report) {
  double largest = 0;
  for (const tensor_report& t : report.tensors) largest = std::max(largest, t.errors.radius);
  return detail::json_number(largest);
}

json threshold_json(const threshold& t) {
  return {{"limit", detail::json_number(t.value)}, {"typical", detail::json_number(t.typical)}, {"spread", detail::json_number(t.spread)},
          {"degrees", t.degrees}, {"alpha", t.alpha}, {"provenance", t.provenance}};
}

json statistic_json(const judged_statistic& s) {
  json j{{"sequence", s.sequence}, {"head", s.head}, {"first_token", s.first_token}, {"last_token", s.last_token},
         {"norm", name_of(s.norm)}, {"got", detail::json_number(s.got)}, {"truth", detail::json_number(s.truth)}, {"verdict", name_of(s.judged)}};
  j.update(threshold_json(s.limit));
  return j;
}

/// Below 0 where there is no budget to be close to.
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

json place_json(const std::optional<stage_place>& at) {
  if (!at) return nullptr;
  return {{"batch", at->batch}, {"sequence", at->sequence}, {"head", at->head}, {"chunk", at->chunk}, {"row", at->row}, {"element", at->element},
          {"got", detail::json_number(at->got)}, {"want", detail::json_number(at->want)}, {"bound", detail::json_number(at->bound)},
          {"ratio", detail::json_number(at->ratio)}};
}

/// What the budgets of the plan say of each tensor: the bucket closest to its limit, in each norm.
void budgets_json(const plan_report& plan, json& tensors) {
  for (json& t : tensors) {
    const std::string name = t["name"];
    json budget = t["budget"].is_null() ? json::object() : t["budget"], provenance = t["provenance"].is_null() ? json::object() : t["provenance"];
    for (const norm_kind norm : {norm_kind::rms, norm_kind::max}) {
      const judged_statistic* s = closest(plan, name, norm);
      if (s == nullptr) continue;
      const std::string key = "plan " + std::string(name_of(norm));
      budget[key] = detail::json_number(s->limit.value);
      provenance[key] = s->limit.provenance;
      if (s->judged == verdict::refuted) t["verdict"] = name_of(verdict::refuted);
    }
    if (t["verdict"] == "measured" && !budget.empty()) t["verdict"] = name_of(verdict::holds);
    if (!budget.empty()) {
      t["budget"] = std::move(budget);
      t["provenance"] = std::move(provenance);
    }
    t["buckets"] = json::array();
    for (const judged_statistic& s : plan.statistics) {
      if (s.tensor == name) t["buckets"].push_back(statistic_json(s));
    }
  }
}

json stages_json(const plan_report& plan) {
  json list = json::array();
  for (const judged_stage& s : plan.stages) {
    const stage_measurement& m = *plan.measured_stages->find(s.name);
    json j{{"name", s.name}, {"because", stage_because}, {"dtype", m.dtype}, {"verdict", name_of(s.judged)}, {"rounding", m.rounding}, {"elements", m.judged},
           {"skipped", m.skipped}, {"unbounded", m.unbounded}, {"nonfinite", m.nonfinite}, {"bad", m.bad},
           {"worst", place_json(m.worst)}, {"first_bad", place_json(m.first_bad)}, {"rms_ratio", detail::json_number(s.rms_ratio)},
           {"bias", detail::json_number(s.bias)}, {"exactly_bf16", m.exactly_bf16}};
    j["budget"] = s.rms_limit ? json(threshold_json(*s.rms_limit)) : json(nullptr);
    j["bias_interval"] = s.bias_limit ? json{detail::json_number(s.bias_limit->lower), detail::json_number(s.bias_limit->upper)} : json(nullptr);
    j["reason"] = s.reason.empty() ? json(nullptr) : json(s.reason);
    list.push_back(std::move(j));
  }
  return list;
}

json names(const std::vector<const fault*>& list) {
  json j = json::array();
  for (const fault* f : list) j.push_back(f->name);
  return j;
}

/// Of the kernel; of the plan where the kernel keeps one that is inadequate.
std::string first_bad_of(const plan_report& plan) {
  return plan.first_bad_stage.empty() && !plan.adequacy.adequate ? plan.adequacy.stage : plan.first_bad_stage;
}

bool judged_without_faults(const check_report& report) {
  return report.conformance && !report.conformance->power.ran && !report.conformance->stopped;
}

constexpr std::string_view no_limits_on_faults = "without a search for planted faults (--no-power) no limit on their shapes is applied: one as small as rounding may hold";

void conformance_json(const check_report& report, json& j) {
  if (!report.conformance) {
    for (const char* key : {"plan", "conforms", "adequate", "first_bad_stage", "first_bad_is", "diagnosis", "power"}) j[key] = nullptr;
    j["stages_missing"] = json::array();
    j["stages"] = json::array();
    return;
  }
  const plan_report& plan = *report.conformance;
  budgets_json(plan, j["tensors"]);
  j["plan"] = {{"name", plan.plan}, {"variants", plan.variants}, {"other_plans", report.other_plans}};
  j["conforms"] = plan.conforms == verdict::refuted ? json(false) : plan.conforms == verdict::holds ? json(true) : json(nullptr);
  j["conforms_reason"] = plan.reason;
  json violations = json::array(), warnings = json::array();
  for (const range_report& r : plan.adequacy.ranges) {
    json one{{"what", r.what}, {"reaches", detail::json_number(r.reaches)}, {"limit", detail::json_number(r.limit)}, {"format", r.format},
             {"known", r.known}, {"says", r.says}};
    (r.violated ? violations : warnings).push_back(std::move(one));
  }
  const auto& a = plan.adequacy;
  j["adequate"] = {{"adequate", a.judged ? json(a.adequate) : json(nullptr)}, {"accuracy", a.accuracy ? json(*a.accuracy) : json(nullptr)}, {"error", detail::json_number(a.worst_error)},
                   {"ratio", detail::json_number(a.worst_ratio)}, {"ratio_tensor", a.worst_tensor},
                   {"until_token", a.until_token ? json(*a.until_token) : json(nullptr)}, {"range_violations", std::move(violations)}, {"range_warnings", std::move(warnings)},
                   {"reason", a.reason.empty() ? json(nullptr) : json(a.reason)}};
  j["stages"] = stages_json(plan);
  const std::string first_bad = first_bad_of(plan);
  j["first_bad_stage"] = first_bad.empty() ? json(nullptr) : json(first_bad);
  j["first_bad_is"] = plan.first_bad_stage.empty() ? json(nullptr) : json(plan.first_bad_is_stage ? "stage" : "tensor");
  j["stages_missing"] = plan.stages_missing;
  j["diagnosis"] = json::array();
  for (const suspect& s : plan.suspects) {
    if (!s.is_alike()) continue;
    j["diagnosis"].push_back({{"fault", s.planted->name}, {"score", detail::json_number(s.score)}, {"share", detail::json_number(s.share)},
                              {"limit", detail::json_number(s.limit)}, {"tensor", s.tensor}, {"stage", s.planted->stage}, {"what", s.planted->what}});
  }
  j["power"] = plan.power.ran ? json{{"visible", names(plan.power.visible)}, {"invisible", names(plan.power.invisible)}, {"slice", plan.power.slice}} : json(nullptr);
  j["false_alarm"] = {{"family", plan.false_alarm}, {"tests", plan.tests}, {"runs", plan.runs}, {"heads", plan.slice}, {"argument", plan.argument}};
}

using check_detail::sha256_of;

/// The options, and beside the name of the judged plan its text.
void record_json(const check_record& record, json& j) {
  for (const plan_source& source : record.plans) {
    if (!j["plan"].is_object() || j["plan"]["name"] != source.name || j["plan"].contains("text")) continue;
    j["plan"]["sha256"] = sha256_of(source.text);
    j["plan"]["text"] = source.text;
  }
  j["options"] = check_detail::json_of(record);
}

}  // namespace

std::string to_json(const check_report& report, const check_identity& identity) {
  json j;
  j["schema"] = "deltaproof.verdict/1";
  j["verdict"] = name_of(report.judged);
  j["reason"] = report.reason;
  j["remedy"] = report.remedy.empty() ? json(nullptr) : json(report.remedy);
  j["diverges_at"] = nullptr;
  if (report.diverges) {
    const auto& d = *report.diverges;
    j["diverges_at"] = {{"sequence", d.first.sequence}, {"head", d.first.value_head}, {"token", d.token},
                        {"token_in_sequence", d.first.token}, {"count", d.heads}, {"elements_not_judged", d.skipped}};
  }
  j["gradients_diverge_at"] = json::array();
  for (const gradient_divergence& d : report.gradients_diverge) {
    j["gradients_diverge_at"].push_back({{"sequence", d.sequence}, {"head", d.value_head}, {"states_until", d.states_until}, {"cotangents_from", d.cotangents_from}});
  }
  j["tensors"] = json::array();
  for (const tensor_report& t : report.tensors) j["tensors"].push_back(tensor_json(t));
  j["preconditions"] = json::array();
  for (const precondition& p : report.preconditions) {
    j["preconditions"].push_back({{"name", p.name}, {"level", name_of(p.level)}, {"says", p.says},
                                  {"least", detail::json_number(p.least)}, {"largest", detail::json_number(p.largest)},
                                  {"count", p.count}, {"rows", p.rows}, {"first", row_json(p.first)}, {"worst_at", row_json(p.worst_at)}});
  }
  json known = json::object();
  if (!report.tensors.empty()) {
    const measurement& o = report.tensors.front().errors;
    const bool measured = report.tensors.front().name == "o" && o.elements > o.unknown;
    known["fla_ratio"] = measured ? detail::json_number(o.fla_ratio.value) : json(nullptr);
    known["nmse"] = measured ? detail::json_number(o.nmse) : json(nullptr);
    known["allclose_violations"] = measured ? json(o.allclose_violations) : json(nullptr);
  }
  const auto optional_number = [](const std::optional<double>& x) { return x ? detail::json_number(*x) : json(nullptr); };
  known["flash_attention_factor"] = optional_number(report.flash_attention_factor);
  known["attention_gym_factor"] = optional_number(report.attention_gym_factor);
  j["known_metrics"] = std::move(known);
  j["oracle"] = {{"tiers", report.tiers}, {"tier", tier_text(report)}, {"radius", largest_radius(report)}, {"because", radius_because(report.tiers)}};
  conformance_json(report, j);
  j["problem"] = {{"path", identity.problem_path}, {"sha256", identity.problem_sha256}};
  j["result"] = {{"path", identity.result_path}, {"sha256", identity.result_sha256}, {"kernel", identity.kernel},
                 {"producer", identity.producer}, {"kernel_path", identity.path}};
  if (identity.record) record_json(*identity.record, j);
  j["unread"] = json::array();
  j["notes"] = identity.notes;
  for (const unread_entries& x : report.unread) {
    j["unread"].push_back({{"stage", x.stage}, {"elements", x.elements}, {"nonzero", x.nonzero}, {"nonfinite", x.nonfinite}, {"first", place_json(x.first)}});
    j["notes"].push_back(check_detail::describe(x));
  }
  if (judged_without_faults(report)) j["notes"].push_back(no_limits_on_faults);
  j["version"] = identity.version;
  j["reproduce"] = identity.reproduce;
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

namespace {

std::string shortened(const std::string& text, std::size_t most) { return text.size() <= most ? text : text.substr(0, most - 3) + "..."; }

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// A tensor that is off says nothing of the stage that made it so.
std::string first_bad_text(const plan_report& plan, const std::string& stage) {
  const std::string what = stage + ", " + std::string(meaning_of_stage(stage));
  if (plan.first_bad_stage.empty() || plan.first_bad_is_stage) return what;
  if (plan.stages_missing.empty()) return what + (plan.stages.empty() ? "" : "; every stored stage is within its bounds");
  return stage + ", as a whole: " + (plan.stages.empty() ? "no stage is stored" : "the stored stages are within their bounds") +
         "; to see which stage goes wrong, store " + joined(plan.stages_missing);
}

template <class Line>
void conformance_text(const plan_report& plan, const check_report& report, const Line& line) {
  std::string budgets;
  for (const char* tensor : {"o", "final_state"}) {
    const judged_statistic* rms = closest(plan, tensor, norm_kind::rms);
    const judged_statistic* max = closest(plan, tensor, norm_kind::max);
    if (rms == nullptr || max == nullptr) continue;
    if (!std::isfinite(rms->limit.value) || !std::isfinite(max->limit.value)) {
      budgets += std::string(budgets.empty() ? "" : "; ") + tensor + ": no budget, the plan's own runs are not finite";
      continue;
    }
    budgets += std::string(budgets.empty() ? "" : "; ") + tensor + " rms " + detail::general(closeness(*rms), 3) + ", max " + detail::general(closeness(*max), 3) + " of the limit";
  }
  line("plan", plan.plan + ": " + (plan.conforms == verdict::refuted ? "not kept" : plan.conforms == verdict::holds ? "kept" : std::string(name_of(plan.conforms))) +
                   (budgets.empty() ? "" : " (" + budgets + ")"));
  line("adequate", !plan.adequacy.judged ? "not known: stopped before it was" : plan.adequacy.adequate && plan.adequacy.worst_ratio == 0 ? "not measured: no head is judged to its end" : plan.adequacy.adequate ? "yes: at most " + detail::general(plan.adequacy.worst_ratio, 3) + " times what its formats alone cost, relative error " +
                                                detail::general(plan.adequacy.worst_error, 3)
                                          : "no: " + plan.adequacy.reason);
  for (const range_report& r : plan.adequacy.ranges) {
    if (!r.violated && (r.known == "bound" || r.what == "log decay")) line("range", r.says);
  }
  if (std::any_of(report.tensors.begin(), report.tensors.end(), [](const tensor_report& t) { return t.name == "dq" || t.name == "dv"; })) {
    line("gradients", "measured against the certified adjoint; no plan states a backward pass, so only --max-error limits them");
  }
  if (!plan.stages.empty()) {
    std::string text;
    for (const judged_stage& s : plan.stages) {
      const stage_measurement& m = *plan.measured_stages->find(s.name);
      const bool within = s.judged == verdict::refuted && m.worst && m.worst->ratio <= 1;  // refuted by all its errors together
      text += (text.empty() ? "" : ", ") + s.name + " " + (m.worst ? detail::general(m.worst->ratio, 3) : "-") +
              (within ? " BAD by its " + s.reason : s.judged == verdict::refuted ? " BAD" : s.judged == verdict::undecided ? " undecided" : "");
    }
    line("stages", "worst error in units of its bound: " + text);
  }
  if (const std::string stage = first_bad_of(plan); !stage.empty()) line("first bad", first_bad_text(plan, stage));
  if (judged_without_faults(report)) line("power", "not looked at; " + std::string(no_limits_on_faults));
  if (plan.power.ran) {
    if (!plan.first_bad_stage.empty() || plan.conforms == verdict::refuted) {
      std::string text;
      // A fault may stand there once for each tensor.
      std::set<const fault*> shown;
      for (const suspect& s : plan.suspects) {
        if (shown.size() == 3) break;
        if (!s.is_alike() || (s.comes_later && !shown.empty()) || !shown.insert(s.planted).second) continue;
        text += (text.empty() ? "" : "; ") + std::string(s.planted->name) + " (score " + detail::general(s.score, 2) + "): " + std::string(s.planted->what);
      }
      line("diagnosis", text.empty() ? "no planted fault fits" : text);
    }
    std::string invisible;
    for (const fault* f : plan.power.invisible) invisible += (invisible.empty() ? "" : ", ") + std::string(f->name);
    line("power", std::to_string(plan.power.visible.size()) + " of " + std::to_string(plan.power.visible.size() + plan.power.invisible.size()) + " planted faults would show on these inputs" +
                      (invisible.empty() ? "" : "; not " + shortened(invisible, 160)));
  }
  line("false alarm", "a kernel that keeps this plan, its errors distributed as those of the emulated runs, is refuted with probability at most " + detail::general(plan.false_alarm, 2) + " (" + std::to_string(plan.tests) +
                          " tests; " + std::to_string(plan.runs) + " runs of each of " + std::to_string(plan.variants.size()) + " variants on these inputs and on moved ones; " + plan.slice + ")");
  for (const std::string& other : report.other_plans) line("not", other);
}

}  // namespace

std::string to_text(const check_report& report, const check_identity& identity) {
  std::string out;
  const auto line = [&](const std::string& label, const std::string& text) { out += detail::padded(label, 13) + printable_line(text) + "\n"; };
  line("verdict", std::string(name_of(report.judged)) + ": " + report.reason);
  if (!report.remedy.empty()) line("remedy", report.remedy);
  line("kernel", (identity.kernel.empty() ? "not stated" : identity.kernel) + (identity.path.empty() ? "" : " (" + identity.path + ")"));
  if (report.diverges) {
    const auto& d = *report.diverges;
    line("diverges", "the exact recurrence leaves its formats' range at token " + std::to_string(d.token) + " (sequence " +
                         std::to_string(d.first.sequence) + ", head " + std::to_string(d.first.value_head) + "), in " +
                         std::to_string(d.heads) + (d.heads == 1 ? " head; " : " heads; ") + std::to_string(d.skipped) + " outputs from there on, where infinity or NaN is due and finite values are not judged");
  }
  if (!report.gradients_diverge.empty()) {
    const gradient_divergence& d = report.gradients_diverge.front();
    line("diverges", "backward, in " + std::to_string(report.gradients_diverge.size()) + (report.gradients_diverge.size() == 1 ? " head" : " heads") +
                         ": the exact state or its cotangent leaves fp32; of sequence " + std::to_string(d.sequence) + ", head " + std::to_string(d.value_head) +
                         (d.cotangents_from < d.states_until
                              ? ", gradients are judged of tokens " + std::to_string(d.cotangents_from) + " to " + std::to_string(d.states_until - 1)
                              : ", nothing is judged but dq of the first " + std::to_string(d.states_until) + " tokens"));
  }
  if (const std::string left = not_judged_text(report); !left.empty()) line("not judged", left);
  std::size_t names = 12;
  for (const tensor_report& t : report.tensors) names = std::max(names, t.name.size());
  out += detail::padded("", names + 1) + detail::padded("max_abs", 11) + detail::padded("rel_fro", 11) + detail::padded("ulps", 11) + detail::padded("radius", 11) + "worst at\n";
  for (const tensor_report& t : report.tensors) {
    const measurement& m = t.errors;
    if (m.elements == m.unknown) {
      out += detail::padded(t.name, names) + " " + printable_line("not judged: " + std::to_string(m.skipped) + " elements skipped, " + std::to_string(m.unknown) + " not enclosed") + "\n";
      continue;
    }
    out += detail::padded(t.name, names) + " " + detail::padded(detail::scientific(m.max_abs.value), 11) + detail::padded(check_detail::no_digit_known(m) ? "not known" : detail::scientific(m.rel_fro.value), 11) +
           detail::padded(detail::scientific(m.ulps.value), 11) + detail::padded(detail::scientific(m.radius), 11) + (t.worst ? where_text(t.name, *t.worst) : "-") + "\n";
    if (t.first_nonfinite) {
      line("", std::to_string(m.nonfinite) + " non-finite, the first at " + where_text(t.name, *t.first_nonfinite));
    }
  }
  if (!report.tensors.empty() && report.tensors.front().name == "o" && report.tensors.front().errors.elements > report.tensors.front().errors.unknown) {
    const measurement& o = report.tensors.front().errors;
    std::string text = "fla ratio " + detail::scientific(o.fla_ratio.value) + ", nmse " + detail::scientific(o.nmse) + ", allclose violations " +
                       std::to_string(o.allclose_violations) + " of " + std::to_string(o.elements);
    if (report.flash_attention_factor) text += ", FlashAttention factor " + detail::scientific(*report.flash_attention_factor);
    line("known (o)", text);
  }
  if (report.conformance) conformance_text(*report.conformance, report, line);
  for (const precondition& p : report.preconditions) {
    if (p.level == remark::fine) continue;
    line(std::string(name_of(p.level)), p.says + (p.first ? ", the first at sequence " + std::to_string(p.first->sequence) + ", head " + std::to_string(p.first->head) +
                                                      ", its token " + std::to_string(p.first->token)
                                                : ""));
  }
  std::string tiers;
  for (const auto& [name, heads] : report.tiers) tiers += (tiers.empty() ? "" : ", ") + name + " for " + std::to_string(heads) + (heads == 1 ? " head" : " heads");
  if (!tiers.empty()) line("reference", tiers);
  for (const unread_entries& x : report.unread) line("note", check_detail::describe(x));
  for (const std::string& note : identity.notes) line("note", note);
  line("again", identity.reproduce);
  return out;
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: float.sum_trees.dot_error_gamma, float.sum_trees.flushed_tree_error, float.tier_run.one_step
