// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/rule/baselines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/rule/rules.hpp"

namespace deltaproof {
namespace {

using vec = std::vector<rational>;

rational over(int numerator, int denominator) { return rational(numerator) / rational(denominator); }

vec draw(philox& random, std::size_t n) {
  vec result;
  for (std::size_t i = 0; i < n; ++i) result.push_back(over(static_cast<int>(random.below(13)) - 6, 4));
  return result;
}

// a^-1 by Gauss-Jordan elimination; a is regular.
matrix<rational> inverse_of(matrix<rational> a) {
  const std::size_t n = a.rows();
  matrix<rational> result = identity<rational>(n);
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    while (a(pivot, c) == 0) ++pivot;
    for (std::size_t j = 0; j < n; ++j) {
      std::swap(a(c, j), a(pivot, j));
      std::swap(result(c, j), result(pivot, j));
    }
    const rational scale = 1 / a(c, c);
    for (std::size_t j = 0; j < n; ++j) {
      a(c, j) *= scale;
      result(c, j) *= scale;
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (i == c) continue;
      const rational factor = a(i, c);
      for (std::size_t j = 0; j < n; ++j) {
        a(i, j) -= factor * a(c, j);
        result(i, j) -= factor * result(c, j);
      }
    }
  }
  return result;
}

matrix<rational> product(const matrix<rational>& a, const matrix<rational>& b) {
  matrix<rational> result(a.rows(), b.cols());
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t j = 0; j < b.cols(); ++j) {
      for (std::size_t k = 0; k < a.cols(); ++k) result(i, j) += a(i, k) * b(k, j);
    }
  }
  return result;
}

// (I - erase k k^T) S + write k v^T, written out.
matrix<rational> written_out(const matrix<rational>& s, const vec& k, const vec& v, const rational& erase,
                             const rational& write) {
  matrix<rational> transition = identity<rational>(k.size());
  for (std::size_t i = 0; i < k.size(); ++i) {
    for (std::size_t j = 0; j < k.size(); ++j) transition(i, j) -= erase * k[i] * k[j];
  }
  matrix<rational> result = product(transition, s);
  for (std::size_t i = 0; i < k.size(); ++i) {
    for (std::size_t j = 0; j < v.size(); ++j) result(i, j) += write * k[i] * v[j];
  }
  return result;
}

TEST(hebbian, two_steps_by_hand) {
  hebbian<rational> memory(2, 1);
  memory.step(vec{1, 2}, vec{3});
  memory.step(vec{1, -1}, vec{1});
  EXPECT_EQ(memory.state(), matrix<rational>(2, 1, vec{4, 5}));
  vec o(1);
  memory.read(vec{1, 1}, o);
  EXPECT_EQ(o, vec{9});
}

TEST(gated_hebbian, decays_before_it_writes) {
  gated_hebbian<rational> memory(2, 1);
  memory.step(vec{over(1, 2)}, vec{1, 2}, vec{4});
  memory.step(vec{over(1, 2)}, vec{0, 1}, vec{1});
  EXPECT_EQ(memory.state(), matrix<rational>(2, 1, vec{2, 5}));
  memory.step(vec{0, 1}, vec{1, 0}, vec{7});
  EXPECT_EQ(memory.state(), matrix<rational>(2, 1, vec{7, 5}));
}

TEST(gated_hebbian, without_decay_is_hebbian) {
  philox random(3);
  hebbian<rational> plain(3, 2);
  gated_hebbian<rational> gated(3, 2);
  for (int t = 0; t < 5; ++t) {
    const vec k = draw(random, 3);
    const vec v = draw(random, 2);
    plain.step(k, v);
    gated.step(vec{1}, k, v);
  }
  EXPECT_EQ(plain.state(), gated.state());
}

TEST(recursive_least_squares, one_step_by_hand) {
  recursive_least_squares<rational> memory(2, 1, rational(2));
  memory.step(vec{1, 1}, vec{8});  // C k = (1/2, 1/2), 1 + k^T C k = 2, g = (1/4, 1/4)
  EXPECT_EQ(memory.state(), matrix<rational>(2, 1, vec{2, 2}));
  EXPECT_EQ(memory.inverse(), matrix<rational>(2, 2, vec{over(3, 8), over(-1, 8), over(-1, 8), over(3, 8)}));
}

TEST(recursive_least_squares, equals_the_batch_solution_in_rationals) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    philox random(seed, 5);
    const std::size_t key_dim = 1 + random.below(4);
    const std::size_t value_dim = 1 + random.below(3);
    const std::size_t tokens = random.below(9);  // fewer and more than key_dim
    const rational lambda = over(1 + static_cast<int>(random.below(5)), 3);
    recursive_least_squares<rational> memory(key_dim, value_dim, lambda);
    matrix<rational> keys(tokens, key_dim);
    matrix<rational> values(tokens, value_dim);
    for (std::size_t t = 0; t < tokens; ++t) {
      const vec k = seed % 3 == 0 && t > 0 ? vec(keys.row(0).begin(), keys.row(0).end()) : draw(random, key_dim);
      const vec v = draw(random, value_dim);
      for (std::size_t i = 0; i < key_dim; ++i) keys(t, i) = k[i];
      for (std::size_t i = 0; i < value_dim; ++i) values(t, i) = v[i];
      memory.step(k, v);
    }
    matrix<rational> gram = product(transpose(keys), keys);
    for (std::size_t i = 0; i < key_dim; ++i) gram(i, i) += lambda;
    const matrix<rational> inverse = inverse_of(gram);
    EXPECT_EQ(memory.inverse(), inverse) << "seed " << seed;
    EXPECT_EQ(transpose(memory.state()), product(product(transpose(values), keys), inverse)) << "seed " << seed;
  }
}

