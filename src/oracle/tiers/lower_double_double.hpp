// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The lowering of oracle/lower.hpp for the double-double tier: one head of a problem with every derived number as
// high + low. Its high parts are the head of the fp64 tier.
#pragma once

#include <cstddef>

#include "oracle/tiers/head.hpp"

namespace deltaproof::tiers {

/// Head `value_head` of sequence `sequence_index`. Given values have no low part; `high.error` is in units of 2^-53,
/// `error` in units of 2^-106. The same bits with any number of threads. Throws: as lower.
[[nodiscard]] double_double_head lower_double_double(const problem& p, std::size_t sequence_index, std::size_t value_head,
                                                     unsigned threads = 1);

}  // namespace deltaproof::tiers
