// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/check/invariant.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "check/invariant_cases.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

using namespace deltaproof::testing;
using ::testing::HasSubstr;

constexpr std::string_view gdn = "fla-chunk-gdn";

invariant_report judge(invariant_kind kind, const recorded_run& whole, const std::vector<recorded_run>& parts,
                       const invariant_options& options = quick()) {
  return check_invariant(kind, whole, parts, options);
}

recorded_run prefix_of(const problem& p, std::size_t tokens, std::string_view fault = {}) {
  return run_of(cut(p, 0, tokens, p.initial_state), gdn, 64, fault, "prefix");
}

TEST(Invariant, PrefixHoldsForACausalKernelAtEveryCut) {
  const problem p = gated_problem(150);
  const recorded_run whole = run_of(p, gdn);
  for (const std::size_t tokens :
       {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65}, std::size_t{128}, std::size_t{149}}) {
    const invariant_report report = judge(invariant_kind::prefix, whole, {prefix_of(p, tokens)});
    EXPECT_EQ(report.judged, verdict::holds) << tokens << ": " << report.reason;
    EXPECT_EQ(report.bits.at(0).elements, tokens * 2 * 12);
  }
}

TEST(Invariant, PrefixNamesTheFirstElementThatAFutureTokenMoved) {
  const problem p = gated_problem(150);
  // The last shared token takes a gate that the part does not have.
  const invariant_report gate =
      judge(invariant_kind::prefix, run_of(p, gdn, 64, "gate-of-next-token"), {prefix_of(p, 64, "gate-of-next-token")});
  ASSERT_EQ(gate.judged, verdict::refuted);
  EXPECT_EQ(gate.bits.at(0).first->token, 63u);
  EXPECT_THAT(gate.reason, HasSubstr("token 63, element"));
  EXPECT_THAT(gate.reason, HasSubstr(" in the whole, 0x"));
  EXPECT_EQ(gate.remedy, "");
  // A leak inside a chunk shows only where the cut is inside it.
  EXPECT_EQ(
      judge(invariant_kind::prefix, run_of(p, gdn, 64, "o-mask-off-by-one"), {prefix_of(p, 64, "o-mask-off-by-one")}).judged,
      verdict::holds);
  const invariant_report mask = judge(invariant_kind::prefix, run_of(p, gdn, 64, "o-mask-off-by-one"),
                                      {prefix_of(p, 64, "o-mask-off-by-one"), prefix_of(p, 100, "o-mask-off-by-one")});
  ASSERT_EQ(mask.judged, verdict::refuted);
  EXPECT_EQ(mask.bits.at(0).first->token, 99u);
  EXPECT_EQ(mask.bits.at(0).first->part, 1u);
  EXPECT_THAT(mask.remedy, HasSubstr("multiple of 64 tokens"));
}

// Of six rows a token every 32nd token ends a chunk of 64 rows, but fla makes o of 64 tokens at a time.
TEST(Invariant, PrefixNamesTheTokensAfterWhichAChunkIsWhole) {
  generation g;
  g.op = op_kind::gated_delta_product;
  g.num_householder = 6;
  g.tokens = 100;
  g.key_dim = g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  const problem p = generate(g);
  const auto judged = [&](std::size_t tokens) {
    const auto run = [&](const problem& of, const char* name) {
      return run_of(of, "fla-chunk-gdp", 64, "o-mask-off-by-one", name);
    };
    return judge(invariant_kind::prefix, run(p, "whole"), {run(cut(p, 0, tokens, p.initial_state), "part")});
  };
  for (const std::size_t tokens : {32U, 35U, 96U}) {
    const invariant_report partial = judged(tokens);
    ASSERT_EQ(partial.judged, verdict::refuted) << tokens;
    EXPECT_THAT(partial.remedy, HasSubstr("end the part at a multiple of 64 tokens")) << tokens;
  }
  EXPECT_EQ(judged(64).judged, verdict::holds) << "the same chunks in both";
}

