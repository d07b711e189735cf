// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The generator: known answers, streams, moments and quantiles; the normal quantile against MPFR.
#include "deltaproof/number/random.hpp"

#include <Random123/philox.h>
#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "deltaproof/support/errors.hpp"
#include "support/multiplier.hpp"

namespace {

using namespace deltaproof;

TEST(philox, known_answers) {
  // Philox4x32-10 of a zero counter and key is 6627e8d5 e169c58d bc57ac4c 9b00dbd8 (the published vector).
  philox zeros(0);
  EXPECT_EQ(zeros(), 0xe169c58d6627e8d5U);
  EXPECT_EQ(zeros(), 0x9b00dbd8bc57ac4cU);
  // Seed is the key, stream the high half of the counter, position / 2 the low half.
  for (const std::uint64_t n : {std::uint64_t{0}, std::uint64_t{12345}, std::uint64_t{1} << 40, (std::uint64_t{1} << 63) - 20}) {
    const std::uint64_t seed = 0x299f31d0a4093822U;
    const std::uint64_t stream = 0x0370734413198a2eU;
    philox generator(seed, stream);
    generator.seek(2 * n + 1);
    // Across the numbers that are made at once, and from the last position there is to the first.
    for (std::uint64_t position = 2 * n + 1; position != 2 * n + 102; ++position) {
      const std::uint64_t index = position / 2;
      const r123::Philox4x32::ctr_type counter{
          {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0x13198a2e, 0x03707344}};
      const auto block = r123::Philox4x32{}(counter, {{0xa4093822, 0x299f31d0}});
      const std::size_t half = 2 * (position % 2);
      EXPECT_EQ(generator(), std::uint64_t{block[half + 1]} << 32 | block[half]);
    }
  }
  static_assert(std::uniform_random_bit_generator<philox>);
}

TEST(philox, seek_reaches_any_position) {
  philox straight(11, 4);
  std::vector<std::uint64_t> numbers(1001);
  for (auto& x : numbers) x = straight();
  philox jumping(11, 4);
  for (const std::uint64_t i : {1000U, 3U, 2U, 999U, 0U, 1U}) {
    jumping.seek(i);
    EXPECT_EQ(jumping(), numbers[i]);
    EXPECT_EQ(jumping.position(), i + 1);
  }
}

TEST(philox, streams_and_seeds_differ) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (std::uint64_t stream = 0; stream < 8; ++stream) {
      philox generator(seed, stream << 30);
      for (int i = 0; i < 100; ++i) numbers.push_back(generator());
    }
  }
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

TEST(philox, uniform_fills_the_interval) {
  philox generator(1);
  const std::size_t n = scaled(200000);
  double sum = 0;
  double squares = 0;
  std::vector<double> cells(64);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = generator.uniform();
    ASSERT_TRUE(x >= 0 && x < 1);
    sum += x;
    squares += x * x;
    cells[static_cast<std::size_t>(x * 64)] += 1;
  }
  const auto count = static_cast<double>(n);
  EXPECT_NEAR(sum / count, 0.5, 6 * std::sqrt(1 / (12 * count)));
  EXPECT_NEAR(squares / count, 1.0 / 3, 6 * std::sqrt(4 / (45 * count)));
  double chi = 0;
  for (const double k : cells) chi += (k - count / 64) * (k - count / 64) / (count / 64);
  EXPECT_NEAR(chi, 63, 6 * std::sqrt(126.0));
}

TEST(philox, below_is_uniform_and_bounded) {
  philox generator(2);
  std::vector<double> cells(7);
  for (int i = 0; i < 70000; ++i) cells[generator.below(7)] += 1;
  for (const double k : cells) EXPECT_NEAR(k, 10000, 6 * std::sqrt(10000.0));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(generator.below(1), 0U);
    EXPECT_LT(generator.below((std::uint64_t{1} << 63) + 1), (std::uint64_t{1} << 63) + 1);
  }
  EXPECT_THROW(generator.below(0), domain_error);
}

