// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/claim.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "deltaproof/number/errors.hpp"

namespace deltaproof {
namespace {

using testing::HasSubstr;

const std::string root = DELTAPROOF_SOURCE_DIR;

/// DELTAPROOF_REPORTS names another folder of reports, of `deltaproof report --full` say, to hold to the same predicates.
const claim_sources& repository() {
  static const char* const elsewhere = std::getenv("DELTAPROOF_REPORTS");
  static const claim_sources files = files_of_claims(elsewhere != nullptr ? elsewhere : root + "/reports", root + "/proofs/README.md");
  return files;
}

/// One test a claim: its evidence is green; negated, with the same values, it is red; and of every value that the predicate
/// reads some change makes it refuse, so that no part of it is always true.
class evidence_of : public testing::Test {
 public:
  explicit evidence_of(const claim& of) : claim_{of} {}

  void TestBody() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    EXPECT_EQ(test_of(claim_), "study." + std::string(info->test_suite_name()) + "." + info->name());
    for (const claim_evidence& e : claim_.evidence) {
      SCOPED_TRACE(std::string(claim_.id) + ", " + title_of(e) + ": " + std::string(e.because));
      const auto values = evaluate(e, repository());
      ASSERT_TRUE(values) << "reports/" << e.study << ".json is not there: its study was never run";
      EXPECT_EQ(assess(e, values), evidence_state::green) << shown(*values);
      EXPECT_EQ(assess(e, values, true), evidence_state::red) << "negated and still green: " << shown(*values);
      std::size_t read = 0;
      for (const auto& [name, value] : *values) {
        if (!is_read(e, *values, name)) continue;
        ++read;
        EXPECT_TRUE(refuses_some_change(e, *values, name)) << "no change of " << name << " is refused: " << shown(*values);
      }
      EXPECT_GT(read, 0U) << "the predicate reads nothing of: " << shown(*values);
    }
  }

 private:
  static std::string shown(const claim_values& values) {
    std::string text;
    for (const auto& [name, value] : values) text += name + " = " + value.text(17) + "; ";
    return text;
  }

  static std::vector<cell> changes_of(const cell& value) {
    if (const bool* truth = std::get_if<bool>(&value.value())) return {!*truth};
    if (!value.is_number()) return {cell("other")};
    const double x = number_at({{"x", value}}, "x");
    return {x + 1, x - 1, 2 * x, x / 2, -x, 1e3 * x, 0.0, 1e300};
  }

  /// A value that the predicate reads: it throws where that value is missing.
  static bool is_read(const claim_evidence& e, claim_values values, const std::string& name) {
    values.erase(name);
    try {
      return static_cast<void>(e.holds(values)), false;
    } catch (const domain_error&) {
      return true;
    }
  }

  static bool refuses_some_change(const claim_evidence& e, const claim_values& values, const std::string& name) {
    for (const cell& other : changes_of(values.at(name))) {
      claim_values changed = values;
      changed[name] = other;
      if (!e.holds(changed)) return true;
    }
    return false;
  }

