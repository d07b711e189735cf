// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>

#include "claims/sentences.hpp"
#include "deltaproof/files/safetensors.hpp"
#include "deltaproof/study/claim.hpp"

namespace deltaproof {
namespace {

using claim_detail::sentences;
using testing::ElementsAre;

TEST(sentences, end_at_a_stop_before_a_capital_and_at_the_end_of_a_line) {
  EXPECT_THAT(sentences("One thing. Another thing? Yes! \"So it is.\" Done"),
              ElementsAre("One thing.", "Another thing?", "Yes!", "\"So it is.\"", "Done"));
  EXPECT_THAT(sentences("A heading\nand text\n\n\nmore"), ElementsAre("A heading", "and text", "more"));
  EXPECT_THAT(sentences("  spaces  \r\n\ttab\t"), ElementsAre("spaces", "tab"));
  EXPECT_THAT(sentences(""), ElementsAre());
}

TEST(sentences, do_not_end_within_numbers_abbreviations_and_items) {
  EXPECT_THAT(sentences("It is 0.028. Then 1.92 follows."), ElementsAre("It is 0.028.", "Then 1.92 follows."));
  EXPECT_THAT(sentences("See e.g. Higham, or (i.e. Both) vs. Other."), ElementsAre("See e.g. Higham, or (i.e. Both) vs. Other."));
  EXPECT_THAT(sentences("1. A list"), ElementsAre("1. A list"));
  EXPECT_THAT(sentences("Small. then no capital."), ElementsAre("Small. then no capital."));
}

TEST(sentences, end_at_chinese_stops) {
  EXPECT_THAT(sentences("第一句。第二句！第三句？完"), ElementsAre("第一句。", "第二句！", "第三句？", "完"));
  EXPECT_THAT(sentences("他说“好。”然后走。"), ElementsAre("他说“好。”", "然后走。"));
}

TEST(sentences, do_not_end_within_formulas) {
  EXPECT_THAT(sentences("Let $x. Y = 1$ be. Now $$A. B$$ too."), ElementsAre("Let $x. Y = 1$ be.", "Now $$A. B$$ too."));
  EXPECT_THAT(sentences("It is: \\begin{equation} a. B = 1 \\end{equation} From this, b. So"),
              ElementsAre("It is: \\begin{equation} a. B = 1 \\end{equation}", "From this, b.", "So"));
  EXPECT_THAT(sentences("Then:\n\\[\\begin{aligned}\na &= b. C\n\\\\&= d\n\\end{aligned}\\]\nSo it is."),
              ElementsAre("Then:", "\\[\\begin{aligned} a &= b. C \\\\&= d \\end{aligned}\\]", "So it is."));
}

TEST(sentences, count_rows_of_a_table_and_not_its_rule) {
  EXPECT_THAT(sentences("| a | b |\n|---|---|\n| 1 | two |"), ElementsAre("| a | b |", "| 1 | two |"));
  EXPECT_THAT(sentences("---\n***\n…"), testing::SizeIs(1));
}

TEST(seed_map, every_sentence_makes_a_claim_or_is_said_to_make_none) {
  for (const claim_document& d : claim_documents()) {
    std::vector<int> claimed(d.sentences + 1);
    std::vector<int> nothing(d.sentences + 1);
    const auto mark = [&](const sentence_range& s, std::vector<int>& in, const std::string& who) {
      ASSERT_GE(s.last, s.first) << who;
      ASSERT_GE(s.first, 1U) << who;
      ASSERT_LE(s.last, d.sentences) << who << " of " << d.id;
      for (std::size_t i = s.first; i <= s.last; ++i) ++in[i];
    };
    for (const sentence_range& s : d.nothing) mark(s, nothing, "nothing");
    for (const claim& c : claims()) {
      for (const sentence_range& s : c.sentences) {
        if (s.document == d.id) mark(s, claimed, c.id);
      }
    }
    for (std::size_t i = 1; i <= d.sentences; ++i)
      EXPECT_EQ((claimed[i] > 0 ? 1 : 0) + nothing[i], 1)
          << d.id << " " << i << ": in " << claimed[i] << " claims, and " << nothing[i] << " times in 'nothing'";
  }
}

TEST(seed_map, names_known_documents) {
  std::set<std::string> known;
  for (const claim_document& d : claim_documents()) known.insert(d.id);
  for (const claim& c : claims()) {
    EXPECT_FALSE(c.sentences.empty()) << c.id;
    for (const sentence_range& s : c.sentences) EXPECT_TRUE(known.contains(s.document)) << c.id << ": " << s.document;
  }
}

/// Where the source documents lie: DELTAPROOF_SEEDS, or ../shared/seeds beside the checkout.
std::filesystem::path seeds() {
  const char* named = std::getenv("DELTAPROOF_SEEDS");
  return named ? std::filesystem::path(named) : std::filesystem::path(DELTAPROOF_SOURCE_DIR) / "../shared/seeds";
}

TEST(seed_map, documents_are_those_that_were_read) {
  if (!std::filesystem::is_directory(seeds())) {
    std::cout << "the source documents are not in " << seeds().string() << ": their hashes and sentences were not compared\n";
    GTEST_SKIP();
  }
  for (const claim_document& d : claim_documents()) {
    std::ifstream in(seeds() / d.file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    const std::string content = std::move(text).str();
    EXPECT_EQ(sha256_hex(std::as_bytes(std::span(content))), d.sha256) << d.file;
    EXPECT_EQ(sentences(content).size(), d.sentences) << d.file;
  }
}

}  // namespace
}  // namespace deltaproof
