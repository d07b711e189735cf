// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The reverse adjoint against dual numbers over the forward templates, and the identities that every gradient obeys, with == in
// rationals and modulo a prime.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstddef>
#include <vector>

#include "deltaproof/number/dual.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/scan/adjoint.hpp"
#include "support/gradient_cases.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

using testing::gradient_case;

constexpr testing::recipe_limits few_rows{.tokens = 5, .steps_per_token = 3, .key_dim = 4, .value_dim = 3, .chunk = 1};
constexpr testing::recipe_limits many_rows{.tokens = 40, .steps_per_token = 3, .key_dim = 12, .value_dim = 9, .chunk = 1};

template <class S>
gradient_case<S> draw_case(testing::recipe_limits limits) {
  return gradient_case<S>(*testing::recipes(limits));
}

/// Every list of numbers of a sequence, in one order.
template <class S, class F>
void for_each_list(sequence<S>& s, F&& f) {
  for (auto* list : {&s.q, &s.k, &s.v, &s.step, &s.decay}) f(list->data(), list->size());
  f(s.initial_state.data(), s.initial_state.size());
}

/// The derivative of the loss where each number of `s` moves with the slope that `by` has in its place.
template <class S>
S slope_along(const gradient_case<S>& c, sequence<S> by) {
  auto moving = convert<dual<S>>(c.s, [](const S& x) { return dual<S>(x); });
  if (moving.initial_state.empty()) moving.initial_state = matrix<dual<S>>(c.s.key_dim, c.s.value_dim);
  std::vector<S> slopes;
  for_each_list(by, [&](S* x, std::size_t count) { slopes.insert(slopes.end(), x, x + count); });
  std::size_t at = 0;
  for_each_list(moving, [&](dual<S>* x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, ++at) x[i] = dual<S>(x[i].value(), slopes[at]);
  });
  const trace<dual<S>> run = recurrent(moving);
  S loss = zero<S>();
  for (std::size_t i = 0; i < run.o.size(); ++i) loss = loss + run.o.data()[i].slope() * c.with.o.data()[i];
  for (std::size_t i = 0; i < c.with.final_state.size(); ++i)
    loss = loss + run.final_state.data()[i].slope() * c.with.final_state.data()[i];
  return loss;
}

/// Gradients with respect to decays themselves become those of their logarithms.
template <class S>
void times_decay(std::vector<S>& slopes, const std::vector<S>& decays) {
  for (std::size_t i = 0; i < slopes.size(); ++i) slopes[i] = slopes[i] * decays[i];
}

template <class S>
void each_entry_is_the_derivative_by_dual_numbers() {
  const auto c = draw_case<S>(few_rows);
  auto gradient = adjoint(c.s, c.with);
  auto unit = sequence<S>::zeros(c.s.tokens, c.s.steps_per_token, c.s.key_dim, c.s.value_dim, c.s.decays());
  unit.initial_state = matrix<S>(c.s.key_dim, c.s.value_dim);
  std::vector<S> got, want, factor;
  for_each_list(gradient, [&](S* x, std::size_t count) { got.insert(got.end(), x, x + count); });
  for_each_list(unit, [&](S* x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      x[i] = one<S>();
      want.push_back(slope_along(c, unit));
      x[i] = zero<S>();
    }
  });
  const std::size_t first_decay = c.s.q.size() + c.s.k.size() + c.s.v.size() + c.s.step.size();
  for (std::size_t i = 0; i < c.s.decay.size(); ++i) want[first_decay + i] = want[first_decay + i] * c.s.decay[i];
  RC_ASSERT(got == want);
}

TEST(adjoint, is_the_derivative_in_rationals) {
  testing::check_property(60, 2201, each_entry_is_the_derivative_by_dual_numbers<rational>);
}
TEST(adjoint, is_the_derivative_modulo_a_prime) {
  testing::check_property(100, 2202, each_entry_is_the_derivative_by_dual_numbers<modular>);
}

// <J x, y> = <x, J^T y> along one random direction x, at sizes where entry by entry is too slow.
template <class S>
void transposes_the_derivative() {
  const auto c = draw_case<S>(many_rows);
  auto gradient = adjoint(c.s, c.with);
  auto by = sequence<S>::zeros(c.s.tokens, c.s.steps_per_token, c.s.key_dim, c.s.value_dim, c.s.decays());
  by.initial_state = matrix<S>(c.s.key_dim, c.s.value_dim);
  testing::recipe_stream rest(c.s.tokens * 977 + c.s.key_dim);
  for_each_list(by, [&](S* x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) x[i] = from_int<S>(rest.between(-9, 9));
  });
  auto moved = by;
  times_decay(moved.decay, c.s.decay);  // a moves by a times what its logarithm does
  std::vector<S> x, y;
  for_each_list(by, [&](S* p, std::size_t count) { x.insert(x.end(), p, p + count); });
  for_each_list(gradient, [&](S* p, std::size_t count) { y.insert(y.end(), p, p + count); });
  S product = zero<S>();
  for (std::size_t i = 0; i < x.size(); ++i) product = product + x[i] * y[i];
  RC_ASSERT(slope_along(c, moved) == product);
}

TEST(adjoint, transposes_the_derivative_modulo_a_prime) {
  testing::check_property(100, 2203, transposes_the_derivative<modular>);
}

template <class S>
void obeys_its_identities() {
  const auto c = draw_case<S>(many_rows);
  const auto d = adjoint(c.s, c.with);
  for (const auto& each : testing::identities_of_gradients<S>) RC_ASSERT(each.holds(c, d));
}

TEST(adjoint, obeys_its_identities_in_rationals) { testing::check_property(40, 2204, obeys_its_identities<rational>); }
TEST(adjoint, obeys_its_identities_modulo_a_prime) { testing::check_property(100, 2205, obeys_its_identities<modular>); }

TEST(adjoint, names_a_cotangent_of_another_shape) {
  const auto s = sequence<rational>::zeros(2, 1, 3, 2);
  cotangents<rational> with;
  with.o = matrix<rational>(3, 2);
  EXPECT_THROW((void)adjoint(s, with), shape_error);
  with.o = matrix<rational>(2, 2);
  with.final_state = matrix<rational>(2, 3);
  EXPECT_THROW((void)adjoint(s, with), shape_error);
}

}  // namespace
}  // namespace deltaproof
