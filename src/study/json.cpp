// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "deltaproof/kernel/read_file.hpp"
#include "deltaproof/number/errors.hpp"
#include "deltaproof/study/report.hpp"

namespace deltaproof {
namespace {

using nlohmann::json;
constexpr std::string_view schema = "deltaproof.report/1";

json to_value(const cell& c) {
  return std::visit(
      [](const auto& v) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, double>) {
          if (!std::isfinite(v)) return number(v);
        }
        return v;
      },
      c.value());
}

json to_value(const std::map<std::string, cell>& cells) {
  json result = json::object();
  for (const auto& [name, c] : cells) result[name] = to_value(c);
  return result;
}

cell cell_from(const json& j, const std::string& where) {
  switch (j.type()) {
    case json::value_t::boolean:
      return j.get<bool>();
    case json::value_t::number_unsigned:
      return j.get<std::uint64_t>();
    case json::value_t::number_integer:
      return j.get<std::int64_t>();
    case json::value_t::number_float:
      return j.get<double>();
    case json::value_t::string: {
      const auto& text = j.get_ref<const std::string&>();
      if (text == "nan") return std::nan("");
      if (text == "inf") return HUGE_VAL;
      if (text == "-inf") return -HUGE_VAL;
      return text;
    }
    default:
      throw format_error("report JSON: " + where + " is " + j.type_name() + "; it must be a number, a text or a truth value");
  }
}

json evidence_value(const evidence& e) {
  json result{{"kind", name_of(e.kind)}};
  if (e.n > 0) result["n"] = e.n;
  if (e.kind == evidence_kind::worst_found || e.kind == evidence_kind::sampled) result["seed"] = e.seed;
  if (!e.spread.empty()) result["spread"] = e.spread;
  if (!e.theorem.empty()) result["theorem"] = e.theorem;
  return result;
}

