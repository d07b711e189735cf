// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Every constant of the double-double tier and of its lowering against inputs made for it, as in tiers_constants_test.cpp:
// steps of one to four channels whose error reaches most of the term. Many were found by climbing from random starts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "deltaproof/number/double_double.hpp"
#include "deltaproof/oracle/certify.hpp"
#include "deltaproof/oracle/problem.hpp"
#include "oracle/lower_mpfr.hpp"
#include "oracle/mpfr_value.hpp"
#include "oracle/tiers/lower_double_double.hpp"
#include "oracle/tiers_cases.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

using testing::all_columns;
using testing::compare;
using testing::exact_run;
using testing::key_family;
using testing::make_head;
using testing::pairs_of;

/// Many rows of one channel in the double-double tier, and how much of a bound their errors reach.
struct pair_rows {
  tiers::double_double_head head;
  tiers::double_double_coefficients c;
  tiers::tier_rows rows;

  explicit pair_rows(std::size_t count, std::size_t tokens = 1, decay_kind decays = decay_kind::none) {
    head.high.scan = sequence<double>::zeros(tokens, 1, 1, count, decays);
    head.high.scan.q[0] = 1;
  }
  [[nodiscard]] sequence<double>& scan() { return head.high.scan; }
  void low_parts(double k, double b, double q) {
    head.k_low.assign(scan().k.size(), 0.0);
    head.step_low.assign(scan().step.size(), 0.0);
    head.q_low.assign(scan().q.size(), 0.0);
    head.k_low[0] = k;
    head.step_low[0] = b;
    head.q_low[0] = q;
  }
  void run() {
    tiers::coefficients_of_steps(head, 0, std::min<std::size_t>(64, scan().rows()), c);
    tiers::run_double_double(head, all_columns(head.high), rows);
  }
  /// Largest errors of state and first read-out over `bound(row)` and the output's radius; the head is one step.
  template <class Bound>
  [[nodiscard]] std::pair<double, double> attained(const Bound& bound) {
    const auto low = [](const std::vector<double>& x) { return x.empty() ? 0 : x[0]; };
    const auto number = [](double high, double low_part) {
      mpfr_value x(400);
      mpfr_set_d(x.get(), high, MPFR_RNDN);
      mpfr_add_d(x.get(), x.get(), low_part, MPFR_RNDN);
      return x;
    };
    const auto k = number(scan().k[0], low(head.k_low)), b = number(scan().step[0], low(head.step_low));
    const auto q = number(scan().q[0], low(head.q_low));
    const auto a = scan().decay.empty() ? number(1, 0) : number(scan().decay[0], low(head.decay_low));
    std::pair<double, double> most{0, 0};
    mpfr_value x(400), w(400), o(400);
    const auto error = [](mpfr_value& exact, double high, double low_part) {
      mpfr_sub_d(exact.get(), exact.get(), high, MPFR_RNDN);
      mpfr_sub_d(exact.get(), exact.get(), low_part, MPFR_RNDN);
      return std::fabs(mpfr_get_d(exact.get(), MPFR_RNDN));
    };
    for (std::size_t r = 0; r < scan().value_dim; ++r) {
      mpfr_mul_d(x.get(), a.get(), scan().initial_state(0, r), MPFR_RNDN);
      mpfr_mul(w.get(), k.get(), x.get(), MPFR_RNDN);
      mpfr_d_sub(w.get(), scan().v[r], w.get(), MPFR_RNDN);
      mpfr_mul(w.get(), w.get(), b.get(), MPFR_RNDN);
      mpfr_mul(w.get(), w.get(), k.get(), MPFR_RNDN);
      mpfr_add(x.get(), x.get(), w.get(), MPFR_RNDN);
      mpfr_mul(o.get(), q.get(), x.get(), MPFR_RNDN);
      mpfr_mul_d(o.get(), o.get(), head.high.scale, MPFR_RNDN);
      const std::size_t state = tiers::tier_rows::panel(0, r, 1), out = tiers::tier_rows::panel(0, r, scan().tokens);
      const double state_error = error(x, rows.final_state[state], rows.final_state_low[state]);
      const double o_error = error(o, rows.o[out], rows.o_low[out]);
      EXPECT_LE(state_error, rows.state_radius[r]);
      EXPECT_LE(o_error, rows.o_radius[out]);
      most.first = std::max(most.first, state_error / bound(r));
      most.second = std::max(most.second, o_error / rows.o_radius[out]);
    }
    return most;
  }
  [[nodiscard]] std::pair<double, double> attained() {
    return attained([&](std::size_t r) { return rows.state_radius[r]; });
  }
};

