// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Makes sequences for tests from a short recipe (regime, seed, shapes, gate, range of steps), never from
// raw tensors, so that a failure is one line to repeat. Every value is a small dyadic fraction, exact in
// rationals, modulo a prime and in every binary format with 4 bits or more: `make_sequence<S>(recipe)` is
// the same sequence in each of them. `draw_recipe` draws recipes without a test framework.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/scan/sequence.hpp"

namespace deltaproof::testing {

/// How keys are drawn.
enum class key_regime {
  generic,      ///< entries in {-3/2, -1, ..., 3/2}
  one_key,      ///< one key repeated throughout
  vocabulary,   ///< keys out of a set of three
  alternating,  ///< k, -k, k, ...
  collinear,    ///< one key plus 1/4 in one channel
  zero_keys,    ///< generic, every third key or so zero
  unit_signs,   ///< (+-1, ..., +-1) / sqrt(K), K = 4^m: norm exactly 1
  hadamard,     ///< rows of the Sylvester matrix / sqrt(K), K = 4^m: orthogonal until they repeat
};

inline constexpr std::array<std::pair<key_regime, const char*>, 8> key_regimes{{
    {key_regime::generic, "generic"},
    {key_regime::one_key, "one_key"},
    {key_regime::vocabulary, "vocabulary"},
    {key_regime::alternating, "alternating"},
    {key_regime::collinear, "collinear"},
    {key_regime::zero_keys, "zero_keys"},
    {key_regime::unit_signs, "unit_signs"},
    {key_regime::hadamard, "hadamard"},
}};

struct sequence_recipe {
  key_regime regime = key_regime::generic;
  std::uint64_t seed = 0;
  std::size_t tokens = 0;
  std::size_t steps_per_token = 1;
  std::size_t key_dim = 1;  ///< rounded up to a power of 4 by unit_signs and hadamard
  std::size_t value_dim = 1;
  std::size_t chunk = 1;  ///< C, rows of k; for tests of chunkwise forms
  decay_kind decays = decay_kind::none;
  int step_from = 0;  ///< steps are drawn from {step_from, ..., step_to} / 8
  int step_to = 16;
  bool initial_state = false;
  int decay_from = 0;  ///< decays are drawn from {decay_from, ..., 4} / 4
};

inline const char* name_of(key_regime regime) { return key_regimes[static_cast<std::size_t>(regime)].second; }

inline std::ostream& operator<<(std::ostream& out, const sequence_recipe& r) {
  constexpr std::array<const char*, 3> decay_names{"none", "per_token", "per_channel"};
  return out << "{regime " << name_of(r.regime) << ", seed " << r.seed << ", T " << r.tokens << ", n " << r.steps_per_token
             << ", K " << r.key_dim << ", V " << r.value_dim << ", C " << r.chunk << ", decay "
             << decay_names[static_cast<std::size_t>(r.decays)] << ", step " << r.step_from << ".." << r.step_to
             << "/8, initial state " << (r.initial_state ? "yes" : "no") << ", decays from " << r.decay_from << "/4}";
}

/// splitmix64, so that a recipe means the same on every machine.
class recipe_stream {
 public:
  explicit recipe_stream(std::uint64_t seed) : state_{seed} {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// An integer from `low` to `high`, both included.
  int between(int low, int high) { return low + static_cast<int>(next() % static_cast<std::uint64_t>(high - low + 1)); }

 private:
  std::uint64_t state_;
};

/// numerator / denominator in S; exact for the values made here.
template <class S>
[[nodiscard]] S fraction(int numerator, int denominator) {
  const S top = from_int<S>(numerator);
  const S bottom = from_int<S>(denominator);
  return top / bottom;
}

/// The smallest power of 4 that is at least n.
[[nodiscard]] inline std::size_t power_of_four(std::size_t n) {
  std::size_t result = 1;
  while (result < n) result *= 4;
  return result;
}

namespace detail {

/// Key `row` of a recipe as numerators over `denominator`.
struct key_source {
  const sequence_recipe& recipe;
  std::size_t dim;
  recipe_stream stream;
  std::vector<std::vector<int>> base;
  int denominator = 4;

  key_source(const sequence_recipe& r, std::size_t key_dim) : recipe{r}, dim{key_dim}, stream{r.seed} {
    if (r.regime == key_regime::unit_signs || r.regime == key_regime::hadamard) {
      denominator = 1;
      while (static_cast<std::size_t>(denominator) * static_cast<std::size_t>(denominator) < dim) denominator *= 2;
    }
    for (int i = 0; i < 3; ++i) base.push_back(draw());
  }

  std::vector<int> draw() {
    std::vector<int> key(dim);
    for (int& x : key) x = 2 * stream.between(-3, 3);
    return key;
  }