TEST(Invariant, PrefixRefusesWhatIsNoPrefix) {
  const problem p = gated_problem(80);
  const recorded_run whole = run_of(p, gdn);
  recorded_run part = prefix_of(p, 64);
  part.given.k = with(part.given.k, 5 * 2 * 16 + 16 + 3, 0.5);
  const std::string k = thrown([&] { judge(invariant_kind::prefix, whole, {part}); });
  EXPECT_THAT(k, HasSubstr("tensor k at [0, 5, 1, 3] is 0x3f00 (0.5) where the whole has 0x"));
  part = prefix_of(p, 64);
  part.given.initial_state = with(*p.initial_state, 17, 3);
  EXPECT_THAT(thrown([&] { judge(invariant_kind::prefix, whole, {part}); }),
              HasSubstr("initial_state at [0, 0, 1, 5] is 0x40400000 (3)"));
  part = prefix_of(p, 64);
  part.given.scale = 1;
  EXPECT_THAT(thrown([&] { judge(invariant_kind::prefix, whole, {part}); }), HasSubstr("scale is 1 here, but 0.25"));
  part = prefix_of(p, 64);
  part.gave.chunk_size = 32;
  EXPECT_THAT(thrown([&] { judge(invariant_kind::prefix, whole, {part}); }), HasSubstr("chunk_size"));
  const recorded_run longer = run_of(gated_problem(81), gdn);
  EXPECT_THAT(thrown([&] { judge(invariant_kind::prefix, whole, {longer}); }),
              HasSubstr("shorten the part, or give the longer run as the whole"));
  EXPECT_EQ(judge(invariant_kind::prefix, whole, {whole}).judged, verdict::vacuous);
}

/// The last tokens neither write nor decay; `junk`: what a kernel reads that does not know this.
problem padded_problem(const problem& p, std::size_t padding, bool junk = false) {
  const std::size_t all = p.tokens(), real = all - padding, heads = p.value_heads();
  problem out = p;
  for (std::size_t t = real; t < all && !junk; ++t) {
    for (std::size_t h = 0; h < heads; ++h) {
      out.beta = with(out.beta, t * heads + h, 0);
      out.g = with(*out.g, t * heads + h, 0);
    }
  }
  return out;
}

TEST(Invariant, PaddingChangesNoBitOfACorrectKernel) {
  const problem p = gated_problem(100);
  const recorded_run whole = run_of(padded_problem(p, 20), gdn), part = run_of(cut(p, 0, 80, p.initial_state), gdn);
  const invariant_report report = judge(invariant_kind::pad, whole, {part});
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  EXPECT_EQ(report.bits.at(1).elements, 2u * 16 * 12);

  recorded_run bad = run_of(padded_problem(p, 20, true), gdn);
  bad.given = whole.given;
  const invariant_report entered = judge(invariant_kind::pad, bad, {part});
  EXPECT_EQ(entered.judged, verdict::refuted);
  EXPECT_THAT(entered.reason, HasSubstr("final_state differs at sequence 0, head 0, element 0,0: 0x"));

  EXPECT_THAT(thrown([&] { judge(invariant_kind::pad, run_of(p, gdn), {part}); }), HasSubstr("in the padding"));
  bad = whole;
  bad.gave.final_state.reset();
  EXPECT_EQ(judge(invariant_kind::pad, bad, {part}).judged, verdict::vacuous);
}

std::vector<recorded_run> split_runs(const problem& p, const std::vector<std::size_t>& lengths, std::string_view plan,
                                     std::size_t chunk, std::string_view fault = {}) {
  std::vector<recorded_run> out;
  std::size_t first = 0;
  std::optional<tensor> state = p.initial_state;
  for (const std::size_t count : lengths) {
    out.push_back(run_of(cut(p, first, count, state), plan, chunk, fault, "part" + std::to_string(out.size())));
    state = out.back().gave.final_state_kv();
    first += count;
  }
  return out;
}

TEST(Invariant, SplitsAtAnyTokenAreOneCall) {
  const problem p = gated_problem(150);
  const recorded_run whole = run_of(p, gdn);
  const invariant_report report = judge(invariant_kind::split, whole, split_runs(p, {70, 80}, gdn, 64));
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  ASSERT_EQ(report.runs.size(), 3u);
  EXPECT_THAT(report.runs[1].what, HasSubstr("parts 1-2"));
  // On whole chunks the same chunks are formed: with a state carried in fp32 no bit may differ.
  EXPECT_EQ(judge(invariant_kind::split, whole, split_runs(p, {64, 86}, gdn, 64)).bits.at(0).differing, 0u);
}

