// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/files/slice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/stages/stages.hpp"

namespace deltaproof {
namespace {

constexpr std::size_t C = 16;

problem packed(op_kind op) {
  generation g;
  g.regime = "varlen";
  g.op = op;
  g.tokens = 100;
  g.key_heads = 2;
  g.value_heads = 4;
  g.key_dim = 8;
  g.value_dim = 6;
  return generate(g);
}

problem batched() {
  generation g;
  g.op = op_kind::gated_delta_product;
  g.batch = 3;
  g.tokens = 21;
  g.key_heads = 1;
  g.value_heads = 2;
  g.key_dim = 8;
  g.value_dim = 6;
  return generate(g);
}

plan_variant variant_for(const problem& p) {
  const auto& fp32_plan = *std::find_if(plans().begin(), plans().end(), [](const plan& x) { return x.name == "fp32"; });
  return variants(fp32_plan, p, path_kind::chunk, C).front();
}

result run(const problem& p) {
  emulation_options options;
  options.stages = true;
  return emulate(p, variant_for(p), options, 1);
}

void expect_equal(const tensor& a, const tensor& b, const std::string& what) {
  EXPECT_EQ(a.shape(), b.shape()) << what;
  EXPECT_EQ(a.element_format(), b.element_format()) << what;
  EXPECT_EQ(a.to_doubles(), b.to_doubles()) << what;
}

// A slice holds the same bits as a head taken out of the whole, and the kernel of a slice leaves the slice of the whole.
TEST(slice, of_inputs_and_outputs_is_the_head_alone) {
  for (const problem& p : {packed(op_kind::delta_rule), packed(op_kind::gated_delta_rule), packed(op_kind::kda), batched()}) {
    const result whole = run(p);
    const auto sequences = p.sequences();
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      for (std::size_t h = 0; h < p.value_heads(); ++h) {
        const head_slice at{s, h, sequences[s].tokens};
        const std::string what = "sequence " + std::to_string(s) + ", head " + std::to_string(h);
        const problem part = slice(p, at);
        validate(part, what);
        EXPECT_TRUE(part.cu_seqlens.empty());
        EXPECT_EQ(part.value_heads(), 1U);
        EXPECT_EQ(part.tokens(), sequences[s].tokens);
        const head_input a = take_head(p, s, h), b = take_head(part, 0, 0);
        EXPECT_EQ(a.q, b.q);
        EXPECT_EQ(a.k, b.k);
        EXPECT_EQ(a.v, b.v);
        EXPECT_EQ(a.g, b.g);
        EXPECT_EQ(a.beta, b.beta);
        EXPECT_EQ(a.state, b.state);
        const result cut = slice(whole, p, at), alone = run(part);
        expect_equal(cut.o, alone.o, what);
        ASSERT_TRUE(cut.final_state);
        expect_equal(*cut.final_state, *alone.final_state, what);
        ASSERT_EQ(cut.stages.size(), alone.stages.size());
        for (const auto& [name, stage] : cut.stages) expect_equal(stage, alone.stages.at(name), what + ", " + name);
      }
    }
  }
}

TEST(slice, of_the_first_tokens_is_a_prefix_without_final_state) {
  for (const problem& p : {packed(op_kind::kda), batched()}) {
    const result whole = run(p);
    const auto sequences = p.sequences();
    const auto longest =
        std::max_element(sequences.begin(), sequences.end(), [](const auto& a, const auto& b) { return a.tokens < b.tokens; });
    const std::size_t s = static_cast<std::size_t>(longest - sequences.begin());
    for (std::size_t tokens = 0; tokens < longest->tokens; ++tokens) {
      const head_slice at{s, 1, tokens};
      const problem part = slice(p, at);
      validate(part, "a prefix");
      const result cut = slice(whole, p, at);
      EXPECT_FALSE(cut.final_state);
      EXPECT_EQ(cut.o.dim(1), tokens);
      EXPECT_EQ(cut.stages.at("h").dim(1), chunk_count(part, C));
      const head_input a = first_tokens(take_head(p, s, 1), tokens), b = take_head(part, 0, 0);
      EXPECT_EQ(a.q, b.q);
      EXPECT_EQ(a.k, b.k);
      EXPECT_EQ(a.g, b.g);
      EXPECT_EQ(a.beta, b.beta);
      // Causality: the kernel of the prefix leaves the prefix.
      expect_equal(cut.o, run(part).o, "T = " + std::to_string(tokens));
    }
  }
}

TEST(slice, of_a_state_stored_vk_stays_vk) {
  const problem p = packed(op_kind::gated_delta_rule);
  result r = run(p);
  const auto kv = r.final_state_kv()->to_doubles();
  const std::size_t K = p.key_dim(), V = p.value_dim();
  std::vector<double> vk(kv.size());
  for (std::size_t h = 0; h < kv.size() / (K * V); ++h) {
    for (std::size_t i = 0; i < K; ++i) {
      for (std::size_t j = 0; j < V; ++j) vk[(h * V + j) * K + i] = kv[(h * K + i) * V + j];
    }
  }
  const result other = r;
  r.final_state = tensor::from_doubles(fp32, {p.sequence_count(), p.value_heads(), V, K}, vk, "final_state");
  r.state_layout = layout_kind::vk;
  const head_slice at{4, 2, p.sequences()[4].tokens};
  expect_equal(*slice(r, p, at).final_state_kv(), *slice(other, p, at).final_state_kv(), "vk");
}

TEST(slice, passes_the_stage_checker_as_the_whole_does) {
  const problem p = packed(op_kind::kda);
  const result whole = run(p);
  const auto& declared = *std::find_if(plans().begin(), plans().end(), [](const plan& x) { return x.name == "fp32"; });
  const stage_roundings roundings = roundings_of(declared, p, path_kind::chunk, C);
  ASSERT_EQ(first_bad_stage(measure_stages(p, whole, roundings, {{}, 1})), nullptr);
  const head_slice at{4, 3, p.sequences()[4].tokens};
  EXPECT_EQ(first_bad_stage(measure_stages(slice(p, at), slice(whole, p, at), roundings, {{}, 1})), nullptr);
}

TEST(slice, beyond_the_problem_is_refused_with_what_there_is) {
  const problem p = packed(op_kind::gated_delta_rule);
  const std::size_t sequences = p.sequence_count();
  EXPECT_THAT([&] { (void)slice(p, {sequences, 0, 0}); },
              ::testing::ThrowsMessage<shape_error>(::testing::HasSubstr(std::to_string(sequences) + " sequences")));
  EXPECT_THAT([&] { (void)slice(p, {0, 4, 0}); }, ::testing::ThrowsMessage<shape_error>(::testing::HasSubstr("4 heads")));
  EXPECT_THAT([&] { (void)slice(p, {2, 0, p.sequences()[2].tokens + 1}); },
              ::testing::ThrowsMessage<shape_error>(::testing::HasSubstr("this sequence has")));
  EXPECT_THROW((void)slice(run(p), p, {sequences, 0, 0}), shape_error);
}

TEST(problem_of, a_head_is_the_problem_it_was_taken_from) {
  for (const problem& p : {packed(op_kind::kda), batched()}) {
    const head_slice at{2, 1, p.sequences()[2].tokens};
    const problem part = slice(p, at), again = problem_of(take_head(p, 2, 1), p);
    validate(again, "again");
    expect_equal(part.q, again.q, "q");
    expect_equal(part.k, again.k, "k");
    expect_equal(part.v, again.v, "v");
    expect_equal(part.beta, again.beta, "beta");
    expect_equal(*part.g, *again.g, "g");
    expect_equal(*part.initial_state, *again.initial_state, "initial_state");
  }
}

}  // namespace
}  // namespace deltaproof
