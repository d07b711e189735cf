// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "study/projection.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "study/theme.hpp"

namespace deltaproof::detail {
namespace {

// Places are shares of the panel's width and height, from its lower left corner.

bool within(double share) { return share >= -1e-9 && share <= 1 + 1e-9; }
bool inside(const axis_range& r, double v) { return r.shows(v) && within(r.fraction(v)); }

/// The part of a segment that lies in the panel; false if there is none.
bool cut(spot& a, spot& b) {
  double first = 0, last = 1;
  const auto narrow = [&](double from, double change) {
    if (change == 0) return within(from);
    first = std::max(first, ((change > 0 ? 0 : 1) - from) / change);
    last = std::min(last, ((change > 0 ? 1 : 0) - from) / change);
    return first < last;
  };
  const double dx = b.x - a.x, dy = b.y - a.y;
  if (!narrow(a.x, dx) || !narrow(a.y, dy)) return false;
  const spot start = a;
  if (first > 0) a = {start.x + first * dx, start.y + first * dy};
  if (last < 1) b = {start.x + last * dx, start.y + last * dy};
  return true;
}

/// The part of a polygon in which `depth` is not negative.
polyline half_of(const polyline& polygon, const std::function<double(const spot&)>& depth) {
  polyline kept;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const spot& here = polygon[i];
    const spot& next = polygon[(i + 1) % polygon.size()];
    const double a = depth(here), b = depth(next);
    if (a >= 0) kept.push_back(here);
    if ((a < 0) != (b < 0)) kept.push_back({here.x + a / (a - b) * (next.x - here.x), here.y + a / (a - b) * (next.y - here.y)});
  }
  return kept;
}

/// A curve along its panel, thinned; NaN where it is broken.
struct track {
  std::vector<spot> points;
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

class projector {
 public:
  projector(const layout& l, const placed_panel& p) : layout_(l), panel_(p) {}

  projection run() {
    add_axes();
    add_marks();
    if (panel_.heat) add_cells();
    for (const series& s : panel_.source->curves) {
      if (s.style == series_style::points || s.style == series_style::cloud) {
        add_dots(s);
      } else if (s.style == series_style::bars) {
        add_bars(s);
      } else if (s.style == series_style::band) {
        add_band(s);
      } else {
        add_line(s);
      }
    }
    return std::move(made_);
  }

 private:
  [[nodiscard]] double across(double share) const { return panel_.left + panel_.width * share; }
  [[nodiscard]] double down(double share) const { return panel_.top + panel_.height * (1 - share); }
  [[nodiscard]] spot on_paper(const spot& place) const { return {across(place.x), down(place.y)}; }
  [[nodiscard]] polyline upright(double x) const { return {{across(x), down(0)}, {across(x), down(1)}}; }
  [[nodiscard]] polyline level(double y) const { return {{across(0), down(y)}, {across(1), down(y)}}; }

  [[nodiscard]] int index_of(const series& s) const {
    for (const legend_entry& e : layout_.legend) {
      if (e.label == s.label && !e.cross) return e.index;
    }
    return no_index;
  }

  /// Lines of the grid at ticks with a number, short strokes at the small ones, and two sides; a heat map has neither grid nor
  /// sides.
  void add_axes() {
    constexpr double stroke = 4;
    for (const tick& t : panel_.y_ticks) {
      const double at = panel_.y.fraction(t.at);
      if (t.label.empty()) made_.axes.push_back({{across(0), down(at)}, {across(0) - stroke, down(at)}});
      if (!t.label.empty() && !panel_.heat) made_.grid.push_back(level(at));
    }
    for (const tick& t : panel_.x_ticks) {
      const double at = panel_.x.fraction(t.at);
      if (t.label.empty()) made_.axes.push_back({{across(at), down(0)}, {across(at), down(0) + stroke}});
      if (!t.label.empty() && !panel_.heat) made_.grid.push_back(upright(at));
    }
    if (!panel_.heat) made_.axes.push_back({{across(0), down(1)}, {across(0), down(0)}, {across(1), down(0)}});
  }

  void add_marks() {
    for (const mark& m : panel_.source->marks) {
      const bool is_level = m.direction == mark_direction::horizontal;
      const axis_range& r = is_level ? panel_.y : panel_.x;
      if (inside(r, m.at)) made_.marks.push_back(is_level ? level(r.fraction(m.at)) : upright(r.fraction(m.at)));
    }
  }

