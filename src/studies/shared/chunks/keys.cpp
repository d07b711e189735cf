// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/shared/chunks/keys.hpp"

#include <algorithm>
#include <cmath>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/random.hpp"
#include "studies/shared/keys.hpp"

namespace deltaproof::detail::chunks {
namespace {

// One Philox stream for each use, so that no two share numbers.
enum stream : std::uint64_t {
  of_keys = 11,
  of_mean = 12,
  of_queries = 13,
  of_values = 14,
  of_state = 15,
  of_steps = 16,
  of_choices = 17
};

void cluster(std::span<double> key, std::span<const double> mean, double cosine) {
  double overlap = 0;
  for (std::size_t c = 0; c < key.size(); ++c) overlap += key[c] * mean[c];
  for (std::size_t c = 0; c < key.size(); ++c) key[c] -= overlap * mean[c];
  shared::normalise(key);
  for (std::size_t c = 0; c < key.size(); ++c) key[c] = std::sqrt(cosine) * mean[c] + std::sqrt(1 - cosine) * key[c];
}

void settle(std::span<double> key) {
  for (double& x : key) x = common_value(x);
  while (shared::squared_norm(key) > 1) {
    double& largest = *std::max_element(key.begin(), key.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); });
    auto bits = round_to<bf16>(largest).bits();
    largest = rounded<bf16>::from_bits(--bits).value();
  }
}

}  // namespace

double cosine_of(key_kind kind) {
  switch (kind) {
    case key_kind::cosine_90:
      return 0.9;
    case key_kind::cosine_99:
      return 0.99;
    case key_kind::cosine_999:
      return 0.999;
    default:
      return 0;
  }
}

std::string_view name_of(key_kind kind) {
  constexpr std::array<std::string_view, key_kinds.size()> names{"fresh",      "signs",      "cosine_90", "cosine_99",
                                                                 "cosine_999", "vocabulary", "repeated"};
  return names[static_cast<std::size_t>(kind)];
}

double common_value(double x) { return round_to<fp16>(round_to<bf16>(x)).value(); }

std::vector<double> make_keys(key_kind kind, std::size_t rows, std::size_t key_dim, std::uint64_t seed) {
  philox random(seed, of_keys);
  philox mean_random(seed, of_mean);
  philox choices(seed, of_choices);
  std::vector<double> mean(key_dim);
  shared::draw(mean_random, mean);
  shared::normalise(mean);
  std::vector<double> keys(rows * key_dim);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<double> key = std::span(keys).subspan(r * key_dim, key_dim);
    if (kind == key_kind::repeated) {
      std::copy(mean.begin(), mean.end(), key.begin());
    } else if (kind == key_kind::signs) {
      for (double& x : key) x = (random.below(2) == 0 ? 1 : -1) / std::sqrt(static_cast<double>(key_dim));
    } else if (kind == key_kind::vocabulary && r >= vocabulary_size) {
      const std::size_t word = static_cast<std::size_t>(choices.below(vocabulary_size));
      for (std::size_t c = 0; c < key_dim; ++c) key[c] = keys[word * key_dim + c];
    } else {
      shared::draw(random, key);
      shared::normalise(key);
      if (cosine_of(kind) > 0) cluster(key, mean, cosine_of(kind));
    }
    settle(key);
  }
  return keys;
}

sequence<double> make_sequence(key_kind kind, const step_law& steps, std::size_t tokens, std::size_t key_dim,
                               std::size_t value_dim, double value_scale, std::uint64_t seed) {
  auto s = sequence<double>::zeros(tokens, 1, key_dim, value_dim);
  s.k = make_keys(kind, tokens, key_dim, seed);
  philox queries(seed, of_queries);
  philox values(seed, of_values);
  philox state(seed, of_state);
  philox step(seed, of_steps);
  for (double& x : s.q) x = common_value(queries.normal());
  if (value_scale > 0) {
    for (double& x : s.v) x = common_value(value_scale * values.normal());
  } else {
    for (double& x : s.initial_state.entries()) x = common_value(state.normal());
  }
  for (double& b : s.step) b = std::floor(128 * (steps.low + (steps.high - steps.low) * step.uniform())) / 128;
  return s;
}

}  // namespace deltaproof::detail::chunks
