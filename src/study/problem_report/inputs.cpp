// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>

#include "deltaproof/number/random.hpp"
#include "deltaproof/oracle/inspect.hpp"
#include "study/problem_report/parts.hpp"

namespace deltaproof::problem_report_detail {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A histogram of finite values in 40 equal bins, as shares.
frame histogram(const std::vector<double>& values) {
  constexpr std::size_t bins = 40;
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double x) { return std::isfinite(x); });
  frame out({"value", "share"});
  if (finite.empty()) return out;
  auto [low, high] = std::ranges::minmax(finite);
  // One value, or values equal to a few roundings: one bar among empty ones.
  if (high - low <= 1e-9 * std::max(std::fabs(low), std::fabs(high))) {
    low -= 0.5;
    high += 0.5;
  }
  const double width = (high - low) / static_cast<double>(bins);
  std::vector<double> share(bins, 0.0);
  for (const double x : finite)
    share[std::min(bins - 1, static_cast<std::size_t>((x - low) / width))] += 1 / static_cast<double>(finite.size());
  for (std::size_t b = 0; b < bins; ++b) out.add({low + (static_cast<double>(b) + 0.5) * width, share[b]});
  return out;
}

struct step_values {
  std::vector<double> norms, stretch;  ///< |k|^2 and x = b |k|^2 of each row, all heads
};

step_values values_of(const subject& of) {
  step_values out;
  for (const lowered_head& h : of.heads) {
    const auto& s = h.in.scan;
    for (std::size_t r = 0; r < s.rows(); ++r) {
      double square = 0;
      for (const double k : s.k_row(r)) square += k * k;
      out.norms.push_back(square);
      out.stretch.push_back(s.step[r] * square);
    }
  }
  return out;
}

}  // namespace

void add_inputs(const subject& of, results& to) {
  frame preconditions({"property", "level", "says", "least", "largest", "concerned", "rows"});
  for (const precondition& c : inspect(of.p))
    preconditions.add({c.name, name_of(c.level), c.says, c.least, c.largest, c.count, c.rows});
  to.table("preconditions", std::move(preconditions));
  const step_values v = values_of(of);
  if (v.norms.empty()) return;
  const auto [least, most] = std::ranges::minmax(v.stretch);
  const auto beyond = std::ranges::count_if(v.stretch, [](double x) { return x < 0 || x > 2; });
  to.values("steps", {{"least_x", least},
                      {"largest_x", most},
                      {"margin", std::min(2 - most, least)},
                      {"expansive", beyond},
                      {"rows", v.stretch.size()},
                      {"median_x", median(v.stretch)},
                      {"median_squared_norm", median(v.norms)},
                      {"sentence", beyond > 0 ? "expands" : "contracts"}});
  to.table("norms", histogram(v.norms));
  to.table("stretch", histogram(v.stretch));
}

