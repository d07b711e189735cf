// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/inverse/inverse_trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "deltaproof/number/visit_format.hpp"
#include "inverse/inverse_runs.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string digits(double x) { return detail::general(x, 3); }

double distance(double x, double_double truth) { return std::fabs((x - truth.hi()) - truth.lo()); }

double largest_error(const inverse_plan& plan, const matrix<double>& result, const matrix<double_double>& truth,
                     growth* observed) {
  double error = 0;
  for (std::size_t i = 0; i < result.rows(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const double x = round_nearest(result(i, j), plan.store);
      const double off = std::isfinite(x) ? distance(x, truth(i, j)) : infinity;
      error = std::max(error, off);
      if (observed != nullptr && !std::isfinite(x) && std::isfinite(observed->largest)) *observed = {infinity, "stored result"};
    }
  }
  return error;
}

/// Where a method merges nothing, no operand of a merge is rounded.
format merge_of(const inverse_plan& plan) { return plan.method.block == 0 ? plan.operand : plan.merge.value_or(plan.operand); }

const detail::inverse_arithmetic* find_arithmetic(const inverse_plan& plan) {
  for (const auto& table :
       {detail::inverse_arithmetics_wide(), detail::inverse_arithmetics_16_bit(), detail::inverse_arithmetics_mixed()}) {
    for (const auto& row : table) {
      if (row.operand == plan.operand && row.merge == merge_of(plan) && row.accumulate == plan.accumulate) return &row;
    }
  }
  return nullptr;
}

const detail::inverse_arithmetic& arithmetic_of(const inverse_plan& plan) {
  require_possible(plan);
  return *find_arithmetic(plan);
}

std::string draws(std::size_t some, std::size_t all) { return std::to_string(some) + " of " + std::to_string(all) + " draws"; }

std::string stage_words(std::string_view stage) {
  if (stage == "power") return "a power of L";
  if (stage == "partial sum") return "a partial sum of the powers of L";
  if (stage == "none") return "nothing";
  if (stage == "substitution") return "an entry of a forward substitution";
  return (stage.starts_with("off-diagonal") ? "an entry of an " : "an entry of the ") + std::string(stage);
}

// What decides, as the subject and verb of a sentence: "a power of L is expected to reach 20".
std::string decisive_words(const inverse_verdict& v) {
  const std::string reached = v.decided_by == "observation"  ? " reached "
                              : v.decided_by == "prediction" ? " is expected to reach "
                                                             : " is only proved to stay below ";
  return stage_words(v.decisive.stage) + reached + digits(v.decisive.largest) +
         (v.decided_by == "prediction" ? "" : " in these draws");
}

void explain(inverse_verdict& v, const inverse_plan& plan, std::size_t samples) {
  std::string in(name_of(plan.operand));
  if (merge_of(plan) != plan.operand) in += " or " + std::string(name_of(merge_of(plan)));
  if (plan.operand != plan.accumulate) in += " or " + std::string(name_of(plan.accumulate));
  const format coarse = coarsest_operand(plan);
  const std::string limit = "the limit " + digits(v.smallest_limit) +
                            " = 8 u max(1, max|(I+L)^-1|), u = " + digits(unit_roundoff(plan.store)) + " of " +
                            std::string(name_of(plan.store));
  const std::string reach = decisive_words(v) + ", and one rounding of it (u = " + digits(unit_roundoff(coarse)) + " in " +
                            std::string(name_of(coarse)) + ") may be off by " + digits(v.decisive_error);
  const bool growth_bad = !(v.decisive_error <= v.smallest_limit);
  if (v.left_format > 0) {
    v.reason = stage_words(v.observed.stage) + " left the range of " +
               (v.observed.stage == "stored result" ? std::string(name_of(plan.store)) : in) + " in " +
               draws(v.left_format, samples) + ": the true inverse has entries of at most " + digits(v.largest_entry) +
               (v.observed.stage != "stored result"      ? ", and the intermediates are larger"
                : v.largest_entry <= largest(plan.store) ? ", and the computed one is far from it"
                                                         : "");
  } else if (v.beyond_limit > 0) {
    v.reason =
        "the error " + digits(v.error) + " is above the limit " + digits(v.limit) + " in " + draws(v.beyond_limit, samples);
    v.reason +=
        growth_bad ? ": " + reach : "; the intermediates are small (" + digits(v.observed.largest) + "), their roundings add up";
  } else if (growth_bad) {
    v.reason = "the error was within the limit in these draws, but nothing guarantees it: " + reach + ", above " + limit;
  } else {
    v.safe = true;
    v.reason = "no intermediate left the range of " + in + ", and the error " + digits(v.error) + " is within the limit " +
               digits(v.limit) + "; one rounding of the largest intermediate is off by at most " + digits(v.decisive_error) +
               ", within it too: " +
               (v.decided_by == "bound"
                    ? stage_words(v.decisive.stage) + " cannot exceed " + digits(v.decisive.largest) + " in these draws"
                    : decisive_words(v));
  }
}

}  // namespace

