// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The parts of the horizon study that stand in other files than study.cpp, and the dimension that all share.
#pragma once

#include "deltaproof/rule/rules.hpp"
#include "studies/shared/common.hpp"

namespace deltaproof::detail::horizon {

inline constexpr std::size_t key_dim = 64;  ///< even
[[nodiscard]] inline std::size_t exponent_tokens(const run_options& o) { return o.size(100000, 300000); }

using shared::rule_axis;

/// Lyapunov exponents, closed and measured; where eigenvalues of single factors do not decide.
void add_exponents(const run_options&, results&);
/// One key, a rounded state: where it comes to rest.
void add_rest(const run_options&, results&);
/// Logistic maps beside the delta rule on one key.
void add_maps(const run_options&, results&);

}  // namespace deltaproof::detail::horizon
