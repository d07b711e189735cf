// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/check/suite.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "deltaproof/check/witness.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/inputs/regimes.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* recurrent = "fla-recurrent-delta";

/// A folder of two problems, each with a result that keeps its plan, and a bad one of the first.
class suites : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("deltaproof-suite-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    for (const std::uint64_t seed : {1U, 2U}) {
      generation g;
      g.tokens = 24;
      g.key_dim = 16;
      g.value_dim = 8;
      g.key_heads = 1;
      g.seed = seed;
      const problem p = generate(g);
      const std::string name(1, seed == 1 ? 'a' : 'b');
      write_problem(folder_ / (name + ".problem.safetensors"), p);
      result r = emulate(p, variants(plan_named(recurrent), p, path_kind::recurrent, 0).front(), {}, 1);
      write_result(folder_ / (name + ".result.safetensors"), r);
      if (seed == 2) continue;
      write_problem(folder_ / "copy.problem.safetensors", p);
      auto values = r.o.to_doubles();
      values[70] = 1.5;
      r.o = tensor::from_doubles(bf16, r.o.shape(), values, "o");
      write_result(folder_ / "bad.result.safetensors", r);
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] suite made(const std::string& toml) const { return parse_suite(toml, folder_ / "suite.toml"); }
  static std::string a_case(const std::string& problem, const std::string& result,
                            const std::string& more = "plan = \"fla-recurrent-delta\"") {
    return "[[case]]\nproblem = \"" + problem + ".problem.safetensors\"\nresult = \"" + result + ".result.safetensors\"\n" +
           more + "\n";
  }
  static suite_options quick() {
    suite_options options;
    options.judge.power = false;
    options.threads = 1;
    return options;
  }
  [[nodiscard]] suite_report judged(const std::string& toml, const suite_options& options = quick()) const {
    return run_suite(made(toml), options);
  }

  fs::path folder_;
};

using suite_text = suites;

TEST_F(suite_text, states_paths_beside_the_file_and_fills_what_is_left_out) {
  const suite s = made(a_case("a", "a", "") +
                       a_case("a", "x/bad", "expect = \"refuted\"\nplan = \"mine.toml\"\naccuracy = 1\nname = \"worse\"") +
                       "[[case]]\nproblem = \"/p\"\nresult = \"/r\"\nno_plan = true\n");
  ASSERT_EQ(s.cases.size(), 3U);
  EXPECT_EQ(s.cases[0].name, "a");
  EXPECT_EQ(s.cases[0].problem, folder_ / "a.problem.safetensors");
  EXPECT_EQ(s.cases[0].expect, verdict::holds);
  EXPECT_TRUE(s.cases[0].plan.empty());
  EXPECT_EQ(s.cases[1].name, "worse");
  EXPECT_EQ(s.cases[1].result, folder_ / "x/bad.result.safetensors");
  EXPECT_EQ(s.cases[1].plan, (folder_ / "mine.toml").string());
  EXPECT_EQ(s.cases[1].expect, verdict::refuted);
  EXPECT_EQ(s.cases[1].accuracy, 1.0);
  EXPECT_EQ(s.cases[2].result, "/r");
  EXPECT_EQ(s.cases[2].expect, verdict::measured);
  EXPECT_EQ(s.cases[1].line, 5U);
}

