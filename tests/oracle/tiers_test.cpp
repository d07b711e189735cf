// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>

#include <bit>
#include <iostream>
#include <limits>

#include "deltaproof/oracle/reference.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/slow_reference.hpp"
#include "oracle/tiers/fp64_coefficients.hpp"
#include "oracle/tiers/lower_double_double.hpp"
#include "oracle/tiers/simd.hpp"
#include "oracle/tiers_cases.hpp"

namespace deltaproof {
namespace {

using testing::all_columns;
using testing::compare;
using testing::each_target;
using testing::exact_run;
using testing::head_shape;
using testing::key_family;
using testing::make_head;
using testing::pairs_of;

struct worst {
  double fp64 = 0;
  double pairs = 0;
};

/// Both tiers on one head, all rows; fails where anything lies outside its radius.
worst check_head(const lowered<double>& in, bool may_leave = false) {
  const auto want = exact_run(in);
  const auto columns = all_columns(in);
  tiers::tier_rows rows;
  worst out;
  tiers::run_fp64(in, columns, rows);
  const auto first = compare(rows, want, columns, in.scan);
  EXPECT_LE(first.o, 1);
  EXPECT_LE(first.state, 1);
  out.fp64 = std::max(first.o, first.state);
  tiers::run_double_double(pairs_of(in), columns, rows);
  const auto second = compare(rows, want, columns, in.scan);
  EXPECT_LE(second.o, 1);
  EXPECT_LE(second.state, 1);
  out.pairs = std::max(second.o, second.state);
  if (!may_leave) {
    EXPECT_FALSE(first.left);
    EXPECT_FALSE(second.left);
  }
  return out;
}

TEST(tiers, contain_the_truth_for_every_family_decay_and_step_count) {
  for (const key_family family : testing::key_families) {
    worst most;
    for (const decay_kind decays : testing::decay_kinds) {
      for (const std::size_t steps : {1U, 3U}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(family)) + " " + std::to_string(static_cast<int>(decays)) + " " +
                     std::to_string(steps));
        const worst here = check_head(make_head({8, 5, 70, steps, decays}, family, 11));
        most.fp64 = std::max(most.fp64, here.fp64);
        most.pairs = std::max(most.pairs, here.pairs);
      }
    }
    std::cout << "family " << static_cast<int>(family) << ": error / radius, fp64 " << most.fp64 << ", double-double "
              << most.pairs << '\n';
    EXPECT_GT(most.fp64, 1e-3);
    EXPECT_GT(most.pairs, 1e-4);
  }
}

TEST(tiers, contain_the_truth_at_every_edge_of_a_block) {
  for (const std::size_t tokens : {0U, 1U, 2U, 63U, 64U, 65U, 129U}) {
    for (const auto& [keys, values] : {std::pair<std::size_t, std::size_t>{1, 1}, {3, 17}, {9, 4}, {16, 24}}) {
      for (const decay_kind decays : testing::decay_kinds) {
        SCOPED_TRACE(std::to_string(tokens) + " tokens, " + std::to_string(keys) + " x " + std::to_string(values));
        check_head(make_head({keys, values, tokens, 1, decays}, key_family::unit, tokens + keys, 1, tokens % 2 == 0));
      }
    }
  }
}

/// Radii grow with beta = 2 and keys whose norm exceeds 1; they must not lose the truth over a long run.
TEST(tiers, contain_the_truth_over_a_long_run) {
  check_head(make_head({32, 2, 2000}, key_family::bf16_unit_at_two, 3));
  check_head(make_head({32, 2, 2000}, key_family::near_parallel, 3));
  check_head(make_head({32, 2, 1000, 2, decay_kind::per_channel}, key_family::unit, 3));
}

TEST(tiers, contain_the_truth_or_leave_from_tiny_to_huge_magnitudes) {
  for (const double size : {1e-300, 1e-160, 1e-100, 1e-20, 1e20, 1e100, 1e150, 1e300}) {
    for (const decay_kind decays : testing::decay_kinds) {
      SCOPED_TRACE(size);
      check_head(make_head({4, 9, 40, 1, decays}, key_family::unit, 5, size), true);
    }
  }
  tiers::tier_rows rows;
  const auto huge = make_head({4, 9, 40}, key_family::unit, 5, 1e300);
  tiers::run_fp64(huge, all_columns(huge), rows);
  EXPECT_EQ(rows.left[0], 1);
  tiers::run_double_double(pairs_of(huge), all_columns(huge), rows);
  EXPECT_EQ(rows.left[0], 1);
}

