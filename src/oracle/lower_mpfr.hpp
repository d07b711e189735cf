// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The lowering of oracle/lower.hpp for double-double numbers and for the MPFR tiers.
#pragma once

#include <span>

#include "deltaproof/oracle/lower.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/pair_field.hpp"

namespace deltaproof {

/// The most bits that MPFR rows are run with.
inline constexpr int widest_bits = 16384;

/// `lower` with `bits` bits, at most widest_bits; of the values and the state only `columns`, or all. Throws: as lower.
[[nodiscard]] lowered<mpfr_value> lower_mpfr(const problem& p, std::size_t sequence_index, std::size_t value_head, int bits,
                                             std::span<const std::size_t> columns = {});

/// The same of tokens [first, first + count) alone, and of all columns; the error constants are of these tokens, and those of the
/// whole head are the largest of all and, of decays, raw_gate_error beside them.
[[nodiscard]] lowered<mpfr_value> lower_mpfr_tokens(const problem& p, std::size_t sequence_index, std::size_t value_head,
                                                    int bits, std::size_t first, std::size_t count);

/// `lower` in double-double numbers. Throws: as lower.
[[nodiscard]] lowered<double_pair> lower_pair(const problem& p, std::size_t sequence_index, std::size_t value_head);

/// sum <- sum x^2, in the order of x, each square and sum rounded; `part` is scratch of the same precision.
void square_sum(mpfr_ptr sum, mpfr_ptr part, std::span<const double> x);

/// What e^g of a gate that was made of a raw one errs at most, relative to itself, in any token of this head; 0 where g is given.
[[nodiscard]] double raw_gate_error(const problem& p, std::size_t sequence_index, std::size_t value_head);

/// The decimal that x is nearest to, rounded to the precision of `to`.
void set_decimal(mpfr_ptr to, double x);

/// beta after its activation, at beta's precision: sigmoid(x) = 1 / (1 + e^-x). Returns an absolute error in units of the
/// roundoff: not 0 where the sigmoid is below MPFR's exponents and beta is 0 now.
double activate_step(mpfr_ptr beta, activation_kind activation);

}  // namespace deltaproof