constexpr std::size_t pair_samples = 30000;

/// Line P2: a tiny step and a huge value, so that the write costs nothing and its low part is as large as it can be; with
/// low parts of keys and steps the third fused term joins.
TEST(pair_constants, of_the_state_are_attained) {
  std::mt19937_64 bits(1);
  std::uniform_real_distribution<double> uniform;
  for (const bool low : {false, true}) {
    double most = 0;
    for (int trial = 0; trial < 3; ++trial) {
      pair_rows one(pair_samples);
      one.scan().k[0] = 1 - 0.02 * uniform(bits);
      one.scan().step[0] = 0x1p-20;
      for (double& x : one.scan().initial_state.entries()) x = 0.5 + 0.16 * uniform(bits);
      for (double& x : one.scan().v) x = 0x1p20 * (0.5 + 0.4 * uniform(bits)) * (uniform(bits) < 0.5 ? -1 : 1);
      if (low) {
        one.scan().k[0] = 1 + 0.02 * uniform(bits);
        one.low_parts(0x1p-53 * (trial == 0 ? -1 : 1), 0, 0);
      }
      one.run();
      most = std::max(most, one.attained().first);
    }
    std::cout << "state: " << most << (low ? " with low parts" : "") << '\n';
    EXPECT_GE(most, 0.6);
  }
}

/// Lines P1, P5 and P2 together: a write that is a whole step long.
TEST(pair_constants, of_the_write_are_attained) {
  std::mt19937_64 bits(2);
  std::uniform_real_distribution<double> uniform;
  for (const bool low : {false, true}) {
    double most = 0;
    for (int trial = 0; trial < 8; ++trial) {
      pair_rows one(pair_samples);
      one.scan().k[0] = 1 - 0.02 * uniform(bits);
      one.scan().step[0] = 1 + 0.01 * uniform(bits);
      for (double& x : one.scan().initial_state.entries()) x = 1 + 0.33 * uniform(bits);
      if (low) one.low_parts(0x1p-54 * (uniform(bits) < 0.5 ? -1 : 1), 0x1p-53 * (uniform(bits) < 0.5 ? -1 : 1), 0);
      one.run();
      most = std::max(most, one.attained().first);
    }
    std::cout << "write: " << most << (low ? " with low parts" : "") << '\n';
    EXPECT_GE(most, low ? 0.4 : 0.6);  // with low parts: more by the inputs found below
  }
}

/// Line P3, where the factor is small enough for its first product to be rounded.
TEST(pair_constants, of_the_decay_are_attained) {
  std::mt19937_64 bits(3);
  std::uniform_real_distribution<double> uniform;
  for (const bool low : {false, true}) {
    double most = 0;
    for (int trial = 0; trial < 4; ++trial) {
      pair_rows one(pair_samples, 1, decay_kind::per_token);
      one.scan().decay[0] = low ? 0.9 + 0.05 * uniform(bits) : 0.05 + 0.05 * uniform(bits);
      if (low) one.head.decay_low.assign(1, 0x1p-54 * (trial % 2 == 0 ? -1 : 1));
      for (double& x : one.scan().initial_state.entries()) x = 1 + 0.33 * uniform(bits);
      one.run();
      most = std::max(most, one.attained().first);
    }
    std::cout << "decay: " << most << (low ? " with a low part" : "") << '\n';
    EXPECT_GE(most, 0.6);
  }
}

