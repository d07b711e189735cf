// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/algebra/spectrum.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/scan/transition.hpp"
#include "studies/horizon/growth.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::horizon;

TEST(horizon_keys, have_length_one_and_repeat_as_their_kind_says) {
  for (const key_kind kind : key_kinds) {
    const key_set keys = make_keys(kind, 50, 12, 7);
    ASSERT_EQ(keys.tokens(), 50U);
    for (std::size_t t = 0; t < keys.tokens(); ++t) EXPECT_NEAR(detail::shared::squared_norm(keys.direction(t)), 1, 1e-14);
    const std::size_t distinct = keys.directions.size() / keys.key_dim;
    EXPECT_EQ(distinct, kind == key_kind::repeated ? 1U : kind == key_kind::vocabulary ? 8U : 50U);
    EXPECT_EQ(std::set<std::uint32_t>(keys.index.begin(), keys.index.end()).size(), distinct);
  }
  EXPECT_EQ(make_keys(key_kind::clustered, 20, 8, 3).directions, make_keys(key_kind::clustered, 20, 8, 3).directions);
  EXPECT_NE(make_keys(key_kind::clustered, 20, 8, 3).directions, make_keys(key_kind::clustered, 20, 8, 4).directions);
}

TEST(horizon_keys, clusters_are_tight_and_fresh_keys_are_not) {
  const auto largest_cosine_of_first = [](key_kind kind) {
    const key_set keys = make_keys(kind, 200, 64, 1);
    double best = 0;
    for (std::size_t t = 1; t < keys.tokens(); ++t)
      best = std::max(best, detail::shared::dot(keys.direction(0), keys.direction(t)));
    return best;
  };
  EXPECT_GT(largest_cosine_of_first(key_kind::clustered), 0.85);
  EXPECT_LT(largest_cosine_of_first(key_kind::fresh), 0.6);
}

TEST(horizon_keys, checkpoints_ascend_to_the_last_token) {
  for (const std::size_t last : {std::size_t{1}, std::size_t{7}, std::size_t{100}, std::size_t{12345}}) {
    const auto at = checkpoints(last);
    ASSERT_FALSE(at.empty());
    EXPECT_EQ(at.front(), 1U);
    EXPECT_EQ(at.back(), last);
    for (std::size_t i = 1; i < at.size(); ++i) EXPECT_LT(at[i - 1], at[i]);
  }
  EXPECT_TRUE(checkpoints(0).empty());
}

TEST(horizon_norm, brackets_the_largest_singular_value) {
  philox random(5);
  for (const std::size_t d : {std::size_t{1}, std::size_t{2}, std::size_t{9}, std::size_t{24}}) {
    matrix<double> m(d, d);
    for (double& x : m.entries()) x = random.normal();
    const log_bracket b = log10_spectral_norm(m, 0);
    const double expected = std::log10(spectral_norm(m));
    EXPECT_LE(b.lower, expected + 1e-12);
    EXPECT_GE(b.upper, expected - 1e-12);
    EXPECT_LT(b.upper - b.lower, 1e-6);
    EXPECT_NEAR(log10_spectral_norm(m, 10000).lower, b.lower + 10000 * std::log10(2), 1e-8);
  }
}

TEST(horizon_norm, holds_for_equal_singular_values_and_for_zero) {
  const log_bracket one = log10_spectral_norm(identity<double>(20), 0);
  EXPECT_NEAR(one.lower, 0, 1e-14);
  EXPECT_LE(one.lower, one.upper);
  EXPECT_LT(one.upper, 1e-6);
  EXPECT_EQ(log10_spectral_norm(matrix<double>(3, 3), 5).upper, -std::numeric_limits<double>::infinity());
}

TEST(horizon_growth, does_not_change_a_bit_when_keys_are_scaled_by_a_power_of_two) {
  const key_set keys = make_keys(key_kind::fresh, 40, 8, 1);
  transition_product<double> unit(8);
  transition_product<double> scaled(8);
  for (std::size_t t = 0; t < keys.tokens(); ++t) {
    std::vector<double> k(keys.direction(t).begin(), keys.direction(t).end());
    unit.step(k, 16 * 0.7);
    for (double& x : k) x *= 4;
    scaled.step(k, 0.7);
  }
  EXPECT_EQ(unit.block(), scaled.block());
}

