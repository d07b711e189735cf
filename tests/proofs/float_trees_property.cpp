// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The theorems on roundings with underflow and on sums in any order (proofs/theories/float/rounding.v and sum_trees.v), tried on
// the code's own rounding modes: a test has the name of its theorem. Everything is decided in rationals.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/rounding.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using testing::check_property;

philox any_generator() { return philox(*rc::gen::arbitrary<std::uint64_t>(), 12); }

/// u and eta of rounding.v.
struct cost {
  rational u, eta;
};
template <format F, class Mode>
cost cost_of() {
  const rational twice = std::is_same_v<Mode, toward_zero> ? 2 : 1;
  return {rational(twice * exact(unit_roundoff(F))), rational(twice * exact(smallest_subnormal(F)) / 2)};
}

/// Around the normal range of F and below it, a tie between neighbours now and then.
template <format F>
double any_number(philox& random) {
  const int low = std::max(F.emin - F.precision - 3, -1074), high = std::min(F.emax - 1, 1000);
  const int exponent = random.below(2) == 0
                           ? low + static_cast<int>(random.below(static_cast<std::uint64_t>(2 * F.precision + 8)))
                           : low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low)));
  double significand = 1 + random.uniform();
  if (random.below(3) == 0)
    significand = 1 + std::floor(std::ldexp(significand - 1, F.precision)) * unit_roundoff(F);  // a number or a tie
  return std::ldexp(random.below(2) == 0 ? significand : -significand, exponent);
}

template <format F, class Mode>
double rounded_once(double x) {
  Mode mode;
  return detail::round_value<F>(x, mode);
}

template <format F, class Mode>
void expect_rounding(philox& random, rational& worst) {
  const auto [u, eta] = cost_of<F, Mode>();
  for (int i = 0; i < 20; ++i) {
    const double x = any_number<F>(random), y = rounded_once<F, Mode>(x);
    const rational error = abs(rational(exact(y) - exact(x)));
    RC_ASSERT(error <= u * abs(exact(x)) + eta);
    RC_ASSERT(error <= u * abs(exact(y)) + eta);
    worst = std::max(worst, rational(error / (u * abs(exact(x)) + eta)));
  }
}

TEST(float_rounding, no_format_is_a_model) {
  EXPECT_EQ((rounded_once<bf16, nearest_even>(0x1p-135)), 0);
  EXPECT_EQ((rounded_once<e4m3, nearest_even>(0x1p-11)), 0);
  EXPECT_EQ(0x1p-1074 * 0.25, 0);
}

TEST(float_rounding, nearest_rounding) {
  rational worst = 0;
  check_property(100, 9301, [&] {
    philox random = any_generator();
    expect_rounding<bf16, nearest_even>(random, worst);
    expect_rounding<fp16, nearest_even>(random, worst);
    expect_rounding<tf32, nearest_away>(random, worst);
    expect_rounding<e4m3, nearest_even>(random, worst);
    expect_rounding<e5m2, nearest_even>(random, worst);
    expect_rounding<fp32, nearest_even>(random, worst);
  });
  EXPECT_GT(worst, rational(1, 2));
  // A tie goes away from zero in tf32 as hardware rounds it.
  EXPECT_EQ((rounded_once<tf32, nearest_away>(2049.0 / 2048)), 1025.0 / 1024);
  EXPECT_EQ((rounded_once<tf32, nearest_even>(2049.0 / 2048)), 1);
}

TEST(float_rounding, toward_zero_rounding) {
  rational worst = 0;
  check_property(100, 9302, [&] {
    philox random = any_generator();
    expect_rounding<tf32, toward_zero>(random, worst);
    expect_rounding<fp32, toward_zero>(random, worst);
    expect_rounding<bf16, toward_zero>(random, worst);
  });
  EXPECT_GT(worst, rational(1, 2));
}

/// As the emulator flushes: what was rounded below the smallest normal number becomes 0.
template <format F, class Mode>
double flushed(double x) {
  const double y = rounded_once<F, Mode>(x);
  return std::fabs(y) < smallest_normal(F) ? 0 : y;
}

