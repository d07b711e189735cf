// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Says what one multiply-accumulate of a tensor core does to its bits: `core_model<Generation, F>` for operands
// of format F, and `fused_block`, which runs it. A block of products and the accumulator are aligned to the
// largest exponent, where a product's exponent is the sum of its factors' exponents before normalisation and a
// subnormal counts with its format's smallest exponent; each term loses, toward zero, what lies below F
// fraction bits; the rest is summed exactly and rounded toward zero to fp32 (to 13 fraction bits for fp8 on Ada
// and Hopper). Longer sums chain blocks through the accumulator; a short last block counts as filled with zeros.
// Too large a sum becomes infinite, an exact zero is +0, infinities and NaN follow IEEE 754.
//
// Source: fraction bits, block lengths, the exponent of a zero term and the output rounding are those of the
// bit-accurate model MMA-Sim (arXiv:2511.10909, table 4 and its public implementation); Hawkeye
// (arXiv:2603.20421) describes the same alignment and truncation for Ampere, Ada and Hopper.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "deltaproof/number/format.hpp"

namespace deltaproof {

struct volta {
  static constexpr std::string_view name = "volta";
};
struct turing {
  static constexpr std::string_view name = "turing";
};
struct ampere {
  static constexpr std::string_view name = "ampere";
};
struct ada {
  static constexpr std::string_view name = "ada";
};
struct hopper {
  static constexpr std::string_view name = "hopper";
};
struct blackwell {
  static constexpr std::string_view name = "blackwell";
};

/// One row of the table of models. zero_exponent is the exponent that a zero accumulator or product takes part
/// with; it shows only in sums below the normal range of fp32.
struct core_parameters {
  std::size_t block = 0;  // 0: this generation does not multiply this format
  int fraction_bits = 0;
  int result_fraction_bits = 23;
  int zero_exponent = 0;
};

namespace detail {

template <class Generation>
struct core_table;

constexpr bool is_fp8(const format& f) { return f == e4m3 || f == e5m2; }
constexpr bool is_half(const format& f) { return f == bf16 || f == fp16; }

template <>
struct core_table<volta> {
  static constexpr core_parameters of(const format& f) {
    return f == fp16 ? core_parameters{4, 23, 23, -131} : core_parameters{};
  }
};
template <>
struct core_table<turing> {
  static constexpr core_parameters of(const format& f) {
    return f == fp16 ? core_parameters{8, 24, 23, -132} : core_parameters{};
  }
};
template <>
struct core_table<ampere> {
  static constexpr core_parameters of(const format& f) {
    if (is_half(f)) return {8, 24, 23, -132};
    if (f == tf32) return {4, 24, 23, -132};
    return {};
  }
};
template <>
struct core_table<ada> {
  static constexpr core_parameters of(const format& f) {
    if (is_fp8(f)) return {16, 13, 13, -132};
    return core_table<ampere>::of(f);
  }
};
template <>
struct core_table<hopper> {
  static constexpr core_parameters of(const format& f) {
    if (is_half(f)) return {16, 25, 23, -133};
    if (f == tf32) return {8, 25, 23, -133};
    if (is_fp8(f)) return {32, 13, 13, -133};
    return {};
  }
};
template <>
struct core_table<blackwell> {
  static constexpr core_parameters of(const format& f) {
    if (is_fp8(f)) return {32, 25, 23, -133};
    return core_table<hopper>::of(f);
  }
};

}  // namespace detail

/// The model of one generation for operands of format F; block is 0 where the hardware has none.
template <class Generation, format F>
inline constexpr core_parameters core_model = detail::core_table<Generation>::of(F);

/// A finite value as significand * 2^(exponent - (precision - 1)), exponent that of its format's field.
/// Not finite: exponent == core_operand::special, and significand the sign of an infinity or 0 for NaN.
struct core_operand {
  static constexpr std::int32_t special = 1 << 20;
  std::int32_t significand = 0;
  std::int32_t exponent = 0;
};

/// Takes apart x, a value of a format of this precision (at most 24) and smallest normal exponent emin.
[[nodiscard]] inline core_operand take_apart(double x, int precision, int emin) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int sign = (bits >> 63) != 0 ? -1 : 1;
  const int field = static_cast<int>((bits >> 52) & 0x7ff);
  const std::uint64_t fraction = bits & 0xf'ffff'ffff'ffffU;
  if (field == 0x7ff) return {fraction != 0 ? 0 : sign, core_operand::special};
  if (field == 0) return {0, emin};  // zero: no format here reaches down to subnormal doubles
  int exponent = field - 1023;
  int dropped = 53 - precision;  // all zeros, as x is a value of the format
  if (exponent < emin) {
    dropped += emin - exponent;
    exponent = emin;
  }
  const auto magnitude = static_cast<std::int32_t>((fraction | (std::uint64_t{1} << 52)) >> dropped);
  return {sign * magnitude, exponent};
}