TEST(tiers, leave_where_keys_or_steps_are_out_of_range) {
  auto in = make_head({4, 9, 40}, key_family::unit, 5);
  tiers::tier_rows rows;
  for (std::size_t j = 0; j < 4; ++j) in.scan.k[4 * 7 + j] *= 1e-200;
  tiers::run_fp64(in, all_columns(in), rows);
  EXPECT_EQ(rows.left[3], 1);
  tiers::run_double_double(pairs_of(in), all_columns(in), rows);
  EXPECT_EQ(rows.left[3], 1);
}

/// A row that overflows in its course and would be finite again at its end.
TEST(tiers, do_not_forget_that_a_row_left) {
  for (const std::size_t steps : {1U, 2U}) {
    auto in = make_head({1, 8, 30, steps}, key_family::unit, 5, 1, false);
    for (double& k : in.scan.k) k = 1;
    for (double& b : in.scan.step) b = 1;
    for (std::size_t v = 0; v < 8; ++v) in.scan.v[8 * 3 + v] = v == 2 ? 1e200 : 1;
    tiers::tier_rows rows;
    tiers::run_fp64(in, all_columns(in), rows);
    EXPECT_EQ(rows.left[2], 1);
    EXPECT_EQ(rows.left[1], 0);
    tiers::run_double_double(pairs_of(in), all_columns(in), rows);
    EXPECT_EQ(rows.left[2], 1);
    EXPECT_EQ(rows.left[1], 0);
  }
}

/// The same where everything after it is exactly 0, for long: nothing is given, and a decay of 0 resets the state.
TEST(tiers, do_not_forget_that_a_row_left_before_a_reset) {
  for (const decay_kind decays : testing::decay_kinds) {
    for (const std::size_t steps : {1U, 2U}) {
      auto in = make_head({1, 8, 200, steps, decays}, key_family::unit, 5, 1, false);
      for (double& k : in.scan.k) k = 1;
      for (double& b : in.scan.step) b = 1;
      for (double& v : in.scan.v) v = 0;
      in.scan.v[8 * 3 + 2] = 1e200;
      in.scan.v[8 * 3 + 5] = 1;
      for (std::size_t t = 0; t < in.scan.decay.size(); ++t) in.scan.decay[t] = t == 20 ? 0 : 0.5;
      tiers::tier_rows rows;
      tiers::run_fp64(in, all_columns(in), rows);
      EXPECT_EQ(rows.left[2], 1);
      EXPECT_EQ(rows.left[5], 0);
      EXPECT_EQ(rows.state_radius[0], 0);
      tiers::run_double_double(pairs_of(in), all_columns(in), rows);
      EXPECT_EQ(rows.left[2], 1);
      EXPECT_EQ(rows.left[5], 0);
      check_head(in, true);
    }
  }
}

TEST(tiers, give_exact_zeros_a_radius_of_zero) {
  for (const decay_kind decays : testing::decay_kinds) {
    auto in = make_head({5, 11, 70, 1, decays}, key_family::some_zero, 8, 1, false);
    for (std::size_t r = 0; r < 70; ++r) in.scan.v[r * 11 + 6] = 0;
    tiers::tier_rows rows;
    tiers::run_fp64(in, all_columns(in), rows);
    for (std::size_t t = 0; t < 70; ++t) {
      EXPECT_EQ(rows.o[tiers::tier_rows::panel(t, 6, 70)], 0);
      EXPECT_EQ(rows.radius(t, 6), 0);
    }
    EXPECT_EQ(rows.state_radius[6], 0);
    EXPECT_GT(rows.state_radius[5], 0);
  }
}

