// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The theorems of proofs/theories/algebra on one step and on products of steps (rank_one, ordered_product, non_expansive,
// error_accumulation, materialised), asked of the library's own steps and products: a test has the name of its theorem.
// Identities modulo 2^61 - 1, inequalities in rationals, counter-examples with their exact numbers.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "deltaproof/scan/transition.hpp"
#include "deltaproof/scan/wy.hpp"
#include "support/identities/step.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

namespace dense = testing::dense;
using testing::library;

/// One identity of the catalogue of tests/support on one drawn sequence: the library against dense matrices.
template <class S, std::size_t N>
void catalogue(const testing::identity<library<S>> (&part)[N], std::string_view name) {
  const auto found = std::find_if(std::begin(part), std::end(part), [name](const auto& each) { return each.name == name; });
  RC_ASSERT(found != std::end(part));
  RC_ASSERT(found->holds({}, *testing::recipes(found->limits)));
}

template <class S>
testing::one_step<S> any_step() {
  return testing::one_step<S>(*testing::recipes({.tokens = 3, .key_dim = 5, .value_dim = 3}));
}

template <class S>
std::vector<S> any_vector(std::size_t n) {
  std::vector<S> result(n);
  for (S& x : result) x = from_int<S>(*rc::gen::resize(rc::kNominalSize, rc::gen::inRange(-9, 10)));
  return result;
}

template <class S>
std::vector<S> scaled_by(const S& f, std::vector<S> x) {
  for (S& entry : x) entry = f * entry;
  return x;
}

template <class S>
matrix<S> column(const std::vector<S>& x) {
  return matrix<S>(x.size(), 1, x);
}

template <class S>
S squared(const std::vector<S>& x) {
  return dense::inner(x, x);
}

rational power(const rational& x, int n) { return n == 0 ? rational(1) : rational(x * power(x, n - 1)); }

rational absolute(const rational& x) { return x < 0 ? rational(-x) : x; }

/// (I - b k k^T) x by the library.
template <class S>
std::vector<S> stepped(const std::vector<S>& k, const S& b, const std::vector<S>& x) {
  transition_product<S> product(column(x));
  product.step(std::span<const S>(k), b);
  return dense::row_of(dense::turned(product.block()), 0);
}

/// I - b k k^T by the library.
template <class S>
matrix<S> transition(const std::vector<S>& k, const S& b) {
  transition_product<S> product(k.size());
  product.step(std::span<const S>(k), b);
  return product.block();
}

template <class S>
S determinant(const matrix<S>& a) {
  return dense::inverse_and_determinant(a).second;
}

// ---- rank_one

RC_GTEST_PROP(algebra_rank_one, rank_one_apply, ()) {
  const auto one = any_step<modular>();
  const auto x = any_vector<modular>(one.k.size());
  const auto matrix_form =
      dense::sum(dense::unit<modular>(x.size()), dense::outer(one.beta, one.k, one.k), from_int<modular>(-1));
  RC_ASSERT(column(stepped(one.k, one.beta, x)) == dense::times(matrix_form, column(x)));
}

RC_GTEST_PROP(algebra_rank_one, step_eigenvector, ()) {
  const auto one = any_step<modular>();
  RC_ASSERT(stepped(one.k, one.beta, one.k) == scaled_by(modular(1) - one.beta * one.squared_norm(), one.k));
}

RC_GTEST_PROP(algebra_rank_one, step_fixes_complement, ()) {
  const auto one = any_step<modular>();
  RC_PRE(one.k.size() >= 2);
  auto x = any_vector<modular>(one.k.size());
  RC_PRE(!(one.k[0] == modular(0)));
  x[0] = modular(0);
  x[0] = -dense::inner(one.k, x) / one.k[0];
  RC_ASSERT(stepped(one.k, one.beta, x) == x);
}

