// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// EFLA's coefficient (1 - e^-x)/n, x = beta n, as three pieces of code would form it in one format, every operation rounded
// once to it, exp and expm1 correctly rounded; and surveys of its error and of the eigenvalue 1 - b n that it leaves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/study/study.hpp"
#include "studies/efla/sections.hpp"

namespace deltaproof::detail::efla {

/// naive: (1 - exp(-x))/n. expm1: -expm1(-x)/n. library: beta (expm1(-x)/(-x)), as rule/rules.hpp.
enum class form { naive, expm1, library };
inline constexpr std::array<form, 3> forms{form::naive, form::expm1, form::library};
[[nodiscard]] std::string_view name_of(form);

inline constexpr std::array<std::string_view, 4> format_names{"bf16", "fp16", "fp32", "fp64"};

/// The coefficient for numbers beta and n of the format. Throws: format_error for another format.
[[nodiscard]] double coefficient(std::string_view format_name, form, double beta, double n);

// ---- Error, n = 1 ----

inline constexpr double smallest_x = 1e-12;
inline constexpr double largest_x = 1e3;
inline constexpr std::size_t decades = 15;
inline constexpr std::size_t bins_per_decade = 4;

/// One format and form with n = 1, so that x = beta is a number of the format.
struct error_result {
  std::string format_name;
  form how = form::naive;
  bool exhaustive = false;
  std::uint64_t cases = 0;
  std::array<std::uint64_t, decades> looked_at{};
  std::array<std::uint64_t, decades> zeros{};                ///< the coefficient is 0
  std::array<double, decades> worst{};                       ///< relative error
  std::array<double, decades * bins_per_decade> envelope{};  ///< largest relative error in a bin; NaN: empty
  double worst_error = 0;                                    ///< over all x
  double worst_at = 0;
  double worst_in_u = 0;
};

/// Where the naive form stops returning 0: the largest x with 0 and the next number with its value.
struct dead_zone {
  std::string format_name;
  double last_zero = 0;
  double first_alive = 0;
  double value_there = 0;
  double error_there = 0;     ///< relative
  double saturates_from = 0;  ///< the smallest x from which 1 - e^-x is 1
};

struct error_survey {
  std::vector<error_result> results;  ///< format-major
  std::vector<dead_zone> zones;
  bool complete = false;
};
[[nodiscard]] error_survey survey_errors(const run_options& options, const settings& size);

// ---- Eigenvalue ----

/// Octaves of x of the surveys of the eigenvalue: 2^lowest_octave <= n < 2^(highest_octave + 1), beta in [1, 2).
inline constexpr int lowest_octave = -40;
inline constexpr int highest_octave = 9;

/// lambda = 1 - b n, decided exactly for the computed b.
struct eigenvalue_result {
  std::string format_name;
  form how = form::naive;
  bool exhaustive = false;
  std::uint64_t cases = 0;
  std::uint64_t exactly_one = 0;   ///< nothing is written
  std::uint64_t exactly_zero = 0;  ///< everything along the key is erased
  std::uint64_t negative = 0;
  std::uint64_t above_one = 0;
  double largest_dead_x = 0;   ///< largest beta n (to double) with lambda = 1
  double smallest_full_x = 0;  ///< smallest beta n with lambda <= 0; 0: none
  double lowest_in_u = 0;      ///< -lambda / u at the lowest lambda
};

struct eigenvalue_survey {
  std::vector<eigenvalue_result> results;
  bool complete = false;
};
[[nodiscard]] eigenvalue_survey survey_eigenvalues(const run_options& options, const settings& size);

}  // namespace deltaproof::detail::efla
