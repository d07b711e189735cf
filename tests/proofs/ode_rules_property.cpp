// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The theorems of proofs/theories/ode (exact_flow, stability, logistic), asked of the rule catalogue, of steps of the library
// and of study horizon's maps: a test has the name of its theorem. Polynomials and rational functions in rationals, e^-x between
// two rationals.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "deltaproof/number/dual.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/real.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/logistic/maps.hpp"
#include "support/identities/step.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

namespace dense = testing::dense;
using detail::logistic::advance;
using detail::logistic::one_step;
using testing::library;

int any(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); }

/// A multiple of 1/64 in [low, high].
rational any_x(int low, int high) { return rational(any(64 * low, 64 * high)) / 64; }

rational absolute(const rational& x) { return x < 0 ? rational(-x) : x; }

rational power(const rational& x, int n) {
  rational result = 1;
  for (int i = 0; i < n; ++i) result *= x;
  return result;
}

struct between {
  rational lower, upper;
};

/// e^-x for 0 <= x <= 8, to about 40 digits: 1 / sum x^n / n!, whose rest is less than twice its first term.
between exp_minus(const rational& x) {
  rational sum = 0;
  rational term = 1;
  for (int n = 1; n <= 60; ++n) {
    sum += term;
    term = term * x / n;
  }
  return {rational(1 / (sum + 2 * term)), rational(1 / sum)};
}

// ---- exact_flow

// For any ring element e in the place of e^-x the step (1 - e) / n has the eigenvalue e, and steps add up.
RC_GTEST_PROP(ode_exact_flow, flow_step_eigenvalue, ()) {
  const testing::one_step<modular> one(*testing::recipes({.tokens = 3, .key_dim = 5, .value_dim = 3}));
  RC_PRE(!(one.squared_norm() == modular(0)));
  const modular e(any(-999, 999));
  const auto transition = testing::transition_by(library<modular>{}, one.k, (modular(1) - e) / one.squared_norm());
  auto want = one.k;
  for (modular& x : want) x = e * x;
  RC_ASSERT(dense::read(transition, one.k) == want);
}

RC_GTEST_PROP(ode_exact_flow, flow_step_composition, ()) {
  const testing::one_step<modular> one(*testing::recipes({.tokens = 3, .key_dim = 5, .value_dim = 3}));
  const modular n = one.squared_norm();
  RC_PRE(!(n == modular(0)));
  const modular e(any(-999, 999));
  const modular f(any(-999, 999));
  const auto step = [&](const modular& eigenvalue, const matrix<modular>& state) {
    return testing::stepped_by(library<modular>{}, one.k, one.v, (modular(1) - eigenvalue) / n, state);
  };
  RC_ASSERT(step(f, step(e, one.state)) == step(e * f, one.state));
}

// The rule's own b = beta phi(x): 1 - b n lies where e^-x does, within the rounding of 128 bits.
RC_GTEST_PROP(ode_exact_flow, flow_eigenvalue_range, ()) {
  const rational x = any_x(0, 8);
  const int n = any(1, 4);
  using wide = real<128>;
  const auto b = effective_step(exact_flow{}, wide(round_to<double>(x)) / wide(n), wide(n));
  const wide eigenvalue = wide(1) - b * wide(n);
  RC_ASSERT(eigenvalue > wide(0));
  RC_ASSERT(eigenvalue <= wide(1));
}

// m steps of Euler and m of implicit Euler enclose the flow, and the rule in fp64 lies between.
RC_GTEST_PROP(ode_exact_flow, exact_flow_solves, ()) {
  const rational x = any_x(0, 4);
  const int m = 64;
  const rational below = power(euler::stability(rational(x / m)), m);
  const rational above = power(implicit_euler::stability(rational(x / m)), m);
  const rational rule = exact(exact_flow::stability(round_to<double>(x)));
  const rational slack = power(rational(1) / 2, 50);
  RC_ASSERT(rational(below - slack) <= rule);
  RC_ASSERT(rule <= rational(above + slack));
  RC_ASSERT(rational(above - below) <= rational(x * x / 32));
}

RC_GTEST_PROP(ode_exact_flow, exact_flow_start, ()) {
  const testing::one_step<rational> one(*testing::recipes({.tokens = 3, .key_dim = 5, .value_dim = 3}));
  const double b = effective_step(exact_flow{}, 0.0, round_to<double>(one.squared_norm()));
  RC_ASSERT(b == 0);
  RC_ASSERT(testing::stepped_by(library<rational>{}, one.k, one.v, exact(b), one.state) == one.state);
}

// ---- stability

template <class Rule>
bool stable(const rational& x) {
  return absolute(Rule::stability(x)) <= 1;
}

RC_GTEST_PROP(ode_stability, euler_stable, ()) {
  const rational x = any_x(-4, 4);
  RC_ASSERT(stable<euler>(x) == (x >= 0 && x <= 2));
}