RC_GTEST_PROP(algebra_rank_one, step_power_on_key, ()) {
  const auto one = any_step<modular>();
  const auto n = *rc::gen::inRange<std::uint64_t>(0, 30);
  transition_product<modular> product(column(one.k));
  for (std::uint64_t i = 0; i < n; ++i) product.step(std::span<const modular>(one.k), one.beta);
  RC_ASSERT(product.block() == column(scaled_by((modular(1) - one.beta * one.squared_norm()).pow(n), one.k)));
}

/// I - x y^T for any x and y: no step of the library, but of a rank-one transition in general.
template <class S>
struct any_rank_one {
  std::vector<S> x = any_vector<S>(*rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(2, 6)));
  std::vector<S> y = any_vector<S>(x.size());
  matrix<S> a = dense::sum(dense::unit<S>(x.size()), dense::outer(one<S>(), x, y), from_int<S>(-1));
  S along = one<S>() - dense::inner(y, x);
};

RC_GTEST_PROP(algebra_rank_one, rank_one_eigenvector, ()) {
  const any_rank_one<modular> m;
  RC_ASSERT(dense::times(m.a, column(m.x)) == column(scaled_by(m.along, m.x)));
}

RC_GTEST_PROP(algebra_rank_one, rank_one_fixes_hyperplane, ()) {
  const any_rank_one<modular> m;
  auto z = any_vector<modular>(m.x.size());
  RC_PRE(!(m.y[0] == modular(0)));
  z[0] = modular(0);
  z[0] = -dense::inner(m.y, z) / m.y[0];
  RC_ASSERT(dense::times(m.a, column(z)) == column(z));
}

RC_GTEST_PROP(algebra_rank_one, rank_one_determinant, ()) {
  const any_rank_one<modular> m;
  RC_ASSERT(determinant(m.a) == m.along);
}

// At more points than the degree.
RC_GTEST_PROP(algebra_rank_one, rank_one_characteristic_polynomial, ()) {
  const any_rank_one<modular> m;
  for (int l = 0; l < static_cast<int>(m.x.size()) + 2; ++l) {
    const auto shifted = dense::sum(dense::scaled(modular(l), dense::unit<modular>(m.x.size())), m.a, modular(-1));
    RC_ASSERT(determinant(shifted) == (modular(l) - modular(1)).pow(m.x.size() - 1) * (modular(l) - m.along));
  }
}

RC_GTEST_PROP(algebra_rank_one, rank_one_spectrum, ()) {
  const any_rank_one<rational> m;
  for (const rational& a : {rational(1), m.along, rational(rational(*rc::gen::inRange(-20, 21)) / 7)}) {
    RC_ASSERT((determinant(dense::sum(m.a, dense::unit<rational>(m.x.size()), rational(-a))) == 0) == (a == 1 || a == m.along));
  }
}

RC_GTEST_PROP(algebra_rank_one, step_determinant, ()) {
  const auto one = any_step<modular>();
  RC_ASSERT(determinant(transition(one.k, one.beta)) == modular(1) - one.beta * one.squared_norm());
}

RC_GTEST_PROP(algebra_rank_one, step_characteristic_polynomial, ()) {
  catalogue(testing::step_identities<library<modular>>, "characteristic_polynomial");
}

// a is an eigenvalue exactly if A - a I is singular.
RC_GTEST_PROP(algebra_rank_one, step_spectrum, ()) {
  const auto one = any_step<rational>();
  RC_PRE(one.k.size() >= 2);
  const rational along = 1 - one.beta * one.squared_norm();
  const rational other = rational(*rc::gen::inRange(-20, 21)) / 7;
  for (const rational& a : {rational(1), along, other}) {
    const auto shifted = dense::sum(transition(one.k, one.beta), dense::unit<rational>(one.k.size()), rational(-a));
    RC_ASSERT((determinant(shifted) == 0) == (a == 1 || a == along));
  }
}

RC_GTEST_PROP(algebra_rank_one, outer_power, ()) { catalogue(testing::step_identities<library<modular>>, "rank_one_function"); }

