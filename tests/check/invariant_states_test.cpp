// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The life of a state: what holds for a correct kernel, and a table of planted faults of servers, each refuted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "check/invariant_cases.hpp"
#include "deltaproof/check/invariant.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "deltaproof/oracle/gradients.hpp"
#include "support/cotangents.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

using testing::cut;
using testing::gated_problem;
using ::testing::HasSubstr;
using testing::quick;
using testing::run_of;
using testing::thrown;

constexpr std::size_t tokens = 160, accepted = 70, drafted = 75;

invariant_report judge(invariant_kind kind, const recorded_run& whole, const std::vector<recorded_run>& parts) {
  return check_invariant(kind, whole, parts, quick());
}

recorded_run renamed(recorded_run run, const std::string& name) {
  run.problem_path = name + ".problem.safetensors";
  run.result_path = name + ".result.safetensors";
  return run;
}

tensor changed(const tensor& t, const std::function<double(std::size_t, double)>& by) {
  std::vector<double> values = t.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = round_nearest(by(i, values[i]), fp32);
  return tensor::from_doubles(fp32, t.shape(), values, t.name());
}

/// A sequence of 160 tokens with a slow gate, so that a state still matters when it is read.
problem sequence_of(std::uint64_t seed = 7) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.gate = "-0.01";
  g.tokens = tokens;
  g.key_dim = g.value_dim = 16;
  g.key_heads = g.value_heads = 2;
  g.initial_state = "normal";
  g.seed = seed;
  return generate(g);
}

/// What a server does: a draft of `drafted` tokens, of which `accepted` are those of the sequence, then the rest from a state.
struct served {
  std::size_t accepted;
  recorded_run whole;
  recorded_run draft;
  tensor state;  ///< after the accepted tokens

  explicit served(std::uint64_t seed = 7, std::size_t count = deltaproof::accepted)
      : accepted(count), whole(run_of(sequence_of(seed), "fla-chunk-gdn")) {
    const problem& p = whole.given;
    const problem other = sequence_of(seed + 1);
    problem drafted_tokens = cut(p, 0, drafted, p.initial_state);
    const auto put = [&](tensor& t, const tensor& from) {
      std::vector<double> values = t.to_doubles();
      const std::vector<double> wrong = from.to_doubles();
      const std::size_t width = t.size() / drafted;
      for (std::size_t i = accepted * width; i < values.size(); ++i) values[i] = wrong[i];
      t = tensor::from_doubles(t.element_format(), t.shape(), values, t.name());
    };
    put(drafted_tokens.q, other.q);
    put(drafted_tokens.k, other.k);
    put(drafted_tokens.v, other.v);
    draft = renamed(run_of(drafted_tokens, "fla-chunk-gdn"), "draft");
    state = after(accepted);
  }
  [[nodiscard]] tensor after(std::size_t count) const {
    return *run_of(cut(whole.given, 0, count, whole.given.initial_state), "fla-chunk-gdn").gave.final_state;
  }
  [[nodiscard]] recorded_run rest_from(const tensor& restored) const {
    return renamed(run_of(cut(whole.given, accepted, tokens - accepted, restored), "fla-chunk-gdn"), "rest");
  }
  [[nodiscard]] recorded_run first() const {
    return renamed(run_of(cut(whole.given, 0, accepted, whole.given.initial_state), "fla-chunk-gdn"), "first");
  }
};

TEST(invariant_states, a_correct_server_holds) {
  const served s;
  const invariant_report rolled = judge(invariant_kind::rollback, s.whole, {s.draft, s.rest_from(s.state)});
  EXPECT_EQ(rolled.judged, verdict::holds) << rolled.reason;
  const invariant_report restored = judge(invariant_kind::snapshot, s.whole, {s.first(), s.rest_from(s.state)});
  EXPECT_EQ(restored.judged, verdict::holds) << restored.reason;
}

