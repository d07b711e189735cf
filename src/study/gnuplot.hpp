// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// gnuplot, the program that draws figures, and how they look.
#pragma once

#include <array>
#include <string>

#include "deltaproof/study/figure.hpp"

namespace deltaproof::detail {

/// How a series looks: its colour on a light page and on a dark one, gnuplot's dashes and point.
struct look {
  const char* light;
  const char* dark;
  const char* dash;
  const char* point;
};

/// Eight that colour-blind readers tell apart, by colour and by dash or point; the last is for series without a label.
inline constexpr std::array<look, 9> looks{{
    {"#0f2cb1", "#7f7dfa", "1", "7"},
    {"#b02a0b", "#f2622f", "(12,5)", "5"},
    {"#00a282", "#59f09a", "(3,4)", "9"},
    {"#a51d92", "#d96bb0", "(14,5,3,5)", "13"},
    {"#bc8612", "#fad030", "(20,6)", "11"},
    {"#65334c", "#dce2de", "(8,4)", "2"},
    {"#4c80ee", "#91c2fa", "(2,5)", "6"},
    {"#8a8548", "#a8836f", "(16,4,3,4,3,4)", "4"},
    {"#7d8690", "#8b95a1", "1", "7"},
}};

/// The drawing of a script as SVG that is readable on a light and on a dark page, with the figure's title and words for who does
/// not see it. Throws: environment_error when gnuplot is missing or refuses the script.
[[nodiscard]] std::string drawn(const std::string& script, const figure&);

}  // namespace deltaproof::detail
