// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Gates that the kernel makes of what a generator leaves: the reference against a loop of 1000 bits that makes them itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/inspect.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/support/errors.hpp"
#include "oracle/slow_reference.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using testing::slow_real;
using ::testing::ThrowsMessage;

constexpr std::size_t T = 24, K = 4, V = 3, HV = 2;

problem drawn(op_kind op, gate_kind activation) {
  generation g;
  g.op = op;
  g.tokens = T;
  g.key_dim = K;
  g.value_dim = V;
  g.key_heads = g.value_heads = HV;
  g.initial_state = "normal";
  problem p = generate(g);
  const std::size_t channels = op == op_kind::kda ? K : 1;
  std::vector<double> x(T * HV * channels), bias(HV * channels);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::round(32 * std::sin(1.7 * static_cast<double>(i))) / 4;
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 0.3125 * static_cast<double>(i) - 0.5;
  std::vector<std::size_t> of_bias{HV};
  if (op == op_kind::kda) of_bias.push_back(K);
  p.raw = raw_gate{activation, tensor::from_doubles(bf16, p.g->shape(), x, "g"),
                   tensor::from_doubles(fp32, {HV}, std::vector<double>{-0.375, 1.3125}, "A_log"),
                   tensor::from_doubles(fp32, of_bias, bias, "dt_bias"), activation == gate_kind::bounded ? -5.0 : 0.0};
  p.g = gate_of(p, *p.raw, "test");
  validate(p, "test");
  return p;
}

slow_real decay_of(const problem& p, std::size_t t, std::size_t h, std::size_t c) {
  const std::size_t channels = p.gate_per_channel() ? K : 1, at = (t * HV + h) * channels + c;
  const slow_real y = slow_real(p.raw->x.at(at)) + p.raw->bias->at(h * channels + c), rate = exp(slow_real(p.raw->rate.at(h)));
  if (p.raw->activation == gate_kind::softplus) return exp(slow_real(-rate * log(slow_real(1 + exp(y)))));
  return exp(slow_real(p.raw->lower_bound / (1 + exp(slow_real(-rate * y)))));
}

TEST(raw_gate, is_made_into_the_decays_that_the_reference_applies) {
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    for (const gate_kind activation : {gate_kind::softplus, gate_kind::bounded}) {
      for (const int bits : {53, 106}) {
        const problem p = drawn(op, activation);
        SCOPED_TRACE(std::string(name_of(op)) + " " + std::string(name_of(activation)) + " " + std::to_string(bits));
        question q;
        q.min_bits = bits;
        q.relative_radius = 1e-40;  // out of reach: g is known to fp64
        const reference got = solve(p, q);
        for (std::size_t h = 0; h < HV; ++h) {
          std::vector<slow_real> S(K * V);
          for (std::size_t i = 0; i < S.size(); ++i) S[i] = p.initial_state->at(h * K * V + i);
          for (std::size_t t = 0; t < T; ++t) {
            const slow_real beta = p.beta.at(t * HV + h);
            for (std::size_t c = 0; c < K; ++c) {
              const slow_real decay = decay_of(p, t, h, p.gate_per_channel() ? c : 0);
              for (std::size_t j = 0; j < V; ++j) S[c * V + j] *= decay;
            }
            for (std::size_t j = 0; j < V; ++j) {
              slow_real missing = p.v.at((t * HV + h) * V + j);
              for (std::size_t c = 0; c < K; ++c) missing -= slow_real(p.k.at((t * HV + h) * K + c)) * S[c * V + j];
              slow_real o = 0;
              for (std::size_t c = 0; c < K; ++c) {
                S[c * V + j] += slow_real(p.k.at((t * HV + h) * K + c)) * beta * missing;
                o += slow_real(p.q.at((t * HV + h) * K + c)) * S[c * V + j];
              }
              const std::size_t at = (t * HV + h) * V + j;
              slow_real error = o * p.scale - got.o.value[at];
              for (const auto& low : got.o.low) error -= low[at];
              EXPECT_LE(slow_real(abs(error)), slow_real(got.o.radius[at])) << at;
              EXPECT_LT(got.o.radius[at], 1e-11);
            }
          }
        }
        EXPECT_EQ(got.unanswered, HV);
        EXPECT_GT(got.o.radius[7], 1e-20) << "no radius says more than g is known to";
      }
    }
  }
}

