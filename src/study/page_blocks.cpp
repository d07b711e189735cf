// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The fenced TOML blocks of a page: tables, figures, constants, words. A key that is not known is refused by name.

#include <algorithm>
#include <array>

#include "study/toml_section.hpp"

namespace deltaproof::detail {
namespace {

using section = toml_section;

axis_scale scale_of(section& from, const char* key) {
  const prose scale = from.text(key);
  if (scale.empty() || scale.text == "linear") return axis_scale::linear;
  if (scale.text == "log") return axis_scale::logarithmic;
  from.fail(*from.node(key), "a scale is linear or log, not '" + scale.text + "'");
}

page_column read_column(section& table, const std::string& key, const toml::node& value) {
  page_column c;
  c.name = key;
  c.line = table.line_of(value);
  if (value.is_string()) {
    c.title = table.text_of(value, key);
    return c;
  }
  section from = table.inner(value, key);
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

page_table read_table(section from, const std::string& id) {
  page_table t;
  t.id = id;
  t.line = from.line();
  t.title = from.text("title", true);
  t.data = from.text("data");
  if (t.data.empty()) t.data = {id, t.line};
  t.note = from.text("note");
  t.where = from.texts("where");
  t.expects = from.texts("expect");
  if (const toml::node* const columns = from.node("columns")) {
    section list = from.inner(*columns, "columns");
    list.in_order([&](const std::string& key, const toml::node& value) { t.columns.push_back(read_column(list, key, value)); });
  }
  from.done();
  return t;
}

page_axis read_axis(section from) {
  page_axis a;
  a.label = from.text("label", true);
  a.scale = scale_of(from, "scale");
  a.minimum = from.quantity("min");
  a.maximum = from.quantity("max");
  if (const toml::node* const ticks = from.node("ticks")) {
    if (!ticks->is_array()) from.fail(*ticks, "ticks must be an array of numbers");
    for (const toml::node& tick : *ticks->as_array()) a.ticks.push_back(tick.value_or(0.0));
  }
  from.done();
  return a;
}

page_curve read_curve(section from) {
  constexpr std::array<std::pair<std::string_view, series_style>, 6> styles{{{"line", series_style::line},
                                                                             {"steps", series_style::steps},
                                                                             {"points", series_style::points},
                                                                             {"cloud", series_style::cloud},
                                                                             {"bars", series_style::bars},
                                                                             {"band", series_style::band}}};
  page_curve c;
  c.line = from.line();
  c.data = from.text("data", true);
  c.x = from.name("x", true);
  c.y = from.name("y", true);
  c.y_upper = from.name("y_upper");
  c.by = from.names("by");
  c.label = from.text("label");
  if (c.by.size() > 1 && c.label.empty())
    from.fail("a curve with several columns in `by` needs a label that names these columns");
  c.x_scale = from.number("x_scale", 1);
  c.y_scale = from.number("y_scale", 1);
  c.where = from.texts("where");
  if (const prose style = from.text("style"); !style.empty()) {
    const auto at = std::find_if(styles.begin(), styles.end(), [&](const auto& s) { return s.first == style.text; });
    if (at == styles.end())
      from.fail(*from.node("style"), "a curve is line, steps, points, cloud, bars or band, not '" + style.text + "'");
    c.style = at->second;
  }
  from.done();
  return c;
}

page_mark read_mark(section from) {
  page_mark m;
  const prose x = from.quantity("x");
  m.at = from.quantity("y");
  if (x.empty() == m.at.empty()) from.fail("a mark has either x or y");
  if (!x.empty()) {
    m.direction = mark_direction::vertical;
    m.at = x;
  }
  m.label = from.text("label");
  m.data = from.text("data");
  m.where = from.texts("where");
  from.done();
  return m;
}

page_heat read_heat(section from) {
  page_heat h;
  h.line = from.line();
  h.data = from.text("data", true);
  h.row = from.name("row", true);
  h.column = from.name("column", true);
  h.value = from.name("value", true);
  h.label = from.text("label", true);
  h.minimum = from.quantity("min");
  h.maximum = from.quantity("max");
  h.middle = from.quantity("middle");
  h.scale = scale_of(from, "scale");
  h.digits = static_cast<int>(from.number("digits", 0));
  h.named = !from.flag("unnamed");
  h.where = from.texts("where");
  from.done();
  return h;
}

page_panel read_panel(section from) {
  page_panel p;
  p.line = from.line();
  p.title = from.text("title");
  p.data = from.text("data");
  p.each = from.names("each");
  p.where = from.texts("where");
  p.tall = from.flag("tall");
  from.each("x", [&](section axis) { p.x = read_axis(std::move(axis)); });
  from.each("y", [&](section axis) { p.y = read_axis(std::move(axis)); });
  from.each("curve", [&](section curve) { p.curves.push_back(read_curve(std::move(curve))); });
  from.each("mark", [&](section mark) { p.marks.push_back(read_mark(std::move(mark))); });
  from.each("heat", [&](section heat) { p.heat = read_heat(std::move(heat)); });
  from.done();
  return p;
}

page_figure read_figure(section from, const std::string& id) {
  page_figure f;
  f.id = id;
  f.line = from.line();
  f.title = from.text("title", true);
  f.caption = from.text("caption", true);
  f.alt = from.text("alt", true);
  f.columns = static_cast<std::size_t>(from.number("columns", 0));
  f.shared_x = from.flag("shared_x");
  f.shared_y = from.flag("shared_y");
  f.expects = from.texts("expect");
  from.each("panel", [&](section panel) { f.panels.push_back(read_panel(std::move(panel))); });
  from.done();
  return f;
}

}  // namespace

void read_block(page& p, std::string_view kind, const std::string& id, const std::string& toml_text, std::size_t first_line) {
  const toml::table root = section::parsed(p.file, toml_text, first_line);
  section block(p.file, root, first_line, std::string(kind) + (id.empty() ? "" : " '" + id + "'"));
  if ((kind == "table" || kind == "figure") && id.empty())
    page_fails(p.file, first_line - 1, "give this " + std::string(kind) + " an id");
  if (kind == "table") {
    p.tables.push_back(read_table(block, id));
  } else if (kind == "figure") {
    p.figures.push_back(read_figure(block, id));
  } else if (kind == "constants") {
    block.in_order([&](const std::string& key, const toml::node& value) { p.constants[key] = block.any_of(value, key); });
  } else if (kind == "words") {
    block.in_order([&](const std::string& column, const toml::node& list) { p.words[column] = block.words_of(list, column); });
  } else if (kind == "left_out") {
    block.in_order([&](const std::string& part, const toml::node& said) { p.left_out[part] = block.text_of(said, part); });
  } else {
    page_fails(p.file, first_line - 1,
               "no kind of block '" + std::string(kind) + "'; there are table, figure, constants, words, left_out");
  }
}

}  // namespace deltaproof::detail
