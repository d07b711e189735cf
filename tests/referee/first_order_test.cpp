// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Limits of first order, and what follows it where they are not small beside the exact values.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "referee/gradients.hpp"

namespace deltaproof::referee_detail {
namespace {

const false_alarm alarm_of_tests{1e-4, 100};

/// Forty runs whose logs scatter by about 0.5 around `typical`.
statistic spread_around(const std::string& tensor, double typical) {
  statistic s{tensor, 0, 0, norm_kind::rms, 0, {}};
  s.samples.emplace_back();
  for (int r = 0; r < 40; ++r) s.samples.back().push_back(typical * std::exp(0.5 * std::sin(2.4 * r) * std::sqrt(2.0)));
  return s;
}

judged_statistic place_of(const statistic& s, double truth) {
  judged_statistic place;
  place.tensor = s.tensor;
  place.norm = s.norm;
  place.truth = truth;
  return place;
}

double limit_of(statistic s, bool first_order, double second_order = 1) {
  s.first_order = first_order;
  s.second_order = second_order;
  return thresholds(std::vector{s}, alarm_of_tests).front().value;
}

TEST(limits_beside_truth, multiply_the_first_order_by_the_series_of_its_share) {
  const statistic s = spread_around("o", 1);
  const double first = limit_of(s, true);
  ASSERT_LT(first, limit_of(s, false));
  for (const double share : {1e-3, 0.1, 0.499}) {
    const double limit = limits_beside_truth({s}, {place_of(s, first / share)}, alarm_of_tests).front().value;
    EXPECT_NEAR(limit / (first / (1 - share)), 1, 1e-12) << share;
  }
}

TEST(limits_beside_truth, are_those_of_the_log_scale_where_the_first_order_is_more_than_half_of_the_truth) {
  const statistic s = spread_around("o", 1);
  for (const double truth : {limit_of(s, true) / 0.51, 0.0})
    EXPECT_EQ(limits_beside_truth({s}, {place_of(s, truth)}, alarm_of_tests).front().value, limit_of(s, false)) << truth;
}

/// dq, dk and dv a tenth off at their limits, `cancelled` off by as much as it is; the limit of `cancelled`.
double limit_beside_rows(const statistic& cancelled, const std::vector<std::string>& rows) {
  drawn_gradients runs;
  for (const std::string& name : rows) {
    runs.statistics.push_back(spread_around(name, 1));
    runs.places.push_back(place_of(runs.statistics.back(), 10 * limit_of(runs.statistics.back(), true)));
  }
  runs.statistics.push_back(cancelled);
  runs.places.push_back(place_of(cancelled, limit_of(cancelled, true)));
  runs.first_place = {0};
  return gradient_limits(runs, alarm_of_tests).back().value;
}

// dg and dbeta cancel more than the rows that they are products of.
TEST(gradient_limits, take_the_share_of_the_rows_that_a_cancelled_gradient_is_made_of) {
  for (const char* name : {"dg", "dbeta"}) {
    const statistic s = spread_around(name, 1);
    EXPECT_NEAR(limit_beside_rows(s, {"dq", "dk", "dv"}) / (limit_of(s, true) / 0.9), 1, 1e-12) << name;
    // What a result does not hold shows nothing.
    EXPECT_EQ(limit_beside_rows(s, {"dq", "dv"}), limit_of(s, false)) << name;
  }
  const statistic s = spread_around("dinitial_state", 1);
  EXPECT_EQ(limit_beside_rows(s, {"dq", "dk", "dv"}), limit_of(s, false));
}

}  // namespace
}  // namespace deltaproof::referee_detail
