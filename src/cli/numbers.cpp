// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/numbers.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "support/text.hpp"

namespace deltaproof::cli {
namespace {

std::optional<double> decimal_of(const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  // What strtod takes and people do not write: blanks before, hexadecimals.
  if (word.empty() || end != word.c_str() + word.size() || word.find_first_of(" \t\nxX") != std::string::npos)
    return std::nullopt;
  return value;
}

/// Why the word is no finite number; empty: it is one.
std::string why_no_number(const std::string& word) {
  if (const auto value = decimal_of(word)) {
    if (std::isnan(*value)) return word + " is not a number";
    return std::isinf(*value) ? word + " is not a finite number" : std::string();
  }
  if (word.ends_with("%")) {
    if (const auto percent = decimal_of(word.substr(0, word.size() - 1)))
      return word + " is a percentage; write " + detail::general(*percent / 100, 10);
  }
  if (const std::size_t comma = word.find(','); comma != std::string::npos) {
    std::string point = word;
    point[comma] = '.';
    if (decimal_of(point)) return "'" + word + "' is not a number; write " + point;
  }
  return "'" + word + "' is not a number";
}

}  // namespace

CLI::Validator number_within(double least, double most) {
  return {[least, most](const std::string& word) {
            std::string wrong = why_no_number(word);
            if (!wrong.empty()) return wrong;
            const double value = *decimal_of(word);
            if (value >= least && value <= most) return std::string();
            return word + (value < least ? " is too small" : " is too large") + "; write a number from " +
                   detail::general(least, 10) + " to " + detail::general(most, 10);
          },
          ""};
}

CLI::Validator positive_number() {
  return {[](const std::string& word) {
            const std::string wrong = why_no_number(word);
            if (!wrong.empty()) return wrong;
            return *decimal_of(word) > 0 ? std::string() : word + " is not above 0; write a number above 0";
          },
          ""};
}

CLI::Validator integer_within(long long least, long long most) {
  return {[least, most](const std::string& word) {
            const std::string use = "; write an integer from " + std::to_string(least) + " to " + std::to_string(most);
            long long value = 0;
            const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
            if (end != word.data() + word.size() || word.empty() || error == std::errc::invalid_argument)
              return "'" + word + "' is not an integer" + use;
            if (error == std::errc{} && value >= least && value <= most) return std::string();
            return word + " is too " + (word.front() == '-' || (error == std::errc{} && value < least) ? "small" : "large") + use;
          },
          ""};
}

}  // namespace deltaproof::cli
