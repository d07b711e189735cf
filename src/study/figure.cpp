// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/figure.hpp"

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <set>
#include <utility>

#include "study/gnuplot.hpp"
#include "study/layout.hpp"
#include "study/theme.hpp"

namespace deltaproof {
namespace {

using namespace detail;

std::string path(const std::string& name, const std::string& d) { return "<path class=\"" + name + "\" d=\"" + d + "\"/>\n"; }

std::string text_element(const std::string& name, double x, double y, const std::string& anchor,
                         const std::string& escaped_text) {
  return "<text" + (name.empty() ? "" : " class=\"" + name + "\"") + " x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\"" +
         (anchor == "start" ? "" : " text-anchor=\"" + anchor + "\"") + ">" + escaped_text + "</text>\n";
}

/// The rest of a path of class `name` after a move to (x, y).
std::string path_from(const std::string& name, double x, double y, const std::string& rest) {
  return path(name, "M" + coordinate(x) + " " + coordinate(y) + rest);
}

std::string cross(double x, double y) { return "M" + coordinate(x - 4) + " " + coordinate(y - 4) + "l8 8m0-8l-8 8"; }

std::string cloud_path(const std::string& name, double size, const std::string& d) {
  return "<path class=\"cl " + name + "\" stroke-width=\"" + coordinate(size) + "\" d=\"" + d + "\"/>\n";
}

using marks = std::vector<const paper_mark*>;
using polylines = std::vector<std::vector<paper_point>>;
using spot = std::pair<long, long>;  // in tenths of a pixel

long tenths(double v) { return std::lround(v * 10); }

/// Whether b lies on the way from a to c.
bool on_the_way(const spot& a, const spot& b, const spot& c) {
  const double dx = static_cast<double>(c.first - a.first), dy = static_cast<double>(c.second - a.second);
  const double ex = static_cast<double>(b.first - a.first), ey = static_cast<double>(b.second - a.second);
  const double along = ex * dx + ey * dy;
  const double length = std::hypot(dx, dy);
  return std::abs(ex * dy - ey * dx) <= 0.4 * length && along >= 0 && along <= length * length;
}

std::vector<spot> thinned(const std::vector<paper_point>& points) {
  std::vector<spot> kept;
  for (const paper_point& p : points) {
    const spot at{tenths(p.x), tenths(p.y)};
    if (!kept.empty() && kept.back() == at) continue;
    while (kept.size() >= 2 && on_the_way(kept[kept.size() - 2], kept.back(), at)) kept.pop_back();
    kept.push_back(at);
  }
  return kept;
}

/// Absolute moves, relative lines, in tenths of a pixel so that rounding never adds up; a point on the straight way between its
/// neighbours is left out.
std::string path_data(const polylines& lines, bool closed) {
  std::string out;
  for (const auto& points : lines) {
    const std::vector<spot> kept = thinned(points);
    if (kept.size() < 2) continue;
    const auto number_text = [](long v, bool first) {
      const std::string text = coordinate(static_cast<double>(v) / 10);
      return (first || text.front() == '-' ? "" : " ") + text;
    };
    out += "M" + number_text(kept[0].first, true) + number_text(kept[0].second, false) + "l";
    for (std::size_t i = 1; i < kept.size(); ++i) {
      out += number_text(kept[i].first - kept[i - 1].first, i == 1) + number_text(kept[i].second - kept[i - 1].second, false);
    }
    if (closed) out += "z";
  }
  return out;
}

/// gnuplot ends a long path and goes on in the next element where it stopped.
polylines joined(const marks& lines) {
  polylines whole;
  for (const paper_mark* m : lines) {
    if (!whole.empty() && whole.back().back() == m->points.front())
      whole.back().insert(whole.back().end(), m->points.begin() + 1, m->points.end());
    else
      whole.push_back(m->points);
  }
  return whole;
}

struct rectangle {
  double left, right, top, bottom;
  friend auto operator<=>(const rectangle&, const rectangle&) = default;
};

std::vector<rectangle> boxes_of(const marks& areas) {
  std::vector<rectangle> boxes;
  for (const paper_mark* m : areas) {
    if (m->kind != paper_mark::shape::area || m->points.empty()) continue;
    const auto [left, right] = std::ranges::minmax(m->points, {}, &paper_point::x);
    const auto [top, bottom] = std::ranges::minmax(m->points, {}, &paper_point::y);
    boxes.push_back({left.x, right.x, top.y, bottom.y});
  }
  return boxes;
}

/// The contour of a histogram: bars that touch share it.
std::string outline(const marks& bars) {
  std::vector<rectangle> boxes = boxes_of(bars);
  std::sort(boxes.begin(), boxes.end());
  polylines lines;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const auto& [left, right, top, bottom] = boxes[i];
    if (i == 0 || left - boxes[i - 1].right >= 0.5) lines.push_back({{left, bottom}});
    lines.back().push_back({left, top});
    lines.back().push_back({right, top});
    if (i + 1 == boxes.size() || boxes[i + 1].left - right >= 0.5) lines.back().push_back({right, bottom});
  }
  return path_data(lines, false);
}

/// Thousands of dots as one path on a grid just fine enough: vertical neighbours are one stroke.
std::string cloud_of(const marks& points, const std::string& name) {
  std::set<long> columns;
  for (const paper_mark* m : points) columns.insert(tenths(m->points[0].x));
  for (const long step : {4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 60, 80}) {  // tenths of a pixel
    // Few distinct x (a parameter that was swept) stay where they are.
    const long step_x = columns.size() <= 700 ? 1 : step;
    std::map<long, std::set<long>> filled;
    std::size_t number = 0;
    for (const paper_mark* m : points) {
      const auto snapped = [](double v, long to) { return std::lround(v * 10 / static_cast<double>(to)); };
      number += filled[snapped(m->points[0].x, step_x)].insert(snapped(m->points[0].y, step)).second ? 1 : 0;
    }
    const auto length = [&](long steps, long unit) { return coordinate(static_cast<double>(steps * unit) / 10); };
    std::string d;
    std::size_t strokes = 0;
    for (const auto& [column, rows] : filled) {
      long pen = 0;
      for (auto at = rows.begin(); at != rows.end(); ++strokes) {
        const long first = *at;
        long last = first;
        while (++at != rows.end() && *at == last + 1) last = *at;
        d +=
            first == *rows.begin() ? "M" + length(column, step_x) + " " + length(first, step) : "m0 " + length(first - pen, step);
        d += last == first ? "h0" : "v" + length(last - first, step);
        pen = last;
      }
    }
    if (strokes > 14000 && step < 80) continue;
    return cloud_path(name, number < 150 ? 3.2 : number < 3000 ? 1.8 : std::max(1.1, static_cast<double>(step) * 0.115), d);
  }
  return {};
}

// Which places of a panel have ink on them, in squares of 4 pixels.
class ink {
 public:
  explicit ink(const placed_panel& p) : p_(p) {}
  void dot(double x, double y) { taken_.insert(square(x, y)); }
  void segment(paper_point a, paper_point b) {
    const double steps = std::ceil(std::hypot(b.x - a.x, b.y - a.y) / 2) + 1;
    for (double i = 0; i <= steps; ++i) dot(a.x + (b.x - a.x) * i / steps, a.y + (b.y - a.y) * i / steps);
  }
  void box(const rectangle& r) {
    for (double x = r.left; x <= r.right; x += 3) {
      for (double y = r.top; y <= r.bottom; y += 3) dot(x, y);
    }
  }
  [[nodiscard]] std::size_t under(const rectangle& r) const {
    std::size_t hits = 0;
    for (double x = r.left; x <= r.right; x += 4) {
      for (double y = r.top; y <= r.bottom; y += 4) hits += taken_.count(square(x, y));
    }
    if (r.top < p_.top || r.bottom > p_.top + p_.height) hits += 1000;
    return hits;
  }

