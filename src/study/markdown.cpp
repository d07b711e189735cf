// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/markdown.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "support/printable.hpp"

namespace deltaproof {
namespace {

std::string evidence_text(const evidence& e) {
  switch (e.kind) {
    case evidence_kind::proved:
      return e.theorem.empty() ? "proved on paper" : "proved: `" + e.theorem + "`";
    case evidence_kind::exhaustive:
      return "exhaustive, " + count(e.n) + " cases";
    case evidence_kind::worst_found:
      return "worst found of " + count(e.n) + ", seed " + std::to_string(e.seed);
    case evidence_kind::sampled:
      return "sampled, n = " + count(e.n) + ", seed " + std::to_string(e.seed) + ", " + e.spread;
    case evidence_kind::certified:
      return "certified";
    case evidence_kind::measured:
      return "measured";
  }
  return {};
}

// Prose is Markdown already; inside a table only the table's own signs matter.
std::string in_table(const std::string& prose) {
  std::string out;
  for (const char c : prose) {
    if (c == '|')
      out += "\\|";
    else if (c == '\n')
      out += ' ';
    else
      out += c;
  }
  return out;
}

std::string table_text(const table& t) {
  std::string out = "| ";
  for (std::size_t i = 0; i < t.columns.size(); ++i) out += (i > 0 ? " | " : "") + detail::escaped(t.columns[i].name);
  out += " |\n|";
  for (std::size_t i = 0; i < t.columns.size(); ++i) {
    const bool right =
        !t.rows.empty() && std::any_of(t.rows.begin(), t.rows.end(), [i](const auto& row) { return row[i].is_number(); });
    out += right ? " ---: |" : " --- |";
  }
  out += "\n";
  for (const auto& row : t.rows) {
    out += "|";
    for (std::size_t i = 0; i < row.size(); ++i) out += " " + detail::escaped(row[i].text(t.columns[i].digits)) + " |";
    out += "\n";
  }
  return out;
}

std::string list_text(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += "- " + in_table(item) + "\n";
  return out;
}

}  // namespace

std::string detail::escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\n' || c == '\r') {
      out += ' ';
      continue;
    }
    if (std::string_view("\\`*_[]<>|#~$").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string detail::power_of_ten(int exponent) {
  constexpr std::array<std::string_view, 10> raised{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char c : std::to_string(std::abs(exponent))) text += raised[static_cast<std::size_t>(c - '0')];
  return text;
}

std::string detail::title_of(const report& r) {
  std::string title = r.study;
  std::replace(title.begin(), title.end(), '-', ' ');
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

std::string to_markdown(const report& r) {
  std::string out = "# " + detail::title_of(r) + "\n\n**" + r.question + "**\n\n" + r.answer + "\n";
  if (!r.unfinished.empty()) out += "\n## Left out of this run\n\n" + list_text(r.unfinished);
  if (!r.findings.empty()) {
    out += "\n## Findings\n\n| | Finding | Kind | Because |\n| --- | --- | --- | --- |\n";
    for (const finding& f : r.findings) {
      out += "| `" + f.id + "` | " + in_table(f.statement) + " | " + in_table(evidence_text(f.kind)) + " | " +
             in_table(f.because) + (f.replay.empty() ? "" : " (again: `" + in_table(f.replay) + "`)") + " |\n";
    }
  }
  if (!r.figures.empty()) out += "\n## Figures\n";
  for (const figure& f : r.figures) {
    out += "\n### " + detail::escaped(f.title) + "\n\n![" + detail::escaped(f.alt) + "](" + r.study + "-" + f.id + ".svg)\n\n" +
           f.caption + "\n";
  }
  if (!r.tables.empty()) out += "\n## Tables\n";
  for (const table& t : r.tables) {
    out += "\n### " + detail::escaped(t.title) + "\n\n" + table_text(t);
    if (!t.note.empty()) out += "\n" + t.note + "\n";
  }
  if (!r.method.empty()) out += "\n## How it was done\n\n" + r.method + "\n";
  if (!r.parameters.empty()) {
    out += "\nParameters: ";
    bool first = true;
    for (const auto& [name, value] : r.parameters) {
      const auto* text = std::get_if<std::string>(&value.value());
      std::string shown = text != nullptr ? *text : value.text(17);
      for (std::size_t at = 0; (at = shown.find("\u2009")) != std::string::npos;) shown.erase(at, 3);
      out += (first ? "" : ", ") + detail::escaped(name) + " = " + detail::escaped(shown);
      first = false;
    }
    out += ".\n";
  }
  out += "\n## What is not claimed\n\n" + list_text(r.not_claimed);
  out += "\nMade by `" + r.command + "`. In full precision: [" + r.study + ".json](" + r.study + ".json).\n";
  return detail::printable(out);
}

}  // namespace deltaproof
