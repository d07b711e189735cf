// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Every stage of every recording of a correct chunk kernel lies within its bound and leans to no side.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "deltaproof/kernel/stages.hpp"
#include "support/recordings.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;

struct recording {
  problem p;
  result r;
};

recording load(const fs::path& folder, const std::string& name) {
  notes_list notes;
  const safetensors_file file = read_safetensors(folder / (name + ".problem.safetensors"));
  problem p = parse_problem(file, notes);
  result r = read_result(folder / (name + ".chunk.safetensors"), p, sha256_hex(file.bytes()), notes);
  return {std::move(p), std::move(r)};
}

/// The 5.5-sigma band of a mean of independent roundings; a false alarm in one of a hundred means has odds of 4e-6.
void expect_unbiased(const stage_measurement& m) {
  EXPECT_LE(std::fabs(m.bias.mean), 5.5 * m.bias.standard_error + m.bias.allowance) << m.name;
}

void check_folder(const fs::path& folder) {
  const auto index = nlohmann::json::parse(std::ifstream(folder / "index.json"));
  std::size_t stages = 0;
  for (const auto& entry : index) {
    const std::string name = entry["case"];
    if (!fs::exists(folder / (name + ".chunk.safetensors"))) continue;
    SCOPED_TRACE(name);
    const auto [p, r] = load(folder, name);
    stage_options options;
    // Diverges by design: judged before the chunk in which it does.
    if (name.starts_with("delta_rawk_blowup")) options.judged_tokens.assign(p.sequence_count() * p.value_heads(), 64);
    const stage_report report = measure_stages(p, r, public_chunk_roundings(p, *r.chunk_size), options);
    std::cout << name << "\n" << to_text(report) << "\n";
    if (name.starts_with("kda_safe_gate_abuse")) continue;
    const stage_measurement* const bad = first_bad_stage(report);
    EXPECT_EQ(bad, nullptr) << describe(*bad);
    for (const stage_measurement& m : report.stages) {
      EXPECT_GT(m.judged + m.skipped, 0U) << m.name;
      EXPECT_EQ(m.unbounded, 0U) << m.name;
      EXPECT_EQ(m.nonfinite, 0U) << m.name;
      expect_unbiased(m);
      ++stages;
    }
  }
  EXPECT_GT(stages, 0U);
}

TEST(stages, of_the_carried_recordings_are_within_bound_and_unbiased) { check_folder(testing::carried_recordings()); }

TEST(stages, of_the_external_recordings_are_within_bound_and_unbiased) {
  const fs::path folder = testing::external_recordings();
  if (folder.empty()) GTEST_SKIP() << "no recordings beside the checkout; set DELTAPROOF_RECORDINGS";
  check_folder(folder);
}

}  // namespace
}  // namespace deltaproof