RC_GTEST_PROP(ode_stability, rk2_stable, ()) {
  const rational x = any_x(-4, 4);
  RC_ASSERT(stable<rk2>(x) == (x >= 0 && x <= 2));
}

RC_GTEST_PROP(ode_stability, rk3_stable, ()) {
  const rational x = any_x(-4, 4);
  RC_ASSERT(stable<rk3>(x) == (x >= 0 && rational(power(x, 3) - 3 * power(x, 2) + 6 * x - 12) <= 0));
}

RC_GTEST_PROP(ode_stability, rk4_stable, ()) {
  const rational x = any_x(-4, 4);
  RC_ASSERT(stable<rk4>(x) == (x >= 0 && rational(power(x, 3) - 4 * power(x, 2) + 12 * x - 24) <= 0));
}

RC_GTEST_PROP(ode_stability, rk4_positive, ()) { RC_ASSERT(rk4::stability(any_x(-9, 9)) > 0); }

/// The stated limit is stable, the next double is not; so it is inside, anywhere, and it is not outside.
template <class Rule>
void limit_is_the_last_stable_double() {
  const double limit = stability_limit<Rule>;
  EXPECT_TRUE(stable<Rule>(exact(limit)));
  EXPECT_FALSE(stable<Rule>(exact(std::nextafter(limit, 4.0))));
  for (int i = 0; i <= 1000; ++i) {
    EXPECT_TRUE(stable<Rule>(rational(exact(limit) * i / 1000))) << i;
    EXPECT_FALSE(stable<Rule>(rational(exact(std::nextafter(limit, 4.0)) + rational(i) / 100))) << i;
  }
}

TEST(ode_stability, euler_limit) { limit_is_the_last_stable_double<euler>(); }
TEST(ode_stability, rk2_limit) { limit_is_the_last_stable_double<rk2>(); }
TEST(ode_stability, rk3_limit) {
  limit_is_the_last_stable_double<rk3>();
  EXPECT_EQ(exact(rk3::limit), rational(5658199458317630) / (std::int64_t{1} << 51));
}
TEST(ode_stability, rk4_limit) {
  limit_is_the_last_stable_double<rk4>();
  EXPECT_EQ(exact(rk4::limit), rational(6271923527134733) / (std::int64_t{1} << 51));
}

RC_GTEST_PROP(ode_stability, implicit_euler_range, ()) {
  const rational x = any_x(0, 1000);
  RC_ASSERT(implicit_euler::stability(x) > 0);
  RC_ASSERT(implicit_euler::stability(x) <= 1);
}

RC_GTEST_PROP(ode_stability, crank_nicolson_range, ()) {
  const rational x = any_x(0, *rc::gen::element(4, 1000));
  const rational r = crank_nicolson::stability(x);
  RC_ASSERT(r > -1);
  RC_ASSERT(r <= 1);
  RC_ASSERT((r < 0) == (x > 2));
}

RC_GTEST_PROP(ode_stability, exact_range, ()) {
  const double r = exact_flow::stability(round_to<double>(any_x(0, 700)));
  RC_ASSERT(r > 0);
  RC_ASSERT(r <= 1);
}

// Strict for x > 0: what is compared lies far outside the enclosure of e^-x.
RC_GTEST_PROP(ode_stability, euler_below_exact, ()) {
  const rational x = any_x(0, 8);
  RC_ASSERT(euler::stability(x) <= exp_minus(x).upper);
  RC_ASSERT(x == 0 || euler::stability(x) < exp_minus(x).lower);
}

RC_GTEST_PROP(ode_stability, exact_below_rk2, ()) {
  const rational x = any_x(0, 8);
  RC_ASSERT(x == 0 || exp_minus(x).upper < rk2::stability(x));
}

RC_GTEST_PROP(ode_stability, euler_local_error, ()) {
  const rational x = any_x(0, 8);
  RC_ASSERT(x == 0 || absolute(rational(euler::stability(x) - exp_minus(x).upper)) <= rational(x * x / 2));
}

RC_GTEST_PROP(ode_stability, exact_below_implicit_euler, ()) {
  const rational x = any_x(0, 8);
  RC_ASSERT(x == 0 || exp_minus(x).upper < implicit_euler::stability(x));
}

RC_GTEST_PROP(ode_stability, euler_below_crank_nicolson, ()) {
  const rational x = any_x(0, 1000);
  RC_ASSERT(euler::stability(x) <= crank_nicolson::stability(x));
}

RC_GTEST_PROP(ode_stability, crank_nicolson_below_exact, ()) {
  const rational x = any_x(0, 8);
  RC_ASSERT(x == 0 || crank_nicolson::stability(x) < exp_minus(x).lower);
}

