// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "claims/recall_parts.hpp"

#include <algorithm>
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

claim_values identity_state() {
  const std::vector<fraction_vector> keys{{fraction(2, 7), fraction(3, 7), fraction(6, 7)},
                                          {fraction(3, 5), fraction(4, 5), 0},
                                          {0, fraction(5, 13), fraction(12, 13)}};
  fraction_matrix delta(3, 3);
  fraction_matrix rows(3, 3);
  double distance = 0;
  for (std::size_t t = 0; t < 6; ++t) {
    const fraction_vector& k = keys[t % 3];
    delta = delta_step(delta, k, k, 1);
    std::copy(k.begin(), k.end(), rows.row(t % 3).begin());
    distance = approximate(squares(combined(delta, -1, identity<rational>(3))));
  }
  const fraction_matrix best = product(product(transpose(rows), rows), inverse(product(transpose(rows), rows)));
  return {{"least_squares_is_identity", best == identity<rational>(3)},
          {"delta_is_identity", delta == identity<rational>(3)},
          {"squared_distance_of_delta", distance}};
}

claim_values nothing_linear_in_even_powers() {
  fraction_matrix sum(3, 3);
  for (int signs = 0; signs < 8; ++signs) {  // a key and its images under changes of sign
    fraction_vector k{1, 2, fraction(1, 2)};
    for (std::size_t i = 0; i < 3; ++i) {
      if ((signs >> i & 1) != 0) k[i] = -k[i];
    }
    fraction_vector v = k;
    for (rational& x : v) x = x * x;
    sum = combined(sum, 1, outer(v, k));
  }
  return {{"squared_norm", text_of(squares(sum))}};
}

}  // namespace deltaproof::claim_detail
