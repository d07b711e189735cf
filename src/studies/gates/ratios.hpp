// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The decay ratio e^(G_i - G_j), i >= j, of a chunk as kernels form it from the log decays g of its rows: by difference, by two
// factors with one of several reference rows, or as the product of the decays. G is the inclusive sum of g in fp32, first row
// first; exponentials are correctly rounded fp32, factors are then rounded to the format they are stored in.
#pragma once

#include "deltaproof/algebra/matrix.hpp"
#include "studies/shared/common.hpp"

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

/// How many times a constant gate's |g| the largest exponent of a chunk of C rows is: 0, C - 1, C, 8 (at most C), 0, 0. An
/// exponential overflows where this times |g| exceeds overflow_exponent. For C <= 16 or a multiple of 16.
[[nodiscard]] std::size_t largest_exponent(factorisation, std::size_t chunk);

/// The largest fp32 x whose correctly rounded fp32 e^x is finite in the format: monotone, so found by bisection and exact.
[[nodiscard]] double overflow_exponent(const format&);
/// The largest fp32 x < 0 whose e^x rounds to less than the smallest normal number of the format.
[[nodiscard]] double subnormal_exponent(const format&);

/// Lower triangle of the ratios, as a kernel forms them; factors stored in `store` (bf16, fp16 or fp32), their product in fp32.
/// Entries above the diagonal are 0, or what the mask leaves.
[[nodiscard]] matrix<double> ratios(factorisation, std::span<const double> g, const format& store);

/// The same by difference in 256 bits from the same g, rounded once.
[[nodiscard]] matrix<double> exact_ratios(std::span<const double> g);

struct comparison {
  std::size_t not_finite = 0;  ///< entries, of the whole square
  double worst = 0;            ///< largest |r - exact| / exact over i >= j with exact >= `floor`; infinite where not finite
  double worst_absolute = 0;   ///< largest |r - exact|
};
[[nodiscard]] comparison compare(const matrix<double>& found, const matrix<double>& exact, double floor);

/// The largest |g| (fp32) of a constant gate for which every entry is finite, by bisection between 2^-10 and 2^10; 0 where 2^-10
/// fails, 2^10 where nothing does.
[[nodiscard]] double measured_limit(factorisation, std::size_t chunk, const format& store);

/// ln(1 - 2^-p / 2)... the largest g < 0 whose decay e^g rounds to less than 1: at or above the next number it is 1.
struct rounding_to_one {
  double last_below = 0;  ///< fp32 g whose e^g rounds to 1 - u in the format
  double first_one = 0;   ///< the next fp32 number toward 0
};
[[nodiscard]] rounding_to_one rounds_to_one(const format&);

}  // namespace deltaproof::detail::gates
