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
  const task t{.f = relation::quadratic, .normalise_values = true, .key_dim = 4, .tokens = 9};
  const inputs in = make_inputs(t, 1, 0);
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(detail::shared::squared_norm(in.k.row(i)), 1, 1e-15);
    EXPECT_NEAR(detail::shared::squared_norm(in.v.row(i)), 1, 1e-15);
    EXPECT_NEAR(in.v(i, 2) * std::pow(in.k(i, 1), 2), in.v(i, 1) * std::pow(in.k(i, 2), 2), 1e-15);
  }
}

// The closed forms against runs: d = 4, every f.
TEST(recall_theory, expectations_are_those_of_runs) {
  constexpr std::size_t d = 4, few = 6, many = 60, runs = 4000;
  for (const relation f : relations) {
    std::vector<double> apart, own;
    for (std::size_t run = 0; run < runs; ++run) {
      apart.push_back(read_apart(delta_rule(d, d, 1), make_inputs({.f = f, .key_dim = d, .tokens = few}, 7, run)).error);
      const inputs long_run = make_inputs({.f = f, .key_dim = d, .tokens = many}, 8, run);
      own.push_back(late_prediction(delta_rule(d, d, 1), long_run, many - 1, long_run.v).error);
    }
    const moments m = moments_of(f, d);
    EXPECT_LT(off(apart, delta_apart(m, d, few)), 1e-12) << name_of(f);
    EXPECT_LT(off(own, delta_own_before(m, d)), 1e-8) << name_of(f);
  }
}

TEST(recall_memories, exist_by_name_and_fit) {
  const inputs in = make_inputs({.key_dim = 6, .tokens = 400}, 1, 0);
  for (const std::string_view who : memories) {
    const double error = late_prediction(make_memory(who, 6), in, 300, in.v).error * 6;
    if (who == "hebbian") {
      EXPECT_GT(error, 100);
    } else {
      EXPECT_LT(error, 1e-6) << who;
    }
  }
  EXPECT_THROW((void)make_memory("Transformer", 6), domain_error);
}

}  // namespace
}  // namespace deltaproof
