// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// After including this you can write a study, find one by name and run it. A study is a folder, src/studies/foo_bar, of
// two files: study.cpp, which defines
//     extern const study foo_bar_study{"foo-bar", &compute};
// inside namespace deltaproof, and page.md, which holds the words. The build finds them, and the program, the tests and the index
// find the study. A study decides nothing by the clock, the machine or the number of threads: seed and mode
// alone choose its values. It exists so that adding a question touches one folder.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "deltaproof/study/report.hpp"
#include "deltaproof/study/results.hpp"
#include "deltaproof/study/run_options.hpp"

namespace deltaproof {

/// What computes the numbers of an answer. The question and all other words come from its page (src/studies/README.md).
struct study {
  std::string_view name;  ///< as in the file name, with '-' for '_'
  results (*compute)(const run_options&);
  bool hours = false;          ///< takes more than minutes: `report` leaves it out unless asked for everything
  std::string_view page = {};  ///< its text; empty: the page.md that the build found beside study.cpp
};

/// What a study asks: the heading of its page.
[[nodiscard]] std::string question_of(const study&);

/// Every study, by name.
[[nodiscard]] std::span<const study* const> studies();
/// Throws: domain_error with the names there are.
[[nodiscard]] const study& study_named(std::string_view name);

/// Runs a study and fills its page: a valid report, with the command of this program that makes it again.
/// Throws: format_error naming page and line where the page names what the study lacks.
[[nodiscard]] report run_study(const study&, const run_options&);

}  // namespace deltaproof
