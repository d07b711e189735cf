// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Correct results match, planted faults do not, and what is then printed is what one would forward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/check/witness.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/rounded.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/testing/gtest.hpp"
#include "support/thrown.hpp"

namespace deltaproof::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

problem repeated_keys(std::size_t tokens = 70) {
  generation g;
  g.regime = "repeated";
  g.op = op_kind::delta_rule;
  g.tokens = tokens;
  g.key_dim = 16;
  g.value_dim = 16;
  g.key_heads = 1;
  g.value_heads = 1;
  return generate(g);
}

result emulated(const problem& p, const char* fault = nullptr) {
  const plan declared = plan_named("fla-chunk-delta");
  emulation_options how;
  how.stages = true;
  if (fault != nullptr) how.planted = &fault_named(fault);
  result r = emulate(p, variants(declared, p, path_kind::chunk, 32).front(), how);
  r.kernel = "a kernel of this test";
  return r;
}

result changed(result r, std::size_t index, double to) {
  auto values = r.o.to_doubles();
  values[index] = to;
  r.o = tensor::from_doubles(r.o.element_format(), r.o.shape(), values, "o");
  return r;
}

/// What EXPECT_THAT prints of it.
template <class Value, class Matcher>
std::string explanation(const Value& value, const Matcher& matcher) {
  ::testing::StringMatchResultListener listener;
  const bool matched = ::testing::ExplainMatchResult(matcher, value, &listener);
  return (matched ? "matched: " : "did not match: ") + listener.str();
}

/// A folder for witnesses for the length of a test.
struct witness_folder : temporary_folder {
  witness_folder() { setenv("DELTAPROOF_WITNESS_DIR", path.c_str(), 1); }
  ~witness_folder() { unsetenv("DELTAPROOF_WITNESS_DIR"); }
};

TEST(keeps_plan, matches_what_the_plan_may_give) {
  const problem p = repeated_keys();
  EXPECT_THAT(emulated(p), keeps_plan(p, "fla-chunk-delta"));
}

TEST(keeps_plan, says_the_first_bad_stage_the_fault_and_the_command_that_judges_again) {
  const witness_folder place;
  const problem p = repeated_keys();
  const auto matcher = keeps_plan(p, "fla-chunk-delta");
  const result bad = emulated(p, "inverse-bf16-between-steps");
  EXPECT_THAT(bad, Not(matcher));
  const fs::path witness = place.path / "keeps_plan.says_the_first_bad_stage_the_fault_and_the_command_that_judges_again";
  const std::string text = explanation(bad, matcher);
  EXPECT_THAT(
      text, HasSubstr("did not match: and deltaproof says of it:\nverdict      refuted: Ai: sequence 0, head 0, chunk 0, row 2"));
  EXPECT_THAT(text, HasSubstr("\nfirst bad    Ai, the inverse (I + A)^-1 of a chunk\n"));
  EXPECT_THAT(text, HasSubstr("\ndiagnosis    inverse-bf16-between-steps"));
  EXPECT_THAT(text, HasSubstr("\nkernel       a kernel of this test (chunk)\n"));
  EXPECT_THAT(text, HasSubstr("\nagain        deltaproof replay " + witness.string() + "\n"));
  // The command does so.
  const replayed again = replay(witness, {}, "this one");
  EXPECT_TRUE(again.reproduced);
  EXPECT_EQ(again.report.judged, verdict::refuted);
  EXPECT_LT(again.given.tokens(), p.tokens());
  // A test that fails again replaces what it left.
  EXPECT_THAT(bad, Not(keeps_plan(p, "fla-chunk-delta", {.judge = {.power = false}, .witness = witness})));
  EXPECT_TRUE(replay(witness, {}, "this one").reproduced);
}

TEST(keeps_plan, prints_the_question_and_names_instead_of_bytes) {
  const problem p = repeated_keys();
  const auto matcher = keeps_plan(p, "fla-chunk-delta");
  EXPECT_EQ(
      ::testing::DescribeMatcher<result>(matcher),
      "conforms to the plan fla-chunk-delta on regime repeated, seed 0: delta_rule, B 1, T 70, H 1, HV 1, K 16, V 16, BF16");
  EXPECT_THAT(::testing::DescribeMatcher<result>(Not(matcher)), HasSubstr("does not conform to the plan fla-chunk-delta on"));
  EXPECT_EQ(::testing::PrintToString(emulated(p)),
            "result of a kernel of this test (chunk, C 32): o BF16 [1, 70, 1, 16], final_state F32 [1, 1, 16, 16], stages A, Ai, "
            "w, u, h, v_new");
}

