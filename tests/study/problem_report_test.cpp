// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The page of one's own tensors, on inputs whose answer is known by hand.
#include "deltaproof/study/problem_report.hpp"

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

double value_of(const report& r, std::string_view id, const char* key) { return as_number(reports::found(r, id).values.at(key)); }

problem made(generation g) {
  g.key_dim = g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  return generate(g);
}

report page(const problem& p, std::span<const named_result> results = {}, std::size_t chunk = 64) {
  problem_report_options options;
  options.chunk = chunk;
  return report_on(p, {"mine", "mine.problem.safetensors", "deltaproof report mine.problem.safetensors -o pages"}, results,
                   options);
}

TEST(problem_report, of_one_key_repeated_has_binomial_powers_and_entries_of_one) {
  const report r =
      page(made({.regime = "repeated", .op = op_kind::delta_rule, .tokens = 128, .beta = "1", .initial_state = "none"}));
  // |L^p| of a strictly lower matrix of ones: C(63, 31) is about 9.2e17; the rounded key makes it (|k|^2)^p of that.
  EXPECT_GT(value_of(r, "chunk-inverses", "powers_on_chunks"), 1e17);
  EXPECT_LT(value_of(r, "chunk-inverses", "powers_on_chunks"), 1e19);
  EXPECT_NEAR(value_of(r, "chunk-inverses", "largest_entry"), 1, 0.05);
  EXPECT_EQ(value_of(r, "chunk-inverses", "chunks"), 2);
  EXPECT_THAT(reports::found(r, "chunk-inverses").statement, HasSubstr("beyond fp16"));
  EXPECT_EQ(r.command, "deltaproof report mine.problem.safetensors -o pages");
  EXPECT_THAT(reports::found(r, "steps").statement,
              HasSubstr("; the nearer end of [0, 2] is " + number(value_of(r, "steps", "margin"), 6) + " away."));
}

TEST(problem_report, of_constant_gates_adds_them_up) {
  const report r = page(made({.op = op_kind::gated_delta_rule, .tokens = 128, .gate = "-2"}), {}, 64);
  EXPECT_NEAR(value_of(r, "gate-factors", "chunk_bits"), 64 * 2 / std::log(2.0), 1e-9);
  EXPECT_NEAR(value_of(r, "gate-factors", "block_bits"), 16 * 2 / std::log(2.0), 1e-9);
  EXPECT_THAT(reports::found(r, "gate-factors").statement, HasSubstr("overflows fp32 over a chunk, not in blocks of 16"));
  EXPECT_NEAR(value_of(r, "gate-factors", "fp32_ratio_error"), 128 * 0x1p-24, 1e-12);
  // The gate alone forgets 2 nats a token; steps only add to that.
  EXPECT_LE(value_of(r, "forgetting", "largest_rate"), -2 + 1e-9);
}

TEST(problem_report, counts_expansive_steps) {
  problem p = made({.op = op_kind::delta_rule, .tokens = 32});
  const auto keys = p.k.to_doubles();
  std::vector<double> longer(keys);
  for (double& x : longer) x *= 2;
  p.k = tensor::from_doubles(bf16, p.k.shape(), longer, "k");
  std::vector<double> steps(p.beta.size(), 0.25);
  steps[7] = steps[9] = 0.75;  // x = 4 * 0.75 = 3
  p.beta = tensor::from_doubles(p.beta.element_format(), p.beta.shape(), steps, "beta");
  const report r = page(p);
  EXPECT_EQ(value_of(r, "steps", "expansive"), 2);
  EXPECT_THAT(reports::found(r, "steps").statement, HasSubstr("expansive in 2 of 32 rows"));
  EXPECT_LT(value_of(r, "steps", "margin"), -0.9);
}

