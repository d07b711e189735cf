// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/logistic/maps.hpp"

namespace deltaproof::detail::logistic {
namespace {

constexpr double close = 0x1p-20, start = 0.25;

}  // namespace

double decay_of(double x) { return shared::exp64(-x); }

std::vector<double> orbit(one_step map, double x, std::size_t skip, std::size_t keep) {
  const double decay = decay_of(x);
  double u = start;
  std::vector<double> result;
  for (std::size_t t = 0; t < skip + keep; ++t) {
    u = advance(map, x, decay, u);
    if (t >= skip && std::isfinite(u)) result.push_back(u);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end(), [](double a, double b) { return b - a < close; }), result.end());
  return result;
}

double logistic_exponent(one_step map, double x, std::size_t skip, std::size_t steps) {
  const double decay = decay_of(x);
  double u = start;
  long_product product;
  for (std::size_t t = 0; t < skip + steps; ++t) {
    if (t >= skip) {
      const double mix = u + (1 - u) * decay;
      product *= map == one_step::logistic_euler ? 1 + x * (1 - 2 * u) : decay / (mix * mix);
    }
    u = advance(map, x, decay, u);
  }
  return product.log() / static_cast<double>(steps);
}

std::size_t attractor_period(double x) {
  const std::size_t points = orbit(one_step::logistic_euler, x, 100000, 4096).size();
  return points > 64 ? 0 : points;
}

}  // namespace deltaproof::detail::logistic
