// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Says how large the matrices of one chunk can be: entries of (I + L)^-1 and of T, the norm of w_r, of the transition,
// and the condition of I + L, for keys of length at most 1 and steps in [0, beta], beta <= 2, in exact arithmetic
// (`exact_chunk_bounds`) and after rounding (`rounded_chunk_bounds`). The proofs are in proofs/notes/chunk-bounds.md,
// lines B1-B5 and R1-R4 (B1-B5 machine-checked: proofs/theories/algebra/ut_bounds.v and non_expansive.v); where a line
// says nothing the bound is infinite. None of them bounds what an algorithm
// forms on the way to the inverse: algebra/growth.hpp does.
#pragma once

#include <cstddef>

namespace deltaproof {

/// Upper bounds for one chunk.
struct chunk_bounds {
  double inverse_entry;    ///< |(I+L)^-1| entry by entry (B1, R2)
  double t_entry;          ///< |T|, T = (I+L)^-1 diag(b) (B2; exact only)
  double w_norm;           ///< |w_r| (B3, R3)
  double transition_norm;  ///< |P| of the chunk (B4, R4)
  double condition;        ///< kappa_inf(I + L) (B5; exact only)
};

/// Unit roundoffs of one chunk's computation; 0 means exact.
struct chunk_roundoffs {
  double gram = 0;  ///< sums of K K^T
  double substitution = 0;
  double operand = 0;  ///< b k before it is multiplied
  double product = 0;  ///< sums of (I+L)^-1 (b k)
  double store = 0;    ///< the inverse and w as they are kept
};

/// B1-B5 for keys of length at most 1, decays in [0, 1] and steps in [0, beta]. Throws: domain_error unless 0 <= beta <= 2 and C
/// >= 1.
[[nodiscard]] chunk_bounds exact_chunk_bounds(double beta, std::size_t chunk);

/// R2-R4 (and B2, B5 unchanged) for keys of length at most 1, no decay, steps in [0, beta] and the inverse by forward
/// substitution. Throws: as exact_chunk_bounds, and domain_error for a roundoff that is negative or 1 and more.
[[nodiscard]] chunk_bounds rounded_chunk_bounds(double beta, std::size_t chunk, std::size_t key_dim, const chunk_roundoffs& u);

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.rank_one.step_reflection, algebra.non_expansive.step_norm, algebra.non_expansive.decay_non_expansive,
// proved: algebra.non_expansive.transposed_product_norm, algebra.non_expansive.run_norm, algebra.non_expansive.run_non_expansive,
// proved: algebra.ut_bounds.inverse_entry, algebra.ut_bounds.w_norm, algebra.ut_bounds.inverse_entry_bound,
// proved: algebra.ut_bounds.t_entry_bound, algebra.ut_bounds.t_diagonal, algebra.ut_bounds.t_entry_bound_stable,
// proved: algebra.ut_bounds.inverse_entry_growth, algebra.ut_bounds.overlap_bound, algebra.ut_bounds.inverse_row_sum,
// proved: algebra.ut_bounds.overlap_row_sum, algebra.ut_bounds.condition_bound, algebra.ut_bounds.forward_error_a_priori,
// proved: algebra.ut_bounds.perturbed_forward_error, algebra.ut_bounds.forward_error_nearly_unit_keys,
// proved: algebra.ut_bounds.forward_error_unit_keys, algebra.repeated_keys.inverse_bounds_attained,
// proved: algebra.repeated_keys.condition_attained, float.substitution.solve_residual,
// proved: bridge.forward_error.rounded_substitution_error
