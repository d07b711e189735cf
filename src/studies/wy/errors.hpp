// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Rounding errors of the chunkwise form and of the recurrence against a double-double run of the recurrence on the same
// bits: over chunk length at one horizon, and over the horizon at one chunk length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "deltaproof/study/study.hpp"
#include "studies/shared/chunks/keys.hpp"

namespace deltaproof::detail::wy {

struct settings {
  std::size_t key_dim = 64;
  std::size_t value_dim = 8;
  std::size_t tokens = 1024;          ///< of the runs over chunk length
  std::size_t horizon_tokens = 4096;  ///< of the runs over the horizon
  std::size_t draws = 2;              ///< of each regime
  std::vector<std::size_t> chunks{1, 2, 4, 8, 16, 32, 64, 128};
};
[[nodiscard]] settings settings_for(const run_options&);

struct regime {
  std::string_view id;
  std::string_view title;
  chunks::key_kind keys{};
  chunks::step_law steps;
};
inline constexpr std::array<regime, 4> regimes{{{"ordinary", "random keys, β in [0, 1)", chunks::key_kind::fresh, {0, 1}},
                                                {"reflecting", "random keys, β in [1.9, 2)", chunks::key_kind::fresh, {1.9, 2}},
                                                {"clustered", "cosine 0.9, β in [0, 1)", chunks::key_kind::cosine_90, {0, 1}},
                                                {"hard", "cosine 0.9, β in [1.9, 2)", chunks::key_kind::cosine_90, {1.9, 2}}}};

/// In the order of the tables. The last sums in bf16 too.
inline constexpr std::array<std::string_view, 6> studied{"bf16", "fp16", "tf32", "fp32", "fp64", "bf16 native"};
inline constexpr std::size_t horizon_chunk = 64;
inline constexpr std::string_view inverse_name = "forward16+block";

/// |x' - x| / |x| over all entries (Frobenius), root mean square over the draws; infinite where one is not finite.
struct error_pair {
  double o = 0;
  double state = 0;
};

/// One regime and one arithmetic.
struct error_curve {
  std::size_t regime = 0;
  std::string_view arithmetic;
  std::vector<error_pair> by_chunk;          ///< at settings::chunks, T = settings::tokens
  error_pair recurrent_accumulator;          ///< the recurrence, state in the accumulator's format, T = settings::tokens
  error_pair recurrent_storage;              ///< the same, state rounded to the storage format after every token
  std::vector<double> by_horizon;            ///< of o over tokens (T / 2, T], at `horizons`, C = 64
  std::vector<double> recurrent_by_horizon;  ///< the same for the recurrence, state in the storage format
};

struct error_survey {
  std::vector<std::size_t> horizons;  ///< 64, 128, ...
  std::vector<error_curve> curves;    ///< regime-major
  bool complete = false;

  [[nodiscard]] const error_curve& at(std::size_t regime, std::string_view arithmetic) const;
};
[[nodiscard]] error_survey survey_errors(const run_options&, const settings&);

/// The recurrence in double-double, rounded once to double: o and the state. Each operation is within 2^-102, and as every
/// transition has norm 1 at most, errors of steps add: below T K 2^-100 of the largest state.
struct reference {
  std::vector<double> o;
  std::vector<double> state;
};
[[nodiscard]] reference run_reference(const sequence<double>&);

}  // namespace deltaproof::detail::wy
