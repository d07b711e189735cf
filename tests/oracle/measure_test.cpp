// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/oracle/measure.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace deltaproof {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

reference_tensor truth(std::vector<double> values, std::vector<std::size_t> shape, double radius = 0) {
  reference_tensor t;
  t.shape = std::move(shape);
  t.radius.assign(values.size(), radius);
  t.value = std::move(values);
  return t;
}

TEST(measure, hand_computed_numbers) {
  const auto want = truth({3, 4, 0, 0}, {2, 2});
  const std::vector<double> got{3, 3, 0, 1};
  const measurement m = measure(got, want, bf16);
  EXPECT_EQ(m.max_abs.value, 1);
  EXPECT_NEAR(m.rel_fro.value, std::sqrt(2.0) / 5, 1e-15);
  EXPECT_NEAR(m.fla_ratio.value, std::sqrt(2.0 / 4) / (std::sqrt(25.0 / 4) + 1e-8), 1e-15);
  EXPECT_NEAR(m.nmse, 2.0 / 25, 1e-15);
  EXPECT_EQ(m.allclose_violations, 2U);
  ASSERT_TRUE(m.worst);
  EXPECT_EQ(m.worst->index, 1U);
  EXPECT_NEAR(m.worst_row.value, 1.0 / 5, 1e-15);  // the row of zeros is left out
}

TEST(measure, the_enclosure_holds_the_error_for_every_truth_within_the_radius) {
  const double radius = 0.125;
  const auto want = truth({1, -2, 4}, {3}, radius);
  const std::vector<double> got{1.5, -2, 3};
  const measurement m = measure(got, want, bf16);
  for (const double a : {-radius, 0.0, radius}) {
    for (const double b : {-radius, 0.0, radius}) {
      for (const double c : {-radius, 0.0, radius}) {
        const measurement exact = measure(got, truth({1 + a, -2 + b, 4 + c}, {3}), bf16);
        for (const auto& [which, name, what, value, over_norm] : metrics) {
          EXPECT_LE(value_of(m, which).lower, value_of(exact, which).value) << name;
          EXPECT_GE(value_of(m, which).upper, value_of(exact, which).value) << name;
        }
      }
    }
  }
}

TEST(measure, ulps_count_in_the_outputs_format_and_binade) {
  EXPECT_EQ(ulp_at(1.0, bf16), 0x1p-7);
  EXPECT_EQ(ulp_at(1.99, bf16), 0x1p-7);
  EXPECT_EQ(ulp_at(-2.0, fp32), 0x1p-22);
  EXPECT_EQ(ulp_at(0.0, fp16), 0x1p-24);
  EXPECT_EQ(ulp_at(0x1p-30, fp16), 0x1p-24);  // subnormal spacing
  const measurement m = measure(std::vector<double>{1 + 3 * 0x1p-7}, truth({1}, {1}), bf16);
  EXPECT_EQ(m.ulps.value, 3);
}

TEST(measure, non_finite_values_are_found_where_they_are) {
  const auto want = truth({1, 2, 3, 4}, {2, 2});
  const std::vector<double> got{1, std::nan(""), -infinity, 4};
  const measurement m = measure(got, want, bf16);
  EXPECT_EQ(m.nonfinite, 2U);
  ASSERT_TRUE(m.first_nonfinite);
  EXPECT_EQ(m.first_nonfinite->index, 1U);
  EXPECT_TRUE(std::isnan(m.first_nonfinite->got));
  EXPECT_EQ(m.first_nonfinite->want, 2);
  EXPECT_EQ(judge(m, {}), verdict::refuted);
}

TEST(measure, skipped_elements_are_counted_and_not_judged) {
  const auto want = truth({1, infinity}, {1, 2});
  const measurement m = measure(std::vector<double>{1, std::nan("")}, want, bf16, {false, true});
  EXPECT_EQ(m.elements, 1U);
  EXPECT_EQ(m.skipped, 1U);
  EXPECT_EQ(m.nonfinite, 0U);
  EXPECT_EQ(judge(m, {}), verdict::measured);
  const measurement nothing = measure(std::vector<double>{1, 2}, want, bf16, {true, true});
  EXPECT_EQ(judge(nothing, {}), verdict::vacuous);
}

