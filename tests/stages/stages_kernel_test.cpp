// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Whole kernels, correct ones of every kind and those with one line wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/stages/stages.hpp"
#include "stages/parts.hpp"
#include "stages/stages_pipeline.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

using testing::measure;
using testing::pipeline;
using testing::pipeline_case;

void expect_all_within(const pipeline_case& c) {
  pipeline kernel(c);
  const result r = kernel.run();
  const stage_report report = measure(kernel.given(), r, c.output_span, c.safe_gate);
  const stage_measurement* const bad = first_bad_stage(report);
  EXPECT_EQ(bad, nullptr) << describe(*bad) << "\n" << to_text(report);
  EXPECT_EQ(report.outcome(), stage_outcome::within) << to_text(report);
  for (const stage_measurement& m : report.stages) {
    EXPECT_GT(m.judged, 0U) << m.name;
    EXPECT_EQ(m.unbounded, 0U) << m.name;
    // In fp32 the half ulp of storing does not stand out from the other roundings.
    EXPECT_TRUE(m.bias.count > 0 || m.dtype == "F32") << m.name << "\n" << to_text(report);
    EXPECT_LE(std::fabs(m.bias.mean), 5.5 * m.bias.standard_error + m.bias.allowance) << m.name << "\n" << to_text(report);
  }
  if (c.operands == fp32) return;
  // A bound is no use if nothing comes near it.
  for (const char* stage : {"Ai", "w", "u", "h", "v_new", "o"}) EXPECT_GT(report.find(stage)->worst->ratio, 0.7) << stage;
}

std::vector<std::pair<std::string, pipeline_case>> correct_cases() {
  std::vector<std::pair<std::string, pipeline_case>> all;
  const auto add = [&all](const char* name, auto change) {
    pipeline_case c;
    change(c);
    all.emplace_back(name, c);
  };
  add("gated", [](pipeline_case&) {});
  add("delta, beta to 2", [](pipeline_case& c) { c.op = op_kind::delta_rule, c.largest_beta = 2; });
  add("bf16 beta", [](pipeline_case& c) { c.beta_fp32 = false; });
  add("kda", [](pipeline_case& c) { c.op = op_kind::kda; });
  add("kda, decay 0", [](pipeline_case& c) { c.op = op_kind::kda, c.resets = true; });
  add("gated, decay 0", [](pipeline_case& c) { c.resets = true; });
  add("no initial state", [](pipeline_case& c) { c.initial_state = false; });
  add("batches, GVA", [](pipeline_case& c) { c.batch = 2, c.key_heads = 2, c.value_heads = 4, c.tokens = 70; });
  add("varlen", [](pipeline_case& c) { c.cu_seqlens = {0, 1, 1, 17, 65, 100}; });
  add("varlen kda", [](pipeline_case& c) { c.op = op_kind::kda, c.cu_seqlens = {0, 47, 96, 100}; });
  add("l2norm", [](pipeline_case& c) { c.l2norm = true; });
  add("two steps", [](pipeline_case& c) { c.op = op_kind::gated_delta_product, c.steps = 2; });
  add("three steps, tail, decay 0",
      [](pipeline_case& c) { c.op = op_kind::gated_delta_product, c.steps = 3, c.chunk = 32, c.tokens = 45, c.resets = true; });
  add("two steps, read-out over tokens",
      [](pipeline_case& c) { c.op = op_kind::gated_delta_product, c.steps = 2, c.output_span = 2; });
  add("two steps, varlen, read-out over tokens", [](pipeline_case& c) {
    c.op = op_kind::gated_delta_product, c.steps = 2, c.output_span = 2, c.cu_seqlens = {0, 30, 79, 100};
  });
  add("two steps, two batches", [](pipeline_case& c) { c.op = op_kind::gated_delta_product, c.steps = 2, c.batch = 2; });
  add("chunk of 16", [](pipeline_case& c) { c.chunk = 16; });
  add("tf32 cut off in the merges", [](pipeline_case& c) { c.chunk = 64, c.tf32_cut = true; });
  add("tf32 cut off, kda", [](pipeline_case& c) { c.op = op_kind::kda, c.tf32_cut = true; });
  add("tf32 cut off, kda, decay 0",
      [](pipeline_case& c) { c.op = op_kind::kda, c.tf32_cut = true, c.resets = true, c.chunk = 8; });
  add("tf32 cut off, safe gate", [](pipeline_case& c) { c.op = op_kind::kda, c.tf32_cut = c.safe_gate = true, c.tokens = 110; });
  add("fp16", [](pipeline_case& c) { c.operands = fp16; });
  add("fp16 kda, fp16 beta to 2",
      [](pipeline_case& c) { c.op = op_kind::kda, c.operands = fp16, c.beta_fp32 = false, c.largest_beta = 2; });
  add("fp32", [](pipeline_case& c) { c.operands = fp32; });
  add("fp32 kda", [](pipeline_case& c) { c.op = op_kind::kda, c.operands = fp32; });
  add("vk", [](pipeline_case& c) { c.layout = layout_kind::vk; });
  return all;
}

