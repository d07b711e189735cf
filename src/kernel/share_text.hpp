// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "deltaproof/kernel/budget.hpp"
#include "number/text.hpp"

namespace deltaproof {

/// "12.5 %": part of all, all > 0.
[[nodiscard]] inline std::string share_text(std::size_t part, std::size_t all) {
  return detail::general(100 * static_cast<double>(part) / static_cast<double>(all), 3) + " %";
}

[[nodiscard]] constexpr std::string_view name_of(norm_kind norm) { return norm == norm_kind::rms ? "rms" : "max"; }

}  // namespace deltaproof
