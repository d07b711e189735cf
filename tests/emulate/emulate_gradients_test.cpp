// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/emulate/emulate_gradients.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "deltaproof/emulate/faults.hpp"
#include "emulate/gradient_runs.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using testing::problems_with_gradients;
using testing::relative_distance;
using ::testing::ThrowsMessage;

/// What a plan in fp64 may lose on these problems: some thousand roundings, in sums that hardly cancel.
constexpr double wide_error = 1e-12;

TEST(emulate_gradients, in_fp64_every_variant_gives_the_exact_gradients) {
  const plan wide = plan_named("fp64");
  std::size_t compared = 0;
  for (const auto& [name, p] : problems_with_gradients(fp64)) {
    const reference_gradients truth = solve_gradients(p);
    for (const path_kind path : {path_kind::chunk, path_kind::recurrent}) {
      for (const std::size_t chunk : path == path_kind::chunk ? std::vector<std::size_t>{16, 7} : std::vector<std::size_t>{0}) {
        for (const plan_variant& v : gradient_variants(wide, p, path, chunk)) {
          const result r = emulate_gradients(p, v, {}, 1);
          ASSERT_EQ(r.gradients.size(), truth.tensors.size()) << name;
          for (const auto& [tensor_name, t] : truth.tensors) {
            const double error = relative_distance(r.gradients.at(tensor_name).to_doubles(), t.value);
            EXPECT_LT(error, wide_error) << tensor_name << " of " << name << ", " << v.name << ", chunks of " << chunk;
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 4000U);
}

TEST(emulate_gradients, in_fp64_every_form_gives_the_exact_outputs_and_gradients) {
  plan residual = plan_named("fp64"), on_do = residual, parts = residual;
  residual.v_new.form = {change_form::residual};
  on_do.backward.read_decay = {cotangent_decay::d_o};
  parts.split = {{1, 2}, -60.0};
  std::vector<plan> by_channel(2, plan_named("fp64"));
  by_channel[0].backward.blocks = {gate_form::reference_block, gate_form::middle_block, gate_form::first_block};
  by_channel[1].gate.form = {gate_form::first_block};
  std::size_t compared = 0;
  for (const auto& [name, p] : problems_with_gradients(fp64)) {
    const reference_gradients truth = solve_gradients(p);
    const reference outputs = solve(p);
    for (const plan& declared : p.gate_per_channel() ? by_channel : std::vector<plan>{residual, on_do, parts}) {
      for (const plan_variant& v : gradient_variants(declared, p, path_kind::chunk, 16)) {
        const result r = emulate_gradients(p, v, {}, 1);
        EXPECT_LT(relative_distance(r.o.to_doubles(), outputs.o.value), wide_error) << name << ", " << v.name;
        for (const auto& [tensor_name, t] : truth.tensors) {
          const double error = relative_distance(r.gradients.at(tensor_name).to_doubles(), t.value);
          EXPECT_LT(error, wide_error) << tensor_name << " of " << name << ", " << v.name;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 4000U);
}

TEST(emulate_gradients, dg_in_another_order_is_that_of_a_run_with_this_order) {
  const std::vector<tile_order> orders{tile_order::warps_2, tile_order::warps_8, tile_order::sequential, tile_order::pairwise};
  for (const auto& [plan_name, op] :
       {std::pair("fla-chunk-gdn", op_kind::gated_delta_rule), std::pair("flashqla", op_kind::gated_delta_rule),
        std::pair("fla-chunk-kda", op_kind::kda)}) {
    generation g;
    g.op = op;
    g.dtype = bf16;
    g.tokens = 130;
    g.key_dim = g.value_dim = 64;
    g.key_heads = 1;
    g.value_heads = 2;
    g.gate = "-0.01";
    g.initial_state = "normal";
    g.cotangents = true;
    const problem p = generate(g);
    plan_variant v = gradient_variants(plan_named(plan_name), p, path_kind::chunk, 64).front();
    v.backward->state_sum = bf16;
    const std::vector<gradient_head> group = take_group(p, 0, 0);
    emulation_options another_build;
    another_build.noise_ulps = 1;
    another_build.seed = 5;
    const group_gradients all = emulate_group_gradients(group, v, another_build, orders);
    std::size_t differ = 0;
    for (std::size_t o = 0; o < orders.size(); ++o) {
      plan_variant one = v;
      one.backward->state_sum_order = orders[o];
      const group_gradients run = emulate_group_gradients(group, one, another_build);
      for (std::size_t head = 0; head < group.size(); ++head) {
        ASSERT_EQ(all.heads[head].dg_in_other_orders.size(), orders.size());
        EXPECT_EQ(all.heads[head].dg_in_other_orders[o], run.heads[head].dg) << plan_name << ", order " << o;
        EXPECT_EQ(all.heads[head].dv, run.heads[head].dv);
        differ += run.heads[head].dg == all.heads[head].dg ? 0 : 1;
      }
      EXPECT_EQ(all.dk, run.dk);
    }
    EXPECT_GE(differ, 4U) << plan_name;
  }
}

TEST(emulate_gradients, a_part_forgets_what_decays_enough_before_it) {
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.dtype = fp64;
  g.tokens = 96;
  g.key_dim = g.value_dim = 8;
  g.key_heads = g.value_heads = 1;
  g.initial_state = "normal";
  g.cotangents = true;
  g.gate = "-0.2";  // 3.2 a chunk
  const problem p = generate(g);
  const reference_gradients truth = solve_gradients(p);
  plan split = plan_named("fp64");
  const auto run = [&](std::size_t chunks, double truncation) {
    split.split = {{chunks}, truncation};
    const result r = emulate_gradients(p, gradient_variants(split, p, path_kind::chunk, 16).front(), {}, 1);
    std::vector<double> errors;
    for (const char* name : {"dq", "dk", "dv", "dbeta"})
      errors.push_back(relative_distance(r.gradients.at(name).to_doubles(), truth.tensors.at(name).value));
    return errors;
  };
  for (const double error : run(2, -3.0)) {  // one chunk of warm-up
    EXPECT_GT(error, 1e-4);
    EXPECT_LT(error, 0.1);
  }
  for (const double error : run(2, -6.0)) EXPECT_LT(error, 5e-3);
  // Two chunks never decay that far, and a part of six is the sequence.
  for (const double error : run(2, -7.0)) EXPECT_LT(error, wide_error);
  for (const double error : run(6, -3.0)) EXPECT_LT(error, wide_error);
}

TEST(emulate_gradients, the_reference_run_is_the_adjoint_and_measures_a_run_in_fp64) {
  for (const auto& [name, p] : problems_with_gradients(fp64)) {
    const reference_gradients truth = solve_gradients(p);
    const plan_variant v = gradient_variants(plan_named("fp64"), p, path_kind::chunk, 16).front();
    const std::size_t group = p.value_heads() / p.key_heads();
    for (std::size_t s = 0; s < p.sequence_count(); ++s) {
      const std::vector<gradient_head> heads = take_group(p, s, 0);
      ASSERT_EQ(heads.size(), group);
      const group_gradients plain = reference_group_gradients(heads), run = emulate_group_gradients(heads, v);
      const group_gradients error = error_of_wide_gradients(heads, run);
      const sequence_range range = sequence_at(p, s);
      const std::size_t K = p.key_dim(), first = (range.batch * p.tokens() + range.first_token) * K;
      const std::span<const double> dq(truth.tensors.at("dq").value.data() + first, range.tokens * K);
      EXPECT_LT(p.key_heads() == 1 ? relative_distance(plain.dq.entries(), dq) : 0.0, wide_error) << name;
      // The run less its measured error is the truth to more than the run's own precision.
      std::vector<double> corrected(run.dq.size());
      for (std::size_t i = 0; i < corrected.size(); ++i) corrected[i] = run.dq.data()[i] - error.dq.data()[i];
      EXPECT_LT(relative_distance(corrected, plain.dq.entries()), wide_error) << name;
      double largest = 0;
      for (const double e : error.dk.entries()) largest = std::max(largest, std::fabs(e));
      EXPECT_LT(largest, 1e-11) << name;
    }
  }
}

TEST(emulate_gradients, the_forward_pass_of_a_backward_pass_is_the_forward_pass) {
  for (const char* name : {"fla-chunk-gdn", "fp32"}) {
    generation g;
    g.op = op_kind::gated_delta_rule;
    g.tokens = 70;
    g.key_dim = g.value_dim = 16;
    g.cotangents = true;
    g.value_heads = 2;
    g.key_heads = 1;
    const problem p = generate(g);
    const plan_variant v = gradient_variants(plan_named(name), p, path_kind::chunk, 32).front();
    emulation_options options;
    options.stages = true;
    const result forward = emulate(p, v, options, 1), both = emulate_gradients(p, v, options, 1);
    EXPECT_EQ(both.o.to_doubles(), forward.o.to_doubles()) << name;
    EXPECT_EQ(both.final_state->to_doubles(), forward.final_state->to_doubles()) << name;
    for (const auto& [stage, t] : forward.stages) EXPECT_EQ(both.stages.at(stage).to_doubles(), t.to_doubles()) << stage;
    for (const char* stage : {"dv_local", "dh", "dv2", "dw", "dg_local"})
      EXPECT_EQ(both.backward_stages.count(stage), 1U) << stage;
    EXPECT_EQ(both.gradients.at("dq").element_format(), bf16);
    EXPECT_EQ(both.gradients.at("dinitial_state").element_format(), fp32);
    // A run is a function of its inputs; another build of it is not the same bits.
    EXPECT_EQ(emulate_gradients(p, v, options, 2).gradients.at("dg").to_doubles(), both.gradients.at("dg").to_doubles());
    options.noise_ulps = 1;
    EXPECT_NE(emulate_gradients(p, v, options, 1).gradients.at("dg").to_doubles(), both.gradients.at("dg").to_doubles());
  }
}

// A plan does not say how dg is summed up inside a chunk. Each order by its definition, from the terms that the run stores.
TEST(emulate_gradients, with_noise_sum_dg_row_by_row_or_by_a_parallel_scan) {
  constexpr std::size_t T = 70, C = 32;
  generation g;
  g.op = op_kind::gated_delta_rule;
  g.tokens = T;
  g.key_dim = g.value_dim = 16;
  g.key_heads = g.value_heads = 1;
  g.dtype = fp32;
  g.cotangents = true;
  const problem p = generate(g);
  const plan_variant v = gradient_variants(plan_named("fp32"), p, path_kind::chunk, C).front();
  std::size_t scans = 0, turns = 0;
  emulation_options options;
  options.stages = true;
  for (options.seed = 0; options.seed < 30; ++options.seed) {
    options.noise_ulps = options.seed == 0 ? 0 : 1;
    const result run = emulate_gradients(p, v, options, 1);
    const std::vector<double> terms = run.backward_stages.at("dg_local").to_doubles();
    std::vector<float> turn(terms.begin(), terms.end()), scan = turn;
    ASSERT_EQ(turn.size(), T);
    for (std::size_t t = T - 1; t-- > 0;) {
      if ((t + 1) % C != 0) turn[t] += turn[t + 1];
    }
    for (std::size_t step = 1; step < C; step *= 2) {
      for (std::size_t t = 0; t + step < T; ++t) {
        if (t / C == (t + step) / C) scan[t] += scan[t + step];
      }
    }
    const auto is = [dg = run.gradients.at("dg").to_doubles()](const std::vector<float>& sums) {
      return std::equal(dg.begin(), dg.end(), sums.begin(), sums.end());
    };
    EXPECT_TRUE(is(turn) || (options.seed > 0 && is(scan))) << "seed " << options.seed;
    turns += is(turn);
    scans += is(scan);
  }
  EXPECT_GT(turns, 5U);
  EXPECT_GT(scans, 5U);
}

TEST(emulate_gradients, a_perturbed_group_keeps_its_shared_rows) {
  generation g;
  g.op = op_kind::kda;
  g.tokens = 9;
  g.key_dim = g.value_dim = 8;
  g.key_heads = 1;
  g.value_heads = 3;
  g.cotangents = true;
  const std::vector<gradient_head> group = take_group(generate(g), 0, 0), moved = perturbed(group, 5);
  for (std::size_t head = 0; head < 3; ++head) {
    EXPECT_EQ(moved[head].in.q.entries()[0], moved[0].in.q.entries()[0]);
    EXPECT_TRUE(
        std::equal(moved[head].in.k.entries().begin(), moved[head].in.k.entries().end(), moved[0].in.k.entries().begin()));
    const double far = relative_distance(moved[head].d.d_o.entries(), group[head].d.d_o.entries());
    EXPECT_GT(far, 1e-4);
    EXPECT_LT(far, 2e-2);
    EXPECT_NE(moved[head].d.d_final_state.entries()[0], group[head].d.d_final_state.entries()[0]);
  }
  EXPECT_EQ(perturbed(group, 5)[2].d.d_o.entries()[3], moved[2].d.d_o.entries()[3]);
}

TEST(emulate_gradients, refuses_what_it_cannot_say) {
  generation g;
  g.tokens = 4;
  const problem forward = generate(g);
  g.cotangents = true;
  const problem both = generate(g);
  const plan_variant without = variants(plan_named("neumann-64"), both, path_kind::chunk, 64).front();
  EXPECT_THAT([&] { (void)emulate_gradients(both, without); },
              ThrowsMessage<format_error>(::testing::AllOf(HasSubstr("neumann-64"), HasSubstr("[backward]"))));
  const plan_variant with = variants(plan_named("fp32"), both, path_kind::chunk, 64).front();
  EXPECT_THAT([&] { (void)emulate_gradients(forward, with); }, ThrowsMessage<format_error>(HasSubstr("do nor dfinal_state")));
  emulation_options planted;
  planted.planted = &fault_named("dw-sign");
  EXPECT_THAT([&] { (void)emulate(both, with, planted); }, ThrowsMessage<format_error>(HasSubstr("dw-sign")));
  EXPECT_THROW((void)stored_gradient_format(with, both, "dz"), domain_error);
  EXPECT_THROW((void)emulate_group_gradients(std::span<const gradient_head>{}, with), domain_error);
}

}  // namespace
}  // namespace deltaproof
