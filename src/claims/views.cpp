// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What fills the pages of src/claims/pages.

#include <kainjow/mustache.hpp>
#include <map>
#include <string>
#include <vector>

#include "claims/text.hpp"
#include "deltaproof/study/claim.hpp"
#include "study/markdown.hpp"

namespace deltaproof {
namespace {

using detail::escaped;
using kainjow::mustache::data;

/// Which of the four answers of a summary a verdict belongs to.
std::string answer_of(claim_verdict v) {
  if (v == claim_verdict::holds) return "hold";
  if (v == claim_verdict::conditional || v == claim_verdict::fails_in_format) return "conditional";
  return v == claim_verdict::not_testable ? "open" : "refuted";
}

std::string page_named(const std::string& subject) { return "claims-" + subject + ".md"; }

/// How many claims of a subject, or of all, there are: by answer, and "of VERDICT".
data counted(const std::string& subject = {}) {
  std::map<std::string, std::size_t> of{{"hold", 0}, {"conditional", 0}, {"refuted", 0}, {"open", 0}};
  for (const claim& c : claims()) {
    if (!subject.empty() && c.subject != subject) continue;
    ++of["all"], ++of[answer_of(c.verdict)], ++of["of " + std::string(name_of(c.verdict))];
  }
  data made;
  for (const auto& [name, n] : of) made.set(name, std::to_string(n));
  return made;
}

/// "must be true: a, b" and "must be false: c", and one line for each other band.
std::string bands_text(const claim_evidence& e) {
  std::string yes, no, rest;
  for (const claim_band& b : e.bands) {
    const bool* truth = b.equals ? std::get_if<bool>(&b.equals->value()) : nullptr;
    if (truth != nullptr)
      (*truth ? yes : no).append((*truth ? yes : no).empty() ? "" : ", ").append("`" + b.value + "`");
    else
      rest += "\n  - " + escaped(text_of(b));
  }
  return (yes.empty() ? "" : "\n  - must be true: " + yes) + (no.empty() ? "" : "\n  - must be false: " + no) + rest;
}

std::string evidence_text(const claim_evidence& e) {
  if (e.kind == claim_evidence_kind::theorem)
    return "- " + escaped(title_of(e)) + ", which concludes\n\n  ```coq\n  " +
           std::get<std::string>(e.bands.front().equals->value()) + "\n  ```";
  const std::string title = e.kind == claim_evidence_kind::finding
                                ? "finding `" + e.name + "` of [" + e.study + "](" + e.study + ".md)"
                                : escaped(title_of(e));
  std::string printed;
  for (const auto& [name, value] : e.quotes) printed += (printed.empty() ? " Printed: " : ", ") + name + " = " + value.text(10);
  return "- " + title + ": " + escaped(e.because) + "." + escaped(printed) + bands_text(e);
}

template <class All, class Make>
data listed(const All& all, Make&& make) {
  data list(data::type::list);
  for (const auto& one : all) list.push_back(make(one));
  return list;
}

data row_of_claim(const claim& c) {
  data row;
  row.set("id", c.id);
  row.set("page", page_named(c.subject));
  row.set("kind", std::string(name_of(c.kind)));
  row.set("verdict", std::string(name_of(c.verdict)));
  row.set("statement", escaped(c.statement));
  row.set("conditions", escaped(c.conditions));
  row.set("sentences", sentences_of(c));
  std::string evidence;
  for (const claim_evidence& e : c.evidence) evidence += (evidence.empty() ? "\n\n" : "\n") + evidence_text(e);
  row.set("evidence", evidence);
  return row;
}

std::string filled(std::string_view page, const data& with) {
  kainjow::mustache::mustache engine{std::string(page)};
  engine.set_custom_escape([](const std::string& text) { return text; });
  return engine.render(with);
}

}  // namespace

std::map<std::string, std::string> claims_pages() {
  const auto of_subject = [](const claim_subject& s) {
    data made = counted(s.name);
    made.set("title", escaped(s.title));
    made.set("page", page_named(s.name));
    std::vector<claim> rows;
    for (const claim& c : claims()) {
      if (c.subject == s.name) rows.push_back(c);
    }
    made.set("claims", listed(rows, row_of_claim));
    return made;
  };
  data overview = counted();
  overview.set("subjects", listed(claim_subjects(), of_subject));
  overview.set("claims", listed(claims(), row_of_claim));
  overview.set("first", listed(first_claims_to_read(), [](const std::string& id) { return row_of_claim(claim_named(id)); }));
  overview.set("documents", listed(claim_documents(), [](const claim_document& d) {
                 data row("id", d.id);
                 row.set("what", escaped(d.what));
                 row.set("sentences", std::to_string(d.sentences));
                 return row;
               }));
  overview.set("systems", listed(named_systems(), [](const named_system& s) {
                 data row("name", escaped(s.name));
                 row.set("code", s.code.empty() ? "excluded" : "[" + s.code + "](../" + s.code + ")");
                 row.set("reason", escaped(s.reason));
                 return row;
               }));
  std::map<std::string, std::string> pages{{"claims.md", filled(claim_detail::overview_page(), overview)}};
  for (const claim_subject& s : claim_subjects()) pages[page_named(s.name)] = filled(claim_detail::subject_page(), of_subject(s));
  return pages;
}

}  // namespace deltaproof
