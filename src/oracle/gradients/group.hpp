// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The gradients of one group of heads (those of a key head, in one sequence) at one precision.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "deltaproof/oracle/gradients.hpp"
#include "oracle/solve/decided.hpp"

namespace deltaproof {

/// One gradient of some tokens of a group. Elements lie as: dq T x K and dk (T n) x K of the group; of each of its value heads
/// dv (T n) x V, dbeta T n, dg T or T x K, dinitial_state K x V.
struct gradient_slice {
  std::size_t tensor = 0;  ///< of gradient_names
  std::size_t head = 0;    ///< of the group; 0 for dq and dk
  std::size_t first = 0;   ///< element
  head_part part;
  std::size_t states_until = 0, cotangents_from = 0;  ///< as certified_adjoint; of dq and dk over all heads
};

/// Where slices go: each element once after the last `begin`, which makes void what came before it.
struct slice_sink {
  std::function<void()> begin;
  std::function<void(gradient_slice&&)> take;
};

struct group_outcome {
  struct head {
    std::size_t states_until = 0, cotangents_from = 0;
  };
  std::vector<head> heads;
  std::string tier;
};

/// In fp64 (53 bits), double-double (106) or MPFR with `bits` bits; `range` is that of states and cotangents. Sums over several
/// heads wait in a file beside `beside`, if that is given. False where the tier cannot say anything. Memory in fp64 and
/// double-double: a segment of tokens and a state for each segment; elsewhere, and where magnitudes leave the range of columns,
/// it grows with T.
[[nodiscard]] bool run_group(const problem& p, std::size_t sequence_index, std::size_t key_head, int bits, double range,
                             const std::atomic<bool>* stop, const std::filesystem::path* beside, const slice_sink& sink,
                             group_outcome& out);

}  // namespace deltaproof
