// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Stochastic rounding: only the two neighbours occur, as often as the distance says; exact values stay;
// a seed gives the same bits again.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/rational.hpp"
#include "number/truth.hpp"
#include "support/multiplier.hpp"

namespace {

using namespace deltaproof;

/// The chance of k or fewer (or of more) of n events of probability p is below 1e-9 outside this.
double allowance(std::size_t n, double p) { return 6.2 * std::sqrt(static_cast<double>(n) * p * (1 - p)) + 21; }

/// Rounds with `operation(mode)` n times; the exact value is `truth`, a rational.
template <format F, class Operation>
void expect_unbiased(const rational& truth, Operation operation, std::uint64_t seed) {
  const rounded<F> inner = round_to<F>(truth, toward_zero{});
  const rounded<F> outer = rounded<F>::from_bits(
      static_cast<typename rounded<F>::bits_type>(inner.bits() + (std::uint64_t{1} << truth::layout_of(F).zero_bits)));
  const rational gap = exact(outer.value()) - exact(inner.value());
  const double p = round_to<double>(rational((truth - exact(inner.value())) / gap));
  const std::size_t n = scaled(20000);
  stochastic mode(seed);
  std::size_t away = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const rounded<F> got = operation(mode);
    ASSERT_TRUE(got == inner || got == outer) << name_of(F) << " gave " << got.value() << " for " << truth;
    if (got == outer) ++away;
  }
  EXPECT_NEAR(static_cast<double>(away), static_cast<double>(n) * p, allowance(n, p))
      << name_of(F) << " " << truth << " seed " << seed;
  EXPECT_EQ(mode.generator().position(), n);
}

template <format F>
void unbiased_operations(double a, double b, double c, std::uint64_t seed) {
  const auto x = round_to<F>(a);
  const auto y = round_to<F>(b);
  const auto z = round_to<F>(c);
  const rational p = exact(x.value());
  const rational q = exact(y.value());
  const rational r = exact(z.value());
  expect_unbiased<F>(p + q, [&](stochastic& m) { return add(x, y, m); }, seed);
  expect_unbiased<F>(p - q, [&](stochastic& m) { return sub(x, y, m); }, seed + 1);
  expect_unbiased<F>(p * q, [&](stochastic& m) { return mul(x, y, m); }, seed + 2);
  expect_unbiased<F>(p / q, [&](stochastic& m) { return div(x, y, m); }, seed + 3);
  expect_unbiased<F>(p * q + r, [&](stochastic& m) { return fma(x, y, z, m); }, seed + 4);
  expect_unbiased<F>(p / q, [&](stochastic& m) { return round_to<F>(rational(p / q), m); }, seed + 5);
}

TEST(stochastic_rounding, every_operation_is_unbiased) {
  unbiased_operations<bf16>(1.337, 0.0719, -0.0831, 100);
  unbiased_operations<fp16>(-1.337, 0.0719, 3.1, 200);
  unbiased_operations<tf32>(1.337, 719, 1e-4, 300);
  unbiased_operations<e4m3>(1.3, 0.3, 0.7, 400);
  unbiased_operations<e5m2>(1.3, 0.3, 0.7, 500);
  unbiased_operations<fp32>(1.337, -0.0719, 0.0831, 600);
  unbiased_operations<fp64>(1.337, 0.0719, 0.0831, 700);
}

TEST(stochastic_rounding, subnormal_results_are_unbiased) {
  unbiased_operations<bf16>(0x1.2p-131, 0x1.4p1, 0, 800);
  unbiased_operations<fp16>(0x1.2p-20, 0x1.44p-2, 0x1p-24, 900);
  unbiased_operations<fp64>(0x1.23456789abcdep-1030, 0x1.456789p-3, 0x1p-1070, 1000);
  // A value that lies wholly below the first step.
  expect_unbiased<bf16>(exact(0x1p-136), [](stochastic& m) { return round_to<bf16>(0x1p-136, m); }, 1100);
}

