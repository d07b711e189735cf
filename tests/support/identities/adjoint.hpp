// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The identities of the adjoint: it transposes the derivative that dual numbers carry through the recurrence, the chunkwise
// backward pass is the same, digit for digit, and both refuse what is of another shape.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "deltaproof/scan/chunk_adjoint.hpp"
#include "support/gradient_cases.hpp"
#include "support/identities/dense.hpp"
#include "support/identities/gradient.hpp"
#include "support/identities/identity.hpp"

namespace deltaproof::testing {

/// Every number of a sequence, in one order; of an initial state that is not there none.
template <class S>
[[nodiscard]] std::vector<S> numbers_in(const sequence<S>& s, bool with_state) {
  std::vector<S> all;
  for (const auto* list : {&s.q, &s.k, &s.v, &s.step, &s.decay}) all.insert(all.end(), list->begin(), list->end());
  if (with_state) all.insert(all.end(), s.initial_state.entries().begin(), s.initial_state.entries().end());
  return all;
}

template <class I>
bool adjoint_transposes_the_derivative(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  const gradient_case<S> c(r);
  const sequence<S> by = any_direction(c.s, r, 60), gradient = adjoint(c.s, c.with);
  sequence<S> moved = by;  // a decay moves by itself times what its logarithm does
  for (std::size_t i = 0; i < moved.decay.size(); ++i) moved.decay[i] = moved.decay[i] * c.s.decay[i];
  const auto run = recurrent(along(c.s, moved));
  S slope = zero<S>(), product = zero<S>();
  for (std::size_t i = 0; i < c.with.o.size(); ++i) slope = slope + run.o.data()[i].slope() * c.with.o.data()[i];
  for (std::size_t i = 0; i < c.with.final_state.size(); ++i)
    slope = slope + run.final_state.data()[i].slope() * c.with.final_state.data()[i];
  const bool with_state = !c.s.initial_state.empty();
  const std::vector<S> x = numbers_in(by, with_state), y = numbers_in(gradient, with_state);
  if (x.size() != y.size() || gradient.initial_state.rows() != c.s.key_dim || gradient.initial_state.cols() != c.s.value_dim)
    return false;
  for (std::size_t i = 0; i < x.size(); ++i) product = product + x[i] * y[i];
  return slope == product;
}

template <class I>
bool adjoint_of_chunks_is_that_of_the_recurrence(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  const gradient_case<S> c(r);
  recipe_stream stream = choices(r, 61);
  const auto forward = chunkwise<plain<S>>(c.s, r.chunk, any_method(stream));
  const auto got = chunk_adjoint(c.s, forward, c.with);
  if (numbers_in(got.gradient, true) != numbers_in(adjoint(c.s, c.with), true)) return false;
  return got.dh.empty() || got.dh.back() == c.last_cotangent();
}

template <class F>
bool refuses(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const shape_error&) {
    return true;
  }
  return false;
}

template <class I>
bool adjoint_refuses_other_shapes(const I&, const sequence_recipe& recipe) {
  using S = typename I::scalar;
  auto r = recipe;
  r.tokens = r.tokens % 4 + 1;
  const gradient_case<S> c(r);
  const auto& s = c.s;
  const auto forward = chunkwise<plain<S>>(s, r.chunk, inverse_methods[0].method);
  for (const auto& [rows, cols] :
       {std::pair{s.tokens + 1, s.value_dim}, {s.tokens, s.value_dim + 1}, {std::size_t{0}, s.value_dim}}) {
    const cotangents<S> other{matrix<S>(rows, cols), {}};
    if (!refuses([&] { (void)adjoint(s, other); }) || !refuses([&] { (void)chunk_adjoint(s, forward, other); })) return false;
  }
  for (const auto& [rows, cols] : {std::pair{s.key_dim + 1, s.value_dim}, {s.key_dim, s.value_dim + 1}}) {
    const cotangents<S> other{{}, matrix<S>(rows, cols)};
    if (!refuses([&] { (void)adjoint(s, other); }) || !refuses([&] { (void)chunk_adjoint(s, forward, other); })) return false;
  }
  auto damaged = s;
  damaged.q.push_back(zero<S>());
  if (!refuses([&] { (void)adjoint(damaged, c.with); }) || !refuses([&] { (void)chunk_adjoint(damaged, forward, c.with); }))
    return false;
  const auto of_others = [&](std::size_t rows, std::size_t keys, std::size_t values) {
    auto stages = forward;
    stages.w = matrix<S>(rows, keys);
    stages.u = matrix<S>(rows, values);
    return refuses([&] { (void)chunk_adjoint(s, stages, c.with); });
  };
  return of_others(s.rows() + 1, s.key_dim, s.value_dim) && of_others(s.rows(), s.key_dim + 1, s.value_dim) &&
         of_others(s.rows(), s.key_dim, s.value_dim + 1);
}

template <class I>
inline constexpr identity<I> adjoint_identities[] = {
    {"adjoint_transposes", "<d recurrent along x, y> = <x, adjoint y>", differentiated, &adjoint_transposes_the_derivative<I>},
    {"adjoint_chunks", "chunk_adjoint = adjoint", differentiated, &adjoint_of_chunks_is_that_of_the_recurrence<I>},
    {"adjoint_shapes", "cotangents and stages of another shape are refused", differentiated, &adjoint_refuses_other_shapes<I>},
};

}  // namespace deltaproof::testing
