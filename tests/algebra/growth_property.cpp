// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The growth bound and the growth estimate against what inverses do, on many configurations: algorithm, formats, C,
// keys and steps. Raw matrices beside those of keys, with entries and signs that no keys have.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "deltaproof/inverse/inverse_trial.hpp"
#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/random.hpp"
#include "support/multiplier.hpp"

namespace deltaproof {
namespace {

constexpr std::uint64_t seed = 20261120;

template <class T, std::size_t N>
const T& pick(const std::array<T, N>& of, philox& random) {
  return of[random.below(N)];
}

double in_format(format f, double x) {
  return f == bf16   ? round_to<bf16>(x).value()
         : f == fp16 ? round_to<fp16>(x).value()
         : f == tf32 ? round_to<tf32>(x).value()
         : f == fp32 ? round_to<fp32>(x).value()
                     : x;
}

struct configuration {
  inverse_plan plan;
  inverse_problem problem;
  bool raw = false;

  [[nodiscard]] std::string text() const {
    return name_of(plan.method) + " " + std::string(name_of(plan.operand)) + "/" + std::string(name_of(plan.accumulate)) + " C " +
           std::to_string(problem.chunk) + (raw ? " raw" : " " + name_of(problem.keys) + " beta " + name_of(problem.beta)) +
           " seed " + std::to_string(problem.seed);
  }
};

inverse_method draw_method(philox& random) {
  if (random.below(2) == 0) return inverse_methods[random.below(inverse_methods.size())].method;
  const auto diagonal = random.below(2) == 0 ? diagonal_kind::forward : diagonal_kind::neumann;
  return {diagonal, 1 + random.below(20), random.below(2) == 0 ? merge_kind::block : merge_kind::block2};
}

configuration draw_configuration(std::uint64_t index) {
  philox random(seed, index);
  static const std::array<const char*, 10> keys{"gaussian", "silu",     "elu1",       "cos=0.3",   "cos=0.7",
                                                "cos=0.9",  "cos=0.99", "cos=0.9999", "identical", "alternating"};
  static const std::array<const char*, 6> steps{"U(0,1)", "0.9", "1", "U(1.9,2)", "2", "0"};
  configuration c;
  c.plan.method = draw_method(random);
  do {
    c.plan.operand = pick(inverse_formats, random);
    c.plan.accumulate = pick(inverse_formats, random);
  } while (!is_lossless(c.plan.operand, c.plan.accumulate));
  c.plan.store = c.plan.accumulate;
  c.problem = {key_law_named(pick(keys, random)),
               step_law_named(pick(steps, random)),
               2 + random.below(40),
               1 + (random.below(20) == 0 ? random.below(64) : random.below(24)),
               1,
               random()};
  c.raw = random.below(2) == 0;
  return c;
}

// Entries of one magnitude range, of one sign or of both, some of them zero.
inverse_case raw_case(const configuration& c) {
  philox random(seed, c.problem.seed);
  inverse_case made;
  made.lower = matrix<double>(c.problem.chunk, c.problem.chunk);
  const double size = std::ldexp(1, static_cast<int>(random.below(12)) - 8);
  const auto signs = random.below(3);
  const bool equal = random.below(4) == 0;
  for (std::size_t i = 0; i < c.problem.chunk; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool negative = signs == 0 || (signs == 2 && random.below(2) == 0);
      const double x = random.below(16) == 0 ? 0 : size * (equal ? 1 : random.uniform());
      made.lower(i, j) = in_format(c.plan.operand, negative ? -x : x);
    }
  }
  return made;
}

std::string quantiles(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  std::string text;
  for (const double q : {0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0}) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "  %g%%: %.3g", 100 * q,
                  x[static_cast<std::size_t>(q * static_cast<double>(x.size() - 1))]);
    text += buffer;
  }
  return text;
}

