// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// One head of a problem answered: tier after tier row by row, or entry by entry where magnitudes may leave their range.
#pragma once

#include <cstddef>
#include <functional>

#include "deltaproof/oracle/reference.hpp"
#include "oracle/solve/row_by_row.hpp"

namespace deltaproof {

/// Where the outputs of a head go as they are decided, and how far it is.
struct head_stream {
  std::size_t block_tokens = 0;  ///< a multiple of chunk_tokens; of no meaning without a sink
  chunk_sink sink;               ///< none: the answer is kept
  /// Called when a pass is through so many tokens of the head, block by block; none: nobody wants to know.
  std::function<void(std::size_t tokens)> passed;
};

/// Head `value_head` of sequence `sequence_index` under `q`; void where `q.stop` was set. With a sink the answer has no outputs,
/// unless the head was run whole: then it has them all, and what was handed over before counts no more. Throws: as solve.
[[nodiscard]] head_answer answer(const problem& p, const question& q, std::size_t sequence_index, std::size_t value_head,
                                 unsigned threads, const head_stream& stream = {});

}  // namespace deltaproof