RC_GTEST_PROP(ode_stability, rk4_accuracy, ()) {
  const rational x = any_x(0, 1);
  RC_ASSERT(absolute(rational(rk4::stability(x) - exp_minus(x).upper)) <= rational(1) / 120);
}

RC_GTEST_PROP(ode_stability, rk4_accuracy_wide, ()) {
  const rational x = any_x(0, 2);
  RC_ASSERT(absolute(rational(rk4::stability(x) - exp_minus(x).upper)) <= rational(1) / 5);
}

TEST(ode_stability, euler_gap) {
  EXPECT_GE(absolute(rational(euler::stability(rational(2)) - exp_minus(2).lower)), rational(113) / 100);
}

TEST(ode_stability, comparison_instance) {
  const rational x = 1;
  EXPECT_EQ(euler::stability(x), 0);
  EXPECT_EQ(crank_nicolson::stability(x), rational(1) / 3);
  EXPECT_GT(exp_minus(x).lower, rational(36) / 100);
  EXPECT_LT(exp_minus(x).upper, rational(37) / 100);
  EXPECT_EQ(implicit_euler::stability(x), rational(1) / 2);
}

TEST(ode_stability, edges_instance) {
  EXPECT_EQ(euler::stability(rational(3)), -2);
  EXPECT_EQ(rk3::stability(rational(3)), -2);
  EXPECT_EQ(rk4::stability(rational(3)), rational(11) / 8);
}

// ---- logistic: u' = x u (1 - u) in the units of the study, so a = b = x, the fixed point is 1 and h = 1

/// u + x u (1 - u).
template <class S>
S euler_map(const S& x, const S& u) {
  return u + x * u * (one<S>() - u);
}

/// u / (u + (1 - u) e): the flow, with e in the place of e^-x.
template <class S>
S flow(const S& e, const S& u) {
  return u / (u + (one<S>() - u) * e);
}

rational logistic_map(const rational& r, const rational& y) { return r * y * (1 - y); }

// The study's maps in double are the ones named here: exact on short numbers, within a few roundings elsewhere.
TEST(ode_logistic, the_maps_are_the_studys) {
  for (int i = 1; i <= 64; ++i) {
    for (int j = 1; j <= 64; ++j) {
      const double x = i / 16.0;
      const double u = j / 32.0;
      EXPECT_EQ(exact(advance(one_step::logistic_euler, x, 0, u)), euler_map<rational>(exact(x), exact(u)));
      const double decay = i / 64.0;
      const rational want = flow<rational>(exact(decay), exact(u));
      EXPECT_LE(absolute(rational(exact(advance(one_step::logistic_exact, x, decay, u)) - want)),
                rational(want * power(rational(1) / 2, 50)));
    }
  }
}

RC_GTEST_PROP(ode_logistic, euler_map_conjugate, ()) {
  const rational x = any_x(0, 4);
  const rational u = any_x(-2, 2);
  const rational c = x / (1 + x);
  RC_ASSERT(rational(c * euler_map(x, u)) == logistic_map(rational(1 + x), rational(c * u)));
}

RC_GTEST_PROP(ode_logistic, euler_map_fixed_points, ()) {
  const rational x = any_x(0, 4);
  RC_PRE(x > 0);
  const rational u = *rc::gen::element(rational(0), rational(1), any_x(-2, 2));
  RC_ASSERT((euler_map(x, u) == u) == (u == 0 || u == 1));
}

RC_GTEST_PROP(ode_logistic, euler_map_at_fixed_point, ()) {
  const rational x = any_x(0, 4);
  const rational u = any_x(-2, 2);
  RC_ASSERT(rational(euler_map(x, u) - 1) == rational((u - 1) * (1 - x - x * (u - 1))));
}

RC_GTEST_PROP(ode_logistic, euler_map_multiplier, ()) {
  const rational x = any_x(0, 4);
  const auto image = euler_map(dual<rational>(x), dual<rational>(rational(1), rational(1)));
  RC_ASSERT(image.value() == 1);
  RC_ASSERT(image.slope() == euler::stability(x));
}

// With the q and the neighbourhood of the proof.
RC_GTEST_PROP(ode_logistic, euler_map_stable, ()) {
  const rational x = any_x(0, 2);
  RC_PRE(x > 0 && x < 2);
  const rational m = absolute(rational(1 - x));
  const rational eps = (1 - m) / (2 * x);
  const rational u = 1 + eps * any(-16, 16) / 16;
  RC_ASSERT(absolute(rational(euler_map(x, u) - 1)) <= rational((1 + m) / 2 * absolute(rational(u - 1))));
}

RC_GTEST_PROP(ode_logistic, euler_map_unstable, ()) {
  const rational x = any_x(2, 6);
  RC_PRE(x > 2);
  const rational eps = (x / 2 - 1) / x;
  const rational u = 1 + eps * any(-16, 16) / 16;
  RC_ASSERT(absolute(rational(euler_map(x, u) - 1)) >= rational(x / 2 * absolute(rational(u - 1))));
}

