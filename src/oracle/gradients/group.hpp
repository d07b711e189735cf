// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The gradients of one group of heads (those of a key head, in one sequence) at one precision.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "deltaproof/oracle/gradients.hpp"
#include "oracle/solve/decided.hpp"

namespace deltaproof {

/// dq T x K and dk (T n) x K of the group; of each of its value heads dv (T n) x V, dbeta T n, dg T or T x K, dinitial_state K x
/// V.
struct solved_group {
  head_part q, k;
  struct head {
    head_part v, beta, g, initial_state;
    std::size_t states_until = 0, cotangents_from = 0;  ///< as certified_adjoint
  };
  std::vector<head> heads;
  std::string tier;
  std::string elements;  ///< the tier of those that were run by themselves after that, if any
};

/// In fp64 (53 bits), double-double (106) or MPFR with `bits` bits; `range` is that of states and cotangents. False where the
/// tier cannot say anything.
[[nodiscard]] bool run_group(const problem& p, std::size_t sequence_index, std::size_t key_head, int bits, double range,
                             const std::atomic<bool>* stop, solved_group& out);

}  // namespace deltaproof
