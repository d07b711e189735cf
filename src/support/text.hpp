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

namespace deltaproof::detail {

/// x with `digits` significant digits, no trailing zeros: "0.0312", "1.6e+16".
[[nodiscard]] std::string general(double x, int digits);
/// The shortest decimal that reads back as x: "0.1", "1e-09".
[[nodiscard]] std::string shortest(double x);
/// x with `digits` digits after the point and an exponent: "3.125e-02".
[[nodiscard]] std::string scientific(double x, int digits = 3);
/// "1 run", "2 runs".
[[nodiscard]] std::string counted(std::size_t n, std::string_view what);
/// "12.5 %": part of all, all > 0.
[[nodiscard]] std::string share_text(std::size_t part, std::size_t all);
/// "head 3"; "key head 3" for a gradient of q or k, which has one for each head of them.
[[nodiscard]] std::string head_text(std::string_view tensor, std::size_t head);
/// The text and as many spaces as fill `width` columns of ASCII.
[[nodiscard]] std::string padded(std::string text, std::size_t width);

}  // namespace deltaproof::detail
