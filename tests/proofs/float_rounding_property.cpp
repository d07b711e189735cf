// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The theorems on one rounding, rounded keys, saturation and EFLA's coefficient (proofs/theories/float and bridge), tried on the
// code's own formats and functions: a test has the name of its theorem. Exact rationals where the statement is exact, 256-bit
// reals with a slack of 2^-200 where exp or log stands in it.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/real.hpp"
#include "studies/eigenvalues/parts.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using testing::check_property;
using wide = real<256>;

template <format F>
struct in_format {
  static constexpr format value = F;
};

/// The formats of the theorems, one after the other.
template <class Check>
void for_each_format(Check check) {
  check(in_format<bf16>{});
  check(in_format<fp16>{});
  check(in_format<tf32>{});
  check(in_format<fp32>{});
}

rational power_of_two(int e) {
  rational x = 1;
  for (; e > 0; --e) x *= 2;
  for (; e < 0; ++e) x /= 2;
  return x;
}

template <format F>
rational rounded_once(const rational& x) {
  return exact(round_to<F>(x).value());
}

template <format F>
const rational u = exact(unit_roundoff(F));
template <format F>
const rational h = exact(smallest_subnormal(F));

philox any_generator() { return philox(*rc::gen::arbitrary<std::uint64_t>(), 7); }

/// 1 + j 2^-q in steps finer than the format, midpoints and their neighbours often.
template <format F>
rational any_significand(philox& random) {
  const auto steps = std::uint64_t{1} << (F.precision - 1);
  const rational j = rational(static_cast<std::int64_t>(random.below(steps)));
  const rational unit = 2 * u<F>;
  rational part = rational(static_cast<std::int64_t>(random.below(1 << 20))) / (1 << 20);
  if (random.below(2) == 0) part = rational(1, 2) + rational(static_cast<std::int64_t>(random.below(3)) - 1) / (1 << 20);
  return 1 + (j + part) * unit;
}

template <format F>
rational any_normal(philox& random) {
  const int span = F.emax - F.emin;  // the largest octave is left out: there rounding may overflow
  const int e = F.emin + static_cast<int>(random.below(static_cast<std::uint64_t>(span)));
  const rational x = any_significand<F>(random) * power_of_two(e);
  return random.below(2) == 0 ? x : rational(-x);
}

TEST(float_formats, relative_error) {
  check_property(400, 9101, [] {
    philox random = any_generator();
    for_each_format([&](auto f) {
      constexpr format F = decltype(f)::value;
      const rational x = any_normal<F>(random), r = rounded_once<F>(x);
      RC_ASSERT(abs(rational(r - x)) * (1 + u<F>) <= u<F> * abs(x));
      RC_ASSERT(abs(rational(r - x)) <= u<F> * abs(r));
    });
  });
}

TEST(float_formats, unit_roundoff_is_least) {
  for_each_format([](auto f) {
    constexpr format F = decltype(f)::value;
    for (int e = F.emin; e < F.emax; ++e) {
      const rational x = (1 + u<F>)*power_of_two(e), r = rounded_once<F>(x);
      ASSERT_EQ(x - r, u<F> * r) << e;
      ASSERT_EQ((x - r) * (1 + u<F>), u<F> * x) << e;
    }
  });
  EXPECT_EQ(rational(rational(257, 256) - rounded_once<bf16>(rational(257, 256))), rational(257, 256) / 257);
}

TEST(float_formats, subnormal_error) {
  check_property(400, 9102, [] {
    philox random = any_generator();
    for_each_format([&](auto f) {
      constexpr format F = decltype(f)::value;
      const rational x = (any_significand<F>(random) - 1) * power_of_two(F.emin - static_cast<int>(random.below(3)));
      const rational r = rounded_once<F>(x);
      RC_ASSERT(abs(rational(r - x)) * 2 <= h<F>);
    });
  });
  for_each_format([](auto f) {
    constexpr format F = decltype(f)::value;
    EXPECT_EQ(rounded_once<F>(rational(h<F> / 2)), 0);
  });
}

/// Every rounding is x (1 + e) + t with |e| <= u/(1 + u), |t| <= h/2 and one of them 0.
TEST(float_formats, standard_model) {
  check_property(400, 9103, [] {
    philox random = any_generator();
    for_each_format([&](auto f) {
      constexpr format F = decltype(f)::value;
      const int e = F.emin - F.precision + static_cast<int>(random.below(static_cast<std::uint64_t>(2 * F.precision)));
      const rational x = any_significand<F>(random) * power_of_two(e);
      const rational error = abs(rational(rounded_once<F>(x) - x));
      RC_ASSERT(error * (1 + u<F>) <= u<F> * x || error * 2 <= h<F>);
    });
  });
}

