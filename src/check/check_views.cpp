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
#include "deltaproof/files/text_hash.hpp"
#include "support/json_number.hpp"
#include "support/printable.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

using check_detail::closest;
using check_detail::first_bad_of;
using check_detail::judged_without_faults;
using check_detail::no_limits_on_faults;

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
  j["coverage"] = {{"elements", c.elements},
                   {"out_of_range", c.out_of_range},
                   {"overflowed", c.overflowed},
                   {"overflowed_sums", c.overflowed_sums},
                   {"blind", c.blind},
                   {"zero", c.zero},
                   {"share_not_judged", c.share_not_judged()}};
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
    "The bound is derived in src/stages. Machine-checked: the error of each sum that adds two numbers at a time, rounded to "
    "nearest, in any order, underflow included (float.sum_trees.dot_error_gamma; where results are flushed to 0, "
    "float.sum_trees.flushed_tree_error). Proved on paper: how the errors of these sums add up to the bound. Covered by neither: "
    "sums of whole blocks of terms at once, as tensor cores form them.";

// Text from files goes on one line: a control character could fake a line of ours.
std::string tier_text(const check_report& report) {
  std::string text;
  for (const auto& [name, heads] : report.tiers) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// What stands behind the radii, by tier. A head counts for the last tier that a row of it needed: rows before that were of fp64.
/// Tiers are those of outputs; gradients have lines of their own.
std::string radius_because(const check_report& report) {
  const auto any = [&](std::string_view name) {
    return std::any_of(report.tiers.begin(), report.tiers.end(), [&](const auto& tier) { return tier.first.starts_with(name); });
  };
  std::string text = "Proved on paper: proofs/notes/oracle-radius.md.";
  if (any("fp64") || any("double-double") || any("fixed") || any("exact")) {
    text +=
        " Machine-checked for tier fp64, with underflow: the error of steps, decays and read-outs, where columns of the (K, V) "
        "state are run in SIMD lanes (float.tier_run.tier_output_radius). Not machine-checked: the inputs, norms and factors as "
        "this tier rounds them; terms that are exact and add no error; the arithmetic of the radius itself; heads that may leave "
        "the range of their formats, which are run entry by entry.";
  }
  if (any("mpfr"))
    text +=
        " Machine-checked for tier mpfr: the error of o, if every step has a decay and nothing underflows "
        "(float.oracle_radius.output_radius). Not machine-checked: steps without a decay; underflow.";
  const bool gradients = std::any_of(report.tensors.begin(), report.tensors.end(), [](const tensor_report& t) {
    return std::find(gradient_names.begin(), gradient_names.end(), t.name) != gradient_names.end();
  });
  if (gradients)
    text +=
        " Machine-checked for gradients: their formulas are the derivative of the recurrence (algebra.adjoint.run_transposed), "
        "through the update rule (algebra.gradient_chain.rule_run_transposed) and the l2norm "
        "(algebra.gradient_chain.norm_transposed); the radius of the cotangents of the state, if the bounds that it uses on the "
        "norms of vectors and of the transitions I - b k k^T are right (float.cotangent_run.cotangent_radius). Of the proof of "
        "the radius of the gradients, which are made of these cotangents and the states, only some lines are machine-checked; "
        "the "
        "rest is on paper.";
  return text;
}

json largest_radius(const check_report& report) {
  double largest = 0;
  for (const tensor_report& t : report.tensors) largest = std::max(largest, t.errors.radius);
  return detail::json_number(largest);
}

json threshold_json(const threshold& t) {
  return {{"limit", detail::json_number(t.value)},
          {"typical", detail::json_number(t.typical)},
          {"spread", detail::json_number(t.spread)},
          {"degrees", t.degrees},
          {"alpha", t.alpha},
          {"provenance", t.provenance}};
}

json statistic_json(const judged_statistic& s) {
  json j{{"sequence", s.sequence},
         {"head", s.head},
         {"first_token", s.first_token},
         {"last_token", s.last_token},
         {"norm", name_of(s.norm)},
         {"got", detail::json_number(s.got)},
         {"truth", detail::json_number(s.truth)},
         {"verdict", name_of(s.judged)}};
  if (s.worst) {
    j["tile"] = {{"first_row", s.worst->first_row},
                 {"last_row", s.worst->last_row},
                 {"first_column", s.worst->first_column},
                 {"last_column", s.worst->last_column}};
  }
  j.update(threshold_json(s.limit));
  return j;
}

/// Below 0 where there is no budget to be close to.
json place_json(const std::optional<stage_place>& at) {
  if (!at) return nullptr;
  return {{"batch", at->batch},
          {"sequence", at->sequence},
          {"head", at->head},
          {"chunk", at->chunk},
          {"row", at->row},
          {"element", at->element},
          {"got", detail::json_number(at->got)},
          {"want", detail::json_number(at->want)},
          {"bound", detail::json_number(at->bound)},
          {"ratio", detail::json_number(at->ratio)}};
}

/// What the budgets of the plan say of each tensor: the bucket closest to its limit, in each norm.
void budgets_json(const plan_report& plan, json& tensors) {
  for (json& t : tensors) {
    const std::string name = t["name"];
    json budget = t["budget"].is_null() ? json::object() : t["budget"],
         provenance = t["provenance"].is_null() ? json::object() : t["provenance"];
    for (const norm_kind norm : {norm_kind::rms, norm_kind::max, norm_kind::changes, norm_kind::tiles}) {
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
    json j{{"name", s.name},
           {"because", stage_because},
           {"dtype", m.dtype},
           {"verdict", name_of(s.judged)},
           {"rounding", m.rounding},
           {"elements", m.judged},
           {"skipped", m.skipped},
           {"unbounded", m.unbounded},
           {"nonfinite", m.nonfinite},
           {"bad", m.bad},
           {"worst", place_json(m.worst)},
           {"first_bad", place_json(m.first_bad)},
           {"rms_ratio", detail::json_number(s.rms_ratio)},
           {"bias", detail::json_number(s.bias)},
           {"exactly_bf16", m.exactly_bf16}};
    j["budget"] = s.rms_limit ? json(threshold_json(*s.rms_limit)) : json(nullptr);
    j["bias_interval"] =
        s.bias_limit ? json{detail::json_number(s.bias_limit->lower), detail::json_number(s.bias_limit->upper)} : json(nullptr);
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

void conformance_json(const check_report& report, json& j) {
  if (!report.conformance) {
    for (const char* key : {"plan", "conforms", "adequate", "first_bad_stage", "first_bad_is", "diagnosis", "power"})
      j[key] = nullptr;
    j["stages_missing"] = json::array();
    j["stages"] = j["stages_without_bounds"] = json::array();
    return;
  }
  const plan_report& plan = *report.conformance;
  budgets_json(plan, j["tensors"]);
  j["plan"] = {{"name", plan.plan}, {"variants", plan.variants}, {"other_plans", report.other_plans}};
  j["conforms"] = plan.conforms == verdict::refuted ? json(false) : plan.conforms == verdict::holds ? json(true) : json(nullptr);
  j["conforms_reason"] = plan.reason;
  json violations = json::array(), warnings = json::array();
  for (const range_report& r : plan.adequacy.ranges) {
    json one{{"what", r.what},
             {"reaches", detail::json_number(r.reaches)},
             {"limit", detail::json_number(r.limit)},
             {"format", r.format},
             {"known", r.known},
             {"says", r.says}};
    (r.violated ? violations : warnings).push_back(std::move(one));
  }
  const auto& a = plan.adequacy;
  j["adequate"] = {{"adequate", a.judged ? json(a.adequate) : json(nullptr)},
                   {"accuracy", a.accuracy ? json(*a.accuracy) : json(nullptr)},
                   {"error", detail::json_number(a.worst_error)},
                   {"ratio", detail::json_number(a.worst_ratio)},
                   {"ratio_tensor", a.worst_tensor},
                   {"until_token", a.until_token ? json(*a.until_token) : json(nullptr)},
                   {"range_violations", std::move(violations)},
                   {"range_warnings", std::move(warnings)},
                   {"reason", a.reason.empty() ? json(nullptr) : json(a.reason)}};
  j["stages"] = stages_json(plan);
  j["stages_without_bounds"] = json::array();
  for (const unjudged_stage& u : check_detail::stages_without_bounds(plan))
    j["stages_without_bounds"].push_back({{"name", u.name}, {"reason", u.reason}});
  const std::string first_bad = first_bad_of(plan);
  j["first_bad_stage"] = first_bad.empty() ? json(nullptr) : json(first_bad);
  j["first_bad_is"] = plan.first_bad_stage.empty() ? json(nullptr) : json(plan.first_bad_is_stage ? "stage" : "tensor");
  j["stages_missing"] = plan.stages_missing;
  j["diagnosis"] = json::array();
  for (const suspect& s : plan.suspects) {
    if (!s.is_alike()) continue;
    j["diagnosis"].push_back({{"fault", s.planted->name},
                              {"score", detail::json_number(s.score)},
                              {"share", detail::json_number(s.share)},
                              {"limit", detail::json_number(s.limit)},
                              {"tensor", s.tensor},
                              {"stage", s.planted->stage},
                              {"what", s.planted->what}});
  }
  j["power"] =
      plan.power.ran
          ? json{{"visible", names(plan.power.visible)}, {"invisible", names(plan.power.invisible)}, {"slice", plan.power.slice}}
          : json(nullptr);
  j["false_alarm"] = {{"family", plan.false_alarm},    {"tests", plan.tests}, {"runs", plan.runs},
                      {"whole_runs", plan.whole_runs}, {"heads", plan.slice}, {"argument", plan.argument}};
  if (plan.gradients.judged) {
    j["false_alarm"]["gradients"] = {
        {"tests", plan.gradients.tests}, {"runs", plan.gradients.runs}, {"heads", plan.gradients.slice}};
  }
}

/// The options, and beside the name of the judged plan its text.
void record_json(const check_record& record, json& j) {
  for (const plan_source& source : record.plans) {
    if (!j["plan"].is_object() || j["plan"]["name"] != source.name || j["plan"].contains("text")) continue;
    j["plan"]["sha256"] = sha256_hex(source.text);
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
    j["diverges_at"] = {{"sequence", d.first.sequence},       {"head", d.first.value_head}, {"token", d.token},
                        {"token_in_sequence", d.first.token}, {"count", d.heads},           {"elements_not_judged", d.skipped}};
  }
  j["gradients_diverge_at"] = json::array();
  for (const gradient_divergence& d : report.gradients_diverge) {
    j["gradients_diverge_at"].push_back({{"sequence", d.sequence},
                                         {"head", d.value_head},
                                         {"states_until", d.states_until},
                                         {"cotangents_from", d.cotangents_from}});
  }
  j["tensors"] = json::array();
  for (const tensor_report& t : report.tensors) j["tensors"].push_back(tensor_json(t));
  j["preconditions"] = json::array();
  for (const precondition& p : report.preconditions) {
    j["preconditions"].push_back({{"name", p.name},
                                  {"level", name_of(p.level)},
                                  {"says", p.says},
                                  {"least", detail::json_number(p.least)},
                                  {"largest", detail::json_number(p.largest)},
                                  {"count", p.count},
                                  {"rows", p.rows},
                                  {"first", row_json(p.first)},
                                  {"worst_at", row_json(p.worst_at)}});
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
  j["oracle"] = {{"tiers", report.tiers},
                 {"tier", tier_text(report)},
                 {"radius", largest_radius(report)},
                 {"because", radius_because(report)}};
  conformance_json(report, j);
  j["problem"] = {{"path", identity.problem_path}, {"sha256", identity.problem_sha256}};
  j["result"] = {{"path", identity.result_path},
                 {"sha256", identity.result_sha256},
                 {"kernel", identity.kernel},
                 {"producer", identity.producer},
                 {"kernel_path", identity.path}};
  if (identity.record) record_json(*identity.record, j);
  j["unread"] = json::array();
  j["notes"] = identity.notes;
  for (const unread_entries& x : report.unread) {
    j["unread"].push_back({{"stage", x.stage},
                           {"elements", x.elements},
                           {"nonzero", x.nonzero},
                           {"nonfinite", x.nonfinite},
                           {"first", place_json(x.first)}});
    j["notes"].push_back(check_detail::describe(x));
  }
  if (judged_without_faults(report)) j["notes"].push_back(no_limits_on_faults);
  j["version"] = identity.version;
  j["reproduce"] = identity.reproduce;
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.adjoint.run_transposed, algebra.gradient_chain.rule_step_moves, algebra.gradient_chain.norm_transposed,
// proved: float.sum_trees.dot_error_gamma, float.sum_trees.flushed_tree_error, float.tier_run.one_step,
// proved: float.cotangent_run.exact_before_transition
