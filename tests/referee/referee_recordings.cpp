// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Recordings of real kernels under the plans that list them: a correct kernel holds, and what was broken by hand does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rounded.hpp"
#include "referee/referee_cases.hpp"
#include "support/recordings.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct recording {
  problem p;
  result r;
};

recording read(const fs::path& folder, const std::string& name, const std::string& path) {
  notes_list notes;
  const safetensors_file file = read_safetensors(folder / (name + ".problem.safetensors"));
  recording out{parse_problem(file, notes), {}};
  out.r = read_result(folder / (name + "." + path + ".safetensors"), out.p, sha256_hex(file.bytes()), notes);
  return out;
}

/// As a user's `check` does without options.
check_report judged(const recording& x) {
  check_options options;
  options.plans = plans_of(x.r, x.p);
  return check(x.p, x.r, options);
}

/// Every kernel of an index, but for the one fed gates outside its contract.
void expect_all_hold(const fs::path& folder) {
  const auto index = nlohmann::json::parse(std::ifstream(folder / "index.json"));
  std::size_t held = 0;
  for (const auto& entry : index) {
    const std::string name = entry["case"];
    for (const std::string path : {"chunk", "recurrent", "ref64"}) {
      if (!fs::exists(folder / (name + "." + path + ".safetensors")) ||
          (testing::breaks_its_gate_contract(name) && path == "chunk"))
        continue;
      const check_report report = judged(read(folder, name, path));
      std::string alarms;
      if (report.conformance) {
        for (const std::string& line : testing::alarms_of(*report.conformance)) alarms += "\n    " + line;
      }
      // An fp64 loop where the exact recurrence leaves fp64's neighbourhood of fp32 is judged before that.
      // Where the recurrence leaves its formats a limit may grow beyond the exact values: nothing may be outside, and nothing
      // need hold. So may that of a loop in fp64 where the plan lets outputs be stored in fewer bits: the plan's own runs are
      // infinite there.
      const bool endless = report.diverges || report.reason.find("the plan's limit on the rms error is inf") != std::string::npos;
      const bool blind = endless && report.judged == verdict::vacuous;
      EXPECT_TRUE(blind || report.judged == verdict::holds) << name << "." << path << ": " << report.reason << alarms;
      held += report.judged == verdict::holds ? 1 : 0;
    }
  }
  EXPECT_GE(held, index.size());
}

TEST(referee, the_carried_kernels_keep_their_plans) { expect_all_hold(testing::carried_recordings()); }

TEST(referee, the_external_kernels_keep_their_plans) {
  const fs::path folder = testing::external_recordings();
  if (folder.empty()) GTEST_SKIP() << "no recordings beside the checkout; set DELTAPROOF_RECORDINGS";
  expect_all_hold(folder);
}

// The chunk kernel is judged up to the chunk that diverges, the recurrent one up to the token before which no run of the plan
// overflows. The loop in fp64 stores o in fp64: it does not diverge.
TEST(referee, a_diverging_problem_diverges_and_nothing_of_its_kernel_is_outside_before) {
  const fs::path folder = testing::external_recordings();
  if (folder.empty()) GTEST_SKIP() << "no recordings beside the checkout; set DELTAPROOF_RECORDINGS";
  for (const char* const path : {"chunk", "recurrent"}) {
    const check_report report = judged(read(folder, "delta_rawk_blowup_bf16", path));
    ASSERT_TRUE(report.diverges);
    EXPECT_EQ(report.diverges->first.token, 88U);
    const bool chunkwise = std::string(path) == "chunk";
    EXPECT_EQ(report.judged, verdict::holds) << path << ": " << report.reason;
    ASSERT_TRUE(report.conformance);
    EXPECT_TRUE(testing::alarms_of(*report.conformance).empty()) << path;
    const std::size_t end = chunkwise ? 64 : 90;
    for (const judged_statistic& s : report.conformance->statistics) EXPECT_LE(s.last_token, end);
  }
  EXPECT_EQ(judged(read(folder, "delta_rawk_blowup_bf16", "ref64")).judged, verdict::holds);
}

