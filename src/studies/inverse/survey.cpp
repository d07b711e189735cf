// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/inverse/survey.hpp"

#include <map>

namespace deltaproof::detail::inverse {

std::vector<std::string> sorted_methods() {
  // Those that form no powers first, then by the rows that powers are summed over.
  const auto place = [](const std::string& name) {
    const inverse_method m = inverse_named(name);
    if (m.diagonal != diagonal_kind::neumann) return std::size_t{0};
    return m.block == 0 ? std::numeric_limits<std::size_t>::max() : m.block;
  };
  std::multimap<std::size_t, std::string> by_place;
  for (const auto& one : inverse_methods) by_place.emplace(place(std::string(one.name)), one.name);
  std::vector<std::string> names;
  for (const auto& [at, name] : by_place) names.push_back(name);
  return names;
}

frame judge_all(const inverse_problem& problem) {
  const std::vector<std::string> methods = sorted_methods();
  const inverse_inputs inputs(problem);
  std::vector<growth> predicted;
  for (const std::string& name : methods) predicted.push_back(predict_growth(inverse_named(name), problem));
  std::vector<std::vector<frame_row>> rows(methods.size());
  std::vector<inverse_case> cases;
  std::vector<inverse_runs> runs(methods.size());
  double largest_entry = 0;
  for (std::size_t a = 0; a < arithmetics.size(); ++a) {
    const arithmetic_plan& now = arithmetics[a];
    const bool same_operand = a > 0 && arithmetics[a - 1].operand == now.operand;
    const bool same_runs = same_operand && arithmetics[a - 1].accumulate == now.accumulate;
    if (!same_operand) cases = inputs.rounded_to(now.operand);
    if (now.operand == fp64) {
      for (const inverse_case& c : cases) largest_entry = std::max(largest_entry, c.largest);
    }
    for (std::size_t m = 0; m < methods.size(); ++m) {
      const inverse_plan plan{inverse_named(methods[m]), now.operand, now.accumulate, now.store};
      if (!same_runs) runs[m] = run_cases(plan, cases);
      const inverse_verdict v = judge_inverse(plan, cases, runs[m], predicted[m]);
      rows[m].push_back({methods[m], std::string(now.name), v.safe, v.observed.largest, v.error / v.limit, largest_entry});
    }
  }
  frame result(judged_columns);
  for (const auto& of_method : rows) {
    for (const frame_row& row : of_method) result.add(row);
  }
  return result;
}

}  // namespace deltaproof::detail::inverse
