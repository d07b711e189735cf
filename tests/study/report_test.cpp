// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <fstream>
#include <nlohmann/json.hpp>

#include "deltaproof/support/write_file.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct folder : testing::temporary_folder {
  operator const fs::path&() const { return path; }
  [[nodiscard]] fs::path operator/(const char* name) const { return path / name; }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> result;
    for (const auto& entry : fs::directory_iterator(path)) result.insert(entry.path().filename().string());
    return result;
  }
};

std::string content(const fs::path& file) { return read_file(file, report_limit); }

figure small_figure(const std::string& id) {
  return {.id = id,
          .title = "Growth | of [a] product",
          .caption = "It grows.",
          .alt = "A curve [that] rises",
          .panels = {{.title = "",
                      .x = {.label = "T"},
                      .y = {.label = "norm"},
                      .curves = {{.label = "Euler", .x = {1, 2, 3}, .y = {1, 4, 9}}}}}};
}

report small_report() {
  report r;
  r.study = "two-words";
  r.question = "Does it hold?";
  r.answer = "It does.";
  r.method = "By looking.";
  r.findings = {{"first", "All | cases hold.", evidence::exhaustive(65536), {{"worst", 0.1}, {"all", true}}, "exact comparison"},
                {"second",
                 "A sample.",
                 evidence::sampled(1000, 7, "standard deviation 0.02"),
                 {{"mean", std::nan("")}, {"top", HUGE_VAL}},
                 "measurement",
                 "again --seed 7"}};
  r.tables = {{"values",
               "Values",
               {"name", {"value", 3}, "n"},
               {{"a|b_c", 1.0 / 3, 100000}, {"nan below\nhere", std::nan(""), 5}, {"1/3", -HUGE_VAL, -12345}},
               "A note."}};
  r.not_claimed = {"Anything else."};
  r.parameters = {{"seed", std::uint64_t{18446744073709551615U}}, {"mode", "quick"}};
  r.command = "deltaproof study two-words --seed 1";
  return r;
}

TEST(report, number_for_reading_has_no_noise) {
  EXPECT_EQ(number(0.1), "0.1");
  EXPECT_EQ(number(1.0 / 3), "0.3333");
  EXPECT_EQ(number(1.25e-7), "1.25e-7");
  EXPECT_EQ(number(1e20), "1e20");
  EXPECT_EQ(number(1e-300), "1e-300");
  EXPECT_EQ(number(-0.0), "-0");
  EXPECT_EQ(number(std::nan("")), "nan");
  EXPECT_EQ(number(-HUGE_VAL), "-inf");
  EXPECT_EQ(count(9999), "9999");
  EXPECT_EQ(count(10000), "10\u2009000");
  EXPECT_EQ(count(1234567), "1\u2009234\u2009567");
  EXPECT_EQ(cell(INT64_MIN).text(), "-9\u2009223\u2009372\u2009036\u2009854\u2009775\u2009808");
}

TEST(report, cells_compare_bits_but_every_nan_is_one) {
  EXPECT_EQ(cell(std::nan("1")), cell(-std::nan("2")));
  EXPECT_FALSE(cell(0.0) == cell(-0.0));
  EXPECT_FALSE(cell(1) == cell(1.0));
  EXPECT_EQ(cell(1U), cell(std::int64_t{1}));
}

TEST(report, json_round_trip_keeps_every_bit) {
  report r = small_report();
  for (const double v : {0.1, -0.0, 5e-324, 1.7976931348623157e308, 1.0, 1e22, 123456789012345680.0, 0.30000000000000004}) {
    r.findings[0].values["v" + std::to_string(r.findings[0].values.size())] = v;
  }
  r.findings[0].values["low"] = INT64_MIN;
  const report back = report_from_json(to_json(r));
  EXPECT_EQ(back.study, r.study);
  EXPECT_EQ(back.question, r.question);
  EXPECT_EQ(back.answer, r.answer);
  EXPECT_EQ(back.method, r.method);
  EXPECT_EQ(back.findings, r.findings);
  EXPECT_EQ(back.tables, r.tables);
  EXPECT_EQ(back.not_claimed, r.not_claimed);
  EXPECT_EQ(back.parameters, r.parameters);
  EXPECT_EQ(back.command, r.command);
  EXPECT_EQ(to_json(back), to_json(r));
}

TEST(report, committed_reports_read_back_to_the_same_text) {
  std::size_t read = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(DELTAPROOF_SOURCE_DIR) / "reports")) {
    if (entry.path().extension() != ".json") continue;
    const std::string text = content(entry.path());
    EXPECT_TRUE(to_json(report_from_json(text)) == text) << entry.path();
    ++read;
  }
  EXPECT_GT(read, 0U);
}

