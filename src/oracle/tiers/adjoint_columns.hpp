// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gradients of one lowered head in fp64 or double-double numbers, a value column to a SIMD lane: what certify_adjoint.hpp
// computes, several columns at a time, each token's sums and updates in one pass over the state. Norms are bounds that are
// carried and made anew every few steps; memory is that of a segment of
// tokens and a state for each segment. Bits may differ between machines; the radius covers them. Source:
// proofs/notes/oracle-radius.md, "Gradients by columns", beside the lines of "Gradients".
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include "oracle/tiers/head.hpp"

namespace deltaproof::tiers {

/// Pairs here are rounded more coarsely than those of the double-double rows, and cheaper.
inline constexpr double adjoint_pair_unit = 0x1p-100;

/// What the loss is made of at some tokens: scale d_o, T x V, as high + low (one part: rounded once); at least its magnitudes,
/// above 0 where it is not exactly 0, if those are not |o|; and, with the last token, d_final_state, K x V. Empty: zeros.
struct column_cotangents {
  std::vector<double> o, o_low, o_size, state;
};

/// Tokens of a head from `first` on, the initial state with the first of all, and their cotangents.
struct column_slice {
  std::size_t first;
  const double_double_head& head;
  const column_cotangents& with;
};

/// What is read, some tokens at a time: forwards, then in reverse.
struct column_source {
  std::size_t tokens = 0, steps_per_token = 1, key_dim = 1, value_dim = 1;
  /// At least tokens [first, first + count), until the next call; the error constants are those of the whole head.
  std::function<column_slice(std::size_t first, std::size_t count)> slice;
};

/// Numbers high + low, low only of pairs, and bounds on their errors in units of u: one for each, one for a row of numbers that
/// share it, or, by column, one for each column of rows.
struct column_numbers {
  std::vector<double> high, low, error;
  bool by_column = false;
};

/// Those of T tokens from `first` on. Shapes as certified_adjoint: q T x K, k (T n) x K, v (T n) x V, step T n, decay as the
/// sequence's; with the first token of all, state (of the initial one) K x V, else empty.
struct column_gradients {
  std::size_t first = 0;
  column_numbers q, k, v, step, decay, state;
};

/// A state is kept every so many tokens of T: ceil(sqrt(T)) in whole eights, at least 32.
[[nodiscard]] std::size_t adjoint_segment(std::size_t tokens);

/// The gradients of a segment of tokens at a time, the last first, to `sink`, while the source's slice is theirs and one token on
/// each side. False where the head or its numbers are out of the range of this tier, or an entry may pass `range`: then all that
/// the sink was given is void. `pairs`: in double-double with the low parts of the head, u = adjoint_pair_unit; else in fp64,
/// u = 2^-53. With `stop` set the result is void.
[[nodiscard]] bool run_adjoint(const column_source& from, bool pairs, double range, const std::atomic<bool>* stop,
                               const std::function<void(column_gradients&)>& sink);

}  // namespace deltaproof::tiers
