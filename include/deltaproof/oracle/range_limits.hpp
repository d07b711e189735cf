// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Two numbers that say where a recurrence has left its formats.
#pragma once

#include <limits>

namespace deltaproof {

/// Largest magnitudes the outputs and the state may reach before the recurrence has left its formats.
struct range_limits {
  double output = std::numeric_limits<double>::infinity();
  double state = std::numeric_limits<double>::infinity();
};

}  // namespace deltaproof
