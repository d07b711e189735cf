// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What sound kernels do with a state, v_new and their decays, as plans say it: the emulation has the bits of a kernel that
// shares no code with it, the stage checker holds that kernel to its own plan and to no other.
#include "stages/ways.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

using testing::all_ways;
using testing::cases_of;
using ::testing::HasSubstr;
using testing::pipeline;
using testing::pipeline_case;
using testing::plan_of;
using testing::public_plan;
using testing::way;
using testing::wide;
using testing::x_format;

result emulated(const plan& declared, const problem& p, std::size_t chunk) {
  emulation_options options;
  options.stages = true;
  return emulate(p, variants(declared, p, path_kind::chunk, chunk).front(), options, 1);
}

std::size_t different(const tensor& a, const tensor& b) {
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  EXPECT_EQ(x.size(), y.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) count += x[i] == y[i] ? 0 : 1;
  return count;
}

TEST(ways, of_a_plan_are_emulated_with_the_bits_of_an_independent_kernel) {
  for (const way& w : all_ways()) {
    for (const auto& [name, c] : cases_of(w)) {
      SCOPED_TRACE(name);
      pipeline kernel(c);
      const result theirs = kernel.run(), ours = emulated(plan_of(w, c.op), kernel.given(), c.chunk);
      EXPECT_EQ(different(ours.o, theirs.o), 0U);
      EXPECT_EQ(different(*ours.final_state, *theirs.final_state), 0U);
      for (const char* stage : {"w", "u", "h", "v_new"})
        EXPECT_EQ(different(ours.stages.at(stage), theirs.stages.at(stage)), 0U) << stage;
      // The way can be seen: a kernel of the public plan has other bits.
      if (std::string(w.name) == "as the public kernels") continue;
      const result other = emulated(plan_of(all_ways().front(), c.op), kernel.given(), c.chunk);
      EXPECT_GT(different(ours.o, other.o) + different(*ours.final_state, *other.final_state) +
                    different(ours.stages.at("A"), other.stages.at("A")),
                ours.o.size() / 100);
    }
  }
}

stage_roundings roundings_for(const plan& declared, const pipeline_case& c, const problem& p) {
  stage_roundings r = roundings_of(declared, p, path_kind::chunk, c.chunk);
  r.output_span = c.output_span;
  return r;
}

TEST(ways, of_a_plan_are_what_its_stages_are_held_to) {
  for (const way& w : all_ways()) {
    for (auto [name, c] : cases_of(w)) {
      for (std::uint32_t seed = 1; seed <= scaled(2); ++seed) {
        SCOPED_TRACE(name + ", seed " + std::to_string(seed));
        c.seed = seed;
        c.ways.added_to_state = seed % 2 == 0;
        c.chunk = seed % 2 == 0 ? 16 : 24;
        pipeline kernel(c);
        const problem& p = kernel.given();
        const result r = kernel.run();
        const stage_report own = measure_stages(p, r, roundings_for(plan_of(w, c.op), c, p));
        EXPECT_EQ(own.outcome(), stage_outcome::within) << to_text(own);
        EXPECT_GT(own.find("o")->worst->ratio, w.nearest) << "a bound is no use if nothing comes near it";
        if (*w.stage == '\0') continue;
        const stage_roundings others = roundings_for(plan_of(all_ways().front(), c.op), c, p);
        const stage_report strict = measure_stages(p, r, others);
        ASSERT_NE(first_bad_stage(strict), nullptr) << to_text(strict);
        if (!w.finer) continue;
        const stage_report generous = measure_stages_at_least(p, r, others);
        EXPECT_EQ(first_bad_stage(generous), nullptr) << to_text(generous);
      }
    }
  }
}

TEST(ways, that_a_plan_says_and_a_kernel_does_not_are_seen) {
  for (const way& w : all_ways()) {
    // Rounding less than a plan says is no fault: these plans say less rounding than the public kernels do.
    if (*w.stage == '\0' || w.allows) continue;
    pipeline_case c = cases_of(w)[w.scalar || w.gated ? 0 : 1].second;
    c.ways = {};
    SCOPED_TRACE(w.name);
    pipeline kernel(c);
    const result r = kernel.run();
    const stage_report report = measure_stages(kernel.given(), r, roundings_for(plan_of(w, c.op), c, kernel.given()));
    EXPECT_NE(first_bad_stage(report), nullptr) << to_text(report);
  }
}

