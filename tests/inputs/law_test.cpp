// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The regime law: each parameter does what its sentence says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {
namespace {

using testing::HasSubstr;

generation with(const std::string& law) {
  generation g;
  g.regime = "law";
  g.tokens = 128;
  g.key_dim = 16;
  g.value_dim = 8;
  g.key_heads = 1;
  g.value_heads = 1;
  g.dtype = fp64;
  g.law = law;
  return g;
}

std::vector<double> row(const tensor& t, std::size_t i, std::size_t width) {
  const std::vector<double> all = t.to_doubles();
  return {all.begin() + static_cast<std::ptrdiff_t>(i * width), all.begin() + static_cast<std::ptrdiff_t>((i + 1) * width)};
}
double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
/// The mean product of two keys that are not the same row.
double mean_cosine(const problem& p) {
  double sum = 0;
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < 128; ++i) {
    for (std::size_t j = 0; j < i; ++j, ++pairs) sum += dot(row(p.k, i, 16), row(p.k, j, 16));
  }
  return sum / static_cast<double>(pairs);
}
std::size_t repeats(const problem& p, std::size_t span) {
  std::size_t out = 0;
  for (std::size_t i = 1; i < 128; ++i) {
    bool again = false;
    for (std::size_t back = 1; back <= std::min(span, i); ++back) again = again || row(p.k, i, 16) == row(p.k, i - back, 16);
    out += again;
  }
  return out;
}

TEST(law, correlates_turns_and_repeats_keys) {
  EXPECT_NEAR(mean_cosine(generate(with(""))), 0, 0.05);
  EXPECT_NEAR(mean_cosine(generate(with("cosine=0.9"))), 0.9, 0.05);
  EXPECT_NEAR(mean_cosine(generate(with("cosine=0.9,flip=0.5"))), 0, 0.1);
  EXPECT_NEAR(mean_cosine(generate(with("cosine=1"))), 1, 1e-12);
  EXPECT_EQ(repeats(generate(with("")), 128), 0U);
  EXPECT_EQ(repeats(generate(with("repeat=1,span=1")), 1), 127U);
  const std::size_t half = repeats(generate(with("repeat=0.5,span=3")), 3);
  EXPECT_GT(half, 40U);
  EXPECT_LT(half, 90U);
}

TEST(law, scales_keys_values_and_state) {
  const problem p = generate(with("key_norm=0.5"));
  for (std::size_t i = 0; i < 128; ++i) EXPECT_NEAR(dot(row(p.k, i, 16), row(p.k, i, 16)), 0.25, 1e-12);
  const problem spread = generate(with("key_spread=2"));
  EXPECT_GT(dot(row(spread.k, 0, 16), row(spread.k, 0, 16)), 0);
  EXPECT_NE(dot(row(spread.k, 0, 16), row(spread.k, 0, 16)), dot(row(spread.k, 1, 16), row(spread.k, 1, 16)));
  const std::vector<double> usual = generate(with("")).initial_state->to_doubles();
  const std::vector<double> four = generate(with("state_scale=4")).initial_state->to_doubles();
  for (std::size_t i = 0; i < usual.size(); ++i) EXPECT_EQ(four[i], 4 * usual[i]);
  const problem one = generate(with("value_cosine=1"));
  EXPECT_EQ(row(one.v, 0, 8), row(one.v, 100, 8));
  const problem factors = generate(with("value_cosine=1,value_spread=1"));
  EXPECT_NEAR(factors.v.to_doubles()[0] / factors.v.to_doubles()[8], factors.v.to_doubles()[1] / factors.v.to_doubles()[9],
              1e-12);
}

TEST(law, sets_steps_and_gates) {
  const problem p = generate(with("beta_top=2,beta_logit=20,beta_spread=0,gate_log=0,gate_spread=0"));
  for (const double b : p.beta.to_doubles()) EXPECT_NEAR(b, 2, 1e-8);
  for (const double g : p.g->to_doubles()) EXPECT_EQ(g, -1);
  generation own = with("");
  own.beta = "0.25";
  own.gate = "slow";
  EXPECT_THAT(generate(own).beta.to_doubles(), testing::Each(0.25));
  own.op = op_kind::delta_rule;
  own.gate.reset();
  EXPECT_FALSE(generate(own).g.has_value());
  own.op = op_kind::kda;
  EXPECT_EQ(generate(own).g->shape().back(), 16U);
}

TEST(law, is_told_in_one_way) {
  EXPECT_EQ(*complete(with("flip=0.50,cosine=0,beta_top=2e0")).law, "flip=0.5,beta_top=2");
  EXPECT_THAT(options_text(complete(with("flip=0.5,cosine=0.25"))), HasSubstr(" --law cosine=0.25,flip=0.5 --seed 0"));
  EXPECT_THAT(options_text(complete(with(""))), testing::Not(HasSubstr("--law")));
  for (const law_parameter& p : law_parameters()) {
    EXPECT_LE(p.least, p.usual) << p.name;
    EXPECT_LE(p.usual, p.most) << p.name;
    const problem at_least = generate(with(std::string(p.name) + "=" + std::to_string(p.least)));
    EXPECT_EQ(at_least.tokens(), 128U) << p.name;
  }
}

TEST(law, gives_the_regime_that_a_search_found) {
  generation found = with("repeat=1,beta_top=1.5,beta_logit=3,beta_spread=1.5,gate_log=-7,value_spread=2,state_scale=0.01");
  generation named = found;
  named.regime = "rewritten";
  named.law.reset();
  const problem a = generate(found), b = generate(named);
  EXPECT_EQ(a.k.to_doubles(), b.k.to_doubles());
  EXPECT_EQ(a.v.to_doubles(), b.v.to_doubles());
  EXPECT_EQ(a.beta.to_doubles(), b.beta.to_doubles());
  EXPECT_EQ(a.g->to_doubles(), b.g->to_doubles());
  EXPECT_EQ(a.initial_state->to_doubles(), b.initial_state->to_doubles());
  EXPECT_EQ(repeats(b, 1), 127U);
  EXPECT_EQ(complete(complete(named)), complete(named));
}

TEST(law, refuses_what_it_is_not) {
  const auto said = [](const generation& g) -> std::string {
    try {
      (void)complete(g);
    } catch (const error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(said(with("cosin=0.5")), HasSubstr("did you mean \"cosine\""));
  EXPECT_THAT(said(with("cosine=1.5")), HasSubstr("a number from 0 to 1"));
  EXPECT_THAT(said(with("cosine=nan")), HasSubstr("a number from 0 to 1"));
  EXPECT_THAT(said(with("cosine")), HasSubstr("cosine=0.9,flip=0.5"));
  EXPECT_THAT(said(with("flip=1,flip=1")), HasSubstr("twice"));
  EXPECT_THAT(said(with("flip=1,")), HasSubstr("comma"));
  generation other = with("flip=1");
  other.regime = "typical";
  EXPECT_THAT(said(other), HasSubstr("takes no law"));
}

}  // namespace
}  // namespace deltaproof
