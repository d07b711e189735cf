// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Functions of doubles with the same bits on every machine: each rounds correctly, and what is made of one is a product
// with it. And what studies make of frames beside the aggregates of results.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/study/grid.hpp"

namespace deltaproof::detail::shared {

/// The natural and the decimal logarithm, the first correctly rounded, the second a product with it. 0 gives -infinity.
[[nodiscard]] double ln(double x);
[[nodiscard]] double log10_of(double x);

/// e^x, correctly rounded to fp64; and, of a number of fp32, to fp32.
[[nodiscard]] double exp64(double x);
[[nodiscard]] double exp32(double x);

/// R(x) of a rule by name in fp64, its exponential correctly rounded. Throws: format_error for an unknown rule.
[[nodiscard]] double stability_of(std::string_view rule, double x);

/// Every update rule, by name.
[[nodiscard]] grid_axis<std::string> rule_axis();

[[nodiscard]] cell root_mean_square(std::span<const double>);
/// The sum, a whole number.
[[nodiscard]] cell count_of(std::span<const double>);
/// The aggregate of each of these columns under its own name.
[[nodiscard]] std::vector<aggregate> each(const std::vector<std::string>& columns, const aggregate_function& of);
/// The first row with the greatest number in `column`; with the least for sign -1. Throws: domain_error for an empty frame.
[[nodiscard]] frame::row top(const frame&, std::string_view column, int sign = 1);

}  // namespace deltaproof::detail::shared
