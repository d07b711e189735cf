// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "studies/referee/inverses.hpp"

#include <algorithm>
#include <cmath>

#include "deltaproof/kernel/check.hpp"
#include "deltaproof/kernel/emulate.hpp"
#include "deltaproof/kernel/regimes.hpp"
#include "deltaproof/kernel/slice.hpp"

namespace deltaproof::detail::referee_study {
namespace {

constexpr std::size_t dim = 128;
/// Of each law, judged by `check`; the inverse sees one chunk at a time, so these show what all of them form.
constexpr std::size_t judged_tokens = 256;

struct pairing {
  std::string_view of;
  std::string_view against;
  op_kind op;
  std::size_t chunk;
  bool repaired;
};
constexpr std::array<pairing, 8> pairings{{
    {"flashkda-fp16-neumann", "flashkda-fp16-neumann", op_kind::kda, 16, false},
    {"flashkda-repaired", "flashkda-repaired", op_kind::kda, 16, true},
    {"fla-chunk-kda", "fla-chunk-kda", op_kind::kda, 64, true},
    {"neumann-64", "neumann-64", op_kind::gated_delta_rule, 64, false},
    {"doubling-128", "doubling-128", op_kind::gated_delta_rule, 128, false},
    {"bf16-between-steps", "bf16-between-steps", op_kind::gated_delta_rule, 64, false},
    {"bf16-between-steps", "fla-chunk-gdn", op_kind::gated_delta_rule, 64, false},
    {"fla-chunk-gdn", "fla-chunk-gdn", op_kind::gated_delta_rule, 64, true},
}};

check_report judged(const problem& p, const result& r, const plan& by, const run_options& options) {
  check_options how;
  how.plans = {by};
  how.threads = options.threads;
  how.stop = options.interrupted;
  how.referee.power = false;
  return check(p, r, how);
}

/// The error of one run over all tokens.
void measure_run(const problem& p, const plan& of, std::size_t chunk, const reference& truth, unsigned threads,
                 inverse_row& row) {
  const result r = emulate(p, variants(of, p, path_kind::chunk, chunk).front(), {}, threads);
  const std::vector<double> got = r.o.to_doubles();
  const std::size_t tokens = p.tokens();
  double errors = 0, size = 0;
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t i = t * dim; i < (t + 1) * dim; ++i) {
      const double e = got[i] - truth.o.value[i];
      errors += e * e;
      size += truth.o.value[i] * truth.o.value[i];
      if (!std::isfinite(got[i]) && !row.first_nonfinite) row.first_nonfinite = t;
    }
  }
  row.error = std::sqrt(errors / size);
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

inverse_survey run_inverses(const run_options& options) {
  inverse_survey out;
  struct whole_law {
    problem p;
    reference truth;
  };
  for (std::size_t law = 0; law < key_laws.size(); ++law) {
    for (const op_kind op : {op_kind::kda, op_kind::gated_delta_rule}) {
      if (options.stopped()) return out;
      options.progress("inverses", static_cast<double>(2 * law + (op == op_kind::kda ? 0 : 1)) / (2 * key_laws.size()));
      whole_law whole{make_problem(key_laws[law], op, key_laws[law].tokens, options.seed), {}};
      question ask;
      ask.threads = options.threads;
      ask.stop = options.interrupted;
      whole.truth = solve(whole.p, ask);
      const problem first = slice(whole.p, {0, 0, judged_tokens});
      for (const pairing& pair : pairings) {
        if (pair.op != op) continue;
        if (options.stopped()) return out;
        inverse_row row;
        row.law = law;
        row.of = pair.of;
        row.against = pair.against;
        row.chunk = pair.chunk;
        row.repaired = pair.repaired;
        row.judged_tokens = judged_tokens;
        const plan of = plan_named(pair.of), by = plan_named(pair.against);
        emulation_options how;
        how.stages = pair.of != pair.against;  // against its own plan what counts is the plan
        result r = emulate(first, variants(of, first, path_kind::chunk, pair.chunk).front(), how, options.threads);
        r.path = path_kind::chunk;
        r.chunk_size = pair.chunk;
        const check_report report = judged(first, r, by, options);
        row.verdict = name_of(report.judged);
        row.reason = report.reason;
        if (report.conformance) {
          const plan_report& c = *report.conformance;
          row.adequate = c.adequacy.adequate;
          row.kept = c.conforms != verdict::refuted;
          row.first_bad = c.first_bad_stage;
          for (const range_report& range : c.adequacy.ranges) {
            if (range.what != "inverse intermediate" || range.known != "predicted") continue;
            row.reaches = range.reaches;
            row.limit = range.limit;
            row.format = range.format;
          }
          for (const judged_stage& s : c.stages) {
            if (s.name != "Ai") continue;
            row.bias = s.bias;
            if (s.rms_limit) row.rms_ratio = s.rms_ratio / s.rms_limit->value;
          }
        }
        measure_run(whole.p, of, pair.chunk, whole.truth, options.threads, row);
        out.rows.push_back(std::move(row));
      }
    }
  }
  out.complete = true;
  return out;
}

}  // namespace deltaproof::detail::referee_study
