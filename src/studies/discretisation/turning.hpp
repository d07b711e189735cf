// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The error of a rule under a key that turns steadily, which every step freezes.
#pragma once

#include "deltaproof/number/real.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "studies/shared/common.hpp"
#include "studies/shared/exponential.hpp"

namespace deltaproof::detail::discretisation {

inline constexpr int wide_bits = 256;
using wide = real<wide_bits>;

/// The exact state at time 1 under the key (cos t, sin t) and the value 1, from 0. In the frame that turns with the key,
/// z = (S k, S k'), k' the derivative of k: z' = M z + (1, 0), M = (-1 1; -1 0), so z(1) = phi_1(M) (1, 0).
[[nodiscard]] inline std::array<wide, 2> turned_exactly() {
  const auto e = shared::exponentials_of(matrix<wide>(2, 2, {wide(-1), wide(1), wide(-1), wide(0)}));
  const wide c = cos(wide(1));
  const wide s = sin(wide(1));
  return {wide(e.phi(0, 0) * c - e.phi(1, 0) * s), wide(e.phi(0, 0) * s + e.phi(1, 0) * c)};
}

/// Of the state at time 1, the key frozen within each step at a place of it: 1 its end.
template <class Rule>
[[nodiscard]] wide turning_error(std::size_t steps, const wide& place) {
  const wide h = wide(1) / static_cast<unsigned>(steps);
  const wide b = effective_step(Rule{}, h, wide(1));
  recurrence<wide> machine(2, 1);
  const std::array<wide, 1> value{wide(1)};
  for (std::size_t i = 0; i < steps; ++i) {
    const wide t = (wide(static_cast<unsigned>(i)) + place) * h;
    machine.step(std::array<wide, 2>{wide(cos(t)), wide(sin(t))}, value, b);
  }
  static const std::array<wide, 2> truth = turned_exactly();
  const wide dx = machine.state()(0, 0) - truth[0];
  const wide dy = machine.state()(1, 0) - truth[1];
  return sqrt(wide(dx * dx + dy * dy));
}

}  // namespace deltaproof::detail::discretisation
