// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/text.hpp"

#include "deltaproof/study/report.hpp"

namespace deltaproof::detail::shared {

std::string of(std::uint64_t part, std::uint64_t all) { return count(part) + " of " + count(all); }

std::string percent(double share, int digits) { return number(100 * share, digits) + " %"; }

std::string shortened(const std::string& digits, std::size_t length) {
  return digits.size() <= length ? digits : digits.substr(0, length) + "…";
}

double quantile(std::span<const double> ascending, double q) {
  return ascending.empty() ? 0 : ascending[static_cast<std::size_t>(q * static_cast<double>(ascending.size() - 1))];
}

}  // namespace deltaproof::detail::shared
