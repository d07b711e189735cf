// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// From derivatives with respect to a lowered head to those of the tensors as the problem file holds them: through the rule's
// gain, the activation of beta and the normalisation of q and k. b = beta phi(beta |k|^2), so that with x = beta |k|^2
//   db/dbeta = (x phi(x))' = -R'(x),   db/dk = 2 beta^2 phi'(x) k,
// and k^ = r k with r = (|k|^2 + epsilon)^(-1/2) gives dk = r (dk^ - k^ <k^, dk^>).
#pragma once

#include <cstddef>
#include <vector>

#include "deltaproof/oracle/problem.hpp"
#include "oracle/mpfr_ball.hpp"

namespace deltaproof {

/// Factors of some tokens of one head, each within its error. Empty lists: beta is the step itself; nothing is normalised.
struct chain_factors {
  std::vector<mpfr_ball> by_beta;      ///< db/dbeta of the given beta, by row
  std::vector<mpfr_ball> by_key;       ///< 2 beta^2 phi'(x), by row; empty for Euler's rule
  std::vector<mpfr_ball> query_scale;  ///< r, by token
  std::vector<mpfr_ball> key_scale;    ///< r, by row
};

/// Those of tokens [first, first + count) of head `value_head`, good to some `bits` bits where the rule lets them be.
[[nodiscard]] chain_factors factors_of(const problem& p, std::size_t sequence_index, std::size_t value_head, int bits,
                                       std::size_t first, std::size_t count);

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.gradient_chain.rule_step_moves, algebra.gradient_chain.norm_transposed, algebra.gradient_chain.stability_slope,
// proved: ode.gain_slopes.step_slope, ode.gain_slopes.norm_slope
