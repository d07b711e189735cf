// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// flush and cp: what holds for a correct server, tables of planted faults, each refuted, and what is vacuous or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/invariant_cases.hpp"
#include "deltaproof/check/invariant.hpp"
#include "studies/state_life/servers.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

using namespace detail::state_life;
using ::testing::HasSubstr;
using testing::quick;
using testing::thrown;

problem sequence_with(const std::string& gate, std::size_t tokens = 90, std::uint64_t seed = 7) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.gate = gate;
  g.tokens = tokens;
  g.key_dim = 16;
  g.value_dim = 12;
  g.key_heads = g.value_heads = 2;
  g.initial_state = "normal";
  g.seed = seed;
  return generate(g);
}

const state_equation* equation_named(const invariant_report& r, const std::string& name, std::size_t part) {
  for (const state_equation& e : r.equations) {
    if (e.name == name && e.part == part) return &e;
  }
  return nullptr;
}

invariant_report flushed(const problem& p, const ring_options& how) {
  const std::vector<recorded_run> parts{ring_decode(p, how, "ring")};
  return check_invariant(invariant_kind::flush, ring_decode(p, {}, "plain"), parts, quick());
}

TEST(invariant_exchange, a_correct_ring_holds_and_says_what_its_formats_cost) {
  const problem p = sequence_with("-0.01");
  for (const std::size_t every : {std::size_t{1}, std::size_t{4}, std::size_t{16}}) {
    const invariant_report r = flushed(p, {every, bf16, fp32, fp32, fp32, ring_fault::none});
    EXPECT_EQ(r.judged, verdict::holds) << every << ": " << r.reason;
    EXPECT_EQ(r.equations.size(), 5U);
    for (const state_equation& e : r.equations) EXPECT_EQ(e.judged, verdict::holds) << every << " " << e.name << " " << e.missing;
  }
  const invariant_report wide = flushed(p, {8, bf16, fp32, fp32, fp32, ring_fault::none});
  const invariant_report narrow = flushed(p, {8, bf16, bf16, bf16, bf16, ring_fault::none});
  EXPECT_EQ(narrow.judged, verdict::holds) << narrow.reason;
  const double cheap = equation_named(wide, "cost", 0)->residual, dear = equation_named(narrow, "cost", 0)->residual;
  EXPECT_GT(dear, 1.5 * cheap) << "a bf16 state costs more than the rounding of o";
  EXPECT_LT(dear, 8 * equation_named(narrow, "cost", 0)->expected);
}

TEST(invariant_exchange, planted_faults_of_rings_are_refuted) {
  const problem p = sequence_with("-0.01");
  const std::vector<std::pair<const char*, ring_fault>> faults{
      {"a flush that never reached the state", ring_fault::lost_flush},
      {"the ring's last entry is not replayed", ring_fault::last_entry_lost},
      {"the last gate is applied twice", ring_fault::gate_twice},
      {"an entry of the lap before", ring_fault::entry_of_last_lap},
      {"one row with another scale", ring_fault::foreign_scale},
      {"what is in the ring at the end is not saved", ring_fault::unsaved_tail},
      {"the flush comes two tokens early", ring_fault::flush_early}};
  std::cout << std::left << std::setw(50) << "fault of a ring of 16" << "verdict\n";
  for (const auto& [what, fault] : faults) {
    for (const format& f : {fp32, bf16}) {
      const invariant_report r = flushed(p, {16, bf16, f, fp32, f, fault});
      std::cout << std::setw(50) << what << name_of(r.judged) << "\n";
      EXPECT_EQ(r.judged, verdict::refuted) << what;
      if (fault == ring_fault::unsaved_tail) continue;
      const state_equation* replay = equation_named(r, "replay", 0);
      ASSERT_NE(replay, nullptr);
      EXPECT_EQ(replay->judged, verdict::refuted) << what;
      EXPECT_EQ(replay->worst->window, 1U) << what;
    }
  }
}

