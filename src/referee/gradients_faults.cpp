// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Planted faults of the backward pass: which would show on these inputs, and which the errors of the gradients are like.
#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <set>

#include "deltaproof/emulate/faults.hpp"
#include "referee/fault_projections.hpp"
#include "referee/gradients.hpp"
#include "support/parallel.hpp"

namespace deltaproof::referee_detail {

namespace {

constexpr std::size_t tensors = gradient_names.size();

/// One rounding of the forward or of the backward pass left out.
std::vector<plan_variant> one_rounding_fewer_backward(const plan_variant& v) {
  std::vector<plan_variant> out = one_rounding_fewer(v);
  const auto keep = [&](format backward_variant::* member) {
    if (((*v.backward).*member).precision >= fp32.precision) return;
    plan_variant finer = v;
    (*finer.backward).*member = fp32;
    out.push_back(std::move(finer));
  };
  const auto hold = [&](narrowing backward_variant::* member) {
    if (((*v.backward).*member).to.precision >= fp32.precision) return;
    plan_variant finer = v;
    (*finer.backward).*member = {fp32, false};
    out.push_back(std::move(finer));
  };
  using b = backward_variant;
  for (const auto member : {&b::operand, &b::read_operand, &b::intra_operand}) hold(member);
  for (const auto member : {&b::dh, &b::dv_local, &b::dv2, &b::dw, &b::ds, &b::dA, &b::state_sum, &b::residual, &b::dv, &b::dq,
                            &b::dk, &b::dbeta, &b::group_sum, &b::group_store})
    keep(member);
  for (const auto member : {&b::dA_between, &b::gated_key}) {
    const std::optional<format>& held = (*v.backward).*member;
    if (!held || held->precision >= fp32.precision) continue;
    out.push_back(v);
    ((*out.back().backward).*member).reset();
  }
  return out;
}

/// A lane that faults are planted in: all of it, or its last tokens, from the exact state on.
struct choice {
  std::size_t lane = 0;
  bool whole = true;
  gradient_lane at;
  std::vector<gradient_head> group;
};

matrix<double> last_rows(const matrix<double>& m, std::size_t rows) {
  matrix<double> out(rows, m.cols());
  std::copy_n(m.data() + (m.rows() - rows) * m.cols(), out.size(), out.data());
  return out;
}

/// The last tokens of a lane, as a lane of their own: what it gives its first state is another tensor.
void shorten(const problem& p, std::size_t tokens, choice& c) {
  const std::size_t dropped = c.at.range.tokens - tokens;
  c.whole = false;
  for (gradient_head& head : c.group) {
    const std::size_t rows = tokens * p.num_householder;
    head.in.state = reference_run(first_tokens(head.in, dropped)).final_state;
    for (matrix<double>* m : {&head.in.q, &head.in.g}) *m = last_rows(*m, tokens);
    for (matrix<double>* m : {&head.in.k, &head.in.v}) *m = last_rows(*m, rows);
    head.in.beta.erase(head.in.beta.begin(), head.in.beta.end() - static_cast<std::ptrdiff_t>(rows));
    head.d.d_o = last_rows(head.d.d_o, tokens);
  }
  for (gradient_part& part : c.at.parts) {
    if (part.is_state()) {
      part.judged = false;
      continue;
    }
    const std::size_t rows = tokens * part.steps;
    part.first += (part.rows - rows) * part.stride;
    if (!part.skip.empty()) part.skip.erase(part.skip.begin(), part.skip.end() - static_cast<std::ptrdiff_t>(rows * part.width));
    part.rows = rows;
    part.where = {{0, tokens}};
  }
}

/// As many lanes as the time allows, those that differ in length first; the first one may be shortened to its last whole chunks.
std::vector<choice> choose(const gradient_trial& t, std::size_t runs) {
  std::vector<std::size_t> order;
  std::set<std::size_t> lengths;
  for (const bool is_new : {true, false}) {
    for (std::size_t i = 0; i < t.lanes.size(); ++i) {
      if (lengths.insert(t.lanes[i].range.tokens).second == is_new && std::find(order.begin(), order.end(), i) == order.end())
        order.push_back(i);
    }
  }
  const double allowed = t.options.judge.seconds * 0.5;
  double spent = 0;
  std::vector<choice> out;
  for (const std::size_t i : order) {
    const std::size_t tokens = t.lanes[i].range.tokens;
    if (tokens == 0) continue;
    const double cost = static_cast<double>(runs) * seconds_of_gradient_run(t.p, t.variants.front(), tokens);
    if (!out.empty() && spent + cost > allowed) continue;
    choice c{i, true, t.lanes[i], take_group(t.p, t.lanes[i].sequence, t.lanes[i].key_head)};
    const auto fit = static_cast<std::size_t>(static_cast<double>(tokens) * allowed / cost);
    const std::size_t last = std::max(2 * t.unit, fit / t.unit * t.unit) + tokens % t.unit;
    if (cost > allowed && last < tokens) shorten(t.p, last, c);
    spent += std::min(cost, allowed);
    out.push_back(std::move(c));
  }
  return out;
}

/// What is judged of a lane, by tensor: its heads one after the other, what is not judged as 0.
std::vector<flat> by_tensor(const gradient_lane& at, const part_values& values) {
  std::vector<flat> out(tensors);
  for (std::size_t k = 0; k < at.parts.size(); ++k) {
    const gradient_part& part = at.parts[k];
    if (!part.judged) continue;
    flat x = as_flat(values[k].data(), values[k].size());
    for (std::size_t i = 0; i < part.skip.size(); ++i) x[i] = part.skip[i] ? 0 : x[i];
    out[part.tensor].insert(out[part.tensor].end(), x.begin(), x.end());
  }
  return out;
}

part_values minus(part_values a, const part_values& b) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    for (std::size_t i = 0; i < a[k].size(); ++i) a[k][i] -= b[k][i];
  }
  return a;
}

