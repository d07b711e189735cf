// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Rounds arrays and multiplies matrices in formats chosen at run time: `narrow` brings values to a format, `multiply` adds
// a matrix product to c in a stated order and accumulator. Shapes: row-major with strides, any size, 0 included. Rounds:
// as the rule says and nowhere else; every bit equals algebra's dot in the arithmetic the rule names, whatever the CPU.
// It exists because an emulation makes billions of such steps, which arithmetic<...> makes one scalar at a time.
#pragma once

#include <cstddef>
#include <span>

#include "deltaproof/number/format.hpp"
#include "deltaproof/plan/plan.hpp"

namespace deltaproof::emulation {

/// x rounded in place, each entry once. Rounds: to nearest even or toward zero; overflow as round_to<F> has it: infinity (NaN
/// where the format has none), toward zero the largest value. A format that holds every Real leaves x as it is.
/// Throws: format_error for a format outside the table that this code cannot round to.
void narrow(std::span<float> x, const narrowing& to);
void narrow(std::span<double> x, const narrowing& to);

/// x rounded once, as `narrow` does.
[[nodiscard]] float narrowed(float x, const narrowing& to);
[[nodiscard]] double narrowed(double x, const narrowing& to);

/// 2^x in place. Rounds: floats to nearest but for one in millions (lane_exp2.hpp), whatever the CPU; doubles as the library.
void exp2_all(std::span<float> x);
void exp2_all(std::span<double> x);

/// How a sum of products is made. The last three members are read by the order tensor_core only.
struct sum_rule {
  sum_order order = sum_order::sequential;
  format accumulate = fp32;
  int fraction_bits = 25;  ///< F of the block model
  std::size_t block = 16;
  format operand = bf16;  ///< what a and b are values of: a subnormal of it takes part with its smallest exponent
};

/// c(i,j) <- c(i,j) + sum_k a(i,k) b(k,j). Shapes: a rows x inner, b inner x cols, c rows x cols; strides in entries.
template <class Real>
struct product {
  const Real* a = nullptr;
  std::size_t a_stride = 0;
  const Real* b = nullptr;
  std::size_t b_stride = 0;
  Real* c = nullptr;
  std::size_t c_stride = 0;
  std::size_t rows = 0;
  std::size_t inner = 0;
  std::size_t cols = 0;
};

/// Adds a b to c; a and b are used as they are and must not overlap c; inner == 0 leaves c.
/// Rounds: with accumulate the format of Real, each product to Real and each addition to Real. With a narrower accumulate
/// (c a value of it) each step once, acc <- round(acc + x y), x y exact for floats and rounded to double for doubles.
/// Orders: sequential, pairwise and blocks_of_16 as algebra's sequential, pairwise and blocked<16>; chain_of_16: sums over
/// k = r mod 16, each from +0, r = 0 ... 15, then the pairwise tree over the 16, added to c; tensor_core: fused_block of
/// rule.block products after the other, truncated to fp32, its zero exponent that of the table's rows of equal F.
/// Throws: format_error if Real does not hold `accumulate`; for tensor_core also if Real is double, accumulate not fp32, the
/// operands' format has more than 12 bits, a finite operand is not a value of it, block is 0 or F lies outside 1 ... 28.
void multiply(const product<float>& p, const sum_rule& rule);
void multiply(const product<double>& p, const sum_rule& rule);

}  // namespace deltaproof::emulation