RC_GTEST_PROP(algebra_rank_one, step_composition, ()) {
  const auto one = any_step<modular>();
  const modular a(*rc::gen::inRange(-99, 100));
  transition_product<modular> product(one.k.size());
  product.step(std::span<const modular>(one.k), a);
  product.step(std::span<const modular>(one.k), one.beta);
  RC_ASSERT(product.block() == transition(one.k, a + one.beta - a * one.beta * one.squared_norm()));
}

RC_GTEST_PROP(algebra_rank_one, step_reflection, ()) {
  catalogue(testing::step_identities<library<modular>>, "orthogonal_at_two");
}

RC_GTEST_PROP(algebra_rank_one, sherman_morrison, ()) {
  const auto one = any_step<modular>();
  const modular n = one.squared_norm();
  RC_PRE(!(modular(1) + one.beta * n == modular(0)));
  transition_product<modular> product(one.k.size());
  product.step(std::span<const modular>(one.k), effective_step(implicit_euler{}, one.beta, n));
  product.step(std::span<const modular>(one.k), -one.beta);
  RC_ASSERT(product.block() == identity<modular>(one.k.size()));
}

RC_GTEST_PROP(algebra_rank_one, longhorn_is_implicit_euler, ()) {
  catalogue(testing::step_identities<library<modular>>, "longhorn_implicit");
}

// The implicit equation solved by elimination, without the rule.
RC_GTEST_PROP(algebra_rank_one, implicit_euler_unique, ()) {
  const auto one = any_step<rational>();
  const auto system = dense::sum(dense::unit<rational>(one.k.size()), dense::outer(one.beta, one.k, one.k));
  const auto solved =
      dense::times(dense::inverse_and_determinant(system).first, dense::sum(one.state, dense::outer(one.beta, one.k, one.v)));
  const rational b = effective_step(implicit_euler{}, one.beta, one.squared_norm());
  RC_ASSERT(testing::stepped_by(library<rational>{}, one.k, one.v, b, one.state) == solved);
}

// ---- ordered_product

template <class S>
sequence<S> any_sequence(std::size_t tokens, int most_dim = 4) {
  auto recipe =
      *testing::recipes({.tokens = tokens, .steps_per_token = 2, .key_dim = static_cast<std::size_t>(most_dim), .value_dim = 2});
  recipe.tokens = std::max<std::size_t>(recipe.tokens, 1);
  return testing::make_sequence<S>(recipe);
}

RC_GTEST_PROP(algebra_ordered_product, ordered_product_cut, ()) {
  const auto s = any_sequence<modular>(8);
  const auto cut = *rc::gen::inRange<std::size_t>(0, s.rows() + 1);
  RC_ASSERT(exact_transition(s, 0, s.rows()) ==
            dense::times(exact_transition(s, cut, s.rows() - cut), exact_transition(s, 0, cut)));
}

template <class S>
void decays_multiply(decay_kind kind) {
  auto recipe = *testing::recipes({.tokens = 8, .steps_per_token = 2, .key_dim = 4, .value_dim = 2});
  recipe.decays = kind;
  const auto s = testing::make_sequence<S>(recipe);
  const auto form = wy_recursion(s, 0, s.rows());
  for (std::size_t c = 0; c < s.key_dim; ++c) {
    S product = one<S>();
    for (std::size_t t = 0; t < s.tokens; ++t)
      product = product * s.decay_of(t)[kind == decay_kind::per_token || s.decay_of(t).size() == 1 ? 0 : c];
    RC_ASSERT(form.decay[c] == product);
  }
}

RC_GTEST_PROP(algebra_ordered_product, scalar_decay_ratio, ()) { decays_multiply<modular>(decay_kind::per_token); }
RC_GTEST_PROP(algebra_ordered_product, channel_decay_ratio, ()) { decays_multiply<modular>(decay_kind::per_channel); }

RC_GTEST_PROP(algebra_ordered_product, ordered_product_determinant, ()) {
  const auto s = any_sequence<modular>(6);
  modular product(1);
  for (std::size_t row = 0; row < s.rows(); ++row) product *= determinant(dense::factor(s, row));
  RC_ASSERT(determinant(exact_transition(s, 0, s.rows())) == product);
}

