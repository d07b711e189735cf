// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <sstream>
#include <utility>

#include "claims/text.hpp"
#include "deltaproof/study/claim.hpp"
#include "deltaproof/study/results.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/read_file.hpp"
#include "support/nearest_name.hpp"

namespace deltaproof {
namespace {

const claim_detail::ledger& ledger() {
  static const claim_detail::ledger all = claim_detail::read_ledger(claim_detail::embedded_files());
  return all;
}

const claim_check& check_named(std::string_view name) {
  for (const claim_check& c : claim_checks()) {
    if (c.name == name) return c;
  }
  throw domain_error("no check '" + std::string(name) + "'");
}

const cell& value_at(const claim_values& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) throw domain_error("no value '" + name + "' was evaluated");
  return found->second;
}

double number_of(const cell& value, const std::string& name) {
  if (!value.is_number()) throw domain_error("value '" + name + "' is '" + value.text() + "', not a number");
  return as_number(value);
}

/// Where a number lies for certain: within its radius, if it has one.
std::array<double, 2> ends_of(const claim_values& values, const std::string& name) {
  const double x = number_of(value_at(values, name), name);
  const auto radius = values.find(name + "_radius");
  const double r = radius == values.end() ? 0 : number_of(radius->second, name + "_radius");
  return {x - r, x + r};
}

bool within(const claim_band& band, double x) { return x >= band.min.value_or(-HUGE_VAL) && x <= band.max.value_or(HUGE_VAL); }

/// Numbers by value, so that 32 is 32.0; everything else as it is, a truth value is no text.
bool equal(const cell& a, const cell& b) {
  return a.is_number() && b.is_number() ? number_of(a, {}) == number_of(b, {}) : a == b;
}

/// The text of one statement of a theory's file, its lines joined.
std::optional<std::string> statement_in(const std::string& page, std::string_view theorem) {
  std::istringstream lines(page);
  std::optional<std::string> text;
  for (std::string line; std::getline(lines, line);) {
    if (!text) {
      if (line.starts_with("statement " + std::string(theorem) + " [")) text.emplace();
    } else if (line.starts_with("  ")) {
      const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
      text->append(text->empty() ? "" : " ").append(line, first, line.find_last_not_of(' ') + 1 - first);
    } else if (line.empty()) {
      break;
    }
  }
  return text;
}

/// The first `token` of a statement that stands in no bracket.
std::size_t outside_brackets(std::string_view text, std::string_view token) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::string_view("([{").find(text[i]) != std::string_view::npos) ++depth;
    if (std::string_view(")]}").find(text[i]) != std::string_view::npos) --depth;
    if (depth == 0 && text.substr(i).starts_with(token)) return i;
  }
  return std::string_view::npos;
}

}  // namespace

std::string_view name_of(claim_kind kind) { return claim_detail::kind_names.at(static_cast<std::size_t>(kind)); }

std::string_view name_of(claim_verdict verdict) { return claim_detail::verdict_names.at(static_cast<std::size_t>(verdict)); }

