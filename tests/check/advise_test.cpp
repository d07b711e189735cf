// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What advice names, check finds: a kernel that computes as the best choice says holds at the limit, one that computes as the
// choice refused beside it says is not adequate. On three regimes, and for each kind of choice.
#include "deltaproof/check/advise.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

problem drawn(const std::string& regime, std::size_t tokens = 512, op_kind op = op_kind::gated_delta_rule) {
  generation g;
  g.regime = regime;
  g.op = op;
  g.tokens = tokens;
  g.key_dim = g.value_dim = 32;
  g.key_heads = g.value_heads = 1;
  g.seed = 3;
  return generate(g);
}

const advised_kind* kind_of(const advice& found, std::string_view name) {
  for (const advised_kind& k : found.kinds) {
    if (k.kind == name) return &k;
  }
  return nullptr;
}

check_report judged(const problem& p, const advised_kind& kind, const advised_choice& c) {
  const plan stated = parse_plan(c.plan, c.name);
  const path_kind path = stated.path.front();
  const std::size_t chunk = path == path_kind::chunk ? stated.chunk.front() : 0;
  check_options options;
  options.plans = {stated};
  options.judge.accuracy = kind.limit;
  options.judge.power = false;
  return check(p, emulate(p, variants(stated, p, path, chunk).front()), options);
}

void expect_check_agrees(const problem& p, const advised_kind& kind, bool refuses) {
  const advised_choice* best = best_of(kind);
  ASSERT_NE(best, nullptr) << kind.kind;
  EXPECT_EQ(judged(p, kind, *best).judged, verdict::holds) << best->name;
  const advised_choice* refused = refused_beside(kind);
  EXPECT_EQ(refused != nullptr, refuses) << kind.kind << (refused == nullptr ? "" : ": " + refused->name);
  if (refused == nullptr) return;
  EXPECT_LE(refused->cost(), best->cost());
  const check_report report = judged(p, kind, *refused);
  EXPECT_EQ(report.judged, verdict::refuted) << refused->name;
  EXPECT_FALSE(report.conformance->adequacy.adequate) << refused->name;
}

class regimes : public ::testing::TestWithParam<const char*> {};

TEST_P(regimes, have_a_cache_that_check_holds_and_a_cheaper_one_that_it_refuses) {
  const problem p = drawn(GetParam());
  const advice found = advise(p, {});
  const advised_kind& states = *kind_of(found, "state cache");
  expect_check_agrees(p, states, true);
  // Most of the grid never runs.
  EXPECT_GT(states.grid, 200U);
  EXPECT_GT(states.refused_by_bounds, states.grid / 4);
  EXPECT_LT(states.emulated, states.grid / 2);
  for (std::size_t i = 1; i < states.choices.size(); ++i) EXPECT_LE(states.choices[i - 1].cost(), states.choices[i].cost());
}
INSTANTIATE_TEST_SUITE_P(three, regimes, ::testing::Values("model-gates", "slow-decay", "collinear"));

TEST(bounds, refuse_nothing_that_would_have_been_adequate) {
  const problem p = drawn("model-gates", 256);
  advise_options options;
  options.wanted = 1000;  // everything that is open is run
  const advice found = advise(p, options);
  const advised_kind& states = *kind_of(found, "state cache");
  EXPECT_EQ(states.refused_by_bounds + states.emulated, states.grid);
  std::size_t compared = 0;
  for (const advised_choice& c : states.choices) {
    if (c.known != "bound" || ++compared % 8 != 0) continue;
    const plan_variant v = variants(parse_plan(c.plan, c.name), p, path_kind::recurrent, 0).front();
    const head_output run = emulate_head(take_head(p, 0, 0), v), truth = reference_run(take_head(p, 0, 0));
    double error = 0, size = 0;
    for (std::size_t i = 0; i < run.final_state.size(); ++i) {
      error += std::pow(run.final_state.data()[i] - truth.final_state.data()[i], 2);
      size += std::pow(truth.final_state.data()[i], 2);
    }
    EXPECT_GT(std::sqrt(error / size), states.limit) << c.name;
  }
  EXPECT_GT(compared, 80U);
}

