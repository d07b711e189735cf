// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// gnuplot as a projector: a script goes in, the marks it would put on paper come out, each with the
// three numbers its script wrote as a colour (role, panel, index). How they look is decided elsewhere.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace deltaproof::detail {

struct paper_point {
  double x;
  double y;
};

struct paper_mark {
  enum class shape { line, area, point, text };
  shape kind;
  std::array<int, 3> colour;
  std::vector<paper_point> points;  ///< the polyline or polygon; one point of the other two
  std::string text = {};            ///< already escaped for XML
  std::string anchor = {};          ///< start, middle or end
};

/// Throws: environment_error when gnuplot is missing or refuses the script.
[[nodiscard]] std::vector<paper_mark> project(const std::string& script);

}  // namespace deltaproof::detail
