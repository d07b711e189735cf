// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/inputs/regimes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/files/exchange.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "deltaproof/support/errors.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;

generation small(std::string_view regime) {
  generation g;
  g.regime = regime;
  g.tokens = 20;
  g.key_dim = 16;
  g.value_dim = 8;
  return g;
}

std::string hash_of(const problem& p) {
  const std::string bytes = problem_bytes(p);
  return sha256_hex(std::as_bytes(std::span(bytes)));
}

/// What others may name, in the order of the table; its bytes stay what they are.
const std::vector<std::string_view> published{"typical",  "slow-decay", "no-decay",  "strong-decay",  "collinear", "elu1",
                                              "silu",     "repeated",   "mqar",      "mad-copy",      "regbench",  "alternating",
                                              "beta-two", "tiny-keys",  "huge-keys", "model-gates",   "tails",     "varlen",
                                              "gva",      "k-ne-v",     "exact",     "near-repeated", "correlated"};

TEST(regimes, has_the_published_names_in_their_order) {
  std::vector<std::string_view> names;
  std::set<std::string_view> distinct;
  for (const regime_info& r : regimes()) {
    EXPECT_TRUE(distinct.insert(r.name).second) << r.name;
    if (std::find(published.begin(), published.end(), r.name) != published.end()) names.push_back(r.name);
    EXPECT_FALSE(r.what.empty() || r.why.empty()) << r.name;
    EXPECT_EQ(&regime_named(r.name), &regime_named(r.name));
  }
  EXPECT_EQ(names, published);
}

TEST(regimes, show_faults_of_backward_passes) {
  const auto drawn = [](std::string_view regime) {
    generation g = small(regime);
    g.value_dim = g.key_dim;
    g.cotangents = true;
    return generate(g);
  };
  for (const double x : drawn("saturated-gates").g->to_doubles()) EXPECT_EQ(x, -5);
  const std::vector<double> beta = drawn("beta-zero").beta.to_doubles();
  EXPECT_GT(std::count(beta.begin(), beta.end(), 0.0), 3);
  EXPECT_GT(std::count(beta.begin(), beta.end(), 0x1p-24), 3);
  const problem states = drawn("state-cotangent");
  EXPECT_FALSE(states.d_o);
  for (const auto& t : {*states.initial_state, *states.d_final_state}) {
    const std::vector<double> values = t.to_doubles();
    std::set<double> sizes;
    for (const double x : values) {
      int exponent = 0;
      EXPECT_EQ(std::fabs(std::frexp(x, &exponent)), 0.5) << x;
      sizes.insert(std::fabs(x));
    }
    EXPECT_GT(sizes.size(), 20U);
  }
  // dq of the normalised q lies along it, and the norm takes it away: what is left is of the size of its epsilon.
  problem along = drawn("along-q");
  const std::vector<double> taken = solve_gradients(along).tensors.at("dq").value;
  along.qk_l2norm = false;
  const std::vector<double> whole = solve_gradients(along).tensors.at("dq").value;
  const std::vector<double> q = along.q.to_doubles();
  const std::size_t K = along.key_dim();
  for (std::size_t row = 0; row < q.size() / K; ++row) {
    double cross = 0, size = 0, left = 0;
    for (std::size_t m = 0; m < K; ++m) {
      const double x = whole[row * K + m];
      cross = std::max(cross, std::fabs(x * q[row * K] - whole[row * K] * q[row * K + m]));
      size = std::max(size, std::fabs(x * q[row * K + m]));
      left = std::max(left, std::fabs(taken[row * K + m]));
    }
    EXPECT_LE(cross, 1e-6 * size) << row;
    EXPECT_LT(left, 0.02) << row;
  }
}

TEST(regimes, completes_once_and_for_all) {
  for (const regime_info& r : regimes()) {
    generation wanted;
    wanted.regime = r.name;
    const generation completed = complete(wanted);
    EXPECT_EQ(complete(completed), completed) << r.name;
    EXPECT_THAT(options_text(completed), ::testing::StartsWith("--regime " + std::string(r.name) + " --op "));
  }
}

TEST(regimes, that_set_beta_are_named_where_the_law_is_listed) {
  std::string named = "beta as the regime itself sets it (only ", last;
  for (const regime_info& r : regimes()) {
    generation wanted;
    wanted.regime = r.name;
    if (complete(wanted).beta != "regime") continue;
    if (!last.empty()) named += last + ", ";
    last = r.name;
  }
  const auto laws = beta_laws();
  const auto law = std::find_if(laws.begin(), laws.end(), [](const law_info& one) { return one.name == "regime"; });
  ASSERT_NE(law, laws.end());
  EXPECT_EQ(law->meaning, named.substr(0, named.size() - 2) + " and " + last + " do)");
}