// Faults of the state and the read-out are found under every plan, also where a kernel is allowed to round less.
TEST(ways, leave_planted_faults_nowhere_to_hide) {
  for (const way& w : all_ways()) {
    for (const std::size_t which : {std::size_t{0}, w.scalar || w.gated ? std::size_t{4} : std::size_t{5}}) {
      pipeline_case c = cases_of(w)[which].second;
      c.tokens = 150;
      c.cu_seqlens.clear();
      for (const testing::planted& fault : testing::planted_faults()) {
        if (fault.stage != "h" && fault.stage != "v_new" && fault.stage != "o" && fault.stage != "final_state") continue;
        const bool gated = c.op != op_kind::delta_rule;
        if (!gated && (fault.name.find("gate") != std::string::npos || fault.name.find("decayed") != std::string::npos)) continue;
        if (fault.name == "o: not scaled" && c.op == op_kind::kda) continue;
        // Clipped decays are alike.
        if (c.ways.clipped && fault.name.find("row before") != std::string::npos) continue;
        // The last of a token's steps has no decay of its own.
        if (c.steps > 1 && fault.name.find("row before") != std::string::npos) continue;
        // Where a stage reads what is known within a rounding alone, a fault of that size is not seen after it.
        const bool of_a_rounding =
            fault.name.find("bf16") != std::string::npos || fault.name.find("truncated") != std::string::npos;
        if (of_a_rounding && w.allows) continue;
        // What is not rounded cannot be cut off.
        if (fault.name == "v_new: truncated" && c.ways.wide_value_in_o) continue;
        SCOPED_TRACE(std::string(w.name) + ", " + std::string(name_of(c.op)) + ", " + fault.name);
        pipeline kernel(c);
        const result r = kernel.run(fault.name);
        const stage_report report =
            measure_stages_at_least(kernel.given(), r, roundings_for(plan_of(w, c.op), c, kernel.given()));
        const stage_measurement* const first = first_bad_stage(report);
        ASSERT_NE(first, nullptr) << to_text(report);
        const bool in_state = fault.stage == "h" && fault.name != "h: truncated copy";
        // What multiplies the state itself shows it before its copy does.
        const bool by_state = (c.ways.w_by_state && first->name == "v_new") || (c.ways.q_by_state && first->name == "o");
        const bool shown = in_state && (first->name == "final_state" || by_state);
        EXPECT_TRUE(first->name == fault.stage || shown) << to_text(report);
      }
    }
  }
}

// Where h or v_new is not stored it is rebuilt, as the way has it.
TEST(ways, are_judged_where_stages_are_missing) {
  for (const way& w : all_ways()) {
    for (const std::vector<std::string>& missing : {std::vector<std::string>{"h"}, {"v_new"}, {"h", "v_new"}, {"u"}}) {
      pipeline_case c = cases_of(w)[w.scalar || w.gated ? 0 : 1].second;
      SCOPED_TRACE(std::string(w.name) + " without " + missing.front() + (missing.size() > 1 ? " and " + missing.back() : ""));
      pipeline kernel(c);
      const auto without = [&](result r) {
        for (const std::string& stage : missing) r.stages.erase(stage);
        return r;
      };
      const stage_roundings declared = roundings_for(plan_of(w, c.op), c, kernel.given());
      const stage_report right = measure_stages(kernel.given(), without(kernel.run()), declared);
      EXPECT_EQ(first_bad_stage(right), nullptr) << to_text(right);
      EXPECT_GT(right.find("o")->judged, 0U) << to_text(right);
      if (w.finer) {
        const stage_roundings others = roundings_for(plan_of(all_ways().front(), c.op), c, kernel.given());
        const stage_report generous = measure_stages_at_least(kernel.given(), without(kernel.run()), others);
        EXPECT_EQ(first_bad_stage(generous), nullptr) << to_text(generous);
      }
      const stage_report wrong = measure_stages_at_least(kernel.given(), without(kernel.run("o: diagonal masked")), declared);
      ASSERT_NE(first_bad_stage(wrong), nullptr) << to_text(wrong);
      EXPECT_EQ(first_bad_stage(wrong)->name, "o") << to_text(wrong);
    }
  }
}

