// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What the stage checker makes of a plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "stages/stages_pipeline.hpp"

namespace deltaproof {
namespace {

using ::testing::ElementsAre;
using testing::pipeline;
using testing::pipeline_case;

pipeline_case simple(op_kind op, format x, std::size_t chunk) {
  pipeline_case c;
  c.op = op;
  c.operands = x;
  c.chunk = chunk;
  return c;
}

template <class Rounding>
std::vector<std::string> names_of(const std::vector<Rounding>& list) {
  std::vector<std::string> names;
  for (const Rounding& one : list) names.push_back(one.name);
  return names;
}

result emulated_by(plan declared, const problem& p, std::size_t chunk) {
  declared.chunk.clear();
  emulation_options options;
  options.stages = true;
  return emulate(p, variants(declared, p, path_kind::chunk, chunk).front(), options, 1);
}

stage_roundings of(const char* name, const pipeline_case& c) {
  return roundings_of(plan_named(name), pipeline(c).given(), path_kind::chunk, c.chunk);
}

TEST(roundings, list_the_tightest_first_and_name_what_differs) {
  const stage_roundings wide = of("fla-chunk-gdn", simple(op_kind::gated_delta_rule, fp32, 64));
  for (const auto& names : {names_of(wide.gram), names_of(wide.w), names_of(wide.output)}) {
    EXPECT_THAT(names, ElementsAre("fp32", "tf32 rna", "tf32 rz"));
  }
  EXPECT_THAT(names_of(wide.u), ElementsAre(""));
  EXPECT_THAT(names_of(wide.inverse),
              ElementsAre("fp32 merges", "tf32 rna merges", "tf32 rna merges, sum-then-left", "tf32 rna merges, sum-then-right",
                          "tf32 rz merges", "tf32 rz merges, sum-then-left", "tf32 rz merges, sum-then-right"));
  // All products of a card alike first, then those that a list allows beside.
  EXPECT_THAT(names_of(wide.state), ElementsAre("fp32", "tf32 rna", "tf32 rz", "fp32, update tf32 rz", "tf32 rz, update fp32"));
  EXPECT_EQ(wide.state[0].operand.to, fp32);
  EXPECT_EQ(wide.u[0].operand.to, fp32);

  const stage_roundings half = of("fla-chunk-gdn", simple(op_kind::gated_delta_rule, bf16, 32));
  for (const auto& names :
       {names_of(half.gram), names_of(half.u), names_of(half.w), names_of(half.state), names_of(half.output)}) {
    EXPECT_THAT(names, ElementsAre(""));
  }
  EXPECT_THAT(names_of(half.inverse), ElementsAre("fp32 merges"));
  EXPECT_EQ(half.inverse[0].order, merge_order::neighbours_left);
  EXPECT_EQ(half.exp2_ulps, 2);
  EXPECT_FALSE(half.rows.store);

  pipeline_case c = simple(op_kind::kda, bf16, 64);
  c.l2norm = true;
  const stage_roundings channels = of("fla-chunk-kda", c);
  EXPECT_EQ(channels.gram[0].form, gram_form::reference_blocks);
  EXPECT_EQ(channels.state[0].update, update_kind::key);
  EXPECT_TRUE(channels.output[0].query_gated);
  EXPECT_EQ(channels.rows.store, bf16);
  EXPECT_EQ(of("fla-chunk-kda-safe-gate", c).gram[0].form, gram_form::middle_blocks);
  EXPECT_EQ(of("fp64", c).elementwise, unit_roundoff(fp64));
  EXPECT_THROW((void)roundings_of(plan_named("fp32"), pipeline(c).given(), path_kind::recurrent, 0), domain_error);
}

TEST(roundings, of_an_inverse_without_a_bound_leave_it_unjudged_but_for_nan) {
  pipeline kernel(simple(op_kind::delta_rule, bf16, 64));
  result r = kernel.run();
  const stage_roundings roundings = roundings_of(plan_named("neumann-64"), kernel.given(), path_kind::chunk, 64);
  stage_report report = measure_stages(kernel.given(), r, roundings);
  const std::size_t entries = report.find("Ai")->unbounded;
  EXPECT_GT(entries, 0U);
  EXPECT_EQ(report.find("Ai")->judged, 0U);
  EXPECT_EQ(report.find("Ai")->rounding, "neumann");
  EXPECT_EQ(report.outcome(), stage_outcome::inconclusive);
  EXPECT_EQ(report.find("o")->bad, 0U);
  tensor& ai = r.stages.at("Ai");
  std::vector<double> values = ai.to_doubles();
  values[0] = std::numeric_limits<double>::quiet_NaN();
  ai = tensor::from_doubles(ai.element_format(), ai.shape(), values, "Ai");
  report = measure_stages(kernel.given(), r, roundings);
  EXPECT_EQ(report.find("Ai")->nonfinite, 1U);
  EXPECT_EQ(report.find("Ai")->unbounded, entries - 1);
}

TEST(roundings, of_factored_gates_leave_a_unjudged) {
  plan factored = plan_named("fla-chunk-gdn");
  factored.gate.form = {gate_form::factored};
  pipeline kernel(simple(op_kind::gated_delta_rule, bf16, 64));
  const stage_report report =
      measure_stages(kernel.given(), kernel.run(), roundings_of(factored, kernel.given(), path_kind::chunk, 64));
  for (const char* stage : {"A", "o"}) {
    EXPECT_EQ(report.find(stage)->judged, 0U) << stage;
    EXPECT_GT(report.find(stage)->unbounded, 0U) << stage;
  }
  EXPECT_GT(report.find("Ai")->judged, 0U);
  EXPECT_EQ(report.outcome(), stage_outcome::inconclusive);
}

// [o] says how q k^T is formed, [A] how k k^T is. Rows that a format of either cuts show which of the two was taken.
TEST(roundings, of_the_read_out_are_its_own_where_A_has_other_operands) {
  pipeline_case c = simple(op_kind::gated_delta_rule, fp16, 16);
  c.l2norm = true;
  const problem p = pipeline(c).given();
  const format_choice wide{format_choice::kind::fixed, fp32}, narrow{format_choice::kind::fixed, bf16};
  const auto with = [&](const format_choice& of_A, const format_choice& of_o) {
    plan said = plan_named("fla-chunk-gdn");
    said.A.operand = {of_A};
    said.o.operand = {of_o};
    return said;
  };
  const plan narrow_A = with(narrow, wide), narrow_o = with(wide, narrow);
  const auto off = [&](const plan& of_kernel, const plan& declared) {
    const result r = emulated_by(of_kernel, p, c.chunk);
    return measure_stages(p, r, roundings_of(declared, p, path_kind::chunk, c.chunk)).find("o")->bad;
  };
  EXPECT_EQ(off(narrow_A, narrow_A), 0U);
  EXPECT_EQ(off(narrow_o, narrow_o), 0U);
  EXPECT_GT(off(narrow_o, narrow_A), 0U);
  EXPECT_GT(off(narrow_A, narrow_o), 0U);
  // A list that both share leaves each of them open, as before.
  plan both = narrow_A;
  both.A.operand = both.o.operand = {wide, narrow};
  for (const plan* one : {&narrow_A, &narrow_o}) EXPECT_EQ(off(*one, both), 0U);
}

// Sums of q k^T that nothing bounds leave o unjudged, whatever those of A are.
TEST(roundings, of_the_read_out_have_no_bound_where_q_carries_a_decay_that_is_narrowed_with_it) {
  plan said = plan_named("fla-chunk-gdn");
  said.gate.form = {gate_form::reference_block};
  said.gate.block = 16;
  said.A.operand = {{format_choice::kind::fixed, fp32}};
  pipeline kernel(simple(op_kind::gated_delta_rule, bf16, 64));
  const stage_report report =
      measure_stages(kernel.given(), kernel.run(), roundings_of(said, kernel.given(), path_kind::chunk, 64));
  EXPECT_GT(report.find("A")->judged, 0U);
  EXPECT_EQ(report.find("o")->judged, 0U);
}

// Where v_new is made of a residual the decays come after the inverse. The kernel's own A is made here, with none.
TEST(roundings, of_a_kernel_without_u_and_w_have_no_decay_in_A_and_its_inverse) {
  const problem p = pipeline(simple(op_kind::gated_delta_rule, bf16, 16)).given();
  problem without = p;
  without.op = op_kind::delta_rule;
  without.g.reset();
  const result of_keys = emulated_by(plan_named("fla-chunk-delta"), without, 16);
  result r = emulated_by(plan_named("flashqla"), p, 16);
  const auto off = [&](const char* stage) {
    plan of_any_chunk = plan_named("flashqla");
    of_any_chunk.chunk.clear();
    return measure_stages(p, r, roundings_of(of_any_chunk, p, path_kind::chunk, 16)).find(stage)->bad;
  };
  r.stages.insert({"Ai", of_keys.stages.at("Ai")});
  EXPECT_EQ(off("Ai"), 0U);
  r.stages.insert({"A", of_keys.stages.at("A")});
  EXPECT_EQ(off("A") + off("Ai"), 0U);
  // With its decays A is another one.
  r.stages.at("A") = emulated_by(plan_named("fla-chunk-gdn"), p, 16).stages.at("A");
  EXPECT_GT(off("A"), 0U);
}

/// Ai from the stored A by substitution on blocks of 16 whose rows are rounded to bf16 one by one, then fp32 merges.
void round_between_steps(result& r, std::size_t chunk) {
  const tensor& a = r.stages.at("A");
  const std::vector<double> l = a.to_doubles();
  tensor& ai = r.stages.at("Ai");
  const std::size_t tokens = a.shape()[1], heads = a.shape()[2];
  std::vector<double> out(l.size(), std::numeric_limits<double>::quiet_NaN());
  const auto at = [&](std::size_t begin, std::size_t i, std::size_t head, std::size_t j) {
    return ((begin + i) * heads + head) * chunk + j;
  };
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t begin = 0; begin < tokens; begin += chunk) {
      const std::size_t rows = std::min(chunk, tokens - begin);
      std::vector<float> x(rows * rows, 0);
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t block = i / 16 * 16;
        x[i * rows + i] = 1;
        for (std::size_t c = block; c < i; ++c) {
          float sum = 0;
          for (std::size_t j = c; j < i; ++j) sum += static_cast<float>(l[at(begin, i, head, j)]) * x[j * rows + c];
          x[i * rows + c] = static_cast<float>(testing::narrow_to(bf16, -sum));
        }
      }
      for (std::size_t i = 16; i < rows; i += 16) {
        const std::size_t end = std::min(i + 16, rows);
        std::vector<float> sums(16 * i, 0);
        for (std::size_t row = i; row < end; ++row) {
          for (std::size_t c = 0; c < i; ++c) {
            for (std::size_t j = c; j < i; ++j)
              sums[(row - i) * i + c] += static_cast<float>(l[at(begin, row, head, j)]) * x[j * rows + c];
          }
        }
        for (std::size_t row = i; row < end; ++row) {
          for (std::size_t c = 0; c < i; ++c) {
            float sum = 0;
            for (std::size_t m = i; m <= row; ++m) sum += x[row * rows + m] * sums[(m - i) * i + c];
            x[row * rows + c] = -sum;
          }
        }
      }
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j <= i; ++j) out[at(begin, i, head, j)] = testing::narrow_to(bf16, x[i * rows + j]);
      }
    }
  }
  ai = tensor::from_doubles(bf16, ai.shape(), out, "Ai");
}

