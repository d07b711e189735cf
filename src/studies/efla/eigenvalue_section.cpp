// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/rule/rules.hpp"
#include "studies/efla/coefficient.hpp"

namespace deltaproof::detail::efla {
namespace {

const eigenvalue_result& result_of(const eigenvalue_survey& survey, std::string_view format_name, form how) {
  for (const eigenvalue_result& r : survey.results) {
    if (r.format_name == format_name && r.how == how) return r;
  }
  throw domain_error("no survey of " + std::string(format_name));
}

/// 1 - lambda = b n in bf16 for one norm, against beta, beside the exact one.
figure strength_figure() {
  figure f;
  f.id = "written";
  f.title = "What a bf16 step writes, b|k|², against what it should write";
  f.columns = 2;
  f.alt = "Left: a staircase across a straight line. Right: a smooth curve that approaches zero and steps that reach zero.";
  panel left;
  left.title = "written, small x";
  left.x = {"x = β|k|²", axis_scale::linear, 0, 0.02};
  left.y = {"b|k|²", axis_scale::linear, 0, 0.02};
  panel right;
  right.title = "kept, large x";
  right.x = {"x = β|k|²", axis_scale::linear, 3, 8};
  right.y = {"1 − b|k|²", axis_scale::linear, 0, 0.05};
  double last_dead = 0;
  double first_full = 0;
  for (panel* p : {&left, &right}) {
    const bool small = p == &left;
    series naive{std::string(name_of(form::naive)), {}, {}, series_style::steps};
    series careful{std::string(name_of(form::expm1)), {}, {}, series_style::steps};
    series truth{"exact", {}, {}};
    double last = -1;
    for (int i = 1; i <= 400; ++i) {
      const double wanted = small ? 0.02 * i / 400 : 3 + 5.0 * i / 400;
      const double x = round_to<bf16>(wanted).value();
      if (x == last) continue;
      last = x;
      const auto pick = [&](double written) { return small ? written : 1 - written; };
      naive.x.push_back(x);
      naive.y.push_back(pick(coefficient("bf16", form::naive, x, 1)));
      careful.x.push_back(x);
      careful.y.push_back(pick(coefficient("bf16", form::expm1, x, 1)));
      if (naive.y.back() == 0) (small ? last_dead : first_full) = small || first_full == 0 ? x : first_full;
      truth.x.push_back(x);
      const auto wide = rounded<fp64>::from_exact(x);
      truth.y.push_back(small ? (wide * exact_flow::gain(wide)).value() : exact_flow::stability(wide).value());
    }
    p->curves = {std::move(naive), std::move(careful), std::move(truth)};
  }
  f.caption = "Key of squared length 1. Left: the naive form writes nothing up to x = " + number(last_dead) +
              ", then in stairs of 2⁻⁸; through expm1 it follows the exact curve. Right: the exact flow leaves e^−x of the old "
              "value; in bf16 1 − e^−x is 1 from x = " +
              number(first_full) + " on, and the old value is gone entirely.";
  f.panels = {std::move(left), std::move(right)};
  return f;
}

}  // namespace

void add_eigenvalue(const run_options& options, const settings& size, report& r) {
  const eigenvalue_survey survey = survey_eigenvalues(options, size);
  if (!survey.complete) {
    r.unfinished.emplace_back("Eigenvalues of the rounded coefficient: interrupted.");
    return;
  }
  const eigenvalue_result& naive = result_of(survey, "bf16", form::naive);
  const eigenvalue_result& careful = result_of(survey, "bf16", form::expm1);
  const eigenvalue_result& library = result_of(survey, "bf16", form::library);
  const auto bf16_evidence = naive.exhaustive ? evidence::exhaustive(naive.cases * forms.size())
                                              : evidence::worst_found(naive.cases * forms.size(), options.seed);
  std::uint64_t above = 0;
  for (const eigenvalue_result& e : survey.results) above += e.above_one;
  r.findings.push_back(
      {"eigenvalue-ends",
       std::string("In bf16 λ = 1 − b n ") + (above == 0 ? "never exceeds 1, " : "exceeds 1, ") +
           (naive.exactly_one > 0 ? "is exactly 1 in the naive form up to x = " + number(naive.largest_dead_x, 3)
                                  : "is never exactly 1 in the naive form") +
           (careful.exactly_one == 0 ? " and never through expm1, " : " and through expm1 too, ") +
           "and falls to 0 or below from x = " + number(std::min(naive.smallest_full_x, careful.smallest_full_x), 3) +
           " on, as low as −" + number(std::max(naive.lowest_in_u, careful.lowest_in_u), 3) + " u (naive and expm1) and −" +
           number(library.lowest_in_u, 3) + " u (the library's form), where the exact flow keeps e^−x > 0.",
       bf16_evidence,
       {{"naive_exactly_one", naive.exactly_one},
        {"expm1_exactly_one", careful.exactly_one},
        {"largest_dead_x", naive.largest_dead_x},
        {"smallest_full_x", std::min(naive.smallest_full_x, careful.smallest_full_x)},
        {"lowest_in_u", std::max(naive.lowest_in_u, careful.lowest_in_u)},
        {"library_lowest_in_u", library.lowest_in_u},
        {"above_one", above}},
       "All pairs of significands of β and n, x from 2⁻⁴⁰ to 2¹¹; the sign of 1 − b n and its zero decided exactly by one fused "
       "operation. "
       "That 1 − e^−x stays in [0, 1) is ode.exact_flow.flow_eigenvalue_range; what else rounding does to λ is study "
       "eigenvalues."});
  table t;
  t.id = "eigenvalue";
  t.title = "The eigenvalue that the rounded coefficient leaves";
  t.columns = {"format",           "form", "pairs", "λ = 1: nothing written", "up to x", "λ = 0", "λ < 0", {"lowest, in u", 3},
               {"λ ≤ 0 from x", 4}};
  for (const eigenvalue_result& e : survey.results) {
    t.rows.push_back({e.format_name, std::string(name_of(e.how)), e.cases, e.exactly_one,
                      e.exactly_one == 0 ? cell("") : cell(e.largest_dead_x), e.exactly_zero, e.negative,
                      e.negative == 0 ? cell("") : cell(-e.lowest_in_u),
                      e.smallest_full_x == 0 ? cell("") : cell(e.smallest_full_x)});
  }
  t.note = std::string("β in [1, 2), n in every octave from 2⁻⁴⁰ (fp16: 2⁻¹⁴) to 2⁹; bf16: ") +
           (naive.exhaustive ? "all pairs of significands" : "a part of the pairs") + "; fp16: every " +
           std::to_string(size.fp16_stride) + "th β; fp32 and fp64: " + std::to_string(size.pairs) + " random pairs an octave.";
  r.tables.push_back(std::move(t));
  r.figures.push_back(strength_figure());
}

}  // namespace deltaproof::detail::efla