 private:
  static std::pair<long, long> square(double x, double y) {
    return {std::lround(std::floor(x / 4)), std::lround(std::floor(y / 4))};
  }

  const placed_panel& p_;
  std::set<std::pair<long, long>> taken_;
};

std::string heat_class(const heat_scale& s, int level) {
  return level == no_index ? "n" : (s.two_sided ? "e" : "h") + std::to_string(level);
}

std::string heat_key(const placed_panel& p) {
  const heat_scale& s = *p.heat;
  const double swatch = p.width > 250 ? 7 : 5;
  double x = p.key_left;
  double y = p.key_top;
  std::string out;
  for (const std::string& line : p.key_label) {
    out += text_element("y", x, y + 9, "start", xml_escaped(line));
    y += 16;
  }
  const std::string low = tick_text(s.range.low, 3);
  const std::string high = tick_text(s.range.high, 3);
  out += text_element("", x, y + 10, "start", low);
  x += text_width(low, 11) + 5;
  for (int i = 0; i < heat_levels; ++i) {
    out += path_from("ce " + heat_class(s, i), x, y, "h" + coordinate(swatch) + "v11h-" + coordinate(swatch) + "z");
    x += swatch;
  }
  x += 5;
  out += text_element("", x, y + 10, "start", high);
  x += text_width(high, 11) + 12;
  if (s.has_gaps) out += path_from("ce n", x, y, "h11v11h-11z") + text_element("", x + 15, y + 10, "start", "not finite");
  return out;
}

std::string heat_numbers(const placed_panel& p) {
  const heat_map& h = *p.source->heat;
  std::string out;
  if (h.digits <= 0) return out;
  for (std::size_t row = 0; row < h.rows; ++row) {
    for (std::size_t c = 0; c < h.columns; ++c) {
      const double v = h.values[row * h.columns + c];
      const int level = p.heat->level(v);
      const double x = p.left + p.width * (static_cast<double>(c) + 0.5) / static_cast<double>(h.columns);
      const double down = (static_cast<double>(row) + 0.5) / static_cast<double>(h.rows);
      const double y = p.top + p.height * (h.row_names.empty() ? 1 - down : down) + 4;
      const bool end = level < 3 || level >= heat_levels - 3;
      const std::string name = level == no_index       ? "he"
                               : p.heat->two_sided     ? (end ? "hx" : "he")
                               : level_is_light(level) ? "hd"
                                                       : "hl";
      out += text_element(name, x, y, "middle", tick_text(v, h.digits));
    }
  }
  return out;
}

std::string slanted_names(const placed_panel& p) {
  std::string out;
  for (const tick& t : p.x_ticks) {
    const std::string x = coordinate(p.to_x(t.at) + 4);
    const std::string y = coordinate(p.top + p.height + 12);
    out += "<text x=\"" + x + "\" y=\"" + y + "\" text-anchor=\"end\" transform=\"rotate(-35 " + x + " " + y + ")\">" +
           xml_escaped(t.label) + "</text>\n";
  }
  return out;
}

std::string legend_text(const std::vector<legend_entry>& legend) {
  std::string out;
  for (const legend_entry& e : legend) {
    const std::string name = series_class(e.index);
    const std::string box = "h20v10h-20z";
    const auto has = [&](series_style style) { return e.styles.contains(style); };
    if (has(series_style::band) || has(series_style::bars))
      out += path_from((has(series_style::band) ? "bd " : "br ") + name, e.x, e.y - 5, box);
    if (has(series_style::bars)) out += path_from("bo " + name, e.x, e.y - 5, box);
    if (e.cross) out += path("x " + name, cross(e.x + 10, e.y));
    if (has(series_style::line) || has(series_style::steps)) out += path_from("ln " + name, e.x, e.y, "h20");
    if (has(series_style::points)) out += path("mk " + name, marker(e.index, e.x + 10, e.y));
    if (has(series_style::cloud)) out += cloud_path(name, 5, "M" + coordinate(e.x + 10) + " " + coordinate(e.y) + "h0");
    out += text_element("y", e.x + 26, e.y + 4, "start", xml_escaped(e.label));
  }
  return out;
}

/// The marks of a panel, by what they are and by series.
using groups = std::map<std::pair<role, int>, marks>;

/// One panel, from the grid beneath to the labels above.
class panel_drawing {
 public:
  panel_drawing(const placed_panel& p, const groups& found) : p_(p), found_(found), occupied_(p) {}

