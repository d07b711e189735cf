// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/referee/budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/support/errors.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;
using samples = std::vector<std::vector<double>>;

constexpr double pi = 3.14159265358979323846;
constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");
const false_alarm one_percent{0.01, 1};

// Student's law has quantiles in closed form for 1 and 2 degrees of freedom.
double student_1(double alpha) { return std::tan(pi * (0.5 - alpha)); }
double student_2(double alpha) { return (1 - 2 * alpha) * std::sqrt(2 / (4 * alpha * (1 - alpha))); }

statistic key(samples runs, norm_kind norm = norm_kind::rms, std::size_t bucket = 0, std::size_t head = 0, double floor = 0) {
  return {"o", bucket, head, norm, floor, std::move(runs)};
}
// Two runs a factor e^(2 s) apart: spread s sqrt 2 with one degree of freedom, about `typical`.
std::vector<double> pair_about(double typical, double s) { return {typical * std::exp(-s), typical * std::exp(s)}; }
threshold only(const statistic& s, const false_alarm& alarm = one_percent) { return thresholds(std::vector{s}, alarm).front(); }

TEST(false_alarm_shares, evenly_and_refuses_nonsense) {
  EXPECT_EQ((false_alarm{0.01, 4}.each()), 0.0025);
  EXPECT_EQ(false_alarm{}.each(), 1e-4);
  for (const double family : {0.0, -1e-4, 0.2, nan}) EXPECT_THROW((void)(false_alarm{family, 1}.each()), domain_error);
  EXPECT_THROW((void)(false_alarm{1e-4, 0}.each()), domain_error);
}

TEST(thresholds, laws_that_read_the_runs_of_others_have_limits_and_add_no_degrees) {
  statistic s = key({{1, 1.1, 0.9}, {2, 2.2, 1.8}});
  const threshold apart = only(s);
  s.independent = 1;
  const threshold read_again = only(s);
  EXPECT_EQ(apart.degrees, 4U);
  EXPECT_EQ(read_again.degrees, 2U);
  EXPECT_EQ(read_again.variant, 1U);  // it has the larger mean
  EXPECT_GT(read_again.value, apart.value);
  statistic first = key({{2, 2.2, 1.8}});
  EXPECT_NEAR(read_again.spread, only(first).spread, 1e-12);
  // What scatters more than the runs that count stretches its own limit.
  s.samples[1] = {1, 3, 0.5};
  EXPECT_GT(only(s).spread, 2 * read_again.spread);
  s.independent = 0;
  EXPECT_THROW((void)only(s), domain_error);
}

TEST(thresholds, a_key_without_neighbours_has_enough_with_its_near_pool) {
  std::vector<double> runs;
  for (std::size_t r = 0; r < 1 + near_pool_degrees; ++r) runs.push_back(1 + 0.01 * static_cast<double>(r % 5));
  statistic s = key({runs});
  EXPECT_FALSE(only(s).enough);
  s.wide_degrees = near_pool_degrees;
  const threshold limit = only(s);
  EXPECT_TRUE(limit.enough);
  EXPECT_EQ(limit.pooled, near_pool_degrees);
  s.samples[0].pop_back();
  EXPECT_FALSE(only(s).enough);
  s.wide_degrees = 0;
  EXPECT_THROW((void)only(s), domain_error);
}

TEST(runs_needed, fill_both_pools) {
  EXPECT_EQ(runs_needed(64, 1), 17u);  // 16 residuals of the key itself
  EXPECT_EQ(runs_needed(1, 1), 65u);
  EXPECT_EQ(runs_needed(12, 3), 7u);
  EXPECT_EQ(runs_needed(2, 3), 12u);
  EXPECT_THROW((void)runs_needed(0, 1), domain_error);
  EXPECT_THROW((void)runs_needed(1, 0), domain_error);
}

