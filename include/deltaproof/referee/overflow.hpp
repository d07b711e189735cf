// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Where a kernel that keeps a plan may give infinity or NaN although the exact value is in range: a sum may overflow in some
// order of its terms when those of one sign add up to more than its accumulator holds, though the sum itself is small. Beside a
// state of 1e38 that happens to o, to the gradients and to the state itself. `sums_that_may_overflow` says which elements of a
// result that is; the verdict leaves those of them out that are not finite, and counts them.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/plan/plan.hpp"

namespace deltaproof {

/// By tensor, its elements that may overflow: o, final_state in (K, V) order, gradients and stages of a result. A tensor that has
/// none is not there.
struct overflow_places {
  std::map<std::string, std::vector<bool>, std::less<>> tensors;

  [[nodiscard]] bool may_overflow(std::string_view tensor, std::size_t element) const {
    const auto at = tensors.find(tensor);
    return at != tensors.end() && at->second[element];
  }
};

/// By a run of each variant of the plan in which every sum counts as overflowed whose terms of one sign add up to more than 7/8
/// of what its accumulator holds (emulation_options::in_any_order). On the chunk path a column of a chunk overflows as a whole:
/// zeros above the diagonal meet infinity in products of whole tiles. What a format overflows that reaches less far than fp32 is
/// the plan's doing: where the problem or the plan has one, only what a run in one order keeps finite counts. Gradients are those
/// of the plan's [backward], and without one those of `everything_wide`. A result of the chunk path without a chunk length is
/// taken token by token. Throws: as variants.
[[nodiscard]] overflow_places sums_that_may_overflow(const problem& p, const result& r, const plan& plan, unsigned threads,
                                                     const std::atomic<bool>* stop = nullptr);

/// The preset fp32, or fp64 for a result in that: what is taken where no plan is given.
[[nodiscard]] plan everything_wide(const result& r);

}  // namespace deltaproof
