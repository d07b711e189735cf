// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Where recordings of kernels lie: the few the project carries, and a larger collection named by the environment
// variable DELTAPROOF_RECORDINGS (default ../shared/data/recordings beside the checkout), which may be absent.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace deltaproof::testing {

inline std::filesystem::path carried_recordings() { return std::filesystem::path(DELTAPROOF_SOURCE_DIR) / "tests/recordings"; }

/// Empty if there is none.
inline std::filesystem::path external_recordings() {
  const char* named = std::getenv("DELTAPROOF_RECORDINGS");
  std::filesystem::path folder =
      named ? std::filesystem::path(named) : std::filesystem::path(DELTAPROOF_SOURCE_DIR) / "../shared/data/recordings";
  return std::filesystem::exists(folder / "index.json") ? folder : std::filesystem::path();
}

/// Whether this case, carried or not, gives a chunk kernel gates outside its contract: what came out is not finite.
inline bool breaks_its_gate_contract(std::string_view name) {
  return name == "steep_gates" || name.starts_with("kda_safe_gate_abuse");
}

}  // namespace deltaproof::testing
