// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "studies/inverse/survey.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using namespace detail::inverse;

const inverse_problem small{key_law_named("gaussian"), step_law_named("1"), 64, 24, 2, 3};

TEST(inverse_survey, judges_as_the_verb_does) {
  for (const std::string_view keys : {"gaussian", "cos=0.9", "identical"}) {
    for (const std::string_view steps : {"U(0,1)", "1", "2"}) {
      inverse_problem problem = small;
      problem.keys = key_law_named(keys);
      problem.beta = step_law_named(steps);
      const frame judged = judge_all(problem);
      ASSERT_EQ(judged.size(), sorted_methods().size() * arithmetics.size());
      for (const std::string& method : sorted_methods()) {
        for (const arithmetic_plan& a : arithmetics) {
          const inverse_trial t = try_inverse({inverse_named(method), a.operand, a.accumulate, a.store}, problem);
          const auto value = [&](const char* column) {
            return judged.find({{"method", method}, {"arithmetic", a.name}}, column);
          };
          EXPECT_EQ(value("safe") == 1, t.verdict.safe) << method << " " << a.name << ": " << t.verdict.reason;
          EXPECT_EQ(value("error"), t.verdict.error / t.verdict.limit);
          EXPECT_EQ(value("observed"), t.verdict.observed.largest);
        }
      }
    }
  }
}

TEST(inverse_survey, lists_keys_by_rising_correlation_and_sharing_arithmetics_side_by_side) {
  for (std::size_t k = 1; k < key_laws.size(); ++k) {
    EXPECT_LE(correlation_of(key_law_named(key_laws[k - 1])), correlation_of(key_law_named(key_laws[k])));
  }
  std::set<std::string_view> seen;
  for (const arithmetic_plan& a : arithmetics) EXPECT_TRUE(seen.insert(a.name).second) << a.name;
  EXPECT_THAT(sorted_methods(), ::testing::SizeIs(inverse_methods.size()));
  EXPECT_EQ(sorted_methods().back(), "neumann");
}

}  // namespace
}  // namespace deltaproof
