// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// How often a correct kernel is beyond a limit of first order that rests on one run of its head: averaged over that run and over
// the runs of another head, which show the scatter. The error is of few or many normal elements. Seeds are fixed and printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <iostream>
#include <vector>

#include "deltaproof/number/random.hpp"
#include "deltaproof/referee/budget.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

constexpr std::size_t buckets = 4, runs_often = 17;

double norm_of(philox& random, std::size_t elements, norm_kind norm) {
  double sum = 0, largest = 0;
  for (std::size_t e = 0; e < elements; ++e) {
    const double x = random.normal();
    sum += x * x;
    largest = std::max(largest, std::fabs(x));
  }
  return norm == norm_kind::rms ? std::sqrt(sum / static_cast<double>(elements)) : largest;
}

/// The limit of head 1, in units of its one run; head 0 runs often.
double limit_over_one_run(philox& random, std::size_t elements, norm_kind norm, double alpha) {
  std::vector<statistic> all;
  for (std::size_t b = 0; b < buckets; ++b) {
    for (const std::size_t head : {0U, 1U}) {
      statistic s{"o", b, head, norm, 0, {std::vector<double>(head == 0 ? runs_often : 1)}};
      for (double& x : s.samples[0]) x = norm_of(random, elements, norm);
      s.first_order = true;
      s.few_runs = head == 1;
      all.push_back(std::move(s));
    }
  }
  return thresholds(all, {alpha, 1})[1].value / all[1].samples[0][0];
}

/// That the norm of a run exceeds `ratio` times that of another. Of rms squared it is Fisher's law; of the largest, with the
/// probability u that the other is no larger than m, the integral of P(largest > ratio m) over log u.
double exceeds(double ratio, std::size_t elements, norm_kind norm) {
  const double n = static_cast<double>(elements);
  if (norm == norm_kind::rms) return cdf(complement(boost::math::fisher_f(n, n), ratio * ratio));
  constexpr double step = 0.05;
  double sum = 0;
  for (double log_u = -40; log_u < 0; log_u += step) {
    const double m = boost::math::quantile(boost::math::normal(), (1 + std::exp(log_u / n)) / 2);
    const double tail = 2 * cdf(complement(boost::math::normal(), ratio * m));
    sum += step * std::exp(log_u) * -std::expm1(n * std::log1p(-tail));
  }
  return sum;
}

TEST(limits_of_first_order, beside_one_run_of_few_elements_are_exceeded_as_rarely_as_declared) {
  const std::size_t n = scaled(300);
  for (const norm_kind norm : {norm_kind::rms, norm_kind::max}) {
    for (const std::size_t elements : {1U, 2U, 4U, 8U, 32U, 512U}) {
      for (const double alpha : {1e-3, 1e-6}) {
        double beyond = 0;
        for (std::size_t i = 0; i < n; ++i) {
          philox random(11, i);
          beyond += exceeds(limit_over_one_run(random, elements, norm, alpha), elements, norm) / static_cast<double>(n);
        }
        std::cout << name_of(norm) << " of " << elements << " elements: declared " << alpha << ", exceeded with probability "
                  << beyond << " (seed 11, " << n << " emulations)\n";
        EXPECT_LE(beyond, (elements == 1 ? 2 : 1) * alpha) << elements;
      }
    }
  }
}

}  // namespace
}  // namespace deltaproof