TEST(keeps_plan, writes_no_witness_where_told_so_and_says_how_to_record_the_case) {
  const witness_folder place;
  const problem p = repeated_keys();
  const result bad = emulated(p, "inverse-bf16-between-steps");
  const std::string text =
      explanation(bad, keeps_plan(p, "fla-chunk-delta", {.judge = {.false_alarm = 1e-6, .seed = 3}, .witness = ""}));
  EXPECT_THAT(
      text,
      HasSubstr("again        deltaproof::record(\"case\", problem, result); then deltaproof check case.problem.safetensors "
                "case.result.safetensors --plan fla-chunk-delta --false-alarm 1e-06 --seed 3\n"));
  EXPECT_THAT(text, HasSubstr("limits with probability at most 1e-06"));
  EXPECT_TRUE(fs::is_empty(place.path));
}

TEST(keeps_plan, accepts_the_words_it_is_told_to) {
  const problem p = repeated_keys();
  const result bad = emulated(p, "inverse-bf16-between-steps");
  const trial_options caught{.judge = {.power = false}, .accept = {verdict::refuted}, .witness = ""};
  EXPECT_THAT(bad, keeps_plan(p, "fla-chunk-delta", caught));
  EXPECT_THAT(emulated(p), Not(keeps_plan(p, "fla-chunk-delta", caught)));
}

TEST(keeps_plan, takes_views_with_the_state_in_either_order) {
  const problem p = repeated_keys();
  const result r = emulated(p);
  result_view view{.o = tensor_view(r.o), .final_state = tensor_view(*r.final_state), .chunk_size = 32};
  for (const auto& [name, stage] : r.stages) view.stages.emplace(name, tensor_view(stage));
  EXPECT_THAT(view, keeps_plan(p, "fla-chunk-delta", {.judge = {.power = false}}));
  // The same bits read as (V, K): the state is then transposed, and that is seen.
  view.state_layout = layout_kind::vk;
  EXPECT_THAT(view, Not(keeps_plan(p, "fla-chunk-delta", {.judge = {.power = false}, .witness = ""})));
}

problem with_cotangents() {
  generation g;
  g.regime = "typical";
  g.op = op_kind::gated_delta_rule;
  g.tokens = 70;
  g.key_dim = g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  g.initial_state = "normal";
  g.cotangents = true;
  return generate(g);
}

result with_gradients(const problem& p, const char* fault = nullptr) {
  emulation_options how;
  how.stages = true;
  if (fault != nullptr) how.planted = &fault_named(fault);
  result r = emulate_gradients(p, gradient_variants(plan_named("fla-chunk-gdn"), p, path_kind::chunk, 32).front(), how);
  r.kernel = "a kernel of this test";
  return r;
}

TEST(keeps_plan, judges_gradients_with_outputs_or_alone) {
  const problem p = with_cotangents();
  const witness_folder place;
  EXPECT_THAT(with_gradients(p), keeps_plan(p, "fla-chunk-gdn"));
  const result bad = with_gradients(p, "hdh-missing");
  EXPECT_THAT(explanation(bad, keeps_plan(p, "fla-chunk-gdn")),
              AllOf(HasSubstr("did not match"), HasSubstr("\nfirst bad    dg_local"), HasSubstr("\ndiagnosis    hdh-missing"),
                    HasSubstr("\nagain        deltaproof replay ")));
  const auto matcher = keeps_plan(p, "fla-chunk-gdn", {.judge = {.power = false}, .witness = ""});
  const result good = with_gradients(p);
  for (const auto& [name, right] : good.gradients) {
    result_view view{.o = {}, .final_state = {}, .chunk_size = 32};
    for (const auto& [other, t] : good.gradients) view.gradients.emplace(other, tensor_view(t));
    EXPECT_THAT(view, matcher) << name;
    std::vector<double> values = right.to_doubles();
    for (double& x : values) x *= 2;
    const tensor wrong = tensor::from_doubles(right.element_format(), right.shape(), values, name);
    view.gradients.erase(name);
    view.gradients.emplace(name, tensor_view(wrong));
    EXPECT_THAT(explanation(view, matcher), AllOf(HasSubstr("did not match"), HasSubstr("first bad    the tensor " + name)))
        << name;
  }
}

// Buffers are filled with NaN before the kernel runs: what it never writes is seen, whatever lay there.
TEST(keeps_plan, sees_elements_of_a_gradient_that_were_never_written) {
  const problem p = with_cotangents();
  const result r = with_gradients(p);
  std::vector<float> dinitial_state(16 * 16, std::numeric_limits<float>::quiet_NaN());
  const std::vector<double> values = r.gradients.at("dinitial_state").to_doubles();
  std::copy(values.begin(), values.end(), dinitial_state.begin());
  result_view view{.o = tensor_view(r.o), .final_state = tensor_view(*r.final_state), .chunk_size = 32};
  view.gradients.emplace("dinitial_state", tensor_view(std::span<const float>(dinitial_state), {1, 1, 16, 16}));
  const auto matcher = keeps_plan(p, "fla-chunk-gdn", {.judge = {.power = false}, .witness = ""});
  EXPECT_THAT(view, matcher);
  dinitial_state.back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(explanation(view, matcher), AllOf(HasSubstr("did not match"), HasSubstr("dinitial_state")));
}