TEST(stochastic_rounding, square_roots_are_unbiased) {
  // The truth to 200 bits; the probability needs no more.
  truth::exact_result root;
  root.sqrt(2);
  rational q;
  mpfr_get_q(q.backend().data(), root.value());
  expect_unbiased<bf16>(q, [](stochastic& m) { return sqrt(rounded<bf16>(2), m); }, 1);
  expect_unbiased<fp32>(q, [](stochastic& m) { return sqrt(rounded<fp32>(2), m); }, 2);
  expect_unbiased<fp64>(q, [](stochastic& m) { return sqrt(rounded<fp64>(2), m); }, 3);
}

TEST(stochastic_rounding, exact_values_never_move) {
  stochastic mode(7);
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto x = rounded<bf16>::from_bits(static_cast<std::uint16_t>(code));
    const auto y = rounded<fp16>::from_bits(static_cast<std::uint16_t>(code));
    ASSERT_EQ(round_to<bf16>(x.value(), mode).bits(), x.bits());
    ASSERT_EQ(round_to<fp16>(y.value(), mode).bits(), y.bits());
    ASSERT_EQ(round_to<fp64>(y.value(), mode).bits(), rounded<fp64>::from_exact(y.value()).bits());
  }
  EXPECT_EQ(mode.generator().position(), 3U * 0x10000);
}

TEST(stochastic_rounding, a_seed_gives_the_same_bits_again) {
  const auto run = [](std::uint64_t seed, std::uint64_t stream) {
    stochastic mode(seed, stream);
    rounded<bf16> sum(0);
    std::uint64_t hash = 0;
    for (int i = 1; i <= 1000; ++i) {
      sum = add(sum, round_to<bf16>(1.0 / i, mode), mode);
      hash = hash * 31 + sum.bits();
    }
    return hash;
  };
  EXPECT_EQ(run(1, 0), run(1, 0));
  EXPECT_NE(run(1, 0), run(2, 0));
  EXPECT_NE(run(1, 0), run(1, 1));
}

TEST(stochastic_rounding, the_nth_rounding_meets_the_nth_number) {
  stochastic first(3);
  stochastic second(3);
  static_cast<void>(round_to<bf16>(1.0, first));       // exact
  static_cast<void>(round_to<bf16>(1.00001, second));  // not
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(round_to<bf16>(1.0037, first).bits(), round_to<bf16>(1.0037, second).bits());
  }
}

TEST(stochastic_rounding, overflow_is_one_of_the_outcomes_above_the_largest) {
  stochastic mode(5);
  int infinite = 0;
  for (int i = 0; i < 10000; ++i) {
    const auto x = round_to<fp16>(65520.0, mode);  // half a step above 65504
    ASSERT_TRUE(isinf(x) || x.value() == 65504);
    infinite += isinf(x) ? 1 : 0;
  }
  EXPECT_NEAR(infinite, 5000, allowance(10000, 0.5));
  EXPECT_TRUE(isinf(round_to<fp16>(65536.0, mode)));
}

TEST(stochastic_rounding, a_long_sum_does_not_stagnate) {
  // 4096 additions of 1/256 to 1: nearest stays at 1, the expectation of stochastic rounding is 17.
  const auto step = rounded<bf16>::from_exact(0x1p-8);
  rounded<bf16> plain(1);
  double mean = 0;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    stochastic mode(seed);
    rounded<bf16> sum(1);
    for (int i = 0; i < 4096; ++i) sum = add(sum, step, mode);
    mean += sum.value() / 64;
  }
  for (int i = 0; i < 4096; ++i) plain += step;
  EXPECT_EQ(plain.value(), 1);
  // Variance of one addition is at most u^2/4 with u = 1/8 at 16: 4096/64 * 2^-8 = 1/4 in the mean's.
  EXPECT_NEAR(mean, 17, 3);
}

}  // namespace
