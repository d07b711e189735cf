// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/rational.hpp"
#include "studies/hippo/matrices.hpp"
#include "studies/shared/exponential.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::hippo;
using namespace detail::shared;

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
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) b[i] += a(i, j) * x[j];
  }
  const factored<rational> f(a);
  EXPECT_EQ(f.solve(b), x);
  EXPECT_EQ(f.solve(a), identity<rational>(3));
  EXPECT_THROW(factored<rational>(matrix<rational>(2, 2, {1, 2, 2, 4})), domain_error);
}

TEST(hippo_matrices, are_what_their_names_say) {
  const matrix<double> legs = make(kind::legs, 5);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(legs(i, i), -static_cast<double>(i + 1));
    for (std::size_t j = 0; j < 5; ++j)
      EXPECT_NEAR(legs(i, j) + legs(j, i) + (i == j ? 1 : 0) + std::sqrt(static_cast<double>((2 * i + 1) * (2 * j + 1))), 0,
                  1e-14);
  }
  for (const kind which : {kind::rank_one, kind::nilpotent, kind::singular})
    EXPECT_THROW(factored<double>(make(which, 6)), domain_error) << name_of(which);
  for (const kind which : {kind::legs, kind::defective}) EXPECT_NO_THROW(factored<double>(make(which, 6)));
}

TEST(hippo_matrices, steps_of_one_number_are_the_rules) {
  const matrix<double> a(1, 1, {-0.5});
  EXPECT_EQ(euler_step(a, 2.0)(0, 0), 0);
  EXPECT_EQ(bilinear_step(a, 2.0)(0, 0), 0.5 / 1.5);
}

}  // namespace
}  // namespace deltaproof
