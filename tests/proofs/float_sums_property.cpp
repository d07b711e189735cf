// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The theorems on rounded sums, steps, substitution and the oracle's radius (proofs/theories/float and bridge), tried on the
// code's own sums, steps, inverse and certificate: a test has the name of its theorem. Everything is decided in rationals.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "deltaproof/algebra/dot.hpp"
#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/oracle/certify.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using testing::check_property;
using half = rounded<bf16>;
using single = rounded<fp32>;
using vector = std::vector<rational>;

philox any_generator() { return philox(*rc::gen::arbitrary<std::uint64_t>(), 11); }

template <class S>
const rational u = exact(unit_roundoff(format_of<S>));

rational power(const rational& x, std::size_t n) {
  rational p = 1;
  for (std::size_t i = 0; i < n; ++i) p *= x;
  return p;
}

/// (1 + u)^n - 1.
template <class S>
rational gamma(std::size_t n) {
  return power(1 + u<S>, n) - 1;
}

template <class S>
rational value(const S& x) {
  return exact(lift<double>(x));
}

/// Away from underflow and overflow; no number is 0.
template <class S>
std::vector<S> draw(philox& random, std::size_t count, int spread) {
  std::vector<S> values;
  for (std::size_t i = 0; i < count; ++i) {
    const int exponent = static_cast<int>(random.below(static_cast<std::uint64_t>(spread) + 1)) - spread / 2;
    const double size = std::ldexp(1 + random.uniform(), exponent);
    values.push_back(round_to<S>(random.below(2) == 0 ? size : -size));
  }
  return values;
}

/// -reach ... reach.
std::int64_t any_integer(philox& random, int reach) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * reach + 1))) - reach;
}

struct sums {
  rational value = 0;      ///< sum x_i y_i
  rational magnitude = 0;  ///< sum |x_i| |y_i|
};

template <class S>
sums exact_dot(const std::vector<S>& x, const std::vector<S>& y) {
  sums s;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const rational term = value(x[i]) * value(y[i]);
    s.value += term;
    s.magnitude += abs(term);
  }
  return s;
}

template <class S, class A>
void expect_dot_error(philox& random, rational& worst) {
  const std::size_t d = random.below(33);
  auto x = draw<S>(random, d, 12);
  const auto y = draw<S>(random, d, 12);
  if (random.below(2) == 0) {  // one sign: nothing cancels, the error can grow to its bound
    for (std::size_t i = 0; i < d; ++i) x[i] = value(x[i]) * value(y[i]) < 0 ? -x[i] : x[i];
  }
  const sums want = exact_dot(x, y);
  const rational error = abs(rational(value(dot<A>(x, y)) - want.value)), bound = gamma<S>(d) * want.magnitude;
  RC_ASSERT(error <= bound);
  if (bound > 0) worst = std::max(worst, rational(error / bound));
}

TEST(float_standard_model, dot_error) {
  rational worst = 0;
  check_property(400, 9201, [&] {
    philox random = any_generator();
    expect_dot_error<half, plain<half>>(random, worst);
    expect_dot_error<single, plain<single>>(random, worst);
    expect_dot_error<double, plain<double>>(random, worst);
  });
  EXPECT_GT(worst, rational(1, 4)) << "the bound is far from every error seen";
  // 1 + 1/256 in bf16 loses the second term.
  EXPECT_EQ(dot<plain<half>>(std::vector<half>{half(1), half(1)}, std::vector<half>{half(1), round_to<bf16>(0x1p-8)}), half(1));
}

TEST(float_standard_model, dot_fused_error) {
  rational worst = 0;
  check_property(400, 9202, [&] {
    philox random = any_generator();
    expect_dot_error<half, arithmetic<half, exact_product, half, sequential>>(random, worst);
    expect_dot_error<single, arithmetic<single, exact_product, single, sequential>>(random, worst);
  });
  EXPECT_GT(worst, rational(1, 4));
}

