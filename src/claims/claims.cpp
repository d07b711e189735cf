// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "claims/parts.hpp"
#include "deltaproof/kernel/read_file.hpp"
#include "deltaproof/number/errors.hpp"
#include "deltaproof/study/claim.hpp"
#include "kernel/nearest_name.hpp"

namespace deltaproof {
namespace {

constexpr std::array<claim_document, 5> documents{{
    {"blog-en", "000_6b5be3767f5321c7.txt", "63d75e7c831e4452c8050d0827efdf657881e34944257f6d6906f5a8d6fac7c9", 98,
     "Su, \"Why does DeltaNet need L2 normalization?\", English translation with numbered equations"},
    {"blog-zh", "001_be709a12b0451554.txt", "be0e4086c4798fdc4e95fb958a871f2ff953d5cb045f582c492424620288fae5", 286,
     "the same post in the original Chinese, with the page around it and its comments"},
    {"recall", "002_418f562d8c03bf58.txt", "e3efb8b53ac87abeec6ceadc5bc380a09c17b6767581a6b93ce98579af111c47", 209,
     "a report of experiments: linear attention, DeltaNet and RLS on synthetic key-value relationships"},
    {"blog-en-2", "003_459317814ce381b2.txt", "bbe5842e57c9e9a72525103a1e6a3487f80c6feb530419d60231d635d71fdf97", 90,
     "the same post as blog-en, another machine translation"},
    {"notes", "004_601e992f784f92d2.txt", "57884b6c527aaa6444e30c2550acc26a42088a77632908d92db59a9db7c43ead", 105,
     "reading notes on Yang et al., \"Parallelizing linear transformers with the delta rule\""},
}};

std::string content_of(const std::string& file) {
  try {
    return read_file(file, report_limit);
  } catch (const format_error&) {
    return {};
  }
}

/// Names in the first cell of the index's rows.
std::set<std::string, std::less<>> indexed_theorems(const std::string& page) {
  std::set<std::string, std::less<>> names;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string_view cell = std::string_view(line).substr(2, line.find('|', 2) - 2);
    for (std::size_t first = cell.find('`'); first != std::string_view::npos; first = cell.find('`', first)) {
      const std::size_t end = cell.find('`', first + 1);
      if (end == std::string_view::npos) break;
      names.emplace(cell.substr(first + 1, end - first - 1));
      first = end + 1;
    }
  }
  return names;
}

// Rows: document, tab, sentence or range, tab, claims with commas or "-".
constexpr std::string_view map_text =
#include "claims/seed_map.inc"
    ;

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::size_t number_of(std::string_view text, std::string_view line) {
  std::size_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size())
    throw format_error("seed map: no sentence number in '" + std::string(line) + "'");
  return n;
}

std::vector<mapped_sentences> read_map(std::string_view text) {
  std::vector<mapped_sentences> rows;
  for (const std::string_view line : parts_of(text, '\n')) {
    if (line.empty()) continue;
    const auto cells = parts_of(line, '\t');
    if (cells.size() != 3) throw format_error("seed map: '" + std::string(line) + "' is not document, sentences, claims");
    const auto range = parts_of(cells[1], '-');
    mapped_sentences row{cells[0], number_of(range.front(), line), number_of(range.back(), line), {}};
    if (cells[2] != "-") row.claims = parts_of(cells[2], ',');
    rows.push_back(std::move(row));
  }
  return rows;
}

const cell& value_at(const claim_values& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) throw domain_error("no value '" + name + "' was evaluated");
  return found->second;
}

}  // namespace

