// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/state_cache/runs.hpp"

#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::detail::state_cache {
namespace {

std::span<const double> row(const std::vector<double>& x, std::size_t at, std::size_t width) {
  return std::span(x).subspan(at * width, width);
}
template <class Real>
std::vector<Real> in(std::span<const double> x) {
  return {x.begin(), x.end()};
}

/// Rounds: each operation to Real, sums in turn.
template <class Real>
void step(recurrence<Real>& run, const token_list& t, std::size_t at) {
  const std::size_t K = run.state().rows(), V = run.state().cols();
  const auto decay = static_cast<Real>(t.decay[at]);
  run.decay({&decay, 1});
  run.step(in<Real>(row(t.k, at, K)), in<Real>(row(t.v, at, V)), static_cast<Real>(t.beta[at]));
}

struct cached {
  recurrence<float> run;
  block_store<float> store;
  std::size_t every;
  double error = 0;
};

/// Entries that changed by less than half a step of int8 with a scale for each row.
std::size_t dead_entries(const matrix<double>& before, const matrix<double>& after) {
  std::size_t dead = 0;
  for (std::size_t i = 0; i < after.rows(); ++i) {
    const double amax = as_number(worst(after.row(i)));
    for (std::size_t j = 0; j < after.cols(); ++j) dead += std::fabs(after(i, j) - before(i, j)) < amax / (2 * 127) ? 1 : 0;
  }
  return dead;
}

}  // namespace

block_format stored_as(const choice& c) {
  if (c.layout == "fixed") return block_format_named(c.element);
  return c.layout == "none" ? unscaled(c.element) : scaled(c.element, c.layout, scale_format::fp32);
}

head_runs run_tokens(const token_list& tokens, const shape& s, std::span<const choice> which, std::span<const std::size_t> at,
                     std::uint64_t seed) {
  constexpr std::size_t looked_at = 64;  // last tokens whose changes are counted
  const std::size_t K = s.key_dim, V = s.value_dim;
  recurrence<double> exact(K, V);
  std::vector<cached> runs;
  for (std::size_t c = 0; c < which.size(); ++c) {
    runs.push_back({recurrence<float>(K, V),
                    block_store<float>(stored_as(which[c]), which[c].rounding, element_named("bf16"), seed, c), which[c].every});
  }
  head_runs out;
  out.runs.resize(which.size());
  philox asked(seed, 26);
  std::vector<double> truth(V);
  std::vector<float> o(V);
  double gates = 0;
  std::size_t t = 0, dead = 0, counted = 0;
  for (const std::size_t end : at) {
    double size = 0;
    for (cached& c : runs) c.error = 0;
    for (; t < end; ++t) {
      const std::span<const double> q = row(tokens.k, asked.below(t + 1), K);
      const bool counts = t + looked_at >= at.back();
      const matrix<double> before = counts ? exact.state() : matrix<double>();
      step(exact, tokens, t);
      if (counts) {
        dead += dead_entries(before, exact.state());
        counted += K * V;
      }
      gates -= tokens.g[t];
      exact.read(q, truth);
      for (const double x : truth) size += x * x;
      for (cached& c : runs) {
        step(c.run, tokens, t);
        c.run.read(in<float>(q), o);
        for (std::size_t j = 0; j < V; ++j) {
          const double off = static_cast<double>(o[j]) - truth[j];
          c.error += off * off;
        }
        if ((t + 1) % c.every != 0) continue;
        std::vector<float> state(c.run.state().entries().begin(), c.run.state().entries().end());
        c.store(state, K, V, (t + 1) / c.every - 1);
        c.run.store([stored = state.begin()](float) mutable { return *stored++; });
      }
    }
    for (std::size_t c = 0; c < runs.size(); ++c) out.runs[c].error.push_back(std::sqrt(runs[c].error / size));
  }
  constexpr double ln_2 = 0.69314718055994530942;
  out.half_life = gates > 0 ? ln_2 * static_cast<double>(t) / gates : std::numeric_limits<double>::infinity();
  out.dead = static_cast<double>(dead) / static_cast<double>(counted);
  return out;
}

}  // namespace deltaproof::detail::state_cache