TEST(tiers, give_a_row_the_same_bits_in_every_selection) {
  for (const decay_kind decays : testing::decay_kinds) {
    const auto in = make_head({7, 29, 67, 1, decays}, key_family::unit, 21);
    const std::vector<std::size_t> some = {28, 3, 17, 4, 0};
    tiers::tier_rows all, few;
    const auto same = [&] {
      for (std::size_t r = 0; r < some.size(); ++r) {
        for (std::size_t t = 0; t < 67; ++t) {
          const std::size_t i = tiers::tier_rows::panel(t, some[r], 67), j = tiers::tier_rows::panel(t, r, 67);
          ASSERT_EQ(all.o[i], few.o[j]);
          ASSERT_EQ(all.radius(t, some[r]), few.radius(t, r));
          if (!all.o_low.empty()) {
            ASSERT_EQ(all.o_low[i], few.o_low[j]);
          }
        }
        ASSERT_EQ(all.state_radius[some[r]], few.state_radius[r]);
      }
    };
    tiers::run_fp64(in, all_columns(in), all);
    tiers::run_fp64(in, some, few);
    same();
    tiers::run_double_double(pairs_of(in), all_columns(in), all);
    tiers::run_double_double(pairs_of(in), some, few);
    same();
  }
}

TEST(double_double_tier, gives_the_same_bits_on_every_target) {
  for (const decay_kind decays : testing::decay_kinds) {
    const auto in = make_head({9, 11, 130, 1, decays}, key_family::unit, 4, 1, false);
    auto head = pairs_of(in);
    for (const bool low : {false, true}) {
      if (low) {
        head.k_low = head.high.scan.k;
        for (double& x : head.k_low) x *= 0x1.8p-54;
        head.q_low.assign(in.scan.q.size(), 0.0);
      }
      tiers::tier_rows want, got;
      tiers::run_double_double(head, all_columns(in), want);
      std::size_t targets = 0;
      each_target::run([&] {
        ++targets;
        tiers::run_double_double(head, all_columns(in), got);
        EXPECT_EQ(got.o, want.o);
        EXPECT_EQ(got.o_low, want.o_low);
        EXPECT_EQ(got.o_radius, want.o_radius);
        EXPECT_EQ(got.final_state, want.final_state);
        EXPECT_EQ(got.final_state_low, want.final_state_low);
        EXPECT_EQ(got.state_radius, want.state_radius);
      });
      EXPECT_GE(targets, 1U);
    }
  }
}

/// A pinned hash: the same from every compiler, at every level, on every machine. Nothing here comes from a libm.
TEST(double_double_tier, gives_the_bits_that_are_on_file) {
  std::uint64_t state = 1;
  const auto draw = [&state] {  // in (-1, 1), 20 bits
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(static_cast<std::int64_t>(state >> 43) - (1 << 20)) / (1 << 20);
  };
  tiers::double_double_head head;
  auto& s = head.high.scan;
  s = sequence<double>::zeros(150, 1, 9, 5, decay_kind::per_channel);
  head.high.scale = 0.375;
  for (auto* x : {&s.q, &s.k, &s.v, &s.step, &s.decay}) {
    for (double& xi : *x) xi = draw();
  }
  for (double& x : s.k) x *= 0.5;
  for (double& b : s.step) b = std::fabs(b);
  for (double& a : s.decay) a = 0.5 + std::fabs(a) / 2;
  for (double& x : s.initial_state.entries()) x = draw();
  head.k_low = s.k;
  for (double& x : head.k_low) x *= 0x1.4p-54;
  head.q_low.assign(s.q.size(), 0.0);
  head.decay_low.assign(s.decay.size(), 0x1p-56);
  tiers::tier_rows rows;
  tiers::run_double_double(head, all_columns(head.high), rows);
  std::uint64_t hash = 14695981039346656037U;
  const auto add = [&hash](double x) { hash = (hash ^ std::bit_cast<std::uint64_t>(x)) * 1099511628211U; };
  for (std::size_t r = 0; r < 5; ++r) {
    EXPECT_EQ(rows.left[r], 0);
    for (std::size_t t = 0; t < 150; ++t) {
      add(rows.o[tiers::tier_rows::panel(t, r, 150)]);
      add(rows.o_low[tiers::tier_rows::panel(t, r, 150)]);
      add(rows.radius(t, r));
    }
    add(rows.state_radius[r]);
  }
  EXPECT_EQ(hash, 5972672594928610563U);
}

