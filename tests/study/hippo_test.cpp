// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/number/errors.hpp"
#include "deltaproof/number/random.hpp"
#include "deltaproof/number/rational.hpp"
#include "deltaproof/study/study.hpp"
#include "studies/hippo/discretise.hpp"
#include "studies/hippo/intervals.hpp"
#include "studies/hippo/sections.hpp"
#include "studies/shared/exponential.hpp"
#include "studies/shared/factored.hpp"
#include "studies/shared/findings.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::hippo;
using detail::shared::value_of;

settings small() { return {6, -12, 4, 8, 60, 4}; }

double largest_entry(const matrix<wide>& a, const matrix<wide>& b) {
  wide worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, wide(abs(wide(a.data()[i] - b.data()[i]))));
  return round_to<double>(worst);
}

TEST(hippo_exponential, of_a_diagonal_is_entry_by_entry) {
  matrix<wide> d(3, 3);
  d(0, 0) = -5;
  d(1, 1) = wide(1) / 3;
  const auto e = exponentials_of(d);
  for (std::size_t i = 0; i < 3; ++i) {
    const wide x = d(i, i);
    EXPECT_LT(round_to<double>(wide(abs(wide(e.exp(i, i) - exp(x))))), 1e-145);
    EXPECT_LT(round_to<double>(wide(abs(wide(e.phi(i, i) - (x == 0 ? wide(1) : wide(expm1(x) / x)))))), 1e-145);
  }
  EXPECT_EQ(e.exp(0, 1), 0);
}

TEST(hippo_exponential, of_a_rotation_and_a_jordan_block_are_known) {
  const wide t = wide(7) / 2;
  matrix<wide> j(2, 2);
  j(0, 1) = -t;
  j(1, 0) = t;
  const auto rotation = exponentials_of(j);
  EXPECT_LT(round_to<double>(wide(abs(wide(rotation.exp(0, 0) - cos(t))))), 1e-145);
  EXPECT_LT(round_to<double>(wide(abs(wide(rotation.exp(1, 0) - sin(t))))), 1e-145);
  matrix<wide> n(3, 3);
  n(1, 0) = t;
  n(2, 1) = t;
  const auto nilpotent = exponentials_of(n);
  EXPECT_LT(round_to<double>(wide(abs(wide(nilpotent.exp(2, 0) - t * t / 2)))), 1e-145);
  EXPECT_LT(round_to<double>(wide(abs(wide(nilpotent.phi(2, 0) - t * t / 6)))), 1e-145);
}

TEST(hippo_exponential, bound_holds_and_is_not_vacuous) {
  // 128 bits against 512: the error is within the bound, and the bound within a factor of a million of the error.
  philox random(4);
  using narrow = real<128>;
  for (const double size : {0.01, 1.0, 20.0}) {
    matrix<narrow> a(5, 5);
    matrix<wide> b(5, 5);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double x = size * random.normal();
      a.data()[i] = lift<narrow>(x);
      b.data()[i] = lift<wide>(x);
    }
    const auto coarse = exponentials_of(a);
    const auto fine = exponentials_of(b);
    EXPECT_LT(round_to<double>(bound_number(fine.exp_error / coarse.exp_error)), 1e-90);
    for (const bool is_phi : {false, true}) {
      matrix<wide> difference = is_phi ? fine.phi : fine.exp;
      const matrix<narrow>& computed = is_phi ? coarse.phi : coarse.exp;
      for (std::size_t i = 0; i < difference.size(); ++i)
        difference.data()[i] = difference.data()[i] - lift<wide>(computed.data()[i]);
      const double error = round_to<double>(norm_1(difference));
      const double bound = round_to<double>(is_phi ? coarse.phi_error : coarse.exp_error);
      EXPECT_LE(error, bound);
      EXPECT_GT(error, bound * 1e-6);
    }
  }
}

TEST(hippo_exponential, obeys_its_identities) {
  for (const kind which : kinds) {
    const matrix<wide> a = lifted(make(which, 7));
    const auto once = exponentials_of(a);
    const auto half = exponentials_of(scaled(a, wide(wide(1) / 2)));
    EXPECT_LT(largest_entry(product(half.exp, half.exp), once.exp), 1e-140) << name_of(which);
    // X phi_1(X) = e^X - I, for singular X too.
    EXPECT_LT(largest_entry(sum(product(a, once.phi), identity<wide>(7)), once.exp), 1e-140) << name_of(which);
  }
}

TEST(hippo_exponential, refuses_what_it_cannot_do) {
  EXPECT_THROW((void)exponentials_of(matrix<double>(2, 3)), shape_error);
  matrix<double> bad(2, 2);
  bad(0, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW((void)exponentials_of(bad), domain_error);
  bad(0, 1) = std::numeric_limits<double>::infinity();
  EXPECT_THROW((void)exponentials_of(bad), domain_error);
  EXPECT_EQ(exponentials_of(matrix<double>(2, 2)).exp, identity<double>(2));
}

TEST(hippo_factored, solves_exactly_in_rationals) {
  matrix<rational> a(3, 3, {0, 2, 1, 3, rational(1, 2), -1, 1, 1, rational(5, 7)});
  const std::vector<rational> x{rational(2, 3), -4, 5};
  std::vector<rational> b(3);
  std::vector<rational> c(3);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      b[i] += a(i, j) * x[j];
      c[i] += a(j, i) * x[j];
    }
  }
  const factored<rational> f(a);
  EXPECT_EQ(f.solve(b), x);
  EXPECT_EQ(f.solve_transposed(c), x);
  EXPECT_EQ(f.solve(a), identity<rational>(3));
  EXPECT_THROW(factored<rational>(matrix<rational>(2, 2, {1, 2, 2, 4})), domain_error);
}

