// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can write a study, find one by name and run it. A study is one file,
// src/studies/foo_bar.cpp, that defines
//     extern const study foo_bar_study{"foo-bar", "What is ...?", &run};
// inside namespace deltaproof; the build finds the file, and the program, the tests and the index find
// the study. A study decides nothing by the clock, the machine or the number of threads: seed and mode
// alone choose its findings. It exists so that adding a question touches one file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "deltaproof/study/report.hpp"

namespace deltaproof {

struct run_options {
  std::uint64_t seed = 1;                 ///< of every generator of the study
  bool full = false;                      ///< false: quick, seconds to a minute; true: what takes longer too
  unsigned threads = 1;                   ///< changes the time, never a finding
  std::filesystem::path recordings = {};  ///< folder of recorded kernels; empty: none, and the report says so
  std::function<void(std::string_view stage, double fraction)> on_progress = {};  ///< called from any one thread at a time
  const std::atomic<bool>* interrupted = nullptr;  ///< set it (a signal handler may) to end early, keeping what is done

  [[nodiscard]] bool stopped() const { return interrupted != nullptr && interrupted->load(std::memory_order_relaxed); }
  void progress(std::string_view stage, double fraction) const {
    if (on_progress) on_progress(stage, fraction);
  }
};

struct study {
  std::string_view name;      ///< as in the file name, with '-' for '_'
  std::string_view question;  ///< one sentence that ends with '?'
  report (*run)(const run_options&);
  bool hours = false;  ///< takes more than minutes: `report` leaves it out unless asked for everything
};

/// Every study, by name.
[[nodiscard]] std::span<const study* const> studies();
/// Throws: domain_error with the names there are.
[[nodiscard]] const study& study_named(std::string_view name);

/// Runs a study, fills in its name, question, seed, mode and, unless the study has (one that is not part of this program), the
/// command, and validates the report.
[[nodiscard]] report run_study(const study&, const run_options&);

/// Calls f(0) ... f(n - 1), each once, on `options.threads` threads, reporting `stage`; after an
/// interruption no further call starts. Each f writes to its own slot, so the result does not depend
/// on the number of threads. Returns how many calls were made, always a prefix 0 ... m - 1. The first exception is thrown on.
std::size_t for_each_index(std::size_t n, const run_options& options, std::string_view stage,
                           const std::function<void(std::size_t)>& f);

}  // namespace deltaproof