std::string_view name_of(claim_kind kind) {
  constexpr std::array<std::string_view, 9> names{"identity",   "bound",    "definition", "algorithm",    "experiment",
                                                  "conclusion", "practice", "misprint",   "contradiction"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(claim_verdict verdict) {
  constexpr std::array<std::string_view, 8> names{"holds",   "conditional", "fails_in_format", "artefact",
                                                  "refuted", "misprint",    "contradiction",   "not_testable"};
  return names.at(static_cast<std::size_t>(verdict));
}

std::string_view name_of(claim_evidence_kind kind) {
  constexpr std::array<std::string_view, 5> names{"theorem", "exact_check", "certified", "sampled", "finding"};
  return names.at(static_cast<std::size_t>(kind));
}

double number_at(const claim_values& values, const std::string& name) {
  const cell& value = value_at(values, name);
  return std::visit(
      [&](const auto& v) -> double {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string> || std::is_same_v<std::decay_t<decltype(v)>, bool>) {
          throw domain_error("value '" + name + "' is '" + value.text() + "', not a number");
        } else {
          return static_cast<double>(v);
        }
      },
      value.value());
}

bool truth_at(const claim_values& values, const std::string& name) {
  const cell& value = value_at(values, name);
  if (const bool* truth = std::get_if<bool>(&value.value())) return *truth;
  throw domain_error("value '" + name + "' is '" + value.text() + "', not a truth value");
}

std::string text_at(const claim_values& values, const std::string& name) {
  const cell& value = value_at(values, name);
  if (const std::string* text = std::get_if<std::string>(&value.value())) return *text;
  throw domain_error("value '" + name + "' is '" + value.text() + "', not a text");
}

std::span<const claim_document> claim_documents() { return documents; }

std::span<const claim> claims() {
  static const std::vector<claim> all = [] {
    namespace c = claim_detail;
    std::vector<claim> joined;
    for (c::claim_table (*table)() :
         {c::step_claims, c::stability_claims, c::flow_claims, c::logistic_claims, c::chunk_claims, c::inverse_claims,
          c::recall_moment_claims, c::recall_cost_claims, c::recall_error_claims, c::recall_length_claims, c::recall_memory_claims,
          c::recall_information_claims, c::practice_claims}) {
      c::claim_table rows = table();
      joined.insert(joined.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
    }
    return joined;
  }();
  return all;
}

const claim& claim_named(std::string_view id) {
  std::vector<std::string_view> names;
  for (const claim& c : claims()) {
    if (c.id == id) return c;
    names.push_back(c.id);
  }
  const std::string near(detail::nearest_name(id, names));
  throw domain_error("no claim '" + std::string(id) + "'; " + (near.empty() ? "`deltaproof list claims` has them all" : "did you mean '" + near + "'?"));
}

std::string sources_of(const claim& c) {
  std::string text;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if ((c.sources >> i & 1U) != 0) text.append(text.empty() ? "" : ", ").append(documents[i].id);
  }
  return text;
}

std::span<const mapped_sentences> seed_map() {
  static const std::vector<mapped_sentences> rows = read_map(map_text);
  return rows;
}

std::string sentences_of(const claim& c) {
  std::vector<mapped_sentences> runs;  // neighbours joined
  for (const mapped_sentences& row : seed_map()) {
    if (std::find(row.claims.begin(), row.claims.end(), c.id) == row.claims.end()) continue;
    if (!runs.empty() && runs.back().document == row.document && runs.back().last + 1 == row.first) {
      runs.back().last = row.last;
    } else {
      runs.push_back(row);
    }
  }
  std::string text;
  std::string_view document;
  for (const mapped_sentences& run : runs) {
    const std::string range = std::to_string(run.first) + (run.last == run.first ? "" : "–" + std::to_string(run.last));
    text += run.document == document ? ", " + range : (text.empty() ? "" : "; ") + std::string(run.document) + " " + range;
    document = run.document;
  }
  return text;
}

std::string title_of(const claim_evidence& e) {
  switch (e.kind) {
    case claim_evidence_kind::theorem:
      return "theorem " + std::string(e.name);
    case claim_evidence_kind::exact_check:
      return "exact check";
    case claim_evidence_kind::certified:
      return "certified value";
    case claim_evidence_kind::sampled:
      return "sampled, n = " + count(e.n) + ", seed " + std::to_string(e.seed);
    case claim_evidence_kind::finding:
      return "finding " + std::string(e.study) + ": " + std::string(e.name);
  }
  return {};
}

std::string test_of(const claim& c) {
  if (c.evidence.empty()) return {};
  std::string name(c.id);
  std::replace(name.begin(), name.end(), '-', '_');
  return "study.claims." + name;
}

claim_sources files_of_claims(const std::string& reports, const std::string& index) {
  const auto theorems = std::make_shared<const std::set<std::string, std::less<>>>(indexed_theorems(content_of(index)));
  const auto known = std::make_shared<std::map<std::string, report, std::less<>>>();
  return {
      [theorems](std::string_view theorem) { return theorems->contains(theorem); },
      [known, reports](std::string_view study, std::string_view id) -> std::optional<claim_values> {
        auto at = known->find(study);
        if (at == known->end()) {
          const std::string file = reports + "/" + std::string(study) + ".json";
          if (!std::filesystem::exists(file)) return {};
          at = known->emplace(study, report_from_json(content_of(file))).first;
        }
        for (const finding& f : at->second.findings) {
          if (f.id == id) return f.values;
        }
        throw domain_error("the report of study " + std::string(study) + " has no finding '" + std::string(id) + "'");
      },
  };
}

std::optional<claim_values> evaluate(const claim_evidence& e, const claim_sources& from) {
  switch (e.kind) {
    case claim_evidence_kind::theorem:
      return claim_values{{"indexed", from.indexed(e.name)}};
    case claim_evidence_kind::finding:
      return from.finding(e.study, e.name);
    default:
      return e.evaluate();
  }
}

evidence_state assess(const claim_evidence& e, const std::optional<claim_values>& values, bool negated) {
  if (!values) return evidence_state::awaited;
  return e.holds(*values) != negated ? evidence_state::green : evidence_state::red;
}

}  // namespace deltaproof
