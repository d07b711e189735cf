// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/gates/ratios.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "deltaproof/support/errors.hpp"
#include "studies/shared/formats.hpp"
#include "studies/shared/functions.hpp"

namespace deltaproof::detail::gates {
namespace {

using shared::exp32;
using shared::from_ordinal;
using shared::ordinal;
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

// The largest ordinal in [low, high] for which `holds` is true, which it is at low and not at high.
template <class Predicate>
std::int64_t last_true(std::int64_t low, std::int64_t high, Predicate&& holds) {
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(from_ordinal<fp32>(middle)) ? low : high) = middle;
  }
  return low;
}

}  // namespace

std::size_t largest_exponent(factorisation how, std::size_t chunk) {
  switch (how) {
    case factorisation::masked:
      return chunk - 1;
    case factorisation::factored:
      return chunk;
    case factorisation::middle_block:
      return std::min<std::size_t>(chunk, 16) / 2;
    default:
      return 0;
  }
}

double overflow_exponent(const format& f) {
  return from_ordinal<fp32>(
      last_true(ordinal<fp32>(1), ordinal<fp32>(128), [&](double x) { return std::isfinite(round_nearest(exp32(x), f)); }));
}

double subnormal_exponent(const format& f) {
  // In -x: normal at 1, subnormal at 128.
  const std::int64_t last = last_true(ordinal<fp32>(1), ordinal<fp32>(128),
                                      [&](double x) { return round_nearest(exp32(-x), f) >= smallest_normal(f); });
  return -from_ordinal<fp32>(last + 1);
}

matrix<double> ratios(factorisation how, std::span<const double> g, const format& store) {
  const std::size_t n = g.size();
  const std::vector<double> sum = cumulative(g);
  matrix<double> result(n, n);
  const auto factor = [&](double x) { return round_nearest(exp32(x), store); };
  const auto by_factors = [&](std::size_t i, std::size_t j, double reference) {
    return times(factor(sub(sum[i], reference)), factor(sub(reference, sum[j])));
  };
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const bool lower = i >= j;
      double& r = result(i, j);
      if (how == factorisation::masked) {
        r = times(round_nearest(exp32(static_cast<double>(sub(sum[i], sum[j]))), store), lower ? 1 : 0);
        continue;
      }
      if (!lower) continue;
      const std::size_t block = i / 16 * 16;
      const bool inside = j >= block;
      switch (how) {
        case factorisation::factored:
          r = by_factors(i, j, 0);
          break;
        case factorisation::middle_block:
          r = by_factors(i, j, inside ? sum[std::min(block + std::min<std::size_t>(n - block, 16) / 2, n - 1)] : sum[block]);
          break;
        case factorisation::first_block:
          r = inside ? round_nearest(exp32(static_cast<double>(sub(sum[i], sum[j]))), store) : by_factors(i, j, sum[block]);
          break;
        case factorisation::product: {
          double p = 1;
          for (std::size_t m = j + 1; m <= i; ++m) p = times(p, factor(g[m]));
          r = p;
          break;
        }
        default:
          r = round_nearest(exp32(static_cast<double>(sub(sum[i], sum[j]))), store);
          break;
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
  constexpr double low = 0x1p-10;
  constexpr double high = 0x1p10;
  if (!finite(low)) return 0;
  if (finite(high)) return high;
  return from_ordinal<fp32>(last_true(ordinal<fp32>(low), ordinal<fp32>(high), finite));
}

rounding_to_one rounds_to_one(const format& f) {
  // In -g: 1 near 0, below 1 at 1.
  const std::int64_t last = last_true(ordinal<fp32>(0x1p-60), ordinal<fp32>(1), [&](double x) {
    const wide decay = exp(-lift<wide>(x));
    return round_nearest(decay, f) == 1;
  });
  return {-from_ordinal<fp32>(last + 1), -from_ordinal<fp32>(last)};
}

}  // namespace deltaproof::detail::gates
