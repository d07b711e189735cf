// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The lowering of oracle/lower.hpp for the MPFR tiers.
#pragma once

#include "deltaproof/oracle/lower.hpp"
#include "oracle/mpfr_value.hpp"

namespace deltaproof {

/// `lower` with `bits` bits. Throws: as lower.
[[nodiscard]] lowered<mpfr_value> lower_mpfr(const problem& p, std::size_t sequence_index, std::size_t value_head, int bits);

}  // namespace deltaproof
