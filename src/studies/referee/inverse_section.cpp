// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "studies/referee/sections.hpp"
#include "studies/shared/text.hpp"

namespace deltaproof::detail::referee_study {
namespace {

using shared::of;

}  // namespace

void add_inverses(const inverse_survey& s, report& r) {
  table t;
  t.id = "inverses";
  t.title = "Inverses that shipped, and their repairs";
  t.columns = {"keys",          "kernel",    "judged by plan",  "C",         "an intermediate reaches", "it may reach", "verdict",
               "plan adequate", "plan kept", "first bad stage", "error of o"};
  std::size_t bad = 0, bad_refuted = 0, good = 0, good_holds = 0;
  for (const inverse_row& row : s.rows) {
    t.rows.push_back({key_laws[row.law].id, row.of, row.against, row.chunk, number(row.reaches, 2),
                      number(row.limit, 2) + " (" + row.format + ")", row.verdict, row.adequate ? "yes" : "no",
                      row.kept ? "yes" : "no", row.first_bad.empty() ? "" : row.first_bad,
                      row.first_nonfinite ? std::string("not finite") : number(row.error, 1)});
    const bool powers = !row.repaired && row.of == row.against && row.of != "bf16-between-steps";
    bad += powers ? 1 : 0;
    bad_refuted += powers && row.verdict == "refuted" && !row.adequate ? 1 : 0;
    good += row.repaired ? 1 : 0;
    good_holds += row.repaired && row.verdict == "holds" ? 1 : 0;
  }
  std::string laws;
  for (const key_law& law : key_laws)
    laws += "*" + std::string(law.id) + "*: " + std::string(law.what) + ", T = " + std::to_string(law.tokens) + ". ";
  t.note = laws +
           "All: B = H = HV = 1, K = V = 128, bf16, q unit, v N(0,1), no initial state. *It may reach*: beyond that one rounding "
           "of the intermediate is more than the budget of the inverse, 8 u max(1, largest entry), "
           "or overflows. Verdicts on the first " +
           std::to_string(s.rows.empty() ? 0 : s.rows.front().judged_tokens) +
           " tokens; the errors, relative Frobenius, over all.";
  finding f;
  f.id = "inverses-judged-before-running";
  f.statement = "Plans whose inverse sums powers are refuted as inadequate on correlated keys in " + of(bad_refuted, bad) +
                " runs, the inverse's intermediate named, whether or not their outputs are finite; the repaired plans hold in " +
                of(good_holds, good) + ".";
  f.kind = evidence::measured();
  f.values = {{"powers", bad}, {"powers_refuted", bad_refuted}, {"repaired", good}, {"repaired_hold", good_holds}};
  f.because =
      "What the plan's algorithm forms on these keys in exact arithmetic is compared with the range and the unit roundoff of the "
      "format it is rounded in.";
  r.findings.push_back(std::move(f));
  for (const inverse_row& row : s.rows) {
    if (row.of == row.against || row.law != 0) continue;
    const auto own = std::find_if(s.rows.begin(), s.rows.end(), [&](const inverse_row& x) {
      return x.law == row.law && x.of == row.of && x.against == row.of;
    });
    const auto promised =
        std::find_if(s.rows.begin(), s.rows.end(), [&](const inverse_row& x) { return x.law == row.law && x.of == row.against; });
    finding g;
    g.id = "promise-not-kept";
    g.statement = "A substitution rounded to bf16 between its steps, judged by the plan " + row.against +
                  " that promises fp32, is " + row.verdict + (row.first_bad.empty() ? "" : " at " + row.first_bad) +
                  ": the rms of its error over the bound is " + number(row.rms_ratio, 2) + " times the limit" +
                  (own != s.rows.end()
                       ? "; by the plan that says so it " + std::string(own->verdict == "holds" ? "holds" : "is " + own->verdict)
                       : "") +
                  ". Its outputs err by " + number(row.error, 1) + ", those of the promised arithmetic by " +
                  number(promised != s.rows.end() ? promised->error : 0, 1) + ": no tolerance on outputs tells the two apart.";
    g.kind = evidence::measured();
    g.values = {{"rms_over_limit", number(row.rms_ratio, 2)}, {"verdict", row.verdict}, {"first_bad_stage", row.first_bad}};
    g.because =
        "The inverse is recomputed from the stored A and judged against the bound of the promised arithmetic, element by element "
        "and in the mean.";
    r.findings.push_back(std::move(g));
  }
  r.tables.insert(r.tables.begin() + std::min<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(r.tables.size())), std::move(t));
}

}  // namespace deltaproof::detail::referee_study