TEST(recursive_least_squares, refuses_a_ridge_of_zero) {
  EXPECT_THROW((recursive_least_squares<rational>(2, 1, rational(0))), domain_error);
}

TEST(negative_eigenvalues, each_convention_is_what_its_formula_says_and_they_differ) {
  philox random(7);
  negative_eigenvalues_erase<rational> erase(3, 2);
  negative_eigenvalues_both<rational> both(3, 2);
  matrix<rational> erase_expected(3, 2);
  matrix<rational> both_expected(3, 2);
  for (int t = 0; t < 6; ++t) {
    const vec k = draw(random, 3);
    const vec v = draw(random, 2);
    const rational beta = over(static_cast<int>(random.below(5)), 4);
    erase.step(k, v, beta);
    both.step(k, v, beta);
    erase_expected = written_out(erase_expected, k, v, 2 * beta, beta);
    both_expected = written_out(both_expected, k, v, 2 * beta, 2 * beta);
  }
  EXPECT_EQ(erase.state(), erase_expected);
  EXPECT_EQ(both.state(), both_expected);
  EXPECT_FALSE(erase.state() == both.state());
}

TEST(diagonal_longhorn, one_step_by_hand) {
  diagonal_longhorn<rational> memory(2, 1);
  memory.step(vec{1, 2}, vec{6}, vec{1});  // delta = 1 / (1 + 5)
  EXPECT_EQ(memory.state(), matrix<rational>(2, 1, vec{1, 2}));
  memory.step(vec{1, 0}, vec{0}, vec{1});  // delta = 1/2: the first row is halved, the second untouched
  EXPECT_EQ(memory.state(), matrix<rational>(2, 1, vec{over(1, 2), 2}));
}

TEST(diagonal_longhorn, takes_one_strength_for_each_value_channel) {
  diagonal_longhorn<rational> memory(1, 2);
  memory.step(vec{1}, vec{6, 6}, vec{1, 2});
  EXPECT_EQ(memory.state(), matrix<rational>(1, 2, vec{3, 4}));
}

TEST(diagonal_longhorn, is_the_implicit_step_for_one_channel_and_not_for_two) {
  const vec k{over(3, 2), 1};
  const vec v{2};
  const vec beta{over(3, 4)};
  diagonal_longhorn<rational> one_channel(1, 1);
  diagonal_longhorn<rational> two_channels(2, 1);
  matrix<rational> one_expected(1, 1);
  matrix<rational> two_expected(2, 1);
  for (int t = 0; t < 3; ++t) {
    const vec first{k[0]};
    one_channel.step(first, v, beta);
    two_channels.step(k, v, beta);
    const rational b1 = effective_step(implicit_euler{}, beta[0], rational(k[0] * k[0]));
    const rational b2 = effective_step(implicit_euler{}, beta[0], rational(k[0] * k[0] + k[1] * k[1]));
    one_expected = written_out(one_expected, first, v, b1, b1);
    two_expected = written_out(two_expected, k, v, b2, b2);
  }
  EXPECT_EQ(one_channel.state(), one_expected);
  EXPECT_FALSE(two_channels.state() == two_expected);
}

TEST(baselines, run_modulo_a_prime_as_in_rationals) {
  recursive_least_squares<rational> over_q(2, 1, rational(3));
  recursive_least_squares<modular> over_p(2, 1, modular(3));
  diagonal_longhorn<rational> longhorn_q(2, 1);
  diagonal_longhorn<modular> longhorn_p(2, 1);
  for (int t = 1; t < 5; ++t) {
    over_q.step(vec{t, 1}, vec{t * t});
    over_p.step(std::vector<modular>{modular(t), modular(1)}, std::vector<modular>{modular(t * t)});
    longhorn_q.step(vec{t, 1}, vec{t}, vec{2});
    longhorn_p.step(std::vector<modular>{modular(t), modular(1)}, std::vector<modular>{modular(t)},
                    std::vector<modular>{modular(2)});
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(reduce(over_q.state()(i, 0)), over_p.state()(i, 0));
    EXPECT_EQ(reduce(longhorn_q.state()(i, 0)), longhorn_p.state()(i, 0));
  }
}

TEST(baselines, refuse_operands_of_the_wrong_length_naming_both_values) {
  hebbian<double> memory(3, 2);
  try {
    memory.step(std::vector<double>(4), std::vector<double>(2));
    FAIL() << "no exception";
  } catch (const shape_error& e) {
    EXPECT_THAT(e.what(), ::testing::AllOf(::testing::HasSubstr("hebbian: k holds 4"), ::testing::HasSubstr("key_dim = 3")));
  }
  EXPECT_THROW(memory.step(std::vector<double>(3), std::vector<double>(1)), shape_error);
  EXPECT_THROW(hebbian<double>(0, 1), shape_error);
  gated_hebbian<double> gated(3, 2);
  EXPECT_THROW(gated.step(std::vector<double>(2), std::vector<double>(3), std::vector<double>(2)), shape_error);
  diagonal_longhorn<double> longhorn(2, 3);
  EXPECT_THROW(longhorn.step(std::vector<double>(2), std::vector<double>(3), std::vector<double>(2)), shape_error);
}

}  // namespace
}  // namespace deltaproof