TEST(measure, minus_zero_is_zero_and_equal_tensors_have_no_error) {
  const measurement m = measure(std::vector<double>{-0.0, 5}, truth({0.0, 5}, {2}), fp32);
  EXPECT_EQ(m.max_abs.upper, 0);
  EXPECT_EQ(m.rel_fro.upper, 0);
  EXPECT_EQ(m.nmse, 0);
}

TEST(measure, a_transposed_matrix_is_an_error) {
  const measurement m = measure(std::vector<double>{1, 3, 2, 4}, truth({1, 2, 3, 4}, {2, 2}), fp32);
  EXPECT_EQ(m.max_abs.value, 1);
  EXPECT_GT(m.rel_fro.lower, 0.2);
}

TEST(measure, all_zero_outputs_have_relative_error_one) {
  const measurement m = measure(std::vector<double>{0, 0}, truth({3, 4}, {2}), bf16);
  EXPECT_NEAR(m.rel_fro.value, 1, 1e-15);
}

TEST(measure, an_error_against_zeros_is_infinitely_large) {
  const measurement m = measure(std::vector<double>{1, 0}, truth({0, 0}, {2}), bf16);
  EXPECT_EQ(m.rel_fro.lower, infinity);
}

TEST(measure, empty_tensors_have_nothing_to_judge) {
  const measurement m = measure({}, truth({}, {0, 4}), bf16);
  EXPECT_EQ(m.elements, 0U);
  EXPECT_EQ(judge(m, {}), verdict::vacuous);
}

TEST(measure, counts_must_agree) {
  EXPECT_THROW(static_cast<void>(measure(std::vector<double>{1, 2}, truth({1}, {1}), bf16)), shape_error);
  EXPECT_THROW(static_cast<void>(measure(std::vector<double>{1}, truth({1}, {1}), bf16, {true, false})), shape_error);
}

TEST(measure, errors_whose_squares_underflow_are_still_errors) {
  const measurement m = measure(std::vector<double>{0, 0}, truth({1e-200, -2e-200}, {2}), bf16);
  EXPECT_NEAR(m.rel_fro.value, 1, 1e-12);
  EXPECT_GT(m.rel_fro.lower, 0.99);
  const measurement close = measure(std::vector<double>{1e-200}, truth({1e-200}, {1}, 1e-207), bf16);
  EXPECT_GT(close.rel_fro.upper, 1e-8);
  EXPECT_LT(close.rel_fro.upper, 1e-6);
  const measurement tiny = measure(std::vector<double>{1e200}, truth({1e200}, {1}, 1e-300), bf16);
  EXPECT_GT(tiny.rel_fro.upper, 0);
}

TEST(measure, squares_that_overflow_are_still_ratios) {
  const measurement m = measure(std::vector<double>{2e200}, truth({1e200}, {1}), fp64);
  EXPECT_NEAR(m.rel_fro.value, 1, 1e-12);
}

TEST(measure, a_non_finite_element_makes_every_metric_infinite) {
  const measurement m = measure(std::vector<double>{1, std::nan("")}, truth({1, 2}, {2}), bf16);
  for (const auto& [which, name, what, value, over_norm] : metrics) EXPECT_EQ(value_of(m, which).value, infinity) << name;
  EXPECT_EQ(m.allclose_violations, 1U);
}

TEST(measure, a_reference_that_failed_makes_the_question_undecided) {
  const auto want = truth({std::nan("")}, {1}, infinity);
  const measurement m = measure(std::vector<double>{1}, want, bf16);
  const metric_bound limits[] = {{metric::max_abs, bound(1e9, because("test"))}};
  EXPECT_EQ(judge(m, limits), verdict::undecided);
  EXPECT_EQ(judge(m, {}), verdict::undecided);
  EXPECT_EQ(judge(measure(std::vector<double>{infinity}, want, bf16), {}), verdict::undecided);
}

