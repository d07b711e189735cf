// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Judges gradients by equations that every correct backward pass satisfies, whatever its plan, and that need no reference:
// `check_gradient_identities(problem, result, options)`. Each follows from a symmetry of the recurrence, in exact arithmetic
// (S_T: final_state, h0: initial_state, d...: the tensors of the files; sums over the tokens of a sequence):
//   I1   q . dq = o . do, each token and key head
//   I2   k . dk + v . dv = 2 beta dbeta, each step and key head, for every rule
//   I3   dg_t - dg_(t+1) = o_t . do_t - v_t . dv_t, after the last token <S_T, dS_T>, and dg_0 = <h0, dh0>
//   I4   sum v . dv + <h0, dh0> = sum o . do + <S_T, dS_T>
//   I4M  sum v dv^T + h0^T dh0 = sum o do^T + S_T^T dS_T, V x V
//   I5   sum q dq^T + sum k dk^T + h0 dh0^T + dS_T S_T^T is symmetric, K x K, where gates are scalar or absent
// With the kernel's own l2norm, q . dq and k . dk are what eps leaves of them: eps / (|x|^2 + eps) of the sums above. How far
// the two sides may be apart is measured: each number may be off by its own rounding and by as much as the exact one moves when
// the inputs are rounded once more, to the format of q, one independent of the other. A residual of up to 8 times what this adds
// up to is what formats cost (three bits, as in adequacy); a single equation may have 32 times. It exists because half of a
// training kernel is its backward pass, and most of these have no plan written down. Source: the symmetries are proved in proofs/
// (algebra.adjoint.reads_agree, writes_agree, sums_agree, value_sums_agree, key_sums_symmetric).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/oracle/verdict.hpp"
#include "deltaproof/referee/judging.hpp"

namespace deltaproof {

/// An equation of an identity: its token, where the identity is asked of each, and how far its two sides are apart.
struct identity_place {
  std::size_t sequence = 0;
  std::size_t head = 0;              ///< of q and k for I1, I2 and I5, else of v
  std::optional<std::size_t> token;  ///< from the start of the sequence
  double residual = 0;
  double limit = 0;           ///< of this equation; infinite where only a head's equations together have one
  std::string equation = {};  ///< where it is not the statement of the identity: at the ends of I3
};

/// All equations of one identity. Numbers are root mean squares over the equations of one head, in units of the size of their
/// terms: those of the head that is nearest its limit.
struct identity_report {
  std::string name;
  std::string statement;
  std::string missing;       ///< what the files lack for it; empty: it was formed
  bool by_key_head = false;  ///< heads are those of q and k
  verdict judged = verdict::vacuous;
  std::size_t equations = 0;
  std::size_t heads = 0;        ///< of all sequences
  std::size_t blind_heads = 0;  ///< whose limit is no smaller than the terms: zeros would satisfy it
  double residual = 0;
  double rounding = 0;  ///< what storing the result's own tensors in their formats allows
  double expected = 0;  ///< the same where each number errs, besides, as the exact one does when inputs are rounded once more
  double limit = 0;
  std::optional<identity_place> worst;  ///< the head or equation nearest its limit
};

struct gradient_identities {
  verdict judged = verdict::vacuous;
  std::string reason;
  std::string remedy;  ///< empty: none
  std::vector<identity_report> identities;
  /// Gradient -> the least relative error, independent from element to element, that an identity would show in every head;
  /// infinite where none reads it.
  std::map<std::string, double> visible;
  std::vector<std::string> blind;  ///< which faults no residual shows on these inputs, and why
  bool stopped = false;
};

struct identity_options {
  judging judge;         ///< accuracy: of the residual against the size of its terms; seed; max_bits
  unsigned threads = 0;  ///< 0: one for each core
  const std::atomic<bool>* stop = nullptr;
};

/// Throws: format_error if the problem has no cotangents or the result no gradients; as require_valid and solve.
[[nodiscard]] gradient_identities check_gradient_identities(const problem& p, const result& r,
                                                            const identity_options& options = {});

}  // namespace deltaproof

// Theorems behind this file, by their names in proofs/README.md.
// proved: algebra.adjoint.reads_agree, algebra.adjoint.writes_agree, algebra.adjoint.sums_agree,
// proved: algebra.adjoint.value_sums_agree, algebra.adjoint.key_sums_symmetric, algebra.adjoint.run_value_sums,
// proved: algebra.adjoint_run.run_log_decays, algebra.adjoint_run.run_key_sums, algebra.gradient_chain.rule_writes_agree,
// proved: algebra.gradient_chain.rule_key_sums, algebra.gradient_chain.norm_radial
