// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>

#include "deltaproof/study/figure.hpp"

namespace deltaproof {

std::vector<std::size_t> decimate(std::span<const double> x, std::span<const double> y, std::size_t limit) {
  std::vector<std::size_t> kept;
  const std::size_t n = std::min(x.size(), y.size());
  if (n <= std::max<std::size_t>(limit, 8)) {
    kept.resize(n);
    for (std::size_t i = 0; i < n; ++i) kept[i] = i;
    return kept;
  }
  const std::size_t slices = std::max<std::size_t>(limit / 4, 2);
  const double width = x[n - 1] - x[0];
  const auto slice_of = [&](std::size_t i) {
    const double t = width > 0 ? (x[i] - x[0]) / width : 0;
    return std::min(slices - 1, static_cast<std::size_t>(std::max(0.0, t) * static_cast<double>(slices)));
  };
  for (std::size_t begin = 0; begin < n;) {
    std::size_t end = begin;
    std::size_t first = n, last = n, low = n, high = n, gap = n;
    for (; end < n && slice_of(end) == slice_of(begin); ++end) {
      if (!std::isfinite(y[end])) {
        gap = end;
        continue;
      }
      if (first == n) first = end;
      last = end;
      if (low == n || y[end] < y[low]) low = end;
      if (high == n || y[end] > y[high]) high = end;
    }
    std::vector<std::size_t> chosen;
    for (const std::size_t i : {first, low, high, gap != n ? gap : last}) {
      if (i != n) chosen.push_back(i);
    }
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    kept.insert(kept.end(), chosen.begin(), chosen.end());
    begin = end;
  }
  return kept;
}

}  // namespace deltaproof
