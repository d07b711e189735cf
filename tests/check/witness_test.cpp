// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/check/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "check/invariant_cases.hpp"
#include "deltaproof/support/write_file.hpp"
#include "support/thrown.hpp"

namespace deltaproof {
namespace {

using namespace deltaproof::testing;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

using folder = temporary_folder;

/// The fault from `from` on in head 1 alone: everything else is a correct kernel's.
recorded_run broken_head(const problem& p, std::string_view fault, std::size_t from) {
  const plan declared = plan_named("fla-chunk-gdn");
  emulation_options how;
  how.stages = true;
  const plan_variant variant = variants(declared, p, path_kind::chunk, 64).front();
  recorded_run out;
  out.given = p;
  out.gave = emulate(p, variant, how);
  how.planted = &fault_named(fault);
  const result bad = emulate(p, variant, how);
  const auto mix = [&](tensor& good, const tensor& wrong) {
    const std::size_t rows = good.dim(1), heads = good.dim(2), width = good.size() / rows / heads;
    const std::size_t first = rows == p.tokens() ? from : from / 64;
    std::vector<double> a = good.to_doubles();
    const std::vector<double> b = wrong.to_doubles();
    for (std::size_t t = first; t < rows; ++t)
      std::copy_n(b.begin() + static_cast<std::ptrdiff_t>((t * heads + 1) * width), width,
                  a.begin() + static_cast<std::ptrdiff_t>((t * heads + 1) * width));
    good = tensor::from_doubles(good.element_format(), good.shape(), a, good.name());
  };
  mix(out.gave.o, bad.o);
  for (auto& [name, t] : out.gave.stages) mix(t, bad.stages.at(name));
  out.gave.kernel = "fla chunk_gated_delta_rule";
  return out;
}

check_options options_for(std::string_view plan) {
  check_options out;
  out.plans = {plan_named(plan)};
  out.judge.power = false;
  return out;
}

check_identity identity_for(const check_options& options, const std::string& plan) {
  check_identity out;
  out.version = "9.9.9";
  out.problem_path = "p.safetensors";
  out.result_path = "r.safetensors";
  out.record = check_record{};
  out.record->judge.power = options.judge.power;
  out.record->plans = {source_of(plan)};
  return out;
}

TEST(Witness, KeepsTheBrokenHeadAndNoChunkBeyondTheFirstBadOne) {
  const recorded_run run = broken_head(gated_problem(200), "w-beta-missing", 64);
  const check_options options = options_for("fla-chunk-gdn");
  const check_report found = check(run.given, run.gave, options);
  ASSERT_EQ(found.judged, verdict::refuted);
  ASSERT_EQ(found.conformance->first_bad_stage, "w");
  const small_failure kept = smallest_failure(run.given, run.gave, found, options);
  ASSERT_TRUE(kept.at.has_value()) << kept.says;
  EXPECT_EQ(kept.at->value_head, 1u);
  EXPECT_GT(kept.at->tokens, 64u);
  EXPECT_LE(kept.at->tokens, 128u);
  EXPECT_TRUE(same_failure(failure_of(kept.report), failure_of(found)));
  EXPECT_EQ(kept.given.value_heads(), 1u);
  EXPECT_THAT(kept.says, HasSubstr("head 1 of sequence 0, the first "));

  const small_failure again = shrunk(kept.given, kept.gave, kept.report, options);
  EXPECT_LE(again.given.tokens(), kept.given.tokens());
  EXPECT_TRUE(same_failure(failure_of(again.report), failure_of(found)));
}

TEST(Witness, FolderIsJudgedAgainToTheSameVerdict) {
  const folder box;
  const recorded_run run = broken_head(gated_problem(200), "w-beta-missing", 64);
  const check_options options = options_for("fla-chunk-gdn");
  const check_report found = check(run.given, run.gave, options);
  const small_failure kept = smallest_failure(run.given, run.gave, found, options);
  const fs::path at = box.path / "witness";
  const check_identity identity = identity_for(options, "fla-chunk-gdn");
  write_witness(at, kept, identity);
  for (const char* name : {"problem.safetensors", "result.safetensors", "plan.toml", "verdict.json", "README.txt"})
    EXPECT_TRUE(fs::is_regular_file(at / name)) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(box.path), fs::directory_iterator{}), 1);

