// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A question of one's own, in a project of its own: problems by law of keys, a kernel by its precision plan and that plan with
// one thing changed, errors against the certified reference, a page. `custom_study DIR` writes chunk-length.md, .json and .svg.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "deltaproof/kernel/emulate.hpp"
#include "deltaproof/kernel/plan.hpp"
#include "deltaproof/kernel/regimes.hpp"
#include "deltaproof/number/errors.hpp"
#include "deltaproof/oracle/measure.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/study/study.hpp"

using namespace deltaproof;

const std::vector<std::string> laws{"typical", "silu", "elu1", "collinear"};
const std::vector<std::size_t> chunks{16, 32, 64};

double error_of(const problem& p, const reference& truth, const plan_variant& arithmetic) {
  return measure(emulate(p, arithmetic).o.to_doubles(), truth.o, bf16).rel_fro.value;
}

report run(const run_options& options) {
  report page;
  table errors{"errors", "Relative error of o", {"keys", "chunk", "as fla", "inverse rounded between its steps"}, {}};
  panel by_fla{"as fla", {.label = "chunk C", .ticks = {16, 32, 64}}, {.label = "relative error of o"}};
  panel rounded{"inverse rounded between its steps", by_fla.x, by_fla.y};
  double growth = 0, penalty = 0;  // the largest of error(64) / error(16) as fla, and of rounded / as fla
  for (const std::string& law : laws) {
    generation wanted;
    wanted.regime = law;
    wanted.seed = options.seed;
    wanted.op = op_kind::delta_rule;
    const problem p = generate(wanted);
    const reference truth = solve(p);
    series kept{law, {}, {}}, changed{law, {}, {}};
    for (const std::size_t chunk : chunks) {
      plan_variant arithmetic = variants(plan_named("fla-chunk-delta"), p, path_kind::chunk, chunk).front();
      kept.x.push_back(static_cast<double>(chunk));
      kept.y.push_back(error_of(p, truth, arithmetic));
      arithmetic.inverse.between = bf16;
      changed.x.push_back(static_cast<double>(chunk));
      changed.y.push_back(error_of(p, truth, arithmetic));
      errors.rows.push_back({law, chunk, kept.y.back(), changed.y.back()});
      penalty = std::max(penalty, changed.y.back() / kept.y.back());
    }
    growth = std::max(growth, kept.y.back() / kept.y.front());
    by_fla.curves.push_back(kept);
    rounded.curves.push_back(changed);
  }
  page.answer = "As fla computes it, a chunk of 64 costs at most " + number(growth, 3) + " times the error of one of 16.";
  page.findings = {{"longer-chunks",
                    page.answer,
                    evidence::worst_found(laws.size(), options.seed),
                    {{"largest_growth", growth}},
                    "Emulated bit for bit by the plan fla-chunk-delta; errors against the certified reference."},
                   {"rounded-inverses",
                    "Rounding the inverse between its steps costs at most " + number(penalty, 3) + " times the error.",
                    evidence::worst_found(errors.rows.size(), options.seed),
                    {{"largest_penalty", penalty}},
                    "The same plan, one field changed."}};
  page.tables = {errors};
  page.figures = {{.id = "errors",
                   .title = "Error against the chunk",
                   .caption = "One line a law of keys.",
                   .alt = "Errors of o against the chunk length",
                   .panels = {by_fla, rounded},
                   .shared_y = true}};
  page.not_claimed = {"256 tokens and one seed for each law; not a trained model's keys, not a card's arithmetic."};
  page.command = "custom_study DIR";
  return page;
}

int main(int argc, char** argv) try {
  const study mine{"chunk-length", "What does a longer chunk cost?", &run};
  write_report(run_study(mine, {}), argc > 1 ? argv[1] : ".");
} catch (const error& refused) {
  std::fprintf(stderr, "%s\n", refused.what());
  return 2;
}