rational square_of(const std::vector<rational>& k) {
  rational sum = 0;
  for (const rational& x : k) sum += x * x;
  return sum;
}

template <format F>
std::vector<rational> rounded_once(const std::vector<rational>& k) {
  std::vector<rational> r;
  for (const rational& x : k) r.push_back(rounded_once<F>(x));
  return r;
}

/// A vector of length at most 1 and close to it; `snap` moves entries just above midpoints, where they round up.
template <format F>
std::vector<rational> unit_key(philox& random, bool snap) {
  const std::size_t d = 1 + random.below(40);
  std::vector<double> g(d);
  double squares = 0;
  for (double& x : g) {
    x = random.below(8) == 0 ? std::ldexp(random.normal(), -static_cast<int>(random.below(150))) : random.normal();
    squares += x * x;
  }
  if (squares == 0) g[0] = squares = 1;
  const double scale = 1 / std::sqrt(squares) * (1 - (snap ? 4 * unit_roundoff(F) : 0x1p-48));
  std::vector<rational> k;
  for (const double x : g) {
    rational entry = exact(x * scale);
    if (snap && x != 0) {
      const double low = round_to<F>(std::fabs(x * scale), toward_zero{}).value();
      const auto bits = rounded<F>::from_exact(low).bits() + (F == tf32 ? 1U << 13 : 1U);
      const double next = rounded<F>::from_bits(static_cast<typename rounded<F>::bits_type>(bits)).value();
      entry = (exact(low) + exact(next)) / 2 * (1 + power_of_two(-60));
      if (x < 0) entry = -entry;
    }
    k.push_back(entry);
  }
  const rational n = square_of(k);
  if (n > 1) {
    for (rational& x : k) x *= 1 - (n - 1);  // (1 - (n - 1))^2 n <= 1
  }
  return k;
}

TEST(float_key_norm, key_norm_after_rounding) {
  check_property(150, 9111, [] {
    philox random = any_generator();
    for_each_format([&](auto f) {
      constexpr format F = decltype(f)::value;
      const auto k = unit_key<F>(random, random.below(2) == 0);
      const rational w = 1 + u<F> / (1 + u<F>), normal = exact(smallest_normal(F));
      const rational lost = static_cast<int>(k.size()) * h<F> * (normal + h<F> / 4);
      RC_ASSERT(square_of(rounded_once<F>(k)) <= w * w * square_of(k) + lost);
    });
  });
}

TEST(float_key_norm, unit_key_after_rounding) {
  check_property(150, 9112, [] {
    philox random = any_generator();
    for_each_format([&](auto f) {
      constexpr format F = decltype(f)::value;
      const auto k = unit_key<F>(random, random.below(2) == 0);
      RC_ASSERT(square_of(k) <= 1);
      RC_ASSERT(square_of(rounded_once<F>(k)) <= 1 + 2 * u<F>);
    });
  });
}

TEST(float_key_norm, safe_step) {
  std::size_t beyond = 0;
  check_property(150, 9113, [&] {
    philox random = any_generator();
    for_each_format([&](auto f) {
      constexpr format F = decltype(f)::value;
      auto k = unit_key<F>(random, random.below(2) == 0);
      for (rational& x : k) x *= 1 + u<F> * u<F>;  // |k|^2 <= 1 + 4 u^2
      RC_ASSERT(square_of(k) <= 1 + 4 * u<F> * u<F>);
      const rational n = square_of(rounded_once<F>(k));
      RC_ASSERT(2 * (1 - 2 * u<F>)*n <= 2);
      beyond += 2 * n > 2 ? 1 : 0;
    });
  });
  EXPECT_GT(beyond, 50U) << "keys that leave at beta = 2: without them the clamp is not tried";
}

TEST(float_key_norm, safe_step_condition) {
  for_each_format([](auto f) {
    constexpr format F = decltype(f)::value;
    for (const std::size_t d : {1U, 16U, 64U, 256U, 4096U, 32768U})
      EXPECT_TRUE(detail::eigenvalues::safe_step_is_proved(F, d)) << d;
  });
  EXPECT_FALSE(detail::eigenvalues::safe_step_is_proved(fp16, 1 << 18));
}

