// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/scan/sequence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rational.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;

sequence<double> sound() { return sequence<double>::zeros(3, 2, 4, 5, decay_kind::per_token); }

std::string message_of(const sequence<double>& s) {
  try {
    s.validate();
  } catch (const shape_error& e) {
    return e.what();
  }
  return "valid";
}

TEST(sequence, of_zeros_has_the_shapes_asked_for) {
  const auto s = sequence<double>::zeros(3, 2, 4, 5, decay_kind::per_channel);
  EXPECT_EQ(s.q.size(), 12u);
  EXPECT_EQ(s.k.size(), 24u);
  EXPECT_EQ(s.v.size(), 30u);
  EXPECT_EQ(s.step.size(), 6u);
  EXPECT_EQ(s.decay.size(), 12u);
  EXPECT_EQ(s.start(), matrix<double>(4, 5));
  EXPECT_EQ(s.rows(), 6u);
}

TEST(sequence, rows_are_where_the_files_have_them) {
  auto s = sound();
  for (std::size_t i = 0; i < s.k.size(); ++i) s.k[i] = static_cast<double>(i);
  for (std::size_t i = 0; i < s.v.size(); ++i) s.v[i] = static_cast<double>(i);
  EXPECT_EQ(s.k_row(3)[1], 13);
  EXPECT_EQ(s.v_row(3)[1], 16);
  EXPECT_EQ(s.k_row(5).size(), 4u);
}

TEST(sequence, tells_the_kind_of_decay_by_its_size) {
  EXPECT_EQ(sound().decays(), decay_kind::per_token);
  EXPECT_EQ(sequence<double>::zeros(3, 2, 4, 5).decays(), decay_kind::none);
  EXPECT_EQ(sequence<double>::zeros(3, 2, 4, 5, decay_kind::per_channel).decays(), decay_kind::per_channel);
  EXPECT_EQ(sequence<double>::zeros(3, 1, 1, 1, decay_kind::per_channel).decays(), decay_kind::per_token);
  EXPECT_EQ(sequence<double>::zeros(0, 1, 4, 1, decay_kind::per_channel).decays(), decay_kind::none);
  EXPECT_TRUE(sequence<double>::zeros(3, 2, 4, 5).decay_of(1).empty());
  EXPECT_EQ(sound().decay_of(2).size(), 1u);
  EXPECT_EQ(sequence<double>::zeros(3, 2, 4, 5, decay_kind::per_channel).decay_of(2).size(), 4u);
}

TEST(sequence, refuses_each_wrong_shape_naming_operand_and_both_values) {
  EXPECT_EQ(message_of(sound()), "valid");
  auto s = sound();
  s.q.pop_back();
  EXPECT_THAT(message_of(s), ::testing::AllOf(HasSubstr("q holds 11"), HasSubstr("tokens * key_dim = 12")));
  s = sound();
  s.k.push_back(0);
  EXPECT_THAT(message_of(s), ::testing::AllOf(HasSubstr("k holds 25"), HasSubstr("= 24")));
  s = sound();
  s.v.resize(15);
  EXPECT_THAT(message_of(s), ::testing::AllOf(HasSubstr("v holds 15"), HasSubstr("= 30")));
  s = sound();
  s.step.resize(3);
  EXPECT_THAT(message_of(s), ::testing::AllOf(HasSubstr("step holds 3"), HasSubstr("= 6")));
  s = sound();
  s.decay.resize(6);
  EXPECT_THAT(message_of(s), ::testing::AllOf(HasSubstr("decay holds 6"), HasSubstr("per token (3)"), HasSubstr("(12)")));
  s = sound();
  s.initial_state = matrix<double>(5, 4);
  EXPECT_THAT(message_of(s), ::testing::AllOf(HasSubstr("5 x 4"), HasSubstr("4 x 5"), HasSubstr("transposed")));
  s = sound();
  s.initial_state = matrix<double>(0, 5);
  EXPECT_THAT(message_of(s), HasSubstr("0 x 5"));
  s = sound();
  s.tokens = 4;
  EXPECT_THAT(message_of(s), HasSubstr("q holds 12"));
}

TEST(sequence, refuses_dimensions_of_zero_but_not_zero_tokens) {
  EXPECT_THROW((void)sequence<double>::zeros(1, 0, 1, 1), shape_error);
  EXPECT_THROW((void)sequence<double>::zeros(1, 1, 0, 1), shape_error);
  EXPECT_THROW((void)sequence<double>::zeros(1, 1, 1, 0), shape_error);
  EXPECT_NO_THROW((void)sequence<double>::zeros(0, 1, 1, 1));
}

TEST(sequence, validates_shapes_and_leaves_values_alone) {
  auto s = sound();
  s.q[0] = std::nan("");
  s.step[0] = -1e300;
  s.decay[0] = 2;
  EXPECT_NO_THROW(s.validate());
}

TEST(sequence, without_initial_state_starts_from_zeros) {
  auto s = sound();
  s.initial_state = matrix<double>();
  EXPECT_NO_THROW(s.validate());
  EXPECT_EQ(s.start(), matrix<double>(4, 5));
}

TEST(sequence, converts_every_operand) {
  auto s = sequence<double>::zeros(1, 1, 1, 2, decay_kind::per_token);
  s.q = {0.5};
  s.k = {0.25};
  s.v = {1, 2};
  s.step = {1.5};
  s.decay = {0.75};
  s.initial_state(0, 1) = 3;
  const auto exactly = convert<rational>(s, [](double x) { return lift<rational>(x); });
  EXPECT_EQ(exactly.q[0], rational(1) / 2);
  EXPECT_EQ(exactly.k[0], rational(1) / 4);
  EXPECT_EQ(exactly.v[1], rational(2));
  EXPECT_EQ(exactly.step[0], rational(3) / 2);
  EXPECT_EQ(exactly.decay[0], rational(3) / 4);
  EXPECT_EQ(exactly.initial_state(0, 1), rational(3));
  EXPECT_EQ(exactly.tokens, 1u);
  EXPECT_EQ(exactly.value_dim, 2u);
}

}  // namespace
}  // namespace deltaproof
