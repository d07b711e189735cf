// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "studies/shared/trials/cases.hpp"

namespace deltaproof::detail::trials {
namespace {

generation inputs(const run_options& options, std::string regime, op_kind op, std::size_t tokens) {
  generation g;
  g.regime = std::move(regime);
  g.seed = options.seed;
  g.op = op;
  g.tokens = tokens;
  g.key_heads = 1;
  g.value_heads = 1;
  return g;
}

trial_case recurrent(trial_case c) {
  c.path = path_kind::recurrent;
  c.chunk = 0;
  return c;
}

generation heads(generation g, std::size_t key_heads, std::size_t value_heads, std::size_t dim) {
  g.key_heads = key_heads;
  g.value_heads = value_heads;
  g.key_dim = g.value_dim = dim;
  return g;
}
generation values(generation g, std::size_t dim) {
  g.value_dim = dim;
  return g;
}
generation gates(generation g, std::string law) {
  g.gate = std::move(law);
  return g;
}
generation steps(generation g, std::string law) {
  g.beta = std::move(law);
  return g;
}
generation ruled(generation g, rule_kind rule) {
  g.rule = rule;
  return g;
}

}  // namespace

std::vector<trial_case> cases(const run_options& o) {
  using op = op_kind;
  // Two whole chunks and a tail where the regime leaves the length open: state pass and partial chunk both take part.
  constexpr std::size_t T = 150;
  const auto chunk = path_kind::chunk;
  return {
      {"delta/typical", "fla-chunk-delta", chunk, 64, inputs(o, "typical", op::delta_rule, T)},
      {"delta/beta-two", "fla-chunk-delta", chunk, 64, inputs(o, "beta-two", op::delta_rule, T)},
      {"delta/collinear", "fla-chunk-delta", chunk, 64, inputs(o, "collinear", op::delta_rule, T)},
      {"delta/tiny-keys", "fla-chunk-delta", chunk, 64,
       ruled(steps(inputs(o, "tiny-keys", op::delta_rule, T), "two-logit"), rule_kind::exact)},
      {"delta/huge-keys", "fla-chunk-delta", chunk, 64, steps(inputs(o, "huge-keys", op::delta_rule, T), "logit")},
      {"gdn/tails", "fla-chunk-gdn", chunk, 64, inputs(o, "tails", op::gated_delta_rule, T)},
      {"gdn/k-ne-v", "fla-chunk-gdn", chunk, 64, values(inputs(o, "k-ne-v", op::gated_delta_rule, T), 32)},
      {"gdn/gva", "fla-chunk-gdn", chunk, 64, heads(inputs(o, "gva", op::gated_delta_rule, 96), 2, 4, 32)},
      {"gdn/varlen", "fla-chunk-gdn", chunk, 64, inputs(o, "varlen", op::gated_delta_rule, 300)},
      {"gdn/model-gates", "fla-chunk-gdn", chunk, 64, inputs(o, "model-gates", op::gated_delta_rule, T)},
      {"gdn/no-decay", "fla-chunk-gdn", chunk, 64, inputs(o, "no-decay", op::gated_delta_rule, T)},
      {"gdn/strong gates", "fla-chunk-gdn", chunk, 64, gates(inputs(o, "typical", op::gated_delta_rule, T), "strong")},
      {"gdp/typical", "fla-chunk-gdp", chunk, 64, inputs(o, "typical", op::gated_delta_product, T / 2)},
      {"kda/typical", "fla-chunk-kda", chunk, 64, inputs(o, "typical", op::kda, T)},
      {"kda/strong-decay", "fla-chunk-kda", chunk, 64, inputs(o, "strong-decay", op::kda, T)},
      recurrent({"gdn step/tails", "fla-recurrent-gdn", chunk, 0, inputs(o, "tails", op::gated_delta_rule, T)}),
      recurrent({"gdn step/varlen", "fla-recurrent-gdn", chunk, 0, inputs(o, "varlen", op::gated_delta_rule, 300)}),
      recurrent({"gdn step/gva", "fla-recurrent-gdn", chunk, 0, heads(inputs(o, "gva", op::gated_delta_rule, 96), 2, 4, 32)}),
      recurrent({"delta step/tiny-keys", "fla-recurrent-delta", chunk, 0,
                 ruled(steps(inputs(o, "tiny-keys", op::delta_rule, T), "two-logit"), rule_kind::exact)}),
      recurrent({"kda step/typical", "fla-recurrent-kda", chunk, 0, values(inputs(o, "typical", op::kda, T), 32)}),
      recurrent({"gdp step/typical", "decode-fp32", chunk, 0, inputs(o, "typical", op::gated_delta_product, T / 2)}),
  };
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

}  // namespace deltaproof::detail::trials
