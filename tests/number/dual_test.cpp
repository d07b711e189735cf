// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/dual.hpp"

#include <gtest/gtest.h>

#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/rounded.hpp"

namespace deltaproof {
namespace {

using exact_dual = dual<rational>;

static_assert(Scalar<dual<rational>> && Scalar<dual<modular>> && Scalar<dual<double>> && Scalar<dual<float>>);
static_assert(Scalar<dual<rounded<bf16>>> && Scalar<dual<dual<rational>>>);
static_assert(is_exact_scalar_v<dual<rational>> && is_exact_scalar_v<dual<modular>> && !is_exact_scalar_v<dual<double>>);

exact_dual number(int value, int slope) { return exact_dual(rational(value), rational(slope)); }

TEST(dual, ring_operations_by_hand) {
  EXPECT_EQ(number(2, 3) + number(5, 7), number(7, 10));
  EXPECT_EQ(number(2, 3) - number(5, 7), number(-3, -4));
  EXPECT_EQ(-number(2, -3), number(-2, 3));
  EXPECT_EQ(number(2, 3) * number(5, 7), number(10, 29));  // 3 * 5 + 2 * 7
  EXPECT_EQ(number(10, 29) / number(5, 7), number(2, 3));
  EXPECT_EQ(number(1, 0) / number(2, 3), exact_dual(rational(1) / 2, rational(-3) / 4));
  EXPECT_EQ(number(0, 1) * number(0, 1), number(0, 0));  // e^2 = 0
}

TEST(dual, compound_operations_are_the_plain_ones) {
  exact_dual x = number(2, 3);
  x += number(5, 7);
  EXPECT_EQ(x, number(7, 10));
  x -= number(4, 1);
  EXPECT_EQ(x, number(3, 9));
  x *= number(2, -1);
  EXPECT_EQ(x, number(6, 15));
  x /= number(3, 0);
  EXPECT_EQ(x, number(2, 5));
}

TEST(dual, equality_sees_both_parts) {
  EXPECT_EQ(number(2, 3), number(2, 3));
  EXPECT_NE(number(2, 3), number(2, 4));
  EXPECT_NE(number(2, 3), number(1, 3));
}

TEST(dual, constants_have_slope_zero_and_a_default_is_zero) {
  EXPECT_EQ(exact_dual(), number(0, 0));
  EXPECT_EQ(exact_dual(rational(4)), number(4, 0));
  EXPECT_EQ(zero<exact_dual>(), number(0, 0));
  EXPECT_EQ(one<exact_dual>(), number(1, 0));
  EXPECT_EQ(from_int<exact_dual>(-3), number(-3, 0));
  EXPECT_EQ(scalar_name<exact_dual>(), "dual<rational>");
  EXPECT_EQ(scalar_name<dual<dual<modular>>>(), "dual<dual<modular>>");
}

TEST(dual, dividing_by_a_value_of_zero_is_refused_whatever_its_slope) {
  EXPECT_THROW((void)(dual<modular>(modular(3)) / dual<modular>(modular(0), modular(1))), domain_error);
}

// x^n has slope n x^(n-1), 1 / x^n has -n / x^(n+1).
template <class S>
void powers_have_their_slopes() {
  for (int base = -4; base <= 4; ++base) {
    if (base == 0) continue;
    dual<S> power = one<dual<S>>();
    const dual<S> x(from_int<S>(base), one<S>());
    for (int n = 0; n < 9; ++n, power *= x) {
      EXPECT_EQ(S(power.slope() * x.value()), S(from_int<S>(n) * power.value())) << base << "^" << n;
      const dual<S> inverse = one<dual<S>>() / power;
      EXPECT_EQ(S(inverse.slope() * x.value()), S(from_int<S>(-n) * inverse.value())) << base << "^-" << n;
    }
  }
}

TEST(dual, powers_have_their_slopes_in_rationals) { powers_have_their_slopes<rational>(); }
TEST(dual, powers_have_their_slopes_modulo_a_prime) { powers_have_their_slopes<modular>(); }

// x = 3 + e + f: in x^3 the part of e f is the second derivative, 6 x.
TEST(dual, duals_of_duals_hold_second_derivatives) {
  using second = dual<exact_dual>;
  const second x(number(3, 1), number(1, 0));
  const second cube = x * x * x;
  EXPECT_EQ(cube.value(), number(27, 27));
  EXPECT_EQ(cube.slope(), number(27, 18));
}

// Each part is rounded as its scalar rounds, in the order written at the operation; 1 + 2^-24 is a tie.
TEST(dual, floats_round_each_part) {
  const dual<float> a(1.0F, 0x1p-24F);
  const dual<float> b(1.0F, 1.0F);
  EXPECT_EQ((a + b).slope(), 1.0F);
  EXPECT_EQ((a * b).slope(), 1.0F);
  EXPECT_EQ((b / a).slope(), 0x1.fffffep-1F);  // 1 - 2^-24 is a float
}

}  // namespace
}  // namespace deltaproof
