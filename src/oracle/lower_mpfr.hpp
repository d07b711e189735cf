// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The lowering of oracle/lower.hpp for the MPFR tiers.
#pragma once

#include <span>
#include <string>

#include "deltaproof/oracle/lower.hpp"
#include "oracle/mpfr_value.hpp"

namespace deltaproof {

/// `lower` with `bits` bits. Throws: as lower.
[[nodiscard]] lowered<mpfr_value> lower_mpfr(const problem& p, std::size_t sequence_index, std::size_t value_head, int bits);

/// sum <- sum x^2, in the order of x, each square and sum rounded; `part` is scratch of the same precision.
void square_sum(mpfr_ptr sum, mpfr_ptr part, std::span<const double> x);

/// beta after its activation, at beta's precision: sigmoid(x) = 1 / (1 + e^-x).
void activate_step(mpfr_ptr beta, activation_kind activation);

/// beta <- beta phi(x), at up to 1216 bits. Returns the amplification of phi's evaluation at x.
/// Throws: domain_error where phi has a pole, opening with `where`.
double apply_gain(mpfr_ptr beta, mpfr_srcptr x, rule_kind rule, const std::string& where);

}  // namespace deltaproof
