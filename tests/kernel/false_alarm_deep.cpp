// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How often a kernel that keeps its plan is refuted: the referee promises at most once in ten thousand checks.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "deltaproof/number/random.hpp"
#include "kernel/referee_cases.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

using testing::build;

class false_alarm_of : public ::testing::TestWithParam<std::string> {};

/// Independent problems, one judged run each, with stages; one in four is looked at for every planted fault too.
/// DELTAPROOF_FIRST_RUN starts elsewhere in the list.
void count_alarms(const std::string& name, build how, std::size_t runs) {
  const plan& declared = *std::find_if(plans().begin(), plans().end(), [&](const plan& x) { return x.name == name; });
  const char* const from = std::getenv("DELTAPROOF_FIRST_RUN");
  const std::size_t first = from != nullptr ? std::strtoull(from, nullptr, 10) : 0;
  std::size_t alarms = 0, inadequate = 0, undecided = 0, vacuous = 0;
  for (std::size_t i = first; i < first + runs; ++i) {
    const testing::correct_result run = testing::correct_run(declared, i, how);
    check_options options;
    options.plans = {declared};
    options.threads = 1;
    options.referee.seed = i;
    // Looking for each planted fault takes most of the time, and most of what is tested besides does not depend on it.
    options.referee.power = philox(i, 0x70).below(4) == 0;  // not in step with what a run draws from its number
    const check_report report = check(run.p, run.r, options);
    if (!report.conformance) {
      ++undecided;
      std::printf("not judged: %s: %s\n", run.what.c_str(), report.reason.c_str());
      continue;
    }
    const plan_report& plan = *report.conformance;
    inadequate += plan.adequacy.adequate ? 0 : 1;
    undecided += plan.conforms == verdict::undecided ? 1 : 0;
    vacuous += plan.conforms == verdict::vacuous ? 1 : 0;
    if (!plan.adequacy.adequate) std::printf("inadequate: %s: %s\n", run.what.c_str(), plan.adequacy.reason.c_str());
    if (plan.conforms == verdict::undecided || plan.conforms == verdict::vacuous) {
      std::printf("%s: %s: %s\n", std::string(name_of(plan.conforms)).c_str(), run.what.c_str(), plan.reason.c_str());
    }
    if (plan.conforms != verdict::refuted) continue;
    ++alarms;
    std::string text = "false alarm: " + run.what;
    for (const std::string& line : testing::alarms_of(plan)) text += "\n    " + line;
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }
  std::printf("%s, %s: %zu false alarms in %zu runs; %zu on inputs the plan is inadequate for, %zu undecided, %zu vacuous\n",
              name.c_str(), std::string(testing::build_names[static_cast<std::size_t>(how)]).c_str(), alarms, runs, inadequate,
              undecided, vacuous);
  std::fflush(stdout);
  EXPECT_EQ(alarms, 0U);
}

// Each alarm has probability 1e-4 at most: 1000 runs have one with probability below 0.1, and seeds are fixed.
TEST_P(false_alarm_of, a_thousand_correct_runs_is_zero) { count_alarms(GetParam(), build::ordinary, scaled(1000)); }
TEST_P(false_alarm_of, rougher_sums_than_the_emulators_is_zero) { count_alarms(GetParam(), build::rough, scaled(200)); }
TEST_P(false_alarm_of, sums_better_than_promised_is_zero) { count_alarms(GetParam(), build::wide, scaled(200)); }
TEST_P(false_alarm_of, kernels_that_round_less_than_promised_is_zero) { count_alarms(GetParam(), build::finer, scaled(200)); }

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const plan& x : plans()) names.push_back(x.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(presets, false_alarm_of, ::testing::ValuesIn(preset_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace deltaproof
