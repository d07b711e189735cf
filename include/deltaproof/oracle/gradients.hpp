// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The true gradients of a problem, each with a rigorous radius: `solve_gradients(problem, question)` is the backward pass of
// `solve`. The loss is L = sum o . d_o + sum final_state . d_final_state of the problem. A gradient is the derivative of L with
// respect to a tensor as the problem file holds it: through the kernel's own normalisation of q and k (with its epsilon),
// activation of beta and rule. g is the log decay; where it is -inf its gradient is 0. Heads of one group add up in dq and dk. A
// tensor that the problem has not got has no gradient.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/oracle/problem.hpp"
#include "deltaproof/oracle/reference.hpp"

namespace deltaproof {

/// Names in files, in the order in which they are listed everywhere.
inline constexpr std::array<std::string_view, 6> gradient_names{"dq", "dk", "dv", "dbeta", "dg", "dinitial_state"};

/// Where the exact numbers of one head are beyond q.range.state: the state after tokens [states_until, T), and the cotangent of
/// the state after tokens [0, cotangents_from), which the backward pass meets last.
struct gradient_divergence {
  std::size_t sequence = 0;
  std::size_t value_head = 0;
  std::size_t states_until = 0;     ///< tokens of the sequence; T where the state stays within
  std::size_t cotangents_from = 0;  ///< 0 where the cotangent stays within
};

struct reference_gradients {
  /// By gradient_names, each of the shape of what it is the gradient of; "dg" and "dinitial_state" where the problem has g and an
  /// initial state.
  std::map<std::string, reference_tensor, std::less<>> tensors;
  /// "fp64", "double-double", "exact", "mpfr-128", ... -> groups of heads it answered last; "fp64 and elements in exact", ...
  /// where few elements were left and answered by themselves. Exact: nothing was rounded, so that ties are decided.
  std::map<std::string, std::size_t> tiers;
  std::vector<gradient_divergence> divergences;  ///< by sequence, then head
  std::size_t unanswered = 0;                    ///< groups whose question max_bits did not answer
  bool stopped = false;
};

/// The gradients that answer `q`, whose round_output stands for all tensors but dinitial_state, whose round_state is that.
/// Precision rises by groups of heads that share q and k, in each sequence, and by element where few are left, until what lies
/// between the divergences is answered. Where every number is dyadic and needs no more than 2048 bits, of few elements 16384, an
/// exact run decides ties and zeros.
/// q.parts, q.range.output and q.min_bits are not looked at. Error: as the radius says; infinite where nothing is known. Throws:
/// as solve.
[[nodiscard]] reference_gradients solve_gradients(const problem& p, const question& q = {});

}  // namespace deltaproof
