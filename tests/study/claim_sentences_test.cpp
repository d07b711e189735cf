// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "claims/sentences.hpp"
#include "deltaproof/kernel/safetensors.hpp"
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

TEST(seed_map, has_every_sentence_once_in_order_and_only_claims_of_the_ledger) {
  std::set<std::string_view> known;
  for (const claim& c : claims()) known.insert(c.id);
  auto row = seed_map().begin();
  for (const claim_document& d : claim_documents()) {
    std::size_t next = 1;
    for (; row != seed_map().end() && row->document == d.id; ++row) {
      EXPECT_EQ(row->first, next) << d.id;
      EXPECT_GE(row->last, row->first) << d.id;
      next = row->last + 1;
      for (const std::string_view id : row->claims) EXPECT_TRUE(known.contains(id)) << d.id << " " << row->first << ": " << id;
    }
    EXPECT_EQ(next, d.sentences + 1) << d.id << " is mapped up to " << next - 1;
  }
  EXPECT_EQ(row, seed_map().end()) << "an unknown document, or one out of order: " << row->document;
}

TEST(seed_map, agrees_with_the_sources_of_every_claim) {
  std::map<std::string_view, unsigned> mapped;
  for (const mapped_sentences& row : seed_map()) {
    for (std::size_t i = 0; i < claim_documents().size(); ++i) {
      if (claim_documents()[i].id != row.document) continue;
      for (const std::string_view id : row.claims) mapped[id] |= 1U << i;
    }
  }
  for (const claim& c : claims())
    EXPECT_EQ(mapped[c.id], c.sources) << c.id << ": the row says " << sources_of(c) << ", the map " << sentences_of(c);
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
