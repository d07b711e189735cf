// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Limits of very many heads: their cost grows with their number, not with its square, and each is what it is in any order.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
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
    const std::vector<statistic> all = heads_of(20000, repeated, 1);
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

}  // namespace
}  // namespace deltaproof
