// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can say how a study is to run. It exists apart from study.hpp so that grids and results need not know
// what a study is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace deltaproof {

struct run_options {
  std::uint64_t seed = 1;  ///< of every generator of the study
  bool full = false;       ///< false: quick, seconds to a minute; true: what takes longer too
  unsigned threads = 1;    ///< changes the time, never a finding
  std::function<void(std::string_view stage, double fraction)> on_progress = {};  ///< called from any one thread at a time
  const std::atomic<bool>* interrupted = nullptr;  ///< set it (a signal handler may) to end early, keeping what is done

  [[nodiscard]] bool stopped() const { return interrupted != nullptr && interrupted->load(std::memory_order_relaxed); }
  void progress(std::string_view stage, double fraction) const {
    if (on_progress) on_progress(stage, fraction);
  }
  /// A size that depends on the mode.
  [[nodiscard]] std::size_t size(std::size_t quick, std::size_t at_full) const { return full ? at_full : quick; }
};

}  // namespace deltaproof
