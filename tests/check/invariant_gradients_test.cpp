// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// split with gradients: the parts' backward passes, run from the last to the first, are those of one call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "check/invariant_cases.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;

problem with_cotangents(op_kind op, std::size_t steps) {
  generation g;
  g.regime = "typical";
  g.op = op;
  g.tokens = 100;
  g.key_dim = 16;
  g.value_dim = 12;
  g.key_heads = 1;
  g.value_heads = 2;
  g.num_householder = steps;
  g.initial_state = "normal";
  g.cotangents = true;
  return generate(g);
}

recorded_run differentiated(const problem& p, const std::string& plan_name, const std::string& name, std::string_view fault = {},
                            bool stages = false) {
  const plan declared = plan_named(plan_name);
  recorded_run out;
  out.given = p;
  emulation_options how;
  how.stages = stages;
  if (!fault.empty()) how.planted = &fault_named(fault);
  out.gave = emulate_gradients(p, gradient_variants(declared, p, path_kind::chunk, 64).front(), how, 1);
  out.gave.kernel = declared.kernels.front();
  out.problem_path = name + ".problem.safetensors";
  out.result_path = name + ".result.safetensors";
  return out;
}

struct split_call {
  recorded_run whole;
  std::vector<recorded_run> parts;
};

/// Parts of 64 and 36 tokens: the states go forward, their cotangents back.
split_call split_of(const problem& p, const std::string& plan_name, std::string_view fault = {}) {
  split_call out{differentiated(p, plan_name, "whole"), {}};
  problem first = testing::cut(p, 0, 64, p.initial_state);
  first.d_o = testing::rows_of(*p.d_o, 0, 64);
  const recorded_run forward = differentiated(first, plan_name, "first");
  problem last = testing::cut(p, 64, 36, forward.gave.final_state);
  last.d_o = testing::rows_of(*p.d_o, 64, 36);
  out.parts.push_back(forward);
  out.parts.push_back(differentiated(last, plan_name, "last", fault));
  first.d_final_state = out.parts[1].gave.gradients.at("dinitial_state");
  out.parts[0] = differentiated(first, plan_name, "first", fault);
  return out;
}

invariant_report judged(const split_call& x) {
  return check_invariant(invariant_kind::split, x.whole, x.parts, testing::quick());
}

TEST(invariant_split, holds_for_gradients_that_are_handed_back) {
  for (const auto& [op, plan_name, steps] :
       std::vector<std::tuple<op_kind, std::string, std::size_t>>{{op_kind::gated_delta_rule, "fla-chunk-gdn", 1},
                                                                  {op_kind::kda, "fla-chunk-kda", 1},
                                                                  {op_kind::gated_delta_product, "fla-chunk-gdp", 2}}) {
    const problem p = with_cotangents(op, steps);
    const invariant_report report = judged(split_of(p, plan_name));
    EXPECT_EQ(report.judged, verdict::holds) << plan_name << ": " << report.reason;
    ASSERT_FALSE(report.runs.empty());
    EXPECT_TRUE(report.runs.back().report.conformance->gradients.judged) << plan_name;
  }
}

TEST(invariant_varlen, packs_the_backward_stages_of_its_parts) {
  problem p = with_cotangents(op_kind::gated_delta_rule, 1);
  p.initial_state.reset();
  p.d_final_state.reset();
  p.cu_seqlens = {0, 20, 100};
  std::vector<recorded_run> parts;
  for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, 20}, {20, 80}}) {
    problem part = testing::cut(p, first, count, std::nullopt);
    part.d_o = testing::rows_of(*p.d_o, first, count);
    parts.push_back(differentiated(part, "fla-chunk-gdn", "alone", {}, true));
  }
  const recorded_run* const list[] = {&parts[0], &parts[1]};
  EXPECT_EQ(packed(list).gave.backward_stages.at("dv_local").shape(), (std::vector<std::size_t>{1, 100, 2, 12}));
  const invariant_report report =
      check_invariant(invariant_kind::varlen, differentiated(p, "fla-chunk-gdn", "whole", {}, true), parts, testing::quick());
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  EXPECT_EQ(report.runs.size(), 2U);
}

TEST(invariant_split, shows_a_cotangent_of_the_state_that_is_not_read) {
  const problem p = with_cotangents(op_kind::gated_delta_rule, 1);
  const invariant_report report = judged(split_of(p, "fla-chunk-gdn", "dht-ignored"));
  EXPECT_EQ(report.judged, verdict::refuted) << report.reason;
}

TEST(invariant_split, refuses_gradients_of_other_cotangents) {
  const problem p = with_cotangents(op_kind::gated_delta_rule, 1);
  split_call x = split_of(p, "fla-chunk-gdn");
  x.parts[0].given.d_final_state = testing::with(*x.parts[0].given.d_final_state, 3, 0.5);
  EXPECT_THAT(
      testing::thrown([&] { (void)judged(x); }),
      HasSubstr("first.problem.safetensors: dfinal_state is not the dinitial_state of last.result.safetensors: 1 of 384"));
  x = split_of(p, "fla-chunk-gdn");
  x.parts[1].given.d_o = testing::with(*x.parts[1].given.d_o, 5, 0.5);
  EXPECT_THAT(testing::thrown([&] { (void)judged(x); }), HasSubstr("tensor do"));
  x = split_of(p, "fla-chunk-gdn");
  x.parts[1].gave.gradients.erase("dinitial_state");
  EXPECT_THAT(testing::thrown([&] { (void)judged(x); }), HasSubstr("gradient dinitial_state is missing"));
}

}  // namespace
}  // namespace deltaproof
