// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Plans with a cached state before the referee: a kernel that keeps one holds, one that stores the state otherwise does not, and
// a cache that costs more than the plan's formats is inadequate from a token on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof {
namespace {

problem drawn(const std::string& regime, std::size_t tokens) {
  generation g;
  g.regime = regime;
  g.op = op_kind::gated_delta_rule;
  g.tokens = tokens;
  g.key_dim = 24;
  g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  g.initial_state = "normal";
  g.seed = 2;
  return generate(g);
}

plan cached(const char* preset, const state_cache& cache) {
  plan p = plan_named(preset);
  p.state.between_tokens = {format_choice{format_choice::kind::cache, fp32, cache}};
  return p;
}

check_report judged(const problem& p, const plan& does, const plan& promises, path_kind path) {
  emulation_options stages;
  stages.stages = true;
  const result r = emulate(p, variants(does, p, path, 16).front(), stages, 1);
  check_options options;
  options.plans = {promises};
  options.threads = 1;
  options.judge.power = false;
  return check(p, r, options);
}

const state_cache int8_row{scaled("int8", "row", scale_format::fp32), block_rounding::nearest, element_formats[0], 0, 1};
const state_cache int8_fed_back{scaled("int8", "block:8", scale_format::e8m0), block_rounding::error_feedback,
                                element_named("bf16"), 0, 2};
const state_cache fp8_drawn{block_format_named("mxfp8"), block_rounding::stochastic, element_formats[0], 5, 1};

TEST(a_kernel_with_a_cached_state, holds) {
  const problem p = drawn("model-gates", 128);
  for (const state_cache& cache : {int8_row, int8_fed_back, fp8_drawn}) {
    for (const auto& [preset, path] :
         {std::pair{"fla-chunk-gdn", path_kind::chunk}, std::pair{"decode-fp32", path_kind::recurrent}}) {
      const check_report report = judged(p, cached(preset, cache), cached(preset, cache), path);
      EXPECT_EQ(report.conformance->conforms, verdict::holds) << preset << " " << text_of(cache) << ": " << report.reason;
      for (const judged_stage& s : report.conformance->stages)
        EXPECT_EQ(s.judged, verdict::holds) << preset << " " << text_of(cache) << " " << s.name;
    }
  }
}

TEST(a_kernel_with_another_cache_than_its_plan_s, is_refuted) {
  const problem p = drawn("model-gates", 128);
  const state_cache coarser{scaled("int4", "row", scale_format::fp32), block_rounding::nearest, element_formats[0], 0, 1};
  const state_cache wider_groups{scaled("int8", "tensor", scale_format::fp32), block_rounding::nearest, element_formats[0], 0, 1};
  for (const state_cache& does : {coarser, wider_groups}) {
    const check_report report = judged(p, cached("decode-fp32", does), cached("decode-fp32", int8_row), path_kind::recurrent);
    EXPECT_EQ(report.conformance->conforms, verdict::refuted) << text_of(does);
  }
  // On the chunk path the stages say where: the state is not what its chunk leaves within one store in int8.
  const check_report chunks = judged(p, cached("fla-chunk-gdn", coarser), cached("fla-chunk-gdn", int8_row), path_kind::chunk);
  EXPECT_EQ(chunks.conformance->conforms, verdict::refuted);
  EXPECT_THAT(chunks.conformance->first_bad_stage, ::testing::AnyOf("h", "v_new", "final_state"));
  const check_report none = judged(p, plan_named("decode-fp32"), cached("decode-fp32", int8_row), path_kind::recurrent);
  EXPECT_EQ(none.conformance->conforms, verdict::holds) << "better than promised is no fault";
}

TEST(adequacy_of_a_plan, is_the_same_in_whatever_order_its_formats_are_listed) {
  const problem p = drawn("typical", 256);
  const format_choice fp32_state{format_choice::kind::none, fp32}, coarse{format_choice::kind::fixed, format_named("e5m2")};
  std::vector<adequacy_report> found;
  for (const auto& list : {std::vector{fp32_state, coarse}, std::vector{coarse, fp32_state}}) {
    plan both = plan_named("fla-chunk-gdn");
    both.state.between_tokens = list;
    found.push_back(judged(p, plan_named("fla-chunk-gdn"), both, path_kind::chunk).conformance->adequacy);
  }
  EXPECT_EQ(found[0].adequate, found[1].adequate) << found[0].reason << "\n" << found[1].reason;
  EXPECT_NEAR(found[0].worst_ratio / found[1].worst_ratio, 1, 0.05);  // other seeds
}

TEST(adequacy_of_a_cache, ends_at_a_token) {
  const problem p = drawn("no-decay", 512);
  const state_cache stuck{unscaled("e4m3"), block_rounding::nearest, element_formats[0], 0, 1};
  const check_report coarse = judged(p, cached("decode-fp32", stuck), cached("decode-fp32", stuck), path_kind::recurrent);
  EXPECT_FALSE(coarse.conformance->adequacy.adequate);
  ASSERT_TRUE(coarse.conformance->adequacy.until_token);
  EXPECT_LT(*coarse.conformance->adequacy.until_token, 512U);
  const state_cache fp16_kept{unscaled("fp16"), block_rounding::error_feedback, element_named("fp16"), 0, 1};
  const check_report fine = judged(p, cached("decode-fp32", fp16_kept), cached("decode-fp32", fp16_kept), path_kind::recurrent);
  EXPECT_TRUE(fine.conformance->adequacy.adequate) << fine.conformance->adequacy.reason;
  EXPECT_FALSE(fine.conformance->adequacy.until_token);
}

}  // namespace
}  // namespace deltaproof
