// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The logistic map r x (1 - x) in number formats: its Lyapunov exponent, how long an orbit in a format follows the true one,
// and all cycles of the map on the finitely many numbers of a 16-bit format. The product is formed as r (x (1 - x)), every
// operation rounded once.
#pragma once

#include "studies/shared/common.hpp"

namespace deltaproof::detail::logistic {

// ---- Lyapunov exponent ----

struct estimate {
  double mean = 0;
  double deviation = 0;  ///< of one stream
  std::size_t n = 0;
  [[nodiscard]] double standard_error() const { return n > 0 ? deviation / std::sqrt(static_cast<double>(n)) : 0; }
};

/// Mean of ln|r (1 - 2x)| over `steps` steps of fp64 orbits after 1000, from `streams` random starts.
[[nodiscard]] estimate lyapunov(double r, std::size_t steps, std::size_t streams, std::uint64_t seed);

// ---- Decorrelation ----

inline constexpr double far = 0.1;
inline constexpr int true_bits = 2200;
inline constexpr double least_start = 0.125;
inline constexpr double greatest_start = 0.875;

/// The race of bf16, fp16, fp32, fp64 and two of MPFR: columns format, precision, starts (those that came far within `steps`),
/// mean, deviation, least and most of the first step at which |x - true x| > far, and never (starts that stayed nearer).
/// Starts are random bf16 numbers in (1/8, 7/8), so that every format has them. The true orbit has 2200 bits: it loses at
/// most 2 a step, |r (1 - 2x)| <= 4, so that after 800 steps it is right to 2^-500. Throws: domain_error unless r is a number of
/// bf16 in (0, 4].
[[nodiscard]] frame decorrelation(double r, std::size_t starts, std::size_t steps, std::uint64_t seed);

/// The slope of y against x by least squares.
[[nodiscard]] double slope_of(const std::vector<double>& x, const std::vector<double>& y);

// ---- Cycles ----

/// What all starts in [0, 1] of one format end in, for one r.
struct cycle_census {
  std::size_t starts = 0;
  std::size_t cycles = 0;
  std::size_t longest_cycle = 0;
  std::size_t longest_transient = 0;  ///< steps before the cycle is reached
  std::size_t ends_at_zero = 0;       ///< starts whose cycle is {0}
  std::vector<double> on_cycles;      ///< the numbers on cycles, ascending
};

/// All numbers of bf16 or fp16 in [0, 1]. Throws: format_error for another format, domain_error unless r is one of its
/// numbers in (0, 4].
[[nodiscard]] cycle_census census(std::string_view format_name, double r);
/// All bf16 numbers in [1, 4], ascending.
[[nodiscard]] std::vector<double> bf16_parameters();

// ---- The exact flow of x' = a x - b x^2 ----

/// naive: x E/(1 + (b/a) x (E - 1)), E = e^(ah). safe: x/(e^(-ah) + b h phi(ah) x), phi the gain of the exact rule: it
/// cannot overflow for a, b, h, x >= 0 unless b h x does, and holds at a = 0.
inline constexpr double large_x = 8;
/// a = b = 1; h from 2^-12 to 2^10 by factors of 2^(1/8) rounded to the format, x over all powers of two times 1 ... 15/8 in
/// [2^-12, 2^3]. Truth: 256 bits. Formats: bf16, fp16, fp32, fp64.
/// Rows by format: from, from_one: the least number h of the format at which the naive form of x = large_x, and of x = 1 and
/// every smaller x, is not finite; first_worst, second_worst: relative errors where finite, in u; out_of_order: neighbouring x
/// whose images under the safe form are in the wrong order; holds_at_zero: at a = 0 that is x/(1 + b h x), bit for bit.
[[nodiscard]] frame survey_flow(const run_options&);

}  // namespace deltaproof::detail::logistic
