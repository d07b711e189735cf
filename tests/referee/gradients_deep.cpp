// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How often a kernel whose backward pass keeps its plan is refuted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "referee/false_alarm_cases.hpp"
#include "referee/gradient_cases.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

class false_alarm_of_gradients : public ::testing::TestWithParam<std::string> {};

// Each alarm has probability 1e-4 at most: 1000 runs have one with probability below 0.1, and seeds are fixed.
// DELTAPROOF_FIRST_RUN starts elsewhere in the list.
TEST_P(false_alarm_of_gradients, a_thousand_runs_of_all) {
  const char* const from = std::getenv("DELTAPROOF_FIRST_RUN");
  const std::size_t first = from != nullptr ? std::strtoull(from, nullptr, 10) : 0;
  const testing::gradient_alarm_count found =
      testing::gradient_alarms(plan_named(GetParam()), first, scaled(1000), testing::faults_looked_for::always);
  EXPECT_EQ(found.alarms, 0U);
  EXPECT_EQ(found.inadequate, 0U);
  EXPECT_GT(found.with_outputs, 0U);
  EXPECT_GT(found.judged, found.with_outputs);
}

INSTANTIATE_TEST_SUITE_P(presets, false_alarm_of_gradients, ::testing::ValuesIn(testing::backward_preset_names()),
                         testing::preset_as_test_name);

}  // namespace
}  // namespace deltaproof
