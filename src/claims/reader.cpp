// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "claims/text.hpp"
#include "deltaproof/support/errors.hpp"
#include "study/toml_section.hpp"

namespace deltaproof::claim_detail {
namespace {

using section = detail::toml_section;

/// "12", "12-14, 20" of a document.
void add_sentences(std::vector<sentence_range>& to, const section& from, const std::string& document, std::string_view text) {
  const auto number = [&](std::string_view digits) {
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (error != std::errc{} || end != digits.data() + digits.size())
      from.fail("'" + std::string(digits) + "' is no number of a sentence");
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

template <class Kind>
Kind named(section& from, const char* key, std::span<const std::string_view> names) {
  const std::string wanted = from.name(key, true);
  const auto at = std::find(names.begin(), names.end(), wanted);
  if (at == names.end()) from.fail("there is no " + std::string(key) + " '" + wanted + "'");
  return static_cast<Kind>(at - names.begin());
}

claim_band band_of(section from) {
  claim_band band{from.name("value", true), from.name("over"), from.any("equals"), from.number("min"), from.number("max"), {}, {},
                  from.name("minus")};
  if (band.equals ? band.min || band.max || !band.over.empty() || !band.minus.empty() : !band.min && !band.max)
    from.fail("a band has 'min' or 'max' or both, or 'equals' alone");
  const auto rival = from.any("rival");
  if (!rival) from.fail("a band names its 'rival'");
  band.rival = *rival;
  band.rival_is = from.name("rival_is", true);
  from.done();
  return band;
}

claim_evidence evidence_of(section from) {
  claim_evidence e{claim_evidence_kind::quotes, {}, {}, {}, {}, {}};
  if (from.node("theorem") != nullptr) {
    e.kind = claim_evidence_kind::theorem;
    e.name = from.name("theorem", true);
    e.because = "its conclusion, checked by machine";
    const std::string conclusion = from.name("concludes", true);
    e.bands.push_back({"concludes", {}, cell(conclusion), {}, {}, cell("~ (" + conclusion + ")"), "the statement negated"});
    from.done();
    return e;
  }
  if (from.node("check") != nullptr) {
    e.kind = claim_evidence_kind::check;
    e.name = from.name("check", true);
    const auto known = claim_checks();
    if (std::none_of(known.begin(), known.end(), [&](const claim_check& c) { return c.name == e.name; }))
      from.fail("there is no check '" + e.name + "'");
  } else if (from.node("finding") != nullptr) {
    e.kind = claim_evidence_kind::finding;
    e.name = from.name("finding", true);
    e.study = from.name("study", true);
  }
  e.because = from.name("because", true);
  from.each("quotes", [&](const section& quotes) {
    quotes.in_order([&](const auto& name, const toml::node& value) { e.quotes.emplace(name, quotes.any_of(value, name)); });
  });
  for (const std::string& name : from.names("yes")) e.bands.push_back({name, {}, cell(true), {}, {}, cell(false), {}});
  for (const std::string& name : from.names("no")) e.bands.push_back({name, {}, cell(false), {}, {}, cell(true), {}});
  from.each("bands", [&](section band) { e.bands.push_back(band_of(std::move(band))); });
  from.done();
  if (e.bands.empty()) from.fail("evidence has bands, or values that are 'yes' or 'no'");
  for (const auto& [name, value] : e.quotes) {
    const auto reads = [&](const claim_band& b) { return b.value == name || b.over == name || b.minus == name; };
    if (std::none_of(e.bands.begin(), e.bands.end(), reads)) from.fail("no band reads the quote '" + name + "'");
  }
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

claim claim_of(section from, const std::string& subject) {
  claim c{from.name("id", true),
          subject,
          {},
          named<claim_kind>(from, "kind", kind_names),
          named<claim_verdict>(from, "verdict", verdict_names),
          from.name("statement", true),
          {},
          {},
          {}};
  c.conditions = without_quotes(from.name("conditions", true), c.quoted);
  for (const std::string& place : from.names("sentences")) {
    const std::size_t space = place.find(' ');
    if (space == std::string::npos) from.fail("'" + place + "' is not a document and its sentences");
    add_sentences(c.sentences, from, place.substr(0, space), std::string_view(place).substr(space + 1));
  }
  from.each("evidence", [&](section e) { c.evidence.push_back(evidence_of(std::move(e))); });
  from.done();
  return c;
}

claim_document document_of(section from) {
  claim_document d{from.name("id", true),     from.name("file", true),
                   from.name("sha256", true), static_cast<std::size_t>(from.number("sentences", 0)),
                   from.name("what", true),   {}};
  add_sentences(d.nothing, from, d.id, from.name("nothing", true));
  from.done();
  return d;
}

}  // namespace

ledger read_ledger(std::span<const embedded_file> files) {
  /// f(the whole) of a file, each of whose keys it asks for.
  const auto read = [&](const std::string& name, const std::function<void(section&)>& f) {
    const auto at = std::find_if(files.begin(), files.end(), [&](const embedded_file& one) { return one.name == name; });
    if (at == files.end()) throw format_error("src/claims/ledger.toml: there is no subject " + name + ".toml");
    const std::string file = "src/claims/" + name + ".toml";
    const toml::table rows = section::parsed(file, at->text, 1);
    section whole(file, rows, 1, {});
    f(whole);
    whole.done();
  };
  ledger all;
  read("ledger", [&](section& top) {
    top.each("document", [&](section one) { all.documents.push_back(document_of(std::move(one))); });
    top.each("subject", [&](section one) {
      all.subjects.push_back({one.name("name", true), one.name("title", true)});
      one.done();
    });
    top.each("system", [&](section one) {
      all.systems.push_back({one.name("name", true), one.name("code"), one.name("reason", true)});
      one.done();
    });
    all.first_read = top.names("first_read");
    if (files.size() != all.subjects.size() + 1) top.fail("the files of src/claims are not those of its subjects");
  });
  for (const claim_subject& s : all.subjects) {
    read(s.name, [&](section& rows) {
      rows.each("claim", [&](section one) { all.claims.push_back(claim_of(std::move(one), s.name)); });
    });
  }
  return all;
}

}  // namespace deltaproof::claim_detail
