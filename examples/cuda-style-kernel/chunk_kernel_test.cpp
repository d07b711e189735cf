// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/testing/gtest.hpp"
#include "run_kernel.hpp"

using namespace deltaproof;
using deltaproof::testing::keeps_plan;

class chunk_delta_rule : public ::testing::TestWithParam<const char*> {};

TEST_P(chunk_delta_rule, keeps_its_plan) {
  const problem p = generate({.regime = GetParam(), .op = op_kind::delta_rule, .tokens = 160, .key_dim = 32, .value_dim = 32});
  const result got = run_kernel(p, 64);  // your kernel: copied(result_view{.o = {bf16, o, {B, T, HV, V}}, ...}, p)
  EXPECT_THAT(got, keeps_plan(p, "fla-chunk-delta"));
}
INSTANTIATE_TEST_SUITE_P(on, chunk_delta_rule, ::testing::Values("typical", "repeated"));