TEST(runs_needed, are_enough_and_one_fewer_is_not) {
  for (const std::size_t variants : {1u, 3u}) {
    const std::size_t keys = 2, needed = runs_needed(keys, variants);
    for (const std::size_t runs : {needed, needed - 1}) {
      std::vector<double> sample;
      for (std::size_t r = 0; r < runs; ++r) sample.push_back(1 + 0.01 * static_cast<double>(r % 5));
      std::vector<statistic> all;
      for (std::size_t head = 0; head < keys; ++head) all.push_back(key(samples(variants, sample), norm_kind::rms, 0, head));
      for (const threshold& t : thresholds(all, one_percent)) {
        EXPECT_EQ(t.enough, runs == needed) << t.provenance;
        EXPECT_EQ(t.provenance.find("give longer sequences") == std::string::npos, t.enough);
      }
    }
  }
}

TEST(one_key_of_two_runs, is_the_formula) {
  const threshold t = only(key({pair_about(3, 0.01)}));
  const double reach = student_1(0.01) * 0.01 * std::sqrt(2) * std::sqrt(1.5);
  EXPECT_NEAR(t.value, 3 * std::exp(reach), 1e-9);
  EXPECT_NEAR(t.typical, 3, 1e-14);
  EXPECT_NEAR(t.spread, 0.01 * std::sqrt(2), 1e-14);
  EXPECT_NEAR(t.quantile, student_1(0.01), 1e-9);
  EXPECT_EQ(t.degrees, 1u);
  EXPECT_EQ(t.alpha, 0.01);
  EXPECT_TRUE(t.finite);
  EXPECT_FALSE(t.enough);
  EXPECT_THAT(t.provenance, HasSubstr("emulated: 2 runs in 1 group, by arithmetic and by inputs (given or perturbed); group 0 "
                                      "decides: typical error 3, log spread 0.0141 with "
                                      "1 degree of freedom (this head, bucket 0), Student quantile 31.8 at probability 0.01"));
}

TEST(one_key_of_two_runs, of_maxima_takes_the_gumbel_law) {
  const threshold t = only(key({pair_about(3, 0.01)}, norm_kind::max));
  const double gumbel = (-std::log(-std::log(0.99)) - 0.5772156649015329) * std::sqrt(6) / pi;
  const double normal = 2.3263478740408408;
  EXPECT_NEAR(t.quantile, gumbel * student_1(0.01) / normal, 1e-9);
  EXPECT_THAT(t.provenance, HasSubstr("Gumbel quantile"));
}

TEST(a_share, of_a_larger_family_is_a_larger_limit) {
  const statistic s = key({pair_about(1, 0.01), pair_about(1, 0.02)});
  const threshold t = only(s, {0.01, 10});
  EXPECT_EQ(t.alpha, 0.001);
  EXPECT_NEAR(t.quantile, student_2(0.001), 1e-9);
  EXPECT_GT(t.value, only(s, {0.01, 9}).value);
}

TEST(the_worst_variant, decides) {
  const threshold t = only(key({pair_about(1, 0.01), pair_about(5, 0.01), pair_about(2, 0.01)}));
  EXPECT_EQ(t.variant, 1u);
  EXPECT_NEAR(t.typical, 5, 1e-14);
  EXPECT_EQ(t.degrees, 3u);
  EXPECT_EQ(only(key({pair_about(5, 0.01), pair_about(5, 0.01)})).variant, 0u);
}

TEST(constants, are_their_own_limit) {
  for (int i = 1; i <= 100; ++i) {  // exp(log x) is less than x for some
    const double x = i / 7.0;
    const threshold t = only(key(samples(2, std::vector<double>(40, x))));
    EXPECT_GE(t.value, x);
    EXPECT_NEAR(t.value / x, 1, 1e-13);
    EXPECT_LT(t.spread, 1e-13);
    EXPECT_TRUE(t.enough);
  }
}

TEST(a_least_spread, counts_where_runs_scatter_less) {
  statistic s = key({std::vector<double>(41, 3.0)});
  EXPECT_NEAR(only(s).value, 3, 1e-12);
  s.least_spread = 0.01;
  const threshold t = only(s);
  EXPECT_EQ(t.spread, 0.01);
  EXPECT_GT(t.quantile, 2.3);  // the normal law's at one percent
  EXPECT_NEAR(t.value, 3 * std::exp(t.quantile * 0.01 * std::sqrt(1 + 1.0 / 41)), 1e-9);
  s.samples = {pair_about(3, 0.01)};
  EXPECT_EQ(only(s).value, only(key({pair_about(3, 0.01)})).value);  // they scatter by 0.0141
  for (const double wrong : {-0.5, infinity, nan}) {
    s.least_spread = wrong;
    EXPECT_THROW((void)only(s), domain_error);
  }
}

