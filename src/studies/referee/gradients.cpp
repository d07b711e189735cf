// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The backward half of the study: faults of the backward pass, and the rules that public tests have for gradients.

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/stages/backward_stages.hpp"
#include "studies/referee/planted.hpp"

namespace deltaproof::detail::referee_study {
namespace {

using trials::bench;
using trials::trial_case;

/// `stages` is check on everything the result holds; `gradients` is check on the gradients alone.
const std::vector<std::string> judges{"stages", "gradients", "fla", "flashqla", "attention_gym"};

/// What fla's tests (0.5.2, bc3b101: test_gdn, test_kda, test_delta, test_gdp) let a gradient err by, in rms(error)/rms(exact).
double fla_limit(op_kind op, std::string_view gradient) {
  const bool of_state = gradient == "dinitial_state";
  if (op == op_kind::gated_delta_product)
    return gradient == "dbeta" || gradient == "dg" ? 0.015 : gradient == "dk" || of_state ? 0.008 : 0.007;
  return gradient == "dg" || (gradient == "dbeta" && op != op_kind::delta_rule) ? 0.02 : 0.008;
}
/// FlashQLA (c18a486), tests/test_gdr_unit.py: RTOL, |error|_F / |exact|_F of each gradient.
constexpr double flashqla_limit = 0.02;
/// attention-gym #450: 1.25 eps of bf16, relative rms of each gradient.
constexpr double attention_gym_limit = 1.25 * 0x1p-7;

judgement judge(const bench& b, const result& r, const fault* planted) {
  judgement out;
  result gradients = r;
  gradients.o = tensor();
  gradients.final_state.reset();
  gradients.stages.clear();
  gradients.backward_stages.clear();
  const check_report alone = check(b.p, gradients, b.options);
  const check_report full = check(b.p, r, b.options);
  bool fla = false, flashqla = false, attention_gym = false;
  for (const tensor_report& t : alone.tensors) {
    const double error = t.errors.nonfinite == 0 ? t.errors.rel_fro.value : std::numeric_limits<double>::infinity();
    fla = fla || !(error < fla_limit(b.p.op, t.name));
    flashqla = flashqla || !(error <= flashqla_limit);
    attention_gym = attention_gym || !(error <= attention_gym_limit);
  }
  out.refuses = {full.judged == verdict::refuted, alone.judged == verdict::refuted, fla, flashqla, attention_gym};
  take_diagnosis(full, planted, out);
  return out;
}

bool changed(const bench& b, const result& r) {
  const auto differs = [](const auto& tensors, const auto& right) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const auto& x) { return !same_bits(x.second, right.at(x.first)); });
  };
  return differs(r.gradients, b.correct.gradients) || differs(r.backward_stages, b.correct.backward_stages);
}

double size_of_change(const bench& b, const result& r) {
  double largest = 0;
  for (const auto& [name, gradient] : r.gradients) {
    const tensor& right = b.correct.gradients.at(name);
    if (!same_bits(gradient, right)) largest = std::max(largest, relative_change(gradient, right, b.gradient_errors.at(name)));
  }
  return largest;
}

std::size_t place_of(std::string_view stage) {
  if (stage == "inputs") return 0;
  const auto at = std::find(judged_backward_stages.begin(), judged_backward_stages.end(), stage);
  return static_cast<std::size_t>(at - judged_backward_stages.begin()) + 1;
}

/// The stage itself where the result holds it and it differs, else one that is made later; without stages, any gradient.
bool named(const fault& f, const bench& b, const result& r, const std::string& first_bad) {
  if (f.stage == "inputs" || r.backward_stages.empty()) return !first_bad.empty();
  const std::string own(f.stage);
  for (const auto& [held, right] :
       {std::pair(&r.backward_stages, &b.correct.backward_stages), {&r.gradients, &b.correct.gradients}}) {
    const auto at = held->find(own);
    if (at != held->end() && !same_bits(at->second, right->at(own))) return first_bad == own;
  }
  return place_of(first_bad) > place_of(own) && place_of(first_bad) <= judged_backward_stages.size();
}

