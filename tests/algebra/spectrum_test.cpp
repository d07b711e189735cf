// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/algebra/spectrum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "deltaproof/algebra/multiply.hpp"
#include "deltaproof/number/random.hpp"

namespace deltaproof {
namespace {

using wide = real<128>;

matrix<wide> widen(const matrix<double>& a) {
  matrix<wide> result(a.rows(), a.cols());
  for (std::size_t i = 0; i < a.size(); ++i) result.data()[i] = lift<wide>(a.data()[i]);
  return result;
}

matrix<double> random_matrix(std::size_t rows, std::size_t cols, std::uint64_t stream) {
  philox generator(314, stream);
  matrix<double> m(rows, cols);
  for (double& x : m.entries()) x = generator.normal();
  return m;
}

double narrow(const wide& x) { return round_to<double>(x); }
double narrow(double x) { return x; }

/// I - b k k^T, each entry rounded once per operation in S.
template <class S>
matrix<S> step_matrix(const std::vector<double>& k, double b) {
  matrix<S> a = identity<S>(k.size());
  for (std::size_t i = 0; i < k.size(); ++i) {
    for (std::size_t j = 0; j < k.size(); ++j) a(i, j) = a(i, j) - lift<S>(b) * lift<S>(k[i]) * lift<S>(k[j]);
  }
  return a;
}

template <class S>
double distance(const S& x, const S& y) {
  using std::abs;
  return narrow(S(abs(x - y)));
}

template <class S>
void expect_step_spectrum(double tolerance) {
  philox generator(1, 0);
  for (const std::size_t d : {2U, 5U, 16U, 64U}) {
    std::vector<double> k(d);
    for (double& x : k) x = generator.normal() / 4;
    S norm = S(0);
    for (const double x : k) norm = norm + lift<S>(x) * lift<S>(x);
    for (const double b : {0.25, 1.0, 1.75}) {
      const auto a = step_matrix<S>(k, b);
      const S special = S(1) - lift<S>(b) * norm;
      auto values = symmetric_eigenvalues(a);
      ASSERT_EQ(values.size(), d);
      // 1 with multiplicity d - 1 and 1 - b |k|^2 once.
      std::sort(values.begin(), values.end(),
                [&](const S& x, const S& y) { return distance(x, special) < distance(y, special); });
      const double scale = 1 + b * narrow(norm);
      EXPECT_LE(distance(values[0], special), tolerance * scale) << d << " " << b;
      for (std::size_t i = 1; i < d; ++i) EXPECT_LE(distance(values[i], S(1)), tolerance * scale) << d << " " << b;
      const double want = std::max(1.0, std::abs(narrow(special)));
      EXPECT_LE(std::abs(narrow(spectral_norm(a)) - want), std::max(tolerance, 0x1p-51) * scale);
    }
  }
}

TEST(spectrum, of_one_step_is_one_and_one_minus_b_norm_squared) {
  expect_step_spectrum<double>(64 * 0x1p-50);
  expect_step_spectrum<wide>(64 * 0x1p-125);
}

TEST(spectrum, of_a_householder_reflection_is_plus_and_minus_one) {
  const std::vector<double> k{0.5, -0.5, 0.5, 0.5};  // norm exactly 1
  const auto a = step_matrix<double>(k, 2.0);
  const auto values = symmetric_eigenvalues(a);
  EXPECT_NEAR(values[0], -1, 0x1p-50);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_NEAR(values[i], 1, 0x1p-50);
  for (const double s : singular_values(a)) EXPECT_NEAR(s, 1, 0x1p-50);
}

TEST(spectrum, of_a_rotation_has_norm_one) {
  EXPECT_NEAR(spectral_norm(matrix<double>(2, 2, {0.6, -0.8, 0.8, 0.6})), 1, 0x1p-51);
}

// Hilbert's matrix: entries 1/(i + j - 1), singular values from order 1 down to 1e-13 at d = 10.
TEST(spectrum, of_the_hilbert_matrix_has_small_singular_values_too) {
  constexpr std::size_t d = 10;
  matrix<wide> h(d, d);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) h(i, j) = wide(1) / wide(static_cast<int>(i + j + 1));
  }
  const auto singular = singular_values(h);
  const auto symmetric = symmetric_eigenvalues(h);
  wide determinant = 1;
  wide trace = 0;
  for (std::size_t i = 0; i < d; ++i) {
    determinant *= singular[i];
    trace += symmetric[i];
    EXPECT_LE(distance(singular[i], symmetric[d - 1 - i]), 1e-36) << i;
  }
  wide diagonal = 0;
  for (std::size_t i = 0; i < d; ++i) diagonal += h(i, i);
  EXPECT_LE(distance(trace, diagonal), 1e-35);
  // 1 / det H_n is the integer A005249(n); for n = 10:
  const wide inverse("46206893947914691316295628839036278726983680000000000");
  EXPECT_LE(distance(wide(determinant * inverse), wide(1)), 1e-20);
  EXPECT_NEAR(narrow(singular[0]), 1.75191967026517767, 1e-13);
}

