// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "deltaproof/study/report.hpp"
#include "deltaproof/support/errors.hpp"
#include "study/theme.hpp"

namespace deltaproof::detail {
namespace {

constexpr double padding = 14;
constexpr double column_gap = 30;
constexpr double row_gap = 18;
constexpr double line_height = 16;

// Grows to hold every value the axis can show.
struct extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value, axis_scale scale) {
    if (!std::isfinite(value) || (scale == axis_scale::logarithmic && value <= 0)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] bool empty() const { return low > high; }
};

axis_range range_of(const axis& a, const extent& found, double margin, bool near_zero) {
  axis_range r{found.low, found.high, a.scale};
  if (found.empty()) {
    r.low = a.scale == axis_scale::logarithmic ? 1 : 0;
    r.high = a.scale == axis_scale::logarithmic ? 10 : 1;
  }
  if (a.minimum) r.low = *a.minimum;
  if (a.maximum) r.high = *a.maximum;
  if (a.scale == axis_scale::logarithmic) {
    if (r.low == r.high) r.low /= 2, r.high *= 2;
    const double grow = std::pow(r.high / r.low, margin);
    if (!a.minimum) r.low = std::max(r.low / grow, std::numeric_limits<double>::min());
    if (!a.maximum) r.high = std::min(r.high * grow, std::numeric_limits<double>::max());
    return r;
  }
  if (r.low == r.high) {
    const double half = std::max(std::abs(r.low) * 0.1, 0.5);
    r.low -= half;
    r.high += half;
  }
  const double grow = (r.high - r.low) * margin;
  const bool from_zero = near_zero && r.low >= 0 && r.low <= grow;
  if (!a.minimum) r.low = from_zero ? 0 : r.low - grow;
  if (!a.maximum) r.high += grow;
  return r;
}

void demand(bool ok, const figure& f, const panel& p, const std::string& what) {
  if (!ok) throw domain_error("figure '" + f.id + "', panel '" + p.title + "': " + what);
}

void check(const figure& f, const panel& p) {
  for (const series& s : p.curves) {
    demand(s.x.size() == s.y.size(), f, p,
           "series '" + s.label + "' has " + std::to_string(s.x.size()) + " x and " + std::to_string(s.y.size()) +
               " y; give as many of both");
    demand(s.style != series_style::band || s.y_upper.size() == s.x.size(), f, p,
           "band '" + s.label + "' has " + std::to_string(s.x.size()) + " x and " + std::to_string(s.y_upper.size()) +
               " y_upper; give as many of both");
  }
  for (const axis* a : {&p.x, &p.y}) {
    for (const auto& end : {a->minimum, a->maximum}) {
      demand(!end || (std::isfinite(*end) && (a->scale == axis_scale::linear || *end > 0)), f, p,
             "axis '" + a->label + "' has " + number(end.value_or(0)) +
                 " as its minimum or maximum; both must be finite, and above 0 on a logarithmic axis");
    }
    demand(!a->minimum || !a->maximum || *a->minimum < *a->maximum, f, p,
           "axis '" + a->label + "' runs from " + number(a->minimum.value_or(0)) + " to " + number(a->maximum.value_or(0)) +
               "; give ends in ascending order");
  }
  if (p.heat) {
    const heat_map& h = *p.heat;
    demand(h.rows > 0 && h.columns > 0 && h.values.size() == h.rows * h.columns, f, p,
           "heat map of " + std::to_string(h.rows) + " rows and " + std::to_string(h.columns) + " columns has " +
               std::to_string(h.values.size()) + " values; give a value for each cell, and at least one cell");
    demand(h.row_names.empty() ? p.y.minimum && p.y.maximum : h.row_names.size() == h.rows, f, p,
           "heat map needs a name for each row, or a range of the y axis");
    demand(h.column_names.empty() ? p.x.minimum && p.x.maximum : h.column_names.size() == h.columns, f, p,
           "heat map needs a name for each column, or a range of the x axis");
  }
}

// One scale for all heat maps of a figure with the same label, so that a colour means one value.
heat_scale scale_of(const figure& f, const heat_map& h) {
  heat_scale s;
  s.range.scale = h.middle ? axis_scale::linear : h.scale;
  const bool logarithmic = s.range.scale == axis_scale::logarithmic;
  extent found;
  for (const panel& p : f.panels) {
    if (!p.heat || p.heat->label != h.label) continue;
    for (const double v : p.heat->values) {
      s.has_gaps = s.has_gaps || !std::isfinite(v);
      found.add(v, s.range.scale);
    }
  }
  if (found.empty()) found.low = found.high = logarithmic ? 1 : 0;
  if (h.middle) {
    s.two_sided = true;
    s.middle = *h.middle;
    const double reach = std::max(std::abs(found.high - s.middle), std::abs(s.middle - found.low));
    found.low = s.middle - reach;
    found.high = s.middle + reach;
  }
  s.range.low = h.minimum.value_or(found.low);
  s.range.high = h.maximum.value_or(found.high);
  if (!(s.range.low < s.range.high)) s.range.high = logarithmic ? s.range.low * 10 : s.range.low + 1;
  if (s.two_sided) {
    if (!(s.range.low < s.middle)) s.range.low = s.middle - (s.range.high - s.middle);
    if (!(s.range.high > s.middle)) s.range.high = s.middle + (s.middle - s.range.low);
  }
  return s;
}

struct ends {
  extent x, y;
  bool wide = false;  // dots at the very edge need room
  bool bars = false;
};

ends ends_of(const figure& f, const panel& p) {
  ends e;
  bool drawable = p.heat.has_value();
  for (const series& s : p.curves) {
    e.wide = e.wide || s.style == series_style::points;
    const double half = s.style == series_style::bars ? bar_step(s) / 2 : 0;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      extent x, y;
      x.add(s.x[i], p.x.scale);
      y.add(s.y[i], p.y.scale);
      if (s.style == series_style::band) y.add(s.y_upper[i], p.y.scale);
      if (x.empty() || y.empty()) continue;
      drawable = true;
      e.x.add(s.x[i] - half, p.x.scale);
      e.x.add(s.x[i] + half, p.x.scale);
      e.y.add(y.low, p.y.scale);
      e.y.add(y.high, p.y.scale);
    }
    e.bars = e.bars || s.style == series_style::bars;
  }
  demand(drawable, f, p, "no point can be drawn; every value is missing, not finite, or not positive on a logarithmic axis");
  for (const mark& m : p.marks) {
    (m.direction == mark_direction::horizontal ? e.y : e.x)
        .add(m.at, m.direction == mark_direction::horizontal ? p.y.scale : p.x.scale);
  }
  if (e.bars && p.y.scale == axis_scale::linear) e.y.add(0, p.y.scale);
  return e;
}

