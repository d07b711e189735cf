// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Numbers and columns of text as messages and tables show them: `general` and `scientific` write a double with a stated
// number of digits, "nan", "inf" and "-inf" included, `shortest` with as few as tell it apart; `padded` fills a column. Nothing
// here reads back what it wrote.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "deltaproof/support/errors.hpp"  // shortest

namespace deltaproof::detail {

/// x with `digits` significant digits, no trailing zeros: "0.0312", "1.6e+16".
[[nodiscard]] std::string general(double x, int digits);
/// x with `digits` digits after the point and an exponent: "3.125e-02".
[[nodiscard]] std::string scientific(double x, int digits = 3);
/// "12.5 %": part of all, all > 0.
[[nodiscard]] std::string share_text(std::size_t part, std::size_t all);
/// "head 3"; "key head 3" for a gradient of q or k, which has one for each head of them.
[[nodiscard]] std::string head_text(std::string_view tensor, std::size_t head);
/// The text and as many spaces as fill `width` columns of ASCII.
[[nodiscard]] std::string padded(std::string text, std::size_t width);

}  // namespace deltaproof::detail