TEST(report, json_says_non_finite_numbers_as_texts_and_how_each_finding_is_made_again) {
  const report r = small_report();
  const auto j = nlohmann::json::parse(to_json(r));
  EXPECT_EQ(j.at("schema"), "deltaproof.report/1");
  EXPECT_EQ(j.at("findings").at(0).at("replay"), r.command);
  EXPECT_EQ(j.at("findings").at(1).at("replay"), r.findings[1].replay);
  EXPECT_EQ(j.at("findings").at(1).at("values").at("mean"), "nan");
  EXPECT_EQ(j.at("findings").at(1).at("values").at("top"), "inf");
  EXPECT_EQ(j.at("tables").at(0).at("rows").at(2).at(1), "-inf");
}

TEST(report, json_that_is_no_report_is_refused_by_name) {
  const auto refusal = [](const std::string& text) { return testing::thrown([&] { (void)report_from_json(text); }); };
  EXPECT_THAT(refusal("{"), HasSubstr("parse error at line 1"));
  EXPECT_THAT(refusal("[]"), HasSubstr("array"));
  EXPECT_THAT(refusal("{}"), HasSubstr("key 'schema' not found"));
  const auto good = nlohmann::json::parse(to_json(small_report()));
  for (const auto& item : good.items()) {
    auto lacking = good;
    lacking.erase(item.key());
    EXPECT_THAT(refusal(lacking.dump()), HasSubstr("key '" + item.key() + "' not found"));
    auto wrong = good;
    wrong[item.key()] = 3;
    EXPECT_THAT(refusal(wrong.dump()), HasSubstr("(/" + item.key() + ") type must be"));
  }
  auto short_row = good;
  short_row["tables"][0]["rows"][0].erase(0);
  EXPECT_THAT(refusal(short_row.dump()), HasSubstr("a row of 2"));
  auto kind = good;
  kind["findings"][0]["evidence"]["kind"] = "believed";
  EXPECT_THAT(refusal(kind.dump()), HasSubstr("believed"));
  auto nested = good;
  nested["tables"][0]["columns"][1]["name"] = 1;
  EXPECT_THAT(refusal(nested.dump()), HasSubstr("(/tables/0/columns/1/name)"));
  auto path = good;
  path["study"] = "../escape";
  EXPECT_THAT(refusal(path.dump()), HasSubstr("lower case"));
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("nests deeper than 64 levels"));
}

TEST(report, validate_names_what_is_missing) {
  const auto refusal = [](const std::function<void(report&)>& spoil) {
    report r = small_report();
    r.figures = {small_figure("curve")};
    spoil(r);
    return testing::thrown([&] { validate(r); });
  };
  EXPECT_EQ(refusal([](report&) {}), "nothing was thrown");
  EXPECT_THAT(refusal([](report& r) { r.answer = ""; }), HasSubstr("answer"));
  EXPECT_THAT(refusal([](report& r) { r.question = "A statement."; }), HasSubstr("'?'"));
  EXPECT_THAT(refusal([](report& r) { r.not_claimed.clear(); }), HasSubstr("not claimed"));
  EXPECT_THAT(refusal([](report& r) { r.findings[0].because = ""; }), HasSubstr("'first' has no reason"));
  EXPECT_THAT(refusal([](report& r) { r.findings[1].id = "first"; }), HasSubstr("twice"));
  EXPECT_THAT(refusal([](report& r) { r.findings[1].id = "Second one"; }), HasSubstr("lower case"));
  EXPECT_THAT(refusal([](report& r) { r.findings[0].kind = evidence::exhaustive(0); }), HasSubstr("0 cases"));
  EXPECT_THAT(refusal([](report& r) { r.findings[1].kind.spread = ""; }), HasSubstr("spread"));
  EXPECT_THAT(refusal([](report& r) { r.tables[0].rows[1].pop_back(); }), HasSubstr("a row of 2"));
  EXPECT_THAT(refusal([](report& r) { r.figures[0].alt = ""; }), HasSubstr("alternative"));
  EXPECT_THAT(refusal([](report& r) { r.figures.push_back(r.figures[0]); }), HasSubstr("twice"));
}