TEST(stages, of_a_correct_kernel_are_within_bound_and_unbiased) {
  for (auto& [name, c] : correct_cases()) {
    for (std::uint32_t seed = 1; seed <= scaled(1); ++seed) {
      SCOPED_TRACE(name + ", seed " + std::to_string(seed));
      c.seed = seed;
      expect_all_within(c);
    }
  }
}

/// The kinds of kernel in which the line that is wrong exists and matters.
bool shows(const std::string& fault, const pipeline_case& c) {
  const bool gated = c.op != op_kind::delta_rule;
  const bool kda = c.op == op_kind::kda;
  if (fault.find("gate") != std::string::npos || fault.find("decayed") != std::string::npos || fault.starts_with("cumsum"))
    return gated;
  if (fault.starts_with("Aqk")) return kda;
  if (fault == "o: not scaled") return !kda;
  return true;
}

TEST(stages, each_planted_fault_is_caught_at_its_own_stage_and_no_other) {
  for (const op_kind op : {op_kind::delta_rule, op_kind::gated_delta_rule, op_kind::kda}) {
    pipeline_case c;
    c.op = op;
    c.tokens = 150;
    for (const testing::planted& fault : testing::planted_faults()) {
      if (!shows(fault.name, c)) continue;
      SCOPED_TRACE(std::string(name_of(op)) + ", " + fault.name);
      pipeline kernel(c);
      const result r = kernel.run(fault.name);
      const stage_report report = measure(kernel.given(), r);
      const stage_measurement* const first = first_bad_stage(report);
      ASSERT_NE(first, nullptr) << to_text(report);
      // final_state is the state in fp32: it shows what the stored copies of the state are too coarse to show.
      const bool in_state = fault.stage == "h" && fault.name != "h: truncated copy";
      EXPECT_TRUE(first->name == fault.stage || (in_state && first->name == "final_state")) << to_text(report);
      for (const stage_measurement& m : report.stages) {
        if (m.name != fault.stage && !(in_state && m.name == "final_state")) {
          EXPECT_EQ(m.bad, 0U) << describe(m);
        }
      }
      const stage_report generous =
          measure_stages_at_least(kernel.given(), r, testing::public_roundings(kernel.given(), c.chunk));
      EXPECT_EQ(first_bad_stage(generous) == nullptr ? "none" : first_bad_stage(generous)->name, first->name)
          << "rounding less explains it";
      if (fault.name.find("truncated") != std::string::npos) {
        EXPECT_NEAR(first->bias.mean, -0.5, 0.1);
        EXPECT_GT(std::fabs(first->bias.mean), 5.5 * first->bias.standard_error + first->bias.allowance);
      }
      if (fault.name == "final_state: bf16") {
        EXPECT_EQ(report.find("final_state")->exactly_bf16, 1);
      }
    }
  }
}