/// Factors so small that products are subnormal or 0: d (1 + u)^d h / 2 more, and the relative bound alone fails.
TEST(float_underflow, dot_error_with_underflow) {
  int beyond = 0;
  check_property(400, 9209, [&] {
    philox random = any_generator();
    const std::size_t d = 1 + random.below(24);
    const auto tiny = [&](std::size_t count) {
      std::vector<half> values;
      for (const half& x : draw<half>(random, count, 10)) values.push_back(round_to<bf16>(std::ldexp(x.value(), -66)));
      return values;
    };
    const auto x = tiny(d), y = tiny(d);
    const sums want = exact_dot(x, y);
    const rational error = abs(rational(value(dot<plain<half>>(x, y)) - want.value)), relative = gamma<half>(d) * want.magnitude;
    const rational lost = exact(smallest_subnormal(bf16)) / 2;
    RC_ASSERT(error <= relative + static_cast<int>(d) * power(1 + u<half>, d) * lost);
    const rational product = value(x[0] * y[0]) - value(x[0]) * value(y[0]);  // product_error
    RC_ASSERT(abs(product) <= u<half> * abs(rational(value(x[0]) * value(y[0]))) + lost);
    const rational sum = value(x[0] * y[0] + x[d - 1] * y[d - 1]), exact_sum = value(x[0] * y[0]) + value(x[d - 1] * y[d - 1]);
    RC_ASSERT(abs(rational(sum - exact_sum)) <= u<half> * abs(exact_sum));  // sum_error
    beyond += error > relative ? 1 : 0;
  });
  EXPECT_GT(beyond, 20);
}

TEST(float_standard_model, gamma_bound) {
  for (std::size_t n = 0; n < 200; ++n) {
    const rational nu = static_cast<int>(n) * u<half>;
    if (nu < 1) {
      EXPECT_LE(gamma<half>(n), nu / (1 - nu)) << n;
    }
    EXPECT_GE(gamma<half>(n), nu) << n;
  }
}

TEST(float_standard_model, sum_of_squares_low) {
  check_property(300, 9203, [] {
    philox random = any_generator();
    const auto x = draw<half>(random, random.below(40), 12);
    const rational computed = value(dot<plain<half>>(x, x)), want = exact_dot(x, x).value;
    RC_ASSERT(want <= power(1 + u<half>, x.size()) * computed);
    RC_ASSERT(computed <= power(1 + u<half>, x.size()) * want);  // sum_of_squares_high
  });
}

template <class S>
void expect_step_error() {
  philox random = any_generator();
  const std::size_t d = 1 + random.below(12);
  const auto k = draw<S>(random, d, 6), s = draw<S>(random, d, 6), bv = draw<S>(random, 2, 6);
  matrix<S> state(d, 1);
  for (std::size_t i = 0; i < d; ++i) state(i, 0) = s[i];
  recurrence<S> machine(state);
  machine.step(k, std::vector<S>{bv[1]}, bv[0]);
  const sums p = exact_dot(k, s);
  const rational b = value(bv[0]), v = value(bv[1]), unit = 1 + u<S>;
  for (std::size_t i = 0; i < d; ++i) {
    const rational want = value(s[i]) + value(k[i]) * (b * (v - p.value));
    const rational innovation = gamma<S>(3) * abs(rational(v - p.value)) + power(unit, 3) * gamma<S>(d) * p.magnitude;
    const rational bound = u<S> * abs(want) + unit * abs(rational(b * value(k[i]))) * innovation;
    RC_ASSERT(abs(rational(value(machine.state()(i, 0)) - want)) <= bound);
  }
}

TEST(float_step, step_error) {
  check_property(300, 9204, [] {
    expect_step_error<half>();
    expect_step_error<single>();
  });
}

