// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// 2000 hostile problems, each at every tier and through the solver's own escalation; 20 000 in hostile_deep.cpp.
#include <gtest/gtest.h>

#include "oracle/hostile_checks.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

void part(std::uint64_t i) {
  const std::uint64_t count = scaled(250);
  testing::run_hostile(1, i * count, (i + 1) * count, "property_oracle --gtest_filter=hostile.problems_0");
}

TEST(hostile, problems_0) { part(0); }
TEST(hostile, problems_1) { part(1); }
TEST(hostile, problems_2) { part(2); }
TEST(hostile, problems_3) { part(3); }
TEST(hostile, problems_4) { part(4); }
TEST(hostile, problems_5) { part(5); }
TEST(hostile, problems_6) { part(6); }
TEST(hostile, problems_7) { part(7); }

}  // namespace
}  // namespace deltaproof
