// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/render.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

namespace deltaproof::detail {
namespace {

/// What of a page's expectations the values do not keep: for the page at that place, and for the report's list.
struct broken {
  std::string here;
  std::vector<std::string> all;
};

broken unmet(const std::vector<prose>& expects, const std::string& where, const scope& around) {
  broken result;
  for (const prose& one : expects) {
    const auto seen = around.failure(one);
    if (!seen) continue;
    const std::string said = "expected " + one.text + "; " + (seen->empty() ? "it is not" : *seen);
    result.here += " **Not so: " + said + ".**";
    result.all.push_back(around.words().file + ":" + std::to_string(one.line) + ": " + where + ": " + said);
  }
  return result;
}

std::string sentence_of(const unfinished_part& part, const page& p) {
  if (!part.why.empty()) return part.name + ": " + part.why;
  const auto words = p.left_out.find(part.name);
  if (words != p.left_out.end()) return words->second.text;
  return part.all == 0 ? part.name + ": interrupted before it was begun."
                       : part.name + ": interrupted after " + count(part.done) + " of " + count(part.all) + " cases.";
}

class renderer {
 public:
  renderer(const page& p, const results& r) : page_(p), results_(r), top_(p, r, &report_.failed) {}

  report run() {
    report_.question = top_.fill(page_.question);
    whole([&] { answer(); });
    if (report_.answer.empty()) report_.answer = "The run was interrupted before its answer was computed.";
    whole([&] { report_.method = top_.fill(page_.method); });
    for (const page_finding& f : page_.findings) whole([&] { add(f); });
    for (const page_table& t : page_.tables) {
      whole([&] {
        table made = rendered(t, top_);
        const broken b = unmet(t.expects, "table " + t.id, top_);
        made.note += b.here;
        report_.tables.push_back(std::move(made));
        keep(b);
      });
    }
    for (const page_figure& f : page_.figures) {
      whole([&] {
        figure made = rendered(f, top_);
        const broken b = unmet(f.expects, "figure " + f.id, top_);
        made.caption += b.here;
        report_.figures.push_back(std::move(made));
        keep(b);
      });
    }
    for (const prose& one : page_.not_claimed) whole([&] { report_.not_claimed.push_back(top_.fill(one)); });
    for (const unfinished_part& part : results_.unfinished) report_.unfinished.push_back(sentence_of(part, page_));
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
  void keep(const broken& b) { report_.failed.insert(report_.failed.end(), b.all.begin(), b.all.end()); }

  void answer() {
    std::string said = top_.fill(page_.answer);
    const broken b = unmet(page_.expects, "the answer", top_);
    report_.answer = said + b.here;
    keep(b);
  }

  std::map<std::string, cell> values_of(const page_finding& f, const value_group* group, const scope& here) const {
    if (group == nullptr) return {};
    if (f.values.empty()) return group->values;
    std::map<std::string, cell> kept;
    if (f.values.text == "none") return kept;
    std::istringstream names(f.values.text);
    for (std::string name; std::getline(names, name, ',');) {
      name.erase(0, name.find_first_not_of(" \n"));
      name.erase(name.find_last_not_of(" \n") + 1);
      kept[name] = here.value_of(name, f.values.line);
    }
    return kept;
  }

  void add(const page_finding& f) {
    const std::string from = f.from.empty() ? f.id : f.from.text;
    const scope here = top_.in_group(from);
    const auto group = results_.groups.find(from);
    if (group == results_.groups.end() && !f.theorem) {
      throw missing_value(page_.file + ":" + std::to_string(f.line) + ": finding '" + f.id +
                          "' has no values: the study gives no group '" + from +
                          "'; name another by `from: group`, or a theorem");
    }
    const broken b = unmet(f.expects, "finding " + f.id, here);
    finding made{f.id,
                 here.fill(f.statement) + b.here,
                 f.theorem ? evidence::proved(f.theorem->text) : group->second.kind,
                 values_of(f, group == results_.groups.end() ? nullptr : &group->second, here),
                 here.fill(f.because),
                 here.fill(f.replay)};
    if (!f.spread.empty()) made.kind.spread = here.fill(f.spread);
    report_.findings.push_back(std::move(made));
    keep(b);
  }

  const page& page_;
  const results& results_;
  report report_;
  scope top_;
};

cell shown_cell(const page_column& c, const scope& row, const cell& value) {
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

void check_columns(const page_table& t, const frame& rows, const scope& around) {
  const auto known = [&](const std::string& name, std::size_t line) {
    if (!rows.has(name)) page_fails(around.words().file, line, "frame '" + t.data.text + "' has no column '" + name + "'");
  };
  for (const page_column& c : t.columns) {
    if (c.text.empty()) known(c.name, c.line);
    for (const std::string& name : c.across) known(name, c.line);
  }
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

table rendered(const page_table& t, const scope& around) {
  const frame rows = chosen(around.frame_named(t.data), t.where, around);
  check_columns(t, rows, around);
  table made{t.id, around.fill(t.title), {}, {}, around.fill(t.note)};
  // With columns across, a row of the table is what the plain columns have in common.
  std::vector<std::string> keys;
  bool across = false;
  for (const page_column& c : t.columns) {
    across = across || !c.across.empty();
    if (c.across.empty() && c.text.empty()) keys.push_back(c.name);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const frame lines = across ? combinations(rows, keys) : rows;
  made.rows.resize(lines.size());
  for (const page_column& c : t.columns) {
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
