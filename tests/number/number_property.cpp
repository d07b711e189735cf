// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Laws of the number types: modular and rational are fields and `reduce` respects them, rounding is
// monotone and idempotent, lift followed by round_to is the identity, double_double keeps its form.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/double_double.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/real.hpp"
#include "support/multiplier.hpp"

namespace {

using namespace deltaproof;

/// Any 64 bits, with small and special ones often.
std::uint64_t any_bits() {
  return *rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 8),
                         rc::gen::inRange<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()),
                         rc::gen::map(rc::gen::inRange(0, 64), [](int shift) { return ~std::uint64_t{0} << shift; }));
}

double any_double() {
  const double x = std::bit_cast<double>(any_bits());
  RC_PRE(x == x);
  return x;
}

/// A finite double within `reach` binades of 1, or zero.
double moderate(int reach) {
  const std::uint64_t bits = any_bits();
  const int exponent = *rc::gen::inRange(-reach, reach + 1);
  if (bits == 0) return 0;
  const double significand = std::bit_cast<double>((bits & 0xfffffffffffffU) | std::uint64_t{1023} << 52);
  return std::ldexp(bits >> 63 != 0 ? -significand : significand, exponent);
}

modular any_modular() { return modular(static_cast<std::int64_t>(any_bits())); }

rational any_rational() {
  const auto integer = [] { return *rc::gen::inRange<std::int64_t>(-1000000, 1000000); };
  const std::int64_t denominator = integer();
  return rational(integer(), denominator == 0 ? 1 : denominator);
}

template <class S, class Any>
void field_laws(Any any) {
  const S a = any();
  const S b = any();
  const S c = any();
  RC_ASSERT(a + b == b + a);
  RC_ASSERT(a * b == b * a);
  RC_ASSERT((a + b) + c == a + (b + c));
  RC_ASSERT((a * b) * c == a * (b * c));
  RC_ASSERT(a * (b + c) == a * b + a * c);
  RC_ASSERT(a + -a == S(0));
  RC_ASSERT(a - b == a + -b);
  RC_ASSERT(a * S(1) == a);
  if (b != S(0)) {
    RC_ASSERT(a / b * b == a);
    RC_ASSERT(b / b == S(1));
  }
}

RC_GTEST_PROP(modular_property, is_a_field, ()) { field_laws<modular>(any_modular); }

RC_GTEST_PROP(rational_property, is_a_field, ()) { field_laws<rational>(any_rational); }

RC_GTEST_PROP(rational_property, reduction_is_a_homomorphism, ()) {
  const rational a = any_rational();
  const rational b = any_rational();
  RC_ASSERT(reduce(a + b) == reduce(a) + reduce(b));
  RC_ASSERT(reduce(a * b) == reduce(a) * reduce(b));
  if (b != 0) RC_ASSERT(reduce(a / b) == reduce(a) / reduce(b));
}

template <format F>
void monotone(double x, double y) {
  const double low = std::fmin(x, y);
  const double high = std::fmax(x, y);
  const auto ordered = [](auto a, auto b) { return isnan(a) || isnan(b) || a <= b; };
  RC_ASSERT(ordered(round_to<F>(low), round_to<F>(high)));
  RC_ASSERT(ordered(round_to<F>(low, toward_zero{}), round_to<F>(high, toward_zero{})));
  // Between the neighbours: toward zero never passes x, and nearest is at least as near.
  const auto zero = round_to<F>(x, toward_zero{});
  const auto nearest = round_to<F>(x);
  if (std::isfinite(x) && isfinite(nearest)) {
    RC_ASSERT(std::fabs(zero.value()) <= std::fabs(x));
    RC_ASSERT(abs(exact(nearest.value()) - exact(x)) <= abs(exact(zero.value()) - exact(x)));
  }
  // Idempotent and odd.
  if (!isnan(nearest)) {
    RC_ASSERT(round_to<F>(nearest.value()) == nearest);
    RC_ASSERT(round_to<F>(-x) == -nearest);
    RC_ASSERT(rounded<F>::from_bits(nearest.bits()) == nearest);
  }
}

/// Two doubles in and around the range of a format, often close to each other.
template <format F>
void monotone_in_range() {
  const double x = any_double();
  const bool anywhere = *rc::gen::arbitrary<bool>();
  if (anywhere) return monotone<F>(x, any_double());
  const double near = std::isfinite(x) ? std::ldexp(std::frexp(x, std::array<int, 1>{}.data()),
                                                    *rc::gen::inRange(F.emin - F.precision - 2, F.emax + 3))
                                       : x;
  monotone<F>(near, near * (1 + std::ldexp(1, -*rc::gen::inRange(1, 54))));
}