  const replayed again = replay(at, {}, "9.9.9");
  EXPECT_TRUE(again.reproduced) << to_text(again);
  EXPECT_EQ(again.report.judged, verdict::refuted);
  EXPECT_EQ(again.report.conformance->first_bad_stage, "w");
  EXPECT_THAT(to_text(again), HasSubstr("replay       reproduced"));
  const auto views = nlohmann::json::parse(to_json(again));
  EXPECT_EQ(views["reproduced"], true);

  // The head keeps its number of the original in all that is said of it.
  EXPECT_EQ(kept.at->value_head, 1u);
  std::ifstream file(at / "verdict.json");
  const auto recorded = nlohmann::json::parse(file);
  EXPECT_EQ(recorded["witness"]["head"], 1);
  for (const auto& verdict : {recorded, views["again"]}) {
    EXPECT_THAT(verdict["reason"].get<std::string>(), HasSubstr("sequence 0, head 1"));
    for (const auto& t : verdict["tensors"]) EXPECT_EQ(t["worst"]["head"], 1);
    for (const auto& s : verdict["stages"]) {
      EXPECT_EQ(s["worst"].is_null() ? nlohmann::json(1) : s["worst"]["head"], 1);
    }
  }
  EXPECT_THAT(to_text(again), HasSubstr("head 1 of sequence 0 of the original"));
  EXPECT_THAT(to_text(again), ::testing::Not(HasSubstr("head 0")));
  EXPECT_EQ(again.report.tensors[0].worst->head, 0u) << "of the witness's own tensors";

  // A witness may be replaced, and what others put beside it stays; anything else is refused.
  write_file(at / "mine.txt", "kept");
  write_witness(at, kept, identity, again.recorded.witness);
  EXPECT_TRUE(fs::exists(at / "mine.txt"));
  EXPECT_TRUE(replay(at, {}, "9.9.9").reproduced);
  EXPECT_THAT(thrown([&] { write_witness(box.path, kept, identity); }), HasSubstr("is not a witness"));
  EXPECT_THAT(thrown([&] { require_witness_place(box.path / "no" / "such"); }), HasSubstr("does not exist; create it first"));
  EXPECT_THAT(thrown([&] { require_new_witness_place(at / ""); }),
              HasSubstr("witness: holds a witness already; name another folder"));
  EXPECT_NO_THROW(require_new_witness_place(box.path / "other"));
  EXPECT_NO_THROW(require_witness(at));
  fs::create_directory(box.path / "empty");
  EXPECT_THAT(thrown([&] { require_witness(box.path / "empty" / ""); }),
              HasSubstr("empty: there is no witness; make one with deltaproof check"));
  EXPECT_THAT(thrown([&] { require_witness(box.path / "nowhere"); }), HasSubstr("nowhere: there is no witness"));
  EXPECT_NO_THROW(require_new_witness_place(box.path / "empty"));
  write_witness(box.path / "two words", kept, identity);
  EXPECT_THAT(replay(box.path / "two words", {}, "9.9.9").identity.reproduce, ::testing::EndsWith("two words'"));
  write_witness(box.path / "empty", kept, identity);
  EXPECT_TRUE(replay(box.path / "empty", {}, "9.9.9").reproduced);

  // What was recorded otherwise is said, with the version.
  std::string text;
  {
    std::ifstream in(at / "verdict.json");
    auto j = nlohmann::ordered_json::parse(in);
    j["first_bad_stage"] = "u";
    text = j.dump();
  }
  write_file(at / "verdict.json", text);
  const replayed other = replay(at, {}, "10.0.0");
  EXPECT_FALSE(other.reproduced);
  EXPECT_THAT(to_text(other), HasSubstr("the first bad stage is now w, but was u; the version is now 10.0.0, but was 9.9.9"));

  auto in_memory = nlohmann::ordered_json::parse(text);
  in_memory["problem"]["path"] = "";
  write_file(at / "memory.json", in_memory.dump());
  EXPECT_THAT(thrown([&] { static_cast<void>(replay(at / "memory.json", {}, "")); }),
              HasSubstr("memory.json: this verdict names no files"));

  write_file(at / "plan.toml", "name = \"x\"\n");
  EXPECT_THAT(thrown([&] { static_cast<void>(replay(at, {}, "")); }), HasSubstr("plan.toml: its sha256 is"));
  fs::remove(at / "result.safetensors");
  EXPECT_THAT(thrown([&] { static_cast<void>(replay(at, {}, "")); }), HasSubstr("plan.toml"));
}