TEST(stages, of_a_kernel_that_rounds_less_than_declared_are_within_bounds_of_their_own) {
  pipeline_case c;
  c.op = op_kind::kda;
  pipeline kernel(c);
  const result r = kernel.run("o: q with its decay not rounded");
  const stage_roundings declared = testing::public_roundings(kernel.given(), c.chunk);
  const stage_report strict = measure_stages(kernel.given(), r, declared);
  ASSERT_GT(strict.find("o")->bad, 0U);
  const stage_report report = measure_stages_at_least(kernel.given(), r, declared);
  EXPECT_EQ(report.find("o")->bad, 0U) << to_text(report);
  EXPECT_TRUE(report.find("o")->finer);
  EXPECT_NE(report.find("o")->rounding.find("q with its decay not rounded"), std::string::npos) << report.find("o")->rounding;
  EXPECT_FALSE(report.find("w")->finer);
}

TEST(stages, of_an_output_read_from_each_chunk_are_within_bounds_though_chunks_are_joined) {
  pipeline_case c;
  c.op = op_kind::gated_delta_product;
  c.steps = 2;
  pipeline kernel(c);
  const result r = kernel.run();
  stage_roundings declared = testing::public_roundings(kernel.given(), c.chunk);
  declared.output_span = 2;
  ASSERT_GT(measure_stages(kernel.given(), r, declared).find("o")->bad, 0U);
  const stage_report report = measure_stages_at_least(kernel.given(), r, declared);
  EXPECT_EQ(report.find("o")->bad, 0U) << to_text(report);
  EXPECT_NE(report.find("o")->rounding.find("o computed from h of every chunk"), std::string::npos);
}

TEST(stages, alternatives_are_told_apart) {
  pipeline_case c;
  c.beta_fp32 = false;
  pipeline kernel(c);
  const result r = kernel.run();
  stage_roundings roundings = testing::public_roundings(kernel.given(), c.chunk);
  roundings.w = {{"beta k in fp32", fp32, {bf16, false}}, {"beta k in bf16", bf16, {bf16, false}}};
  stage_report report = measure_stages(kernel.given(), r, roundings);
  EXPECT_EQ(report.find("w")->rounding, "beta k in bf16");
  EXPECT_EQ(report.find("w")->bad, 0U);
  roundings.w.pop_back();
  report = measure_stages(kernel.given(), r, roundings);
  EXPECT_GT(report.find("w")->bad, 0U);
}

// The keys of the first chunk are orthogonal, so every alternative fits it; only later chunks tell them apart.
TEST(stages, the_beginning_of_a_head_does_not_decide_its_alternatives) {
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    generation g;
    g.op = op;
    g.tokens = 192;
    g.key_dim = g.value_dim = 64;
    g.key_heads = g.value_heads = 1;
    problem p = generate(g);
    std::vector<double> keys = p.k.to_doubles();
    for (std::size_t i = 0; i < 64 * 64; ++i) keys[i] = i / 64 == i % 64 ? 1 : 0;
    p.k = tensor::from_doubles(p.k.element_format(), p.k.shape(), keys);
    const plan declared = plan_named(op == op_kind::kda ? "fla-chunk-kda" : "fla-chunk-gdn");
    const stage_roundings roundings = roundings_of(declared, p, path_kind::chunk, 64);
    for (const plan_variant& v : variants(declared, p, path_kind::chunk, 64)) {
      emulation_options how;
      how.stages = true;
      const stage_report report = measure_stages(p, emulate(p, v, how), roundings);
      EXPECT_EQ(first_bad_stage(report), nullptr) << v.name << "\n" << to_text(report);
      // Alternatives alone, one after the other: the first that fits is the one that was found.
      for (const inverse_rounding& one : roundings.inverse) {
        stage_roundings alone = roundings;
        alone.inverse = {one};
        if (measure_stages(p, emulate(p, v, how), alone).find("Ai")->bad > 0) continue;
        EXPECT_EQ(report.find("Ai")->rounding, one.name) << v.name;
        break;
      }
    }
  }
}

