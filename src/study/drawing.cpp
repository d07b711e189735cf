// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A figure as a script of gnuplot: one plot for each panel, above them one that has no more than the key. Colours are those of a
// light page; src/study/gnuplot.cpp says what they are on a dark one.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "deltaproof/study/figure.hpp"
#include "deltaproof/study/report.hpp"
#include "deltaproof/support/errors.hpp"
#include "study/gnuplot.hpp"
#include "support/printable.hpp"
#include "support/text.hpp"

namespace deltaproof::detail {
namespace {

constexpr double width = 720;
constexpr int neutral = 9;  // the linetype of what has no label
constexpr std::string_view ended = "infinite after this";

bool is_line(const series& s) { return s.style == series_style::line || s.style == series_style::steps; }

std::string literal(std::string_view shown) {
  std::string text = printable_line(shown);
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 2) text.insert(at, 1, '\'');
  return "'" + text + "'";
}

/// In lines of at most so many characters, where it has spaces.
std::string wrapped(const std::string& text, std::size_t limit) {
  std::string lines, line;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    if (!line.empty() && line.size() + space - at > limit) {
      lines += literal(std::exchange(line, "")) + ".\"\\n\".";
    }
    line += (line.empty() ? "" : " ") + text.substr(at, space - at);
    at = space + 1;
  }
  return lines + literal(line);
}

struct range {
  double low = HUGE_VAL, high = -HUGE_VAL;
  bool logarithmic = false;

  [[nodiscard]] bool shows(double v) const { return std::isfinite(v) && (v > 0 || !logarithmic); }
  void add(double v) {
    if (shows(v)) low = std::min(low, v), high = std::max(high, v);
  }
  [[nodiscard]] bool contains(double v) const { return low <= v && v <= high; }
  [[nodiscard]] double decades() const { return std::log10(high / low); }
  /// 0 at the low end, 1 at the high one.
  [[nodiscard]] double share(double v) const {
    return logarithmic ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low);
  }
  /// A number of the script. NaN breaks a line; far outside a linear axis gnuplot's coordinates would overflow.
  [[nodiscard]] std::string text(double v) const {
    if (!shows(v)) return "NaN";
    const double far = 1000 * (high - low);
    return shortest(logarithmic ? v : std::clamp(v, low - far, high + far));
  }
};

/// Room beside the data, unless an end is given; a histogram or a spread that comes near 0 begins there.
range finished(range r, const axis& a) {
  if (a.minimum) r.low = *a.minimum;
  if (a.maximum) r.high = *a.maximum;
  if (r.low > r.high) r.low = r.high = a.minimum ? r.low : a.maximum ? r.high : 1;
  const double room = r.logarithmic ? std::max(std::pow(r.high / r.low, 0.04), 1 + 1e-9) : (r.high - r.low) * 0.04;
  const double least = r.low == r.high ? std::max(std::abs(r.low) / 10, 0.5) : 0;
  const bool from_zero = r.low >= 0 && r.low <= room;
  if (!a.minimum) r.low = r.logarithmic ? r.low / (least > 0 ? 2 : room) : from_zero ? 0 : r.low - room - least;
  if (!a.maximum) r.high = r.logarithmic ? r.high * (least > 0 ? 2 : room) : r.high + room + least;
  return r;
}

class script {
 public:
  explicit script(const figure& f) : f_(f) {
    if (f.panels.empty()) throw domain_error("figure '" + f.id + "' has no panel");
    const std::size_t n = f.panels.size();
    columns_ = std::min(n, f.columns != 0 ? f.columns : n == 1 ? 1 : n == 2 || n == 4 ? 2 : 3);
  }

