// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the data of a panel put on paper, in pixels, cut at the edges of the panel. How it looks is decided elsewhere.
#pragma once

#include <map>
#include <vector>

#include "study/layout.hpp"

namespace deltaproof::detail {

struct spot {
  double x;
  double y;
  friend bool operator==(const spot&, const spot&) = default;
};
using polyline = std::vector<spot>;

struct rectangle {
  double left, right, top, bottom;
};

/// Maps are by series (no_index: the one without a label); cells by the level of their colour.
struct projection {
  std::vector<polyline> grid, axes, marks;
  std::map<int, std::vector<polyline>> lines, bands;
  std::map<int, std::vector<rectangle>> bars, cells;
  std::map<int, std::vector<spot>> points, clouds, overflows;
};

[[nodiscard]] projection projected(const layout&, const placed_panel&);

}  // namespace deltaproof::detail