// Each of them from the start of the chunk, between two rows and about a reference, against one exponential at a time.
TEST(stages, decays_of_all_channels_are_those_of_each) {
  stage_roundings how;
  for (const bool clips : {false, true}) {
    if (clips) how.clip = {-3.0, 0.5};
    const stages_detail::arithmetic_errors errors(how);
    const std::size_t channels = 21;
    stages_detail::balls gates(9, channels);
    philox draw(7, 0xdeca);
    for (std::size_t i = 0; i < gates.value.size(); ++i) gates.value[i] = -std::exp(9 * draw.uniform() - 4);
    gates.value[3 * channels + 5] = -std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < channels; ++c) gates.value[6 * channels + c] = 0;
    stages_detail::chunk_decays decays(gates, nullptr, errors);
    std::vector<stages_detail::ball> all(channels);
    const auto expect = [&](std::size_t c, const stages_detail::ball& one) {
      EXPECT_NEAR(all[c].value, one.value, std::ldexp(one.value, -51)) << c;
      EXPECT_NEAR(all[c].radius, one.radius, 1e-12 * one.radius) << c;
    };
    for (std::size_t i = 0; i < 9; ++i) {
      decays.since_start(i, all);
      for (std::size_t c = 0; c < channels; ++c) expect(c, decays.since_start(i, c));
      for (std::size_t j = 0; j <= i; ++j) {
        decays.between(i, j, all);
        for (std::size_t c = 0; c < channels; ++c) expect(c, decays.between(i, j, c));
        for (const double shift : {0.0, 0.625}) {
          const bool known = decays.signed_between(j, i, all, shift);
          EXPECT_EQ(known, i < 3);
          stages_detail::ball one;
          for (std::size_t c = 0; c < channels && known; ++c) {
            ASSERT_TRUE(decays.signed_between(j, i, c, one, shift));
            expect(c, one);
          }
        }
      }
    }
  }
}

TEST(stages, of_the_output_are_rebuilt_from_the_alternative_of_the_state_that_fits) {
  for (const std::vector<std::string>& missing :
       {std::vector<std::string>{}, {"v_new"}, {"h"}, {"h", "v_new"}, {"h", "v_new", "final_state"}}) {
    for (const std::size_t span : {std::size_t{1}, std::size_t{2}}) {
      pipeline_case c;
      if (span > 1) c.op = op_kind::gated_delta_product, c.steps = 2, c.output_span = 2;
      pipeline kernel(c);
      const auto without = [&](result r) {
        for (const std::string& stage : missing) r.stages.erase(stage);
        if (missing.size() == 3) r.final_state.reset();
        return r;
      };
      const result r = without(kernel.run());
      stage_roundings roundings = testing::public_roundings(kernel.given(), c.chunk);
      state_rounding right = roundings.state[0];
      state_rounding other = right;
      right.name = "bf16";
      other.name = "tf32";
      other.operand = {tf32, false};
      SCOPED_TRACE(std::to_string(missing.size()) + " missing, span " + std::to_string(span));
      for (const auto& list : {std::vector{other, right}, std::vector{right, other}}) {
        roundings.state = list;
        const stage_report report = measure_stages(kernel.given(), r, roundings);
        EXPECT_EQ(report.outcome(), stage_outcome::within) << to_text(report);
        // Where o reads stored h and v_new it has no alternative of the state to name.
        EXPECT_EQ(report.find("o")->rounding, missing.empty() ? "" : "bf16, ") << to_text(report);
        const result wrong = without(kernel.run("o: diagonal masked"));
        const stage_report of_wrong = measure_stages(kernel.given(), wrong, roundings);
        ASSERT_NE(first_bad_stage(of_wrong), nullptr);
        EXPECT_EQ(first_bad_stage(of_wrong)->name, "o") << to_text(of_wrong);
      }
      roundings.state = {other};
      EXPECT_EQ(measure_stages(kernel.given(), r, roundings).outcome(), stage_outcome::bad);
    }
  }
}

