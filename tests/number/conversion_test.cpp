// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Stored patterns, lift and round_to: every pattern of the 8- and 16-bit formats both ways, and one
// rounding from every type, tested where two roundings would differ.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/real.hpp"
#include "number/truth.hpp"
#include "support/multiplier.hpp"

namespace {

using namespace deltaproof;
constexpr double infinity = std::numeric_limits<double>::infinity();

rational power(int base, int exponent) {
  rational result(1);
  for (int i = 0; i < std::abs(exponent); ++i) result *= base;
  return exponent < 0 ? rational(1 / result) : result;
}

template <format F>
void round_trip(std::uint64_t code) {
  using S = rounded<F>;
  const truth::layout& f = truth::layout_of(F);
  const auto stored = static_cast<typename S::bits_type>(code << f.zero_bits);
  const S x = S::from_bits(stored);
  if (f.is_nan(code)) {
    ASSERT_TRUE(isnan(x)) << truth::hex(code);
    ASSERT_EQ(x.bits(), f.nan() << f.zero_bits);
    return;
  }
  const double value = f.value(code);
  ASSERT_EQ(x.value(), value) << name_of(F) << truth::hex(code);
  ASSERT_EQ(x.bits(), stored) << name_of(F);
  ASSERT_EQ(round_to<F>(value).bits(), stored);
  ASSERT_EQ(round_to<F>(value, toward_zero{}).bits(), stored);
  ASSERT_EQ(round_to<F>(lift<double>(x)).bits(), stored);
  ASSERT_EQ(round_to<rounded<F>>(lift<real<64>>(x)).bits(), stored);
  if (std::isfinite(value)) {
    ASSERT_EQ(round_to<F>(lift<rational>(x)).value(), value);
    ASSERT_EQ(round_to<F>(lift<double_double>(x)).value(), value);
  }
}

template <format F>
void all_patterns() {
  const truth::layout& f = truth::layout_of(F);
  for (std::uint64_t code = 0; code < 2 * f.sign(); ++code) {
    round_trip<F>(code);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(conversion, every_pattern_round_trips_e4m3) { all_patterns<e4m3>(); }
TEST(conversion, every_pattern_round_trips_e5m2) { all_patterns<e5m2>(); }
TEST(conversion, every_pattern_round_trips_bf16) { all_patterns<bf16>(); }
TEST(conversion, every_pattern_round_trips_fp16) { all_patterns<fp16>(); }

template <format F>
void hard_patterns() {
  std::mt19937_64 random(1);
  for (const std::uint64_t code : truth::layout_of(F).hard(random, 20000)) {
    round_trip<F>(code);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(conversion, hard_patterns_round_trip_tf32) { hard_patterns<tf32>(); }
TEST(conversion, hard_patterns_round_trip_fp32) { hard_patterns<fp32>(); }
TEST(conversion, hard_patterns_round_trip_fp64) { hard_patterns<fp64>(); }

TEST(conversion, tf32_padding_must_be_zero) {
  EXPECT_THROW(rounded<tf32>::from_bits(0x3f800001U), format_error);
  EXPECT_EQ(rounded<tf32>::from_bits(0x3f800000U).value(), 1);
}

TEST(conversion, every_bf16_passes_through_double) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto x = rounded<bf16>::from_bits(static_cast<std::uint16_t>(code));
    if (isnan(x)) continue;
    const auto as_float = std::bit_cast<float>(code << 16);
    ASSERT_EQ(x.value(), static_cast<double>(as_float));
    ASSERT_EQ(round_to<bf16>(as_float).bits(), code);
    ASSERT_EQ(lift<float>(x), as_float);
    ASSERT_EQ(lift<rounded<fp32>>(x).bits(), code << 16);
  }
}

std::uint32_t to_bf16(std::uint32_t pattern) { return round_to<bf16>(std::bit_cast<float>(pattern)).bits(); }

TEST(conversion, fp32_to_bf16_at_the_boundaries) {
  EXPECT_EQ(to_bf16(0x3f808000), 0x3f80U);  // tie, even below
  EXPECT_EQ(to_bf16(0x3f818000), 0x3f82U);  // tie, even above
  EXPECT_EQ(to_bf16(0x3f808001), 0x3f81U);
  EXPECT_EQ(to_bf16(0x3f807fff), 0x3f80U);
  EXPECT_EQ(to_bf16(0x3fffffff), 0x4000U);  // carry into the exponent
  EXPECT_EQ(to_bf16(0x7f7fffff), 0x7f80U);  // overflow
  EXPECT_EQ(to_bf16(0x7f7f8000), 0x7f80U);  // the tie at the top overflows
  EXPECT_EQ(to_bf16(0x7f7f7fff), 0x7f7fU);
  EXPECT_EQ(to_bf16(0xff7f8000), 0xff80U);
  EXPECT_EQ(to_bf16(0x00000001), 0x0000U);  // subnormals
  EXPECT_EQ(to_bf16(0x00008000), 0x0000U);
  EXPECT_EQ(to_bf16(0x00008001), 0x0001U);
  EXPECT_EQ(to_bf16(0x00018000), 0x0002U);
  EXPECT_EQ(to_bf16(0x007fffff), 0x0080U);  // into the normal range
  EXPECT_EQ(to_bf16(0x80000000), 0x8000U);
  EXPECT_EQ(to_bf16(0x80000001), 0x8000U);
  EXPECT_EQ(to_bf16(0x7f800000), 0x7f80U);
  EXPECT_EQ(to_bf16(0x7fc00001), 0x7fc0U);
  EXPECT_EQ(to_bf16(0xff800001), 0x7fc0U);
}

/// Doubles near the values and midpoints of a format, and random ones across its range.
template <format F, class Check>
void for_doubles_near(Check check) {
  const truth::layout& f = truth::layout_of(F);
  std::mt19937_64 random(5);
  for (const std::uint64_t code : f.hard(random, 3000)) {
    if ((code & (f.sign() - 1)) >= f.end()) continue;
    const double here = f.value(code);
    const double next = f.value(code + 1);
    const double middle = std::isfinite(next) ? here / 2 + next / 2 : here * (1 + unit_roundoff(F));
    for (const double x : {here, middle}) {
      for (const double y : {x, std::nextafter(x, infinity), std::nextafter(x, -infinity)}) check(y);
    }
  }
  for (const double x : {infinity, -infinity, std::nan(""), 0.0, -0.0, 0x1p-1074, -0x1p-1074, 0x1p1023, -0x1.fffffffffffffp1023,
                         smallest_subnormal(F) / 2, smallest_subnormal(F) * 0.75}) {
    check(x);
  }
  for (std::size_t i = 0; i < scaled(20000); ++i) check(std::bit_cast<double>(random()));
}

template <format F>
void rounds_once() {
  const truth::layout& f = truth::layout_of(F);
  truth::exact_result exact;
  const auto stored = [&](truth::mode m) { return exact.round(f, m) << f.zero_bits; };
  for_doubles_near<F>([&](double x) {
    exact.set(x);
    ASSERT_EQ(round_to<F>(x).bits(), stored(truth::mode::nearest)) << name_of(F) << " " << x;
    ASSERT_EQ(round_to<F>(x, toward_zero{}).bits(), stored(truth::mode::zero)) << name_of(F) << " " << x;
    ASSERT_EQ(round_to<F>(rounded<fp64>::from_exact(x)).bits(), stored(truth::mode::nearest));
    ASSERT_EQ(round_to<F>(lift<real<128>>(x)).bits(), stored(truth::mode::nearest)) << x;
    ASSERT_EQ(round_to<F>(lift<real<128>>(x), toward_zero{}).bits(), stored(truth::mode::zero)) << x;
    if (!std::isfinite(x)) return;
    // A rational, a real and a double_double that lie a little off x: a rounding to double on the way
    // would put them on it.
    for (const double offset : {0x1p-70, -0x1p-70}) {
      if (x == 0 || std::fabs(x) < 0x1p-900) continue;
      const rational q = deltaproof::exact(x) * (1 + deltaproof::exact(offset));
      const real<256> r = lift<real<256>>(x) * (1 + lift<real<256>>(offset));
      const double_double d = double_double::two_sum(x, x * offset);
      truth::exact_result near(400);
      mpfr_set_q(near.value(), q.backend().data(), MPFR_RNDZ);
      const std::uint64_t nearest = near.round(f, truth::mode::nearest) << f.zero_bits;
      const std::uint64_t zero = near.round(f, truth::mode::zero) << f.zero_bits;
      ASSERT_EQ(round_to<F>(q).bits(), nearest) << name_of(F) << " " << x;
      ASSERT_EQ(round_to<F>(q, toward_zero{}).bits(), zero) << name_of(F) << " " << x;
      ASSERT_EQ(round_to<F>(r).bits(), nearest) << name_of(F) << " " << x;
      ASSERT_EQ(round_to<F>(r, toward_zero{}).bits(), zero) << name_of(F) << " " << x;
      if (d.lo() != 0 && std::isfinite(d.hi())) {
        ASSERT_EQ(round_to<F>(d).bits(), nearest) << name_of(F) << " " << x;
        ASSERT_EQ(round_to<F>(d, toward_zero{}).bits(), zero) << name_of(F) << " " << x;
      }
    }
  });
}

TEST(conversion, rounds_once_bf16) { rounds_once<bf16>(); }
TEST(conversion, rounds_once_fp16) { rounds_once<fp16>(); }
TEST(conversion, rounds_once_tf32) { rounds_once<tf32>(); }
TEST(conversion, rounds_once_e4m3) { rounds_once<e4m3>(); }
TEST(conversion, rounds_once_e5m2) { rounds_once<e5m2>(); }
TEST(conversion, rounds_once_fp32) { rounds_once<fp32>(); }
TEST(conversion, rounds_once_fp64) { rounds_once<fp64>(); }

TEST(conversion, random_fractions_round_once) {
  std::mt19937_64 random(9);
  const truth::layout& f = truth::layout_of(fp64);
  const truth::layout& g = truth::layout_of(bf16);
  for (std::size_t i = 0; i < scaled(20000); ++i) {
    const auto integer = [&] { return static_cast<std::int64_t>(random() >> (random() % 60)) / 2 + 1; };
    rational q(integer(), integer());
    if (i % 2 == 0) q = -q;
    truth::exact_result exact;
    exact.set_inexact(mpfr_set_q(exact.value(), q.backend().data(), MPFR_RNDZ) != 0);
    ASSERT_EQ(round_to<fp64>(q).bits(), exact.round(f, truth::mode::nearest)) << q;
    ASSERT_EQ(round_to<fp64>(q, toward_zero{}).bits(), exact.round(f, truth::mode::zero)) << q;
    ASSERT_EQ(round_to<bf16>(q).bits(), exact.round(g, truth::mode::nearest)) << q;
    ASSERT_EQ(round_to<double>(q), round_to<fp64>(q).value());
  }
}

TEST(conversion, saturation_is_a_mode_of_its_own) {
  EXPECT_EQ(round_to<e4m3>(1e6, nearest_saturating{}).value(), 448);
  EXPECT_EQ(round_to<e4m3>(-infinity, nearest_saturating{}).value(), -448);
  EXPECT_TRUE(isnan(round_to<e4m3>(std::nan(""), nearest_saturating{})));
  EXPECT_TRUE(isnan(round_to<e4m3>(infinity)));
  EXPECT_TRUE(isnan(round_to<e4m3>(infinity, toward_zero{})));
  EXPECT_EQ(round_to<e4m3>(1e6, toward_zero{}).value(), 448);
  EXPECT_TRUE(isinf(round_to<bf16>(infinity, toward_zero{})));
  EXPECT_EQ(round_to<bf16>(std::numeric_limits<double>::max(), toward_zero{}).value(), largest(bf16));
  EXPECT_EQ(round_to<fp64>(power(10, 400), toward_zero{}).value(), largest(fp64));
  EXPECT_EQ(round_to<double>(power(10, 400)), infinity);
  EXPECT_EQ(round_to<double>(power(10, -400)), 0);
}

TEST(conversion, only_finite_numbers_are_rationals) {
  EXPECT_THROW(deltaproof::exact(infinity), domain_error);
  EXPECT_THROW(lift<rational>(std::nan("")), domain_error);
  EXPECT_THROW(lift<rational>(real<64>(1) / 0), domain_error);
  EXPECT_EQ(deltaproof::exact(0x1p-1074) * power(2, 1074), 1);
}

TEST(conversion, scalars_round_in_their_own_mode) {
  EXPECT_EQ((round_to<rounded<bf16, toward_zero>>(1.999).value()), 1.9921875);
  EXPECT_EQ(round_to<rounded<bf16>>(1.999).value(), 2);
  EXPECT_EQ(round_to<float>(1 + 0x1p-24), 1.0F);
  EXPECT_EQ(round_to<float>(real<128>(1) + real<128>(0x1p-24) + real<128>(0x1p-90)), 1 + 0x1p-23F);
  const rational off = lift<rational>(round_to<real<64>>(rational(1, 3))) - rational(1, 3);
  EXPECT_NE(off, 0);
  EXPECT_LE(abs(off), power(2, -2 - precision_bits<real<64>>));
  EXPECT_EQ(round_to<real<53>>(real<256>(1) / 3), round_to<real<53>>(rational(1, 3)));
}

TEST(conversion, double_doubles_hold_two_doubles_of_a_value) {
  const rational third(1, 3);
  const auto d = round_to<double_double>(third);
  EXPECT_EQ(d.hi(), 1.0 / 3);
  EXPECT_EQ(d.lo(), round_to<double>(rational(third - deltaproof::exact(1.0 / 3))));
  EXPECT_EQ(round_to<double_double>(round_to<real<256>>(third)), d);
  EXPECT_EQ(lift<rational>(round_to<real<128>>(d)), lift<rational>(d));
  EXPECT_EQ(round_to<double_double>(lift<rational>(d)), d);
  EXPECT_EQ(round_to<double_double>(real<64>(1) / 0).hi(), infinity);
}

TEST(conversion, lossless_is_decided_by_the_table) {
  static_assert(Lossless<rounded<bf16>, float> && Lossless<rounded<bf16>, rounded<tf32>>);
  static_assert(Lossless<rounded<e4m3>, rounded<fp16>> && Lossless<rounded<e4m3>, rounded<bf16>>);
  static_assert(Lossless<rounded<e5m2>, rounded<fp16>> && !Lossless<rounded<e5m2>, rounded<e4m3>>);
  static_assert(!Lossless<rounded<e4m3>, rounded<e5m2>>);
  static_assert(!Lossless<rounded<fp16>, rounded<bf16>> && !Lossless<rounded<bf16>, rounded<fp16>>);
  static_assert(Lossless<rounded<fp16>, rounded<tf32>> && !Lossless<rounded<fp32>, rounded<tf32>>);
  static_assert(Lossless<float, double> && !Lossless<double, float> && Lossless<double, rounded<fp64>>);
  static_assert(Lossless<double, real<53>> && !Lossless<double, real<40>> && Lossless<float, real<40>>);
  static_assert(Lossless<real<64>, real<128>> && !Lossless<real<128>, real<64>>);
  static_assert(Lossless<double, rational> && Lossless<real<128>, rational> && !Lossless<rational, double>);
  static_assert(Lossless<float, double_double> && !Lossless<double_double, double>);
  static_assert(Lossless<double_double, rational> && !Lossless<double_double, real<128>>);
  static_assert(Lossless<rounded<bf16, toward_zero>, rounded<bf16>>);
  EXPECT_EQ(lift<real<128>>(0.1), real<128>(0.1));
  EXPECT_EQ(lift<double>(lift<rounded<fp64>>(0.1)), 0.1);
  EXPECT_EQ(lift<rational>(lift<real<128>>(0.1)), deltaproof::exact(0.1));
}

}  // namespace
