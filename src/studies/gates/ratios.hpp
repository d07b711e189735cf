// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The decay ratio e^(G_i - G_j), i >= j, of a chunk as kernels form it from the log decays g of its rows: by difference, by two
// factors with one of several reference rows, or as the product of the decays. G is the inclusive sum of g in fp32, first row
// first; exponentials are correctly rounded fp32, factors are then rounded to the format they are stored in.
#pragma once

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/real.hpp"
#include "studies/shared/common.hpp"
#include "studies/shared/formats.hpp"

namespace deltaproof::detail::gates {

enum class factorisation {
  difference,    ///< e^(G_i - G_j), only where i >= j
  masked,        ///< e^(G_i - G_j) for all i, j, then times 1 or 0
  factored,      ///< e^(G_i) e^(-G_j)
  middle_block,  ///< blocks of 16 rows: inside e^(G_i - M) e^(M - G_j), M = G of row 8; between blocks as first_block
  first_block,  ///< blocks of 16 rows: by difference inside; between e^(G_i - R) e^(R - G_j), R = G of the first row of i's block
  product,      ///< the decays over (j, i] multiplied in turn
};

struct named_factorisation {
  factorisation id{};
  std::string_view name;
};

inline constexpr std::array<named_factorisation, 6> factorisations{{{factorisation::difference, "difference"},
                                                                    {factorisation::masked, "masked"},
                                                                    {factorisation::factored, "factored"},
                                                                    {factorisation::middle_block, "middle_block"},
                                                                    {factorisation::first_block, "first_block"},
                                                                    {factorisation::product, "product"}}};

/// ln(1 - 2^-p / 2)... the largest g < 0 whose decay e^g rounds to less than 1: at or above the next number it is 1.
struct rounding_to_one {
  double last_below = 0;  ///< fp32 g whose e^g rounds to 1 - u in the format
  double first_one = 0;   ///< the next fp32 number toward 0
};

using shared::after;
using shared::exp32;
using shared::last_with;

inline float sub(double a, double b) { return static_cast<float>(a) - static_cast<float>(b); }
inline double times(double a, double b) { return static_cast<double>(static_cast<float>(a) * static_cast<float>(b)); }

inline std::vector<double> cumulative(std::span<const double> g) {
  std::vector<double> result;
  float sum = 0;
  for (const double x : g) {
    sum += static_cast<float>(x);
    result.push_back(static_cast<double>(sum));
  }
  return result;
}

/// How many times a constant gate's |g| the largest exponent of a chunk of C rows is: 0, C - 1, C, 8 (at most C), 0, 0. An
/// exponential overflows where this times |g| exceeds overflow_exponent. For C <= 16 or a multiple of 16.
[[nodiscard]] inline std::size_t largest_exponent(factorisation how, std::size_t chunk) {
  if (how == factorisation::masked) return chunk - 1;
  if (how == factorisation::factored) return chunk;
  return how == factorisation::middle_block ? std::min<std::size_t>(chunk, 16) / 2 : 0;
}

/// The largest fp32 x whose correctly rounded fp32 e^x is finite in the format: monotone, so found by bisection and exact.
[[nodiscard]] inline double overflow_exponent(const format& f) {
  return last_with<fp32>(1, 128, [&](double x) { return std::isfinite(round_nearest(exp32(x), f)); });
}

/// Lower triangle of the ratios, as a kernel forms them; factors stored in `store` (bf16, fp16 or fp32), their product in fp32.
/// Entries above the diagonal are 0, or what the mask leaves.
[[nodiscard]] inline matrix<double> ratios(factorisation how, std::span<const double> g, const format& store) {
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

/// The same by difference in 256 bits from the same g, rounded once.
[[nodiscard]] inline matrix<double> exact_ratios(std::span<const double> g) {
  matrix<double> result(g.size(), g.size());
  for (std::size_t j = 0; j < g.size(); ++j) {
    real<256> sum = 0;
    result(j, j) = 1;
    for (std::size_t i = j + 1; i < g.size(); ++i) {
      if (std::isinf(g[i])) {
        for (std::size_t m = i; m < g.size(); ++m) result(m, j) = 0;
        break;
      }
      sum += lift<real<256>>(g[i]);
      result(i, j) = round_to<double>(real<256>(exp(sum)));
    }
  }
  return result;
}

/// The largest |g| (fp32) of a constant gate for which every entry is finite, by bisection between 2^-10 and 2^10; 0 where 2^-10
/// fails, 2^10 where nothing does.
[[nodiscard]] inline double measured_limit(factorisation how, std::size_t chunk, const format& store) {
  const auto finite = [&](double size) {
    const std::vector<double> g(chunk, -size);
    const matrix<double> r = ratios(how, g, store);
    return std::all_of(r.entries().begin(), r.entries().end(), [](double x) { return std::isfinite(x); });
  };
  constexpr double low = 0x1p-10, high = 0x1p10;
  if (!finite(low)) return 0;
  return finite(high) ? high : last_with<fp32>(low, high, finite);
}

[[nodiscard]] inline rounding_to_one rounds_to_one(const format& f) {
  // In -g: 1 near 0, below 1 at 1.
  const double last =
      last_with<fp32>(0x1p-60, 1, [&](double x) { return round_nearest(real<256>(exp(-lift<real<256>>(x))), f) == 1; });
  return {-after<fp32>(last), -last};
}

}  // namespace deltaproof::detail::gates
