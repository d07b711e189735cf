// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The words of a study as its page.md declares them, before any value is known: prose with placeholders, findings, and the tables
// and figures of fenced TOML blocks. src/studies/README.md says how a page is written.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/study/report.hpp"
#include "deltaproof/study/study.hpp"
#include "support/toml.hpp"

namespace deltaproof::detail {

/// Text as it stands in the page, and the line at which it begins.
struct prose {
  std::string text;
  std::size_t line = 0;
  [[nodiscard]] bool empty() const { return text.empty(); }
};

/// What a cell's text is shown as, by that text.
using word_list = std::map<std::string, prose>;

struct page_finding {
  std::string id;
  std::size_t line = 0;
  prose statement, because, spread, replay;
  std::optional<prose> theorem;  ///< proved: its name, or nothing
  prose values;                  ///< which values of the group it carries; empty: all
  std::vector<prose> expects;
};

/// A table or a figure: TOML, which is read where it is rendered.
struct page_block {
  std::string id;
  std::size_t line = 0;  ///< of its first line
  toml::table toml;
};

struct page {
  std::string file;  ///< how errors call it
  prose question, answer, method;
  std::vector<prose> expects;  ///< of the answer
  std::vector<page_finding> findings;
  std::vector<page_block> tables, figures;
  std::vector<prose> not_claimed;
  std::map<std::string, cell, std::less<>> constants;
  std::map<std::string, word_list, std::less<>> words;  ///< by column

  /// Every piece of text that a reader reads, from the first line to the last.
  [[nodiscard]] std::vector<prose> texts() const;
};

/// Throws: format_error naming file and line.
[[nodiscard]] page read_page(std::string_view file, std::string_view text);
/// Throws: format_error "file:line: what".
[[noreturn]] void page_fails(std::string_view file, std::size_t line, const std::string& what);

// The table of studies and their pages that the build makes from src/studies (cmake/studies.cmake).
struct study_entry {
  const study* found;
  std::string_view page;  ///< the text of its page.md
};
[[nodiscard]] std::span<const study_entry> study_table();
/// The text of problem_report/page.md.
[[nodiscard]] std::string_view problem_report_page();

}  // namespace deltaproof::detail
