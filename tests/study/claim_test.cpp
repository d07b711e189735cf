// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/claim.hpp"

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "claims/text.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using ::testing::HasSubstr;

const std::string root = DELTAPROOF_SOURCE_DIR;

/// DELTAPROOF_REPORTS names another folder of reports, of `deltaproof report --full` say, to hold to the same bands.
const claim_sources& repository() {
  static const char* const elsewhere = std::getenv("DELTAPROOF_REPORTS");
  static const claim_sources files =
      files_of_claims(elsewhere != nullptr ? elsewhere : root + "/reports", root + "/proofs/audit/statements");
  return files;
}

/// "1.5·10³", "65 %", "32 000" and what half of their last digit is.
struct shown_number {
  double value = 0;
  double half_digit = 0;
};
shown_number read_number(std::string text) {
  const auto take = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from)) text.replace(at, from.size(), to);
  };
  double scale = 1;
  if (text.ends_with(" %")) scale = 0.01, text.resize(text.size() - 2);
  const std::vector<std::string> superscripts{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  for (std::size_t d = 0; d < superscripts.size(); ++d) take(superscripts[d], std::to_string(d));
  take("⁻", "-"), take("−", "-"), take(" ", "");
  if (const std::size_t power = text.find("·10"); power != std::string::npos) {
    scale *= std::pow(10, std::stod(text.substr(power + std::string("·10").size())));
    text.resize(power);
  }
  const std::size_t point = text.find('.');
  const double digit = point == std::string::npos ? 1 : std::pow(10, -static_cast<double>(text.size() - point - 1));
  return {std::stod(text) * scale, digit / 2 * scale};
}

std::string shown(const claim_values& values) {
  std::string text;
  for (const auto& [name, value] : values) text += name + " = " + value.text(17) + "; ";
  return text;
}

/// One test a claim: every band holds of its value and none of its rival, and each number that the conditions quote is a value
/// rounded to the digits shown.
class evidence_of : public ::testing::Test {
 public:
  explicit evidence_of(const claim& of) : claim_{of} {}

  void TestBody() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    EXPECT_EQ(test_of(claim_), "study." + std::string(info->test_suite_name()) + "." + info->name());
    claim_values all;
    std::vector<bool> quoted(claim_.quoted.size());
    for (const claim_evidence& e : claim_.evidence) {
      SCOPED_TRACE(claim_.id + ", " + title_of(e) + ": " + e.because);
      const auto values = evaluate(e, repository());
      ASSERT_TRUE(values) << "its file is not there: reports/" << e.study
                          << ".json of a study that was never run, or a theory's statements";
      ASSERT_FALSE(e.bands.empty());
      for (const claim_band& b : e.bands) {
        EXPECT_TRUE(holds(b, *values)) << text_of(b) << ", but: " << shown(*values);
        EXPECT_FALSE(holds_of_rival(b)) << text_of(b) << ": the rival is as good";
      }
      for (std::size_t i = 0; i < quoted.size(); ++i) quoted[i] = quoted[i] || is_quoted(claim_.quoted[i], *values);
      if (!claim_.quoted.empty()) all.insert(values->begin(), values->end());
    }
    for (std::size_t i = 0; i < quoted.size(); ++i)
      EXPECT_TRUE(quoted[i]) << claim_.id << ": " << claim_.quoted[i].shown << " is not " << claim_.quoted[i].value
                             << " of: " << shown(all);
  }

 private:
  static bool is_quoted(const claim_quote& q, const claim_values& values) {
    const auto at = values.find(q.value);
    if (at == values.end()) return false;
    const shown_number n = read_number(q.shown);
    const double slack = 1 + 1e-9;
    return holds({q.value, {}, {}, n.value - n.half_digit * slack, n.value + n.half_digit * slack, {}, {}}, values);
  }

  const claim& claim_;
};

const bool registered = [] {
  for (const claim& c : claims()) {
    if (c.evidence.empty()) continue;
    std::string name(c.id);
    std::replace(name.begin(), name.end(), '-', '_');
    ::testing::RegisterTest("claims", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [&c]() -> ::testing::Test* { return new evidence_of(c); });
  }
  return true;
}();

TEST(ledger, every_row_is_complete) {
  EXPECT_TRUE(registered);
  EXPECT_GE(claims().size(), 200U);
  std::set<std::string> seen;
  std::set<claim_verdict> verdicts;
  std::set<std::string> documents;
  for (const claim& c : claims()) {
    SCOPED_TRACE(c.id);
    EXPECT_TRUE(seen.insert(c.id).second) << "twice";
    EXPECT_THAT(c.id, ::testing::MatchesRegex("[a-z0-9]+(-[a-z0-9]+)*"));
    EXPECT_TRUE(c.statement.ends_with('.'));
    EXPECT_FALSE(c.conditions.ends_with('.'));
    EXPECT_FALSE(sources_of(c).empty());
    EXPECT_EQ(c.evidence.empty(), c.verdict == claim_verdict::not_testable)
        << "a verdict has evidence, what has none is not testable";
    EXPECT_EQ(c.kind == claim_kind::misprint, c.verdict == claim_verdict::misprint);
    EXPECT_EQ(c.kind == claim_kind::contradiction, c.verdict == claim_verdict::contradiction);
    verdicts.insert(c.verdict);
    for (const sentence_range& s : c.sentences) documents.insert(s.document);
  }
  EXPECT_EQ(verdicts.size(), 8U) << "a verdict that no claim has";
  EXPECT_EQ(documents.size(), claim_documents().size()) << "a document that makes no claim";
}

