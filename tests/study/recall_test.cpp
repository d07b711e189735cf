// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/recall/tasks.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::recall;
using wide = real<128>;

double relative(const wide& found, const wide& exact) {
  const wide error = abs((found - exact) / exact);
  return round_to<double>(error);
}

TEST(recall_functions, exp_and_sine_agree_with_mpfr) {
  philox random(3);
  const wide two_pi = 8 * atan(wide(1));
  for (int i = 0; i < 2000; ++i) {
    const double x = 40 * random.uniform() - 20;
    EXPECT_LT(relative(lift<wide>(portable_exp(x)), exp(lift<wide>(x))), 0x1p-43) << x;
    const double turns = 20 * random.uniform() - 10;
    const wide sine = sin(two_pi * lift<wide>(turns));
    EXPECT_LT(std::fabs(round_to<double>(wide(lift<wide>(sine_of_turns(turns)) - sine))), 0x1p-46) << turns;
  }
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(sine_of_turns(0.25), -sine_of_turns(-0.25));
  EXPECT_EQ(sine_of_turns(3), 0);
  EXPECT_EQ(apply(relation::quartic, 3), 81);
  EXPECT_EQ(apply(relation::sine, 0.1), sine_of_turns(0.5));
}

TEST(recall_moments, of_one_two_and_three_dimensions_are_known) {
  EXPECT_EQ(even_moment(1, 7), rational(1));
  EXPECT_EQ(even_moment(2, 2), rational(3) / rational(8));
  EXPECT_EQ(even_moment(3, 5), rational(1) / rational(11));
  for (const std::size_t d : {1U, 5U, 64U}) EXPECT_EQ(even_moment(d, 1) * rational(static_cast<int>(d)), rational(1));
  // In three dimensions a coordinate is uniform in [-1, 1].
  const moments e = moments_of(relation::exponential, 3);
  const wide one = 1;
  EXPECT_LE(std::fabs(round_to<double>(wide(sinh(one) - lift<wide>(e.mean)))), e.radius);
  EXPECT_LE(std::fabs(round_to<double>(wide(sinh(wide(2)) / 2 - lift<wide>(e.square)))), e.radius);
  EXPECT_LE(std::fabs(round_to<double>(wide(exp(-one) - lift<wide>(e.with_key)))), e.radius);
  const moments s = moments_of(relation::sine, 3);
  EXPECT_LE(std::fabs(s.square - 0.5), s.radius + 1e-17);
  EXPECT_LE(std::fabs(round_to<double>(wide(-1 / (40 * atan(one)) - lift<wide>(s.with_key)))), s.radius);
  EXPECT_LT(e.radius, 1e-15);
  EXPECT_THROW((void)moments_of(relation::sine, 0), domain_error);
  // A linear map explains all of k, nothing of an even function.
  EXPECT_EQ(moments_of(relation::identity, 64).linear_share(64), 1);
  EXPECT_EQ(moments_of(relation::quartic, 64).linear_share(64), 0);
  EXPECT_GT(moments_of(relation::exponential, 64).affine_share(64), 0.9998);
}

/// How far the mean of a sample is off, less four and a half of its standard errors.
double off(const std::vector<double>& sample, double expected) {
  return std::fabs(as_number(mean(sample)) - expected) -
         4.5 * as_number(means({"x"})[1].of(sample)) / std::sqrt(static_cast<double>(sample.size()));
}

TEST(recall_moments, are_those_of_the_keys_drawn) {
  for (const relation f : relations) {
    const inputs in = make_inputs({.f = f, .key_dim = 8, .tokens = 20000}, 5, 0);
    const moments m = moments_of(f, 8);
    std::vector<double> first, square, with_key;
    for (std::size_t i = 0; i < in.v.rows(); ++i) {
      first.push_back(in.v(i, 0));
      square.push_back(in.v(i, 0) * in.v(i, 0));
      with_key.push_back(in.v(i, 0) * in.k(i, 0));
    }
    for (const auto& [sample, exact] : {std::pair{first, m.mean}, std::pair{square, m.square}, std::pair{with_key, m.with_key}}) {
      EXPECT_LT(off(sample, exact), 1e-15) << name_of(f);
    }
  }
}

