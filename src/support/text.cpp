// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "support/text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace deltaproof::detail {
namespace {

std::string written(const char* pattern, int digits, double x) {
  if (std::isnan(x)) return "nan";  // printf may write "-nan"
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, pattern, digits, x);
  return buffer;
}

}  // namespace

std::string general(double x, int digits) { return written("%.*g", digits, x); }
std::string shortest(double x) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), x).ptr};
}

std::string scientific(double x, int digits) { return written("%.*e", digits, x); }

std::string head_text(std::string_view tensor, std::size_t head) {
  const bool of_keys = tensor.starts_with("dq") || tensor.starts_with("dk");
  return (of_keys ? "key head " : "head ") + std::to_string(head);
}

std::string counted(std::size_t n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string share_text(std::size_t part, std::size_t all) {
  return general(100 * static_cast<double>(part) / static_cast<double>(all), 3) + " %";
}

}  // namespace deltaproof::detail