std::vector<trial_case> cases(const run_options& options) {
  using op = op_kind;
  const auto of = [&](std::string id, std::string plan, std::string regime, op_kind kind, std::size_t tokens, std::size_t heads,
                      std::size_t V) {
    trial_case c{std::move(id), std::move(plan), path_kind::chunk, 64, {}};
    generation& g = c.inputs;
    g.regime = std::move(regime);
    g.seed = options.seed;
    g.op = kind;
    g.tokens = tokens;
    g.key_heads = 1;
    g.value_heads = heads;
    g.key_dim = 32;
    g.value_dim = V;
    g.initial_state = "normal";
    g.cotangents = true;
    return c;
  };
  const auto in_fp16 = [](trial_case c) {
    c.inputs.dtype = fp16;
    return c;
  };
  const auto by_token = [](trial_case c) {
    c.path = path_kind::recurrent;
    c.chunk = 0;
    return c;
  };
  trial_case exact = of("delta/exact rule", "fla-chunk-delta", "tiny-keys", op::delta_rule, 150, 1, 32);
  exact.inputs.rule = rule_kind::exact;
  exact.inputs.beta = "two-logit";
  // Two whole chunks and a tail.
  return {
      of("delta/typical", "fla-chunk-delta", "typical", op::delta_rule, 150, 1, 32),
      of("delta/collinear", "fla-chunk-delta", "collinear", op::delta_rule, 150, 1, 32),
      exact,
      of("gdn/tails", "fla-chunk-gdn", "tails", op::gated_delta_rule, 150, 1, 16),
      in_fp16(of("gdn/fp16", "fla-chunk-gdn", "model-gates", op::gated_delta_rule, 150, 1, 32)),
      of("gdn/slow-decay", "fla-chunk-gdn", "slow-decay", op::gated_delta_rule, 300, 1, 32),
      of("gdn/beta-two", "fla-chunk-gdn", "beta-two", op::gated_delta_rule, 150, 1, 32),
      of("gdn/gva", "fla-chunk-gdn", "gva", op::gated_delta_rule, 96, 2, 32),
      of("gdn/varlen", "fla-chunk-gdn", "varlen", op::gated_delta_rule, 300, 1, 32),
      of("gdn/state-cotangent", "fla-chunk-gdn", "state-cotangent", op::gated_delta_rule, 150, 1, 32),
      in_fp16(of("gdn/tiny-keys", "fla-chunk-gdn", "tiny-keys", op::gated_delta_rule, 150, 1, 32)),
      of("gdn/beta-zero", "fla-chunk-gdn", "beta-zero", op::gated_delta_rule, 150, 1, 32),
      of("gdn/correlated", "fla-chunk-gdn", "correlated", op::gated_delta_rule, 150, 1, 32),
      of("gdp/typical", "fla-chunk-gdp", "typical", op::gated_delta_product, 75, 1, 32),
      of("kda/typical", "fla-chunk-kda", "typical", op::kda, 150, 1, 32),
      of("kda/model-gates", "fla-chunk-kda", "model-gates", op::kda, 150, 1, 32),
      of("flashqla/typical", "flashqla", "typical", op::gated_delta_rule, 150, 1, 32),
      of("attention-gym/typical", "attention-gym-kda", "typical", op::kda, 150, 1, 32),
      by_token(of("delta step/typical", "fla-recurrent-delta", "typical", op::delta_rule, 150, 1, 32)),
      by_token(of("gdn step/typical", "fp32", "typical", op::gated_delta_rule, 150, 1, 32)),
  };
}

}  // namespace

void add_gradients(const run_options& options, results& r) {
  const auto all = faults(pass_kind::backward);
  add_planted(
      options,
      {"gradient-", judges, {all.begin(), all.end()}, cases(options), &judge, &changed, &size_of_change, &named, &place_of}, r);
  const frame& slips = r.frames.at("gradient-not-refuted");
  const frame others = slips.where([](const auto& row) { return !row["fault"].text().starts_with("hdh-"); });
  r.values("gradient-sums", {{"slips", slips.size() - others.size()},
                             {"other_slips", others.size()},
                             {"largest_other", others.size() == 0 ? 0.0 : others.over("size", greatest)}});
  r.values("gradient-limits", {{"fla", fla_limit(op_kind::kda, "dq")},
                               {"fla_gate", fla_limit(op_kind::kda, "dg")},
                               {"flashqla", flashqla_limit},
                               {"attention_gym", attention_gym_limit}});
}

}  // namespace deltaproof::detail::referee_study
