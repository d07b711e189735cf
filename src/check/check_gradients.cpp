// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "check/check_parts.hpp"
#include "deltaproof/oracle/gradients.hpp"

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

/// Tokens of each (sequence, head) whose gradients are judged, from where to where.
struct judged_tokens {
  std::size_t from = 0, until = 0;
};

/// As the divergences leave them, to whole chunks on the chunk path.
judged_tokens tokens_of(const sequence_range& range, const gradient_divergence& d, const result& r, std::size_t n) {
  judged_tokens out{d.cotangents_from, d.states_until};
  if (path_of(r) == path_kind::chunk && r.chunk_size && *r.chunk_size > 0) {
    const std::size_t chunk = *r.chunk_size;
    out.from = ((out.from * n + chunk - 1) / chunk * chunk + n - 1) / n;
    if (out.until < range.tokens) out.until = out.until * n / chunk * chunk / n;
  }
  return out;
}

/// Elements in which the divergences leave nothing to judge. A head of q and k is judged where all heads of its group are.
std::vector<bool> beyond_range(const problem& p, const result& r, const std::string& name, std::size_t elements,
                               const std::vector<gradient_divergence>& divergences) {
  std::vector<bool> skip;
  const auto sequences = p.sequences();
  const std::size_t n = p.num_householder, K = p.key_dim(), V = p.value_dim();
  const bool by_key_head = name == "dq" || name == "dk", by_token = name == "dq" || name == "dg";
  const std::size_t heads = by_key_head ? p.key_heads() : p.value_heads(), steps = by_token ? 1 : n;
  const std::size_t width = by_key_head || (name == "dg" && p.gate_per_channel()) ? K : name == "dv" ? V : 1;
  for (const gradient_divergence& d : divergences) {
    if (skip.empty()) skip.assign(elements, false);
    const auto& range = sequences[d.sequence];
    const auto fill = [&](std::size_t at, std::size_t count) {
      std::fill_n(skip.begin() + static_cast<std::ptrdiff_t>(at), count, true);
    };
    judged_tokens judged = tokens_of(range, d, r, n);
    if (name == "dq") judged.from = 0;  // of states alone
    if (name == "dinitial_state") {
      if (judged.from > 0 || judged.until < range.tokens) fill((d.sequence * heads + d.value_head) * K * V, K * V);
      continue;
    }
    const std::size_t head = by_key_head ? p.key_head(d.value_head) : d.value_head;
    for (std::size_t row = 0; row < range.tokens * steps; ++row) {
      const std::size_t t = row / steps;
      if (t >= judged.from && t < judged.until) continue;
      fill((((range.batch * p.tokens() + range.first_token) * steps + row) * heads + head) * width, width);
    }
  }
  return skip;
}

/// Elements whose exact value rounds to infinity in the format they are stored in; a finite one that is due above twice its
/// largest number is wrong.
void look_beyond_format(const problem& p, const std::vector<double>& got, const reference_tensor& want, const format& stored,
                        std::vector<bool>& skip, tensor_report& t) {
  const double most = largest(stored);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double least = std::fabs(want.value[i]) - want.radius[i];
    if (!(least > most) || (!skip.empty() && skip[i])) continue;
    if (skip.empty()) skip.assign(got.size(), false);
    skip[i] = true;
    if (least > 2 * most && std::fabs(got[i]) < most && t.beyond_range++ == 0) {
      t.first_beyond_range = locate_gradient(p, t, {i, got[i], want.value[i]});
    }
  }
}

/// `diverged`: elements that are out of range; those beyond their own format are added.
tensor_report report_of(const problem& p, const std::string& name, const tensor& stored, const reference_tensor& want,
                        const check_options& options, overflow_of_plans& overflow, std::vector<bool>& diverged) {
  tensor_report t;
  t.name = name;
  t.dtype = stored.dtype();
  t.shape = stored.shape();
  for (const tensor_bound& b : options.judge.bounds) {
    if (b.tensor.empty() || b.tensor == name) t.bounds.push_back(b.limit);
  }
  const std::vector<double> got = stored.to_doubles();
  look_beyond_format(p, got, want, stored.element_format(), diverged, t);
  const std::vector<bool> overflowed = overflow.excused(name, got, diverged), skip = either(diverged, overflowed);
  t.errors = measure(got, want, stored.element_format(), skip);
  t.judged = judge(t.errors, t.bounds);
  if (t.judged == verdict::measured && is_imprecise(t.errors, stored.element_format())) t.judged = verdict::undecided;
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
  if (t.beyond_range > 0) t.judged = verdict::refuted;
  t.coverage.elements = got.size();
  for (std::size_t i = 0; i < diverged.size(); ++i) {
    if (diverged[i]) ++(std::isfinite(got[i]) ? t.coverage.out_of_range : t.coverage.overflowed);
  }
  t.coverage.overflowed_sums = static_cast<std::size_t>(std::count(overflowed.begin(), overflowed.end(), true));
  return t;
}

}  // namespace

judged_gradients judge_gradients(const problem& p, const result& r, const check_options& options, overflow_of_plans& overflow) {
  judged_gradients out;
  if (r.gradients.empty() || !p.has_cotangents()) return out;
  question ask;
  int precision = 0;
  bool wide = false;
  for (const auto& [name, gradient] : r.gradients) {
    precision = std::max(precision, gradient.element_format().precision);
    wide = wide || gradient.element_format() == fp64;
  }
  ask.relative_radius = std::ldexp(1.0, -precision - 4);
  ask.range.state = largest(wide ? fp64 : fp32);
  ask.max_bits = options.judge.max_bits;
  ask.threads = options.threads;
  ask.stop = options.stop;
  out.exact = solve_gradients(p, ask);
  const reference_gradients& want = out.exact;
  out.stopped = want.stopped;
  if (out.stopped) return out;
  out.divergences = want.divergences;
  for (const std::string_view name : gradient_names) {
    const auto given = r.gradients.find(std::string(name));
    if (given == r.gradients.end()) continue;
    std::vector<bool> skip = beyond_range(p, r, given->first, given->second.size(), want.divergences);
    out.tensors.push_back(report_of(p, given->first, given->second, want.tensors.find(name)->second, options, overflow, skip));
    if (!skip.empty()) out.skip.emplace(given->first, std::move(skip));
  }
  return out;
}

pairing outputs_in_range(const problem& p, const result& r, const std::vector<gradient_divergence>& divergences) {
  reference leaves;
  for (const gradient_divergence& d : divergences) {
    if (d.states_until < sequence_at(p, d.sequence).tokens)
      leaves.divergences.push_back({d.sequence, d.value_head, d.states_until});
  }
  pairing o{"o", nullptr, {}, {}};
  if (leaves.divergences.empty()) return o;
  o.got.resize(p.batch() * p.tokens() * p.value_heads() * p.value_dim());
  mark_skipped(p, r, leaves, o, nullptr);
  return o;
}

void note_missing_gradients(const problem& p, const result& r, check_report& out) {
  if (r.gradients.empty() || !p.has_cotangents() || out.stopped) return;
  std::string missing;
  for (const std::string_view name : gradient_names) {
    const bool exists = (name != "dg" || p.g) && (name != "dinitial_state" || p.initial_state);
    if (exists && r.gradients.count(std::string(name)) == 0) missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  if (!missing.empty() && out.judged != verdict::refuted)
    out.reason += "; gradients that the result lacks are not judged: " + missing;
}

}  // namespace deltaproof::check_detail
