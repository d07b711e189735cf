// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can state what a study found (findings, each with the kind of its evidence
// and its reason; tables; figures; what is not claimed) and write it as Markdown, JSON and SVG.
// Numbers are kept as numbers; JSON holds doubles exactly (shortest decimal that reads back the same,
// "nan", "inf", "-inf" as strings, keys sorted, no times, no machine), so two machines can compare
// reports with ==; Markdown rounds them for reading. It exists so that a report is a program's output
// with one form, and a page, an index or a ledger is a view of the same data.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "deltaproof/study/figure.hpp"

namespace deltaproof {

/// A double for reading: `digits` significant digits, no trailing zeros, "1.25e-7", "nan", "inf".
[[nodiscard]] std::string number(double value, int digits = 4);
/// An integer for reading: groups of three, "100 000" (thin spaces), from five digits on.
[[nodiscard]] std::string count(std::uint64_t value);

/// One value of a table, a finding or a parameter: a truth value, an integer, a double or text. Exact
/// rationals are text ("17/16"). The texts "nan", "inf" and "-inf" read back from JSON as doubles.
class cell {
 public:
  using value_type = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;
  cell() : value_(std::string()) {}
  template <class T>
    requires std::same_as<T, bool>
  cell(T value) : value_(value) {}
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  cell(T value) : value_(from_integer(value)) {}
  template <std::floating_point T>
  cell(T value) : value_(static_cast<double>(value)) {}
  cell(std::string value) : value_(std::move(value)) {}
  cell(std::string_view value) : value_(std::string(value)) {}
  cell(const char* value) : value_(std::string(value)) {}

  [[nodiscard]] const value_type& value() const { return value_; }
  [[nodiscard]] bool is_number() const {
    return !std::holds_alternative<bool>(value_) && !std::holds_alternative<std::string>(value_);
  }
  /// The text a reader sees; doubles get `digits` significant digits.
  [[nodiscard]] std::string text(int digits = 4) const;
  /// Bit for bit, but every NaN equals every NaN.
  friend bool operator==(const cell&, const cell&);

 private:
  template <std::integral T>
  static value_type from_integer(T value) {
    if constexpr (std::is_unsigned_v<T>) {
      if (static_cast<std::uint64_t>(value) > static_cast<std::uint64_t>(INT64_MAX)) return static_cast<std::uint64_t>(value);
    }
    return static_cast<std::int64_t>(value);
  }
  value_type value_;
};

/// A column's head and the significant digits of its doubles.
struct column {
  column(std::string column_name, int column_digits = 4) : name(std::move(column_name)), digits(column_digits) {}
  column(const char* column_name) : name(column_name) {}
  std::string name;
  int digits = 4;
  friend bool operator==(const column&, const column&) = default;
};

struct table {
  std::string id;  ///< lower case letters, digits, '-'
  std::string title;
  std::vector<column> columns;
  std::vector<std::vector<cell>> rows;  ///< each as long as `columns`
  std::string note = {};                ///< beneath the table; Markdown
  friend bool operator==(const table&, const table&) = default;
};

enum class evidence_kind { proved, exhaustive, worst_found, sampled, certified, measured };
[[nodiscard]] std::string_view name_of(evidence_kind);

/// The kind of a finding and what belongs to it: every number of a finding is of this kind.
struct evidence {
  evidence_kind kind;
  std::uint64_t n = 0;       ///< cases looked at (exhaustive, worst_found, sampled)
  std::uint64_t seed = 0;    ///< where the cases come from (worst_found, sampled)
  std::string spread = {};   ///< of a sampled number: "standard deviation 0.02"
  std::string theorem = {};  ///< of what is proved: its name in the index of proofs/README.md; empty: no machine has checked it
  friend bool operator==(const evidence&, const evidence&) = default;

  /// True for all inputs; `because` says why, and the theorem, where there is one, has been checked by machine.
  static evidence proved(std::string theorem = {}) { return {evidence_kind::proved, 0, 0, {}, std::move(theorem)}; }
  /// All `n` cases were decided exactly.
  static evidence exhaustive(std::uint64_t n) { return {evidence_kind::exhaustive, n}; }
  /// The worst of `n` cases that were searched; a worse one may exist.
  static evidence worst_found(std::uint64_t n, std::uint64_t seed) { return {evidence_kind::worst_found, n, seed}; }
  /// An estimate from `n` random cases.
  static evidence sampled(std::uint64_t n, std::uint64_t seed, std::string spread) {
    return {evidence_kind::sampled, n, seed, std::move(spread), {}};
  }
  /// A computed value inside a rigorous enclosure; the values name the radius.
  static evidence certified() { return {evidence_kind::certified}; }
  /// Read off one deterministic run on stated input.
  static evidence measured() { return {evidence_kind::measured}; }
};

struct finding {
  std::string id;         ///< unique in the report: lower case letters, digits, '-'
  std::string statement;  ///< one or two sentences, chosen by the values; Markdown
  evidence kind;
  std::map<std::string, cell> values;  ///< what the sentence was chosen by
  std::string because;                 ///< the theorem, check or measurement; never empty
  std::string replay = {};             ///< command that makes this finding alone; empty: the report's
  friend bool operator==(const finding&, const finding&) = default;
};

struct report {
  std::string study;        ///< set by run_study
  std::string question;     ///< set by run_study
  std::string answer;       ///< Markdown
  std::string method = {};  ///< what was computed, how, on which input; Markdown
  std::vector<finding> findings = {};
  std::vector<table> tables = {};
  std::vector<figure> figures = {};
  std::vector<std::string> not_claimed = {};    ///< sentences; never empty
  std::vector<std::string> unfinished = {};     ///< what an interruption or missing input left out
  std::map<std::string, cell> parameters = {};  ///< run_study adds seed and mode
  std::vector<std::string> failed = {};         ///< what the page expects of the values and they are not; empty where all is well
  std::string command = {};                     ///< that makes it again; set by run_study
};

/// Throws domain_error naming the first thing a report lacks or has twice: answer, reasons, `not_claimed`,
/// well-formed unique ids, rectangular tables, figures with title, caption and alternative text.
void validate(const report&);

/// Schema `deltaproof.report/1`; indented, ends with a newline. Figures without their data points.
[[nodiscard]] std::string to_json(const report&);
/// The report of such a JSON; figures come back without panels.
/// Throws: format_error naming the key that is missing or has the wrong type.
[[nodiscard]] report report_from_json(std::string_view);

/// The page of a report: question, answer, findings, figures, tables, what is not claimed, the command.
[[nodiscard]] std::string to_markdown(const report&);

/// `<study>.json`, `<study>.md` and `<study>-<figure>.svg` in `directory` (made if missing), each
/// written beside its place and renamed, so that a reader never meets half a file. Figures of the same
/// study that are no longer in the report are removed. Throws: domain_error (see validate), format_error.
void write_report(const report&, const std::filesystem::path& directory);
/// `README.md` of a folder of reports, made from the JSON files that are there.
void write_index(const std::filesystem::path& directory);

}  // namespace deltaproof
