// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gradients of one lowered head in fp64 or double-double numbers, a value column to a SIMD lane: what certify_adjoint.hpp
// computes, several columns at a time, each token's sums and updates in one pass over the state. Norms are bounds that are
// carried and made anew every few steps. Bits may differ between machines; the radius covers them. Source:
// proofs/notes/oracle-radius.md, "Gradients by columns", beside the lines of "Gradients".
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "oracle/tiers/head.hpp"

namespace deltaproof::tiers {

/// Pairs here are rounded more coarsely than those of the double-double rows, and cheaper.
inline constexpr double adjoint_pair_unit = 0x1p-100;

/// What the loss is made of: scale d_o, T x V, as high + low (one part: rounded once); at least its magnitudes, above 0 where it
/// is not exactly 0, if those are not |o|; and d_final_state, K x V. Empty: zeros.
struct column_cotangents {
  std::vector<double> o, o_low, o_size, state;
};

/// Numbers high + low, low only of pairs, and bounds on their errors in units of u: one for each, one for a row of numbers that
/// share it, or, by column, one for each column of rows.
struct column_numbers {
  std::vector<double> high, low, error;
  bool by_column = false;
};

/// Shapes as certified_adjoint: q T x K, k (T n) x K, v (T n) x V, step T n, decay as the sequence's, state (of the initial one)
/// K x V.
struct column_gradients {
  column_numbers q, k, v, step, decay, state;
};

/// False where the head or its numbers are out of the range of this tier, or an entry may pass `range`: nothing is known then.
/// `pairs`: in double-double with the low parts of `in`, u = adjoint_pair_unit; else in fp64, u = 2^-53. With `stop` set the
/// result is void.
[[nodiscard]] bool run_adjoint(const double_double_head& in, const column_cotangents& with, bool pairs, double range,
                               const std::atomic<bool>* stop, column_gradients& out);

}  // namespace deltaproof::tiers
