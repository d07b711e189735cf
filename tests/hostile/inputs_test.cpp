// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Two thousand and more hostile files from a fixed seed: each is read to its end or refused with a message that names it, within
// two seconds, by the library's own errors alone. DELTAPROOF_HOSTILE_SEED=N tries others.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "deltaproof/support/errors.hpp"
#include "deltaproof/support/write_file.hpp"
#include "hostile/generator.hpp"
#include "hostile/readers.hpp"
#include "support/printable.hpp"

namespace deltaproof::testing {
namespace {

namespace fs = std::filesystem;

std::uint64_t first_seed() {
  const char* const given = std::getenv("DELTAPROOF_HOSTILE_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

class hostile_inputs : public ::testing::TestWithParam<hostile_kind> {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() / ("deltaproof-hostile-" + std::string(name_of(GetParam())) + "-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    const problem p = packed_problem();
    write_problem(folder_ / "p.safetensors", p);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_P(hostile_inputs, are_read_or_refused_by_name) {
  const hostile_kind kind = GetParam();
  const std::size_t count = kind == hostile_kind::tensors ? 1000 : 400;
  const fs::path file = folder_ / (kind == hostile_kind::plan || kind == hostile_kind::suite ? "hostile.toml" : "hostile.file");
  std::size_t refused = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t seed = first_seed() * 1000003 + i;
    const std::string bytes = hostile_file(kind, seed);
    SCOPED_TRACE(std::string(name_of(kind)) + ", seed " + std::to_string(seed));
    write_file(file, bytes);
    const auto start = std::chrono::steady_clock::now();
    try {
      read_hostile(kind, file);
    } catch (const error& e) {
      ++refused;
      const std::string says = e.what();
      // The file, or one that it names and that lies beside it.
      EXPECT_NE(says.find(folder_.filename().string()), std::string::npos) << "does not name the file: " << says;
      EXPECT_LT(says.size(), 2000U) << says.substr(0, 300);
      EXPECT_EQ(says, detail::printable(says));
    } catch (const std::exception& e) {
      ADD_FAILURE() << "another exception than the library's own: " << e.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  }
  EXPECT_GT(refused, count / 2) << "hostile files that hardly anything is wrong with";
}

INSTANTIATE_TEST_SUITE_P(all, hostile_inputs,
                         ::testing::Values(hostile_kind::tensors, hostile_kind::plan, hostile_kind::suite, hostile_kind::verdict,
                                           hostile_kind::baseline),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(hostile_depth, is_refused_by_every_reader_with_the_limit) {
  const fs::path file = fs::temp_directory_path() / ("deltaproof-deep-" + std::to_string(::getpid()) + ".toml");
  const auto says = [&](hostile_kind kind, const std::string& text) {
    write_file(file, text);
    try {
      read_hostile(kind, file);
    } catch (const format_error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  std::string dotted;
  for (int i = 0; i < 100000; ++i) dotted += "a.";
  const std::string lists = std::string(100000, '[') + std::string(100000, ']');
  for (const std::string& toml :
       {dotted + "a = 1\n", "[" + dotted + "a]\n", "x = {y = '''''''', " + dotted + "a = 1}\n", "x = " + lists}) {
    for (const hostile_kind kind : {hostile_kind::plan, hostile_kind::suite}) {
      EXPECT_NE(says(kind, toml).find("nests deeper than 64"), std::string::npos) << says(kind, toml).substr(0, 200);
    }
  }
  for (const hostile_kind kind : {hostile_kind::verdict, hostile_kind::baseline}) {
    EXPECT_NE(says(kind, lists).find("nests deeper than 64"), std::string::npos);
    EXPECT_NE(says(kind, R"({"schema": "deltaproof.verdict/1", "a": ")" + std::string(70, '[') + R"("})").find("hostile"), 0U);
  }
  fs::remove(file);
}

TEST(hostile_toml, that_breaks_the_assertions_of_its_parser_is_refused) {
  const std::vector<std::string> texts{std::string("[\0\0A]\n", 6), "[=]\n",         "[[\x01]]\n", "[.a]\n", "[ ",
                                       "\xCE\x88\xDC\x89",          "\xC3\xA9 = 1\n"};
  for (const std::string& text : texts) {
    for (const bool plan : {true, false}) {
      try {
        plan ? (void)parse_plan(text, "input") : (void)parse_suite(text, "input");
        ADD_FAILURE() << detail::printable(text);
      } catch (const format_error& e) {
        const std::string said = e.what();
        const bool is_text = text.find('\0') == std::string::npos;
        EXPECT_TRUE(said.starts_with(is_text ? "input: line 1: not valid TOML" : "input: not a TOML file in UTF-8")) << said;
      }
    }
  }
}

TEST(hostile_size, is_refused_before_it_is_read) {
  const fs::path file = fs::temp_directory_path() / ("deltaproof-large-" + std::to_string(::getpid()) + ".toml");
  write_file(file, std::string("{\"\0\0\0\0\0\0{\"x\":1}", 14));
  fs::resize_file(file, std::uintmax_t{1} << 42);  // holes: more than any machine has memory
  for (std::size_t i = 0; i < hostile_kind_names.size(); ++i) {
    const auto kind = static_cast<hostile_kind>(i);
    try {
      read_hostile(kind, file);
      ADD_FAILURE() << name_of(kind);
    } catch (const format_error& e) {
      EXPECT_EQ(std::string(e.what()).find("memory"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("deltaproof-large"), std::string::npos) << e.what();
    }
  }
  fs::remove(file);
}

TEST(hostile_shapes, without_tokens_cost_no_memory) {
  const auto says = [](const std::string& q, const std::string& v, const std::string& beta) {
    raw_file f =
        corpus::problem_file().add("q", "F32", q, 0).add("k", "F32", q, 0).add("v", "F32", v, 0).add("beta", "F32", beta, 0);
    notes_list notes;
    try {
      try_file(f.bytes(), "problem", notes);
    } catch (const shape_error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  EXPECT_NE(says("[100000000,0,1,1]", "[100000000,0,1,1]", "[100000000,0,1]").find("2^20 pairs of sequence and head"),
            std::string::npos);
  EXPECT_NE(says("[1,0,1,1]", "[1,0,100000000,1]", "[1,0,100000000]").find("2^20 pairs of sequence and head"), std::string::npos);
  EXPECT_NE(says("[1,0,1,32768]", "[1,0,1,32768]", "[1,0,1]").find("more than 2^28 elements"), std::string::npos);
  EXPECT_EQ(says("[1000,0,1,16]", "[1000,0,1,16]", "[1000,0,1]"), "nothing");
}

}  // namespace
}  // namespace deltaproof::testing
