// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The epsilon that a problem states: the reference of every tier against a plain loop of 1000 bits, and gradients by an identity:
// rows twice as long with four times the epsilon are the same normalised rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/support/errors.hpp"
#include "oracle/slow_reference.hpp"

namespace deltaproof {
namespace {

using testing::slow_real;

problem drawn(double epsilon, format dtype = bf16) {
  generation g;
  g.regime = "tiny-keys";
  g.op = op_kind::gated_delta_rule;
  g.tokens = 20;
  g.key_dim = 4;
  g.value_dim = 3;
  g.key_heads = g.value_heads = 1;
  g.dtype = dtype;
  g.initial_state = "normal";
  g.cotangents = true;
  problem p = generate(g);
  p.l2norm_epsilon = epsilon;
  return p;
}

void expect_true(const reference_tensor& got, const std::vector<slow_real>& want) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    slow_real error = want[i] - got.value[i];
    for (const auto& low : got.low) error -= low[i];
    EXPECT_LE(slow_real(abs(error)), slow_real(got.radius[i])) << i;
  }
}

TEST(l2norm_epsilon, of_a_problem_is_its_decimal_in_every_tier) {
  for (const double epsilon : {1e-5, 3e-12, 1e-30, 0.25, 0.1}) {
    for (const rule_kind rule : {rule_kind::euler, rule_kind::implicit}) {
      for (const int bits : {53, 106, 128, 256}) {
        SCOPED_TRACE(std::to_string(epsilon) + " at " + std::to_string(bits) + " bits, " + std::string(name_of(rule)));
        problem p = drawn(epsilon, bits == 106 ? fp64 : bf16);
        p.rule = rule;
        question q;
        q.min_bits = bits;
        const reference got = solve(p, q);
        const testing::slow_outputs want = testing::slow_solve(p);
        expect_true(got.o, want.o);
        expect_true(got.final_state, want.final_state);
        EXPECT_LT(got.o.radius[5], std::ldexp(1.0, bits == 53 ? -30 : -70));
        // Another epsilon is another problem.
        p.l2norm_epsilon = 1e-6;
        const reference other = solve(p, q);
        double moved = 0;
        for (std::size_t i = 0; i < want.o.size(); ++i)
          moved = std::max(moved, std::fabs(got.o.value[i] - other.o.value[i]) - got.o.radius[i] - other.o.radius[i]);
        EXPECT_GT(moved, 0);
      }
    }
  }
}

TEST(l2norm_epsilon, moves_gradients_as_longer_rows_do) {
  const auto twice = [](const tensor& t) {
    std::vector<double> x = t.to_doubles();
    for (double& xi : x) xi *= 2;
    return tensor::from_doubles(t.element_format(), t.shape(), x, t.name());
  };
  for (const rule_kind rule : {rule_kind::euler, rule_kind::exact}) {
    problem p = drawn(1e-5), longer = drawn(4e-5);
    p.rule = longer.rule = rule;
    longer.q = twice(p.q);
    longer.k = twice(p.k);
    question q;
    q.round_output = fp64;
    const reference_gradients a = solve_gradients(p, q), b = solve_gradients(longer, q);
    for (const auto& [name, of_a] : a.tensors) {
      const reference_tensor& of_b = b.tensors.at(name);
      const double factor = name == "dq" || name == "dk" ? 2 : 1;
      for (std::size_t i = 0; i < of_a.value.size(); ++i) {
        EXPECT_LE(std::fabs(of_a.value[i] - factor * of_b.value[i]),
                  of_a.radius[i] + factor * of_b.radius[i] + 0x1p-50 * std::fabs(of_a.value[i]))
            << name << " " << i;
      }
    }
  }
}

TEST(l2norm_epsilon, may_put_a_step_at_a_pole_where_it_is_dyadic) {
  problem p = drawn(0.5);
  p.rule = rule_kind::implicit;
  std::vector<double> k(p.k.size(), 0.0), beta(p.beta.size(), -2.0);
  for (std::size_t r = 0; r < beta.size(); ++r) k[4 * r] = k[4 * r + 1] = 0.5;  // |k|^2 = 1/2: x = -2 (1/2) / (1/2 + 1/2) = -1
  p.k = tensor::from_doubles(bf16, p.k.shape(), k, "k");
  p.beta = tensor::from_doubles(bf16, p.beta.shape(), beta, "beta");
  EXPECT_THAT([&] { (void)solve(p); }, ::testing::ThrowsMessage<domain_error>(::testing::HasSubstr("no finite gain")));
}

TEST(l2norm_epsilon, is_a_small_number_above_zero) {
  for (const double epsilon : {0.0, -1e-6, 1.0, 1e-31, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT([&] { validate(drawn(epsilon), "mine"); },
                ::testing::ThrowsMessage<domain_error>(::testing::HasSubstr("l2norm_eps")));
  }
}

}  // namespace
}  // namespace deltaproof