TEST(one_run, has_no_budget_alone_and_the_noisiest_head_s_beside_others) {
  const threshold alone = only(key({{0.5}, {0.6}}));
  EXPECT_FALSE(alone.finite);
  EXPECT_FALSE(alone.enough);
  EXPECT_EQ(alone.value, infinity);
  EXPECT_THAT(alone.provenance, HasSubstr("has two runs of one group with errors above the reference's radius"));

  const std::vector<statistic> heads{key({pair_about(1, 0.01)}, norm_kind::rms, 0, 0),
                                     key({pair_about(7, 0.03)}, norm_kind::rms, 0, 4), key({{2}}, norm_kind::rms, 0, 9)};
  const auto t = thresholds(heads, one_percent);
  EXPECT_NEAR(t[2].value, 2 * std::exp(student_1(0.01) * 0.03 * std::sqrt(2) * std::sqrt(2)), 1e-8);
  EXPECT_THAT(t[2].provenance, HasSubstr("1 degree of freedom (head 4, the noisiest, bucket 0)"));
  EXPECT_NEAR(t[1].value, 7 * std::exp(student_1(0.01) * 0.03 * std::sqrt(2) * std::sqrt(1.5)), 1e-8);
  // A quiet head has too few runs of its own: the pool of both heads has two degrees of freedom.
  const double near = student_1(0.01) * 0.01, wide = student_2(0.01) * std::sqrt((0.0001 + 0.0009) / 2);
  EXPECT_NEAR(t[0].value, std::exp(std::max(near, wide) * std::sqrt(2) * std::sqrt(1.5)), 1e-9);
}

TEST(zeros, are_at_the_floor) {
  const threshold all = only(key(samples(2, std::vector<double>(5, 0.0)), norm_kind::rms, 0, 0, 1e-9));
  EXPECT_EQ(all.value, 1e-9);
  EXPECT_TRUE(all.at_floor && all.finite && all.enough);
  EXPECT_THAT(all.provenance, HasSubstr("emulated: 10 runs in 2 groups, by arithmetic and by inputs (given or perturbed); no "
                                        "error exceeds what the reference and the format can tell from 0"));
  EXPECT_EQ(only(key({{0, 0, 0}})).value, 0);
  EXPECT_EQ(only(key({{1e-10, 1e-9, 0}}, norm_kind::max, 0, 0, 1e-9)).value, 1e-9);
}

TEST(zeros, among_others_are_left_out) {
  std::vector<double> runs = pair_about(3, 0.01);
  const double without = only(key({runs})).value;
  runs.insert(runs.begin(), 5, 0.0);
  EXPECT_EQ(only(key({runs})).value, without);
  EXPECT_EQ(only(key({{0, 0, 0}, runs})).value, without);
  EXPECT_EQ(only(key({runs}, norm_kind::rms, 0, 0, 100)).value, 100);  // all below the floor
  // Neither do they count as residuals of 0 for other keys.
  const auto t = thresholds(std::vector{key({{0, 0, 0, 0}}, norm_kind::rms, 0), key({runs}, norm_kind::rms, 1)}, one_percent);
  EXPECT_EQ(t[1].value, without);
  EXPECT_EQ(t[1].degrees, 1u);
}

TEST(non_finite_runs, leave_no_finite_limit_and_spoil_no_other_key) {
  const statistic sound = key({pair_about(3, 0.01), pair_about(3, 0.01)}, norm_kind::rms, 1);
  for (const double broken : {nan, infinity}) {
    const auto t = thresholds(std::vector{key({{1, 1.1}, {1, broken}}), sound}, one_percent);
    EXPECT_FALSE(t[0].finite);
    EXPECT_EQ(t[0].value, infinity);
    EXPECT_EQ(t[0].variant, 1u);
    EXPECT_THAT(t[0].provenance, HasSubstr("a run of group 1 is not finite"));
    EXPECT_TRUE(t[1].finite);
  }
}