RC_GTEST_PROP(ode_logistic, logistic_flow_range, ()) {
  const rational e = rational(any(1, 64)) / 64;
  const rational u = rational(any(1, 64)) / 64;
  RC_ASSERT(flow(e, u) > 0);
  RC_ASSERT(flow(e, u) <= 1);
}

RC_GTEST_PROP(ode_logistic, logistic_flow_start, ()) {
  const rational u = rational(any(1, 200)) / 64;
  RC_ASSERT(flow(rational(1), u) == u);
}

RC_GTEST_PROP(ode_logistic, logistic_flow_monotone, ()) {
  const rational e = rational(any(1, 64)) / 64;
  const rational u = rational(any(1, 200)) / 64;
  RC_ASSERT(flow(e, u) < flow(e, rational(u + rational(any(1, 64)) / 64)));
}

RC_GTEST_PROP(ode_logistic, logistic_flow_semigroup, ()) {
  const rational e = rational(any(1, 64)) / 64;
  const rational f = rational(any(1, 64)) / 64;
  const rational u = rational(any(1, 200)) / 64;
  RC_ASSERT(flow(f, flow(e, u)) == flow(rational(e * f), u));
}

RC_GTEST_PROP(ode_logistic, logistic_flow_multiplier, ()) {
  const rational e = rational(any(1, 64)) / 64;
  const auto image = flow(dual<rational>(e), dual<rational>(rational(1), rational(1)));
  RC_ASSERT(image.value() == 1);
  RC_ASSERT(image.slope() == e);
}

// dE/dt = -x E along the flow: with E = e^-(x t), the slope in t is x u (1 - u).
RC_GTEST_PROP(ode_logistic, logistic_flow_solves, ()) {
  const rational x = any_x(0, 4);
  const rational e = rational(any(1, 64)) / 64;
  const rational u = rational(any(1, 200)) / 64;
  const auto now = flow(dual<rational>(e, rational(-x * e)), dual<rational>(u));
  RC_ASSERT(now.slope() == rational(x * now.value() * (1 - now.value())));
}

// r = 1 + t + 1/t makes the root a rational: (r - 3)(r + 1) = (t - 1/t)^2.
RC_GTEST_PROP(ode_logistic, period_two, ()) {
  const rational t = 1 + rational(any(1, 64)) / 32;
  const rational r = 1 + t + 1 / t;
  const rational s = t - 1 / t;
  RC_ASSERT(rational((r - 3) * (r + 1)) == rational(s * s));
  const rational p = (r + 1 + s) / (2 * r);
  const rational q = (r + 1 - s) / (2 * r);
  RC_ASSERT(logistic_map(r, p) == q);
  RC_ASSERT(logistic_map(r, q) == p);
  RC_ASSERT(p != q);
}

rational iterated(const rational& r, rational y, int n) {
  for (int i = 0; i < n; ++i) y = logistic_map(r, y);
  return y;
}

TEST(ode_logistic, li_yorke_hypothesis) {
  const rational r = rational(384) / 100;
  const rational x = rational(1495) / 10000;
  EXPECT_LE(iterated(r, x, 3), x);
  EXPECT_LT(x, iterated(r, x, 1));
  EXPECT_LT(iterated(r, x, 1), iterated(r, x, 2));
}

TEST(ode_logistic, period_three) {
  const rational r = rational(384) / 100;
  rational low = rational(14) / 100;
  rational high = rational(1495) / 10000;
  ASSERT_GT(iterated(r, low, 3), low);
  ASSERT_LT(iterated(r, high, 3), high);
  for (int i = 0; i < 8; ++i) {
    const rational middle = (low + high) / 2;
    (iterated(r, middle, 3) > middle ? low : high) = middle;
    EXPECT_NE(iterated(r, middle, 1), middle);
  }
  EXPECT_EQ(detail::logistic::attractor_period(2.84), 3U);  // the study's own map at r = 3.84
}

// Points of the circle with rational coordinates: 4 s^2 (1 - s^2) = (2 s c)^2.
RC_GTEST_PROP(ode_logistic, orbit_at_four, ()) {
  const rational t = rational(any(-40, 40)) / 9;
  rational sine = 2 * t / (1 + t * t);
  rational cosine = (1 - t * t) / (1 + t * t);
  rational y = sine * sine;
  for (int n = 0; n < 5; ++n) {
    y = logistic_map(4, y);
    const rational doubled = 2 * sine * cosine;
    cosine = cosine * cosine - sine * sine;
    sine = doubled;
    RC_ASSERT(y == rational(sine * sine));
  }
}

}  // namespace
}  // namespace deltaproof
