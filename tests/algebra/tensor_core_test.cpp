// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/algebra/tensor_core.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "algebra/slow_sums.hpp"
#include "deltaproof/algebra/dot.hpp"
#include "deltaproof/number/random.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

using single = rounded<fp32>;

template <class Generation, format F>
double core_dot(const std::vector<double>& x, const std::vector<double>& y, double acc) {
  std::vector<rounded<F>> left;
  std::vector<rounded<F>> right;
  for (const double a : x) left.push_back(round_to<F>(a));
  for (const double b : y) right.push_back(round_to<F>(b));
  return lift<double>(
      dot<arithmetic<rounded<F>, exact_product, single, tensor_core<Generation>>>(left, right, round_to<fp32>(acc)));
}

/// How large the operands of a trial are. `tiny`: products around the smallest values of fp32.
enum class range { near_one, whole, tiny };

/// Values of F of that range, some of them zero or subnormal.
template <format F>
double draw(philox& generator, range of) {
  const std::uint64_t kind = generator.below(16);
  if (kind == 0) return generator.below(2) == 0 ? 0.0 : -0.0;
  const int span = of == range::whole ? F.emax - F.emin + F.precision : of == range::tiny ? 4 : 12;
  const int lowest = of == range::whole ? F.emin - F.precision + 1 : of == range::tiny ? std::max(-77, F.emin) : -6;
  const int exponent = lowest + static_cast<int>(generator.below(static_cast<std::uint64_t>(span)));
  const double magnitude = std::ldexp(1 + generator.uniform(), exponent);
  const double value = lift<double>(round_to<F>(generator.below(2) == 0 ? magnitude : -magnitude));
  return std::isfinite(value) ? value : 0.0;
}

template <class Generation, format F>
void expect_integer_model(const slow::core& model, std::uint64_t stream) {
  philox generator(7, stream);
  for (std::size_t trial = 0; trial < scaled(1500); ++trial) {
    const range of = static_cast<range>(trial % 3);
    const std::size_t count = generator.below(3 * model.block) + 1;
    std::vector<double> x;
    std::vector<double> y;
    for (std::size_t i = 0; i < count; ++i) {
      x.push_back(draw<F>(generator, of));
      y.push_back(draw<F>(generator, of));
    }
    if (trial % 5 == 0 && count > 1) {  // cancel all but the lowest bits
      x[1] = -x[0];
      y[1] = y[0];
    }
    double acc = trial % 4 == 0 || of == range::tiny ? 0.0 : draw<fp32>(generator, of);
    if (trial % 7 == 0) acc = lift<double>(round_to<fp32>(-x[0] * y[0]));
    if (!std::isfinite(acc)) acc = 0;
    const double got = core_dot<Generation, F>(x, y, acc);
    const double want = slow::tensor_core(x, y, F.emin, model, acc);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(want))
        << Generation::name << " " << name_of(F) << " trial " << trial << ": " << got << " for " << want << ", " << count
        << " products";
  }
}

// The rows of the published table, typed a second time.
TEST(tensor_core, equals_the_big_integer_model_on_volta_and_turing) {
  expect_integer_model<volta, fp16>({4, 23, -131, false}, 1);
  expect_integer_model<turing, fp16>({8, 24, -132, false}, 2);
}

TEST(tensor_core, equals_the_big_integer_model_on_ampere_and_ada) {
  expect_integer_model<ampere, bf16>({8, 24, -132, false}, 3);
  expect_integer_model<ampere, fp16>({8, 24, -132, false}, 4);
  expect_integer_model<ampere, tf32>({4, 24, -132, false}, 5);
  expect_integer_model<ada, bf16>({8, 24, -132, false}, 6);
  expect_integer_model<ada, e4m3>({16, 13, -132, true}, 7);
  expect_integer_model<ada, e5m2>({16, 13, -132, true}, 8);
}

TEST(tensor_core, equals_the_big_integer_model_on_hopper_and_blackwell) {
  expect_integer_model<hopper, bf16>({16, 25, -133, false}, 9);
  expect_integer_model<hopper, fp16>({16, 25, -133, false}, 10);
  expect_integer_model<hopper, tf32>({8, 25, -133, false}, 11);
  expect_integer_model<hopper, e4m3>({32, 13, -133, true}, 12);
  expect_integer_model<hopper, e5m2>({32, 13, -133, true}, 13);
  expect_integer_model<blackwell, bf16>({16, 25, -133, false}, 14);
  expect_integer_model<blackwell, e4m3>({32, 25, -133, false}, 15);
}

TEST(tensor_core, knows_which_formats_a_generation_multiplies) {
  EXPECT_EQ((core_model<volta, bf16>.block), 0U);
  EXPECT_EQ((core_model<turing, tf32>.block), 0U);
  EXPECT_EQ((core_model<ampere, e4m3>.block), 0U);
  EXPECT_EQ((core_model<hopper, fp64>.block), 0U);
  EXPECT_EQ((core_model<hopper, bf16>.block), 16U);
}

