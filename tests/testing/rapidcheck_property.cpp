// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The generators as a kernel author uses them: a kernel that keeps its plan passes, and what a planted fault is shown on has
// been shrunk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/testing/rapidcheck.hpp"
#include "support/multiplier.hpp"

namespace deltaproof::testing {
namespace {

using ::testing::HasSubstr;

case_limits delta_cases() {
  case_limits out;
  out.regimes = {"typical", "repeated", "collinear", "tails"};
  out.ops = {op_kind::delta_rule};
  out.most_tokens = 150;
  out.key_dims = {16, 32};
  out.value_dims = {16, 32};
  return out;
}

result emulated(const problem_case& c, const char* fault = nullptr) {
  const plan declared = plan_named("fla-chunk-delta");
  emulation_options how;
  how.stages = true;
  if (fault != nullptr) how.planted = &fault_named(fault);
  return emulate(c.given, variants(declared, c.given, path_kind::chunk, c.chunk_size).front(), how, 1);
}

trial_answer judged(const problem_case& c, const char* fault = nullptr) {
  return against_plan(c.given, emulated(c, fault), "fla-chunk-delta", {.judge = {.power = false}, .threads = 1});
}

/// What RapidCheck found: the command of the smallest case, and the length of the way to it.
struct falsified {
  std::string shown;
  std::string said;
  int steps = 0;
};

template <class Property>
falsified falsify(Property property) {
  rc::detail::TestMetadata metadata;
  metadata.id = "planted";
  rc::detail::TestParams params;
  params.seed = 5;
  params.maxSuccess = 30;
  const auto found = rc::detail::checkTestable(property, metadata, params);
  falsified out;
  if (!found.template is<rc::detail::FailureResult>()) return out;
  const auto& failure = found.template get<rc::detail::FailureResult>();
  out.shown = failure.counterExample.front().second;
  out.said = failure.description;
  out.steps = static_cast<int>(failure.reproduce.shrinkPath.size());
  return out;
}

RC_GTEST_PROP(problem_cases, are_valid_by_default, (const problem_case& c)) {
  validate(c.given, "drawn");
  RC_ASSERT(c.given.tokens() >= 1U && c.given.tokens() <= 256U);
  RC_ASSERT(rc::toString(c) == gen_command(c.made) + "  # chunks of " + std::to_string(c.chunk_size));
}

TEST(problem_cases, a_kernel_that_keeps_its_plan_passes) {
  rc::detail::TestParams params;
  params.seed = 3;
  params.maxSuccess = 6;
  const auto found = rc::detail::checkTestable([] { require_accepted(judged(*problem_cases(delta_cases()))); },
                                               rc::detail::TestMetadata(), params);
  EXPECT_TRUE(found.is<rc::detail::SuccessResult>());
}

TEST(problem_cases, a_fault_of_the_inverse_shrinks_to_three_tokens) {
  const falsified found = falsify([] { require_accepted(judged(*problem_cases(delta_cases()), "inverse-bf16-between-steps")); });
  // Row 2 is the first that is made from a rounded one.
  EXPECT_THAT(found.shown, HasSubstr("--T 3 --K 16 --V 16 --H 1 --HV 1 "));
  EXPECT_THAT(found.shown, HasSubstr("# chunks of 16"));
  EXPECT_THAT(found.said, HasSubstr("\nfirst bad    Ai, "));
  EXPECT_GT(found.steps, 0);
}

TEST(problem_cases, a_fault_of_short_chunks_shrinks_to_one_token) {
  const falsified found = falsify([] { require_accepted(judged(*problem_cases(delta_cases()), "update-skips-partial-chunk")); });
  EXPECT_THAT(found.shown, HasSubstr("--regime typical "));
  EXPECT_THAT(found.shown, HasSubstr("--T 1 --K 16 --V 16 --H 1 --HV 1 "));
}

TEST(problem_cases, a_condition_of_every_kind_is_met_at_its_edge) {
  const auto shrunk = [](const case_limits& limits, auto fails) {
    return falsify([&] { RC_ASSERT(!fails(*problem_cases(limits))); }).shown;
  };
  case_limits any;
  any.key_dims = {16, 32, 64};
  any.beta_range = {0.0, 2.0};
  any.ops = {op_kind::delta_rule, op_kind::gated_delta_rule};
  any.gates = {"zero", "typical", "slow"};
  EXPECT_THAT(shrunk(any, [](const problem_case& c) { return *c.made.tokens >= 37; }),
              HasSubstr("--regime typical --op delta_rule --rule euler --B 1 --T 37 "));
  EXPECT_THAT(shrunk(any, [](const problem_case& c) { return *c.made.key_dim >= 32; }), HasSubstr("--T 1 --K 32 --V 16 "));
  EXPECT_THAT(shrunk(any, [](const problem_case& c) { return *c.made.value_heads >= 2; }), HasSubstr("--HV 2 "));
  EXPECT_THAT(shrunk(any, [](const problem_case& c) { return *c.made.op == op_kind::gated_delta_rule; }),
              HasSubstr("--gate zero "));
  EXPECT_THAT(shrunk(any, [](const problem_case& c) { return std::stod(*c.made.beta) > 1.5; }), HasSubstr("--beta 1.531 "));
  EXPECT_THAT(shrunk(any, [](const problem_case& c) { return c.made.regime == "repeated"; }),
              HasSubstr("--regime repeated --op delta_rule --rule euler --B 1 --T 1 "));
}

}  // namespace
}  // namespace deltaproof::testing