TEST(invariant_states, planted_faults_of_servers_are_refuted) {
  const served s;
  const std::size_t K = 16, V = 16;
  const std::vector<std::pair<const char*, tensor>> restored{
      {"the state after the drafted tokens", *s.draft.gave.final_state},
      {"the state one token early", s.after(accepted - 1)},
      {"the state of the chunk's start", s.after(64)},
      {"the state of another sequence", *run_of(sequence_of(9), "fla-chunk-gdn").gave.final_state},
      {"zeros", changed(s.state, [](std::size_t, double) { return 0.0; })},
      {"the sequence's first state", *s.whole.given.initial_state},
      {"its heads exchanged", changed(s.state, [&](std::size_t i, double) { return s.state.at((i + K * V) % (2 * K * V)); })},
      {"transposed", changed(s.state,
                             [&](std::size_t i, double) {
                               const std::size_t in = i % (K * V);
                               return s.state.at(i - in + in % V * K + in / V);
                             })},
      {"the gate once more", changed(s.state, [](std::size_t, double x) { return x * std::exp(-0.01); })},
      {"e4m3 without a scale", changed(s.state, [](std::size_t, double x) { return round_nearest(x, e4m3); })},
      {"one row of a tile", changed(s.state, [](std::size_t i, double x) { return i / 16 == 5 ? 1.5 * x : x; })}};
  std::cout << std::left << std::setw(40) << "what is restored" << std::setw(12) << "rollback" << "snapshot\n";
  for (const auto& [what, state] : restored) {
    const recorded_run rest = s.rest_from(state);
    const invariant_report rolled = judge(invariant_kind::rollback, s.whole, {s.draft, rest});
    const invariant_report kept = judge(invariant_kind::snapshot, s.whole, {s.first(), rest});
    std::cout << std::setw(40) << what << std::setw(12) << name_of(rolled.judged) << name_of(kept.judged) << "\n";
    EXPECT_EQ(rolled.judged, verdict::refuted) << what;
    EXPECT_EQ(kept.judged, verdict::refuted) << what;
    EXPECT_THAT(rolled.reason, HasSubstr("with the state that part 2 starts from")) << what;
    const bit_difference& first = *kept.bits.at(0).first;
    EXPECT_EQ(first.part, *first.token < accepted ? 0U : 1U) << what;
    EXPECT_EQ(kept.bits.at(1).first->part, 1U) << what;
  }
}

recorded_run packed_of(const recorded_run& a, const recorded_run& b, const std::string& name) {
  const std::vector<const recorded_run*> both{&a, &b};
  return renamed(packed(both), name);
}

TEST(invariant_states, several_sequences_in_one_call_each_have_their_own_state) {
  const served a, b(17, 51);  // 70 and 51 of 75 drafted tokens are accepted
  const recorded_run whole = packed_of(a.whole, b.whole, "whole"), draft = packed_of(a.draft, b.draft, "draft");
  const auto rest = [&](const tensor& first, const tensor& second) {
    return packed_of(a.rest_from(first), b.rest_from(second), "rest");
  };
  const auto rolled = [&](const recorded_run& next) { return judge(invariant_kind::rollback, whole, {draft, next}); };
  const invariant_report holds = rolled(rest(a.state, b.state));
  EXPECT_EQ(holds.judged, verdict::holds) << holds.reason;
  EXPECT_EQ(holds.bits.at(0).elements, whole.given.v.size());
  const recorded_run kept = packed_of(a.first(), b.first(), "kept");
  EXPECT_EQ(judge(invariant_kind::snapshot, whole, {kept, rest(a.state, b.state)}).judged, verdict::holds);

  const invariant_report exchanged = rolled(rest(b.state, a.state));
  EXPECT_EQ(exchanged.judged, verdict::refuted);
  EXPECT_THAT(exchanged.reason,
              HasSubstr("its first 121 tokens (all sequences together), with the state that part 2 starts from"));
  EXPECT_EQ(rolled(rest(a.state, b.after(50))).judged, verdict::refuted) << "one token early in the second sequence";
  EXPECT_EQ(rolled(rest(a.state, *b.draft.gave.final_state)).judged, verdict::refuted) << "the second keeps its draft";
  EXPECT_EQ(rolled(rest(*a.whole.given.initial_state, b.state)).judged, verdict::refuted) << "the first begins again";
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::rollback, whole, {draft, a.rest_from(a.state)}); }),
              HasSubstr("holds 1 sequence, and"));
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::snapshot, whole, {draft, rest(a.state, b.state)}); }),
              HasSubstr("token 70 of sequence 0 is not the same as token 70"));
}

