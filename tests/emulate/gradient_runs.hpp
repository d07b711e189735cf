// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Problems with cotangents of every kind that a backward pass meets, and distances between gradients.
#pragma once

#include <cmath>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/gradients.hpp"

namespace deltaproof::testing {

struct named_problem {
  std::string name;
  problem p;
};

/// Gates none, one number and channels; several steps; grouped heads; packed sequences, some shorter than a chunk or empty;
/// rules, activations and the norm; with and without do, dfinal_state and an initial state; K and V that differ.
inline std::vector<named_problem> problems_with_gradients(const format& dtype) {
  std::vector<named_problem> all;
  const auto add = [&](const std::string& name, op_kind op, std::size_t tokens, const auto& change) {
    generation g;
    g.op = op;
    g.dtype = dtype;
    g.tokens = tokens;
    g.key_dim = 8;
    g.value_dim = 12;
    g.key_heads = g.value_heads = 1;
    g.cotangents = true;
    g.seed = all.size() + 1;
    if (op != op_kind::delta_rule) g.gate = "typical";
    g.initial_state = "normal";
    problem p;
    change(g, p);
    problem drawn = generate(g);
    if (p.qk_l2norm) drawn.qk_l2norm = true;
    if (p.rule != rule_kind::euler) drawn.rule = p.rule;
    if (p.beta_activation != activation_kind::none) drawn.beta_activation = p.beta_activation;
    if (p.note == "no do") drawn.d_o.reset();
    if (p.note == "no dfinal_state") drawn.d_final_state.reset();
    if (p.note == "no initial state") drawn.initial_state.reset();
    all.push_back({name, std::move(drawn)});
  };
  using enum op_kind;
  for (const op_kind op : {delta_rule, gated_delta_rule, kda, gated_delta_product}) {
    const std::string name(name_of(op));
    add(name, op, 37, [](generation&, problem&) {});
    add(name + ", grouped heads", op, 21, [](generation& g, problem&) { g.value_heads = 3; });
    add(name + ", norm", op, 25, [](generation&, problem& p) { p.qk_l2norm = true; });
    add(name + ", no do", op, 20, [](generation&, problem& p) { p.note = "no do"; });
    add(name + ", no dfinal_state", op, 33, [](generation&, problem& p) { p.note = "no dfinal_state"; });
    add(name + ", no initial state", op, 33, [](generation&, problem& p) { p.note = "no initial state"; });
    add(name + ", packed", op, 40, [](generation& g, problem&) {
      g.cu_seqlens = {{0, 1, 1, 18, 40}};
      g.value_heads = 2;
    });
    add(name + ", sigmoid", op, 19, [](generation&, problem& p) { p.beta_activation = activation_kind::two_sigmoid; });
  }
  add("three steps a token", gated_delta_product, 22, [](generation& g, problem&) { g.num_householder = 3; });
  add("strong gates", kda, 33, [](generation& g, problem&) { g.gate = "-3"; });
  add("slow gates", gated_delta_rule, 50, [](generation& g, problem&) { g.gate = "-0.001"; });
  add("beta two", delta_rule, 40, [](generation& g, problem&) { g.beta = "1.9"; });
  add("wide keys", gated_delta_rule, 18, [](generation& g, problem&) {
    g.key_dim = 20;
    g.value_dim = 3;
  });
  add("batches", kda, 18, [](generation& g, problem&) { g.batch = 2; });
  for (const auto& [rule, rule_name] : rule_names) {
    if (rule == rule_kind::euler) continue;
    add("rule " + std::string(rule_name), gated_delta_rule, 23, [rule = rule](generation&, problem& p) {
      p.rule = rule;
      p.qk_l2norm = rule == rule_kind::exact;
      if (rule == rule_kind::implicit) p.beta_activation = activation_kind::sigmoid;
    });
  }
  return all;
}

/// |a - b| / |b| in the Frobenius norm; |a| where b is 0.
inline double relative_distance(std::span<const double> a, std::span<const double> b) {
  double distance = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    distance += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm == 0 ? std::sqrt(distance) : std::sqrt(distance / norm);
}

}  // namespace deltaproof::testing