TEST(philox, normal_has_the_moments_and_quantiles) {
  philox generator(3);
  const std::size_t n = scaled(200000);
  std::vector<double> x(n);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (double& value : x) {
    value = generator.normal();
    m1 += value;
    m2 += value * value;
    m3 += value * value * value;
    m4 += value * value * value * value;
  }
  const auto count = static_cast<double>(n);
  EXPECT_NEAR(m1 / count, 0, 6 * std::sqrt(1 / count));
  EXPECT_NEAR(m2 / count, 1, 6 * std::sqrt(2 / count));
  EXPECT_NEAR(m3 / count, 0, 6 * std::sqrt(15 / count));
  EXPECT_NEAR(m4 / count, 3, 6 * std::sqrt(96 / count));
  std::sort(x.begin(), x.end());
  // Kolmogorov-Smirnov; the bound is passed with probability 1 - 2 exp(-2 * 2.5^2) = 1 - 8e-6.
  double distance = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double phi = 0.5 * std::erfc(-x[i] / std::sqrt(2.0));
    distance = std::max({distance, phi - static_cast<double>(i) / count, static_cast<double>(i + 1) / count - phi});
  }
  EXPECT_LT(distance, 2.5 / std::sqrt(count));
  EXPECT_EQ(generator.position(), n);
}

/// |x - quantile(p)| to first order: (Phi(x) - p) / density(x), in MPFR.
double quantile_error(double p, double x) {
  mpfr_t phi, density, y;
  mpfr_inits2(120, phi, density, y, nullptr);
  mpfr_set_d(y, 2, MPFR_RNDN);
  mpfr_sqrt(y, y, MPFR_RNDN);
  mpfr_d_div(y, -x, y, MPFR_RNDN);
  mpfr_erfc(phi, y, MPFR_RNDN);
  mpfr_div_2ui(phi, phi, 1, MPFR_RNDN);
  mpfr_sub_d(phi, phi, p, MPFR_RNDN);
  mpfr_sqr(density, y, MPFR_RNDN);
  mpfr_neg(density, density, MPFR_RNDN);
  mpfr_exp(density, density, MPFR_RNDN);
  mpfr_div(phi, phi, density, MPFR_RNDN);
  mpfr_mul_d(phi, phi, 2.5066282746310002, MPFR_RNDN);
  const double error = std::fabs(mpfr_get_d(phi, MPFR_RNDN));
  mpfr_clears(phi, density, y, nullptr);
  return error;
}

TEST(standard_normal_quantile, agrees_with_mpfr) {
  std::vector<double> probabilities{0.5,     0.075,       0.925, 0.0749999, 0.9250001,
                                    0x1p-53, 1 - 0x1p-53, 1e-10, 1e-11,     1.3887943864964021e-11,
                                    1e-300,  0x1p-1022,   0.25,  0.975,     0.1586552539314570514};
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < scaled(1000); ++i) {
    const double u = std::ldexp(static_cast<double>(random() >> 11), -53);
    probabilities.push_back(u == 0 ? 0.5 : u);
    probabilities.push_back(std::ldexp(0.5 + u / 2, -static_cast<int>(random() % 1000)));
  }
  for (const double p : probabilities) {
    if (p >= 1 || p <= 0) continue;
    const double x = standard_normal_quantile(p);
    ASSERT_LE(quantile_error(p, x), 1e-15 * std::max(1.0, std::fabs(x))) << "p = " << p << ", x = " << x;
  }
}

TEST(standard_normal_quantile, is_odd_and_refuses_the_ends) {
  EXPECT_EQ(standard_normal_quantile(0.5), 0);
  for (const double p : {0.25, 0.125, 0x1p-20, 0x1p-50}) {
    EXPECT_EQ(standard_normal_quantile(p), -standard_normal_quantile(1 - p));
  }
  for (const double p : {0.0, 1.0, -0.1, 1.1, std::nan("")}) {
    EXPECT_THROW(standard_normal_quantile(p), domain_error);
  }
}

TEST(standard_normal_quantile, has_the_same_bits_everywhere) {
  philox generator(42);
  std::uint64_t hash = 14695981039346656037U;
  for (int i = 0; i < 10000; ++i) {
    hash = (hash ^ std::bit_cast<std::uint64_t>(generator.normal())) * 1099511628211U;
  }
  EXPECT_EQ(hash, 1556199751738930705U);
}

}  // namespace