TEST(fp64_tier, contains_the_truth_on_every_target) {
  each_target::run([] {
    for (const decay_kind decays : testing::decay_kinds)
      check_head(make_head({9, 11, 66, 1, decays}, key_family::near_parallel, 4));
  });
}

/// The target of the design: random unit keys, d = 64, 4096 tokens.
TEST(double_double_tier, has_a_radius_of_two_in_ten_to_the_22_after_4096_tokens) {
  auto in = make_head({64, 8, 4096}, key_family::unit, 1, 1, false);
  for (double& b : in.scan.step) b = std::min(b, 1.0);
  tiers::tier_rows rows;
  tiers::run_double_double(pairs_of(in), all_columns(in), rows);
  double most = 0;
  for (const double r : rows.o_radius) most = std::max(most, r);
  std::cout << "radius " << most << '\n';
  EXPECT_LE(most, 2e-22);
}

TEST(double_double_tier, runs_a_block_again_where_it_leaves_its_window) {
  // beta |k|^2 = 3: the state doubles at each step.
  auto in = make_head({2, 8, 100}, key_family::unit, 1);
  for (double& b : in.scan.step) b = 3;
  tiers::tier_rows rows;
  EXPECT_GT(tiers::run_double_double(pairs_of(in), all_columns(in), rows), 0U);
  check_head(in);
}

/// Line L: the cut of e^g to fp64, and the pairs within their constants.
TEST(lower_double_double, encloses_every_derived_number) {
  const auto make = [](double g_size, activation_kind activation, bool l2norm) {
    const std::size_t T = 200, K = 5, V = 2;
    std::mt19937_64 bits(7);
    std::normal_distribution<double> normal;
    const auto filled = [&](std::vector<std::size_t> shape, double size, const char* name) {
      std::vector<double> x(element_count(shape));
      for (double& xi : x) xi = normal(bits) * size;
      return tensor::from_doubles(fp64, std::move(shape), x, name);
    };
    problem p;
    p.op = op_kind::kda;
    p.q = filled({1, T, 1, K}, 1, "q");
    p.k = filled({1, T, 1, K}, 1, "k");
    p.v = filled({1, T, 1, V}, 1, "v");
    p.beta = filled({1, T, 1}, 3, "beta");
    auto g = filled({1, T, 1, K}, g_size, "g").to_doubles();
    for (double& x : g) x = -std::fabs(x);
    g[0] = 0;
    g[1] = -std::numeric_limits<double>::infinity();
    g[2] = -3000;
    p.g = tensor::from_doubles(fp64, {1, T, 1, K}, g, "g");
    p.beta_activation = activation;
    p.qk_l2norm = l2norm;
    validate(p, "test");
    return p;
  };
  double cut = 0, pair = 0;
  const auto inside = [&](double high, double low, const mpfr_value& exact, double relative, double floor) {
    mpfr_value rest(400);
    mpfr_sub_d(rest.get(), exact.get(), high, MPFR_RNDN);
    const double off = std::fabs(mpfr_get_d(rest.get(), MPFR_RNDA));
    EXPECT_LE(off, std::fabs(high) * 0x1p-53 * (1 + 0x1p-20) + floor);
    if (high != 0) cut = std::max(cut, off / (std::fabs(high) * 0x1p-53));
    mpfr_sub_d(rest.get(), rest.get(), low, MPFR_RNDN);
    const double left = std::fabs(mpfr_get_d(rest.get(), MPFR_RNDA));
    EXPECT_LE(left, std::fabs(high) * relative * tiers::pair_unit + floor) << high << " " << low;
    if (relative > 0 && high != 0) pair = std::max(pair, left / (std::fabs(high) * relative * tiers::pair_unit));
  };
  for (const double g_size : {1e-300, 1e-20, 1e-9, 0.05, 5.0, 150.0}) {
    for (const auto& [activation, name] : activation_names) {
      const problem p = make(g_size, activation, g_size > 0.01);
      const auto got = tiers::lower_double_double(p, 0, 0);
      ASSERT_FALSE(got.underflowed);
      const auto want = lower_mpfr(p, 0, 0, 300);
      const auto low = [](const std::vector<double>& x, std::size_t i) { return x.empty() ? 0 : x[i]; };
      const auto& s = got.high.scan;
      for (std::size_t i = 0; i < s.q.size(); ++i) inside(s.q[i], low(got.q_low, i), want.scan.q[i], got.error.query, 0);
      for (std::size_t i = 0; i < s.k.size(); ++i) inside(s.k[i], low(got.k_low, i), want.scan.k[i], got.error.key, 0);
      for (std::size_t i = 0; i < s.step.size(); ++i)
        inside(s.step[i], low(got.step_low, i), want.scan.step[i], got.error.step, 0);
      const double floor = got.error.decay_floor * tiers::pair_unit;
      for (std::size_t i = 0; i < s.decay.size(); ++i)
        inside(s.decay[i], low(got.decay_low, i), want.scan.decay[i], got.error.decay, floor);
      for (std::size_t i = 0; i < s.v.size(); ++i) inside(s.v[i], 0, want.scan.v[i], 0, 0);
    }
  }
  std::cout << "cut " << cut << ", pair " << pair << " of its constant\n";
  EXPECT_GE(cut, 0.9);
  EXPECT_GE(pair, 0.4);
}

