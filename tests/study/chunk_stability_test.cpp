// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <Eigen/Eigenvalues>

#include "deltaproof/algebra/spectrum.hpp"
#include "deltaproof/scan/transition.hpp"
#include "studies/chunk_stability/transition.hpp"
#include "studies/shared/chunks/arithmetics.hpp"
#include "studies/shared/chunks/keys.hpp"
#include "studies/shared/keys.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::chunk_stability;
using detail::chunks::arithmetic_named;
using detail::chunks::arithmetics;
using detail::chunks::key_kind;
using detail::chunks::key_kinds;
using detail::chunks::make_keys;
using detail::chunks::make_sequence;
using detail::chunks::state_format;
using detail::shared::dot;
using detail::shared::squared_norm;

const inverse_method forward = inverse_named("forward");

std::span<const double> key(const std::vector<double>& keys, std::size_t r, std::size_t dim) {
  return std::span(keys).subspan(r * dim, dim);
}

double largest_eigenvalue(const matrix<double>& m) {
  const auto d = static_cast<Eigen::Index>(m.rows());
  return Eigen::Map<const Eigen::MatrixXd>(m.data(), d, d).eigenvalues().cwiseAbs().maxCoeff();  // those of the transpose
}

TEST(chunk_keys, are_values_of_every_format_and_never_longer_than_one) {
  for (const key_kind kind : key_kinds) {
    const auto keys = make_keys(kind, 40, 64, 3);
    for (const double x : keys) {
      EXPECT_EQ(round_to<bf16>(x).value(), x);
      EXPECT_EQ(round_to<fp16>(x).value(), x);
    }
    for (std::size_t r = 0; r < 40; ++r) {
      EXPECT_LE(squared_norm(key(keys, r, 64)), 1) << name_of(kind);
      EXPECT_GT(squared_norm(key(keys, r, 64)), 0.99) << name_of(kind);
    }
    EXPECT_EQ(keys, make_keys(kind, 40, 64, 3));
    EXPECT_NE(keys, make_keys(kind, 40, 64, 4));
  }
  EXPECT_EQ(squared_norm(key(make_keys(key_kind::signs, 1, 64, 1), 0, 64)), 1);
}

TEST(chunk_keys, relate_to_each_other_as_their_kind_says) {
  const auto mean_cosine = [](key_kind kind) {
    const auto keys = make_keys(kind, 60, 64, 1);
    double sum = 0;
    for (std::size_t r = 1; r < 60; ++r) sum += dot(key(keys, 0, 64), key(keys, r, 64));
    return sum / 59;
  };
  EXPECT_NEAR(mean_cosine(key_kind::fresh), 0, 0.1);
  EXPECT_NEAR(mean_cosine(key_kind::cosine_90), 0.9, 0.02);
  EXPECT_NEAR(mean_cosine(key_kind::cosine_99), 0.99, 0.005);
  EXPECT_NEAR(mean_cosine(key_kind::cosine_999), 0.999, 0.003);
  const auto repeated = make_keys(key_kind::repeated, 5, 64, 1);
  for (std::size_t i = 0; i < repeated.size(); ++i) EXPECT_EQ(repeated[i], repeated[i % 64]);
  std::set<std::vector<double>> words;
  const auto vocabulary = make_keys(key_kind::vocabulary, 100, 64, 1);
  for (std::size_t r = 0; r < 100; ++r) words.insert({key(vocabulary, r, 64).begin(), key(vocabulary, r, 64).end()});
  EXPECT_EQ(words.size(), 8U);
}

TEST(chunk_keys, steps_lie_in_their_range_on_the_grid_of_bf16) {
  const auto s = make_sequence(key_kind::fresh, {1.5, 2}, 200, 8, 1, 1, 1);
  std::set<double> distinct(s.step.begin(), s.step.end());
  EXPECT_GT(distinct.size(), 30U);
  for (const double b : distinct) {
    EXPECT_GE(b, 1.5);
    EXPECT_LT(b, 2);
    EXPECT_EQ(round_to<bf16>(b).value(), b);
  }
  EXPECT_EQ(make_sequence(key_kind::fresh, {2, 2}, 3, 8, 1, 1, 1).step, std::vector<double>(3, 2));
}

TEST(chunk_arithmetics, refuse_what_they_would_have_to_round) {
  auto s = make_sequence(key_kind::fresh, {1, 1}, 4, 8, 2, 1, 1);
  s.k[0] = 0.1;
  EXPECT_THROW((void)arithmetic_named("bf16").chunkwise(s, 4, forward), domain_error);
  EXPECT_THROW((void)arithmetic_named("fp32").recurrent(s, state_format::storage, 1, nullptr), domain_error);
  EXPECT_NO_THROW((void)arithmetic_named("fp64").chunkwise(s, 4, forward));
  EXPECT_THROW((void)arithmetic_named("fp128"), domain_error);
}