TEST(stages, need_not_show_a_state_in_bf16_between_chunks_where_final_state_is_not_stored) {
  for (const op_kind op : {op_kind::gated_delta_rule, op_kind::kda}) {
    SCOPED_TRACE(name_of(op));
    pipeline_case c;
    c.op = op;
    c.tokens = 150;
    pipeline kernel(c);
    result r = kernel.run("h: bf16 state between chunks");
    const stage_report report = measure(kernel.given(), r);
    ASSERT_NE(first_bad_stage(report), nullptr);
    EXPECT_EQ(first_bad_stage(report)->name, "final_state");
    r.final_state.reset();
    EXPECT_EQ(measure(kernel.given(), r).outcome(), stage_outcome::within);
  }
}

TEST(stages, tf32_cut_off_and_rounded_are_told_apart) {
  for (const bool safe_gate : {false, true}) {
    pipeline_case c;
    c.op = op_kind::kda;
    c.tf32_cut = true;
    c.safe_gate = safe_gate;
    c.tokens = 200;
    c.chunk = 64;
    pipeline kernel(c);
    const stage_report report = measure(kernel.given(), kernel.run(), 1, safe_gate);
    EXPECT_EQ(report.find("A")->rounding, "tf32 rz");
    EXPECT_EQ(report.find("Aqk")->rounding, "tf32 rz");
    EXPECT_EQ(report.find("Ai")->rounding, "tf32 rz merges");
    EXPECT_EQ(first_bad_stage(report), nullptr) << to_text(report);
    // The other way of forming the diagonal blocks is not what this kernel does.
    EXPECT_NE(first_bad_stage(measure(kernel.given(), kernel.run(), 1, !safe_gate)), nullptr);
  }
}

TEST(stages, tf32_operands_round_as_the_conversion_of_public_hardware) {
  for (const double sign : {1.0, -1.0}) {
    const double tie = sign * (1 + 0x1p-11);
    EXPECT_EQ(stages_detail::narrow(tie, {tf32, false}), sign * (1 + 0x1p-10));
    EXPECT_EQ(stages_detail::narrow(sign * (1 + 0x1p-11 - 0x1p-23), {tf32, false}), sign);
    EXPECT_EQ(stages_detail::narrow(tie, {tf32, true}), sign);
    EXPECT_EQ(stages_detail::narrow(tie, {fp16, false}), sign);
  }
}

TEST(stages, an_open_order_of_the_merges_has_a_wider_bound_that_holds) {
  pipeline kernel(pipeline_case{});
  const result r = kernel.run();
  stage_roundings roundings = testing::public_roundings(kernel.given(), 48);
  roundings.inverse = {{"", 16, unit_roundoff(fp32), {tf32, true}, unit_roundoff(fp32), merge_order::any}};
  EXPECT_EQ(measure_stages(kernel.given(), r, roundings).find("Ai")->bad, 0U);
  roundings.inverse[0].block = 48;
  EXPECT_EQ(measure_stages(kernel.given(), r, roundings).find("Ai")->bad, 0U);
}

TEST(stages, of_a_kernel_that_sums_its_gates_again_are_within_bounds_of_their_own) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.gate = "strong";
  g.tokens = 96;
  g.key_dim = g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  const problem p = generate(g);
  const plan& declared = *std::find_if(plans().begin(), plans().end(), [](const plan& x) { return x.name == "fp32"; });
  emulation_options options;
  options.stages = true;
  result r = emulate(p, variants(declared, p, path_kind::chunk, 32).front(), options, 1);
  // The sums it stores are not the very ones it used: one unit in the last place apart, as a change of base leaves them.
  tensor& stored = r.stages.at("g_cumsum_log2");
  std::vector<double> sums = stored.to_doubles();
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = std::nextafter(static_cast<float>(sums[i]), i % 2 == 0 ? 0.0F : -HUGE_VALF);
  stored = tensor::from_doubles(fp32, stored.shape(), sums, "g_cumsum_log2");
  const stage_roundings roundings = roundings_of(declared, p, path_kind::chunk, 32);
  ASSERT_GT(measure_stages(p, r, roundings).find("A")->bad, 0U) << to_text(measure_stages(p, r, roundings));
  const stage_report report = measure_stages_at_least(p, r, roundings);
  EXPECT_EQ(first_bad_stage(report), nullptr) << to_text(report);
  const bool said = std::any_of(report.stages.begin(), report.stages.end(), [](const stage_measurement& m) {
    return m.finer && m.rounding.find("gate sums other than the stored ones") != std::string::npos;
  });
  EXPECT_TRUE(said) << to_text(report);
}