TEST(report, markdown_shows_text_as_text) {
  report r = small_report();
  r.figures = {small_figure("curve")};
  const std::string page = to_markdown(r);
  EXPECT_THAT(page, HasSubstr("# Two words\n\n**Does it hold?**\n\nIt does.\n"));
  EXPECT_THAT(page, HasSubstr("| `first` | All \\| cases hold. | exhaustive, 65\u2009536 cases | exact comparison |\n"));
  EXPECT_THAT(page, HasSubstr("sampled, n = 1000, seed 7, standard deviation 0.02 | measurement (again: `again --seed 7`) |\n"));
  EXPECT_THAT(page, HasSubstr("| a\\|b\\_c | 0.333 | 100\u2009000 |\n"));
  EXPECT_THAT(page, HasSubstr("| nan below here | nan | 5 |\n"));
  EXPECT_THAT(page, HasSubstr("| --- | ---: | ---: |\n"));
  EXPECT_THAT(page,
              HasSubstr("### Growth \\| of \\[a\\] product\n\n![A curve \\[that\\] rises](two-words-curve.svg)\n\nIt grows.\n"));
  EXPECT_THAT(page, HasSubstr("seed = 18446744073709551615"));
  EXPECT_THAT(page, HasSubstr("## What is not claimed\n\n- Anything else.\n\nMade by `deltaproof study two-words --seed 1`"));
  EXPECT_THAT(page, Not(HasSubstr("Left out")));
  r.unfinished = {"The longest horizon."};
  EXPECT_THAT(to_markdown(r), HasSubstr("## Left out of this run\n\n- The longest horizon.\n"));
}

TEST(report, files_appear_whole_and_former_figures_go) {
  const folder here;
  report r = small_report();
  r.figures = {small_figure("one"), small_figure("two")};
  write_report(r, here);
  EXPECT_THAT(here.names(), ElementsAre("two-words-one.svg", "two-words-two.svg", "two-words.json", "two-words.md"));
  EXPECT_EQ(content(here / "two-words.json"), to_json(r));
  EXPECT_EQ(content(here / "two-words.md"), to_markdown(r));
  EXPECT_EQ(content(here / "two-words-one.svg"), svg(r.figures[0]));
  std::ofstream(here / "two-words-other.svg") << "of somebody else";
  r.figures = {small_figure("two")};
  write_report(r, here);
  EXPECT_THAT(here.names(), ElementsAre("two-words-other.svg", "two-words-two.svg", "two-words.json", "two-words.md"));
}

TEST(report, figure_that_cannot_be_drawn_leaves_the_folder_as_it_was) {
  const folder here;
  write_report(small_report(), here);
  report r = small_report();
  r.answer = "Changed.";
  r.figures = {small_figure("empty")};
  r.figures[0].panels[0].curves[0].y = {NAN, NAN, NAN};
  EXPECT_THROW(write_report(r, here), domain_error);
  EXPECT_EQ(content(here / "two-words.json"), to_json(small_report()));
  EXPECT_THAT(here.names(), ElementsAre("two-words.json", "two-words.md"));
}

TEST(report, failed_write_keeps_what_was_there) {
  const folder here;
  fs::create_directories(here / "taken");
  std::ofstream(here / "taken/inside") << "kept";
  EXPECT_THROW(write_file(here / "taken", "text"), format_error);
  EXPECT_THROW(write_file(here / "taken/inside/below", "text"), format_error);
  EXPECT_THROW(write_report(small_report(), here / "taken/inside"), format_error);
  EXPECT_EQ(content(here / "taken/inside"), "kept");
  EXPECT_THAT(here.names(), ElementsAre("taken"));
}

TEST(report, index_lists_the_reports_that_are_there) {
  const folder here;
  write_index(here);
  EXPECT_THAT(content(here / "README.md"), HasSubstr("No report has been made yet"));
  report r = small_report();
  r.figures = {small_figure("curve")};
  write_report(r, here);
  r.study = "another";
  r.figures.clear();
  r.unfinished = {"Half."};
  write_report(r, here);
  std::ofstream(here / "foreign.json") << R"({"schema": "something.else/1"})";
  write_index(here);
  const std::string index = content(here / "README.md");
  EXPECT_LT(index.find("## [Another](another.md)"),
            index.find("## [Two words](two-words.md)\n\n**Does it hold?**\n\nIt does.\n"));
  EXPECT_THAT(index, HasSubstr("Not complete"));
  EXPECT_THAT(index, HasSubstr("- [Growth \\| of \\[a\\] product](two-words-curve.svg)\n"));
  EXPECT_THAT(index, HasSubstr("Made by `deltaproof study two-words --seed 1`."));
  EXPECT_THAT(index, Not(HasSubstr("./run"))) << "a folder of reports need not be this project's";
  EXPECT_THAT(index, Not(HasSubstr("foreign")));
}

}  // namespace
}  // namespace deltaproof