/// The whole way: lowering, both tiers, an independent truth in 1000-bit reals.
TEST(tiers, contain_the_truth_of_whole_problems) {
  for (const auto& [activation, name] : activation_names) {
    problem p;
    const std::size_t T = 70, K = 6, V = 3;
    std::mt19937_64 bits(9);
    std::normal_distribution<double> normal;
    const auto filled = [&](std::vector<std::size_t> shape, const char* tensor_name) {
      std::vector<double> x(element_count(shape));
      for (double& xi : x) xi = normal(bits);
      return tensor::from_doubles(
          bf16, std::move(shape),
          [&] {
            for (double& xi : x) xi = testing::short_of(xi);
            return x;
          }(),
          tensor_name);
    };
    p.op = op_kind::kda;
    p.q = filled({1, T, 1, K}, "q");
    p.k = filled({1, T, 1, K}, "k");
    p.v = filled({1, T, 1, V}, "v");
    p.beta = tensor::from_doubles(bf16, {1, T, 1}, std::vector<double>(T, 0.5), "beta");
    std::vector<double> g(T * K);
    for (double& x : g) x = static_cast<double>(static_cast<float>(-std::fabs(normal(bits))));
    p.g = tensor::from_doubles(fp32, {1, T, 1, K}, g, "g");
    p.beta_activation = activation;
    p.qk_l2norm = true;
    p.scale = 0.4;
    validate(p, "test");
    const auto head = tiers::lower_double_double(p, 0, 0);
    const auto want = testing::slow_solve(p);
    const std::vector<std::size_t> columns = {0, 1, 2};
    for (const bool pairs : {false, true}) {
      tiers::tier_rows rows;
      if (pairs) tiers::run_double_double(head, columns, rows);
      if (!pairs) tiers::run_fp64(head.high, columns, rows);
      double most = 0;
      for (std::size_t t = 0; t < T; ++t) {
        for (std::size_t v = 0; v < V; ++v) {
          const std::size_t i = tiers::tier_rows::panel(t, v, T);
          testing::slow_real error = want.o[t * V + v] - rows.o[i];
          if (pairs) error -= rows.o_low[i];
          most = std::max(most, static_cast<double>(testing::slow_real(abs(error) / rows.radius(t, v))));
        }
      }
      std::cout << name << (pairs ? " double-double " : " fp64 ") << most << '\n';
      EXPECT_LE(most, 1);
    }
  }
}