TEST(a_limit_that_overflows, is_no_finite_limit) {
  const threshold t = only(key({pair_about(1, 2)}), {1e-8, 1});
  EXPECT_FALSE(t.finite);
  EXPECT_THAT(t.provenance, HasSubstr("no finite limit: the computed limit overflows"));
}

// Runs of one variant with spread s, without skewness where they are even in number.
std::vector<double> spread_runs(std::size_t runs, double s) {
  std::vector<double> x;
  for (std::size_t r = 0; r < runs; ++r) x.push_back(std::exp(r % 2 == 0 ? s : -s));
  return x;
}

TEST(pools, grow_by_buckets_until_they_are_full) {
  // 4 runs of one variant: 3 degrees a key; one of 30 buckets is noisy.
  std::vector<statistic> all;
  for (std::size_t bucket = 0; bucket < 30; ++bucket) {
    for (std::size_t head = 0; head < 2; ++head) {
      all.push_back(key({spread_runs(4, head == 0 && bucket == 15 ? 0.02 : 0.01)}, norm_kind::rms, bucket, head));
    }
  }
  const auto t = thresholds(all, one_percent);
  EXPECT_THAT(t[2 * 15].provenance, HasSubstr("21 degrees of freedom (this head, buckets 12-18)"));
  EXPECT_THAT(t[2 * 12].provenance, HasSubstr("21 degrees of freedom (this head, buckets 9-15)"));
  EXPECT_THAT(t[2 * 11].provenance, HasSubstr("69 degrees of freedom (this head, buckets 0-22)"));  // bucket 15 is in
  EXPECT_THAT(t[0].provenance, HasSubstr("18 degrees of freedom (this head, buckets 0-5)"));
  EXPECT_EQ(t[2 * 15].pooled, 69u);  // buckets 4-26 of this head
  EXPECT_EQ(t[0].pooled, 66u);
  EXPECT_NEAR(t[2 * 12].spread, std::sqrt((6 * 1 + 4) / 7.0 * 4 / 3) * 0.01, 1e-12);
  EXPECT_NEAR(t[2 * 15 + 1].spread, std::sqrt(4 / 3.0) * 0.01, 1e-12);  // the other head is not concerned
}

TEST(pools, take_other_heads_where_one_head_has_too_few_runs) {
  for (const std::size_t runs : {33u, 66u}) {
    const auto t = thresholds(
        std::vector{key({spread_runs(runs, 0.01)}, norm_kind::rms, 0, 0), key({spread_runs(runs, 0.1)}, norm_kind::rms, 0, 1)},
        one_percent);
    EXPECT_EQ(t[0].pooled, runs == 33 ? 64u : 65u);
    EXPECT_EQ(t[0].spread > 0.05, runs == 33) << t[0].provenance;
    EXPECT_EQ(t[0].provenance.find("all heads, bucket 0") != std::string::npos, runs == 33);
    EXPECT_THAT(t[1].provenance, HasSubstr("this head, bucket 0"));
  }
}

TEST(pools, take_runs_that_stopped_early_as_those_of_a_neighbour) {
  statistic s = key({spread_runs(4, 0.01)});
  s.wide_degrees = near_pool_degrees;
  EXPECT_FALSE(only(s).enough);
  s.neighbours = {spread_runs(20, 0.03)};
  const threshold t = only(s);
  EXPECT_TRUE(t.enough);
  EXPECT_EQ(t.degrees, 22u);
  EXPECT_NEAR(t.spread, std::sqrt((4 * 1 + 20 * 9) / 22.0) * 0.01, 1e-12);
  EXPECT_NEAR(t.typical, 1, 1e-12);
}

TEST(pools, scatter_no_less_than_their_own_bucket) {
  const auto t =
      thresholds(std::vector{key({spread_runs(4, 0.05)}), key({spread_runs(30, 0.01)}, norm_kind::rms, 1)}, one_percent);
  EXPECT_THAT(t[0].provenance, HasSubstr("32 degrees of freedom (this head, buckets 0-1)"));
  EXPECT_NEAR(t[0].spread, std::sqrt(4 / 3.0) * 0.05, 1e-12);
}