  const claim& claim_;
};

const bool registered = [] {
  for (const claim& c : claims()) {
    if (c.evidence.empty()) continue;
    std::string name(c.id);
    std::replace(name.begin(), name.end(), '-', '_');
    testing::RegisterTest("claims", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [&c]() -> testing::Test* { return new evidence_of(c); });
  }
  return true;
}();

TEST(ledger, every_row_is_complete) {
  EXPECT_TRUE(registered);
  EXPECT_GE(claims().size(), 100U);
  std::set<std::string_view> seen;
  for (const claim& c : claims()) {
    SCOPED_TRACE(std::string(c.id));
    EXPECT_TRUE(seen.insert(c.id).second) << "twice";
    EXPECT_THAT(std::string(c.id), testing::MatchesRegex("[a-z0-9]+(-[a-z0-9]+)*"));
    EXPECT_FALSE(c.statement.empty());
    EXPECT_TRUE(c.statement.ends_with('.'));
    EXPECT_FALSE(c.conditions.empty());
    EXPECT_FALSE(c.conditions.ends_with('.'));
    EXPECT_FALSE(sources_of(c).empty());
    EXPECT_EQ(c.evidence.empty(), c.verdict == claim_verdict::not_testable)
        << "a verdict has evidence, what has none is not testable";
    EXPECT_EQ(c.kind == claim_kind::misprint, c.verdict == claim_verdict::misprint);
    EXPECT_EQ(c.kind == claim_kind::contradiction, c.verdict == claim_verdict::contradiction);
    for (const claim_evidence& e : c.evidence) {
      EXPECT_NE(e.holds, nullptr);
      EXPECT_FALSE(e.because.empty());
      EXPECT_EQ(e.kind == claim_evidence_kind::finding, !e.study.empty());
      EXPECT_EQ(e.kind == claim_evidence_kind::finding || e.kind == claim_evidence_kind::theorem, e.evaluate == nullptr);
      EXPECT_EQ(e.kind == claim_evidence_kind::sampled, e.n > 0) << "a sample says its size";
    }
  }
}

TEST(ledger, every_verdict_and_every_document_occur) {
  std::set<claim_verdict> verdicts;
  std::set<std::size_t> documents;
  for (const claim& c : claims()) {
    verdicts.insert(c.verdict);
    for (std::size_t i = 0; i < claim_documents().size(); ++i) {
      if ((c.sources >> i & 1U) != 0) documents.insert(i);
    }
    EXPECT_EQ(c.sources >> claim_documents().size(), 0U) << c.id;
  }
  EXPECT_EQ(verdicts.size(), 8U);
  EXPECT_EQ(documents.size(), claim_documents().size());
}

claim_values one(double x) { return {{"x", x}}; }

TEST(ledger, a_report_that_is_not_there_is_awaited_and_one_without_the_finding_refused) {
  const claim_evidence later{
      claim_evidence_kind::finding, "some-finding", "study-to-come", "", 0, 0, nullptr, [](const claim_values& v) {
        return number_at(v, "x") > 0;
      }};
  EXPECT_EQ(assess(later, evaluate(later, repository())), evidence_state::awaited);
  EXPECT_EQ(assess(later, evaluate(later, repository()), true), evidence_state::awaited);
  EXPECT_EQ(assess(later, one(1)), evidence_state::green);
  EXPECT_EQ(assess(later, one(-1)), evidence_state::red);
  EXPECT_EQ(assess(later, one(1), true), evidence_state::red);
  claim_evidence elsewhere = later;
  elsewhere.study = "eigenvalues";
  EXPECT_THROW((void)evaluate(elsewhere, repository()), domain_error);
}

TEST(ledger, a_theorem_that_the_index_lacks_is_red) {
  const claim& c = claim_named("transition-eigenvalues");
  claim_evidence e = c.evidence.at(0);
  EXPECT_EQ(assess(e, evaluate(e, repository())), evidence_state::green);
  e.name = "algebra.rank_one.no_such_theorem";
  EXPECT_EQ(assess(e, evaluate(e, repository())), evidence_state::red);
}

TEST(ledger, values_are_asked_for_by_name_and_type) {
  const claim_values values{{"n", 3}, {"t", true}, {"s", "text"}};
  EXPECT_EQ(number_at(values, "n"), 3);
  EXPECT_TRUE(truth_at(values, "t"));
  EXPECT_EQ(text_at(values, "s"), "text");
  EXPECT_THROW((void)number_at(values, "missing"), domain_error);
  EXPECT_THROW((void)number_at(values, "t"), domain_error);
  EXPECT_THROW((void)number_at(values, "s"), domain_error);
  EXPECT_THROW((void)truth_at(values, "n"), domain_error);
  EXPECT_THROW((void)text_at(values, "n"), domain_error);
}

TEST(ledger, a_wrong_id_is_told_the_one_it_resembles) {
  EXPECT_EQ(claim_named("sgd-view").id, "sgd-view");
  try {
    (void)claim_named("sgd-veiw");
    FAIL();
  } catch (const domain_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("sgd-view"));
  }
}

TEST(ledger, every_named_system_is_in_code_or_excluded_with_a_reason) {
  std::string names;
  for (const named_system& s : named_systems()) {
    EXPECT_FALSE(s.reason.empty()) << s.name;
    if (!s.code.empty()) {
      EXPECT_TRUE(std::filesystem::exists(root + "/" + std::string(s.code))) << s.name << ": no file " << s.code;
    }
    names.append(s.name).append("\n");
  }
  for (const char* named : {"linear attention",
                            "DeltaNet",
                            "least squares",
                            "SGD",
                            "transition doubled",
                            "both terms doubled",
                            "Householder",
                            "WY",
                            "UT",
                            "forward substitution",
                            "Neumann",
                            "2 × 2 blocks",
                            "block recursion",
                            "GLA",
                            "GDN",
                            "KDA",
                            "EFLA",
                            "Longhorn",
                            "squash",
                            "HiPPO",
                            "SSM",
                            "short convolution",
                            "L2 normalisation",
                            "L1 normalisation",
                            "RMS normalisation",
                            "SiLU",
                            "sigmoid",
                            "logistic",
                            "MQAR",
                            "MAD",
                            "RegBench",
                            "softmax",
                            "sliding-window",
                            "Mamba",
                            "VMamba",
                            "H3",
                            "fast-weight",
                            "flash-linear-attention",
                            "Performer"}) {
    EXPECT_THAT(names, HasSubstr(named));
  }
}

TEST(ledger, page_has_every_claim_once_and_says_what_is_not_claimed) {
  const std::string page = claims_markdown();
  for (const claim& c : claims()) {
    const std::string row = "| `" + std::string(c.id) + "` |";
    const std::size_t at = page.find(row);
    ASSERT_NE(at, std::string::npos) << c.id;
    EXPECT_EQ(page.find(row, at + 1), std::string::npos) << c.id;
  }
  EXPECT_THAT(page, HasSubstr("## What is not claimed"));
  EXPECT_THAT(page, HasSubstr("| all | " + std::to_string(claims().size()) + " |"));
}

TEST(ledger, committed_page_is_the_one_that_is_written) {
  std::ifstream in(root + "/reports/claims.md");
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), claims_markdown())
      << "reports/claims.md is not what this program writes; if that is meant: ./run report, look, commit";
}

}  // namespace
}  // namespace deltaproof
