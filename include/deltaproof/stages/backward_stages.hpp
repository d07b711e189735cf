// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Recomputes stored stages of a chunk kernel's backward pass from their own stored inputs, as stages.hpp does those of the
// forward pass: `measure_backward_stages(plan, problem, result)` says for each how far each element is from what it should be, in
// units of a bound derived for that element. dh is rebuilt from dfinal_state, do and the stored w and dv2; dv2 from the stored dh
// and dv_local; dg from dg_local; dq and dk with a norm from dq_hat and dk_hat, and the rest from h, v_new, dh, dv2 and Ai.
// Operands are rounded here as [backward] of the plan says, sums are made in fp64 and their own
// error is part of the bound. It exists to tell which stage of a wrong backward pass is wrong.
//
// Not claimed: dbeta behind an activation or a rule, and dk behind a rule, are not recomputed; where a plan sums <h, dh> in a
// format of few bits, the bound on the last row of each chunk of dg_local is wide.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "deltaproof/stages/stages.hpp"

namespace deltaproof {

struct backward_stage_report {
  std::vector<stage_measurement> stages;  ///< in the order of judged_backward_stages
  std::vector<unjudged_stage> unjudged;   ///< stored, and cannot be recomputed

  [[nodiscard]] const stage_measurement* find(std::string_view name) const;
  /// The first stage with an element beyond its bound, or nothing.
  [[nodiscard]] const stage_measurement* first_bad() const;
};

/// Throws: format_error where the plan says nothing of gradients or does not fit; domain_error without a chunk length.
[[nodiscard]] backward_stage_report measure_backward_stages(const plan& plan, const problem& p, const result& r,
                                                            unsigned threads = 0);

}  // namespace deltaproof
