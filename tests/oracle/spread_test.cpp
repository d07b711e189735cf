// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Problems whose numbers leave the exponents of doubles on their way, or lie at the ends of them, and whose truth is an ordinary
// number: every question is answered with digits. The judge works with 4000 bits and MPFR's exponents.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "deltaproof/number/convert.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/oracle/wide_bound.hpp"
#include "oracle/hostile_checks.hpp"
#include "oracle/one_head.hpp"
#include "oracle/solve/stream.hpp"

namespace deltaproof {
namespace {

using testing::head;
using testing::numbers;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double least = std::numeric_limits<double>::denorm_min();

numbers all(std::size_t n, double x) { return numbers(n, x); }

struct spread_case {
  std::string name;
  problem p;
};

std::vector<spread_case> spread_cases() {
  const numbers back{0, -650, 200, 200, 200, 200};
  return {
      {"a state that grows back", head(1, all(6, 1), all(6, 1), {1, 0, 0, 0, 0, 0}, {1, .5, .5, .5, .5, .5}, back)},
      {"two rows that grow back, written to before", head(2, all(12, 1), all(12, 1), {1, .5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                                                          {.4, .5, .3, .5, .5, .3}, {-650, 200, 200, 200, 49, 0}, {1, 2, 3, 4})},
      {"two rows that grow back",
       head(2, all(12, 1), all(12, 1), all(12, 0), all(6, .3), {-650, 200, 200, 200, 49, 0}, {1, 2, 3, 4})},
      {"gates above 208", head(1, all(4, 1), all(4, 1), {1, .5, .3, .2}, all(4, .5), {0, 209, -300, 300})},
      {"channels that part and meet", head(2, all(8, 1), {.6, 1, 1, .6, 0, .6, .6, .8}, {.7, .1, .2, .3, .7, .7, 0, .7},
                                           all(4, .5), {0, 0, -650, 0, 300, -300, 300, 250}, {1, 2, 3, 4})},
      {"channels far apart that meet again", head(2, all(12, 1), {0, .5, 0, 1, 0, 1, 0, 1, .5, 0, 0, .5}, all(6, .5), all(6, .5),
                                                  {-700, 0, -700, 0, 300, 0, 300, 0, 300, 0, 300, 0}, {1e-200, 3})},
      {"the largest start and a deep gate", head(1, all(2, 1), all(2, 1), all(2, .7), all(2, .5), {-745, 0}, {1.7e308})},
      {"a start that a gate forgets", head(1, all(2, 1), all(2, 1), all(2, .75), all(2, .5), {-1e30, 0}, {1e300})},
      {"nothing that grows", head(1, all(3, 1), all(3, 1), all(3, 0), all(3, .5), {-infinity, -1e30, 300}, {1})},
      {"nothing that grows by channel",
       head(2, all(6, 1), all(6, 1), all(6, 0), all(3, .5), {-infinity, -infinity, -1e30, -infinity, 300, 300}, {1, 2, 3, 4})},
  };
}

/// As `spread_cases`, with truths below the normal range of fp64 or 0 beside it.
std::vector<spread_case> least_cases() {
  return {
      {"the smallest of all", head(1, all(3, least), all(3, least), all(3, least), all(3, least), {}, {least})},
      {"the smallest of all, with gates",
       head(1, all(3, least), all(3, least), all(3, least), all(3, least), all(3, least), {least})},
      {"subnormal, with gates", head(1, all(3, 1), all(3, 1e-320), all(3, 1e-320), all(3, 1e-3), all(3, -.5), {3e-320})},
      {"forgotten to nothing", head(1, all(2, 1), all(2, 1), all(2, 0), all(2, .5), {-1e30, 0}, {1e300})},
  };
}

std::vector<double> nearest(const std::vector<testing::tracked>& x) {
  std::vector<double> out;
  for (const auto& xi : x) out.push_back(testing::judge_detail::nearest(xi));
  return out;
}

question asked(double relative, double range) {
  question q;
  q.threads = 1;
  q.relative_radius = relative;
  q.range.output = q.range.state = range;
  return q;
}

void expect_digits(const reference_tensor& got, const std::vector<double>& truth, const std::string& what) {
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (std::fabs(truth[i]) < 0x1p-900) continue;
    EXPECT_LE(got.radius[i], 0x1p-40 * std::fabs(truth[i])) << what << " element " << i << ", truth " << truth[i];
    EXPECT_NEAR(got.value[i], truth[i], 0x1p-40 * std::fabs(truth[i])) << what << " element " << i;
  }
}

TEST(spread, radii_are_small_beside_ordinary_truths) {
  testing::tracked::precision() = 4000;
  for (const auto& [name, p] : spread_cases()) {
    const auto truth = testing::judge<testing::tracked>(p);
    const std::vector<double> o = nearest(truth.o), state = nearest(truth.state);
    for (const double range : {infinity, std::numeric_limits<double>::max()}) {
      // Small beside the largest of all is not yet small beside each: the rows are bounded by their norm.
      const reference got = solve(p, asked(0x1p-500, range));
      const std::string what = name + (range == infinity ? "" : ", with a range");
      EXPECT_TRUE(got.divergences.empty()) << what;
      expect_digits(got.o, o, what + ": o");
      expect_digits(got.final_state, state, what + ": final_state");
      EXPECT_EQ(got.tiers.count("exact"), name.starts_with("nothing") ? got.tiers.count("exact") : 0U) << what;
    }
  }
}

/// Every element is rounded, and to what the truth rounds to; whole and block by block.
void expect_rounded(const spread_case& c, const format& to) {
  testing::tracked::precision() = 4000;
  const auto truth = testing::judge<testing::tracked>(c.p);
  const std::vector<double> o = nearest(truth.o), state = nearest(truth.state);
  question q;
  q.threads = 1;
  q.round_output = q.round_state = to;
  const auto compare = [&](const std::vector<double>& got, const std::vector<double>& want, const std::string& what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_FALSE(std::isnan(got[i])) << what << " element " << i << ", truth " << want[i];
      EXPECT_EQ(got[i], to == fp64 ? want[i] : round_to<bf16>(want[i]).value()) << what << " element " << i;
    }
  };
  const reference whole = solve_by_head(c.p, q, [&](const solved_head& h) {
    compare(h.rounded_o, o, c.name + ": o");
    compare(h.rounded_state, state, c.name + ": final_state");
  });
  EXPECT_EQ(whole.unanswered, 0U) << c.name;
  std::vector<double> blocks(o.size(), std::numeric_limits<double>::quiet_NaN()), last;
  stream_sinks sinks;
  sinks.chunk = [&](const decided_chunk& chunk) {
    for (std::size_t i = 0; i < chunk.count * c.p.value_dim(); ++i) {
      const bool news = !chunk.were_open || (!chunk.were_open->empty() && ((*chunk.were_open)[i / 64] >> (i % 64) & 1) != 0);
      const double x = chunk.rounded.value[chunk.base + i];
      if (news && !std::isnan(x)) blocks[chunk.first * c.p.value_dim() + i] = x;
    }
  };
  sinks.head = [&](const decided_head& h) { last = h.state.value; };
  static_cast<void>(solve_by_block(c.p, q, sinks, chunk_tokens));
  compare(blocks, o, c.name + ", in blocks: o");
  compare(last, state, c.name + ", in blocks: final_state");
}

TEST(spread, ordinary_truths_are_rounded) {
  for (const spread_case& c : spread_cases()) {
    for (const format& to : {fp64, bf16}) expect_rounded(c, to);
  }
}

TEST(spread, what_lies_below_the_normal_range_is_rounded) {
  for (const spread_case& c : least_cases()) {
    for (const format& to : {fp64, bf16}) expect_rounded(c, to);
  }
}

TEST(spread, all_that_is_said_is_sound) {
  std::vector<spread_case> cases = spread_cases();
  for (spread_case& c : least_cases()) cases.push_back(std::move(c));
  for (const auto& [name, p] : cases) {
    for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(testing::hostile_failure(p, 4, i), "") << name;
  }
}

/// Products that cancel exactly need no more bits than tell that they round to 0.
TEST(spread, a_zero_by_cancellation_is_rounded) {
  const spread_case c{"zero", head(2, {1, -1, 1, -1}, {1, 1, 1, 1}, {1, 1}, {.5, .25}, {-.1, -.2})};
  for (const format& to : {fp64, bf16}) expect_rounded(c, to);
}

/// The gains of the rules are as precise as the rows that need more than 1024 bits.
TEST(spread, rules_are_evaluated_to_the_bits_of_the_widest_rows) {
  for (const rule_kind rule : {rule_kind::exact, rule_kind::implicit, rule_kind::crank_nicolson, rule_kind::rk4}) {
    spread_case c{std::string(name_of(rule)), head(2, all(12, 1), {0, .5, 0, 1, 0, 1, 0, 1, .5, 0, 0, .5}, all(6, .5), all(6, .3),
                                                   {-700, 0, -700, 0, 300, 0, 300, 0, 300, 0, 300, 0}, {1e-200, 3})};
    c.p.rule = rule;
    expect_rounded(c, fp64);
    EXPECT_EQ(testing::hostile_failure(c.p, 4, 0), "");
  }
}

TEST(spread, bits_are_bounded_by_what_was_allowed) {
  question q;
  q.threads = 1;
  q.round_output = q.round_state = fp64;
  q.max_bits = 512;
  const reference got = solve(spread_cases()[5].p, q);
  EXPECT_EQ(got.unanswered, 1U);
  for (const auto& [tier, heads] : got.tiers) EXPECT_FALSE(tier.starts_with("mpfr")) << tier;
}

// ---- the numbers of the radius

TEST(wide_bound, neither_underflows_nor_overflows) {
  const wide_bound tiny = wide_bound::scaled(0.75, -1000000), huge = wide_bound::scaled(3, 1000000);
  EXPECT_EQ((tiny * huge).above(), 2.25);
  EXPECT_EQ((tiny * tiny * huge * huge).above(), 2.25 * 2.25);
  EXPECT_EQ(tiny.above(), least);
  EXPECT_EQ(huge.above(), infinity);
  EXPECT_EQ(wide_bound(0).above(), 0);
  EXPECT_EQ((wide_bound(0) * huge).above(), 0);
  EXPECT_EQ((huge + tiny), huge);
  EXPECT_EQ((tiny + 0.0), tiny);
  EXPECT_EQ(sqrt(tiny * tiny), tiny);
  EXPECT_EQ(sqrt(wide_bound::scaled(1, -511) * wide_bound::scaled(1, -513)).above(), 0x1p-512);
  EXPECT_TRUE(tiny < huge && huge > tiny && tiny > wide_bound(0) && huge < wide_bound(infinity) && tiny <= tiny);
  EXPECT_EQ(tiny.exponent(), -1000000);
  EXPECT_EQ(huge.exponent(), 1000002);
  EXPECT_FALSE(wide_bound(std::nan("")).finite());
  EXPECT_FALSE((huge + wide_bound(infinity)).finite());
}

/// Within the range of doubles it does what they do, to one rounding, and `above` rounds up.
TEST(wide_bound, agrees_with_doubles) {
  philox random(7, 1);
  for (int i = 0; i < 20000; ++i) {
    const auto draw = [&] { return std::ldexp(1 + random.uniform(), static_cast<int>(random.below(1000)) - 500); };
    const double a = draw(), b = draw();
    EXPECT_EQ((wide_bound(a) * b).above(), a * b);
    EXPECT_EQ((wide_bound(a) + b).above(), a + b);
    EXPECT_EQ(sqrt(wide_bound(a)).above(), std::sqrt(a));
    EXPECT_EQ(wide_bound(a) < wide_bound(b), a < b);
    const double deep = std::ldexp(1 + random.uniform(), -1000 - static_cast<int>(random.below(100)));
    EXPECT_EQ(wide_bound(deep).above(), deep);
    const double low = (wide_bound(deep) * 0x1p-60 * (1 + 0x1p-20) * 0x1p60).above();
    EXPECT_GE(low, deep);
    EXPECT_LE(low, std::nextafter(deep * (1 + 0x1p-19), infinity));
  }
}

}  // namespace
}  // namespace deltaproof