TEST(Invariant, SplitFindsAStateThatIsNotCarried) {
  const problem p = gated_problem(150);
  const recorded_run whole = run_of(p, gdn);
  const invariant_report report = judge(invariant_kind::split, whole, split_runs(p, {70, 80}, gdn, 64, "initial-state-ignored"));
  EXPECT_EQ(report.judged, verdict::refuted);
  EXPECT_EQ(report.runs.at(0).report.judged, verdict::holds);
  EXPECT_EQ(report.runs.at(1).report.judged, verdict::refuted);
  EXPECT_EQ(report.runs.at(2).report.judged, verdict::refuted);

  auto parts = split_runs(p, {70, 80}, gdn, 64);
  parts[1].given.initial_state = with(*parts[1].given.initial_state, 0, 8);
  EXPECT_THAT(thrown([&] { judge(invariant_kind::split, whole, parts); }), HasSubstr("1 of 384 entries differ"));
  parts[1].given.initial_state.reset();
  EXPECT_THAT(thrown([&] { judge(invariant_kind::split, whole, parts); }),
              HasSubstr("initial_state is missing, which means zeros, and the final_state of part0"));
  parts = split_runs(p, {70, 80}, gdn, 64);
  parts[0].gave.final_state.reset();
  EXPECT_THAT(thrown([&] { judge(invariant_kind::split, whole, parts); }), HasSubstr("record it"));
  parts = split_runs(p, {70, 79}, gdn, 64);
  EXPECT_THAT(thrown([&] { judge(invariant_kind::split, whole, parts); }), HasSubstr("the parts together 149"));
}

TEST(Invariant, DecodingTokenByTokenIsOneProblem) {
  const problem p = gated_problem(200, 1);
  const recorded_run whole = run_of(p, "decode-fp32", 0);
  const std::vector<recorded_run> parts = split_runs(p, std::vector<std::size_t>(200, 1), "decode-fp32", 0);
  const invariant_report report = judge(invariant_kind::split, whole, parts);
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  EXPECT_EQ(report.runs.size(), 3u);
  EXPECT_EQ(report.bits.at(0).differing, 0u);
  EXPECT_EQ(report.bits.at(1).differing, 0u);
  const check_identity identity;
  EXPECT_LT(to_text(report, whole, parts, identity).size(), 2500u);
  const auto j = nlohmann::json::parse(to_json(report, whole, parts, identity));
  EXPECT_EQ(j["schema"], "deltaproof.invariant/1");
  EXPECT_EQ(j["parts"].size(), 200u);
  EXPECT_EQ(j["judged"].size(), 3u);
}

TEST(Invariant, PackedSequencesAreThoseSequencesAlone) {
  problem p = gated_problem(150, 1);
  p.cu_seqlens = {0, 1, 66, 150};
  p.initial_state.reset();
  std::vector<recorded_run> parts;
  for (std::size_t s = 0; s + 1 < p.cu_seqlens.size(); ++s) {
    const auto first = static_cast<std::size_t>(p.cu_seqlens[s]), end = static_cast<std::size_t>(p.cu_seqlens[s + 1]);
    parts.push_back(run_of(cut(p, first, end - first, std::nullopt), gdn, 64, {}, "alone" + std::to_string(s)));
  }
  const invariant_report report = judge(invariant_kind::varlen, run_of(p, gdn), parts);
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  EXPECT_EQ(report.bits.at(0).differing, 0u);
  const invariant_report carried = judge(invariant_kind::varlen, run_of(p, gdn, 64, "state-carried-between-sequences"), parts);
  EXPECT_EQ(carried.judged, verdict::refuted);
  EXPECT_EQ(carried.bits.at(0).first->sequence, 1u);
  std::swap(parts[1], parts[2]);
  EXPECT_THAT(thrown([&] { judge(invariant_kind::varlen, run_of(p, gdn), parts); }),
              HasSubstr("record that sequence alone, or put the parts in order"));
}