// ---- non_expansive

rational expansion(const std::vector<rational>& k, const rational& b) {
  return std::max(rational(1), absolute(rational(1 - b * squared(k))));
}

RC_GTEST_PROP(algebra_non_expansive, cauchy_schwarz, ()) {
  const auto x = any_vector<rational>(*rc::gen::inRange<std::size_t>(1, 6));
  const auto y = *rc::gen::arbitrary<bool>() ? any_vector<rational>(x.size()) : scaled_by(rational(-2), x);
  const rational product = dense::inner(x, y);
  RC_ASSERT(rational(product * product) <= rational(squared(x) * squared(y)));
}

RC_GTEST_PROP(algebra_non_expansive, energy_balance, ()) {
  const auto one = any_step<modular>();
  const auto x = any_vector<modular>(one.k.size());
  const modular along = dense::inner(one.k, x);
  RC_ASSERT(squared(stepped(one.k, one.beta, x)) ==
            squared(x) - one.beta * (modular(2) - one.beta * one.squared_norm()) * along * along);
}

RC_GTEST_PROP(algebra_non_expansive, step_non_expansive, ()) {
  const auto one = any_step<rational>();
  const rational n = one.squared_norm();
  const rational b =
      n == 0 ? one.beta : rational(rational(*rc::gen::inRange(0, 17)) / (8 * n));  // b n from 0 to 2, both included
  const auto x = any_vector<rational>(one.k.size());
  RC_ASSERT(squared(stepped(one.k, b, x)) <= squared(x));
}

RC_GTEST_PROP(algebra_non_expansive, step_norm, ()) {
  const auto one = any_step<rational>();
  const rational b = rational(*rc::gen::inRange(-16, 33)) / 8;
  const auto x = any_vector<rational>(one.k.size());
  const rational rho = expansion(one.k, b);
  RC_ASSERT(squared(stepped(one.k, b, x)) <= rational(rho * rho * squared(x)));
}

RC_GTEST_PROP(algebra_non_expansive, step_norm_attained, ()) {
  const auto one = any_step<rational>();
  const rational b = rational(*rc::gen::inRange(-16, 33)) / 8;
  const rational r = 1 - b * one.squared_norm();
  RC_ASSERT(squared(stepped(one.k, b, one.k)) == rational(r * r * one.squared_norm()));
}

RC_GTEST_PROP(algebra_non_expansive, step_non_expansive_iff, ()) {
  const auto one = any_step<rational>();
  const rational b = rational(*rc::gen::inRange(-16, 33)) / 8;
  const rational x = b * one.squared_norm();
  const bool key_grows = squared(stepped(one.k, b, one.k)) > one.squared_norm();
  RC_CLASSIFY(key_grows);
  RC_ASSERT(key_grows == (x < 0 || x > 2));
}

std::vector<rational> any_decay(std::size_t n) {
  std::vector<rational> a(n);
  for (rational& x : a) x = rational(*rc::gen::inRange(-4, 5)) / 4;
  return a;
}

RC_GTEST_PROP(algebra_non_expansive, decay_non_expansive, ()) {
  const auto x = any_vector<rational>(*rc::gen::inRange<std::size_t>(1, 6));
  const auto a = any_decay(x.size());
  transition_product<rational> product(column(x));
  product.decay(std::span<const rational>(a));
  RC_ASSERT(squared(dense::row_of(dense::turned(product.block()), 0)) <= squared(x));
}

RC_GTEST_PROP(algebra_non_expansive, decayed_step_non_expansive, ()) {
  const auto one = any_step<rational>();
  const rational n = one.squared_norm();
  const rational b = n == 0 ? one.beta : rational(rational(*rc::gen::inRange(0, 17)) / (8 * n));
  const auto a = any_decay(one.k.size());
  const auto x = any_vector<rational>(one.k.size());
  transition_product<rational> product(column(x));
  product.decay(std::span<const rational>(a));
  product.step(std::span<const rational>(one.k), b);
  RC_ASSERT(squared(dense::row_of(dense::turned(product.block()), 0)) <= squared(x));
}

