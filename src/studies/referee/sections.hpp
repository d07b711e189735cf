// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the referee study says: each function turns numbers of survey.hpp or inverses.hpp into findings, tables and figures.
#pragma once

#include "deltaproof/study/report.hpp"
#include "studies/referee/inverses.hpp"
#include "studies/referee/survey.hpp"

namespace deltaproof::detail::referee_study {

/// Counts of one judge over a survey. A faulty result counts where some bit of it differs from the correct one.
struct score {
  std::size_t caught = 0;     ///< faulty results refused
  std::size_t differing = 0;  ///< faulty results that differ
  std::size_t faults = 0;     ///< faults refused in at least one case
  std::size_t refused = 0;    ///< correct results refused
  std::size_t correct = 0;
};
[[nodiscard]] score score_of(const survey&, judge_kind);

void add_faults(const survey&, report&);
void add_fault_tables(const survey&, report&);
void add_inverses(const inverse_survey&, report&);
[[nodiscard]] std::string answer(const survey&, const inverse_survey&);

}  // namespace deltaproof::detail::referee_study