TEST(roundings, between_the_steps_of_an_inverse_have_a_bound_that_holds_and_that_others_exceed) {
  pipeline kernel(simple(op_kind::delta_rule, bf16, 64));
  result r = kernel.run();
  round_between_steps(r, 64);
  const auto ai = [&](const char* name) {
    const stage_report report =
        measure_stages(kernel.given(), r, roundings_of(plan_named(name), kernel.given(), path_kind::chunk, 64));
    return *report.find("Ai");
  };
  const stage_measurement kept = ai("bf16-between-steps");
  EXPECT_EQ(kept.bad, 0U) << describe(kept);
  EXPECT_EQ(kept.unbounded, 0U);
  EXPECT_GT(kept.worst->ratio, 0.2);
  EXPECT_GT(ai("fla-chunk-delta").bad, 0U);
}

TEST(roundings, an_update_in_a_format_of_its_own_is_told_from_one_in_that_of_the_state) {
  pipeline kernel(simple(op_kind::gated_delta_rule, bf16, 64));
  const result r = kernel.run();
  plan other = plan_named("fla-chunk-gdn");
  other.v_new.update_operand = {{format_choice::kind::fixed, fp32}};
  const auto state = [&](const plan& p) {
    return measure_stages(kernel.given(), r, roundings_of(p, kernel.given(), path_kind::chunk, 64)).find("final_state")->bad;
  };
  EXPECT_EQ(state(plan_named("fla-chunk-gdn")), 0U);
  EXPECT_GT(state(other), 0U);
}

// docs/plan-keys.md, exp2_ulps: that of 0 is exactly 1, and no bound has room for another number.
TEST(roundings, leave_an_exponential_of_zero_no_error) {
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    generation g;
    g.op = op;
    g.tokens = 70;
    g.key_dim = g.value_dim = 16;
    g.key_heads = g.value_heads = 1;
    g.gate = "0";
    const problem p = generate(g);
    const plan declared = plan_named(op == op_kind::kda ? "fla-chunk-kda" : "fla-chunk-gdn");
    const result r = emulated_by(declared, p, 64);
    stage_roundings roundings = roundings_of(declared, p, path_kind::chunk, 64);
    const stage_report usual = measure_stages(p, r, roundings);
    roundings.exp2_ulps = 1e4;
    const stage_report rough = measure_stages(p, r, roundings);
    ASSERT_FALSE(usual.stages.empty());
    for (std::size_t i = 0; i < usual.stages.size(); ++i)
      EXPECT_EQ(usual.stages[i].rms_ratio, rough.stages[i].rms_ratio) << usual.stages[i].name;
  }
}

}  // namespace
}  // namespace deltaproof
