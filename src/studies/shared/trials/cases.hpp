// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// On which inputs, and against which plan, the referee study plants its faults: `cases` lists them. Every fault of the
// catalogue can happen in one of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/study/study.hpp"

namespace deltaproof::detail::trials {

struct trial_case {
  std::string id;    ///< "gdn/tails"
  std::string plan;  ///< a preset
  path_kind path = path_kind::chunk;
  std::size_t chunk = 64;  ///< 0 on the recurrent path
  generation inputs;
};

[[nodiscard]] std::vector<trial_case> cases(const run_options&);

/// What a case is made of: the plan and the options of `deltaproof gen` that differ from the regime's defaults.
[[nodiscard]] std::string describe(const trial_case&);

}  // namespace deltaproof::detail::trials