template <class S>
void expect_inverse_residual(rational& worst) {
  philox random = any_generator();
  const std::size_t C = 1 + random.below(14);
  matrix<S> L(C, C);
  for (std::size_t i = 0; i < C; ++i) {
    const auto row = draw<S>(random, i, 4);
    for (std::size_t j = 0; j < i; ++j) L(i, j) = row[j];
  }
  const auto X = invert_unit_lower<plain<S>>(inverse_named("forward"), L);
  for (std::size_t i = 0; i < C; ++i) {
    for (std::size_t j = 0; j < C; ++j) {
      rational residual = value(X(i, j)) - (i == j ? 1 : 0), magnitude = 0;
      for (std::size_t m = 0; m < i; ++m) {
        residual += value(L(i, m)) * value(X(m, j));
        magnitude += abs(rational(value(L(i, m)) * value(X(m, j))));
      }
      const rational bound = i > j ? rational(gamma<S>(i - j) * magnitude) : rational(0);
      RC_ASSERT(abs(residual) <= bound);
      if (bound > 0) worst = std::max(worst, rational(abs(residual) / bound));
    }
  }
}

TEST(float_substitution, inverse_residual) {
  rational worst = 0;
  check_property(150, 9205, [&] {
    expect_inverse_residual<half>(worst);
    expect_inverse_residual<single>(worst);
  });
  EXPECT_GT(worst, rational(1, 4));
}

/// (I + L) z = y, the sum formed first or its products subtracted one by one.
template <class S>
void expect_solve_residual(bool one_by_one) {
  philox random = any_generator();
  const std::size_t C = 1 + random.below(14);
  const auto y = draw<S>(random, C, 6);
  std::vector<S> z;
  for (std::size_t i = 0; i < C; ++i) {
    const auto row = draw<S>(random, i, 4);
    if (one_by_one) {
      S acc = y[i];
      for (std::size_t m = 0; m < i; ++m) acc = acc - row[m] * z[m];
      z.push_back(acc);
    } else {
      z.push_back(y[i] - dot<plain<S>>(row, z));
    }
    std::vector<S> before(z.begin(), z.end() - 1);
    const sums s = exact_dot(row, before);
    const rational residual = abs(rational(value(y[i]) - value(z[i]) - s.value)), size = abs(value(z[i]));
    if (one_by_one)
      RC_ASSERT(residual <= gamma<S>(i) * (size + s.magnitude));
    else
      RC_ASSERT(residual <= u<S> * size + gamma<S>(i) * s.magnitude);
  }
}

TEST(float_substitution, solve_residual) {
  check_property(200, 9206, [] { expect_solve_residual<half>(false), expect_solve_residual<single>(false); });
}

TEST(float_substitution, solve_sequential_residual) {
  check_property(200, 9207, [] { expect_solve_residual<half>(true), expect_solve_residual<single>(true); });
}

/// A chunk whose overlaps are exact in fp32: keys of length below 1, steps in [0, 1], decays of at most 1.
TEST(bridge_forward_error, rounded_substitution_error) {
  rational worst = 0;
  check_property(200, 9208, [&] {
    philox random = any_generator();
    const std::size_t C = 1 + random.below(8), K = 1 + random.below(3);
    const auto eighths = [&](int reach) { return rational(any_integer(random, reach)) / 8; };
    std::vector<vector> k(C), decay(C), A(C, vector(C, 0));
    vector b(C);
    for (std::size_t r = 0; r < C; ++r) {
      b[r] = abs(eighths(8));
      for (std::size_t c = 0; c < K; ++c) {
        k[r].push_back(eighths(4));
        decay[r].push_back(random.below(2) == 0 ? rational(1) : eighths(8));
      }
    }
    for (std::size_t r = 0; r < C; ++r) {
      for (std::size_t j = 0; j < r; ++j) {
        for (std::size_t c = 0; c < K; ++c) {
          rational term = b[r] * k[r][c] * k[j][c];
          for (std::size_t i = j + 1; i <= r; ++i) term *= decay[i][c];
          A[r][j] += term;
        }
      }
    }
    const auto y = draw<single>(random, C, 6);
    std::vector<single> z;
    vector want;
    rational largest = 0;
    for (std::size_t r = 0; r < C; ++r) {
      single acc = y[r];
      rational exact_row = value(y[r]);
      for (std::size_t j = 0; j < r; ++j) {
        const single a = round_to<fp32>(A[r][j]);
        if (value(a) != A[r][j]) RC_DISCARD("an overlap is not a number of fp32");
        acc = acc - a * z[j];
        exact_row -= A[r][j] * want[j];
      }
      z.push_back(acc);
      want.push_back(exact_row);
      largest = std::max(largest, abs(exact_row));
    }
    const rational rows = static_cast<int>(C), q = gamma<single>(C) * rows * rows;  // beta = kap = growth = 1
    RC_ASSERT(q < 1);
    for (std::size_t r = 0; r < C; ++r) {
      const rational error = abs(rational(value(z[r]) - want[r]));
      RC_ASSERT(error <= q * largest / (1 - q));
      worst = std::max(worst, rational(error / (u<single> * largest)));
    }
  });
  EXPECT_GT(worst, rational(1, 4));
}