TEST(inverses, that_grow_are_refused_before_they_run) {
  const problem p = drawn("collinear");
  const advice found = advise(p, {});
  const advised_kind& chunks = *kind_of(found, "chunk");
  EXPECT_GT(chunks.refused_by_bounds, 0U);
  const advised_choice* best = best_of(chunks);
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(judged(p, chunks, *best).judged, verdict::holds) << best->name;
}

TEST(decays, of_long_memories_are_not_stored_as_exponentials_in_bf16) {
  const problem p = drawn("slow-decay", 2048);
  const advice found = advise(p, {});
  const advised_kind& decays = *kind_of(found, "decay");
  for (const advised_choice& c : decays.choices) {
    if (c.name == "decay-exp-g-bf16") {
      EXPECT_EQ(c.word, advice_word::inadequate) << c.error;
    } else if (c.name == "decay-g-bf16") {
      EXPECT_EQ(c.word, advice_word::adequate) << c.error;
    }
  }
  ASSERT_NE(best_of(decays), nullptr);
  EXPECT_EQ(best_of(decays)->name.find("exp-g-bf16"), std::string::npos);
}

TEST(an_accuracy, is_the_limit_of_every_kind) {
  const problem p = drawn("model-gates", 256);
  advise_options loose;
  loose.accuracy = 0.2;
  const advice found = advise(p, loose);
  for (const advised_kind& k : found.kinds) EXPECT_EQ(k.limit, 0.2);
  const double cheap = best_of(found.kinds[0])->bytes;
  const advice usual = advise(p, {});
  EXPECT_LT(cheap, best_of(usual.kinds[0])->bytes);
  advise_options strict;
  strict.accuracy = 1e-8;
  for (const advised_kind& k : advise(p, strict).kinds) {
    EXPECT_EQ(k.unchanged.word, advice_word::inadequate) << k.kind;
    EXPECT_TRUE(k.unchanged.until_token) << k.kind;
  }
  loose.accuracy = -1;
  EXPECT_THROW((void)advise(p, loose), format_error);
  advise_options other;
  other.recurrent_plan = "fla-chunk-gdn";
  EXPECT_THAT([&] { (void)advise(p, other); },
              ThrowsMessage<format_error>(HasSubstr("advise: --recurrent-plan fla-chunk-gdn: plan fla-chunk-gdn does not fit")));
}

TEST(keys_of_a_plan_s_text, are_set_in_their_sections) {
  const std::string text = "name = \"a\"\nchunk = 64\n\n[u]\n# of u\nstore = \"X\"\n\n[w]\nstore = \"X\"\n";
  EXPECT_EQ(with_key(text, "w", "store", "\"fp32\""),
            "name = \"a\"\nchunk = 64\n\n[u]\n# of u\nstore = \"X\"\n\n[w]\nstore = \"fp32\"\n");
  EXPECT_EQ(with_key(text, "", "chunk", "32"), "name = \"a\"\nchunk = 32\n\n[u]\n# of u\nstore = \"X\"\n\n[w]\nstore = \"X\"\n");
  EXPECT_EQ(with_key(text, "u", "store", ""), "name = \"a\"\nchunk = 64\n\n[u]\n# of u\n\n[w]\nstore = \"X\"\n");
  EXPECT_EQ(with_key(text, "w", "operand", "1"),
            "name = \"a\"\nchunk = 64\n\n[u]\n# of u\nstore = \"X\"\n\n[w]\noperand = 1\nstore = \"X\"\n");
  EXPECT_EQ(with_key("name = \"a\"\n", "hardware", "tf32", "\"rz\""), "name = \"a\"\n\n[hardware]\ntf32 = \"rz\"\n");
}

TEST(a_plan, that_does_not_stay_finite_sets_no_limit) {
  problem p = drawn("typical", 256, op_kind::delta_rule);
  const tensor& v = p.v;
  p.v = tensor::from_doubles(fp32, v.shape(), std::vector<double>(v.to_doubles().size(), 0x1.cp127), v.name());
  EXPECT_THAT([&] { (void)advise(p, {}); }, ThrowsMessage<domain_error>(HasSubstr("unchanged plan decode-fp32 is infinite")));
  advise_options stated;
  stated.accuracy = 0.1;
  EXPECT_EQ(best_of(advise(p, stated).kinds[0]), nullptr);
}

TEST(advice, without_tokens_there_is_none) { EXPECT_THROW((void)advise(drawn("model-gates", 0), {}), domain_error); }

}  // namespace
}  // namespace deltaproof
