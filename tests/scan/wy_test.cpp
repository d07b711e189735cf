// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/scan/wy.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "deltaproof/number/rational.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using vec = std::vector<rational>;

const rational one_half = rational(1) / 2;

// k_1 = (1, 0), b_1 = 1/2, v_1 = 4:  w_1 = (1/2, 0), u_1 = 2
// k_2 = (1, 1), b_2 = 1,   v_2 = 3:  k_1 . k_2 = 1, w_2 = (1, 1) - w_1 = (1/2, 1), u_2 = 3 - 2 = 1
sequence<rational> two_keys() {
  auto s = sequence<rational>::zeros(2, 1, 2, 1);
  s.k = vec{1, 0, 1, 1};
  s.v = vec{4, 3};
  s.step = vec{one_half, 1};
  return s;
}

TEST(wy_recursion, two_steps_by_hand) {
  const auto form = wy_recursion(two_keys(), 0, 2);
  EXPECT_EQ(form.w, matrix<rational>(2, 2, vec{one_half, 0, one_half, 1}));
  EXPECT_EQ(form.u, matrix<rational>(2, 1, vec{2, 1}));
  EXPECT_EQ(form.decay, (vec{1, 1}));
  // (I - k_2 k_2^T)(I - 1/2 k_1 k_1^T) = [[0, -1], [-1, 0]] [[1/2, 0], [0, 1]]
  EXPECT_EQ(wy_transition(form), matrix<rational>(2, 2, vec{0, -1, -one_half, 0}));
  EXPECT_EQ(wy_write(form), matrix<rational>(2, 1, vec{3, 1}));
  EXPECT_EQ(wy_apply(form, matrix<rational>(2, 1, vec{2, 4})), matrix<rational>(2, 1, vec{-1, 0}));
}

// The same keys with a decay a_2 = (1/2, 0) between them: D_2 = (1/2, 0), the first key becomes (1/2, 0),
// overlap 1/2, w_2 = (1/2, 0) - 1/2 (1/2, 0) = (1/4, 0), u_2 = 3 - 1/2 2 = 2.
TEST(wy_recursion, a_decay_of_zero_needs_no_inverse) {
  auto s = two_keys();
  s.decay = vec{1, 1, one_half, 0};
  const auto form = wy_recursion(s, 0, 2);
  EXPECT_EQ(form.decay, (vec{one_half, 0}));
  EXPECT_EQ(form.keys, matrix<rational>(2, 2, vec{one_half, 0, 1, 1}));
  EXPECT_EQ(form.w, matrix<rational>(2, 2, vec{one_half, 0, one_half / 2, 0}));
  EXPECT_EQ(form.u, matrix<rational>(2, 1, vec{2, 2}));
}

TEST(wy_recursion, an_empty_run_changes_nothing) {
  const auto form = wy_recursion(two_keys(), 1, 0);
  EXPECT_EQ(wy_transition(form), identity<rational>(2));
  EXPECT_EQ(wy_write(form), matrix<rational>(2, 1));
  const matrix<rational> state(2, 1, vec{5, 7});
  EXPECT_EQ(wy_apply(form, state), state);
}

TEST(wy_recursion, refuses_runs_that_leave_the_sequence_and_states_of_another_shape) {
  EXPECT_THROW((void)wy_recursion(two_keys(), 1, 2), shape_error);
  EXPECT_THROW((void)wy_recursion(two_keys(), 3, 0), shape_error);
  EXPECT_THROW((void)wy_apply(wy_recursion(two_keys(), 0, 2), matrix<rational>(1, 2)), shape_error);
}

}  // namespace
}  // namespace deltaproof