TEST(horizon_growth, agrees_with_128_bits) {
  const key_set keys = make_keys(key_kind::fresh, 300, 6, 4);
  for (const double s : {0.6, 1.0, 4.0}) {
    transition_product<real<128>> exact_product(6);
    for (std::size_t t = 0; t < 300; ++t) {
      exact_product.step(reports::lifted<real<128>>(keys.direction(t)), lift<real<128>>(s));
    }
    const std::array<double, 1> strengths{s};
    const std::array<std::size_t, 1> at{300};
    const double expected = std::log10(round_to<double>(spectral_norm(exact_product.block())));
    EXPECT_NEAR(product_growth(keys, strengths, at)[0].lower, expected, 1e-6) << s;
  }
}

TEST(horizon_exponent, in_two_dimensions_is_the_known_integral) {
  // The mean of ln of an ellipse's radius: ln((1 + |R|)/2).
  for (const double r : {-7.0, -0.3, 0.0, 0.5, 1.0, 4.0})
    EXPECT_NEAR(fresh_exponent(r, 2), std::log((1 + std::fabs(r)) / 2), 1e-15);
  EXPECT_THROW((void)fresh_exponent(0.5, 3), domain_error);
  EXPECT_THROW((void)estimate_exponent(make_keys(key_kind::fresh, 150, 4, 1), std::array<double, 1>{1}), domain_error);
}

/// The mean of ln of an ellipse's radius over Gaussian vectors, R a function of their squared length, and five standard errors.
template <class Stability>
std::pair<double, double> drawn_exponent(std::size_t d, Stability&& stability) {
  philox random(11);
  constexpr int draws = 60000;
  double sum = 0, squares = 0;
  for (int i = 0; i < draws; ++i) {
    std::vector<double> x(d);
    for (double& one : x) one = random.normal();
    const double length = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    const double r = stability(length);
    const double value = 0.5 * std::log(1 - (1 - r * r) * x[0] * x[0] / length);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / draws;
  return {mean, 5 * std::sqrt((squares / draws - mean * mean) / draws)};
}

TEST(horizon_exponent, is_the_mean_over_random_directions) {
  for (const std::size_t d : {std::size_t{4}, std::size_t{64}}) {
    for (const double r : {-3.0, 0.2}) {
      const auto [mean, errors] = drawn_exponent(d, [r](double) { return r; });
      EXPECT_NEAR(fresh_exponent(r, d), mean, errors) << "d = " << d << " R = " << r;
    }
  }
  for (const double mean_square : {0.8, 2.4}) {
    const auto [mean, errors] = drawn_exponent(16, [mean_square](double length) { return 1 - mean_square * length / 16; });
    EXPECT_NEAR(gaussian_exponent(mean_square, 16), mean, errors) << mean_square;
  }
}

TEST(horizon_exponent, changes_sign_exactly_where_the_eigenvalue_leaves_one) {
  for (const std::size_t d : {std::size_t{2}, std::size_t{16}, std::size_t{64}}) {
    EXPECT_EQ(fresh_exponent(1, d), 0);
    EXPECT_LT(fresh_exponent(1 - 1e-9, d), 0);
    EXPECT_GT(fresh_exponent(1 + 1e-9, d), 0);
    EXPECT_NEAR(fresh_exponent(1 + 1e-6, d) / 1e-6, 1 / static_cast<double>(d), 1e-5);
  }
}

TEST(horizon_exponent, of_keys_that_are_not_normalised_crosses_zero_where_means_say) {
  // Up to terms of order 1/d where mean(x^2) = 2 mean(x), at 2 / (1 + 2/d).
  EXPECT_NEAR(crossing([](double n) { return gaussian_exponent(n, 128); }, 1.9, 2.1), 2 / (1 + 2.0 / 128), 3e-3);
}

}  // namespace
}  // namespace deltaproof