/// Line P6 with the product of line P1.
TEST(pair_constants, of_the_read_out_are_attained) {
  std::mt19937_64 bits(4);
  std::uniform_real_distribution<double> uniform;
  for (const bool low : {false, true}) {
    double most = 0;
    for (int trial = 0; trial < 4; ++trial) {
      pair_rows one(pair_samples);
      one.scan().q[0] = 1 - 0.02 * uniform(bits);
      one.head.high.scale = low ? 1 : 1 + uniform(bits);
      for (double& x : one.scan().initial_state.entries()) x = 1 + 0.33 * uniform(bits);
      if (low) one.low_parts(0, 0, 0x1p-54 * (1 - 0.1 * uniform(bits)));
      one.run();
      most = std::max(most, one.attained().second);
    }
    std::cout << "read-out: " << most << (low ? " with low parts" : "") << '\n';
    EXPECT_GE(most, 0.6);
  }
}

/// One step of one row found by climbing from random starts; every low part is at most half an ulp.
struct found_step {
  const char* lines = "";
  std::vector<double> k, k_low, start, q, q_low;
  double b = 0, b_low = 0, v = 0, scale = 1, decay = 1, decay_low = 0;
};

/// |error| / radius of the state as a vector and of the output.
std::pair<double, double> attained(const found_step& x) {
  const std::size_t K = x.start.size();
  const auto filled = [&](std::vector<double> values) {
    values.resize(K, 0.0);
    return values;
  };
  tiers::double_double_head head;
  auto& s = head.high.scan;
  s = sequence<double>::zeros(1, 1, K, 1, x.decay == 1 ? decay_kind::none : decay_kind::per_token);
  head.high.scale = x.scale;
  s.k = filled(x.k);
  s.q = filled(x.q);
  s.step = {x.b};
  s.v = {x.v};
  std::copy(x.start.begin(), x.start.end(), s.initial_state.entries().begin());
  if (x.decay != 1) s.decay = {x.decay};
  if (x.decay_low != 0) head.decay_low = {x.decay_low};
  if (!x.k_low.empty() || !x.q_low.empty()) {
    head.k_low = filled(x.k_low);
    head.q_low = filled(x.q_low);
    head.step_low = {x.b_low};
  }
  tiers::tier_rows rows;
  tiers::run_double_double(head, {{0}}, rows);
  EXPECT_EQ(rows.left[0], 0);
  auto fine = testing::in_mpfr(head.high);
  const auto add_low = [](std::vector<mpfr_value>& to, const std::vector<double>& low) {
    for (std::size_t i = 0; i < low.size(); ++i) mpfr_add_d(to[i].get(), to[i].get(), low[i], MPFR_RNDN);
  };
  add_low(fine.scan.k, head.k_low);
  add_low(fine.scan.q, head.q_low);
  add_low(fine.scan.step, head.step_low);
  add_low(fine.scan.decay, head.decay_low);
  certifier<mpfr_field> engine(mpfr_field{400}, std::ldexp(1.0, -400), fine);
  const auto want = engine.run({});
  const auto distance = [](const mpfr_value& exact, double high, double low) {
    mpfr_value rest(400);
    mpfr_sub_d(rest.get(), exact.get(), high, MPFR_RNDN);
    mpfr_sub_d(rest.get(), rest.get(), low, MPFR_RNDN);
    return mpfr_get_d(rest.get(), MPFR_RNDN);
  };
  double square = 0;
  for (std::size_t j = 0; j < K; ++j) {
    const std::size_t at = tiers::tier_rows::panel(j, 0, K);
    const double off = std::ldexp(distance(want.final_state[j], rows.final_state[at], rows.final_state_low[at]), 100);
    square += off * off;
  }
  const double state = std::ldexp(std::sqrt(square), -100);
  const double o = std::fabs(distance(want.o[0], rows.o[0], rows.o_low[0]));
  return {state == 0 ? 0 : state / rows.state_radius[0], o == 0 ? 0 : o / rows.o_radius[0]};
}