struct run_case {
  sequence<rational> s;
  std::vector<rational> x;
  rational rho = 1;  // the factors of all rows
};

// Steps from -1 to 3 or, stable, b n from 0 to 2; decays from -1 to 1.
run_case any_run(bool stable, bool allow_decays = true) {
  run_case result{any_sequence<rational>(5), {}, 1};
  sequence<rational>& s = result.s;
  for (rational& a : s.decay) a = allow_decays ? rational(rational(*rc::gen::inRange(-4, 5)) / 4) : rational(1);
  for (std::size_t row = 0; row < s.rows(); ++row) {
    const auto k = dense::key(s, row);
    const rational n = squared(k);
    if (stable) s.step[row] = n == 0 ? rational(2) : rational(rational(*rc::gen::inRange(0, 17)) / (8 * n));
    result.rho *= expansion(k, s.step[row]);
  }
  result.x = any_vector<rational>(s.key_dim);
  return result;
}

std::vector<rational> run_forward(const run_case& c) {
  transition_product<rational> product(column(c.x));
  run_transitions(c.s, 0, c.s.rows(), product, [] {});
  return dense::row_of(dense::turned(product.block()), 0);
}

std::vector<rational> run_transposed(const run_case& c) {
  transition_product<rational> product(column(c.x));
  run_transitions_transposed(c.s, 0, c.s.rows(), product, [] {});
  return dense::row_of(dense::turned(product.block()), 0);
}

RC_GTEST_PROP(algebra_non_expansive, product_norm, ()) {
  const auto c = any_run(false);
  RC_CLASSIFY(c.rho > 1);
  RC_ASSERT(squared(run_forward(c)) <= rational(c.rho * c.rho * squared(c.x)));
}

RC_GTEST_PROP(algebra_non_expansive, transposed_product_norm, ()) {
  const auto c = any_run(false);
  RC_ASSERT(squared(run_transposed(c)) <= rational(c.rho * c.rho * squared(c.x)));
}

RC_GTEST_PROP(algebra_non_expansive, run_norm, ()) {
  const auto c = any_run(false);
  const auto all = wy_transition(wy_recursion(c.s, 0, c.s.rows()));  // the product as the WY form has it
  const auto image = dense::row_of(dense::turned(dense::times(all, column(c.x))), 0);
  RC_ASSERT(squared(image) <= rational(c.rho * c.rho * squared(c.x)));
}

RC_GTEST_PROP(algebra_non_expansive, run_non_expansive, ()) {
  const auto c = any_run(true);
  RC_ASSERT(c.rho == 1);
  RC_ASSERT(squared(run_forward(c)) <= squared(c.x));
  RC_ASSERT(squared(run_transposed(c)) <= squared(c.x));
}

RC_GTEST_PROP(algebra_non_expansive, run_growth, ()) {
  auto c = any_run(true);
  const rational growth = 1 + rational(*rc::gen::inRange(0, 5)) / 4;
  rational most = 1;
  for (std::size_t row = 0; row < c.s.rows(); ++row) {
    c.s.step[row] *= (1 + growth) / 2;  // b n from 0 to 1 + growth
    most *= growth;
  }
  RC_ASSERT(squared(run_forward(c)) <= rational(most * most * squared(c.x)));
}

RC_GTEST_PROP(algebra_non_expansive, run_growth_attained, ()) {
  const auto one = any_step<rational>();
  RC_PRE(one.squared_norm() != 0);
  const rational growth = 1 + rational(*rc::gen::inRange(0, 5)) / 4;
  const int n = *rc::gen::inRange(0, 9);
  rational most = 1;
  transition_product<rational> product(column(one.k));
  for (int i = 0; i < n; ++i) {
    product.step(std::span<const rational>(one.k), (1 + growth) / one.squared_norm());
    most *= growth;
  }
  RC_ASSERT(squared(dense::row_of(dense::turned(product.block()), 0)) == rational(most * most * one.squared_norm()));
}

