// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/gates/ratios.hpp"

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/real.hpp"
#include "studies/shared/formats.hpp"

namespace deltaproof::detail::gates {
namespace {

using shared::after;
using shared::exp32;
using shared::last_with;
using wide = real<256>;

float sub(double a, double b) { return static_cast<float>(a) - static_cast<float>(b); }
double times(double a, double b) { return static_cast<double>(static_cast<float>(a) * static_cast<float>(b)); }

std::vector<double> cumulative(std::span<const double> g) {
  std::vector<double> result;
  float sum = 0;
  for (const double x : g) {
    sum += static_cast<float>(x);
    result.push_back(static_cast<double>(sum));
  }
  return result;
}

}  // namespace

std::size_t largest_exponent(factorisation how, std::size_t chunk) {
  if (how == factorisation::masked) return chunk - 1;
  if (how == factorisation::factored) return chunk;
  return how == factorisation::middle_block ? std::min<std::size_t>(chunk, 16) / 2 : 0;
}

double overflow_exponent(const format& f) {
  return last_with<fp32>(1, 128, [&](double x) { return std::isfinite(round_nearest(exp32(x), f)); });
}

double subnormal_exponent(const format& f) {
  return -after<fp32>(last_with<fp32>(1, 128, [&](double x) { return round_nearest(exp32(-x), f) >= smallest_normal(f); }));
}

matrix<double> ratios(factorisation how, std::span<const double> g, const format& store) {
  const std::size_t n = g.size();
  const std::vector<double> sum = cumulative(g);
  matrix<double> result(n, n);
  const auto factor = [&](double x) { return round_nearest(exp32(x), store); };
  const auto by_difference = [&](std::size_t i, std::size_t j) { return factor(static_cast<double>(sub(sum[i], sum[j]))); };
  const auto by_factors = [&](std::size_t i, std::size_t j, double reference) {
    return times(factor(sub(sum[i], reference)), factor(sub(reference, sum[j])));
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t block = i / 16 * 16, centre = std::min(block + std::min<std::size_t>(n - block, 16) / 2, n - 1);
    for (std::size_t j = 0; j < n; ++j) {
      double& r = result(i, j);
      if (how == factorisation::masked) {
        r = times(by_difference(i, j), i >= j ? 1 : 0);
      } else if (i < j) {
        continue;
      } else if (how == factorisation::factored) {
        r = by_factors(i, j, 0);
      } else if (how == factorisation::middle_block) {
        r = by_factors(i, j, sum[j >= block ? centre : block]);
      } else if (how == factorisation::first_block && j < block) {
        r = by_factors(i, j, sum[block]);
      } else if (how == factorisation::product) {
        r = 1;
        for (std::size_t m = j + 1; m <= i; ++m) r = times(r, factor(g[m]));
      } else {
        r = by_difference(i, j);
      }
    }
  }
  return result;
}

matrix<double> exact_ratios(std::span<const double> g) {
  matrix<double> result(g.size(), g.size());
  for (std::size_t j = 0; j < g.size(); ++j) {
    wide sum = 0;
    result(j, j) = 1;
    for (std::size_t i = j + 1; i < g.size(); ++i) {
      if (std::isinf(g[i])) {
        for (std::size_t m = i; m < g.size(); ++m) result(m, j) = 0;
        break;
      }
      sum += lift<wide>(g[i]);
      result(i, j) = round_to<double>(wide(exp(sum)));
    }
  }
  return result;
}

comparison compare(const matrix<double>& found, const matrix<double>& exact, double floor) {
  comparison c;
  for (std::size_t i = 0; i < exact.rows(); ++i) {
    for (std::size_t j = 0; j < exact.cols(); ++j) {
      const double r = found(i, j);
      if (!std::isfinite(r)) {
        ++c.not_finite;
        c.worst = c.worst_absolute = std::numeric_limits<double>::infinity();
        continue;
      }
      if (j > i) continue;
      const double error = std::fabs(r - exact(i, j));
      c.worst_absolute = std::max(c.worst_absolute, error);
      if (exact(i, j) >= floor) c.worst = std::max(c.worst, error / exact(i, j));
    }
  }
  return c;
}

double measured_limit(factorisation how, std::size_t chunk, const format& store) {
  const auto finite = [&](double size) {
    const std::vector<double> g(chunk, -size);
    const matrix<double> r = ratios(how, g, store);
    return std::all_of(r.entries().begin(), r.entries().end(), [](double x) { return std::isfinite(x); });
  };
  constexpr double low = 0x1p-10, high = 0x1p10;
  if (!finite(low)) return 0;
  return finite(high) ? high : last_with<fp32>(low, high, finite);
}

rounding_to_one rounds_to_one(const format& f) {
  // In -g: 1 near 0, below 1 at 1.
  const double last = last_with<fp32>(0x1p-60, 1, [&](double x) { return round_nearest(wide(exp(-lift<wide>(x))), f) == 1; });
  return {-after<fp32>(last), -last};
}

}  // namespace deltaproof::detail::gates