rational any_fraction(philox& random, int reach) {
  return rational(any_integer(random, reach)) / static_cast<std::int64_t>(1 + random.below(7));
}

rational product(const vector& x, const vector& y) {
  rational s = 0;
  for (std::size_t i = 0; i < x.size(); ++i) s += x[i] * y[i];
  return s;
}

/// In squares: |(I - b k k^T) x|^2 <= max(1, (1 - b |k|^2)^2) |x|^2, and the energy balance behind it.
TEST(float_oracle_radius, factor_line) {
  check_property(300, 9211, [] {
    philox random = any_generator();
    vector k, x;
    for (std::size_t d = 1 + random.below(6); d > 0; --d) {
      k.push_back(any_fraction(random, 6));
      x.push_back(any_fraction(random, 6));
    }
    const rational b = any_fraction(random, 4), p = product(k, x), n = product(k, k), e = 1 - b * n;
    vector moved = x;
    for (std::size_t i = 0; i < k.size(); ++i) moved[i] -= b * p * k[i];
    RC_ASSERT(product(moved, moved) == product(x, x) - b * (2 - b * n) * p * p);  // transition_energy
    RC_ASSERT(product(moved, moved) <= std::max(rational(1), rational(e * e)) * product(x, x));
    RC_ASSERT(p * p <= n * product(x, x));  // cauchy_schwarz
  });
}

TEST(float_oracle_radius, factor_computed) {
  rational worst = 0;
  check_property(300, 9212, [&] {
    philox random = any_generator();
    const std::size_t K = 1 + random.below(16);
    vector k;
    std::vector<double> k_hat;
    for (std::size_t i = 0; i < K; ++i) {
      k.push_back(exact(random.normal()) / 3);
      k_hat.push_back(round_to<double>(k.back()));
    }
    const rational b = exact(random.normal()) / 7;
    const double b_hat = round_to<double>(b);
    double n = 0;
    for (const double x : k_hat) n += x * x;
    const double x_hat = b_hat * n;
    const rational error = abs(rational(b * product(k, k) - exact(x_hat)));
    RC_ASSERT(error <= abs(exact(x_hat)) * (static_cast<int>(K) + 16) * 2 * u<double>);
    worst = std::max(worst, rational(error / (abs(exact(x_hat)) * 2 * u<double>)));
  });
  EXPECT_GT(worst, rational(1, 2));
}

TEST(float_oracle_radius, norm_line) {
  check_property(300, 9213, [] {
    philox random = any_generator();
    const auto x = draw<double>(random, 1 + random.below(64), 40);
    const rational sum = exact(dot<plain<double>>(x, x));
    RC_ASSERT(exact_dot(x, x).value <= sum * (1 + (static_cast<int>(x.size()) + 8) * 2 * u<double>));
    const rational bound = exact(detail::norm_bound<fp64_field>(x.data(), x.size()));
    RC_ASSERT(exact_dot(x, x).value <= bound * bound);
  });
}

