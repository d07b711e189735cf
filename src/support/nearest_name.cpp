// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "support/nearest_name.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace deltaproof::detail {

namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Levenshtein distance, row by row.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest_name(std::string_view wrong, std::span<const std::string_view> names) {
  if (wrong.empty()) return {};
  const auto nearest = std::min_element(names.begin(), names.end(), [wrong](std::string_view a, std::string_view b) {
    return distance(wrong, a) < distance(wrong, b);
  });
  const std::size_t far = std::max<std::size_t>(1, (wrong.size() + 1) / 3);  // letters that may be wrong
  if (nearest != names.end() && distance(wrong, *nearest) <= far) return *nearest;
  const auto alike = [](char a, char b) { return lower(a) == lower(b); };
  const auto holds_it = [wrong, alike](std::string_view name) {
    return wrong.size() > 2 && std::search(name.begin(), name.end(), wrong.begin(), wrong.end(), alike) != name.end();
  };
  // A part of a name is no misspelling, however many letters are missing.
  const auto whole = std::find_if(names.begin(), names.end(), holds_it);
  return whole == names.end() ? std::string_view{} : *whole;
}

std::string suggestion(std::string_view wrong, std::span<const std::string_view> names) {
  if (names.empty()) return "";
  const std::string_view near = nearest_name(wrong, names);
  std::string text = near.empty() ? "; choose from " : "; did you mean \"" + std::string(near) + "\"? ";
  if (names.size() == 1) return near.empty() ? "; there is only \"" + std::string(names[0]) + "\"" : text + "There is no other";
  if (!near.empty()) text += "Choose from ";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i > 0 ? ", " : "") + std::string(names[i]);
  return text;
}

}  // namespace deltaproof::detail