// Each key that is a list is chosen whatever the others are.
TEST(ways, of_lists_may_be_chosen_one_by_one) {
  const std::vector<way>& all = all_ways();
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    plan open = plan_of(all.front(), op);
    const format_choice stored{format_choice::kind::stored, fp32};
    open.v_new.state_operand = open.o.state_operand = {stored, wide};
    open.o.read_store = {{format_choice::kind::none, fp32}, x_format};
    open.l2norm.epsilon = {std::nullopt, 1e-5};
    if (op != op_kind::kda) {
      open.v_new.decay = {write_decay::v_new, write_decay::k};
      open.o.decay = {read_decay::product, read_decay::q};
    }
    for (unsigned chosen = 0; chosen < 64; ++chosen) {
      pipeline_case c;
      c.op = op;
      c.chunk = 16;
      c.tokens = 60;
      c.l2norm = true;
      c.key_size = 1.0 / 64;
      c.ways.w_by_state = (chosen & 1) != 0;
      c.ways.q_by_state = (chosen & 2) != 0;
      c.ways.read_rounded = (chosen & 4) != 0;
      c.ways.epsilon = (chosen & 8) != 0 ? 1e-5 : 1e-6;
      c.ways.decay_on_k = (chosen & 16) != 0;
      c.ways.decay_on_q = (chosen & 32) != 0;
      if (op == op_kind::kda && chosen >= 16) break;
      c.seed = chosen + 1;
      SCOPED_TRACE(std::string(name_of(op)) + ", choice " + std::to_string(chosen));
      pipeline kernel(c);
      const stage_report report = measure_stages(kernel.given(), kernel.run(), roundings_for(open, c, kernel.given()));
      EXPECT_EQ(report.outcome(), stage_outcome::within) << to_text(report);
      c.ways.epsilon = 3e-6;
      pipeline neither(c);
      EXPECT_NE(first_bad_stage(measure_stages(neither.given(), neither.run(), roundings_for(open, c, neither.given()))),
                nullptr);
    }
  }
}

check_report judged(const problem& p, const result& r, const plan& declared, bool power) {
  check_options options;
  options.plans = {declared};
  options.threads = 1;
  options.judge.power = power;
  return check(p, r, options);
}

pipeline_case small_case(op_kind op, format operands) {
  pipeline_case c;
  c.op = op;
  c.operands = operands;
  c.chunk = 16;
  c.tokens = op == op_kind::gated_delta_product ? 45 : 90;
  c.keys = c.values = 16;
  if (op == op_kind::gated_delta_product) c.steps = c.output_span = 2;
  return c;
}

// More accurate than the letter of the plan at every chunk, with h stored as the plan says.
TEST(ways, with_w_by_the_fp32_state_hold_under_the_public_plans) {
  for (const op_kind op : {op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda, op_kind::gated_delta_product}) {
    for (const format operands : {bf16, fp16}) {
      pipeline_case c = small_case(op, operands);
      c.ways.w_by_state = true;
      for (std::uint32_t seed = 1; seed <= scaled(2); ++seed) {
        SCOPED_TRACE(std::string(name_of(op)) + ", " + std::string(name_of(operands)) + ", seed " + std::to_string(seed));
        c.seed = seed;
        c.cu_seqlens.clear();
        if (seed % 2 == 0) c.cu_seqlens = {0, 16, 17, static_cast<std::int64_t>(c.tokens)};
        pipeline kernel(c);
        result r = kernel.run();
        const check_report with_stages = judged(kernel.given(), r, plan_named(public_plan(op)), operands == bf16 && seed == 1);
        EXPECT_EQ(with_stages.judged, verdict::holds) << with_stages.reason;
        r.stages.clear();
        const check_report alone = judged(kernel.given(), r, plan_named(public_plan(op)), false);
        EXPECT_EQ(alone.judged, verdict::holds) << alone.reason;
        r = kernel.run("v_new: plus for minus");
        EXPECT_EQ(judged(kernel.given(), r, plan_named(public_plan(op)), false).conformance->first_bad_stage, "v_new");
      }
    }
  }
}

