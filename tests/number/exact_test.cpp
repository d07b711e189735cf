// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// rational, modular, real and double_double: identities, known values and stated errors; and what
// scalar.hpp says of every scalar.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/number/scalar.hpp"
#include "support/multiplier.hpp"

namespace {

using namespace deltaproof;

TEST(modular, wraps_around_the_prime) {
  const auto p = static_cast<std::int64_t>(modular::prime);
  EXPECT_EQ(modular(p), modular(0));
  EXPECT_EQ(modular(-1).value(), modular::prime - 1);
  EXPECT_EQ(modular(std::numeric_limits<std::int64_t>::min()), -modular(std::int64_t{1} << 62) - modular(std::int64_t{1} << 62));
  EXPECT_EQ(modular(p - 1) + modular(1), modular(0));
  EXPECT_EQ(modular(p - 1) * modular(p - 1), modular(1));
  EXPECT_EQ(modular(2).pow(61), modular(1));
  EXPECT_EQ(modular(3).pow(modular::prime - 1), modular(1));
  EXPECT_EQ(-modular(0), modular(0));
  static_assert(modular(6) / modular(3) == modular(2));
}

TEST(modular, refuses_to_divide_by_zero) {
  EXPECT_THROW(modular(1) / modular(0), domain_error);
  EXPECT_THROW(reduce(rational(1, static_cast<std::int64_t>(modular::prime))), domain_error);
  EXPECT_THROW(reduce(std::nan("")), domain_error);
  EXPECT_EQ(reduce(rational(static_cast<std::int64_t>(modular::prime))), modular(0));
}

TEST(modular, doubles_go_the_way_of_their_fractions) {
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < scaled(10000); ++i) {
    const double x = std::bit_cast<double>(random());
    if (!std::isfinite(x)) continue;
    ASSERT_EQ(reduce(x), reduce(exact(x))) << x;
  }
  for (const double x : {0.0, -0.0, 0x1p-1074, 1.0, -1.0, 0x1p61, 1.7976931348623157e308}) {
    EXPECT_EQ(reduce(x), reduce(exact(x)));
  }
}

TEST(real, has_the_stated_precision) {
  EXPECT_EQ(precision_bits<real<128>>, 128);
  EXPECT_GE(precision_bits<real<64>>, 64);
  EXPECT_EQ(precision_bits<double>, 53);
  EXPECT_EQ(precision_bits<rounded<bf16>>, 8);
  const auto check = []<class R>(R one) {
    const int bits = precision_bits<R>;
    EXPECT_EQ(static_cast<long>(mpfr_get_prec(one.backend().data())), bits);
    EXPECT_NE(one + ldexp(one, 1 - bits), one);
    EXPECT_EQ(one + ldexp(one, -bits), one);
  };
  check(real<53>(1));
  check(real<64>(1));
  check(real<128>(1));
  check(real<200>(1));
  check(real<256>(1));
  check(real<1000>(1));
}

TEST(real, starts_at_zero) {
  EXPECT_EQ(real<128>(), 0);
  EXPECT_EQ(std::vector<real<256>>(3)[2], 0);
}

template <class S>
void field_constants(const std::string& name, bool is_exact, bool has_exp) {
  static_assert(Scalar<S>);
  EXPECT_EQ(scalar_name<S>(), name);
  EXPECT_EQ(zero<S>() + one<S>(), one<S>());
  EXPECT_EQ(from_int<S>(2) * from_int<S>(3), from_int<S>(6));
  EXPECT_EQ(from_int<S>(-4) + from_int<S>(4), zero<S>());
  EXPECT_EQ(S(), zero<S>());
  EXPECT_EQ(is_exact_scalar_v<S>, is_exact);
  EXPECT_EQ(HasExp<S>, has_exp);
}

TEST(scalar, every_type_of_the_floor_is_one) {
  field_constants<float>("float", false, true);
  field_constants<double>("double", false, true);
  field_constants<rounded<bf16>>("bf16", false, true);
  field_constants<rounded<fp16>>("fp16", false, true);
  field_constants<rounded<tf32>>("tf32", false, true);
  field_constants<rounded<e4m3>>("e4m3", false, true);
  field_constants<rounded<e5m2>>("e5m2", false, true);
  field_constants<rounded<fp32>>("fp32", false, true);
  field_constants<rounded<fp64>>("fp64", false, true);
  field_constants<rounded<bf16, toward_zero>>("bf16/toward_zero", false, true);
  field_constants<double_double>("double_double", false, false);
  field_constants<real<128>>("real<128>", false, true);
  field_constants<rational>("rational", true, false);
  field_constants<modular>("modular", true, false);
  static_assert(!Scalar<int> && !Scalar<stochastic>);
  EXPECT_THROW(from_int<float>(16777217), domain_error);
}

