// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <nlohmann/json.hpp>

#include "deltaproof/kernel/check.hpp"
#include "kernel/json_number.hpp"
#include "number/text.hpp"

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
  j["rel_fro"] = metric_json(m.rel_fro.value);
  j["ulps"] = metric_json(m.ulps.value);
  j["worst_row"] = metric_json(m.worst_row.value);
  j["radius"] = detail::json_number(m.radius);
  j["worst"] = location_json(t.worst);
  j["first_nonfinite"] = location_json(t.first_nonfinite);
  j["nonfinite"] = m.nonfinite;
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

/// Text from files, on one line: a control character could fake a line of ours.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

std::string where_text(const element_location& at) {
  std::string text = "seq " + std::to_string(at.sequence) + " head " + std::to_string(at.head);
  text += at.token ? " token " + std::to_string(*at.token) : "";
  text += at.element.size() == 1 ? " v " + std::to_string(at.element[0])
                                 : " k " + std::to_string(at.element[0]) + " v " + std::to_string(at.element[1]);
  return text;
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
    const bool measured = o.elements > o.unknown;
    known["fla_ratio"] = measured ? detail::json_number(o.fla_ratio.value) : json(nullptr);
    known["nmse"] = measured ? detail::json_number(o.nmse) : json(nullptr);
    known["allclose_violations"] = measured ? json(o.allclose_violations) : json(nullptr);
  }
  const auto optional_number = [](const std::optional<double>& x) { return x ? detail::json_number(*x) : json(nullptr); };
  known["flash_attention_factor"] = optional_number(report.flash_attention_factor);
  known["attention_gym_factor"] = optional_number(report.attention_gym_factor);
  j["known_metrics"] = std::move(known);
  j["oracle"] = {{"tiers", report.tiers}};
  j["problem"] = {{"path", identity.problem_path}, {"sha256", identity.problem_sha256}};
  j["result"] = {{"path", identity.result_path}, {"sha256", identity.result_sha256}, {"kernel", identity.kernel},
                 {"producer", identity.producer}, {"kernel_path", identity.path}};
  j["plan"] = nullptr;
  j["notes"] = identity.notes;
  j["version"] = identity.version;
  j["reproduce"] = identity.reproduce;
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string to_text(const check_report& report, const check_identity& identity) {
  std::string out;
  const auto line = [&](const std::string& label, const std::string& text) { out += detail::padded(label, 13) + one_line(text) + "\n"; };
  line("verdict", std::string(name_of(report.judged)) + ": " + report.reason);
  if (!report.remedy.empty()) line("remedy", report.remedy);
  line("kernel", (identity.kernel.empty() ? "not stated" : identity.kernel) + (identity.path.empty() ? "" : " (" + identity.path + ")"));
  if (report.diverges) {
    const auto& d = *report.diverges;
    line("diverges", "the exact recurrence leaves its formats' range at token " + std::to_string(d.token) + " (sequence " +
                         std::to_string(d.first.sequence) + ", head " + std::to_string(d.first.value_head) + "), in " +
                         std::to_string(d.heads) + (d.heads == 1 ? " head; " : " heads; ") + std::to_string(d.skipped) + " outputs from there on are not judged");
  }
  out += detail::padded("", 13) + detail::padded("max_abs", 11) + detail::padded("rel_fro", 11) + detail::padded("ulps", 11) + detail::padded("radius", 11) + "worst at\n";
  for (const tensor_report& t : report.tensors) {
    const measurement& m = t.errors;
    if (m.elements == m.unknown) {
      line(t.name, "not judged: " + std::to_string(m.skipped) + " elements skipped, " + std::to_string(m.unknown) + " not enclosed");
      continue;
    }
    out += detail::padded(t.name, 13) + detail::padded(detail::scientific(m.max_abs.value), 11) + detail::padded(detail::scientific(m.rel_fro.value), 11) +
           detail::padded(detail::scientific(m.ulps.value), 11) + detail::padded(detail::scientific(m.radius), 11) + (t.worst ? where_text(*t.worst) : "-") + "\n";
    if (t.first_nonfinite) {
      line("", std::to_string(m.nonfinite) + " non-finite, the first at " + where_text(*t.first_nonfinite));
    }
  }
  if (!report.tensors.empty() && report.tensors.front().errors.elements > report.tensors.front().errors.unknown) {
    const measurement& o = report.tensors.front().errors;
    std::string text = "fla ratio " + detail::scientific(o.fla_ratio.value) + ", nmse " + detail::scientific(o.nmse) + ", allclose violations " +
                       std::to_string(o.allclose_violations) + " of " + std::to_string(o.elements);
    if (report.flash_attention_factor) text += ", FlashAttention factor " + detail::scientific(*report.flash_attention_factor);
    line("known (o)", text);
  }
  for (const precondition& p : report.preconditions) {
    if (p.level == remark::fine) continue;
    line(std::string(name_of(p.level)), p.says + (p.first ? ", the first at sequence " + std::to_string(p.first->sequence) + ", head " + std::to_string(p.first->head) +
                                                      ", its token " + std::to_string(p.first->token)
                                                : ""));
  }
  std::string tiers;
  for (const auto& [name, heads] : report.tiers) tiers += (tiers.empty() ? "" : ", ") + name + " for " + std::to_string(heads) + (heads == 1 ? " head" : " heads");
  if (!tiers.empty()) line("reference", tiers);
  for (const std::string& note : identity.notes) line("note", note);
  line("again", identity.reproduce);
  return out;
}

}  // namespace deltaproof
