// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/kernel/inverse_trial.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "kernel/inverse_runs.hpp"
#include "oracle/parallel.hpp"

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string digits(double x, const char* pattern = "%.3g") {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, pattern, x);
  return buffer;
}

double distance(double x, double_double truth) { return std::fabs((x - truth.hi()) - truth.lo()); }

double largest_error(const inverse_plan& plan, const matrix<double>& result, const matrix<double_double>& truth,
                     growth* observed) {
  double error = 0;
  for (std::size_t i = 0; i < result.rows(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const double x = detail::stored_in(plan.store, result(i, j));
      const double off = std::isfinite(x) ? distance(x, truth(i, j)) : infinity;
      error = std::max(error, off);
      if (observed != nullptr && !std::isfinite(x) && std::isfinite(observed->largest)) *observed = {infinity, "stored result"};
    }
  }
  return error;
}

const detail::inverse_arithmetic& arithmetic_of(const inverse_plan& plan) {
  require_possible(plan);
  for (const auto& table : {detail::inverse_arithmetics_wide(), detail::inverse_arithmetics_16_bit()}) {
    for (const auto& row : table) {
      if (row.operand == plan.operand && row.accumulate == plan.accumulate) return row;
    }
  }
  throw format_error("inverse: no arithmetic for these formats");  // require_possible allows the table's rows alone
}

std::string draws(std::size_t some, std::size_t all) { return std::to_string(some) + " of " + std::to_string(all) + " draws"; }

std::string stage_words(std::string_view stage) {
  if (stage == "power") return "a power of L";
  if (stage == "partial sum") return "a partial sum of the powers";
  if (stage == "none") return "nothing";
  return "an entry of the " + std::string(stage);
}

void explain(inverse_verdict& v, const inverse_plan& plan, std::size_t samples, bool worst_case) {
  const std::string in = plan.operand == plan.accumulate
                             ? std::string(name_of(plan.operand))
                             : std::string(name_of(plan.operand)) + " or " + std::string(name_of(plan.accumulate));
  const std::string limit = "8 u max(1, max|(I+L)^-1|) = " + digits(v.smallest_limit);
  const std::string reach = stage_words(v.promised.stage) + (worst_case ? " may reach " : " is expected to reach ") +
                            digits(v.promised.largest) + ", and one rounding of it (u = " + digits(unit_roundoff(plan.operand)) +
                            " in " + std::string(name_of(plan.operand)) + ") is already " + digits(v.promised_error);
  const bool predicted_bad = !(v.promised_error <= v.smallest_limit);
  if (v.left_format > 0) {
    v.reason = stage_words(v.observed.stage) + " left " +
               (v.observed.stage == "stored result" ? std::string(name_of(plan.store)) : in) + " in " +
               draws(v.left_format, samples) + ": an entry of the true inverse is at most " + digits(v.largest_entry) +
               ", its intermediates are not";
  } else if (v.beyond_limit > 0) {
    v.reason =
        "the error " + digits(v.error) + " is above the limit " + digits(v.limit) + " in " + draws(v.beyond_limit, samples);
    v.reason += predicted_bad ? ": " + reach
                              : "; the intermediates are small (" + digits(v.observed.largest) + "), their roundings add up";
  } else if (predicted_bad) {
    v.reason = "the error was within the limit in these draws, but nothing promises it: " + reach + ", above " + limit;
  } else {
    v.safe = true;
    v.reason = "no intermediate left " + in + ", the error " + digits(v.error) + " is within the limit " + digits(v.limit) +
               ", and " + stage_words(v.promised.stage) + (worst_case ? " cannot exceed " : " is expected to reach ") +
               digits(v.promised.largest);
  }
}

}  // namespace

void require_possible(const inverse_plan& plan) {
  std::string names;
  for (const format& f : inverse_formats) names += (names.empty() ? "" : ", ") + std::string(name_of(f));
  for (const format& f : {plan.operand, plan.accumulate, plan.store}) {
    if (std::find(inverse_formats.begin(), inverse_formats.end(), f) == inverse_formats.end()) {
      throw format_error("inverse: " + std::string(name_of(f)) + " is not a format an inverse can be tried in; take one of " +
                         names);
    }
  }
  if (!is_lossless(plan.operand, plan.accumulate)) {
    throw format_error("inverse: an accumulator in " + std::string(name_of(plan.accumulate)) +
                       " does not hold every operand in " + std::string(name_of(plan.operand)) + "; take --accumulate " +
                       std::string(name_of(plan.operand)) + " or fp32 or fp64");
  }
}

inverse_runs run_cases(const inverse_plan& plan, std::span<const inverse_case> cases, unsigned threads) {
  const detail::inverse_arithmetic& with = arithmetic_of(plan);
  inverse_runs runs{std::vector<matrix<double>>(cases.size()), std::vector<growth>(cases.size())};
  parallel_for(cases.size(), threads,
               [&](std::size_t s) { std::tie(runs.results[s], runs.observed[s]) = with.run(plan.method, cases[s].lower); });
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

growth bound_growth(const inverse_plan& plan, std::span<const inverse_case> cases) {
  if (cases.empty()) return {};
  matrix<double> largest(cases[0].lower.rows(), cases[0].lower.cols());
  for (const inverse_case& c : cases) {
    for (std::size_t i = 0; i < largest.size(); ++i)
      largest.data()[i] = std::max(largest.data()[i], std::fabs(c.lower.data()[i]));
  }
  return arithmetic_of(plan).bound(plan.method, largest);
}

inverse_verdict judge_inverse(const inverse_plan& plan, std::span<const inverse_case> cases, const inverse_runs& runs,
                              const growth& predicted, const growth* bound) {
  inverse_verdict v;
  v.promised = bound != nullptr ? *bound : predicted;
  v.promised_error = v.promised.largest * unit_roundoff(plan.operand);
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
  explain(v, plan, cases.size(), bound != nullptr);
  return v;
}

inverse_trial try_inverse(const inverse_plan& plan, const inverse_problem& problem, bool worst_case, unsigned threads) {
  require_possible(plan);
  inverse_trial trial;
  const inverse_inputs inputs(problem);
  const auto cases = inputs.rounded_to(plan.operand, threads);
  const inverse_runs runs = run_cases(plan, cases, threads);
  trial.mean_cosine = inputs.mean_cosine();
  trial.bound = bound_growth(plan, cases);
  trial.predicted = predict_growth(plan.method, problem);
  trial.verdict = judge_inverse(plan, cases, runs, trial.predicted, worst_case ? &trial.bound : nullptr);
  std::vector<double> error(cases.size());
  parallel_for(cases.size(), threads, [&](std::size_t s) {
    error[s] = largest_error(plan, runs.results[s],
                             plan.operand == fp64 ? cases[s].inverse : detail::true_inverse(inputs.drawn()[s]), nullptr);
  });
  trial.error_unrounded = *std::max_element(error.begin(), error.end());
  return trial;
}

}  // namespace deltaproof
