// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/algebra/triangular.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rational.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<inverse_method> all_methods() {
  std::vector<inverse_method> all;
  for (const named_inverse& row : inverse_methods) all.push_back(row.method);
  for (const char* name :
       {"forward1+block", "forward3+block2", "neumann1+block2", "neumann3+block", "neumann5+block2", "forward7+block"}) {
    all.push_back(inverse_named(name));
  }
  return all;
}

template <class S>
matrix<S> full_lower(std::size_t n, int entry) {
  matrix<S> lower(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) lower(i, j) = from_int<S>(entry);
  }
  return lower;
}

// (I + L) for L = [1; 2 3]: the inverse's corner is -2 + 3 * 1.
TEST(run_inverse, three_rows_by_hand) {
  const matrix<rational> lower(3, 3, std::vector<rational>{0, 0, 0, 1, 0, 0, 2, 3, 0});
  const matrix<rational> inverse(3, 3, std::vector<rational>{1, 0, 0, -1, 1, 0, 1, -3, 1});
  for (const auto& method : all_methods()) EXPECT_EQ(run_inverse<plain<rational>>(method, lower), inverse) << name_of(method);
}

// Ones below the diagonal, as identical unit keys give with step 1: the inverse has -1 beside the diagonal and no more.
TEST(run_inverse, identical_keys_by_hand) {
  for (const std::size_t n : {1U, 2U, 3U, 4U, 5U, 16U, 17U, 64U}) {
    auto inverse = identity<modular>(n);
    for (std::size_t i = 1; i < n; ++i) inverse(i, i - 1) = modular(-1);
    for (const auto& method : all_methods()) {
      EXPECT_EQ(run_inverse<plain<modular>>(method, full_lower<modular>(n, 1)), inverse) << name_of(method) << " " << n;
    }
  }
}

TEST(run_inverse, empty_single_and_zero_matrices) {
  for (const auto& method : all_methods()) {
    EXPECT_EQ(run_inverse<plain<float>>(method, matrix<float>()).size(), 0U) << name_of(method);
    EXPECT_EQ(run_inverse<plain<float>>(method, matrix<float>(1, 1, std::vector<float>{7})), identity<float>(1))
        << name_of(method);
    EXPECT_EQ(run_inverse<plain<float>>(method, matrix<float>(9, 9)), identity<float>(9)) << name_of(method);
  }
}

using stages = std::vector<std::pair<std::string, std::size_t>>;

stages seen_by(std::string_view name, std::size_t n) {
  stages seen;
  const auto observe = [&seen](std::string_view stage, const matrix<rational>& m) { seen.emplace_back(stage, m.rows()); };
  (void)run_inverse<plain<rational>>(inverse_named(name), full_lower<rational>(n, 1), observe);
  return seen;
}

TEST(run_inverse, an_observer_is_told_the_documented_stages) {
  EXPECT_EQ(seen_by("forward", 5), (stages{{"substitution", 5}}));
  EXPECT_EQ(seen_by("neumann", 5), (stages{{"power", 5}, {"power", 5}, {"partial sum", 5}, {"power", 5}, {"partial sum", 5}}));
  EXPECT_EQ(seen_by("neumann", 2), (stages{{"power", 2}}));
  EXPECT_EQ(seen_by("block2", 2), (stages{{"off-diagonal sum", 1}, {"off-diagonal block", 1}}));
  EXPECT_EQ(seen_by("forward16+block", 17),
            (stages{{"substitution", 16}, {"substitution", 1}, {"off-diagonal sum", 16}, {"off-diagonal block", 1}}));
  EXPECT_EQ(seen_by("block", 1), stages{});
}

// L of ones: (-L)^2 has i - j - 1 at (i, j), and (-L)^4 of 6 rows C(i - j - 1, 3).
TEST(run_inverse, powers_by_hand) {
  std::vector<matrix<rational>> powers;
  const auto observe = [&powers](std::string_view stage, const matrix<rational>& m) {
    if (stage == "power") powers.push_back(m);
  };
  (void)run_inverse<plain<rational>>(inverse_named("neumann"), full_lower<rational>(6, 1), observe);
  ASSERT_EQ(powers.size(), 3U);
  EXPECT_EQ(powers[0](5, 0), -1);
  EXPECT_EQ(powers[1](5, 0), 4);
  EXPECT_EQ(powers[1](1, 0), 0);
  EXPECT_EQ(powers[2](5, 0), 4);
  EXPECT_EQ(powers[2](4, 0), 1);
  EXPECT_EQ(powers[2](3, 0), 0);
}

