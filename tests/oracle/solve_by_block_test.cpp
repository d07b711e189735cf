// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What is handed over block by block is what a head answered as a whole has, whatever the blocks.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/support/errors.hpp"
#include "oracle/solve/stream.hpp"

namespace deltaproof {
namespace {

/// The parts of the outputs and of the state of one head, as bits: NaN equals NaN.
struct head_bits {
  std::vector<std::vector<std::uint64_t>> o, state;
  double o_left = 0, state_left = 0;
  friend bool operator==(const head_bits&, const head_bits&) = default;
};
using all_heads = std::map<std::pair<std::size_t, std::size_t>, head_bits>;

constexpr std::uint64_t none = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());

std::uint64_t bits_of(double x) { return std::isnan(x) ? none : std::bit_cast<std::uint64_t>(x); }

std::vector<std::vector<std::uint64_t>> bits_of(const std::vector<double>& value, const std::vector<std::vector<double>>& low) {
  std::vector<std::vector<std::uint64_t>> out;
  const auto add = [&](const std::vector<double>& x) {
    out.emplace_back();
    for (const double xi : x) out.back().push_back(bits_of(xi));
  };
  add(value);
  for (const auto& part : low) add(part);
  return out;
}

struct gathered {
  all_heads heads;
  reference counts;
};

gathered by_head(const problem& p, const question& q) {
  gathered out;
  out.counts = solve_by_head(p, q, [&](const solved_head& h) {
    out.heads[{h.sequence, h.value_head}] = {bits_of(h.rounded_o, h.rounded_o_low), bits_of(h.rounded_state, h.rounded_state_low),
                                             h.o_left, h.state_left};
  });
  return out;
}

gathered by_block(const problem& p, const question& q, std::size_t block) {
  gathered out;
  const auto sequences = p.sequences();
  const std::size_t V = p.value_dim(), parts = std::max<std::size_t>(q.parts, 1);
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    for (std::size_t h = 0; h < p.value_heads(); ++h)
      out.heads[{n, h}].o.assign(parts, std::vector<std::uint64_t>(sequences[n].tokens * V, none));
  }
  stream_sinks sinks;
  sinks.chunk = [&](const decided_chunk& c) {
    auto& to = out.heads.at({c.sequence, c.value_head}).o;
    for (std::size_t i = 0; i < c.count * V; ++i) {
      const bool open = c.anew || !c.were_open || ((*c.were_open)[i / 64] >> (i % 64) & 1) != 0;
      const auto put = [&](std::size_t part, double x) {
        std::uint64_t& place = to[part][c.first * V + i];
        if (!open) return;
        if (c.anew) {
          place = bits_of(x);
        } else if (!std::isnan(x)) {
          EXPECT_TRUE(place == none || place == bits_of(x));  // a part of a sum that is open may come again
          place = bits_of(x);
        }
      };
      put(0, c.rounded.value[c.base + i]);
      for (std::size_t part = 1; part < parts; ++part) put(part, c.rounded.low[part - 1][c.base + i]);
    }
  };
  sinks.head = [&](const decided_head& h) {
    head_bits& to = out.heads.at({h.sequence, h.value_head});
    EXPECT_TRUE(to.state.empty());
    to.state = bits_of(h.state.value, h.state.low);
    to.o_left = h.o_left;
    to.state_left = h.state_left;
  };
  out.counts = solve_by_block(p, q, sinks, block);
  return out;
}

void expect_same(const problem& p, question q, bool in_pieces = false) {
  q.threads = 1;
  const gathered want = by_head(p, q);
  for (const std::size_t block : {128U, 256U, 384U, 4096U}) {
    q.threads = block == 256 ? 3 : 1;
    const gathered got = by_block(p, q, block);
    EXPECT_TRUE(got.heads == want.heads) << block;
    EXPECT_EQ(got.counts.o_decided, want.counts.o_decided) << block;
    EXPECT_EQ(got.counts.state_decided, want.counts.state_decided) << block;
    EXPECT_EQ(got.counts.tiers, want.counts.tiers) << block;
    EXPECT_EQ(got.counts.fallbacks, want.counts.fallbacks) << block;
    EXPECT_EQ(got.counts.unanswered, want.counts.unanswered) << block;
    EXPECT_TRUE(!in_pieces || want.counts.o_decided.size() > 1);
  }
}