struct lane_runs {
  std::vector<tensor_errors> parts;
  std::vector<run_without> without;
  part_values plain;
  std::vector<fault_run> faults;
};

/// Without what take_sums adds.
fault_run run_fault(const fault& f, const gradient_trial& t, const choice& c, const lane_runs& runs) {
  emulation_options options;
  options.planted = &f;
  const plan_variant& variant = t.variants.front();
  part_values faulty = values_of(c.whole ? emulate_group_gradients(t.p, c.at.sequence, c.at.key_head, variant, options)
                                         : emulate_group_gradients(c.group, variant, options),
                                 c.at);
  fault_run out;
  for (std::size_t k = 0; k < faulty.size(); ++k) out.lost_tokens = out.lost_tokens || faulty[k].size() != runs.plain[k].size();
  if (out.lost_tokens) return out;
  out.difference = by_tensor(c.at, minus(faulty, runs.plain));
  if (!c.whole) return out;
  bool far = true;
  for (std::size_t k = 0; k < faulty.size(); ++k) {
    const bool breaks = mend(faulty[k], runs.plain[k]);
    out.breaks = out.breaks || (breaks && c.at.parts[k].judged && c.at.parts[k].skip.empty());
    far =
        far && std::all_of(runs.plain[k].begin(), runs.plain[k].end(), [](double x) { return std::fabs(x) < far_from_the_end; });
  }
  out.breaks = out.breaks && far;
  const part_values errors = errors_of_values(t, faulty, c.at);
  for (std::size_t k = 0; k < errors.size(); ++k) {
    if (!c.at.parts[k].judged) continue;
    const lane_norms n = norms_of(c.at.parts[k], errors[k]);
    out.finite_norms.rms.insert(out.finite_norms.rms.end(), n.rms.begin(), n.rms.end());
    out.finite_norms.max.insert(out.finite_norms.max.end(), n.max.begin(), n.max.end());
    out.finite_norms.changes.insert(out.finite_norms.changes.end(), n.changes.begin(), n.changes.end());
  }
  return out;
}

