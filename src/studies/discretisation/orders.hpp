// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The errors of one rule in six senses, over real<256>, and how they shrink with the step. The ODE is dS/dt = -(S k - v) k^T;
// errors of a state are those of its part along the key, which is all a step changes.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace deltaproof::detail::discretisation {

/// eigenvalue: |R - e^-x|, one step, absolute = relative to first order. gain: |phi / phi_exact - 1|, what one step writes
/// and erases, relative. horizon: |R^N - e^-tau| at N x = tau = 1. horizon_relative: the same over e^-tau. tokens:
/// |R^T - e^-Tx| after T = 64 steps, whatever x is. turning: the state at time 1 under the key (cos t, sin t), frozen within
/// each step at its end. turning_middle: frozen at the middle of the step.
enum class sense { eigenvalue, gain, horizon, horizon_relative, tokens, turning, turning_middle };
inline constexpr std::array<sense, 7> senses{sense::eigenvalue, sense::gain,    sense::horizon,       sense::horizon_relative,
                                             sense::tokens,     sense::turning, sense::turning_middle};
[[nodiscard]] std::string_view name_of(sense);

/// The error at step x = 1/steps. Throws: format_error for a rule that is not there.
[[nodiscard]] double error_of(std::string_view rule, sense, std::size_t steps);

/// log2 of the ratio of the errors at two steps, the second half the first: the order as measured. NaN for errors of 0.
[[nodiscard]] double measured_order(std::string_view rule, sense, std::size_t steps);

/// At one x in double, correctly rounded from 256 bits: R, |R - e^-x|, |R / e^-x - 1|, phi / phi_exact - 1.
struct comparison {
  double stability = 0;
  double absolute = 0;
  double relative = 0;
  double gain = 0;
};
[[nodiscard]] comparison compare(std::string_view rule, double x);

}  // namespace deltaproof::detail::discretisation