TEST(recall_inputs, do_what_the_task_says) {
  task t;
  t.key_dim = 4;
  t.tokens = 9;
  t.f = relation::quadratic;
  const inputs plain = make_inputs(t, 1, 0);
  t.averaged = 3;
  const inputs averaged = make_inputs(t, 1, 0);
  EXPECT_EQ(averaged.v(0, 2), plain.v(0, 2) / 3);
  EXPECT_EQ(averaged.v(4, 1), (plain.v(4, 1) + plain.v(3, 1) + plain.v(2, 1)) / 3);
  t.normalise_values = true;
  const inputs keys = make_inputs(t, 1, 0);
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(detail::shared::squared_norm(keys.k.row(i)), 1, 1e-15);
    EXPECT_NEAR(detail::shared::squared_norm(keys.v.row(i)), 1, 1e-15);
  }
  EXPECT_NE(keys.k(3, 0), plain.k(3, 0));
  EXPECT_EQ(keys.q(3, 0), plain.q(3, 0));
}

// The closed forms against runs: d = 4, T = 6, every f.
TEST(recall_theory, expectations_are_those_of_runs) {
  constexpr std::size_t d = 4, tokens = 6, runs = 4000;
  for (const relation f : relations) {
    std::vector<double> hebb, apart, own;
    for (std::size_t run = 0; run < runs; ++run) {
      const inputs in = make_inputs({.f = f, .key_dim = d, .tokens = tokens}, 7, run);
      hebb.push_back(observe(make_memory("hebbian", d), in).by("apart after prefix").error);
      const observation o = observe(delta_rule(d, d, 1), in);
      apart.push_back(o.by("apart after prefix").error);
      own.push_back(o.by("own before prefix").error);
      EXPECT_LT(o.by("own after prefix").error, 1e-28);
    }
    const moments m = moments_of(f, d);
    EXPECT_LT(off(hebb, hebbian_apart(m, d, tokens).prefix), 1e-12) << name_of(f);
    EXPECT_LT(off(apart, delta_apart(m, d, tokens).prefix), 1e-12) << name_of(f);
    EXPECT_LT(off(own, delta_own_before(m, d, tokens).prefix), 1e-12) << name_of(f);
  }
}

TEST(recall_theory, prefix_is_the_mean_of_the_tokens_so_far) {
  const moments m = moments_of(relation::cubic, 8);
  double hebb = 0, apart = 0, own = 0, squares = 0;
  for (std::size_t t = 1; t <= 50; ++t) {
    hebb += hebbian_apart(m, 8, t).last / 50;
    apart += delta_apart(m, 8, t).last / 50;
    own += delta_own_before(m, 8, t).last / 50;
    squares += identity_least_squares_apart(8, t).last / 50;
  }
  EXPECT_NEAR(hebbian_apart(m, 8, 50).prefix / hebb, 1, 1e-13);
  EXPECT_NEAR(delta_apart(m, 8, 50).prefix / apart, 1, 1e-13);
  EXPECT_NEAR(delta_own_before(m, 8, 50).prefix / own, 1, 1e-13);
  EXPECT_NEAR(identity_least_squares_apart(8, 50).prefix / squares, 1, 1e-13);
  // Far out both are what the stationary formula says.
  EXPECT_NEAR(delta_own_before(m, 8, 2000).last / delta_own_before_limit(m, 8, 1), 1, 1e-12);
}

TEST(recall_memories, exist_by_name_and_fit) {
  const inputs in = make_inputs({.key_dim = 6, .tokens = 400}, 1, 0);
  for (const std::string_view who : memories) {
    const double error = late_prediction(make_memory(who, 6), in, 300, in.v).error * 6;
    if (who == "hebbian") {
      EXPECT_GT(error, 100);
    } else if (who == "erase") {
      EXPECT_NEAR(error, 0.25, 0.01);  // half of the map
    } else {
      EXPECT_LT(error, 1e-6) << who;
    }
  }
  EXPECT_THROW((void)make_memory("Transformer", 6), domain_error);
}

}  // namespace
}  // namespace deltaproof
