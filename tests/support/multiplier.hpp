// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The length of test loops: `scaled(n)` is n times the environment variable DELTAPROOF_TEST_MULTIPLIER
// (a positive decimal number, 1 if unset), at least 1. Including this file also gives RapidCheck a fixed
// seed and scaled(100) cases a property, unless RC_PARAMS is set; RapidCheck prints what it uses.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace deltaproof {

inline double test_multiplier() {
  const char* const text = std::getenv("DELTAPROOF_TEST_MULTIPLIER");
  if (text == nullptr) return 1;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0) || value > 1e9) {
    throw std::runtime_error("DELTAPROOF_TEST_MULTIPLIER must be a positive number; got '" + std::string(text) + "'");
  }
  return value;
}

inline std::size_t scaled(std::size_t n) {
  const double count = static_cast<double>(n) * test_multiplier();
  return count < 1 ? 1 : static_cast<std::size_t>(count);
}

namespace detail {

/// Sets RC_PARAMS unless it was set from outside, and says whether it was. RapidCheck reads it when the first property
/// runs, which is after this.
inline const bool rapidcheck_was_asked = [] {
  const bool asked = std::getenv("RC_PARAMS") != nullptr;
  ::setenv("RC_PARAMS", ("seed=20260 max_success=" + std::to_string(scaled(100))).c_str(), 0);
  return asked;
}();

}  // namespace detail

}  // namespace deltaproof