TEST(pools, skip_buckets_that_are_not_there) {
  const auto t =
      thresholds(std::vector{key({spread_runs(10, 0.01)}, norm_kind::rms, 7), key({spread_runs(10, 0.01)}, norm_kind::rms, 2),
                             key({spread_runs(10, 0.01)}, norm_kind::rms, 9)},
                 one_percent);
  EXPECT_THAT(t[0].provenance, HasSubstr("18 degrees of freedom (this head, buckets 7-9)"));
  EXPECT_THAT(t[1].provenance, HasSubstr("18 degrees of freedom (this head, buckets 2-7)"));
}

TEST(pools, do_not_mix_tensors_or_norms) {
  statistic other = key({pair_about(1, 0.5)});
  other.tensor = "final_state";
  const auto t =
      thresholds(std::vector{key({pair_about(3, 0.01)}), other, key({pair_about(1, 0.5)}, norm_kind::max)}, one_percent);
  EXPECT_EQ(t[0].value, only(key({pair_about(3, 0.01)})).value);
}

TEST(pools, of_unlike_variants_are_scaled_for_each) {
  const threshold t = only(key({spread_runs(40, 0.01), spread_runs(40, 0.05)}));
  const double noisy = only(key({spread_runs(40, 0.05)})).spread;
  EXPECT_EQ(t.variant, 1u);
  EXPECT_EQ(t.degrees, 78u);
  EXPECT_NEAR(t.spread, noisy, 1e-12);
}

// A law that ran once has no residuals: it scatters as the other law of its variant does.
TEST(pools, of_laws_of_one_variant_are_scaled_alike) {
  const std::vector<double> quiet = spread_runs(40, 0.01), noisy = spread_runs(40, 0.05);
  statistic s = key({{1}, quiet, {1}, noisy});
  s.laws_of_variant = 2;
  const threshold t = only(s);
  EXPECT_EQ(t.variant, 2u);
  EXPECT_EQ(t.degrees, 78u);
  EXPECT_NEAR(t.spread, only(key({noisy})).spread, 1e-12);
  s.laws_of_variant = 1;
  EXPECT_LT(only(s).value, t.value);
  s.laws_of_variant = 0;
  EXPECT_THROW((void)only(s), domain_error);
}

TEST(skewed_runs, take_the_gamma_law) {
  std::vector<double> runs;
  for (int r = 0; r < 70; ++r) runs.push_back(std::exp(r % 10 == 0 ? 0.09 : -0.01));  // skewness 8/3
  const threshold t = only(key({runs}));
  EXPECT_THAT(t.provenance, HasSubstr("Gamma quantile"));
  std::vector<double> mirrored;
  for (const double x : runs) mirrored.push_back(1 / x);
  EXPECT_LT(only(key({mirrored})).quantile, t.quantile / 1.3);
  EXPECT_THAT(only(key({runs}, norm_kind::max)).provenance, HasSubstr("Gamma quantile"));
}

TEST(an_error_of_first_order, has_the_limit_of_the_linear_scale_where_that_is_less) {
  // Wide: exp(r) against 1 + max(r, 1.6 r of Student's law); without skewness both reaches are Student's.
  for (const auto norm : {norm_kind::rms, norm_kind::max}) {
    statistic s = key({spread_runs(40, 0.5)}, norm);
    const threshold log_scale = only(s);
    s.first_order = true;
    const threshold linear = only(s);
    EXPECT_EQ(linear.typical, log_scale.typical);
    const double reach = std::log(log_scale.value / log_scale.typical);
    EXPECT_GT(linear.value / linear.typical, 1 + reach * (1 - 1e-9));
    EXPECT_LT(linear.value / linear.typical, 1 + 1.6 * reach * (1 + 1e-9));
    EXPECT_LT(linear.value, log_scale.value);
    EXPECT_THAT(linear.provenance, HasSubstr("on the linear scale"));
    // Narrow: the log scale has the smaller limit.
    statistic narrow = key({spread_runs(40, 0.01)}, norm_kind::rms);
    const double before = only(narrow).value;
    narrow.first_order = true;
    EXPECT_LE(only(narrow).value, before);
  }
}

