// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "deltaproof/oracle/gradients.hpp"
#include "kernel/check_parts.hpp"
#include "oracle/sequence_at.hpp"

namespace deltaproof::check_detail {
namespace {

/// Which axes of a gradient are what: [B, T or T n, heads, ...], or [N, HV, K, V] for the initial state.
element_location locate_gradient(const problem& p, const tensor_report& t, const element_error& e) {
  if (t.name == "dinitial_state") return locate(p, true, e);
  element_location at;
  at.got = e.got;
  at.want = e.want;
  std::size_t rest = e.index;
  if (t.shape.size() == 4) {
    at.element = {rest % t.shape[3]};
    rest /= t.shape[3];
  }
  at.head = rest % t.shape[2];
  rest /= t.shape[2];
  const std::size_t steps = t.name == "dq" || t.name == "dg" ? 1 : p.num_householder;
  at.token = rest % t.shape[1] / steps;
  at.batch = rest / t.shape[1];
  const auto sequences = p.sequences();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const auto& range = sequences[s];
    if (range.batch != at.batch || *at.token < range.first_token || *at.token >= range.first_token + range.tokens) continue;
    at.sequence = s;
    at.token_in_sequence = *at.token - range.first_token;
  }
  return at;
}

tensor_report report_of(const problem& p, const std::string& name, const tensor& stored, const reference_tensor& want,
                        const check_options& options, bool skipped) {
  tensor_report t;
  t.name = name;
  t.dtype = stored.dtype();
  t.shape = stored.shape();
  for (const tensor_bound& b : options.bounds) {
    if (b.tensor.empty() || b.tensor == name) t.bounds.push_back(b.limit);
  }
  const std::vector<double> got = stored.to_doubles();
  const std::vector<bool> skip(skipped ? got.size() : 0, true);
  t.errors = measure(got, want, stored.element_format(), skip);
  t.judged = judge(t.errors, t.bounds);
  if (t.judged == verdict::measured && no_digit_known(t.errors)) t.judged = verdict::undecided;
  if (t.judged == verdict::holds && !t.bounds.empty()) {
    const measurement zeros = measure(std::vector<double>(got.size(), 0.0), want, stored.element_format(), skip);
    t.exact_is_zero = zeros.max_abs.upper == 0;
    t.bounds_are_blind = std::none_of(t.bounds.begin(), t.bounds.end(),
                                      [&](const metric_bound& b) { return value_of(zeros, b.which).lower > b.limit.value; });
    if (t.bounds_are_blind && !t.exact_is_zero) t.judged = verdict::vacuous;
  }
  if (t.errors.worst) t.worst = locate_gradient(p, t, *t.errors.worst);
  if (t.errors.first_nonfinite) {
    t.first_nonfinite = locate_gradient(p, t, *t.errors.first_nonfinite);
    t.first_nonfinite->radius = want.radius[t.errors.first_nonfinite->index];
  }
  t.coverage.elements = t.errors.elements + t.errors.skipped;
  t.coverage.out_of_range = t.errors.skipped;
  return t;
}

}  // namespace

std::vector<tensor_report> judge_gradients(const problem& p, const result& r, const check_options& options, bool diverges, bool& stopped) {
  std::vector<tensor_report> out;
  if (r.gradients.empty() || !p.has_cotangents()) return out;
  question ask;
  int precision = 0;
  for (const auto& [name, gradient] : r.gradients) precision = std::max(precision, gradient.element_format().precision);
  ask.relative_radius = std::ldexp(1.0, -precision - 4);
  ask.max_bits = diverges ? 53 : options.max_bits;
  ask.threads = options.threads;
  ask.stop = options.stop;
  const reference_gradients want = solve_gradients(p, ask);
  stopped = want.stopped;
  if (stopped) return out;
  for (const std::string_view name : gradient_names) {
    const auto given = r.gradients.find(std::string(name));
    if (given == r.gradients.end()) continue;
    out.push_back(report_of(p, given->first, given->second, want.tensors.find(name)->second, options, diverges));
  }
  return out;
}

}  // namespace deltaproof::check_detail