/// Lines P1 to P6 with their worst roundings together, by inputs found in advance.
TEST(pair_constants, are_attained_by_inputs_found_for_them) {
  const found_step states[] = {
      {"P2", {0x1.fd4c9e19aef8cp-1}, {}, {0x1.1214188d5eb24p-1}, {}, {}, 0x1.9db2bb64648d8p-20, 0, 0x1.c4358af089034p+17},
      {"P2, four channels",
       {0x1.fff95624e6062p-2, 0x1.fff95624e6062p-2, 0x1.fff95624e6062p-2, 0x1.fff95624e6062p-2},
       {},
       {0x1.3133d4b688578p-2, 0x1.3133d4b688578p-2, 0x1.3133d4b688578p-2, 0x1.3133d4b688578p-2},
       {},
       {},
       0x1.26571490c4665p-20,
       0,
       0x1.dd8ae1524b183p+19},
      {"P2, low parts",
       {0x1.a77219237b7c3p-1},
       {-0x1.fb2deef4676eep-55},
       {-0x1.5149f6eb49ed4p-1},
       {},
       {},
       0x1.1a6d46031154ap-21,
       0,
       -0x1.24f978f768f98p+20},
      {"P2, low parts, four channels",
       {0x1.f49e8722d0245p-2, 0x1.f49e8722d0245p-2, 0x1.f49e8722d0245p-2, 0x1.f49e8722d0245p-2},
       {-0x1.7fffffae9285fp-56, -0x1.7fffffae9285fp-56, -0x1.7fffffae9285fp-56, -0x1.7fffffae9285fp-56},
       {-0x1.41af064620d41p-6, -0x1.41af064620d41p-6, -0x1.41af064620d41p-6, -0x1.41af064620d41p-6},
       {},
       {},
       0x1.860084a4430c6p-20,
       0,
       -0x1.800bbd4a50f7bp+18},
      {"P1 P5 P2", {0x1.de8afa50db8d3p-1}, {}, {-0x1.37b95569d2166p-1}, {}, {}, 0x1.86f3878873417p+0, 0, 0x1.140a284ef98b4p-54},
      {"P1 P5 P2, four channels",
       {0x1.f41057f245dfcp-2, 0x1.f49057f7ed7f6p-2, 0x1.f49036b2ae4bep-2, 0x1.f49057f6cd6fep-2},
       {},
       {-0x1.b93f85b7a7d18p-2, -0x1.393f85b9f2858p-2, -0x1.391f8137a7d39p-2, -0x1.bba4246b2e4d8p-2},
       {},
       {},
       0x1.9251455c00c96p+1,
       0,
       0x1.c90087575fc4p-56},
      {"P1 P5 P2, low parts",
       {0x1.fe1a2c1dd2dbdp-1},
       {0x1.fffffffffffc1p-55},
       {-0x1.4614ab4643422p-1},
       {},
       {},
       0x1.3064bfb1f8db9p+1,
       -0x1.d671d5116627ap-53,
       0x1.52d3e5f6dce68p-55},
      {"P1 P5 P2, low parts, four channels",
       {0x1.e4174c03729f6p-2, 0x1.ec108d7366f3ep-2, 0x1.6c108d7366f3ep-2, 0x1.ec108d7366f3ep-2},
       {-0x1.fffffffffff4p-56, -0x1.ffffffffff7b5p-56, -0x1.fffffbfffffd4p-56, -0x1p-55},
       {0x1.4af0586c709ecp-2, 0x1.4a974a03935ecp-2, 0x1.4a974b03935ecp-2, 0x1.4a974a03935ecp-2},
       {},
       {},
       0x1.40ab52aa7ab19p+0,
       -0x1.627079c5354f6p-54,
       -0x1.4a21f45cda228p-54},
      {"P3", {}, {}, {0x1.babf8f098f2cfp-1}, {}, {}, 0, 0, 0, 1, 0x1.d36a30b2f1161p-4},
      {"P3, a low part", {}, {}, {-0x1.3d79b377bd3fep-1}, {}, {}, 0, 0, 0, 1, 0x1.008b68b8f263fp+0, -0x1.fe93b2b498c61p-54},
  };
  const found_step outputs[] = {
      {"P1 P6", {}, {}, {-0x1.18956d646b986p+0}, {0x1.d3ec17cc26b35p+0}, {}, 0, 0, 0, 0x1.20db83b28fd09p+0},
      {"P1 P6, two channels, one small",
       {},
       {},
       {0x1.980988e887602p-2, -0x1.28c7126dbec86p-2},
       {0x1.15655ee2bbafap-1, 0x1.a1c5c2ceacf17p-3},
       {},
       0,
       0,
       0,
       0x1.41110d9fe4382p+0},
      {"P1 P6, three channels",
       {},
       {},
       {0x1.a838ca2e981dcp-2, -0x1.90b13213b8885p-3, -0x1.41bef2b46b3a2p-2},
       {0x1.645cabd2ba89ep-1, 0x1.5987a40900dc4p-1, 0x1.0b286031476e5p-1},
       {},
       0,
       0,
       0,
       0x1.ce9b632be6049p+0},
      {"P1 P6, low parts", {}, {}, {-0x1.a9ba714a196f4p-3}, {0x1.fc9912a397721p-1}, {0x1p-54}, 0, 0, 0, 0x1.440a8a0ac0636p-1},
      {"P1 P6, low parts, two channels",
       {},
       {},
       {-0x1.3d57bc3a20194p-2, 0x1.138d63e6fe53cp-2},
       {0x1.000874821e459p-1, 0x1.00b774e251a85p-1},
       {0x1.ffce5f787721ap-55, 0x1.e763d804e0ba7p-55},
       0,
       0,
       0,
       0x1.814b65aed0d6cp+0},
      {"P1 P6, low parts, three channels",
       {},
       {},
       {-0x1.7bda732cb0574p-2, -0x1.66b67adcc6a1bp-2, -0x1.e278d3d9e3227p-3},
       {0x1.0635708b6ee7dp-1, 0x1.25d7ba5cf44b1p-1, 0x1.11f8f055b1281p-1},
       {0x1.fffffffff7093p-55, 0x1.fffffffc0039p-55, 0x1.f53a953ad5c6cp-55},
       0,
       0,
       0,
       0x1.30076e4ff927dp-1},
  };
  for (const found_step& x : states) {
    const double share = attained(x).first;
    std::cout << x.lines << ": " << share << '\n';
    EXPECT_LE(share, 1) << x.lines;
    EXPECT_GE(share, 0.6) << x.lines;
  }
  for (const found_step& x : outputs) {
    const double share = attained(x).second;
    std::cout << x.lines << ": " << share << '\n';
    EXPECT_LE(share, 1) << x.lines;
    EXPECT_GE(share, 0.6) << x.lines;
  }
}

