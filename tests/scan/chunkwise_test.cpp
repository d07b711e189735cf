// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/scan/chunkwise.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/number/rational.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using vec = std::vector<rational>;
using mat = matrix<rational>;

const inverse_method forward = inverse_named("forward");

rational half() { return rational(1) / 2; }
rational quarter() { return rational(1) / 4; }

// k_1 = (1, 0), b_1 = 1/2, v_1 = 4; k_2 = (1, 1), b_2 = 1, v_2 = 3; q_1 = (1, 1), q_2 = (2, 1); S_0 = (2, 4).
sequence<rational> two_steps() {
  auto s = sequence<rational>::zeros(2, 1, 2, 1);
  s.q = vec{1, 1, 2, 1};
  s.k = vec{1, 0, 1, 1};
  s.v = vec{4, 3};
  s.step = vec{half(), 1};
  s.initial_state = mat(2, 1, vec{2, 4});
  return s;
}

// A_21 = 1, w = (1/2, 0), (1/2, 1), u = 2, 1; v_new = 2 - 1, 1 - (1 + 4); S = (2, 4) + (1, 0) - 4 (1, 1).
TEST(chunkwise, two_steps_by_hand) {
  const auto got = chunkwise<plain<rational>>(two_steps(), 2, forward);
  EXPECT_EQ(got.chunk, 2U);
  EXPECT_EQ(got.cumulative_decay.rows(), 2U);
  EXPECT_EQ(got.cumulative_decay.cols(), 0U);
  EXPECT_EQ(got.A, mat(2, 2, vec{0, 0, 1, 0}));
  EXPECT_EQ(got.Ai, mat(2, 2, vec{1, 0, -1, 1}));
  EXPECT_EQ(got.w, mat(2, 2, vec{half(), 0, half(), 1}));
  EXPECT_EQ(got.u, mat(2, 1, vec{2, 1}));
  ASSERT_EQ(got.h.size(), 1U);
  EXPECT_EQ(got.h[0], mat(2, 1, vec{2, 4}));
  EXPECT_EQ(got.v_new, mat(2, 1, vec{1, -4}));
  EXPECT_EQ(got.Aqk, mat(2, 2, vec{1, 0, 2, 3}));
  EXPECT_EQ(got.o, mat(2, 1, vec{7, -2}));
  EXPECT_EQ(got.final_state, mat(2, 1, vec{-1, 0}));
}

// In chunks of one row: A = 0, w = b k, and the second chunk starts from (3, 4).
TEST(chunkwise, two_chunks_by_hand) {
  const auto got = chunkwise<plain<rational>>(two_steps(), 1, forward);
  EXPECT_EQ(got.A, mat(2, 1, vec{0, 0}));
  EXPECT_EQ(got.Ai, mat(2, 1, vec{1, 1}));
  EXPECT_EQ(got.w, mat(2, 2, vec{half(), 0, 1, 1}));
  EXPECT_EQ(got.u, mat(2, 1, vec{2, 3}));
  ASSERT_EQ(got.h.size(), 2U);
  EXPECT_EQ(got.h[1], mat(2, 1, vec{3, 4}));
  EXPECT_EQ(got.v_new, mat(2, 1, vec{1, -4}));
  EXPECT_EQ(got.Aqk, mat(2, 1, vec{1, 3}));
  EXPECT_EQ(got.o, mat(2, 1, vec{7, -2}));
  EXPECT_EQ(got.final_state, mat(2, 1, vec{-1, 0}));
}