TEST(float_key_norm, eigenvalue_without_clamp) {
  check_property(150, 9114, [] {
    philox random = any_generator();
    for_each_format([&](auto f) {
      constexpr format F = decltype(f)::value;
      const rational n = square_of(rounded_once<F>(unit_key<F>(random, random.below(2) == 0)));
      RC_ASSERT(1 - 2 * n >= -(1 + 4 * u<F>));
    });
  });
}

template <format F>
std::vector<rational> long_key() {
  std::vector<rational> k(15, rational((1 + u<F> + u<F> * u<F>) / 4));
  k.push_back((1 - 16 * u<F>) / 4);
  return k;
}

TEST(float_key_norm, safe_step_sharp) {
  for_each_format([](auto f) {
    constexpr format F = decltype(f)::value;
    const auto k = long_key<F>();
    EXPECT_LE(square_of(k), 1);
    EXPECT_GT(2 * (1 - u<F>)*square_of(rounded_once<F>(k)), 2);
  });
}

TEST(float_key_norm, long_key_after_rounding) {
  for_each_format([](auto f) {
    constexpr format F = decltype(f)::value;
    EXPECT_EQ(square_of(rounded_once<F>(long_key<F>())), 1 + rational(7, 4) * u<F> + rational(79, 4) * u<F> * u<F>);
  });
}

TEST(float_key_norm, unclamped_step_expands) {
  for_each_format([](auto f) {
    constexpr format F = decltype(f)::value;
    EXPECT_LT(1 - 2 * square_of(rounded_once<F>(long_key<F>())), -(1 + rational(7, 2) * u<F>));
  });
}

const std::vector<rational> key_3_4{rational(3, 5), rational(4, 5)};

TEST(float_key_norm, bf16_key_3_4) {
  EXPECT_EQ(square_of(key_3_4), 1);
  EXPECT_EQ(1 - 2 * square_of(rounded_once<bf16>(key_3_4)), rational(-32973, 32768));
}

TEST(float_key_norm, bf16_key_161_240) {
  const std::vector<rational> k{rational(161, 289), rational(240, 289)};
  EXPECT_EQ(square_of(k), 1);
  EXPECT_GT(rational(255, 128) * square_of(rounded_once<bf16>(k)), 2);
}

/// z <- (I - b k k^T) z.
void step(std::vector<rational>& z, const rational& b, const std::vector<rational>& k) {
  rational p = 0;
  for (std::size_t i = 0; i < k.size(); ++i) p += k[i] * z[i];
  for (std::size_t i = 0; i < k.size(); ++i) z[i] -= b * p * k[i];
}

TEST(bridge_rounded_steps, bf16_key_3_4_diverges) {
  const auto k = rounded_once<bf16>(key_3_4);
  std::vector<rational> z = k;
  const rational start = square_of(z);
  for (int t = 0; t < 111; ++t) step(z, 2, k);
  EXPECT_LT(square_of(z), 4 * start);
  step(z, 2, k);
  EXPECT_GT(square_of(z), 4 * start);
}

TEST(bridge_rounded_steps, rounded_run_non_expansive) {
  check_property(60, 9121, [] {
    philox random = any_generator();
    for_each_format([&](auto f) {
      constexpr format F = decltype(f)::value;
      std::vector<rational> z(40);
      for (rational& x : z) x = rational(static_cast<std::int64_t>(random.below(2001)) - 1000) / 7;
      rational length = square_of(z);
      for (int t = 0; t < 6; ++t) {
        auto k = rounded_once<F>(unit_key<F>(random, random.below(2) == 0));
        k.resize(z.size(), 0);
        rational b = 2 * (1 - 2 * u<F>);
        if (random.below(2) == 0) b *= rational(static_cast<std::int64_t>(random.below(1001))) / 1000;
        step(z, b, k);
        for (rational& x : z) x *= rational(static_cast<std::int64_t>(random.below(17)) - 8) / 8;
        const rational now = square_of(z);
        RC_ASSERT(now <= length);
        length = now;
      }
    });
  });
}

TEST(bridge_rounded_steps, unclamped_run_diverges) {
  for_each_format([](auto f) {
    constexpr format F = decltype(f)::value;
    const auto k = rounded_once<F>(long_key<F>());
    std::vector<rational> z = k;
    const rational start = square_of(z);
    for (int t = 0; t < 4; ++t) step(z, 2, k);
    EXPECT_GT(square_of(z), start * (1 + 28 * u<F>));  // (1 + 7u/2)^8
  });
}

