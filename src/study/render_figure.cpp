// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "study/render.hpp"

namespace deltaproof::detail {
namespace {

/// The comparisons under which a row belongs to a panel: those columns of the panel that the row's frame has too.
frame of_panel(const frame& rows, const frame& panels, std::size_t at) {
  frame left = rows;
  for (const std::string& column : panels.columns()) {
    if (left.has(column)) left = left.where(column, panels.at(at, column));
  }
  return left;
}

struct place {
  const scope& around;
  const frame& panels;
  std::size_t at;
  [[nodiscard]] frame rows(const prose& data, const std::vector<prose>& where) const {
    return chosen(of_panel(around.frame_named(data), panels, at), where, around);
  }
  /// The panel's own columns, which titles and labels may name.
  [[nodiscard]] scope here() const { return panels.size() == 0 ? around : around.on_row(panels, at); }
  void demand(const frame& rows, const std::string& column, std::size_t line) const {
    if (!column.empty() && !rows.has(column)) page_fails(around.words().file, line, "no column '" + column + "' to draw");
  }
};

axis_scale scale_of(toml_section& from) {
  const prose scale = from.text("scale");
  if (scale.empty() || scale.text == "linear") return axis_scale::linear;
  if (scale.text == "log") return axis_scale::logarithmic;
  from.fail(*from.node("scale"), "a scale is linear or log, not '" + scale.text + "'");
}

series_style style_of(toml_section& from) {
  constexpr std::array<std::string_view, 5> styles{"line", "steps", "points", "cloud", "bars"};  // as series_style
  const prose style = from.text("style");
  if (style.empty()) return series_style::line;
  const auto at = std::find(styles.begin(), styles.end(), style.text);
  if (at == styles.end())
    from.fail(*from.node("style"), "a curve is line, steps, points, cloud or bars, not '" + style.text + "'");
  return static_cast<series_style>(at - styles.begin());
}

axis axis_of(toml_section from, const scope& here) {
  axis a{here.fill(from.text("label", true)), scale_of(from), here.optional_quantity(from.quantity("min")),
         here.optional_quantity(from.quantity("max"))};
  if (const toml::node* const ticks = from.node("ticks")) {
    if (!ticks->is_array()) from.fail(*ticks, "ticks must be an array of numbers");
    for (const toml::node& tick : *ticks->as_array()) a.ticks.push_back(tick.value_or(0.0));
  }
  from.done();
  return a;
}

void add_curves(toml_section from, const place& p, panel& to) {
  const prose data = from.text("data", true);
  const std::string x = from.name("x", true), y = from.name("y", true);
  const std::vector<std::string> by = from.names("by");
  const prose label = from.text("label");
  if (by.size() > 1 && label.empty()) from.fail("a curve with several columns in `by` needs a label that names these columns");
  const double x_scale = from.number("x_scale", 1), y_scale = from.number("y_scale", 1);
  const series_style style = style_of(from);
  const frame rows = p.rows(data, from.texts("where"));
  from.done();
  for (const std::string& column : {x, y}) p.demand(rows, column, from.line());
  for (const std::string& column : by) p.demand(rows, column, from.line());
  const auto add = [&](const frame& of, std::string name) {
    series s{std::move(name), {}, {}, style};
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < of.size(); ++i) {
      const double at = of[i].number(x);
      if (!std::isnan(at) && !is_missing(of.at(i, y))) order.emplace_back(at, i);
    }
    // Curves run along x; points that share it keep the order of the rows.
    std::sort(order.begin(), order.end());
    for (const auto& [at, i] : order) {
      s.x.push_back(x_scale * at);
      s.y.push_back(y_scale * of[i].number(y));
    }
    if (!s.x.empty()) to.curves.push_back(std::move(s));
  };
  if (by.empty()) return add(rows, p.here().fill(label));
  const frame names = combinations(rows, by);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const scope one = p.around.on_row(names, i);
    add(of_panel(rows, names, i), label.empty() ? one.shown(by.front(), names.at(i, by.front())) : one.fill(label));
  }
}