TEST(float_rounding, flushed_rounding) {
  int lost = 0;
  check_property(200, 9303, [&] {
    philox random = any_generator();
    for (int i = 0; i < 20; ++i) {
      const double x = any_number<fp32>(random);
      const rational normal = exact(smallest_normal(fp32));
      const double nearest = flushed<fp32, nearest_even>(x), cut = flushed<fp32, toward_zero>(x);
      RC_ASSERT(abs(rational(exact(nearest) - exact(x))) <= exact(unit_roundoff(fp32)) * abs(exact(x)) + normal);
      RC_ASSERT(abs(rational(exact(cut) - exact(x))) <= 2 * exact(unit_roundoff(fp32)) * abs(exact(cut)) + normal);
      lost += nearest == 0;
    }
  });
  EXPECT_GT(lost, 0);
}

rational power(const rational& x, std::size_t n) {
  rational p = 1;
  for (std::size_t i = 0; i < n; ++i) p *= x;
  return p;
}

/// A partial sum with what the theorem says of it.
struct partial {
  double computed;
  rational total, size;
  std::size_t height, terms, additions;
};

/// Products of bf16 numbers rounded to F or exact, in fp32-like sums of a random order; `Add` rounds the sums.
template <format F, class Mode, bool Flush>
void expect_tree_error(philox& random, bool tiny, rational& worst) {
  const auto [u, half] = cost_of<F, Mode>();
  const rational eta = Flush ? std::max(half, exact(smallest_normal(F))) : half;
  const auto once = [](double x) { return Flush ? flushed<F, Mode>(x) : rounded_once<F, Mode>(x); };
  const bool rounds_products = random.below(2) == 0;
  const std::size_t d = 1 + random.below(24);
  std::vector<partial> open;
  for (std::size_t i = 0; i < d; ++i) {
    const int scale = tiny ? F.emin / 2 - F.precision : 0;
    const auto factor = [&] {
      const double x =
          std::ldexp(1 + random.uniform(), scale + static_cast<int>(random.below(static_cast<std::uint64_t>(F.precision))));
      return rounded_once<bf16, nearest_even>(random.below(2) == 0 ? x : -x);
    };
    const double x = factor(), y = factor();
    const double product = x * y;  // 16 bits, exact
    open.push_back({rounds_products ? once(product) : product, exact(product), abs(exact(product)), 0, 1, 0});
  }
  while (open.size() > 1) {
    const std::size_t i = random.below(open.size());
    const partial a = open[i];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    partial& b = open[random.below(open.size())];
    const rational sum = exact(a.computed) + exact(b.computed);
    const double as_double = a.computed + b.computed;
    if (exact(as_double) != sum) RC_DISCARD("the sum has more than 53 bits");
    b = {once(as_double),   a.total + b.total,
         a.size + b.size,   std::max(a.height, b.height) + 1,
         a.terms + b.terms, a.additions + b.additions + 1};
  }
  const partial& all = open[0];
  const rational grown = power(1 + u, all.height);
  const rational terms_lost = rounds_products ? rational(eta * all.terms) : rational(0);
  const rational bound = (grown * (rounds_products ? rational(1 + u) : rational(1)) - 1) * all.size +
                         grown * (terms_lost + rational(eta * all.additions));
  const rational error = abs(rational(exact(all.computed) - all.total));
  RC_ASSERT(error <= bound);
  if (Flush) {  // flushed_tree_error: one smallest normal number a leaf, not one an operation
    const rational v = std::is_same_v<Mode, toward_zero> ? u : rational(u / (1 - u));
    const rational leaves = exact(smallest_normal(F)) * all.terms;
    RC_ASSERT(error <= (power(1 + v, all.height + 1) - 1) * all.size + power(1 + v, all.height) * leaves);
  }
  if (bound > 0) worst = std::max(worst, rational(error / bound));
}

TEST(float_sum_trees, tree_error) {
  rational worst = 0;
  check_property(300, 9304, [&] {
    philox random = any_generator();
    const bool tiny = random.below(2) == 0;
    expect_tree_error<tf32, nearest_away, false>(random, tiny, worst);
    expect_tree_error<tf32, toward_zero, false>(random, tiny, worst);
    expect_tree_error<fp32, nearest_even, false>(random, tiny, worst);
    expect_tree_error<fp32, toward_zero, false>(random, tiny, worst);
    expect_tree_error<fp32, nearest_even, true>(random, tiny, worst);
    expect_tree_error<fp32, toward_zero, true>(random, tiny, worst);
  });
  EXPECT_GT(worst, rational(1, 4)) << "the bound is far from every error seen";
}

}  // namespace
}  // namespace deltaproof