template <class S>
std::vector<std::uint64_t> bits(const matrix<S>& m) {
  std::vector<std::uint64_t> result;
  for (const S& x : m.entries()) result.push_back(std::bit_cast<std::uint64_t>(lift<double>(x) + 0.0));  // -0 counts as 0
  return result;
}

/// b <k_i, k_j> of the rows of the Sylvester matrix over 4, which come back every 16 rows.
template <class S>
matrix<S> hadamard_lower(std::size_t n, double step) {
  matrix<S> lower(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) lower(i, j) = round_to<S>(i % 16 == j % 16 ? step : 0.0);
  }
  return lower;
}

template <class S>
matrix<S> with_upper(matrix<S> lower, double fill) {
  for (std::size_t i = 0; i < lower.rows(); ++i) {
    for (std::size_t j = i; j < lower.cols(); ++j) lower(i, j) = round_to<S>(fill);
  }
  return lower;
}

using half = rounded<bf16>;
using single = rounded<fp32>;
using tensor_cores = arithmetic<half, exact_product, float, tensor_core<hopper>>;
using pairs = arithmetic<float, float, float, pairwise>;
using blocks = arithmetic<half, exact_product, single, blocked<4>>;

template <class A, class M = A>
void unread_entries_change_no_bit() {
  using S = typename A::storage_type;
  for (const std::size_t n : {1U, 2U, 7U, 16U, 33U}) {
    matrix<S> lower(n, n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) lower(i, j) = round_to<S>(std::sin(static_cast<double>(i * 37 + j * 11)) / 3);
    }
    for (const auto& method : all_methods()) {
      const auto want = bits(run_inverse<A, M>(method, lower));
      for (const double fill : {nan, std::numeric_limits<double>::infinity(), -1e30}) {
        EXPECT_EQ(bits(run_inverse<A, M>(method, with_upper(lower, fill))), want) << name_of(method) << " " << n << " " << fill;
        EXPECT_EQ(bits(invert_unit_lower<A, M>(method, with_upper(lower, fill))), want)
            << name_of(method) << " " << n << " " << fill;
      }
    }
  }
}

TEST(run_inverse, unread_triangles_hold_nan_and_no_bit_changes) {
  unread_entries_change_no_bit<plain<double>>();
  unread_entries_change_no_bit<plain<float>>();
  unread_entries_change_no_bit<plain<half>>();
  unread_entries_change_no_bit<pairs>();
  unread_entries_change_no_bit<blocks>();
  unread_entries_change_no_bit<tensor_cores>();
  unread_entries_change_no_bit<plain<float>, tensor_cores>();
}

// Hadamard keys with steps 1/2 and 1: every intermediate is a short dyadic number, so all arithmetics give the same.
template <class A, class M = A>
void exact_on_hadamard_keys() {
  using S = typename A::storage_type;
  for (const double step : {0.5, 1.0}) {
    const auto want = run_inverse<plain<double>>(inverse_named("forward"), hadamard_lower<double>(64, step));
    for (const auto& method : all_methods()) {
      EXPECT_EQ(bits(run_inverse<A, M>(method, hadamard_lower<S>(64, step))), bits(want)) << name_of(method) << " " << step;
    }
  }
}

TEST(run_inverse, every_arithmetic_is_exact_on_hadamard_keys) {
  exact_on_hadamard_keys<plain<double>>();
  exact_on_hadamard_keys<plain<float>>();
  exact_on_hadamard_keys<plain<half>>();
  exact_on_hadamard_keys<pairs>();
  exact_on_hadamard_keys<blocks>();
  exact_on_hadamard_keys<tensor_cores>();
  exact_on_hadamard_keys<plain<float>, tensor_cores>();
}

TEST(run_inverse, overflow_is_a_finding) {
  for (const auto& method : all_methods()) {
    matrix<float> lower(8, 8);
    for (std::size_t i = 0; i < 8; ++i) {
      for (std::size_t j = 0; j < i; ++j) lower(i, j) = 1e30F;
    }
    matrix<float> inverse;
    EXPECT_NO_THROW(inverse = invert_unit_lower<plain<float>>(method, lower)) << name_of(method);
    EXPECT_FALSE(std::isfinite(inverse(7, 0))) << name_of(method);
  }
}

