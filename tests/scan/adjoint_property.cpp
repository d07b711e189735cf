// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The reverse adjoint against dual numbers over the forward templates, and the identities that every gradient obeys, with == in
// rationals and modulo a prime.
#include "deltaproof/scan/adjoint.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstddef>
#include <vector>

#include "deltaproof/number/dual.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

constexpr testing::recipe_limits few_rows{.tokens = 5, .steps_per_token = 3, .key_dim = 4, .value_dim = 3, .chunk = 1};
constexpr testing::recipe_limits many_rows{.tokens = 40, .steps_per_token = 3, .key_dim = 12, .value_dim = 9, .chunk = 1};

template <class S>
struct drawn_case {
  sequence<S> s;
  cotangents<S> with;
};

template <class S>
drawn_case<S> draw_case(testing::recipe_limits limits) {
  const auto recipe = *testing::recipes(limits);
  drawn_case<S> out{testing::make_sequence<S>(recipe), {}};
  testing::recipe_stream rest(recipe.seed ^ 0x0d0);
  out.with.o = matrix<S>(out.s.tokens, out.s.value_dim);
  for (S& x : out.with.o.entries()) x = from_int<S>(rest.between(-3, 3));
  if (rest.between(0, 1) == 1) {
    out.with.final_state = matrix<S>(out.s.key_dim, out.s.value_dim);
    for (S& x : out.with.final_state.entries()) x = from_int<S>(rest.between(-3, 3));
  }
  return out;
}

template <class S>
S sum_of_products(const matrix<S>& a, const matrix<S>& b) {
  S sum = zero<S>();
  for (std::size_t i = 0; i < b.size(); ++i) sum = sum + a.data()[i] * b.data()[i];
  return sum;
}

/// Every list of numbers of a sequence, in one order.
template <class S, class F>
void for_each_list(sequence<S>& s, F&& f) {
  for (auto* list : {&s.q, &s.k, &s.v, &s.step, &s.decay}) f(list->data(), list->size());
  f(s.initial_state.data(), s.initial_state.size());
}

/// The derivative of the loss where each number of `s` moves with the slope that `by` has in its place.
template <class S>
S slope_along(const drawn_case<S>& c, sequence<S> by) {
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
  for (std::size_t i = 0; i < c.with.final_state.size(); ++i) loss = loss + run.final_state.data()[i].slope() * c.with.final_state.data()[i];
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

TEST(adjoint, is_the_derivative_in_rationals) { testing::check_property(60, 2201, each_entry_is_the_derivative_by_dual_numbers<rational>); }
TEST(adjoint, is_the_derivative_modulo_a_prime) { testing::check_property(100, 2202, each_entry_is_the_derivative_by_dual_numbers<modular>); }

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

TEST(adjoint, transposes_the_derivative_modulo_a_prime) { testing::check_property(100, 2203, transposes_the_derivative<modular>); }

template <class S>
S row_dot(const std::vector<S>& a, const std::vector<S>& b, std::size_t row, std::size_t width) {
  S sum = zero<S>();
  for (std::size_t i = row * width; i < (row + 1) * width; ++i) sum = sum + a[i] * b[i];
  return sum;
}

// q . dq = o . do; k . dk + v . dv = 2 b db; the log decays fall by what a token adds; and both sums over all tokens.
template <class S>
void obeys_its_identities() {
  const auto c = draw_case<S>(many_rows);
  const auto& s = c.s;
  const auto d = adjoint(s, c.with);
  const trace<S> run = recurrent(s);
  const std::size_t n = s.steps_per_token, width = s.tokens == 0 ? 0 : s.decay.size() / s.tokens;
  const matrix<S> start = s.start(), last = detail::cotangent_or_zeros(c.with.final_state, s.key_dim, s.value_dim, "final_state");
  S later = sum_of_products(run.final_state, last), values = sum_of_products(start, d.initial_state), outputs = later;
  for (std::size_t t = s.tokens; t-- > 0;) {
    S read = zero<S>();
    for (std::size_t j = 0; j < s.value_dim; ++j) read = read + run.o(t, j) * c.with.o(t, j);
    RC_ASSERT(row_dot(s.q, d.q, t, s.key_dim) == read);  // I1
    S written = zero<S>();
    for (std::size_t row = t * n; row < (t + 1) * n; ++row) {
      const S dv = row_dot(s.v, d.v, row, s.value_dim), b_db = s.step[row] * d.step[row];
      RC_ASSERT(row_dot(s.k, d.k, row, s.key_dim) + dv == b_db + b_db);  // I2
      written = written + dv;
    }
    outputs = outputs + read;
    values = values + written;
    if (width == 0) continue;
    S now = zero<S>();
    for (std::size_t i = 0; i < width; ++i) now = now + d.decay[t * width + i];
    RC_ASSERT(now - later == read - written);  // I3
    later = now;
  }
  RC_ASSERT(values == outputs);  // I4
}

TEST(adjoint, obeys_its_identities_in_rationals) { testing::check_property(40, 2204, obeys_its_identities<rational>); }
TEST(adjoint, obeys_its_identities_modulo_a_prime) { testing::check_property(100, 2205, obeys_its_identities<modular>); }

// I4M: sum v dv^T + S_0^T dS_0 = sum o do^T + S_T^T dS_T, V x V. I5, where a decay is one number: sum q dq^T + sum k dk^T +
// S_0 dS_0^T + dS_T S_T^T is symmetric, K x K.
template <class S>
void obeys_its_matrix_identities() {
  const auto c = draw_case<S>(many_rows);
  const auto& s = c.s;
  const auto d = adjoint(s, c.with);
  const trace<S> run = recurrent(s);
  const matrix<S> start = s.start(), last = detail::cotangent_or_zeros(c.with.final_state, s.key_dim, s.value_dim, "final_state");
  for (std::size_t i = 0; i < s.value_dim; ++i) {
    for (std::size_t j = 0; j < s.value_dim; ++j) {
      S sum = zero<S>();
      for (std::size_t row = 0; row < s.rows(); ++row) sum = sum + s.v[row * s.value_dim + i] * d.v[row * s.value_dim + j];
      for (std::size_t t = 0; t < s.tokens; ++t) sum = sum - run.o(t, i) * c.with.o(t, j);
      for (std::size_t m = 0; m < s.key_dim; ++m) sum = sum + start(m, i) * d.initial_state(m, j) - run.final_state(m, i) * last(m, j);
      RC_ASSERT(sum == zero<S>());
    }
  }
  if (s.decays() == decay_kind::per_channel) return;
  const auto entry = [&](std::size_t i, std::size_t j) {
    S sum = zero<S>();
    for (std::size_t t = 0; t < s.tokens; ++t) sum = sum + s.q[t * s.key_dim + i] * d.q[t * s.key_dim + j];
    for (std::size_t row = 0; row < s.rows(); ++row) sum = sum + s.k[row * s.key_dim + i] * d.k[row * s.key_dim + j];
    for (std::size_t m = 0; m < s.value_dim; ++m) sum = sum + start(i, m) * d.initial_state(j, m) + last(i, m) * run.final_state(j, m);
    return sum;
  };
  for (std::size_t i = 0; i < s.key_dim; ++i) {
    for (std::size_t j = 0; j < i; ++j) RC_ASSERT(entry(i, j) == entry(j, i));
  }
}

TEST(adjoint, obeys_its_matrix_identities_modulo_a_prime) { testing::check_property(60, 2206, obeys_its_matrix_identities<modular>); }

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
