// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// All 2^32 fp32 patterns to bf16, and to tf32, against the bit trick of hardware descriptions, and all
// of them back and forth through their own patterns.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "deltaproof/number/convert.hpp"

namespace {

using namespace deltaproof;

/// Adds half a unit in the last kept place, less one if that place is even, and cuts.
std::uint32_t nearest_trick(std::uint32_t pattern, int dropped) {
  const std::uint32_t half_less_one = (std::uint32_t{1} << (dropped - 1)) - 1;
  return (pattern + half_less_one + (pattern >> dropped & 1)) >> dropped << dropped;
}

bool is_nan(std::uint32_t pattern) { return (pattern & 0x7fffffffU) > 0x7f800000U; }

template <class Check>
void for_all_patterns(Check check) {
  std::uint32_t pattern = 0;
  do {
    if (!is_nan(pattern) && !check(pattern)) {
      FAIL() << "0x" << std::hex << pattern;
    }
  } while (++pattern != 0);
}

TEST(conversion_deep, all_fp32_to_bf16_nearest) {
  for_all_patterns([](std::uint32_t p) {
    return std::uint32_t{round_to<bf16>(std::bit_cast<float>(p)).bits()} << 16 == nearest_trick(p, 16);
  });
}

TEST(conversion_deep, all_fp32_to_bf16_toward_zero) {
  for_all_patterns([](std::uint32_t p) { return round_to<bf16>(std::bit_cast<float>(p), toward_zero{}).bits() == p >> 16; });
}

TEST(conversion_deep, all_fp32_to_tf32_nearest) {
  for_all_patterns([](std::uint32_t p) { return round_to<tf32>(std::bit_cast<float>(p)).bits() == nearest_trick(p, 13); });
}

TEST(conversion_deep, all_fp32_patterns_are_their_own) {
  for_all_patterns([](std::uint32_t p) {
    const auto x = rounded<fp32>::from_bits(p);
    return x.bits() == p && std::bit_cast<std::uint32_t>(lift<float>(x)) == p && round_to<fp32>(x.value()).bits() == p;
  });
}

TEST(conversion_deep, every_nan_is_the_nan) {
  for (std::uint64_t low = 0x7f800001; low <= 0x7fffffff; ++low) {
    for (const std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{0x80000000}}) {
      const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(low | sign));
      ASSERT_EQ(round_to<bf16>(x).bits(), 0x7fc0U);
      ASSERT_TRUE(isnan(rounded<fp32>::from_bits(static_cast<std::uint32_t>(low | sign))));
    }
  }
}

}  // namespace
