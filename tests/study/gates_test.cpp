// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/number/elementary.hpp"
#include "studies/gates/ratios.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::gates;

struct comparison {
  std::size_t not_finite = 0;  ///< entries, of the whole square
  double worst = 0;            ///< largest |r - exact| / exact over i >= j with exact >= `floor`; infinite where not finite
};

comparison compare(const matrix<double>& found, const matrix<double>& exact, double floor) {
  comparison c;
  for (std::size_t i = 0; i < exact.rows(); ++i) {
    for (std::size_t j = 0; j < exact.cols(); ++j) {
      const double r = found(i, j);
      if (!std::isfinite(r)) {
        ++c.not_finite;
        c.worst = std::numeric_limits<double>::infinity();
      } else if (j <= i && exact(i, j) >= floor) {
        c.worst = std::max(c.worst, std::fabs(r - exact(i, j)) / exact(i, j));
      }
    }
  }
  return c;
}

TEST(gates_edges, lie_between_neighbours) {
  // ln of the largest number and half a unit more.
  EXPECT_NEAR(overflow_exponent(fp32), 88.72283905206835, 1e-5);
  EXPECT_NEAR(overflow_exponent(fp16), 11.090354888959125, 1e-3);
  EXPECT_LT(overflow_exponent(bf16), overflow_exponent(fp32));
  for (const format& f : {e4m3, bf16, fp16, fp32}) {
    const rounding_to_one edge = rounds_to_one(f);
    EXPECT_LT(edge.last_below, edge.first_one);
    EXPECT_NEAR(edge.last_below / (-unit_roundoff(f) / 2), 1, 2 * unit_roundoff(f));
  }
  EXPECT_EQ(round_to<bf16>(exp(rounded<fp32>::from_exact(rounds_to_one(bf16).first_one)).value()).value(), 1);
}

TEST(gates_ratios, of_no_gate_are_one_in_every_form) {
  const std::vector<double> g(40, 0.0);
  for (const named_factorisation& f : factorisations) {
    const matrix<double> r = ratios(f.id, g, fp32);
    for (std::size_t i = 0; i < 40; ++i) {
      for (std::size_t j = 0; j < 40; ++j) EXPECT_EQ(r(i, j), i >= j ? 1 : 0) << f.name;
    }
  }
}

TEST(gates_ratios, agree_with_the_exact_ones_where_nothing_overflows) {
  philox random(4);
  for (const std::size_t n : {1U, 7U, 16U, 23U, 48U}) {
    std::vector<double> g(n);
    for (double& x : g) x = round_to<fp32>(-random.uniform()).value();
    const matrix<double> exact = exact_ratios(g);
    for (const named_factorisation& f : factorisations) {
      const comparison c = compare(ratios(f.id, g, fp32), exact, 0);
      EXPECT_EQ(c.not_finite, 0U);
      EXPECT_LT(c.worst, 1e-5) << f.name;
      // Sixteen bits: a rounding for each factor, one for each of up to n decays.
      EXPECT_LT(compare(ratios(f.id, g, bf16), exact, 0).worst, static_cast<double>(n + 2) * 0x1p-8) << f.name;
    }
  }
  // Three gates by hand.
  const std::vector<double> g{-1, -2, -0.5};
  EXPECT_NEAR(exact_ratios(g)(2, 0), std::exp(-2.5), 1e-16);
  EXPECT_EQ(exact_ratios(g)(1, 1), 1);
}

TEST(gates_ratios, of_a_reset) {
  std::vector<double> g(20, -0.01);
  g[3] = -HUGE_VAL;
  const matrix<double> exact = exact_ratios(g);
  EXPECT_EQ(exact(5, 1), 0);
  EXPECT_NEAR(exact(5, 4), std::exp(-0.01), 1e-9);
  EXPECT_EQ(compare(ratios(factorisation::product, g, fp32), exact, 0.1).not_finite, 0U);
  EXPECT_LT(compare(ratios(factorisation::product, g, fp32), exact, 0.1).worst, 1e-6);
  EXPECT_GT(compare(ratios(factorisation::difference, g, fp32), exact, 0.1).not_finite, 100U);
}

// Just inside the limit everything is finite, the next fp32 number is not; and the limit is the derived one.
TEST(gates_limits, are_the_derived_ones_and_sharp) {
  for (const named_factorisation& f : factorisations) {
    for (const std::size_t chunk : {16U, 32U}) {
      for (const format& store : {fp32, fp16}) {
        const double limit = measured_limit(f.id, chunk, store);
        const auto times = static_cast<double>(largest_exponent(f.id, chunk));
        if (times == 0) {
          EXPECT_EQ(limit, 1024) << f.name;
          continue;
        }
        EXPECT_NEAR(limit * times / overflow_exponent(store), 1, 1e-5) << f.name;
        const auto not_finite = [&](double size) {
          const std::vector<double> g(chunk, -size);
          return compare(ratios(f.id, g, store), exact_ratios(g), 0).not_finite;
        };
        EXPECT_EQ(not_finite(limit), 0U);
        EXPECT_GT(not_finite(static_cast<double>(std::nextafter(static_cast<float>(limit), 2000.0F))), 0U);
      }
    }
  }
}

}  // namespace
}  // namespace deltaproof
