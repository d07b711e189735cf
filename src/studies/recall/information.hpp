// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Mutual information of two samples by a histogram, in bits: equal cells between the least and the largest value, the plug-in
// estimate of the cells' frequencies. It depends on the number of cells, and is positive where there is nothing to be found:
// by (cells_x - 1)(cells_y - 1) / (2 n ln 2) on average, for cells in use and n large (Miller and Madow).
#pragma once

#include <cstddef>
#include <span>

namespace deltaproof::detail::recall {

struct information {
  double bits = 0;
  double bias = 0;  ///< of that formula, over the cells that are not empty
};
/// Shapes: x and y of one length, at least 1. A constant sample has one cell and no information.
[[nodiscard]] information mutual_information(std::span<const double> x, std::span<const double> y, std::size_t cells);

}  // namespace deltaproof::detail::recall
