// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// `cost_of_inverse(head, variant)` says, before a kernel runs, whether what its inverse forms on these keys, steps and gates is
// more than the formats of a plan can carry. Adequacy refuses a plan by it; advice leaves such inverses out.
#pragma once

#include "deltaproof/emulate/emulate.hpp"

namespace deltaproof {

/// A plan may cost this many times what its formats alone cost: three bits, the step from fp16 or tf32 to bf16. Beyond it the
/// next narrower format, in a better algorithm, would serve its user as well.
inline constexpr double allowed_ratio = 8;

/// What the inverses of a head's chunks form, in exact sums, and what one rounding of that costs beside what Ai may lose: 8 units
/// of the format it is read in, of its largest entry or 1. A plan beyond is not adequate on these inputs, whatever it costs
/// elsewhere.
struct inverse_cost {
  double formed = 0;  ///< the largest intermediate
  double entry = 0;   ///< the largest entry of Ai
  double roundoff = 0;
  double cost = 0;  ///< formed times roundoff
  double budget = 0;
  bool overflows = false;
  bool of_nonfinite = false;  ///< A, which is inverted, holds infinities or NaN

  [[nodiscard]] bool refused() const { return cost > budget || overflows; }
};
[[nodiscard]] inverse_cost cost_of_inverse(const head_input& in, const plan_variant& v);

}  // namespace deltaproof
