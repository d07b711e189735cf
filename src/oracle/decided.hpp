// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What an element of known radius certainly rounds to: one value of a format, or the parts of a sum, and how a number that
// is known exactly is rounded and split. Beside decided_rounding and decided_parts of reference.hpp.
#pragma once

#include <mpfr.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "deltaproof/oracle/reference.hpp"

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

/// Keeps what element i certainly rounds to where that was open, and in `left` its radius, of a sum what it leaves out. Whether
/// it is known.
[[nodiscard]] bool keep_rounding(const head_part& part, std::size_t i, const question& q, const format& to, rounded_part& rounded,
                                 double& left);

}  // namespace deltaproof
