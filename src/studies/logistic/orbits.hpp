// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The logistic map r x (1 - x) on the finitely many numbers of a 16-bit format: all its cycles; and the exact flow in formats.
// The product is formed as r (x (1 - x)), every operation rounded once.
#pragma once

#include "studies/shared/common.hpp"

namespace deltaproof::detail::logistic {

// ---- Cycles ----

/// What all starts in [0, 1] of one format end in, for one r.
struct cycle_census {
  std::size_t starts = 0;
  std::size_t cycles = 0;
  std::size_t longest_cycle = 0;
  std::size_t longest_transient = 0;  ///< steps before the cycle is reached
  std::vector<double> on_cycles;      ///< the numbers on cycles, ascending
};

/// All numbers of bf16 or fp16 in [0, 1]. Throws: format_error for another format, domain_error unless r is one of its
/// numbers in (0, 4].
[[nodiscard]] cycle_census census(std::string_view format_name, double r);
/// All bf16 numbers in [1, 4], ascending.
[[nodiscard]] std::vector<double> bf16_parameters();

// ---- The exact flow of x' = a x - b x^2 ----

/// naive: x E/(1 + (b/a) x (E - 1)), E = e^(ah). safe: x/(e^(-ah) + b h phi(ah) x), phi the gain of the exact rule: it
/// cannot overflow for a, b, h, x >= 0 unless b h x does.
inline constexpr double large_x = 8;
/// a = b = 1; h from 2^-12 to 2^10 by factors of 2^(1/8) rounded to the format, x over all powers of two times 1 ... 15/8 in
/// [2^-12, 2^3]. Truth: 256 bits. Formats: bf16, fp16, fp32, fp64.
/// Rows by format: from, from_one: the least number h of the format at which the naive form of x = large_x, and of x = 1 and
/// every smaller x, is not finite; first_worst, second_worst: relative errors where finite, in u; out_of_order: neighbouring x
/// whose images under the safe form are in the wrong order.
[[nodiscard]] frame survey_flow(const run_options&);

}  // namespace deltaproof::detail::logistic
