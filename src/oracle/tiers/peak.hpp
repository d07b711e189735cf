// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The ruler of the timings: multiply-adds without memory, on the target the tiers run on.
#pragma once

#include <cstddef>

namespace deltaproof::tiers {

/// Runs at least `count` fp64 multiply-adds in independent chains and returns how many it ran; `sink` keeps them alive.
std::size_t run_multiply_adds(std::size_t count, double& sink);

/// The same by the inner loop of the fp64 tier on rows of `key_dim` channels: loads and stores from the nearest cache, and
/// nothing before, between or after the passes. What lies between this and the peak binds every head.
std::size_t run_passes(std::size_t key_dim, std::size_t count, double& sink);

}  // namespace deltaproof::tiers