/// |got - truth| / |truth| in units of u^2 = 2^-106.
double error_in_units(const rational& truth, double_double got) {
  const rational error = lift<rational>(got) / truth - 1;
  return round_to<double>(rational(abs(error))) * 0x1p106;
}

double_double random_double_double(std::mt19937_64& random) {
  const auto uniform = [&] { return std::ldexp(static_cast<double>(random() >> 11), -53); };
  const double hi = std::ldexp(1 + uniform(), static_cast<int>(random() % 40) - 20) * (random() % 2 == 0 ? 1 : -1);
  double lo = hi * 0x1p-54 * (2 * uniform() - 1);
  if (random() % 4 == 0) lo = std::ldexp(lo, -static_cast<int>(random() % 60));
  if (random() % 8 == 0) lo = hi * 0x1.fffffffffffffp-54;
  return double_double::two_sum(hi, lo);
}

TEST(double_double, keeps_the_stated_errors) {
  std::mt19937_64 random(1);
  double worst_sum = 0, worst_product = 0, worst_quotient = 0, worst_root = 0;
  for (std::size_t i = 0; i < scaled(20000); ++i) {
    const double_double x = random_double_double(random);
    double_double y = random_double_double(random);
    if (i % 3 == 0) y = double_double::two_sum(-x.hi() * (1 + 0x1p-50 * static_cast<double>(random() % 5)), y.lo() * 0x1p-20);
    const rational p = lift<rational>(x);
    const rational q = lift<rational>(y);
    if (p + q == 0) {
      EXPECT_EQ(x + y, double_double());
    } else {
      worst_sum = std::max(worst_sum, error_in_units(p + q, x + y));
    }
    worst_product = std::max(worst_product, error_in_units(p * q, x * y));
    worst_quotient = std::max(worst_quotient, error_in_units(p / q, x / y));
    const double_double root = sqrt(abs(x));
    // sqrt(1 + e) = 1 + e/2, and e^2 is far below the unit.
    const rational square = lift<rational>(root) * lift<rational>(root);
    worst_root = std::max(worst_root, 0.5 * 0x1p106 * round_to<double>(rational(abs(square / abs(p) - 1))));
  }
  EXPECT_LE(worst_sum, 3.0001);
  EXPECT_LE(worst_product, 5);
  EXPECT_LE(worst_quotient, 15.0001);
  EXPECT_LE(worst_root, 25.0 / 8);
  // The bounds are worth stating: the worst seen lies within a factor of them.
  EXPECT_GE(worst_sum, 1);
  EXPECT_GE(worst_product, 2);
  EXPECT_GE(worst_quotient, 3);
  EXPECT_GE(worst_root, 1);
}

TEST(double_double, sums_and_products_of_doubles_are_exact) {
  std::mt19937_64 random(2);
  for (std::size_t i = 0; i < scaled(20000); ++i) {
    const auto number = [&] {
      const auto significand = static_cast<double>(static_cast<std::int64_t>(random()) >> 11);
      return std::ldexp(significand, static_cast<int>(random() % 600) - 300);
    };
    const double a = number();
    const double b = number();
    ASSERT_EQ(lift<rational>(double_double::two_sum(a, b)), exact(a) + exact(b)) << a << " " << b;
    ASSERT_EQ(lift<rational>(double_double::two_product(a, b)), exact(a) * exact(b)) << a << " " << b;
  }
}

TEST(double_double, compares_both_words) {
  const auto x = double_double::two_sum(1, 0x1p-80);
  EXPECT_GT(x, double_double(1));
  EXPECT_LT(-x, double_double(-1));
  EXPECT_EQ(x - double_double(1), double_double(0x1p-80));
  EXPECT_EQ(abs(-x), x);
  EXPECT_LT(double_double(1), double_double(2));
}

TEST(double_double, infinities_and_nan_are_findings) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ((double_double(1e308) * double_double(10)).hi(), infinity);
  EXPECT_EQ((double_double(1e308) + double_double(1e308)).hi(), infinity);
  EXPECT_EQ((double_double(infinity) + double_double(1)).lo(), 0);
  EXPECT_TRUE(isnan(double_double(0) / double_double(0)));
  EXPECT_EQ((double_double(infinity) * double_double(-2)).hi(), -infinity);
  EXPECT_EQ((double_double(infinity) - double_double(infinity)).lo(), 0);
  EXPECT_EQ((double_double(1) / double_double(0)).hi(), infinity);
  EXPECT_EQ((double_double(1) / double_double(infinity)).hi(), 0);
  EXPECT_TRUE(isnan(sqrt(double_double(-1))));
  EXPECT_EQ(sqrt(double_double()), double_double());
  EXPECT_EQ(sqrt(double_double(infinity)).hi(), infinity);
  EXPECT_EQ(sqrt(double_double(4)), double_double(2));
}

}  // namespace
