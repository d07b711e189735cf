// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How figures look: colours in light and dark, dashes, markers, text. Eight series are told apart by
// colour (chosen for colour-blind readers) and by dash or marker; classes carry all of it, so that one
// file follows the reader's theme. Colours use `color` and `currentColor`, which old viewers know too.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace deltaproof::detail {

inline constexpr std::size_t series_limit = 8;
inline constexpr int heat_levels = 16;
/// Of a series without a label, and of a cell whose value is not finite.
inline constexpr int no_index = 255;

/// "#0f2cb1".
[[nodiscard]] std::string hex(const std::array<int, 3>& colour);
/// The content of <style>, with the heat map classes only if they are needed.
[[nodiscard]] std::string style_sheet(bool one_sided_heat, bool two_sided_heat);
/// The class of series `index`; no_index: the neutral one.
[[nodiscard]] std::string series_class(int index);
/// True where black text reads better than white on a one-sided level; two-sided levels depend on the
/// theme and their text does too.
[[nodiscard]] bool level_is_light(int level);
/// Path data of the marker of series `index` around (x, y).
[[nodiscard]] std::string marker(int index, double x, double y);

/// A coordinate with at most one decimal, as short as can be.
[[nodiscard]] std::string coordinate(double value);
/// The width of a text in pixels; an estimate on the safe side for the usual sans-serif fonts.
[[nodiscard]] double text_width(std::string_view text, double font_size);
[[nodiscard]] std::string xml_escaped(std::string_view text);

}  // namespace deltaproof::detail