std::vector<std::string> wrapped(const std::string& text, double size, double width) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (!line.empty() && text_width(line + " " + word, size) > width) {
      lines.push_back(line);
      line = word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
    at = space + 1;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

// Labels of vertical marks stand above the plot; those that would touch take a further row.
std::vector<text_line> mark_rows(const placed_panel& p, std::size_t& rows) {
  std::vector<const mark*> marks;
  for (const mark& m : p.source->marks) {
    const double at = p.x.shows(m.at) ? p.x.fraction(m.at) : -1;
    if (m.direction == mark_direction::vertical && !m.label.empty() && at >= 0 && at <= 1) marks.push_back(&m);
  }
  std::sort(marks.begin(), marks.end(), [](const mark* a, const mark* b) { return a->at < b->at || (a->at == b->at && a < b); });
  std::vector<double> taken;
  std::vector<text_line> lines;
  for (const mark* m : marks) {
    const double half = text_width(m->label, tick_size) / 2;
    const double x = std::clamp(p.to_x(m->at), std::min(p.left + half - 6, p.left + p.width / 2),
                                std::max(p.left + p.width - half + 6, p.left + p.width / 2));
    std::size_t row = 0;
    while (row < taken.size() && taken[row] > x - half - 6) ++row;
    if (row == taken.size()) taken.push_back(0);
    taken[row] = x + half;
    lines.push_back({m->label, x, static_cast<double>(row)});
  }
  rows = taken.size();
  return lines;
}

bool same_axis(const placed_panel& a, const placed_panel& b, axis panel::* which, axis_range placed_panel::* range,
               std::vector<tick> placed_panel::* ticks) {
  return (a.source->*which).label == (b.source->*which).label && a.*range == b.*range && a.*ticks == b.*ticks;
}

std::vector<tick> named_ticks(const std::vector<std::string>& names) {
  std::vector<tick> ticks;
  for (const std::string& name : names) ticks.push_back({static_cast<double>(ticks.size()) + 0.5, name});
  return ticks;
}

bool same_colours(const heat_map& a, const heat_map& b) {
  const auto meaning = [](const heat_map& h) { return std::tie(h.label, h.minimum, h.maximum, h.middle, h.scale); };
  return meaning(a) == meaning(b);
}

// A line that meets an infinite value inside its panel ends in a cross, and the legend says so.
bool ends_early(const panel& p) {
  return std::any_of(p.curves.begin(), p.curves.end(), [&](const series& s) {
    if (s.style != series_style::line && s.style != series_style::steps) return false;
    for (std::size_t i = 1; i < s.y.size(); ++i) {
      const double last = s.y[i - 1];
      if (std::isinf(s.y[i]) && std::isfinite(last) && last >= p.y.minimum.value_or(last) && last <= p.y.maximum.value_or(last))
        return true;
    }
    return false;
  });
}

std::vector<legend_entry> legend_of(const figure& f) {
  std::vector<legend_entry> entries;
  for (const panel& p : f.panels) {
    for (const series& s : p.curves) {
      if (s.label.empty()) continue;
      auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.label == s.label; });
      if (found == entries.end()) {
        if (entries.size() == series_limit) {
          throw domain_error("figure '" + f.id + "' has more than " + std::to_string(series_limit) +
                             " labels in all its panels together ('" + s.label +
                             "' is one more), which nobody can tell apart; draw several figures, or leave some curves "
                             "unlabelled");
        }
        found = entries.insert(entries.end(), {static_cast<int>(entries.size()), s.label});
      }
      found->styles.insert(s.style);
    }
  }
  if (std::any_of(f.panels.begin(), f.panels.end(), ends_early)) {
    entries.push_back({no_index, "infinite after this", {}, true});
  }
  return entries;
}

