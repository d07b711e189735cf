// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Which instruction sets the vectorised tiers are compiled for. Read before Highway's headers; scalable vectors cannot
// be kept in arrays, and what lies between plain x86-64 and AVX2 adds nothing here, so they are left out.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_RVV | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

namespace deltaproof::tiers {

/// Restricts what the tiers may use to the given Highway targets (0: no restriction). For tests and timings.
void restrict_targets(long long mask);
/// The targets this machine and this build have.
[[nodiscard]] long long available_targets();

}  // namespace deltaproof::tiers
