// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// A question of one's own, in a project of its own: problems by law of keys, a kernel by its precision plan and that plan with
// one thing changed, errors against the certified reference. The words are in page.md; `custom_study page.md DIR` writes
// chunk-length.md, .json and .svg.

#include <cstdio>
#include <string>

#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/oracle/measure.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/plan/plan.hpp"
#include "deltaproof/study/grid.hpp"
#include "deltaproof/study/study.hpp"
#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/read_file.hpp"

using namespace deltaproof;

const grid_axis<std::string> laws{"keys", {"typical", "silu", "elu1", "collinear"}};

double error_of(const problem& p, const reference& truth, const plan_variant& arithmetic) {
  return measure(emulate(p, arithmetic).o.to_doubles(), truth.o, bf16).rel_fro.value;
}

results run(const run_options& options) {
  const auto rows_of = [&](const std::string& law) {
    generation wanted;
    wanted.regime = law;
    wanted.seed = options.seed;
    wanted.op = op_kind::delta_rule;
    const problem p = generate(wanted);
    const reference truth = solve(p);
    std::vector<frame_row> rows;
    for (const std::size_t chunk : {16U, 32U, 64U}) {
      plan_variant arithmetic = variants(plan_named("fla-chunk-delta"), p, path_kind::chunk, chunk).front();
      const double kept = error_of(p, truth, arithmetic);
      arithmetic.inverse.between = bf16;
      rows.push_back({chunk, kept, error_of(p, truth, arithmetic)});
    }
    return rows;
  };
  results r;
  frame errors = grid(options, "errors", {"chunk", "kept", "rounded"}, rows_of, laws);
  errors.derive("penalty", [](const auto& row) { return row.number("rounded") / row.number("kept"); });
  frame longest = errors.where("chunk", 64);
  longest.derive("growth", [&](const auto& row) {
    return row.number("kept") / errors.find({{"keys", row["keys"]}, {"chunk", 16}}, "kept");
  });
  r.values("longer-chunks", evidence::worst_found(longest.size(), options.seed), {{"growth", longest.over("growth", greatest)}});
  r.values("rounded-inverses", evidence::worst_found(errors.size(), options.seed),
           {{"penalty", errors.over("penalty", greatest)}});
  r.table("errors", errors);
  return r;
}

int main(int argc, char** argv) try {
  const std::string page = read_file(argc > 1 ? argv[1] : "page.md", report_limit);
  report made = run_study({"chunk-length", &run, false, page}, {});
  made.command = "custom_study page.md DIR";
  write_report(made, argc > 2 ? argv[2] : ".");
} catch (const error& refused) {
  std::fprintf(stderr, "%s\n", refused.what());
  return 2;
}
