// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gradients of recorded kernels: the certified adjoint finds the errors that automatic differentiation of a float64 token loop
// found (the README of tests/recordings/fla-0.6 and h100, and the index beside the external recordings), and the gradients of
// fp64 references.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/check/gradient_identities.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "support/recordings.hpp"

namespace deltaproof {
namespace {

struct seen_errors {
  double rel_fro = 0, max_abs = 0;
};
std::map<std::string, seen_errors> errors_of(const std::filesystem::path& problem_file,
                                             const std::filesystem::path& result_file) {
  notes_list notes;
  const safetensors_file file = read_safetensors(problem_file);
  const problem p = parse_problem(file, notes);
  const check_report report = check(p, read_result(result_file, p, sha256_hex(file.bytes()), notes), {});
  std::map<std::string, seen_errors> out;
  for (const tensor_report& t : report.tensors) {
    EXPECT_LE(t.errors.rel_fro.upper - t.errors.rel_fro.lower, 1e-6 * t.errors.rel_fro.value + 1e-9) << t.name;
    out[t.name] = {t.errors.rel_fro.value, t.errors.max_abs.value};
  }
  return out;
}

/// The cells of "| a | b |".
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    const auto from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
    out.push_back(from == std::string::npos ? "" : cell.substr(from, to - from + 1));
  }
  return out;
}

/// Compares the errors that the table of a folder's README states; returns how many.
std::size_t expect_errors_of_the_table(const std::filesystem::path& folder) {
  std::ifstream page(folder / "README.md");
  std::vector<std::string> header;
  std::size_t compared = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.empty() || line.front() != '|' || line.starts_with("|-")) continue;
    const auto cells = cells_of(line);
    if (header.empty()) {
      header = cells;
      continue;
    }
    if (cells.size() < header.size()) continue;  // another table
    const std::string name = cells[0].substr(0, cells[0].find('.'));
    const auto errors = errors_of(folder / (name + ".problem.safetensors"), folder / (cells[0] + ".safetensors"));
    for (std::size_t i = 3; i < header.size(); ++i) {
      if (cells[i].empty()) continue;
      const double want = std::stod(cells[i]);
      EXPECT_NEAR(errors.at(header[i]).rel_fro, want, 0.06 * std::pow(10, std::floor(std::log10(want))))
          << cells[0] << " " << header[i];
      ++compared;
    }
  }
  return compared;
}

TEST(recorded_gradients, have_the_errors_that_differentiation_of_a_token_loop_finds) {
  EXPECT_GE(expect_errors_of_the_table(testing::carried_recordings() / "fla-0.6"), 46U);
  EXPECT_GE(expect_errors_of_the_table(testing::carried_recordings() / "h100"), 86U);
}

TEST(recorded_gradients, of_the_shifted_gate_are_judged_by_its_plan) {
  const std::filesystem::path folder = testing::carried_recordings() / "h100";
  notes_list notes;
  const safetensors_file file = read_safetensors(folder / "kda_correlated.problem.safetensors");
  const problem p = parse_problem(file, notes);
  result r = read_result(folder / "kda_correlated.safe.safetensors", p, sha256_hex(file.bytes()), notes);
  check_options options;
  options.plans = {plan_named("fla-chunk-kda-shifted-gate")};
  options.judge.power = false;
  const check_report report = check(p, r, options);
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  EXPECT_TRUE(report.conformance->gradients.judged);
  // The first 16 rows of dk, an eighth too small.
  std::vector<double> dk = r.gradients.at("dk").to_doubles();
  for (std::size_t i = 0; i < 16 * p.key_dim(); ++i) dk[i] *= 0.875;
  r.gradients.at("dk") = tensor::from_doubles(fp64, r.gradients.at("dk").shape(), dk, "dk");
  EXPECT_EQ(check(p, r, options).judged, verdict::refuted);
}

void expect_identities(const std::filesystem::path& problem_file, const std::filesystem::path& result_file) {
  notes_list notes;
  const safetensors_file file = read_safetensors(problem_file);
  const problem p = parse_problem(file, notes);
  const gradient_identities found = check_gradient_identities(p, read_result(result_file, p, sha256_hex(file.bytes()), notes));
  EXPECT_EQ(found.judged, verdict::holds) << result_file << ": " << found.reason;
}

