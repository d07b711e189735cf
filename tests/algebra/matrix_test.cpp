// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/algebra/matrix.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "deltaproof/number/modular.hpp"
#include "deltaproof/number/rounded.hpp"

namespace deltaproof {
namespace {

TEST(matrix, is_row_major_and_starts_at_zero) {
  matrix<double> m(2, 3);
  EXPECT_EQ(m.size(), 6U);
  for (const double x : m.entries()) EXPECT_EQ(x, 0.0);
  m(1, 2) = 5;
  EXPECT_EQ(m.row(1)[2], 5.0);
  EXPECT_EQ(m.data()[5], 5.0);
  EXPECT_EQ(m.row(1).size(), 3U);
}

TEST(matrix, takes_entries_row_after_row) {
  const matrix<int> m(2, 3, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(m(0, 2), 3);
  EXPECT_EQ(m(1, 0), 4);
}

TEST(matrix, refuses_a_wrong_number_of_entries_and_says_both) {
  try {
    const matrix<int> m(2, 3, std::vector<int>{1, 2, 3, 4, 5});
    FAIL() << "no exception";
  } catch (const shape_error& e) {
    EXPECT_NE(std::string(e.what()).find("2 x 3"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("got 5"), std::string::npos) << e.what();
  }
}

TEST(matrix, may_have_no_rows_or_no_columns) {
  const matrix<double> none(0, 4);
  const matrix<double> thin(4, 0);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(thin.row(3).size(), 0U);
  EXPECT_FALSE(none == thin);
  EXPECT_TRUE(transpose(none) == thin);
}

TEST(matrix, transpose_swaps_indices) {
  const matrix<int> m(2, 3, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(transpose(m) == (matrix<int>(3, 2, {1, 4, 2, 5, 3, 6})));
  EXPECT_TRUE(transpose(transpose(m)) == m);
}

// Whole tiles, and what is left of them on either side.
TEST(matrix, transpose_swaps_indices_of_every_shape) {
  for (const std::size_t rows : {1U, 4U, 7U, 8U, 13U}) {
    for (const std::size_t cols : {1U, 3U, 4U, 9U, 12U}) {
      matrix<int> m(rows, cols);
      for (std::size_t i = 0; i < m.size(); ++i) m.data()[i] = static_cast<int>(i) + 1;
      const matrix<int> turned = transpose(m);
      ASSERT_EQ(turned.rows(), cols);
      ASSERT_EQ(turned.cols(), rows);
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < cols; ++j) ASSERT_EQ(turned(j, i), m(i, j)) << rows << " x " << cols;
      }
    }
  }
}

template <class S>
void expect_identity() {
  const auto m = identity<S>(3);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) EXPECT_TRUE(m(i, j) == (i == j ? one<S>() : zero<S>()));
  }
}

TEST(matrix, identity_has_ones_on_the_diagonal_of_any_scalar) {
  expect_identity<double>();
  expect_identity<modular>();
  expect_identity<rounded<bf16>>();
}

TEST(matrix, equality_is_that_of_the_entries) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const matrix<double> a(1, 2, {0.0, nan});
  EXPECT_FALSE(a == a);
  EXPECT_TRUE((matrix<double>(1, 2, {0.0, 1.0})) == (matrix<double>(1, 2, {-0.0, 1.0})));
  EXPECT_FALSE((matrix<double>(1, 2, {0.0, 1.0})) == (matrix<double>(1, 2, {0.0, 2.0})));
}

TEST(matrix, refuses_more_entries_than_can_be_counted) {
  EXPECT_THROW((void)matrix<float>(2, std::size_t{1} << 63), shape_error);
  EXPECT_THROW((void)matrix<float>(std::size_t{1} << 63, 2), shape_error);
  EXPECT_EQ((matrix<float>(std::size_t{1} << 63, 0).size()), 0U);
}

}  // namespace
}  // namespace deltaproof