TEST(Witness, ChangedFilesAreNamed) {
  const folder box;
  const recorded_run run = broken_head(gated_problem(64), "w-beta-missing", 0);
  const check_options options = options_for("fla-chunk-gdn");
  small_failure kept;
  kept.given = run.given;
  kept.gave = run.gave;
  kept.report = check(run.given, run.gave, options);
  kept.says = "all of it";
  write_witness(box.path / "w", kept, identity_for(options, "fla-chunk-gdn"));
  EXPECT_TRUE(replay(box.path / "w", {}, "9.9.9").reproduced);
  std::ifstream in(box.path / "w" / "verdict.json");
  const auto recorded = nlohmann::ordered_json::parse(in);
  const auto says_of = [&](const char* key, const nlohmann::ordered_json& value) {
    auto j = recorded;
    j["options"][key] = value;
    write_file(box.path / "w" / "verdict.json", j.dump());
    return thrown([&] { static_cast<void>(replay(box.path / "w", {}, "")); });
  };
  EXPECT_THAT(says_of("max_bits", 3), HasSubstr("verdict.json: \"options\": check: the largest precision of the reference"));
  EXPECT_THAT(says_of("power", 3), HasSubstr("verdict.json: damaged ("));
  write_file(box.path / "w" / "verdict.json", recorded.dump());
  EXPECT_THAT(thrown([&] { (void)parse_verdict(R"({"schema": "deltaproof.suite/1"})", "s.json"); }),
              HasSubstr("give the JSON of one result"));
  result other = run.gave;
  other.o = with(other.o, 0, 1);
  write_result(box.path / "w" / "result.safetensors", other);
  EXPECT_THAT(thrown([&] { static_cast<void>(replay(box.path / "w", {}, "")); }), HasSubstr("result.safetensors: its sha256 is"));
  EXPECT_THAT(thrown([&] { static_cast<void>(replay(box.path, {}, "")); }), HasSubstr("verdict.json: there is no such file"));
  fs::remove(box.path / "w" / "result.safetensors");
  EXPECT_THAT(thrown([&] { static_cast<void>(replay(box.path / "w", {}, "")); }),
              HasSubstr("result.safetensors: there is no such file; "));
  EXPECT_THAT(thrown([&] { require_witness_place(box.path / "w" / "plan.toml" / "x"); }), HasSubstr("plan.toml is not a folder"));
}

TEST(Witness, AFinalStateKeepsAllTokensAndWhatNoTriedHeadShowsIsKeptWhole) {
  const recorded_run run = run_of(gated_problem(40), "fla-chunk-gdn");
  check_options options;
  const double whole = check(run.given, run.gave, options).tensors.at(1).errors.max_abs.value;
  options.judge.bounds.push_back({"final_state", {metric::max_abs, bound(whole / 2, because("a test"))}});
  const check_report found = check(run.given, run.gave, options);
  ASSERT_EQ(found.judged, verdict::refuted);
  const small_failure kept = smallest_failure(run.given, run.gave, found, options);
  // The state of a head needs all of its tokens.
  ASSERT_TRUE(kept.at.has_value());
  EXPECT_EQ(kept.at->tokens, 40u);
  const small_failure none = smallest_failure(run.given, run.gave, found, options, 0);
  EXPECT_FALSE(none.at.has_value());
  EXPECT_EQ(none.given.value_heads(), 2u);
  EXPECT_THAT(none.says, HasSubstr("the whole problem: no head was judged alone"));
}

TEST(Witness, RenumbersWholeNumbersAlone) {
  const original_head of{0, 3, 12, 6};
  EXPECT_EQ(renumbered("o: sequence 0, head 0, token 7", of), "o: sequence 3, head 12, token 7");
  EXPECT_EQ(renumbered("sequence 0 head 0; head 0 of sequence 0", of), "sequence 3 head 12; head 12 of sequence 3");
  EXPECT_EQ(renumbered("sequence 0, head 01 and sequence 0, head 0", of), "sequence 0, head 01 and sequence 3, head 12");
  EXPECT_EQ(renumbered("dk at sequence 0, key head 0; sequence 0 key head 0", of),
            "dk at sequence 3, key head 6; sequence 3 key head 6");
  check_report report;
  report.tensors.emplace_back().first_beyond_range.emplace();
  report.unread.push_back({.stage = "A", .first = stage_place{}});
  report = renumbered(report, of);
  EXPECT_EQ(report.tensors[0].first_beyond_range->sequence, 3u);
  EXPECT_EQ(report.unread[0].first->head, 12u);
  const original_head itself{};
  EXPECT_EQ(renumbered("sequence 0, head 0", itself), "sequence 0, head 0");
}

}  // namespace
}  // namespace deltaproof
