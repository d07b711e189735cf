// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The identities of the WY form, with `==`: P^r and H^r as the product and the sum they stand for are
// those of the recursion, in rationals and modulo 2^61 - 1. The left sides are made here from dense
// matrices, factor by factor, and share no code with the recursion.
#include "deltaproof/scan/wy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "deltaproof/algebra/multiply.hpp"
#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/scan/recurrent.hpp"
#include "support/sequence_generators.hpp"

namespace deltaproof {
namespace {

template <class S>
matrix<S> times(const matrix<S>& a, const matrix<S>& b) {
  return matmul<plain<S>>(a, b);
}

// diag(a) (I - b k k^T) of one row, dense: a factor of P, which acts on (V, K) states from the right.
template <class S>
matrix<S> dense_factor(const sequence<S>& s, std::size_t row) {
  matrix<S> factor = identity<S>(s.key_dim);
  const auto k = s.k_row(row);
  for (std::size_t i = 0; i < s.key_dim; ++i) {
    for (std::size_t j = 0; j < s.key_dim; ++j) factor(i, j) = factor(i, j) - s.step[row] * k[i] * k[j];
  }
  if (row % s.steps_per_token != 0) return factor;
  const auto a = s.decay_of(row / s.steps_per_token);
  matrix<S> decay = identity<S>(s.key_dim);
  for (std::size_t i = 0; i < a.size() * (s.key_dim / (a.empty() ? 1 : a.size())); ++i) decay(i, i) = a.size() == 1 ? a[0] : a[i];
  return times(decay, factor);
}

struct direction {
  bool reversed;
};

// prod_i A_i (I - b_i k_i k_i^T), multiplied on the right in order, or on the wrong side.
template <class S>
matrix<S> dense_product(const sequence<S>& s, std::size_t first, std::size_t end, direction d) {
  matrix<S> product = identity<S>(s.key_dim);
  for (std::size_t row = first; row < end; ++row) {
    product = d.reversed ? times(dense_factor(s, row), product) : times(product, dense_factor(s, row));
  }
  return product;
}

// sum_i b_i v_i k_i^T prod_{m>i} A_m (I - b_m k_m k_m^T), V x K: each write carried to the end of the run.
template <class S>
matrix<S> dense_write(const sequence<S>& s, std::size_t first, std::size_t end, direction d) {
  matrix<S> sum(s.value_dim, s.key_dim);
  for (std::size_t row = first; row < end; ++row) {
    matrix<S> write(s.value_dim, s.key_dim);
    for (std::size_t i = 0; i < s.value_dim; ++i) {
      for (std::size_t j = 0; j < s.key_dim; ++j) write(i, j) = s.step[row] * s.v_row(row)[i] * s.k_row(row)[j];
    }
    write = times(write, dense_product(s, row + 1, end, d));
    for (std::size_t i = 0; i < sum.size(); ++i) sum.data()[i] = sum.data()[i] + write.data()[i];
  }
  return sum;
}

// A run inside the sequence, from any row on, of up to C rows.
struct run {
  std::size_t first;
  std::size_t rows;
};

template <class S>
run any_run(const sequence<S>& s, std::size_t chunk) {
  const auto drawn = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, 2 * s.rows() + 1));
  const std::size_t first = drawn > s.rows() ? 0 : drawn;
  return {first, std::min(chunk, s.rows() - first)};
}

template <class S>
void product_and_sum_are_the_recursion(testing::recipe_limits limits) {
  const auto recipe = *testing::recipes(limits);
  const auto s = testing::make_sequence<S>(recipe);
  const auto [first, rows] = any_run(s, recipe.chunk);
  RC_CLASSIFY(rows > 1, "two steps or more");
  RC_CLASSIFY(recipe.decays != decay_kind::none, "gated");
  RC_CLASSIFY(recipe.steps_per_token > 1, "several steps per token");
  const auto form = wy_recursion(s, first, rows);
  RC_ASSERT(transpose(wy_transition(form)) == dense_product(s, first, first + rows, {false}));
  RC_ASSERT(transpose(wy_write(form)) == dense_write(s, first, first + rows, {false}));
}

template <class S>
void one_run_is_the_recurrence(testing::recipe_limits limits) {
  const auto recipe = *testing::recipes(limits);
  const auto s = testing::make_sequence<S>(recipe);
  RC_ASSERT(wy_apply(wy_recursion(s, 0, s.rows()), s.start()) == recurrent(s).final_state);
}

template <class S>
void runs_of_a_chunk_each_are_the_recurrence(testing::recipe_limits limits) {
  const auto recipe = *testing::recipes(limits);
  const auto s = testing::make_sequence<S>(recipe);
  matrix<S> state = s.start();
  for (std::size_t row = 0; row < s.rows(); row += recipe.chunk) {
    state = wy_apply(wy_recursion(s, row, std::min(recipe.chunk, s.rows() - row)), state);
  }
  RC_CLASSIFY(s.rows() % recipe.chunk != 0, "with a tail");
  RC_ASSERT(state == recurrent(s).final_state);
}

constexpr testing::recipe_limits small{};
constexpr testing::recipe_limits large{.tokens = 24, .steps_per_token = 3, .key_dim = 12, .value_dim = 9, .chunk = 64};

TEST(wy_property, product_and_sum_are_the_recursion_in_rationals) {
  testing::check_property(400, 31, [] { product_and_sum_are_the_recursion<rational>(small); });
}
TEST(wy_property, product_and_sum_are_the_recursion_modulo_a_prime) {
  testing::check_property(1000, 32, [] { product_and_sum_are_the_recursion<modular>(large); });
}
TEST(wy_property, one_run_is_the_recurrence_in_rationals) {
  testing::check_property(400, 33, [] { one_run_is_the_recurrence<rational>(small); });
}
TEST(wy_property, one_run_is_the_recurrence_modulo_a_prime) {
  testing::check_property(2000, 34, [] { one_run_is_the_recurrence<modular>(large); });
}
TEST(wy_property, runs_of_a_chunk_each_are_the_recurrence_in_rationals) {
  testing::check_property(400, 35, [] { runs_of_a_chunk_each_are_the_recurrence<rational>(small); });
}
TEST(wy_property, runs_of_a_chunk_each_are_the_recurrence_modulo_a_prime) {
  testing::check_property(2000, 36, [] { runs_of_a_chunk_each_are_the_recurrence<modular>(large); });
}

// The order of multiplication is seen: on keys, values and steps from the whole field, where nothing is
// orthogonal or zero by luck, the product from the other side is another matrix, and so is the sum.
TEST(wy_property, the_reversed_product_differs_on_generic_input) {
  testing::check_property(500, 37, [] {
    auto recipe = *testing::recipes(large);
    recipe.decays = decay_kind::none;
    recipe.tokens += 3;
    recipe.key_dim += 1;
    auto s = testing::make_sequence<modular>(recipe);
    testing::recipe_stream stream(recipe.seed);
    for (auto* values : {&s.k, &s.v, &s.step}) {
      for (modular& x : *values) x = modular(static_cast<std::int64_t>(stream.next() >> 3));
    }
    const auto form = wy_recursion(s, 0, s.rows());
    RC_ASSERT(!(transpose(wy_transition(form)) == dense_product(s, 0, s.rows(), {true})));
    RC_ASSERT(!(transpose(wy_write(form)) == dense_write(s, 0, s.rows(), {true})));
    RC_ASSERT(transpose(wy_transition(form)) == dense_product(s, 0, s.rows(), {false}));
  });
}

}  // namespace
}  // namespace deltaproof
