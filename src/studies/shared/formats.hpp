// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A format chosen at run time as a type, and the numbers of a format in order. It exists so that which formats a survey
// goes over is data, and a search over all numbers of a format is one over integers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/encoding.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof::detail::shared {

/// f.operator()<F>() for the one of these formats that is wanted. Throws: format_error for another.
template <format First, format... Others, class Function>
auto with_format(const format& wanted, Function&& f) {
  if (wanted == First) return f.template operator()<First>();
  if constexpr (sizeof...(Others) > 0) {
    return with_format<Others...>(wanted, f);
  } else {
    throw format_error("this study does not look at " + std::string(name_of(wanted)));
  }
}
/// What kernels keep states and factors in, and fp64.
template <class Function>
auto with_studied_format(const format& wanted, Function&& f) {
  return with_format<bf16, fp16, fp32, fp64>(wanted, f);
}

/// 1 + 2 i u, for i below `significands`.
template <format F>
[[nodiscard]] double significand(std::uint64_t i) {
  return 1 + static_cast<double>(i) * 2 * unit_roundoff(F);
}
template <format F>
inline constexpr std::uint64_t significands = std::uint64_t{1} << (F.precision - 1);

/// The numbers of a format in order: 0 has ordinal 0, its neighbours 1 and -1. Finite numbers only.
template <format F>
[[nodiscard]] std::int64_t ordinal(double x) {
  const auto magnitude = rounded<F>::from_exact(std::fabs(x)).bits() >> encoding<F>::padding;
  return x < 0 ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
}
template <format F>
[[nodiscard]] double from_ordinal(std::int64_t i) {
  const auto code = static_cast<std::uint64_t>(i < 0 ? -i : i) << encoding<F>::padding;
  const double magnitude = rounded<F>::from_bits(static_cast<typename rounded<F>::bits_type>(code)).value();
  return i < 0 ? -magnitude : magnitude;
}

/// The number of the format after x.
template <format F>
[[nodiscard]] double after(double x) {
  return from_ordinal<F>(ordinal<F>(x) + 1);
}
/// The last number of the format in [low, high) with `holds`, which is true at low, false at high, and changes once.
template <format F, class Holds>
[[nodiscard]] double last_with(double low, double high, Holds&& holds) {
  std::int64_t first = ordinal<F>(low), end = ordinal<F>(high);
  while (end - first > 1) {
    const std::int64_t middle = first + (end - first) / 2;
    (holds(from_ordinal<F>(middle)) ? first : end) = middle;
  }
  return from_ordinal<F>(first);
}

}  // namespace deltaproof::detail::shared