lane_runs run_lane(const gradient_trial& t, const choice& c, const std::vector<const fault*>& planted, std::size_t per_variant) {
  const std::size_t V = t.variants.size();
  lane_runs out;
  const auto values = [&](const plan_variant& variant, const emulation_options& options) {
    return values_of(emulate_group_gradients(c.group, variant, options), c.at);
  };
  out.plain = values(t.variants.front(), {});
  const std::vector<flat> base = by_tensor(c.at, errors_of_values(t, out.plain, c.at));
  const std::vector<plan_variant> finer = one_rounding_fewer_backward(t.variants.front());
  out.parts.resize(tensors);
  for (std::size_t k = 0; k < tensors; ++k) {
    out.parts[k].base = base[k];
    out.parts[k].same = out.parts[k].moved = std::vector<std::vector<flat>>(V, std::vector<flat>(per_variant));
  }
  for (const gradient_part& part : c.at.parts) out.parts[part.tensor].columns = part.width;
  std::vector<std::vector<flat>> beside(tensors, std::vector<flat>(finer.size()));
  const std::size_t draws = 2 * V * per_variant;
  std::mutex lock;
  std::size_t done = 0;
  parallel_for(draws + finer.size(), t.options.threads, [&](std::size_t job) {
    if (t.stopped()) return;
    const std::size_t v = job / 2 / per_variant, run = job / 2 % per_variant;
    const bool is_finer = job >= draws, moves = !is_finer && job % 2 == 1;
    std::vector<flat> errors;
    if (moves) {
      errors = by_tensor(c.at, gradient_errors_of_draw(c.at, c.group, t.variants[v], t.seed(7, c.lane, job)));
    } else {
      emulation_options options;
      options.noise_ulps = is_finer ? 0 : 1;
      options.seed = t.seed(7, c.lane, job);
      errors = by_tensor(c.at, minus(values(is_finer ? finer[job - draws] : t.variants[v], options), out.plain));
    }
    for (std::size_t k = 0; k < tensors; ++k) {
      tensor_errors& to = out.parts[k];
      (is_finer ? beside[k][job - draws] : moves ? to.moved[v][run] : to.same[v][run]) = std::move(errors[k]);
    }
    const std::lock_guard guard(lock);
    if (t.options.progress)
      t.options.progress("backward runs without planted faults",
                         static_cast<double>(++done) / static_cast<double>(draws + finer.size()));
  });
  out.without.resize(tensors);
  const std::vector<flat> plain = by_tensor(c.at, out.plain);
  for (std::size_t k = 0; k < tensors; ++k) {
    out.parts[k].sum_up();
    out.without[k].error = base[k];
    out.without[k].size = inner(plain[k], plain[k]);
    out.without[k].take_finer(beside[k]);
  }
  out.faults.resize(planted.size());
  for_blocks(planted.size(), faults_together, t.options.threads, [&](std::size_t first, std::size_t count) {
    if (t.stopped()) return;
    const std::span<fault_run> block = std::span(out.faults).subspan(first, count);
    for (std::size_t i = 0; i < count; ++i) block[i] = run_fault(*planted[first + i], t, c, out);
    take_sums(block, out.parts, out.without);
  });
  return out;
}

/// By the norms alone, those of a whole lane.
bool is_beyond(const lane_norms& n, std::size_t first_place, std::size_t first_change, const std::vector<threshold>& limits) {
  for (std::size_t b = 0; b < n.rms.size(); ++b) {
    if (n.rms[b] > limits[first_place + 2 * b].value || n.max[b] > limits[first_place + 2 * b + 1].value) return true;
  }
  for (std::size_t b = 0; b < n.changes.size(); ++b) {
    if (n.changes[b] > limits[first_change + b].value) return true;
  }
  return false;
}

