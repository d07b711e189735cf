// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The identities of derivatives, exact in a field: the chunkwise form and the recurrence have the same slope in every
// direction, and it is the derivative of the polynomial that o and S are, found by interpolation without dual numbers.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "deltaproof/number/dual.hpp"
#include "support/identities/dense.hpp"
#include "support/identities/identity.hpp"

namespace deltaproof::testing {

/// Integers in the shape of s: a direction to differentiate along.
template <class S>
[[nodiscard]] sequence<S> any_direction(const sequence<S>& s, const sequence_recipe& r, std::uint64_t salt) {
  recipe_stream stream = choices(r, salt);
  return convert<S>(s, [&stream](const S&) { return from_int<S>(stream.between(-3, 3)); });
}

/// f(x, y) for each pair of entries of two sequences of one shape.
template <class To, class S, class F>
[[nodiscard]] sequence<To> combined(const sequence<S>& a, const sequence<S>& b, F&& f) {
  auto result = convert<To>(a, [](const S&) { return To{}; });
  const auto each = [&f](const std::vector<S>& x, const std::vector<S>& y, std::vector<To>& out) {
    for (std::size_t i = 0; i < x.size(); ++i) out[i] = f(x[i], y[i]);
  };
  each(a.q, b.q, result.q);
  each(a.k, b.k, result.k);
  each(a.v, b.v, result.v);
  each(a.step, b.step, result.step);
  each(a.decay, b.decay, result.decay);
  for (std::size_t i = 0; i < a.initial_state.size(); ++i) {
    result.initial_state.data()[i] = f(a.initial_state.data()[i], b.initial_state.data()[i]);
  }
  return result;
}

template <class S>
[[nodiscard]] sequence<dual<S>> along(const sequence<S>& s, const sequence<S>& direction) {
  return combined<dual<S>>(s, direction, [](const S& x, const S& d) { return dual<S>(x, d); });
}

/// Slopes of o, then of the final state, as one row.
template <class Result>
[[nodiscard]] auto slopes(const Result& result) {
  using S = typename std::remove_cvref_t<decltype(result.o.data()[0])>::value_type;
  std::vector<S> all;
  for (const auto& x : result.o.entries()) all.push_back(x.slope());
  for (const auto& x : result.final_state.entries()) all.push_back(x.slope());
  return all;
}

template <class I>
bool gradient_of_chunks_is_that_of_the_recurrence(const I& impl, const sequence_recipe& r) {
  using S = typename I::scalar;
  recipe_stream stream = choices(r, 50);
  const auto s = make_sequence<S>(r);
  const auto lifted = along(s, any_direction(s, r, 51));
  const auto over = impl.template over<dual<S>>();
  const auto a = over.chunkwise(lifted, r.chunk, any_method(stream));
  const auto b = over.recurrent(lifted);
  return a.o == b.o && a.final_state == b.final_state;
}

/// Slopes add: along d and along f e they give that along d + f e; along (v, S_0) itself and along q the slope of o is o.
template <class I>
bool gradient_is_linear(const I& impl, const sequence_recipe& recipe) {
  using S = typename I::scalar;
  auto r = recipe;
  r.initial_state = true;
  recipe_stream stream = choices(r, 52);
  const auto s = make_sequence<S>(r);
  const auto over = impl.template over<dual<S>>();
  const auto run = [&](const sequence<S>& direction) {
    return over.chunkwise(along(s, direction), r.chunk, inverse_methods[0].method);
  };
  const auto d = any_direction(s, r, 53);
  const auto e = any_direction(s, r, 54);
  const S f = from_int<S>(stream.between(2, 9));
  auto want = slopes(run(d));
  const auto other = slopes(run(e));
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = want[i] + f * other[i];
  if (slopes(run(combined<S>(d, e, [&f](const S& x, const S& y) { return S(x + f * y); }))) != want) return false;

  auto zeros = convert<S>(s, [](const S&) { return zero<S>(); });
  auto values = zeros;
  values.v = s.v;
  values.initial_state = s.initial_state;
  const auto affine = run(values);
  for (const auto& x : affine.o.entries()) {
    if (!(x.slope() == x.value())) return false;
  }
  for (const auto& x : affine.final_state.entries()) {
    if (!(x.slope() == x.value())) return false;
  }
  zeros.q = s.q;
  const auto queries = run(zeros);
  for (const auto& x : queries.o.entries()) {
    if (!(x.slope() == x.value())) return false;
  }
  for (const auto& x : queries.final_state.entries()) {
    if (!(x.slope() == zero<S>())) return false;
  }
  return true;
}

/// o and S along s + t d are polynomials in t: with N + 1 nodes 0 .. N, N their degree at least,
/// p'(0) = sum_{j >= 1} (-1)^(j + 1) C(N, j) / j (p(j) - p(0)).
template <class I>
bool gradient_is_the_difference_quotient(const I& impl, const sequence_recipe& recipe) {
  using S = typename I::scalar;
  auto r = recipe;
  r.tokens = r.tokens % 3;
  const auto s = make_sequence<S>(r);
  const auto direction = any_direction(s, r, 55);
  const auto over = impl.template over<dual<S>>();
  const auto got = slopes(over.recurrent(along(s, direction)));
  // A token multiplies by its decay, each of its steps by b k k^T, and q and the first state add one each.
  const int degree = static_cast<int>(s.tokens * (1 + 3 * s.steps_per_token) + 2);
  const auto values_at = [&](int t) {
    const auto moved = combined<S>(s, direction, [t](const S& x, const S& d) { return S(x + from_int<S>(t) * d); });
    const auto result = impl.recurrent(moved);
    std::vector<S> all(result.o.entries().begin(), result.o.entries().end());
    all.insert(all.end(), result.final_state.entries().begin(), result.final_state.entries().end());
    return all;
  };
  const auto base = values_at(0);
  if (base.size() != got.size()) return false;
  std::vector<S> want(base.size(), zero<S>());
  S weight = from_int<S>(-1);  // (-1)^(j + 1) C(N, j) once multiplied
  for (int j = 1; j <= degree; ++j) {
    weight = -weight * from_int<S>(degree - j + 1) / from_int<S>(j);
    const auto moved = values_at(j);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] = want[i] + weight / from_int<S>(j) * (moved[i] - base[i]);
  }
  return got == want;
}

inline constexpr recipe_limits differentiated{.tokens = 8, .steps_per_token = 3, .key_dim = 4, .value_dim = 3, .chunk = 12};

template <class I>
inline constexpr identity<I> gradient_identities[] = {
    {"gradient_chunkwise", "d chunkwise = d recurrent, in any direction", differentiated,
     &gradient_of_chunks_is_that_of_the_recurrence<I>},
    {"gradient_linear", "d along d + f e; d o along (v, S_0) is o, along q is o", differentiated, &gradient_is_linear<I>},
    {"gradient_quotient", "d recurrent = exact derivative of the interpolated polynomial", short_runs,
     &gradient_is_the_difference_quotient<I>},
};

}  // namespace deltaproof::testing