std::string dumped(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

// Indented, but an array or object without inner ones on one line: a table's row is a line of the file.
void print(const json& j, std::string& out, std::size_t indent) {
  const bool nested =
      j.is_structured() && std::any_of(j.begin(), j.end(), [](const json& v) { return v.is_structured() && !v.empty(); });
  const bool lines = nested || (j.is_object() && j.size() > 4) ||
                     (j.is_array() && !j.empty() && dumped(j).size() > 160 && j.begin()->is_string());
  if (!lines) {
    if (!j.is_structured() || j.empty()) {
      out += dumped(j);
      return;
    }
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

const json& at(const json& j, const char* key, json::value_t type, const std::string& where) {
  const auto found = j.find(key);
  if (found == j.end()) throw format_error("report JSON: " + where + " has no \"" + key + "\"");
  if (found->type() != type) {
    throw format_error("report JSON: \"" + std::string(key) + "\" of " + where + " is " + found->type_name() + "; it must be " +
                       json(type).type_name());
  }
  return *found;
}

std::string text_at(const json& j, const char* key, const std::string& where) {
  return at(j, key, json::value_t::string, where).get<std::string>();
}

const json& array_at(const json& j, const char* key, const std::string& where) { return at(j, key, json::value_t::array, where); }

const json& object_in(const json& item, const std::string& where) {
  if (!item.is_object()) throw format_error("report JSON: " + where + " is " + item.type_name() + "; it must be an object");
  return item;
}

std::vector<std::string> texts_at(const json& j, const char* key, const std::string& where) {
  std::vector<std::string> result;
  for (const json& item : array_at(j, key, where)) {
    if (!item.is_string())
      throw format_error("report JSON: \"" + std::string(key) + "\" of " + where + " holds " + item.type_name() + "; texts only");
    result.push_back(item.get<std::string>());
  }
  return result;
}

std::map<std::string, cell> cells_at(const json& j, const char* key, const std::string& where) {
  std::map<std::string, cell> result;
  for (const auto& item : at(j, key, json::value_t::object, where).items())
    result[item.key()] = cell_from(item.value(), where + "." + item.key());
  return result;
}

evidence evidence_from(const json& j, const std::string& where) {
  evidence result{};
  const std::string kind = text_at(j, "kind", where);
  bool known = false;
  for (const evidence_kind k : {evidence_kind::proved, evidence_kind::exhaustive, evidence_kind::worst_found,
                                evidence_kind::sampled, evidence_kind::certified, evidence_kind::measured}) {
    if (kind == name_of(k)) {
      result.kind = k;
      known = true;
    }
  }
  if (!known) throw format_error("report JSON: " + where + " has the unknown kind \"" + kind + "\"");
  if (j.contains("n")) result.n = at(j, "n", json::value_t::number_unsigned, where).get<std::uint64_t>();
  if (j.contains("seed")) result.seed = at(j, "seed", json::value_t::number_unsigned, where).get<std::uint64_t>();
  if (j.contains("spread")) result.spread = text_at(j, "spread", where);
  if (j.contains("theorem")) result.theorem = text_at(j, "theorem", where);
  return result;
}

}  // namespace

std::string to_json(const report& r) {
  json findings = json::array();
  for (const finding& f : r.findings) {
    json item{{"id", f.id},
              {"statement", f.statement},
              {"evidence", evidence_value(f.kind)},
              {"values", to_value(f.values)},
              {"because", f.because}};
    if (const std::string& again = f.replay.empty() ? r.command : f.replay; !again.empty()) item["replay"] = again;
    findings.push_back(std::move(item));
  }
  json tables = json::array();
  for (const table& t : r.tables) {
    json columns = json::array();
    for (const column& c : t.columns) columns.push_back({{"name", c.name}, {"digits", c.digits}});
    json rows = json::array();
    for (const auto& row : t.rows) {
      json cells = json::array();
      for (const cell& c : row) cells.push_back(to_value(c));
      rows.push_back(std::move(cells));
    }
    tables.push_back({{"id", t.id}, {"title", t.title}, {"columns", columns}, {"rows", rows}, {"note", t.note}});
  }
  json figures = json::array();
  for (const figure& f : r.figures) {
    figures.push_back(
        {{"id", f.id}, {"title", f.title}, {"caption", f.caption}, {"alt", f.alt}, {"file", r.study + "-" + f.id + ".svg"}});
  }
  json all{{"schema", schema},
                 {"study", r.study},
                 {"question", r.question},
                 {"answer", r.answer},
                 {"method", r.method},
                 {"findings", findings},
                 {"tables", tables},
                 {"figures", figures},
                 {"not_claimed", r.not_claimed},
                 {"unfinished", r.unfinished},
                 {"parameters", to_value(r.parameters)},
                 {"command", r.command}};
  if (!r.failed.empty()) all["failed"] = r.failed;
  std::string out;
  print(all, out, 0);
  return out + "\n";
}

report report_from_json(std::string_view text) {
  detail::require_shallow_json(text, "report JSON");
  const json j = json::parse(text, nullptr, false);
  if (j.is_discarded()) throw format_error("report JSON: the text is not JSON");
  object_in(j, "the whole");
  const std::string top = "the report";
  if (const std::string found = text_at(j, "schema", top); found != schema) {
    throw format_error("report JSON: schema \"" + found + "\"; this program reads \"" + std::string(schema) + "\"");
  }
  report r;
  r.study = text_at(j, "study", top);
  r.question = text_at(j, "question", top);
  r.answer = text_at(j, "answer", top);
  r.method = text_at(j, "method", top);
  r.command = text_at(j, "command", top);
  for (const json& f : array_at(j, "findings", top)) {
    object_in(f, "a finding");
    const std::string where = "finding '" + text_at(f, "id", "a finding") + "'";
    r.findings.push_back({text_at(f, "id", where), text_at(f, "statement", where),
                          evidence_from(at(f, "evidence", json::value_t::object, where), where), cells_at(f, "values", where),
                          text_at(f, "because", where), f.contains("replay") ? text_at(f, "replay", where) : std::string()});
    if (r.findings.back().replay == r.command) r.findings.back().replay.clear();
  }
  for (const json& t : array_at(j, "tables", top)) {
    object_in(t, "a table");
    const std::string where = "table '" + text_at(t, "id", "a table") + "'";
    table result{text_at(t, "id", where), text_at(t, "title", where), {}, {}, text_at(t, "note", where)};
    for (const json& c : array_at(t, "columns", where)) {
      object_in(c, "a column of " + where);
      result.columns.emplace_back(text_at(c, "name", where), at(c, "digits", json::value_t::number_unsigned, where).get<int>());
    }
    for (const json& row : array_at(t, "rows", where)) {
      if (!row.is_array())
        throw format_error("report JSON: a row of " + where + " is " + row.type_name() + "; it must be an array");
      std::vector<cell> cells;
      for (const json& c : row) cells.push_back(cell_from(c, "a cell of " + where));
      result.rows.push_back(std::move(cells));
    }
    r.tables.push_back(std::move(result));
  }
  for (const json& f : array_at(j, "figures", top)) {
    object_in(f, "a figure");
    figure result;
    result.id = text_at(f, "id", "a figure");
    result.title = text_at(f, "title", "figure '" + result.id + "'");
    result.caption = text_at(f, "caption", "figure '" + result.id + "'");
    result.alt = text_at(f, "alt", "figure '" + result.id + "'");
    r.figures.push_back(std::move(result));
  }
  r.not_claimed = texts_at(j, "not_claimed", top);
  r.unfinished = texts_at(j, "unfinished", top);
  if (j.contains("failed")) r.failed = texts_at(j, "failed", top);
  r.parameters = cells_at(j, "parameters", top);
  try {
    validate(r);
  } catch (const domain_error& e) {
    throw format_error("report JSON: " + std::string(e.what()));
  }
  return r;
}

}  // namespace deltaproof
