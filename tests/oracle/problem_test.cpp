// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/oracle/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "deltaproof/support/errors.hpp"
#include "files/corpus.hpp"

namespace deltaproof {
namespace {

using testing::packed_problem;
using testing::plain_problem;
using testing::zeros;

TEST(problem, names_its_dimensions) {
  const problem p = packed_problem();
  EXPECT_EQ(p.batch(), 1U);
  EXPECT_EQ(p.tokens(), 3U);
  EXPECT_EQ(p.steps(), 3U);
  EXPECT_EQ(p.key_heads(), 1U);
  EXPECT_EQ(p.value_heads(), 2U);
  EXPECT_EQ(p.key_dim(), 2U);
  EXPECT_EQ(p.value_dim(), 3U);
  EXPECT_EQ(p.sequence_count(), 2U);
  EXPECT_EQ(plain_problem().steps(), 6U);
}

TEST(problem, has_one_sequence_for_each_batch_or_offset) {
  problem p = packed_problem();
  EXPECT_EQ(p.sequences(), (std::vector<sequence_range>{{0, 0, 1}, {0, 1, 2}}));
  p.cu_seqlens = {0, 0, 3, 3};
  EXPECT_EQ(p.sequences(), (std::vector<sequence_range>{{0, 0, 0}, {0, 0, 3}, {0, 3, 0}}));
  p.cu_seqlens.clear();
  p.q = zeros(fp32, {2, 3, 1, 2}, "q");
  EXPECT_EQ(p.sequences(), (std::vector<sequence_range>{{0, 0, 3}, {1, 0, 3}}));
}

TEST(problem, maps_heads_in_groups_not_in_turn) {
  problem p = packed_problem();
  p.q = zeros(fp32, {1, 3, 2, 2}, "q");
  p.v = zeros(fp32, {1, 3, 6, 3}, "v");
  std::vector<std::size_t> heads;
  for (std::size_t i = 0; i < 6; ++i) heads.push_back(p.key_head(i));
  EXPECT_EQ(heads, (std::vector<std::size_t>{0, 0, 0, 1, 1, 1}));
}

TEST(problem, names_every_kind_and_takes_it_back) {
  for (const auto& [op, name] : op_names) EXPECT_EQ(op_named(name_of(op)), op) << name;
  for (const auto& [rule, name] : rule_names) EXPECT_EQ(rule_named(name_of(rule)), rule) << name;
  for (const auto& [activation, name] : activation_names) EXPECT_EQ(activation_named(name_of(activation)), activation) << name;
  EXPECT_THROW((void)name_of(static_cast<op_kind>(99)), domain_error);
}

TEST(problem, names_the_element_that_is_not_a_number) {
  problem p = packed_problem();
  std::vector<double> values(18, 0);
  values[11] = std::numeric_limits<double>::quiet_NaN();
  p.v = tensor::from_doubles(fp32, {1, 3, 2, 3}, values, "v");
  try {
    validate(p, "file");
    FAIL() << "NaN passed";
  } catch (const domain_error& e) {
    EXPECT_THAT(e.what(), ::testing::StartsWith("file: tensor v: NaN at index [0, 1, 1, 2]"));
  }
}

TEST(problem, finds_a_bad_value_anywhere_in_a_long_tensor) {
  for (const std::size_t at : {std::size_t{0}, std::size_t{4095}, std::size_t{4096}, std::size_t{9999}}) {
    problem p = plain_problem();
    std::vector<double> values(10000, 1);
    values[at] = std::numeric_limits<double>::infinity();
    p.num_householder = 1;
    p.q = zeros(bf16, {1, 10000, 1, 1}, "q");
    p.k = p.q;
    p.v = p.q;
    p.beta = tensor::from_doubles(bf16, {1, 10000, 1}, values, "beta");
    try {
      validate(p, "file");
      FAIL() << "+inf passed";
    } catch (const domain_error& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr("beta: +inf at index [0, " + std::to_string(at) + ", 0]"));
    }
  }
}

TEST(problem, takes_zero_steps_per_token_for_an_error) {
  problem p = plain_problem();
  p.num_householder = 0;
  EXPECT_THROW(validate(p, "file"), domain_error);
}

TEST(problem, gives_a_lone_offset_for_an_error) {
  problem p = packed_problem();
  p.cu_seqlens = {0};
  EXPECT_THROW(validate(p, "file"), shape_error);
}

}  // namespace
}  // namespace deltaproof
