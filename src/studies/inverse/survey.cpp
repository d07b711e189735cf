// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/inverse/survey.hpp"

#include <algorithm>
#include <cmath>

namespace deltaproof::detail::inverse {

std::string name_of(const arithmetic_plan& a) {
  std::string text(deltaproof::name_of(a.operand));
  if (a.accumulate != a.operand) text += "/" + std::string(deltaproof::name_of(a.accumulate));
  if (a.store != a.operand) text += " to " + std::string(deltaproof::name_of(a.store));
  return text;
}

settings settings_for(const run_options& options) {
  if (options.full) return {{16, 32, 64, 128}, {16, 16, 16, 16}, 128};
  return {{16, 32, 64, 128}, {4, 4, 2, 1}, 128};
}

survey run_survey(const run_options& options, const settings& size) {
  survey s{size, {}, {}, false};
  constexpr std::size_t inner = methods.size() * arithmetics.size();
  const std::size_t laws = key_laws.size() * step_laws.size();
  const std::size_t jobs = size.chunks.size() * laws;
  s.outcomes.resize(jobs * inner);
  s.largest_entry.resize(jobs);
  const auto job = [&](std::size_t order) {
    const std::size_t at = jobs - 1 - order;  // the longest chunks first
    const std::size_t chunk = at / laws;
    const inverse_problem problem{key_law_named(key_laws[at % laws / step_laws.size()]),
                                  step_law_named(step_laws[at % step_laws.size()]),
                                  size.key_dim,
                                  size.chunks[chunk],
                                  size.samples[chunk],
                                  options.seed};
    const inverse_inputs inputs(problem);
    std::array<growth, methods.size()> predicted;
    for (std::size_t m = 0; m < methods.size(); ++m) predicted[m] = predict_growth(inverse_named(methods[m]), problem);
    std::vector<inverse_case> cases;
    std::vector<inverse_runs> runs(methods.size());
    for (std::size_t a = 0; a < arithmetics.size(); ++a) {
      const arithmetic_plan& now = arithmetics[a];
      const bool same_operand = a > 0 && arithmetics[a - 1].operand == now.operand;
      const bool same_runs = same_operand && arithmetics[a - 1].accumulate == now.accumulate;
      if (!same_operand) cases = inputs.rounded_to(now.operand);
      if (now.operand == fp64) {
        for (const inverse_case& c : cases) s.largest_entry[at] = std::max(s.largest_entry[at], c.largest);
      }
      for (std::size_t m = 0; m < methods.size(); ++m) {
        const inverse_plan plan{inverse_named(methods[m]), now.operand, now.accumulate, now.store};
        if (!same_runs) runs[m] = run_cases(plan, cases);
        const inverse_verdict v = judge_inverse(plan, cases, runs[m], predicted[m]);
        s.outcomes[at * inner + m * arithmetics.size() + a] = {v.safe,
                                                               !v.safe && v.left_format == 0 && v.beyond_limit == 0,
                                                               predicted[m].largest,
                                                               v.observed.largest,
                                                               v.promised_error / v.smallest_limit,
                                                               v.observed.largest * unit_roundoff(now.operand) / v.smallest_limit,
                                                               v.error / v.limit};
      }
    }
  };
  s.complete = for_each_index(jobs, options, "grid of inverses", job) == jobs;
  return s;
}

std::size_t safe_prefix(const survey& s, std::size_t chunk, std::size_t steps, std::size_t method, std::size_t arithmetic) {
  std::size_t keys = 0;
  for (; keys < key_laws.size(); ++keys) {
    for (std::size_t b = 0; b < steps; ++b) {
      if (!s.at(chunk, keys, b, method, arithmetic).safe) return keys;
    }
  }
  return keys;
}

}  // namespace deltaproof::detail::inverse
