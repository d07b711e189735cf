// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A head lowered and run some tokens at a time: the bits and the radii of one run over all of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/problem.hpp"
#include "oracle/tiers/lower_double_double.hpp"
#include "oracle/tiers_cases.hpp"

namespace deltaproof {
namespace {

using testing::all_columns;
using testing::each_target;
using testing::head_shape;
using testing::key_family;
using testing::make_head;
using testing::pairs_of;

/// Tokens [first, first + count) of a head with those that are looked at ahead.
lowered<double> part_of(const lowered<double>& in, std::size_t first, std::size_t count) {
  const auto& s = in.scan;
  const std::size_t many = std::min(s.tokens - first, count + tiers::tokens_ahead), n = s.steps_per_token;
  lowered<double> out = in;
  auto& t = out.scan;
  t.tokens = many;
  const auto cut = [&](const std::vector<double>& all, std::size_t each) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * each);
    return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(many * each));
  };
  t.q = cut(s.q, s.key_dim);
  t.k = cut(s.k, n * s.key_dim);
  t.v = cut(s.v, n * s.value_dim);
  t.step = cut(s.step, n);
  t.decay = cut(s.decay, s.tokens == 0 ? 0 : s.decay.size() / s.tokens);
  if (first > 0) t.initial_state = matrix<double>();
  return out;
}

/// What a table says, without its padding: a row after the other.
struct said {
  std::vector<double> o, o_low, radius, state, state_low, state_radius, norm;
  std::vector<std::size_t> valid;  // tokens, of the whole head
  std::vector<int> left;

  void add(const tiers::tier_rows& rows, std::size_t first) {
    valid.resize(rows.rows, 0);
    for (std::size_t r = 0; r < rows.rows; ++r) {
      if (rows.valid[r] > 0) valid[r] = first + rows.valid[r];
    }
    for (std::size_t t = 0; t < rows.tokens; ++t) {
      for (std::size_t r = 0; r < rows.rows; ++r) {
        const std::size_t i = tiers::tier_rows::panel(t, r, rows.tokens);
        const bool known = t < rows.valid[r];
        o.push_back(known ? rows.o[i] : 0);
        o_low.push_back(known && !rows.o_low.empty() ? rows.o_low[i] : 0);
        radius.push_back(known ? rows.radius(t, r) : 0);
      }
    }
  }
  void end(const tiers::tier_rows& rows, std::size_t keys) {
    for (std::size_t r = 0; r < rows.rows; ++r) {
      left.push_back(rows.left[r]);
      if (rows.left[r] != 0) continue;
      state_radius.push_back(rows.state_radius[r]);
      norm.push_back(rows.largest_norm[r]);
      for (std::size_t j = 0; j < keys; ++j) {
        const std::size_t i = tiers::tier_rows::panel(j, r, keys);
        state.push_back(rows.final_state[i]);
        state_low.push_back(rows.final_state_low.empty() ? 0 : rows.final_state_low[i]);
      }
    }
  }
  friend bool operator==(const said&, const said&) = default;
};

/// run(first, count) for one part after the other; a head without tokens is one part.
template <class Run>
void in_blocks(std::size_t tokens, std::size_t block, const Run& run) {
  for (std::size_t first = 0; first == 0 || first < tokens; first += block) run(first, std::min(block, tokens - first));
}

said fp64_in_blocks(const lowered<double>& in, std::size_t block) {
  said out;
  tiers::tier_rows rows;
  tiers::carried_rows carried;
  const auto columns = all_columns(in);
  in_blocks(in.scan.tokens, block, [&](std::size_t first, std::size_t count) {
    tiers::run_fp64(part_of(in, first, count), count, tiers::largest_value(in), columns, carried, rows);
    out.add(rows, first);
  });
  out.end(rows, in.scan.key_dim);
  return out;
}

said pairs_in_blocks(const lowered<double>& in, std::size_t block, std::size_t& again) {
  said out;
  tiers::tier_rows rows;
  tiers::carried_rows carried;
  const auto columns = all_columns(in);
  in_blocks(in.scan.tokens, block, [&](std::size_t first, std::size_t count) {
    again += tiers::run_double_double(pairs_of(part_of(in, first, count)), count, columns, carried, rows);
    out.add(rows, first);
  });
  out.end(rows, in.scan.key_dim);
  return out;
}

