// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Every planted fault of the backward pass changes a gradient by more than rounding does, somewhere; none changes the forward
// pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "emulate/gradient_runs.hpp"

namespace deltaproof {
namespace {

using testing::named_problem;
using testing::problems_with_gradients;
using testing::relative_distance;

/// The shared problems, and what only some faults need: one head after the other, beta of 0, long rows, gradients along a row.
std::vector<named_problem> trials() {
  std::vector<named_problem> all = problems_with_gradients(fp32);
  const auto drawn = [&](const std::string& name, op_kind op, std::size_t heads, const std::string& beta,
                         const std::string& gate) {
    generation g;
    g.op = op;
    g.dtype = fp32;
    g.tokens = 40;
    g.key_dim = g.value_dim = 16;
    g.key_heads = g.value_heads = heads;
    g.cotangents = true;
    g.initial_state = "normal";
    g.seed = 11;
    if (!beta.empty()) g.beta = beta;
    if (!gate.empty()) g.gate = gate;
    all.push_back({name, generate(g)});
  };
  drawn("beta zero", op_kind::delta_rule, 1, "0", "");
  drawn("two key heads", op_kind::gated_delta_rule, 2, "", "typical");
  drawn("strong constant gates", op_kind::kda, 1, "", "-4");
  return all;
}

struct effect {
  double least_noise_ratio = 0;  ///< the largest, over trials and gradients, of change over noise
  std::string where;
  std::set<std::string, std::less<>> changed;  ///< gradients of which a bit differs
};

/// How far a fault moves a gradient of one problem, in units of what another build of the same arithmetic does, and at least 1e-6
/// of its norm.
void compare(const fault& f, const named_problem& at, const plan_variant& v, const result& right,
             const std::map<std::string, double>& noise, effect& most) {
  emulation_options options;
  options.planted = &f;
  options.stages = true;
  const result wrong = emulate_gradients(at.p, v, options, 1);
  EXPECT_EQ(wrong.o.to_doubles(), right.o.to_doubles()) << f.name << " changes o of " << at.name;
  EXPECT_EQ(wrong.final_state->to_doubles(), right.final_state->to_doubles()) << f.name << " on " << at.name;
  for (const auto& [stage, t] : right.stages)
    EXPECT_EQ(wrong.stages.at(stage).to_doubles(), t.to_doubles()) << f.name << " " << stage;
  for (const auto& [name, t] : right.gradients) {
    const double moved = relative_distance(wrong.gradients.at(name).to_doubles(), t.to_doubles()) / noise.at(name);
    if (!(moved <= most.least_noise_ratio)) {
      most.least_noise_ratio = moved;
      most.where = name + " of " + at.name + ", " + v.name;
    }
    if (wrong.gradients.at(name).to_doubles() != t.to_doubles()) most.changed.insert(name);
  }
}

TEST(backward_faults, are_many_named_once_and_found_by_name) {
  std::set<std::string_view> names;
  for (const fault& f : faults(pass_kind::forward)) {
    names.insert(f.name);
    EXPECT_EQ(f.pass, pass_kind::forward);
  }
  const std::size_t forward = names.size();
  for (const fault& f : faults(pass_kind::backward)) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_EQ(&fault_named(f.name), &f);
    EXPECT_EQ(f.pass, pass_kind::backward);
    const bool stage = std::find(backward_stage_names.begin(), backward_stage_names.end(), f.stage) != backward_stage_names.end();
    const bool gradient = std::find(gradient_names.begin(), gradient_names.end(), f.stage) != gradient_names.end();
    EXPECT_TRUE(stage || gradient) << f.name << ": " << f.stage;
  }
  EXPECT_GE(names.size() - forward, 28U);
}

TEST(backward_faults, each_moves_a_gradient_and_none_the_forward_pass) {
  std::map<std::string_view, effect> effects;
  for (const named_problem& at : trials()) {
    for (const path_kind path : {path_kind::chunk, path_kind::recurrent}) {
      const std::size_t chunk = path == path_kind::chunk ? 16 : 0;
      const plan_variant v = gradient_variants(plan_named("fp32"), at.p, path, chunk).front();
      emulation_options options;
      options.stages = true;
      const result right = emulate_gradients(at.p, v, options, 1);
      options.noise_ulps = 1;
      const result other = emulate_gradients(at.p, v, options, 1);
      std::map<std::string, double> noise;
      for (const auto& [name, t] : right.gradients)
        noise[name] = std::max(1e-6, relative_distance(other.gradients.at(name).to_doubles(), t.to_doubles()));
      for (const fault& f : faults(pass_kind::backward)) {
        if (applies(f, at.p, path)) compare(f, at, v, right, noise, effects[f.name]);
      }
    }
  }
  for (const fault& f : faults(pass_kind::backward)) {
    const effect& e = effects[f.name];
    std::printf("%-28s %-16s %9.2g times the noise: %s\n", std::string(f.name).c_str(), std::string(f.stage).c_str(),
                e.least_noise_ratio, e.where.c_str());
    EXPECT_GT(e.least_noise_ratio, 10) << f.name << " changes nothing";
    EXPECT_EQ(e.changed, (std::set<std::string, std::less<>>(f.tensors.begin(), f.tensors.end()))) << f.name;
  }
}

TEST(backward_faults, change_the_stage_they_name_and_none_before_it) {
  const auto place = [](std::string_view stage) {
    const auto at = std::find(backward_stage_names.begin(), backward_stage_names.end(), stage);
    return at - backward_stage_names.begin();  // past all of them: a gradient
  };
  for (const named_problem& at : trials()) {
    const plan_variant v = gradient_variants(plan_named("fp32"), at.p, path_kind::chunk, 16).front();
    emulation_options options;
    options.stages = true;
    const result right = emulate_gradients(at.p, v, options, 1);
    for (const fault& f : faults(pass_kind::backward)) {
      if (!applies(f, at.p, path_kind::chunk)) continue;
      options.planted = &f;
      const result wrong = emulate_gradients(at.p, v, options, 1);
      for (const auto& [name, t] : right.backward_stages) {
        if (place(name) >= place(f.stage)) continue;
        // dh and dv2 of a chunk feed those of the chunks before it: what is wrong in one is wrong in all.
        if ((name == "dh" || name == "dv2" || name == "dw") && place(f.stage) <= place("dw")) continue;
        // Where a rule makes the step, what is wrong in its gradient is wrong in that of k.
        if (name == "dk_hat" && f.stage == "dbeta" && at.p.rule != rule_kind::euler) continue;
        // Rows that are not written are missing in every gradient at once; check comes to dv first.
        if (f.name == "tail-gradients-unwritten" && (name == "dq_hat" || name == "dk_hat")) continue;
        EXPECT_EQ(wrong.backward_stages.at(name).to_doubles(), t.to_doubles())
            << f.name << " is said to show in " << f.stage << " and changes " << name << " of " << at.name;
      }
    }
  }
}

}  // namespace
}  // namespace deltaproof
