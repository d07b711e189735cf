// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/keys.hpp"

#include <array>
#include <cmath>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/rounded.hpp"

namespace deltaproof::detail::shared {

double normalise(std::span<double> x) {
  double square = 0;
  for (const double entry : x) square += entry * entry;
  const double length = std::sqrt(square);
  for (double& entry : x) entry /= length;
  return square;
}

void draw(philox& random, std::span<double> x) {
  for (double& entry : x) entry = random.normal();
}

std::vector<std::size_t> checkpoints(std::size_t last) {
  constexpr std::array<std::size_t, 10> tenths{10, 13, 16, 20, 25, 32, 40, 50, 63, 80};
  std::vector<std::size_t> result;
  for (std::size_t decade = 1; decade <= last; decade *= 10) {
    for (const std::size_t tenth : tenths) {
      const std::size_t t = tenth * decade / 10;
      if (t <= last && (result.empty() || t > result.back())) result.push_back(t);
    }
  }
  if (last > 0 && result.back() != last) result.push_back(last);
  return result;
}

double ln(double x) { return log(rounded<fp64>::from_exact(x)).value(); }

double log10_of(double x) { return ln(x) * 0.43429448190325182765; }

}  // namespace deltaproof::detail::shared
