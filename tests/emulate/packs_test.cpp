// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Vectors of double-doubles against double-doubles, bit for bit.
#include "emulate/packs.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "deltaproof/number/random.hpp"

namespace deltaproof {
namespace {

using numbers = pack<double_double>;

/// Numbers of many sizes, and those that have no second part.
std::vector<double_double> numbers_of_many_sizes(std::uint64_t seed) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double_double> out;
  for (const double x : {0.0, -0.0, 1.0, -0x1p-1074, 0x1p1000, infinity, -infinity, infinity - infinity}) out.emplace_back(x);
  philox draw(seed, 0);
  const auto size = [&] { return std::ldexp(draw.normal(), static_cast<int>(draw.below(200)) - 100); };
  for (int i = 0; i < 400; ++i) {
    const double x = size();
    out.push_back(double_double::two_sum(x, x * 0x1p-54 * draw.normal()));
  }
  return out;
}

void expect_same(const numbers::type& got, const std::vector<double_double>& expected) {
  double_double parts[numbers::count];
  numbers::store(parts, got);
  for (std::size_t i = 0; i < numbers::count; ++i) {
    if (isnan(expected[i])) {
      EXPECT_TRUE(isnan(parts[i]));
      continue;
    }
    EXPECT_EQ(std::bit_cast<std::uint64_t>(parts[i].hi()), std::bit_cast<std::uint64_t>(expected[i].hi()));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(parts[i].lo()), std::bit_cast<std::uint64_t>(expected[i].lo()));
  }
}

TEST(packs, compute_what_double_doubles_alone_do) {
  const std::vector<double_double> a = numbers_of_many_sizes(1), b = numbers_of_many_sizes(2);
  for (std::size_t from = 0; from + numbers::count <= a.size(); ++from) {
    const std::size_t other = (7 * from) % (b.size() - numbers::count);
    numbers::type x, y, all;
    numbers::load(x, a.data() + from);
    numbers::load(y, b.data() + other);
    numbers::fill(all, b[other]);
    std::vector<double_double> same, sum, difference, product, multiple;
    for (std::size_t i = 0; i < numbers::count; ++i) {
      same.push_back(a[from + i]);
      sum.push_back(a[from + i] + b[other + i]);
      difference.push_back(a[from + i] - b[other + i]);
      product.push_back(a[from + i] * b[other + i]);
      multiple.push_back(a[from + i] * b[other]);
    }
    expect_same(x, same);
    expect_same(x + y, sum);
    expect_same(x - y, difference);
    expect_same(x * y, product);
    expect_same(x * all, multiple);
  }
}

TEST(packs, add_up_all_places) {
  const double given[] = {1, 2, 4, 8, 16, 32, 64, 0x1p-60};
  numbers::type x;
  load_given<double_double>(x, given);
  const double_double sum = numbers::sum(x);
  EXPECT_EQ(sum.hi(), 127);
  EXPECT_EQ(sum.lo(), 0x1p-60);
}

}  // namespace
}  // namespace deltaproof
