// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/report.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <set>

#include "deltaproof/support/errors.hpp"

namespace deltaproof {
namespace {

constexpr std::array<std::string_view, 6> kind_names{"proved", "exhaustive", "worst_found", "sampled", "certified", "measured"};

bool is_slug(std::string_view id) {
  return !id.empty() &&
         std::all_of(id.begin(), id.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

void demand(bool ok, const report& r, const std::string& what) {
  if (!ok) throw domain_error("report '" + r.study + "': " + what);
}

void demand_id(const report& r, std::set<std::string>& seen, const char* kind, const std::string& id) {
  demand(is_slug(id), r, std::string(kind) + " '" + id + "': an id has lower case letters, digits and '-' only");
  demand(seen.insert(id).second, r, std::string(kind) + " '" + id + "' occurs twice; give each its own id");
}

}  // namespace

std::string_view name_of(evidence_kind kind) { return kind_names.at(static_cast<std::size_t>(kind)); }

std::string number(double value, int digits) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, std::clamp(digits, 1, 40))
          .ptr;
  std::string text(buffer.data(), end);
  // "1e-07" reads as 1e-7, "1e+20" as 1e20.
  if (const std::size_t e = text.find('e'); e != std::string::npos) {
    const bool negative = text[e + 1] == '-';
    const std::size_t first = std::min(text.find_first_not_of('0', e + 2), text.size() - 1);
    text = text.substr(0, e + 1) + (negative ? "-" : "") + text.substr(first);
  }
  return text;
}

std::string count(std::uint64_t value) {
  std::string text = std::to_string(value);
  if (text.size() < 5) return text;
  for (std::size_t at = text.size() - 3; at > 0; at = at > 3 ? at - 3 : 0) text.insert(at, "\u2009");
  return text;
}

std::string cell::text(int digits) const {
  if (const auto* b = std::get_if<bool>(&value_)) return *b ? "yes" : "no";
  if (const auto* i = std::get_if<std::int64_t>(&value_)) {
    return *i < 0 ? "-" + count(~static_cast<std::uint64_t>(*i) + 1) : count(static_cast<std::uint64_t>(*i));
  }
  if (const auto* u = std::get_if<std::uint64_t>(&value_)) return count(*u);
  if (const auto* d = std::get_if<double>(&value_)) return number(*d, digits);
  return std::get<std::string>(value_);
}

bool operator==(const cell& a, const cell& b) {
  const auto* x = std::get_if<double>(&a.value_);
  const auto* y = std::get_if<double>(&b.value_);
  if (x == nullptr || y == nullptr) return a.value_ == b.value_;
  if (std::isnan(*x) || std::isnan(*y)) return std::isnan(*x) && std::isnan(*y);
  return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y);
}

void validate(const report& r) {
  demand(is_slug(r.study), r, "a study's name has lower case letters, digits and '-' only");
  demand(!r.question.empty() && r.question.back() == '?', r, "its question must be one sentence that ends with '?'");
  demand(!r.answer.empty(), r, "it has no answer; write what the findings answer to its question");
  demand(!r.not_claimed.empty(), r, "say what is not claimed, at least one sentence");
  std::set<std::string> findings;
  for (const finding& f : r.findings) {
    demand_id(r, findings, "finding", f.id);
    demand(!f.statement.empty(), r, "finding '" + f.id + "' states nothing");
    demand(!f.because.empty(), r, "finding '" + f.id + "' has no reason; name the theorem, check or measurement");
    const bool counted = f.kind.kind == evidence_kind::exhaustive || f.kind.kind == evidence_kind::worst_found ||
                         f.kind.kind == evidence_kind::sampled;
    demand(!counted || f.kind.n > 0, r,
           "finding '" + f.id + "' is " + std::string(name_of(f.kind.kind)) + " over 0 cases; give n");
    demand(f.kind.kind != evidence_kind::sampled || !f.kind.spread.empty(), r,
           "finding '" + f.id + "' is sampled; give its spread");
  }
  std::set<std::string> tables;
  for (const table& t : r.tables) {
    demand_id(r, tables, "table", t.id);
    demand(!t.title.empty() && !t.columns.empty(), r, "table '" + t.id + "' needs a title and columns");
    for (const auto& row : t.rows) {
      demand(
          row.size() == t.columns.size(), r,
          "table '" + t.id + "' has " + std::to_string(t.columns.size()) + " columns and a row of " + std::to_string(row.size()));
    }
  }
  std::set<std::string> figures;
  for (const figure& f : r.figures) {
    demand_id(r, figures, "figure", f.id);
    demand(!f.title.empty() && !f.caption.empty() && !f.alt.empty(), r,
           "figure '" + f.id + "' needs a title, a caption and an alternative text");
  }
}

}  // namespace deltaproof
