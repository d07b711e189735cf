// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "deltaproof/study/study.hpp"
#include "studies/inverse/survey.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::inverse;

const survey& small_survey() {
  static const survey s = [] {
    run_options options;
    options.seed = 3;
    return run_survey(options, {{16, 24}, {2, 1}, 64});
  }();
  return s;
}

std::size_t method_index(std::string_view name) {
  return static_cast<std::size_t>(std::find(methods.begin(), methods.end(), name) - methods.begin());
}

TEST(inverse_study, judges_as_the_verb_does) {
  const survey& s = small_survey();
  ASSERT_TRUE(s.complete);
  for (const std::size_t keys : {0U, 4U, 7U}) {
    for (const std::size_t steps : {0U, 2U, 4U}) {
      for (std::size_t m = 0; m < methods.size(); ++m) {
        for (std::size_t a = 0; a < arithmetics.size(); ++a) {
          const inverse_problem problem{key_law_named(key_laws[keys]), step_law_named(step_laws[steps]), 64, 16, 2, 3};
          const inverse_plan plan{inverse_named(methods[m]), arithmetics[a].operand, arithmetics[a].accumulate,
                                  arithmetics[a].store};
          const inverse_trial t = try_inverse(plan, problem);
          const outcome& o = s.at(0, keys, steps, m, a);
          EXPECT_EQ(o.safe, t.verdict.safe) << methods[m] << " " << name_of(arithmetics[a]) << ": " << t.verdict.reason;
          EXPECT_EQ(o.error, t.verdict.error / t.verdict.limit);
          EXPECT_EQ(o.observed, t.verdict.observed.largest);
          EXPECT_EQ(o.predicted, t.predicted.largest);
        }
      }
    }
  }
}

TEST(inverse_study, does_not_depend_on_the_number_of_threads) {
  run_options options;
  options.seed = 3;
  options.threads = 4;
  const survey many = run_survey(options, small_survey().size);
  for (std::size_t i = 0; i < many.outcomes.size(); ++i) {
    EXPECT_EQ(many.outcomes[i].safe, small_survey().outcomes[i].safe);
    EXPECT_EQ(many.outcomes[i].error, small_survey().outcomes[i].error);
  }
}

TEST(inverse_study, tells_the_prefix_of_keys_that_are_safe) {
  const survey& s = small_survey();
  EXPECT_EQ(safe_prefix(s, 0, moderate_steps, method_index("forward"), 0), key_laws.size());
  EXPECT_LT(safe_prefix(s, 0, moderate_steps, method_index("neumann"), 0), 4U);
  EXPECT_GE(safe_prefix(s, 0, moderate_steps, method_index("neumann"), 0), 1U);  // Gaussian keys
}

TEST(inverse_study, lists_keys_by_rising_correlation_and_sharing_arithmetics_side_by_side) {
  for (std::size_t k = 1; k < key_laws.size(); ++k) {
    EXPECT_LE(correlation_of(key_law_named(key_laws[k - 1])), correlation_of(key_law_named(key_laws[k])));
  }
  std::set<std::string> seen;
  for (const arithmetic_plan& a : arithmetics) EXPECT_TRUE(seen.insert(name_of(a)).second) << name_of(a);
  for (std::size_t b = 0; b < step_laws.size(); ++b) EXPECT_EQ(step_law_named(step_laws[b]).high <= 1, b < moderate_steps);
}

TEST(inverse_study, says_of_every_finding_why) {
  report r;
  run_options options;
  add_findings(small_survey(), options, r);
  add_tables(small_survey(), r);
  std::set<std::string> ids;
  for (const finding& f : r.findings) {
    EXPECT_TRUE(ids.insert(f.id).second) << f.id;
    EXPECT_FALSE(f.because.empty()) << f.id;
    EXPECT_NE(f.statement.find_first_of(".!"), std::string::npos) << f.id;
  }
  EXPECT_TRUE(ids.count("no-powers-no-danger") == 1 && ids.count("plan-fp16-product-of-powers") == 1);
  for (const table& t : r.tables) {
    for (const auto& row : t.rows) EXPECT_EQ(row.size(), t.columns.size()) << t.id;
  }
}

TEST(inverse_study, calls_nothing_safe_whose_growth_is_too_large) {
  for (const outcome& o : small_survey().outcomes) {
    const bool fine = o.promised_error <= 1 && o.observed_error <= 1;
    EXPECT_TRUE(!o.safe || fine);
    EXPECT_TRUE(!o.lucky || !fine);
  }
}

TEST(inverse_study, states_the_conditions_of_its_counts) {
  report r;
  add_findings(small_survey(), run_options{}, r);
  const auto found = [&](std::string_view id) { return reports::found(r, id).statement; };
  EXPECT_THAT(found("random-keys-hide-it"), ::testing::HasSubstr("β ≤ 1 and d = 64"));
  EXPECT_THAT(found("random-keys-hide-it"), ::testing::HasSubstr("With β near 2"));
  EXPECT_THAT(found("absolute-values-tell-nothing-apart"), ::testing::HasSubstr("There it refuses 3 of these 3"));

  std::size_t all = 0, safe = 0;
  const survey& s = small_survey();
  for (std::size_t c = 0; c < s.size.chunks.size(); ++c) {
    for (std::size_t k = 0; k < key_laws.size(); ++k) {
      for (std::size_t b = 0; b < moderate_steps; ++b) {
        for (std::size_t a = 0; a < arithmetics.size(); ++a) {
          if (arithmetics[a].store != bf16 || arithmetics[a].operand == bf16) continue;
          ++all;
          safe += s.at(c, k, b, method_index("neumann8+block"), a).safe ? 1 : 0;
        }
      }
    }
  }
  EXPECT_THAT(found("coarse-result-forgives"),
              ::testing::HasSubstr("fp32, tf32 or fp16 for a result in bf16 were safe in " + std::to_string(safe) + " of " +
                                   std::to_string(all) + " with β ≤ 1"));
}

TEST(inverse_study, keeps_what_is_done_when_interrupted) {
  const report r = reports::interrupted("inverse");
  EXPECT_FALSE(r.unfinished.empty());
  EXPECT_FALSE(r.findings.empty());
}

}  // namespace
}  // namespace deltaproof