// Decays 1/2 and 1/4: D = 1/2, 1/8; A_21 = 1/4; w_1 = 1/2 (1/2, 0), w_2 = (1/8, 1/8) - 1/4 (1/4, 0); u = 2, 3 - 1/4 2;
// v_new = 2 - 1/2, 5/2 - (1/8 + 1/2); S = 1/8 (2, 4) + 1/4 3/2 (1, 0) + 15/8 (1, 1).
TEST(chunkwise, one_decay_a_token_by_hand) {
  auto s = two_steps();
  s.decay = vec{half(), quarter()};
  const auto got = chunkwise<plain<rational>>(s, 2, forward);
  const auto eighths = [](int n) { return rational(n) / 8; };
  EXPECT_EQ(got.cumulative_decay, mat(2, 1, vec{half(), eighths(1)}));
  EXPECT_EQ(got.A, mat(2, 2, vec{0, 0, quarter(), 0}));
  EXPECT_EQ(got.Ai, mat(2, 2, vec{1, 0, -quarter(), 1}));
  EXPECT_EQ(got.w, mat(2, 2, vec{quarter(), 0, rational(1) / 16, eighths(1)}));
  EXPECT_EQ(got.u, mat(2, 1, vec{2, eighths(20)}));
  EXPECT_EQ(got.v_new, mat(2, 1, vec{eighths(12), eighths(15)}));
  EXPECT_EQ(got.Aqk, mat(2, 2, vec{1, 0, half(), 3}));
  EXPECT_EQ(got.final_state, mat(2, 1, vec{eighths(20), eighths(19)}));
  EXPECT_EQ(got.o, mat(2, 1, vec{eighths(36), eighths(59)}));  // (5/2, 2) (1, 1); (5/2, 19/8) (2, 1)
}

// Decays (1, 1) and (1/2, 0): the second channel is forgotten, S = (1/2 3, 0) + (3 - 3/2) (1, 1).
TEST(chunkwise, a_decay_of_zero_in_one_channel_by_hand) {
  auto s = two_steps();
  s.decay = vec{1, 1, half(), 0};
  const auto got = chunkwise<plain<rational>>(s, 2, forward);
  EXPECT_EQ(got.cumulative_decay, mat(2, 2, vec{1, 1, half(), 0}));
  EXPECT_EQ(got.A, mat(2, 2, vec{0, 0, half(), 0}));
  EXPECT_EQ(got.w, mat(2, 2, vec{half(), 0, quarter(), 0}));
  EXPECT_EQ(got.u, mat(2, 1, vec{2, 2}));
  EXPECT_EQ(got.v_new, mat(2, 1, vec{1, rational(3) / 2}));
  EXPECT_EQ(got.Aqk, mat(2, 2, vec{1, 0, 1, 3}));
  EXPECT_EQ(got.final_state, mat(2, 1, vec{3, rational(3) / 2}));
}

// Both rows in one token: its decay acts once, its query reads after the second, whatever the chunks.
TEST(chunkwise, two_steps_of_one_token_by_hand) {
  auto s = sequence<rational>::zeros(1, 2, 2, 1, decay_kind::per_token);
  s.q = vec{2, 1};
  s.k = two_steps().k;
  s.v = two_steps().v;
  s.step = two_steps().step;
  s.decay = vec{half()};
  s.initial_state = mat(2, 1, vec{4, 8});
  const auto whole = chunkwise<plain<rational>>(s, 2, forward);
  EXPECT_EQ(whole.cumulative_decay, mat(2, 1, vec{half(), half()}));
  EXPECT_EQ(whole.A, mat(2, 2, vec{0, 0, 1, 0}));
  EXPECT_EQ(whole.Aqk, mat(2, 2, vec{0, 0, 2, 3}));
  EXPECT_EQ(whole.o, mat(1, 1, vec{-2}));
  EXPECT_EQ(whole.final_state, mat(2, 1, vec{-1, 0}));
  const auto split = chunkwise<plain<rational>>(s, 1, forward);  // the second chunk begins inside the token
  EXPECT_EQ(split.cumulative_decay, mat(2, 1, vec{half(), 1}));
  EXPECT_EQ(split.Aqk, mat(2, 1, vec{0, 3}));
  EXPECT_EQ(split.h[1], mat(2, 1, vec{3, 4}));
  EXPECT_EQ(split.o, whole.o);
  EXPECT_EQ(split.final_state, whole.final_state);
}

TEST(chunkwise, no_tokens_leave_the_initial_state) {
  auto s = sequence<rational>::zeros(0, 3, 2, 3);
  s.initial_state = mat(2, 3, vec{1, 2, 3, 4, 5, 6});
  const auto got = chunkwise<plain<rational>>(s, 64, forward);
  EXPECT_EQ(got.final_state, s.initial_state);
  EXPECT_EQ(got.o.rows(), 0U);
  EXPECT_EQ(got.o.cols(), 3U);
  EXPECT_TRUE(got.h.empty());
  EXPECT_EQ(got.A.rows(), 0U);
  s.initial_state = mat();
  EXPECT_EQ(chunkwise<plain<rational>>(s, 64, forward).final_state, mat(2, 3));
}