  // Horizontal runs of one colour are one rectangle: large maps stay small files.
  void add_cells() {
    const heat_map& h = *panel_.source->heat;
    const auto share = [](std::size_t i, std::size_t n) { return static_cast<double>(i) / static_cast<double>(n); };
    for (std::size_t row = 0; row < h.rows; ++row) {
      // Named rows run downward.
      const std::size_t from_below = h.row_names.empty() ? row : h.rows - 1 - row;
      const auto level_at = [&](std::size_t column) { return panel_.heat->level(h.values[row * h.columns + column]); };
      for (std::size_t begin = 0, end = 0; begin < h.columns; begin = end) {
        for (end = begin + 1; !panel_.cells_stand_apart() && end < h.columns && level_at(end) == level_at(begin);) ++end;
        made_.cells[level_at(begin)].push_back({across(share(begin, h.columns)), across(share(end, h.columns)),
                                                down(share(from_below + 1, h.rows)), down(share(from_below, h.rows))});
      }
    }
  }

  void add_dots(const series& s) {
    auto& dots = (s.style == series_style::points ? made_.points : made_.clouds)[index_of(s)];
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (inside(panel_.x, s.x[i]) && inside(panel_.y, s.y[i]))
        dots.push_back(on_paper({panel_.x.fraction(s.x[i]), panel_.y.fraction(s.y[i])}));
    }
  }

  void add_bars(const series& s) {
    const double half = bar_step(s) / 2;
    const axis_range& y = panel_.y;
    const auto clamped = [](const axis_range& r, double v) {
      return std::clamp(r.fraction(std::clamp(v, r.low, r.high)), 0.0, 1.0);
    };
    const double base = y.scale == axis_scale::linear ? 0 : y.low;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (!inside(panel_.x, s.x[i]) || !y.shows(s.y[i]) || s.y[i] == base) continue;
      const auto [low, high] = std::minmax({clamped(y, base), clamped(y, s.y[i])});
      made_.bars[index_of(s)].push_back(
          {across(clamped(panel_.x, s.x[i] - half)), across(clamped(panel_.x, s.x[i] + half)), down(high), down(low)});
    }
  }

  void add_band(const series& s) {
    const track t = track_of(panel_, s);
    polyline upper, lower;
    for (std::size_t k = 0; k <= t.points.size(); ++k) {
      if (t.shown(k)) {
        upper.push_back(t.points[k]);
        lower.push_back({t.points[k].x, t.below[k]});
        continue;
      }
      polyline polygon = std::move(upper);
      polygon.insert(polygon.end(), lower.rbegin(), lower.rend());
      upper.clear(), lower.clear();
      polygon = half_of(polygon, [](const spot& p) { return p.x; });
      polygon = half_of(polygon, [](const spot& p) { return 1 - p.x; });
      polygon = half_of(polygon, [](const spot& p) { return p.y; });
      polygon = half_of(polygon, [](const spot& p) { return 1 - p.y; });
      for (spot& p : polygon) p = on_paper(p);
      if (!polygon.empty()) made_.bands[index_of(s)].push_back(std::move(polygon));
    }
  }

  void add_segment(std::vector<polyline>& lines, spot from, spot to) const {
    if (!cut(from, to)) return;
    const spot start = on_paper(from);
    if (lines.empty() || !(lines.back().back() == start)) lines.push_back({start});
    lines.back().push_back(on_paper(to));
  }

  // Lines and steps, broken at what cannot be drawn: a point without neighbours is a dot, an end before an infinite value a
  // cross.
  void add_line(const series& s) {
    const track t = track_of(panel_, s);
    const int index = index_of(s);
    auto& lines = made_.lines[index];
    for (std::size_t k = 0; k < t.points.size(); ++k) {
      const spot& here = t.points[k];
      if (t.shown(k) && t.follows(k)) {
        spot from = t.points[k - 1];
        if (s.style == series_style::steps) {
          const spot corner{here.x, from.y};
          add_segment(lines, from, corner);
          from = corner;
        }
        add_segment(lines, from, here);
      } else if (t.shown(k) && !t.shown(k + 1) && within(here.x) && within(here.y)) {
        made_.points[index].push_back(on_paper(here));
      } else if (!t.shown(k) && t.infinite[k] && t.follows(k) && within(t.points[k - 1].y)) {
        made_.overflows[index].push_back(on_paper(t.points[k - 1]));
      }
    }
  }

  const layout& layout_;
  const placed_panel& panel_;
  projection made_;
};

}  // namespace

projection projected(const layout& l, const placed_panel& p) { return projector(l, p).run(); }

}  // namespace deltaproof::detail
