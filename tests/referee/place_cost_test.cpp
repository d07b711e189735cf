// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Whether a plan costs more than its formats: what runs scatter by chance decides nothing.
#include "referee/place_cost.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "deltaproof/number/random.hpp"

namespace deltaproof::referee_detail {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Runs of one law on each kind of inputs, of the plan and of its formats: errors `ratio` times as large, logs scattered by
/// `spread`, those of the formats by `more` times as much. With probability `absent` the decisive rounding does not happen.
place_cost drawn_cost(double ratio, double spread, std::size_t runs, std::uint64_t seed, double absent = 0, double more = 1) {
  philox draw(seed, 0xc057);
  const auto error = [&](double typical) {
    const double missing = draw.uniform() < absent ? 1e-6 : 1;
    const double of = typical == 1e-3 ? more * spread : spread;
    return missing * typical * std::exp(of * draw.normal());
  };
  place_cost c;
  c.magnitude = 1;
  c.least = {1e-3 / 64, 1e-3 / 64};
  c.plan = ratio * 1e-3;
  c.tensor = "o";
  c.runs = {{error(ratio * 1e-3)}, {}};
  c.alone[0] = {error(1e-3)};
  for (std::size_t r = 0; r < runs; ++r) c.runs.back().push_back(error(ratio * 1e-3));
  for (std::size_t r = 0; r < std::max(runs, alone_draws - 1); ++r) c.alone[1].push_back(error(1e-3));
  return c;
}

adequacy_report judged(const place_cost& c, std::optional<double> accuracy = std::nullopt) {
  adequacy_report out;
  out.accuracy = accuracy;
  judge_place(c, 1e-6, out);
  return out;
}

TEST(place_cost, of_runs_that_hardly_scatter_is_known) {
  EXPECT_TRUE(judged(drawn_cost(6, 0.05, 4, 1)).adequate);
  EXPECT_THAT(judged(drawn_cost(6, 0.05, 4, 1)).reason, IsEmpty());
  EXPECT_FALSE(judged(drawn_cost(12, 0.01, 16, 1)).adequate);
}

TEST(place_cost, of_runs_that_overflow_says_whose_they_are) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  place_cost c = drawn_cost(6, 0.05, 4, 1);
  c.plan = c.runs.back().front() = infinity;
  EXPECT_FALSE(judged(c).adequate);
  EXPECT_EQ(judged(c).reason, "emulated runs of the plan overflow in o, and runs in its formats alone do not");
  c.alone[1].back() = infinity;
  EXPECT_FALSE(judged(c).adequate);
  EXPECT_THAT(judged(c).reason, HasSubstr("so do runs in its formats alone"));
}

TEST(place_cost, of_runs_that_scatter_too_much_is_said_to_be_unknown) {
  const place_cost c = drawn_cost(35, 1, 4, 2);
  ASSERT_TRUE(c.is_undecided(1e-6)) << c.ratio();
  const adequacy_report out = judged(c);
  EXPECT_TRUE(out.adequate);
  EXPECT_THAT(out.reason, HasSubstr("scatter too much"));
  // More runs decide it.
  EXPECT_FALSE(judged(drawn_cost(35, 1, 128, 2)).adequate);
  // An accuracy that was asked for does not compare.
  EXPECT_THAT(judged(c, 1).reason, IsEmpty());
  EXPECT_FALSE(judged(c, 1e-3).adequate);
}

TEST(place_cost, of_a_head_that_would_be_refused_is_drawn_again_and_of_no_other) {
  const std::vector<plan_variant> variants(1);
  const plan_variant alone;
  referee_options options;
  philox draw(9, 0xc057);
  const auto errors = [&](std::size_t, const plan_variant& v, std::uint64_t) {
    return std::vector<double>{(&v == &alone ? 1e-3 : 35e-3) * std::exp(draw.normal())};
  };
  options.threads = 1;
  const auto after = [&](double seconds_of_a_run) {
    std::vector<place_cost> places{drawn_cost(2, 0.1, 4, 3), drawn_cost(35, 1, 4, 2)};
    const auto variant = [&](std::size_t law, std::size_t) -> const plan_variant& { return variants[law / 2]; };
    const more_runs from{variant, alone, options, errors, [&](std::size_t) { return seconds_of_a_run; }};
    draw_until_decided(from, 1e-6, {0, 1, 2}, places);
    return places;
  };
  const std::vector<place_cost> drawn = after(0);
  EXPECT_EQ(drawn[0].runs[1].size(), 4U);
  EXPECT_EQ(drawn[1].runs[1].size(), 16U);      // doubled at each look, as it stays undecided
  EXPECT_EQ(drawn[1].alone[1].size(), 64U);     // four times as many at each
  EXPECT_EQ(drawn[1].runs[0].size(), 1U);       // roundings on the given inputs repeat
  EXPECT_EQ(after(1e6)[1].runs[1].size(), 4U);  // no time
}