/// A row is no better decided than by the weakest of its evidence.
TEST(ledger, says_how_rows_were_decided) {
  std::map<claim_method, std::size_t> weakest;
  std::map<claim_method, std::size_t> strongest;
  for (const claim& c : claims()) {
    if (c.evidence.empty()) continue;
    std::set<claim_method> methods;
    for (const claim_evidence& e : c.evidence) methods.insert(method_of(e, repository()));
    ++weakest[*methods.rbegin()];
    ++strongest[*methods.begin()];
  }
  for (const claim_method m :
       {claim_method::proof, claim_method::exact_check, claim_method::enclosure, claim_method::measurement}) {
    std::cout << "claims decided by " << name_of(m) << " and nothing weaker: " << weakest[m]
              << "; whose strongest evidence it is: " << strongest[m] << "\n";
    EXPECT_GT(strongest[m], 0U) << name_of(m);
  }
}

TEST(ledger, every_check_is_evidence_of_a_row) {
  std::set<std::string_view> used;
  for (const claim& c : claims()) {
    for (const claim_evidence& e : c.evidence) {
      if (e.kind == claim_evidence_kind::check) used.insert(e.name);
    }
  }
  std::set<std::string_view> names;
  for (const claim_check& c : claim_checks()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name << " twice";
    EXPECT_TRUE(used.contains(c.name)) << c.name << " is evidence of nothing";
  }
}

TEST(bands, hold_of_values_within_them_alone) {
  const claim_values values{{"n", 3},      {"half", 0.5},         {"t", true},  {"s", "text"},
                            {"near", 1.0}, {"near_radius", 0.01}, {"zero", 0.0}};
  const auto band = [](std::string value, std::string over, std::optional<double> min, std::optional<double> max) {
    return claim_band{std::move(value), std::move(over), {}, min, max, {}, {}};
  };
  const auto is = [](std::string value, cell what) { return claim_band{std::move(value), {}, std::move(what), {}, {}, {}, {}}; };
  EXPECT_TRUE(holds(band("n", "", 3, 3), values));
  EXPECT_FALSE(holds(band("n", "", 3.1, {}), values));
  EXPECT_FALSE(holds(band("n", "", {}, 2.9), values));
  EXPECT_TRUE(holds(band("n", "half", 6, 6), values));
  EXPECT_FALSE(holds(band("n", "zero", {}, 1e300), values)) << "a quotient by 0 is in no band";
  EXPECT_TRUE(holds(band("near", "", 0.98, 1.02), values));
  EXPECT_FALSE(holds(band("near", "", 0.995, 1.02), values)) << "a number need not lie there that only its middle shows there";
  EXPECT_FALSE(holds(band("n", "near", 2.99, 3.01), values));
  claim_band apart = band("n", "half", 4, 4);
  apart.minus = "near";
  EXPECT_FALSE(holds(apart, values)) << "the radius counts on both sides";
  apart.min = 3.97, apart.max = 4.03;
  EXPECT_TRUE(holds(apart, values));
  EXPECT_TRUE(holds(is("n", 3.0), values));
  EXPECT_FALSE(holds(is("t", "yes"), values));
  EXPECT_TRUE(holds(is("s", "text"), values));
  EXPECT_THROW((void)holds(band("missing", "", 0, 1), values), domain_error);
  EXPECT_THROW((void)holds(band("t", "", 0, 1), values), domain_error);
}

TEST(ledger, a_file_that_is_not_there_is_awaited_and_one_without_the_name_refused) {
  claim_evidence later{claim_evidence_kind::finding, "some-finding", "study-to-come", "", {}, {}};
  EXPECT_FALSE(evaluate(later, repository()));
  later.study = "eigenvalues";
  EXPECT_THROW((void)evaluate(later, repository()), domain_error);
  claim_evidence theorem = claim_named("transition-eigenvalues").evidence.at(0);
  EXPECT_TRUE(evaluate(theorem, repository()));
  theorem.name = "algebra.rank_one.no_such_theorem";
  EXPECT_THROW((void)evaluate(theorem, repository()), domain_error);
  theorem.name = "algebra.no_such_theory.theorem";
  EXPECT_FALSE(evaluate(theorem, repository()));
}

