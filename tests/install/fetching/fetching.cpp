// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/testing/gtest.hpp"

TEST(fetching, gives_the_matchers) {
  const deltaproof::problem p = deltaproof::generate({.tokens = 20, .key_dim = 16, .value_dim = 16});
  EXPECT_THAT(deltaproof::result{}, ::testing::Not(deltaproof::testing::keeps_plan(p, "fp32")));
}