TEST(keeps_plan, refuses_what_is_no_result_of_the_problem) {
  const problem p = repeated_keys();
  const auto matcher = keeps_plan(p, "fla-chunk-delta");
  EXPECT_THAT(thrown([&] { explanation(emulated(repeated_keys(64)), matcher); }),
              HasSubstr("result: tensor o: shape [1, 64, 1, 16] should be [1, 70, 1, 16] for this problem, [B, T, HV, V]"));
  EXPECT_THAT(thrown([&] { explanation(emulated(p), keeps_plan(p, "fla-chunk-detla")); }), HasSubstr("fla-chunk-delta"));
  EXPECT_THAT(thrown([&] { explanation(emulated(p), keeps_plan(p, "fla-chunk-delta", {.judge = {.false_alarm = 2}})); }),
              HasSubstr("the false-alarm probability is 2; use a number within [1e-12, 0.1]"));
}

TEST(keeps_plan, asks_once_for_one_result) {
  const problem p = repeated_keys();
  int asked = 0;
  trial counting(p, {}, "", "", [&asked](const problem&, const result&, const trial_options&) {
    ++asked;
    return trial_answer{.judged = verdict::holds};
  });
  const result r = emulated(p);
  EXPECT_TRUE(counting(r).accepted && counting(r).accepted);
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(counting(changed(r, 3, 0.5)).accepted);
  EXPECT_EQ(asked, 2);
}

TEST(keeps_plan, leaves_properties_for_the_xml_report) {
  const witness_folder place;
  const problem p = repeated_keys();
  EXPECT_THAT(emulated(p, "inverse-bf16-between-steps"), Not(keeps_plan(p, "fla-chunk-delta", {.judge = {.power = false}})));
  const ::testing::TestResult& self = *::testing::UnitTest::GetInstance()->current_test_info()->result();
  std::map<std::string, std::string> found;
  for (int i = 0; i < self.test_property_count(); ++i) found[self.GetTestProperty(i).key()] = self.GetTestProperty(i).value();
  EXPECT_EQ(found["deltaproof.verdict"], "refuted");
  EXPECT_THAT(found["deltaproof.reason"], HasSubstr("Ai: sequence 0, head 0"));
  EXPECT_EQ(found["deltaproof.witness"], (place.path / "keeps_plan.leaves_properties_for_the_xml_report").string());
}

TEST(within, judges_by_the_limit_alone_and_prints_its_reason) {
  const problem p = repeated_keys();
  const result r = emulated(p);
  EXPECT_THAT(r, within(p, "o:rel_fro=0.05", because("our release criterion")));
  const auto tight = within(p, "o:rel_fro=1e-9", because("our release criterion"), {.witness = ""});
  EXPECT_THAT(r, Not(tight));
  EXPECT_THAT(explanation(r, tight), AllOf(HasSubstr("refuted: "),
                                           HasSubstr("--no-plan --max-error o:rel_fro=1e-09 --because 'our release criterion'")));
  EXPECT_THAT(::testing::DescribeMatcher<result>(tight),
              HasSubstr("is within o:rel_fro=1e-9 (our release criterion) on regime repeated"));
  EXPECT_THAT(thrown([&] { static_cast<void>(within(p, "o:rel_forb=1", because("x"))); }), HasSubstr("rel_forb"));
}

TEST(correctly_rounded, is_exactly_that) {
  const problem p = repeated_keys();
  const reference truth = [&p] {
    question ask;
    ask.round_output = bf16;
    ask.round_state = fp32;
    return solve(p, ask);
  }();
  const auto rounded = [](const reference_tensor& t, const format& to) {
    std::vector<double> values;
    for (std::size_t i = 0; i < t.value.size(); ++i) values.push_back(decided_rounding(t, i, to).value());
    return tensor::from_doubles(to, t.shape, values);
  };
  result r;
  r.o = rounded(truth.o, bf16);
  r.final_state = rounded(truth.final_state, fp32);
  EXPECT_THAT(r, correctly_rounded(p));
  // One neighbour of one value is one too many.
  const double there = r.o.at(37);
  const double next = there + ulp_at(there, bf16);
  const std::string text = explanation(changed(r, 37, next), correctly_rounded(p));
  EXPECT_THAT(text, HasSubstr("did not match"));
  EXPECT_THAT(
      text,
      HasSubstr("o            1 of 1120 elements differ from the exact value rounded to BF16, by at most 1 ulps; the first at "
                "[batch, token, head, v] = [0, 2, 0, 5]: "));
  EXPECT_THAT(text, HasSubstr("final_state  0 of 256 elements"));
  EXPECT_THAT(text, HasSubstr("writes the expected o (for final_state give --round fp32)"));
  EXPECT_THAT(explanation(changed(r, 0, std::numeric_limits<double>::quiet_NaN()), correctly_rounded(p)),
              HasSubstr("1 of 1120 elements differ from the exact value rounded to BF16, 1 of them not finite; the first at "));
}

}  // namespace
}  // namespace deltaproof::testing