std::string slice_text(const choice& c, std::size_t tokens) {
  return "gradients of sequence " + std::to_string(c.at.sequence) + " key head " + std::to_string(c.at.key_head) +
         (c.whole ? "" : ", its last " + std::to_string(tokens) + " tokens");
}

}  // namespace

std::vector<const fault*> gradient_faults_of(const gradient_trial& t) {
  std::vector<const fault*> out;
  for (const fault& f : faults(pass_kind::backward)) {
    if (applies(f, t.p, t.path)) out.push_back(&f);
  }
  return out;
}

std::size_t gradient_fault_tests(const gradient_trial& t) {
  if (!t.options.judge.power) return 0;
  const std::size_t planted = gradient_faults_of(t).size();
  return planted > 0 ? 2 * planted * tensors + tensors : 0;
}

fault_draws draw_gradient_faults(const gradient_trial& t, const drawn_gradients& runs, const std::vector<threshold>& limits) {
  fault_draws out;
  out.all = gradient_faults_of(t);
  const std::size_t V = t.variants.size(), per_variant = runs_beside_faults(V);
  const auto chosen = choose(t, out.all.size() + 2 * per_variant * V);
  if (chosen.empty() || out.all.empty()) return out;
  out.by_sums = std::any_of(t.variants.begin(), t.variants.end(), [&](const plan_variant& v) { return made_by_sums(v, t.p); });
  const by_run none(V, std::vector<double>(per_variant, 0.0));
  fault_sums nothing;
  nothing.same = nothing.moved = none;
  std::vector<std::vector<fault_sums>> all(out.all.size(), std::vector<fault_sums>(tensors, nothing));
  std::set<std::size_t> beyond;
  std::vector<error_sizes> sizes(tensors, {none, none});
  const bool far = is_far_from_the_end(runs.range);
  for (const choice& c : chosen) {
    if (t.stopped()) return out;
    out.slice += (out.slice.empty() ? "" : "; ") + slice_text(c, c.at.parts.front().rows);
    out.tests_shares = out.tests_shares && c.whole;
    const std::string key = "gradient faults " + t.lanes_key() + " " + std::to_string(c.lane);
    const bool reusable = c.at.whole;
    auto drawn = reusable ? recall<lane_runs>(t.options, key) : nullptr;
    if (!drawn) {
      drawn = std::make_shared<lane_runs>(run_lane(t, c, out.all, per_variant));
      if (reusable && !t.stopped()) keep(t.options, key, lane_runs(*drawn));
    }
    if (t.stopped()) return out;
    for (std::size_t k = 0; k < tensors; ++k) sizes[k].add(drawn->parts[k]);
    result_errors result = errors_beyond(drawn->parts, by_tensor(c.at, errors_of_result(t, c.at)));
    result.compare_with(drawn->without, c.group.front().in.k.rows() / std::max<std::size_t>(1, t.forward.chunk));
    for (std::size_t i = 0; i < out.all.size(); ++i) {
      const fault_run& run = drawn->faults[i];
      if (run.lost_tokens) continue;  // another shape, which no kernel's file has
      add_lane(run, drawn->parts, result, all[i]);
      if (is_beyond(run.finite_norms, runs.first_place[c.lane], runs.first_change[c.lane], limits) || (run.breaks && far))
        beyond.insert(i);
    }
  }
  for (std::size_t i = 0; i < out.all.size(); ++i) {
    if (beyond.count(i) != 0) out.by_norm.push_back(out.all[i]);
    for (std::size_t k = 0; k < tensors; ++k) {
      if (all[i][k].own <= 0) continue;
      out.projections.push_back(projection_on(*out.all[i], std::string(gradient_names[k]), std::move(all[i][k]), sizes[k]));
    }
  }
  for (std::size_t k = 0; k < tensors; ++k) out.sizes.push_back(size_of_error(std::string(gradient_names[k]), sizes[k]));
  return out;
}

}  // namespace deltaproof::referee_detail
