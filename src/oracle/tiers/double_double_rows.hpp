// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The second tier of the oracle: value rows of one lowered head to about 100 bits, each number a high part on a fixed
// grid and a low part in fp64, a row to a SIMD lane, with the row-norm radius. A row's grid follows from a bound on its
// norm, block of 64 steps by block; a block that leaves its window is run again with a wider one. The same bits on every
// target and compiler: what is not exact is one correctly rounded operation in a fixed order.
// Source: proofs/notes/oracle-radius.md, "The double-double tier", lines P1 to P6 beside R N U F.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "oracle/tiers/head.hpp"

namespace deltaproof::tiers {

inline constexpr double pair_slack = 1 + 0x1p-30;  ///< lines F and P: over every term of second order

/// What one step adds to the error of a row, in units of 2^-106, and what its prediction and read-out cost.
struct double_double_coefficients {
  static constexpr std::size_t room = block_steps + 8;
  double step[room];  ///< high part of b; 0 where the key is 0
  double step_low[room];
  double half_square[room];
  double norm[room];
  double scale[room];  ///< power of two >= kappa: the window of k^T S is that times the row's
  double rho[room];
  double from_window[room];  ///< times the row's window W
  double from_write[room];   ///< times |w|
  double from_value[room];   ///< times the largest |v| of the row in the block
  double query[room];        ///< chi^+ by token
  double query_scale[room];  ///< power of two >= chi
  double read[room];         ///< times W: what the read-out itself commits, without the scale
  double decay_largest[room];
  double decay_factor[room];
  double decay_window[room];  ///< times W
  double largest_write = 0;   ///< max of beta kappa
  bool fits = true;
};

/// Coefficients of the steps [from, to), at most 64; `begins`: step 0 is the first of the head.
void coefficients_of_steps(const double_double_head& in, std::size_t from, std::size_t to, double_double_coefficients& out,
                           bool begins = true);

/// Rows columns[0..] of the head into `out`, whose memory is kept between calls. With `stop` set the run is given up
/// and the tables are void. Returns how many blocks were run again with a wider window.
/// Throws: shape_error (sequence::validate).
std::size_t run_double_double(const double_double_head& in, std::span<const std::size_t> columns, tier_rows& out,
                              const std::atomic<bool>* stop = nullptr);

/// The next `tokens` tokens of these rows, as run_fp64 has them.
std::size_t run_double_double(const double_double_head& in, std::size_t tokens, std::span<const std::size_t> columns,
                              carried_rows& carried, tier_rows& out, const std::atomic<bool>* stop = nullptr);

}  // namespace deltaproof::tiers
