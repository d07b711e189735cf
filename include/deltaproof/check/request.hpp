// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Asks for a check in the words of the program's options, plans by their names, and gets the verdict with all that is said of
// it: text, JSON and, where it is refuted and a folder was named, a witness. It exists so that the program, the matchers of
// testing/gtest.hpp and other callers say the same words about the same result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/check/witness.hpp"

namespace deltaproof {

/// "0.1.0": the version of this library.
[[nodiscard]] std::string_view library_version();

struct check_request {
  std::string plan = {};  ///< a preset or a file ending in .toml; empty: the presets that list the result's kernel
  bool no_plan = false;   ///< judge by bounds alone, or measure
  judging judge = {};
  unsigned threads = 0;                ///< 0: one for each core
  std::filesystem::path witness = {};  ///< of what is refuted; empty: none
  /// One that is there already, as a test does that fails again; otherwise it is refused. A test asks for a witness whatever the
  /// verdict, so no note says that none was needed.
  bool replace_witness = false;
};

/// A verdict and what goes with it.
struct answered_check {
  check_report report;
  check_identity identity;
  std::string witness_says;  ///< empty: none was written
  std::string witness_lost;  ///< why one that was due could not be written; the verdict stands all the same
};

/// The options of `deltaproof check` for this request, each with a space before it.
[[nodiscard]] std::string options_text(const check_request& asked);

/// check() as asked. `identity`: paths, hashes, notes and the command that reproduces it; what the result and the request say
/// is filled in. Without paths the text names the witness, or `record`. `how`: stop, progress, solver and memory alone
/// are taken from it. Throws: format_error for a plan that is not there or does not fit, for options as require_valid has it, or
/// for a place where no witness can be; as check.
[[nodiscard]] answered_check answer(const problem& p, const result& r, const check_request& asked, check_identity identity,
                                    const check_options& how = {}, const trial_progress& shrinking = {});

}  // namespace deltaproof
