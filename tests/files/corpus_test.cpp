// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Every file of the fuzzer's seed corpus ends as its name says. To write the corpus anew after changing corpus.hpp:
// DELTAPROOF_WRITE_CORPUS=1 build/release/unit_files --gtest_filter=corpus.*
#include "files/corpus.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "deltaproof/support/errors.hpp"

namespace deltaproof::testing {
namespace {

const std::filesystem::path folder = std::filesystem::path(DELTAPROOF_SOURCE_DIR) / "tests/files/corpus";

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct outcome {
  std::string kind;
  std::string says;
};

outcome outcome_of(std::string_view bytes, std::string_view how) {
  notes_list notes;
  try {
    try_file(bytes, how, notes);
  } catch (const format_error& e) {
    return {"format", e.what()};
  } catch (const shape_error& e) {
    return {"shape", e.what()};
  } catch (const domain_error& e) {
    return {"domain", e.what()};
  }
  std::string all;
  for (const std::string& note : notes) all += note + "\n";
  return {"ok", all};
}

TEST(corpus, lies_in_the_folder_as_built_here) {
  const std::vector<corpus_file> files = corpus_files();
  if (std::getenv("DELTAPROOF_WRITE_CORPUS") != nullptr) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    for (const corpus_file& f : files) std::ofstream(folder / f.name, std::ios::binary) << f.bytes;
  }
  std::set<std::string> names;
  for (const corpus_file& f : files) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name << " is there twice";
    EXPECT_EQ(contents(folder / f.name), f.bytes) << f.name;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_TRUE(names.contains(entry.path().filename().string())) << entry.path() << " is not built by corpus.hpp";
  }
}

TEST(corpus, files_end_as_their_names_say) {
  for (const corpus_file& f : corpus_files()) {
    const std::string how = f.name.substr(0, f.name.find('-'));
    const std::string expected = f.name.substr(how.size() + 1, f.name.find('-', how.size() + 1) - how.size() - 1);
    const outcome got = outcome_of(f.bytes, how);
    EXPECT_EQ(got.kind, expected) << f.name << ": " << got.says;
    EXPECT_NE(got.says.find(f.says), std::string::npos) << f.name << " should say \"" << f.says << "\": " << got.says;
    if (got.kind != "ok") {
      EXPECT_TRUE(got.says.starts_with("input: ")) << f.name << " does not name the file: " << got.says;
      EXPECT_LT(got.says.size(), 600U) << f.name << ": " << got.says;
    }
  }
}

TEST(corpus, is_refused_wherever_it_is_cut) {
  for (const corpus_file& f : corpus_files()) {
    const std::string how = f.name.substr(0, f.name.find('-'));
    if (!f.name.starts_with(how + "-ok-")) continue;
    const std::size_t stride = std::max<std::size_t>(1, f.bytes.size() / 512);
    for (std::size_t size = 0; size < f.bytes.size(); size += stride) {
      EXPECT_NE(outcome_of(std::string_view(f.bytes).substr(0, size), how).kind, "ok") << f.name << " cut to " << size;
    }
  }
}

}  // namespace
}  // namespace deltaproof::testing