TEST(Invariant, ChunkSizesAnswerOneOracle) {
  const problem p = gated_problem(150, 1);
  const recorded_run whole = run_of(p, "fp32", 64), other = run_of(p, "fp32", 16);
  const invariant_report report = judge(invariant_kind::chunk_size, whole, {other});
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  EXPECT_GT(report.bits.at(1).differing, 0u);
  EXPECT_THAT(report.reason, HasSubstr("elements differ"));
  EXPECT_EQ(judge(invariant_kind::chunk_size, whole, {run_of(p, "fp32", 16, "gate-of-first-row-lost")}).judged, verdict::refuted);
  EXPECT_THAT(thrown([&] { judge(invariant_kind::chunk_size, whole, {whole}); }), HasSubstr("chunk_size is 64 in every result"));
  EXPECT_THAT(thrown([&] { judge(invariant_kind::chunk_size, whole, {run_of(gated_problem(151, 1), "fp32", 16)}); }),
              HasSubstr("sequence 0 has 151 tokens here, but 150 in whole.problem.safetensors; invariant chunk-size compares"));
  // A result without chunks is no result in chunks of another length.
  recorded_run recurrent = run_of(p, "fla-recurrent-gdn", 0);
  recurrent.gave.kernel = whole.gave.kernel;
  EXPECT_THAT(thrown([&] { judge(invariant_kind::chunk_size, whole, {recurrent}); }), HasSubstr("invariant path compares"));
}

TEST(Invariant, TheSmallestFalseAlarmIsShared) {
  const problem p = gated_problem(20, 1);
  invariant_options options = quick();
  options.check.judge.false_alarm = 1e-12;
  const invariant_report report =
      judge(invariant_kind::chunk_size, run_of(p, "fp32", 64), {run_of(p, "fp32", 16), run_of(p, "fp32", 32)}, options);
  EXPECT_EQ(report.judged, verdict::holds) << report.reason;
  ASSERT_EQ(report.runs.size(), 3u);
  for (const judged_run& run : report.runs) EXPECT_EQ(run.report.conformance->false_alarm, 1e-12 / 3);
}

TEST(Invariant, WithoutAPlanErrorsAreMeasured) {
  const problem p = gated_problem(20, 1);
  invariant_options options = quick();
  options.no_plan = true;
  EXPECT_EQ(judge(invariant_kind::chunk_size, run_of(p, "fp32", 64), {run_of(p, "fp32", 16)}, options).judged, verdict::measured);
  EXPECT_THROW(static_cast<void>(invariant_named("suffix")), format_error);
}

TEST(Invariant, PackingKeepsBitsAndStages) {
  const problem p = gated_problem(70, 1);
  const plan declared = plan_named(gdn);
  emulation_options how;
  how.stages = true;
  std::vector<recorded_run> parts;
  for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, 65}, {65, 5}}) {
    recorded_run one = run_of(cut(p, first, count, p.initial_state), gdn);
    one.gave.stages = emulate(one.given, variants(declared, one.given, path_kind::chunk, 64).front(), how).stages;
    parts.push_back(one);
  }
  parts[1].given.initial_state.reset();
  const recorded_run* const list[] = {&parts[0], &parts[1]};
  const recorded_run both = packed(list);
  EXPECT_EQ(both.given.cu_seqlens, (std::vector<std::int64_t>{0, 65, 70}));
  EXPECT_TRUE(same_bits(both.given.k, p.k));
  EXPECT_EQ(both.given.initial_state->shape(), (std::vector<std::size_t>{2, 1, 16, 12}));
  EXPECT_EQ(both.given.initial_state->at(16 * 12), 0);
  EXPECT_EQ(both.gave.stages.at("h").shape(), (std::vector<std::size_t>{1, 3, 1, 16, 12}));
  EXPECT_EQ(both.gave.stages.at("w").shape(), (std::vector<std::size_t>{1, 70, 1, 16}));
  validate(both.given, "packed");
}

}  // namespace
}  // namespace deltaproof