TEST(raw_gate, of_extreme_numbers_is_right_to_its_last_bit) {
  problem p = drawn(op_kind::gated_delta_rule, gate_kind::softplus);
  std::vector<double> x(T * HV, 0.0);
  const std::vector<double> some{-700, -80, -20, -1, 0, 1, 20, 80, 700, 0x1.8p127, -0x1.8p127};
  std::copy(some.begin(), some.end(), x.begin());
  p.raw->x = tensor::from_doubles(fp32, {1, T, HV}, x, "g");
  p.raw->bias.reset();
  const std::vector<double> g = gate_of(p, *p.raw, "test").to_doubles();
  for (std::size_t i = 0; i < some.size(); ++i) {
    const double given = p.raw->x.at(i);
    const slow_real rate = exp(slow_real(p.raw->rate.at(i % HV)));
    const slow_real want = given > 1e4 ? slow_real(-rate * given) : slow_real(-rate * log1p(exp(slow_real(given))));
    EXPECT_LE(slow_real(abs(slow_real(want - g[i]))), slow_real(raw_gate_roundoff * std::fabs(g[i]) + 0x1p-1074)) << given;
  }
}

TEST(raw_gate, that_does_not_fit_is_refused) {
  const auto refused = [](auto change, const char* says) {
    problem p = drawn(op_kind::kda, gate_kind::bounded);
    change(p);
    EXPECT_THAT([&] { validate(p, "mine"); }, ::testing::Throws<error>(::testing::Property(&error::what, HasSubstr(says))));
  };
  refused([](problem& p) { p.raw->lower_bound = 0; }, "gate_lower_bound is 0");
  refused([](problem& p) { p.raw->rate = tensor::from_doubles(fp32, {1}, std::vector<double>{0}, "A_log"); }, "A_log");
  refused([](problem& p) { p.raw->bias = tensor::from_doubles(fp32, {HV}, std::vector<double>{0, 0}, "dt_bias"); }, "dt_bias");
  refused([](problem& p) { p.d_o = p.v; }, "gradients through gate_activation are not computed");
}

TEST(gate_sums, are_warned_of_where_they_lose_much_more_than_the_recurrence) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = 130;
  g.key_dim = g.value_dim = 4;
  g.key_heads = g.value_heads = 1;
  for (const char* quiet : {"typical", "slow", "strong", "zero", "-0.5"}) {
    g.gate = quiet;
    EXPECT_FALSE(inspect_gate_sums(generate(g))) << quiet;
  }
  g.gate = "reset";
  EXPECT_THAT(inspect_gate_sums(generate(g)).value().says, HasSubstr("NaN"));
  problem p = generate(g);
  std::vector<double> gates = p.g->to_doubles();
  for (double& x : gates) x = std::isinf(x) ? -1e4 : x;
  p.g = tensor::from_doubles(fp32, p.g->shape(), gates, "g");
  const precondition warned = inspect_gate_sums(p).value();
  EXPECT_EQ(warned.level, remark::warning);
  EXPECT_THAT(warned.says, HasSubstr("unit roundoff of the format of G"));
  EXPECT_TRUE(warned.first);
  // A reset at the first row of a chunk leaves neighbours no sum that holds it.
  for (std::size_t i = 0; i < gates.size(); ++i) gates[i] = i == 129 ? -1e4 : -0.5;
  p.g = tensor::from_doubles(fp32, p.g->shape(), gates, "g");
  EXPECT_FALSE(inspect_gate_sums(p));
}

}  // namespace
}  // namespace deltaproof