TEST(spectrum, double_and_real_agree_to_the_digits_stated) {
  for (const std::size_t d : {3U, 17U, 40U}) {
    const auto a = random_matrix(d, d, d);
    auto symmetric = a;
    for (std::size_t i = 0; i < d; ++i) {
      for (std::size_t j = 0; j < d; ++j) symmetric(i, j) = a(i, j) + a(j, i);
    }
    const auto size = [&](const matrix<double>& m) { return spectral_norm(m) * static_cast<double>(d) * 0x1p-50; };
    const auto near_singular = singular_values(a);
    const auto far_singular = singular_values(widen(a));
    const auto near_symmetric = symmetric_eigenvalues(symmetric);
    const auto far_symmetric = symmetric_eigenvalues(widen(symmetric));
    for (std::size_t i = 0; i < d; ++i) {
      EXPECT_LE(std::abs(near_singular[i] - narrow(far_singular[i])), size(a));
      EXPECT_LE(std::abs(near_symmetric[i] - narrow(far_symmetric[i])), size(symmetric));
    }
    EXPECT_TRUE(std::is_sorted(near_singular.rbegin(), near_singular.rend()));
    EXPECT_TRUE(std::is_sorted(near_symmetric.begin(), near_symmetric.end()));
  }
}

TEST(spectrum, trace_and_frobenius_norm_are_sums_over_the_spectrum) {
  const auto a = widen(random_matrix(24, 24, 5));
  wide trace = 0;
  wide frobenius = 0;
  for (std::size_t i = 0; i < 24; ++i) trace += a(i, i);
  for (const wide& x : a.entries()) frobenius += x * x;
  for (const wide& x : symmetric_eigenvalues(a)) trace -= x;  // of the lower triangle, mirrored
  for (const wide& s : singular_values(a)) frobenius -= s * s;
  EXPECT_LE(distance(trace, wide(0)), 1e-34);
  EXPECT_LE(distance(frobenius, wide(0)), 1e-33);
}

TEST(spectrum, singular_values_of_any_shape) {
  for (const double size : {0x1p-1030, 0x1p1000}) {  // squares would leave double
    EXPECT_NEAR(spectral_norm(matrix<double>(2, 1, {3 * size, 4 * size})) / size, 5, 1e-14);
  }
  for (const auto& [rows, cols] : std::vector<std::pair<std::size_t, std::size_t>>{{3, 7}, {7, 3}, {1, 5}, {5, 1}}) {
    const auto a = random_matrix(rows, cols, rows * 10 + cols);
    const auto values = singular_values(a);
    const auto flipped = singular_values(transpose(a));
    ASSERT_EQ(values.size(), std::min(rows, cols));
    double squares = 0;
    for (const double x : a.entries()) squares += x * x;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], flipped[i], 1e-13);
      squares -= values[i] * values[i];
    }
    EXPECT_NEAR(squares, 0, 1e-12);
  }
}

TEST(spectrum, of_zero_one_or_no_dimensions) {
  EXPECT_TRUE(symmetric_eigenvalues(matrix<double>(0, 0)).empty());
  EXPECT_TRUE(singular_values(matrix<double>(0, 3)).empty());
  EXPECT_EQ(spectral_norm(matrix<double>(3, 0)), 0.0);
  EXPECT_EQ(spectral_norm(matrix<double>(3, 3)), 0.0);
  const matrix<double> one(1, 1, -2.5);
  EXPECT_EQ(symmetric_eigenvalues(one)[0], -2.5);
  EXPECT_NEAR(singular_values(one)[0], 2.5, 0x1p-50);
  const matrix<wide> two(2, 2, {wide(1), wide(1), wide(0), wide(1)});
  EXPECT_NEAR(narrow(spectral_norm(two)), (1 + std::sqrt(5.0)) / 2, 1e-15);
}

TEST(spectrum, refuses_what_is_not_square) {
  EXPECT_THROW(static_cast<void>(symmetric_eigenvalues(matrix<wide>(2, 3))), shape_error);
}

TEST(spectrum, reads_only_the_lower_triangle_of_a_symmetric_matrix) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const matrix<double> half(3, 3, {2, nan, nan, 1, 2, nan, 0, 1, 2});
  const auto values = symmetric_eigenvalues(half);
  EXPECT_NEAR(values[0], 2 - std::sqrt(2.0), 1e-14);
  EXPECT_NEAR(values[2], 2 + std::sqrt(2.0), 1e-14);
}

TEST(spectrum, of_a_matrix_that_is_not_finite_is_nan) {
  matrix<double> a = identity<double>(3);
  a(0, 2) = std::numeric_limits<double>::infinity();
  for (const double s : singular_values(a)) EXPECT_TRUE(std::isnan(s));
  EXPECT_TRUE(std::isnan(spectral_norm(a)));
  a(0, 2) = 0;
  a(2, 0) = std::numeric_limits<double>::quiet_NaN();
  for (const double x : symmetric_eigenvalues(a)) EXPECT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace deltaproof