/// Below 1 the units of bf16 are half as large, and no double lies between 1 - 1e-20 and 1.
TEST(measure, a_truth_just_below_a_power_of_two_counts_the_smaller_units) {
  const double got = 1 + 0x1p-7;
  EXPECT_LT(measure(std::vector<double>{got}, truth({1}, {1}), bf16).ulps.upper, 1.001);
  EXPECT_GE(measure(std::vector<double>{got}, truth({1}, {1}, 1e-20), bf16).ulps.upper, 2);
  auto two_parts = truth({1}, {1});
  two_parts.low = {{-1e-20}};
  EXPECT_GE(measure(std::vector<double>{got}, two_parts, bf16).ulps.upper, 2);
}

/// A result that is the first double of the truth errs by the second, however small the radius beside it.
TEST(measure, the_second_part_of_a_truth_is_an_error_of_its_own_size) {
  auto want = truth({1}, {1}, 1e-300);
  want.low = {{1e-20}};
  const measurement m = measure(std::vector<double>{1}, want, fp64);
  EXPECT_NEAR(m.rel_fro.lower, 1e-20, 1e-24);
  EXPECT_NEAR(m.rel_fro.upper, 1e-20, 1e-24);
}

/// The element that is not known may be so large that the error of the other one is nothing beside it.
TEST(measure, what_is_not_enclosed_may_be_most_of_the_norm) {
  auto want = truth({1, 0}, {2});
  want.radius[1] = infinity;
  const measurement m = measure(std::vector<double>{2, 1e9}, want, fp32);
  const metric_bound limits[] = {{metric::rel_fro, bound(0.01, because("test"))}};
  const metric_bound absolute[] = {{metric::max_abs, bound(0.5, because("test"))}};
  EXPECT_EQ(judge(m, limits), verdict::undecided);
  EXPECT_EQ(judge(m, absolute), verdict::refuted);
}

TEST(judge, three_verdicts_by_the_place_of_the_enclosure) {
  const bound limit(1, because("a test"));
  EXPECT_EQ(judge_interval({0.5, 0.7, 1.0}, limit), verdict::holds);
  EXPECT_EQ(judge_interval({0.9, 1.0, 1.1}, limit), verdict::undecided);
  EXPECT_EQ(judge_interval({1.1, 1.2, 1.3}, limit), verdict::refuted);
  const double nan = std::nan("");
  EXPECT_EQ(judge_interval({nan, nan, nan}, limit), verdict::refuted);
}

TEST(judge, verdicts_combine_in_order) {
  using enum verdict;
  EXPECT_EQ(combine(holds, measured), holds);
  EXPECT_EQ(combine(measured, holds), holds);
  EXPECT_EQ(combine(holds, vacuous), vacuous);
  EXPECT_EQ(combine(undecided, vacuous), undecided);
  EXPECT_EQ(combine(refuted, undecided), refuted);
  EXPECT_EQ(exit_code(holds), 0);
  EXPECT_EQ(exit_code(measured), 0);
  EXPECT_EQ(exit_code(refuted), 1);
  EXPECT_EQ(exit_code(undecided), 3);
  EXPECT_EQ(exit_code(vacuous), 3);
}

TEST(bound, there_is_none_without_a_reason) {
  static_assert(!std::is_constructible_v<bound, double>);
  static_assert(!std::is_constructible_v<bound, double, const char*>);
  static_assert(!std::is_default_constructible_v<bound>);
  EXPECT_THROW(bound(1, because("  ")), domain_error);
  EXPECT_THROW(bound(std::nan(""), because("x")), domain_error);
  EXPECT_THROW(bound(-1, because("x")), domain_error);
  try {
    static_cast<void>(bound(-1e-9, because("x")));
    FAIL() << "a negative limit was taken";
  } catch (const domain_error& e) {
    EXPECT_NE(std::string(e.what()).find("is -1e-09;"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace deltaproof