RC_GTEST_PROP(rounding_property, bf16_is_monotone, ()) { monotone_in_range<bf16>(); }
RC_GTEST_PROP(rounding_property, fp16_is_monotone, ()) { monotone_in_range<fp16>(); }
RC_GTEST_PROP(rounding_property, tf32_is_monotone, ()) { monotone_in_range<tf32>(); }
RC_GTEST_PROP(rounding_property, e4m3_is_monotone, ()) { monotone_in_range<e4m3>(); }
RC_GTEST_PROP(rounding_property, e5m2_is_monotone, ()) { monotone_in_range<e5m2>(); }
RC_GTEST_PROP(rounding_property, fp32_is_monotone, ()) { monotone_in_range<fp32>(); }

RC_GTEST_PROP(rounding_property, a_small_error_bound_holds_in_the_normal_range, ()) {
  const double x = moderate(100);
  const rational truth = exact(x);
  RC_ASSERT(abs(exact(round_to<bf16>(x).value()) - truth) <= abs(truth) * exact(unit_roundoff(bf16)));
  RC_ASSERT(abs(exact(round_to<fp32>(x).value()) - truth) <= abs(truth) * exact(unit_roundoff(fp32)));
  RC_ASSERT(abs(exact(round_to<fp32>(x, toward_zero{}).value()) - truth) <= abs(truth) * exact(2 * unit_roundoff(fp32)));
}

template <format F, class Wide>
void there_and_back() {
  using S = rounded<F>;
  const auto bits = static_cast<typename S::bits_type>(any_bits());
  const auto x =
      S::from_bits(static_cast<typename S::bits_type>(bits >> detail::encoding<F>::padding << detail::encoding<F>::padding));
  if (!isfinite(x)) return;
  RC_ASSERT(round_to<F>(lift<Wide>(x)).bits() == x.bits() || x.value() == 0);
  RC_ASSERT(round_to<F>(lift<Wide>(x), toward_zero{}) == x);
  RC_ASSERT(round_to<S>(lift<Wide>(x)) == x);
}

RC_GTEST_PROP(conversion_property, lift_then_round_is_the_identity, ()) {
  there_and_back<bf16, float>();
  there_and_back<fp16, rounded<tf32>>();
  there_and_back<e4m3, rounded<bf16>>();
  there_and_back<e5m2, rounded<fp16>>();
  there_and_back<tf32, double>();
  there_and_back<fp32, real<64>>();
  there_and_back<fp64, rational>();
  there_and_back<fp64, double_double>();
  there_and_back<fp64, real<128>>();
}

RC_GTEST_PROP(conversion_property, all_sources_agree_on_a_double, ()) {
  const double x = any_double();
  RC_PRE(std::isfinite(x));
  const auto direct = round_to<fp16>(x);
  RC_ASSERT(round_to<fp16>(lift<rational>(x)) == direct);
  RC_ASSERT(round_to<fp16>(lift<real<64>>(x)) == direct);
  RC_ASSERT(round_to<fp16>(lift<double_double>(x)) == direct);
  RC_ASSERT(round_to<fp16>(rounded<fp64>::from_exact(x)) == direct);
  RC_ASSERT(round_to<double>(lift<rational>(x)) == x);
}

RC_GTEST_PROP(double_double_property, keeps_its_form_and_its_symmetries, ()) {
  const auto number = [] { return double_double::two_sum(moderate(50), moderate(20) * 0x1p-60); };
  const double_double x = number();
  const double_double y = number();
  for (const double_double z : {x + y, x - y, x * y}) RC_ASSERT(z.hi() + z.lo() == z.hi());
  RC_ASSERT(x + y == y + x);
  RC_ASSERT(x * y == y * x);
  RC_ASSERT(x - x == double_double(0));
  RC_ASSERT(x + double_double(0) == x);
  RC_ASSERT(x * double_double(2) == x + x);
  RC_ASSERT(-(x - y) == y - x);
  RC_ASSERT((x < y) == (lift<rational>(x) < lift<rational>(y)));
  if (x.hi() != 0) {
    RC_ASSERT((x / x).hi() == 1);
    RC_ASSERT(x / double_double(2) * double_double(2) == x);
  }
}

RC_GTEST_PROP(arithmetic_property, operators_are_the_rounded_rational_ones, ()) {
  const auto a = round_to<bf16>(moderate(60));
  const auto b = round_to<bf16>(moderate(60));
  const rational p = exact(a.value());
  const rational q = exact(b.value());
  RC_ASSERT(a + b == round_to<bf16>(rational(p + q)));
  RC_ASSERT(a - b == round_to<bf16>(rational(p - q)));
  RC_ASSERT(a * b == round_to<bf16>(rational(p * q)));
  if (q != 0) RC_ASSERT(a / b == round_to<bf16>(rational(p / q)));
  RC_ASSERT(fma(a, b, a) == round_to<bf16>(rational(p * q + p)));
}

}  // namespace
