// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The roundings of a problem some tokens at a time: no tensor of outputs is held, each element is handed over as soon as a tier
// decides it. Memory: for each thread a head's state in the tier's numbers and a block of tokens, and one bit for each output of
// a head's blocks of 128 tokens that hold an open one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "deltaproof/oracle/reference.hpp"
#include "oracle/solve/decided.hpp"

namespace deltaproof {

/// Blocks are multiples of it; fixed-point and exact rows are run so many tokens at a time.
inline constexpr std::size_t chunk_tokens = 128;

/// A chunk of the outputs of one head as a pass leaves it: those of tokens [first, first + count), `first` a multiple of
/// chunk_tokens; element v of token t is element base + (t - first) V + v of `rounded`.
struct decided_chunk {
  std::size_t sequence = 0;
  std::size_t value_head = 0;
  std::size_t first = 0;
  std::size_t count = 0;
  const rounded_part& rounded;  ///< NaN: nothing more is known than before
  std::size_t base = 0;
  /// Bit i % 64 of word i / 64: element i was undecided before this pass; the others were decided already. Absent: all were
  /// undecided.
  std::optional<std::span<const std::uint64_t>> were_open;
  bool anew = false;  ///< takes the place of what was known
};

/// A head when nothing more will be decided.
struct decided_head {
  std::size_t sequence = 0;
  std::size_t value_head = 0;
  const rounded_part& state;  ///< K x V; empty where the head diverges or no tier lies between the bits asked for
  double o_left = 0;          ///< bounds |exact - what was rounded| over the decided elements; of a sum, what it leaves out
  double state_left = 0;
};

struct stream_sinks {
  /// From any thread, for different heads at the same time.
  std::function<void(const decided_chunk&)> chunk;
  /// From any thread, never twice at a time.
  std::function<void(const decided_head&)> head;
};

/// As many tokens as amortise what each block costs, and fit the caches of a core.
inline constexpr std::size_t default_block_tokens = 512;

/// Rounds every output and state entry as `q` asks, which asks for no radius and has no range. q.progress is called with
/// tokens: a pass over a head counts half of what was left of it. The reference holds counts alone.
/// Throws: as solve; domain_error for another question, or for a block that is no multiple of chunk_tokens.
reference solve_by_block(const problem& p, const question& q, const stream_sinks& sinks,
                         std::size_t block_tokens = default_block_tokens);

}  // namespace deltaproof
