// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "deltaproof/study/figure.hpp"

#include <pthread.h>

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

// The corners of the first path of a colour, "Mx,y Lx,y ...".
std::vector<std::pair<double, double>> corners(const std::string& text, const std::string& colour) {
  const std::size_t start = text.find("<path stroke='" + colour);
  if (start == std::string::npos) return {};
  std::vector<double> values;
  const std::size_t open = text.find(" d='", start) + 4, end = text.find("'/>", open);
  for (const char* at = text.data() + open; at < text.data() + end;) {
    double value = 0;
    const auto read = std::from_chars(at, text.data() + end, value);
    if (read.ec == std::errc()) values.push_back(value);
    at = read.ec == std::errc() ? read.ptr : at + 1;
  }
  std::vector<std::pair<double, double>> result;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) result.emplace_back(values[i], values[i + 1]);
  return result;
}

constexpr const char* neutral = "#7d8690";
constexpr const char* border = "#9aa3ad";

struct edges {
  double left = 1e9, right = 0, top = 1e9, bottom = 0;
};

// Of the panel: its border runs down the left side and along the bottom.
edges edges_of(const std::string& text) {
  edges e;
  for (const auto& [x, y] : corners(text, border))
    e = {std::min(e.left, x), std::max(e.right, x), std::min(e.top, y), std::max(e.bottom, y)};
  return e;
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
  std::vector<double> x, y;
  for (int i = 1; i <= 200; ++i) {
    x.push_back(i);
    y.push_back(1.5 + std::sin(i * 0.1));
  }
  figure styles = one_panel({{"line", x, y},
                             {"steps <&'\"\\>", x, y, series_style::steps},
                             {"points", {1, 2}, {1, 2}, series_style::points},
                             {"cloud", x, y, series_style::cloud},
                             {"bars", {1, 2, 3}, {4, 5, 6}, series_style::bars},
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
  return {styles, multiples, heat};
}

TEST(figure, svg_is_themed_says_what_it_shows_and_escapes_text) {
  for (const figure& f : zoo()) {
    const std::string text = svg(f);
    EXPECT_THAT(text, HasSubstr("@media (prefers-color-scheme:dark)"));
    EXPECT_THAT(text, AllOf(HasSubstr("aria-label=\"Alt\""), HasSubstr("<title>Title</title>"), Not(HasSubstr("rgb("))));
  }
  EXPECT_THAT(svg(zoo()[0]), AllOf(HasSubstr("a title with &lt;angle> &amp; 'quotes'"), Not(HasSubstr("<angle"))));
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
  EXPECT_EQ(occurrences("cloud</text>"), 1U);
  EXPECT_EQ(occurrences("steps &lt;&amp;'\"\\></text>"), 1U);
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
  const auto line = corners(text, neutral);
  const edges panel = edges_of(text);
  ASSERT_GT(line.size(), 1U);
  EXPECT_NEAR(line.front().first, panel.left, 0.2);
  EXPECT_NEAR(line.front().second, panel.top, 0.2);
  EXPECT_NEAR(line.back().first, panel.right, 0.2);
  EXPECT_NEAR(line.back().second, (panel.top + panel.bottom) / 2, 0.2);
}

TEST(figure, line_that_overflows_ends_in_a_cross_and_says_so) {
  EXPECT_THAT(svg(one_panel({{"a", {1, 2, 3, 4}, {1, 2, INFINITY, INFINITY}}})), HasSubstr("infinite after this"));
  EXPECT_THAT(svg(one_panel({{"a", {1, 2, 3, 4}, {1, 2, NAN, 3}}})), Not(HasSubstr("infinite after this")));
}

TEST(figure, what_lies_outside_its_range_is_cut_not_bent) {
  figure f =
      one_panel({{"", {0, 1e9}, {0, 1e9}}, {"far", {1, 2}, {1e300, 1e300}}, {"dots", {-5, 50}, {0, 0}, series_style::cloud}});
  f.panels[0].x = {.label = "x", .minimum = 0, .maximum = 2};
  f.panels[0].y = {.label = "y", .minimum = 0, .maximum = 2};
  const std::string text = svg(f);
  const auto line = corners(text, neutral);
  const edges panel = edges_of(text);
  ASSERT_EQ(line.size(), 2U);
  EXPECT_NEAR(line.front().first, panel.left, 0.2);
  EXPECT_NEAR(line.front().second, panel.bottom, 0.2);
  EXPECT_NEAR(line.back().first, panel.right, 0.2);
  EXPECT_NEAR(line.back().second, panel.top, 0.2);
}

TEST(figure, point_without_neighbours_is_a_dot) {
  const auto dots = [](std::vector<double> y) { return svg(one_panel({{"a", {1, 2, 3, 4, 5}, std::move(y)}})); };
  EXPECT_THAT(dots({1, 2, NAN, 3, NAN}), HasSubstr("color='#0f2cb1'"));
  EXPECT_THAT(dots({1, 2, 3, 2, 1}), Not(HasSubstr("color='#0f2cb1'")));
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
  EXPECT_LT(svg(one_panel(curves)).size(), 200000U);
  series cloud{"orbit", {}, {}, series_style::cloud};
  double x = 0.3;
  for (int i = 0; i < 60000; ++i) {
    const double r = 3.5 + 0.5 * i / 60000;
    x = r * x * (1 - x);
    cloud.x.push_back(r);
    cloud.y.push_back(x);
  }
  EXPECT_LT(svg(one_panel({cloud})).size(), 200000U);
}

TEST(figure, spike_of_a_long_line_is_drawn) {
  series s{"", {}, {}};
  for (int i = 0; i < 100000; ++i) {
    s.x.push_back(i);
    s.y.push_back(std::sin(i * 0.001));
  }
  s.y[77777] = 50;
  const std::string text = svg(one_panel({s}));
  const edges panel = edges_of(text);
  double highest = 1e9;
  for (const auto& [x, y] : corners(text, neutral)) highest = std::min(highest, y);
  EXPECT_LT(highest, panel.top + 0.1 * (panel.bottom - panel.top));
}

// std::regex overflowed a stack of 1 MiB on this drawing.
TEST(figure, long_line_needs_no_deep_stack) {
  figure f = one_panel({{"s", {}, {}, series_style::steps}});
  for (int i = 0; i < 1999; ++i) {
    f.panels[0].curves[0].x.push_back(i);
    f.panels[0].curves[0].y.push_back(std::sin(i * 1.7));
  }
  pthread_attr_t small;
  ASSERT_EQ(pthread_attr_init(&small), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&small, std::size_t{1} << 20), 0);
  pthread_t thread;
  const auto draw = [](void* given) -> void* {
    auto& [what, text] = *static_cast<std::pair<figure, std::string>*>(given);
    text = svg(what);
    return nullptr;
  };
  std::pair<figure, std::string> drawn{f, {}};
  ASSERT_EQ(pthread_create(&thread, &small, draw, &drawn), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_EQ(drawn.second, svg(f));
}

}  // namespace
}  // namespace deltaproof
