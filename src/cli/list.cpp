// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/completion.hpp"
#include "cli/program.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/check/invariant.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/format.hpp"
#include "deltaproof/oracle/measure.hpp"
#include "deltaproof/oracle/problem.hpp"
#include "deltaproof/plan/plan.hpp"
#include "deltaproof/rule/rules.hpp"
#include "support/nearest_name.hpp"
#include "support/text.hpp"
#ifndef DELTAPROOF_WITHOUT_STUDIES
#include "deltaproof/study/claim.hpp"
#include "deltaproof/study/study.hpp"
#endif

namespace deltaproof::cli {
namespace {

using json = nlohmann::ordered_json;

/// One entry of an axis: what `list` prints and `explain` looks up.
struct entry {
  std::string name;
  std::string line;  ///< one sentence
  std::vector<std::pair<std::string, std::string>> facts = {};
  std::string toml = {};         ///< what `explain` prints to be copied
  json fields = json::object();  ///< of JSON alone
  std::string mark = {};         ///< of the list alone: "[holds] "
};

std::vector<entry> list_ops() {
  std::vector<entry> out;
  for (const op_row& row : op_table) {
    out.push_back({std::string(row.name),
                   std::string(row.what),
                   {{"g", row.gates == gate_axes::none ? "none" : std::string(gate_shape(row.kind))},
                    {"steps per token", std::to_string(row.usual_steps) +
                                            " in problems that gen makes, unless --num-householder says otherwise; "
                                            "1 in a problem file without num_householder"}}});
  }
  return out;
}

std::vector<entry> list_rules() {
  std::vector<entry> out;
  for_each_rule([&](auto rule) {
    using Rule = decltype(rule);
    const std::string order = Rule::order == exact_order ? "no error" : "order of accuracy " + std::to_string(Rule::order);
    out.push_back({std::string(Rule::name),
                   order + "; |R(x)| <= 1 for " +
                       (std::isinf(Rule::limit) ? "every x >= 0" : "0 <= x <= " + detail::general(Rule::limit, 10)),
                   {{"R(1)", detail::general(Rule::stability(1.0), 10)},
                    {"phi(1)", detail::general(Rule::gain(1.0), 10)},
                    {"stability limit", std::isinf(Rule::limit) ? "none" : detail::general(Rule::limit, 10)}}});
  });
  return out;
}

std::vector<entry> list_formats() {
  std::vector<entry> out;
  for (const named_format& row : formats) {
    const format& f = row.value;
    out.push_back({std::string(row.name),
                   std::to_string(f.precision) + " significant bits, largest " + detail::general(largest(f), 10) + ", u = 2^-" +
                       std::to_string(f.precision) + " (rounded to nearest)",
                   {{"smallest normal", detail::general(smallest_normal(f), 10)},
                    {"smallest subnormal", detail::general(smallest_subnormal(f), 10)},
                    {"infinities", f.has_infinity ? "yes" : "no"},
                    {"safetensors dtype", row.dtype.empty() ? "none" : std::string(row.dtype)}}});
  }
  return out;
}

std::vector<entry> list_inverses() {
  std::vector<entry> out;
  for (const named_inverse& row : inverse_methods) {
    const inverse_method& m = row.method;
    const std::string block = m.diagonal == diagonal_kind::split ? "1"
                              : m.block == 0                     ? "the whole chunk"
                                                                 : std::to_string(m.block);
    out.push_back(
        {std::string(row.name),
         std::string(row.what),
         {{"rows of a diagonal block", block},
          {"intermediates", std::string(row_of(m.diagonal).forms)},
          {"formats",
           std::string("set by options of deltaproof inverse: --format (operands), ") +
               (m.block > 0 ? "--merge-format (operands of the products that merge diagonal blocks; fla: tf32), " : "") +
               "--accumulate (sums), --store (the inverse)"},
          {"try it", "deltaproof inverse --keys cos=0.9 --beta 1 --chunk 64 --format fp16 --method " + std::string(row.name)}}});
  }
  return out;
}

template <class T>
std::string joined(const std::vector<T>& all, const std::string& none = "any") {
  std::string text;
  for (const T& one : all) {
    if (!text.empty()) text += ", ";
    if constexpr (std::is_same_v<T, std::string>) {
      text += one;
    } else if constexpr (std::is_integral_v<T>) {
      text += std::to_string(one);
    } else {
      text += name_of(one);
    }
  }
  return text.empty() ? none : text;
}

std::vector<entry> list_plans() {
  std::vector<entry> out;
  for (const plan& p : plans()) {
    const bool chunked = std::find(p.path.begin(), p.path.end(), path_kind::chunk) != p.path.end();
    out.push_back({p.name,
                   p.what,
                   {{"kernels", joined(p.kernels, "none")},
                    {"ops", joined(p.ops)},
                    {"path", joined(p.path)},
                    {"dtypes", joined(p.dtypes)},
                    {"chunk", chunked ? joined(p.chunk) : "none"},
                    {"source", p.source}},
                   std::string(plan_text(p.name))});
  }
  return out;
}

constexpr const char* backward_needs = "a plan with [backward]; do or dfinal_state";

std::vector<entry> list_faults() {
  std::vector<entry> out;
  for (const fault& f : fault_catalogue()) {
    const bool backward = f.pass == pass_kind::backward;
    std::vector<std::string> needs;
    if (backward) needs.emplace_back(backward_needs);
    for (const fault_need& n : f.needs) needs.emplace_back(n.what);
    out.push_back({std::string(f.name),
                   std::string(f.what),
                   {{"pass", backward ? "backward" : "forward"},
                    {"first wrong", std::string(f.stage)},
                    {"acts", joined(f.acts)},
                    {"changes", joined(std::vector<std::string>(f.tensors.begin(), f.tensors.end()))},
                    {"paths", f.chunk && f.recurrent ? "chunk, recurrent"
                              : f.chunk              ? "chunk"
                                                     : "recurrent"},
                    {"needs", joined(needs, "nothing")},
                    {"plant it", std::string("deltaproof emulate PROBLEM --plan PLAN ") + (backward ? "--gradients " : "") +
                                     "--fault " + std::string(f.name) + " -o RESULT"}}});
  }
  return out;
}

std::vector<entry> list_regimes() {
  std::vector<entry> out;
  for (const regime_info& r : regimes()) out.push_back({std::string(r.name), std::string(r.what), {{"why", std::string(r.why)}}});
  return out;
}

std::vector<entry> list_laws(std::span<const law_info> laws) {
  std::vector<entry> out;
  for (const law_info& law : laws) out.push_back({std::string(law.name), std::string(law.meaning)});
  return out;
}

std::vector<entry> list_law_parameters() {
  std::vector<entry> out;
  for (const law_parameter& p : law_parameters()) {
    out.push_back(
        {std::string(p.name),
         std::string(p.meaning),
         {{"usual", detail::shortest(p.usual)}, {"least", detail::shortest(p.least)}, {"most", detail::shortest(p.most)}}});
  }
  return out;
}

#ifndef DELTAPROOF_WITHOUT_STUDIES
std::vector<entry> list_studies() {
  std::vector<entry> out;
  for (const study* s : studies()) out.push_back({std::string(s->name), question_of(*s)});
  return out;
}

json evidence_json(const claim& c) {
  json all = json::array();
  for (const claim_evidence& e : c.evidence) {
    json one{{"kind", name_of(e.kind)}, {"title", title_of(e)}, {"because", e.because}, {"bands", json::array()}};
    if (!e.name.empty()) one["name"] = e.name;
    if (!e.study.empty()) one["study"] = e.study;
    for (const claim_band& b : e.bands) one["bands"].push_back(text_of(b));
    all.push_back(std::move(one));
  }
  if (all.empty()) all.push_back({{"kind", "none"}, {"because", c.conditions}});
  return all;
}

std::vector<entry> list_claims() {
  std::vector<entry> out;
  for (const claim& c : claims()) {
    entry row{std::string(c.id),
              std::string(c.statement),
              {{"source", sources_of(c)},
               {"sentences", sentences_of(c)},
               {"kind", std::string(name_of(c.kind))},
               {"verdict", std::string(name_of(c.verdict))},
               {"conditions", std::string(c.conditions)}}};
    row.fields = {{"id", c.id}, {"evidence", evidence_json(c)}};
    row.mark = "[" + std::string(name_of(c.verdict)) + "] ";
    if (!c.evidence.empty()) row.fields["test"] = test_of(c);
    row.facts.emplace_back("page", "reports/claims-" + c.subject + ".md#" + c.id);
    for (const claim_document& d : claim_documents()) {
      if (std::any_of(c.sentences.begin(), c.sentences.end(), [&](const sentence_range& s) { return s.document == d.id; }))
        row.fields["files"].push_back(d.file);
    }
    out.push_back(std::move(row));
  }
  return out;
}

/// What `explain` adds to a claim: its evidence, each value beside the band that it lies in. Statements of theorems are those
/// that the row quotes; findings are read where a folder `reports` is at hand.
std::vector<std::pair<std::string, std::string>> claim_evidence_facts(const claim& c) {
  static const claim_sources here = files_of_claims("reports", "proofs/audit/statements");
  std::vector<std::pair<std::string, std::string>> facts;
  for (const claim_evidence& e : c.evidence) {
    facts.emplace_back("evidence", title_of(e) + " (" + e.because + ")");
    if (e.kind == claim_evidence_kind::theorem) {
      facts.emplace_back("  concludes", e.bands.front().equals->text());
      continue;
    }
    const auto values = evaluate(e, here);
    if (!values)
      facts.emplace_back("  values", "not read: reports/" + e.study +
                                         ".json does not exist in this folder; write it with deltaproof study " + e.study +
                                         " -o reports");
    for (const claim_band& b : e.bands) {
      std::string value = values ? values->at(b.value).text(8) : "not evaluated";
      if (values && !b.minus.empty()) value = "(" + value + " − " + values->at(b.minus).text(8) + ")";
      if (values && !b.over.empty()) value += " / " + values->at(b.over).text(8);
      if (values) value = "found " + value + (holds(b, *values) ? ", as the verdict requires" : ", NOT as the verdict requires");
      facts.emplace_back("  " + text_of(b), value);
    }
  }
  if (!c.evidence.empty()) facts.emplace_back("test", test_of(c));
  return facts;
}
#endif

std::vector<entry> list_metrics() {
  std::vector<entry> out;
  for (const named_metric& row : metrics) out.push_back({std::string(row.name), std::string(row.what)});
  return out;
}

/// Every axis that can be listed.
struct axis {
  std::string_view name;
  std::vector<entry> (*entries)();
};
constexpr axis axes[] = {
    {"ops", list_ops},
    {"rules", list_rules},
    {"formats", list_formats},
    {"inverses", list_inverses},
    {"plans", list_plans},
    {"faults", list_faults},
    {"regimes", list_regimes},
    {"beta-laws", [] { return list_laws(beta_laws()); }},
    {"gate-laws", [] { return list_laws(gate_laws()); }},
    {"initial-state-laws", [] { return list_laws(initial_state_laws()); }},
    {"law-parameters", list_law_parameters},
    {"metrics", list_metrics},
#ifndef DELTAPROOF_WITHOUT_STUDIES
    {"studies", list_studies},
    {"claims", list_claims},
#endif
};

std::string axis_names() {
  std::string names;
  for (const axis& a : axes) names += (names.empty() ? "" : ", ") + std::string(a.name);
  return names;
}

int run_list(const std::string& wanted, const common_options& common) {
  for (const axis& a : axes) {
    if (a.name != wanted) continue;
    json j{{"schema", "deltaproof.list/1"}, {std::string(a.name), json::array()}};
    std::string text;
    const auto entries = a.entries();
    std::size_t width = 0;
    for (const entry& e : entries) width = std::max(width, e.name.size());
    for (const entry& e : entries) {
      json item{{"name", e.name}, {"statement", e.line}};
      for (const auto& [name, value] : e.facts) item[name] = value;
      item.update(e.fields);
      j[std::string(a.name)].push_back(std::move(item));
      text += e.name + std::string(width + 2 - e.name.size(), ' ') + e.mark + e.line + "\n";
    }
    publish(common, {"list", text, j.dump(2) + "\n"});
    return 0;
  }
#ifdef DELTAPROOF_WITHOUT_STUDIES
  if (wanted == "studies" || wanted == "claims") throw format_error("list: " + wanted + " are " + std::string(without_studies));
#endif
  std::vector<std::string_view> known;
  for (const axis& a : axes) known.push_back(a.name);
  throw format_error("list: there is no axis '" + wanted + "'" + detail::suggestion(wanted, known));
}

/// Each line behind "# ": what stands before a file to be copied is not part of it.
std::string as_comment(const std::string& lines) {
  std::string text;
  for (std::size_t first = 0; first < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', first), lines.size());
    text += "# " + lines.substr(first, end - first) + "\n";
    first = end + 1;
  }
  return text;
}

int run_explain(const std::string& wanted, const common_options& common) {
  std::string text;
  std::string toml;
  json j{{"schema", "deltaproof.explanation/1"}, {"name", wanted}, {"entries", json::array()}};
  for (const axis& a : axes) {
    for (const entry& e : a.entries()) {
      if (e.name != wanted) continue;
      json item{{"axis", a.name}, {"statement", e.line}};
      if (!e.toml.empty()) item["toml"] = toml = e.toml;
      text += wanted + " (" + std::string(a.name) + "): " + e.line + "\n";
      for (const auto& [name, value] : e.facts) {
        text += "  " + name + ": " + value + "\n";
        item[name] = value;
      }
#ifndef DELTAPROOF_WITHOUT_STUDIES
      if (a.entries == list_claims) {
        for (const auto& [name, value] : claim_evidence_facts(claim_named(wanted))) text += "  " + name + ": " + value + "\n";
      }
#endif
      item.update(e.fields);
      j["entries"].push_back(std::move(item));
    }
  }
  if (!toml.empty()) text = as_comment(text) + toml;
  if (text.empty()) {
    const std::vector<std::string> names = names_of_type("ID");
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string near(detail::nearest_name(wanted, known));
    throw format_error("explain: nothing is named '" + wanted + "'; " +
                       (near.empty() ? "" : "did you mean \"" + near + "\"? Otherwise ") +
                       "find the name with deltaproof list AXIS, where AXIS is one of " + axis_names());
  }
  publish(common, {"explain", text, j.dump(2) + "\n", {}, {}, !toml.empty()});
  return 0;
}

/// "studies" -> "STUDY", as an option names the type of its value.
std::string type_of(std::string_view axis_name) {
  std::string one(axis_name);
  if (one.ends_with("ies"))
    one.replace(one.size() - 3, 3, "y");
  else
    one.pop_back();
  for (char& c : one) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return one;
}

}  // namespace

std::vector<std::string> names_of_type(const std::string& type) {
  std::vector<std::string> out;
  const auto add = [&out](const auto& table) {
    for (const auto& [value, name] : table) out.emplace_back(name);
  };
  if (type == "AXIS") {
    for (const axis& a : axes) out.emplace_back(a.name);
  }
  if (type == "SHELL") out.emplace_back("bash");
  if (type == "KIND") add(invariant_names);
  if (type == "PATH") add(path_names);
  for (const axis& a : axes) {
    if (type != "ID" && type != type_of(a.name)) continue;
    for (const entry& e : a.entries()) out.push_back(e.name);
  }
  return out;
}

verb add_list(CLI::App* command, common_options& common) {
  const auto name = std::make_shared<std::string>();
  command->add_option("AXIS", *name, axis_names())->required();
  return [name, &common] { return run_list(*name, common); };
}

verb add_explain(CLI::App* command, common_options& common) {
  const auto name = std::make_shared<std::string>();
  command->add_option("ID", *name, "A name printed by list")->required();
  return [name, &common] { return run_explain(*name, common); };
}

}  // namespace deltaproof::cli