TEST(chunk_arithmetics, run_the_same_recurrence_to_within_their_format) {
  const auto s = make_sequence(key_kind::fresh, {0, 1}, 50, 16, 3, 1, 2);
  const auto exact = arithmetic_named("fp64").recurrent(s, state_format::storage, 1, nullptr);
  for (const auto& arithmetic : arithmetics()) {
    const double u = unit_roundoff(arithmetic.storage);
    const auto run = arithmetic.chunkwise(s, 16, forward);
    EXPECT_LT(distance(run.o, exact.o) / frobenius(exact.o), 40 * u) << arithmetic.name;
    EXPECT_LT(distance(run.final_state, exact.final_state) / frobenius(exact.final_state), 40 * u) << arithmetic.name;
    std::vector<matrix<double>> states;
    const auto recurrent = arithmetic.recurrent(s, state_format::storage, 10, &states);
    EXPECT_LT(distance(recurrent.o, exact.o) / frobenius(exact.o), 40 * u) << arithmetic.name;
    ASSERT_EQ(states.size(), 5U);
    EXPECT_EQ(states.back(), recurrent.final_state);
    const auto is_stored = [&](double x) {
      return (arithmetic.storage != bf16 || round_to<bf16>(x).value() == x) &&
             (arithmetic.storage != fp16 || round_to<fp16>(x).value() == x);
    };
    EXPECT_TRUE(std::ranges::all_of(states.back().entries(), is_stored)) << arithmetic.name;
    EXPECT_TRUE(std::ranges::all_of(run.Ai.entries(), is_stored)) << arithmetic.name;
  }
}

TEST(chunk_transition, of_exact_w_is_the_product_of_the_steps) {
  for (const key_kind kind : key_kinds) {
    const auto s = make_sequence(kind, {1.5, 2}, 40, 16, 1, 0, 5);
    const auto run = arithmetic_named("fp64").chunkwise(s, 40, forward);
    const auto exact = exact_transition(s, 0, 40);
    EXPECT_LT(distance(realised_transition(s, run.w, 0, 40), exact), 1e-11) << name_of(kind);
    EXPECT_LE(spectral_norm(exact), 1 + 1e-13) << name_of(kind);
  }
}

TEST(chunk_transition, radius_is_that_of_the_eigensolver) {
  philox random(3);
  for (const std::size_t d : {std::size_t{1}, std::size_t{5}, std::size_t{20}}) {
    matrix<double> m(d, d);
    for (double& x : m.entries()) x = random.normal();
    EXPECT_NEAR(spectral_radius(m), largest_eigenvalue(m), 1e-7 * largest_eigenvalue(m));
  }
  EXPECT_EQ(spectral_radius(matrix<double>(2, 2, std::vector<double>{0, 1, 0, 0})), 0);
  EXPECT_NEAR(spectral_radius(matrix<double>(2, 2, std::vector<double>{0, -3e100, 3e100, 0})), 3e100, 1e93);
  EXPECT_TRUE(std::isnan(spectral_radius(matrix<double>(1, 1, std::numeric_limits<double>::infinity()))));
}

TEST(chunk_transition, chunk_radius_is_that_of_the_whole_matrix) {
  for (const std::size_t rows : {std::size_t{4}, std::size_t{15}, std::size_t{16}, std::size_t{40}}) {
    for (const key_kind kind : {key_kind::fresh, key_kind::cosine_999, key_kind::repeated}) {
      const auto s = make_sequence(kind, {2, 2}, rows, 16, 1, 0, 1);
      const auto run = arithmetic_named("bf16 native").chunkwise(s, rows, forward);
      const double largest = largest_eigenvalue(realised_transition(s, run.w, 0, rows));
      EXPECT_NEAR(chunk_radius(s, run.w, 0, rows, 30), largest, 1e-5) << rows << ' ' << name_of(kind);
    }
  }
}

TEST(chunk_transition, eigenvalue_along_one_key_is_the_power_of_a_step) {
  const auto s = make_sequence(key_kind::repeated, {1.75, 1.75}, 12, 16, 1, 0, 1);
  const double x = 1.75 * squared_norm(s.k_row(0));
  EXPECT_NEAR(eigenvalue_along_key(s, arithmetic_named("fp64").chunkwise(s, 12, forward).w, 0, 12), std::pow(1 - x, 12), 1e-12);
}

TEST(chunk_stability, proved_bound_holds_and_says_where_it_stops) {
  EXPECT_EQ(storage_bound(1, 64, 0x1p-8), 0.25);
  EXPECT_EQ(proved_safe_x(512, 0x1p-8), 0);
  for (const std::size_t chunk : {std::size_t{16}, std::size_t{128}}) {
    const double x = proved_safe_x(chunk, 0x1p-8);
    EXPECT_LE(std::pow(x - 1, chunk) + storage_bound(x, chunk, 0x1p-8), 1 + 1e-12);
    EXPECT_GT(std::pow(x - 1 + 1e-5, chunk) + storage_bound(x + 1e-5, chunk, 0x1p-8), 1);
  }
}

}  // namespace
}  // namespace deltaproof