TEST(an_allowance, multiplies_the_limit_and_no_floor) {
  statistic s = key({pair_about(3, 0.01), pair_about(3, 0.01)}, norm_kind::rms, 0, 0, 1e-9);
  const double plain = only(s).value;
  s.allowance = open_order;
  EXPECT_NEAR(only(s).value, plain * open_order, 1e-12);
  EXPECT_THAT(only(s).provenance, HasSubstr("in any order"));
  statistic at_floor = key({{0, 0, 0}}, norm_kind::rms, 0, 0, 1e-9);
  at_floor.allowance = open_order;
  EXPECT_EQ(only(at_floor).value, 1e-9);
  for (const double wrong : {0.5, 17.0, nan}) {
    s.allowance = wrong;
    EXPECT_THROW((void)only(s), domain_error);
  }
}

TEST(bad_statistics, are_refused) {
  EXPECT_THROW((void)only(key({{1, -1}})), domain_error);
  EXPECT_THROW((void)only(key({{1}}, norm_kind::rms, 0, 0, -1)), domain_error);
  EXPECT_THROW((void)only(key({{1}}, norm_kind::rms, 0, 0, nan)), domain_error);
  EXPECT_THROW((void)only(key({{1}}, norm_kind::rms, 0, 0, infinity)), domain_error);
  EXPECT_THROW((void)only(key({})), shape_error);
  EXPECT_THROW((void)only(key({{1}, {}})), shape_error);
  EXPECT_THROW((void)thresholds(std::vector{key({{1}}), key({{1}})}, one_percent), domain_error);
  EXPECT_THROW((void)thresholds(std::vector{key({{1}}), key({{1}, {1}}, norm_kind::rms, 1)}, one_percent), shape_error);
  EXPECT_THROW((void)thresholds(std::vector{key({{1}})}, {0, 1}), domain_error);
  statistic beside = key({{1}});
  beside.neighbours = {{1}, {1}};
  EXPECT_THROW((void)only(beside), shape_error);
  beside.neighbours = {{-1}};
  EXPECT_THROW((void)only(beside), domain_error);
  beside.neighbours = {{1}};
  EXPECT_THROW((void)thresholds(std::vector{beside, key({{1}}, norm_kind::rms, 1)}, one_percent), domain_error);
  EXPECT_THROW((void)thresholds(std::vector{key({{1}}, norm_kind::rms, 1), beside}, one_percent), domain_error);
  EXPECT_TRUE(thresholds({}, one_percent).empty());
}

signed_threshold interval(const signed_statistic& s, const false_alarm& alarm = one_percent) {
  return signed_thresholds(std::vector{s}, alarm).front();
}

TEST(signed_numbers, have_an_interval) {
  const signed_threshold t = interval({"bias", true, 0, {{-1, 1}}});
  const double reach = student_1(0.005) * std::sqrt(2) * std::sqrt(1.5);
  EXPECT_NEAR(t.upper, reach, 1e-9);
  EXPECT_NEAR(t.lower, -reach, 1e-9);
  EXPECT_EQ(t.mean, 0);
  EXPECT_EQ(t.degrees, 1u);
  EXPECT_TRUE(t.holds(100) && t.holds(-100) && !t.holds(111) && !t.holds(-111) && !t.holds(nan));
  EXPECT_NEAR(t.z_score(3), std::sqrt(3), 1e-14);
  EXPECT_TRUE(std::isnan(t.z_score(nan)));

  const signed_threshold one_sided = interval({"projection", false, 0, {{-1, 1}}});
  EXPECT_NEAR(one_sided.upper, student_1(0.01) * std::sqrt(3), 1e-9);
  EXPECT_TRUE(one_sided.holds(-1e30));
}