TEST(regimes, prints_the_options_that_make_the_problem_again) {
  generation wanted;
  wanted.regime = "varlen";
  wanted.seed = 7;
  EXPECT_EQ(options_text(complete(wanted)),
            "--regime varlen --op gated_delta_rule --rule euler --B 1 --T 300 --K 64 --V 64 --H 1 --HV 1 --num-householder 1 "
            "--dtype bf16 --beta sigmoid --gate typical --initial-state normal --cu-seqlens 0,0,1,16,80,208,300 --seed 7");
}

TEST(regimes, names_regime_and_seed_in_the_note) {
  generation wanted = small("collinear");
  wanted.seed = 11;
  EXPECT_EQ(generate(wanted).note, "regime collinear, seed 11");
}

// The hash covers every byte: it is the same for every compiler, optimisation level and machine.
TEST(regimes, gives_the_same_bytes_everywhere) {
  std::string all;
  for (const std::string_view name : published) all += hash_of(generate(small(name)));
  for (const law_info& law : beta_laws()) {
    generation g = small(law.name == "regime" ? "mqar" : "typical");
    g.beta = law.name;
    g.dtype = fp16;
    all += hash_of(generate(g));
  }
  for (const law_info& law : gate_laws()) {
    if (law.name == "resets") continue;  // of the regime below
    generation g = small("typical");
    g.op = op_kind::kda;
    g.gate = law.name;
    g.dtype = fp64;
    all += hash_of(generate(g));
  }
  EXPECT_EQ(sha256_hex(std::as_bytes(std::span(all))), "049e3335a992b3e8a3cc2fa46fbeed9929ab926123833ea0fc8850b8199d5c24");
  EXPECT_EQ(hash_of(generate(small("reset"))).substr(0, 16), "bab1af8e5bc349c0");
  EXPECT_EQ(hash_of(generate(small("large"))).substr(0, 16), "ff68a4580d716098");
}

TEST(regimes, changes_every_tensor_with_the_seed) {
  generation a = small("typical");
  a.op = op_kind::kda;
  generation b = a;
  b.seed = 1;
  const problem p = generate(a);
  const problem r = generate(b);
  EXPECT_FALSE(same_bits(p.q, r.q) || same_bits(p.k, r.k) || same_bits(p.v, r.v) || same_bits(p.beta, r.beta) ||
               same_bits(*p.g, *r.g) || same_bits(*p.initial_state, *r.initial_state));
}

TEST(regimes, leaves_the_keys_alone_when_another_law_changes) {
  generation a = small("typical");
  generation b = a;
  b.beta = "near-two";
  b.op = op_kind::kda;
  b.initial_state = "none";
  const problem p = generate(a);
  const problem r = generate(b);
  EXPECT_TRUE(same_bits(p.q, r.q) && same_bits(p.k, r.k) && same_bits(p.v, r.v));
  EXPECT_FALSE(same_bits(p.beta, r.beta) || r.initial_state.has_value());
}

TEST(regimes, take_a_decimal_for_a_constant_law) {
  generation g = small("typical");
  g.op = op_kind::gated_delta_rule;
  g.beta = "1.5";
  g.gate = "-inf";
  const problem p = generate(g);
  EXPECT_THAT(p.beta.to_doubles(), ::testing::Each(1.5));
  EXPECT_THAT(p.g->to_doubles(), ::testing::Each(-std::numeric_limits<double>::infinity()));
}

TEST(regimes, are_what_their_names_say) {
  const auto zeros = [](const tensor& t) {
    const std::vector<double> x = t.to_doubles();
    return static_cast<std::size_t>(std::count(x.begin(), x.end(), 0.0));
  };
  EXPECT_EQ(zeros(*generate(small("no-decay")).g), generate(small("no-decay")).g->size());
  EXPECT_THAT(generate(small("strong-decay")).g->to_doubles(),
              ::testing::Each(::testing::AllOf(::testing::Le(-5), ::testing::Ge(-25))));
  EXPECT_THAT(generate(small("beta-two")).beta.to_doubles(), ::testing::Contains(2.0));
  EXPECT_GT(zeros(generate(small("mqar")).beta), 10U);
  EXPECT_GT(zeros(generate(small("mad-copy")).beta), 10U);
  EXPECT_TRUE(generate(small("tiny-keys")).qk_l2norm);
  EXPECT_EQ(generate(small("huge-keys")).rule, rule_kind::exact);
  EXPECT_NE(generate(small("k-ne-v")).key_dim(), generate(small("k-ne-v")).value_dim());
  generation resets = small("reset");
  resets.tokens = 512;
  const std::vector<double> gates = generate(resets).g->to_doubles();
  EXPECT_THAT(gates, ::testing::Contains(-std::numeric_limits<double>::infinity()));
  EXPECT_THAT(gates, ::testing::Contains(-10000.0));
  const problem large = generate(small("large"));
  const auto reaches = [](const tensor& t) {
    const std::vector<double> x = t.to_doubles();
    return std::fabs(*std::max_element(x.begin(), x.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); }));
  };
  EXPECT_GT(std::min(reaches(large.v), reaches(*large.initial_state)), 4096);
  EXPECT_LT(reaches(large.k), 1.01);
  generation tails;
  tails.regime = "tails";
  std::set<std::size_t> lengths;
  for (tails.seed = 0; tails.seed < 63; ++tails.seed) lengths.insert(*complete(tails).tokens % 64);
  EXPECT_EQ(lengths.size(), 63U);
  EXPECT_FALSE(lengths.contains(0));
  generation gva;
  gva.regime = "gva";
  EXPECT_EQ(*complete(gva).value_heads, 4U);
  EXPECT_EQ(*complete(gva).key_heads, 2U);
}

