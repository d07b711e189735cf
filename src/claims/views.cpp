// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>

#include "deltaproof/study/claim.hpp"
#include "study/markdown.hpp"

namespace deltaproof {
namespace {

using detail::escaped;

/// A verdict, how a summary says it, and which of its four answers it belongs to.
struct verdict_text {
  claim_verdict verdict;
  std::string_view text;
  std::string_view answer;
};
constexpr std::array<verdict_text, 8> verdicts{{
    {claim_verdict::holds, "hold", "hold"},
    {claim_verdict::conditional, "hold under a condition", "conditional"},
    {claim_verdict::fails_in_format, "are true of real numbers, not in a format", "conditional"},
    {claim_verdict::refuted, "are refuted", "refuted"},
    {claim_verdict::artefact, "give a number that does not mean what is said", "refuted"},
    {claim_verdict::contradiction, "are pairs of sentences that contradict each other", "refuted"},
    {claim_verdict::misprint, "are misprints", "refuted"},
    {claim_verdict::not_testable, "cannot be tested here", "open"},
}};
constexpr std::array<std::string_view, 4> answers{"hold", "conditional", "refuted", "open"};

std::string_view answer_of(claim_verdict verdict) {
  return std::find_if(verdicts.begin(), verdicts.end(), [&](const verdict_text& v) { return v.verdict == verdict; })->answer;
}

/// How many claims of a subject, or of all, a condition is true of.
template <class Condition>
std::string counted_if(std::string_view subject, Condition is) {
  const auto all = claims();
  return std::to_string(
      std::count_if(all.begin(), all.end(), [&](const claim& c) { return (subject.empty() || c.subject == subject) && is(c); }));
}
std::string counted(std::string_view subject, std::string_view answer) {
  return counted_if(subject, [&](const claim& c) { return answer.empty() || answer_of(c.verdict) == answer; });
}

std::string page_named(const std::string& subject) { return "claims-" + subject + ".md"; }

std::string title_with_link(const claim_evidence& e) {
  if (e.kind != claim_evidence_kind::finding) return escaped(title_of(e));
  return "finding `" + e.name + "` of [" + e.study + "](" + e.study + ".md)";
}

/// "yes: a, b; no: c" and one line for each other band.
std::string bands_text(const claim_evidence& e) {
  std::string yes, no, rest;
  for (const claim_band& b : e.bands) {
    const bool* truth = b.equals ? std::get_if<bool>(&b.equals->value()) : nullptr;
    if (truth != nullptr)
      (*truth ? yes : no).append((*truth ? yes : no).empty() ? "" : ", ").append("`" + b.value + "`");
    else
      rest += "  - " + escaped(text_of(b)) + "\n";
  }
  if (!no.empty()) rest.insert(0, "  - not so: " + no + "\n");
  if (!yes.empty()) rest.insert(0, "  - so: " + yes + "\n");
  return rest;
}

std::string evidence_text(const claim_evidence& e) {
  if (e.kind == claim_evidence_kind::theorem)
    return "- " + title_with_link(e) + ", which concludes\n\n  ```coq\n  " +
           std::get<std::string>(e.bands.front().equals->value()) + "\n  ```\n";
  std::string printed;
  for (const auto& [name, value] : e.quotes) printed += (printed.empty() ? " Printed: " : ", ") + name + " = " + value.text(8);
  return "- " + title_with_link(e) + ": " + escaped(e.because) + "." + escaped(printed) + "\n" + bands_text(e);
}

std::string subject_page(const claim_subject& s) {
  std::string page = "# " + s.title + ": claims on trial\n\n" + counted(s.name, "") + " claims: ";
  for (const std::string_view answer : answers)
    page += (answer == answers.front() ? "" : ", ") + counted(s.name, answer) + " " + std::string(answer);
  page +=
      ". What the words mean, and all subjects: [the ledger](claims.md).\n\nUnder each claim stands what its evidence must give "
      "and, behind "
      "\"not\", what it would give if the verdict were wrong.\n\n";
  for (const claim& c : claims()) {
    if (c.subject == s.name) page += "- [" + c.id + "](#" + c.id + "): " + std::string(name_of(c.verdict)) + "\n";
  }
  for (const claim& c : claims()) {
    if (c.subject != s.name) continue;
    page += "\n## " + c.id + "\n\n*" + escaped(c.statement) + "*\n\n**" + std::string(name_of(c.verdict)) +
            "**: " + escaped(c.conditions) + ".\n\n" + std::string(name_of(c.kind)) + "; " + sentences_of(c) + "\n";
    if (!c.evidence.empty()) page += "\n";
    for (const claim_evidence& e : c.evidence) page += evidence_text(e);
  }
  return page + "\nMade by `build/release/deltaproof report -o reports`.\n";
}

std::string summary() {
  std::string page = "# The claims on trial\n\nOf " + std::to_string(claims().size()) +
                     " checkable claims of five source documents " + counted({}, "hold") + " hold, " +
                     counted({}, "conditional") + " hold under a condition that the row names, " + counted({}, "refuted") +
                     " are refuted, contradict each other or are misprinted, and " + counted({}, "open") +
                     " are open: nothing here can test them. Each is restated and judged with evidence that a test evaluates "
                     "again, and that the "
                     "test has seen refuse what it would be if the verdict were wrong.\n\n| subject | claims |";
  for (const std::string_view answer : answers) page += " " + std::string(answer) + " |";
  page += "\n| --- | ---: | ---: | ---: | ---: | ---: |\n";
  for (const claim_subject& s : claim_subjects()) {
    page += "| [" + escaped(s.title) + "](" + page_named(s.name) + ") | " + counted(s.name, "") + " |";
    for (const std::string_view answer : answers) page += " " + counted(s.name, answer) + " |";
    page += "\n";
  }
  page += "| all | " + std::to_string(claims().size()) + " |";
  for (const std::string_view answer : answers) page += " " + counted({}, answer) + " |";
  page += "\n\n| verdict | claims that | of |\n| --- | --- | ---: |\n";
  for (const verdict_text& v : verdicts)
    page += "| `" + std::string(name_of(v.verdict)) + "` | " + std::string(v.text) + " | " +
            counted_if({}, [&](const claim& c) { return c.verdict == v.verdict; }) + " |\n";
  return page;
}

std::string overview() {
  std::string page = summary() + "\n## What to read first\n\n";
  for (const std::string& id : first_claims_to_read()) {
    const claim& c = claim_named(id);
    page += "- *" + escaped(c.statement) + "* **" + std::string(name_of(c.verdict)) + "**: " + escaped(c.conditions) + " ([" +
            id + "](" + page_named(c.subject) + "#" + id + ")).\n";
  }
  page += "\n## The documents\n\n| document | what | sentences |\n| --- | --- | ---: |\n";
  for (const claim_document& d : claim_documents())
    page += "| " + d.id + " | " + escaped(d.what) + " | " + std::to_string(d.sentences) + " |\n";
  page +=
      "\n`deltaproof explain ID` evaluates a row's evidence and prints its values. Theorems stand in [the index of the "
      "proofs](../proofs/README.md), findings in the page of their study, rows in [src/claims](../src/claims). Numbers behind a "
      "document count its "
      "sentences, as src/claims/sentences.py numbers them.\n\n## Every claim\n\n| claim | verdict | restated |\n| --- | --- | "
      "--- "
      "|\n";
  for (const claim& c : claims())
    page += "| [" + c.id + "](" + page_named(c.subject) + "#" + c.id + ") | " + std::string(name_of(c.verdict)) + " | " +
            escaped(c.statement) + " |\n";
  page += "\n## Systems that are named\n\n| system | in code | what, or why not |\n| --- | --- | --- |\n";
  for (const named_system& s : named_systems())
    page += "| " + escaped(s.name) + " | " + (s.code.empty() ? "excluded" : "[" + s.code + "](../" + s.code + ")") + " | " +
            escaped(s.reason) + " |\n";
  return page +
         "\n## What is not claimed\n\n- That a verdict on a sentence is one on the work it reports: only what is written is "
         "judged.\n"
         "- Anything of trained models: nothing here was trained.\n"
         "- That the restatements are the only reading of a sentence; the conditions name the reading that was tested.\n"
         "- That a rival is the only way for a verdict to be wrong.\n\nMade by `build/release/deltaproof report -o reports`.\n";
}

}  // namespace

std::map<std::string, std::string> claims_pages() {
  std::map<std::string, std::string> pages{{"claims.md", overview()}};
  for (const claim_subject& s : claim_subjects()) pages[page_named(s.name)] = subject_page(s);
  return pages;
}

}  // namespace deltaproof