/// Steps of one to five channels of every scale, low parts of up to half an ulp: none leaves its radius.
TEST(pair_constants, hold_for_random_steps) {
  std::mt19937_64 bits(9);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(-1, 1);
  const auto scaled_down = [&](double x, std::uint64_t most) { return std::ldexp(x, -static_cast<int>(bits() % most)); };
  const auto low_of = [&](double x) {
    const double half = std::ldexp(1.0, std::ilogb(x) - 53);
    return bits() % 2 == 0 ? half : half * uniform(bits);
  };
  double state = 0, output = 0;
  for (std::size_t trial = 0; trial < scaled(4000); ++trial) {
    found_step x;
    for (std::size_t j = 0, channels = 1 + bits() % 5; j < channels; ++j) {
      x.k.push_back(scaled_down(normal(bits), 4));
      x.q.push_back(scaled_down(normal(bits), 4));
      x.start.push_back(scaled_down(normal(bits), bits() % 4 == 0 ? 60 : 2));
      if (trial % 4 == 0) continue;
      x.k_low.push_back(low_of(x.k.back()));
      x.q_low.push_back(low_of(x.q.back()));
    }
    x.b = scaled_down(2.5 * std::fabs(uniform(bits)), trial % 3 == 0 ? 30 : 2);
    if (trial % 4 != 0) x.b_low = low_of(x.b);
    x.v = std::ldexp(normal(bits), static_cast<int>(bits() % 80) - 60);
    x.scale = 1 + uniform(bits) / 2;
    if (trial % 5 == 0) x.decay = scaled_down(1 - std::fabs(uniform(bits)) / 2, 4);
    if (trial % 10 == 0) x.decay_low = low_of(x.decay);
    const auto share = attained(x);
    EXPECT_LE(share.first, 1);
    EXPECT_LE(share.second, 1);
    state = std::max(state, share.first);
    output = std::max(output, share.second);
  }
  std::cout << "random steps: state " << state << ", output " << output << '\n';
  EXPECT_GE(state, 0.3);
  EXPECT_GE(output, 0.3);
}

