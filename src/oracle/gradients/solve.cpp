// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "oracle/gradients/by_group.hpp"
#include "oracle/gradients/group.hpp"
#include "support/parallel.hpp"

namespace deltaproof {
namespace {

constexpr int tiers[] = {53, 106, 128, 256, 512, 1024};

/// Elements [first, last) of a part.
struct part_range {
  std::size_t first, last;
};

/// Whether each of those elements answers the question.
bool is_answered(const head_part& part, const part_range& among, const std::optional<format>& to, const question& q) {
  double most = 0;
  for (std::size_t i = among.first; i < among.last; ++i) most = std::max(most, std::fabs(part.value[i]));
  for (std::size_t i = among.first; i < among.last; ++i) {
    if (!(part.radius[i] <= q.relative_radius * most) && q.relative_radius < std::numeric_limits<double>::infinity())
      return false;
    if (to && !rounded_far_from_a_tie(part, i, *to) && !decided_rounding(part, i, *to)) return false;
    if (!std::isfinite(part.radius[i])) return false;
  }
  return true;
}

/// What lies between the divergences: dq needs the states alone, dinitial_state the cotangents.
bool is_answered(const group_gradients& g, std::size_t tokens, const question& q) {
  std::size_t until = tokens, from = 0;
  const auto between = [&](const head_part& part, std::size_t begin, std::size_t end) {
    const std::size_t width = tokens == 0 ? 0 : part.value.size() / tokens;
    return part_range{begin * width, std::max(begin, end) * width};
  };
  bool all = true;
  for (const auto& head : g.heads) {
    until = std::min(until, head.states_until);
    from = std::max(from, head.cotangents_from);
    for (const head_part* part : {&head.v, &head.beta, &head.g}) {
      all = all && is_answered(*part, between(*part, head.cotangents_from, head.states_until), q.round_output, q);
    }
    const std::size_t entries = head.cotangents_from == 0 ? head.initial_state.value.size() : 0;
    all = all && is_answered(head.initial_state, {0, entries}, q.round_state, q);
  }
  return all && is_answered(g.q, between(g.q, 0, until), q.round_output, q) &&
         is_answered(g.k, between(g.k, from, until), q.round_output, q);
}

/// Whether fp64 may answer: many numbers to be rounded to 24 bits and more hold some whose radius contains a tie.
bool is_worth_fp64(const problem& p, std::size_t tokens, const question& q) {
  constexpr std::size_t many = 1 << 16;
  const bool fine = q.round_output && q.round_output->precision >= 24 && q.max_bits > 53;
  return !fine || tokens * p.num_householder * p.key_dim() < many;
}

void place(reference_tensor& to, const solved_gradient& from) {
  const reference_tensor& part = from.part;
  while (to.low.size() < part.low.size()) to.low.emplace_back(to.value.size(), 0.0);
  for (std::size_t i = 0; i < part.value.size(); ++i) {
    const std::size_t where = from.first + i / from.width * from.stride + i % from.width;
    to.value[where] = part.value[i];
    to.radius[where] = part.radius[i];
    for (std::size_t c = 0; c < part.low.size(); ++c) to.low[c][where] = part.low[c][i];
  }
}

void give_group(const problem& p, std::size_t sequence_index, std::size_t key_head, const group_gradients& g,
                const std::function<void(const solved_gradient&)>& sink) {
  const sequence_range range = sequence_at(p, sequence_index);
  const std::size_t H = p.key_heads(), HV = p.value_heads(), K = p.key_dim(), V = p.value_dim(), group = HV / H;
  const std::size_t token = range.batch * p.tokens() + range.first_token,
                    row = range.batch * p.steps() + range.first_token * p.num_householder;
  sink({"dq", g.q, (token * H + key_head) * K, H * K, K});
  sink({"dk", g.k, (row * H + key_head) * K, H * K, K});
  for (std::size_t i = 0; i < g.heads.size(); ++i) {
    const std::size_t h = key_head * group + i, channels = p.gate_per_channel() ? K : 1;
    sink({"dv", g.heads[i].v, (row * HV + h) * V, HV * V, V});
    sink({"dbeta", g.heads[i].beta, row * HV + h, HV, 1});
    if (p.g) sink({"dg", g.heads[i].g, (token * HV + h) * channels, HV * channels, channels});
    if (p.initial_state) sink({"dinitial_state", g.heads[i].initial_state, (sequence_index * HV + h) * K * V, K * V, K * V});
  }
}

reference_tensor zeros_like(const tensor& t) {
  return {t.shape(), std::vector<double>(t.size()), {}, std::vector<double>(t.size(), std::numeric_limits<double>::infinity())};
}

}  // namespace

reference_gradients solve_gradients(const problem& p, const question& q) {
  std::map<std::string, reference_tensor, std::less<>> tensors;
  tensors.emplace("dq", zeros_like(p.q));
  tensors.emplace("dk", zeros_like(p.k));
  tensors.emplace("dv", zeros_like(p.v));
  tensors.emplace("dbeta", zeros_like(p.beta));
  if (p.g) tensors.emplace("dg", zeros_like(*p.g));
  if (p.initial_state) tensors.emplace("dinitial_state", zeros_like(*p.initial_state));
  std::mutex lock;  // a new component changes the tensors themselves
  reference_gradients out = solve_gradients_by_group(p, q, [&](const solved_gradient& part) {
    const std::lock_guard guard(lock);
    place(tensors.find(part.name)->second, part);
  });
  out.tensors = std::move(tensors);
  return out;
}

reference_gradients solve_gradients_by_group(const problem& p, const question& q,
                                             const std::function<void(const solved_gradient&)>& sink) {
  reference_gradients out;
  const std::size_t jobs = p.sequence_count() * p.key_heads();
  std::mutex lock;
  std::size_t done = 0;
  parallel_for(jobs, q.threads, [&](std::size_t job) {
    const std::size_t n = job / p.key_heads(), h = job % p.key_heads(), tokens = sequence_at(p, n).tokens;
    group_gradients best, now;
    bool some = false, answered = false;
    for (const int bits : tiers) {
      if (answered || bits > q.max_bits || (q.stop && q.stop->load())) break;
      if (bits == 53 && !is_worth_fp64(p, tokens, q)) continue;
      if (!run_group(p, n, h, bits, q.range.state, q.stop, now)) continue;
      best = std::move(now);
      some = true;
      answered = is_answered(best, tokens, q);
    }
    if (q.stop && q.stop->load()) return;
    if (some) give_group(p, n, h, best, sink);
    const std::lock_guard guard(lock);
    if (some) {
      for (std::size_t i = 0; i < best.heads.size(); ++i) {
        const auto& head = best.heads[i];
        if (head.states_until == tokens && head.cotangents_from == 0) continue;
        out.divergences.push_back({n, h * best.heads.size() + i, head.states_until, head.cotangents_from});
      }
      ++out.tiers[best.tier];
    }
    if (!answered) ++out.unanswered;
    if (q.progress) q.progress(++done, jobs);
  });
  std::sort(out.divergences.begin(), out.divergences.end(), [](const gradient_divergence& a, const gradient_divergence& b) {
    return std::tie(a.sequence, a.value_head) < std::tie(b.sequence, b.value_head);
  });
  out.stopped = q.stop && q.stop->load();
  return out;
}

}  // namespace deltaproof
