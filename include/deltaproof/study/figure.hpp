// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can describe a figure as data (panels, axes, series, marks, heat maps) and
// turn it into one SVG that is readable in light and in dark, alone or inside a page. Nothing here
// rounds: values are doubles and are drawn as given; a non-finite point breaks its line and is not
// drawn; a panel in which nothing can be drawn is an error. The same data gives the same bytes.
// It exists so that a study states what is shown and never how: colours, dashes, sizes, ticks and the
// legend are decided once, for all figures.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace deltaproof {

enum class axis_scale { linear, logarithmic };

/// One axis. Without a range it spans the data and the marks (a histogram's y axis starts at 0).
struct axis {
  std::string label;                      ///< "tokens T"; say the unit in the label, "gate (nats)"
  axis_scale scale = axis_scale::linear;  ///< logarithmic: values <= 0 are not drawn
  std::optional<double> minimum = {};     ///< fixed lower end
  std::optional<double> maximum = {};     ///< fixed upper end
  std::vector<double> ticks = {};         ///< where numbers stand; empty: chosen
};

/// line, steps: x ascending. points: a marker each, for up to ~100 points. cloud: small dots, for
/// thousands. bars: a histogram, x = bar centres equally spaced.
enum class series_style { line, steps, points, cloud, bars };

/// One curve. Series with the same label share colour and legend entry through the whole figure, so a
/// rule or a format looks the same in every panel. At most 8 different labels. No label: drawn in the
/// neutral colour, not in the legend.
struct series {
  std::string label;
  std::vector<double> x;
  std::vector<double> y;
  series_style style = series_style::line;
};

enum class mark_direction { horizontal, vertical };

/// A reference line at a value, drawn beneath the data, its label on it.
struct mark {
  mark_direction direction;
  double at;
  std::string label;
};

/// A table of colours, rows from top to bottom. A non-finite value has a colour of its own that is not on the scale.
struct heat_map {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> values;                  ///< row-major, rows * columns
  std::string label;                           ///< what the colour means
  std::vector<std::string> row_names = {};     ///< of each row
  std::vector<std::string> column_names = {};  ///< of each column
  axis_scale scale = axis_scale::linear;
  std::optional<double> minimum = {};
  std::optional<double> maximum = {};
  int digits = 0;  ///< > 0: print each value with so many significant digits
};

/// One coordinate system. `tall` panels have twice the height of ordinary ones.
struct panel {
  std::string title;
  axis x;
  axis y;
  std::vector<series> curves = {};
  std::vector<mark> marks = {};
  std::optional<heat_map> heat = {};
  bool tall = false;
};

/// Small multiples: panels are laid out row by row.
struct figure {
  std::string id;  ///< file name part: lower case letters, digits, '-'
  std::string title;
  std::string caption;  ///< what one sees, and what to conclude; Markdown
  std::string alt;      ///< for who does not see it
  std::vector<panel> panels;
  std::size_t columns = 0;  ///< panels per row; 0: chosen (1, 2 or 3)
  bool shared_x = false;    ///< one range of x for all panels, the union of theirs
  bool shared_y = false;    ///< one range of y for all panels
};

/// The SVG text of a figure, 720 units wide, on a dark page in colours for it. Of a line of thousands of points its extremes are
/// drawn; where the next value is infinite it ends in a cross.
/// Reads: the program `gnuplot`, run as a child process without its user's settings.
/// Throws: domain_error for a figure with a panel without a drawable point, with unequal x and y, or with more than
/// 8 labels; environment_error when gnuplot is missing (names the Debian package) or fails.
[[nodiscard]] std::string svg(const figure&);

}  // namespace deltaproof
