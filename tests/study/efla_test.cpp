// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/number/errors.hpp"
#include "deltaproof/rule/rules.hpp"
#include "deltaproof/study/study.hpp"
#include "studies/efla/coefficient.hpp"
#include "studies/efla/sections.hpp"
#include "studies/efla/strength.hpp"
#include "studies/shared/findings.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::efla;
using detail::shared::value_of;

settings small() { return {10, 256, 16, 20, 300}; }

TEST(efla_coefficient, is_what_one_computes_by_hand) {
  // bf16: e^-2^-9 = 1 - 2^-9 + ... rounds to 1; the next number, 2^-9 (1 + 2^-7), to 1 - 2^-8.
  EXPECT_EQ(coefficient("bf16", form::naive, 0x1p-9, 1), 0);
  EXPECT_EQ(coefficient("bf16", form::naive, 0x1.02p-9, 1), 0x1p-8);
  EXPECT_EQ(coefficient("bf16", form::expm1, 0x1p-9, 1), 0x1p-9);
  EXPECT_EQ(coefficient("bf16", form::library, 0x1p-9, 1), 0x1p-9);
  // Large x: 1/n rounded.
  EXPECT_EQ(coefficient("bf16", form::expm1, 64, 3), round_to<bf16>(1.0 / 3).value());
  EXPECT_EQ(coefficient("fp32", form::naive, 0, 1), 0);
  EXPECT_EQ(coefficient("fp32", form::library, 0.5, 0), 0.5);
  EXPECT_THROW((void)coefficient("tf32", form::naive, 1, 1), format_error);
}

TEST(efla_coefficient, of_the_library_is_its_effective_step) {
  for (const double beta : {0.03125, 0.75, 1.0, 1.9375}) {
    for (const double n : {0.0078125, 1.0, 13.0}) {
      const auto b = rounded<bf16>::from_exact(beta);
      EXPECT_EQ(coefficient("bf16", form::library, beta, n),
                effective_step(exact_flow{}, b, rounded<bf16>::from_exact(n)).value());
    }
  }
}

TEST(efla_coefficient, dead_zone_ends_at_half_u_in_every_format) {
  const error_survey survey = survey_errors({}, small());
  ASSERT_TRUE(survey.complete);
  ASSERT_EQ(survey.zones.size(), 4U);
  for (const dead_zone& z : survey.zones) {
    const format f = format_named(z.format_name);
    EXPECT_EQ(z.last_zero, unit_roundoff(f) / 2) << z.format_name;
    EXPECT_EQ(z.value_there, unit_roundoff(f)) << z.format_name;
    EXPECT_GT(z.error_there, 0.9) << z.format_name;
    EXPECT_EQ(coefficient(z.format_name, form::naive, z.last_zero, 1), 0);
    EXPECT_GT(coefficient(z.format_name, form::naive, z.first_alive, 1), 0);
    // 1 - e^-x is 1 once e^-x <= u/2.
    EXPECT_NEAR(z.saturates_from, (f.precision + 1) * std::log(2.0), 0.1) << z.format_name;
    EXPECT_EQ(coefficient(z.format_name, form::naive, z.saturates_from, 1), 1);
  }
}

TEST(efla_coefficient, errors_are_of_the_sizes_that_theory_gives) {
  const error_survey survey = survey_errors({}, small());
  for (const error_result& r : survey.results) {
    const double u = unit_roundoff(format_named(r.format_name));
    EXPECT_EQ(r.exhaustive, r.format_name == "bf16" || r.format_name == "fp16");
    EXPECT_GT(r.cases, 400U);
    if (r.how == form::naive) {
      // 1 - e^-x loses half a unit of 1 - u: at x in [0.1, 1) that is u/(2x) and the rounding.
      EXPECT_LT(r.worst[11], 7 * u) << r.format_name;
      EXPECT_GT(r.worst[11], 1.5 * u) << r.format_name;
      if (r.format_name != "fp64") {
        EXPECT_EQ(r.worst_error, 1) << r.format_name;
      }
    } else {
      EXPECT_LT(r.worst_in_u, r.how == form::expm1 ? 1 : 2.6) << r.format_name;
      for (const std::uint64_t zeros : r.zeros) EXPECT_EQ(zeros, 0U);
    }
  }
}