TEST(invariant_exchange, a_ring_of_one_token_is_plain_decode_bit_for_bit) {
  const problem p = sequence_with("-0.01");
  const recorded_run plain = ring_decode(p, {}, "plain");
  recorded_run one = ring_decode(p, {1, bf16, fp32, fp32, fp32, ring_fault::none}, "ring");
  const auto judged = [&] {
    const std::vector<recorded_run> parts{one};
    return check_invariant(invariant_kind::flush, plain, parts, quick());
  };
  EXPECT_EQ(judged().judged, verdict::holds);
  one.gave.o = testing::with(one.gave.o, 30, round_nearest(one.gave.o.at(30) * (1 + 0x1p-7), bf16));
  EXPECT_THAT(judged().reason,
              HasSubstr("with a ring of one token a kernel must give the bits of plain decode, but o differs at"));
  one.exchanged.flush_every = 4;
  one.exchanged.tensors.clear();
  const invariant_report four = judged();
  EXPECT_EQ(four.judged, verdict::holds) << "one last bit is no fault of a ring of four: " << four.reason;
  EXPECT_THAT(equation_named(four, "replay", 0)->missing, HasSubstr("lacks ring_k"));
}

TEST(invariant_exchange, what_a_ring_cannot_show_is_vacuous_or_refused) {
  EXPECT_EQ(flushed(sequence_with("-0.01", 12), {16, bf16, fp32, fp32, fp32, ring_fault::none}).judged, verdict::vacuous);
  EXPECT_EQ(flushed(sequence_with("-20"), {16, bf16, fp32, fp32, fp32, ring_fault::none}).judged, verdict::vacuous);
  const problem p = sequence_with("-0.01");
  const recorded_run plain = ring_decode(p, {}, "plain");
  EXPECT_THAT(thrown([&] { (void)check_invariant(invariant_kind::flush, plain, std::vector{plain}, quick()); }),
              HasSubstr("flush_every is absent"));
  const recorded_run ring = ring_decode(p, {4, bf16, fp32, fp32, fp32, ring_fault::none}, "ring");
  EXPECT_THAT(thrown([&] { (void)check_invariant(invariant_kind::flush, ring, std::vector{ring}, quick()); }),
              HasSubstr("record the whole as plain decode"));
}

invariant_report over_ranks(const problem& p, const rank_options& how) {
  return check_invariant(invariant_kind::cp, emulated(p, rank_plan, 64, "whole"), split_over_ranks(p, how), quick());
}

TEST(invariant_exchange, correct_ranks_hold) {
  const problem p = sequence_with("-0.01", 200);
  for (const fold_kind fold : {fold_kind::sequential, fold_kind::tree}) {
    const invariant_report r = over_ranks(p, {{70, 101, 150}, fold, {}, rank_fault::none});
    EXPECT_EQ(r.judged, verdict::holds) << r.reason;
    EXPECT_EQ(r.equations.size(), 4U + 4U + 3U);
    for (const state_equation& e : r.equations) EXPECT_EQ(e.judged, verdict::holds) << e.name << " " << e.missing;
  }
}

TEST(invariant_exchange, planted_faults_of_ranks_are_refuted) {
  const problem p = sequence_with("-0.01", 200);
  const std::vector<std::pair<const char*, rank_fault>> faults{
      {"the transition is transposed in the fold", rank_fault::transposed},
      {"a gate is applied twice at the split", rank_fault::gate_twice},
      {"the history is left out, and not declared", rank_fault::history_lost},
      {"a rank's summary is skipped", rank_fault::rank_skipped},
      {"the summary of another head", rank_fault::foreign_head},
      {"the summary lacks the rank's last token", rank_fault::tail_token_lost},
      {"the summary does not start from zeros", rank_fault::not_from_zeros}};
  std::cout << std::left << std::setw(50) << "fault of the second of three ranks" << "verdict\n";
  for (const auto& [what, fault] : faults) {
    for (const fold_kind fold : {fold_kind::sequential, fold_kind::tree}) {
      const invariant_report r = over_ranks(p, {{70, 140}, fold, {}, fault});
      std::cout << std::setw(50) << what << name_of(r.judged) << "\n";
      EXPECT_EQ(r.judged, verdict::refuted) << what;
      const bool of_summary =
          fault == rank_fault::foreign_head || fault == rank_fault::tail_token_lost || fault == rank_fault::not_from_zeros;
      const state_equation* e = of_summary ? equation_named(r, "summary", 1) : equation_named(r, "fold", 2);
      ASSERT_NE(e, nullptr);
      EXPECT_EQ(e->judged, verdict::refuted) << what;
    }
  }
}

