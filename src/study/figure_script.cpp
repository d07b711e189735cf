// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>

#include "study/gnuplot.hpp"
#include "study/theme.hpp"
#include "support/text.hpp"

namespace deltaproof::detail {
namespace {

using enum role;

/// A row of a data block.
std::string line_of(std::initializer_list<double> values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : " ") + shortest(value);
  return text + "\n";
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\n' || c == '\r')
      out += ' ';
    else if (c == '\'')
      out += "’";
    else
      out += c;
  }
  return out + "'";
}

bool inside(const axis_range& r, double v) { return r.shows(v) && r.fraction(v) >= -1e-9 && r.fraction(v) <= 1 + 1e-9; }

// The part of a segment that lies in [-1/2, 3/2] x [-1/2, 3/2] of the panel; false if there is none.
bool cut(paper_point& a, paper_point& b) {
  double first = 0, last = 1;
  const auto narrow = [&](double from, double change) {
    if (change == 0) return from >= -0.5 && from <= 1.5;
    const double enter = ((change > 0 ? -0.5 : 1.5) - from) / change;
    const double leave = ((change > 0 ? 1.5 : -0.5) - from) / change;
    first = std::max(first, enter);
    last = std::min(last, leave);
    return first < last;
  };
  const double dx = b.x - a.x, dy = b.y - a.y;
  if (!narrow(a.x, dx) || !narrow(a.y, dy)) return false;
  const paper_point start{a.x + first * dx, a.y + first * dy};
  if (last < 1) b = {a.x + last * dx, a.y + last * dy};
  if (first > 0) a = start;
  return true;
}

/// A curve along its panel, in shares of width and height, thinned; NaN where it is broken.
struct track {
  std::vector<paper_point> points;
  std::vector<double> below;   // the lower end of a band
  std::vector<bool> infinite;  // what breaks it

  [[nodiscard]] bool shown(std::size_t k) const { return k < points.size() && std::isfinite(points[k].y); }
  [[nodiscard]] bool follows(std::size_t k) const { return k > 0 && shown(k - 1); }
};

track track_of(const placed_panel& p, const series& s) {
  const bool is_band = s.style == series_style::band;
  std::vector<double> along, height, below;
  std::vector<bool> infinite;
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    if (!p.x.shows(s.x[i])) continue;
    const double y = is_band ? s.y_upper[i] : s.y[i];
    along.push_back(p.x.fraction(s.x[i]));
    height.push_back(p.y.shows(y) ? p.y.fraction(y) : std::nan(""));
    below.push_back(p.y.shows(s.y[i]) ? p.y.fraction(s.y[i]) : 0);
    infinite.push_back(std::isinf(y));
  }
  // Of what lies beside the panel only the next point matters.
  std::size_t begin = 0;
  std::size_t end = along.size();
  while (begin + 1 < end && along[begin + 1] < 0) ++begin;
  while (end > begin + 1 && along[end - 2] > 1) --end;
  track t;
  for (const std::size_t k : decimate(std::span(along).subspan(begin, end - begin), std::span(height).subspan(begin, end - begin),
                                      static_cast<std::size_t>(std::clamp(p.width, 160.0, 640.0)))) {
    t.points.push_back({along[begin + k], height[begin + k]});
    t.below.push_back(below[begin + k]);
    t.infinite.push_back(infinite[begin + k]);
  }
  return t;
}

/// The commands of one panel: its axes, then one plot of all that is in it.
class panel_script {
 public:
  panel_script(const layout& l, std::size_t index, std::size_t& blocks)
      : layout_(l), panel_(l.panels[index]), index_(static_cast<int>(index)), blocks_(blocks) {}

  std::string text() {
    add_axes();
    if (panel_.heat) add_cells();
    for (const series& s : panel_.source->curves) add_curve(s);
    if (plot_.empty()) plot_ = "NaN with lines, ";  // everything lies outside the given range
    const auto range = [](const char* name, const axis_range& r) {
      return std::string("set ") + name + "range [" + shortest(r.low) + ":" + shortest(r.high) + "]\n";
    };
    return text_ + range("x", panel_.x) + range("y", panel_.y) + "plot " + plot_.substr(0, plot_.size() - 2) + "\n";
  }