TEST(signed_numbers, of_several_variants_cover_each) {
  const signed_threshold t = interval({"bias", true, 0, {{-1, 1}, {9, 11}}});
  const double reach = student_2(0.005) * std::sqrt(2) * std::sqrt(1.5);
  EXPECT_NEAR(t.upper, 10 + reach, 1e-9);
  EXPECT_NEAR(t.lower, -reach, 1e-9);
  EXPECT_EQ(t.mean, 5);
  EXPECT_EQ(t.z_score(5), 0);
  EXPECT_LT(t.z_score(-1), 0);
}

TEST(signed_numbers, that_do_not_vary_or_say_nothing) {
  const signed_threshold constant = interval({"bias", true, 0, {{0.125, 0.125, 0.125}}});
  EXPECT_TRUE(constant.holds(0.125));
  EXPECT_FALSE(constant.holds(0.13));
  EXPECT_EQ(constant.z_score(0.13), infinity);
  EXPECT_TRUE(interval({"bias", true, 0.5, {{0.1, 0.1, 0.1}}}).holds(0.59));
  EXPECT_FALSE(interval({"bias", true, 0.5, {{0.1, 0.1, 0.1}}}).holds(0.61));
  for (const samples& runs : {samples{{1}, {2}}, samples{{1, nan}}, samples{{1, infinity, 2}}}) {
    const signed_threshold t = interval({"bias", true, 0, runs});
    EXPECT_FALSE(t.finite);
    EXPECT_TRUE(t.holds(1e300) && t.holds(-1e300));
    EXPECT_EQ(t.z_score(3), 0);
    EXPECT_THAT(t.provenance, HasSubstr("no finite limit"));
  }
  EXPECT_THROW((void)interval({"bias", true, 0, {}}), shape_error);
  EXPECT_THROW((void)interval({"bias", true, 0, {{}}}), shape_error);
  EXPECT_THROW((void)interval({"bias", true, -1, {{1, 2}}}), domain_error);
}

TEST(projection_limit, of_an_error_without_scatter_is_size_times_cosine) {
  const threshold size = thresholds(std::vector{statistic{"o", 0, 0, norm_kind::rms, 0, {{3, 3, 3}}}}, one_percent).front();
  EXPECT_NEAR(projection_limit(interval({"cosine", false, 0, {{0.25, 0.25, 0.25}}}), size), 0.75, 1e-12);
  EXPECT_NEAR(projection_limit(interval({"cosine", false, 0, {{1, 1, 1}}}), size), 3, 1e-12);
  EXPECT_LE(projection_limit(interval({"cosine", false, 0, {{-0.25, -0.25, -0.25}}}), size), 0);
}

TEST(projection_limit, is_at_most_the_limit_of_the_size_and_infinite_without_a_budget) {
  const threshold size = thresholds(std::vector{statistic{"o", 0, 0, norm_kind::rms, 0, {{1, 2, 3, 4}}}}, one_percent).front();
  const auto wild = interval({"cosine", false, 0, {{-0.9, 0.9, 0.5, -0.5}}});
  EXPECT_GT(wild.upper, 1);
  EXPECT_LE(projection_limit(wild, size), size.value * (1 + 1e-9));
  EXPECT_GE(projection_limit(wild, size), size.value / 2);
  EXPECT_EQ(projection_limit(interval({"cosine", false, 0, {{0.5}}}), size), infinity);
  const threshold none = thresholds(std::vector{statistic{"o", 0, 0, norm_kind::rms, 0, {{1, infinity}}}}, one_percent).front();
  EXPECT_EQ(projection_limit(wild, none), infinity);
  const threshold floor = thresholds(std::vector{statistic{"o", 0, 0, norm_kind::rms, 2, {{0, 0}}}}, one_percent).front();
  EXPECT_NEAR(projection_limit(interval({"cosine", false, 0, {{0.5, 0.5}}}), floor), 1, 1e-12);
}

TEST(the_argument, names_the_probability_and_what_is_assumed) {
  const std::string text = budget_argument({1e-4, 250});
  EXPECT_THAT(text, HasSubstr("at most 0.0001: 4e-07 for each of 250 statistics"));
  EXPECT_THAT(text, HasSubstr("Assumed: in each bucket, the errors of a head scatter no more than its pool of runs shows"));
}

}  // namespace
}  // namespace deltaproof