// A norm of 1e-5 under the root is the kernel's own: its plan is kept, and the verdict says what the reference divides by.
TEST(ways, of_another_epsilon_are_kept_and_said) {
  pipeline_case c = small_case(op_kind::gated_delta_rule, bf16);
  c.l2norm = true;
  c.ways.epsilon = 1e-5;
  plan own = plan_named("fla-chunk-gdn");
  own.l2norm.epsilon = {1e-5};
  const auto said = [](const check_report& report) {
    for (const range_report& range : report.conformance->adequacy.ranges) {
      if (range.what == "l2norm epsilon") return range;
    }
    return range_report{};
  };
  {  // Long rows: the two are alike, and both plans hold.
    pipeline kernel(c);
    const check_report report = judged(kernel.given(), kernel.run(), own, false);
    EXPECT_EQ(report.judged, verdict::holds) << report.reason;
    EXPECT_LT(said(report).reaches, 1e-5);
    EXPECT_THAT(said(report).says, ::testing::AllOf(HasSubstr("1e-05"), HasSubstr("1e-06"), HasSubstr("reference")));
    EXPECT_THAT(to_text(report, {}), HasSubstr("1e-05"));
    EXPECT_EQ(judged(kernel.given(), kernel.run(), plan_named("fla-chunk-gdn"), false).judged, verdict::holds);
  }
  {  // Rows of |x|^2 near 1e-3: beyond roundings, within what the plan says.
    c.key_size = 1.0 / 128;
    pipeline kernel(c);
    const result r = kernel.run();
    const check_report report = judged(kernel.given(), r, own, false);
    EXPECT_EQ(report.conformance->conforms, verdict::holds) << report.reason;
    EXPECT_GT(said(report).reaches, 2e-3);
    const check_report other = judged(kernel.given(), r, plan_named("fla-chunk-gdn"), false);
    EXPECT_EQ(other.judged, verdict::refuted);
    EXPECT_EQ(other.conformance->first_bad_stage, "A");
    EXPECT_TRUE(said(other).what.empty());
  }
  {  // Rows of |x|^2 near 1e-6: the plan is kept and not adequate, since the problem asks for another norm.
    c.key_size = 1.0 / 4096;
    pipeline kernel(c);
    const check_report report = judged(kernel.given(), kernel.run(), own, false);
    EXPECT_EQ(report.conformance->conforms, verdict::holds) << report.reason;
    EXPECT_EQ(report.judged, verdict::refuted);
    EXPECT_FALSE(report.conformance->adequacy.adequate);
    EXPECT_THAT(to_text(report, {}), HasSubstr("1e-05"));
  }
}

const std::filesystem::path plans_of_users = std::filesystem::path(DELTAPROOF_SOURCE_DIR) / "tests/plans";

// What public kernels do otherwise than fla's, as their users write it down: each arithmetic of each plan keeps it, and what
// the plan of fla's kernel says otherwise is seen in a stage.
TEST(ways, of_public_kernels_are_plans_that_their_emulations_keep) {
  struct row {
    const char* name;
    op_kind op;
    const char* other;
  };
  for (const row& x : {row{"cpu-bf16-chunk", op_kind::gated_delta_rule, "fla-chunk-gdn"},
                       row{"bf16-chunk-decay-on-k", op_kind::gated_delta_rule, "fla-chunk-gdn"}}) {
    const plan declared = plan_named((plans_of_users / (std::string(x.name) + ".toml")).string());
    EXPECT_EQ(declared.name, x.name);
    for (const format dtype : declared.dtypes) {
      generation g;
      g.op = x.op;
      g.dtype = dtype;
      g.tokens = 150;
      g.key_dim = 16;
      g.value_dim = 12;
      g.key_heads = g.value_heads = 1;
      problem p = generate(g);
      p.qk_l2norm = true;
      const std::size_t chunk = declared.chunk.back();
      const auto all = variants(declared, p, path_kind::chunk, chunk);
      const stage_roundings roundings = roundings_of(declared, p, path_kind::chunk, chunk);
      for (const plan_variant& v : all) {
        SCOPED_TRACE(v.name + ", " + std::string(name_of(dtype)));
        emulation_options options;
        options.stages = true;
        const result r = emulate(p, v, options, 1);
        const stage_report own = measure_stages(p, r, roundings);
        EXPECT_EQ(first_bad_stage(own), nullptr) << to_text(own);
        EXPECT_EQ(own.outcome(), stage_outcome::within) << to_text(own);
        if (&v == &all.back()) {
          const check_report report = judged(p, r, declared, false);
          EXPECT_EQ(report.judged, verdict::holds) << report.reason;
        }
        const stage_report strict = measure_stages(p, r, roundings_of(plan_named(x.other), p, path_kind::chunk, chunk));
        EXPECT_NE(first_bad_stage(strict), nullptr);
      }
    }
  }
}

