// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Inverses that kernels shipped with until inputs of correlated keys found them: two laws of such inputs, the plans of those
// kernels and of their repairs, each emulated on both laws and judged by `check`.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/oracle/problem.hpp"
#include "deltaproof/study/study.hpp"

namespace deltaproof::detail::referee_study {

struct key_law {
  std::string_view id;
  std::string_view regime;
  std::string_view what;
  std::size_t tokens;
};
inline constexpr std::array<key_law, 2> key_laws{{
    {"one key", "near-repeated", "one unit key, 1e-3 N(0,1) added to each entry anew at each token; beta = sigmoid(8); every log decay -0.001",
     16384},
    {"cosine 0.92", "correlated", "keys of length 0.9 with mean cosine 0.92; beta = 1; log decays uniform in [-0.034, -0.012]", 8192},
}};
/// B = H = HV = 1, K = V = 128, bf16 (gates fp32), q unit, v N(0,1), no initial state, scale 1/sqrt(128).
[[nodiscard]] problem make_problem(const key_law& law, op_kind op, std::size_t tokens, std::uint64_t seed);

struct inverse_row {
  std::size_t law = 0;
  std::string of;       ///< the plan that was emulated
  std::string against;  ///< the plan it was judged by
  std::size_t chunk = 0;
  bool repaired = false;  ///< it is expected to hold
  double reaches = 0;     ///< largest intermediate of the inverse, predicted
  double limit = 0;       ///< what may be reached before one rounding of it, or its overflow, spoils Ai
  std::string format;     ///< in which it is rounded
  std::string verdict;
  bool adequate = false;
  bool kept = false;  ///< conforms
  std::string reason;
  std::string first_bad;
  double rms_ratio = 0;  ///< of that stage over its limit, where it is Ai
  double bias = 0;
  std::size_t judged_tokens = 0;
  // One run over the whole law.
  double error = 0;                            ///< |error|_F / |exact|_F of o
  std::optional<std::size_t> first_nonfinite;  ///< token
};

struct inverse_survey {
  std::vector<inverse_row> rows;
  bool complete = false;
};
[[nodiscard]] inverse_survey run_inverses(const run_options&);

}  // namespace deltaproof::detail::referee_study