  std::string text() {
    add_strokes(role::grid, "g");
    if (p_.heat) add_heat();
    add_areas(role::band, "bd ");
    add_areas(role::bar, "br ");
    each(role::bar, "bo ", [](int, const marks& bars) { return outline(bars); });
    add_strokes(role::mark_line, "m");
    add_data();
    add_strokes(role::axis_line, "a");
    add_labels();
    add_mark_labels();
    return std::move(out_);
  }

 private:
  /// Where a role has marks without a series.
  void add_strokes(role r, const std::string& name) {
    if (const auto at = found_.find({r, 0}); at != found_.end()) out_ += path(name, path_data(joined(at->second), false));
  }

  /// One path for each series of a role, with f(series, marks) for its data.
  template <class Data>
  void each(role r, const std::string& name, Data&& data) {
    for (const auto& [key, found] : found_) {
      if (key.first == r) out_ += path(name + series_class(key.second), data(key.second, found));
    }
  }

  void add_areas(role r, const std::string& name) {
    each(r, name, [](int, const marks& areas) {
      polylines polygons;
      for (const paper_mark* m : areas) {
        if (m->kind == paper_mark::shape::area) polygons.push_back(m->points);
      }
      return path_data(polygons, true);
    });
  }

  void add_heat() {
    // Few cells stand apart; many touch, and overlap a little so that no background shines through.
    const bool apart = p_.cells_stand_apart();
    const double inset = apart ? 1.2 : -0.4;
    for (const auto& [key, cells] : found_) {
      if (key.first != role::cell_area) continue;
      std::string d;
      for (const auto& [left, right, top, bottom] : boxes_of(cells)) {
        const std::string across = coordinate(right - left - inset);
        d += "M" + coordinate(left) + " " + coordinate(top) + "h" + across + "v" + coordinate(bottom - top - inset) + "h-" +
             across + "z";
      }
      out_ += path((apart ? "ar " : "ce ") + heat_class(*p_.heat, key.second), d);
    }
    if (p_.has_key) out_ += heat_key(p_);
    out_ += heat_numbers(p_);
    if (p_.slanted > 0) out_ += slanted_names(p_);
  }

