// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
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

axis axis_of(const page_axis& a, const scope& here) {
  return {here.fill(a.label), a.scale, here.optional_quantity(a.minimum), here.optional_quantity(a.maximum), a.ticks};
}

series series_of(const page_curve& c, const frame& rows, std::string label) {
  series s{std::move(label), {}, {}, c.style, {}};
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double x = rows[i].number(c.x);
    if (!std::isnan(x) && !is_missing(rows.at(i, c.y))) order.emplace_back(x, i);
  }
  // Curves run along x; points that share it keep the order of the rows.
  std::sort(order.begin(), order.end());
  for (const auto& [x, i] : order) {
    s.x.push_back(c.x_scale * x);
    s.y.push_back(c.y_scale * rows[i].number(c.y));
    if (!c.y_upper.empty()) s.y_upper.push_back(c.y_scale * rows[i].number(c.y_upper));
  }
  return s;
}

void add_curves(const page_curve& c, const place& p, panel& to) {
  const frame rows = p.rows(c.data, c.where);
  for (const std::string& column : {c.x, c.y, c.y_upper}) p.demand(rows, column, c.line);
  for (const std::string& column : c.by) p.demand(rows, column, c.line);
  if (c.by.empty()) {
    series s = series_of(c, rows, p.here().fill(c.label));
    if (!s.x.empty()) to.curves.push_back(std::move(s));
    return;
  }
  const frame names = combinations(rows, c.by);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const scope one = p.around.on_row(names, i);
    const std::string label = c.label.empty() ? one.shown(c.by.front(), names.at(i, c.by.front())) : one.fill(c.label);
    series s = series_of(c, of_panel(rows, names, i), label);
    if (!s.x.empty()) to.curves.push_back(std::move(s));
  }
}

void add_marks(const page_mark& m, const place& p, panel& to) {
  if (m.data.empty()) {
    if (p.here().holds(m.where)) to.marks.push_back({m.direction, p.here().quantity(m.at), p.here().fill(m.label)});
    return;
  }
  const frame rows = p.rows(m.data, m.where);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const scope row = p.around.on_row(rows, i);
    to.marks.push_back({m.direction, row.quantity(m.at), row.fill(m.label)});
  }
}

heat_map heat_of(const page_heat& h, const place& p) {
  const frame rows = p.rows(h.data, h.where);
  for (const std::string& column : {h.row, h.column, h.value}) p.demand(rows, column, h.line);
  const frame down = combinations(rows, {h.row});
  const frame along = combinations(rows, {h.column});
  heat_map made;
  made.rows = down.size();
  made.columns = along.size();
  made.label = p.here().fill(h.label);
  made.scale = h.scale;
  made.minimum = p.here().optional_quantity(h.minimum);
  made.maximum = p.here().optional_quantity(h.maximum);
  made.middle = p.here().optional_quantity(h.middle);
  made.digits = h.digits;
  for (std::size_t i = 0; i < down.size(); ++i) {
    if (h.named) made.row_names.push_back(p.around.shown(h.row, down.at(i, h.row)));
    const frame line = rows.where(h.row, down.at(i, h.row));
    for (std::size_t j = 0; j < along.size(); ++j) {
      const frame one = line.where(h.column, along.at(j, h.column));
      made.values.push_back(one.size() == 0 ? as_number(cell()) : one[0].number(h.value));
    }
  }
  if (h.named) {
    for (std::size_t j = 0; j < along.size(); ++j) made.column_names.push_back(p.around.shown(h.column, along.at(j, h.column)));
  }
  return made;
}

panel panel_of(const page_panel& from, const place& p) {
  panel made;
  made.title = p.here().fill(from.title);
  made.x = axis_of(from.x, p.here());
  made.y = axis_of(from.y, p.here());
  made.tall = from.tall;
  for (const page_curve& c : from.curves) add_curves(c, p, made);
  for (const page_mark& m : from.marks) add_marks(m, p, made);
  if (from.heat) made.heat = heat_of(*from.heat, p);
  return made;
}

}  // namespace

figure rendered(const page_figure& f, const scope& around) {
  figure made;
  made.id = f.id;
  made.title = around.fill(f.title);
  made.caption = around.fill(f.caption);
  made.alt = around.fill(f.alt);
  made.columns = f.columns;
  made.shared_x = f.shared_x;
  made.shared_y = f.shared_y;
  for (const page_panel& p : f.panels) {
    if (p.each.empty()) {
      made.panels.push_back(panel_of(p, {around, {}, 0}));
      continue;
    }
    const frame rows = chosen(around.frame_named(p.data), p.where, around);
    for (const std::string& column : p.each) {
      if (!rows.has(column))
        page_fails(around.words().file, p.line, "frame '" + p.data.text + "' has no column '" + column + "'");
    }
    const frame panels = combinations(rows, p.each);
    for (std::size_t i = 0; i < panels.size(); ++i) made.panels.push_back(panel_of(p, {around, panels, i}));
  }
  return made;
}

}  // namespace deltaproof::detail
