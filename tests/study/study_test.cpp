// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "support/study.hpp"

#include <atomic>
#include <ostream>

namespace deltaproof {
namespace {

using ::testing::HasSubstr;

results none(const run_options&) { return {}; }
constexpr std::string_view words = "# What is asked?\n\nIn short.\n\n## What is not claimed\n\n- Anything else.\n";
constexpr study sample{"sample-study", &none, false, words};

TEST(study, run_fills_in_what_makes_it_again) {
  run_options options;
  options.seed = 42;
  report r = run_study(sample, options);
  EXPECT_EQ(r.study, "sample-study");
  EXPECT_EQ(r.question, "What is asked?");
  EXPECT_EQ(r.command, "build/release/deltaproof study sample-study --seed 42");
  EXPECT_EQ(r.parameters.at("seed"), cell(42));
  EXPECT_EQ(r.parameters.at("mode"), cell("quick"));
  EXPECT_TRUE(r.unfinished.empty());
  options.full = true;
  options.threads = 7;
  r = run_study(sample, options);
  EXPECT_EQ(r.command, "build/release/deltaproof study sample-study --seed 42 --full");
}

TEST(study, interrupted_run_says_that_something_is_missing) {
  const std::atomic<bool> interrupted{true};
  run_options options;
  options.interrupted = &interrupted;
  EXPECT_EQ(run_study(sample, options).unfinished.size(), 1U);
}

TEST(study, report_without_limits_is_refused) {
  EXPECT_THROW((void)run_study({"boastful", &none, false, "# Is all claimed?\n\nYes.\n"}, {}), domain_error);
  EXPECT_THROW((void)run_study({"wordless", &none}, {}), domain_error);
}

TEST(study, registry_is_sorted_named_and_asks_questions) {
  std::set<std::string_view> names;
  std::string_view before;
  for (const study* s : studies()) {
    EXPECT_LT(before, s->name);
    before = s->name;
    EXPECT_EQ(s->name.find('_'), std::string_view::npos);
    EXPECT_EQ(question_of(*s).back(), '?');
    EXPECT_EQ(&study_named(s->name), s);
  }
  const std::string refusal = testing::thrown([] { (void)study_named("no-such-study"); });
  EXPECT_THAT(refusal, HasSubstr("no-such-study"));
  for (const study* s : studies()) EXPECT_THAT(refusal, HasSubstr(std::string(s->name)));
}

// What stands in a report that was stopped before it began is proved without it.
TEST(studies, stopped_before_they_begin_say_what_is_missing) {
  const std::atomic<bool> stop{true};
  run_options options;
  options.interrupted = &stop;
  for (const study* s : studies()) {
    const report r = run_study(*s, options);
    EXPECT_FALSE(r.unfinished.empty()) << s->name;
    EXPECT_FALSE(r.answer.empty()) << s->name;
    for (const finding& f : r.findings) EXPECT_EQ(f.kind.kind, evidence_kind::proved) << s->name << ' ' << f.id;
  }
}

struct drawn_study {
  const char* name;
  std::vector<const char*> drawn;  // findings whose numbers are drawn
  std::vector<const char*> exact;  // and some of those that are not
};
void PrintTo(const drawn_study& s, std::ostream* out) { *out << s.name; }
class of_another_seed : public ::testing::TestWithParam<drawn_study> {};

// What a page expects of the values holds for draws other than those of the committed report, and its sentences follow them.
TEST_P(of_another_seed, keeps_what_its_page_expects) {
  run_options options;
  options.threads = 2;
  options.seed = 2;
  const report other = run_study(study_named(GetParam().name), options);
  EXPECT_THAT(other.failed, ::testing::IsEmpty());
  const report committed = reports::committed(GetParam().name);
  const auto said = [](const report& r, const char* id) { return reports::found(r, id).statement; };
  for (const char* id : GetParam().drawn) EXPECT_NE(said(committed, id), said(other, id)) << id;
  for (const char* id : GetParam().exact) EXPECT_EQ(said(committed, id), said(other, id)) << id;
}

INSTANTIATE_TEST_SUITE_P(studies, of_another_seed,
                         ::testing::Values(drawn_study{"efla",
                                                       {"wide-formats", "l1-writes-little", "raw-keys"},
                                                       {"dead-zone", "expm1-error-exhaustive", "eigenvalue-ends"}},
                                           drawn_study{
                                               "gates", {"reset-gates", "model-gates-round-to-one"}, {"limits-found-by-hand"}}),
                         [](const auto& one) {
                           std::string name = one.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace deltaproof
