// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "claims/recall_sample.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::claim_detail {
namespace {

constexpr auto dim = static_cast<std::size_t>(recall_channels);
using vector = std::vector<double>;

vector unit_vector(philox& stream) {
  vector k(dim);
  double squared = 0;
  for (double& x : k) {
    x = stream.normal();
    squared += x * x;
  }
  for (double& x : k) x /= std::sqrt(squared);
  return k;
}

double error_of(const vector& read, const vector& value) {
  double sum = 0;
  for (std::size_t i = 0; i < dim; ++i) sum += (read[i] - value[i]) * (read[i] - value[i]);
  return sum / static_cast<double>(dim);
}

}  // namespace

recall_sample sample_recall(relationship f, bool normalised) {
  recall_sample total;
  total.least_retrieval = HUGE_VAL;
  std::array<std::array<double, 5>, recall_draws> means{};
  for (std::uint64_t draw = 0; draw < recall_draws; ++draw) {
    philox stream(recall_seed, draw);
    recurrence<double> delta(dim, dim);
    recursive_least_squares<double> rls(dim, dim, 1e-6);
    std::vector<vector> keys;
    std::vector<vector> values;
    vector read(dim);
    const auto add = [&](std::size_t which, double error) { means[draw][which] += error / static_cast<double>(recall_tokens); };
    for (std::uint64_t t = 0; t < recall_tokens; ++t) {
      keys.push_back(unit_vector(stream));
      const vector query = unit_vector(stream);
      values.push_back(keys.back());
      for (double& x : values.back()) x = value_of(f, x);
      if (normalised) {
        const double length = std::sqrt(error_of(values.back(), vector(dim)) * static_cast<double>(dim));
        for (double& x : values.back()) x /= length;
      }
      delta.step(keys.back(), values.back(), 1.0);
      rls.step(keys.back(), values.back());
      delta.read(query, read);
      add(0, error_of(read, values.back()));
      rls.read(query, read);
      add(1, error_of(read, values.back()));
      add(4, error_of(values.back(), vector(dim)));
    }
    for (std::size_t t = 0; t < keys.size(); ++t) {
      delta.read(keys[t], read);
      const double error = error_of(read, values[t]);
      add(2, error);
      total.least_retrieval = std::min(total.least_retrieval, error);
      total.most_retrieval = std::max(total.most_retrieval, error);
      rls.read(keys[t], read);
      add(3, error_of(read, values[t]));
    }
  }
  const auto over_draws = [&](std::size_t which) {
    double sum = 0;
    double low = HUGE_VAL;
    double high = 0;
    for (const auto& of : means) {
      sum += of[which];
      low = std::min(low, of[which]);
      high = std::max(high, of[which]);
    }
    return sampled_mean{sum / static_cast<double>(recall_draws), (high - low) / 2};
  };
  total.delta_error = over_draws(0);
  total.rls_error = over_draws(1);
  total.delta_retrieval = over_draws(2);
  total.rls_retrieval = over_draws(3);
  total.mean_square = over_draws(4);
  return total;
}

void put(claim_values& values, const std::string& name, const sampled_mean& m) {
  values[name] = m.mean;
  values[name + "_half_range"] = m.half_range;
}

claim_values identity_retrieval() {
  const recall_sample sample = sample_recall(relationship::identity, false);
  claim_values out{{"expected_at_a_fresh_key", std::pow(1 - 1.0 / recall_channels, recall_tokens) / recall_channels},
                   {"most_at_a_stored_key", sample.most_retrieval}};
  put(out, "delta_at_stored_keys", sample.delta_retrieval);
  put(out, "rls_at_stored_keys", sample.rls_retrieval);
  put(out, "at_independent_queries", sample.delta_error);
  return out;
}

}  // namespace deltaproof::claim_detail
