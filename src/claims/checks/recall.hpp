// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The experiments of document `recall`: keys uniform on the unit sphere of 64 channels, values f(k) element by element.
#pragma once

#include <numbers>
#include <utility>

#include "claims/checks/parts.hpp"

namespace deltaproof::claim_detail {

inline constexpr long recall_channels = 64;

enum class relationship { identity, quadratic, cubic, quartic, exponential, sine };
inline constexpr std::array<std::pair<const char*, relationship>, 6> relationships{{{"identity", relationship::identity},
                                                                                    {"quadratic", relationship::quadratic},
                                                                                    {"cubic", relationship::cubic},
                                                                                    {"quartic", relationship::quartic},
                                                                                    {"exponential", relationship::exponential},
                                                                                    {"sine", relationship::sine}}};

/// f of one coordinate.
[[nodiscard]] inline double value_of(relationship f, double k) {
  if (f == relationship::exponential) return std::exp(k);
  if (f == relationship::sine) return std::sin(10 * std::numbers::pi * k);
  double power = k;
  for (int i = 0; i < static_cast<int>(f); ++i) power *= k;
  return power;
}

}  // namespace deltaproof::claim_detail