void expect_same(const lowered<double>& in, bool leaves = false) {
  said fp64, pairs;
  tiers::tier_rows rows;
  tiers::run_fp64(in, all_columns(in), rows);
  fp64.add(rows, 0);
  fp64.end(rows, in.scan.key_dim);
  EXPECT_EQ(std::count(fp64.left.begin(), fp64.left.end(), 1) > 0, leaves);
  const std::size_t again = tiers::run_double_double(pairs_of(in), all_columns(in), rows);
  pairs.add(rows, 0);
  pairs.end(rows, in.scan.key_dim);
  for (const std::size_t block : {64U, 128U, 192U, 1024U}) {
    EXPECT_TRUE(fp64_in_blocks(in, block) == fp64) << block;
    std::size_t again_in_blocks = 0;
    EXPECT_TRUE(pairs_in_blocks(in, block, again_in_blocks) == pairs) << block;
    EXPECT_EQ(again_in_blocks, again) << block;
  }
}

TEST(blocks, give_the_same_bits_and_radii) {
  each_target::run([] {
    for (const decay_kind decays : testing::decay_kinds) {
      for (const std::size_t steps : {1U, 3U}) {
        for (const std::size_t tokens : {0U, 1U, 64U, 65U, 129U, 400U}) {
          SCOPED_TRACE(std::to_string(static_cast<int>(decays)) + " " + std::to_string(steps) + " " + std::to_string(tokens));
          expect_same(make_head({9, 21, tokens, steps, decays}, key_family::unit, 7 + tokens));
        }
      }
    }
    expect_same(make_head({16, 16, 500}, key_family::unscaled, 3));
    expect_same(make_head({8, 40, 330}, key_family::near_parallel, 3, 1, false));
  });
}

/// A block whose factors grow is run step by step between blocks of pairs, and what was predicted goes along.
TEST(blocks, give_the_same_bits_where_some_are_run_step_by_step) {
  auto in = make_head({4, 8, 321}, key_family::unit, 5);
  for (std::size_t r = 64; r < 128; ++r) in.scan.step[r] = 2.01;
  for (std::size_t r = 256; r < 270; ++r) in.scan.step[r] = 2.1;
  expect_same(in);
  in.error.step_floor = 3;
  expect_same(in);
}

/// What was known of a row before it left stays known, whatever the blocks.
TEST(blocks, agree_on_where_a_row_leaves) {
  for (const decay_kind decays : testing::decay_kinds) {
    for (const std::size_t steps : {1U, 3U}) {
      auto in = make_head({3, 10, 300, steps, decays}, key_family::unit, 5);
      in.scan.v[200 * steps * 10 + 4] = 1e200;
      tiers::tier_rows rows;
      tiers::run_fp64(in, all_columns(in), rows);
      EXPECT_GE(rows.valid[4], 128U);
      EXPECT_LE(rows.valid[4], 200U);
      EXPECT_EQ(rows.valid[3], 300U);
      expect_same(in, true);
    }
  }
  auto in = make_head({3, 10, 300}, key_family::unit, 5);
  for (std::size_t j = 0; j < 3; ++j) in.scan.k[3 * 150 + j] *= 1e-200;
  expect_same(in, true);
}

