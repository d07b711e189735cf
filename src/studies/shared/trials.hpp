// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// On which inputs, and against which plan, the referee study plants its faults: `cases` lists them. Every fault of the
// catalogue can happen in one of them. `make_bench(c)` makes a case ready to judge many results in: it generates its problem,
// runs the plan once and solves the truth once; `emulated` makes further results of it, with gradients where the case has
// cotangents.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/reference.hpp"
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

/// Checks through `options` share the draws of the plan.
struct bench {
  problem p;
  plan declared;
  std::vector<plan_variant> allowed;
  result correct;  ///< of the first variant, stages included
  reference truth;
  double o_error = 0;  ///< rms, of the correct run
  double state_error = 0;
  std::map<std::string, double> gradient_errors;  ///< likewise, by name; empty where the case has no cotangents
  check_options options;
};

[[nodiscard]] bench make_bench(const trial_case& c);
[[nodiscard]] result emulated(const bench& b, const trial_case& c, const plan_variant& v, const emulation_options& options);

}  // namespace deltaproof::detail::trials