 private:
  [[nodiscard]] std::string colour(role r, int index) const { return "'" + hex({static_cast<int>(r), index_, index}) + "'"; }

  void add_axes() {
    const placed_panel& p = panel_;
    const auto across = [](double v) { return shortest(v / figure_width) + "\n"; };
    const auto down = [&](double v) { return shortest(1 - v / layout_.height) + "\n"; };
    text_ += "set lmargin at screen " + across(p.left) + "set rmargin at screen " + across(p.left + p.width) +
             "set tmargin at screen " + down(p.top) + "set bmargin at screen " + down(p.top + p.height) + "unset logscale\n";
    if (p.x.scale == axis_scale::logarithmic) text_ += "set logscale x\n";
    if (p.y.scale == axis_scale::logarithmic) text_ += "set logscale y\n";
    text_ += std::string("set border ") + (p.heat ? "0" : "3") + " lw 1 lc rgb " + colour(axis_line, 0) + "\n";
    add_ticks("x", p.x_ticks, p.x_labelled && p.slanted == 0);
    add_ticks("y", p.y_ticks, p.y_labelled);
    text_ += p.heat ? "unset grid\n" : "set grid xtics ytics back lt 1 lw 1 lc rgb " + colour(grid, 0) + "\n";
    text_ += "unset arrow\n";
    for (const mark& m : p.source->marks) {
      const bool level = m.direction == mark_direction::horizontal;
      const axis_range& r = level ? p.y : p.x;
      if (!r.shows(m.at) || r.fraction(m.at) < 0 || r.fraction(m.at) > 1) continue;
      const std::string at = "first " + shortest(m.at);
      text_ += level ? "set arrow from graph 0, " + at + " to graph 1, " + at
                     : "set arrow from " + at + ", graph 0 to " + at + ", graph 1";
      text_ += " nohead back lw 1 lc rgb " + colour(mark_line, 0) + "\n";
    }
  }

  void add_ticks(const std::string& axis_name, const std::vector<tick>& ticks, bool labelled) {
    std::string list;
    for (const tick& t : ticks) {
      list += (list.empty() ? "" : ", ") + quoted(labelled ? t.label : std::string()) + " " + shortest(t.at) +
              (t.label.empty() ? " 1" : " 0");
    }
    text_ += "set " + axis_name + "tics out nomirror scale 0,0.5 textcolor rgb " + colour(tick_label, 0) + " (" + list + ")\n";
  }

  /// Data, and how they are plotted; nothing of no data.
  void add_block(const std::string& data, const std::string& style, role r, int index) {
    if (data.find_first_not_of('\n') == std::string::npos) return;
    const std::string name = "$d" + std::to_string(blocks_++);
    text_ += name + " << EOD\n" + data + "EOD\n";
    plot_ += name + " " + style + " lc rgb " + colour(r, index) + ", ";
  }

  // Horizontal runs of one colour are one rectangle: large maps stay small files.
  void add_cells() {
    const heat_map& h = *panel_.source->heat;
    std::map<int, std::string> by_level;
    const auto edge = [](const axis_range& r, std::size_t i, std::size_t n) {
      return r.value(static_cast<double>(i) / static_cast<double>(n));
    };
    for (std::size_t row = 0; row < h.rows; ++row) {
      const bool downward = !h.row_names.empty();
      const double y0 = downward ? static_cast<double>(row) : edge(panel_.y, row, h.rows);
      const double y1 = downward ? static_cast<double>(row + 1) : edge(panel_.y, row + 1, h.rows);
      const auto level_at = [&](std::size_t column) { return panel_.heat->level(h.values[row * h.columns + column]); };
      for (std::size_t begin = 0; begin < h.columns;) {
        const int level = level_at(begin);
        std::size_t end = begin + 1;
        while (!panel_.cells_stand_apart() && end < h.columns && level_at(end) == level) ++end;
        const double x0 = edge(panel_.x, begin, h.columns);
        by_level[level] += line_of({x0, y0, x0, edge(panel_.x, end, h.columns), std::min(y0, y1), std::max(y0, y1)});
        begin = end;
      }
    }
    for (const auto& [level, data] : by_level) add_block(data, "with boxxyerror", cell_area, level);
  }