RC_GTEST_PROP(algebra_non_expansive, repeated_key_diverges, ()) {
  const auto one = any_step<rational>();
  RC_PRE(one.squared_norm() != 0);
  const rational b = rational(*rc::gen::element(-1, 17, 24)) / (8 * one.squared_norm());  // 1 - b n = 9/8, -9/8, -2
  transition_product<rational> product(column(one.k));
  for (int n = 0; n < 40; ++n) product.step(std::span<const rational>(one.k), b);
  RC_ASSERT(squared(dense::row_of(dense::turned(product.block()), 0)) > rational(100 * one.squared_norm()));
}

/// K! times the K-th power of the largest entry of a K x K matrix.
rational entries_bound(const matrix<rational>& a) {
  rational largest = 0;
  for (const rational& entry : a.entries()) largest = std::max(largest, absolute(entry));
  rational bound = 1;
  for (std::size_t i = 0; i < a.rows(); ++i) bound *= largest * static_cast<int>(i + 1);
  return bound;
}

RC_GTEST_PROP(algebra_non_expansive, product_growth_at_least, ()) {
  auto s = any_sequence<rational>(5, 3);
  s.decay.clear();
  rational product = 1;
  for (std::size_t row = 0; row < s.rows(); ++row) product *= absolute(rational(1 - s.step[row] * squared(dense::key(s, row))));
  RC_ASSERT(product <= entries_bound(exact_transition(s, 0, s.rows())));
}

RC_GTEST_PROP(algebra_non_expansive, expansive_product_unbounded, ()) {
  const std::size_t dim = *rc::gen::inRange<std::size_t>(1, 4);
  const int tokens = 60;
  transition_product<rational> product(dim);
  for (int t = 0; t < tokens; ++t) {
    const auto k = any_vector<rational>(dim);
    const rational n = squared(k);
    if (n == 0) {
      --t;
      continue;
    }
    product.step(std::span<const rational>(k), rational(3) / n);  // 1 - b n = -2
  }
  RC_ASSERT(entries_bound(product.block()) >= power(rational(2), tokens));
  RC_ASSERT(std::any_of(product.block().entries().begin(), product.block().entries().end(),
                        [](const rational& x) { return absolute(x) > 1000; }));
}

matrix<rational> rank_one(const std::vector<rational>& x, const std::vector<rational>& y) {
  return dense::sum(dense::unit<rational>(x.size()), dense::outer(rational(1), x, y), rational(-1));
}

// Both have the eigenvalues 0 and 1 alone; their product doubles (0, 1).
TEST(algebra_non_expansive, projections_in_turn_grow) {
  const auto a = rank_one({1, 0}, {1, 1});
  const auto b = rank_one({1, 1}, {1, 0});
  for (const auto& m : {a, b}) {
    EXPECT_EQ(dense::times(m, m), m);
    EXPECT_EQ(determinant(m), 0);
    EXPECT_EQ(rational(m(0, 0) + m(1, 1)), 1);
  }
  auto x = column(std::vector<rational>{0, 1});
  for (int n = 1; n <= 100; ++n) {
    x = dense::times(b, dense::times(a, x));
    EXPECT_EQ(x(0, 0), 0);
    EXPECT_EQ(x(1, 0), power(rational(2), n));
  }
}

RC_GTEST_PROP(algebra_non_expansive, shear_power_grows, ()) {
  auto x = any_vector<rational>(*rc::gen::inRange<std::size_t>(2, 5));
  std::vector<rational> y(x.size());
  y[0] = x[1];
  y[1] = -x[0];
  const auto shear = rank_one(x, y);
  const int n = *rc::gen::inRange(0, 30);
  auto all = dense::unit<rational>(x.size());
  for (int i = 0; i < n; ++i) all = dense::times(shear, all);
  RC_ASSERT(all == dense::sum(dense::unit<rational>(x.size()), dense::outer(rational(1), x, y), rational(-n)));
  RC_ASSERT(determinant(shear) == 1);
}

