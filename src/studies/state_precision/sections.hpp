// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the study state-precision says, from the runs of all heads.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "deltaproof/study/study.hpp"
#include "studies/state_precision/runs.hpp"

namespace deltaproof::detail::state_precision {

struct settings {
  shape dims;
  std::size_t tokens = 100000;
};
[[nodiscard]] settings settings_for(const run_options&);

struct survey {
  std::vector<head_run> heads;  ///< as the table `heads`
  bool complete = false;
};
[[nodiscard]] survey run_survey(const run_options&, const settings&);

void add_findings(const run_options&, const settings&, const survey&, report&);

/// The first checkpoint with an error above the limit; 0 where there is none.
[[nodiscard]] std::size_t horizon(const measured_run&, const std::vector<std::size_t>& at, double limit);
[[nodiscard]] double largest(const measured_run&);

}  // namespace deltaproof::detail::state_precision
