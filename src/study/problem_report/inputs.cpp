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

/// A histogram of finite values in `bins` equal bins, as shares.
series histogram(const std::vector<double>& values, std::string label, std::size_t bins = 40) {
  double low = infinity, high = -infinity;
  std::size_t finite = 0;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    ++finite;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  series out{std::move(label), {}, {}, series_style::bars};
  if (finite == 0) return out;
  // One value, or values equal to a few roundings: one bar among empty ones.
  if (high - low <= 1e-9 * std::max(std::fabs(low), std::fabs(high))) {
    low -= 0.5;
    high += 0.5;
  }
  const double width = (high - low) / static_cast<double>(bins);
  std::vector<double> share(bins, 0.0);
  for (const double x : values) {
    if (std::isfinite(x))
      share[std::min(bins - 1, static_cast<std::size_t>((x - low) / width))] += 1 / static_cast<double>(finite);
  }
  for (std::size_t b = 0; b < bins; ++b) {
    out.x.push_back(low + (static_cast<double>(b) + 0.5) * width);
    out.y.push_back(share[b]);
  }
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

void add_inputs(const subject& of, report& to) {
  table t{"preconditions",
          "What the inputs are like",
          {"property", "level", "says", {"least", 6}, {"largest", 6}, "rows concerned", "rows"},
          {}};
  bool expansive = false;
  for (const precondition& c : inspect(of.p)) {
    t.rows.push_back({c.name, std::string(name_of(c.level)), c.says, c.least, c.largest, c.count, c.rows});
    expansive = expansive || (c.name == "transition_factor" && c.level != remark::fine);
  }
  to.tables.push_back(std::move(t));
  const step_values v = values_of(of);
  if (v.norms.empty()) return;
  const double most = *std::max_element(v.stretch.begin(), v.stretch.end()),
               least = *std::min_element(v.stretch.begin(), v.stretch.end());
  const double margin = std::min(2 - most, least);
  const auto beyond =
      static_cast<std::size_t>(std::count_if(v.stretch.begin(), v.stretch.end(), [](double x) { return x < 0 || x > 2; }));
  finding f{"steps",
            "",
            evidence::measured(),
            {},
            "x = b |k|^2 of each step, b the effective step, in fp64; 1 - x is the eigenvalue along k (theorem "
            "`rank_one_determinant`)"};
  f.statement = beyond > 0 ? "Steps are expansive in " + count(beyond) + " of " + count(v.stretch.size()) +
                                 " rows (x = b|k|² in [" + number(least, 6) + ", " + number(most, 6) + "], 2 is the limit)."
                           : "Every step is non-expansive: x = b|k|² lies in [" + number(least, 6) + ", " + number(most, 6) +
                                 "]; the nearer end of [0, 2] is " + number(margin, 6) + " away.";
  f.values = {{"least_x", least},
              {"largest_x", most},
              {"margin", margin},
              {"expansive", beyond},
              {"rows", v.stretch.size()},
              {"median_x", median(v.stretch)},
              {"median_squared_norm", median(v.norms)}};
  to.findings.push_back(std::move(f));
  panel norms{"squared key norms", {"‖k‖²"}, {"share of rows"}, {histogram(v.norms, "rows")}};
  panel steps{
      "steps", {"x = b‖k‖²"}, {"share of rows"}, {histogram(v.stretch, "rows")}, {{mark_direction::vertical, 2, "limit 2"}}};
  to.figures.push_back({"inputs",
                        "Keys and steps",
                        "Along its key, each step multiplies the state by 1 − x: beyond x = 2 it expands the state.",
                        "Histograms of squared key norms and of x over all rows.",
                        {norms, steps}});
}

void add_gates(const subject& of, report& to) {
  if (!of.p.g) return;
  // Exponents in bits: of e^G and e^-G over a chunk, over blocks of 16 rows, and of the difference G_i - G_j <= 0.
  double whole = 0, blocks = 0, step = 0, largest_sum = 0;
  std::size_t resets = 0, rounds_to_one = 0, all = 0;
  const bool channels = of.p.gate_per_channel();
  const std::size_t K = channels ? of.p.key_dim() : 1,
                    tokens_in_chunk = std::max<std::size_t>(1, of.chunk / of.p.num_householder);
  for (const lowered_head& h : of.heads) {
    const auto ranges = of.p.sequences();
    const sequence_range& range = ranges[h.sequence];
    for (std::size_t c = 0; c < K; ++c) {
      double sum = 0, block = 0;
      for (std::size_t t = 0; t < range.tokens; ++t) {
        const std::size_t token = range.batch * of.p.tokens() + range.first_token + t;
        const double g = of.p.g->at((token * of.p.value_heads() + h.head) * K + c) / 0.69314718055994531;
        if (t % tokens_in_chunk == 0) sum = 0;
        if (t % 16 == 0) block = 0;
        ++all;
        rounds_to_one += g != 0 && g > -0x1p-9 / 0.69314718055994531 ? 1 : 0;
        if (!(g > -1e30)) {
          ++resets;
          continue;
        }
        sum += g;
        block += g;
        step = std::max(step, -g);
        whole = std::max(whole, std::fabs(sum));
        blocks = std::max(blocks, std::fabs(block));
        largest_sum = std::max(largest_sum, std::fabs(sum));
      }
    }
  }
  const double limit = fp32.emax + 1, cost = largest_sum * 0.69314718055994531 * 0x1p-24;
  table t{"gates",
          "Exponents that factored gates form, in bits",
          {"form", {"largest exponent", 5}, "fp32 and bf16 end at", "fp16 ends at", "overflows"},
          {}};
  const auto row = [&](const char* form, double bits) {
    const bool in_fp32 = bits >= limit, in_fp16 = bits >= fp16.emax + 1;
    t.rows.push_back({form, bits, limit, fp16.emax + 1, in_fp32 ? "fp32, bf16 and fp16" : in_fp16 ? "fp16" : "nothing"});
  };
  row("e^(G_i - G_j), i >= j: a difference", 0.0);
  row("e^G_i times e^-G_j, blocks of 16 tokens", blocks);
  row(("e^G_i times e^-G_j, whole chunks of " + std::to_string(tokens_in_chunk) + " tokens").c_str(), whole);
  to.tables.push_back(std::move(t));
  finding f{
      "gate-factors", "", evidence::measured(), {}, "cumulative sums of g within chunks, in fp64; a factor e^-G is 2^exponent"};
  f.statement = "Gates sum to " + number(whole) + " bits within a chunk (" + number(blocks) + " within 16 tokens): e^G · e^−G " +
                (whole >= limit ? blocks >= limit ? "overflows fp32 even in blocks of 16."
                                                  : "overflows fp32 over a chunk, not in blocks of 16."
                                : "stays within fp32.") +
                (cost > 0x1p-24 ? " In fp32 each e^(G_i − G_j) late in a chunk is off by up to " + number(cost, 2) + "." : "");
  f.values = {{"chunk_bits", whole},
              {"block_bits", blocks},
              {"step_bits", step},
              {"resets", resets},
              {"bf16_decay_rounds_to_one", rounds_to_one},
              {"gates", all},
              {"fp32_ratio_error", cost}};
  to.findings.push_back(std::move(f));
}

void add_memory(const subject& of, report& to) {
  table t{"memory",
          "How fast the state forgets",
          {"sequence", "head", "tokens", {"rate, nats a token", 4}, {"half-life, tokens", 4}},
          {}};
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
    t.rows.push_back({h.sequence, h.head, s.tokens, rate, rate < 0 ? std::log(2.0) / -rate : infinity});
  }
  if (t.rows.empty()) return;
  finding f{"forgetting",
            "",
            evidence::sampled(t.rows.size(), of.options.judge.seed, "one random start for each head"),
            {},
            "growth of a random row under the product of all transitions"};
  const double half = slowest < 0 ? std::log(2.0) / -slowest : infinity;
  f.statement = slowest > 1e-6 ? "The product of the transitions grows, by up to " + number(slowest, 3) +
                                     " nats a token: errors grow with it."
                               : "The state forgets by " + number(-slowest, 3) + " to " + number(-fastest, 3) +
                                     " nats a token; the longest half-life of a head is " + number(half, 3) + " tokens.";
  f.values = {{"largest_rate", slowest}, {"least_rate", fastest}, {"longest_half_life", half}};
  to.findings.push_back(std::move(f));
  if (t.rows.size() > 64) {
    t.note = "The first 64 of " + count(t.rows.size()) + " heads.";
    t.rows.resize(64);
  }
  to.tables.push_back(std::move(t));
}

}  // namespace deltaproof::problem_report_detail