  std::string text() {
    find_labels();
    for (const panel& p : f_.panels) find_ranges(p);
    double height = key_height();
    for (std::size_t i = 0; i < f_.panels.size(); i += columns_) height += row_height(i);
    out_ += "set terminal svg size " + shortest(width) + "," + shortest(height) +
            " enhanced font 'sans-serif,11' rounded background '#ffffff'\n";
    out_ += R"(set encoding utf8
set multiplot
set samples 2
set x2range [0:1]
set y2range [0:1]
set style fill solid noborder
)";
    int index = 0;
    for (const look& l : looks) {
      out_ += "set linetype " + std::to_string(++index) + " lc rgb '" + l.light + "' lw 1.8 ps 0.7 dt " + l.dash + " pt " +
              l.point + "\n";
    }
    double top = key_height();
    add_key(top / height);
    for (std::size_t i = 0; i < f_.panels.size(); ++i) {
      const double high = row_height(i - i % columns_);
      place(static_cast<double>(i % columns_) / static_cast<double>(columns_), 1 - (top + high) / height,
            1 / static_cast<double>(columns_), high / height);
      add_panel(i);
      if (i % columns_ == columns_ - 1) top += high;
    }
    return out_ + "unset multiplot\n";
  }

 private:
  [[noreturn]] void fail(const panel& p, const std::string& what) const {
    throw domain_error("figure '" + f_.id + "', panel '" + p.title + "': " + what);
  }

  void find_labels() {
    for (const panel& p : f_.panels) {
      for (const series& s : p.curves) {
        if (s.x.size() != s.y.size()) {
          fail(p, "series '" + s.label + "' has " + std::to_string(s.x.size()) + " x and " + std::to_string(s.y.size()) +
                      " y; give as many of each");
        }
        for (std::size_t i = 1; i < s.y.size() && is_line(s); ++i) {
          const double last = s.y[i - 1];
          ended_ = ended_ || (std::isinf(s.y[i]) && std::isfinite(last) && last >= p.y.minimum.value_or(last) &&
                              last <= p.y.maximum.value_or(last));
        }
        if (s.label.empty()) continue;
        if (std::find(labels_.begin(), labels_.end(), s.label) == labels_.end()) labels_.push_back(s.label);
        styles_[s.label].insert(s.style);
      }
    }
    if (labels_.size() > 8) {
      throw domain_error("figure '" + f_.id + "' has more than 8 labels in all its panels together ('" + labels_[8] +
                         "' is one more), which nobody can tell apart; draw several figures, or leave some curves unlabelled");
    }
  }

  void find_ranges(const panel& p) {
    range x, y;
    x.logarithmic = p.x.scale == axis_scale::logarithmic;
    y.logarithmic = p.y.scale == axis_scale::logarithmic;
    for (const axis* a : {&p.x, &p.y}) {
      for (const auto& end : {a->minimum, a->maximum}) {
        if (end && !(std::isfinite(*end) && (a->scale == axis_scale::linear || *end > 0))) {
          fail(p, "axis '" + a->label + "' has " + number(*end) +
                      " as its minimum or maximum; both must be finite, and above 0 on a logarithmic axis");
        }
      }
      if (a->minimum && a->maximum && *a->minimum >= *a->maximum) {
        fail(p, "axis '" + a->label + "' runs from " + number(*a->minimum) + " to " + number(*a->maximum) +
                    "; give ends in ascending order");
      }
    }
    for (const series& s : p.curves) {
      for (std::size_t i = 0; i < s.x.size(); ++i) {
        if (!x.shows(s.x[i]) || !y.shows(s.y[i])) continue;
        x.add(s.x[i]);
        y.add(s.y[i]);
        if (s.style == series_style::bars && !y.logarithmic) y.add(0);
      }
    }
    if (!p.heat && x.low > x.high)
      fail(p, "no point can be drawn; every value is missing, not finite, or not positive on a logarithmic axis");
    if (p.heat && (p.heat->rows == 0 || p.heat->values.size() != p.heat->rows * p.heat->columns)) {
      fail(p, "heat map of " + std::to_string(p.heat->rows) + " rows and " + std::to_string(p.heat->columns) + " columns has " +
                  std::to_string(p.heat->values.size()) + " values; give a value for each cell, and at least one cell");
    }
    if (p.heat && (p.heat->row_names.size() != p.heat->rows || p.heat->column_names.size() != p.heat->columns))
      fail(p, "heat map needs a name for each row and each column");
    for (const mark& m : p.marks) (m.direction == mark_direction::horizontal ? y : x).add(m.at);
    x_.push_back(x);
    y_.push_back(y);
  }

  /// Of panel i: the union of all where they share it.
  [[nodiscard]] range range_of(const std::vector<range>& found, std::size_t i, bool shared, const axis& a) const {
    range r = found[i];
    for (std::size_t k = 0; shared && k < found.size(); ++k) r.add(found[k].low), r.add(found[k].high);
    return finished(r, a);
  }

  // The key: one row of labels of equal width, or several.
  [[nodiscard]] std::size_t key_columns() const {
    std::size_t longest = 0;
    for (const std::string& label : labels_) longest = std::max(longest, label.size());
    if (ended_) longest = std::max(longest, ended.size());
    return std::max<std::size_t>(1, static_cast<std::size_t>(width / (6.5 * static_cast<double>(longest) + 60)));
  }
  [[nodiscard]] double key_height() const {
    return labels_.empty() && !ended_
               ? 0
               : 16 + 16 * std::ceil(static_cast<double>(labels_.size() + (ended_ ? 1 : 0)) / static_cast<double>(key_columns()));
  }

  void add_key(double share) {
    if (key_height() > 0) {
      place(0, 1 - share, 1, share);
      out_ += "unset border\nunset xtics\nunset ytics\nset xrange [0:1]\nset yrange [0:1]\nset key center horizontal maxcols " +
              std::to_string(key_columns()) + " noenhanced Left reverse\n";
      std::string plots;
      for (const std::string& label : labels_) {
        const auto has = [&](series_style style) { return styles_.at(label).contains(style); };
        const bool line = has(series_style::line) || has(series_style::steps);
        const bool point = has(series_style::points) || has(series_style::cloud);
        plots += ", NaN with " +
                 std::string(line && point ? "linespoints"
                             : line        ? "lines"
                             : point       ? "points"
                                           : "boxes fs transparent solid 0.3 noborder") +
                 " lt " + linetype(label) + " title " + literal(label);
      }
      if (ended_) plots += ", NaN with points pt 2 ps 1 lw 2 lt " + std::to_string(neutral) + " title " + literal(ended);
      out_ += "plot " + plots.substr(2) + "\n";
    }
    out_ += "set key off\nset border 3 lc rgb '#9aa3ad'\n";
  }

  [[nodiscard]] std::string linetype(const std::string& label) const {
    const auto at = std::find(labels_.begin(), labels_.end(), label);
    return std::to_string(label.empty() ? neutral : at - labels_.begin() + 1);
  }

  [[nodiscard]] double row_height(std::size_t begin) const {
    double height = 0;
    for (std::size_t i = begin; i < std::min(begin + columns_, f_.panels.size()); ++i) {
      const panel& p = f_.panels[i];
      height = std::max(height, p.heat          ? 120 + 22 * static_cast<double>(p.heat->rows)
                                : p.tall        ? 420.0
                                : columns_ == 1 ? 300.0
                                                : 250.0);
    }
    return height;
  }

  void place(double left, double bottom, double across, double up) {
    out_ +=
        "set origin " + shortest(left) + "," + shortest(bottom) + "\nset size " + shortest(across) + "," + shortest(up) + "\n";
  }

  /// gnuplot's choice; fewer where numbers that agree in their first digits are long.
  static std::string few_ticks(const range& r) {
    const double span = r.high - r.low;
    if (r.logarithmic || span > 0.02 * std::max(std::abs(r.low), std::abs(r.high))) return "autofreq";
    const double unit = std::pow(10, std::floor(std::log10(span)));
    return shortest(span > 5 * unit ? 5 * unit : span > 2 * unit ? 2 * unit : unit);
  }

  void add_axis(const std::string& name, const axis& a, const range& r, std::size_t letters) {
    out_ += "set " + name + "label " + wrapped(a.label, letters) + " noenhanced\nset " + name + "range [" + shortest(r.low) +
            ":" + shortest(r.high) + "]\n" + (r.logarithmic ? "set logscale " : "unset logscale ") + name + "\nset format " +
            name + (r.logarithmic && a.ticks.empty() && r.decades() > 4 ? " '10^{%T}'\n" : " '%h'\n");
    std::string given;
    std::vector<double> ticks = a.ticks;
    // Of a few decades powers of ten alone would say too little.
    for (double e = std::floor(std::log10(r.low)); r.logarithmic && a.ticks.empty() && r.decades() < 2 && e <= std::log10(r.high);
         ++e) {
      for (const double digit : {1.0, 2.0, 5.0}) ticks.push_back(digit * std::pow(10, e));
    }
    for (const double tick : ticks) given += (given.empty() ? "" : ",") + shortest(tick);
    out_ += "set " + name + "tics scale 0 nomirror norotate textcolor rgb 'black' " +
            (given.empty() ? few_ticks(r) : "(" + given + ")") + "\nunset m" + name + "tics\n";
  }

  /// Rows of numbers as a block of data; an empty text is a break.
  std::string block(const std::string& rows) {
    const std::string name = "$d" + std::to_string(blocks_++);
    out_ += name + " << END\n" + rows + "END\n";
    return name;
  }

  void add_panel(std::size_t i) {
    const panel& p = f_.panels[i];
    const range x = range_of(x_, i, f_.shared_x, p.x), y = range_of(y_, i, f_.shared_y, p.y);
    const std::size_t letters = 110 / columns_ - 6;
    plots_.clear();
    out_ += "unset label\nset title " + wrapped(p.title, letters) + " noenhanced\n";
    add_axis("x", p.x, x, letters);
    add_axis("y", p.y, y, static_cast<std::size_t>(row_height(i - i % columns_) / 8));
    out_ += p.heat ? "unset grid\n" : "unset object\nset grid lt 1 lw 1 lc rgb '#e6e9ed'\n";
    if (p.heat) add_heat(p, letters);
    for (const series& s : p.curves) add_curve(s, x, y);
    for (const mark& m : p.marks) add_mark(m, x, y);
    out_ += "plot " + (plots_.empty() ? "NaN" : plots_) + "\n";
  }

  void add_plot(const std::string& plot) { plots_ += (plots_.empty() ? "" : ", ") + plot + " notitle"; }

  void add_mark(const mark& m, const range& x, const range& y) {
    const bool level = m.direction == mark_direction::horizontal;
    if (!(level ? y : x).contains(m.at)) return;
    const std::string at = shortest(m.at);
    const auto& ends = level ? x : y;
    const auto row = [&](double end) { return level ? shortest(end) + " " + at + "\n" : at + " " + shortest(end) + "\n"; };
    add_plot(block(row(ends.low) + row(ends.high)) + " with lines lw 1 dt (6,4) lc rgb '#59616b'");
    if (m.label.empty()) return;
    out_ += "set label " + literal(m.label) + " noenhanced front right at " +
            (level ? "graph 0.99, first " + at + " offset 0,0.5\n" : "first " + at + ", graph 0.98 rotate offset -1,0\n");
  }

  /// Of thousands of points the lowest and the highest of each slice; what is not finite stays, as a break.
  static std::vector<std::size_t> thinned(const series& s) {
    std::vector<std::size_t> kept;
    const std::size_t slice = std::max<std::size_t>(1, s.x.size() / 500);
    for (std::size_t from = 0; from < s.x.size(); from += slice) {
      const auto begin = s.y.begin() + static_cast<std::ptrdiff_t>(from);
      const auto end = s.y.begin() + static_cast<std::ptrdiff_t>(std::min(from + slice, s.y.size()));
      const auto gap = std::find_if_not(begin, end, [](double y) { return std::isfinite(y); });
      const auto [low, high] = std::minmax_element(begin, gap);
      std::set<std::ptrdiff_t> chosen;
      for (const auto& one : {low, high, gap}) chosen.insert(one - s.y.begin());
      for (const std::ptrdiff_t i : chosen) {
        if (i < end - s.y.begin()) kept.push_back(static_cast<std::size_t>(i));
      }
    }
    return kept;
  }

  void add_curve(const series& s, const range& x, const range& y) {
    if (s.style == series_style::cloud && s.x.size() > 50) return add_picture(s, x, y);
    std::string rows, ends, alone;
    double step = HUGE_VAL;
    const auto at = [&](std::size_t i) { return x.text(s.x[i]) + " " + y.text(s.y[i]) + "\n"; };
    const auto shown = [&](std::size_t i) { return i < s.x.size() && x.shows(s.x[i]) && y.shows(s.y[i]); };
    for (const std::size_t i : thinned(s)) {
      rows += at(i);
      const bool follows = i > 0 && shown(i - 1);
      if (i > 0 && s.x[i] != s.x[i - 1]) step = std::min(step, s.x[i] - s.x[i - 1]);
      if (follows && std::isinf(s.y[i]) && y.contains(s.y[i - 1])) ends += at(i - 1);
      if (shown(i) && !follows && !shown(i + 1)) alone += at(i);
    }
    const std::map<series_style, std::string> how{{series_style::line, "lines"},
                                                  {series_style::steps, "steps"},
                                                  {series_style::points, "points"},
                                                  {series_style::cloud, "points pt 7 ps 0.25"},
                                                  {series_style::bars, "boxes fs transparent solid 0.3 noborder"}};
    if (s.style == series_style::bars) out_ += "set boxwidth " + shortest(step) + "\n";
    add_plot(block(rows) + " with " + how.at(s.style) + " lt " + linetype(s.label));
    if (is_line(s) && !alone.empty()) add_plot(block(alone) + " with points pt 7 ps 0.5 lt " + linetype(s.label));
    if (is_line(s) && !ends.empty()) add_plot(block(ends) + " with points pt 2 ps 1 lw 2 lt " + linetype(s.label));
  }

  /// A cloud of thousands of points as a picture of as many dots as there are places for.
  void add_picture(const series& s, const range& x, const range& y) {
    const long dot = s.x.size() > 5000 ? 1 : 2, across = 640 / static_cast<long>(columns_) / dot, up = across / 2;
    std::set<std::pair<long, long>> filled;
    const auto place_of = [](double share, long places) { return std::lround(share * static_cast<double>(places - 1)); };
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (x.contains(s.x[i]) && y.contains(s.y[i]))
        filled.emplace(place_of(y.share(s.y[i]), up), place_of(x.share(s.x[i]), across));
    }
    std::string rows;
    for (long row = 0; row < up; ++row) {
      for (long column = 0; column < across; ++column) rows += filled.contains({row, column}) ? "220 " : "0 ";
      rows += "\n";
    }
    // Pictures have one colour for both kinds of page, between the two.
    const look& l = looks[static_cast<std::size_t>(std::stoi(linetype(s.label)) - 1)];
    const auto part = [&](std::size_t at) {
      const auto of = [&](const std::string& colour) { return std::stoi(colour.substr(at, 2), nullptr, 16); };
      return ":(" + std::to_string((of(l.light) + of(l.dark)) / 2) + ")";
    };
    add_plot(block(rows) + " matrix using ($1/" + std::to_string(across - 1) + "):($2/" + std::to_string(up - 1) + ")" + part(1) +
             part(3) + part(5) + ":3 with rgbalpha axes x2y2");
  }

  /// One scale for all heat maps of the figure with one label, so that a colour means one value.
  [[nodiscard]] range colours_of(const heat_map& h) const {
    range r;
    r.logarithmic = h.scale == axis_scale::logarithmic;
    for (const panel& p : f_.panels) {
      if (!p.heat || p.heat->label != h.label) continue;
      for (const double v : p.heat->values) r.add(v);
    }
    if (r.low > r.high) r.low = r.high = 1;
    r.low = h.minimum.value_or(r.low), r.high = h.maximum.value_or(r.high);
    if (r.low >= r.high) r.high = r.logarithmic ? 10 * r.low : r.low + 1;
    return r;
  }

  void add_heat(const panel& p, std::size_t letters) {
    const heat_map& h = *p.heat;
    const auto rows = static_cast<double>(h.rows), columns = static_cast<double>(h.columns);
    const auto names = [](const std::vector<std::string>& all) {
      std::string ticks;
      for (std::size_t i = 0; i < all.size(); ++i) ticks += (i == 0 ? "(" : ", ") + literal(all[i]) + " " + std::to_string(i);
      return ticks + ") noenhanced\n";
    };
    std::size_t longest = 0;
    for (const std::string& name : h.column_names) longest = std::max(longest, name.size());
    out_ += "set xrange [-0.5:" + shortest(columns - 0.5) + "]\nset yrange [" + shortest(rows - 0.5) + ":-0.5]\nset ytics " +
            names(h.row_names) + "set xtics " +
            (6.5 * static_cast<double>(longest) > 500 / columns / static_cast<double>(columns_) ? "rotate by 30 right " : "") +
            names(h.column_names) + "set title " + wrapped(p.title.empty() ? h.label : p.title + ": " + h.label, letters) +
            " noenhanced\n";
    const range colours = colours_of(h);
    const std::string low = shortest(colours.low), high = shortest(colours.high);
    out_ += "set cblabel " + literal(h.label) + " noenhanced offset 1\nset cbrange [" + low + ":" + high + "]\n" +
            (colours.logarithmic ? "set logscale cb\n" : "unset logscale cb\n") +
            (h.digits > 0 ? "unset colorbox\n" : "set colorbox\n") + "set palette maxcolors 16 defined (" +
            "0 '#ffffd9', 1 '#c7e9b4', 2 '#7fcdbb', 3 '#41b6c4', 4 '#1d91c0'" +
            ")\nset object 1 rectangle from graph 0,0 to graph 1,1 behind fc rgb '#b4bac2' fs solid noborder\n";
    std::string cells, texts;
    for (std::size_t i = 0; i < h.values.size(); ++i) {
      const double v = h.values[i];
      cells += (std::isfinite(v) ? shortest(v) : "NaN") + ((i + 1) % h.columns == 0 ? "\n" : " ");
      texts += std::to_string(i % h.columns) + " " + std::to_string(i / h.columns) + " " + general(v, h.digits) + "\n";
    }
    add_plot(block(cells) + " matrix using 1:2:3 with image pixels");
    if (h.digits > 0) add_plot(block(texts) + " with labels font ',10' tc rgb '#000001'");
  }

  const figure& f_;
  std::size_t columns_ = 1, blocks_ = 0;
  std::vector<std::string> labels_;
  std::map<std::string, std::set<series_style>> styles_;
  bool ended_ = false;  // some line stops before an infinite value
  std::vector<range> x_, y_;
  std::string out_, plots_;
};

}  // namespace
}  // namespace deltaproof::detail

namespace deltaproof {

std::string svg(const figure& f) { return detail::drawn(detail::script(f).text(), f); }

}  // namespace deltaproof