void expect_lowered_alike(const problem& p, std::size_t block) {
  for (std::size_t n = 0; n < p.sequences().size(); ++n) {
    for (std::size_t h = 0; h < p.value_heads(); ++h) {
      const auto want = tiers::lower_double_double(p, n, h);
      for (const unsigned threads : {1U, 3U}) {
        tiers::head_lowering lowering(p, n, h, threads, block);
        EXPECT_EQ(lowering.underflowed(), want.underflowed);
        EXPECT_EQ(lowering.largest_value(), tiers::largest_value(want.high));
        in_blocks(lowering.tokens(), block, [&](std::size_t first, std::size_t count) {
          const tiers::double_double_head& got = lowering.block(first, count);
          const std::size_t T = std::max<std::size_t>(want.high.scan.tokens, 1);
          const auto same = [&](const std::vector<double>& part, const std::vector<double>& all) {
            const std::size_t each = all.size() / T;
            return std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(first * each),
                              all.begin() + static_cast<std::ptrdiff_t>((first + count) * each));
          };
          EXPECT_TRUE(same(got.high.scan.q, want.high.scan.q) && same(got.q_low, want.q_low));
          EXPECT_TRUE(same(got.high.scan.k, want.high.scan.k) && same(got.k_low, want.k_low));
          EXPECT_TRUE(same(got.high.scan.v, want.high.scan.v));
          EXPECT_TRUE(same(got.high.scan.step, want.high.scan.step) && same(got.step_low, want.step_low));
          EXPECT_TRUE(same(got.high.scan.decay, want.high.scan.decay) && same(got.decay_low, want.decay_low));
          EXPECT_EQ(got.error.key, want.error.key);
          EXPECT_EQ(got.error.query, want.error.query);
          EXPECT_EQ(got.error.step, want.error.step);
          EXPECT_EQ(got.error.step_floor, want.error.step_floor);
          EXPECT_EQ(got.error.decay, want.error.decay);
          EXPECT_EQ(got.error.decay_floor, want.error.decay_floor);
          EXPECT_EQ(got.high.error.decay_floor, want.high.error.decay_floor);
          if (first > 0) return;
          EXPECT_TRUE(std::ranges::equal(got.high.scan.initial_state.entries(), want.high.scan.initial_state.entries()));
        });
      }
    }
  }
}

TEST(blocks, lower_a_head_to_the_same_numbers) {
  for (const char* regime : {"typical", "varlen"}) {
    for (const op_kind op : {op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda, op_kind::gated_delta_product}) {
      generation g;
      g.regime = regime;
      g.op = op;
      if (g.regime != "varlen") g.tokens = 200;
      g.key_dim = 5;
      g.value_dim = 7;
      g.key_heads = 1;
      g.value_heads = 2;
      if (op == op_kind::gated_delta_product) g.num_householder = 3;
      problem p = generate(g);
      for (const bool derived : {false, true}) {
        SCOPED_TRACE(std::string(regime) + " " + std::string(name_of(op)) + (derived ? " derived" : ""));
        p.qk_l2norm = derived;
        p.beta_activation = derived ? activation_kind::two_sigmoid : activation_kind::none;
        for (const std::size_t block : {64U, 192U, 1024U}) expect_lowered_alike(p, block);
      }
      for (const rule_kind rule : {rule_kind::rk4, rule_kind::exact}) {
        p.rule = rule;
        expect_lowered_alike(p, 64);
      }
    }
  }
}

/// Facts of the whole head that no block shows alone.
TEST(blocks, know_of_gates_and_keys_that_come_later) {
  const auto make = [](double gate, double step, double key) {
    problem p;
    p.op = op_kind::gated_delta_rule;
    const std::size_t T = 150;
    std::vector<double> k(T * 2, 0.5), g(T, 0.0), beta(T, 0.5);
    k[2 * 140] = key;
    g[141] = gate;
    beta[142] = step;
    p.q = tensor::from_doubles(fp64, {1, T, 1, 2}, std::vector<double>(T * 2, 1.0), "q");
    p.k = tensor::from_doubles(fp64, {1, T, 1, 2}, k, "k");
    p.v = tensor::from_doubles(fp64, {1, T, 1, 1}, std::vector<double>(T, 1.0), "v");
    p.beta = tensor::from_doubles(fp64, {1, T, 1}, beta, "beta");
    p.g = tensor::from_doubles(fp64, {1, T, 1}, g, "g");
    p.qk_l2norm = true;
    p.beta_activation = activation_kind::sigmoid;
    return p;
  };
  EXPECT_FALSE(tiers::head_lowering(make(-1, 0, 1), 0, 0, 1, 64).underflowed());
  EXPECT_TRUE(tiers::head_lowering(make(700, 0, 1), 0, 0, 1, 64).underflowed());
  EXPECT_TRUE(tiers::head_lowering(make(0, 700, 1), 0, 0, 1, 64).underflowed());
  EXPECT_TRUE(tiers::head_lowering(make(0, 0, 1e-300), 0, 0, 1, 64).underflowed());
  for (const double gate : {0.0, -1.0, -700.0}) expect_lowered_alike(make(gate, 0, 1), 64);
}

}  // namespace
}  // namespace deltaproof