TEST(invariant_states, what_asks_nothing_is_vacuous_or_refused) {
  const served s;
  const recorded_run rest = s.rest_from(s.state);
  EXPECT_EQ(judge(invariant_kind::rollback, s.whole, {s.first(), rest}).judged, verdict::vacuous);
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::snapshot, s.whole, {s.draft, rest}); }),
              HasSubstr("use `deltaproof invariant rollback`"));
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::rollback, s.whole, {s.draft}); }), HasSubstr("at least two"));
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::snapshot, s.whole, {rest, s.first()}); }),
              HasSubstr("is not the same as token 0"));
}

TEST(invariant_states, a_slot_that_was_never_written_is_refuted_and_nan_in_an_input_is_refused) {
  const served s;
  const recorded_run poisoned = [&] {
    recorded_run run = s.rest_from(s.state);
    run.given.initial_state = testing::with(s.state, (1 * 16 + 3) * 16 + 5, std::nan(""));
    return run;
  }();
  const invariant_report found = judge(invariant_kind::rollback, s.whole, {s.draft, poisoned});
  EXPECT_EQ(found.judged, verdict::refuted);
  EXPECT_THAT(found.reason, HasSubstr("part 2 starts from a state that holds nan in sequence 0, head 1, k 3, v 5"));
  EXPECT_EQ(judge(invariant_kind::snapshot, s.whole, {s.first(), poisoned}).judged, verdict::refuted);
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::repeat, poisoned, {poisoned}); }), HasSubstr("initial_state: nan in"));
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::snapshot, poisoned, {s.first(), poisoned}); }),
              HasSubstr("an initial state must be finite"));
}

TEST(invariant_states, repeats_are_bit_for_bit) {
  const recorded_run whole = run_of(gated_problem(70), "fla-chunk-gdn"), again = renamed(whole, "again");
  EXPECT_EQ(judge(invariant_kind::repeat, whole, {again, again}).judged, verdict::holds);
  recorded_run differs = again;
  differs.gave.o = testing::with(again.gave.o, 100, 2 * again.gave.o.at(100));
  EXPECT_THAT(judge(invariant_kind::repeat, whole, {again, differs}).reason, HasSubstr("in part 2"));
  differs = again;
  differs.gave.final_state = testing::with(*again.gave.final_state, 7, 3);
  EXPECT_EQ(judge(invariant_kind::repeat, whole, {differs}).judged, verdict::refuted);
  recorded_run with_gradients = whole, other_gradients = again;
  with_gradients.gave.gradients.emplace("dq", whole.given.q.named("dq"));
  other_gradients.gave.gradients.emplace("dq", testing::with(whole.given.q, 33, 5).named("dq"));
  EXPECT_THAT(judge(invariant_kind::repeat, with_gradients, {other_gradients}).reason, HasSubstr("dq differs"));
  recorded_run unstated = again;
  unstated.gave.chunk_size.reset();
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::repeat, whole, {unstated}); }),
              HasSubstr("chunk_size is not stated here, but 64 in"));
  recorded_run silent = whole;
  silent.gave.o = changed(whole.gave.o, [](std::size_t, double) { return 0.0; });
  EXPECT_EQ(judge(invariant_kind::repeat, silent, {renamed(silent, "again")}).judged, verdict::vacuous);
}

