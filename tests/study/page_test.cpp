// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Pages: what their words may say and how they are filled. A numeral typed in a page's text is refused, for it is a value that
// nobody computes; it is a run of digits with its fraction or exponent, in everything that a reader reads (statements, reasons,
// titles, captions, notes, labels, words). Allowed are
//   0, 1 and 2 (as in 1/2, [0, 1], 2⁻²⁴), and years from 1900 to 2099;
//   what stands in `code` or in {{placeholders}};
//   what belongs to a name: a letter, '_', '#', '^' or '§' directly before it (fp32, #5032, x^4), or ".md " before it
//   (MATH.md 3.2); one digit with a hyphen and a letter after it (4-cycle, 8-bit).
// Everything else is a placeholder of a computed value, or of a constant that the page declares with its source.

#include "study/page.hpp"

#include <atomic>
#include <cctype>
#include <regex>
#include <sstream>

#include "study/render.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

bool allowed(const std::string& text, std::size_t at, const std::string& numeral) {
  if (numeral == "0" || numeral == "1" || numeral == "2") return true;
  if (numeral.size() == 4 && (numeral.starts_with("19") || numeral.starts_with("20"))) return true;
  const std::string before = text.substr(0, at);
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  if (!before.empty() && (is_letter(before.back()) || std::string_view("_#^").find(before.back()) != std::string_view::npos))
    return true;
  if (before.ends_with("§") || before.ends_with("§ ") || before.ends_with(".md ")) return true;
  const std::size_t after = at + numeral.size();
  return numeral.size() == 1 && after + 1 < text.size() && text[after] == '-' && is_letter(text[after + 1]);
}

/// "line: numeral" for each that is typed.
std::vector<std::string> typed_numerals(const detail::page& p) {
  static const std::regex hidden("`[^`]*`|\\{\\{[^}]*\\}\\}");
  static const std::regex numerals("[0-9]+([.][0-9]+)?(e-?[0-9]+)?");
  std::vector<std::string> found;
  for (const detail::prose& piece : p.texts()) {
    std::istringstream lines(piece.text);
    std::size_t line = piece.line;
    for (std::string text; std::getline(lines, text); ++line) {
      // A hidden numeral leaves a letter-free place, so that what stands around it is not joined.
      text = std::regex_replace(text, hidden, " ");
      for (std::sregex_iterator at(text.begin(), text.end(), numerals), end; at != end; ++at) {
        if (!allowed(text, static_cast<std::size_t>(at->position()), at->str())) {
          found.push_back(std::to_string(line) + ": " + at->str());
        }
      }
    }
  }
  return found;
}

TEST(pages, type_no_numerals) {
  std::size_t pages = 0;
  for (const detail::study_entry& e : detail::study_table()) {
    ++pages;
    EXPECT_THAT(typed_numerals(detail::read_page(e.found->name, e.page)), IsEmpty())
        << e.found->name << "/page.md types numbers; make them values of study.cpp or constants with a source";
  }
  EXPECT_GT(pages, 0U);
  EXPECT_THAT(typed_numerals(detail::read_page("problem_report", detail::problem_report_page())), IsEmpty());
}

TEST(pages, of_which_a_numeral_is_found) {
  const detail::page p =
      detail::read_page("p.md",
                        "# Is 3 typed?\n\nIn 2024 fp32, `17`, {{x|8}}, x^4, 2⁻²⁴, 4-cycle, #50 and 0.5:\n1e-3 of 64-bit.\n"
                        "```toml table t\ntitle = \"C = 16\"\n[columns]\na = \"1/2\"\nb = \"8|g|\"\n```\n");
  EXPECT_THAT(typed_numerals(p), ElementsAre("1: 3", "3: 0.5", "4: 1e-3", "4: 64", "6: 16", "9: 8"));
}

/// Each constant says where it comes from.
TEST(pages, give_a_source_for_each_constant) {
  for (const detail::study_entry& e : detail::study_table()) {
    std::istringstream lines{std::string(e.page)};
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("```")) inside = line == "```toml constants";
      if (!inside || line.find('=') == std::string::npos) continue;
      EXPECT_THAT(line, HasSubstr("  # ")) << e.found->name;
    }
  }
}

/// What is committed keeps what its page expects.
TEST(pages, of_committed_reports_are_green) {
  for (const study* s : studies()) EXPECT_THAT(reports::committed(std::string(s->name)).failed, IsEmpty()) << s->name;
}

results numbers(const run_options& options) {
  return in_parts(options, {{"all", [](const run_options&, results& r) {
                               r.values("first", evidence::exhaustive(7), {{"worst", 0.02}, {"n", 12345}, {"fine", true}});
                               r.values("hidden", {{"share", 0.1234}, {"small", 6.25e-7}, {"how", "b"}, {"absent", cell()}});
                               frame f({"how", "chunk", "error"});
                               f.add({"a", 16, 0.5}).add({"a", 32, HUGE_VAL}).add({"b", 16, 0.25}).add({"b", 32, cell()});
                               r.table("errors", f);
                             }}});
}

