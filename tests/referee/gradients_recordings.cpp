// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Recordings of real backward passes under the presets that list their kernels: correct ones hold, and what was broken by hand is
// refuted in the gradient that is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/stages/backward_stages.hpp"
#include "referee/referee_cases.hpp"
#include "support/recordings.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;

struct gradient_recording {
  std::string name;
  problem p;
  result r;
};

/// Those beside the checkout where they are there and asked for, else those the project carries.
std::vector<gradient_recording> recordings(bool carried = false) {
  const fs::path external = testing::external_recordings();
  fs::path folder = external.empty() ? fs::path() : external.parent_path() / "backward";
  if (carried || !fs::exists(folder)) folder = testing::carried_recordings() / "backward";
  std::vector<gradient_recording> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string file_name = entry.path().filename().string(), name = file_name.substr(0, file_name.find('.'));
    if (file_name.find(".chunk.") == std::string::npos && file_name.find(".recurrent.") == std::string::npos) continue;
    notes_list notes;
    const safetensors_file file = read_safetensors(folder / (name + ".problem.safetensors"));
    gradient_recording one{name, parse_problem(file, notes), {}};
    one.r = read_result(entry.path(), one.p, sha256_hex(file.bytes()), notes);
    out.push_back(std::move(one));
  }
  return out;
}

check_report judged(const problem& p, const result& r, bool power, const std::shared_ptr<referee_memory>& memory = {}) {
  check_options options;
  options.memory = memory;
  options.plans = plans_of(r, p);
  options.judge.power = power;
  return check(p, r, options);
}

std::string alarms_of(const check_report& report) {
  std::string text;
  if (!report.conformance) return text;
  for (const std::string& line : testing::alarms_of(*report.conformance)) text += "\n    " + line;
  return text;
}

std::set<std::string> refuted_tensors(const check_report& report) {
  std::set<std::string> out;
  for (const judged_statistic& s : report.conformance->statistics) {
    if (s.judged == verdict::refuted) out.insert(s.tensor);
  }
  return out;
}

/// With one gradient changed in place.
result with(const gradient_recording& x, const std::string& name, const std::function<void(std::vector<double>&)>& change) {
  result r = x.r;
  tensor& gradient = r.gradients.at(name);
  std::vector<double> values = gradient.to_doubles();
  change(values);
  gradient = tensor::from_doubles(gradient.element_format(), gradient.shape(), values, name);
  return r;
}

TEST(recorded_gradients_by_plan, of_correct_kernels_hold) {
  const auto all = recordings();
  ASSERT_FALSE(all.empty());
  for (const gradient_recording& x : all) {
    const check_report report = judged(x.p, x.r, true);
    ASSERT_TRUE(report.conformance) << x.name;
    EXPECT_TRUE(report.conformance->gradients.judged) << x.name;
    EXPECT_EQ(report.judged, verdict::holds) << x.name << ": " << report.reason << alarms_of(report);
    EXPECT_EQ(report.conformance->first_bad_stage, "") << x.name;
    for (const auto& [name, gradient] : x.r.gradients) {
      const auto& all_statistics = report.conformance->statistics;
      EXPECT_TRUE(std::any_of(all_statistics.begin(), all_statistics.end(),
                              [&name = name](const judged_statistic& s) { return s.tensor == name; }))
          << x.name << " " << name;
    }
  }
}

// The rows of one stored stage in the wrong order: what was made of them is right, so no limit on a gradient can tell.
TEST(recorded_gradients_by_plan, with_a_wrong_stage_are_refuted_by_it) {
  std::size_t named = 0, judged_stages_of_all = 0;
  for (const gradient_recording& x : recordings()) {
    const auto memory = make_referee_memory();
    for (const auto& [name, stage] : x.r.backward_stages) {
      if (std::find(judged_backward_stages.begin(), judged_backward_stages.end(), name) == judged_backward_stages.end()) continue;
      std::vector<double> values = stage.to_doubles();
      std::rotate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(stage.shape().back()), values.end());
      if (values == stage.to_doubles()) continue;
      result wrong = x.r;
      wrong.backward_stages.at(name) = tensor::from_doubles(stage.element_format(), stage.shape(), values, name);
      const check_report report = judged(x.p, wrong, false, memory);
      ++judged_stages_of_all;
      EXPECT_EQ(report.judged, verdict::refuted) << x.name << " " << name;
      named += report.conformance->first_bad_stage == name && report.conformance->first_bad_is_stage ? 1 : 0;
    }
  }
  std::printf("%zu of %zu wrong stages are named\n", named, judged_stages_of_all);
  EXPECT_GE(judged_stages_of_all, 20U);
  // dv2 and dh take turns: what is wrong in one shows first where it was read.
  EXPECT_GE(static_cast<double>(named), 0.5 * static_cast<double>(judged_stages_of_all));
}

TEST(recorded_gradients_by_plan, alone_in_a_file_hold) {
  const auto all = recordings();
  ASSERT_FALSE(all.empty());
  for (const gradient_recording& x : all) {
    result alone = x.r;
    alone.o = tensor();
    alone.final_state.reset();
    alone.stages.clear();
    const check_report report = judged(x.p, alone, false);
    ASSERT_TRUE(report.conformance) << x.name;
    EXPECT_EQ(report.judged, verdict::holds) << x.name << ": " << report.reason << alarms_of(report);
  }
}

// Each gradient in turn: twice as large, of the other sign, one token late. Where a gate is slow dg is the same a token later,
// but for what rounding does to it.
TEST(recorded_gradients_by_plan, that_were_spoilt_by_hand_are_refuted_where_they_are_wrong) {
  const auto all = recordings(true);
  ASSERT_FALSE(all.empty());
  std::size_t spoilt = 0, refuted = 0;
  for (const gradient_recording& x : all) {
    const auto memory = make_referee_memory();
    for (const auto& [name, gradient] : x.r.gradients) {
      const auto given = gradient.to_doubles();
      if (std::all_of(given.begin(), given.end(), [](double v) { return v == 0; })) continue;
      const std::size_t row = gradient.size() / gradient.shape()[0] / (name == "dinitial_state" ? 1 : gradient.shape()[1]);
      const std::vector<std::pair<const char*, std::function<void(std::vector<double>&)>>> faults{
          {"twice", [](auto& v) { std::for_each(v.begin(), v.end(), [](double& e) { e *= 2; }); }},
          {"late", [&](auto& v) { std::rotate(v.begin(), v.end() - static_cast<std::ptrdiff_t>(row), v.end()); }},
          {"negative", [](auto& v) { std::for_each(v.begin(), v.end(), [](double& e) { e = -e; }); }},
      };
      // One of them in turn: what cannot be late is doubled.
      const bool is_alone = name == "dinitial_state" && gradient.shape()[0] == 1;
      const auto& [what, fault] = faults[is_alone ? 0 : spoilt % faults.size()];
      const check_report report = judged(x.p, with(x, name, fault), false, memory);
      ++spoilt;
      const bool named = report.judged == verdict::refuted && refuted_tensors(report) == std::set<std::string>{name};
      refuted += named ? 1 : 0;
      EXPECT_TRUE(named || (name == "dg" && std::string(what) == "late"))
          << x.name << " " << name << " " << what << ": " << report.reason;
    }
  }
  EXPECT_GE(spoilt, 40U);
  EXPECT_GE(refuted + 4, spoilt);
}

}  // namespace
}  // namespace deltaproof