/// Sequences of a batch in another order, or some of them.
recorded_run rows_of_batch(const recorded_run& whole, const std::vector<std::size_t>& which, const std::string& name) {
  const auto take = [&](const tensor& t) {
    std::vector<std::size_t> shape = t.shape();
    const std::size_t width = t.size() / shape[0];
    shape[0] = which.size();
    std::vector<double> values;
    for (const std::size_t s : which) {
      for (std::size_t i = 0; i < width; ++i) values.push_back(t.at(s * width + i));
    }
    return tensor::from_doubles(t.element_format(), shape, values, t.name());
  };
  problem p = whole.given;
  for (tensor* t : {&p.q, &p.k, &p.v, &p.beta}) *t = take(*t);
  if (p.d_o) p.d_o = take(*p.d_o);
  if (p.d_final_state) p.d_final_state = take(*p.d_final_state);
  p.g = take(*p.g);
  if (p.initial_state) p.initial_state = take(*p.initial_state);
  return renamed(run_of(p, "fla-chunk-gdn"), name);
}

TEST(invariant_states, a_sequence_is_the_same_in_any_batch) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.batch = 3;
  g.tokens = 70;
  g.key_dim = g.value_dim = 8;
  g.key_heads = g.value_heads = 1;
  g.seed = 4;
  const recorded_run whole = run_of(generate(g), "fla-chunk-gdn");
  const recorded_run alone = rows_of_batch(whole, {1}, "alone"), turned = rows_of_batch(whole, {2, 0, 1}, "turned");
  const invariant_report same = judge(invariant_kind::batch, whole, {alone, turned});
  EXPECT_EQ(same.judged, verdict::holds) << same.reason;
  EXPECT_THAT(same.reason, HasSubstr("the bits are the same"));
  EXPECT_EQ(judge(invariant_kind::batch, whole, {rows_of_batch(whole, {0, 1, 2}, "same")}).judged, verdict::vacuous);

  recorded_run foreign = alone;  // what another slot of the batch gave
  foreign.gave.o = rows_of_batch(whole, {2}, "other").gave.o;
  EXPECT_EQ(judge(invariant_kind::batch, whole, {foreign}).judged, verdict::refuted);
  recorded_run stale = alone;  // the state of another sequence
  stale.gave.final_state = rows_of_batch(whole, {0}, "other").gave.final_state;
  EXPECT_EQ(judge(invariant_kind::batch, whole, {stale}).judged, verdict::refuted);
  recorded_run unknown = alone;
  unknown.given.v = testing::with(alone.given.v, 3, 7);
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::batch, whole, {unknown}); }), HasSubstr("matches no sequence of"));
}

