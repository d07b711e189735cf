// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// An emulated backward pass loses on each recorded problem what the recorded kernel lost there, gradient by gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "emulate/gradient_runs.hpp"
#include "support/recordings.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;
using testing::relative_distance;

std::vector<fs::path> recorded_results() {
  std::vector<fs::path> folders{testing::carried_recordings() / "backward"}, found;
  if (const fs::path other = testing::external_recordings(); !other.empty() && fs::exists(other.parent_path() / "backward"))
    folders.push_back(other.parent_path() / "backward");
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.find(".chunk.") == std::string::npos && name.find(".recurrent.") == std::string::npos) continue;
      if (std::none_of(found.begin(), found.end(), [&](const fs::path& x) { return x.filename() == name; }))
        found.push_back(entry);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(emulated_gradients, err_as_the_recorded_kernels_do) {
  std::vector<double> ratios;
  for (const fs::path& file : recorded_results()) {
    const std::string name = file.filename().string(), stem = name.substr(0, name.find('.'));
    notes_list notes;
    const problem p = read_problem(file.parent_path() / (stem + ".problem.safetensors"), notes);
    const safetensors_file raw = read_safetensors(file);
    const result recorded = parse_result(raw, p, std::string(raw.metadata("problem_sha256").value_or("")), notes);
    const path_kind path = path_of(recorded);
    const auto plans = plans_for_kernel(recorded.kernel, p, path);
    ASSERT_FALSE(plans.empty()) << name;
    const plan_variant v = gradient_variants(*plans.front(), p, path, recorded.chunk_size.value_or(0)).front();
    const result run = emulate_gradients(p, v, {}, 1);
    const reference_gradients truth = solve_gradients(p);
    for (const auto& [gradient, t] : truth.tensors) {
      if (recorded.gradients.count(gradient) == 0) continue;
      const double kernel = relative_distance(recorded.gradients.at(gradient).to_doubles(), t.value),
                   ours = relative_distance(run.gradients.at(gradient).to_doubles(), t.value),
                   apart =
                       relative_distance(run.gradients.at(gradient).to_doubles(), recorded.gradients.at(gradient).to_doubles());
      std::printf("%-24s %-15s kernel %.3e, emulated %.3e, apart %.3e\n", stem.c_str(), gradient.c_str(), kernel, ours, apart);
      if (kernel == 0) {
        EXPECT_EQ(ours, 0) << name << " " << gradient;
        continue;
      }
      ratios.push_back(ours / kernel);
      EXPECT_GT(ours / kernel, 0.5) << name << " " << gradient;
      EXPECT_LT(ours / kernel, 2.0) << name << " " << gradient;
      EXPECT_EQ(run.gradients.at(gradient).element_format(), recorded.gradients.at(gradient).element_format()) << gradient;
    }
  }
  ASSERT_GT(ratios.size(), 40U);
  std::sort(ratios.begin(), ratios.end());
  const double median = ratios[ratios.size() / 2];
  std::printf("%zu gradients: emulated over recorded error %.2f to %.2f, median %.3f\n", ratios.size(), ratios.front(),
              ratios.back(), median);
  EXPECT_GT(median, 0.9);
  EXPECT_LT(median, 1.1);
}

}  // namespace
}  // namespace deltaproof