TEST(growth_property, the_bound_is_never_below_the_observed) {
  const std::size_t count = scaled(10000);
  std::vector<double> ratios;
  std::size_t unbounded = 0, overflowed = 0;
  for (std::size_t n = 0; n < count; ++n) {
    const configuration c = draw_configuration(n);
    std::vector<inverse_case> cases;
    if (c.raw) {
      cases.push_back(raw_case(c));
    } else {
      cases = inverse_inputs(c.problem).rounded_to(c.plan.operand);
    }
    const double observed = run_cases(c.plan, cases).observed[0].largest;
    const double bound = bound_growth(c.plan, cases).largest;
    ASSERT_GE(bound, observed) << "configuration " << n << ": " << c.text();
    overflowed += std::isinf(observed) ? 1 : 0;
    unbounded += std::isinf(bound) && !std::isinf(observed) ? 1 : 0;
    if (!std::isinf(bound)) ratios.push_back(bound / observed);
  }
  std::cout << count << " configurations, seed " << seed << "\nbound / observed, " << ratios.size()
            << " finite:" << quantiles(ratios) << "\noverflow observed " << overflowed << ", only possible " << unbounded << "\n";
  // A bound that says nothing, or never comes near, would pass the line above.
  EXPECT_GT(ratios.size(), count / 2);
  EXPECT_GT(overflowed, count / 200);
  EXPECT_GT(std::count_if(ratios.begin(), ratios.end(), [](double r) { return r < 1.1; }),
            static_cast<std::ptrdiff_t>(count / 20));
}

TEST(growth_property, the_bound_holds_for_every_draw_it_was_made_from) {
  for (std::size_t n = 0; n < scaled(200); ++n) {
    configuration c = draw_configuration(1000000 + n);
    c.problem.samples = 4;
    const auto cases = inverse_inputs(c.problem).rounded_to(c.plan.operand);
    const double bound = bound_growth(c.plan, cases).largest;
    for (const growth& g : run_cases(c.plan, cases).observed)
      ASSERT_GE(bound, g.largest) << "configuration " << n << ": " << c.text();
  }
}

// How many of these lie in (1/10, 10).
double share_within_ten(const std::vector<double>& ratios) {
  const auto within = std::count_if(ratios.begin(), ratios.end(), [](double r) { return r > 0.1 && r < 10; });
  return static_cast<double>(within) / static_cast<double>(ratios.size());
}

TEST(growth_property, the_estimate_is_within_a_factor_of_ten) {
  static const std::array<const char*, 10> keys{"gaussian", "silu",     "elu1",       "cos=0.3",   "cos=0.7",
                                                "cos=0.9",  "cos=0.99", "cos=0.9999", "identical", "alternating"};
  static const std::array<const char*, 5> steps{"U(0,1)", "0.9", "1", "U(1.9,2)", "2"};
  std::vector<double> all, grown;  // grown: the intermediates exceed every entry that an inverse may have
  for (const char* key : keys) {
    std::vector<double> here;
    for (const char* step : steps) {
      for (const std::size_t chunk : {8U, 16U, 32U, 64U}) {
        for (const std::size_t dim : {16U, 128U}) {
          const inverse_problem problem{key_law_named(key), step_law_named(step), dim, chunk, 2, seed + all.size()};
          const auto cases = inverse_inputs(problem).rounded_to(fp64);
          for (const char* method : {"neumann", "neumann16+block", "neumann8+block", "forward", "block2"}) {
            const inverse_plan plan{inverse_named(method), fp64, fp64, fp64};
            const double predicted = predict_growth(plan.method, problem).largest;
            for (const growth& g : run_cases(plan, cases).observed) {
              all.push_back(predicted / g.largest);
              if (g.largest > 2.5) here.push_back(predicted / g.largest);
            }
          }
        }
      }
    }
    if (!here.empty())
      std::cout << key << ", intermediates above 2.5, estimate / observed (" << here.size() << "):" << quantiles(here) << "\n";
    grown.insert(grown.end(), here.begin(), here.end());
  }
  std::cout << "these " << grown.size() << ":" << quantiles(grown) << "\nall " << all.size() << ":" << quantiles(all) << "\n";
  EXPECT_GT(grown.size(), 1000U);
  EXPECT_GE(share_within_ten(grown), 0.97);
  EXPECT_GE(share_within_ten(all), 0.97);
}

}  // namespace
}  // namespace deltaproof
