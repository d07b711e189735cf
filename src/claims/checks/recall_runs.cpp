// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The experiments of document `recall`, run: DeltaNet (β = 1) and RLS (ridge 10⁻⁶) on 1000 keys uniform on the unit sphere of
// 64 channels, in double. Beside a mean over the draws stands the standard deviation of one, `_deviation`.

#include "claims/checks/recall.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/rule/baselines.hpp"
#include "deltaproof/scan/recurrent.hpp"

namespace deltaproof::claim_detail {
namespace {

constexpr auto dim = static_cast<std::size_t>(recall_channels);
constexpr std::uint64_t draws = 4;
constexpr std::uint64_t tokens = 1000;
constexpr std::uint64_t seed = 1;
constexpr std::uint64_t draws_of_lengths = 32;
constexpr std::uint64_t draws_of_information = 8;
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

std::vector<vector> unit_vectors(philox& stream) {
  std::vector<vector> keys;
  for (std::uint64_t t = 0; t < tokens; ++t) keys.push_back(unit_vector(stream));
  return keys;
}

vector values_of(relationship f, vector key) {
  for (double& x : key) x = value_of(f, x);
  return key;
}

double error_of(const vector& read, const vector& value) {
  double sum = 0;
  for (std::size_t i = 0; i < dim; ++i) sum += (read[i] - value[i]) * (read[i] - value[i]);
  return sum / static_cast<double>(dim);
}

/// Numbers of each draw, by name.
class tally {
 public:
  void add(const std::string& name, double x) { of_[name].push_back(x); }
  void write(claim_values& out) const {
    for (const auto& [name, all] : of_) {
      const auto n = static_cast<double>(all.size());
      double sum = 0;
      double squared = 0;
      for (const double x : all) sum += x;
      for (const double x : all) squared += (x - sum / n) * (x - sum / n);
      out[name] = sum / n;
      out[name + "_deviation"] = std::sqrt(squared / (n - 1));
    }
  }

