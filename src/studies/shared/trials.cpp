// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "studies/shared/trials.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>

#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/oracle/gradients.hpp"

namespace deltaproof::detail::trials {
namespace {

struct family {
  std::string_view name, plan;
  op_kind op;
  std::size_t chunk;  ///< 0: token by token
};
constexpr std::array<family, 8> families{{{"delta", "fla-chunk-delta", op_kind::delta_rule, 64},
                                          {"gdn", "fla-chunk-gdn", op_kind::gated_delta_rule, 64},
                                          {"gdp", "fla-chunk-gdp", op_kind::gated_delta_product, 64},
                                          {"kda", "fla-chunk-kda", op_kind::kda, 64},
                                          {"gdn step", "fla-recurrent-gdn", op_kind::gated_delta_rule, 0},
                                          {"delta step", "fla-recurrent-delta", op_kind::delta_rule, 0},
                                          {"kda step", "fla-recurrent-kda", op_kind::kda, 0},
                                          {"gdp step", "decode-fp32", op_kind::gated_delta_product, 0}}};

}  // namespace

std::vector<trial_case> cases(const run_options& o) {
  std::vector<trial_case> all;
  const auto add = [&](std::string_view name, const std::string& regime, std::size_t tokens, generation g = {}) {
    const family& f = *std::find_if(families.begin(), families.end(), [&](const family& one) { return one.name == name; });
    g.regime = regime;
    g.seed = o.seed;
    g.op = f.op;
    g.tokens = tokens;
    g.key_heads = g.key_heads.value_or(1);
    g.value_heads = g.value_heads.value_or(1);
    all.push_back({std::string(name) + "/" + regime, std::string(f.plan), f.chunk > 0 ? path_kind::chunk : path_kind::recurrent,
                   f.chunk, std::move(g)});
  };
  // Two whole chunks and a tail where the regime leaves the length open: state pass and partial chunk both take part.
  constexpr std::size_t T = 150;
  generation exact, narrow, grouped, by_logits, strong;
  exact.rule = rule_kind::exact;
  exact.beta = "two-logit";
  narrow.value_dim = 32;
  grouped.key_heads = 2;
  grouped.value_heads = 4;
  grouped.key_dim = grouped.value_dim = 32;
  by_logits.beta = "logit";
  strong.gate = "strong";
  for (const char* regime : {"typical", "beta-two", "collinear"}) add("delta", regime, T);
  add("delta", "tiny-keys", T, exact);
  add("delta", "huge-keys", T, by_logits);
  add("gdn", "tails", T);
  add("gdn", "k-ne-v", T, narrow);
  add("gdn", "gva", 96, grouped);
  add("gdn", "varlen", 300);
  for (const char* regime : {"model-gates", "no-decay"}) add("gdn", regime, T);
  add("gdn", "typical", T, strong);
  all.back().id = "gdn/strong gates";
  add("gdp", "typical", T / 2);
  for (const char* regime : {"typical", "strong-decay"}) add("kda", regime, T);
  add("gdn step", "tails", T);
  add("gdn step", "varlen", 300);
  add("gdn step", "gva", 96, grouped);
  add("delta step", "tiny-keys", T, exact);
  add("kda step", "typical", T, narrow);
  add("gdp step", "typical", T / 2);
  return all;
}

std::string describe(const trial_case& c) {
  const generation& g = c.inputs;
  std::string text = "--regime " + g.regime + " --op " + std::string(name_of(*g.op)) + " --T " + std::to_string(*g.tokens);
  if (g.key_dim) text += " --K " + std::to_string(*g.key_dim);
  if (g.value_dim) text += " --V " + std::to_string(*g.value_dim);
  text += " --H " + std::to_string(*g.key_heads) + " --HV " + std::to_string(*g.value_heads);
  if (g.rule) text += " --rule " + std::string(name_of(*g.rule));
  if (g.beta) text += " --beta " + *g.beta;
  if (g.gate) text += " --gate " + *g.gate;
  if (g.dtype) text += " --dtype " + std::string(name_of(*g.dtype));
  if (g.initial_state) text += " --initial-state " + *g.initial_state;
  if (g.cotangents) text += " --cotangents";
  return text + " --seed " + std::to_string(g.seed);
}

namespace {

double rms_error(const tensor& got, const reference_tensor& want) {
  const std::vector<double> x = got.to_doubles();
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += (x[i] - want.value[i]) * (x[i] - want.value[i]);
  return std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, x.size())));
}

}  // namespace

result emulated(const bench& b, const trial_case& c, const plan_variant& v, const emulation_options& options) {
  result r = c.inputs.cotangents ? emulate_gradients(b.p, v, options, 1) : emulate(b.p, v, options, 1);
  r.kernel = b.declared.kernels.empty() ? b.declared.name : b.declared.kernels.front();
  r.path = c.path;
  if (c.path == path_kind::chunk) r.chunk_size = c.chunk;
  return r;
}

bench make_bench(const trial_case& c) {
  bench b;
  b.p = generate(c.inputs);
  b.declared = plan_named(c.plan);
  b.allowed =
      c.inputs.cotangents ? gradient_variants(b.declared, b.p, c.path, c.chunk) : variants(b.declared, b.p, c.path, c.chunk);
  emulation_options with_stages;
  with_stages.stages = true;
  b.correct = emulated(b, c, b.allowed.front(), with_stages);
  b.truth = solve(b.p, {});
  b.o_error = rms_error(b.correct.o, b.truth.o);
  b.state_error = rms_error(*b.correct.final_state, b.truth.final_state);
  if (c.inputs.cotangents) {
    const reference_gradients exact = solve_gradients(b.p);
    for (const auto& [name, gradient] : b.correct.gradients)
      b.gradient_errors[name] = rms_error(gradient, exact.tensors.find(name)->second);
  }
  b.options.plans = {b.declared};
  b.options.threads = 1;
  b.options.memory = make_referee_memory();
  // The inputs are the same for every result, so is the truth.
  b.options.solver = [kept = std::make_shared<std::map<double, reference>>(), lock = std::make_shared<std::mutex>()](
                         const problem& p, const question& q) {
    const std::lock_guard guard(*lock);
    const auto at = kept->find(q.relative_radius);
    return at != kept->end() ? at->second : kept->emplace(q.relative_radius, solve(p, q)).first->second;
  };
  return b;
}

}  // namespace deltaproof::detail::trials
