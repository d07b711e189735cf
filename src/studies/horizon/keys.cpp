// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/horizon/keys.hpp"

#include <algorithm>
#include <cmath>

#include "deltaproof/number/elementary.hpp"
#include "deltaproof/number/random.hpp"

namespace deltaproof::detail::horizon {
namespace {

/// Scales to length 1; returns the squared length it had.
double normalise(std::span<double> x) {
  double square = 0;
  for (const double entry : x) square += entry * entry;
  const double length = std::sqrt(square);
  for (double& entry : x) entry /= length;
  return square;
}

void draw(philox& random, std::span<double> x) {
  for (double& entry : x) entry = random.normal();
}

// One Philox stream for each kind, so that kinds do not share keys.
enum stream : std::uint64_t { of_directions = 1, of_words = 2, of_choices = 3, of_centres = 4 };

}  // namespace

std::string_view name_of(key_kind kind) {
  switch (kind) {
    case key_kind::fresh:
      return "fresh";
    case key_kind::repeated:
      return "one repeated";
    case key_kind::vocabulary:
      return "vocabulary of 8";
    case key_kind::clustered:
      return "8 clusters";
  }
  return {};
}

key_set make_keys(key_kind kind, std::size_t tokens, std::size_t key_dim, std::uint64_t seed) {
  const bool every_token = kind == key_kind::fresh || kind == key_kind::clustered;
  const std::size_t distinct = every_token ? tokens : kind == key_kind::repeated ? 1 : vocabulary_size;
  key_set keys;
  keys.key_dim = key_dim;
  keys.directions.resize(distinct * key_dim);
  keys.relative_square.resize(distinct);
  keys.index.resize(tokens);
  philox random(seed, every_token ? of_directions : of_words);
  philox choices(seed, of_choices);
  const auto row = [&](std::vector<double>& of, std::size_t i) { return std::span<double>(of).subspan(i * key_dim, key_dim); };
  for (std::size_t i = 0; i < distinct; ++i) {
    draw(random, row(keys.directions, i));
    keys.relative_square[i] = normalise(row(keys.directions, i)) / static_cast<double>(key_dim);
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    keys.index[t] = static_cast<std::uint32_t>(every_token ? t : choices.below(distinct));
  }
  if (kind != key_kind::clustered) return keys;
  std::vector<double> centres(vocabulary_size * key_dim);
  philox of_centre(seed, of_centres);
  for (std::size_t i = 0; i < vocabulary_size; ++i) {
    draw(of_centre, row(centres, i));
    normalise(row(centres, i));
  }
  const double share = std::sqrt(1 - cluster_spread * cluster_spread);
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto centre = row(centres, choices.below(vocabulary_size));
    const auto key = row(keys.directions, t);
    for (std::size_t i = 0; i < key_dim; ++i) key[i] = share * centre[i] + cluster_spread * key[i];
    normalise(key);
  }
  return keys;
}

std::vector<std::size_t> checkpoints(std::size_t last) {
  constexpr std::array<std::size_t, 10> tenths{10, 13, 16, 20, 25, 32, 40, 50, 63, 80};
  std::vector<std::size_t> result;
  for (std::size_t decade = 1; decade <= last; decade *= 10) {
    for (const std::size_t tenth : tenths) {
      const std::size_t t = tenth * decade / 10;
      if (t <= last && (result.empty() || t > result.back())) result.push_back(t);
    }
  }
  if (last > 0 && result.back() != last) result.push_back(last);
  return result;
}

double ln(double x) { return log(rounded<fp64>::from_exact(x)).value(); }

double log10_of(double x) { return ln(x) * 0.43429448190325182765; }

}  // namespace deltaproof::detail::horizon
