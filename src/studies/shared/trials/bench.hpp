// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A case made ready to judge many results in: `make_bench(c)` generates its problem, runs the plan once and solves the truth
// once; `emulated` makes further results of it, with gradients where the case has cotangents. Checks through `options` share the
// draws of the plan.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "studies/shared/trials/cases.hpp"

namespace deltaproof::detail::trials {

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
