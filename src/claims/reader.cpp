// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "claims/text.hpp"
#include "deltaproof/number/errors.hpp"
#include "kernel/toml.hpp"

namespace deltaproof::claim_detail {
namespace {

constexpr std::array kinds{claim_kind::identity,  claim_kind::bound,      claim_kind::definition,
                           claim_kind::algorithm, claim_kind::experiment, claim_kind::conclusion,
                           claim_kind::practice,  claim_kind::misprint,   claim_kind::contradiction};
constexpr std::array verdicts{claim_verdict::holds,         claim_verdict::conditional, claim_verdict::fails_in_format,
                              claim_verdict::artefact,      claim_verdict::refuted,     claim_verdict::misprint,
                              claim_verdict::contradiction, claim_verdict::not_testable};

/// A table of a file and where it stands, for messages.
struct row {
  const toml::table& table;
  std::string where;

  [[noreturn]] void refuse(const std::string& what) const { throw format_error("src/claims/" + where + ": " + what); }
  void only(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, node] : table) {
      if (std::find(keys.begin(), keys.end(), key.str()) == keys.end())
        refuse("there is no key '" + std::string(key.str()) + "'");
    }
  }
  [[nodiscard]] std::string text(std::string_view key, bool needed = true) const {
    const toml::node* node = table.get(key);
    if (node == nullptr && !needed) return {};
    const auto found = node == nullptr ? std::optional<std::string>() : node->value_exact<std::string>();
    if (!found || (needed && found->empty())) refuse("'" + std::string(key) + "' is to be a text");
    return *found;
  }
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> all;
    const toml::array* list = table.get_as<toml::array>(key);
    if (list == nullptr && table.contains(key)) refuse("'" + std::string(key) + "' is to be a list");
    if (list == nullptr) return all;
    for (const toml::node& one : *list) {
      const auto found = one.value_exact<std::string>();
      if (!found) refuse("'" + std::string(key) + "' is to be a list of texts");
      all.push_back(*found);
    }
    return all;
  }
  /// The tables under a key: [[key]], or inline.
  [[nodiscard]] std::vector<row> rows(std::string_view key) const {
    std::vector<row> all;
    const toml::array* list = table.get_as<toml::array>(key);
    if (list == nullptr && table.contains(key)) refuse("'" + std::string(key) + "' is to be a list of tables");
    if (list == nullptr) return all;
    for (const toml::node& one : *list) {
      if (!one.is_table()) refuse("'" + std::string(key) + "' is to be a list of tables");
      all.push_back({*one.as_table(), where + ", " + std::string(key) + " " + std::to_string(all.size() + 1)});
    }
    return all;
  }
  [[nodiscard]] std::optional<double> number(std::string_view key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    if (!node->is_number()) refuse("'" + std::string(key) + "' is to be a number");
    return node->value<double>();
  }
  [[nodiscard]] std::optional<cell> any(std::string_view key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    if (const auto* truth = node->as_boolean()) return cell(truth->get());
    if (const auto* whole = node->as_integer()) return cell(whole->get());
    if (const auto* real = node->as_floating_point()) return cell(real->get());
    if (const auto* said = node->as_string()) return cell(said->get());
    refuse("'" + std::string(key) + "' is to be a truth value, a number or a text");
  }
};

/// "12", "12-14, 20" of a document.
void add_sentences(std::vector<sentence_range>& to, const row& r, const std::string& document, std::string_view text) {
  const auto number = [&](std::string_view digits) {
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (error != std::errc{} || end != digits.data() + digits.size())
      r.refuse("'" + std::string(digits) + "' is no number of a sentence");
    return n;
  };
  while (!text.empty()) {
    const std::string_view range = text.substr(0, text.find(", "));
    text.remove_prefix(std::min(text.size(), range.size() + 2));
    const std::size_t dash = range.find('-');
    to.push_back(
        {document, number(range.substr(0, dash)), number(dash == std::string_view::npos ? range : range.substr(dash + 1))});
  }
}

template <class Names>
auto named(const row& r, std::string_view key, const Names& among) {
  const std::string wanted = r.text(key);
  for (const auto one : among) {
    if (name_of(one) == wanted) return one;
  }
  r.refuse("there is no " + std::string(key) + " '" + wanted + "'");
}

claim_band band_of(const row& r) {
  r.only({"value", "minus", "over", "equals", "min", "max", "rival", "rival_is"});
  claim_band band{r.text("value"),           r.text("over", false), r.any("equals"), r.number("min"), r.number("max"), {},
                  r.text("rival_is", false), r.text("minus", false)};
  if (band.equals ? band.min || band.max || !band.over.empty() || !band.minus.empty() : !band.min && !band.max)
    r.refuse("a band has 'min' or 'max' or both, or 'equals' alone");
  if (const auto rival = r.any("rival"))
    band.rival = *rival;
  else
    r.refuse("a band names its 'rival'");
  if (band.rival_is.empty()) r.refuse("'rival_is' says where the rival comes from");
  return band;
}