TEST(invariant_exchange, a_history_may_be_left_out_where_that_is_declared_and_the_gates_forget_it) {
  const problem forgets = sequence_with("-0.3", 200);
  const invariant_report holds = over_ranks(forgets, {{70, 140}, fold_kind::sequential, 1e-6, rank_fault::none});
  ASSERT_NE(equation_named(holds, "loss", 2), nullptr);
  EXPECT_LT(equation_named(holds, "loss", 2)->residual, 1e-6);
  EXPECT_NE(holds.judged, verdict::refuted) << holds.reason;
  // A rank of four tokens keeps its history, which o shows; seventy tokens write over most of it, whatever the gates.
  const problem keeps = sequence_with("-0.02", 200);
  const invariant_report loses = over_ranks(keeps, {{60, 64}, fold_kind::sequential, 0.95, rank_fault::none});
  EXPECT_EQ(loses.judged, verdict::refuted);
  EXPECT_EQ(equation_named(loses, "loss", 2)->judged, verdict::refuted) << loses.reason;
  EXPECT_EQ(equation_named(loses, "fold", 2)->judged, verdict::holds);
  invariant_options allowed = quick();
  allowed.check.judge.accuracy = 0.9;
  const invariant_report accepted =
      check_invariant(invariant_kind::cp, emulated(keeps, rank_plan, 64, "whole"),
                      split_over_ranks(keeps, {{60, 64}, fold_kind::sequential, 0.95, rank_fault::none}), allowed);
  EXPECT_EQ(accepted.judged, verdict::holds) << accepted.reason;
}

TEST(invariant_exchange, ranks_that_forget_are_vacuous_and_gaps_are_refused) {
  EXPECT_EQ(over_ranks(sequence_with("-20", 200), {{70, 140}, fold_kind::sequential, {}, rank_fault::none}).judged,
            verdict::vacuous);
  const problem p = sequence_with("-0.01", 200);
  const recorded_run whole = emulated(p, rank_plan, 64, "whole");
  std::vector<recorded_run> ranks = split_over_ranks(p, {{70, 140}, fold_kind::sequential, {}, rank_fault::none});
  const std::vector<recorded_run> gap{ranks[0], ranks[2]};
  EXPECT_THAT(thrown([&] { (void)check_invariant(invariant_kind::cp, whole, gap, quick()); }),
              HasSubstr("is not the same as token"));
  ranks[1].exchanged.tensors.clear();
  const invariant_report silent = check_invariant(invariant_kind::cp, whole, ranks, quick());
  EXPECT_EQ(silent.judged, verdict::holds) << "states are judged all the same";
  EXPECT_THAT(equation_named(silent, "fold", 2)->missing, HasSubstr("part 2 lacks rank_state"));
}

TEST(invariant_exchange, files_carry_the_ring_and_the_summaries) {
  const problem p = sequence_with("-0.01");
  recorded_run ring = ring_decode(p, {16, bf16, bf16, fp32, fp32, ring_fault::none}, "ring");
  const auto folder = std::filesystem::path(::testing::TempDir());
  const std::string given = (folder / "ring.problem.safetensors").string(), gave = (folder / "ring.result.safetensors").string();
  write_problem(given, p);
  std::vector<tensor> tensors;
  for (const auto& [name, t] : ring.exchanged.tensors) tensors.push_back(t.named(name));
  write_result(gave, ring.gave, state_exchange_metadata(ring.exchanged), tensors);
  notes_list notes;
  const recorded_run read = read_run(given, gave, notes);
  EXPECT_EQ(read.exchanged.flush_every, 16U);
  EXPECT_EQ(read.exchanged.tensors.size(), 4U);
  EXPECT_THAT(notes, ::testing::Not(::testing::Contains(HasSubstr("is unknown"))));
  write_result(gave, ring.gave, {{"flush_every", "0"}}, tensors);
  EXPECT_THAT(thrown([&] { (void)read_run(given, gave, notes); }), HasSubstr("flush_every is \"0\"; use a whole number"));
  write_result(gave, ring.gave, {{"flush_every", "8"}}, tensors);
  EXPECT_THAT(thrown([&] { (void)read_run(given, gave, notes); }),
              HasSubstr("ring_state: shape [1, 6, 2, 16, 12] should be [1, 12,"));
}

}  // namespace
}  // namespace deltaproof