/// A page that the results above fill.
const std::string good = R"(# What is asked?

The worst is {{first.worst|2}} of {{first.n}}, {{hidden.share|3|%}}
or {{hidden.small|3|ten}}; {{bound}} is the bound, {{seed}} the seed.

expect: 0 < first.worst < bound

```toml constants
bound = 0.5  # of the example
```

## Findings

### first
All {{n|count}} are below {{bound}}.

because: They were computed.
expect: fine

```toml words
[how]
b = "the other"
```

## Tables

```toml table errors
title = "Errors"
[columns]
how = "form"
[columns.error]
across = "chunk"
title = "C = {{chunk}}"
digits = 2
missing = "none"
words = {inf = "not finite"}
```

## Figures

```toml figure errors
title = "Errors"
caption = "See {{bound}}."
alt = "Two panels."
[[panel]]
data = "errors"
each = "how"
title = "form {{how}}"
x = {label = "C", min = 10, max = 40}
y = {label = "error", max = "bound"}
mark = {y = "bound", label = "{{bound}}", where = "how == 'a'"}
curve = {data = "errors", x = "chunk", y = "error", label = "error", where = "error < 1"}
```

## What is not claimed

- Anything else,
  at all.
)";

report made(const std::string& page, const run_options& options = {}) {
  return run_study({"sample", &numbers, false, page}, options);
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& page) {
  return testing::thrown([&] { (void)made(page); });
}

TEST(page, is_filled_with_values_constants_and_units) {
  const report r = made(good);
  EXPECT_EQ(r.question, "What is asked?");
  EXPECT_EQ(r.answer, "The worst is 0.02 of 12\u2009345, 12.3 % or 6.25·10⁻⁷; 0.5 is the bound, 1 the seed.");
  ASSERT_EQ(r.findings.size(), 1U);
  EXPECT_EQ(r.findings[0].statement, "All 12\u2009345 are below 0.5.");
  EXPECT_EQ(r.findings[0].kind, evidence::exhaustive(7));
  EXPECT_EQ(r.findings[0].values.size(), 3U);
  EXPECT_THAT(r.not_claimed, ElementsAre("Anything else, at all."));
  EXPECT_THAT(r.failed, IsEmpty());
}

TEST(page, table_goes_across_and_puts_words_for_values) {
  const report r = made(good);
  ASSERT_EQ(r.tables.size(), 1U);
  const table& t = r.tables[0];
  EXPECT_THAT(t.columns, ElementsAre(column("form"), column("C = 16", 2), column("C = 32", 2)));
  ASSERT_EQ(t.rows.size(), 2U);
  EXPECT_THAT(t.rows[0], ElementsAre(cell("a"), cell(0.5), cell("not finite")));
  EXPECT_THAT(t.rows[1], ElementsAre(cell("the other"), cell(0.25), cell("none")));
}

TEST(page, calls_a_value_of_a_group_as_its_column_does) {
  EXPECT_EQ(made(with(good, "See {{bound}}", "See {{hidden.how}}")).figures.at(0).caption, "See the other.");
}

TEST(page, figure_has_a_panel_for_each_value) {
  const report r = made(good);
  ASSERT_EQ(r.figures.size(), 1U);
  ASSERT_EQ(r.figures[0].panels.size(), 2U);
  const panel& a = r.figures[0].panels[0];
  EXPECT_EQ(a.title, "form a");
  EXPECT_EQ(r.figures[0].panels[1].title, "form the other");
  ASSERT_EQ(a.curves.size(), 1U);
  EXPECT_THAT(a.curves[0].x, ElementsAre(16));
  EXPECT_EQ(a.y.maximum, 0.5);
  ASSERT_EQ(a.marks.size(), 1U);
  EXPECT_THAT(r.figures[0].panels[1].marks, IsEmpty());
}

TEST(page, expectation_that_fails_stands_at_its_place_and_turns_the_report_red) {
  const report r = made(with(good, "expect: fine", "expect: worst < 1e-4"));
  EXPECT_THAT(r.failed, ElementsAre("sample/page.md:18: finding first: expected worst < 1e-4; worst = 0.02"));
  EXPECT_THAT(r.findings[0].statement, HasSubstr("**Not so: expected worst < 1e-4; worst = 0.02.**"));
  EXPECT_THAT(to_json(r), HasSubstr("\"failed\""));
  EXPECT_EQ(report_from_json(to_json(r)).failed, r.failed);
  EXPECT_THAT(to_json(made(good)), Not(HasSubstr("\"failed\"")));
  EXPECT_THAT(made(with(good, "first.worst < bound", "first.worst < 0.01")).answer, HasSubstr("Not so"));
}

