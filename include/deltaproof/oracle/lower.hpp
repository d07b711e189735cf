// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Turns one head of a problem into the plain sequence a recurrence runs on: activations, in-kernel normalisation,
// gains and exponentials are evaluated with MPFR at 64 bits beyond the target and rounded once, and `lowering_error`
// says how far the lowered values may be from the exact ones. What the problem states exactly arrives exactly.
// Order (docs/exchange-format.md): activations, l2norm, x = beta |k|^2, effective step b = beta phi(x), decays.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "deltaproof/number/rational.hpp"
#include "deltaproof/oracle/problem.hpp"
#include "deltaproof/oracle/wide_bound.hpp"
#include "deltaproof/scan/sequence.hpp"

namespace deltaproof {

/// |lowered - exact| <= relative * u * |lowered| + floor * u, elementwise, u the unit roundoff of the target scalar.
/// Source: proofs/notes/oracle-radius.md, "Lowered inputs". All zero where the lowering is exact.
struct lowering_error {
  double key = 0;  ///< relative, in units of u
  double query = 0;
  double step = 0;
  double decay = 0;
  double step_floor = 0;  ///< absolute, in units of u
  double decay_floor = 0;
};

/// One head ready to run. The read-out is scale * S^T q.
template <class S>
struct lowered {
  sequence<S> scan;
  double scale = 1;
  lowering_error error;
  /// error.step_floor by step, where it may leave the exponents of doubles; else empty.
  std::vector<wide_bound> step_floor;
  /// A derived key, query or step fell below the scalar's normal range, where no relative bound holds: `error` is void.
  bool underflowed = false;
};

/// Head `value_head` of sequence number `sequence_index`, in fp64.
/// Rounds: each derived value once; given values not at all. Throws: domain_error where a rule has no finite gain
/// (implicit at x = -1, crank_nicolson at x = -2), naming token and head.
[[nodiscard]] lowered<double> lower(const problem& p, std::size_t sequence_index, std::size_t value_head);

/// What any of these refuses, said of the file that the problem is from, which they do not know; `file` empty: of none.
[[nodiscard]] std::string refusal_in(const std::string& file, const std::string& said);

/// Throws as lower does where a given step is at a pole, for those who lower nothing.
void refuse_poles(const problem& p);

/// `lower` in rationals: nothing rounds. Throws: domain_error where a value is not rational (a gate other than
/// 0 or -inf, in-kernel normalisation, a sigmoid, the exact flow).
[[nodiscard]] lowered<rational> lower_exact(const problem& p, std::size_t sequence_index, std::size_t value_head);

}  // namespace deltaproof
