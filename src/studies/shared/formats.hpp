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

template <format F>
struct format_tag {
  static constexpr format value = F;
};

/// f(format_tag<F>{}) for bf16, fp16, fp32 or fp64. Throws: format_error for another name.
template <class Function>
void with_format(std::string_view name, Function&& f) {
  if (name == "bf16") return f(format_tag<bf16>{});
  if (name == "fp16") return f(format_tag<fp16>{});
  if (name == "fp32") return f(format_tag<fp32>{});
  if (name == "fp64") return f(format_tag<fp64>{});
  throw format_error("this study looks at bf16, fp16, fp32 and fp64; got '" + std::string(name) + "'");
}

/// f.operator()<F>() for bf16, fp16 or fp32, what kernels keep states and factors in. Throws: domain_error for another.
template <class Function>
auto with_kept_format(const format& wanted, Function&& f) {
  if (wanted == bf16) return f.template operator()<bf16>();
  if (wanted == fp16) return f.template operator()<fp16>();
  if (wanted == fp32) return f.template operator()<fp32>();
  throw domain_error("this study keeps numbers in bf16, fp16 or fp32, not in " + std::string(name_of(wanted)));
}

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

/// The `by`-th number of the format after x.
template <format F>
[[nodiscard]] double after(double x, std::int64_t by = 1) {
  return from_ordinal<F>(ordinal<F>(x) + by);
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
