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

/// What is asked, and what computes the answer. The words come from a page (see page.hpp), or, in a study that makes its own
/// report, from the code.
struct study {
  constexpr study(std::string_view named, results (*computes)(const run_options&), bool takes_hours = false,
                  std::string_view its_page = {})
      : name(named), compute(computes), page(its_page), hours(takes_hours) {}
  constexpr study(std::string_view named, std::string_view asks, report (*makes)(const run_options&), bool takes_hours = false)
      : name(named), question(asks), run(makes), hours(takes_hours) {}

  std::string_view name;           ///< as in the file name, with '-' for '_'
  std::string_view question = {};  ///< one sentence that ends with '?'; of a study with a page: see question_of
  report (*run)(const run_options&) = nullptr;
  results (*compute)(const run_options&) = nullptr;
  std::string_view page = {};  ///< empty: the page.md that the build found beside study.cpp
  bool hours = false;          ///< takes more than minutes: `report` leaves it out unless asked for everything
};

/// What a study asks: its own question, or the heading of its page.
[[nodiscard]] std::string question_of(const study&);

/// Every study, by name.
[[nodiscard]] std::span<const study* const> studies();
/// Throws: domain_error with the names there are.
[[nodiscard]] const study& study_named(std::string_view name);

/// Runs a study, fills in its name, question, seed, mode and, unless the study has (one that is not part of this program), the
/// command, and validates the report. Throws: format_error naming page and line where the page names what the study lacks.
[[nodiscard]] report run_study(const study&, const run_options&);

}  // namespace deltaproof