// The product of study horizon's finding not-sufficient-gated, by the library's gated sequence.
TEST(algebra_non_expansive, gated_steps_in_turn_grow) {
  auto s = sequence<rational>::zeros(2, 1, 2, 1, decay_kind::per_channel);
  s.k = {1, 2, 2, 1};
  s.step = {1, 1};
  s.decay = {1, rational(1) / 16, rational(1) / 16, 1};
  const auto first = exact_transition(s, 0, 1);
  const rational trace = first(0, 0) + first(1, 1);
  EXPECT_EQ(trace, rational(-3) / 16);
  EXPECT_EQ(determinant(first), rational(-1) / 4);  // |det| < 1 and |trace| < 1 + det: both eigenvalues inside the disc
  EXPECT_LT(absolute(trace), rational(1 + determinant(first)));
  transition_product<rational> product(column(std::vector<rational>{1, 0}));
  for (int n = 1; n <= 50; ++n) {
    run_transitions(s, 0, 2, product, [] {});
    EXPECT_EQ(product.block()(0, 0), power(rational(4), n));
    EXPECT_EQ(product.block()(1, 0), 0);
  }
}

// ---- error_accumulation: value rows of length 1, errors along single channels, so that every length is rational

struct perturbed {
  std::vector<rational> difference;  // of the two final states
  rational bound;                    // e_0 prod rho + sum_t r_t prod_(j > t) rho_j
  rational sum;                      // of the local errors alone
};

perturbed any_perturbed(bool stable, bool initial_error) {
  auto c = any_run(stable);
  const sequence<rational>& s = c.s;
  const auto error = [&](matrix<rational>& state) {
    const rational size = rational(*rc::gen::inRange(-3, 4)) / 8;
    const auto channel = *rc::gen::inRange<std::size_t>(0, s.key_dim);
    state(channel, 0) += size;
    return absolute(size);
  };
  matrix<rational> start(s.key_dim, 1);
  for (std::size_t i = 0; i < s.key_dim; ++i) start(i, 0) = s.start()(i, 0);
  matrix<rational> moved = start;
  perturbed result;
  if (initial_error) result.bound = error(moved);
  recurrence<rational> exact_run(start);
  for (std::size_t row = 0; row < s.rows(); ++row) {
    recurrence<rational> step(moved);
    for (recurrence<rational>* machine : {&exact_run, &step}) {
      if (row % s.steps_per_token == 0) machine->decay(s.decay_of(row / s.steps_per_token));
      machine->step(s.k_row(row), s.v_row(row).first(1), s.step[row]);
    }
    moved = step.state();
    const rational local = error(moved);
    result.bound = expansion(dense::key(s, row), s.step[row]) * result.bound + local;
    result.sum += local;
  }
  result.difference = dense::row_of(dense::turned(dense::difference(moved, exact_run.state())), 0);
  return result;
}

RC_GTEST_PROP(algebra_error_accumulation, error_accumulation, ()) {
  const auto p = any_perturbed(false, true);
  RC_ASSERT(squared(p.difference) <= rational(p.bound * p.bound));
}

RC_GTEST_PROP(algebra_error_accumulation, delta_errors_only_add, ()) {
  const auto p = any_perturbed(true, false);
  RC_ASSERT(p.bound == p.sum);
  RC_ASSERT(squared(p.difference) <= rational(p.sum * p.sum));
}

// The same with an error at the start: nothing enlarges it either.
RC_GTEST_PROP(algebra_error_accumulation, errors_only_add, ()) {
  const auto p = any_perturbed(true, true);
  RC_ASSERT(squared(p.difference) <= rational(p.bound * p.bound));
  RC_ASSERT(p.bound <= rational(p.sum + rational(3) / 8));
}