/// Fills a layout from the top: the legend, then rows of panels.
class arrangement {
 public:
  explicit arrangement(const figure& f) : f_(f) {
    if (f.panels.empty()) throw domain_error("figure '" + f.id + "' has no panel");
    const std::size_t n = f.panels.size();
    columns_ = std::min(n, f.columns != 0 ? f.columns : n == 1 ? 1 : n == 2 || n == 4 ? 2 : 3);
    gutters_.assign(columns_, 0);
  }

  layout run() {
    add_legend();
    add_panels();
    // What stands left of the data decides where the data begin: heights and y ticks first, all panels of a column alike, all
    // panels of the figure equally wide.
    for_each_row([&](std::size_t begin, std::size_t end) { set_heights(begin, end); });
    set_widths();
    for_each_row([&](std::size_t begin, std::size_t end) { set_row(begin, end); });
    made_.height = std::ceil(top_ - row_gap + padding - 2);
    return std::move(made_);
  }

 private:
  template <class Act>
  void for_each_row(Act&& act) {
    for (std::size_t begin = 0; begin < f_.panels.size(); begin += columns_)
      act(begin, std::min(begin + columns_, f_.panels.size()));
  }

  void add_legend() {
    made_.legend = legend_of(f_);
    if (made_.legend.empty()) return;
    double x = padding;
    for (legend_entry& e : made_.legend) {
      const double width = 26 + text_width(e.label, 11.5);
      if (x > padding && x + width > figure_width - padding) {
        x = padding;
        top_ += 18;
      }
      e.x = x;
      e.y = top_ + 8;
      x += width + 14;
    }
    top_ += 18 + 10;
  }

  void add_panels() {
    extent all_x, all_y;
    std::vector<ends> found;
    for (const panel& p : f_.panels) {
      check(f_, p);
      found.push_back(ends_of(f_, p));
      for (const double v : {found.back().x.low, found.back().x.high}) all_x.add(v, p.x.scale);
      for (const double v : {found.back().y.low, found.back().y.high}) all_y.add(v, p.y.scale);
    }
    for (std::size_t i = 0; i < f_.panels.size(); ++i) {
      const panel& p = f_.panels[i];
      placed_panel placed;
      placed.source = &p;
      placed.x = range_of(p.x, f_.shared_x ? all_x : found[i].x, found[i].wide ? 0.03 : 0, false);
      placed.y = range_of(p.y, f_.shared_y ? all_y : found[i].y, 0.05, true);
      if (p.heat) {
        placed.heat = scale_of(f_, *p.heat);
        if (!p.heat->column_names.empty()) placed.x = {0, static_cast<double>(p.heat->columns), axis_scale::linear};
        if (!p.heat->row_names.empty()) placed.y = {static_cast<double>(p.heat->rows), 0, axis_scale::linear};
      }
      made_.panels.push_back(std::move(placed));
    }
  }

