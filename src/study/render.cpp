// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/render.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

namespace deltaproof::detail {
namespace {

std::string sentence_of(const unfinished_part& part) {
  if (!part.why.empty()) return part.name + ": " + part.why;
  return part.all == 0 ? part.name + ": interrupted before it was begun."
                       : part.name + ": interrupted after " + count(part.done) + " of " + count(part.all) + " cases.";
}

class renderer {
 public:
  renderer(const page& p, const results& r) : page_(p), results_(r), top_(p, r, &report_.failed) {}

  report run() {
    report_.question = top_.fill(page_.question);
    whole([&] {
      const std::string said = top_.fill(page_.answer);
      report_.answer = said + unmet(page_.expects, "the answer", top_);
    });
    if (report_.answer.empty()) report_.answer = "The run was interrupted before its answer was computed.";
    whole([&] { report_.method = top_.fill(page_.method); });
    for (const page_finding& f : page_.findings) whole([&] { add(f); });
    for (const page_block& b : page_.tables) {
      whole([&] {
        toml_section block(page_.file, b.toml, b.line, "table '" + b.id + "'");
        const std::vector<prose> expects = block.texts("expect");
        table made = table_of(block, b.id, top_);
        made.note += unmet(expects, "table " + b.id, top_);
        report_.tables.push_back(std::move(made));
      });
    }
    for (const page_block& b : page_.figures) {
      whole([&] {
        toml_section block(page_.file, b.toml, b.line, "figure '" + b.id + "'");
        const std::vector<prose> expects = block.texts("expect");
        figure made = figure_of(block, b.id, top_);
        made.caption += unmet(expects, "figure " + b.id, top_);
        report_.figures.push_back(std::move(made));
      });
    }
    for (const prose& one : page_.not_claimed) whole([&] { report_.not_claimed.push_back(top_.fill(one)); });
    for (const unfinished_part& part : results_.unfinished) report_.unfinished.push_back(sentence_of(part));
    report_.parameters = results_.parameters;
    return std::move(report_);
  }

 private:
  /// Makes one piece of the report. Of an interrupted run it may lack values; then it is left out.
  template <class Make>
  void whole(Make&& make) {
    try {
      make();
    } catch (const missing_value&) {
      if (results_.unfinished.empty()) throw;
    }
  }
  /// What of a page's expectations the values do not keep: for the page at that place; the report lists it too.
  std::string unmet(const std::vector<prose>& expects, const std::string& where, const scope& around) {
    std::string here;
    for (const prose& one : expects) {
      const auto seen = around.failure(one);
      if (!seen) continue;
      const std::string said = "expected " + one.text + "; " + (seen->empty() ? "it is not" : *seen);
      here += " **Not so: " + said + ".**";
      report_.failed.push_back(page_.file + ":" + std::to_string(one.line) + ": " + where + ": " + said);
    }
    return here;
  }

  /// Those that `values:` names; all of the group where it names none.
  std::map<std::string, cell> values_of(const page_finding& f, const scope& here) const {
    const auto group = results_.groups.find(f.id);
    if (group == results_.groups.end()) return {};
    if (f.values.empty()) return group->second.values;
    std::map<std::string, cell> kept;
    std::istringstream names(f.values.text);
    for (std::string name; std::getline(names, name, ',');) {
      name.erase(0, name.find_first_not_of(" \n"));
      name.erase(name.find_last_not_of(" \n") + 1);
      kept[name] = here.value_of(name, f.values.line);
    }
    return kept;
  }

  void add(const page_finding& f) {
    const scope here = top_.in_group(f.id);
    const auto group = results_.groups.find(f.id);
    if (group == results_.groups.end() && !f.theorem) {
      throw missing_value(page_.file + ":" + std::to_string(f.line) + ": finding '" + f.id +
                          "' has no values: the study gives no group '" + f.id +
                          "'; write theorem: NAME under the finding, or give this group by results::values in study.cpp");
    }
    finding made{f.id,
                 here.fill(f.statement),
                 f.theorem ? evidence::proved(f.theorem->text) : group->second.kind,
                 values_of(f, here),
                 here.fill(f.because),
                 here.fill(f.replay)};
    if (!f.spread.empty()) made.kind.spread = here.fill(f.spread);
    made.statement += unmet(f.expects, "finding " + f.id, here);
    report_.findings.push_back(std::move(made));
  }