// A search that found nothing is no fault of the page: it is made, and red.
TEST(page, a_sentence_without_its_value_says_nothing_and_turns_the_report_red) {
  const std::string page = with(good, "{{hidden.share|3|%}}", "{{hidden.absent|3|%}}");
  const report r = made(with(page, "expect: fine", "expect: hidden.absent < 1"));
  EXPECT_THAT(r.answer, HasSubstr("12\u2009345, nothing or"));
  EXPECT_THAT(r.failed, ElementsAre(HasSubstr("sample/page.md:3: {{hidden.absent|3|%}} stands in a sentence"),
                                    HasSubstr("finding first: expected hidden.absent < 1; hidden.absent = nothing")));
}

TEST(page, expectations_compare_numbers_texts_and_truth_values) {
  const auto holds = [](const std::string& expected) {
    return made(with(good, "expect: fine", "expect: " + expected)).failed.empty();
  };
  EXPECT_TRUE(holds("0.019 < worst < 0.021"));
  EXPECT_FALSE(holds("0.03 < worst < 0.04"));
  EXPECT_TRUE(holds("n == 12345"));
  EXPECT_FALSE(holds("n != 12345"));
  EXPECT_TRUE(holds("mode in 'full', 'quick'"));
  EXPECT_FALSE(holds("mode == 'full'"));
  EXPECT_TRUE(holds("fine == true"));
  EXPECT_THAT(refusal(with(good, "expect: fine", "expect: worst")), HasSubstr("'worst' stands alone but is neither true"));
  EXPECT_THAT(refusal(with(good, "expect: fine", "expect: 3")), HasSubstr("'3' stands alone but is neither true nor false"));
  EXPECT_THAT(refusal(with(good, "expect: fine", "expect: mode < 3")), HasSubstr("texts are compared with texts"));
  EXPECT_THAT(refusal(with(good, "expect: fine", "expect: worst < 3 4")), HasSubstr("left over"));
}

TEST(page, refuses_what_it_cannot_fill_by_file_and_line) {
  EXPECT_EQ(refusal(good), "nothing was thrown");
  EXPECT_THAT(refusal(with(good, "{{hidden.small", "{{hidden.smal")),
              HasSubstr("sample/page.md:4: no value 'hidden.smal'; did you mean"));
  EXPECT_THAT(refusal(with(good, "|3|ten", "|3|tons")), HasSubstr("sample/page.md:4: no unit 'tons'"));
  EXPECT_THAT(refusal(with(good, "### first", "### second")), HasSubstr("sample/page.md:14: finding 'second' has no values"));
  EXPECT_THAT(refusal(with(good, "how = \"form\"", "hows = \"form\"")),
              HasSubstr("sample/page.md:30: frame 'errors' has no column 'hows'"));
  EXPECT_THAT(refusal(with(good, "digits = 2", "digit = 2")),
              HasSubstr("sample/page.md:34: table 'errors', columns, error: no key 'digit'"));
  EXPECT_THAT(refusal(with(good, "bound = 0.5", "bound = = 0.5")), HasSubstr("sample/page.md:9: "));
  EXPECT_THAT(refusal(with(good, "x = \"chunk\"", "x = \"chunks\"")), HasSubstr("no column 'chunks' to draw"));
  EXPECT_THAT(refusal(with(good, "All {{n|count}}", "{{#fine}}All{{/fine}}")), HasSubstr("no choice between texts"));
  EXPECT_THAT(refusal(with(good, "## Tables", "## Tablets")), HasSubstr("sample/page.md:25: no section 'Tablets'"));
  EXPECT_THAT(refusal(with(good, "```toml figure errors", "```toml picture errors")), HasSubstr("no kind of block 'picture'"));
}

TEST(page, of_an_interrupted_run_says_so_once) {
  const std::atomic<bool> stop{true};
  run_options options;
  options.interrupted = &stop;
  const report r = made(good, options);
  EXPECT_THAT(r.unfinished, ElementsAre("all: interrupted before it was begun."));
  EXPECT_THAT(r.findings, IsEmpty());
  EXPECT_THAT(r.answer, HasSubstr("interrupted"));
}

// What is refused is no interruption: the report says why.
TEST(page, of_a_run_that_lacks_a_part_says_why) {
  results r = numbers({});
  r.unfinished.push_back({"a.safetensors", 0, 0, "cannot be read"});
  r.parameters["seed"] = 1;
  EXPECT_THAT(detail::rendered(detail::read_page("p.md", good), r).unfinished, ElementsAre("a.safetensors: cannot be read"));
}

}  // namespace
}  // namespace deltaproof
