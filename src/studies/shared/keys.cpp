// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/keys.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace deltaproof::detail::shared {

double squared_norm(std::span<const double> x) {
  double square = 0;
  for (const double entry : x) square += entry * entry;
  return square;
}

double dot(std::span<const double> x, std::span<const double> y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

nearness nearness_of(std::span<const double> x, std::span<const double> exact) {
  double difference = 0, square = 0, overlap = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += (x[i] - exact[i]) * (x[i] - exact[i]);
    square += exact[i] * exact[i];
    overlap += x[i] * exact[i];
  }
  if (!std::isfinite(difference)) return {HUGE_VAL, NAN};
  return {std::sqrt(difference / square), overlap / square};
}

double normalise(std::span<double> x) {
  const double square = squared_norm(x);
  const double length = std::sqrt(square);
  for (double& entry : x) entry /= length;
  return square;
}

int take_out_power(std::span<double> x) {
  double largest = 0;
  for (const double entry : x) largest = std::max(largest, std::fabs(entry));
  if (!(largest > 0) || !std::isfinite(largest)) return 0;
  const int exponent = std::ilogb(largest);
  for (double& entry : x) entry = std::scalbn(entry, -exponent);
  return exponent;
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

}  // namespace deltaproof::detail::shared
