// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Counts what the referee says against kernels that keep their plans: `alarms_in(preset, how, first, runs)` judges the runs
// first, first + 1, ... of correct_run and prints each that is refuted or whose plan is called inadequate. The deep test and the
// sample in every run share it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "referee/referee_cases.hpp"

namespace deltaproof::testing {

struct alarm_count {
  std::size_t alarms = 0;
  /// By the size of its error, not by a range that its stated contract or its formats end at. Plans with an inverse that is
  /// known to lose bits, with cumulative sums of gates in 16 bits, or with another epsilon on rows of its size, are not counted:
  /// of them it is true.
  std::size_t inadequate = 0;
  std::size_t undecided = 0, vacuous = 0;
};

inline bool loses_bits(const plan& declared, const correct_result& run) {
  const std::string& name = declared.name;
  const bool other_epsilon = std::any_of(declared.l2norm.epsilon.begin(), declared.l2norm.epsilon.end(),
                                         [](const std::optional<double>& e) { return e.has_value(); });
  return name == "neumann-64" || name == "doubling-128" || name == "flashkda-fp16-neumann" || name == "bf16-between-steps" ||
         name == "easydel-chunk" ||
         (other_epsilon &&
          (run.what.find("--regime tiny-keys") != std::string::npos || run.what.find("--regime along-q") != std::string::npos));
}

inline void judge_one(const plan& declared, build how, std::size_t index, alarm_count& out,
                      faults_looked_for looked = faults_looked_for::in_a_quarter) {
  const correct_result run = correct_run(declared, index, how);
  check_options options;
  options.plans = {declared};
  options.threads = 1;
  options.judge.seed = index;
  options.judge.power = looks_for_faults(looked, index);
  if (how == build::lengthy) {  // with so little time that most runs stop early
    options.judge.power = false;
    options.judge.seconds = 0.02;
  }
  const check_report report = check(run.p, run.r, options);
  if (!report.conformance) {
    ++out.undecided;
    std::printf("not judged: %s: %s\n", run.what.c_str(), report.reason.c_str());
    return;
  }
  const plan_report& plan = *report.conformance;
  out.undecided += plan.conforms == verdict::undecided ? 1 : 0;
  out.vacuous += plan.conforms == verdict::vacuous ? 1 : 0;
  if (!plan.adequacy.adequate) {
    const auto& ranges = plan.adequacy.ranges;
    const bool by_range = std::any_of(ranges.begin(), ranges.end(), [](const range_report& r) { return r.violated; });
    out.inadequate += by_range || loses_bits(declared, run) ? 0 : 1;
    std::printf("inadequate: %s: %s\n", run.what.c_str(), plan.adequacy.reason.c_str());
  }
  if (plan.conforms == verdict::undecided || plan.conforms == verdict::vacuous) {
    std::printf("%s: %s: %s\n", std::string(name_of(plan.conforms)).c_str(), run.what.c_str(), plan.reason.c_str());
  }
  if (plan.conforms != verdict::refuted) return;
  ++out.alarms;
  std::string text = "false alarm: " + run.what;
  for (const std::string& line : alarms_of(plan)) text += "\n    " + line;
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

inline alarm_count alarms_in(const std::string& name, build how, std::size_t first, std::size_t runs,
                             faults_looked_for looked = faults_looked_for::in_a_quarter) {
  const plan& declared = *std::find_if(plans().begin(), plans().end(), [&](const plan& x) { return x.name == name; });
  alarm_count out;
  for (std::size_t i = first; i < first + runs; ++i) judge_one(declared, how, i, out, looked);
  const std::string built(build_names[static_cast<std::size_t>(how)]);
  std::printf("%s, %s: %zu false alarms in %zu runs, %zu plans called inadequate for their error; %zu undecided, %zu vacuous\n",
              name.c_str(), built.c_str(), out.alarms, runs, out.inadequate, out.undecided, out.vacuous);
  std::fflush(stdout);
  return out;
}

inline std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const plan& x : plans()) names.push_back(x.name);
  return names;
}

inline std::string preset_as_test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace deltaproof::testing
