// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <utility>

#include "deltaproof/study/claim.hpp"
#include "study/markdown.hpp"

namespace deltaproof {
namespace {

/// Verdicts in the order of the page, what is surprising first, each with its heading.
constexpr std::array<std::pair<claim_verdict, std::string_view>, 8> sections{{
    {claim_verdict::refuted, "Refuted"},
    {claim_verdict::artefact, "Artefacts: the number does not mean what is said"},
    {claim_verdict::contradiction, "Sentences that contradict each other"},
    {claim_verdict::misprint, "Misprints"},
    {claim_verdict::fails_in_format, "True of real numbers, not in a format"},
    {claim_verdict::conditional, "Holds under a condition"},
    {claim_verdict::holds, "Holds"},
    {claim_verdict::not_testable, "Not testable here"},
}};

/// Rows from which one learns most, of each document one or two.
constexpr std::array<std::string_view, 6> first_read{"explosion-is-low-accuracy", "eta-must-stay-below-one",
                                                     "doubling-intermediates",    "normalised-errors",
                                                     "exponential-is-not-linear", "linear-attention-loses-identity"};

std::string evidence_text(const claim_evidence& e) {
  switch (e.kind) {
    case claim_evidence_kind::theorem:
      return "theorem `" + std::string(e.name) + "`";
    case claim_evidence_kind::finding:
      return "finding `" + std::string(e.name) + "` of [" + std::string(e.study) + "](" + std::string(e.study) +
             ".md): " + detail::escaped(e.because);
    default:
      return title_of(e) + ": " + detail::escaped(e.because);
  }
}

std::string evidence_cell(const claim& c) {
  std::string text;
  for (const claim_evidence& e : c.evidence) text += (text.empty() ? "" : "; ") + evidence_text(e);
  return text;
}

void add_section(std::string& page, claim_verdict verdict, std::string_view heading) {
  const auto here = [verdict](const claim& c) { return c.verdict == verdict; };
  if (std::none_of(claims().begin(), claims().end(), here)) return;
  const bool tested = verdict != claim_verdict::not_testable;
  page += "\n## " + std::string(heading) + "\n\n| id | claim | kind; sentences | ";
  page += tested ? "conditions and formats | evidence |\n| --- | --- | --- | --- | --- |\n"
                 : "why not |\n| --- | --- | --- | --- |\n";
  for (const claim& c : claims()) {
    if (!here(c)) continue;
    page += "| `" + std::string(c.id) + "` | " + detail::escaped(c.statement) + " | " + std::string(name_of(c.kind)) + "; " +
            sentences_of(c) + " | " + detail::escaped(c.conditions) + " |" + (tested ? " " + evidence_cell(c) + " |" : "") + "\n";
  }
}

}  // namespace

std::span<const std::string_view> first_claims_to_read() { return first_read; }

std::string claims_markdown() {
  std::string page =
      "# The claims on trial\n\nEvery sentence of five source documents that states something checkable has its row here: "
      "restated, judged, with the "
      "evidence that a test evaluates again.\n\n| verdict | claims |\n| --- | ---: |\n";
  for (const auto& [verdict, heading] : sections) {
    const auto n = std::count_if(claims().begin(), claims().end(), [&, v = verdict](const claim& c) { return c.verdict == v; });
    page += "| " + std::string(heading) + " (`" + std::string(name_of(verdict)) + "`) | " + std::to_string(n) + " |\n";
  }
  page += "| all | " + std::to_string(claims().size()) + " |\n\n| document | what | sentences |\n| --- | --- | ---: |\n";
  for (const claim_document& d : claim_documents()) {
    page += "| " + std::string(d.id) + " | " + detail::escaped(d.what) + " | " + std::to_string(d.sentences) + " |\n";
  }
  page +=
      "\n`deltaproof explain ID` evaluates a row's checks and prints their values. Theorems stand in [the index of the "
      "proofs](../proofs/README.md), "
      "findings in the page of their study. Numbers behind a document count its sentences, as src/claims/sentences.cpp cuts "
      "them; the whole map is [src/claims/seed_map.inc](../src/claims/seed_map.inc).\n";
  page += "\n## What to read first\n\n";
  for (const std::string_view id : first_read) {
    const claim& c = claim_named(id);
    page += "- *" + detail::escaped(c.statement) + "* **" + std::string(name_of(c.verdict)) +
            "**: " + detail::escaped(c.conditions) + " (`" + std::string(id) + "`).\n";
  }
  for (const auto& [verdict, heading] : sections) add_section(page, verdict, heading);
  page += "\n## Systems that are named\n\n| system | in code | what, or why not |\n| --- | --- | --- |\n";
  for (const named_system& s : named_systems()) {
    const std::string code(s.code);
    page += "| " + detail::escaped(s.name) + " | " + (code.empty() ? "excluded" : "[" + code + "](../" + code + ")") + " | " +
            detail::escaped(s.reason) + " |\n";
  }
  page +=
      "\n## What is not claimed\n\n- That a verdict on a sentence is one on the work it reports: only what is written is "
      "judged.\n"
      "- Anything of trained models: nothing here was trained.\n"
      "- That the restatements are the only reading of a sentence; the conditions name the reading that was tested.\n"
      "\nMade by `build/release/deltaproof report -o reports`.\n";
  return page;
}

}  // namespace deltaproof