/// Of the results of a folder that have gradients; returns how many.
std::size_t expect_identities_in(const std::filesystem::path& folder) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".safetensors" || name.find(".problem.") != std::string::npos) continue;
    if (read_safetensors(entry.path()).find("dq") == nullptr) continue;
    expect_identities(entry.path().parent_path() / (name.substr(0, name.find('.')) + ".problem.safetensors"), entry.path());
    ++files;
  }
  return files;
}

TEST(recorded_gradients, satisfy_the_identities) {
  EXPECT_EQ(expect_identities_in(testing::carried_recordings() / "fla-0.6"), 7U);
  EXPECT_EQ(expect_identities_in(testing::carried_recordings() / "h100"), 11U);
}

std::filesystem::path backward_recordings() {
  const auto folder = testing::external_recordings();
  return folder.empty() || !std::filesystem::exists(folder.parent_path() / "backward/index.json")
             ? std::filesystem::path()
             : folder.parent_path() / "backward";
}

/// The errors that an exact fp64 adjoint found, by the index of a folder: four digits of each.
std::size_t expect_errors_of_the_index(const std::filesystem::path& folder) {
  std::size_t compared = 0;
  for (const auto& row : nlohmann::json::parse(std::ifstream(folder / "index.json"))) {
    const std::string name = row.at("case");
    const auto errors = errors_of(folder / row.at("problem").get<std::string>(), folder / row.at("result").get<std::string>());
    for (const auto& [tensor, stated] : row.at("errors").items()) {
      const auto found = errors.find(tensor);
      if (found == errors.end()) continue;  // dq_hat, dk_hat
      const double rel_fro = stated.at("rel_fro"), max_abs = stated.at("max_abs");
      EXPECT_NEAR(found->second.rel_fro, rel_fro, 6e-4 * rel_fro) << name << " " << tensor;
      EXPECT_NEAR(found->second.max_abs, max_abs, 6e-4 * max_abs) << name << " " << tensor;
      compared += 2;
    }
  }
  return compared;
}

TEST(recorded_gradients, have_the_errors_of_their_index) {
  EXPECT_GE(expect_errors_of_the_index(testing::carried_recordings() / "backward"), 100U);
}

TEST(recorded_gradients, of_the_external_recordings_have_the_errors_of_their_index) {
  const auto folder = backward_recordings();
  if (folder.empty()) GTEST_SKIP() << "no recordings of backward passes beside the checkout";
  EXPECT_GE(expect_errors_of_the_index(folder), 160U);
}

TEST(recorded_gradients, of_the_external_recordings_satisfy_the_identities) {
  const auto folder = backward_recordings();
  if (folder.empty()) GTEST_SKIP() << "no recordings of backward passes beside the checkout";
  for (const auto& row : nlohmann::json::parse(std::ifstream(folder / "index.json")))
    expect_identities(folder / row.at("problem").get<std::string>(), folder / row.at("result").get<std::string>());
}

TEST(recorded_gradients, agree_with_independent_fp64_gradients) {
  const auto folder = backward_recordings();
  if (folder.empty()) GTEST_SKIP() << "no recordings of backward passes beside the checkout";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (file.find(".ref64.") == std::string::npos) continue;
    ++files;
    notes_list notes;
    const problem p = read_problem(folder / (file.substr(0, file.find('.')) + ".problem.safetensors"), notes);
    const reference_gradients truth = solve_gradients(p);
    const safetensors_file given = read_safetensors(entry.path());
    for (const auto& [name, want] : truth.tensors) {
      const safetensors_entry* found = given.find(name);
      if (found == nullptr) continue;
      const std::vector<double> got = given.load(*found).to_doubles();
      double error = 0, size = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        error += (got[i] - want.value[i]) * (got[i] - want.value[i]);
        size += want.value[i] * want.value[i];
      }
      EXPECT_LE(std::sqrt(error), 1e-12 * std::sqrt(size)) << file << " " << name;
    }
  }
  EXPECT_GE(files, 6U);
}

}  // namespace
}  // namespace deltaproof
