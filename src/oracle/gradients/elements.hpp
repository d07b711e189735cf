// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Single elements of the gradients of a group of heads, each from vectors of K numbers that run through the recurrence and sums
// of V: O(T (K + V)) an element, where a run of the whole group is O(T K V). For the few that a run of the group did not decide.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "deltaproof/oracle/problem.hpp"
#include "oracle/solve/decided.hpp"

namespace deltaproof {

/// Number `index` of a part of solved_group.
struct gradient_element {
  std::size_t tensor = 0;  ///< of gradient_names
  std::size_t head = 0;    ///< of the group; 0 for q and k, which all its heads add to
  std::size_t index = 0;
};

/// How many vectors run for one such element.
[[nodiscard]] std::size_t vectors_of(const problem& p, const gradient_element& element);

/// Those elements in double-double (bits <= 106) or MPFR with `bits` bits, `out` in their order. False where that cannot say
/// anything, or `stop` was set.
[[nodiscard]] bool run_elements(const problem& p, std::size_t sequence_index, std::size_t key_head, int bits,
                                std::span<const gradient_element> elements, const std::atomic<bool>* stop, head_part& out);

}  // namespace deltaproof