std::string_view name_of(claim_evidence_kind kind) {
  constexpr std::array<std::string_view, 4> names{"theorem", "check", "finding", "quotes"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(claim_method method) {
  constexpr std::array<std::string_view, 4> names{"proof", "exact check", "enclosure", "measurement"};
  return names.at(static_cast<std::size_t>(method));
}

bool holds(const claim_band& band, const claim_values& values) {
  const cell& value = value_at(values, band.value);
  if (band.equals) return equal(value, *band.equals);
  auto ends = ends_of(values, band.value);
  if (!band.minus.empty()) {
    const auto taken = ends_of(values, band.minus);
    ends = {ends[0] - taken[1], ends[1] - taken[0]};
  }
  if (band.over.empty()) return within(band, ends[0]) && within(band, ends[1]);
  const auto divisors = ends_of(values, band.over);
  if (divisors[0] <= 0 && divisors[1] >= 0) return false;
  return std::all_of(ends.begin(), ends.end(),
                     [&](double x) { return within(band, x / divisors[0]) && within(band, x / divisors[1]); });
}

bool holds_of_rival(const claim_band& band) {
  if (band.equals) return equal(band.rival, *band.equals);
  return within(band, number_of(band.rival, "rival of " + band.value));
}

std::string text_of(const claim_band& band) {
  const std::string difference = band.minus.empty() ? band.value : "(" + band.value + " − " + band.minus + ")";
  std::string text = difference + (band.over.empty() ? "" : " / " + band.over);
  if (band.equals)
    text += " is " + band.equals->text(10);
  else if (band.min && band.max)
    text += " in [" + number(*band.min, 8) + ", " + number(*band.max, 8) + "]";
  else
    text += band.min ? " ≥ " + number(*band.min, 8) : " ≤ " + number(*band.max, 8);
  if (!band.rival_is.empty()) text += ", not " + band.rival.text(8) + " (" + band.rival_is + ")";
  return text;
}

std::span<const claim_document> claim_documents() { return ledger().documents; }
std::span<const claim_subject> claim_subjects() { return ledger().subjects; }
std::span<const claim> claims() { return ledger().claims; }
std::span<const named_system> named_systems() { return ledger().systems; }
std::span<const std::string> first_claims_to_read() { return ledger().first_read; }

const claim& claim_named(std::string_view id) {
  std::vector<std::string_view> names;
  for (const claim& c : claims()) {
    if (c.id == id) return c;
    names.push_back(c.id);
  }
  const std::string near(detail::nearest_name(id, names));
  throw domain_error("no claim '" + std::string(id) + "'; " +
                     (near.empty() ? "`deltaproof list claims` has them all" : "did you mean '" + near + "'?"));
}

std::string sources_of(const claim& c) {
  std::string text;
  for (const claim_document& d : claim_documents()) {
    if (std::any_of(c.sentences.begin(), c.sentences.end(), [&](const sentence_range& s) { return s.document == d.id; }))
      text.append(text.empty() ? "" : ", ").append(d.id);
  }
  return text;
}

std::string sentences_of(const claim& c) {
  std::string text;
  std::string_view document;
  for (const sentence_range& run : c.sentences) {
    const std::string range = std::to_string(run.first) + (run.last == run.first ? "" : "–" + std::to_string(run.last));
    text += run.document == document ? ", " + range : (text.empty() ? "" : "; ") + run.document + " " + range;
    document = run.document;
  }
  return text;
}

std::string title_of(const claim_evidence& e) {
  if (e.kind == claim_evidence_kind::theorem) return "theorem " + e.name;
  if (e.kind == claim_evidence_kind::finding) return "finding " + e.study + ": " + e.name;
  if (e.kind == claim_evidence_kind::quotes) return "printed numbers";
  const claim_check& check = check_named(e.name);
  const std::string how = check.n > 0
                              ? "sampled, n = " + count(check.n) + ", seed " + std::to_string(check.seed)
                              : std::string(check.method == claim_method::measurement ? "measured" : name_of(check.method));
  return how + ": " + e.name;
}

std::string test_of(const claim& c) {
  if (c.evidence.empty()) return {};
  std::string name = c.id;
  std::replace(name.begin(), name.end(), '-', '_');
  return "study.claims." + name;
}

claim_sources files_of_claims(const std::string& reports, const std::string& statements) {
  const auto known = std::make_shared<std::map<std::string, report, std::less<>>>();
  return {
      [statements](std::string_view theorem) -> std::optional<std::string> {
        const std::string file = statements + "/" + std::string(theorem.substr(0, theorem.rfind('.'))) + ".txt";
        if (!std::filesystem::exists(file)) return {};
        if (auto text = statement_in(read_file(file, report_limit), theorem)) return text;
        throw domain_error(file + " has no statement '" + std::string(theorem) + "'");
      },
      [known, reports](std::string_view study, std::string_view id) -> std::optional<finding> {
        auto at = known->find(study);
        if (at == known->end()) {
          const std::string file = reports + "/" + std::string(study) + ".json";
          if (!std::filesystem::exists(file)) return {};
          at = known->emplace(study, report_from_json(read_file(file, report_limit))).first;
        }
        for (const finding& f : at->second.findings) {
          if (f.id == id) return f;
        }
        throw domain_error("the report of study " + std::string(study) + " has no finding '" + std::string(id) + "'");
      },
  };
}

std::string conclusion_of(std::string_view statement) {
  for (;;) {
    if (statement.starts_with("exists ")) return std::string(statement);
    const bool bound = statement.starts_with("forall ");
    const std::string_view token = bound ? ", " : " -> ";
    const std::size_t at = outside_brackets(statement, token);
    if (at == std::string_view::npos) return std::string(statement);
    statement.remove_prefix(at + token.size());
  }
}

std::optional<claim_values> evaluate(const claim_evidence& e, const claim_sources& from) {
  claim_values values = e.quotes;
  if (e.kind == claim_evidence_kind::theorem) {
    const auto statement = from.statement(e.name);
    if (!statement) return {};
    values.emplace("concludes", conclusion_of(*statement));
  } else if (e.kind == claim_evidence_kind::finding) {
    const auto found = from.finding_of(e.study, e.name);
    if (!found) return {};
    values.insert(found->values.begin(), found->values.end());
  } else if (e.kind == claim_evidence_kind::check) {
    static std::map<std::string, claim_values, std::less<>> known;  // several rows look at one check
    auto at = known.find(e.name);
    if (at == known.end()) at = known.emplace(e.name, check_named(e.name).evaluate()).first;
    values.insert(at->second.begin(), at->second.end());
  }
  return values;
}

claim_method method_of(const claim_evidence& e, const claim_sources& from) {
  if (e.kind == claim_evidence_kind::theorem) return claim_method::proof;
  if (e.kind == claim_evidence_kind::quotes) return claim_method::exact_check;
  if (e.kind == claim_evidence_kind::check) return check_named(e.name).method;
  const auto found = from.finding_of(e.study, e.name);
  const evidence_kind kind = found ? found->kind.kind : evidence_kind::measured;
  if (kind == evidence_kind::proved) return found->kind.theorem.empty() ? claim_method::measurement : claim_method::proof;
  if (kind == evidence_kind::exhaustive) return claim_method::exact_check;
  return kind == evidence_kind::certified ? claim_method::enclosure : claim_method::measurement;
}

}  // namespace deltaproof