  void set_heights(std::size_t begin, std::size_t end) {
    const double base_height = columns_ == 1 ? (f_.panels.size() == 1 ? 300 : 200) : columns_ == 2 ? 210 : 170;
    double data_height = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const panel& s = f_.panels[i];
      const bool named = s.heat && !s.heat->row_names.empty();
      data_height = std::max({data_height, named && !s.tall ? 0 : base_height * (s.tall ? 1.8 : 1),
                              named ? 26.0 * static_cast<double>(s.heat->rows) : 0});
    }
    for (std::size_t i = begin; i < end; ++i) {
      placed_panel& p = made_.panels[i];
      const panel& s = *p.source;
      p.height = data_height;
      p.y_ticks = s.heat && !s.heat->row_names.empty() ? named_ticks(s.heat->row_names) : ticks_for(s.y, p.y, p.height, false);
      p.y_labelled = i == begin || !same_axis(made_.panels[i - 1], p, &panel::y, &placed_panel::y, &placed_panel::y_ticks);
      if (p.y_labelled) gutters_[i - begin] = std::max(gutters_[i - begin], widest(p.y_ticks) + 9);
    }
  }

  void set_widths() {
    double available = figure_width - 2 * padding - column_gap * static_cast<double>(columns_ - 1) - (columns_ == 1 ? 10 : 4);
    for (const double gutter : gutters_) available -= gutter;
    data_width_ = available / static_cast<double>(columns_);
    for (std::size_t i = 0; i < made_.panels.size(); ++i) {
      placed_panel& p = made_.panels[i];
      const panel& s = *p.source;
      p.width = data_width_;
      p.left = padding + static_cast<double>(i % columns_) * (column_gap + data_width_);
      for (std::size_t c = 0; c <= i % columns_; ++c) p.left += gutters_[c];
      if (s.heat && !s.heat->column_names.empty()) {
        p.x_ticks = named_ticks(s.heat->column_names);
        if (widest(p.x_ticks) + 6 > p.width / static_cast<double>(s.heat->columns)) p.slanted = widest(p.x_ticks) * 0.62 + 12;
      } else {
        p.x_ticks = ticks_for(s.x, p.x, p.width, true);
      }
    }
  }

  void set_row(std::size_t begin, std::size_t end) {
    double header = 0;
    double footer = 0;
    for (std::size_t i = begin; i < end; ++i) {
      placed_panel& p = made_.panels[i];
      // Slanted names are drawn beneath every heat map.
      p.x_labelled = p.slanted > 0 || i + columns_ >= made_.panels.size() ||
                     !same_axis(made_.panels[i + columns_], p, &panel::x, &placed_panel::x, &placed_panel::x_ticks);
      double below = p.x_labelled ? std::max(18.0, p.slanted) : 2;
      if (p.x_labelled && !p.source->x.label.empty()) below += 20;
      footer = std::max(footer, below);
      header = std::max(header, set_header(i, gutters_[i - begin]));
    }
    for (std::size_t i = begin; i < end; ++i) {
      placed_panel& p = made_.panels[i];
      p.top = top_ + header;
      for (text_line& line : p.titles) line.y += top_ - 3;
      for (text_line& line : p.y_labels) line.y += top_ - 3;
      for (text_line& line : p.mark_labels) line.y = p.top - 5 - 15 * line.y;
      p.key_top += top_;
    }
    top_ += header + made_.panels[begin].height + footer + row_gap;
  }

  /// What stands above the data of a panel, from the top of its row. Returns the height.
  double set_header(std::size_t i, double gutter) {
    placed_panel& p = made_.panels[i];
    const panel& s = *p.source;
    const double from = p.left - gutter;
    const double width = data_width_ + gutter;
    double above = 0;
    for (const std::string& line : wrapped(s.title, 13, width)) p.titles.push_back({line, from, above += line_height});
    if (!s.title.empty()) above += 3;
    p.key_left = from;
    p.key_top = above + 4;
    // The first panel of those with the same colours has the key.
    p.has_key = s.heat && std::none_of(f_.panels.begin(), f_.panels.begin() + static_cast<std::ptrdiff_t>(i),
                                       [&](const panel& other) { return other.heat && same_colours(*other.heat, *s.heat); });
    if (p.has_key) {
      p.key_label = wrapped(s.heat->label, 12, width);
      above += 22 + line_height * static_cast<double>(p.key_label.size());
    }
    if (p.y_labelled) {
      for (const std::string& line : wrapped(s.y.label, 12, width)) p.y_labels.push_back({line, from, above += line_height});
    }
    std::size_t rows = 0;
    p.mark_labels = mark_rows(p, rows);
    return above + 15 * static_cast<double>(rows) + 10;
  }

  const figure& f_;
  std::size_t columns_ = 1;
  layout made_;
  std::vector<double> gutters_;  // left of each column, for the labels of y
  double data_width_ = 0;
  double top_ = padding;
};

}  // namespace

double bar_step(const series& s) {
  double step = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < s.x.size(); ++i) step = std::min(step, std::abs(s.x[i] - s.x[i - 1]));
  return std::isfinite(step) && step > 0 ? step : 1;
}

layout arrange(const figure& f) { return arrangement(f).run(); }

}  // namespace deltaproof::detail
