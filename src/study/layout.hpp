// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Where things stand in a figure: ranges, ticks, the rectangle of each panel, its header and the
// legend. Pixels of a figure 720 wide, y downward.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "deltaproof/study/figure.hpp"

namespace deltaproof::detail {

struct axis_range {
  double low = 0;
  double high = 1;
  axis_scale scale = axis_scale::linear;
  /// True for a finite value that the scale can show.
  [[nodiscard]] bool shows(double value) const;
  /// 0 at `low`, 1 at `high`.
  [[nodiscard]] double fraction(double value) const;
  /// The inverse of `fraction`.
  [[nodiscard]] double value(double fraction) const;
  friend bool operator==(const axis_range&, const axis_range&) = default;
};

struct tick {
  double at;
  std::string label;  ///< empty: a small one
  friend bool operator==(const tick&, const tick&) = default;
};

/// As many ticks as fit into `pixels`, on round numbers; explicit ones as given.
[[nodiscard]] std::vector<tick> ticks_for(const axis&, const axis_range&, double pixels, bool horizontal);
/// Pixels of the widest label.
[[nodiscard]] double widest(const std::vector<tick>&);
/// A number at an axis: "−0.25", "10⁻³", "2·10⁵".
[[nodiscard]] std::string tick_text(double value, int digits = 6);

/// What the colours of a heat map mean.
struct heat_scale {
  axis_range range;
  bool two_sided = false;
  double middle = 0;
  bool has_gaps = false;  ///< some value is not finite
  /// 0 ... heat_levels - 1; no_index for what is not finite.
  [[nodiscard]] int level(double value) const;
};

/// The width of a histogram's bar: the least distance of their centres.
[[nodiscard]] double bar_step(const series&);

struct text_line {
  std::string text;
  double x;
  double y;
};

struct placed_panel {
  const panel* source = nullptr;
  axis_range x;
  axis_range y;
  std::vector<tick> x_ticks;
  std::vector<tick> y_ticks;
  double left = 0, top = 0, width = 0, height = 0;  ///< the rectangle of the data
  bool x_labelled = true;
  bool y_labelled = true;
  std::vector<text_line> titles;
  std::vector<text_line> y_labels;
  std::vector<text_line> mark_labels;  ///< of vertical marks, centred
  std::optional<heat_scale> heat;
  bool has_key = false;  ///< a heat map's colours are explained here
  std::vector<std::string> key_label;
  double key_left = 0, key_top = 0;
  double slanted = 0;  ///< height of slanted column names, 0: level

  /// Cells of a small heat map.
  [[nodiscard]] bool cells_stand_apart() const { return source->heat->columns <= 24; }
  [[nodiscard]] double to_x(double value) const { return left + width * x.fraction(value); }
  [[nodiscard]] double to_y(double value) const { return top + height * (1 - y.fraction(value)); }
};

struct legend_entry {
  int index;
  std::string label;
  std::set<series_style> styles = {};
  bool cross = false;  ///< stands for where lines end
  double x = 0, y = 0;
};

struct layout {
  double height = 0;
  std::vector<placed_panel> panels;
  std::vector<legend_entry> legend;
};

inline constexpr double figure_width = 720;
inline constexpr double tick_size = 11;  ///< of its font

/// Throws: domain_error (see svg).
[[nodiscard]] layout arrange(const figure&);

}  // namespace deltaproof::detail