// Any stage may be missing, at a scale that is no power of two, and gates may be natural logarithms.
TEST(ways, of_all_presets_are_judged_by_the_stages_that_are_stored) {
  std::size_t judged_outputs = 0;
  for (const op_kind op : {op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda}) {
    for (const std::size_t tokens : {std::size_t{1}, std::size_t{75}}) {
      generation g;
      g.op = op;
      g.tokens = tokens;
      g.key_dim = 24;
      g.value_dim = 12;
      g.key_heads = g.value_heads = 1;
      const problem p = generate(g);
      for (const plan* declared : candidate_plans(p, path_kind::chunk)) {
        const std::size_t chunk = declared->chunk.empty() ? 64 : declared->chunk.back();
        emulation_options options;
        options.stages = true;
        const result in_log2 = emulate(p, variants(*declared, p, path_kind::chunk, chunk).front(), options, 1);
        options.natural_exponents = true;
        const result natural = emulate(p, variants(*declared, p, path_kind::chunk, chunk).front(), options, 1);
        for (const result& whole : {in_log2, natural}) {
          for (const auto& stage : whole.stages) {
            SCOPED_TRACE(declared->name + " without " + stage.first + ", " + std::to_string(tokens) + " tokens");
            result r = whole;
            r.stages.erase(stage.first);
            stage_roundings roundings = roundings_of(*declared, p, path_kind::chunk, chunk);
            if (r.stages.count("Aqk") != 0) roundings.output_span = 1;
            // As `check` measures: what is stored of natural logarithms is another copy of G.
            const stage_report report = measure_stages_at_least(p, r, roundings);
            EXPECT_EQ(first_bad_stage(report), nullptr) << to_text(report);
            if (const stage_measurement* const o = report.find("o")) judged_outputs += o->judged > 0 ? 1 : 0;
          }
        }
      }
    }
  }
  EXPECT_GT(judged_outputs, 400U);
}

// Where v_new is kept as computed, k is what is cut off.
TEST(ways, in_which_k_alone_is_narrowed_show_an_update_that_is_cut_off) {
  const way& kept =
      *std::find_if(all_ways().begin(), all_ways().end(), [](const way& w) { return std::string(w.name) == "v_new kept"; });
  const plan declared = plan_of(kept, op_kind::kda);
  const auto cut = std::find_if(faults(pass_kind::forward).begin(), faults(pass_kind::forward).end(),
                                [](const fault& f) { return f.name == "update-truncated"; });
  ASSERT_NE(cut, faults(pass_kind::forward).end());
  const problem p = pipeline(small_case(op_kind::kda, bf16)).given();
  emulation_options options;
  options.stages = true;
  options.planted = &*cut;
  const result r = emulate(p, variants(declared, p, path_kind::chunk, 16).front(), options, 1);
  const stage_report report = measure_stages(p, r, roundings_of(declared, p, path_kind::chunk, 16));
  EXPECT_GT(report.find("final_state")->bad, 0U) << to_text(report);
}

// q times a scale that is no power of two is left as computed; the products with it are rounded all the same.
TEST(ways, that_leave_the_scaled_q_unrounded_hold_where_its_products_are_rounded) {
  generation g;
  g.regime = "no-decay";
  g.op = op_kind::gated_delta_rule;
  g.tokens = 33;
  g.key_dim = 5;
  g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  const problem p = generate(g);
  const plan declared = plan_named("easydel-chunk");
  plan_variant less = variants(declared, p, path_kind::chunk, 16).front();
  less.o.operand = {fp32, false};
  emulation_options options;
  options.stages = true;
  const stage_report report =
      measure_stages_at_least(p, emulate(p, less, options, 1), roundings_of(declared, p, path_kind::chunk, 16));
  EXPECT_EQ(report.find("o")->bad, 0U) << describe(*report.find("o"));
  EXPECT_TRUE(report.find("o")->finer);
}

}  // namespace
}  // namespace deltaproof
