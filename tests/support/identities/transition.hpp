// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The identities of products of transitions (scan/transition.hpp, which needs rationals: apart from the catalogue, to be
// included by those who want it).
#pragma once

#include <cstddef>
#include <vector>

#include "deltaproof/scan/transition.hpp"
#include "support/identities/dense.hpp"
#include "support/identities/identity.hpp"
#include "support/identities/library.hpp"
#include "support/identities/wy.hpp"

namespace deltaproof::testing {

template <class I>
bool transitions_are_the_product(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = make_sequence<S>(r);
  const auto [first, rows] = any_run(s, r);
  const auto want = dense::product(s, first, first + rows);
  if (!(exact_transition(s, first, rows) == want)) return false;
  std::size_t calls = 0;
  const auto state = any_state(s, r);
  transition_product<S> forward(state);
  run_transitions(s, first, rows, forward, [&calls] { ++calls; });
  auto left = dense::turned(state);
  left = dense::turned(dense::times(left, want));  // want^T state
  transition_product<S> backward(state);
  run_transitions_transposed(s, first, rows, backward, [&calls] { ++calls; });
  return forward.block() == dense::times(want, state) && backward.block() == left && calls == 2 * rows && forward.exponent() == 0;
}

template <class I>
bool wrong_transitions_are_refused(const I&, const sequence_recipe& r) {
  using S = typename I::scalar;
  const auto s = make_sequence<S>(r);
  const std::size_t rows = dense::rows(s);
  transition_product<S> product(s.key_dim);
  const std::vector<S> longer(s.key_dim + 1, one<S>());
  product.decay({});
  (void)exact_transition(s, rows, 0);
  return product.block() == dense::unit<S>(s.key_dim) &&
         refused_shape([&] { product.step(std::span<const S>(longer), one<S>()); }) &&
         refused_shape([&] { product.decay(std::span<const S>(longer)); }) &&
         refused_shape([&] { (void)exact_transition(s, rows, 1); }) &&
         refused_shape([&] { (void)exact_transition(s, rows + 1, 0); }) &&
         refused_shape([&] { (void)exact_transition(s, 0, rows + 1); }) &&
         refused_shape([&] { run_transitions_transposed(s, rows, 1, product, [] {}); });
}

template <class I>
inline constexpr identity<I> transition_identities[] = {
    {"transition_product", "the product of factors, from either side of a block", wide_runs, &transitions_are_the_product<I>},
    {"wrong_transitions", "runs and operands that do not fit are refused", short_runs, &wrong_transitions_are_refused<I>},
};

}  // namespace deltaproof::testing
