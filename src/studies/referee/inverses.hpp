// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Inverses that kernels shipped with until inputs of correlated keys found them: two laws of such inputs, the plans of those
// kernels and of their repairs, each emulated on both laws and judged by `check`.
#pragma once

#include "deltaproof/oracle/problem.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::referee_study {

struct key_law {
  std::string_view name;
  std::string_view regime;
  std::size_t tokens;
};
inline constexpr std::array<key_law, 2> key_laws{{{"one_key", "near-repeated", 16384}, {"correlated", "correlated", 8192}}};
inline constexpr std::size_t dim = 128;
/// Of each law, judged by `check`; the inverse sees one chunk at a time, so these show what all of them form.
inline constexpr std::size_t judged_tokens = 256;
/// B = H = HV = 1, K = V = 128, bf16 (gates fp32), q unit, v N(0,1), no initial state, scale 1/sqrt(128).
[[nodiscard]] problem make_problem(const key_law& law, op_kind op, std::size_t tokens, std::uint64_t seed);

/// Rows by keys, op and pair of plans: `of` was emulated and judged by `against`. reaches: the largest intermediate of the
/// inverse, predicted; limit: what may be reached before one rounding of it in `format`, or its overflow, spoils Ai; rms_ratio:
/// of Ai over its limit; error: of o over the whole law, empty where it is not finite.
[[nodiscard]] frame survey_inverses(const run_options&);

}  // namespace deltaproof::detail::referee_study
