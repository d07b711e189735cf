// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the fp64 tier needs of a head alone, for 64 steps at one time: the steps and Gram products that its values are made
// with, and the coefficients of the certificate. They are the same for every value row.
// Source: proofs/notes/oracle-radius.md, "The vectorised tiers".
#pragma once

#include <cstddef>

#include "oracle/tiers/head.hpp"

namespace deltaproof::tiers {

inline constexpr double slack = 1 + 0x1p-46;    ///< line F
inline constexpr double underflow = 0x1p-1000;  ///< line U, in units of u

/// Sums of squares of the keys and queries of the steps [from, to), at most 64, to out.norm and out.query and, for pairs,
/// Gram products to out.gram.
void fp64_products(const lowered<double>& in, bool paired, std::size_t from, std::size_t to, block_coefficients& out);

/// Coefficients of the certificate where those products are in their places; `largest_v` bounds |v|.
void fp64_certificate(const lowered<double>& in, bool paired, std::size_t from, std::size_t to, double largest_v,
                      block_coefficients& out);

/// Both.
inline void fp64_coefficients(const lowered<double>& in, bool paired, std::size_t from, std::size_t to, double largest_v,
                              block_coefficients& out) {
  fp64_products(in, paired, from, to, out);
  fp64_certificate(in, paired, from, to, largest_v, out);
}

}  // namespace deltaproof::tiers
