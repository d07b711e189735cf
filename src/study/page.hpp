// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The words of a study as its page.md declares them, before any value is known: prose with placeholders, findings, and the tables
// and figures of fenced TOML blocks. src/studies/README.md says how a page is written.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/study/report.hpp"

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
  prose from;                    ///< the group of values; empty: its id
  prose values;                  ///< which values of the group it carries; empty: all
  std::vector<prose> expects;
};

struct page_column {
  std::string name;  ///< of the frame's column
  std::size_t line = 0;
  prose title;
  int digits = 4;
  double scale = 1;
  prose text;  ///< a template of the row instead of the value
  prose missing;
  word_list words;
  std::vector<std::string> across;  ///< one column for each combination of these, titled by each
};

struct page_table {
  std::string id;
  std::size_t line = 0;
  prose title, data, note;
  std::vector<page_column> columns;
  std::vector<prose> where, expects;
};

struct page_axis {
  prose label;
  axis_scale scale = axis_scale::linear;
  prose minimum, maximum;  ///< a number, or the name of a value
  std::vector<double> ticks;
};

struct page_curve {
  std::size_t line = 0;
  prose data, label;
  std::string x, y, y_upper;
  std::vector<std::string> by;  ///< one curve for each combination of these
  double x_scale = 1, y_scale = 1;
  series_style style = series_style::line;
  std::vector<prose> where;
};

struct page_mark {
  mark_direction direction = mark_direction::horizontal;
  prose at, label, data;  ///< a number or the name of a value; with data: one mark for each row
  std::vector<prose> where;
};

struct page_heat {
  std::size_t line = 0;
  prose data, label, minimum, maximum, middle;
  std::string row, column, value;
  axis_scale scale = axis_scale::linear;
  int digits = 0;
  bool named = true;
  std::vector<prose> where;
};

struct page_panel {
  std::size_t line = 0;
  prose title, data;
  std::vector<std::string> each;  ///< one panel for each combination of these columns of `data`
  std::vector<prose> where;       ///< of the rows of `data` that make panels
  page_axis x, y;
  std::vector<page_curve> curves;
  std::vector<page_mark> marks;
  std::optional<page_heat> heat;
  bool tall = false;
};

struct page_figure {
  std::string id;
  std::size_t line = 0;
  prose title, caption, alt;
  std::vector<page_panel> panels;
  std::size_t columns = 0;
  bool shared_x = false, shared_y = false;
  std::vector<prose> expects;
};

struct page {
  std::string file;  ///< how errors call it
  prose question, answer, method;
  std::vector<prose> expects;  ///< of the answer
  std::vector<page_finding> findings;
  std::vector<page_table> tables;
  std::vector<page_figure> figures;
  std::vector<prose> not_claimed;
  std::map<std::string, cell, std::less<>> constants;
  std::map<std::string, word_list, std::less<>> words;  ///< by column
  std::map<std::string, prose, std::less<>> left_out;   ///< by the part that a run left out

  /// Every piece of text that a reader reads.
  [[nodiscard]] std::vector<prose> texts() const;
};

/// Throws: format_error naming file and line.
[[nodiscard]] page read_page(std::string_view file, std::string_view text);
/// Adds a fenced block: kind "table", "figure", "constants" or "words", its id, the line of its first line of TOML.
void read_block(page& p, std::string_view kind, const std::string& id, const std::string& toml_text, std::size_t first_line);
/// Throws: format_error "file:line: what".
[[noreturn]] void page_fails(std::string_view file, std::size_t line, const std::string& what);

}  // namespace deltaproof::detail
