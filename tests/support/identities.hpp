// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The catalogue of identities: `ring_identities<I>()` for any implementation I over a field (identities/identity.hpp),
// `identities<S>()` for the library over S, its interface included. An identity is a name, a formula, the shapes it is
// drawn with and `holds(implementation, recipe)`, which compares both sides with ==. Right sides are dense matrices,
// factor by factor, and share no code with the library. No test framework is needed: for any recipe,
//   for (const auto& identity : identities<modular>()) ok = ok && identity.holds({}, recipe);
// where an exception counts as false.
// identities/transition.hpp has two more, which cost an include of rationals.
#pragma once

#include <vector>

#include "support/identities/adjoint.hpp"
#include "support/identities/baseline.hpp"
#include "support/identities/chunk.hpp"
#include "support/identities/gradient.hpp"
#include "support/identities/identity.hpp"
#include "support/identities/inverse.hpp"
#include "support/identities/library.hpp"
#include "support/identities/step.hpp"
#include "support/identities/wy.hpp"
#include "support/recipes.hpp"

namespace deltaproof::testing {

/// What holds of any implementation in any field.
template <class I>
[[nodiscard]] std::vector<identity<I>> ring_identities() {
  std::vector<identity<I>> all;
  append(all, wy_identities<I>);
  append(all, inverse_identities<I>);
  append(all, chunk_identities<I>);
  append(all, step_identities<I>);
  append(all, baseline_identities<I>);
  append(all, gradient_identities<I>);
  return all;
}

/// What holds of the library over the scalar S.
template <class S>
[[nodiscard]] std::vector<identity<library<S>>> identities() {
  auto all = ring_identities<library<S>>();
  append(all, library_identities<library<S>>);
  append(all, adjoint_identities<library<S>>);
  return all;
}

}  // namespace deltaproof::testing