// By hand: 1 in the accumulator, products of 2^-k below it.
TEST(tensor_core, drops_what_lies_below_its_fraction_bits) {
  const auto all = [&](int k, std::size_t count) {
    const std::vector<double> x(count, 0x1p-10);
    const std::vector<double> y(count, std::ldexp(1, 10 - k));
    return std::pair(x, y);
  };
  {
    const auto [x, y] = all(25, 16);  // 16 * 2^-25 = 2^-21: kept by Hopper, lost by Ampere
    EXPECT_EQ((core_dot<hopper, bf16>(x, y, 1)), 1 + 0x1p-21);
    EXPECT_EQ((core_dot<ampere, bf16>(x, y, 1)), 1);
  }
  {
    const auto [x, y] = all(24, 16);  // Ampere: two blocks of 8 * 2^-24 = 2^-21
    EXPECT_EQ((core_dot<ampere, bf16>(x, y, 1)), 1 + 0x1p-20);
    EXPECT_EQ((core_dot<turing, fp16>(x, y, 1)), 1 + 0x1p-20);
    EXPECT_EQ((core_dot<volta, fp16>(x, y, 1)), 1);
  }
  {
    const auto [x, y] = all(26, 16);
    EXPECT_EQ((core_dot<hopper, bf16>(x, y, 1)), 1);
  }
}

TEST(tensor_core, rounds_toward_zero_on_both_sides) {
  const std::vector<double> x{0x1p-12};
  const std::vector<double> y{0x1p-13};
  EXPECT_EQ((core_dot<hopper, bf16>(x, y, 1)), 1.0);
  EXPECT_EQ((core_dot<hopper, bf16>(x, y, -1)), -1 + 0x1p-24);  // -(1 - 2^-25) needs 25 bits
  EXPECT_EQ((core_dot<hopper, bf16>(x, {-0x1p-13}, 1)), 1 - 0x1p-24);
}

TEST(tensor_core, aligns_to_the_exponents_of_the_factors_before_normalisation) {
  // 1.5 * 1.5 = 2.25 lies above 2 but counts with exponent 0, so 2^-25 survives beside two of them.
  EXPECT_EQ((core_dot<hopper, bf16>({1.5, 1.5, 0x1p-12}, {1.5, -1.5, 0x1p-13}, 0)), 0x1p-25);
  // The accumulator -2.25 is normalised, counts with exponent 1, and 2^-25 is lost.
  EXPECT_EQ((core_dot<hopper, bf16>({1.5, 0x1p-12}, {1.5, 0x1p-13}, -2.25)), 0.0);
}

TEST(tensor_core, fp8_keeps_thirteen_bits_until_blackwell) {
  const std::vector<double> x{1, 0x1p-6};
  const std::vector<double> y{1, 0x1p-6};
  const double small = 0x1p-14;
  EXPECT_EQ((core_dot<hopper, e4m3>(x, y, small)), 1 + 0x1p-12);
  EXPECT_EQ((core_dot<hopper, e4m3>(x, y, 2 * small)), 1 + 0x1p-12 + 0x1p-13);
  EXPECT_EQ((core_dot<blackwell, e4m3>(x, y, small)), 1 + 0x1p-12 + 0x1p-14);
}

TEST(tensor_core, overflows_to_infinity) {
  const double big = 0x1p127;
  EXPECT_EQ((core_dot<hopper, bf16>({1, 1}, {big, big}, 0)), std::numeric_limits<double>::infinity());
  EXPECT_EQ((core_dot<hopper, bf16>({1, 1}, {-big, -big}, 0)), -std::numeric_limits<double>::infinity());
  EXPECT_EQ((core_dot<hopper, bf16>({big, big}, {big, -big}, 3)), 0.0);  // cancels before it rounds; 3 is lost
}

TEST(tensor_core, a_short_block_is_one_filled_with_zeros) {
  philox generator(11, 0);
  for (std::size_t count = 1; count < 40; ++count) {
    std::vector<double> x;
    std::vector<double> y;
    for (std::size_t i = 0; i < count; ++i) {
      x.push_back(std::ldexp(generator.normal(), -65));
      y.push_back(std::ldexp(generator.normal(), -66));
    }
    const double got = core_dot<hopper, bf16>(x, y, 0);
    x.resize(64, 0.0);
    y.resize(64, 0.0);
    EXPECT_EQ(got, (core_dot<hopper, bf16>(x, y, 0)));
  }
}

TEST(tensor_core, float_and_fp32_accumulators_agree) {
  const std::vector<rounded<bf16>> x(33, round_to<bf16>(1.1));
  const std::vector<rounded<bf16>> y(33, round_to<bf16>(-0.3));
  const float plain_sum = dot<arithmetic<rounded<bf16>, exact_product, float, tensor_core<hopper>>>(x, y, 0.7F);
  const single wrapped = dot<arithmetic<rounded<bf16>, exact_product, single, tensor_core<hopper>>>(x, y, lift<single>(0.7F));
  EXPECT_EQ(static_cast<double>(plain_sum), lift<double>(wrapped));
}

TEST(tensor_core, one_nan_or_infinity_anywhere_shows) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t at = 0; at < 40; ++at) {
    std::vector<double> x(40, 1.0);
    const std::vector<double> y(40, 1.0);
    x[at] = nan;
    EXPECT_TRUE(std::isnan(core_dot<hopper, bf16>(x, y, 1))) << at;
    x[at] = -infinity;
    EXPECT_EQ((core_dot<hopper, bf16>(x, y, 1)), -infinity) << at;
    EXPECT_TRUE(std::isnan(core_dot<hopper, bf16>(x, y, infinity))) << at;
    EXPECT_TRUE(std::isnan(core_dot<hopper, bf16>(x, std::vector<double>(40, 0.0), 1))) << at;
  }
  EXPECT_EQ((core_dot<hopper, bf16>({1}, {1}, infinity)), infinity);
  EXPECT_TRUE(std::isnan(core_dot<hopper, bf16>({1}, {1}, nan)));
}

}  // namespace
}  // namespace deltaproof