/// Two steps in one pass: k_2 S_1 from the state before both, the product of the keys and the first write.
TEST(float_oracle_radius, gram_line) {
  rational worst = 0;
  check_property(400, 9219, [&] {
    philox random = any_generator();
    const std::size_t K = 1 + random.below(12);
    const auto before = draw<double>(random, K, 6), first = draw<double>(random, K, 4);
    auto second = draw<double>(random, K, 4);
    if (random.below(2) == 0) {  // nothing cancels in the prediction
      for (std::size_t i = 0; i < K; ++i) second[i] = std::copysign(second[i], before[i]);
    }
    const double w = draw<double>(random, 1, 4)[0];
    std::vector<double> between(K);
    for (std::size_t i = 0; i < K; ++i) between[i] = before[i] + first[i] * w;
    const double prediction = dot<plain<double>>(second, before) + dot<plain<double>>(second, first) * w;
    const auto norm = [&](const std::vector<double>& x) { return exact(detail::norm_bound<fp64_field>(x.data(), K)); };
    const rational M = std::max(norm(before), norm(between)), nu = static_cast<int>(K) * u<double>;
    const rational size = norm(second) * (M + norm(first) * abs(exact(w)));
    const rational bound = (nu / (1 - nu) + 2 * u<double> * (1 + exact(0x1p-30))) * size;
    const rational error = abs(rational(exact(prediction) - exact_dot(second, between).value));
    RC_ASSERT(error <= bound);
    worst = std::max(worst, rational(error / bound));
  });
  EXPECT_GT(worst, rational(1, 8));
}

/// e' = g e + r step by step is e_0 prod g + sum r_t prod_{j > t} g_j.
TEST(float_oracle_radius, radius_unrolled) {
  check_property(200, 9214, [] {
    philox random = any_generator();
    vector g, r;
    for (std::size_t T = random.below(12); T > 0; --T) g.push_back(any_fraction(random, 5)), r.push_back(any_fraction(random, 5));
    const rational start = any_fraction(random, 5);
    rational e = start, sum = start;
    for (std::size_t t = 0; t < g.size(); ++t) e = g[t] * e + r[t], sum *= g[t];
    for (std::size_t t = 0; t < g.size(); ++t) {
      rational term = r[t];
      for (std::size_t j = t + 1; j < g.size(); ++j) term *= g[j];
      sum += term;
    }
    RC_ASSERT(e == sum);
  });
}

TEST(float_oracle_radius, radius_linear) {
  check_property(200, 9215, [] {
    philox random = any_generator();
    rational e = abs(any_fraction(random, 5)), sum = e;
    for (std::size_t T = random.below(12); T > 0; --T) {
      const rational g = rational(static_cast<std::int64_t>(random.below(9))) / 8, r = abs(any_fraction(random, 5));
      e = g * e + r;
      sum += r;
    }
    RC_ASSERT(e <= sum);
  });
}

struct evaluated {
  rational exact;
  double computed;
  int operations;
};

evaluated any_expression(philox& random, int depth) {
  const auto kind = depth == 0 ? 0 : random.below(4);
  if (kind == 0) {
    const double x = std::ldexp(random.uniform(), static_cast<int>(random.below(20)) - 10);
    return {exact(x), x, 0};
  }
  const evaluated a = any_expression(random, depth - 1), b = any_expression(random, depth - 1);
  if (kind == 1) return {a.exact + b.exact, a.computed + b.computed, a.operations + b.operations + 1};
  if (kind == 2) return {a.exact * b.exact, a.computed * b.computed, a.operations + b.operations + 1};
  return {std::max(a.exact, b.exact), std::max(a.computed, b.computed), a.operations + b.operations};
}

/// Expressions of at most 62 operations are covered by the code's slack.
TEST(float_oracle_radius, slack_covers) {
  int low = 0;
  check_property(500, 9216, [&] {
    philox random = any_generator();
    const evaluated e = any_expression(random, 5);
    RC_ASSERT(e.operations <= 62);
    const rational low_by = power(1 + u<double>, static_cast<std::size_t>(e.operations));
    RC_ASSERT(e.exact <= low_by * exact(e.computed));  // computed_expression_low
    RC_ASSERT(e.exact <= exact(e.computed * detail::radius_slack));
    const rational x = any_fraction(random, 5);  // factor_carried
    const double carried = (std::fabs(1 - round_to<double>(x)) + e.computed) * detail::radius_slack;
    RC_ASSERT(abs(rational(1 - exact(round_to<double>(x)))) + e.exact <= exact(carried));
    low += e.exact > exact(e.computed) ? 1 : 0;
  });
  EXPECT_GT(low, 50) << "values that came out low: without them the slack is not tried";
}

