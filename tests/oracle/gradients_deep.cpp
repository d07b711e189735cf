// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gradients of 20 000 hostile problems in four parts. DELTAPROOF_HOSTILE_FROM starts elsewhere.
#include <gtest/gtest.h>

#include <cstdlib>

#include "oracle/gradient_checks.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

void part(std::uint64_t i) {
  const char* const from = std::getenv("DELTAPROOF_HOSTILE_FROM");
  const std::uint64_t first = from != nullptr ? std::strtoull(from, nullptr, 10) : 1000, count = scaled(5000);
  testing::judge_problems(first + i * count, count);
}

TEST(gradients_deep, problems_0) { part(0); }
TEST(gradients_deep, problems_1) { part(1); }
TEST(gradients_deep, problems_2) { part(2); }
TEST(gradients_deep, problems_3) { part(3); }

}  // namespace
}  // namespace deltaproof