  std::vector<int> next(std::size_t row) {
    std::vector<int> key(dim);
    switch (recipe.regime) {
      case key_regime::generic:
        return draw();
      case key_regime::one_key:
        return base[0];
      case key_regime::vocabulary:
        return base[static_cast<std::size_t>(stream.between(0, 2))];
      case key_regime::alternating:
        for (std::size_t c = 0; c < dim; ++c) key[c] = row % 2 == 0 ? base[0][c] : -base[0][c];
        return key;
      case key_regime::collinear:
        key = base[0];
        key[stream.next() % dim] += 1;
        return key;
      case key_regime::zero_keys:
        return stream.between(0, 2) == 0 ? key : draw();
      case key_regime::unit_signs:
        for (int& x : key) x = stream.between(0, 1) == 0 ? 1 : -1;
        return key;
      case key_regime::hadamard:
        for (std::size_t c = 0; c < dim; ++c) {
          std::size_t bits = c & (row % dim);
          int sign = 1;
          for (; bits != 0; bits &= bits - 1) sign = -sign;
          key[c] = sign;
        }
        return key;
    }
    return key;
  }
};

}  // namespace detail

/// The sequence a recipe stands for. Decays are out of {0, 1/4, 1/2, 3/4, 1}, values and the initial state
/// small integers, queries halves.
template <class S>
[[nodiscard]] sequence<S> make_sequence(const sequence_recipe& r) {
  const bool exact_family = r.regime == key_regime::unit_signs || r.regime == key_regime::hadamard;
  const std::size_t key_dim = exact_family ? power_of_four(r.key_dim) : r.key_dim;
  auto s = sequence<S>::zeros(r.tokens, r.steps_per_token, key_dim, r.value_dim, r.decays);
  detail::key_source keys(r, key_dim);
  recipe_stream rest(r.seed ^ 0x5deece66dULL);
  // Denominators are powers of two: multiplying by their inverses is as exact as dividing, and much faster modulo p.
  const S half = fraction<S>(1, 2);
  const S quarter = fraction<S>(1, 4);
  const S eighth = fraction<S>(1, 8);
  const S key_unit = fraction<S>(1, keys.denominator);
  for (std::size_t row = 0; row < s.rows(); ++row) {
    const std::vector<int> key = keys.next(row);
    for (std::size_t c = 0; c < key_dim; ++c) s.k[row * key_dim + c] = from_int<S>(key[c]) * key_unit;
    s.step[row] = from_int<S>(rest.between(r.step_from, r.step_to)) * eighth;
  }
  for (S& x : s.q) x = from_int<S>(rest.between(-3, 3)) * half;
  for (S& x : s.v) x = from_int<S>(rest.between(-3, 3));
  for (S& x : s.decay) x = from_int<S>(rest.between(r.decay_from, 4)) * quarter;
  if (r.initial_state) {
    for (S& x : s.initial_state.entries()) x = from_int<S>(rest.between(-3, 3));
  }
  return s;
}

/// Largest shapes that a generated recipe may have.
struct recipe_limits {
  std::size_t tokens = 8;
  std::size_t steps_per_token = 3;
  std::size_t key_dim = 5;
  std::size_t value_dim = 4;
  std::size_t chunk = 8;
};

/// The ranges {from, to} / 8 that steps are drawn from: the whole interval, below 1, at 1, at its end, and outside.
inline constexpr std::array<std::pair<int, int>, 5> step_ranges{{{0, 16}, {0, 8}, {8, 8}, {15, 16}, {-8, 24}}};

/// A recipe within `limits`: each regime and gate; T from 0, at the multiples of C and beside them; half of the
/// chunks short, so that a sequence has several, and some the longest.
[[nodiscard]] inline sequence_recipe draw_recipe(recipe_stream& stream, const recipe_limits& limits) {
  const auto up_to = [&stream](std::size_t low, std::size_t high) { return low + stream.next() % (high - low + 1); };
  sequence_recipe r;
  r.regime = key_regimes[stream.next() % key_regimes.size()].first;
  r.seed = stream.next() >> 32;
  r.tokens = up_to(0, limits.tokens);
  r.steps_per_token = up_to(1, limits.steps_per_token);
  r.key_dim = up_to(1, limits.key_dim);
  r.value_dim = up_to(1, limits.value_dim);
  const std::uint64_t length = stream.next() % 8;
  r.chunk = up_to(length == 7 ? limits.chunk : 1, length < 4 && limits.chunk > 8 ? 8 : limits.chunk);
  if (stream.next() % 4 == 0) {  // C - 1, C, C + 1, 2C tokens
    const std::size_t edge = std::array{r.chunk - 1, r.chunk, r.chunk + 1, 2 * r.chunk}[stream.next() % 4];
    if (edge <= limits.tokens) r.tokens = edge;
  }
  r.decays = static_cast<decay_kind>(stream.next() % 3);
  const auto& steps = step_ranges[stream.next() % step_ranges.size()];
  r.step_from = steps.first;
  r.step_to = steps.second;
  r.initial_state = stream.next() % 2 == 0;
  return r;
}

}  // namespace deltaproof::testing
