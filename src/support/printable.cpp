// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "support/printable.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "deltaproof/support/errors.hpp"

namespace deltaproof::detail {
namespace {

constexpr char32_t no_character = 0xFFFFFFFF;

/// The code point that `text` begins with and the bytes it takes; `no_character` and 1 where they are no UTF-8.
std::pair<char32_t, std::size_t> first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return {no_character, 1};
  char32_t c = byte(0) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {no_character, 1};
    c = c << 6U | (byte(i) & 0x3FU);
  }
  const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
  if (c < least.at(length) || c > 0x10FFFF || surrogate) return {no_character, 1};
  return {c, length};
}

/// Whether a reader sees nothing of it, or sees other text change.
bool is_hidden(char32_t c) {
  if (c == '\n' || c == '\t') return false;
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return true;
  constexpr std::array<std::pair<char32_t, char32_t>, 14> ranges{{{0x00AD, 0x00AD},
                                                                  {0x034F, 0x034F},
                                                                  {0x061C, 0x061C},
                                                                  {0x115F, 0x1160},
                                                                  {0x180E, 0x180E},
                                                                  {0x200B, 0x200F},
                                                                  {0x2028, 0x202E},
                                                                  {0x2060, 0x206F},
                                                                  {0x3164, 0x3164},
                                                                  {0xFDD0, 0xFDEF},
                                                                  {0xFEFF, 0xFEFF},
                                                                  {0xFFF0, 0xFFFB},
                                                                  {0xE0000, 0xE0FFF},
                                                                  {0xF0000, 0x10FFFF}}};
  const bool listed = std::any_of(ranges.begin(), ranges.end(), [c](const auto& r) { return c >= r.first && c <= r.second; });
  return listed || (c & 0xFFFEU) == 0xFFFE;
}

std::string spelled_out(char32_t c) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (char32_t rest = c; rest != 0 || hex.size() < 2; rest >>= 4U) hex.insert(hex.begin(), digits[rest & 15U]);
  return c < 0x100 ? "\\x" + hex : "\\u{" + hex + "}";
}

std::string shown(std::string_view text, bool lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [c, length] = first_of(text);
    if (c == no_character) {
      out += "\xEF\xBF\xBD";
    } else if (is_hidden(c) || (!lines && (c == '\n' || c == '\t'))) {
      out += spelled_out(c);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return shown(text, true); }
std::string printable_line(std::string_view text) { return shown(text, false); }

std::string markup_escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace deltaproof::detail

namespace deltaproof {

std::string in_quotes(std::string_view text) {
  std::size_t end = 80;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;  // cut between characters of UTF-8
  if (end >= text.size()) return '"' + detail::printable_line(text) + '"';
  return '"' + detail::printable_line(text.substr(0, end)) + "...\" (" + std::to_string(text.size()) + " bytes)";
}

}  // namespace deltaproof
