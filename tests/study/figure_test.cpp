// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/figure.hpp"

#include <charconv>
#include <cstdlib>

#include "deltaproof/number/canary.hpp"
#include "support/study.hpp"

namespace deltaproof {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

figure one_panel(std::vector<series> curves) {
  return {.id = "test",
          .title = "Title",
          .caption = "Caption.",
          .alt = "Alt",
          .panels = {{.title = "", .x = {.label = "x"}, .y = {.label = "y"}, .curves = std::move(curves)}}};
}

// Elements nest, attributes are quoted and unique, text has no bare '<' or '&': enough of XML for what we write.
std::string xml_fault(const std::string& text) {
  std::vector<std::string> open;
  std::size_t at = 0;
  std::size_t roots = 0;
  while (at < text.size()) {
    const std::size_t next = std::min(text.find('<', at), text.size());
    for (std::size_t i = at; (i = text.find('&', i)) < next; ++i) {
      const std::string entity = text.substr(i, text.find(';', i) - i + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;") return "entity " + entity;
    }
    if (next == text.size()) break;
    const std::size_t close = text.find('>', next);
    if (close == std::string::npos) return "unclosed tag";
    std::string tag = text.substr(next + 1, close - next - 1);
    at = close + 1;
    if (tag.front() == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "closes " + tag;
      open.pop_back();
      continue;
    }
    const bool empty = tag.back() == '/';
    if (empty) tag.pop_back();
    const std::string name = tag.substr(0, tag.find(' '));
    if (open.empty() && ++roots > 1) return "second root " + name;
    std::vector<std::string> attributes;
    for (std::size_t i = name.size(); i < tag.size();) {
      if (tag[i] != ' ') return "no space before attribute in " + tag;
      const std::size_t equals = tag.find("=\"", i);
      if (equals == std::string::npos) return "attribute without value in " + tag;
      const std::string attribute = tag.substr(i + 1, equals - i - 1);
      if (std::find(attributes.begin(), attributes.end(), attribute) != attributes.end()) return "twice " + attribute;
      attributes.push_back(attribute);
      i = tag.find('"', equals + 2);
      if (i == std::string::npos) return "unquoted in " + tag;
      ++i;
    }
    if (!empty) open.push_back(name);
  }
  return open.empty() && roots == 1 ? "" : "left open";
}

// The corners of the first path of a class, followed from "M" and "l" (relative).
std::vector<std::pair<double, double>> corners(const std::string& text, const std::string& name) {
  const std::size_t start = text.find("class=\"" + name + "\"");
  if (start == std::string::npos) return {};
  const std::size_t open = text.find(" d=\"", start) + 4;
  const std::string d = text.substr(open, text.find('"', open) - open);
  std::vector<std::pair<double, double>> result;
  std::vector<double> values;
  bool relative = false;
  const auto flush = [&] {
    for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
      const auto base = relative && !result.empty() ? result.back() : std::pair<double, double>{0, 0};
      result.emplace_back(base.first + values[i], base.second + values[i + 1]);
    }
    values.clear();
  };
  for (const char* at = d.data(); at != d.data() + d.size();) {
    if (*at == 'M' || *at == 'l') {
      flush();
      relative = *at == 'l';
    }
    double value = 0;
    const auto read = std::from_chars(at, d.data() + d.size(), value);
    if (read.ec == std::errc()) values.push_back(value);
    at = read.ec == std::errc() ? read.ptr : at + 1;
  }
  flush();
  return result;
}

std::string refusal(const figure& f) {
  try {
    (void)svg(f);
  } catch (const domain_error& e) {
    return e.what();
  }
  return "drawn";
}

std::vector<figure> zoo() {
  std::vector<double> x, y, upper;
  for (int i = 1; i <= 200; ++i) {
    x.push_back(i);
    y.push_back(1.5 + std::sin(i * 0.1));
    upper.push_back(y.back() + 1);
  }
  figure styles = one_panel({{"line", x, y},
                             {"steps <&'\"\\>", x, y, series_style::steps},
                             {"points", {1, 2}, {1, 2}, series_style::points},
                             {"cloud", x, y, series_style::cloud},
                             {"bars", {1, 2, 3}, {4, 5, 6}, series_style::bars},
                             {"line", x, y, series_style::band, upper},
                             {"", x, y}});
  styles.panels[0].title =
      "a title with <angle> & 'quotes' that is long enough to need a second line in any panel of a figure with three columns";
  styles.panels[0].marks = {{mark_direction::horizontal, 2, "limit < 2"},
                            {mark_direction::vertical, 100, "half"},
                            {mark_direction::vertical, 102, "close to it"}};
  figure multiples = styles;
  for (int i = 0; i < 4; ++i) multiples.panels.push_back(styles.panels[0]);
  multiples.panels[2].tall = true;
  multiples.panels[1].x.scale = axis_scale::logarithmic;
  multiples.panels[1].y.scale = axis_scale::logarithmic;
  figure heat = one_panel({});
  heat.panels[0].heat = heat_map{.rows = 2,
                                 .columns = 3,
                                 .values = {1, 2, 3, 4, NAN, 6},
                                 .label = "value",
                                 .row_names = {"a", "b"},
                                 .column_names = {"it's", "q", "a very long name of a column that is slanted"},
                                 .digits = 2};
  figure phase = one_panel({});
  phase.panels[0].x = {.label = "x", .minimum = 0, .maximum = 2};
  phase.panels[0].y = {.label = "y", .scale = axis_scale::logarithmic, .minimum = 0.1, .maximum = 10};
  phase.panels[0].heat = heat_map{.rows = 30, .columns = 40, .values = std::vector<double>(1200, 0.5), .label = "λ", .middle = 0};
  return {styles, multiples, heat, phase};
}

TEST(figure, svg_is_well_formed_themed_and_speaks_of_nothing_else) {
  for (const figure& f : zoo()) {
    const std::string text = svg(f);
    EXPECT_EQ(xml_fault(text), "");
    EXPECT_THAT(text, HasSubstr("@media (prefers-color-scheme:dark)"));
    EXPECT_THAT(text, HasSubstr("aria-label=\"Alt\""));
    for (const char* trace : {"nuplot", "rgb(", "href", " id=", "nan", "M-"})
      EXPECT_THAT(text.substr(0, text.find("not finite")), Not(HasSubstr(trace)));
  }
  EXPECT_EQ(xml_fault("<a><b></a></b>"), "closes /a");
}

TEST(figure, same_data_same_bytes) {
  for (const figure& f : zoo()) EXPECT_EQ(svg(f), svg(f));
}

TEST(figure, legend_names_each_label_once) {
  const std::string text = svg(zoo()[1]);
  const auto occurrences = [&](const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(occurrences(">cloud</text>"), 1U);
  EXPECT_EQ(occurrences(">steps &lt;&amp;'&quot;\\&gt;</text>"), 1U);
}

TEST(figure, panel_without_a_point_is_refused) {
  EXPECT_THAT(refusal(one_panel({})), HasSubstr("no point"));
  EXPECT_THAT(refusal(one_panel({{"a", {}, {}}})), HasSubstr("no point"));
  EXPECT_THAT(refusal(one_panel({{"a", {1, 2}, {NAN, INFINITY}}})), HasSubstr("no point"));
  figure logarithmic = one_panel({{"a", {1, 2}, {0, -1}}});
  EXPECT_EQ(refusal(logarithmic), "drawn");
  logarithmic.panels[0].y.scale = axis_scale::logarithmic;
  EXPECT_THAT(refusal(logarithmic), HasSubstr("no point"));
  logarithmic.panels.clear();
  EXPECT_THAT(refusal(logarithmic), HasSubstr("no panel"));
}

TEST(figure, what_does_not_fit_together_is_refused) {
  EXPECT_THAT(refusal(one_panel({{"a", {1, 2, 3}, {1, 2}}})), HasSubstr("3 x and 2 y"));
  EXPECT_THAT(refusal(one_panel({{"a", {1, 2}, {1, 2}, series_style::band}})), HasSubstr("0 y_upper"));
  std::vector<series> many;
  for (int i = 0; i < 8; ++i) many.push_back({"s" + std::to_string(i), {1, 2}, {1, 2}});
  EXPECT_EQ(refusal(one_panel(many)), "drawn");
  many.push_back({"s8", {1, 2}, {1, 2}});
  EXPECT_THAT(refusal(one_panel(many)), HasSubstr("more than 8 labels"));
  figure f = one_panel({{"a", {1, 2}, {1, 2}}});
  f.panels[0].x.minimum = 3;
  f.panels[0].x.maximum = 2;
  EXPECT_THAT(refusal(f), HasSubstr("ascending"));
  f.panels[0].x = {.label = "x", .scale = axis_scale::logarithmic, .minimum = 0};
  EXPECT_THAT(refusal(f), HasSubstr("above 0 on a logarithmic axis"));
  f = zoo()[2];
  f.panels[0].heat->values.pop_back();
  EXPECT_THAT(refusal(f), HasSubstr("has 5 values"));
  f = zoo()[2];
  f.panels[0].heat->row_names.clear();
  EXPECT_THAT(refusal(f), HasSubstr("a name for each row"));
}

TEST(figure, missing_gnuplot_names_the_package) {
  const char* const set = std::getenv("PATH");
  const std::string path = set != nullptr ? set : "";
  ASSERT_EQ(::setenv("PATH", "/nonexistent", 1), 0);
  std::string message = "drawn";
  try {
    (void)svg(one_panel({{"a", {1, 2}, {1, 2}}}));
  } catch (const environment_error& e) {
    message = e.what();
  }
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(message, AllOf(HasSubstr("gnuplot"), HasSubstr("gnuplot-nox")));
}

TEST(figure, straight_line_lies_where_its_numbers_say) {
  series s{"", {}, {}};
  for (int i = 0; i <= 100; ++i) {
    s.x.push_back(std::pow(10.0, i * 0.05));
    s.y.push_back(std::pow(10.0, -i * 0.02));
  }
  figure f = one_panel({s});
  f.panels[0].x = {.label = "x", .scale = axis_scale::logarithmic, .minimum = 1, .maximum = 1e5};
  f.panels[0].y = {.label = "y", .scale = axis_scale::logarithmic, .minimum = 1e-4, .maximum = 1};
  const std::string text = svg(f);
  const auto line = corners(text, "ln sn");
  const auto frame = corners(text, "g");
  ASSERT_LT(line.size(), 6U) << "points on a straight line are left out";
  ASSERT_GT(line.size(), 1U);
  double bottom = 0, top = 1e9;
  for (const auto& [x, y] : frame) bottom = std::max(bottom, y), top = std::min(top, y);
  EXPECT_NEAR(line.front().second, top, 0.3);
  EXPECT_NEAR(line.back().second, (top + bottom) / 2, 0.3);
}

TEST(figure, line_that_overflows_ends_in_a_cross_and_says_so) {
  EXPECT_THAT(svg(one_panel({{"a", {1, 2, 3, 4}, {1, 2, INFINITY, INFINITY}}})),
              AllOf(HasSubstr("\"x s0\""), HasSubstr("infinite after this")));
  EXPECT_THAT(svg(one_panel({{"a", {1, 2, 3, 4}, {1, 2, NAN, 3}}})), Not(HasSubstr("infinite after this")));
}

TEST(figure, what_lies_outside_its_range_is_cut_not_bent) {
  figure f =
      one_panel({{"", {0, 1e9}, {0, 1e9}}, {"far", {1, 2}, {1e300, 1e300}}, {"dots", {-5, 50}, {0, 0}, series_style::cloud}});
  f.panels[0].x = {.label = "x", .minimum = 0, .maximum = 2};
  f.panels[0].y = {.label = "y", .minimum = 0, .maximum = 2};
  const std::string text = svg(f);
  const auto line = corners(text, "ln sn");
  const auto grid = corners(text, "g");
  ASSERT_EQ(line.size(), 2U);
  double left = 1e9, right = 0, top = 1e9, bottom = 0;
  for (const auto& [x, y] : grid)
    left = std::min(left, x), right = std::max(right, x), top = std::min(top, y), bottom = std::max(bottom, y);
  EXPECT_NEAR(line.front().first, left, 0.2);
  EXPECT_NEAR(line.front().second, bottom, 0.2);
  EXPECT_NEAR(line.back().first, right, 0.2);
  EXPECT_NEAR(line.back().second, top, 0.2);
}

TEST(figure, point_without_neighbours_is_a_dot) {
  EXPECT_THAT(svg(one_panel({{"a", {1, 2, 3, 4, 5}, {1, 2, NAN, 3, NAN}}})), HasSubstr("class=\"mk s0\""));
  EXPECT_THAT(svg(one_panel({{"a", {1, 2, 3}, {1, 2, 3}}})), Not(HasSubstr("class=\"mk s0\"")));
}

TEST(figure, large_data_make_small_files) {
  std::vector<series> curves;
  for (int k = 0; k < 8; ++k) {
    series s{"s" + std::to_string(k), {}, {}};
    for (int i = 1; i <= 100000; ++i) {
      s.x.push_back(i);
      s.y.push_back(std::sin(i * (1.0 + k)) + k);
    }
    curves.push_back(std::move(s));
  }
  EXPECT_LT(svg(one_panel(curves)).size(), 150000U);
  series cloud{"orbit", {}, {}, series_style::cloud};
  double x = 0.3;
  for (int i = 0; i < 60000; ++i) {
    const double r = 3.5 + 0.5 * i / 60000;
    x = r * x * (1 - x);
    cloud.x.push_back(r);
    cloud.y.push_back(x);
  }
  EXPECT_LT(svg(one_panel({cloud})).size(), 150000U);
  figure map = zoo()[3];
  map.panels[0].heat->rows = map.panels[0].heat->columns = 64;
  map.panels[0].heat->values.resize(64 * 64);
  for (std::size_t i = 0; i < 64 * 64; ++i) map.panels[0].heat->values[i] = std::sin(static_cast<double>(i));
  EXPECT_LT(svg(map).size(), 150000U);
}

TEST(decimate, keeps_extremes_ends_and_order) {
  std::vector<double> x, y;
  for (int i = 0; i < 100000; ++i) {
    x.push_back(i);
    y.push_back(std::sin(i * 0.001));
  }
  y[12345] = 50;
  y[77777] = -50;
  const auto kept = decimate(x, y, 400);
  EXPECT_LE(kept.size(), 400U);
  EXPECT_GE(kept.size(), 200U);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_EQ(std::adjacent_find(kept.begin(), kept.end()), kept.end());
  EXPECT_EQ(kept.front(), 0U);
  EXPECT_EQ(kept.back(), y.size() - 1);
  for (const std::size_t spike : {12345U, 77777U}) EXPECT_TRUE(std::binary_search(kept.begin(), kept.end(), spike));
}

TEST(decimate, keeps_short_series_and_one_break_per_slice) {
  const std::vector<double> x{0, 1, 2}, y{5, NAN, 7};
  EXPECT_EQ(decimate(x, y, 3).size(), 3U);
  EXPECT_TRUE(decimate({}, {}, 10).empty());
  std::vector<double> long_x, long_y;
  for (int i = 0; i < 10000; ++i) {
    long_x.push_back(i);
    long_y.push_back(i % 2 == 0 ? std::nan("") : static_cast<double>(i));
  }
  const auto kept = decimate(long_x, long_y, 100);
  EXPECT_LE(kept.size(), 100U);
  const auto breaks = std::count_if(kept.begin(), kept.end(), [&](std::size_t i) { return std::isnan(long_y[i]); });
  EXPECT_EQ(breaks, 25);
}

}  // namespace
}  // namespace deltaproof
