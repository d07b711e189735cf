// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The effective step b = beta phi(beta |k|^2), beta the given one after its activation, and its derivatives.
#pragma once

#include "deltaproof/emulate/emulate.hpp"

namespace deltaproof::emulation_detail {

/// By the given beta, and by k as a factor of k.
struct step_slopes {
  double by_beta = 1, by_key = 0;
};
/// Rounds: fp64. `squared_norm` is that of the key the step multiplies.
[[nodiscard]] step_slopes slopes_of_step(const head_input& in, double given, double squared_norm);
[[nodiscard]] double reference_step(const head_input& in, double given, double squared_norm);

}  // namespace deltaproof::emulation_detail
