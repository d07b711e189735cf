// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "deltaproof/number/errors.hpp"

namespace deltaproof {
namespace {

using testing::HasSubstr;

report small(const run_options& options) {
  report r;
  r.answer = options.full ? "At length." : "In short.";
  r.not_claimed = {"Anything else."};
  return r;
}

constexpr study sample{"sample-study", "What is asked?", &small};

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
  options.recordings = "/somewhere";
  options.threads = 7;
  r = run_study(sample, options);
  EXPECT_EQ(r.command, "build/release/deltaproof study sample-study --seed 42 --full --recordings DIR");
  options.recordings = "tests/recordings";
  EXPECT_EQ(run_study(sample, options).command, "build/release/deltaproof study sample-study --seed 42 --full");
  EXPECT_EQ(to_json(r).find("/somewhere"), std::string::npos);
}

TEST(study, of_another_program_says_its_own_command) {
  const study elsewhere{"elsewhere", "Whose command?", [](const run_options& options) {
                          report r = small(options);
                          r.command = "my_study --seed " + std::to_string(options.seed);
                          return r;
                        }};
  EXPECT_EQ(run_study(elsewhere, {}).command, "my_study --seed 1");
}

TEST(study, interrupted_run_says_that_something_is_missing) {
  const std::atomic<bool> interrupted{true};
  run_options options;
  options.interrupted = &interrupted;
  EXPECT_EQ(run_study(sample, options).unfinished.size(), 1U);
}

TEST(study, report_without_limits_is_refused) {
  const study boastful{"boastful", "Is all claimed?", [](const run_options&) {
                         report r;
                         r.answer = "Yes.";
                         return r;
                       }};
  EXPECT_THROW((void)run_study(boastful, {}), domain_error);
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
  try {
    (void)study_named("no-such-study");
    FAIL() << "an unknown name was found";
  } catch (const domain_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("no-such-study"));
    for (const study* s : studies()) EXPECT_THAT(e.what(), HasSubstr(std::string(s->name)));
  }
}

TEST(for_each_index, calls_each_once_on_any_number_of_threads) {
  for (const unsigned threads : {0U, 1U, 2U, 8U}) {
    std::vector<std::atomic<int>> calls(100);
    run_options options;
    options.threads = threads;
    double last = 0;
    options.on_progress = [&](std::string_view stage, double fraction) {
      EXPECT_EQ(stage, "stage");
      EXPECT_GT(fraction, last);
      last = fraction;
    };
    EXPECT_EQ(for_each_index(calls.size(), options, "stage", [&](std::size_t i) { ++calls[i]; }), calls.size());
    for (const auto& n : calls) EXPECT_EQ(n.load(), 1);
    EXPECT_EQ(last, 1);
    EXPECT_EQ(for_each_index(0, options, "stage", [](std::size_t) { FAIL(); }), 0U);
  }
}

TEST(for_each_index, stops_after_a_prefix_when_interrupted) {
  for (const unsigned threads : {1U, 4U}) {
    std::vector<std::atomic<int>> calls(1000);
    std::atomic<bool> interrupted{false};
    run_options options;
    options.threads = threads;
    options.interrupted = &interrupted;
    const std::size_t made = for_each_index(calls.size(), options, "stage", [&](std::size_t i) {
      ++calls[i];
      if (i == 50) interrupted = true;
    });
    EXPECT_GT(made, 50U);
    EXPECT_LE(made, 51U + threads);
    for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i].load(), i < made ? 1 : 0);
  }
}

TEST(for_each_index, throws_on_what_was_thrown) {
  for (const unsigned threads : {1U, 4U}) {
    run_options options;
    options.threads = threads;
    EXPECT_THROW(for_each_index(100, options, "stage",
                                [](std::size_t i) {
                                  if (i == 20) throw std::runtime_error("twenty");
                                }),
                 std::runtime_error);
  }
}

}  // namespace
}  // namespace deltaproof