TEST(invariant_states, gradients_of_a_sequence_are_the_same_in_any_batch) {
  generation g = testing::small_with_cotangents(op_kind::gated_delta_rule, 40);
  g.batch = 3;
  g.initial_state = "normal";
  const auto with_gradients = [](recorded_run run) {
    for (const auto& [name, exact] : solve_gradients(run.given).tensors) {
      std::vector<double> values = exact.value;
      for (double& x : values) x = round_nearest(x, bf16);
      run.gave.gradients.emplace(name, tensor::from_doubles(bf16, exact.shape, values, name));
    }
    return run;
  };
  const recorded_run whole = with_gradients(run_of(generate(g), "fla-chunk-gdn"));
  const recorded_run turned = with_gradients(rows_of_batch(whole, {2, 0, 1}, "turned"));
  const invariant_report same = judge(invariant_kind::batch, whole, {turned});
  EXPECT_EQ(same.judged, verdict::holds) << same.reason;
  EXPECT_THAT(same.reason, HasSubstr("elements of dinitial_state"));

  const auto changed_by = [&](const std::string& name, const std::function<double(std::size_t, double)>& by) {
    recorded_run other = turned;
    tensor& t = other.gave.gradients.at(name);
    std::vector<double> values = t.to_doubles();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = round_nearest(by(i, values[i]), bf16);
    t = tensor::from_doubles(bf16, t.shape(), values, name);
    return judge(invariant_kind::batch, whole, {other});
  };
  // Another order of a sum moves the last bit, which is no fault; a gradient of another sequence is one.
  const invariant_report last_bit = changed_by("dk", [](std::size_t i, double x) { return i % 3 == 0 ? x * (1 + 0x1p-8) : x; });
  EXPECT_EQ(last_bit.judged, verdict::holds) << last_bit.reason;
  EXPECT_THAT(last_bit.reason, HasSubstr("dk differ in bits"));
  for (const char* name : {"dq", "dk", "dv", "dbeta", "dg", "dinitial_state"}) {
    const tensor& t = turned.gave.gradients.at(name);
    const std::size_t each = t.size() / 3;
    const invariant_report slot = changed_by(name, [&](std::size_t i, double) { return t.at((i + each) % t.size()); });
    EXPECT_EQ(slot.judged, verdict::refuted) << name;
    EXPECT_THAT(slot.reason, HasSubstr(std::string(name) + " of sequence ")) << name;
    EXPECT_EQ(changed_by(name, [&](std::size_t i, double x) { return i < each ? 0 : x; }).judged, verdict::refuted) << name;
    EXPECT_EQ(changed_by(name, [&](std::size_t i, double x) { return i == 2 ? x / 0.0 : x; }).judged, verdict::refuted) << name;
  }
  recorded_run elsewhere = turned;
  elsewhere.given.d_o = testing::with(*turned.given.d_o, 1, 9);
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::batch, whole, {elsewhere}); }), HasSubstr("matches no sequence of"));
}

TEST(invariant_states, a_repeated_gradient_names_token_and_head) {
  generation g = testing::small_with_cotangents(op_kind::gated_delta_rule, 20);
  recorded_run whole = run_of(generate(g), "fla-chunk-gdn");
  for (const auto& [name, exact] : solve_gradients(whole.given).tensors) {
    std::vector<double> values = exact.value;
    for (double& x : values) x = round_nearest(x, bf16);
    whole.gave.gradients.emplace(name, tensor::from_doubles(bf16, exact.shape, values, name));
  }
  recorded_run again = renamed(whole, "again");
  EXPECT_THAT(judge(invariant_kind::repeat, whole, {again}).reason,
              HasSubstr("the 2 calls gave the same bits of o, final_state, dbeta, dg, dinitial_state, dk, dq, dv"));
  again.gave.gradients.at("dbeta") = testing::with(whole.gave.gradients.at("dbeta"), 2 * 7 + 1, 5);
  EXPECT_THAT(judge(invariant_kind::repeat, whole, {again}).reason,
              HasSubstr("dbeta differs at sequence 0, head 1, token 7: 0x"));
  again.given.d_o = testing::with(*whole.given.d_o, 1, 9);
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::repeat, whole, {again}); }), HasSubstr("tensor do at"));
}

TEST(invariant_states, both_paths_are_judged_by_one_oracle) {
  const problem p = gated_problem(70);
  const recorded_run chunked = run_of(p, "fla-chunk-gdn"), recurrent = renamed(run_of(p, "fla-recurrent-gdn", 0), "recurrent");
  const invariant_report both = judge(invariant_kind::path, chunked, {recurrent});
  EXPECT_EQ(both.judged, verdict::holds) << both.reason;
  EXPECT_THAT(both.reason, HasSubstr("elements differ"));
  const recorded_run faulty = renamed(run_of(p, "fla-recurrent-gdn", 0, "scale-missing"), "faulty");
  EXPECT_EQ(judge(invariant_kind::path, chunked, {faulty}).judged, verdict::refuted);
  EXPECT_THAT(thrown([&] { (void)judge(invariant_kind::path, chunked, {renamed(chunked, "again")}); }),
              HasSubstr("the path is chunk in every result"));
}

}  // namespace
}  // namespace deltaproof
