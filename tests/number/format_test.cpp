// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The table of formats against layouts written down a second time.
#include "deltaproof/number/format.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "deltaproof/number/rational.hpp"
#include "deltaproof/number/visit_format.hpp"
#include "number/truth.hpp"

namespace {

using namespace deltaproof;

TEST(format, limits_are_those_of_the_patterns) {
  ASSERT_EQ(truth::layouts().size(), formats.size());
  for (const truth::layout& f : truth::layouts()) {
    SCOPED_TRACE(name_of(f.name));
    EXPECT_EQ(largest(f.name), f.value(f.end() - 1));
    EXPECT_EQ(smallest_subnormal(f.name), f.value(1));
    EXPECT_EQ(smallest_normal(f.name), f.value(std::uint64_t{1} << f.mantissa_bits));
    EXPECT_EQ(unit_roundoff(f.name), std::ldexp(1, -f.mantissa_bits - 1));
    EXPECT_EQ(f.name.storage_bits, f.width() + f.zero_bits);
    EXPECT_EQ(f.name.has_infinity, f.has_infinity);
  }
}

TEST(format, known_limits) {
  EXPECT_EQ(largest(e4m3), 448);
  EXPECT_EQ(largest(e5m2), 57344);
  EXPECT_EQ(largest(fp16), 65504);
  EXPECT_EQ(largest(bf16), 0x1.fep127);
  EXPECT_EQ(largest(tf32), 0x1.ffcp127);
  EXPECT_EQ(largest(fp32), std::numeric_limits<float>::max());
  EXPECT_EQ(largest(fp64), std::numeric_limits<double>::max());
  EXPECT_EQ(smallest_subnormal(fp64), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(smallest_subnormal(e4m3), 0x1p-9);
}

TEST(format, names_go_both_ways) {
  for (const named_format& row : formats) {
    EXPECT_EQ(format_named(row.name), row.value);
    EXPECT_EQ(name_of(row.value), row.name);
  }
  EXPECT_EQ(name_of(format{5, -6, 7, 8, true}), "");
  EXPECT_EQ(format_named("bf16"), bf16);
}

TEST(format, an_unknown_name_is_answered_with_the_valid_ones) {
  try {
    static_cast<void>(format_named("fp8"));
    FAIL() << "fp8 is not a format";
  } catch (const format_error& e) {
    const std::string message = e.what();
    EXPECT_NE(message.find("'fp8'"), std::string::npos);
    EXPECT_NE(message.find("e4m3"), std::string::npos);
  }
}

/// The values of a small format; of a wide one, the ones that decide what fits into it.
std::vector<double> values(const truth::layout& f) {
  std::vector<double> all;
  if (f.width() <= 16) {
    for (std::uint64_t code = 0; code < f.sign(); ++code) all.push_back(f.value(code));
  } else {
    std::mt19937_64 random(1);
    for (const std::uint64_t code : f.hard(random, 50)) all.push_back(std::fabs(f.value(code)));
  }
  std::erase_if(all, [](double x) { return std::isnan(x); });
  return all;
}

TEST(format, lossless_means_every_value_is_there) {
  for (const truth::layout& from : truth::layouts()) {
    for (const truth::layout& to : truth::layouts()) {
      truth::exact_result exact;
      const auto all = values(from);
      const bool held = std::all_of(all.begin(), all.end(),
                                    [&](double x) { return to.value(exact.set(x).round(to, truth::mode::nearest)) == x; });
      EXPECT_EQ(is_lossless(from.name, to.name), held) << name_of(from.name) << " -> " << name_of(to.name);
    }
  }
}

TEST(format, a_format_of_run_time_is_the_row_it_equals) {
  for (const named_format& row : formats) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(visit_format(row.value, [&]<format F>() { return F == row.value; }));
    // Between two neighbours of 1, a quarter of the way up: a value that is not rounded stays where it is.
    const double step = std::ldexp(1.0, 1 - row.value.precision);
    if (row.value.precision < 51) {
      EXPECT_EQ(round_nearest(1 + 0.25 * step, row.value), 1);
    }
    EXPECT_EQ(round_nearest(1 + step, row.value), 1 + step);
    EXPECT_EQ(round_nearest(rational(4, 3), row.value),
              visit_format(row.value, []<format F>() { return static_cast<double>(round_to<F>(rational(4, 3)).value()); }));
  }
}

TEST(format, a_format_that_is_no_row_is_an_error_and_not_a_copy) {
  const format unknown{7, -126, 127, 16, true};
  EXPECT_THROW((void)round_nearest(1.0 / 3, unknown), format_error);
}

}  // namespace
