// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// 20 000 hostile problems that the ordinary tests have not seen: no radius below the error, no wrong rounding, no radius of 0
// that is not exact.
#include <gtest/gtest.h>

#include "oracle/hostile_checks.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

void part(std::uint64_t i) {
  const std::uint64_t count = scaled(5000);
  testing::run_hostile(2, i * count, (i + 1) * count, "deep_oracle --gtest_filter=hostile_deep.problems_0");
}

TEST(hostile_deep, problems_0) { part(0); }
TEST(hostile_deep, problems_1) { part(1); }
TEST(hostile_deep, problems_2) { part(2); }
TEST(hostile_deep, problems_3) { part(3); }

}  // namespace
}  // namespace deltaproof