TEST_F(suite_text, what_is_wrong_is_named_with_its_line) {
  const std::string files = "[[case]]\nproblem = \"p\"\nresult = \"r\"\n";
  const std::pair<std::string, std::string> wrong[] = {
      {"", "no [[case]]"},
      {"case = 3\n", "sections"},
      {"case = []\n", "sections"},
      {"case = [3]\n", "sections"},
      {"[[cases]]\n", "did you mean \"case\""},
      {"[[case]\n", "not valid TOML"},
      {"[[case]]\nresult = \"r\"\n", "has no key problem"},
      {"[[case]]\nproblem = \"p\"\n", "has no key result"},
      {files + "plam = \"x\"\n", "line 4: there is no key \"plam\"; did you mean \"plan\""},
      {files + "plan = 3\n", "plan must be text"},
      {files + "plan = \"\"\n", "plan is empty"},
      {files + "expect = \"hold\"\n", "did you mean \"holds\""},
      {files + "expect = \"measured\"\n", "no_plan"},
      {files + "expect = \"holds\"\nno_plan = true\n", "is never judged \"holds\""},
      {files + "no_plan = \"yes\"\n", "true or false"},
      {files + "no_plan = true\nplan = \"fp32\"\n", "give one of them"},
      {files + "no_plan = true\naccuracy = 1\n", "remove one of them"},
      {files + "accuracy = \"1\"\n", "accuracy must be a number"},
      {files + "accuracy = 0\n", "accuracy must be a number"},
      {files + "accuracy = nan\n", "accuracy must be a number"},
      {files + files, "line 4: two cases are called \"r\", the first in line 1"},
  };
  for (const auto& [text, says] : wrong) {
    try {
      (void)made(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const format_error& e) {
      EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("suite.toml"), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW((void)read_suite(folder_ / "none.toml"), format_error);
  EXPECT_THROW((void)read_suite(folder_), format_error);
}

TEST_F(suites, a_case_counts_by_its_expectation) {
  const auto counts = [](verdict judged, verdict expected) {
    case_report c;
    c.state = case_state::judged;
    c.judged = judged;
    c.what.expect = expected;
    return c.counts_as();
  };
  EXPECT_EQ(counts(verdict::holds, verdict::holds), verdict::holds);
  EXPECT_EQ(counts(verdict::refuted, verdict::refuted), verdict::holds);
  EXPECT_EQ(counts(verdict::vacuous, verdict::vacuous), verdict::holds);
  EXPECT_EQ(counts(verdict::holds, verdict::refuted), verdict::refuted);
  EXPECT_EQ(counts(verdict::measured, verdict::refuted), verdict::refuted);
  EXPECT_EQ(counts(verdict::undecided, verdict::refuted), verdict::undecided);
  EXPECT_EQ(counts(verdict::vacuous, verdict::holds), verdict::vacuous);
  EXPECT_EQ(counts(verdict::refuted, verdict::undecided), verdict::refuted);
}

TEST_F(suites, expectations_decide_and_the_oracle_is_asked_once_a_problem) {
  const std::string bad = "plan = \"fla-recurrent-delta\"\n";
  const suite_report met = judged(a_case("a", "a") + a_case("copy", "bad", bad + "expect = \"refuted\"") + a_case("b", "b") +
                                  a_case("a", "a", "name = \"measured\"\nno_plan = true"));
  EXPECT_EQ(met.judged, verdict::holds);
  EXPECT_EQ(met.unexpected(), 0U);
  EXPECT_EQ(met.problems, 2U);
  EXPECT_EQ(met.solved, 2U);
  EXPECT_EQ(met.cases[1].judged, verdict::refuted);
  EXPECT_EQ(met.cases[3].judged, verdict::measured);
  EXPECT_TRUE(met.cases[3].shares.empty());

  const suite_report unmet = judged(a_case("a", "bad") + a_case("b", "b"));
  EXPECT_EQ(unmet.judged, verdict::refuted);
  EXPECT_EQ(unmet.unexpected(), 1U);
  EXPECT_EQ(judged(a_case("a", "a", bad + "expect = \"refuted\"")).judged, verdict::refuted);
  EXPECT_EQ(judged(a_case("a", "a", bad + "accuracy = 1e-9")).judged, verdict::refuted);
}

TEST_F(suites, a_case_is_judged_as_check_judges_it_alone) {
  suite_options options;
  options.threads = 3;
  options.version = "1";
  options.reproduce = [](const suite_case& c) { return "check " + c.name; };
  const suite_report r = judged(a_case("a", "bad") + a_case("a", "a") + a_case("b", "b"), options);
  const json views = json::parse(to_json(r));
  EXPECT_EQ(views["schema"], "deltaproof.suite/1");
  for (std::size_t i = 0; i < r.cases.size(); ++i) {
    const suite_case& c = r.cases[i].what;
    check_identity identity;
    const safetensors_file problem_file = read_safetensors(c.problem), result_file = read_safetensors(c.result);
    const problem p = parse_problem(problem_file, identity.notes);
    const result got = parse_result(result_file, p, sha256_hex(problem_file.bytes()), identity.notes);
    identity.version = "1";
    identity.problem_path = c.problem.string();
    identity.problem_sha256 = sha256_hex(problem_file.bytes());
    identity.result_path = c.result.string();
    identity.result_sha256 = sha256_hex(result_file.bytes());
    identity.kernel = got.kernel;
    identity.producer = got.producer;
    identity.path = "recurrent";
    identity.reproduce = "check " + c.name;
    check_options how;
    how.plans.push_back(plan_named(recurrent));
    identity.record.emplace();
    identity.record->plans.push_back(source_of(recurrent));
    how.threads = 1;
    EXPECT_EQ(views["cases"][i]["report"], json::parse(to_json(check(p, got, how), identity))) << c.name;
  }
  EXPECT_NE(to_text(r).find("BAD   bad"), std::string::npos) << to_text(r);
  EXPECT_NE(to_markdown(r).find("| ok | b | holds |"), std::string::npos) << to_markdown(r);
}

TEST_F(suite_text, a_result_by_a_further_plan_has_a_name_of_its_own) {
  const suite s =
      made(a_case("a", "a") + a_case("a", "a", "plan = \"fp32\"") + a_case("a", "a", "no_plan = true") + a_case("a", "a", ""));
  std::vector<std::string> names;
  for (const suite_case& c : s.cases) names.push_back(c.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "a (fp32)", "a (no plan)", "a (its kernel's plan)"}));
  EXPECT_THROW((void)made(a_case("a", "a") + a_case("a", "a")), format_error) << "the same question twice";
  EXPECT_THROW((void)made(a_case("a", "a", "name = \"x\"") + a_case("a", "a", "name = \"x\"\nplan = \"fp32\"")), format_error);
}

TEST_F(suites, what_cannot_be_judged_fails_alone) {
  std::ofstream(folder_ / "cut.result.safetensors") << "cut";
  const std::string toml = a_case("a", "a") + a_case("none", "b") + a_case("a", "gone") + a_case("a", "cut") +
                           a_case("b", "b", "name = \"unlisted\"") +
                           a_case("b", "b", "name = \"chunks\"\nplan = \"fla-chunk-delta\"");
  suite_options options = quick();
  std::size_t reported = 0;
  options.progress = [&](std::size_t done, std::size_t all) {
    EXPECT_EQ(all, 1U);
    reported = done;
  };
  const suite_report r = judged(toml, options);
  EXPECT_EQ(reported, 1U);
  EXPECT_EQ(r.cases[0].judged, verdict::holds);
  EXPECT_EQ(r.cases[0].state, case_state::judged);
  EXPECT_EQ(r.count(case_state::failed), 5U);
  EXPECT_EQ(r.judged, verdict::undecided);
  const std::string says[] = {"", "none.problem", "gone.result", "cut.result", "no preset lists", "fla-chunk-delta"};
  const json views = json::parse(to_json(r));
  for (std::size_t i = 1; i < r.cases.size(); ++i) {
    EXPECT_EQ(r.cases[i].state, case_state::failed);
    EXPECT_NE(r.cases[i].reason.find(says[i]), std::string::npos) << r.cases[i].reason;
    EXPECT_EQ(r.cases[i].reason.find("--skip-missing") != std::string::npos, i == 2) << r.cases[i].reason;
    EXPECT_EQ(views["cases"][i]["state"], "failed");
    EXPECT_EQ(views["cases"][i]["reason"], r.cases[i].reason);
    EXPECT_TRUE(views["cases"][i]["report"].is_null());
  }
  EXPECT_NE(r.cases[4].reason.find("or measure errors only with no_plan = true"), std::string::npos) << r.cases[4].reason;
  EXPECT_NE(to_text(r).find("error cut "), std::string::npos) << to_text(r);
  EXPECT_NE(to_markdown(r).find("| error | cut | no answer |"), std::string::npos) << to_markdown(r);

  // What was judged then and cannot be now is a verdict that changed, and back.
  const std::string then =
      to_json(judged(a_case("a", "a") + a_case("a", "bad", "name = \"cut\"\nplan = \"fla-recurrent-delta\"")));
  const suite_drift lost = compare_baseline(r, then, "then.json");
  ASSERT_EQ(lost.verdicts.size(), 1U);
  EXPECT_EQ(lost.verdicts[0].name + lost.verdicts[0].then + lost.verdicts[0].now, "cutrefutedno answer");
  EXPECT_EQ(compare_baseline(judged(a_case("b", "b", "name = \"cut\"\nplan = \"fla-recurrent-delta\"")), to_json(r), "r.json")
                .verdicts.size(),
            1U);

  options = quick();
  options.skip_missing = true;
  const suite_report some = judged(a_case("a", "a") + a_case("a", "gone"), options);
  EXPECT_EQ(some.judged, verdict::holds);
  EXPECT_EQ(some.count(case_state::skipped), 1U);
  EXPECT_EQ(judged(a_case("a", "gone"), options).judged, verdict::vacuous);
  const suite_report none = judged(a_case("none", "gone"), options);
  EXPECT_EQ(none.count(case_state::failed), 1U) << "a missing problem is never skipped";
  EXPECT_EQ(judged(a_case("none", "gone")).cases[0].reason, none.cases[0].reason) << "so nobody is told that it may be";
  EXPECT_EQ(none.cases[0].reason.find("--skip-missing"), std::string::npos) << none.cases[0].reason;
}

TEST_F(suites, a_stop_keeps_what_is_done) {
  std::atomic<bool> stop{false};
  suite_options options = quick();
  options.stop = &stop;
  options.progress = [&](std::size_t done, std::size_t all) {
    EXPECT_EQ(all, 3U);
    if (done == 1) stop = true;
  };
  const suite_report r = judged(a_case("a", "a") + a_case("b", "b") +
                                    a_case("b", "b", "plan = \"fla-recurrent-delta\"\nname = \"last\"\nexpect = \"undecided\""),
                                options);
  EXPECT_EQ(r.cases[0].judged, verdict::holds);
  EXPECT_EQ(r.count(case_state::judged), 1U);
  EXPECT_EQ(r.count(case_state::stopped), 2U);
  EXPECT_FALSE(r.cases[2].as_expected()) << "nobody judged it";
  EXPECT_EQ(r.judged, verdict::undecided);
  const json views = json::parse(to_json(r));
  EXPECT_EQ(views["cases"][1]["verdict"], "undecided");
  EXPECT_TRUE(views["cases"][1]["report"].is_null());
}

TEST_F(suites, a_baseline_shows_what_moved_and_decides_nothing) {
  const std::string plan = "plan = \"fla-recurrent-delta\"\n";
  const suite_report then =
      judged(a_case("a", "a", plan + "name = \"moves\"") + a_case("b", "b") + a_case("a", "a", plan + "name = \"gone\""));
  const std::string old = to_json(then);
  const suite_drift same = compare_baseline(then, old, "old.json");
  EXPECT_EQ(same.compared, 18U) << "rms, max and tiles of o and final_state, three times";
  EXPECT_TRUE(same.drawn_then.empty());
  EXPECT_TRUE(same.shares.empty() && same.verdicts.empty() && same.added.empty() && same.gone.empty() &&
              same.other_inputs.empty());

  suite_report now = judged(a_case("a", "bad", plan + "name = \"moves\"\nexpect = \"refuted\"") + a_case("b", "b") +
                            a_case("b", "b", plan + "name = \"new\""));
  const suite_drift moved = compare_baseline(now, old, "old.json");
  ASSERT_FALSE(moved.shares.empty());
  for (const auto& m : moved.shares) {
    EXPECT_EQ(m.name, "moves");
    EXPECT_EQ(m.now.tensor, "o") << "the state is as before";
    EXPECT_GT(m.now.share, m.then.share);
    EXPECT_LE(m.then.share, 1);
  }
  ASSERT_EQ(moved.verdicts.size(), 1U);
  EXPECT_EQ(moved.verdicts[0].then + moved.verdicts[0].now, "holdsrefuted");
  EXPECT_EQ(moved.added, std::vector<std::string>{"new"});
  EXPECT_EQ(moved.gone, std::vector<std::string>{"gone"});

  const verdict before = now.judged;
  now.drift = moved;
  EXPECT_EQ(now.judged, before);
  EXPECT_EQ(before, verdict::holds);
  EXPECT_EQ(json::parse(to_json(now))["baseline"]["drift"].size(), moved.shares.size());
  EXPECT_NE(to_text(now).find("drift    moves o "), std::string::npos) << to_text(now);

  suite_options seeded = quick();
  seeded.judge.seed = 5;
  const suite_drift otherwise = compare_baseline(judged(a_case("b", "b"), seeded), old, "old.json");
  EXPECT_NE(otherwise.drawn_then.find("seed 1"), std::string::npos);
  EXPECT_EQ(otherwise.compared, 0U) << "ratios to limits that were drawn otherwise say nothing";
  EXPECT_TRUE(otherwise.verdicts.empty());
  // Hashes say what is another file; they are inside the verdicts of older baselines.
  EXPECT_EQ(moved.other_results, std::vector<std::string>{"moves"});
  json older = json::parse(old);
  for (json& c : older["cases"]) {
    c.erase("result_sha256");
    c.erase("plan_sha256");
  }
  older["drawn"] = older["drawn"].get<std::string>() + "9";
  EXPECT_EQ(compare_baseline(now, older.dump(), "old.json").other_results, std::vector<std::string>{"moves"});
  EXPECT_EQ(compare_baseline(now, older.dump(), "old.json").compared, moved.compared) << "another version is no other question";
  const suite_drift by_plan = compare_baseline(judged(a_case("b", "b", "plan = \"fp32\"")), old, "old.json");
  EXPECT_EQ(by_plan.other_plans, std::vector<std::string>{"b"});
  EXPECT_EQ(by_plan.compared, 0U);
  const suite_report other = judged(a_case("b", "b", plan + "name = \"moves\""));
  EXPECT_EQ(compare_baseline(other, old, "old.json").other_inputs, std::vector<std::string>{"moves"});
  for (const char* wrong :
       {"", "[]", "{}", "{\"schema\": \"deltaproof.verdict/1\", \"cases\": []}", "{\"schema\": \"deltaproof.suite/1\"}",
        "{\"schema\": \"deltaproof.suite/1\", \"cases\": [{\"name\": 1}]}"}) {
    EXPECT_THROW((void)compare_baseline(now, wrong, "old.json"), format_error) << wrong;
  }
}

}  // namespace
}  // namespace deltaproof
