// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How the sentences of studies put counts, shares and digits, and the quantile they quote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace deltaproof::detail::shared {

/// "12 of 345".
[[nodiscard]] std::string of(std::uint64_t part, std::uint64_t all);
/// 0.125 as "12.5 %", `digits` significant ones.
[[nodiscard]] std::string percent(double share, int digits);
/// The first `length` characters, and "…" where that is not all.
[[nodiscard]] std::string shortened(const std::string& digits, std::size_t length);

/// The element at q (n - 1), rounded down, of n values in ascending order; 0 of none.
[[nodiscard]] double quantile(std::span<const double> ascending, double q);

}  // namespace deltaproof::detail::shared
