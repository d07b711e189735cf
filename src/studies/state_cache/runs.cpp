// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/state_cache/runs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deltaproof::detail::state_cache {
namespace {

/// One state, token by token. Rounds: each operation to Real, sums in turn.
template <class Real>
class decoder {
 public:
  explicit decoder(const shared::shape& s) : keys_{s.key_dim}, values_{s.value_dim}, state_(keys_ * values_), change_(values_) {}

  void step(const double* k, const double* v, double beta, double decay) {
    const auto a = static_cast<Real>(decay), b = static_cast<Real>(beta);
    std::fill(change_.begin(), change_.end(), Real(0));
    for (std::size_t i = 0; i < keys_; ++i) {
      const auto ki = static_cast<Real>(k[i]);
      Real* const row = state_.data() + i * values_;
      for (std::size_t j = 0; j < values_; ++j) {
        row[j] *= a;
        change_[j] += ki * row[j];
      }
    }
    for (std::size_t j = 0; j < values_; ++j) change_[j] = b * (static_cast<Real>(v[j]) - change_[j]);
    for (std::size_t i = 0; i < keys_; ++i) {
      const auto ki = static_cast<Real>(k[i]);
      Real* const row = state_.data() + i * values_;
      for (std::size_t j = 0; j < values_; ++j) row[j] += ki * change_[j];
    }
  }
  void read(const double* q, std::vector<double>& o) const {
    std::vector<Real> sum(values_, Real(0));
    for (std::size_t i = 0; i < keys_; ++i) {
      const auto qi = static_cast<Real>(q[i]);
      for (std::size_t j = 0; j < values_; ++j) sum[j] += qi * state_[i * values_ + j];
    }
    o.assign(sum.begin(), sum.end());
  }
  [[nodiscard]] std::vector<Real>& state() { return state_; }
  [[nodiscard]] const std::vector<Real>& state() const { return state_; }

 private:
  std::size_t keys_, values_;
  std::vector<Real> state_, change_;
};

struct cached {
  decoder<float> run;
  block_store<float> store;
  std::size_t every;
  double error = 0;
};

/// Entries that changed by less than half a step of int8 with a scale for each row.
std::size_t dead_entries(const std::vector<double>& before, const std::vector<double>& after, std::size_t values) {
  std::size_t dead = 0;
  for (std::size_t row = 0; row < after.size(); row += values) {
    double amax = 0;
    for (std::size_t j = 0; j < values; ++j) amax = std::max(amax, std::fabs(after[row + j]));
    for (std::size_t j = 0; j < values; ++j) dead += std::fabs(after[row + j] - before[row + j]) < amax / (2 * 127) ? 1 : 0;
  }
  return dead;
}

}  // namespace

block_format stored_as(const choice& c) {
  if (c.layout == "fixed") return block_format_named(c.element);
  return c.layout == "none" ? unscaled(c.element) : scaled(c.element, c.layout, scale_format::fp32);
}

head_runs run_tokens(const shared::tokens& tokens, const shared::shape& s, std::span<const choice> which,
                     std::span<const std::size_t> at, std::uint64_t seed) {
  constexpr std::size_t looked_at = 64;  // last tokens whose changes are counted
  const std::size_t K = s.key_dim, V = s.value_dim;
  decoder<double> exact(s);
  std::vector<cached> runs;
  for (std::size_t c = 0; c < which.size(); ++c) {
    runs.push_back({decoder<float>(s), block_store<float>(stored_as(which[c]), which[c].rounding, element_named("bf16"), seed, c),
                    which[c].every});
  }
  head_runs out;
  out.runs.resize(which.size());
  philox asked(seed, 26);
  std::vector<double> truth, o;
  double gates = 0;
  std::size_t t = 0, dead = 0, counted = 0;
  for (const std::size_t end : at) {
    double size = 0;
    for (cached& c : runs) c.error = 0;
    for (; t < end; ++t) {
      const double *k = tokens.k.data() + t * K, *v = tokens.v.data() + t * V, *q = tokens.k.data() + asked.below(t + 1) * K;
      const bool counts = t + looked_at >= at.back();
      const std::vector<double> before = counts ? exact.state() : std::vector<double>();
      exact.step(k, v, tokens.beta[t], tokens.decay[t]);
      if (counts) {
        dead += dead_entries(before, exact.state(), V);
        counted += K * V;
      }
      gates -= tokens.g[t];
      exact.read(q, truth);
      for (const double x : truth) size += x * x;
      for (cached& c : runs) {
        c.run.step(k, v, tokens.beta[t], tokens.decay[t]);
        c.run.read(q, o);
        for (std::size_t j = 0; j < V; ++j) c.error += (o[j] - truth[j]) * (o[j] - truth[j]);
        if ((t + 1) % c.every == 0) c.store(c.run.state(), K, V, (t + 1) / c.every - 1);
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
