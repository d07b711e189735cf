// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Searches: their campaigns, the points that are proposed, and the scores of these as tasks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "deltaproof/support/write_file.hpp"
#include "deltaproof/sweep/merge.hpp"
#include "deltaproof/sweep/sweep.hpp"

namespace deltaproof {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

std::string search_of(const std::string& goal, const std::string& plan = "neumann-64", const std::string& more = "") {
  return "kind = \"search\"\n[axes]\nplan = \"" + plan + "\"\nop = \"gated_delta_rule\"\nK = 16\nV = 8\nH = 1\nHV = 1\n" + more +
         "[search]\ngoal = \"" + goal +
         "\"\ngenerations = 2\n[space]\nT = [16, 64]\ncosine = [0, 1]\nbeta_logit = [-8, 8]\ngate_log = [-9, 0]\n";
}

campaign parsed(const std::string& text) { return parse_campaign(text, "c.toml", "a"); }

std::string refusal(const std::string& text) {
  try {
    (void)parsed(text);
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

constexpr const char* easy = "T=64,cosine=0,beta_logit=0,gate_log=-3";
constexpr const char* hard = "T=64,cosine=1,beta_logit=8,gate_log=-9";

json result_of(campaign c, const char* point) {
  c.propose("search", point);
  return json::parse(run_task(c, c.task(0)).value());
}
double score_of(const json& result) {
  const json& share = result.at("score").at("share");
  return share.is_number() ? share.get<double>() : HUGE_VAL;
}

TEST(searches, have_the_tasks_that_were_proposed) {
  campaign c = parsed(search_of("error"));
  EXPECT_EQ(c.count(), 0U);
  c.propose("search", easy);
  c.propose("random", hard);
  c.propose("search", easy);  // there already
  ASSERT_EQ(c.count(), 2U);
  const sweep_task t = c.task(1);
  EXPECT_EQ(t.on("T"), "64");
  EXPECT_EQ(t.on("regime"), "law");
  EXPECT_EQ(t.on("law"), "cosine=1,beta_logit=8,gate_log=-9");
  EXPECT_THAT(t.line, HasSubstr("point=" + std::string(hard)));
  EXPECT_THAT(command_of(c, t),
              HasSubstr("deltaproof gen --regime law --op gated_delta_rule --law cosine=1,beta_logit=8,gate_log=-9"));
  EXPECT_NE(parsed(search_of("intermediate")).text, c.text);
  campaign other = parsed(search_of("intermediate"));
  other.propose("search", easy);
  EXPECT_NE(other.task(0).key, c.task(0).key);
}

TEST(searches, take_no_point_outside_their_space) {
  campaign c = parsed(search_of("error"));
  for (const char* const point : {"", "T=64", "T=64,cosine=0,beta_logit=0,gate_log=-3,", "T=65,cosine=0,beta_logit=0,gate_log=-3",
                                  "T=16.5,cosine=0,beta_logit=0,gate_log=-3", "T=64,cosine=nan,beta_logit=0,gate_log=-3",
                                  "cosine=0,T=64,beta_logit=0,gate_log=-3", "T=64,cosine=0,beta_logit=0,gate_log=-3,flip=1",
                                  "T=64,cosine=0,beta_logit=0,gate_log=x"}) {
    EXPECT_THROW(c.propose("search", point), format_error) << point;
  }
  EXPECT_THROW(c.propose("chance", easy), format_error);
  EXPECT_EQ(c.count(), 0U);
}

TEST(searches, score_what_the_goal_says) {
  const json good = result_of(parsed(search_of("error")), easy), bad = result_of(parsed(search_of("error")), hard);
  EXPECT_EQ(good.at("verdict"), "holds") << good.dump();
  EXPECT_EQ(bad.at("verdict"), "refuted") << bad.dump();
  EXPECT_LT(score_of(good), 1);
  EXPECT_GT(score_of(bad), 1);
  const json forms = result_of(parsed(search_of("intermediate")), hard);
  EXPECT_EQ(forms.at("score").at("tensor"), "inverse intermediate");
  EXPECT_GT(score_of(forms), 1);
  const std::string against = "against = \"fla-chunk-gdn\"\n";
  EXPECT_LT(score_of(result_of(parsed(search_of("distance", "neumann-64", against)), easy)), 0.05);
  EXPECT_GT(score_of(result_of(parsed(search_of("distance", "neumann-64", against)), hard)), 0.5);
  EXPECT_GT(score_of(result_of(parsed(search_of("limits", "neumann-64", against)), hard)), 1);
  // A plan beside itself: two orders of the same sums apart.
  EXPECT_LT(score_of(result_of(parsed(search_of("distance", "fp32", "against = \"fp32\"\n")), hard)), 1e-3);
}

TEST(searches, relate_an_error_to_the_accuracy_asked_for) {
  const std::string strict = search_of("error", "fla-chunk-gdn") + "[judging]\naccuracy = 0.001\n";
  const std::string lax = search_of("error", "fla-chunk-gdn") + "[judging]\naccuracy = 0.1\n";
  EXPECT_NEAR(score_of(result_of(parsed(strict), easy)) / score_of(result_of(parsed(lax), easy)), 100, 1e-9);
}

// What a search found for a plan that is right: the relative error of fla's chunk kernels is far above that on ordinary inputs.
TEST(searches, have_found_the_regime_rewritten) {
  const auto verdict_on = [](const std::string& regime, const std::string& dtype, const std::string& accuracy) {
    const campaign c =
        parsed("kind = \"regimes\"\n[axes]\nplan = \"fla-chunk-gdn\"\nregime = \"" + regime +
               "\"\nop = \"gated_delta_rule\"\ndtype = \"" + dtype +
               "\"\nT = 64\nK = 16\nV = 16\nH = 1\nHV = 1\n[judging]\npower = false\naccuracy = " + accuracy + "\n");
    return json::parse(run_task(c, c.task(0)).value()).at("verdict").get<std::string>();
  };
  EXPECT_EQ(verdict_on("typical", "bf16", "0.01"), "holds");
  EXPECT_EQ(verdict_on("rewritten", "bf16", "0.01"), "refuted");
  EXPECT_EQ(verdict_on("typical", "fp16", "0.00125"), "holds");
  EXPECT_EQ(verdict_on("rewritten", "fp16", "0.00125"), "refuted");
}

TEST(searches, keep_their_proposals_and_merge_by_who_made_them) {
  const std::filesystem::path box = new_folder_beside(std::filesystem::temp_directory_path() / "search");
  const sweep_folder folder(box / "results");
  campaign c = parsed(search_of("error"));
  folder.open(c);
  c.propose("random", easy);
  c.propose("search", hard);
  folder.keep_proposals(c);
  for (std::uint64_t i = 0; i < 2; ++i) folder.keep(c.task(i).key, run_task(c, c.task(i)).value());
  const campaign again = folder.read("a");
  ASSERT_EQ(again.count(), 2U);
  EXPECT_EQ(again.task(1).key, c.task(1).key);
  const sweep_report report = merge_sweep(folder, "a");
  EXPECT_EQ(report.counts.refuted, 1U);
  EXPECT_EQ(report.exit_code(), 1);
  const json merged = json::parse(to_json(report));
  EXPECT_EQ(merged["axes"]["by"]["random"]["holds"], 1);
  EXPECT_EQ(merged["axes"]["by"]["search"]["refuted"], 1);
  EXPECT_EQ(merged["worst"][0]["norm"], "error");
  campaign changed = parsed(search_of("intermediate"));
  EXPECT_THROW(folder.take_proposals(changed), format_error);
  campaign elsewhere = parse_campaign(search_of("error"), "c.toml", "b");
  EXPECT_THROW(folder.take_proposals(elsewhere), format_error);
  write_file(box / "results" / "proposals.json", "{}");
  EXPECT_THROW((void)folder.read("a"), format_error);
  std::filesystem::remove_all(box);
}

TEST(searches, say_what_is_wrong_in_their_campaign) {
  const std::string right = search_of("error");
  EXPECT_EQ(refusal(right), "");
  const std::pair<std::string, std::string> none[] = {
      {"[search]\ngoal = \"error\"\ngenerations = 2\n", "[search] is missing or not a table"},
      {"goal = \"error\"\n", "states no goal"},
      {"generations = 2\n", "does not say when to stop"}};
  for (const auto& [gone, says] : none) EXPECT_THAT(refusal(replaced(right, gone, "")), HasSubstr(says));
  EXPECT_THAT(refusal(right.substr(0, right.find("[space]"))), HasSubstr("[space], the ranges to search, is missing or empty"));
  EXPECT_THAT(refusal(replaced(right, "\"error\"", "\"eror\"")), HasSubstr("did you mean \"error\""));
  EXPECT_THAT(refusal(replaced(right, "cosine = [0, 1]", "cosin = [0, 1]")), HasSubstr("did you mean \"cosine\""));
  EXPECT_THAT(refusal(replaced(right, "cosine = [0, 1]", "cosine = [0, 2]")), HasSubstr("0 <= least < most <= 1"));
  EXPECT_THAT(refusal(replaced(right, "cosine = [0, 1]", "cosine = [1, 0]")), HasSubstr("least < most"));
  EXPECT_THAT(refusal(replaced(right, "cosine = [0, 1]", "cosine = 0.5")), HasSubstr("must be [least, most]"));
  EXPECT_THAT(refusal(replaced(right, "T = [16, 64]", "T = [16.5, 64]")), HasSubstr("integers"));
  EXPECT_THAT(refusal(replaced(right, "K = 16", "K = [16, 32]")), HasSubstr("one value on each axis"));
  EXPECT_THAT(refusal(replaced(right, "K = 16", "K = 16\nT = 8")), HasSubstr("T is in [axes] and in [space]"));
  EXPECT_THAT(refusal(replaced(right, "K = 16", "K = 16\nregime = \"typical\"")), HasSubstr("there is no key \"regime\""));
  EXPECT_THAT(refusal(replaced(right, "generations = 2", "population = 1\ngenerations = 2")), HasSubstr("from 4 to"));
  EXPECT_THAT(refusal(replaced(right, "generations = 2", "cpu_minutes = -1")), HasSubstr("cpu_minutes must be above 0"));
  EXPECT_THAT(refusal(search_of("distance")), HasSubstr("goal distance compares two plans"));
  EXPECT_THAT(refusal(search_of("error", "neumann-64", "against = \"fp32\"\n")), HasSubstr("remove the key \"against\""));
}

TEST(studies_as_campaigns, have_a_task_for_each_study_mode_and_seed) {
  const campaign c = parsed("kind = \"study\"\n[axes]\nstudy = [\"gates\", \"recall\"]\nseed = { from = 1, to = 3 }\n");
  ASSERT_EQ(c.count(), 6U);
  EXPECT_EQ(command_of(c, c.task(5)), "deltaproof study recall --seed 3");
  EXPECT_THROW((void)run_task(c, c.task(0)), format_error);  // studies are the program's
  EXPECT_THAT(refusal("kind = \"study\"\n[axes]\nseed = 1\n"), HasSubstr("[axes] states no study"));
  EXPECT_THAT(refusal("kind = \"study\"\n[axes]\nstudy = \"gates\"\n[judging]\npower = false\n"),
              HasSubstr("no key \"judging\""));
  EXPECT_THAT(refusal("kind = \"study\"\n[axes]\nstudy = 3\n"), HasSubstr("study must be a name or a list of names"));
}

// Two machines have the same process ids: the name that a file has until it is whole says whose it is.
TEST(temporary_names, say_the_machine) {
  const std::filesystem::path box = new_folder_beside(std::filesystem::temp_directory_path() / "names");
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  const std::string plain = std::regex_replace(std::string(host).substr(0, 32), std::regex("[^A-Za-z0-9-]"), "-");
  file_writer out(box / "KEY.json");
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(box)) names.push_back(file.path().filename().string());
  ASSERT_THAT(names, SizeIs(1));
  EXPECT_THAT(names[0], testing::StartsWith("KEY.json." + plain + "-" + std::to_string(::getpid()) + "-"));
  out.finish();
  EXPECT_TRUE(std::filesystem::exists(box / "KEY.json"));
  std::filesystem::remove_all(box);
}

}  // namespace
}  // namespace deltaproof