/// Line P5 alone: S = -1 and k = 1, so that w = b (1 + v), on the grid, is all that is rounded. Found by climbing.
TEST(pair_constants, of_the_write_alone_are_attained) {
  for (const bool low : {false, true}) {
    const double b = low ? 0x1.02b12a8aa8d77p+0 : 0x1.037f5e6cbee0fp+0, b_low = low ? -0x1.f30bc30f8bcffp-54 : 0;
    const double v = low ? 0x1.838e6e9e86c6p-6 : 0x1.1d44e4f4d304p-7;
    const double_double w = double_double::two_sum(b, b_low) * (double_double(1) + double_double(v));
    ASSERT_EQ(std::fmod(w.hi(), 0x1p-50), 0);
    pair_rows one(1);
    one.scan().k[0] = 1;
    one.scan().step[0] = b;
    one.scan().v[0] = v;
    one.scan().initial_state(0, 0) = -1;
    if (low) one.low_parts(0, b_low, 0);
    one.run();
    const double share = one.attained([&](std::size_t) { return tiers::pair_unit * one.c.from_write[0] * w.hi(); }).first;
    std::cout << "write alone: " << share << (low ? " with low parts" : "") << '\n';
    EXPECT_GE(share, 0.6);
    EXPECT_LE(share, 1);
  }
}

/// Line P4: a state of more bits than a double comes out of an exact step; 64 steps later it is put on a wider grid.
TEST(pair_constants, of_the_renewal_are_attained) {
  std::mt19937_64 bits(5);
  std::uniform_real_distribution<double> uniform;
  std::vector<double> start(pair_samples), value(pair_samples), before(pair_samples);
  for (double& x : start) x = std::ldexp(std::floor(0x1p47 * (1 + uniform(bits))), -99) * (uniform(bits) < 0.5 ? -1 : 1);
  for (double& x : value) x = 1.08 + 0.45 * uniform(bits);
  double most = 0;
  for (const std::size_t tokens : {64U, 66U}) {
    pair_rows some(pair_samples, tokens);
    some.scan().k[0] = 1.25;
    some.scan().step[0] = 1;
    std::copy(start.begin(), start.end(), some.scan().initial_state.entries().begin());
    std::copy(value.begin(), value.end(), some.scan().v.begin());
    some.run();
    // Of the rows whose step was exact, what the radius grew by.
    for (std::size_t r = 0; r < pair_samples; ++r) {
      const std::size_t at = tiers::tier_rows::panel(0, r, 1);
      mpfr_value x(400);
      mpfr_set_d(x.get(), start[r], MPFR_RNDN);
      mpfr_mul_d(x.get(), x.get(), -0.5625, MPFR_RNDN);
      mpfr_value kv(400);
      mpfr_set_d(kv.get(), value[r], MPFR_RNDN);
      mpfr_mul_d(kv.get(), kv.get(), 1.25, MPFR_RNDN);
      mpfr_add(x.get(), x.get(), kv.get(), MPFR_RNDN);
      mpfr_sub_d(x.get(), x.get(), some.rows.final_state[at], MPFR_RNDN);
      mpfr_sub_d(x.get(), x.get(), some.rows.final_state_low[at], MPFR_RNDN);
      const double error = std::fabs(mpfr_get_d(x.get(), MPFR_RNDN));
      ASSERT_LE(error, some.rows.state_radius[r]);
      if (tokens == 64) before[r] = error == 0 ? some.rows.state_radius[r] : -std::numeric_limits<double>::infinity();
      if (tokens == 66) most = std::max(most, error / (some.rows.state_radius[r] - before[r]));
    }
  }
  std::cout << "renewal: " << most << '\n';
  EXPECT_GE(most, 0.6);
  EXPECT_LE(most, 1);
}

