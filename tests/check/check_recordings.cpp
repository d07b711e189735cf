// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "deltaproof/check/check.hpp"
#include "support/recordings.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;

check_report check_files(const fs::path& problem_file, const fs::path& result_file) {
  notes_list notes;
  const safetensors_file file = read_safetensors(problem_file);
  const problem p = parse_problem(file, notes);
  const result r = read_result(result_file, p, sha256_hex(file.bytes()), notes);
  return check(p, r);
}

void expect_close(double got, const nlohmann::json& want, double relative, const std::string& what) {
  if (want.is_null()) return;
  const double w = want.is_string() ? NAN : want.get<double>();
  if (!std::isfinite(w)) return;
  EXPECT_NEAR(got, w, relative * std::fabs(w)) << what;
}

/// Every case of an index: the errors measured here agree with those its maker measured against an independent fp64
/// token loop, to 1e-6.
void check_folder(const fs::path& folder) {
  const auto index = nlohmann::json::parse(std::ifstream(folder / "index.json"));
  std::size_t compared = 0;
  for (const auto& entry : index) {
    const std::string name = entry["case"];
    for (const char* path : {"chunk", "recurrent"}) {
      const fs::path result_file = folder / (name + "." + path + ".safetensors");
      if (!fs::exists(result_file)) continue;
      SCOPED_TRACE(name + "." + path);
      const check_report report = check_files(folder / (name + ".problem.safetensors"), result_file);
      ASSERT_FALSE(report.tensors.empty());
      for (const tensor_report& t : report.tensors) {
        const std::string key = (t.name == "o" ? "o." : "ht.") + std::string(path == std::string("chunk") ? "chunk" : "recur");
        if (!entry["errors_vs_fp64"].contains(key)) continue;
        const auto& want = entry["errors_vs_fp64"][key];
        // A divergence leaves part of the tensor out, which the index does not.
        if (t.errors.skipped > 0 || t.errors.nonfinite > 0) continue;
        expect_close(t.errors.max_abs.value, want["max_abs"], 1e-6, key + " max_abs");
        expect_close(t.errors.rel_fro.value, want["rel_fro"], 1e-6, key + " rel_fro");
        expect_close(t.errors.fla_ratio.value, want["err_ratio"], 1e-6, key + " fla_ratio");
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, index.size());
}

TEST(check, agrees_with_the_index_of_the_carried_recordings) { check_folder(testing::carried_recordings()); }

TEST(check, agrees_with_the_index_of_the_external_recordings) {
  const fs::path folder = testing::external_recordings();
  if (folder.empty()) GTEST_SKIP() << "no recordings beside the checkout; set DELTAPROOF_RECORDINGS";
  check_folder(folder);
}

TEST(check, the_fp64_references_lie_within_radius_and_their_own_error) {
  const fs::path folder = testing::external_recordings();
  if (folder.empty()) GTEST_SKIP() << "no recordings beside the checkout; set DELTAPROOF_RECORDINGS";
  for (const auto& item : fs::directory_iterator(folder)) {
    const std::string file = item.path().filename();
    const auto at = file.find(".ref64.");
    if (at == std::string::npos || file.starts_with("delta_rawk_blowup")) continue;
    SCOPED_TRACE(file);
    const check_report report = check_files(folder / (file.substr(0, at) + ".problem.safetensors"), item.path());
    EXPECT_EQ(report.judged, verdict::measured);
    // An fp64 loop of 300 steps is good to some hundred roundings.
    for (const tensor_report& t : report.tensors) EXPECT_LT(t.errors.rel_fro.upper, 1e-13) << t.name;
  }
}

TEST(check, says_where_a_diverging_problem_diverges) {
  const fs::path folder = testing::external_recordings();
  if (folder.empty()) GTEST_SKIP() << "no recordings beside the checkout; set DELTAPROOF_RECORDINGS";
  const fs::path problem_file = folder / "delta_rawk_blowup_bf16.problem.safetensors";
  for (const char* path : {"chunk", "recurrent"}) {
    const check_report report =
        check_files(problem_file, folder / ("delta_rawk_blowup_bf16." + std::string(path) + ".safetensors"));
    ASSERT_TRUE(report.diverges);
    EXPECT_EQ(report.diverges->first.token, 88U);
    EXPECT_EQ(report.diverges->first.value_head, 1U);
    EXPECT_EQ(report.diverges->heads, 2U);
    EXPECT_EQ(report.judged, verdict::measured);
    EXPECT_EQ(report.tensors[0].errors.nonfinite, 0U);
    EXPECT_GT(report.tensors[0].errors.elements, 0U);
    EXPECT_EQ(report.tensors[1].judged, verdict::vacuous);
  }
}

TEST(check, a_kernel_outside_its_contract_is_refuted_with_its_first_non_finite_element) {
  const fs::path folder = testing::carried_recordings();
  const fs::path problem_file = folder / "steep_gates.problem.safetensors";
  const check_report chunk = check_files(problem_file, folder / "steep_gates.chunk.safetensors");
  EXPECT_EQ(chunk.judged, verdict::refuted);
  ASSERT_TRUE(chunk.tensors[0].first_nonfinite);
  EXPECT_EQ(chunk.tensors[0].first_nonfinite->token, 0U);
  EXPECT_EQ(chunk.tensors[0].first_nonfinite->head, 0U);
  EXPECT_EQ(chunk.tensors[0].first_nonfinite->element, std::vector<std::size_t>{0});
  EXPECT_EQ(check_files(problem_file, folder / "steep_gates.recurrent.safetensors").judged, verdict::measured);
}

}  // namespace
}  // namespace deltaproof
