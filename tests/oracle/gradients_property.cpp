// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gradients of 200 hostile problems; of 20 000 in gradients_deep.cpp.
#include <gtest/gtest.h>

#include "oracle/gradient_checks.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

TEST(gradients, of_hostile_problems_are_within_their_radii) { testing::judge_problems(0, scaled(200)); }

}  // namespace
}  // namespace deltaproof