RC_GTEST_PROP(algebra_error_accumulation, decayed_step_factor, ()) {
  const auto one = any_step<rational>();
  const rational b = rational(*rc::gen::inRange(-16, 33)) / 8;
  const auto a = any_decay(one.k.size());
  const auto x = any_vector<rational>(one.k.size());
  recurrence<rational> row(column(x));  // one value row, v = 0
  row.decay(std::span<const rational>(a));
  row.step(std::span<const rational>(one.k), std::vector<rational>{0}, b);
  const rational rho = expansion(one.k, b);
  RC_ASSERT(squared(dense::row_of(dense::turned(row.state()), 0)) <= rational(rho * rho * squared(x)));
}

// Unit keys, so that what a row writes has the rational length |b v|.
RC_GTEST_PROP(algebra_error_accumulation, forced_state_bound, ()) {
  auto recipe = *testing::recipes({.tokens = 6, .steps_per_token = 2, .key_dim = 4, .value_dim = 1});
  recipe.regime = testing::key_regime::unit_signs;
  recipe.initial_state = false;
  const auto s = testing::make_sequence<rational>(recipe);
  const auto state = recurrent(s).final_state;
  for (std::size_t j = 0; j < s.value_dim; ++j) {
    rational bound = 0;
    for (std::size_t row = 0; row < s.rows(); ++row) {
      const auto k = dense::key(s, row);
      bound = expansion(k, s.step[row]) * bound + absolute(rational(s.step[row] * dense::value(s, row)[j]));
    }
    RC_ASSERT(squared(dense::row_of(dense::turned(state), j)) <= rational(bound * bound));
  }
}

TEST(algebra_error_accumulation, errors_add_attained) {
  auto s = sequence<rational>::zeros(64, 1, 2, 1);
  matrix<rational> state(2, 1);
  for (std::size_t row = 0; row < s.rows(); ++row) {
    recurrence<rational> machine(state);
    machine.step(s.k_row(row), s.v_row(row), s.step[row]);
    state = machine.state();
    state(0, 0) += rational(3) / 8;
  }
  EXPECT_EQ(state(0, 0), rational(64 * 3) / 8);
  EXPECT_EQ(state(1, 0), 0);
}

// ---- materialised

struct stored_transition {
  matrix<rational> a;
  std::size_t i = 0;  // 1 on the diagonal
  std::size_t j = 0;  // something beside it
};

// A key with one entry so small that 1 - b k_i^2 rounds to 1 in bf16.
stored_transition any_stored() {
  const std::size_t dim = *rc::gen::inRange<std::size_t>(2, 6);
  std::vector<double> k(dim);
  for (double& x : k) x = static_cast<double>(*rc::gen::inRange(1, 9)) / 8;
  stored_transition result;
  result.i = *rc::gen::inRange<std::size_t>(0, dim);
  result.j = (result.i + 1) % dim;
  k[result.i] = 0x1p-5;
  const double b = static_cast<double>(*rc::gen::inRange(1, 9)) / 8;
  const auto stored = materialised_transition<bf16>(std::span<const double>(k), b);
  result.a = matrix<rational>(dim, dim);
  for (std::size_t e = 0; e < stored.size(); ++e) result.a.data()[e] = lift<rational>(stored.data()[e]);
  RC_ASSERT(result.a(result.i, result.i) == 1);
  return result;
}

RC_GTEST_PROP(algebra_materialised, unit_diagonal_expands, ()) {
  const auto stored = any_stored();
  RC_ASSERT(squared(dense::row_of(dense::turned(stored.a), stored.i)) > 1);
}

RC_GTEST_PROP(algebra_materialised, unit_diagonal_exceeds_one, ()) {
  const auto [a, i, j] = any_stored();
  std::vector<rational> z(a.rows());
  z[i] = 1;
  z[j] = a(j, i) / (1 + absolute(rational(1 - a(j, j))));
  const auto image = dense::row_of(dense::turned(dense::times(a, column(z))), 0);
  RC_ASSERT(dense::inner(z, image) > squared(z));
}

}  // namespace
}  // namespace deltaproof
