// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

// Refusals say where in the text: "(/findings/0/id) type must be string, but is number".
#define JSON_DIAGNOSTICS 1

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "deltaproof/study/report.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/read_file.hpp"

// A column cannot be made of nothing.
template <>
struct nlohmann::adl_serializer<deltaproof::column> {
  static void to_json(json& j, const deltaproof::column& c) { j = {{"name", c.name}, {"digits", c.digits}}; }
  static deltaproof::column from_json(const json& j) { return {j.at("name").get<std::string>(), j.at("digits").get<int>()}; }
};

namespace deltaproof {

using nlohmann::json;

// What the library calls for each type.

void to_json(json& j, const cell& c) {
  std::visit(
      [&](const auto& v) {
        j = v;
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, double>) {
          if (!std::isfinite(v)) j = number(v);
        }
      },
      c.value());
}

void from_json(const json& j, cell& c) {
  if (j.is_boolean()) {
    c = j.get<bool>();
  } else if (j.is_number_unsigned()) {
    c = j.get<std::uint64_t>();
  } else if (j.is_number_integer()) {
    c = j.get<std::int64_t>();
  } else if (j.is_number()) {
    c = j.get<double>();
  } else {
    const auto text = j.get<std::string>();
    c = text == "nan" ? cell(std::nan("")) : text == "inf" ? cell(HUGE_VAL) : text == "-inf" ? cell(-HUGE_VAL) : cell(text);
  }
}

void to_json(json& j, const evidence& e) {
  j = {{"kind", name_of(e.kind)}};
  if (e.n > 0) j["n"] = e.n;
  if (e.kind == evidence_kind::worst_found || e.kind == evidence_kind::sampled) j["seed"] = e.seed;
  if (!e.spread.empty()) j["spread"] = e.spread;
  if (!e.theorem.empty()) j["theorem"] = e.theorem;
}

void from_json(const json& j, evidence& e) {
  using enum evidence_kind;
  const auto& kind = j.at("kind").get_ref<const std::string&>();
  constexpr std::array kinds{proved, exhaustive, worst_found, sampled, certified, measured};
  const auto* const known = std::find_if(kinds.begin(), kinds.end(), [&](evidence_kind k) { return kind == name_of(k); });
  if (known == kinds.end()) throw format_error("report JSON: a finding has the unknown kind \"" + kind + "\"");
  e = {*known, j.value("n", std::uint64_t{0}), j.value("seed", std::uint64_t{0}), j.value("spread", std::string()),
       j.value("theorem", std::string())};
}

void to_json(json& j, const finding& f) {
  j = {{"id", f.id},         {"statement", f.statement}, {"evidence", f.kind},
       {"values", f.values}, {"because", f.because},     {"replay", f.replay}};
}

void from_json(const json& j, finding& f) {
  f = {j.at("id"), j.at("statement"), j.at("evidence"), j.at("values"), j.at("because"), j.value("replay", std::string())};
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(table, id, title, columns, rows, note)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(figure, id, title, caption, alt)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(report, study, question, answer, method, findings, tables, figures, not_claimed, unfinished,
                                   parameters, command)

namespace {

constexpr std::string_view schema = "deltaproof.report/1";

std::string dumped(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

// Indented, but an array or object without inner ones on one line: a table's row is a line of the file.
void print(const json& j, std::string& out, std::size_t indent) {
  const bool nested =
      j.is_structured() && std::any_of(j.begin(), j.end(), [](const json& v) { return v.is_structured() && !v.empty(); });
  const bool lines = nested || (j.is_object() && j.size() > 4) ||
                     (j.is_array() && !j.empty() && dumped(j).size() > 160 && j.begin()->is_string());
  if (!lines && (!j.is_structured() || j.empty())) {
    out += dumped(j);
    return;
  }
  const std::string separator = lines ? ",\n" + std::string(indent + 2, ' ') : ", ";
  out += j.is_object() ? "{" : "[";
  if (lines) out += "\n" + std::string(indent + 2, ' ');
  bool first = true;
  for (const auto& item : j.items()) {
    if (!first) out += separator;
    first = false;
    if (j.is_object()) out += dumped(item.key()) + ": ";
    print(item.value(), out, indent + 2);
  }
  if (lines) out += "\n" + std::string(indent, ' ');
  out += j.is_object() ? "}" : "]";
}

}  // namespace

std::string to_json(const report& r) {
  json all = r;
  all["schema"] = schema;
  for (json& f : all["figures"]) f["file"] = r.study + "-" + f["id"].get<std::string>() + ".svg";
  for (json& f : all["findings"]) {
    if (f["replay"] == "") f["replay"] = r.command;
    if (f["replay"] == "") f.erase("replay");
  }
  if (!r.failed.empty()) all["failed"] = r.failed;
  std::string out;
  print(all, out, 0);
  return out + "\n";
}

report report_from_json(std::string_view text) {
  detail::require_shallow_json(text, "report JSON");
  try {
    const json all = json::parse(text);
    if (const std::string found = all.at("schema"); found != schema) {
      throw format_error("report JSON: schema \"" + found + "\"; this program reads \"" + std::string(schema) + "\"");
    }
    report r = all;
    r.failed = all.value("failed", std::vector<std::string>());
    for (finding& f : r.findings) {
      if (f.replay == r.command) f.replay.clear();
    }
    validate(r);
    return r;
  } catch (const json::exception& e) {
    throw format_error("report JSON: " + std::string(e.what()));
  } catch (const domain_error& e) {
    throw format_error("report JSON: " + std::string(e.what()));
  }
}

}  // namespace deltaproof