std::string message_of(auto&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return "nothing was refused";
}

TEST(invert_unit_lower, refuses_what_is_not_finite_by_its_place) {
  for (const auto& method : all_methods()) {
    auto lower = full_lower<double>(4, 1);
    lower(3, 1) = nan;
    EXPECT_THROW((void)invert_unit_lower<plain<double>>(method, lower), domain_error);
    EXPECT_THAT(message_of([&] { (void)invert_unit_lower<plain<double>>(method, lower); }),
                AllOf(HasSubstr("L(3, 1)"), HasSubstr(name_of(method))));
    lower(3, 1) = 1;
    lower(2, 0) = -std::numeric_limits<double>::infinity();
    EXPECT_THAT(message_of([&] { (void)invert_unit_lower<plain<double>>(method, lower); }), HasSubstr("L(2, 0)"));
    EXPECT_TRUE(std::isnan(run_inverse<plain<double>>(method, lower)(3, 0)) ||
                std::isinf(run_inverse<plain<double>>(method, lower)(3, 0)));
  }
}

TEST(invert_unit_lower, refuses_matrices_that_are_not_square_by_shape) {
  for (const auto& [rows, cols] : {std::pair<std::size_t, std::size_t>{2, 3}, {3, 2}, {0, 1}, {1, 0}}) {
    const matrix<float> lower(rows, cols);
    const std::string shape = std::to_string(rows) + " x " + std::to_string(cols);
    EXPECT_THROW((void)run_inverse<plain<float>>(inverse_named("forward"), lower), shape_error);
    EXPECT_THAT(message_of([&] { (void)run_inverse<plain<float>>(inverse_named("block2"), lower); }),
                AllOf(HasSubstr(shape), HasSubstr("block2")));
    EXPECT_THAT(message_of([&] { (void)invert_unit_lower<plain<float>>(inverse_named("neumann"), lower); }), HasSubstr(shape));
    EXPECT_THAT(message_of([&] { require_strictly_lower(lower, "A"); }), AllOf(HasSubstr(shape), HasSubstr("A ")));
  }
}

TEST(require_strictly_lower, names_the_first_entry_that_ought_to_be_empty) {
  auto lower = full_lower<float>(3, 5);
  EXPECT_NO_THROW(require_strictly_lower(lower, "L"));
  EXPECT_NO_THROW(require_strictly_lower(matrix<float>(), "L"));
  lower(2, 2) = 1;
  EXPECT_THAT(message_of([&] { require_strictly_lower(lower, "L"); }), HasSubstr("L(2, 2)"));
  lower(0, 1) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(require_strictly_lower(lower, "L"), domain_error);
  EXPECT_THAT(message_of([&] { require_strictly_lower(lower, "L"); }), HasSubstr("L(0, 1)"));
  lower(0, 1) = -0.0F;
  lower(2, 2) = 0;
  EXPECT_NO_THROW(require_strictly_lower(lower, "L"));
}

TEST(inverse_named, reads_what_name_of_writes) {
  for (const auto& method : all_methods()) EXPECT_EQ(inverse_named(name_of(method)), method);
  for (const named_inverse& row : inverse_methods) {
    EXPECT_EQ(name_of(row.method), row.name);
    EXPECT_FALSE(row.what.empty());
  }
  EXPECT_EQ(inverse_named("neumann12+block2"), (inverse_method{diagonal_kind::neumann, 12, merge_kind::block2}));
}

TEST(inverse_named, refuses_other_names_and_lists_the_inverses) {
  for (const char* name :
       {"", "gauss", "Forward", "forward ", "block3", "forward+block", "forward0+block", "neumann-8+block", "neumann8.5+block",
        "block16+block", "forward16+", "forward16+neumann", "16+block", "forward99999999999999999999999+block"}) {
    EXPECT_THROW((void)inverse_named(name), format_error) << name;
    const std::string message = message_of([&] { (void)inverse_named(name); });
    EXPECT_THAT(message, HasSubstr("'" + std::string(name) + "'"));
    for (const named_inverse& row : inverse_methods) EXPECT_THAT(message, HasSubstr(std::string(row.name)));
  }
}

}  // namespace
}  // namespace deltaproof