namespace detail {

/// sum * 2^scale toward zero to the given fraction bits with the exponent range of fp32; too large is infinite.
[[nodiscard]] inline double truncate_sum(std::int64_t sum, int scale, int fraction_bits) noexcept {
  if (sum == 0) return 0.0;
  const bool negative = sum < 0;
  auto magnitude = static_cast<std::uint64_t>(negative ? -sum : sum);
  const int exponent = scale + 63 - std::countl_zero(magnitude);
  if (exponent > 127) {
    const double infinity = std::numeric_limits<double>::infinity();
    return negative ? -infinity : infinity;
  }
  const int quantum = (exponent < -126 ? -126 : exponent) - fraction_bits;
  if (quantum > scale) {
    const int drop = quantum - scale;
    magnitude = drop > 63 ? 0 : magnitude >> drop;
    scale = quantum;
  }
  if (magnitude == 0) return 0.0;
  const double value = static_cast<double>(magnitude) * power_of_two(scale);
  return negative ? -value : value;
}

}  // namespace detail

/// accumulator + sum_i x_i y_i for one block, bit for bit as the model says. `precision` is that of x and y; the
/// accumulator is a value of fp32. Shapes: x.size() == y.size() <= model.block.
[[nodiscard]] inline double fused_block(std::span<const core_operand> x, std::span<const core_operand> y, int precision,
                                        double accumulator, const core_parameters& model) noexcept {
  const core_operand carried = take_apart(accumulator, 24, -126);
  // A zero accumulator counts with the model's exponent and any other with at least -126, so that zero products and
  // the zeros which fill a short block never decide.
  int largest = carried.significand == 0 ? model.zero_exponent : carried.exponent;
  bool finite = carried.exponent != core_operand::special;
  for (std::size_t i = 0; i < x.size(); ++i) {
    finite = finite && x[i].exponent != core_operand::special && y[i].exponent != core_operand::special;
    const bool zero = x[i].significand == 0 || y[i].significand == 0;
    const int exponent = x[i].exponent + y[i].exponent;
    if (!zero && exponent > largest) largest = exponent;
  }
  if (!finite) {
    // Finite factors cannot overflow in double, so IEEE 754's own rules decide between infinity and NaN.
    const auto value = [](const core_operand& part) {
      if (part.exponent != core_operand::special) return static_cast<double>(part.significand);
      return part.significand == 0 ? std::numeric_limits<double>::quiet_NaN()
                                   : part.significand * std::numeric_limits<double>::infinity();
    };
    double sum = value(carried);
    for (std::size_t i = 0; i < x.size(); ++i) sum += value(x[i]) * value(y[i]);
    return sum;
  }
  const int scale = largest - model.fraction_bits;
  const auto aligned = [scale](std::int64_t significand, int lowest_bit) {
    const int shift = lowest_bit - scale;
    if (shift >= 0) return significand * (std::int64_t{1} << shift);
    const int drop = shift < -62 ? 62 : -shift;
    return significand < 0 ? -(-significand >> drop) : significand >> drop;
  };
  std::int64_t sum = carried.significand == 0 ? 0 : aligned(carried.significand, carried.exponent - 23);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t product = std::int64_t{x[i].significand} * y[i].significand;
    if (product != 0) sum += aligned(product, x[i].exponent + y[i].exponent - 2 * (precision - 1));
  }
  return detail::truncate_sum(sum, scale, model.result_fraction_bits);
}

}  // namespace deltaproof
