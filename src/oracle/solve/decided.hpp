// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What an element of known radius certainly rounds to: one value of a format, or the parts of a sum, and how a number that
// is known exactly is rounded and split. Beside decided_rounding and decided_parts of reference.hpp.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/oracle/wide_bound.hpp"

namespace deltaproof {

/// One tensor of one head, elements in the order o: T x V, state: K x V; no shape.
using head_part = reference_tensor;

/// What elements round to: the first parts, the others where sums are asked for; NaN from the first on that is open.
struct rounded_part {
  std::vector<double> value;
  std::vector<std::vector<double>> low;
  double left = 0;  // bounds |exact - what was rounded| over the decided elements; of a sum, what it leaves out

  void reset(std::size_t elements, std::size_t parts) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    value.assign(elements, nan);
    low.assign(parts > 1 ? parts - 1 : 0, std::vector<double>(elements, nan));
  }
  [[nodiscard]] bool open(std::size_t i) const { return std::isnan(low.empty() ? value[i] : low.back()[i]); }
};

/// The most components a value is split into: 1024 bits fill 20 doubles.
inline constexpr std::size_t most_components = 20;

/// Element i as an unevaluated sum of at most 1 + `most` doubles; what is left out is small beside the radius, or joins it.
void split(head_part& part, std::size_t i, mpfr_srcptr x, mpfr_ptr rest, double radius, std::size_t most = most_components);

/// An exact number, rounded once to nearest even; a zero is +0. Throws: format_error for another format than bf16, fp16, fp32
/// or fp64.
[[nodiscard]] double round_nearest(mpfr_srcptr x, const format& to);

/// An exact number as the parts of a sum; returns what they leave out.
[[nodiscard]] double keep_exact(mpfr_srcptr x, std::size_t i, rounded_part& to);

/// Where element i is open: keeps what every number within `radius` of x rounds to, if that is one value, or the parts of a sum
/// that are the same for all of them, whatever doubles can say of the radius. What lies beyond fp64 stays open. `left` as
/// keep_rounding.
void keep_certain(mpfr_srcptr x, const wide_bound& radius, std::size_t i, const question& q, const format& to,
                  rounded_part& rounded, double& left);

/// What a number rounds to if it lies well inside the format's normal range and no tie is near; nothing where that takes a
/// closer look. The interval looked at contains the one that is meant, so the answer is the same.
[[nodiscard]] inline std::optional<double> rounded_far_from_a_tie(const reference_tensor& t, std::size_t i, const format& to) {
  constexpr std::uint64_t fraction = (std::uint64_t{1} << 52) - 1;
  const double value = t.value[i];
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (to == tf32 || to.storage_bits == 8) return std::nullopt;
  if (exponent <= to.emin + 1 || exponent >= to.emax - 1 || exponent < -900) return std::nullopt;
  double off = t.radius[i];
  for (const auto& low : t.low) off += std::fabs(low[i]);
  off *= 1 + 0x1p-40;
  if (to.precision == 53) {
    // Half a unit, where the value is no power of two, below which units are smaller.
    const double half = std::bit_cast<double>(bits & ~fraction & ~(std::uint64_t{1} << 63)) * 0x1p-53;
    return (bits & fraction) != 0 && off < half ? std::optional(value) : std::nullopt;
  }
  off += std::fabs(value) * 0x1p-51;
  const int dropped = 53 - to.precision;
  const auto nearest = [dropped](double x) {
    auto b = std::bit_cast<std::uint64_t>(x);
    b += (std::uint64_t{1} << (dropped - 1)) - 1 + (b >> dropped & 1);
    return b & ~((std::uint64_t{1} << dropped) - 1);
  };
  const auto below = nearest(value - off), above = nearest(value + off);
  return below == above ? std::optional(std::bit_cast<double>(below)) : std::nullopt;
}

/// Keeps what element i certainly rounds to where that was open, and in `left` its radius, of a sum what it leaves out. Whether
/// it is known.
[[nodiscard]] inline bool keep_rounding(const head_part& part, std::size_t i, const question& q, const format& to,
                                        rounded_part& rounded, double& left) {
  if (!rounded.open(i)) return true;
  if (q.parts == 0) {
    auto value = rounded_far_from_a_tie(part, i, to);
    if (!value) value = decided_rounding(part, i, to);
    if (!value) return false;
    rounded.value[i] = *value;
    if (part.radius[i] > left) left = part.radius[i];
    return true;
  }
  std::array<double, most_parts> room;
  const std::span<double> parts(room.data(), rounded.low.size() + 1);
  const double beyond = decided_parts(part, i, parts);
  // A part that a coarser tier knew is the same.
  if (!std::isnan(parts[0])) rounded.value[i] = parts[0];
  for (std::size_t c = 1; c < parts.size() && !std::isnan(parts[c]); ++c) rounded.low[c - 1][i] = parts[c];
  if (rounded.open(i)) return false;
  left = std::max(left, beyond);
  return true;
}

}  // namespace deltaproof