claim_evidence evidence_of(const row& r) {
  r.only({"theorem", "concludes", "check", "study", "finding", "because", "quotes", "yes", "no", "bands"});
  claim_evidence e{claim_evidence_kind::quotes, {}, {}, r.text("because", false), {}, {}};
  if (r.table.contains("theorem")) {
    e.kind = claim_evidence_kind::theorem;
    e.name = r.text("theorem");
    e.because = "its conclusion, checked by machine";
    const std::string conclusion = r.text("concludes");
    e.bands.push_back({"concludes", {}, cell(conclusion), {}, {}, cell("~ (" + conclusion + ")"), "the statement negated"});
    return e;
  }
  if (r.table.contains("check")) {
    e.kind = claim_evidence_kind::check;
    e.name = r.text("check");
    const auto known = claim_checks();
    if (std::none_of(known.begin(), known.end(), [&](const claim_check& c) { return c.name == e.name; }))
      r.refuse("there is no check '" + e.name + "'");
  } else if (r.table.contains("finding")) {
    e.kind = claim_evidence_kind::finding;
    e.name = r.text("finding");
    e.study = r.text("study");
  }
  if (e.because.empty()) r.refuse("'because' says what is evaluated");
  if (const toml::table* quotes = r.table.get_as<toml::table>("quotes")) {
    const row of{*quotes, r.where};
    for (const auto& [name, value] : *quotes) e.quotes.emplace(std::string(name.str()), *of.any(name.str()));
  }
  for (const std::string& name : r.texts("yes")) e.bands.push_back({name, {}, cell(true), {}, {}, cell(false), {}});
  for (const std::string& name : r.texts("no")) e.bands.push_back({name, {}, cell(false), {}, {}, cell(true), {}});
  for (const row& band : r.rows("bands")) e.bands.push_back(band_of(band));
  if (e.bands.empty()) r.refuse("evidence has bands, or values that are 'yes' or 'no'");
  return e;
}

/// Takes "{value=shown}" for "shown"; other braces, as of e^{tA}, stay.
std::string without_quotes(const std::string& text, std::vector<claim_quote>& quoted) {
  constexpr std::string_view of_a_name = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = std::min(text.find('{', at), text.size());
    out += text.substr(at, open - at);
    if (open == text.size()) break;
    const std::size_t equals = text.find_first_not_of(of_a_name, open + 1);
    const std::size_t close = text.find('}', open);
    if (close == std::string::npos || equals >= close || text[equals] != '=') {
      out += text.substr(open, 1);
      at = open + 1;
      continue;
    }
    quoted.push_back({text.substr(open + 1, equals - open - 1), text.substr(equals + 1, close - equals - 1)});
    out += quoted.back().shown;
    at = close + 1;
  }
  return out;
}

claim claim_of(const row& r, const std::string& subject) {
  r.only({"id", "kind", "verdict", "statement", "conditions", "sentences", "evidence"});
  claim c{r.text("id"), subject, {}, named(r, "kind", kinds), named(r, "verdict", verdicts), r.text("statement"), {}, {}, {}};
  c.conditions = without_quotes(r.text("conditions"), c.quoted);
  for (const std::string& place : r.texts("sentences")) {
    const std::size_t space = place.find(' ');
    if (space == std::string::npos) r.refuse("'" + place + "' is not a document and its sentences");
    add_sentences(c.sentences, r, place.substr(0, space), std::string_view(place).substr(space + 1));
  }
  for (const row& e : r.rows("evidence")) c.evidence.push_back(evidence_of(e));
  return c;
}

toml::table parsed(const embedded_file& file) {
  try {
    return toml::parse(file.text);
  } catch (const toml::parse_error& e) {
    throw format_error("src/claims/" + std::string(file.name) + ".toml, line " + std::to_string(e.source().begin.line) + ": " +
                       std::string(e.description()));
  }
}

}  // namespace

ledger read_ledger(std::span<const embedded_file> files) {
  const auto file_named = [&](const std::string& name) {
    for (const embedded_file& f : files) {
      if (f.name == name) return f;
    }
    throw format_error("src/claims/ledger.toml: there is no subject " + name + ".toml");
  };
  ledger all;
  const toml::table top = parsed(file_named("ledger"));
  const row root{top, "ledger.toml"};
  root.only({"document", "subject", "system", "first_read"});
  for (const row& r : root.rows("document")) {
    claim_document d{r.text("id"),     r.text("file"),
                     r.text("sha256"), static_cast<std::size_t>(r.number("sentences").value_or(0)),
                     r.text("what"),   {}};
    add_sentences(d.nothing, r, d.id, r.text("nothing"));
    all.documents.push_back(std::move(d));
  }
  for (const row& r : root.rows("subject")) all.subjects.push_back({r.text("name"), r.text("title")});
  for (const row& r : root.rows("system")) all.systems.push_back({r.text("name"), r.text("code", false), r.text("reason")});
  all.first_read = root.texts("first_read");
  if (files.size() != all.subjects.size() + 1) root.refuse("the files of src/claims are not those of its subjects");
  for (const claim_subject& s : all.subjects) {
    const toml::table rows = parsed(file_named(s.name));
    const row subject{rows, s.name + ".toml"};
    subject.only({"claim"});
    for (const row& r : subject.rows("claim")) all.claims.push_back(claim_of(r, s.name));
  }
  return all;
}

}  // namespace deltaproof::claim_detail
