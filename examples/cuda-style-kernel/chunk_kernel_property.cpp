// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "deltaproof/testing/rapidcheck.hpp"
#include "run_kernel.hpp"

using namespace deltaproof;
using namespace deltaproof::testing;

RC_GTEST_PROP(chunk_delta_rule, keeps_its_plan_on_any_problem, ()) {
  const auto c = *problem_cases(
      {.regimes = {"typical", "repeated", "collinear", "alternating"}, .ops = {op_kind::delta_rule}, .most_group = 1});
  require_accepted(against_plan(c.given, run_kernel(c.given, c.chunk_size), "fla-chunk-delta", {.judge = {.power = false}}));
}
