// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "studies/referee/inverses.hpp"

#include "deltaproof/check/check.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/files/slice.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof::detail::referee_study {
namespace {

struct pairing {
  std::string_view of;
  std::string_view against;
  op_kind op;
  std::size_t chunk;
  std::string_view kind;  // powers, substitution, repaired (it is expected to hold)
};
constexpr std::array<pairing, 8> pairings{{
    {"flashkda-fp16-neumann", "flashkda-fp16-neumann", op_kind::kda, 16, "powers"},
    {"flashkda-repaired", "flashkda-repaired", op_kind::kda, 16, "repaired"},
    {"fla-chunk-kda", "fla-chunk-kda", op_kind::kda, 64, "repaired"},
    {"neumann-64", "neumann-64", op_kind::gated_delta_rule, 64, "powers"},
    {"doubling-128", "doubling-128", op_kind::gated_delta_rule, 128, "powers"},
    {"bf16-between-steps", "bf16-between-steps", op_kind::gated_delta_rule, 64, "substitution"},
    {"bf16-between-steps", "fla-chunk-gdn", op_kind::gated_delta_rule, 64, "substitution"},
    {"fla-chunk-gdn", "fla-chunk-gdn", op_kind::gated_delta_rule, 64, "repaired"},
}};

check_report judged(const problem& p, const result& r, const plan& by, const run_options& options) {
  check_options how;
  how.plans = {by};
  how.stop = options.interrupted;
  how.judge.power = false;
  return check(p, r, how);
}

/// Of one run over all tokens: |error|_F / |exact|_F of o; empty where o is not finite.
cell error_of_run(const problem& p, const plan& of, std::size_t chunk, const reference& truth) {
  const result r = emulate(p, variants(of, p, path_kind::chunk, chunk).front(), {}, 1);
  const double error = shared::nearness_of(r.o.to_doubles(), truth.o.value).error;
  return std::isfinite(error) ? cell(error) : cell();
}

frame_row row_of(const pairing& pair, const problem& whole, const problem& first, const reference& truth,
                 const run_options& options) {
  const plan of = plan_named(pair.of), by = plan_named(pair.against);
  emulation_options how;
  how.stages = pair.of != pair.against;  // against its own plan what counts is the plan
  result r = emulate(first, variants(of, first, path_kind::chunk, pair.chunk).front(), how, 1);
  r.path = path_kind::chunk;
  r.chunk_size = pair.chunk;
  const check_report report = judged(first, r, by, options);
  bool adequate = false, kept = false;
  cell reaches, limit, format_name, first_bad, rms_ratio;
  if (report.conformance) {
    const plan_report& c = *report.conformance;
    adequate = c.adequacy.adequate;
    kept = c.conforms != verdict::refuted;
    first_bad = c.first_bad_stage;
    for (const range_report& range : c.adequacy.ranges) {
      if (range.what != "inverse intermediate" || range.known != "predicted") continue;
      reaches = range.reaches;
      limit = range.limit;
      format_name = range.format;
    }
    for (const judged_stage& s : c.stages) {
      if (s.name == "Ai" && s.rms_limit) rms_ratio = s.rms_ratio / s.rms_limit->value;
    }
  }
  frame_row row{pair.of, pair.against, pair.chunk, pair.kind, reaches, limit, format_name};
  row.insert(row.end(),
             {name_of(report.judged), adequate, kept, first_bad, rms_ratio, error_of_run(whole, of, pair.chunk, truth)});
  return row;
}

}  // namespace

problem make_problem(const key_law& law, op_kind op, std::size_t tokens, std::uint64_t seed) {
  generation g;
  g.regime = law.regime;
  g.op = op;
  g.seed = seed;
  g.tokens = tokens;
  g.key_heads = g.value_heads = 1;
  g.key_dim = g.value_dim = dim;
  g.initial_state = "none";
  return generate(g);
}

frame survey_inverses(const run_options& options) {
  const auto rows = [&](const key_law& law, op_kind op) {
    const problem whole = make_problem(law, op, law.tokens, options.seed);
    question ask;
    ask.stop = options.interrupted;
    const reference truth = solve(whole, ask);
    const problem first = slice(whole, {0, 0, judged_tokens});
    std::vector<frame_row> result;
    for (const pairing& pair : pairings) {
      if (pair.op == op) result.push_back(row_of(pair, whole, first, truth, options));
    }
    return result;
  };
  return grid(options, "inverses",
              {"of", "against", "chunk", "kind", "reaches", "limit", "format", "verdict", "adequate", "kept", "first_bad",
               "rms_ratio", "error"},
              rows, grid_axis<key_law>{"keys", {key_laws.begin(), key_laws.end()}},
              grid_axis<op_kind>{"op", {op_kind::kda, op_kind::gated_delta_rule}});
}

}  // namespace deltaproof::detail::referee_study
