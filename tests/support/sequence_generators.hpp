// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Makes sequences for tests from a short recipe (regime, seed, shapes, gate, range of steps), never from
// raw tensors, so that a failure is one line to repeat. Every value is a small dyadic fraction, exact in
// rationals, modulo a prime and in every binary format with 4 bits or more: `make_sequence<S>(recipe)` is
// the same sequence in each of them. `check_property` runs a RapidCheck property with a fixed, printed seed.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/number/scalar.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "support/multiplier.hpp"

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
};

inline const char* name_of(key_regime regime) { return key_regimes[static_cast<std::size_t>(regime)].second; }

inline std::ostream& operator<<(std::ostream& out, const sequence_recipe& r) {
  constexpr std::array<const char*, 3> decay_names{"none", "per_token", "per_channel"};
  return out << "{regime " << name_of(r.regime) << ", seed " << r.seed << ", T " << r.tokens << ", n "
             << r.steps_per_token << ", K " << r.key_dim << ", V " << r.value_dim << ", C " << r.chunk << ", decay "
             << decay_names[static_cast<std::size_t>(r.decays)] << ", step " << r.step_from << ".." << r.step_to
             << "/8, initial state " << (r.initial_state ? "yes" : "no") << "}";
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
  int between(int low, int high) {
    return low + static_cast<int>(next() % static_cast<std::uint64_t>(high - low + 1));
  }

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
      case key_regime::generic: return draw();
      case key_regime::one_key: return base[0];
      case key_regime::vocabulary: return base[static_cast<std::size_t>(stream.between(0, 2))];
      case key_regime::alternating:
        for (std::size_t c = 0; c < dim; ++c) key[c] = row % 2 == 0 ? base[0][c] : -base[0][c];
        return key;
      case key_regime::collinear:
        key = base[0];
        key[stream.next() % dim] += 1;
        return key;
      case key_regime::zero_keys: return stream.between(0, 2) == 0 ? key : draw();
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
  for (std::size_t row = 0; row < s.rows(); ++row) {
    const std::vector<int> key = keys.next(row);
    for (std::size_t c = 0; c < key_dim; ++c) s.k[row * key_dim + c] = fraction<S>(key[c], keys.denominator);
    s.step[row] = fraction<S>(rest.between(r.step_from, r.step_to), 8);
  }
  for (S& x : s.q) x = fraction<S>(rest.between(-3, 3), 2);
  for (S& x : s.v) x = from_int<S>(rest.between(-3, 3));
  for (S& x : s.decay) x = fraction<S>(rest.between(0, 4), 4);
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

/// A RapidCheck generator of recipes within `limits`: each regime and gate, T from 0, K and V apart, steps in
/// [0, 2], at 2, or negative.
[[nodiscard]] inline rc::Gen<sequence_recipe> recipes(recipe_limits limits) {
  // From the whole range at once: RapidCheck would start with sequences too short to show anything.
  const auto any = [](auto low, auto high) { return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high)); };
  const auto up_to = [any](std::size_t low, std::size_t high) { return any(low, high + 1); };
  const auto steps = rc::gen::element(std::pair{0, 16}, std::pair{0, 8}, std::pair{8, 8}, std::pair{15, 16}, std::pair{-8, 24});
  return rc::gen::map(
      rc::gen::tuple(any(std::size_t{0}, key_regimes.size()), any(std::uint64_t{0}, std::uint64_t{1} << 32),
                     up_to(0, limits.tokens), up_to(1, limits.steps_per_token), up_to(1, limits.key_dim),
                     up_to(1, limits.value_dim), up_to(1, limits.chunk), any(0, 3), steps, rc::gen::arbitrary<bool>()),
      [](const auto& drawn) {
        sequence_recipe r;
        std::pair<int, int> range;
        std::size_t regime = 0;
        int decays = 0;
        std::tie(regime, r.seed, r.tokens, r.steps_per_token, r.key_dim, r.value_dim, r.chunk, decays, range,
                 r.initial_state) = drawn;
        r.regime = key_regimes[regime].first;
        r.decays = static_cast<decay_kind>(decays);
        r.step_from = range.first;
        r.step_to = range.second;
        return r;
      });
}

/// Runs a RapidCheck property `cases` times (scaled by DELTAPROOF_TEST_MULTIPLIER) inside a gtest test, with
/// this seed unless RC_PARAMS says otherwise, and prints both, and what was classified.
template <class Property>
void check_property(std::size_t cases, std::uint64_t seed, Property&& property) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  rc::detail::TestMetadata metadata;
  metadata.id = std::string(info->test_suite_name()) + "/" + info->name();
  metadata.description = info->name();
  const rc::detail::Configuration& config = rc::detail::configuration();
  rc::detail::TestParams params = config.testParams;
  if (!deltaproof::detail::rapidcheck_was_asked) {
    params.seed = seed;
    params.maxSuccess = static_cast<int>(scaled(cases));
  }
  std::cout << metadata.id << ": " << params.maxSuccess << " cases, seed " << params.seed << "\n";
  const rc::detail::TestResult result =
      config.reproduce.count(metadata.id) != 0
          ? rc::detail::checkTestable(std::forward<Property>(property), metadata)
          : rc::detail::checkTestable(std::forward<Property>(property), metadata, params);
  if (result.template is<rc::detail::SuccessResult>()) {
    if (!result.template get<rc::detail::SuccessResult>().distribution.empty()) {
      rc::detail::printResultMessage(result, std::cout);
      std::cout << "\n";
    }
    return;
  }
  rc::detail::printResultMessage(result, std::cerr);
  std::cerr << "\n";
  FAIL() << metadata.id << ": see the counterexample on stderr";
}

}  // namespace deltaproof::testing
