// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The gain of a rule as the oracle needs it: in MPFR numbers with a bound on the error, in rationals, and its derivatives. Every
// rule of rule/rules.hpp is run over the same numbers, so that none has constants here.
#pragma once

#include <mpfr.h>

#include <optional>
#include <span>
#include <string>

#include "deltaproof/number/rational.hpp"
#include "deltaproof/oracle/problem.hpp"
#include "deltaproof/oracle/wide_bound.hpp"
#include "oracle/mpfr_ball.hpp"

namespace deltaproof {

/// beta <- beta phi(x), x of at least bits + 64 bits. Returns A: |phi(x') - phi| <= A 2^-(bits + 40), phi what beta was
/// multiplied by, for every x' that is within 2^-(bits + 40) |x| of x. Infinite where a pole may be that near; beta is then of no
/// meaning. Throws: domain_error where phi leaves MPFR's exponents, opening with `where`.
wide_bound apply_gain(mpfr_ptr beta, mpfr_srcptr x, rule_kind rule, int bits, const std::string& where);

/// beta phi(beta |k|^2), exactly; nothing where the rule has no rational values. Throws: domain_error where it divides by 0,
/// opening with `where`.
[[nodiscard]] std::optional<rational> rational_step(rule_kind rule, const rational& beta, const rational& squared_norm,
                                                    const std::string& where);

/// Throws: the same, where beta |k|^2 of a given key and step is at a pole; derived ones never are, but for keys whose norm has a
/// dyadic epsilon.
void refuse_if_at_pole(const problem& p, double beta, std::span<const double> key, const std::string& where);

[[nodiscard]] gain_slopes<mpfr_ball> slopes_of(rule_kind rule, const mpfr_ball& x);

}  // namespace deltaproof
