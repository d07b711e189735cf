// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What inspect says of the backward pass, and steps at a pole of their rule.
#include "deltaproof/oracle/inspect.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/lower.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {
namespace {

problem some_problem(bool cotangents) {
  generation g;
  g.regime = "typical";
  g.op = op_kind::gated_delta_rule;
  g.tokens = 6;
  g.key_dim = 4;
  g.value_dim = 3;
  g.cotangents = cotangents;
  return generate(g);
}
const precondition* named(const std::vector<precondition>& all, const std::string& name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const precondition& p) { return p.name == name; });
  return at == all.end() ? nullptr : &*at;
}
tensor zeros_like(const tensor& t) { return tensor::from_doubles(fp32, t.shape(), std::vector<double>(t.size()), "zeros"); }

TEST(inspect, speaks_of_the_cotangents) {
  EXPECT_EQ(named(inspect(some_problem(false)), "cotangent"), nullptr);
  problem p = some_problem(true);
  ASSERT_TRUE(p.d_o && p.d_final_state);
  const auto fine = inspect(p);
  ASSERT_NE(named(fine, "cotangent"), nullptr);
  EXPECT_EQ(named(fine, "cotangent")->level, remark::fine);
  EXPECT_EQ(named(fine, "cotangent")->rows, 6 * p.value_heads());
  EXPECT_GT(named(fine, "cotangent")->least, 0);

  problem some = p;
  std::vector<double> d(p.d_o->size());
  p.d_o->read(0, d);
  std::fill_n(d.begin() + 3 * static_cast<std::ptrdiff_t>(p.value_heads()), 3, 0.0);
  some.d_o = tensor::from_doubles(fp32, p.d_o->shape(), d, "do");
  const auto found = inspect(some);
  EXPECT_EQ(named(found, "cotangent")->level, remark::notice);
  EXPECT_EQ(named(found, "cotangent")->count, 1U);
  ASSERT_TRUE(named(found, "cotangent")->first.has_value());
  EXPECT_EQ(named(found, "cotangent")->first->token, 1U);
  EXPECT_EQ(named(found, "cotangent")->first->head, 0U);

  p.d_o.reset();
  EXPECT_NE(named(inspect(p), "cotangent")->says.find("dfinal_state alone"), std::string::npos);
  p.d_final_state = zeros_like(*p.d_final_state);
  EXPECT_EQ(named(inspect(p), "cotangent")->level, remark::warning);
}

TEST(inspect, says_that_a_reset_cuts_the_cotangent_too) {
  problem p = some_problem(true);
  std::vector<double> g(p.g->size(), -0.5);
  g[2] = -std::numeric_limits<double>::infinity();
  p.g = tensor::from_doubles(fp32, p.g->shape(), g, "g");
  EXPECT_NE(named(inspect(p), "gate")->says.find("in the backward pass its cotangent"), std::string::npos);
  p.d_o.reset();
  p.d_final_state.reset();
  EXPECT_EQ(named(inspect(p), "gate")->says.find("in the backward pass its cotangent"), std::string::npos);
}

TEST(inspect, a_step_at_a_pole_is_refused_where_nothing_is_lowered) {
  problem p = some_problem(false);
  EXPECT_NO_THROW(refuse_poles(p));
  p.rule = rule_kind::implicit;
  EXPECT_NO_THROW(refuse_poles(p));
  std::vector<double> k(p.k.size(), 0.0), beta(p.beta.size(), 0.5);
  for (std::size_t i = 0; i < k.size(); i += 4) k[i] = 0.5;
  p.k = tensor::from_doubles(fp32, p.k.shape(), k, "k");
  beta.back() = -4;  // x = -1
  p.beta = tensor::from_doubles(fp32, p.beta.shape(), beta, "beta");
  p.qk_l2norm = false;
  EXPECT_THROW(refuse_poles(p), domain_error);
  beta.back() = -4 * (1 + 0x1p-22);
  p.beta = tensor::from_doubles(fp32, p.beta.shape(), beta, "beta");
  EXPECT_NO_THROW(refuse_poles(p));
  p.rule = rule_kind::crank_nicolson;
  beta.front() = -8;  // x = -2
  p.beta = tensor::from_doubles(fp32, p.beta.shape(), beta, "beta");
  EXPECT_THROW(refuse_poles(p), domain_error);
}

}  // namespace
}  // namespace deltaproof
