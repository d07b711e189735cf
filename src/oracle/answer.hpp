// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One head of a problem answered: tier after tier row by row, or entry by entry where magnitudes may leave their range.
#pragma once

#include <cstddef>

#include "deltaproof/oracle/reference.hpp"
#include "oracle/row_by_row.hpp"

namespace deltaproof {

/// Head `value_head` of sequence `sequence_index` under `q`; void where `q.stop` was set. Throws: as solve.
[[nodiscard]] head_answer answer(const problem& p, const question& q, std::size_t sequence_index, std::size_t value_head,
                                 unsigned threads);

}  // namespace deltaproof
