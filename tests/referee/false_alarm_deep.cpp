// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How often a kernel that keeps its plan is refuted: the referee promises at most once in ten thousand checks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "referee/false_alarm_cases.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

using testing::build;

class false_alarm_of : public ::testing::TestWithParam<std::string> {};

/// Independent problems, one judged run each, with stages and every planted fault looked for.
/// DELTAPROOF_FIRST_RUN starts elsewhere in the list.
void count_alarms(const std::string& name, build how, std::size_t runs) {
  const char* const from = std::getenv("DELTAPROOF_FIRST_RUN");
  const std::size_t first = from != nullptr ? std::strtoull(from, nullptr, 10) : 0;
  const testing::alarm_count found = testing::alarms_in(name, how, first, runs, testing::faults_looked_for::always);
  EXPECT_EQ(found.alarms, 0U);
  EXPECT_EQ(found.inadequate, 0U);
}

// Each alarm has probability 1e-4 at most: 1000 runs have one with probability below 0.1, and seeds are fixed.
TEST_P(false_alarm_of, a_thousand_correct_runs_is_zero) { count_alarms(GetParam(), build::ordinary, scaled(1000)); }
TEST_P(false_alarm_of, a_thousand_runs_of_all_that_a_plan_leaves_open_is_zero) {
  count_alarms(GetParam(), build::any, scaled(1000));
}
TEST_P(false_alarm_of, rougher_sums_than_the_emulators_is_zero) { count_alarms(GetParam(), build::rough, scaled(200)); }
TEST_P(false_alarm_of, sums_better_than_promised_is_zero) { count_alarms(GetParam(), build::wide, scaled(200)); }
TEST_P(false_alarm_of, kernels_that_round_less_than_promised_is_zero) { count_alarms(GetParam(), build::finer, scaled(200)); }
TEST_P(false_alarm_of, long_heads_whose_runs_stop_early_is_zero) { count_alarms(GetParam(), build::lengthy, scaled(50)); }

INSTANTIATE_TEST_SUITE_P(presets, false_alarm_of, ::testing::ValuesIn(testing::preset_names()), testing::preset_as_test_name);

}  // namespace
}  // namespace deltaproof
