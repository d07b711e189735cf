// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/algebra/tensor_view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <limits>
#include <numeric>

#include "support/thrown.hpp"

namespace deltaproof {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::thrown;

std::string refusal(const tensor_view& view) {
  return thrown([&] { static_cast<void>(copied(view, "k")); });
}

std::vector<float> counted(std::size_t n) {
  std::vector<float> out(n);
  std::iota(out.begin(), out.end(), 0.F);
  return out;
}

TEST(tensor_view, copies_row_major_memory_bit_for_bit) {
  // A NaN with a payload, -0, a subnormal: bits are bits.
  const std::vector<std::uint16_t> bits{0x7fc1, 0x8000, 0x0001, 0x3f80, 0xff80, 0x4049};
  const tensor t = copied({bf16, bits, {2, 3}}, "k");
  EXPECT_EQ(t.name(), "k");
  EXPECT_EQ(t.dtype(), "BF16");
  EXPECT_THAT(t.shape(), ElementsAre(2, 3));
  EXPECT_EQ(words_of<std::uint16_t>(t), bits);
  const std::vector<double> wide{1.5, std::numeric_limits<double>::denorm_min()};
  EXPECT_EQ(words_of<double>(copied({wide, {2}}, "x")), wide);
  EXPECT_EQ(copied({fp32, counted(6).data(), {0, 3}}, "none").size(), 0U);
}

TEST(tensor_view, follows_strides_in_elements) {
  const std::vector<float> x = counted(24);
  // [2, 3] out of a row of 12: every other column of every other four.
  EXPECT_THAT(words_of<float>(copied({x, {2, 3}, {12, 2}}, "x")), ElementsAre(0, 2, 4, 12, 14, 16));
  EXPECT_THAT(words_of<float>(copied({x, {3, 2}, {1, 3}}, "x")), ElementsAre(0, 3, 1, 4, 2, 5));  // transposed
  EXPECT_THAT(words_of<float>(copied({x, {2, 2}, {0, 1}}, "x")), ElementsAre(0, 1, 0, 1));        // one row, twice
  EXPECT_THAT(words_of<float>(copied({fp32, x.data() + 2, {3}, {-1}}, "x")), ElementsAre(2, 1, 0));
  EXPECT_THAT(words_of<float>(copied({x, {1, 1, 2}, {999, -999, 1}}, "x")),
              ElementsAre(0, 1));  // strides of one element are not taken
}

TEST(tensor_view, reads_a_state_in_the_other_order) {
  const std::vector<float> vk = counted(12);  // [2, V = 3, K = 2]
  const tensor kv = copied(tensor_view(vk, {2, 3, 2}).with_last_axes_swapped(), "state");
  EXPECT_THAT(kv.shape(), ElementsAre(2, 2, 3));
  EXPECT_THAT(words_of<float>(kv), ElementsAre(0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11));
  EXPECT_TRUE(same_bits(copied(tensor_view(kv).with_last_axes_swapped(), "back"), copied({vk, {2, 3, 2}}, "state")));
  // Of strided memory, too.
  EXPECT_THAT(words_of<float>(copied(tensor_view(vk, {2, 2}, {4, 1}).with_last_axes_swapped(), "x")), ElementsAre(0, 4, 1, 5));
  EXPECT_THAT(thrown([] { static_cast<void>(tensor_view(counted(3), {3}).with_last_axes_swapped()); }),
              HasSubstr("fewer than two axes"));
}

TEST(tensor_view, says_what_is_wrong_and_what_to_do) {
  const std::vector<float> x = counted(24);
  EXPECT_THAT(refusal({x, {2, 3}, {12}}),
              HasSubstr("tensor k: shape [2, 3] with strides [12]: 1 strides for 2 axes; give one for each axis"));
  EXPECT_THAT(refusal({x, {2, 13}}), HasSubstr("tensor k: shape [2, 13] needs 26 elements, but the span given has 24"));
  // Strides in bytes, the usual slip.
  EXPECT_THAT(refusal({x, {2, 12}, {48, 4}}), HasSubstr("tensor k: shape [2, 12] with strides [48, 4] needs 93 elements, but the "
                                                        "span given has 24; strides count elements, not bytes"));
  EXPECT_THAT(refusal({x, {3}, {-1}}), HasSubstr("begins 2 elements before the span"));
  EXPECT_THAT(refusal({fp32, nullptr, {3}}),
              HasSubstr("tensor k: shape [3] has a null pointer; set the pointer, or leave the tensor out"));
  EXPECT_THAT(refusal({}), HasSubstr("tensor k: it was not given"));
  EXPECT_THAT(refusal({tf32, x.data(), {3}}), HasSubstr("tf32"));
  EXPECT_THAT(refusal({fp32, x.data(), {4, 4}, {std::numeric_limits<std::ptrdiff_t>::max(), 1}}),
              HasSubstr("beyond the address space"));
  const std::vector<std::uint16_t> bits(4);
  EXPECT_THAT(thrown([&] { tensor_view(fp32, bits, {2}); }), AllOf(HasSubstr("bf16 or fp16"), HasSubstr("fp32")));
  EXPECT_THAT(thrown([&] { static_cast<void>(words_of<double>(copied({x, {4}}, "x"))); }),
              AllOf(HasSubstr("tensor x holds F32"), HasSubstr("float for F32")));
}

}  // namespace
}  // namespace deltaproof
