// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "claims/recall_parts.hpp"

#include <cmath>
#include <numbers>

namespace deltaproof::claim_detail {
namespace {

constexpr double channels_d = static_cast<double>(recall_channels);

/// E g(x) of a coordinate by the trapezoidal rule against (1 − x²)^((d − 3)/2), which vanishes with 30 derivatives at the ends.
template <class G>
double coordinate_mean(G g) {
  constexpr int points = 1 << 14;
  double sum = 0;
  double weight = 0;
  for (int i = 1; i < points; ++i) {
    const double x = 2.0 * i / points - 1;
    const double w = std::pow(1 - x * x, (channels_d - 3) / 2);
    sum += w * g(x);
    weight += w;
  }
  return sum / weight;
}

}  // namespace

double value_of(relationship f, double k) {
  switch (f) {
    case relationship::identity:
      return k;
    case relationship::quadratic:
      return k * k;
    case relationship::cubic:
      return k * k * k;
    case relationship::quartic:
      return k * k * k * k;
    case relationship::exponential:
      return std::exp(k);
    case relationship::sine:
      return std::sin(10 * std::numbers::pi * k);
  }
  return 0;
}

rational coordinate_moment(long m, long channels) {
  rational moment = 1;
  for (long i = 0; i < m; ++i) moment *= fraction(2 * i + 1, channels + 2 * i);
  return moment;
}

value_moments moments_of(relationship f) {
  return {coordinate_mean([f](double k) { return value_of(f, k) * value_of(f, k); }),
          coordinate_mean([f](double k) { return value_of(f, k); }),
          coordinate_mean([f](double k) { return k * value_of(f, k); })};
}

double mean_survival(double tokens) {
  const double kept = 1 - 1 / channels_d;
  return kept * (1 - std::pow(kept, tokens)) * channels_d / tokens;
}

double delta_error(relationship f, double tokens) { return moments_of(f).square * (2 - mean_survival(tokens)); }

double hebbian_error(relationship f, double tokens) {
  const value_moments m = moments_of(f);
  return m.square * ((tokens + 1) / 2 / channels_d + 1) + (tokens * tokens - 1) / 3 * m.with_key * m.with_key / channels_d;
}

double delta_error_of_unit_values(double tokens) { return (2 - mean_survival(tokens)) / channels_d; }

}  // namespace deltaproof::claim_detail
