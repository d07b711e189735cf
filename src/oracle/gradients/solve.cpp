// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "deltaproof/oracle/gradients.hpp"
#include "oracle/gradients/group.hpp"
#include "oracle/parallel.hpp"
#include "oracle/sequence_at.hpp"

namespace deltaproof {
namespace {

constexpr int tiers[] = {53, 106, 128, 256, 512, 1024};

/// Whether each element of a part answers the question.
bool is_answered(const head_part& part, const std::optional<format>& to, const question& q) {
  double most = 0;
  for (const double x : part.value) most = std::max(most, std::fabs(x));
  for (std::size_t i = 0; i < part.value.size(); ++i) {
    if (!(part.radius[i] <= q.relative_radius * most) && q.relative_radius < std::numeric_limits<double>::infinity()) return false;
    if (to && !decided_rounding(part, i, *to)) return false;
    if (!std::isfinite(part.radius[i])) return false;
  }
  return true;
}

bool is_answered(const group_gradients& g, const question& q) {
  bool all = is_answered(g.q, q.round_output, q) && is_answered(g.k, q.round_output, q);
  for (const auto& head : g.heads) {
    for (const head_part* part : {&head.v, &head.beta, &head.g}) all = all && is_answered(*part, q.round_output, q);
    all = all && is_answered(head.initial_state, q.round_state, q);
  }
  return all;
}

/// Where runs of `width` elements of one group or head lie in a whole tensor: row r begins at first + r * stride.
struct layout {
  std::size_t first, stride, width;
};

void place(reference_tensor& to, const head_part& part, const layout& at) {
  while (to.low.size() < part.low.size()) to.low.emplace_back(to.value.size(), 0.0);
  for (std::size_t i = 0; i < part.value.size(); ++i) {
    const std::size_t where = at.first + i / at.width * at.stride + i % at.width;
    to.value[where] = part.value[i];
    to.radius[where] = part.radius[i];
    for (std::size_t c = 0; c < part.low.size(); ++c) to.low[c][where] = part.low[c][i];
  }
}

void place_group(reference_gradients& out, const problem& p, std::size_t sequence_index, std::size_t key_head, const group_gradients& g) {
  const sequence_range range = sequence_at(p, sequence_index);
  const std::size_t H = p.key_heads(), HV = p.value_heads(), K = p.key_dim(), V = p.value_dim(), group = HV / H;
  const std::size_t token = range.batch * p.tokens() + range.first_token, row = range.batch * p.steps() + range.first_token * p.num_householder;
  place(out.tensors.at("dq"), g.q, {(token * H + key_head) * K, H * K, K});
  place(out.tensors.at("dk"), g.k, {(row * H + key_head) * K, H * K, K});
  for (std::size_t i = 0; i < g.heads.size(); ++i) {
    const std::size_t h = key_head * group + i, channels = p.gate_per_channel() ? K : 1;
    place(out.tensors.at("dv"), g.heads[i].v, {(row * HV + h) * V, HV * V, V});
    place(out.tensors.at("dbeta"), g.heads[i].beta, {row * HV + h, HV, 1});
    if (p.g) place(out.tensors.at("dg"), g.heads[i].g, {(token * HV + h) * channels, HV * channels, channels});
    if (p.initial_state) place(out.tensors.at("dinitial_state"), g.heads[i].initial_state, {(sequence_index * HV + h) * K * V, K * V, K * V});
  }
}

reference_tensor zeros_like(const tensor& t) {
  return {t.shape(), std::vector<double>(t.size()), {}, std::vector<double>(t.size(), std::numeric_limits<double>::infinity())};
}

}  // namespace

reference_gradients solve_gradients(const problem& p, const question& q) {
  reference_gradients out;
  out.tensors.emplace("dq", zeros_like(p.q));
  out.tensors.emplace("dk", zeros_like(p.k));
  out.tensors.emplace("dv", zeros_like(p.v));
  out.tensors.emplace("dbeta", zeros_like(p.beta));
  if (p.g) out.tensors.emplace("dg", zeros_like(*p.g));
  if (p.initial_state) out.tensors.emplace("dinitial_state", zeros_like(*p.initial_state));
  const std::size_t jobs = p.sequence_count() * p.key_heads();
  std::mutex lock;
  std::size_t done = 0;
  parallel_for(jobs, q.threads, [&](std::size_t job) {
    const std::size_t n = job / p.key_heads(), h = job % p.key_heads();
    group_gradients best, now;
    bool some = false, answered = false;
    for (const int bits : tiers) {
      if (answered || bits > q.max_bits || (q.stop && q.stop->load())) break;
      if (!run_group(p, n, h, bits, q.stop, now)) continue;
      best = std::move(now);
      some = true;
      answered = is_answered(best, q);
    }
    const std::lock_guard guard(lock);
    if (q.stop && q.stop->load()) return;
    if (some) {
      place_group(out, p, n, h, best);
      ++out.tiers[best.tier];
    }
    if (!answered) ++out.unanswered;
    if (q.progress) q.progress(++done, jobs);
  });
  out.stopped = q.stop && q.stop->load();
  return out;
}

}  // namespace deltaproof