TEST(ledger, a_theorem_is_evidence_by_its_conclusion) {
  EXPECT_EQ(conclusion_of("forall (R : ring) (x : R), x <> 0 -> x * y = 1 -> y = x^-1"), "y = x^-1");
  EXPECT_EQ(
      conclusion_of("(forall x : R, 0 <= x -> f x <= 1) -> forall y : R, (f y <= 1 -> g y) -> exists n : nat, n < y -> f n"),
      "exists n : nat, n < y -> f n");
  EXPECT_EQ(conclusion_of("(forall x : R, 0 <= x <= 2 -> f x <= 1) /\\ (forall x : R, 2 < x -> 1 < f x)"),
            "(forall x : R, 0 <= x <= 2 -> f x <= 1) /\\ (forall x : R, 2 < x -> 1 < f x)");
  const claim_evidence& e = claim_named("stability-interval").evidence.at(0);
  claim_sources weaker = repository();
  weaker.statement = [&](std::string_view name) { return std::optional("0 = 1 \\/ " + *repository().statement(name)); };
  EXPECT_TRUE(holds(e.bands.front(), *evaluate(e, repository())));
  EXPECT_FALSE(holds(e.bands.front(), *evaluate(e, weaker)));
}

std::string refusal_of(const std::string& rows) {
  const std::string top =
      "[[document]]\nid = \"d\"\nfile = \"f\"\nsha256 = \"0\"\nsentences = 2\nwhat = \"w\"\nnothing = \"2\"\n[[subject]]\nname = "
      "\"s\"\ntitle = \"t\"\n";
  const std::vector<claim_detail::embedded_file> files{{"ledger", top}, {"s", rows}};
  return testing::thrown([&] { (void)claim_detail::read_ledger(files); });
}

TEST(ledger, a_row_that_says_too_little_or_too_much_is_refused_by_name) {
  const std::string row =
      "[[claim]]\nid = \"c\"\nkind = \"bound\"\nverdict = \"holds\"\nstatement = \"S.\"\nconditions = \"{x=1}\"\nsentences = "
      "[\"d 1\"]\n";
  const auto with = [&](const std::string& evidence) {
    return refusal_of(row + "[[claim.evidence]]\nbecause = \"b\"\n" + evidence);
  };
  EXPECT_EQ(with("quotes = { x = 1 }\nbands = [{ value = \"x\", min = 1, rival = 0, rival_is = \"r\" }]\n"),
            "nothing was thrown");
  EXPECT_THAT(with("quotes = { x = 1 }\nbands = [{ value = \"x\", min = 1 }]\n"), HasSubstr("names its 'rival'"));
  EXPECT_THAT(with("bands = [{ value = \"x\", rival = 0, rival_is = \"r\" }]\n"), HasSubstr("'min' or 'max'"));
  EXPECT_THAT(with("check = \"no_such\"\nyes = [\"x\"]\n"), HasSubstr("no check 'no_such'"));
  EXPECT_THAT(with("quotes = { x = 1 }\n"), HasSubstr("has bands"));
  EXPECT_THAT(with("quotes = { x = 1, y = 2 }\nbands = [{ value = \"x\", min = 1, rival = 0, rival_is = \"r\" }]\n"),
              HasSubstr("no band reads the quote 'y'"));
  EXPECT_THAT(with("theorm = \"x\"\n"), HasSubstr("src/claims/s.toml:10: claim, evidence: no key 'theorm'"));
  EXPECT_THAT(refusal_of("[[claim]]\nid = \"c\"\nkind = \"guess\"\n"), HasSubstr("there is no kind 'guess'"));
}

TEST(ledger, a_wrong_id_is_told_the_one_it_resembles) {
  EXPECT_EQ(claim_named("sgd-view").id, "sgd-view");
  EXPECT_THAT(testing::thrown([] { (void)claim_named("sgd-veiw"); }), HasSubstr("sgd-view"));
}

TEST(ledger, every_named_system_is_in_code_or_excluded_with_a_reason) {
  std::string names;
  for (const named_system& s : named_systems()) {
    EXPECT_FALSE(s.reason.empty()) << s.name;
    EXPECT_TRUE(s.code.empty() || std::filesystem::exists(root + "/" + s.code)) << s.name << ": no file " << s.code;
    names.append(s.name).append("\n");
  }
  std::istringstream wanted(
      "linear attention, DeltaNet, least squares, SGD, transition doubled, both terms doubled, Householder, WY, "
      "UT, forward substitution, Neumann, 2 × 2 blocks, block recursion, GLA, GDN, KDA, EFLA, Longhorn, squash, "
      "HiPPO, SSM, short convolution, L2 normalisation, L1 normalisation, RMS normalisation, SiLU, sigmoid, "
      "logistic, MQAR, MAD, RegBench, softmax, sliding-window, Mamba, VMamba, H3, fast-weight, "
      "flash-linear-attention, Performer");
  for (std::string name; std::getline(wanted >> std::ws, name, ',');) EXPECT_THAT(names, HasSubstr(name));
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

TEST(ledger, committed_pages_are_those_that_are_written) {
  for (const auto& [name, content] : claims_pages()) {
    EXPECT_TRUE(read_file(root + "/reports/" + name, report_limit) == content)
        << "reports/" << name << " is not what this program writes; if that is meant: ./run report, look, commit";
  }
}

}  // namespace
}  // namespace deltaproof