question rounded_for_certain(const format& to) {
  question q;
  q.round_output = q.round_state = to;
  q.always_exact = true;
  return q;
}

problem of(const char* regime, op_kind op, std::size_t tokens, std::size_t V = 11) {
  generation g;
  g.regime = regime;
  g.op = op;
  if (g.regime != "varlen") g.tokens = tokens;
  g.key_dim = 5;
  g.value_dim = V;
  g.key_heads = 1;
  g.value_heads = 2;
  if (op == op_kind::gated_delta_product) g.num_householder = 3;
  return generate(g);
}

TEST(solve_by_block, hands_over_what_a_whole_answer_has) {
  for (const char* regime : {"typical", "varlen", "no-decay"}) {
    for (const op_kind op : {op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda, op_kind::gated_delta_product}) {
      if (std::string_view(regime) == "no-decay" && op != op_kind::delta_rule) continue;
      SCOPED_TRACE(std::string(regime) + " " + std::string(name_of(op)));
      problem p = of(regime, op, 450);
      expect_same(p, rounded_for_certain(bf16));
      p.qk_l2norm = true;
      p.beta_activation = activation_kind::sigmoid;
      expect_same(p, rounded_for_certain(fp64));
      question sums = rounded_for_certain(fp64);
      sums.parts = 2;
      expect_same(p, sums);
    }
  }
}

TEST(solve_by_block, hands_over_what_other_rules_ask_for) {
  problem p = of("typical", op_kind::gated_delta_rule, 300);
  for (const rule_kind rule : {rule_kind::exact, rule_kind::rk4}) {
    p.rule = rule;
    expect_same(p, rounded_for_certain(fp32));
  }
}

/// T tokens that write nothing and read (1, 0, ...)^T S: o is the first row of the initial state.
problem reader(std::size_t T, const std::vector<double>& start) {
  const std::size_t V = start.size() / 2;
  problem p;
  std::vector<double> q(T * 2, 0.0);
  for (std::size_t t = 0; t < T; ++t) q[t * 2] = 1;
  p.q = tensor::from_doubles(fp64, {1, T, 1, 2}, q, "q");
  p.k = tensor::from_doubles(fp64, {1, T, 1, 2}, std::vector<double>(T * 2, 0.0), "k");
  p.v = tensor::from_doubles(fp64, {1, T, 1, V}, std::vector<double>(T * V, 1.0), "v");
  p.beta = tensor::from_doubles(fp64, {1, T, 1}, std::vector<double>(T, 0.5), "beta");
  p.initial_state = tensor::from_doubles(fp64, {1, 1, 2, V}, start, "initial_state");
  return p;
}

/// Ties that exact numbers decide, until a gate after 300 tokens leaves them open; fixed point decides what is before it.
TEST(solve_by_block, hands_over_what_each_tier_decides) {
  problem p = reader(500, {1 + 0x1p-8, 1 + 0x3p-8, 0.1, 1, 0.5, 0.5, 0.5, 0.5});
  expect_same(p, rounded_for_certain(bf16), true);
  p.op = op_kind::kda;
  std::vector<double> g(1000, 0.0);
  for (std::size_t t = 300; t < 500; ++t) g[2 * t + 1] = -0.5;
  p.g = tensor::from_doubles(fp64, {1, 500, 1, 2}, g, "g");
  expect_same(p, rounded_for_certain(bf16), true);
  question few = rounded_for_certain(bf16);
  few.max_bits = 53;
  expect_same(p, few, true);
  question sums = rounded_for_certain(fp64);
  sums.parts = 4;
  expect_same(p, sums);
  sums.max_bits = 160;
  expect_same(p, sums);
}