TEST(place_cost, beyond_what_is_allowed_is_claimed_of_a_plan_at_the_limit_no_more_often_than_declared) {
  constexpr double alpha = 0.01;
  constexpr std::size_t trials = 20000;
  for (const double spread : {0.05, 0.3, 1.0}) {
    for (const auto& [absent, more] : {std::pair{0.0, 1.0}, std::pair{0.25, 1.0}, std::pair{0.0, 3.0}}) {
      // Where a rounding may be absent from all of the first runs, only the second look keeps what is declared.
      const std::size_t runs = absent > 0 ? 12 : 6;
      std::size_t claimed = 0;
      for (std::size_t i = 0; i < trials; ++i)
        claimed += drawn_cost(allowed_ratio, spread, runs, 100 + i, absent, more).surely_above(alpha) ? 1 : 0;
      const double rate = static_cast<double>(claimed) / trials;
      std::printf(
          "spread %.2f, of the formats %.2f, %.0f %% of the roundings absent: claimed in %.3g %% of the trials, declared %.3g %% "
          "for two laws\n",
          spread, more * spread, 100 * absent, 100 * rate, 200 * alpha);
      EXPECT_LE(rate, 2 * alpha + 5 * std::sqrt(2 * alpha / trials));
    }
  }
}

// A plan is as good as the worst of what it allows; its reader may have a better one of these.
TEST(place_cost, names_the_variants_that_are_adequate_by_themselves) {
  const auto of_variants = [](const std::vector<double>& ratios, std::uint64_t seed) {
    place_cost all = drawn_cost(ratios.front(), 0.01, 16, seed);
    for (std::size_t i = 1; i < ratios.size(); ++i) {
      const place_cost one = drawn_cost(ratios[i], 0.01, 16, seed + i);
      all.runs.insert(all.runs.end(), one.runs.begin(), one.runs.end());
    }
    return all;
  };
  const auto reason = [](const std::vector<place_cost>& places, std::optional<double> accuracy = std::nullopt) {
    adequacy_report out;
    out.accuracy = accuracy;
    const std::vector<std::string> names{"first", "second", "third"};
    judge_places(places, 1e-6, 3, [&](std::size_t number) { return names[number]; }, out);
    return out.reason;
  };
  EXPECT_THAT(reason({of_variants({20, 2, 2}, 1)}),
              HasSubstr("each of these is adequate alone: second, third; if the kernel uses one of these, judge by a copy"));
  // In every place; what a place has no runs of its own of is its first variant there.
  EXPECT_THAT(reason({of_variants({20, 2, 2}, 1), of_variants({2, 20, 2}, 9)}),
              HasSubstr("; one is adequate alone: third; if the kernel uses it, judge by a copy"));
  EXPECT_THAT(reason({of_variants({2, 20}, 1)}),
              HasSubstr("each of these is adequate alone: first (the first entry of every list), third; if"));
  EXPECT_THAT(reason({of_variants({20, 12, 20}, 1)}), ::testing::EndsWith("between fp16 and bf16)"));
  EXPECT_THAT(reason({of_variants({2, 2, 2}, 1)}), IsEmpty());
  // Their errors are 1e-3 times the ratio.
  EXPECT_THAT(reason({of_variants({20, 4, 2}, 1)}, 3e-3),
              HasSubstr("; one is adequate alone: third; if the kernel uses it, judge by a copy"));
}

}  // namespace
}  // namespace deltaproof::referee_detail
