// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The same question through `answer`, a suite, a replay and a matcher: each gives the same verdict, and a caller that loses one
// option on the way is seen. The page on one problem: tests/study/problem_report_test.cpp. The program and the Python package:
// tests/python/test_verdicts.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "check/invariant_cases.hpp"
#include "deltaproof/check/request.hpp"
#include "deltaproof/check/suite.hpp"
#include "deltaproof/files/view.hpp"
#include "deltaproof/support/write_file.hpp"
#include "deltaproof/testing/trial.hpp"

namespace deltaproof {
namespace {

using namespace deltaproof::testing;

/// A verdict as JSON, without where files lie and which command says it again.
std::string facts(const std::string& text) {
  nlohmann::json j = nlohmann::json::parse(text);
  for (const char* where : {"problem", "result", "notes", "reproduce", "version"}) j.erase(where);
  return j.dump(1);
}
/// Likewise as text.
std::string lines(const std::string& text) {
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("again") && !line.starts_with("note")) out += line + "\n";
  }
  return out;
}

struct option_lost {
  std::string name;
  std::function<void(judging&)> lose;
};
const std::vector<option_lost> every_option{{"false_alarm", [](judging& j) { j.false_alarm = judging{}.false_alarm; }},
                                            {"accuracy", [](judging& j) { j.accuracy.reset(); }},
                                            {"power", [](judging& j) { j.power = true; }},
                                            {"seed", [](judging& j) { j.seed = judging{}.seed; }},
                                            {"max_bits", [](judging& j) { j.max_bits = judging{}.max_bits; }},
                                            {"strict_padding", [](judging& j) { j.strict_padding = false; }}};

/// A way to ask, and what it shows of an answer. `shows`: the options that change it on this question.
struct door {
  std::string name;
  std::function<std::string(const judging&)> ask;
  std::function<std::string(const answered_check&)> expected;
  std::vector<std::string> shows;
};

TEST(doors, one_question_has_one_answer_at_every_door) {
  EXPECT_EQ(emulation_options{}.seed, judging{}.seed);
  const auto folder = std::filesystem::path(::testing::TempDir()) / "doors";
  std::filesystem::create_directories(folder);
  const std::string by = "fla-chunk-gdn";
  const recorded_run made = run_of(gated_problem(16, 1), by);
  const auto files = record(folder / "one", made.given, made.gave);
  notes_list notes;
  const recorded_run run = read_run(files.first, files.second, notes);
  const check_identity identity{.problem_path = files.first.string(),
                                .problem_sha256 = run.problem_sha256,
                                .result_path = files.second.string(),
                                .result_sha256 = run.result_sha256};
  // The plan is not that accurate: without the option the verdict is another.
  const judging asked{
      .false_alarm = 1e-5, .accuracy = 1e-6, .power = false, .seed = 7, .seconds = 30, .max_bits = 512, .strict_padding = true};
  const auto answered = [&](const judging& judge) { return answer(run.given, run.gave, {.plan = by, .judge = judge}, identity); };
  const auto json_of = [](const answered_check& a) { return facts(to_json(a.report, a.identity)); };
  const std::vector<std::string> all{"false_alarm", "accuracy", "power", "seed", "max_bits", "strict_padding"};
  const std::vector<door> doors{
      {"answer", [&](const judging& j) { return json_of(answered(j)); }, json_of, all},
      {"suite",
       [&](const judging& j) {
         suite_options how;
         how.judge = j;
         suite cases{folder / "suite.toml",
                     {{.name = "one", .problem = files.first, .result = files.second, .plan = by, .accuracy = j.accuracy}}};
         return facts(run_suite(cases, how).cases.front().verdict_json);
       },
       json_of, all},
      {"replay",
       [&](const judging& j) {
         const answered_check first = answered(j);
         write_file(folder / "verdict.json", to_json(first.report, first.identity));
         const replayed again = replay(folder / "verdict.json", {}, "1");
         EXPECT_TRUE(again.reproduced);
         return facts(to_json(again.report, again.identity));
       },
       json_of, all},
      {"matcher",
       [&](const judging& j) { return lines(against_plan(run.given, run.gave, by, {.judge = j, .witness = ""}).text); },
       [](const answered_check& a) { return lines(to_text(a.report, a.identity)); },
       {"accuracy", "power"}}};
  const answered_check first = answered(asked);
  EXPECT_EQ(first.report.judged, verdict::refuted);
  for (const door& one : doors) {
    EXPECT_EQ(one.ask(asked), one.expected(first)) << one.name;
    for (const option_lost& option : every_option) {
      if (std::find(one.shows.begin(), one.shows.end(), option.name) == one.shows.end()) continue;
      judging less = asked;
      option.lose(less);
      EXPECT_NE(one.ask(less), one.expected(first)) << one.name << " without " << option.name;
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace deltaproof
