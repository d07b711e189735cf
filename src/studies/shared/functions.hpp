// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Functions of doubles with the same bits on every machine: each rounds correctly, and what is made of one is a product
// with it.
#pragma once

#include <string_view>

namespace deltaproof::detail::shared {

/// The natural and the decimal logarithm, the first correctly rounded, the second a product with it. 0 gives -infinity.
[[nodiscard]] double ln(double x);
[[nodiscard]] double log10_of(double x);

/// e^x, correctly rounded to fp64; and, of a number of fp32, to fp32.
[[nodiscard]] double exp64(double x);
[[nodiscard]] double exp32(double x);

/// R(x) of a rule by name in fp64, its exponential correctly rounded. Throws: format_error for an unknown rule.
[[nodiscard]] double stability_of(std::string_view rule, double x);

}  // namespace deltaproof::detail::shared