TEST(hippo_matrices, are_what_their_names_say) {
  const matrix<double> legs = make(kind::legs, 5);
  const std::vector<double> b = input_of(kind::legs, 5);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(legs(i, i), -static_cast<double>(i + 1));
    for (std::size_t j = 0; j < 5; ++j) EXPECT_NEAR(legs(i, j) + legs(j, i) + (i == j ? 1 : 0) + b[i] * b[j], 0, 1e-14);
  }
  for (const kind which : {kind::rank_one, kind::nilpotent, kind::singular})
    EXPECT_THROW(factored<double>(make(which, 6)), domain_error) << name_of(which);
  for (const kind which : {kind::legs, kind::defective}) EXPECT_NO_THROW(factored<double>(make(which, 6)));
}

TEST(hippo_discretise, errors_have_the_orders_of_their_rules) {
  for (const kind which : kinds) {
    const comparison coarse = compare(which, 5, -14);
    const comparison fine = compare(which, 5, -15);
    EXPECT_NEAR(coarse.bilinear_error / fine.bilinear_error, 8, 0.1) << name_of(which);
    EXPECT_NEAR(coarse.euler_error / fine.euler_error, 4, 0.1) << name_of(which);
    EXPECT_LT(coarse.truth_radius, 1e-140);
    EXPECT_LT(coarse.double_error, 1e-15);
    EXPECT_LT(coarse.double_phi_error, 1e-15);
    EXPECT_EQ(std::isnan(coarse.inverse_error), which != kind::legs && which != kind::defective) << name_of(which);
  }
}

TEST(hippo_discretise, steps_of_legs_are_contractions_but_for_euler) {
  for (const int exponent : {-6, -2, 0, 3}) {
    const comparison c = compare(kind::legs, 8, exponent);
    EXPECT_LE(c.exact_norm, std::exp(-c.step / 2) * (1 + 1e-12));
    EXPECT_LE(c.bilinear_norm, 1 + 1e-12);
  }
  EXPECT_GT(compare(kind::legs, 8, 0).euler_norm, 7);
}

TEST(hippo_discretise, rank_one_formula_holds_with_any_product) {
  for (const auto& [x, y] : {std::pair{std::vector<double>{1, 2, -0.5}, std::vector<double>{-1, -2, 0.5}},
                             std::pair{std::vector<double>{1, 2, 3}, std::vector<double>{2, -1, 0}},
                             std::pair{std::vector<double>{4, 0, 1}, std::vector<double>{3, 1, 2}}}) {
    const rank_one_error e = check_rank_one(x, y);
    EXPECT_LT(e.exp, 1e-140) << e.product;
    EXPECT_LT(e.phi, 1e-140) << e.product;
  }
  EXPECT_EQ(check_rank_one({1, 2, 3}, {2, -1, 0}).product, 0);
}

TEST(hippo_intervals, readings_part_unless_eta_is_one) {
  for (const reading how : readings) {
    EXPECT_EQ(measure(how, 1, 1, 4, 50, 4, 1).largest, 0) << name_of(how);
    const gap g = measure(how, 0, 1, 4, 50, 4, 1);
    EXPECT_EQ(g.mean > 0, how == reading::running || how == reading::lingering) << name_of(how);
    EXPECT_EQ(g.overlapping, 0);
  }
  EXPECT_NEAR(measure(reading::clock, 0, 2, 4, 500, 8, 1).overlapping, 0.5, 0.05);
  EXPECT_NE(measure(reading::running, 0, 1, 4, 50, 4, 1).mean, measure(reading::running, 0, 1, 4, 50, 4, 2).mean);
}

report run_small(const run_options& options) {
  report r = reports::empty("hippo");
  add_discretisations(options, small(), r);
  add_rank_one(options, small(), r);
  add_intervals(options, small(), r);
  return r;
}

TEST(hippo_study, sections_make_a_valid_report_that_threads_do_not_change) {
  const report a = reports::alike_on_two_threads(run_small);
  EXPECT_TRUE(a.unfinished.empty());
  reports::expect_value(a, "exact-needs-no-inverse", "accurate", true);
  reports::expect_value(a, "inverse-formula", "refused", 3);
  reports::expect_value(a, "bilinear-order", "order_two", true);
  reports::expect_value(a, "rank-one-formula", "holds", true);
  reports::expect_value(a, "intervals-assume-one", "only_at_one", true);
  EXPECT_LT(value_of(a, "ruler", "largest_radius"), 1e-140);
}

TEST(hippo_study, answer_is_chosen_by_the_findings) {
  const report r = run_small({});
  const std::string before = answer(r);
  EXPECT_TRUE(before.starts_with("Exact discretisation needs no inverse"));
  EXPECT_TRUE(
      answer(reports::with(r, "exact-needs-no-inverse", "worst_phi", 1e6)).starts_with("Exact discretisation in double errs"));
  EXPECT_NE(answer(reports::with(r, "bilinear-rings", "rings", false)), before);
  EXPECT_NE(answer(reports::with(r, "intervals-assume-one", "running", 0.001)), before);
}

TEST(hippo_study, interrupted_says_what_is_missing) {
  const report r = reports::interrupted("hippo");
  EXPECT_EQ(r.unfinished.size(), 3U);
  EXPECT_FALSE(r.answer.empty());
}

}  // namespace
}  // namespace deltaproof
