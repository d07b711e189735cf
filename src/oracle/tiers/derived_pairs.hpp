// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The derived numbers of a head as high + low to about 100 bits, many at a time: exponentials, sigmoids and normalised vectors.
// Their errors are those of proofs/notes/oracle-radius.md, line L, in units of 2^-106.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace deltaproof::tiers {

struct two_parts {
  double high;
  double low;
};

/// Below it a low part would be cut off.
inline constexpr double smallest_pair = 0x1p-900;

inline constexpr double exponential_error = 1.6;
inline constexpr double sigmoid_error = 6.2;
[[nodiscard]] inline double normalised_error(std::size_t n) {
  const double count = static_cast<double>(n) + 2;
  return 6.6 + 8 * count * count * count * 0x1p-53;
}

/// e^x for |x| <= 600 in each place; `x` and the results have room for a multiple of eight.
void exponentials(std::span<const double> x, double* high, double* low);

/// top / (1 + e) for e > 0: one correction of the fp64 quotient.
[[nodiscard]] two_parts over_one_plus(double top, double e, double e_low);

/// a + b + c to 159 bits and more.
struct three_parts {
  double a, b, c;
};
/// The decimal that x is nearest to.
[[nodiscard]] three_parts parts_of_decimal(double x);

/// x / sqrt(sum x^2 + epsilon). Returns whether every entry is 0 or large enough for its low part.
[[nodiscard]] bool normalise(std::span<const double> x, const three_parts& epsilon, double* high, double* low,
                             std::vector<double>& room);

}  // namespace deltaproof::tiers