void add_marks(toml_section from, const place& p, panel& to) {
  const prose x = from.quantity("x"), y = from.quantity("y"), label = from.text("label"), data = from.text("data");
  if (x.empty() == y.empty()) from.fail("a mark has either x or y");
  const std::vector<prose> where = from.texts("where");
  from.done();
  const auto add = [&](const scope& here) {
    const auto direction = x.empty() ? mark_direction::horizontal : mark_direction::vertical;
    to.marks.push_back({direction, here.quantity(x.empty() ? y : x), here.fill(label)});
  };
  if (data.empty()) {
    if (p.here().holds(where)) add(p.here());
    return;
  }
  const frame rows = p.rows(data, where);
  for (std::size_t i = 0; i < rows.size(); ++i) add(p.around.on_row(rows, i));
}

heat_map heat_of(toml_section from, const place& p) {
  const prose data = from.text("data", true);
  const std::string row = from.name("row", true), column = from.name("column", true), value = from.name("value", true);
  const frame rows = p.rows(data, from.texts("where"));
  for (const std::string& one : {row, column, value}) p.demand(rows, one, from.line());
  const frame down = combinations(rows, {row}), along = combinations(rows, {column});
  const scope here = p.here();
  heat_map made{.rows = down.size(),
                .columns = along.size(),
                .values = {},
                .label = here.fill(from.text("label", true)),
                .scale = scale_of(from),
                .minimum = here.optional_quantity(from.quantity("min")),
                .maximum = here.optional_quantity(from.quantity("max")),
                .digits = static_cast<int>(from.number("digits", 0))};
  from.done();
  for (std::size_t i = 0; i < down.size(); ++i) {
    made.row_names.push_back(p.around.shown(row, down.at(i, row)));
    const frame line = rows.where(row, down.at(i, row));
    for (std::size_t j = 0; j < along.size(); ++j) {
      const frame one = line.where(column, along.at(j, column));
      made.values.push_back(one.size() == 0 ? as_number(cell()) : one[0].number(value));
    }
  }
  for (std::size_t j = 0; j < along.size(); ++j) made.column_names.push_back(p.around.shown(column, along.at(j, column)));
  return made;
}

panel panel_of(toml_section from, const place& p) {
  panel made{p.here().fill(from.text("title")), {}, {}};
  made.tall = from.flag("tall");
  from.each("x", [&](toml_section axis) { made.x = axis_of(std::move(axis), p.here()); });
  from.each("y", [&](toml_section axis) { made.y = axis_of(std::move(axis), p.here()); });
  from.each("curve", [&](toml_section curve) { add_curves(std::move(curve), p, made); });
  from.each("mark", [&](toml_section mark) { add_marks(std::move(mark), p, made); });
  from.each("heat", [&](toml_section heat) { made.heat = heat_of(std::move(heat), p); });
  from.done();
  return made;
}

}  // namespace

figure figure_of(toml_section block, const std::string& id, const scope& around) {
  figure made{id,
              around.fill(block.text("title", true)),
              around.fill(block.text("caption", true)),
              around.fill(block.text("alt", true)),
              {}};
  made.columns = static_cast<std::size_t>(block.number("columns", 0));
  made.shared_x = block.flag("shared_x");
  made.shared_y = block.flag("shared_y");
  block.each("panel", [&](toml_section from) {
    const prose data = from.text("data");
    const std::vector<std::string> each = from.names("each");  // one panel for each combination of these columns of `data`
    const std::vector<prose> where = from.texts("where");
    if (each.empty()) return made.panels.push_back(panel_of(from, {around, {}, 0}));
    const frame rows = chosen(around.frame_named(data), where, around);
    for (const std::string& column : each) {
      if (!rows.has(column))
        page_fails(around.words().file, from.line(), "frame '" + data.text + "' has no column '" + column + "'");
    }
    const frame panels = combinations(rows, each);
    for (std::size_t i = 0; i < panels.size(); ++i) made.panels.push_back(panel_of(from, {around, panels, i}));
  });
  block.done();
  return made;
}

}  // namespace deltaproof::detail