/// Lines P1 and P4 where every channel rounds: what 64 of them leave of the bound.
TEST(pair_constants, of_many_channels_are_sums_of_worst_cases) {
  const auto in = make_head({64, 64, 1}, key_family::unit, 5);
  const auto want = exact_run(in);
  tiers::tier_rows rows;
  tiers::run_double_double(pairs_of(in), all_columns(in), rows);
  const auto c = compare(rows, want, all_columns(in), in.scan);
  std::cout << "64 channels: " << c.state << '\n';
  EXPECT_GE(c.state, 1e-3);
}

/// Line L by inputs found for it, and by their neighbours: each kind of derived number against MPFR.
TEST(pair_constants, of_the_lowering_are_attained) {
  const std::vector<double> gates = {-0x1.1b7559af9048bp+8, -0x1.2372f900857bcp+9, -0x1.f67dcfe7cdf05p+8, -0x1.4e759f480c879p+0};
  const std::vector<double> logits = {-0x1.855aee6256e48p-5, -0x1.49e6fa38ed38fp-5, 0x1.8a8110e029126p+1};
  const std::vector<double> keys = {-0x1.fe1a8c318851ap+1, -0x1.2a54bf31906b4p-3, -0x1.6c3ecd6356b3cp-1, 0x1.d2403f38ecb4ep+0};
  const std::size_t T = 4 + scaled(3000), K = 2;
  std::mt19937_64 bits(8);
  std::uniform_real_distribution<double> uniform;
  const auto neighbours = [&](const std::vector<double>& of, std::size_t width) {
    std::vector<double> x(T * width);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = of[i % of.size()];
      if (i >= of.size()) x[i] *= 1 + (uniform(bits) - 0.5) * std::ldexp(1.0, -static_cast<int>(bits() % 53));
      x[i] = std::max(x[i], -600.0);
    }
    return x;
  };
  problem p;
  p.op = op_kind::gated_delta_rule;
  p.k = tensor::from_doubles(fp64, {1, T, 1, K}, neighbours(keys, K), "k");
  p.q = p.k.named("q");
  p.v = tensor::from_doubles(fp64, {1, T, 1, 1}, std::vector<double>(T, 1.0), "v");
  p.beta = tensor::from_doubles(fp64, {1, T, 1}, neighbours(logits, 1), "beta");
  p.g = tensor::from_doubles(fp64, {1, T, 1}, neighbours(gates, 1), "g");
  p.beta_activation = activation_kind::sigmoid;
  p.qk_l2norm = true;
  validate(p, "test");
  const auto got = tiers::lower_double_double(p, 0, 0);
  ASSERT_FALSE(got.underflowed);
  const auto want = lower_mpfr(p, 0, 0, 300);
  const auto share = [](const std::vector<double>& high, const std::vector<double>& low, const std::vector<mpfr_value>& exact,
                        double constant) {
    double most = 0;
    mpfr_value rest(400);
    for (std::size_t i = 0; i < high.size(); ++i) {
      mpfr_sub_d(rest.get(), exact[i].get(), high[i], MPFR_RNDN);
      mpfr_sub_d(rest.get(), rest.get(), low[i], MPFR_RNDN);
      const double error = std::fabs(mpfr_get_d(rest.get(), MPFR_RNDA));
      most = std::max(most, error / (std::fabs(high[i]) * constant * tiers::pair_unit));
    }
    return most;
  };
  const auto& s = got.high.scan;
  const std::pair<const char*, double> shares[] = {
      {"exponential", share(s.decay, got.decay_low, want.scan.decay, got.error.decay)},
      {"sigmoid", share(s.step, got.step_low, want.scan.step, got.error.step)},
      {"inverse root", share(s.k, got.k_low, want.scan.k, got.error.key)}};
  for (const auto& [name, most] : shares) {
    std::cout << name << ": " << most << '\n';
    EXPECT_LE(most, 1) << name;
    EXPECT_GE(most, 0.6) << name;
  }
}

}  // namespace
}  // namespace deltaproof