/// (I + L)^-1 in fp32 by 16 x 16 blocks, Y_ij = -(sum Y_im L_mj) Y_jj.
std::vector<float> merged_from_the_right(const stages_detail::balls& l) {
  const std::size_t n = l.rows, block = 16;
  const auto at = [&](std::size_t i, std::size_t j) { return static_cast<float>(l.value[i * n + j]); };
  std::vector<float> y(n * n, 0.0F);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t first = i / block * block;
    y[i * n + i] = 1;
    for (std::size_t j = first; j < i; ++j) {
      float sum = 0;
      for (std::size_t m = j; m < i; ++m) sum += at(i, m) * y[m * n + j];
      y[i * n + j] = -sum;
    }
  }
  for (std::size_t distance = block; distance < n; distance += block) {
    for (std::size_t j = 0; j + distance < n; j += block) {
      const std::size_t i = j + distance;
      for (std::size_t r = i; r < i + block; ++r) {
        std::vector<float> inner(block, 0.0F);
        for (std::size_t m = j + block; m < i + block; ++m) {
          for (std::size_t c = 0; c < block; ++c) inner[c] += y[r * n + m] * at(m, j + c);
        }
        for (std::size_t c = 0; c < block; ++c) {
          float sum = 0;
          for (std::size_t m = 0; m < block; ++m) sum += inner[m] * y[(j + m) * n + j + c];
          y[r * n + j + c] = -sum;
        }
      }
    }
  }
  return y;
}

// Terms just below the normal range that are all flushed: what is lost is their sum, times what it is multiplied by afterwards.
TEST(stages, flushed_sums_are_within_their_bounds) {
  const stages_detail::arithmetic_errors errors{stage_roundings{}};
  const double term = smallest_normal(fp32) * (1 - 0x1p-20), u = unit_roundoff(fp32);
  const std::size_t block = 16, pairs = 3;
  const double merged = static_cast<double>(block * pairs) * term;
  EXPECT_LE(merged, stages_detail::sum_bound(errors, block + pairs, u, block * pairs).of(merged, merged));
  const double row = static_cast<double>(block) * term;
  EXPECT_LE(4 * row, errors.bound(row, row, 4, 4, block, u));
}

// Their residual is another, for which the bound is not derived (src/stages/inverse.cpp).
TEST(stages, merges_from_the_right_in_fp32_stay_within_the_bound_of_those_from_the_left) {
  stage_roundings r;
  const inverse_rounding how{"", 16, unit_roundoff(fp32), {fp32, false}, unit_roundoff(fp32), merge_order::any};
  for (const double size : {0.05, 0.5, 0.99, 2.0}) {
    for (const double mean : {0.0, 0.5, 1.0}) {
      double most = 0;
      for (std::uint64_t seed = 0; seed < scaled(8); ++seed) {
        philox draw(seed, 0x51de);
        stages_detail::balls l(64, 64);
        for (std::size_t i = 0; i < 64; ++i) {
          for (std::size_t j = 0; j < i; ++j) {
            l.value[i * 64 + j] =
                static_cast<float>(size * (mean + (1 - mean) * (2 * draw.uniform() - 1)) * (1 - 1e-3 * draw.uniform()));
          }
        }
        const stages_detail::balls want = stages_detail::inverse_of(l, how, stages_detail::arithmetic_errors(r));
        const std::vector<float> got = merged_from_the_right(l);
        for (std::size_t i = 0; i < 64; ++i) {
          for (std::size_t j = 0; j < i; ++j) {
            const std::size_t at = i * 64 + j;
            most = std::max(most, std::fabs(got[at] - want.value[at]) / want.radius[at]);
          }
        }
      }
      std::printf("entries to %g, mean %g of that: at most %.3g of the bound\n", size, mean, most);
      EXPECT_LT(most, 1);
    }
  }
}

}  // namespace
}  // namespace deltaproof