 private:
  std::map<std::string, std::vector<double>> of_;
};

/// Mean squared errors per channel, at a query independent of the keys against the token's own value, over all tokens, and of
/// the final state at all stored keys; the mean square of the values is the error of predicting 0. share_within_0_004: of the
/// stored keys but the last one, which is exact.
claim_values errors_of_runs(relationship f, bool normalised) {
  tally over;
  claim_values out;
  double least = HUGE_VAL;
  double most = 0;
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    philox stream(seed, draw);
    recurrence<double> delta(dim, dim);
    recursive_least_squares<double> rls(dim, dim, 1e-6);
    std::vector<vector> keys;
    std::vector<vector> values;
    vector read(dim);
    std::map<std::string, double> mean;
    const auto add = [&](const char* name, double error) { mean[name] += error / static_cast<double>(tokens); };
    for (std::uint64_t t = 0; t < tokens; ++t) {
      keys.push_back(unit_vector(stream));
      const vector query = unit_vector(stream);
      values.push_back(values_of(f, keys.back()));
      const double length = std::sqrt(error_of(values.back(), vector(dim)) * static_cast<double>(dim));
      for (double& x : values.back()) x /= normalised ? length : 1;
      delta.step(keys.back(), values.back(), 1.0);
      rls.step(keys.back(), values.back());
      delta.read(query, read);
      add("delta", error_of(read, values.back()));
      rls.read(query, read);
      const double of_rls = error_of(read, values.back());
      add("rls", of_rls);
      if (t >= tokens / 2) add("rls_in_the_second_half", 2 * of_rls);
      add("zero_predictor", error_of(values.back(), vector(dim)));
    }
    for (std::size_t t = 0; t < keys.size(); ++t) {
      delta.read(keys[t], read);
      const double error = error_of(read, values[t]);
      add("delta_at_stored_keys", error);
      if (t + 1 < keys.size()) add("share_within_0_004", error <= 0.004 ? 1 : 0);
      least = std::min(least, error);
      most = std::max(most, error);
      rls.read(keys[t], read);
      add("rls_at_stored_keys", error_of(read, values[t]));
    }
    for (const auto& [name, x] : mean) over.add(name, x);
  }
  over.write(out);
  out["least_at_a_stored_key"] = least;
  out["most_at_a_stored_key"] = most;
  return out;
}

claim_values runs_of_quadratic() { return errors_of_runs(relationship::quadratic, false); }
claim_values runs_of_exponential() { return errors_of_runs(relationship::exponential, false); }
claim_values runs_of_quadratic_normalised() { return errors_of_runs(relationship::quadratic, true); }

/// DeltaNet's error over the mean square of the values, every relationship, not normalised.
claim_values runs_in_units() {
  claim_values out;
  for (const auto& [name, f] : relationships) {
    const claim_values run = errors_of_runs(f, false);
    const auto at = [&](const char* of) { return std::get<double>(run.at(of).value()); };
    out[std::string(name) + "_in_units"] = at("delta") / at("zero_predictor");
  }
  return out;
}

/// Identity, and the same draws with values that are normalised again; S_T − I is a product of projections, so that a fresh unit
/// vector is missed by (1 − 1/d)^T / d a channel.
claim_values runs_of_identity() {
  claim_values out = errors_of_runs(relationship::identity, false);
  const claim_values normalised = errors_of_runs(relationship::identity, true);
  out["moved_by_normalisation"] =
      std::abs(std::get<double>(out.at("delta").value()) - std::get<double>(normalised.at("delta").value()));
  out["expected_at_a_fresh_key"] = std::pow(1 - 1.0 / recall_channels, tokens) / recall_channels;
  return out;
}

/// Mean lengths of the vectors of powers, and the variance of an entry, of draws of 1000 keys.
claim_values lengths_of_powers() {
  tally over;
  claim_values out;
  for (std::uint64_t draw = 0; draw < draws_of_lengths; ++draw) {
    philox stream(seed, 200 + draw);
    const std::vector<vector> keys = unit_vectors(stream);
    for (const auto& [name, f] : relationships) {
      if (f == relationship::exponential || f == relationship::sine) continue;
      double lengths = 0;
      double mean = 0;
      double square = 0;
      for (const vector& k : keys) {
        const vector v = values_of(f, k);
        const double squared = error_of(v, vector(dim));
        lengths += std::sqrt(squared * static_cast<double>(dim)) / static_cast<double>(tokens);
        square += squared / static_cast<double>(tokens);
        for (const double x : v) mean += x / static_cast<double>(dim * tokens);
      }
      over.add(name, lengths);
      over.add(std::string(name) + "_variance", square - mean * mean);
    }
  }
  over.write(out);
  const auto at = [&](const std::string& name) { return std::get<double>(out.at(name).value()); };
  for (const char* name : {"quadratic", "cubic", "quartic"})
    out[std::string(name) + "_variance_relative_deviation"] =
        at(std::string(name) + "_variance_deviation") / at(std::string(name) + "_variance");
  out["first_over_mean_length"] = 1 / at("quadratic");
  return out;
}

/// Mutual information in nats, from a histogram of `bins` equal widths on either axis.
double information(const vector& x, const vector& y, std::size_t bins) {
  const auto bin = [bins](const vector& of) {
    const auto [low, high] = std::minmax_element(of.begin(), of.end());
    std::vector<std::size_t> out;
    for (const double v : of)
      out.push_back(std::min(bins - 1, static_cast<std::size_t>((v - *low) / (*high - *low) * static_cast<double>(bins))));
    return out;
  };
  const auto a = bin(x);
  const auto b = bin(y);
  vector joint(bins * bins);
  vector of_a(bins);
  vector of_b(bins);
  for (std::size_t i = 0; i < x.size(); ++i) {
    joint[a[i] * bins + b[i]] += 1;
    of_a[a[i]] += 1;
    of_b[b[i]] += 1;
  }
  const auto n = static_cast<double>(x.size());
  double nats = 0;
  for (std::size_t i = 0; i < bins * bins; ++i) {
    if (joint[i] > 0) nats += joint[i] / n * std::log(joint[i] * n / (of_a[i / bins] * of_b[i % bins]));
  }
  return nats;
}

/// All channels of all rows, from row `shift` on and round.
vector flat(const std::vector<vector>& rows, std::size_t shift = 0) {
  vector all;
  for (std::size_t t = 0; t < rows.size(); ++t) {
    const vector& row = rows[(t + shift) % rows.size()];
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

/// The place of each number among them: bins of equal counts see the order alone.
vector ranks(const vector& of) {
  std::vector<std::size_t> order(of.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return of[a] < of[b]; });
  vector rank(of.size());
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<double>(i);
  return rank;
}

template <class Machine>
vector outputs_of(const Machine& machine, const std::vector<vector>& keys) {
  std::vector<vector> out(keys.size(), vector(dim));
  for (std::size_t t = 0; t < keys.size(); ++t) machine.read(keys[t], out[t]);
  return flat(out);
}

/// Of one draw, over 50 × 50 cells: what keys share with values, in nats, and the part of it that outputs at stored keys share
/// with their values; RLS at fresh keys too, and, as the floor of the estimate, against the values of other tokens.
void share_information(tally& over, const std::string& name, relationship f, std::uint64_t draw) {
  constexpr std::size_t cells = 50;
  philox stream(seed, 100 + draw);
  const auto stored = unit_vectors(stream);
  const auto fresh = unit_vectors(stream);
  recurrence<double> delta(dim, dim);
  recursive_least_squares<double> rls(dim, dim, 1e-6);
  std::vector<vector> values;
  std::vector<vector> fresh_values;
  for (std::size_t t = 0; t < tokens; ++t) {
    values.push_back(values_of(f, stored[t]));
    fresh_values.push_back(values_of(f, fresh[t]));
    delta.step(stored[t], values[t], 1.0);
    rls.step(stored[t], values[t]);
  }
  const double whole = information(flat(stored), flat(values), cells);
  over.add(name, whole);
  over.add(name + "_delta", information(flat(values), outputs_of(delta, stored), cells) / whole);
  over.add(name + "_rls", information(flat(values), outputs_of(rls, stored), cells) / whole);
  over.add(name + "_rls_fresh", information(flat(fresh_values), outputs_of(rls, fresh), cells) / whole);
  over.add(name + "_rls_others", information(flat(values, 1), outputs_of(rls, stored), cells) / whole);
}

claim_values information_shared() {
  tally over;
  claim_values out;
  for (std::uint64_t draw = 0; draw < draws_of_information; ++draw) {
    for (const auto& [name, f] : relationships) {
      if (f != relationship::cubic) share_information(over, name, f, draw);
    }
  }
  over.write(out);
  for (const char* name : {"identity", "quadratic", "quartic", "exponential", "sine"})
    out[std::string(name) + "_bits"] = std::get<double>(out.at(name).value()) / std::numbers::ln2;
  return out;
}

/// What a histogram makes of functions that lose nothing: equal widths of several numbers, and equal counts.
claim_values information_by_cells() {
  philox stream(seed, 100);
  const vector k = flat(unit_vectors(stream));
  const auto through = [&](relationship f) { return values_of(f, k); };
  const vector cube = through(relationship::cubic);
  return {{"identity_25", information(k, k, 25)},
          {"identity_50", information(k, k, 50)},
          {"identity_100", information(k, k, 100)},
          {"cubic_50", information(k, cube, 50)},
          {"identity_by_rank", information(ranks(k), ranks(k), 50)},
          {"cubic_by_rank", information(ranks(k), ranks(cube), 50)},
          {"quadratic_by_rank", information(ranks(k), ranks(through(relationship::quadratic)), 50)},
          {"quartic_by_rank", information(ranks(k), ranks(through(relationship::quartic)), 50)},
          {"exponential_by_rank", information(ranks(k), ranks(through(relationship::exponential)), 50)}};
}

}  // namespace

std::span<const claim_check> recall_run_checks() {
  constexpr auto runs = claim_method::measurement;
  static constexpr auto all =
      std::to_array<claim_check>({{"runs_of_identity", runs, runs_of_identity, draws * tokens, seed},
                                  {"runs_of_quadratic", runs, runs_of_quadratic, draws * tokens, seed},
                                  {"runs_of_quadratic_normalised", runs, runs_of_quadratic_normalised, draws * tokens, seed},
                                  {"runs_of_exponential", runs, runs_of_exponential, draws * tokens, seed},
                                  {"runs_in_units", runs, runs_in_units, relationships.size() * draws * tokens, seed},
                                  {"lengths_of_powers", runs, lengths_of_powers, draws_of_lengths * tokens, seed},
                                  {"information_shared", runs, information_shared, draws_of_information * tokens * dim, seed},
                                  {"information_by_cells", runs, information_by_cells, tokens * dim, seed}});
  return all;
}

}  // namespace deltaproof::claim_detail