TEST(float_sigmoid, sigmoid_saturates_from) {
  check_property(200, 9131, [] {
    philox random = any_generator();
    for_each_format([&](auto f) {
      constexpr format F = decltype(f)::value;
      const wide edge = log(wide(std::ldexp(1.0, F.precision + 1) - 1));
      const double away = random.below(2) == 0 ? 1 + 6 * unit_roundoff(F) * random.normal() : 2 * random.uniform();
      const double near = static_cast<double>(edge) * away;
      const auto x = round_to<F>(near);
      RC_ASSERT((sigmoid(x).value() == 1) == (wide(x.value()) >= edge));
      const auto logit = round_to<bf16>(near);
      const bool saturated = sigmoid(rounded<fp32>::from_exact(logit.value())).value() == 1;
      RC_ASSERT(saturated == (wide(logit.value()) >= log(wide(std::ldexp(1.0, 25) - 1))));
    });
  });
}

const wide slack = pow(wide(2), -200);

TEST(float_gain, gain_robust) {
  check_property(500, 9141, [] {
    philox random = any_generator();
    const wide n = std::ldexp(1 + random.uniform(), static_cast<int>(random.below(40)) - 20);
    const wide b = std::ldexp(1 + random.uniform(), static_cast<int>(random.below(40)) - 20);
    const bool corner = random.below(2) == 0;
    const wide n_hat = n * (1 + wide(corner ? -0.25 : random.uniform() / 2 - 0.25));
    const wide a = (1 - exp(wide(-b * n_hat))) / n_hat, a_hat = a * (1 + wide(corner ? 0.5 : random.uniform() - 0.5));
    RC_ASSERT(a_hat * n >= 0);
    RC_ASSERT(a_hat * n <= 2 + slack);
  });
}

TEST(float_gain, gain_robust_sharp) {
  const wide n_hat = 0.75, a = (1 - exp(wide(-64 * n_hat))) / n_hat;  // n = 1
  EXPECT_GT(a * (1.5 + 0x1p-30), 2);
  EXPECT_LE(a * 1.5, 2);
}

TEST(float_alpha, square_of_rounded_entry) {
  check_property(400, 9151, [] {
    philox random = any_generator();
    const rational k = any_significand<bf16>(random) * power_of_two(-1 - static_cast<int>(random.below(59)));
    const rational r = rounded_once<bf16>(k);
    RC_ASSERT(abs(rational(r * r - k * k)) * 65536 <= 513 * k * k);
  });
  const rational worst = 1 + (1 + power_of_two(-40)) / 256;  // just above the first midpoint, up
  const rational r = rounded_once<bf16>(worst);
  EXPECT_GT((r * r - worst * worst) * 65536, 507 * worst * worst);  // the bound is nearly attained
}

TEST(float_alpha, one_minus_exp_condition) {
  check_property(400, 9152, [] {
    philox random = any_generator();
    const wide x = std::ldexp(1 + random.uniform(), static_cast<int>(random.below(60)) - 50);
    const wide w = std::ldexp(random.uniform(), -static_cast<int>(random.below(30)));
    const wide y = x * (1 + w * (2 * random.uniform() - 1));
    const wide fx = -expm1(wide(-x)), fy = -expm1(wide(-y));
    RC_ASSERT(abs(wide(fy - fx)) <= w * fx * (1 + slack));
  });
}

/// x = fl(b n), expm1 correctly rounded, one division in fp32, one store in bf16: worst errors near the bounds.
TEST(float_alpha, efla_coefficient_bf16) {
  wide worst_stored = 0;
  check_property(2000, 9153, [&] {
    philox random = any_generator();
    const auto n = round_to<fp32>(std::ldexp(1 + random.uniform(), static_cast<int>(random.below(40)) - 20));
    const auto b = round_to<fp32>(std::ldexp(1 + random.uniform(), static_cast<int>(random.below(20)) - 15));
    const auto x = b * n;
    const auto eh = -expm1(-x);
    if (!(eh.value() >= 0x1p-39)) RC_DISCARD("1 - e^-x below the range of the theorem");
    const auto quotient = eh / n;
    const wide exact_value = -expm1(wide(-wide(b.value()) * n.value())) / n.value();
    const wide stored = abs(wide(wide(round_to<bf16>(quotient).value()) - exact_value)) / exact_value;
    RC_ASSERT(abs(wide(wide(quotient.value()) - exact_value)) <= exact_value * 21 / 67108864);  // alpha_fp32
    RC_ASSERT(stored <= wide(1026) / 262144);
    worst_stored = stored > worst_stored ? stored : worst_stored;
  });
  EXPECT_GT(worst_stored, wide(900) / 262144);
}

}  // namespace
}  // namespace deltaproof