TEST(chunkwise, a_chunk_longer_than_the_sequence_keeps_its_width) {
  const auto got = chunkwise<plain<rational>>(two_steps(), 5, forward);
  EXPECT_EQ(got.A, mat(2, 5, vec{0, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(got.Ai, mat(2, 5, vec{1, 0, 0, 0, 0, -1, 1, 0, 0, 0}));
  EXPECT_EQ(got.final_state, mat(2, 1, vec{-1, 0}));
}

TEST(chunkwise, refuses_a_chunk_of_no_rows_and_wrong_shapes) {
  EXPECT_THROW((void)chunkwise<plain<rational>>(two_steps(), 0, forward), shape_error);
  std::string message;
  try {
    (void)chunkwise<plain<rational>>(two_steps(), 0, forward);
  } catch (const shape_error& e) {
    message = e.what();
  }
  EXPECT_THAT(message, HasSubstr("chunk length is 0"));
  auto s = two_steps();
  s.step.push_back(1);
  EXPECT_THROW((void)chunkwise<plain<rational>>(s, 2, forward), shape_error);
  s = two_steps();
  s.initial_state = mat(1, 2);
  EXPECT_THROW((void)chunkwise<plain<rational>>(s, 2, forward), shape_error);
}

sequence<float> in_floats() {
  return convert<float>(two_steps(), [](const rational& x) { return round_to<float>(x); });
}

TEST(chunkwise, overflow_and_nan_are_findings) {
  for (const named_inverse& row : inverse_methods) {
    auto s = in_floats();
    s.k = {1e30F, 0, 1e30F, 1e30F};
    chunkwise_stages<float, float> got;
    EXPECT_NO_THROW(got = chunkwise<plain<float>>(s, 2, row.method)) << row.name;
    EXPECT_TRUE(std::isinf(got.A(1, 0))) << row.name;
    EXPECT_FALSE(std::isfinite(got.final_state(0, 0))) << row.name;
    s = in_floats();
    s.v[0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_NO_THROW(got = chunkwise<plain<float>>(s, 2, row.method)) << row.name;
    EXPECT_TRUE(std::isnan(got.final_state(0, 0)) && std::isnan(got.o(0, 0)) && std::isnan(got.o(1, 0))) << row.name;
  }
}

TEST(chunkwise, log2_of_the_cumulative_decay) {
  auto s = sequence<float>::zeros(4, 1, 1, 1, decay_kind::per_token);
  s.decay = {0.5F, 0.25F, 0.5F, 0.0F};
  const auto log = g_cumsum_log2(chunkwise<plain<float>>(s, 2, forward));
  EXPECT_EQ(log, matrix<double>(4, 1, std::vector<double>{-1, -3, -1, -std::numeric_limits<double>::infinity()}));
  s.decay.clear();
  EXPECT_EQ(g_cumsum_log2(chunkwise<plain<float>>(s, 2, forward)).size(), 0U);
}

// bf16 operands, fp32 sums, one row a chunk. Row 1 makes S = 1. Row 2, k = 2^-9, v = 1: v_new = 1 - 2^-9 is stored as 1, a tie
// to even, and S = 1 + 2^-9 in fp32. Row 3, b = 0, reads h, which is stored as 1.
TEST(chunkwise, stages_are_stored_and_the_state_is_not) {
  using half = rounded<bf16>;
  using kernel = arithmetic<half, exact_product, float, sequential>;
  auto s = sequence<half>::zeros(3, 1, 1, 1);
  const auto stored = [](std::vector<double> x) {
    std::vector<half> result;
    for (const double value : x) result.push_back(round_to<half>(value));
    return result;
  };
  s.q = s.v = stored({1, 1, 1});
  s.k = stored({1, 0x1p-9, 1});
  s.step = stored({1, 1, 0});
  const auto got = chunkwise<kernel>(s, 1, forward);
  EXPECT_EQ(lift<double>(got.v_new(1, 0)), 1);
  EXPECT_EQ(got.o(1, 0), 1 + 0x1p-9F);
  EXPECT_EQ(lift<double>(got.h[2](0, 0)), 1);
  EXPECT_EQ(got.o(2, 0), 1.0F);
  EXPECT_EQ(got.final_state(0, 0), 1 + 0x1p-9F);
}

}  // namespace
}  // namespace deltaproof
