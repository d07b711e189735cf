// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The ruler of the timings: multiply-adds without memory, on the target the tiers run on.
#pragma once

#include <cstddef>

namespace deltaproof::tiers {

/// Runs at least `count` fp64 multiply-adds in independent chains and returns how many it ran; `sink` keeps them alive.
std::size_t run_multiply_adds(std::size_t count, double& sink);

}  // namespace deltaproof::tiers
