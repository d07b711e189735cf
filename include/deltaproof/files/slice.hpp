// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Cuts one head of one sequence, or its first tokens, out of a problem and out of a result, as a problem and a result of
// their own: B = 1, H = HV = 1, no cu_seqlens, the same bits. It exists because stages, power and witnesses of a large
// problem are looked at on a slice that is stated.
#pragma once

#include <cstddef>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

/// Tokens [0, tokens) of one head of one sequence.
struct head_slice {
  std::size_t sequence = 0;
  std::size_t value_head = 0;
  std::size_t tokens = 0;

  friend bool operator==(const head_slice&, const head_slice&) = default;
};

/// Without cotangents: gradients of a part are not a part of the gradients.
/// Throws: shape_error where the problem has no such head, sequence or token.
[[nodiscard]] problem slice(const problem& p, const head_slice& at);
/// final_state is kept only where the slice reaches the end of the sequence, gradients nowhere.
[[nodiscard]] result slice(const result& r, const problem& p, const head_slice& at);

}  // namespace deltaproof
