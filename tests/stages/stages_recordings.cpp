// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Every stage of every recording of a correct chunk kernel lies within its bound and leans to no side.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "deltaproof/stages/stages.hpp"
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

using names = std::set<std::string>;

/// The stages a file holds, and of those the ones whose inputs it holds too.
names held(const result& r) {
  names all{"o"};
  for (const auto& [name, stage] : r.stages) all.insert(name);
  if (r.final_state) all.insert("final_state");
  return all;
}
names judgeable(const problem& p, const result& r) {
  const names all = held(r);
  const auto has = [&all](const char* name) { return all.count(name) > 0; };
  names some = all;
  if (!p.g) some.erase("g_cumsum_log2");
  if (!has("Ai")) some.erase("w"), some.erase("u");
  if (!has("w") || !has("u")) {
    for (const char* name : {"h", "v_new", "final_state"}) some.erase(name);
    if (!has("h") || !has("v_new")) some.erase("o");
  }
  return some;
}

/// The 5.5-sigma band of a mean of independent roundings; a false alarm in one of a hundred means has odds of 4e-6. False
/// if there is nothing to tell a bias from.
bool expect_unbiased(const stage_measurement& m) {
  if (m.bias.count == 0) return false;
  EXPECT_LE(std::fabs(m.bias.mean), 5.5 * m.bias.standard_error + m.bias.allowance) << m.name;
  return true;
}

/// Every stage of a file is judged or named with the reason why not; those judged are within bound and lean to no side,
/// which cannot be told of a stage in fp32, where storing costs no more than other roundings do. Returns those judged.
names check(const problem& p, const result& r, const stage_report& report) {
  names judged;
  names without_evidence;
  for (const stage_measurement& m : report.stages) {
    judged.insert(m.name);
    EXPECT_GT(m.judged + m.skipped, 0U) << m.name;
    EXPECT_EQ(m.unbounded, 0U) << m.name;
    EXPECT_EQ(m.nonfinite, 0U) << m.name;
    if (expect_unbiased(m)) continue;
    without_evidence.insert(m.name);
    EXPECT_TRUE(m.dtype == "F32" || m.judged == 0) << m.name << ", stored in " << m.dtype << ", has no evidence of its bias";
  }
  EXPECT_EQ(judged, judgeable(p, r));
  for (const std::string& name : held(r)) {
    const auto named = [&](const unjudged_stage& u) { return u.name == name && u.stored && !u.reason.empty(); };
    EXPECT_NE(judged.count(name) > 0, std::any_of(report.unjudged.begin(), report.unjudged.end(), named)) << name;
  }
  const stage_measurement* const bad = first_bad_stage(report);
  EXPECT_EQ(bad, nullptr) << describe(*bad);
  EXPECT_EQ(report.outcome(), judged.empty()                    ? stage_outcome::nothing_judged
                              : judged.size() == held(r).size() ? stage_outcome::within
                                                                : stage_outcome::inconclusive);
  std::cout << "no evidence of bias:";
  for (const std::string& name : without_evidence) std::cout << " " << name;
  std::cout << "\n\n";
  return judged;
}

/// The stages judged of every recording of a chunk kernel in the folder, by case.
std::map<std::string, names> check_folder(const fs::path& folder) {
  std::map<std::string, names> all;
  for (const auto& entry : nlohmann::json::parse(std::ifstream(folder / "index.json"))) {
    const std::string name = entry["case"];
    if (!fs::exists(folder / (name + ".chunk.safetensors"))) continue;
    SCOPED_TRACE(name);
    const auto [p, r] = load(folder, name);
    stage_options options;
    // Diverges by design: judged before the chunk in which it does.
    if (name.starts_with("delta_rawk_blowup")) options.judged_tokens.assign(p.sequence_count() * p.value_heads(), 64);
    const std::vector<const plan*> declared = plans_for_kernel(r.kernel, p, path_kind::chunk);
    if (declared.empty()) {
      ADD_FAILURE() << "no plan lists " << r.kernel;
      continue;
    }
    const stage_report report = measure_stages(p, r, roundings_of(*declared[0], p, path_kind::chunk, *r.chunk_size), options);
    std::cout << name << "\n" << to_text(report);
    if (!testing::breaks_its_gate_contract(name)) {
      all[name] = check(p, r, report);
      continue;
    }
    // Gates outside the kernel's contract: NaN, which is bad though nothing it follows from is stored.
    all[name] = {};
    const stage_measurement* const bad = first_bad_stage(report);
    EXPECT_TRUE(bad != nullptr && bad->name == "o" && bad->nonfinite == bad->bad) << to_text(report);
  }
  std::size_t files = 0;
  for (const auto& file : fs::directory_iterator(folder)) files += file.path().string().ends_with(".chunk.safetensors") ? 1 : 0;
  EXPECT_EQ(all.size(), files);
  return all;
}

TEST(stages, of_the_carried_recordings_are_within_bound_and_unbiased) {
  const std::map<std::string, names> judged{
      {"beta_near_two", {"A", "Ai", "w", "u", "h", "v_new", "o", "final_state"}},
      {"grouped_heads", {"g_cumsum_log2", "Ai", "w", "u", "h", "v_new", "o", "final_state"}},
      {"steep_gates", {}},
  };
  EXPECT_EQ(check_folder(testing::carried_recordings()), judged);
}

TEST(stages, of_the_external_recordings_are_within_bound_and_unbiased) {
  const fs::path folder = testing::external_recordings();
  if (folder.empty()) GTEST_SKIP() << "no recordings beside the checkout; set DELTAPROOF_RECORDINGS";
  std::size_t stages = 0;
  for (const auto& [name, judged] : check_folder(folder)) stages += judged.size();
  EXPECT_GT(stages, 0U);
}

}  // namespace
}  // namespace deltaproof