problem sampled_problem(std::size_t T, std::size_t K, std::size_t V, std::size_t heads) {
  std::mt19937_64 bits(13);
  std::normal_distribution<double> normal;
  const auto filled = [&](std::vector<std::size_t> shape, double size, const char* name) {
    std::vector<double> x(element_count(shape));
    for (double& xi : x) xi = testing::short_of(normal(bits) * size);
    return tensor::from_doubles(bf16, std::move(shape), x, name);
  };
  problem p;
  p.q = filled({1, T, heads, K}, 1, "q");
  p.k = filled({1, T, heads, K}, 1 / std::sqrt(static_cast<double>(K)), "k");
  p.v = filled({1, T, heads, V}, 1, "v");
  p.beta = tensor::from_doubles(bf16, {1, T, heads}, std::vector<double>(T * heads, 0.75), "beta");
  p.scale = 0.3;
  validate(p, "test");
  return p;
}

/// Every element inside its radius, by 1000-bit reals.
void expect_contains(const reference_tensor& got, const std::vector<testing::slow_real>& want) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    testing::slow_real error = want[i] - got.value[i];
    for (const auto& low : got.low) error -= low[i];
    ASSERT_LE(abs(error), testing::slow_real(got.radius[i])) << i;
  }
}

/// fp64 decides what its radius allows, the double-double tier the other rows, MPFR what is left: correct rounding of
/// fp64 itself cannot come from fp64.
TEST(solve, raises_the_precision_of_the_rows_that_need_it) {
  const problem p = sampled_problem(40, 6, 11, 2);
  const auto want = testing::slow_solve(p);
  const auto count = [](const reference& r, const char* tier) {
    const auto at = r.tiers.find(tier);
    return at == r.tiers.end() ? 0U : at->second;
  };
  question plain;
  const reference coarse = solve(p, plain);
  EXPECT_EQ(count(coarse, "fp64"), 2U);
  EXPECT_TRUE(coarse.o.low.empty());
  expect_contains(coarse.o, want.o);

  question rounded;
  rounded.round_output = rounded.round_state = fp64;
  const reference fine = solve(p, rounded);
  EXPECT_EQ(count(fine, "double-double"), 2U);
  EXPECT_EQ(fine.unanswered, 0U);
  expect_contains(fine.o, want.o);
  expect_contains(fine.final_state, want.final_state);
  for (std::size_t i = 0; i < want.o.size(); ++i) {
    ASSERT_EQ(decided_rounding(fine.o, i, fp64), static_cast<double>(want.o[i])) << i;
  }

  question small;
  small.relative_radius = 1e-33;
  const reference finer = solve(p, small);
  EXPECT_EQ(count(finer, "fixed-128"), 2U);
  expect_contains(finer.o, want.o);
  expect_contains(finer.final_state, want.final_state);
}

/// The bounds on precision are kept, and what each gives still contains the truth.
TEST(solve, stays_between_the_precisions_it_is_given) {
  problem p;
  const std::size_t V = 20;
  p.q = tensor::from_doubles(fp64, {1, 1, 1, 1}, std::vector<double>{1}, "q");
  p.k = p.q.named("k");
  std::vector<double> v(V, 0.1);
  v[7] = 1 + 0x1p-52;
  p.v = tensor::from_doubles(fp64, {1, 1, 1, V}, v, "v");
  p.beta = tensor::from_doubles(fp64, {1, 1, 1}, std::vector<double>{0.1}, "beta");
  p.scale = 1;
  std::vector<double> start(V, 0.0);
  start[7] = 1;
  p.initial_state = tensor::from_doubles(fp64, {1, 1, 1, V}, start, "initial_state");
  validate(p, "test");
  question ask;
  ask.relative_radius = 1e-40;
  const reference got = solve(p, ask);
  EXPECT_EQ(got.unanswered, 0U);
  expect_contains(got.o, testing::slow_solve(p).o);
  ask.max_bits = 53;
  const reference stopped = solve(p, ask);
  EXPECT_EQ(stopped.unanswered, 1U);
  EXPECT_EQ(stopped.tiers.count("fp64"), 1U);
  ask.max_bits = 106;
  EXPECT_EQ(solve(p, ask).tiers.count("double-double"), 1U);
  ask.min_bits = 106;
  const reference pairs = solve(p, ask);
  EXPECT_EQ(pairs.tiers.count("double-double"), 1U);
  expect_contains(pairs.o, testing::slow_solve(p).o);
}

}  // namespace
}  // namespace deltaproof
