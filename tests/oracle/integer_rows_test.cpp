// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "oracle/tiers/integer_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <numeric>
#include <random>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/slow_reference.hpp"
#include "oracle/small_problem.hpp"
#include "oracle/tiers/integer_steps.hpp"

namespace deltaproof {
namespace {

using testing::slow_real;
using testing::slow_solve;
using testing::small;

struct head_numbers {
  std::vector<mpfr_value> o, state;
  std::vector<double> o_radius, state_radius;
  tiers::integer_outcome outcome;
};

/// Every row of one head.
head_numbers run_head(const problem& p, std::size_t sequence, std::size_t head, int bits, unsigned threads = 1) {
  const std::size_t T = p.sequences()[sequence].tokens, V = p.value_dim(), K = p.key_dim();
  tiers::integer_request ask;
  ask.bits = bits;
  ask.threads = threads;
  ask.columns.resize(V);
  std::iota(ask.columns.begin(), ask.columns.end(), std::size_t{0});
  ask.until.assign(V, T + 1);
  head_numbers out;
  out.o.resize(T * V);
  out.state.resize(K * V);
  out.o_radius.assign(T * V, std::numeric_limits<double>::infinity());
  out.state_radius.assign(K * V, std::numeric_limits<double>::infinity());
  const auto into = [V](std::vector<mpfr_value>& to, std::vector<double>& to_radius) {
    return [&, V](std::size_t row, std::size_t at, mpfr_srcptr x, double radius) {
      mpfr_value& place = to[at * V + row];
      mpfr_set_prec(place.get(), mpfr_get_prec(x));
      mpfr_set(place.get(), x, MPFR_RNDN);
      to_radius[at * V + row] = radius;
    };
  };
  out.outcome = tiers::run_integers(p, sequence, head, ask, into(out.o, out.o_radius), into(out.state, out.state_radius));
  return out;
}

slow_real as_real(const mpfr_value& x) {
  slow_real y;
  mpfr_set(y.backend().data(), x.get(), MPFR_RNDN);
  return y;
}

/// Largest error in radii; infinity where something is outside its radius or was not reached.
double worst_ratio(const problem& p, int bits) {
  const auto want = slow_solve(p);
  const std::size_t HV = p.value_heads(), V = p.value_dim(), K = p.key_dim();
  double worst = 0;
  const auto judge = [&](const slow_real& exact, const mpfr_value& got, double radius) {
    const slow_real error = abs(slow_real(exact - as_real(got)));
    // The reference itself has 1000 bits.
    if (error <= abs(exact) * slow_real(ldexp(slow_real(1), -900))) return;
    if (!(radius > 0) || error > slow_real(radius)) {
      ADD_FAILURE() << "error " << error << " outside radius " << radius;
      worst = std::numeric_limits<double>::infinity();
      return;
    }
    worst = std::max(worst, static_cast<double>(slow_real(error / radius)));
  };
  const auto sequences = p.sequences();
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    for (std::size_t h = 0; h < HV; ++h) {
      const auto got = run_head(p, n, h, bits);
      const std::size_t first = sequences[n].batch * p.tokens() + sequences[n].first_token;
      for (std::size_t t = 0; t < sequences[n].tokens; ++t) {
        for (std::size_t v = 0; v < V; ++v)
          judge(want.o[((first + t) * HV + h) * V + v], got.o[t * V + v], got.o_radius[t * V + v]);
      }
      for (std::size_t i = 0; i < K * V; ++i)
        judge(want.final_state[(n * HV + h) * K * V + i], got.state[i], got.state_radius[i]);
    }
  }
  return worst;
}

TEST(fixed_tier, contains_the_truth_in_every_regime) {
  for (const regime_info& regime : regimes()) {
    SCOPED_TRACE(regime.name);
    const problem p = small(std::string(regime.name), 40, 5);
    std::cout << regime.name << ": error / radius " << worst_ratio(p, 128) << " at 128 bits, " << worst_ratio(p, 256)
              << " at 256\n";
  }
}

TEST(fixed_tier, contains_the_truth_for_every_rule_and_activation) {
  for (const auto& [rule, rule_name] : rule_names) {
    for (const auto& [activation, activation_name] : activation_names) {
      for (const bool l2norm : {false, true}) {
        SCOPED_TRACE(std::string(rule_name) + " " + std::string(activation_name) + (l2norm ? " l2norm" : ""));
        problem p = small("typical", 20, 7);
        p.rule = rule;
        p.beta_activation = activation;
        p.qk_l2norm = l2norm;
        worst_ratio(p, 128);
        worst_ratio(p, 512);
      }
    }
  }
}

tensor filled(const std::vector<std::size_t>& shape, const format& of, const char* name,
              const std::function<double(std::size_t)>& f) {
  std::vector<double> x(element_count(shape));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = f(i);
  return tensor::from_doubles(of, shape, x, name);
}

/// One head in fp64 from two laws of its numbers.
problem from_laws(std::size_t T, std::size_t K, std::size_t V, const std::function<double(std::size_t)>& key,
                  const std::function<double(std::size_t)>& value) {
  problem p;
  p.q = filled({1, T, 1, K}, fp64, "q", key);
  p.k = filled({1, T, 1, K}, fp64, "k", key);
  p.v = filled({1, T, 1, V}, fp64, "v", value);
  p.beta = filled({1, T, 1}, fp64, "beta", [](std::size_t i) { return 0.3 + 0.1 * static_cast<double>(i % 7); });
  p.scale = 0.7;
  return p;
}

/// Entries of one key from 1 to 10^-250: more limbs, and beyond what they hold, a rounding that the radius knows.
TEST(fixed_tier, contains_the_truth_where_exponents_spread) {
  std::mt19937_64 draw(3);
  std::normal_distribution<double> normal;
  for (const double decades : {3.0, 20.0, 120.0, 250.0}) {
    SCOPED_TRACE(decades);
    const problem p = from_laws(
        30, 6, 3, [&](std::size_t i) { return 0.4 * normal(draw) * std::pow(10.0, -decades * static_cast<double>(i % 6) / 5); },
        [&](std::size_t) { return normal(draw); });
    const auto outcome = run_head(p, 0, 0, 128).outcome;
    EXPECT_GT(outcome.wide, 0U);
    EXPECT_EQ(outcome.rounded > 0, decades > 50);
    std::cout << decades << " decades: error / radius " << worst_ratio(p, 128) << '\n';
    worst_ratio(p, 512);
  }
}

/// Rows find their own grid, and a new one when magnitudes change.
TEST(fixed_tier, contains_the_truth_from_tiny_to_huge_magnitudes) {
  std::mt19937_64 draw(4);
  std::normal_distribution<double> normal;
  for (const double size : {1e-307, 1e-160, 1e-20, 1e20, 1e160, 1e300}) {
    for (const bool rises : {false, true}) {
      SCOPED_TRACE(size);
      const problem p = from_laws(
          40, 4, 3, [&](std::size_t) { return 0.5 * normal(draw); },
          [&](std::size_t i) { return normal(draw) * (rises == (i / 3 >= 20) ? size : 1.0); });
      const auto outcome = run_head(p, 0, 0, 128).outcome;
      EXPECT_EQ(outcome.moved > 0, (rises ? size : 1 / size) > 1);
      worst_ratio(p, 128);
      worst_ratio(p, 256);
    }
  }
}

/// Decays from e^-3000 to e^3, per token and per channel, zeros and ones among them.
TEST(fixed_tier, contains_the_truth_under_every_decay) {
  std::mt19937_64 draw(5);
  std::normal_distribution<double> normal;
  const double gates[] = {0, -1e-300, -1e-9, -0.05, -5.5, -20, -800, -3000, -std::numeric_limits<double>::infinity(), 0.25, 3};
  for (const bool channels : {false, true}) {
    for (const bool l2norm : {false, true}) {
      problem p = from_laws(60, 4, 3, [&](std::size_t) { return 0.5 * normal(draw); }, [&](std::size_t) { return normal(draw); });
      p.op = channels ? op_kind::kda : op_kind::gated_delta_rule;
      const std::vector<std::size_t> shape =
          channels ? std::vector<std::size_t>{1, 60, 1, 4} : std::vector<std::size_t>{1, 60, 1};
      p.g = filled(shape, fp64, "g", [&](std::size_t) { return gates[draw() % 11]; });
      p.initial_state = filled({1, 1, 4, 3}, fp64, "initial_state", [&](std::size_t) { return normal(draw) * 1e3; });
      p.qk_l2norm = l2norm;
      validate(p, "test");
      std::cout << "decays: error / radius " << worst_ratio(p, 128) << " and " << worst_ratio(p, 512) << '\n';
    }
  }
}

TEST(fixed_tier, leaves_a_decay_it_cannot_carry) {
  problem p = from_laws(4, 2, 2, [](std::size_t) { return 0.5; }, [](std::size_t) { return 1.0; });
  p.op = op_kind::gated_delta_rule;
  p.g = filled({1, 4, 1}, fp64, "g", [](std::size_t i) { return i == 2 ? 1e6 : 0.0; });
  const auto got = run_head(p, 0, 0, 128);
  EXPECT_EQ(got.outcome.reached, (std::vector<std::size_t>{2, 2}));
  EXPECT_LT(got.o_radius[3], std::numeric_limits<double>::infinity());
  EXPECT_EQ(got.o_radius[4], std::numeric_limits<double>::infinity());
}

/// What loses no bit has a radius of 0, whatever the tier.
TEST(fixed_tier, is_exact_where_nothing_is_lost) {
  const problem p = small("exact", 40, 2);
  const auto got = run_head(p, 0, 0, 128);
  for (const double radius : got.o_radius) ASSERT_EQ(radius, 0);
}

TEST(fixed_tier, gives_the_same_bits_with_any_number_of_threads) {
  problem p = small("model-gates", 100, 3);
  const auto one = run_head(p, 0, 0, 256, 1), three = run_head(p, 0, 0, 256, 3);
  EXPECT_EQ(one.o_radius, three.o_radius);
  EXPECT_EQ(one.state_radius, three.state_radius);
  for (std::size_t i = 0; i < one.o.size(); ++i) ASSERT_NE(mpfr_equal_p(one.o[i].get(), three.o[i].get()), 0);
}

/// At 1024 bits the 1000 bits of the slow reference say nothing: 512 bits of the same tier within their radii do.
TEST(fixed_tier, agrees_with_itself_at_1024_bits) {
  for (const char* regime : {"typical", "model-gates", "huge-keys"}) {
    problem p = small(regime, 70, 8);
    p.qk_l2norm = true;
    const auto fine = run_head(p, 0, 0, 1024), coarse = run_head(p, 0, 0, 512);
    for (std::size_t i = 0; i < fine.o.size(); ++i) {
      ASSERT_LT(fine.o_radius[i], 0x1p-900);
      ASSERT_LE(abs(slow_real(as_real(fine.o[i]) - as_real(coarse.o[i]))),
                slow_real(coarse.o_radius[i]) + slow_real(fine.o_radius[i]));
    }
  }
}

rational as_rational(const mpfr_value& x) {
  rational y;
  mpfr_get_q(y.backend().data(), x.get());
  return y;
}

/// Against rationals, with ==, for what is dyadic: rules with dyadic gains, resets, several steps, keys of several limbs.
TEST(exact_tier, equals_rationals) {
  std::mt19937_64 draw(6);
  std::normal_distribution<double> normal;
  const auto short_of = [](double x) { return std::ldexp(std::nearbyint(std::ldexp(x, 4)), -4); };
  for (const rule_kind rule : {rule_kind::euler, rule_kind::rk2}) {
    for (const std::size_t steps : {1U, 2U}) {
      for (const double spread : {1.0, 0x1p-70, 0x1p-200}) {
        SCOPED_TRACE(spread);
        const std::size_t T = 14, K = 3, V = 2;
        problem p;
        p.op = steps == 1 ? op_kind::gated_delta_rule : op_kind::gated_delta_product;
        p.num_householder = steps;
        p.rule = rule;
        p.scale = 0.3;
        const auto key = [&](std::size_t i) { return short_of(normal(draw)) * (i % 3 == 2 ? spread : 1.0); };
        p.q = filled({1, T, 1, K}, fp64, "q", key);
        p.k = filled({1, T * steps, 1, K}, fp64, "k", key);
        p.v = filled({1, T * steps, 1, V}, fp64, "v", [&](std::size_t i) { return i % 5 == 0 ? 0 : normal(draw); });
        p.beta = filled({1, T * steps, 1}, fp64, "beta", [&](std::size_t) { return short_of(normal(draw)); });
        p.g = filled({1, T, 1}, fp64, "g", [](std::size_t i) { return i == 7 ? -std::numeric_limits<double>::infinity() : 0.0; });
        p.initial_state = filled({1, 1, K, V}, fp64, "initial_state", [&](std::size_t) { return normal(draw); });
        validate(p, "test");
        const auto in = lower_exact(p, 0, 0);
        const auto want = recurrent(in.scan);
        const auto got = run_head(p, 0, 0, 0);
        ASSERT_EQ(got.outcome.reached, (std::vector<std::size_t>{T + 1, T + 1}));
        for (std::size_t t = 0; t < T; ++t) {
          for (std::size_t v = 0; v < V; ++v) {
            ASSERT_EQ(as_rational(got.o[t * V + v]), exact(in.scale) * want.o(t, v));
            ASSERT_EQ(got.o_radius[t * V + v], 0);
          }
        }
        for (std::size_t j = 0; j < K; ++j) {
          for (std::size_t v = 0; v < V; ++v) ASSERT_EQ(as_rational(got.state[j * V + v]), want.final_state(j, v));
        }
      }
    }
  }
}

/// Up to the first factor that is not dyadic, or to the cap.
TEST(exact_tier, stops_where_it_ends) {
  problem p = from_laws(6, 2, 2, [](std::size_t) { return 0.5; }, [](std::size_t) { return 1.0; });
  p.op = op_kind::gated_delta_rule;
  p.g = filled({1, 6, 1}, fp64, "g", [](std::size_t i) { return i == 4 ? -0.1 : 0.0; });
  EXPECT_EQ(run_head(p, 0, 0, 0).outcome.reached, (std::vector<std::size_t>{4, 4}));
  EXPECT_LT(tiers::exact_cost(p, 0, 0, {4, 4}, 2, 1e9), std::numeric_limits<double>::infinity());
  EXPECT_EQ(tiers::exact_cost(p, 0, 0, {5, 4}, 2, 1e9), std::numeric_limits<double>::infinity());
  p.g.reset();
  p.qk_l2norm = true;
  EXPECT_EQ(run_head(p, 0, 0, 0).outcome.reached, (std::vector<std::size_t>{0, 0}));
  // 53 bits of beta and as many of the keys, twice: 160 bits a step.
  std::mt19937_64 draw(9);
  std::uniform_real_distribution<double> uniform(0.1, 0.9);
  const std::size_t T = 400;
  const problem q = from_laws(T, 2, 2, [&](std::size_t) { return uniform(draw); }, [&](std::size_t) { return uniform(draw); });
  const auto got = run_head(q, 0, 0, 0);
  EXPECT_GT(got.outcome.reached[0], tiers::exact_bits_cap / 170);
  EXPECT_LT(got.outcome.reached[0], tiers::exact_bits_cap / 130);
}

// ---- every constant against an input made for it ----

struct attained {
  double state = 0;
  double o = 0;
};

/// Largest error / radius of one head at 128 bits.
attained attained_by(const problem& p) {
  const auto want = slow_solve(p);
  const auto got = run_head(p, 0, 0, 128);
  attained out;
  const auto ratio = [](const slow_real& exact, const mpfr_value& x, double radius) {
    const slow_real error = abs(slow_real(exact - as_real(x)));
    if (error == 0) return 0.0;
    EXPECT_LE(error, slow_real(radius));
    return static_cast<double>(slow_real(error / radius));
  };
  for (std::size_t i = 0; i < got.state.size(); ++i)
    out.state = std::max(out.state, ratio(want.final_state[i], got.state[i], got.state_radius[i]));
  for (std::size_t i = 0; i < got.o.size(); ++i) out.o = std::max(out.o, ratio(want.o[i], got.o[i], got.o_radius[i]));
  return out;
}

/// T tokens of K channels, 64 rows, from lists: keys by token and channel, the rest by a law.
problem few_steps(const std::vector<double>& key, std::size_t K, double beta, const std::function<double(std::size_t)>& v,
                  const std::function<double(std::size_t)>& start) {
  const std::size_t T = key.size() / K, V = 64;
  problem p;
  p.q = filled({1, T, 1, K}, fp64, "q", [K](std::size_t i) { return i % K == K - 1 ? 1.0 : 0.0; });
  p.k = tensor::from_doubles(fp64, {1, T, 1, K}, key, "k");
  p.v = filled({1, T, 1, V}, fp64, "v", v);
  p.beta = filled({1, T, 1}, fp64, "beta", [beta](std::size_t) { return beta; });
  p.scale = 1;
  p.initial_state = filled({1, 1, K, V}, fp64, "initial_state", start);
  return p;
}

void expect_attained(const char* what, double ratio) {
  std::cout << what << ": " << ratio << '\n';
  EXPECT_GE(ratio, 0.6) << what;
  EXPECT_LE(ratio, 1) << what;
}

/// Lines X2, X3 and X6: one rounding of one write, which the read-out repeats.
TEST(fixed_constants, of_the_write_and_the_read_out_are_attained) {
  std::mt19937_64 draw(1);
  std::uniform_real_distribution<double> near(1, 1.9);
  const auto got = attained_by(
      few_steps({0.3, 0.7}, 1, 0.1, [&](std::size_t) { return near(draw); }, [&](std::size_t) { return near(draw); }));
  expect_attained("write", got.state);
  expect_attained("read-out", got.o);
}

/// Line X3: what is dropped from the products of a key of several limbs, where the write itself is exact.
TEST(fixed_constants, of_wide_products_are_attained) {
  std::mt19937_64 draw(2);
  std::uniform_real_distribution<double> near(1, 1.9);
  const auto got = attained_by(
      few_steps({1, std::ldexp(0.7, -125)}, 2, 1, [&](std::size_t) { return near(draw); }, [](std::size_t) { return 0.0; }));
  expect_attained("wide product", got.state);
}

/// Line X4: one rounding of each entry.
TEST(fixed_constants, of_the_decay_are_attained) {
  std::mt19937_64 draw(3);
  std::uniform_real_distribution<double> near(1, 1.9);
  problem p = few_steps({0.0}, 1, 1, [](std::size_t) { return 0.0; }, [&](std::size_t) { return near(draw); });
  p.op = op_kind::gated_delta_rule;
  p.g = filled({1, 1, 1}, fp64, "g", [](std::size_t) { return -0.3; });
  expect_attained("decay", attained_by(p).state);
}

/// Line X5: the second channel moves to the grid of a write into the first; and a start of so many bits that four of them go.
TEST(fixed_constants, of_the_grid_are_attained) {
  std::mt19937_64 draw(4);
  std::uniform_real_distribution<double> near(1, 1.9);
  const auto moved = attained_by(
      few_steps({1, 0}, 2, 1, [](std::size_t) { return 0x1p160; }, [&](std::size_t i) { return i < 64 ? 0.0 : near(draw); }));
  expect_attained("moved grid", moved.state);
  const auto start = attained_by(few_steps(
      {0, 0}, 2, 1, [](std::size_t) { return 0.0; },
      [&](std::size_t i) { return i < 64 ? near(draw) : std::ldexp(near(draw), -138); }));
  expect_attained("start", start.state);
}

/// Line R: the error of the first write nearly triples with each of the others.
TEST(fixed_constants, of_the_factor_are_attained) {
  std::mt19937_64 draw(5);
  std::uniform_real_distribution<double> near(1, 1.9);
  std::vector<double> key(30, 1.0);
  key[0] = 0.3;
  expect_attained("factor",
                  attained_by(few_steps(
                                  key, 1, 3.9, [&](std::size_t) { return near(draw); }, [&](std::size_t) { return near(draw); }))
                      .state);
}

/// Line I: derived numbers and rounded multipliers, 2^-64 and more below the roundings above, by themselves.
TEST(fixed_constants, of_derived_numbers_are_attained) {
  std::mt19937_64 draw(6);
  std::normal_distribution<double> normal;
  problem p = from_laws(64, 3, 1, [&](std::size_t) { return normal(draw); }, [&](std::size_t) { return normal(draw); });
  p.op = op_kind::kda;
  p.g = filled({1, 64, 1, 3}, fp64, "g", [&](std::size_t) { return -std::fabs(normal(draw)); });
  p.qk_l2norm = true;
  p.beta_activation = activation_kind::sigmoid;
  for (const int bits : {128, 1024}) {
    const tiers::integer_lowering coarse(p, 0, 0, bits);
    tiers::integer_block block;
    coarse.block(0, 64, 1, block);
    mpfr_value exact(3000), got(3000), sum(3000);
    double write = 0, inverse = 0, decay = 0;
    const auto relative = [&](const tiers::integer_scalar& x, double& most) {
      mpfr_set_z_2exp(got.get(), x.m.get(), x.exponent, MPFR_RNDN);
      mpfr_sub(exact.get(), exact.get(), got.get(), MPFR_RNDN);
      mpfr_div(exact.get(), exact.get(), got.get(), MPFR_RNDN);
      mpfr_mul_2si(exact.get(), exact.get(), bits + 128, MPFR_RNDN);
      const double error = std::fabs(mpfr_get_d(exact.get(), MPFR_RNDA)), allowed = std::ldexp(x.relative, 128);
      EXPECT_LE(error, allowed);
      most = std::max(most, error / allowed);
    };
    const auto norm = [&](const tensor& of, std::size_t row) {
      mpfr_set_ui(exact.get(), 1, MPFR_RNDN);
      mpfr_div_ui(exact.get(), exact.get(), 1000000, MPFR_RNDN);
      for (std::size_t i = 0; i < 3; ++i) {
        mpfr_set_d(sum.get(), of.at(row * 3 + i), MPFR_RNDN);
        mpfr_sqr(sum.get(), sum.get(), MPFR_RNDN);
        mpfr_add(exact.get(), exact.get(), sum.get(), MPFR_RNDN);
      }
      mpfr_rec_sqrt(exact.get(), exact.get(), MPFR_RNDN);
    };
    for (std::size_t t = 0; t < 64; ++t) {
      norm(p.q, t);
      relative(block.tokens[t].inverse, inverse);
      norm(p.k, t);
      relative(block.steps[t].inverse, inverse);
      norm(p.k, t);
      mpfr_set_d(sum.get(), -p.beta.at(t), MPFR_RNDN);
      mpfr_exp(sum.get(), sum.get(), MPFR_RNDN);
      mpfr_add_ui(sum.get(), sum.get(), 1, MPFR_RNDN);
      mpfr_div(exact.get(), exact.get(), sum.get(), MPFR_RNDN);
      relative(block.steps[t].write, write);
      for (std::size_t i = 0; i < 3; ++i) {
        mpfr_set_d(exact.get(), p.g->at(t * 3 + i), MPFR_RNDN);
        mpfr_exp(exact.get(), exact.get(), MPFR_RNDN);
        tiers::integer m;
        const std::size_t limbs = block.decay_limbs;
        std::copy_n(&block.tokens[t].decay_m[i * limbs], limbs, mpz_limbs_write(m.get(), static_cast<mp_size_t>(limbs)));
        mpz_limbs_finish(m.get(), static_cast<mp_size_t>(limbs));
        mpfr_set_z_2exp(got.get(), m.get(), -64 * block.tokens[t].decay_shift[i], MPFR_RNDN);
        mpfr_sub(exact.get(), exact.get(), got.get(), MPFR_RNDN);
        mpfr_mul_2si(exact.get(), exact.get(), 64 * block.tokens[t].decay_shift[i], MPFR_RNDN);
        const double error = std::fabs(mpfr_get_d(exact.get(), MPFR_RNDA));
        EXPECT_LE(error, 0.5 + 0x1p-20);
        decay = std::max(decay, error / 0.5);
      }
    }
    expect_attained("derived write", write);
    expect_attained("derived norm", inverse);
    expect_attained("derived decay", decay);
  }
  double rounded = 0;
  for (int trial = 0; trial < 50; ++trial) {
    const double x[] = {1, std::ldexp(1 + std::fabs(normal(draw)), -235)};
    tiers::integer_vector v;
    v.set(x, 4);
    ASSERT_EQ(v.limbs, 4U);
    tiers::integer m;
    std::copy_n(&v.magnitude[4], 4, mpz_limbs_write(m.get(), 4));
    mpz_limbs_finish(m.get(), 4);
    mpfr_value exact(3000), got(3000);
    mpfr_set_z_2exp(got.get(), m.get(), v.exponent, MPFR_RNDN);
    mpfr_set_d(exact.get(), x[1], MPFR_RNDN);
    mpfr_sub(exact.get(), exact.get(), got.get(), MPFR_RNDN);
    mpfr_mul_2si(exact.get(), exact.get(), -v.exponent, MPFR_RNDN);
    const double error = std::fabs(mpfr_get_d(exact.get(), MPFR_RNDA));
    ASSERT_LE(error, v.rounded);
    rounded = std::max(rounded, error / v.rounded);
  }
  expect_attained("rounded multiplier", rounded);
}

}  // namespace
}  // namespace deltaproof