  void add_curve(const series& s) {
    int id = no_index;
    for (const legend_entry& e : layout_.legend) {
      if (e.label == s.label && !e.cross) id = e.index;
    }
    if (s.style == series_style::points || s.style == series_style::cloud) {
      add_dots(s, id);
    } else if (s.style == series_style::bars) {
      add_bars(s, id);
    } else {
      add_path(s, id);
    }
  }

  void add_dots(const series& s, int id) {
    std::string data;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (inside(panel_.x, s.x[i]) && inside(panel_.y, s.y[i])) data += line_of({s.x[i], s.y[i]});
    }
    add_block(data, "with dots", s.style == series_style::points ? points : cloud, id);
  }

  void add_bars(const series& s, int id) {
    const double half = bar_step(s) / 2;
    const axis_range& y = panel_.y;
    const double base = y.scale == axis_scale::linear ? std::clamp(0.0, y.low, y.high) : y.low;
    std::string data;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (!inside(panel_.x, s.x[i]) || !y.shows(s.y[i]) || s.y[i] == base) continue;
      const double height = std::clamp(s.y[i], y.low, y.high);
      data += line_of({s.x[i], height, s.x[i] - half, s.x[i] + half, std::min(base, height), std::max(base, height)});
    }
    add_block(data, "with boxxyerror", bar, id);
  }

  // Lines, steps and bands: broken at what cannot be drawn, and cut to the neighbourhood of the panel (gnuplot's own coordinates
  // are integers that overflow far outside).
  void add_path(const series& s, int id) {
    const track t = track_of(panel_, s);
    const auto text = [&](paper_point q) { return line_of({panel_.x.value(q.x), panel_.y.value(q.y)}); };
    const auto near = [](double v) { return std::clamp(v, -0.5, 1.5); };
    const auto within = [](double v) { return std::clamp(v, 0.0, 1.0); };
    const auto visible = [&](const paper_point& q) { return within(q.x) == q.x && within(q.y) == q.y; };
    std::string data, crosses, alone;
    paper_point pen{HUGE_VAL, HUGE_VAL};
    for (std::size_t k = 0; k < t.points.size(); ++k) {
      const paper_point& here = t.points[k];
      if (!t.shown(k)) {
        const bool ends = t.infinite[k] && t.follows(k) && within(t.points[k - 1].y) == t.points[k - 1].y;
        if (ends) crosses += text(t.points[k - 1]);
        data += "\n";
        continue;
      }
      if (s.style == series_style::band) {
        const auto y = [&](double v) { return panel_.y.value(within(v)); };
        data += line_of({panel_.x.value(near(here.x)), y(t.below[k]), y(here.y)});
        continue;
      }
      if (s.style == series_style::steps) {
        data += text({near(here.x), near(here.y)});
      } else if (t.follows(k)) {
        paper_point start = t.points[k - 1], stop = here;
        if (!cut(start, stop)) continue;
        if (!(start == pen)) data += "\n" + text(start);
        data += text(stop);
        pen = stop;
      }
      if (!t.follows(k) && !t.shown(k + 1) && visible(here)) alone += text(here);
    }
    if (s.style == series_style::band) {
      add_block(data, "using 1:2:3 with filledcurves", band, id);
    } else {
      add_block(data, s.style == series_style::steps ? "with steps lw 2" : "with lines lw 2", line, id);
    }
    add_block(alone, "with dots", points, id);
    add_block(crosses, "with dots", overflow, id);
  }

  const layout& layout_;
  const placed_panel& panel_;
  int index_;
  std::size_t& blocks_;
  std::string text_, plot_;
};

}  // namespace

std::string script_of(const layout& l) {
  std::string text = "set terminal svg size " + shortest(figure_width) + "," + shortest(l.height) +
                     " noenhanced font 'sans-serif,11'\n"
                     "set encoding utf8\nset multiplot\nset clip one\nset clip two\nset key off\n"
                     "set style fill solid 1 noborder\n";
  std::size_t blocks = 0;
  for (std::size_t i = 0; i < l.panels.size(); ++i) text += panel_script(l, i, blocks).text();
  return text + "unset multiplot\n";
}

}  // namespace deltaproof::detail