void require_possible(const inverse_plan& plan) {
  std::string names;
  for (const format& f : inverse_formats) names += (names.empty() ? "" : ", ") + std::string(name_of(f));
  for (const format& f : {plan.operand, merge_of(plan), plan.accumulate, plan.store}) {
    if (std::find(inverse_formats.begin(), inverse_formats.end(), f) == inverse_formats.end()) {
      throw format_error("inverse: " + std::string(name_of(f)) + " is not a format an inverse can be tried in; take one of " +
                         names);
    }
  }
  if (!is_lossless(plan.operand, plan.accumulate)) {
    throw format_error("inverse: an accumulator in " + std::string(name_of(plan.accumulate)) + " cannot hold every " +
                       std::string(name_of(plan.operand)) + " operand; take --accumulate " + std::string(name_of(plan.operand)) +
                       (plan.operand == fp64   ? ""
                        : plan.operand == fp32 ? " or fp64"
                                               : " or fp32 or fp64"));
  }
  if (find_arithmetic(plan) == nullptr) {
    std::string pairs;
    for (const auto& row : detail::inverse_arithmetics_mixed()) {
      pairs += (pairs.empty() ? "" : "; ") + std::string("--format ") + std::string(name_of(row.operand)) + " --merge-format " +
               std::string(name_of(row.merge)) + " --accumulate " + std::string(name_of(row.accumulate));
    }
    throw format_error("inverse: operands in " + std::string(name_of(plan.operand)) + ", operands of merges in " +
                       std::string(name_of(merge_of(plan))) + " and sums in " + std::string(name_of(plan.accumulate)) +
                       " cannot be tried together; leave --merge-format out, or take one of: " + pairs);
  }
}

format coarsest_operand(const inverse_plan& plan) {
  return unit_roundoff(merge_of(plan)) > unit_roundoff(plan.operand) ? merge_of(plan) : plan.operand;
}

inverse_runs run_cases(const inverse_plan& plan, std::span<const inverse_case> cases, unsigned threads,
                       const std::atomic<bool>* stop) {
  const detail::inverse_arithmetic& with = arithmetic_of(plan);
  inverse_runs runs{std::vector<matrix<double>>(cases.size()), std::vector<growth>(cases.size())};
  parallel_for(cases.size(), threads, [&](std::size_t s) {
    detail::go_on(stop);
    std::tie(runs.results[s], runs.observed[s]) = with.run(plan.method, cases[s].lower, stop);
  });
  return runs;
}

growth predict_growth(const inverse_method& method, const inverse_problem& problem) {
  const auto& [low, high] = problem.beta;
  const std::size_t noise_dim =
      problem.keys.family == key_family::gaussian ? problem.key_dim : std::max<std::size_t>(problem.key_dim, 2) - 1;
  return estimate_growth(
      method, problem.chunk,
      entries_of_keys(correlation_of(problem.keys), noise_dim, (low + high) / 2, (low * low + low * high + high * high) / 3));
}

growth bound_growth(const inverse_plan& plan, std::span<const inverse_case> cases, const std::atomic<bool>* stop) {
  if (cases.empty()) return {};
  matrix<double> largest(cases[0].lower.rows(), cases[0].lower.cols());
  for (const inverse_case& c : cases) {
    for (std::size_t i = 0; i < largest.size(); ++i)
      largest.data()[i] = std::max(largest.data()[i], std::fabs(c.lower.data()[i]));
  }
  return arithmetic_of(plan).bound(plan.method, largest, stop);
}

inverse_verdict judge_inverse(const inverse_plan& plan, std::span<const inverse_case> cases, const inverse_runs& runs,
                              const growth& predicted, const growth* bound) {
  inverse_verdict v;
  v.promised = bound != nullptr ? *bound : predicted;
  v.promised_error = v.promised.largest * unit_roundoff(coarsest_operand(plan));
  v.smallest_limit = infinity;
  double worst = -1;
  for (std::size_t s = 0; s < cases.size(); ++s) {
    const inverse_case& c = cases[s];
    growth observed = runs.observed[s];
    const double error = largest_error(plan, runs.results[s], c.inverse, &observed);
    const double limit = 8 * unit_roundoff(plan.store) * c.largest;
    if (observed.largest > v.observed.largest) v.observed = observed;
    v.left_format += std::isfinite(observed.largest) ? 0 : 1;
    v.beyond_limit += error + c.radius <= limit ? 0 : 1;
    v.smallest_limit = std::min(v.smallest_limit, limit);
    v.largest_entry = std::max(v.largest_entry, c.largest);
    v.radius = std::max(v.radius, c.radius);
    if (error / limit > worst) {
      worst = error / limit;
      v.error = error;
      v.limit = limit;
    }
  }
  const bool seen_more = v.observed.largest > v.promised.largest;
  v.decisive = seen_more ? v.observed : v.promised;
  v.decisive_error = v.decisive.largest * unit_roundoff(coarsest_operand(plan));
  v.decided_by = seen_more ? "observation" : bound != nullptr ? "bound" : "prediction";
  explain(v, plan, cases.size());
  return v;
}

inverse_trial try_inverse(const inverse_plan& plan, const inverse_problem& problem, bool worst_case, unsigned threads,
                          const std::atomic<bool>* stop) {
  require_possible(plan);
  inverse_trial trial;
  try {
    const inverse_inputs inputs(problem, stop);
    const auto cases = inputs.rounded_to(plan.operand, threads, stop);
    const inverse_runs runs = run_cases(plan, cases, threads, stop);
    trial.mean_cosine = inputs.mean_cosine();
    trial.bound = bound_growth(plan, cases, stop);
    trial.predicted = predict_growth(plan.method, problem);
    trial.verdict = judge_inverse(plan, cases, runs, trial.predicted, worst_case ? &trial.bound : nullptr);
    std::vector<double> error(cases.size());
    parallel_for(cases.size(), threads, [&](std::size_t s) {
      detail::go_on(stop);
      error[s] = largest_error(plan, runs.results[s],
                               plan.operand == fp64 ? cases[s].inverse : detail::true_inverse(inputs.drawn()[s], stop), nullptr);
    });
    trial.error_unrounded = *std::max_element(error.begin(), error.end());
  } catch (const inverse_stopped&) {
    trial = {};
    trial.stopped = true;
  }
  return trial;
}

}  // namespace deltaproof
