// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can go over the ledger: every checkable claim of the source documents, restated, with a
// verdict, its conditions and its evidence. The rows are data, src/claims/SUBJECT.toml: evidence is a theorem by its
// conclusion, named values of a check that is evaluated here, of a study's finding, or as the source prints them, each
// with the band that it must lie in and its rival, what it would be if the verdict were wrong. A test holds the bands to
// the values and sees them refuse the rivals, so that no verdict stands on its author's word.
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

/// Sentences first ... last of a document, as src/claims/sentences.py numbers them from 1.
struct sentence_range {
  std::string document;
  std::size_t first;
  std::size_t last;
};

/// A source document; `file` begins with what its name begins with, `sha256` is that of its bytes.
struct claim_document {
  std::string id;
  std::string file;
  std::string sha256;
  std::size_t sentences;
  std::string what;
  std::vector<sentence_range> nothing;  ///< headings, navigation, questions, protocol, notation, taste: nothing to check
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

/// What was evaluated, by name. Beside a number `x` of an enclosure stands `x_radius`.
using claim_values = std::map<std::string, cell>;

/// What must hold of a value, or of (value − minus) / over, and what that would be if the verdict were wrong.
struct claim_band {
  std::string value;
  std::string over;            ///< the value to divide by; empty: none
  std::optional<cell> equals;  ///< exactly this
  std::optional<double> min;   ///< or at least this, with all of its radius
  std::optional<double> max;   ///< and at most this
  cell rival;
  std::string rival_is;    ///< where the rival comes from; of a negation nothing
  std::string minus = {};  ///< the value to take off first; empty: none
};
/// Throws: domain_error if there is no value of that name and type.
[[nodiscard]] bool holds(const claim_band&, const claim_values&);
/// The same band of the rival.
[[nodiscard]] bool holds_of_rival(const claim_band&);
/// "x / y in [1.9, 2.1], not 1 (of an empty state)".
[[nodiscard]] std::string text_of(const claim_band&);

/// How evidence decides, the strongest first.
enum class claim_method { proof, exact_check, enclosure, measurement };
[[nodiscard]] std::string_view name_of(claim_method);

/// A function of src/claims/checks; `n` cases from `seed` where it draws them.
struct claim_check {
  std::string_view name;
  claim_method method;
  claim_values (*evaluate)();
  std::uint64_t n = 0;
  std::uint64_t seed = 0;
};
[[nodiscard]] std::span<const claim_check> claim_checks();

enum class claim_evidence_kind {
  theorem,  ///< by its conclusion, which the band `concludes` compares with the committed statement
  check,    ///< a claim_check
  finding,  ///< of a study's report, reports/STUDY.json
  quotes,   ///< numbers that the source prints
};
[[nodiscard]] std::string_view name_of(claim_evidence_kind);

struct claim_evidence {
  claim_evidence_kind kind;
  std::string name;     ///< of a theorem, a check or a finding
  std::string study;    ///< of a finding
  std::string because;  ///< what is evaluated
  claim_values quotes;  ///< as the source prints them; beside a check or a finding too
  std::vector<claim_band> bands;
};

/// A number in a row's conditions and the value that it quotes: it is the value rounded to the digits that are shown.
struct claim_quote {
  std::string value;
  std::string shown;
};

struct claim {
  std::string id;  ///< lower case letters, digits, '-'
  std::string subject;
  std::vector<sentence_range> sentences;
  claim_kind kind;
  claim_verdict verdict;
  std::string statement;                 ///< restated
  std::string conditions;                ///< and formats; of what is not testable, the reason. Never empty
  std::vector<claim_quote> quoted;       ///< the numbers of `conditions` that are values of the evidence
  std::vector<claim_evidence> evidence;  ///< empty only for what is not testable
};

struct claim_subject {
  std::string name;  ///< of src/claims/NAME.toml and of the page claims-NAME.md
  std::string title;
};

/// A system that the documents or the project's own list name: where it is in code, or why it is not.
struct named_system {
  std::string name;
  std::string code;    ///< a path of the repository; empty: excluded
  std::string reason;  ///< what stands there, or why it is left out
};

[[nodiscard]] std::span<const claim_document> claim_documents();
[[nodiscard]] std::span<const claim_subject> claim_subjects();
/// Every claim, in the order of the documents' subjects.
[[nodiscard]] std::span<const claim> claims();
/// Throws: domain_error naming a claim that resembles it.
[[nodiscard]] const claim& claim_named(std::string_view id);
[[nodiscard]] std::span<const named_system> named_systems();
/// What a reader who knows the field may not expect: ids of claims.
[[nodiscard]] std::span<const std::string> first_claims_to_read();

/// "blog-zh, blog-en": the documents of a claim.
[[nodiscard]] std::string sources_of(const claim&);
/// "blog-en 11; recall 5": the sentences that make a claim.
[[nodiscard]] std::string sentences_of(const claim&);
/// "theorem algebra.wy.wy_state", "finding wy: counts-are-polynomials", "exact check two_forms".
[[nodiscard]] std::string title_of(const claim_evidence&);
/// The test that evaluates it, as ctest names it.
[[nodiscard]] std::string test_of(const claim&);

/// Where values that are not computed here come from; nothing where there is no such file.
struct claim_sources {
  /// The statement of a theorem as Coq printed it. Throws if its theory lacks it.
  std::function<std::optional<std::string>(std::string_view theorem)> statement;
  /// A finding of a study's report. Throws if the report lacks it.
  std::function<std::optional<finding>(std::string_view study, std::string_view finding)> finding_of;
};

/// Findings from `<study>.json` in `reports`, statements from `<theory>.txt` in `statements` (proofs/audit/statements).
[[nodiscard]] claim_sources files_of_claims(const std::string& reports, const std::string& statements);

/// What a printed statement says where its premises hold: behind its quantifiers and arrows.
[[nodiscard]] std::string conclusion_of(std::string_view statement);

/// The values of one piece of evidence; nothing where its file is awaited.
[[nodiscard]] std::optional<claim_values> evaluate(const claim_evidence&, const claim_sources&);
/// How it decides; of a finding by the kind that its report gives it.
[[nodiscard]] claim_method method_of(const claim_evidence&, const claim_sources&);

/// The pages of a report by file name: claims.md, which answers and leads on, and claims-SUBJECT.md.
[[nodiscard]] std::map<std::string, std::string> claims_pages();

}  // namespace deltaproof