  const page& page_;
  const results& results_;
  report report_;
  scope top_;
};

/// A column of a table as its page describes it.
struct shown_column {
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

shown_column column_of(const toml_section& list, const std::string& key, const toml::node& value) {
  shown_column c;
  c.name = key;
  c.line = list.line_of(value);
  if (value.is_string()) {
    c.title = list.text_of(value, key);
    return c;
  }
  toml_section from = list.inner(value, key);
  c.title = from.text("title", true);
  if (const prose of = from.text("of"); !of.empty()) c.name = of.text;
  c.digits = static_cast<int>(from.number("digits", 4));
  c.scale = from.number("scale", 1);
  c.text = from.text("text");
  c.missing = from.text("missing");
  c.words = from.words("words");
  c.across = from.names("across");
  from.done();
  return c;
}

cell shown_cell(const shown_column& c, const scope& row, const cell& value) {
  const auto worded = [&](const std::string& text) -> std::optional<cell> {
    const auto word = c.words.find(text);
    return word == c.words.end() ? std::nullopt : std::optional<cell>(row.fill(word->second));
  };
  if (!c.text.empty()) {
    const auto text = row.fill_unless_missing(c.text);
    if (!text) return row.fill(c.missing);
    return worded(*text).value_or(*text);
  }
  if (is_missing(value)) return row.fill(c.missing);
  const std::string plain =
      std::holds_alternative<bool>(value.value()) ? (std::get<bool>(value.value()) ? "true" : "false") : value.text(17);
  if (auto word = worded(plain)) return *word;
  if (std::holds_alternative<std::string>(value.value())) return row.shown(c.name, value);
  return c.scale == 1 ? value : cell(c.scale * as_number(value));
}

/// The row of `rows` that has the values of both; nothing where there is none.
std::optional<std::size_t> row_with(const frame& rows, const frame& keys, std::size_t key, const frame& others,
                                    std::size_t other) {
  const auto agrees = [&](std::size_t i, const frame& f, std::size_t at) {
    return std::all_of(f.columns().begin(), f.columns().end(),
                       [&](const std::string& c) { return rows.at(i, c) == f.at(at, c); });
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (agrees(i, keys, key) && agrees(i, others, other)) return i;
  }
  return std::nullopt;
}

}  // namespace

frame chosen(const frame& rows, const std::vector<prose>& where, const scope& around) {
  if (where.empty()) return rows;
  frame result(rows.columns());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (around.on_row(rows, i).holds(where)) result.add(rows.rows()[i]);
  }
  return result;
}

frame combinations(const frame& rows, const std::vector<std::string>& columns) { return rows.by(columns, {}); }

table table_of(toml_section block, const std::string& id, const scope& around) {
  prose data = block.text("data");
  if (data.empty()) data = {id, block.line()};
  const std::vector<prose> where = block.texts("where");
  table made{id, around.fill(block.text("title", true)), {}, {}, around.fill(block.text("note"))};
  std::vector<shown_column> columns;
  if (const toml::node* const given = block.node("columns")) {
    const toml_section list = block.inner(*given, "columns");
    list.in_order([&](const auto& key, const toml::node& value) { columns.push_back(column_of(list, key, value)); });
  }
  block.done();
  const frame rows = chosen(around.frame_named(data), where, around);
  // With columns across, a row of the table is what the plain columns have in common.
  std::vector<std::string> keys;
  bool across = false;
  for (const shown_column& c : columns) {
    std::vector<std::string> drawn = c.across;
    if (c.text.empty()) drawn.push_back(c.name);
    for (const std::string& name : drawn) {
      if (!rows.has(name)) page_fails(around.words().file, c.line, "frame '" + data.text + "' has no column '" + name + "'");
    }
    across = across || !c.across.empty();
    const bool plain = c.across.empty() && c.text.empty();
    if (plain && std::find(keys.begin(), keys.end(), c.name) == keys.end()) keys.push_back(c.name);
  }
  std::sort(keys.begin(), keys.end());
  const frame lines = across ? combinations(rows, keys) : rows;
  made.rows.resize(lines.size());
  for (const shown_column& c : columns) {
    if (c.across.empty()) {
      made.columns.emplace_back(around.fill(c.title), c.digits);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const scope row = around.on_row(lines, i);
        made.rows[i].push_back(shown_cell(c, row, c.text.empty() ? lines.at(i, c.name) : cell()));
      }
      continue;
    }
    const frame heads = combinations(rows, c.across);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      made.columns.emplace_back(around.on_row(heads, h).fill(c.title), c.digits);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto at = row_with(rows, lines, i, heads, h);
        made.rows[i].push_back(!at ? cell(around.fill(c.missing))
                                   : shown_cell(c, around.on_row(rows, *at), c.text.empty() ? rows.at(*at, c.name) : cell()));
      }
    }
  }
  return made;
}

report rendered(const page& p, const results& r) { return renderer(p, r).run(); }

}  // namespace deltaproof::detail
