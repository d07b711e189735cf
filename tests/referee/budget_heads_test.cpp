// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Limits of very many heads: their cost grows with their number, not with its square, and each is what it is in any order.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "deltaproof/referee/budget.hpp"

namespace deltaproof {
namespace {

std::vector<statistic> heads_of(std::size_t heads, std::size_t repeated, std::size_t buckets) {
  philox random(7);
  std::vector<statistic> out;
  for (std::size_t b = 0; b < buckets; ++b) {
    for (std::size_t h = 0; h < heads; ++h) {
      statistic s;
      s.tensor = "o";
      s.bucket = b;
      s.head = h;
      s.norm = norm_kind::rms;
      s.samples.resize(2);
      for (auto& runs : s.samples) {
        for (std::size_t i = 0; i < (h < repeated ? 2 + h % 2 : 1); ++i) runs.push_back(std::exp(0.1 * random.normal()));
      }
      out.push_back(std::move(s));
    }
  }
  return out;
}

TEST(BudgetOfManyHeads, CostsTimeInProportion) {
  for (const std::size_t repeated : {std::size_t{20000}, std::size_t{2000}}) {
    std::vector<statistic> all = heads_of(20000, repeated, 1);
    for (std::size_t h = repeated; h < all.size(); ++h) {
      all[h].few_runs = true;
      for (auto& runs : all[h].samples) runs.push_back(runs.front() * 1.1);
    }
    const auto start = std::chrono::steady_clock::now();
    const auto limits = thresholds(all, {1e-4, all.size()});
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << repeated;
    for (const threshold& t : limits) ASSERT_TRUE(t.enough) << t.provenance;
  }
}

TEST(BudgetOfManyHeads, IsTheSameInAnyOrder) {
  const std::vector<statistic> all = heads_of(40, 5, 3);
  const std::vector<statistic> backwards(all.rbegin(), all.rend());
  const auto a = thresholds(all, {1e-4, all.size()}), b = thresholds(backwards, {1e-4, all.size()});
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].value, b[a.size() - 1 - i].value);
    EXPECT_EQ(a[i].provenance, b[a.size() - 1 - i].provenance);
  }
}

/// Head 0 runs often and scatters by about 0.1; head 1 runs four times in its first bucket, each `scatter` times as far from the
/// mean as a run of head 0, and once in the second.
std::vector<statistic> with_few_runs(double scatter) {
  std::vector<statistic> out;
  for (std::size_t b = 0; b < 2; ++b) {
    statistic often{"o", b, 0, norm_kind::rms, 0, {{}}}, few{"o", b, 1, norm_kind::rms, 0, {{}}};
    for (int r = 0; r < 20; ++r) often.samples[0].push_back(std::exp(r % 2 == 0 ? 0.1 : -0.1));
    for (int r = 0; r < (b == 0 ? 4 : 1); ++r)
      few.samples[0].push_back(std::exp(b == 1 ? 0 : scatter * std::sqrt(15.0 / 19) * (r % 2 == 0 ? 0.1 : -0.1)));
    few.few_runs = true;
    out.push_back(std::move(often));
    out.push_back(std::move(few));
  }
  return out;
}

// sum (x - mean)^2 / (n - 1): 20 / 19 of head 0, 4 / 3 scatter^2 15 / 19 of head 1.
TEST(BudgetOfManyHeads, SpreadsAHeadOfFewRunsAsManyTimesAsTheseScatterMore) {
  const std::vector<statistic> alike = with_few_runs(1), wider = with_few_runs(2), narrower = with_few_runs(0.5);
  const auto log_limit = [](const std::vector<statistic>& all, std::size_t i) {
    return std::log(thresholds(all, {1e-4, 4})[i].value);
  };
  const auto limits = thresholds(wider, {1e-4, 4});
  for (const std::size_t bucket : {std::size_t{0}, std::size_t{1}}) {
    const std::size_t often = 2 * bucket, few = often + 1;
    EXPECT_NEAR(limits[few].spread / limits[often].spread, 2, 1e-12);
    EXPECT_NEAR(log_limit(wider, few) / log_limit(alike, few), 2, 0.1);  // a little more: of a shape with more degrees
    EXPECT_NEAR(log_limit(narrower, few) / log_limit(alike, few), 1, 0.1);
    EXPECT_NE(limits[few].provenance.find("2 times theirs"), std::string::npos) << limits[few].provenance;
    EXPECT_EQ(limits[often].provenance.find("times theirs"), std::string::npos) << limits[often].provenance;
  }
}

// Residuals of all tensors count alike; those of another norm do not.
TEST(BudgetOfManyHeads, SpreadsAHeadOfFewRunsByAllTensorsAndItsOwnNorm) {
  std::vector<statistic> all = with_few_runs(1);
  const auto add = [&](const char* tensor, norm_kind norm, double scatter) {
    for (statistic s : with_few_runs(scatter)) {
      s.tensor = tensor;
      s.norm = norm;
      all.push_back(std::move(s));
    }
  };
  add("o", norm_kind::max, 3);
  EXPECT_EQ(thresholds(all, {1e-4, 8})[3].provenance.find("times theirs"), std::string::npos);
  add("final_state", norm_kind::rms, 3);
  const auto limits = thresholds(all, {1e-4, 12});
  for (const std::size_t of_few : {3U, 11U}) EXPECT_NEAR(limits[of_few].spread / limits[of_few - 1].spread, std::sqrt(5), 1e-12);
}

}  // namespace
}  // namespace deltaproof
