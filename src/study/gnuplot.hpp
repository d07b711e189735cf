// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// gnuplot as a projector: a layout goes in, the marks it would put on paper come out, each with what it is, its panel and its
// series. How they look is decided elsewhere.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "study/layout.hpp"

namespace deltaproof::detail {

/// What a mark is. Written into the script as the red of a colour; green is the panel, blue the series. none: gnuplot's own.
enum class role { none, grid, axis_line, tick_label, line, band, cloud, points, bar, cell_area, mark_line, overflow };

struct paper_point {
  double x;
  double y;
  friend bool operator==(const paper_point&, const paper_point&) = default;
};

struct paper_mark {
  enum class shape { line, area, point, text };
  shape kind;
  role what;
  std::size_t panel;
  int index;
  std::vector<paper_point> points;  ///< the polyline or polygon; one point of the other two
  std::string text = {};            ///< already escaped for XML
  std::string anchor = {};          ///< start, middle or end
};

/// The commands that draw the data of all panels.
[[nodiscard]] std::string script_of(const layout&);
/// Throws: environment_error when gnuplot is missing or refuses the script.
[[nodiscard]] std::vector<paper_mark> project(const std::string& script);

}  // namespace deltaproof::detail
