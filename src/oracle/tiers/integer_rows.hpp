// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The last two tiers of the oracle: value rows of one head as integers, each row on its own power of two. With a working
// precision a row has a fixed number of limbs, a write is rounded to the grid on which its products with the key are
// exact, and the row-norm radius adds up what is lost; nothing is added where nothing is. Exactly, a row has as many
// limbs as it needs, up to a cap, and the radius is 0. Bits depend neither on the machine nor on the number of threads;
// memory is the rows' states and a block of tokens.
// Source: proofs/notes/oracle-radius.md, "The fixed-point tier" and "The exact tier".
#pragma once

#include <mpfr.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include "deltaproof/oracle/certify.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof::tiers {

/// The most bits of a number of the exact tier's state. What would need more is left undecided.
inline constexpr std::size_t exact_bits_cap = 32768;

struct integer_request {
  int bits = 128;                    ///< working precision, a multiple of 64; 0: exactly
  std::vector<std::size_t> columns;  ///< of the value
  std::vector<std::size_t> until;    ///< by row: tokens that are read; more than T: the final state too
  range_limits range;
  unsigned threads = 1;
  const std::atomic<bool>* stop = nullptr;
  /// Called by one thread before tokens [first, first + count) are run, at most 128 of them, and after, with the tokens each row
  /// has reached. With `after` blocks follow each other to the last of `until` though every row have left.
  std::function<void(std::size_t first, std::size_t count)> before = {};
  std::function<void(std::size_t first, std::size_t count, const std::vector<std::size_t>& reached)> after = {};
};

struct integer_outcome {
  std::vector<std::size_t> reached;  ///< by row: tokens that were answered; T + 1 with the final state
  bool within = true;                ///< every magnitude of what was reached is certainly within the range
  std::size_t moved = 0;             ///< grids that were moved up, which costs low bits
  std::size_t wide = 0;              ///< keys and queries of more than one limb
  std::size_t rounded = 0;           ///< of these, rounded
};

/// (row of the request, token or channel, number, radius); called from any thread, for one row in order.
using integer_sink = std::function<void(std::size_t, std::size_t, mpfr_srcptr, double)>;

/// With `stop` set the run is given up. Throws: as lower.
[[nodiscard]] integer_outcome run_integers(const problem& p, std::size_t sequence_index, std::size_t value_head,
                                           const integer_request& request, const integer_sink& output, const integer_sink& state);

/// What the rows cost, in limbs of one number summed over tokens, for the last token of each: with `bits`, and exactly
/// (infinite where a factor before it is not dyadic, the cap is passed or one row costs more than `limit`). `size` bounds
/// the log2 of the state's entries.
[[nodiscard]] double fixed_cost(const std::vector<std::size_t>& until, int bits);
[[nodiscard]] double exact_cost(const problem& p, std::size_t sequence_index, std::size_t value_head,
                                const std::vector<std::size_t>& until, double size, double limit);

}  // namespace deltaproof::tiers
