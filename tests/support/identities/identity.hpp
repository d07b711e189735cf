// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// What an identity of the catalogue is, and what it is asked of: an implementation I over a scalar I::scalar with
// `recurrent`, `wy` (and its sums), `inverse` and `chunkwise`. `library<S>` is deltaproof itself; faulty.hpp has one
// with planted faults. An identity takes an implementation and a recipe and says whether both sides are equal, by ==; it may also
// throw where an implementation returns shapes that no side can have, which is a failure too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/algebra/arithmetic.hpp"
#include "deltaproof/algebra/matrix.hpp"
#include "deltaproof/algebra/triangular.hpp"
#include "deltaproof/scan/chunkwise.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "deltaproof/scan/sequence.hpp"
#include "deltaproof/scan/wy.hpp"
#include "support/recipes.hpp"

namespace deltaproof::testing {

/// The library, as an implementation to be asked.
template <class S>
struct library {
  using scalar = S;

  /// The same implementation over another scalar.
  template <class T>
  [[nodiscard]] library<T> over() const {
    return {};
  }

  [[nodiscard]] trace<S> recurrent(const sequence<S>& s) const { return deltaproof::recurrent(s); }

  [[nodiscard]] wy_form<S> wy(const sequence<S>& s, std::size_t first_row, std::size_t rows) const {
    return wy_recursion(s, first_row, rows);
  }
  [[nodiscard]] matrix<S> transition(const wy_form<S>& form) const { return wy_transition(form); }
  [[nodiscard]] matrix<S> write(const wy_form<S>& form) const { return wy_write(form); }
  [[nodiscard]] matrix<S> apply(const wy_form<S>& form, const matrix<S>& state) const { return wy_apply(form, state); }

  template <class Observer = ignore_intermediates>
  [[nodiscard]] matrix<S> inverse(const inverse_method& method, const matrix<S>& lower, Observer&& observe = {}) const {
    return run_inverse<plain<S>>(method, lower, observe);
  }

  [[nodiscard]] chunkwise_stages<S, S> chunkwise(const sequence<S>& s, std::size_t chunk, const inverse_method& method) const {
    return deltaproof::chunkwise<plain<S>>(s, chunk, method);
  }
};

/// One identity: its name, its formula in a line, the largest shapes it is drawn with modulo a prime, and itself.
template <class I>
struct identity {
  std::string_view name;
  std::string_view formula;
  recipe_limits limits;
  bool (*holds)(const I&, const sequence_recipe&);
};

/// Shapes modulo a prime: many rows and long chunks; a few rows of some width; and one or two steps.
inline constexpr recipe_limits long_runs{.tokens = 48, .steps_per_token = 3, .key_dim = 6, .value_dim = 5, .chunk = 64};
inline constexpr recipe_limits wide_runs{.tokens = 10, .steps_per_token = 3, .key_dim = 9, .value_dim = 8, .chunk = 12};
inline constexpr recipe_limits short_runs{.tokens = 4, .steps_per_token = 2, .key_dim = 6, .value_dim = 5, .chunk = 8};

/// Draws what a recipe leaves open (a row, a method, a number), the same for the same recipe.
[[nodiscard]] inline recipe_stream choices(const sequence_recipe& r, std::uint64_t salt) {
  return recipe_stream(r.seed * 0x9e3779b97f4a7c15ULL + salt);
}

/// A number of [0, n), or 0.
[[nodiscard]] inline std::size_t below(recipe_stream& stream, std::size_t n) { return n == 0 ? 0 : stream.next() % n; }

/// Any of the named inverses, or a mixed form with a block length from 1 to 9.
[[nodiscard]] inline inverse_method any_method(recipe_stream& stream) {
  if (stream.next() % 2 == 0) return inverse_methods[below(stream, inverse_methods.size())].method;
  return {stream.next() % 2 == 0 ? diagonal_kind::forward : diagonal_kind::neumann, 1 + below(stream, 9),
          stream.next() % 2 == 0 ? merge_kind::block2 : merge_kind::block};
}

/// Small integers where nothing is zero or orthogonal by luck; the same shapes as s.
template <class S>
[[nodiscard]] sequence<S> with_generic_values(sequence<S> s, const sequence_recipe& r) {
  recipe_stream stream = choices(r, 77);
  for (auto* values : {&s.q, &s.k, &s.v, &s.step, &s.decay}) {
    for (S& x : *values) x = from_int<S>(stream.between(1, 1 << 20));
  }
  return s;
}

/// Appends the identities of one part of the catalogue.
template <class T, std::size_t N>
void append(std::vector<T>& all, const T (&part)[N]) {
  all.insert(all.end(), part, part + N);
}

}  // namespace deltaproof::testing