/// A head with rational keys, queries, steps and decays, and the same lowered to fp64 with one rounding each.
struct two_heads {
  sequence<rational> exact_head;
  lowered<double> head;
};

two_heads any_heads(philox& random) {
  const std::size_t T = 1 + random.below(7), n = 1 + random.below(2), K = 1 + random.below(4), V = 1 + random.below(2);
  const decay_kind decays = std::array{decay_kind::none, decay_kind::per_token, decay_kind::per_channel}[random.below(3)];
  two_heads two{sequence<rational>::zeros(T, n, K, V, decays), {}};
  two.head.scan = sequence<double>::zeros(T, n, K, V, decays);
  const auto fill = [&](auto& in, auto& out, auto make) {
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = make(), out[i] = round_to<double>(in[i]);
  };
  const auto third = [&] { return rational(exact(std::floor(random.normal() * 1024) / 1024) / 3); };
  const auto given = [&] { return exact(std::floor(random.normal() * 1024) / 1024); };
  auto& e = two.exact_head;
  auto& l = two.head.scan;
  fill(e.k, l.k, third);
  fill(e.q, l.q, third);
  fill(e.v, l.v, given);
  fill(e.step, l.step, third);
  fill(e.decay, l.decay, [&] { return rational(static_cast<std::int64_t>(random.below(12))) / 11; });
  for (std::size_t i = 0; i < K; ++i) {
    for (std::size_t v = 0; v < V; ++v) {
      e.initial_state(i, v) = given();
      l.initial_state(i, v) = round_to<double>(e.initial_state(i, v));
    }
  }
  two.head.scale = 0.75;
  two.head.error.key = two.head.error.query = two.head.error.step = two.head.error.decay = 1;
  return two;
}

/// The certificate of the oracle: state and outputs lie within the radius that the lines give.
TEST(float_oracle_radius, state_radius) {
  rational worst = 0;
  check_property(200, 9217, [&] {
    philox random = any_generator();
    const two_heads two = any_heads(random);
    const auto want = recurrent(two.exact_head);
    const auto got = certifier<fp64_field>({}, fp64_field::unit_roundoff, two.head).run({});
    const std::size_t K = two.head.scan.key_dim, V = two.head.scan.value_dim;
    for (std::size_t v = 0; v < V; ++v) {
      rational square = 0;
      for (std::size_t i = 0; i < K; ++i) {
        const rational error = exact(got.final_state[i * V + v]) - want.final_state(i, v);
        square += error * error;
      }
      const rational radius = exact(got.state_radius[v]);
      RC_ASSERT(square <= radius * radius);
      if (radius > 0) worst = std::max(worst, rational(square / (radius * radius)));
    }
  });
  EXPECT_GT(worst, rational(1, 10000)) << "the radius is more than 100 times every error seen";
}

TEST(float_oracle_radius, output_radius) {
  rational worst = 0;
  check_property(200, 9218, [&] {
    philox random = any_generator();
    const two_heads two = any_heads(random);
    const auto want = recurrent(two.exact_head);
    const auto got = certifier<fp64_field>({}, fp64_field::unit_roundoff, two.head).run({});
    const std::size_t V = two.head.scan.value_dim;
    for (std::size_t i = 0; i < got.o.size(); ++i) {
      const rational error = abs(rational(exact(got.o[i]) - rational(3, 4) * want.o(i / V, i % V)));
      const rational radius = exact(got.o_radius[i]);
      RC_ASSERT(error <= radius);
      if (radius > 0) worst = std::max(worst, rational(error / radius));
    }
  });
  EXPECT_GT(worst, rational(1, 100));
}

}  // namespace
}  // namespace deltaproof