TEST(regimes, asks_for_activations_with_logits) {
  generation g = small("typical");
  g.beta = "logit";
  EXPECT_EQ(generate(g).beta_activation, activation_kind::sigmoid);
  g.beta = "two-logit";
  EXPECT_EQ(generate(g).beta_activation, activation_kind::two_sigmoid);
}

template <class Error>
std::string refusal(const generation& g) {
  try {
    (void)generate(g);
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST(regimes, refuse_what_does_not_fit_and_say_why) {
  const auto with = [](auto change) {
    generation g = small("typical");
    change(g);
    return g;
  };
  EXPECT_THAT(refusal<format_error>(small("nice")), HasSubstr("unknown regime \"nice\"; choose from typical, "));
  EXPECT_THAT(refusal<format_error>(with([](auto& g) { g.beta = "big"; })), HasSubstr("beta law \"big\""));
  EXPECT_THAT(refusal<format_error>(with([](auto& g) { g.beta = "nan"; })), HasSubstr("beta law \"nan\""));
  EXPECT_THAT(refusal<format_error>(with([](auto& g) { g.gate = "big"; })), HasSubstr("gate law \"big\""));
  EXPECT_THAT(refusal<format_error>(with([](auto& g) { g.initial_state = "1"; })), HasSubstr("initial state \"1\""));
  EXPECT_THAT(refusal<format_error>(with([](auto& g) { g.dtype = e4m3; })), HasSubstr("e4m3 cannot hold"));
  EXPECT_THAT(refusal<domain_error>(with([](auto& g) { g.beta = "regime"; })),
              HasSubstr("regime typical has the law of beta sigmoid; leave --beta out"));
  EXPECT_THAT(refusal<domain_error>(with([](auto& g) { g.op = op_kind::delta_rule, g.gate = "slow"; })),
              HasSubstr("has no decay"));
  EXPECT_THAT(refusal<domain_error>(with([](auto& g) { g.beta = "inf"; })), HasSubstr("--beta inf is infinite in bf16"));
  EXPECT_THAT(refusal<domain_error>(with([](auto& g) { g.op = op_kind::gated_delta_rule, g.gate = "1e300"; })),
              HasSubstr("--gate 1e300 is infinite in fp32"));
  EXPECT_THAT(
      refusal<domain_error>(with([](auto& g) { g.regime = "law", g.law = "key_spread=8,key_norm=1024", g.dtype = fp16; })),
      HasSubstr("tensor k: a number is beyond the range of fp16"));
  EXPECT_THAT(refusal<shape_error>(with([](auto& g) { g.key_dim = 0; })), HasSubstr("K = 0"));
  EXPECT_THAT(refusal<shape_error>(with([](auto& g) { g.num_householder = 0; })), HasSubstr("num-householder = 0"));
  EXPECT_THAT(refusal<shape_error>(with([](auto& g) { g.key_heads = 2, g.value_heads = 3; })), HasSubstr("not a multiple"));
  EXPECT_THAT(refusal<shape_error>(with([](auto& g) { g.tokens = std::size_t{1} << 40; })), HasSubstr("2^33"));
  EXPECT_THAT(refusal<domain_error>(with([](auto& g) { g.cu_seqlens = {0, 5, 4, 20}; })), HasSubstr("never decrease"));
  EXPECT_THAT(refusal<domain_error>(with([](auto& g) { g.cu_seqlens = {0, 21}; })), HasSubstr("T = 20"));
  EXPECT_THAT(refusal<shape_error>(with([](auto& g) { g.batch = 2, g.cu_seqlens = {0, 20}; })), HasSubstr("need B = 1, not 2"));
  generation exact = small("exact");
  exact.key_dim = 32;
  EXPECT_THAT(refusal<shape_error>(exact), HasSubstr("4, 16, 64"));
}

TEST(regimes, counts_tokens_by_the_offsets) {
  generation g;
  g.cu_seqlens = {0, 3, 10};
  EXPECT_EQ(*complete(g).tokens, 10U);
}

}  // namespace
}  // namespace deltaproof
