// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_cases.hpp"

namespace deltaproof {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names_of;
using testing::plan_lines;
using testing::small;
using ::testing::ThrowsMessage;

std::vector<plan_variant> of(const char* name, const problem& p, std::size_t chunk) {
  const plan declared = plan_named(name);
  return gradient_variants(declared, p, declared.path.front(), chunk);
}

TEST(backward_keys, a_plan_without_the_section_has_no_gradients) {
  const plan p = plan_lines::full().drop("backward").read();
  const problem kda = small(op_kind::kda, bf16);
  EXPECT_FALSE(p.backward.stated);
  EXPECT_TRUE(gradient_variants(p, kda, path_kind::chunk, 64).empty());
  EXPECT_FALSE(variants(p, kda, path_kind::chunk, 64).front().backward);
  EXPECT_THAT([&] { (void)gradient_variants(p, small(op_kind::delta_rule, bf16), path_kind::chunk, 64); },
              ThrowsMessage<format_error>(HasSubstr("does not fit")));
}

TEST(backward_keys, are_what_the_public_kernels_do) {
  const backward_variant gdn = *of("fla-chunk-gdn", small(op_kind::gated_delta_rule, bf16, bf16), 64).front().backward;
  EXPECT_EQ(gdn.operand, (narrowing{bf16, false}));
  EXPECT_EQ(gdn.read_operand, (narrowing{tf32, true}));
  EXPECT_EQ(gdn.ds, bf16);
  EXPECT_EQ(gdn.state_sum, bf16);
  EXPECT_EQ(gdn.state_sum_order, tile_order::warps_4);
  EXPECT_EQ(gdn.dk, bf16);
  EXPECT_EQ(gdn.dg, fp32);
  EXPECT_EQ(gdn.dbeta, bf16);
  EXPECT_FALSE(gdn.h || gdn.v_new);
  const backward_variant delta = *of("fla-chunk-delta", small(op_kind::delta_rule, fp16, fp32), 64).front().backward;
  EXPECT_EQ(delta.read_operand, (narrowing{fp16, false}));
  EXPECT_EQ(delta.dbeta, fp32);
  const backward_variant kda = *of("fla-chunk-kda", small(op_kind::kda, bf16), 64).front().backward;
  EXPECT_EQ(kda.intra_operand, (narrowing{tf32, true}));
  EXPECT_EQ(kda.read_operand, (narrowing{bf16, false}));
  EXPECT_EQ(kda.ds, fp32);
  EXPECT_EQ(kda.dk, fp32);
  EXPECT_EQ(kda.dw, bf16);
  const backward_variant tokens = *of("fla-recurrent-delta", small(op_kind::delta_rule, bf16), 0).front().backward;
  EXPECT_EQ(tokens.residual, bf16);
  EXPECT_EQ(tokens.value_tile, 32U);
  EXPECT_EQ(of("fla-chunk-gdn", small(op_kind::gated_delta_rule, fp32), 64).front().backward->operand, (narrowing{tf32, true}));
  const plan_variant qla = of("flashqla", small(op_kind::gated_delta_rule, bf16), 64).front();
  EXPECT_EQ(qla.v_new.form, change_form::residual);
  EXPECT_EQ(qla.backward->read_decay, cotangent_decay::d_o);
  EXPECT_EQ(qla.backward->state_sum, fp32);
  EXPECT_EQ(qla.split.chunks, 0U);
  const auto parts = of("flashqla", small(op_kind::gated_delta_rule, bf16), 64);
  const auto in_parts = std::find_if(parts.begin(), parts.end(), [](const plan_variant& v) { return v.split.chunks == 8; });
  ASSERT_NE(in_parts, parts.end());
  EXPECT_EQ(in_parts->split.truncation, -10);
  EXPECT_EQ(in_parts->name, "flashqla (sequence in parts of 8 chunks)");
  const plan_variant gym = of("attention-gym-kda", small(op_kind::kda, bf16), 64).front();
  EXPECT_EQ(gym.form, gate_form::first_block);
  EXPECT_EQ(gym.backward->blocks, gate_form::middle_block);
  EXPECT_EQ(gym.backward->state_sum, fp32);
  EXPECT_TRUE(of("fla-recurrent-gdn", small(op_kind::gated_delta_rule, bf16), 0).empty());
}

TEST(backward_keys, give_variants_to_gradients_alone) {
  const problem gated = small(op_kind::gated_delta_rule, bf16);
  const plan gdn = plan_named("fla-chunk-gdn");
  const auto forward = names_of(variants(gdn, gated, path_kind::chunk, 32));
  EXPECT_EQ(forward.size(), 4U);  // tf32 of the backward pass gives the forward pass no directions
  const auto both = names_of(gradient_variants(gdn, gated, path_kind::chunk, 32));
  for (const std::string& name : forward) EXPECT_THAT(both, Contains(name));
  EXPECT_THAT(both, Contains("fla-chunk-gdn ([backward] read_operand fp32)"));
  EXPECT_THAT(both, Contains("fla-chunk-gdn ([backward] state_sum_order 2-warps)"));
  EXPECT_THAT(both, Contains("fla-chunk-gdn (tf32 rna)"));
  EXPECT_EQ(both.size(), 8U);
  // Without a gate nothing of the gate's can matter, without a norm nothing of the norm's.
  const auto plain =
      names_of(gradient_variants(plan_named("fp32"), small(op_kind::delta_rule, fp32, fp32, false), path_kind::chunk, 16));
  EXPECT_EQ(plain.size(), 4U);
  const auto norm = names_of(gradient_variants(plan_named("fp32"), small(op_kind::kda, fp32), path_kind::recurrent, 0));
  EXPECT_THAT(norm, Contains("fp32 ([backward] l2norm_from computed)"));
  EXPECT_THAT(norm, ::testing::Not(Contains(HasSubstr("diagonal"))));
}

TEST(backward_keys, refuse_what_means_nothing) {
  const auto refused = [](const plan_lines& t, const std::vector<std::string>& why) {
    try {
      (void)t.read();
      ADD_FAILURE() << "read:\n" << t.str();
    } catch (const format_error& e) {
      for (const std::string& part : why) EXPECT_THAT(e.what(), HasSubstr(part));
    }
  };
  const plan_lines full = plan_lines::full();
  refused(plan_lines(full).set("backward", "state_sum_order", "\"3-warps\""), {"state_sum_order", "did you mean", "-warps\""});
  refused(plan_lines(full).set("backward", "dg_form", "\"products\""),
          {"[backward] dg_form", "contradicts ops = \"kda\"", "rows"});
  refused(plan_lines(full).set("backward", "diagonal", "\"exclude\""), {"diagonal", "did you mean \"excluded\"?"});
  refused(plan_lines(full).set("backward", "dbeta_form", "\"div\""), {"dbeta_form", "sum, divide"});
  refused(plan_lines(full).set("backward", "l2norm_from", "\"y\""), {"l2norm_from", "stored, computed"});
  refused(plan_lines(full).set("backward", "dh", "\"tf32\""), {"dh", "operands only"});
  refused(plan_lines(full).set("backward", "accumulate", "\"none\""), {"accumulate", "nothing is rounded"});
  refused(plan_lines(full).set("backward", "residual", "\"X\""), {"[backward] residual has no effect", "path is chunk"});
  refused(plan_lines(full).set("backward", "value_tile", "32"), {"[backward] value_tile has no effect"});
  refused(plan_lines(full).set("backward", "read_decay", "\"do\""), {"read_decay", "contradicts ops = \"kda\""});
  refused(plan_lines(full).set("v_new", "form", "\"residual\""), {"[v_new] form", "contradicts ops = \"kda\""});
  refused(plan_lines(full).set("split", "chunks", "8"), {"[split] truncation is not stated"});
  refused(plan_lines(full).set("split", "truncation", "-10"), {"[split] chunks is not stated"});
  refused(plan_lines(full).set("split", "truncation", "10"), {"[split] truncation = 10", "below 0"});
  refused(plan_lines(full).set("split", "chunks", "0"), {"[split] chunks = 0", "must be a whole number, 1 or more"});
  plan_lines tokens = full;
  for (const auto& [value, says] : {std::pair{"0", "a whole number, 1 or more"}, std::pair{"\"chunk\"", "a number of columns"}})
    refused(plan_lines(tokens).set("", "path", "[\"chunk\", \"recurrent\"]").set("backward", "value_tile", value),
            {"value_tile", says});
  refused(plan_lines(full).drop("backward").append("[[when]]\nchunk = 64\nbackward.dk = \"X\"\n"),
          {"[backward]", "no such section"});
  const plan changed = plan_lines(full).append("[[when]]\nchunk = 64\nbackward.dk = \"X\"\n").read();
  EXPECT_EQ(variants(changed, small(op_kind::kda, bf16), path_kind::chunk, 64).front().backward->dk, bf16);
}

}  // namespace
}  // namespace deltaproof
