// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can go over the ledger: every checkable claim of the source documents, restated, with a
// verdict, its conditions and its evidence. Evidence is a theorem, a check that is evaluated here, or a finding of a
// study; in each, what is evaluated (values) and what must hold of it (a predicate) are two things, so that a test can
// negate the second and see the first refuse it. It exists so that no verdict stands on its author's word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/study/report.hpp"

namespace deltaproof {

/// A source document; `file` begins with what its name begins with, `sha256` is that of its bytes.
struct claim_document {
  std::string_view id;  ///< as claims and the seed map name it
  std::string_view file;
  std::string_view sha256;
  std::size_t sentences;  ///< by claim_detail::sentences (src/claims/sentences.hpp)
  std::string_view what;
};

enum class claim_kind {
  identity,    ///< two expressions are equal
  bound,       ///< a quantity stays within a range
  definition,  ///< what a word or a symbol stands for
  algorithm,   ///< what a computation does on its way, as opposed to its result
  experiment,  ///< a number that was measured
  conclusion,  ///< what is inferred from numbers or formulas
  practice,    ///< what models or papers do
  misprint,
  contradiction,  ///< two sentences that cannot both hold
};
[[nodiscard]] std::string_view name_of(claim_kind);

enum class claim_verdict {
  holds,
  conditional,      ///< under the conditions that the row names
  fails_in_format,  ///< true of real numbers, not of the formats that the row names
  artefact,         ///< what makes the number does not mean what is said
  refuted,
  misprint,
  contradiction,
  not_testable,  ///< not by what this project can run; the row says why
};
[[nodiscard]] std::string_view name_of(claim_verdict);

/// What was evaluated: the values of a finding, or of a check.
using claim_values = std::map<std::string, cell>;
using claim_predicate = bool (*)(const claim_values&);

/// A value by name. Throws: domain_error if there is none of that name and type.
[[nodiscard]] double number_at(const claim_values&, const std::string& name);
[[nodiscard]] bool truth_at(const claim_values&, const std::string& name);
[[nodiscard]] std::string text_at(const claim_values&, const std::string& name);

enum class claim_evidence_kind {
  theorem,      ///< in the index of proofs/README.md; its value `indexed` is that it stands there
  exact_check,  ///< decided in rationals, integers or the exact operations of a format
  certified,    ///< computed with more digits than the predicate's margin needs
  sampled,      ///< from `n` random cases, `seed`
  finding,      ///< of a study's report, reports/STUDY.json
};
[[nodiscard]] std::string_view name_of(claim_evidence_kind);

struct claim_evidence {
  claim_evidence_kind kind;
  std::string_view name;     ///< of a theorem: its path; of a finding: its id; else empty
  std::string_view study;    ///< of a finding
  std::string_view because;  ///< what is evaluated and what must hold
  std::uint64_t n = 0;
  std::uint64_t seed = 0;
  claim_values (*evaluate)() = nullptr;  ///< of a check
  claim_predicate holds = nullptr;
};

struct claim {
  std::string_view id;  ///< lower case letters, digits, '-'
  unsigned sources;     ///< bit i: document i of claim_documents()
  claim_kind kind;
  claim_verdict verdict;
  std::string_view statement;            ///< restated
  std::string_view conditions;           ///< and formats; of what is not testable, the reason. Never empty
  std::vector<claim_evidence> evidence;  ///< empty only for what is not testable
};

/// A system that the documents or the project's own list name: where it is in code, or why it is not.
struct named_system {
  std::string_view name;
  std::string_view code;    ///< a path of the repository; empty: excluded
  std::string_view reason;  ///< what stands there, or why it is left out
};

[[nodiscard]] std::span<const claim_document> claim_documents();
/// Every claim, in the order of the documents' subjects.
[[nodiscard]] std::span<const claim> claims();
/// Throws: domain_error naming a claim that resembles it.
[[nodiscard]] const claim& claim_named(std::string_view id);
[[nodiscard]] std::span<const named_system> named_systems();
/// What a reader who knows the field may not expect: ids of claims.
[[nodiscard]] std::span<const std::string_view> first_claims_to_read();

/// A row of the map from sentences to claims (src/claims/seed_map.inc): sentences first ... last of a document make these
/// claims; none: nothing that could be checked (headings, navigation, questions, protocol, notation, taste).
struct mapped_sentences {
  std::string_view document;
  std::size_t first;
  std::size_t last;
  std::vector<std::string_view> claims;
};
/// Throws: format_error naming the line that is no row.
[[nodiscard]] std::span<const mapped_sentences> seed_map();

/// "blog-zh, blog-en": the documents of a claim.
[[nodiscard]] std::string sources_of(const claim&);
/// "blog-en 11; recall 5": the sentences that make a claim.
[[nodiscard]] std::string sentences_of(const claim&);
/// "theorem algebra.wy.wy_state", "finding wy: counts-are-polynomials", "exact check".
[[nodiscard]] std::string title_of(const claim_evidence&);
/// The test that evaluates it, as ctest names it.
[[nodiscard]] std::string test_of(const claim&);

/// Where values that are not computed here come from.
struct claim_sources {
  std::function<bool(std::string_view theorem)> indexed;
  /// The values of a finding; nothing where there is no report of that study. Throws if the report lacks the finding.
  std::function<std::optional<claim_values>(std::string_view study, std::string_view finding)> finding;
};

/// Findings from `<study>.json` in `reports`, theorems from the rows of `index` (proofs/README.md).
[[nodiscard]] claim_sources files_of_claims(const std::string& reports, const std::string& index);

/// The values of one piece of evidence; nothing where its report is awaited.
[[nodiscard]] std::optional<claim_values> evaluate(const claim_evidence&, const claim_sources&);

enum class evidence_state { green, red, awaited };
/// Green if the predicate holds of the values, or, `negated`, if it does not.
[[nodiscard]] evidence_state assess(const claim_evidence&, const std::optional<claim_values>&, bool negated = false);

/// The page `claims.md` of a report: a summary, the claims by verdict, the named systems. Reads: nothing but the checks.
[[nodiscard]] std::string claims_markdown();

}  // namespace deltaproof