  void add_data() {
    for (const auto& [key, found] : found_) {
      if (key.first != role::cloud) continue;
      for (const paper_mark* m : found) occupied_.dot(m->points[0].x, m->points[0].y);
      out_ += cloud_of(found, series_class(key.second));
    }
    each(role::line, "ln ", [&](int, const marks& pieces) {
      const polylines lines = joined(pieces);
      for (const auto& points : lines) {
        for (std::size_t i = 1; i < points.size(); ++i) occupied_.segment(points[i - 1], points[i]);
      }
      return path_data(lines, false);
    });
    each(role::overflow, "x ", [](int, const marks& ends) {
      std::string d;
      for (const paper_mark* m : ends) d += cross(m->points[0].x, m->points[0].y);
      return d;
    });
    each(role::points, "mk ", [&](int index, const marks& points) {
      std::string d;
      for (const paper_mark* m : points) {
        const auto& [x, y] = m->points[0];
        occupied_.box({x - 4, x + 4, y - 4, y + 4});
        d += marker(index, x, y);
      }
      return d;
    });
  }

  void add_labels() {
    if (const auto at = found_.find({role::tick_label, 0}); at != found_.end()) {
      for (const paper_mark* m : at->second) out_ += text_element("", m->points[0].x, m->points[0].y, m->anchor, m->text);
    }
    const auto add = [&](const char* name, const std::vector<text_line>& lines, const char* anchor) {
      for (const text_line& t : lines) out_ += text_element(name, t.x, t.y, anchor, xml_escaped(t.text));
    };
    add("t", p_.titles, "start");
    add("y", p_.y_labels, "start");
    add("", p_.mark_labels, "middle");
    const std::string& label = p_.source->x.label;
    if (p_.x_labelled && !label.empty())
      add("y", {{label, p_.left + p_.width / 2, p_.top + p_.height + std::max(18.0, p_.slanted) + 16}}, "middle");
  }

  // A horizontal mark's label goes where the least is drawn: right, left or middle, above or below.
  void add_mark_labels() {
    for (const mark& m : p_.source->marks) {
      const bool inside = p_.y.shows(m.at) && p_.y.fraction(m.at) >= 0 && p_.y.fraction(m.at) <= 1;
      if (m.direction == mark_direction::vertical || m.label.empty() || !inside) continue;
      const double width = text_width(m.label, 11);
      const double y = p_.to_y(m.at);
      rectangle best{};
      std::size_t least = static_cast<std::size_t>(-1);
      for (const double left : {p_.left + p_.width - width - 4, p_.left + 5, p_.left + (p_.width - width) / 2}) {
        for (const double base : {y - 5, y + 13}) {
          const rectangle place{left, left + width, base - 10, base + 2};
          const std::size_t hits = occupied_.under(place);
          if (hits < least) least = hits, best = place;
        }
      }
      occupied_.box(best);
      out_ += text_element("ha", best.left, best.bottom - 2, "start", xml_escaped(m.label));
    }
  }

  const placed_panel& p_;
  const groups& found_;
  ink occupied_;
  std::string out_;
};

}  // namespace

std::string svg(const figure& f) {
  const layout l = arrange(f);
  const std::vector<paper_mark> paper = project(script_of(l));
  std::vector<groups> by_panel(l.panels.size());
  for (const paper_mark& m : paper) {
    if (m.what != role::none && m.panel < by_panel.size()) by_panel[m.panel][{m.what, m.index}].push_back(&m);
  }
  const auto has_heat = [&](bool two_sided) {
    return std::any_of(l.panels.begin(), l.panels.end(), [&](const auto& p) { return p.heat && p.heat->two_sided == two_sided; });
  };
  const std::string width = coordinate(figure_width);
  const std::string height = coordinate(l.height);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"dpf\" width=\"" + width + "\" height=\"" + height +
                    "\" viewBox=\"0 0 " + width + " " + height + "\" role=\"img\" aria-label=\"" + xml_escaped(f.alt) +
                    "\">\n<title>" + xml_escaped(f.title) + "</title>\n<style>\n" + style_sheet(has_heat(false), has_heat(true)) +
                    "</style>\n<rect class=\"bg\" width=\"" + width + "\" height=\"" + height + "\" rx=\"6\"/>\n";
  out += legend_text(l.legend);
  for (std::size_t i = 0; i < l.panels.size(); ++i) out += panel_drawing(l.panels[i], by_panel[i]).text();
  return out + "</svg>\n";
}

}  // namespace deltaproof
