// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The table of studies and their pages that the build makes from src/studies (cmake/studies.cmake).
#pragma once

#include <span>
#include <string_view>

#include "deltaproof/study/study.hpp"

namespace deltaproof::detail {

struct study_entry {
  const study* found;
  std::string_view page;  ///< the text of its page.md
};
[[nodiscard]] std::span<const study_entry> study_table();
/// The text of problem_report/page.md.
[[nodiscard]] std::string_view problem_report_page();

}  // namespace deltaproof::detail
