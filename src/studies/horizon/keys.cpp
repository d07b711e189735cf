// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/horizon/keys.hpp"

#include <cmath>

#include "deltaproof/number/random.hpp"

namespace deltaproof::detail::horizon {
namespace {

// One Philox stream for each kind, so that kinds do not share keys.
enum key_stream : std::uint64_t { of_directions = 1, of_words = 2, of_picks = 3, of_centres = 4 };

}  // namespace

std::string_view name_of(key_kind kind) {
  switch (kind) {
    case key_kind::fresh:
      return "fresh";
    case key_kind::repeated:
      return "repeated";
    case key_kind::vocabulary:
      return "vocabulary";
    case key_kind::clustered:
      return "clusters";
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
  philox choices(seed, of_picks);
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

}  // namespace deltaproof::detail::horizon