/// A row that leaves the vectorised tiers after some blocks, and a head that is run whole because no other tier may have it.
TEST(solve_by_block, hands_over_heads_that_leave_a_tier) {
  problem p = of("typical", op_kind::gated_delta_rule, 400);
  std::vector<double> v = p.v.to_doubles();
  v[(310 * 2 + 1) * 11 + 4] = 0x1p500;
  for (tensor* t : {&p.q, &p.k}) *t = tensor::from_doubles(fp64, t->shape(), t->to_doubles(), t->name());
  p.v = tensor::from_doubles(fp64, p.v.shape(), v, "v");
  expect_same(p, rounded_for_certain(fp32), true);
  question few = rounded_for_certain(fp32);
  few.max_bits = 53;
  expect_same(p, few);
  few.max_bits = 106;
  expect_same(p, few);
}

/// Ties at the first tokens, which a gate keeps from being decided: the passes after them end within the chunk of 128 tokens, and
/// what lies behind its end is not theirs to write.
TEST(solve_by_block, passes_that_end_within_a_chunk_stay_within_it) {
  for (const std::size_t open : {1U, 3U, 60U, 70U, 100U}) {
    problem p;
    constexpr std::size_t T = 100, K = 2;
    std::vector<double> q(T * K, 0.0), g(T * K, 0.0);
    for (std::size_t t = 0; t < T; ++t) q[t * K + (t < open ? 0 : 1)] = 1;
    g[1] = -0.5;
    const auto filled = [](std::vector<std::size_t> shape, double x, const char* name) {
      return tensor::from_doubles(fp64, shape, std::vector<double>(element_count(shape), x), name);
    };
    p.op = op_kind::kda;
    p.q = tensor::from_doubles(fp64, {1, T, 1, K}, q, "q");
    p.k = filled({1, T, 1, K}, 0, "k");
    p.v = filled({1, T, 1, 1}, 1, "v");
    p.beta = filled({1, T, 1}, 0.5, "beta");
    p.g = tensor::from_doubles(fp64, {1, T, 1, K}, g, "g");
    p.initial_state = tensor::from_doubles(fp64, {1, 1, K, 1}, std::vector<double>{1 + 0x1p-8, 0.3}, "initial_state");
    question ask = rounded_for_certain(bf16);
    ask.round_state = fp32;
    expect_same(p, ask);
  }
}

TEST(solve_by_block, tells_how_far_it_is) {
  const problem p = of("typical", op_kind::gated_delta_rule, 1000);
  question q = rounded_for_certain(fp32);
  q.threads = 1;
  std::vector<std::size_t> seen;
  std::size_t whole = 0;
  q.progress = [&](std::size_t done, std::size_t all) {
    seen.push_back(done);
    whole = all;
  };
  stream_sinks sinks;
  sinks.chunk = [](const decided_chunk&) {};
  sinks.head = [](const decided_head&) {};
  (void)solve_by_block(p, q, sinks, 128);
  EXPECT_EQ(whole, 2000U);
  EXPECT_GE(seen.size(), 18U);
  EXPECT_LT(seen.front(), 200U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), whole);
}

TEST(solve_by_block, refuses_what_it_cannot_answer) {
  const problem p = reader(3, {1, 1});
  stream_sinks sinks;
  EXPECT_THROW((void)solve_by_block(p, {}, sinks), domain_error);
  question q = rounded_for_certain(bf16);
  EXPECT_THROW((void)solve_by_block(p, q, sinks, 100), domain_error);
  q.range.output = 1;
  EXPECT_THROW((void)solve_by_block(p, q, sinks), domain_error);
}

}  // namespace
}  // namespace deltaproof