void add_gates(const subject& of, results& to) {
  if (!of.p.g) return;
  // Exponents in bits: of e^G and e^-G over a chunk, over blocks of 16 rows, and of the difference G_i - G_j <= 0.
  double whole = 0, blocks = 0, step = 0;
  std::size_t resets = 0, rounds_to_one = 0, all = 0;
  const bool channels = of.p.gate_per_channel();
  const std::size_t K = channels ? of.p.key_dim() : 1,
                    tokens_in_chunk = std::max<std::size_t>(1, of.chunk / of.p.num_householder);
  for (const lowered_head& h : of.heads) {
    const auto ranges = of.p.sequences();
    const sequence_range& range = ranges[h.sequence];
    for (std::size_t c = 0; c < K; ++c) {
      double sum = 0, in_block = 0;
      for (std::size_t t = 0; t < range.tokens; ++t) {
        const std::size_t token = range.batch * of.p.tokens() + range.first_token + t;
        const double g = of.p.g->at((token * of.p.value_heads() + h.head) * K + c) / 0.69314718055994531;
        if (t % tokens_in_chunk == 0) sum = 0;
        if (t % block == 0) in_block = 0;
        ++all;
        rounds_to_one += g != 0 && g > -0x1p-9 / 0.69314718055994531 ? 1 : 0;
        if (!(g > -1e30)) {
          ++resets;
          continue;
        }
        sum += g;
        in_block += g;
        step = std::max(step, -g);
        whole = std::max(whole, std::fabs(sum));
        blocks = std::max(blocks, std::fabs(in_block));
      }
    }
  }
  const double limit = fp32.emax + 1, cost = whole * 0.69314718055994531 * 0x1p-24;
  frame exponents({"form", "bits", "fp32_end", "fp16_end", "overflows"});
  for (const auto& [form, bits] : {std::pair{"difference", 0.0}, std::pair{"blocks", blocks}, std::pair{"chunks", whole}}) {
    exponents.add({form, bits, limit, fp16.emax + 1, bits >= limit ? "wide" : bits >= fp16.emax + 1 ? "half" : "neither"});
  }
  to.table("gates", std::move(exponents));
  to.values("gate-factors", {{"chunk_bits", whole},
                             {"block_bits", blocks},
                             {"step_bits", step},
                             {"resets", resets},
                             {"bf16_decay_rounds_to_one", rounds_to_one},
                             {"gates", all},
                             {"fp32_ratio_error", cost},
                             {"product", whole < limit     ? "nowhere"
                                         : blocks >= limit ? "everywhere"
                                                           : "chunks"},
                             {"ratio_errors", cost > 0x1p-24 ? "large" : "small"}});
}

void add_memory(const subject& of, results& to) {
  frame rates({"sequence", "head", "tokens", "rate", "half_life"});
  double slowest = -infinity, fastest = infinity;
  for (const lowered_head& h : of.heads) {
    const auto& s = h.in.scan;
    if (s.tokens == 0) continue;
    // A random row through the transitions of all tokens, normalised at each.
    philox random(of.options.judge.seed, h.head);
    std::vector<double> x(s.key_dim);
    for (double& e : x) e = random.normal();
    const auto normalise = [&] {
      double square = 0;
      for (const double e : x) square += e * e;
      const double norm = std::sqrt(square);
      if (norm > 0) {
        for (double& e : x) e /= norm;
      }
      return norm;
    };
    normalise();
    double log_growth = 0;
    for (std::size_t token = 0; token < s.tokens && log_growth > -infinity; ++token) {
      const auto decay = s.decay_of(token);
      for (std::size_t i = 0; i < x.size() && !decay.empty(); ++i) x[i] *= decay.size() == 1 ? decay[0] : decay[i];
      for (std::size_t j = 0; j < s.steps_per_token; ++j) {
        const auto k = s.k_row(token * s.steps_per_token + j);
        double along = 0;
        for (std::size_t i = 0; i < x.size(); ++i) along += k[i] * x[i];
        along *= s.step[token * s.steps_per_token + j];
        for (std::size_t i = 0; i < x.size(); ++i) x[i] -= along * k[i];
      }
      log_growth += std::log(normalise());
    }
    const double rate = log_growth / static_cast<double>(s.tokens);
    slowest = std::max(slowest, rate);
    fastest = std::min(fastest, rate);
    rates.add({h.sequence, h.head, s.tokens, rate, rate < 0 ? std::log(2.0) / -rate : infinity});
  }
  if (rates.size() == 0) return;
  to.values("forgetting", evidence::sampled(rates.size(), of.options.judge.seed, {}),
            {{"largest_rate", slowest},
             {"least_rate", fastest},
             {"longest_half_life", rates.over("half_life", greatest)},
             {"sentence", slowest > 1e-6 ? "grows" : "forgets"}});
  std::size_t row = 0;
  to.table("memory", rates.where([&](const frame::row&) { return row++ < listed; }));
}

}  // namespace deltaproof::problem_report_detail
