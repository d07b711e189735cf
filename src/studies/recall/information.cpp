// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/recall/information.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "deltaproof/number/errors.hpp"
#include "studies/shared/functions.hpp"

namespace deltaproof::detail::recall {
namespace {

constexpr double bits_per_nat = 1.4426950408889634074;

std::vector<std::size_t> cell_of(std::span<const double> x, std::size_t cells) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  std::vector<std::size_t> result(x.size(), 0);
  if (!(*high > *low)) return result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double place = (x[i] - *low) / (*high - *low) * static_cast<double>(cells);
    result[i] = std::min(static_cast<std::size_t>(place), cells - 1);
  }
  return result;
}

double entropy(const std::vector<std::uint64_t>& counts, double n) {
  double result = 0;
  for (const std::uint64_t c : counts) {
    if (c == 0) continue;
    const double share = static_cast<double>(c) / n;
    result -= share * shared::ln(share) * bits_per_nat;
  }
  return result;
}

double occupied(const std::vector<std::uint64_t>& counts) {
  return static_cast<double>(counts.size()) - static_cast<double>(std::count(counts.begin(), counts.end(), 0U));
}

}  // namespace

information mutual_information(std::span<const double> x, std::span<const double> y, std::size_t cells) {
  if (x.empty() || x.size() != y.size() || cells == 0) {
    throw shape_error("mutual_information: samples of " + std::to_string(x.size()) + " and " + std::to_string(y.size()) +
                      " values in " + std::to_string(cells) + " cells; needs two of one length and a cell");
  }
  const auto cx = cell_of(x, cells);
  const auto cy = cell_of(y, cells);
  std::vector<std::uint64_t> of_x(cells, 0);
  std::vector<std::uint64_t> of_y(cells, 0);
  std::vector<std::uint64_t> of_both(cells * cells, 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ++of_x[cx[i]];
    ++of_y[cy[i]];
    ++of_both[cx[i] * cells + cy[i]];
  }
  const auto n = static_cast<double>(x.size());
  return {entropy(of_x, n) + entropy(of_y, n) - entropy(of_both, n),
          (occupied(of_x) - 1) * (occupied(of_y) - 1) / (2 * n) * bits_per_nat};
}

}  // namespace deltaproof::detail::recall
