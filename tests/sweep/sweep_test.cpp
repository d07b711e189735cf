// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Campaigns, their keys, shards and results, without the program: workers are shell scripts where one is needed.
#include "deltaproof/sweep/sweep.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "deltaproof/support/read_file.hpp"
#include "deltaproof/support/write_file.hpp"
#include "deltaproof/sweep/merge.hpp"

namespace deltaproof {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

constexpr std::string_view small = R"(
kind = "regimes"
[axes]
plan = "fp32"
regime = ["typical", "tails"]
op = "delta_rule"
T = [8, 12]
K = 8
V = 4
H = 1
HV = 1
seed = { from = 1, to = 5 }
[judging]
power = false
)";

/// An empty folder that is gone with the test.
class sweep_tests : public testing::Test {
 protected:
  void SetUp() override { folder_ = new_folder_beside(std::filesystem::temp_directory_path() / "sweep"); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] sweep_folder folder(const std::string& name = "results") const { return sweep_folder(folder_ / name); }
  [[nodiscard]] std::filesystem::path path() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

campaign campaign_of(std::string_view text, const std::string& build = "a") { return parse_campaign(text, "c.toml", build); }

/// Every task that `shard` has, run here.
void run_here(const campaign& c, const sweep_folder& to, sweep_shard shard = {}) {
  to.open(c);
  for (std::uint64_t i = shard.index; i < c.count(); i += shard.count) {
    const sweep_task t = c.task(i);
    to.keep(t.key, run_task(c, t).value());
  }
}

std::string refused(std::string_view text) {
  try {
    (void)campaign_of(text);
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

TEST_F(sweep_tests, tasks_are_all_combinations_each_once) {
  const campaign c = campaign_of(small);
  ASSERT_EQ(c.count(), 20U);
  std::set<std::string> keys, lines;
  for (std::uint64_t i = 0; i < c.count(); ++i) {
    keys.insert(c.task(i).key);
    lines.insert(c.task(i).line);
  }
  EXPECT_THAT(keys, SizeIs(20));
  EXPECT_THAT(lines, SizeIs(20));
  EXPECT_EQ(c.task(0).line, "regimes plan=fp32 regime=typical op=delta_rule T=8 K=8 V=4 H=1 HV=1 seed=1 --no-power");
  EXPECT_EQ(c.task(19).on("seed"), "5");
  EXPECT_THROW((void)c.task(20), domain_error);
}

TEST_F(sweep_tests, a_key_is_of_build_line_plan_text_and_nothing_else) {
  const std::string key = campaign_of(small).task(3).key;
  EXPECT_EQ(campaign_of("# another text\n" + std::string(small)).task(3).key, key);
  EXPECT_NE(campaign_of(small, "b").task(3).key, key);
  EXPECT_NE(campaign_of(small).task(4).key, key);
  std::string strict(small);
  strict += "max_bits = 256\n";
  EXPECT_NE(campaign_of(strict).task(3).key, key);
  std::string own(small);
  own.replace(own.find("\"fp32\""), 6, "\"my.toml\"");
  std::string text(plan_text("fp32"));
  const std::string first = parse_campaign(own, "c.toml", "a", {{{"my.toml", text}}}).task(0).key;
  EXPECT_EQ(parse_campaign(own, "elsewhere/d.toml", "a", {{{"my.toml", text}}}).task(0).key, first);
  EXPECT_NE(parse_campaign(own, "c.toml", "a", {{{"my.toml", text + "# changed\n"}}}).task(0).key, first);
}

TEST_F(sweep_tests, what_is_wrong_in_a_campaign_is_said_with_its_line) {
  EXPECT_THAT(refused("[axes]\nplan = \"fp32\"\n"), HasSubstr("it states no kind"));
  EXPECT_THAT(refused("kind = \"regime\"\n"), HasSubstr("did you mean \"regimes\""));
  EXPECT_THAT(refused("kind = \"regimes\"\n[axes]\nplan = \"fp33\"\nregime = \"typical\"\n"),
              HasSubstr("line 3: plan = \"fp33\" is not a valid value"));
  EXPECT_THAT(refused("kind = \"regimes\"\n[axes]\nplan = \"fp32\"\n"), HasSubstr("[axes] states no regime"));
  EXPECT_THAT(
      refused("kind = \"regimes\"\n[axes]\nplan = \"fp32\"\nregime = \"all\"\nfault = \"all\"\n"),
      HasSubstr("line 5: there is no key \"fault\" in [axes] where kind is \"regimes\", only where it is \"mutants\"; choose "
                "from plan, "));
  EXPECT_THAT(refused("kind = \"regimes\"\n[axes]\nplan = \"fp32\"\nregime = \"all\"\nseed = { from = 3, to = 2 }\n"),
              HasSubstr("line 5: seed must be"));
  EXPECT_THAT(refused("kind = \"regimes\"\n[axes]\nplan = \"fp32\"\nregime = [\"tails\", \"tails\"]\n"), HasSubstr("twice"));
  EXPECT_THAT(refused("kind = \"regimes\"\n[axes]\nplan = \"fp32\"\nregime = \"all\"\nT = [-1]\n"),
              HasSubstr("line 5: T must be an integer, 0 or more, or a list of them"));
  EXPECT_THAT(refused("kind = \"regimes\"\n[axes]\nplan = \"fp32\"\nregime = \"all\"\n[judging]\nfalse_alarm = 2\n"),
              HasSubstr("line 6: the false-alarm probability is 2; use a number within [1e-12, 0.1]"));
  const std::string regimes = "kind = \"regimes\"\n[axes]\nplan = \"fp32\"\nregime = \"all\"\n";
  EXPECT_THAT(refused(regimes + "beta = \"0.5\"\n"), HasSubstr(", or a number without quotes"));
  EXPECT_THAT(refused(regimes + "against = \"mine.tml\"\n"), HasSubstr(", or a file ending in .toml"));
  EXPECT_THAT(refused(regimes + "seed = -1\n"), HasSubstr("seed must be an integer, 0 or more, or a list of them, or { from"));
  EXPECT_THAT(refused("kind = \"regimes\"\n[axes]\nplan = \"fp32\"\nregime = []\n"),
              EndsWith("regime is an empty list; give a value"));
  EXPECT_THAT(refused(regimes + "[judging]\nmax_bits = 20\n"),
              HasSubstr("(max_bits) is 20 bits; use a number within [53, 1024]"));
  EXPECT_THAT(refused(regimes + "[judging]\nbecause = \"x\"\nmax_error = \"o:foo=1\"\n"),
              HasSubstr("line 7: max_error = \"o:foo=1\": there is no metric 'foo'; write [TENSOR:]METRIC=E"));
  EXPECT_THAT(refused("expect = \"measured\"\n" + regimes), HasSubstr("is not a valid value; choose from holds, "));
  EXPECT_THAT(refused("kind = \"recordings\"\n"), HasSubstr("[[case]]"));
  EXPECT_THAT(refused("kind = \"regimes\"\n[axes\n"), HasSubstr("c.toml: line 2: not valid TOML"));
}

TEST_F(sweep_tests, a_seal_breaks_with_any_byte) {
  const std::string text = sealed(task_schema, R"({"key":"k"})");
  EXPECT_EQ(unsealed(task_schema, text), R"({"key":"k"})");
  EXPECT_FALSE(unsealed(tries_schema, text));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(unsealed(task_schema, changed)) << i;
    EXPECT_FALSE(unsealed(task_schema, text.substr(0, i))) << i;
  }
  EXPECT_FALSE(unsealed(task_schema, text + "\n"));
}

TEST_F(sweep_tests, shards_cover_everything_once) {
  EXPECT_EQ(parse_shard("3/40").index, 2U);
  for (const char* const wrong : {"0/4", "5/4", "1", "/4", "1/", "a/b", "-1/4", "1/4/5", ""})
    EXPECT_THROW((void)parse_shard(wrong), format_error) << wrong;
  const auto from = [](const std::map<std::string, std::string>& set, std::optional<std::uint64_t> count = {}) {
    return shard_of_environment(count, [&set](const char* name) {
      const auto found = set.find(name);
      return found == set.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_FALSE(from({}));
  EXPECT_EQ(from({{"GTEST_TOTAL_SHARDS", "4"}, {"GTEST_SHARD_INDEX", "3"}})->index, 3U);
  EXPECT_THROW((void)from({{"TEST_TOTAL_SHARDS", "4"}}), format_error);
  EXPECT_THROW((void)from({{"TEST_TOTAL_SHARDS", "4"}, {"TEST_SHARD_INDEX", "4"}}), format_error);
  EXPECT_EQ(from({{"JOB_COMPLETION_INDEX", "2"}}, 5)->count, 5U);
  EXPECT_THROW((void)from({{"JOB_COMPLETION_INDEX", "2"}}), format_error);
  EXPECT_THROW((void)from({{"JOB_COMPLETION_INDEX", "2"}}, 2), format_error);
  std::map<std::string, std::string> slurm{{"SLURM_ARRAY_TASK_MIN", "2"},
                                           {"SLURM_ARRAY_TASK_MAX", "8"},
                                           {"SLURM_ARRAY_TASK_STEP", "3"},
                                           {"SLURM_ARRAY_TASK_COUNT", "3"}};
  std::set<std::uint64_t> seen;
  for (const char* const id : {"2", "5", "8"}) {
    slurm["SLURM_ARRAY_TASK_ID"] = id;
    EXPECT_EQ(from(slurm)->count, 3U);
    seen.insert(from(slurm)->index);
  }
  EXPECT_EQ(seen, (std::set<std::uint64_t>{0, 1, 2}));
  slurm["SLURM_ARRAY_TASK_ID"] = "4";
  EXPECT_THROW((void)from(slurm), format_error);
  slurm["SLURM_ARRAY_TASK_ID"] = "5";
  slurm["SLURM_ARRAY_TASK_COUNT"] = "2";  // --array=2,8 has a gap
  EXPECT_THROW((void)from(slurm), format_error);
}

TEST_F(sweep_tests, shards_in_any_order_merge_to_the_same_bytes) {
  const campaign c = campaign_of(small);
  run_here(c, folder("whole"));
  const std::string whole = to_json(merge_sweep(folder("whole"), "a"));
  for (const std::uint64_t part : {6U, 0U, 3U, 3U, 1U, 2U, 5U, 4U}) run_here(c, folder("parts"), {part, 7});
  EXPECT_EQ(to_json(merge_sweep(folder("parts"), "a")), whole);
  const sweep_report report = merge_sweep(folder("whole"), "a");
  EXPECT_EQ(report.counts.judged(), 20U);
  EXPECT_EQ(report.exit_code(), 0) << to_text(report);
}

TEST_F(sweep_tests, missing_damaged_and_foreign_results_are_named) {
  const campaign c = campaign_of(small);
  run_here(c, folder());
  const std::string key = c.task(7).key, whole = read_file(folder().file_of(key), verdict_limit);
  std::filesystem::remove(folder().file_of(key));
  sweep_report report = merge_sweep(folder(), "a");
  ASSERT_THAT(report.missing, SizeIs(1));
  EXPECT_EQ(report.missing[0].what.line, c.task(7).line);
  EXPECT_EQ(report.exit_code(), 3);

  write_file(folder().file_of(key), whole.substr(0, whole.size() / 2));
  EXPECT_EQ(folder().look(c, key), sweep_folder::state::damaged);
  EXPECT_THAT(merge_sweep(folder(), "a").missing[0].reason, HasSubstr(key));

  // A result of one task under the name of another.
  write_file(folder().file_of(key), read_file(folder().file_of(c.task(8).key), verdict_limit));
  EXPECT_EQ(folder().look(c, key), sweep_folder::state::damaged);

  const campaign other = campaign_of(small, "b");
  const std::string foreign = other.task(0).key;
  folder().keep(foreign, run_task(other, other.task(0)).value());
  try {
    (void)merge_sweep(folder(), "a");
    FAIL() << "a result of another build is merged";
  } catch (const format_error& e) {
    EXPECT_THAT(e.what(), HasSubstr(foreign));
  }
  EXPECT_THROW(folder().open(other), format_error);
  EXPECT_THROW((void)merge_sweep(folder(), "b"), format_error);
}

TEST_F(sweep_tests, planted_faults_that_are_seen_are_as_expected) {
  const campaign c = campaign_of(R"(
kind = "mutants"
[axes]
plan = "fp32"
fault = ["scale-missing", "gate-sign"]
regime = "typical"
op = "delta_rule"
T = 40
K = 8
V = 4
H = 1
HV = 1
)");
  run_here(c, folder());
  const sweep_report report = merge_sweep(folder(), "a");
  EXPECT_EQ(report.counts.refuted, 1U) << to_text(report);
  EXPECT_EQ(report.counts.unexpected, 0U);
}

TEST_F(sweep_tests, what_is_expected_is_what_the_campaign_says_now) {
  run_here(campaign_of("expect = \"refuted\"\n" + std::string(small)), folder());
  EXPECT_EQ(merge_sweep(folder(), "a").counts.unexpected, 20U);
  EXPECT_THAT(to_text(merge_sweep(folder(), "a")), HasSubstr(": holds (expected refuted), "));
  folder().open(campaign_of(small));
  EXPECT_EQ(merge_sweep(folder(), "a").counts.unexpected, 0U);
}

/// A worker that keeps an empty judgement of every task but the one whose index is `fatal`, which ends it.
std::vector<std::string> script(const std::filesystem::path& at, const std::string& fatal) {
  std::ofstream(at) << "echo ready\nwhile read -r index key; do\n  [ \"$index\" = " << fatal
                    << " ] && kill -9 $$\n  cp \"$1/$index\" \"$2/tasks/$(echo \"$key\" | cut -c1-2)/$key.json\"\n  echo \"$key "
                       "judged\"\ndone\n";
  return {"sh", at.string(), (at.parent_path() / "made").string(), (at.parent_path() / "results").string()};
}

/// What a `script` of `c` keeps: the judgement of every task, and the folders of its results.
void make_results(const campaign& c, const std::filesystem::path& made, const sweep_folder& results) {
  std::filesystem::create_directories(made);
  for (std::uint64_t i = 0; i < c.count(); ++i) {
    const sweep_task t = c.task(i);
    write_file(made / std::to_string(i), sealed(task_schema, run_task(c, t).value()));
    std::filesystem::create_directories(results.file_of(t.key).parent_path());
  }
}

TEST_F(sweep_tests, a_task_that_ends_its_process_is_lost_and_no_other) {
  const campaign c = campaign_of(small);
  make_results(c, path() / "made", folder());
  sweep_options options;
  options.threads = 2;
  options.worker = script(path() / "worker.sh", "4");
  const sweep_outcome first = run_sweep(c, folder(), options);
  EXPECT_EQ(first.ran, 19U);
  ASSERT_THAT(first.lost, SizeIs(1));
  EXPECT_EQ(first.lost[0].index, 4U);
  EXPECT_EQ(folder().tries(c.task(4).key), (std::vector<std::string>(3, "signal 9 (Killed)")));
  const sweep_report report = merge_sweep(folder(), "a");
  ASSERT_THAT(report.lost, SizeIs(1));
  EXPECT_THAT(report.lost[0].command, HasSubstr("deltaproof gen --regime typical"));
  EXPECT_EQ(report.exit_code(), 3);
  // It is not begun a fourth time, until its tries are forgotten: by what the merged report says, too.
  EXPECT_EQ(run_sweep(c, folder(), options).ran, 0U);
  const std::string tries = "tries/" + c.task(4).key + ".json";
  EXPECT_THAT(report.lost[0].reason, HasSubstr("remove " + tries + " from the folder of results, then run the sweep again"));
  EXPECT_TRUE(std::filesystem::remove(folder().path() / tries));
  options.worker = script(path() / "worker.sh", "none");
  EXPECT_EQ(run_sweep(c, folder(), options).ran, 1U);
  EXPECT_EQ(merge_sweep(folder(), "a").exit_code(), 0);
}

TEST_F(sweep_tests, a_worker_that_is_killed_while_it_starts_is_started_again) {
  const campaign c = campaign_of(small);
  make_results(c, path() / "made", folder());
  // The first two workers are killed before they say that they are ready.
  const std::vector<std::string> works = script(path() / "worker.sh", "none");
  std::ofstream(path() / "starts.sh")
      << "mkdir \"$3/first\" 2>/dev/null && kill -9 $$\nmkdir \"$3/second\" 2>/dev/null && kill -9 $$\n. " << works[1] << "\n";
  sweep_options options;
  options.threads = 2;
  options.worker = {"sh", (path() / "starts.sh").string(), works[2], works[3], path().string()};
  EXPECT_EQ(run_sweep(c, folder(), options).ran, 20U);
  EXPECT_FALSE(std::filesystem::exists(folder().path() / "tries"));
  EXPECT_EQ(merge_sweep(folder(), "a").exit_code(), 0);
}

TEST_F(sweep_tests, that_are_stopped_at_once_leave_every_task) {
  const campaign c = campaign_of(small);
  const std::atomic<bool> stop = true;
  sweep_options options;
  options.worker = {"false"};
  options.stop = &stop;
  EXPECT_EQ(run_sweep(c, folder(), options).left, 20U);
  options.shard = {2, 7};
  const sweep_outcome part = run_sweep(c, folder(), options);
  EXPECT_EQ(part.left, 3U);
  EXPECT_EQ(part.tasks, 3U);
}

TEST_F(sweep_tests, workers_that_do_not_start_lose_nothing) {
  const campaign c = campaign_of(small);
  sweep_options options;
  options.worker = {"false"};
  EXPECT_THROW((void)run_sweep(c, folder(), options), format_error);
  options.worker = {"sh", "-c", "kill -9 $$"};  // every one, which ends after some tries
  EXPECT_THROW((void)run_sweep(c, folder(), options), format_error);
  options.worker = {"/there/is/no/such/program"};
  EXPECT_THROW((void)run_sweep(c, folder(), options), format_error);
  EXPECT_FALSE(std::filesystem::exists(folder().path() / "tries"));
}

TEST_F(sweep_tests, drift_names_what_changed) {
  const campaign c = campaign_of(small);
  run_here(c, folder());
  sweep_report report = merge_sweep(folder(), "a");
  std::string then = to_json(report);
  add_drift(report, then, "then.json");
  EXPECT_THAT(report.drift[0], HasSubstr("0 outcomes changed, 0 of 20 error-to-limit ratios changed, 0 tasks added, 0 gone"));
  then.replace(then.rfind("\"holds\""), 7, "\"refuted\"");
  add_drift(report, then, "then.json");
  ASSERT_THAT(report.drift, SizeIs(2));
  EXPECT_THAT(report.drift[1], HasSubstr("refuted -> holds"));
  EXPECT_THROW(add_drift(report, "{}", "then.json"), format_error);
}

}  // namespace
}  // namespace deltaproof