TEST(problem_report, judges_results_as_check_does) {
  const problem p = made({.op = op_kind::delta_rule, .tokens = 100});
  const plan& declared = plan_named("fla-chunk-delta");
  const auto law = variants(declared, p, path_kind::chunk, 64).front();
  std::vector<named_result> results;
  results.push_back({"right.safetensors", emulate(p, law, {}, 1), {declared}, "deltaproof check mine right"});
  emulation_options wrong;
  wrong.planted = &fault_named("scale-missing");
  results.push_back({"wrong.safetensors", emulate(p, law, wrong, 1), {declared}, "deltaproof check mine wrong --plan fp32"});
  results.push_back({"measured.safetensors", results.front().values, {}, "deltaproof check mine right --no-plan"});
  const report r = page(p, results);
  EXPECT_EQ(reports::found(r, "result-1").values.at("verdict"), cell("holds"));
  EXPECT_EQ(reports::found(r, "result-2").values.at("verdict"), cell("refuted"));
  EXPECT_EQ(reports::found(r, "result-3").values.at("verdict"), cell("measured"));
  // Limits that come from emulated runs are no certificate.
  EXPECT_EQ(reports::found(r, "result-1").kind, evidence::measured());
  EXPECT_THAT(reports::found(r, "result-1").because, HasSubstr("false-alarm.md"));
  EXPECT_THAT(reports::found(r, "result-3").because, Not(HasSubstr("false-alarm.md")));
  EXPECT_EQ(reports::found(r, "result-2").replay, "deltaproof check mine wrong --plan fp32");
  EXPECT_LT(value_of(r, "result-1", "error_o"), 0.02);
  EXPECT_GT(value_of(r, "result-2", "error_o"), 0.5);
  const figure* horizon = nullptr;
  for (const figure& f : r.figures) {
    if (f.id == "horizon") horizon = &f;
  }
  ASSERT_NE(horizon, nullptr);
  ASSERT_EQ(horizon->panels.size(), 2U);
  EXPECT_EQ(horizon->panels[0].curves.size(), 3U);
  for (const double share : horizon->panels[1].curves[0].y) EXPECT_LT(share, 1);
  for (const double share : horizon->panels[1].curves[1].y) EXPECT_GT(share, 1);
  EXPECT_NO_THROW((void)to_markdown(r));
}

// The page is one more door to the same question: what it says of a result is what `check` says under the same judging.
TEST(problem_report, says_what_check_says_and_refuses_what_check_refuses) {
  const problem p = made({.op = op_kind::delta_rule, .tokens = 40});
  const plan& declared = plan_named("fla-chunk-delta");
  const result right = emulate(p, variants(declared, p, path_kind::chunk, 64).front(), {}, 1);
  const std::vector<named_result> results{{"right.safetensors", right, {declared}, "deltaproof check mine right"}};
  problem_report_options asked;
  check_options same;
  same.plans = {declared};
  for (const double accuracy : {0.1, 1e-6}) {
    asked.judge = same.judge = {.false_alarm = 1e-5, .accuracy = accuracy, .power = false, .seed = 7};
    const check_report said = check(p, right, same);
    EXPECT_EQ(said.judged, accuracy == 0.1 ? verdict::holds : verdict::refuted);
    const report page = report_on(p, {"mine", "mine", "deltaproof report mine"}, results, asked);
    EXPECT_EQ(reports::found(page, "result-1").values.at("verdict"), cell(std::string(name_of(said.judged))));
    EXPECT_THAT(reports::found(page, "result-1").statement, HasSubstr(said.reason));
  }
  asked.judge.accuracy = std::nan("");
  EXPECT_THROW((void)report_on(p, {"mine", "mine", "deltaproof report mine"}, results, asked), error);
}

TEST(problem_report, of_no_tokens_says_what_there_is) {
  const report r = page(made({.op = op_kind::delta_rule, .tokens = 1}));
  EXPECT_EQ(value_of(r, "chunk-inverses", "largest_entry"), 1);
  EXPECT_NO_THROW(validate(r));
}

}  // namespace
}  // namespace deltaproof
