// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/figure.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "deltaproof/study/report.hpp"
#include "study/gnuplot.hpp"
#include "study/layout.hpp"
#include "study/theme.hpp"

namespace deltaproof {
namespace {

using namespace detail;

// What a colour of the script means; the other two numbers are the panel and the series.
enum role : int { grid = 1, axis_line, tick_label, line, band, cloud, points, bar, cell_area, mark_line, overflow };
constexpr int unlabelled = 255;

std::string exact(double value) {
  std::array<char, 32> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

std::string colour(role r, std::size_t panel_index, int index) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "'#";
  for (const int part : {static_cast<int>(r), static_cast<int>(panel_index), index}) {
    text += digits[static_cast<std::size_t>(part / 16)];
    text += digits[static_cast<std::size_t>(part % 16)];
  }
  return text + "'";
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

struct heat_scale {
  axis_range range;
  bool two_sided = false;
  double middle = 0;
  bool has_gaps = false;

  [[nodiscard]] int level(double v) const {
    if (!std::isfinite(v)) return -1;
    double t = 0;
    if (two_sided) {
      t = v < middle ? 0.5 * (v - range.low) / (middle - range.low) : 0.5 + 0.5 * (v - middle) / (range.high - middle);
    } else if (range.shows(v)) {
      t = range.fraction(v);
    }
    return std::clamp(static_cast<int>(std::floor(t * heat_levels)), 0, heat_levels - 1);
  }
};

// One scale for all heat maps of a figure with the same label, so that a colour means one value.
heat_scale scale_of(const figure& f, const heat_map& h) {
  heat_scale s;
  s.range.scale = h.middle ? axis_scale::linear : h.scale;
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  for (const panel& p : f.panels) {
    if (!p.heat || p.heat->label != h.label) continue;
    for (const double v : p.heat->values) {
      if (!s.range.shows(v)) {
        s.has_gaps = s.has_gaps || !std::isfinite(v);
        continue;
      }
      low = std::min(low, v);
      high = std::max(high, v);
    }
  }
  if (low > high) low = s.range.scale == axis_scale::logarithmic ? 1 : 0, high = low;
  if (h.middle) {
    s.two_sided = true;
    s.middle = *h.middle;
    const double reach = std::max(std::abs(high - s.middle), std::abs(s.middle - low));
    low = s.middle - reach;
    high = s.middle + reach;
  }
  s.range.low = h.minimum.value_or(low);
  s.range.high = h.maximum.value_or(high);
  if (!(s.range.low < s.range.high)) s.range.high = s.range.scale == axis_scale::logarithmic ? s.range.low * 10 : s.range.low + 1;
  if (s.two_sided) {
    if (!(s.range.low < s.middle)) s.range.low = s.middle - (s.range.high - s.middle);
    if (!(s.range.high > s.middle)) s.range.high = s.middle + (s.middle - s.range.low);
  }
  return s;
}

class script {
 public:
  script(const figure& f, const layout& l) : figure_(f), layout_(l) {
    text_ = "set terminal svg size " + exact(figure_width) + "," + exact(l.height) +
            " noenhanced font 'sans-serif,11'\n"
            "set encoding utf8\nset multiplot\nset clip one\nset clip two\nset key off\nset style fill solid 1 noborder\n";
    for (std::size_t i = 0; i < l.panels.size(); ++i) add(i);
    text_ += "unset multiplot\n";
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  [[nodiscard]] int index_of(const series& s) const {
    for (const legend_entry& e : layout_.legend) {
      if (e.label == s.label && !e.cross) return e.index;
    }
    return unlabelled;
  }

  void ticks(const char* axis_name, const std::vector<tick>& ticks, bool labelled, std::size_t panel_index) {
    text_ += std::string("set ") + axis_name + "tics out nomirror scale 0,0.5 textcolor rgb " +
             colour(tick_label, panel_index, 0) + " (";
    bool first = true;
    for (const tick& t : ticks) {
      text_ +=
          (first ? "" : ", ") + quoted(labelled ? t.label : std::string()) + " " + exact(t.at) + (t.label.empty() ? " 1" : " 0");
      first = false;
    }
    text_ += ")\n";
  }

  void add(std::size_t index) {
    const placed_panel& p = layout_.panels[index];
    const panel& source = *p.source;
    const auto horizontal = [](double v) { return exact(v / figure_width); };
    const auto vertical = [&](double v) { return exact(1 - v / layout_.height); };
    text_ += "set lmargin at screen " + horizontal(p.left) + "\nset rmargin at screen " + horizontal(p.left + p.width) +
             "\nset tmargin at screen " + vertical(p.top) + "\nset bmargin at screen " + vertical(p.top + p.height) + "\n";
    text_ += "unset logscale\n";
    if (p.x.scale == axis_scale::logarithmic) text_ += "set logscale x\n";
    if (p.y.scale == axis_scale::logarithmic) text_ += "set logscale y\n";
    text_ += "set border " + std::string(source.heat ? "0" : "3") + " lw 1 lc rgb " + colour(axis_line, index, 0) + "\n";
    ticks("x", p.x_ticks, p.x_labelled && p.slanted == 0, index);
    ticks("y", p.y_ticks, p.y_labelled, index);
    text_ += source.heat ? "unset grid\n" : "set grid xtics ytics back lt 1 lw 1 lc rgb " + colour(grid, index, 0) + "\n";
    text_ += "unset arrow\n";
    for (const mark& m : source.marks) {
      const bool across = m.direction == mark_direction::horizontal;
      const axis_range& r = across ? p.y : p.x;
      if (!r.shows(m.at) || r.fraction(m.at) < 0 || r.fraction(m.at) > 1) continue;
      text_ += across ? "set arrow from graph 0, first " + exact(m.at) + " to graph 1, first " + exact(m.at)
                      : "set arrow from first " + exact(m.at) + ", graph 0 to first " + exact(m.at) + ", graph 1";
      text_ += " nohead back lw 1 lc rgb " + colour(mark_line, index, 0) + "\n";
    }
    std::string plot;
    if (source.heat) cells(index, plot);
    for (const series& s : source.curves) curve(index, s, plot);
    if (plot.empty()) plot = "NaN with lines, ";  // everything lies outside the given range
    const auto range = [](const char* name, const axis_range& r) {
      return std::string("set ") + name + "range [" + exact(r.low) + ":" + exact(r.high) + "]\n";
    };
    text_ += range("x", p.x) + range("y", p.y) + "plot " + plot.substr(0, plot.size() - 2) + "\n";
  }

  void block(const std::string& data, const std::string& style, std::string& plot) {
    const std::string name = "$d" + std::to_string(blocks_++);
    text_ += name + " << EOD\n" + data + "EOD\n";
    plot += name + " " + style + ", ";
  }

  // Horizontal runs of one colour are one rectangle: large maps stay small files.
  void cells(std::size_t index, std::string& plot) {
    const placed_panel& p = layout_.panels[index];
    const heat_map& h = *p.source->heat;
    const heat_scale scale = scale_of(figure_, h);
    std::map<int, std::string> by_level;
    const bool separate = h.columns <= 24;
    const auto edge = [](const axis_range& r, std::size_t i, std::size_t n) {
      const double t = static_cast<double>(i) / static_cast<double>(n);
      return r.scale == axis_scale::linear ? r.low + t * (r.high - r.low) : r.low * std::pow(r.high / r.low, t);
    };
    for (std::size_t row = 0; row < h.rows; ++row) {
      const bool downward = !h.row_names.empty();
      const double y0 = downward ? static_cast<double>(row) : edge(p.y, row, h.rows);
      const double y1 = downward ? static_cast<double>(row + 1) : edge(p.y, row + 1, h.rows);
      for (std::size_t begin = 0; begin < h.columns;) {
        const int level = scale.level(h.values[row * h.columns + begin]);
        std::size_t end = begin + 1;
        while (!separate && end < h.columns && scale.level(h.values[row * h.columns + end]) == level) ++end;
        const double x0 = edge(p.x, begin, h.columns);
        const double x1 = edge(p.x, end, h.columns);
        by_level[level] += exact(x0) + " " + exact(y0) + " " + exact(x0) + " " + exact(x1) + " " + exact(std::min(y0, y1)) + " " +
                           exact(std::max(y0, y1)) + "\n";
        begin = end;
      }
    }
    for (const auto& [level, data] : by_level) {
      block(data, "with boxxyerror lc rgb " + colour(cell_area, index, level < 0 ? unlabelled : level), plot);
    }
  }

  void curve(std::size_t index, const series& s, std::string& plot) {
    const placed_panel& p = layout_.panels[index];
    const int id = index_of(s);
    const auto in_panel = [](const axis_range& r, double v) {
      return r.shows(v) && r.fraction(v) >= -1e-9 && r.fraction(v) <= 1 + 1e-9;
    };
    std::string data;
    switch (s.style) {
      case series_style::points:
      case series_style::cloud:
        for (std::size_t i = 0; i < s.x.size(); ++i) {
          if (in_panel(p.x, s.x[i]) && in_panel(p.y, s.y[i])) data += exact(s.x[i]) + " " + exact(s.y[i]) + "\n";
        }
        if (!data.empty())
          block(data, "with dots lc rgb " + colour(s.style == series_style::points ? points : cloud, index, id), plot);
        return;
      case series_style::bars: {
        double step = HUGE_VAL;
        for (std::size_t i = 1; i < s.x.size(); ++i) step = std::min(step, std::abs(s.x[i] - s.x[i - 1]));
        if (!std::isfinite(step)) step = 1;
        const double base = p.y.scale == axis_scale::linear ? std::clamp(0.0, p.y.low, p.y.high) : p.y.low;
        for (std::size_t i = 0; i < s.x.size(); ++i) {
          if (!in_panel(p.x, s.x[i]) || !p.y.shows(s.y[i]) || s.y[i] == base) continue;
          const double height = std::clamp(s.y[i], p.y.low, p.y.high);
          data += exact(s.x[i]) + " " + exact(height) + " " + exact(s.x[i] - step / 2) + " " + exact(s.x[i] + step / 2) + " " +
                  exact(std::min(base, height)) + " " + exact(std::max(base, height)) + "\n";
        }
        if (!data.empty()) block(data, "with boxxyerror lc rgb " + colour(bar, index, id), plot);
        return;
      }
      default:
        break;
    }
    path(index, s, id, plot);
  }

  // Lines, steps and bands: thinned along the drawn axis, broken at what cannot be drawn, and cut to the
  // neighbourhood of the panel (gnuplot's own coordinates are integers that overflow far outside).
  void path(std::size_t index, const series& s, int id, std::string& plot) {
    const placed_panel& p = layout_.panels[index];
    const bool is_band = s.style == series_style::band;
    std::vector<double> along;
    std::vector<double> height;
    std::vector<double> below;
    std::vector<bool> infinite;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (!p.x.shows(s.x[i])) continue;
      along.push_back(p.x.fraction(s.x[i]));
      const double y = is_band ? s.y_upper[i] : s.y[i];
      height.push_back(p.y.shows(y) ? p.y.fraction(y) : std::nan(""));
      below.push_back(p.y.shows(s.y[i]) ? p.y.fraction(s.y[i]) : 0);
      infinite.push_back(std::isinf(y));
    }
    // Of what lies beside the panel only the next point matters.
    std::size_t begin = 0;
    std::size_t end = along.size();
    while (begin + 1 < end && along[begin + 1] < 0) ++begin;
    while (end > begin + 1 && along[end - 2] > 1) --end;
    const auto kept = decimate(std::span(along).subspan(begin, end - begin), std::span(height).subspan(begin, end - begin),
                               static_cast<std::size_t>(std::clamp(p.width, 160.0, 640.0)));
    std::string data;
    std::string crosses;
    std::string alone;
    const auto text = [&](paper_point q) { return exact(p.x.value(q.x)) + " " + exact(p.y.value(q.y)); };
    const auto visible = [&](std::size_t k) { return k < kept.size() && std::isfinite(height[begin + kept[k]]); };
    paper_point pen{HUGE_VAL, HUGE_VAL};
    for (std::size_t k = 0; k < kept.size(); ++k) {
      const std::size_t i = begin + kept[k];
      if (!visible(k)) {
        const std::size_t last = k > 0 ? begin + kept[k - 1] : i;
        if (infinite[i] && k > 0 && visible(k - 1) && height[last] >= 0 && height[last] <= 1)
          crosses += text({along[last], height[last]}) + "\n";
        data += "\n";
        continue;
      }
      const paper_point here{along[i], height[i]};
      const auto near = [](double t) { return std::clamp(t, -0.5, 1.5); };
      if (is_band) {
        const auto inside = [](double t) { return std::clamp(t, 0.0, 1.0); };
        data += text({near(here.x), inside(below[i])}) + " " + exact(p.y.value(inside(here.y))) + "\n";
      } else if (s.style == series_style::steps) {
        data += text({near(here.x), near(here.y)}) + "\n";
      } else if (k > 0 && visible(k - 1)) {
        const std::size_t before = begin + kept[k - 1];
        paper_point start{along[before], height[before]};
        paper_point stop = here;
        if (!cut(start, stop)) continue;
        if (start.x != pen.x || start.y != pen.y) data += "\n" + text(start) + "\n";
        data += text(stop) + "\n";
        pen = stop;
      }
      const bool single = !(k > 0 && visible(k - 1)) && !visible(k + 1);
      if (single && !is_band && here.x >= 0 && here.x <= 1 && here.y >= 0 && here.y <= 1) alone += text(here) + "\n";
    }
    if (data.find_first_not_of('\n') != std::string::npos) {
      block(data,
            is_band ? "using 1:2:3 with filledcurves lc rgb " + colour(band, index, id)
                    : std::string(s.style == series_style::steps ? "with steps" : "with lines") + " lw 2 lc rgb " +
                          colour(line, index, id),
            plot);
    }
    if (!alone.empty()) block(alone, "with dots lc rgb " + colour(points, index, id), plot);
    if (!crosses.empty()) block(crosses, "with dots lc rgb " + colour(overflow, index, id), plot);
  }

  // The part of a segment that lies in [-1/2, 3/2] x [-1/2, 3/2] of the panel; false if there is none.
  static bool cut(paper_point& a, paper_point& b) {
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

  const figure& figure_;
  const layout& layout_;
  std::string text_;
  std::size_t blocks_ = 0;
};

long tenths(double v) { return std::lround(v * 10); }

// Absolute moves, relative lines, in tenths of a pixel so that rounding never adds up; a point on the
// straight way between its neighbours is left out.
std::string path_data(const std::vector<std::vector<paper_point>>& lines, bool closed) {
  std::string out;
  for (const auto& points : lines) {
    std::vector<std::pair<long, long>> kept;
    for (const paper_point& p : points) {
      const std::pair<long, long> at{tenths(p.x), tenths(p.y)};
      if (!kept.empty() && kept.back() == at) continue;
      while (kept.size() >= 2) {
        const auto& [ax, ay] = kept[kept.size() - 2];
        const auto& [bx, by] = kept.back();
        const double dx = static_cast<double>(at.first - ax), dy = static_cast<double>(at.second - ay);
        const double ex = static_cast<double>(bx - ax), ey = static_cast<double>(by - ay);
        const double along = ex * dx + ey * dy;
        const double across = std::abs(ex * dy - ey * dx);
        const double length = std::hypot(dx, dy);
        if (across > 0.4 * length || along < 0 || along > length * length) break;
        kept.pop_back();
      }
      kept.push_back(at);
    }
    if (kept.size() < 2) continue;
    const auto number_text = [&](long v, bool first) {
      std::string text = coordinate(static_cast<double>(v) / 10);
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

// gnuplot ends a long path and goes on in the next element where it stopped.
std::vector<std::vector<paper_point>> joined(const std::vector<const paper_mark*>& marks) {
  std::vector<std::vector<paper_point>> lines;
  for (const paper_mark* m : marks) {
    const bool goes_on =
        !lines.empty() && lines.back().back().x == m->points.front().x && lines.back().back().y == m->points.front().y;
    if (goes_on)
      lines.back().insert(lines.back().end(), m->points.begin() + 1, m->points.end());
    else
      lines.push_back(m->points);
  }
  return lines;
}

// Thousands of dots as one path on a grid just fine enough: vertical neighbours are one stroke. Few
// distinct x (a parameter that was swept) stay where they are.
std::string cloud_path(const std::vector<const paper_mark*>& marks, const std::string& name) {
  std::set<long> columns;
  for (const paper_mark* m : marks) columns.insert(tenths(m->points[0].x));
  for (const long step : {4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 60, 80}) {  // tenths of a pixel
    const long step_x = columns.size() <= 700 ? 1 : step;
    std::map<long, std::set<long>> filled;
    std::size_t dots = 0;
    for (const paper_mark* m : marks) {
      const auto snapped = [](double v, long to) { return std::lround(v * 10 / static_cast<double>(to)); };
      dots += filled[snapped(m->points[0].x, step_x)].insert(snapped(m->points[0].y, step)).second ? 1 : 0;
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
    const double size = dots < 150 ? 3.2 : dots < 3000 ? 1.8 : std::max(1.1, static_cast<double>(step) * 0.115);
    return "<path class=\"cl " + name + "\" stroke-width=\"" + coordinate(size) + "\" d=\"" + d + "\"/>\n";
  }
  return {};
}

// Which places of a panel have ink on them, in squares of 4 pixels.
class ink {
 public:
  explicit ink(const placed_panel& p) : p_(p) {}
  void dot(double x, double y) { taken_.insert({std::lround(std::floor(x / 4)), std::lround(std::floor(y / 4))}); }
  void segment(paper_point a, paper_point b) {
    const double steps = std::ceil(std::hypot(b.x - a.x, b.y - a.y) / 2) + 1;
    for (double i = 0; i <= steps; ++i) dot(a.x + (b.x - a.x) * i / steps, a.y + (b.y - a.y) * i / steps);
  }
  void box(double left, double top, double right, double bottom) {
    for (double x = left; x <= right; x += 3) {
      for (double y = top; y <= bottom; y += 3) dot(x, y);
    }
  }
  [[nodiscard]] std::size_t under(double left, double top, double right, double bottom) const {
    std::size_t hits = 0;
    for (double x = left; x <= right; x += 4) {
      for (double y = top; y <= bottom; y += 4)
        hits += taken_.count({std::lround(std::floor(x / 4)), std::lround(std::floor(y / 4))});
    }
    if (top < p_.top || bottom > p_.top + p_.height) hits += 1000;
    return hits;
  }

 private:
  const placed_panel& p_;
  std::set<std::pair<long, long>> taken_;
};

// The contour of a histogram: bars that touch share it.
std::string outline(const std::vector<const paper_mark*>& bars) {
  std::vector<std::array<double, 4>> boxes;  // left, right, top, bottom
  for (const paper_mark* m : bars) {
    if (m->kind != paper_mark::shape::area || m->points.empty()) continue;
    std::array<double, 4> box{1e9, -1e9, 1e9, -1e9};
    for (const paper_point& q : m->points) {
      box = {std::min(box[0], q.x), std::max(box[1], q.x), std::min(box[2], q.y), std::max(box[3], q.y)};
    }
    boxes.push_back(box);
  }
  std::sort(boxes.begin(), boxes.end());
  std::vector<std::vector<paper_point>> lines;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const auto& [left, right, top, bottom] = boxes[i];
    const bool touches = i > 0 && left - boxes[i - 1][1] < 0.5;
    if (!touches) lines.push_back({{left, bottom}});
    lines.back().push_back({left, top});
    lines.back().push_back({right, top});
    if (i + 1 == boxes.size() || boxes[i + 1][0] - right >= 0.5) lines.back().push_back({right, bottom});
  }
  return path_data(lines, false);
}

std::string text_element(const std::string& name, double x, double y, const std::string& anchor,
                         const std::string& escaped_text) {
  return "<text" + (name.empty() ? "" : " class=\"" + name + "\"") + " x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\"" +
         (anchor == "start" ? "" : " text-anchor=\"" + anchor + "\"") + ">" + escaped_text + "</text>\n";
}

std::string cross(double x, double y) { return "M" + coordinate(x - 4) + " " + coordinate(y - 4) + "l8 8m0-8l-8 8"; }

std::string heat_class(const heat_scale& s, int level) { return (s.two_sided ? "e" : "h") + std::to_string(level); }

std::string heat_key(const placed_panel& p, const heat_scale& s) {
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
    out += "<path class=\"ce " + heat_class(s, i) + "\" d=\"M" + coordinate(x) + " " + coordinate(y) + "h" + coordinate(swatch) +
           "v11h-" + coordinate(swatch) + "z\"/>\n";
    x += swatch;
  }
  x += 5;
  out += text_element("", x, y + 10, "start", high);
  x += text_width(high, 11) + 12;
  if (s.has_gaps) {
    out += "<path class=\"ce n\" d=\"M" + coordinate(x) + " " + coordinate(y) + "h11v11h-11z\"/>\n" +
           text_element("", x + 15, y + 10, "start", "not finite");
  }
  return out;
}

std::string heat_numbers(const placed_panel& p, const heat_scale& s) {
  const heat_map& h = *p.source->heat;
  std::string out;
  if (h.digits <= 0) return out;
  for (std::size_t row = 0; row < h.rows; ++row) {
    for (std::size_t c = 0; c < h.columns; ++c) {
      const double v = h.values[row * h.columns + c];
      const int level = s.level(v);
      const double x = p.left + p.width * (static_cast<double>(c) + 0.5) / static_cast<double>(h.columns);
      const double down = (static_cast<double>(row) + 0.5) / static_cast<double>(h.rows);
      const double y = p.top + p.height * (h.row_names.empty() ? 1 - down : down) + 4;
      const bool end = level < 3 || level >= heat_levels - 3;
      const std::string name = level < 0 ? "he" : s.two_sided ? (end ? "hx" : "he") : level_is_light(level) ? "hd" : "hl";
      out += text_element(name, x, y, "middle", tick_text(v, h.digits));
    }
  }
  return out;
}

std::string legend_text(const std::vector<legend_entry>& legend) {
  std::string out;
  for (const legend_entry& e : legend) {
    const std::string name = series_class(e.index);
    if (e.bars || e.band)
      out += "<path class=\"" + std::string(e.band ? "bd " : "br ") + name + "\" d=\"M" + coordinate(e.x) + " " +
             coordinate(e.y - 5) + "h20v10h-20z\"/>\n";
    if (e.bars)
      out += "<path class=\"bo " + name + "\" d=\"M" + coordinate(e.x) + " " + coordinate(e.y - 5) + "h20v10h-20z\"/>\n";
    if (e.cross) out += "<path class=\"x " + name + "\" d=\"" + cross(e.x + 10, e.y) + "\"/>\n";
    if (e.line) out += "<path class=\"ln " + name + "\" d=\"M" + coordinate(e.x) + " " + coordinate(e.y) + "h20\"/>\n";
    if (e.points) out += "<path class=\"mk " + name + "\" d=\"" + marker(e.index, e.x + 10, e.y) + "\"/>\n";
    if (e.cloud)
      out +=
          "<path class=\"cl " + name + "\" stroke-width=\"5\" d=\"M" + coordinate(e.x + 10) + " " + coordinate(e.y) + "h0\"/>\n";
    out += text_element("y", e.x + 26, e.y + 4, "start", xml_escaped(e.label));
  }
  return out;
}

using groups = std::map<std::pair<int, int>, std::vector<const paper_mark*>>;

std::string panel_text(const figure& f, const placed_panel& p, const groups& found) {
  std::string out;
  ink occupied(p);
  const auto strokes = [&](role r, const char* name) {
    const auto at = found.find({r, 0});
    if (at == found.end()) return;
    out += "<path class=\"" + std::string(name) + "\" d=\"" + path_data(joined(at->second), false) + "\"/>\n";
  };
  const auto each = [&](role r, const auto& act) {
    for (const auto& [key, marks] : found) {
      if (key.first == r) act(key.second == unlabelled ? -1 : key.second, marks);
    }
  };
  const auto areas = [&](role r, const char* name) {
    each(r, [&](int index, const auto& marks) {
      std::vector<std::vector<paper_point>> polygons;
      for (const paper_mark* m : marks) {
        if (m->kind == paper_mark::shape::area) polygons.push_back(m->points);
      }
      out += "<path class=\"" + std::string(name) + " " + series_class(index) + "\" d=\"" + path_data(polygons, true) + "\"/>\n";
    });
  };
  strokes(grid, "g");
  if (p.source->heat) {
    const heat_scale s = scale_of(f, *p.source->heat);
    each(cell_area, [&](int level, const auto& marks) {
      std::string d;
      // Few cells stand apart; many touch, and overlap a little so that no background shines through.
      const bool apart = p.source->heat->columns <= 24;
      const double inset = apart ? 1.2 : -0.4;
      for (const paper_mark* m : marks) {
        if (m->kind != paper_mark::shape::area || m->points.size() < 4) continue;
        double left = 1e9, right = -1e9, top = 1e9, bottom = -1e9;
        for (const paper_point& q : m->points) {
          left = std::min(left, q.x), right = std::max(right, q.x), top = std::min(top, q.y), bottom = std::max(bottom, q.y);
        }
        d += "M" + coordinate(left) + " " + coordinate(top) + "h" + coordinate(right - left - inset) + "v" +
             coordinate(bottom - top - inset) + "h-" + coordinate(right - left - inset) + "z";
      }
      out += std::string("<path class=\"") + (apart ? "ar " : "ce ") + (level < 0 ? "n" : heat_class(s, level)) + "\" d=\"" + d +
             "\"/>\n";
    });
    out += (p.has_key ? heat_key(p, s) : std::string()) + heat_numbers(p, s);
    if (p.slanted > 0) {
      for (const tick& t : p.x_ticks) {
        const std::string x = coordinate(p.to_x(t.at) + 4);
        const std::string y = coordinate(p.top + p.height + 12);
        out += "<text x=\"" + x + "\" y=\"" + y + "\" text-anchor=\"end\" transform=\"rotate(-35 " + x + " " + y + ")\">" +
               xml_escaped(t.label) + "</text>\n";
      }
    }
  }
  areas(band, "bd");
  areas(bar, "br");
  each(bar, [&](int index, const auto& marks) {
    out += "<path class=\"bo " + series_class(index) + "\" d=\"" + outline(marks) + "\"/>\n";
  });
  strokes(mark_line, "m");
  each(cloud, [&](int index, const auto& marks) {
    for (const paper_mark* m : marks) occupied.dot(m->points[0].x, m->points[0].y);
    out += cloud_path(marks, series_class(index));
  });
  each(line, [&](int index, const auto& marks) {
    const auto lines = joined(marks);
    for (const auto& points : lines) {
      for (std::size_t i = 1; i < points.size(); ++i) occupied.segment(points[i - 1], points[i]);
    }
    out += "<path class=\"ln " + series_class(index) + "\" d=\"" + path_data(lines, false) + "\"/>\n";
  });
  each(overflow, [&](int index, const auto& marks) {
    std::string d;
    for (const paper_mark* m : marks) d += cross(m->points[0].x, m->points[0].y);
    out += "<path class=\"x " + series_class(index) + "\" d=\"" + d + "\"/>\n";
  });
  each(points, [&](int index, const auto& marks) {
    std::string d;
    for (const paper_mark* m : marks) {
      const auto& [x, y] = m->points[0];
      occupied.box(x - 4, y - 4, x + 4, y + 4);
      d += marker(index, x, y);
    }
    out += "<path class=\"mk " + series_class(index) + "\" d=\"" + d + "\"/>\n";
  });
  strokes(axis_line, "a");
  if (const auto at = found.find({tick_label, 0}); at != found.end()) {
    for (const paper_mark* m : at->second) out += text_element("", m->points[0].x, m->points[0].y, m->anchor, m->text);
  }
  for (const text_line& t : p.titles) out += text_element("t", t.x, t.y, "start", xml_escaped(t.text));
  for (const text_line& t : p.y_labels) out += text_element("y", t.x, t.y, "start", xml_escaped(t.text));
  for (const text_line& t : p.mark_labels) out += text_element("", t.x, t.y, "middle", xml_escaped(t.text));
  if (p.x_labelled && !p.source->x.label.empty()) {
    out += text_element("y", p.left + p.width / 2, p.top + p.height + std::max(18.0, p.slanted) + 16, "middle",
                        xml_escaped(p.source->x.label));
  }
  // A horizontal mark's label goes where the least is drawn: right, left or middle, above or below.
  for (const mark& m : p.source->marks) {
    if (m.direction == mark_direction::vertical || m.label.empty() || !p.y.shows(m.at) || p.y.fraction(m.at) < 0 ||
        p.y.fraction(m.at) > 1)
      continue;
    const double width = text_width(m.label, 11);
    const double y = p.to_y(m.at);
    double best_left = 0, best_y = 0;
    std::size_t best = static_cast<std::size_t>(-1);
    for (const double left : {p.left + p.width - width - 4, p.left + 5, p.left + (p.width - width) / 2}) {
      for (const double base : {y - 5, y + 13}) {
        const std::size_t hits = occupied.under(left, base - 10, left + width, base + 2);
        if (hits < best) best = hits, best_left = left, best_y = base;
      }
    }
    occupied.box(best_left, best_y - 10, best_left + width, best_y + 2);
    out += text_element("ha", best_left, best_y, "start", xml_escaped(m.label));
  }
  return out;
}

}  // namespace

std::string svg(const figure& f) {
  const layout l = arrange(f);
  const std::vector<paper_mark> paper = project(script(f, l).text());
  std::vector<groups> by_panel(l.panels.size());
  for (const paper_mark& m : paper) {
    const auto& [r, panel_index, index] = m.colour;
    if (r != 0 && static_cast<std::size_t>(panel_index) < by_panel.size())
      by_panel[static_cast<std::size_t>(panel_index)][{r, index}].push_back(&m);
  }
  const bool one_sided = std::any_of(f.panels.begin(), f.panels.end(), [](const panel& p) { return p.heat && !p.heat->middle; });
  const bool two_sided = std::any_of(f.panels.begin(), f.panels.end(), [](const panel& p) { return p.heat && p.heat->middle; });
  const std::string width = coordinate(figure_width);
  const std::string height = coordinate(l.height);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"dpf\" width=\"" + width + "\" height=\"" + height +
                    "\" viewBox=\"0 0 " + width + " " + height + "\" role=\"img\" aria-label=\"" + xml_escaped(f.alt) +
                    "\">\n<title>" + xml_escaped(f.title) + "</title>\n<style>\n" + style_sheet(one_sided, two_sided) +
                    "</style>\n<rect class=\"bg\" width=\"" + width + "\" height=\"" + height + "\" rx=\"6\"/>\n";
  out += legend_text(l.legend);
  for (std::size_t i = 0; i < l.panels.size(); ++i) out += panel_text(f, l.panels[i], by_panel[i]);
  return out + "</svg>\n";
}

}  // namespace deltaproof