TEST(efla_eigenvalue, never_exceeds_one_and_passes_zero_by_a_few_u) {
  const eigenvalue_survey survey = survey_eigenvalues({}, small());
  ASSERT_TRUE(survey.complete);
  ASSERT_EQ(survey.results.size(), 12U);
  for (const eigenvalue_result& r : survey.results) {
    EXPECT_EQ(r.above_one, 0U);
    EXPECT_LT(r.lowest_in_u, 3);
    EXPECT_GT(r.negative, 0U);
    EXPECT_EQ(r.exactly_one > 0, r.how == form::naive && r.format_name != "fp64");
    EXPECT_FALSE(r.exhaustive);
  }
}

TEST(efla_strength, identity_holds_and_would_show_a_difference) {
  const identity_check check = efla_is_deltanet();
  EXPECT_EQ(check.cases, 60U);
  EXPECT_EQ(check.equal, check.cases);
  for (const rational_key& key : rational_keys()) {
    rational square = 0;
    for (const rational& x : key.k) square += x * x;
    EXPECT_EQ(square, key.norm * key.norm);
  }
}

TEST(efla_strength, norms_lie_where_they_must) {
  for (const std::size_t d : {std::size_t{4}, std::size_t{64}}) {
    const norm_sample l1 = sample_norms(normalisation::l1, d, 500, 3);
    EXPECT_GE(l1.smallest, 1 / static_cast<double>(d));
    EXPECT_LE(l1.largest, 1);
    EXPECT_EQ(sample_norms(normalisation::l2, d, 500, 3).deviation, 0);
    EXPECT_EQ(sample_norms(normalisation::rms, d, 500, 3).mean, static_cast<double>(d));
    const norm_sample raw = sample_norms(normalisation::none, d, 500, 3);
    EXPECT_NEAR(raw.mean, static_cast<double>(d), 5 * std::sqrt(2.0 * static_cast<double>(d) / 500));
    EXPECT_NEAR(raw.deviation, std::sqrt(2.0 * static_cast<double>(d)), 0.25 * std::sqrt(2.0 * static_cast<double>(d)));
    EXPECT_EQ(l1.euler_unstable, 0U);
  }
  EXPECT_NEAR(sample_norms(normalisation::l1, 256, 400, 1).mean, std::acos(-1.0) / 512, 2e-4);
  EXPECT_NE(sample_norms(normalisation::l1, 16, 50, 1).mean, sample_norms(normalisation::l1, 16, 50, 2).mean);
}

report run_small(const run_options& options) {
  report r = reports::empty("efla");
  add_coefficient(options, small(), r);
  add_eigenvalue(options, small(), r);
  add_strength(options, small(), r);
  return r;
}

TEST(efla_study, sections_make_a_valid_report_that_threads_do_not_change) {
  const report a = reports::alike_on_two_threads(run_small);
  reports::expect_value(a, "dead-zone", "as_predicted", true);
  EXPECT_EQ(value_of(a, "dead-zone", "fp32"), 0x1p-25);
  reports::expect_value(a, "efla-is-deltanet", "equal", 60);
  EXPECT_EQ(value_of(a, "naive-error-exhaustive", "bf16_worst"), 1);
  EXPECT_LT(value_of(a, "expm1-error-exhaustive", "bf16_worst_in_u"), 1);
  EXPECT_NEAR(value_of(a, "l2-caps-strength", "below_one"), 1 - std::exp(-1), 1e-15);
}

TEST(efla_study, answer_is_chosen_by_the_findings) {
  const report r = run_small({});
  const std::string before = answer(r);
  EXPECT_TRUE(before.starts_with("Only through expm1"));
  EXPECT_TRUE(answer(reports::with(r, "expm1-error-exhaustive", "bf16_worst_in_u", 50.0)).starts_with("The two forms err"));
  EXPECT_NE(answer(reports::with(r, "dead-zone", "bf16", 0.5)), before);
  EXPECT_NE(answer(reports::with(r, "eigenvalue-ends", "smallest_full_x", 3.0)), before);
  EXPECT_NE(answer(reports::with(r, "l1-writes-little", "written_at_one", 0.5)), before);
}

TEST(efla_study, interrupted_says_what_is_missing) {
  const report r = reports::interrupted("efla");
  EXPECT_EQ(r.unfinished.size(), 3U);
  EXPECT_FALSE(r.answer.empty());
}

}  // namespace
}  // namespace deltaproof