TEST(referee, gates_outside_a_contract_are_named) {
  const check_report report = judged(read(testing::carried_recordings(), "steep_gates", "chunk"));
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_THAT(report.reason, HasSubstr("the inputs break the plan's [gate] contract"));
  EXPECT_THAT(report.reason, HasSubstr("fla-chunk-kda-safe-gate"));
  EXPECT_EQ(report.conformance->plan, "fla-chunk-kda-safe-gate");
}

/// x with rows and columns of each K x V block swapped.
void transpose_state(recording& x) {
  const std::size_t K = x.p.key_dim(), V = x.p.value_dim();
  ASSERT_EQ(K, V);
  const auto was = x.r.final_state->to_doubles();
  auto is = was;
  for (std::size_t i = 0; i < was.size(); ++i) is[i] = was[i / (K * V) * (K * V) + i % V * V + i / V % K];
  x.r.final_state = tensor::from_doubles(x.r.final_state->element_format(), x.r.final_state->shape(), is, "final_state");
}

TEST(referee, a_transposed_state_of_a_real_kernel_is_refuted_and_named) {
  for (const char* const path : {"chunk", "recurrent"}) {
    recording x = read(testing::carried_recordings(), "grouped_heads", path);
    transpose_state(x);
    const check_report report = judged(x);
    EXPECT_EQ(report.judged, verdict::refuted);
    EXPECT_EQ(report.conformance->first_bad_stage, "final_state");
    ASSERT_FALSE(report.conformance->suspects.empty());
    EXPECT_EQ(report.conformance->suspects.front().planted->name, "layout-final-state-transposed") << path;
  }
}

// Faults as they shipped, made in a real kernel's results.
TEST(referee, a_real_kernels_result_spoilt_by_hand_is_refuted) {
  const recording clean = read(testing::carried_recordings(), "grouped_heads", "recurrent");
  const auto refuted = [&](const char* what,
                           const std::function<void(std::vector<double> & o, std::vector<double> & state)>& spoil) {
    recording x = clean;
    auto o = x.r.o.to_doubles(), state = x.r.final_state->to_doubles();
    spoil(o, state);
    x.r.o = tensor::from_doubles(x.r.o.element_format(), x.r.o.shape(), o, "o");
    x.r.final_state = tensor::from_doubles(x.r.final_state->element_format(), x.r.final_state->shape(), state, "final_state");
    const check_report report = judged(x);
    EXPECT_EQ(report.judged, verdict::refuted) << what << ": " << report.reason;
  };
  const std::size_t row = clean.p.value_heads() * clean.p.value_dim();
  refuted("heads swapped", [&](auto& o, auto&) {
    for (std::size_t i = 0; i < o.size(); i += row)
      std::swap_ranges(o.begin() + static_cast<std::ptrdiff_t>(i), o.begin() + static_cast<std::ptrdiff_t>(i + row / 2),
                       o.begin() + static_cast<std::ptrdiff_t>(i + row / 2));
  });
  refuted("outputs one token late",
          [&](auto& o, auto&) { std::rotate(o.begin(), o.end() - static_cast<std::ptrdiff_t>(row), o.end()); });
  refuted("the last token zero", [&](auto& o, auto&) { std::fill(o.end() - static_cast<std::ptrdiff_t>(row), o.end(), 0.0); });
  refuted("all outputs zero", [](auto& o, auto&) { std::fill(o.begin(), o.end(), 0.0); });
  refuted("outputs 2 % too large", [](auto& o, auto&) {
    for (double& x : o) x = lift<double>(round_to<rounded<bf16>>(x * 1.02));
  });
  refuted("a state rounded to bf16", [](auto&, auto& state) {
    for (double& x : state) x = lift<double>(round_to<rounded<bf16>>(x));
  });
}

}  // namespace
}  // namespace deltaproof
